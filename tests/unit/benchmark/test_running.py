# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which variables of a running process are its deployment's, and how they are compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import measure, running

from tests.unit.benchmark.case import RELEASE, Serving


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """A host on which an instance of ours serves."""
    return Serving(tmp_path)


def running_of(serving: Serving) -> running.Running:
    """What is known of the process that serves."""
    return running.read(serving.fake.run, "sglang-qwen", serving.root, serving.fake.proc)


def test_what_the_unit_and_the_host_give_to_every_service_is_no_part_of_a_deployment(serving: Serving) -> None:
    folder = serving.root / "releases" / RELEASE
    cache = f"/var/cache/sglang-qwen/{RELEASE}"
    unit = {"CUDA_HOME": "/usr/local/cuda", "TRITON_CACHE_DIR": f"{cache}/triton", "PYTHONUNBUFFERED": "1"}
    path = f"{folder}/venv/bin:/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
    serving.start(11, **unit, PATH=path, LC_ALL="C.UTF-8", INVOCATION_ID="9f")
    assert set(running_of(serving).environment) == {"NCCL_P2P_LEVEL", "MY_API_TOKEN", "HTTPS_PROXY"}
    own = {"CUDA_HOME": "/usr/local/cuda-13", "TRITON_CACHE_DIR": "/x", "PYTHONMALLOC": "malloc"}
    serving.start(12, **{**unit, **own})
    assert own.items() <= running_of(serving).environment.items()


def test_what_the_unit_sets_is_part_of_a_deployment_whatever_its_name(serving: Serving, tmp_path: Path) -> None:
    unit = tmp_path / "sglang-qwen.service"
    logging = "/var/lib/llmfleet/qwen/logging.json"
    lines = ["LC_ALL=C", '"SHELL=/bin/a b"', f"SGLANG_LOGGING_CONFIG_PATH={logging}", "LLMFLEET_STATE=s1"]
    unit.write_text("".join(f"Environment={one}\n" for one in lines))
    serving.start(11, LC_ALL="C", SHELL="/bin/a b", LANG="C.UTF-8", SGLANG_LOGGING_CONFIG_PATH=logging)
    serving.fake.add_unit("sglang-qwen.service", main_pid=11, FragmentPath=str(unit))
    found = running_of(serving)
    own = {"NCCL_P2P_LEVEL", "MY_API_TOKEN", "HTTPS_PROXY", "LC_ALL", "SHELL"}
    assert set(found.environment) == own and not found.unit_changed
    unit.write_text("Environment=LLMFLEET_STATE=s2\n")
    assert running_of(serving).unit_changed
    unit.unlink()  # the service runs still
    found = running_of(serving)
    assert set(found.environment) == own - {"LC_ALL", "SHELL"} and not found.unit_changed


def test_a_variable_is_compared_by_its_value_whatever_it_is_and_no_secret_is_shown(serving: Serving) -> None:
    serving.start(11, LC_ALL="C.UTF-8", CUDA_HOME="/usr/local/cuda", N="8")
    wanted = {"LC_ALL": "C.UTF-8", "CUDA_HOME": "/x", "N": 8, "MY_API_TOKEN": "hunter3", "HOME": None, "NO": None}
    told = running.described(running_of(serving), {**wanted, "OTHER": "1"})
    assert told["compared"] == {
        "LC_ALL": "as asked",
        "CUDA_HOME": "another value",
        "N": "as asked",
        "MY_API_TOKEN": "another value",
        "HOME": "another value",
        "NO": "as asked",
        "OTHER": "absent",
    }
    assert told["asked"]["CUDA_HOME"] == "/usr/local/cuda" and "hunter" not in json.dumps(told)
    found = measure.benchmark(serving.request(tried={"LC_ALL": "C.UTF-8", "X": 1}), serving.machine())
    assert found.tried == {"LC_ALL": "as asked", "X": "absent"}
