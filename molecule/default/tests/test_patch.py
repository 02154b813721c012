# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patching and auditing by the name of a service: what it really imports is found and, here, only shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

from testinfra.host import Host

from fleet.config import OLD_SERVICE
from tests.fleet.control import playbook
from tests.fleet.hosts import SERVICE, limit, root, show

EDITED = "sglang/srt/distributed/device_communicators"
# Where the service of each kind imports from, and what is said of each edit of the default patch set there.
EXPECTED = {
    SERVICE: (r"/opt/sglang/releases/[^/]+/src/python", "present"),
    OLD_SERVICE: (r"/opt/kimi/sglang/python", "absent, changed"),
}


def running(host: Host) -> str:
    """The service that runs on the node: the deployed one, or before that the old one, which is not ours."""
    return next(unit for unit in EXPECTED if show(host, unit, "ActiveState")["ActiveState"] == "active")


def test_patch_set_is_shown_for_what_the_service_imports(node: Host) -> None:
    service = running(node)
    place, state = EXPECTED[service]
    variables = {"sglang_patch_service": service, "sglang_patch_state": "shown"}
    run = playbook("playbooks/patch.yml", limit([node]), "--check", "--diff", variables=variables).must_pass()
    said = " ".join(run.output.split())
    found = re.search(rf"imports ({place})/sglang/__init__\.py; the files below are relative to \1 ", said)
    assert found, run.output
    for edit in ("symm_mem_max_sizes", "multimem_world_sizes"):
        assert f"{edit}: {state} {EDITED}/" in said, run.output
    text = root(node, f"cat {found[1]}/{EDITED}/all_reduce_utils.py {found[1]}/{EDITED}/torch_symm_mem.py")
    assert text.count(" 12: ") == (2 if service == SERVICE else 0)


def test_audit_reads_what_the_service_imports(node: Host, tmp_path: Path) -> None:
    variables = {"sglang_patch_service": running(node), "sglang_audit_to": str(tmp_path / "audit.json")}
    run = playbook("playbooks/audit.yml", limit([node]), variables=variables).must_pass()
    assert set(run.changed.values()) <= {0, 1}  # the file on the controller
    gates = json.loads((tmp_path / "audit.json").read_text())["gates"]
    fusion = [gate for gate in gates if gate["fusion"] and gate["function"] == "flashinfer_ar_fusion_applies"]
    assert fusion and not any(gate["treats"] for gate in gates)
    assert fusion[0]["falls"] == "out" and fusion[0]["capabilities"] == ["9.0", "10.0"]
