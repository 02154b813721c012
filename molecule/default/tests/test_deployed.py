# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is true on each node after the deployment. Nothing here changes anything."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from testinfra.host import Host

from fleet.config import FILES, OLD_SERVICE
from tests.fleet.control import INVENTORY
from tests.fleet.hosts import (
    ANSWER,
    API_KEY,
    API_PORT,
    SERVED_MODEL,
    SERVICE,
    UNIT,
    address,
    api,
    ask,
    main_pid,
    old_service_digest,
    root,
    show,
)

PINS = yaml.safe_load((INVENTORY / "group_vars/sglang/pins.yml").read_text())
CHECKPOINT = "/models/qwen3_5_397b_nvfp4"
RECORD = "/var/lib/llmfleet/qwen"
# The key as a pattern which does not match itself: the journal holds each command that sudo runs.
KEY_PATTERN = f"{API_KEY[:-1]}[{API_KEY[-1]}]"
# What connect() says at once when there is no route (IPv4, and IPv6 without any global address).
UNREACHABLE = ("Network is unreachable", "Cannot assign requested address")
# Asked of the release's own Python, in the service's environment: what the service imports.
IMPORTED = """
import json
from sglang.srt.distributed.device_communicators import all_reduce_utils as sizes, torch_symm_mem as worlds
sizes_12 = sizes.TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES[12]
worlds_12 = worlds.TorchSymmMemCommunicator._WORLD_SIZES_MULTIMEM[12]
print(json.dumps({"sizes": sizes_12, "worlds": worlds_12, "files": [sizes.__file__, worlds.__file__]}))
"""


def environment_of(host: Host, pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    text = root(host, f"tr '\\0' '\\n' < /proc/{pid}/environ")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def release_of(host: Host) -> str:
    """The release that the running service is started from, by its main process."""
    words = root(host, f"tr '\\0' '\\n' < /proc/{main_pid(host)}/cmdline").splitlines()
    assert words[1:3] == ["-m", "sglang.launch_server"]
    found = re.fullmatch(r"(/opt/sglang/releases/[^/]+)/venv/bin/python", words[0])
    assert found, words[0]
    return found[1]


def release_record(host: Host) -> dict[str, Any]:
    """The provenance that the running release carries."""
    record = json.loads(root(host, f"cat {release_of(host)}/release.json"))
    assert isinstance(record, dict)
    return record


def test_the_new_service_is_active_and_comes_back_after_a_boot(host: Host) -> None:
    assert show(host, SERVICE, "ActiveState", "SubState", "UnitFileState", "NRestarts") == {
        "ActiveState": "active",
        "SubState": "running",
        "UnitFileState": "enabled",
        "NRestarts": "0",
    }


def test_the_old_service_is_disabled_and_not_deleted(host: Host) -> None:
    old = show(host, OLD_SERVICE, "ActiveState", "UnitFileState", "MainPID")
    assert old == {"ActiveState": "inactive", "UnitFileState": "disabled", "MainPID": "0"}
    made = hashlib.sha256((FILES / f"{OLD_SERVICE}.service").read_bytes()).hexdigest()
    assert old_service_digest(host) == made
    assert host.file("/opt/kimi/run.sh").exists


def test_it_answers_rightly_under_its_name(host: Host) -> None:
    status, answer = ask(host)
    assert (status, ANSWER in str(answer)) == (200, True), (status, answer)
    status, models = api(host, "/v1/models")
    assert (status, [one["id"] for one in models["data"]]) == (200, [SERVED_MODEL])


@pytest.mark.parametrize("key", [None, "", "another-key"])
def test_it_refuses_who_has_no_key(host: Host, key: str | None) -> None:
    status, _answer = ask(host, key=key)
    assert status == 401


def test_there_is_one_engine_and_it_runs_the_state_of_its_unit(host: Host) -> None:
    mains = root(host, "pgrep --full -- '-m sglang[.]launch_server'").split()
    assert [int(pid) for pid in mains] == [main_pid(host)]
    [wanted] = re.findall(r"^Environment=LLMFLEET_STATE=([0-9a-f]{64})$", root(host, f"cat {UNIT}"), re.MULTILINE)
    assert environment_of(host, main_pid(host))["LLMFLEET_STATE"] == wanted
    assert show(host, SERVICE, "NeedDaemonReload") == {"NeedDaemonReload": "no"}
    record = json.loads(root(host, f"cat {RECORD}/record.json"))
    assert (record["state"], record["commit"]) == (wanted, PINS["sglang_commit"])


def test_it_runs_as_its_own_user_without_privileges(host: Host) -> None:
    group = show(host, SERVICE, "ControlGroup")["ControlGroup"]
    rows = root(host, "ps -e --no-headers -o user:32,cgroup:120").splitlines()
    ours = [row.split() for row in rows if row.endswith(f":{group}")]
    assert len(ours) >= 3, rows  # main process, scheduler, detokenizer
    assert {row[0] for row in ours} == {"sglang"}
    status = root(host, f"cat /proc/{main_pid(host)}/status")
    assert re.findall(r"^(?:CapEff|CapBnd|CapPrm):\s*(\w+)$", status, re.MULTILINE) == ["0" * 16] * 3
    assert "NoNewPrivs:\t1" in status
    assert host.user("sglang").shell == "/usr/sbin/nologin"
    assert host.user("sglang").groups == ["sglang"]


def test_it_listens_on_the_nodes_address_and_nowhere_else(host: Host) -> None:
    rows = [line.split() for line in root(host, "ss --listening --tcp --numeric --processes --no-header").splitlines()]
    pid = main_pid(host)
    api_sockets = [row[3] for row in rows if row[3].rpartition(":")[2] == str(API_PORT)]
    assert api_sockets == [f"{address(host)}:{API_PORT}"]
    assert [row[3] for row in rows if f"pid={pid}," in row[5]] == api_sockets
    others = [row for row in rows if row[3].rpartition(":")[0] != address(host)]
    strangers = [row for row in others if "sshd" not in row[5]]
    # The scheduler's TCPStore, which torch binds to every address, whatever SGLang is told (0.5.23, torch 2.14).
    assert len(strangers) <= 1 and all("sglang::schedul" in row[5] for row in strangers), strangers
    own = [row for row in rows if row not in others and row[3] not in api_sockets]
    assert all("sglang::schedul" in row[5] for row in own), own  # Gloo


def test_nobody_can_read_the_api_key(host: Host) -> None:
    # As the SSH user, who is neither root nor the service.
    places = f"/etc /var/lib /run /tmp /home /opt/sglang/locks {release_of(host)}/release.json"
    found = host.run(f"grep --recursive --files-with-matches --no-messages '{KEY_PATTERN}' {places}")
    assert (found.rc != 0, found.stdout) == (True, "")
    kept = host.file(f"{RECORD}/sglang.yaml")
    with host.sudo():
        assert (kept.user, kept.group, kept.mode) == ("root", "root", 0o600)
        assert API_KEY in kept.content_string


def test_no_process_shows_the_api_key(host: Host) -> None:
    words = root(host, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' || true")
    assert "sglang.launch_server" in words and API_KEY not in words
    environments = root(host, "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' || true")
    assert "LLMFLEET_STATE=" in environments and API_KEY not in environments


def test_the_journal_does_not_hold_the_api_key(host: Host) -> None:
    assert "launch_server" in root(host, f"journalctl --no-pager --output=cat --unit={SERVICE}")
    found = root(host, f"journalctl --no-pager | grep '{KEY_PATTERN}' || true").splitlines()
    assert [line[:200] for line in found] == []


def test_the_release_says_what_it_was_made_of(host: Host) -> None:
    record = release_record(host)
    assert record["inputs"]["commit"] == PINS["sglang_commit"]
    assert record["id"] == release_of(host).rpartition("/")[2]
    assert [one["name"] for one in record["inputs"]["patch_sets"]] == ["sm120"]
    assert {one["id"] for one in record["patched"]} == {"symm_mem_max_sizes", "multimem_world_sizes"}
    assert len(record["digests"]) == 2
    for file, digest in record["digests"].items():
        assert root(host, f"sha256sum {release_of(host)}/{file}").split()[0] == digest


def imported_by_the_service(host: Host) -> dict[str, Any]:
    """What the release's Python imports as the service user, in the service's environment."""
    own = environment_of(host, main_pid(host))
    words = " ".join(shlex.quote(f"{key}={value}") for key, value in own.items())
    python = f"sudo --user=sglang env --ignore-environment {words} {release_of(host)}/venv/bin/python"
    answer = json.loads(root(host, f"cd /var/lib/{SERVICE} && {python} -c %s", IMPORTED).splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def test_both_patches_are_in_the_files_that_the_service_imports(nodes: list[Host]) -> None:
    mib = 1024 * 1024
    with ThreadPoolExecutor(len(nodes)) as pool:
        answers = list(pool.map(imported_by_the_service, nodes))
    for host, imported in zip(nodes, answers):
        assert imported["sizes"] == {"2": 64 * mib, "4": 64 * mib, "6": 128 * mib, "8": 128 * mib}
        assert imported["worlds"] == []
        record = release_record(host)
        assert sorted(imported["files"]) == sorted(f"{release_of(host)}/{file}" for file in record["digests"])


def test_the_checkpoint_is_roots_and_is_reached_by_a_link(host: Host) -> None:
    link = host.file(CHECKPOINT)
    assert link.is_symlink
    revision = PINS["sglang_checkpoint_revisions"]["qwen3_5_397b_nvfp4"]
    assert re.fullmatch(rf"/models/\.checkpoints/[^/]+/{revision}", link.linked_to)
    rows = root(host, f"find {link.linked_to} -printf '%U %m %y %p\\n'").splitlines()
    assert len(rows) > 5
    assert [row for row in rows if not re.match(r"0 (644 f|755 d) ", row)] == []
    manifest = json.loads(root(host, f"cat {CHECKPOINT}/.llmfleet-manifest.json"))
    for file in manifest["files"]:
        if file.get("sha256"):
            assert root(host, f"sha256sum {CHECKPOINT}/{file['path']}").split()[0] == file["sha256"]


def test_the_service_user_can_write_only_its_own_folders(host: Host) -> None:
    own = f"/var/lib/{SERVICE}"
    places = f"/opt/sglang /models /etc /var/lib/llmfleet /var/cache/llmfleet {own}"
    found = root(
        host, f"cd / && sudo --user=sglang find {places} -not -type l -writable 2>/dev/null || true"
    ).splitlines()
    assert own in found
    assert [path for path in found if not f"{path}/".startswith(f"{own}/")] == []


def test_the_units_properties(host: Host) -> None:
    wanted = {
        "User": "sglang",
        "Group": "sglang",
        "KillMode": "mixed",
        "Restart": "on-failure",
        "LimitMEMLOCK": "infinity",
        "LimitNOFILE": "1048576",
        "StartLimitBurst": "3",
        "StartLimitIntervalUSec": "19min 30s",  # three starts of 300 s, stops of 60 s, pauses of 10 s, and one minute
        "TimeoutStopUSec": "1min",
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "UMask": "0077",
    }
    assert show(host, SERVICE, *wanted) == wanted
    verify = host.run(f"systemd-analyze verify {UNIT}")
    assert (verify.rc, verify.stderr) == (0, "")


def test_there_is_no_way_out_of_the_node(host: Host) -> None:
    assert [line for line in root(host, "ip route; ip -6 route").splitlines() if "default" in line] == []
    # Asked in one go: an address that would be reached through a router, and the controller's own other ones.
    others = subprocess.run(["ip", "-json", "address"], check=True, capture_output=True, text=True, timeout=20).stdout
    known = [one["local"] for link in json.loads(others) for one in link["addr_info"] if one["scope"] == "global"]
    elsewhere = ["192.0.2.1", *(one for one in known if not one.startswith("10.77.0."))]
    assert len(elsewhere) > 1, known
    script = (
        "import socket, sys\n"
        "for one in sys.argv[1:]:\n"
        "    for port in (22, 80, 443):\n"
        "        try:\n"
        "            socket.create_connection((one, port), timeout=3).close()\n"
        "            print(one, port, 'connected')\n"
        "        except OSError as error:\n"
        "            print(one, port, error)\n"
    )
    rows = root(host, "python3 -c %s " + " ".join(elsewhere), script).splitlines()
    assert len(rows) == 3 * len(elsewhere)
    assert [row for row in rows if not row.endswith(UNREACHABLE)] == []
