# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real fleet's inventory, resolved and rendered: what no machine without GPUs can start is compared by hand.

The unit is read by the tests' own reader of systemd's rules. The engine never sees it here: that its arguments are ones
that SGLang 0.5.23 takes is test_resolve.py's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.deployment.example import COMMIT, REVISION, ROOT
from tests.unit.systemd import reader

INVENTORY = ROOT / "inventories" / "blackwell"
API_KEY = "key-of-the-test"
RELEASE = "/opt/sglang/releases/0.5.23-example"
CACHE = "/var/cache/sglang-qwen/0.5.23-example"


def ansible(*command: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a program of this environment's Ansible, without colours and without what the user's environment sets."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    program, *rest = command
    return subprocess.run(
        [str(Path(sys.executable).parent / program), *rest],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@dataclass(frozen=True)
class Rendered:
    """A host's unit and the deployment that it was made of."""

    unit: str
    deployment: dict[str, Any]

    def values(self, key: str, section: str = "Service") -> list[str]:
        """Return every value of a key of the unit."""
        return [value for where, name, value in reader.entries(self.unit) if (where, name) == (section, key)]

    def value(self, key: str, section: str = "Service") -> str:
        """Return the one value of a key; none and two are failures."""
        (value,) = self.values(key, section)
        return value

    @property
    def environment(self) -> dict[str, str]:
        """The environment that the unit sets, without the state."""
        values = reader.environment(self.values("Environment"))
        assert re.fullmatch(r"[0-9a-f]{64}", values.pop("LLMFLEET_STATE"))
        return values


def render(folder: Path, **values: Any) -> dict[str, Rendered]:
    """Resolve and render the inventory with values over it; return what each host gets."""
    (folder / "templates").symlink_to(ROOT / "roles" / "sglang_service" / "templates")
    (folder / "render.yml").write_bytes((Path(__file__).parent / "render.yml").read_bytes())
    given = {
        "sglang_commit": COMMIT,
        "sglang_version": "0.5.23",
        "sglang_checkpoint_revision": REVISION,
        "role": str(ROOT / "roles" / "sglang_service"),
        "out": str(folder),
        **values,
    }
    done = ansible("ansible-playbook", "render.yml", "-i", str(INVENTORY), "-e", json.dumps(given), folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        path.stem: Rendered(path.read_text("utf-8"), json.loads(path.with_suffix(".json").read_text("utf-8")))
        for path in folder.glob("*.service")
    }


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rendered]:
    """The inventory as it stands, with example pins."""
    return render(tmp_path_factory.mktemp("blackwell"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """One host's unit where there is an API key and every other secret that an operator may set."""
    secrets = {
        "sglang_api_key": API_KEY,
        "sglang_hub_token": "token-of-the-test",
        "sglang_index_url": "https://user:password-of-the-test@packages.example/simple/",
        "sglang_download_environment": {"HTTPS_PROXY": "http://user:password-of-the-test@proxy.example:3128"},
    }
    return render(tmp_path_factory.mktemp("guarded"), **secrets)["gpu01"]


def arguments(argv: list[str]) -> dict[str, str | bool]:
    """Return a command line's flags as a map; a flag that stands there twice is a failure."""
    found: list[tuple[str, str | bool]] = []
    for position, word in enumerate(argv):
        if not word.startswith("--"):
            continue
        flag, equals, value = word.partition("=")
        following = argv[position + 1] if position + 1 < len(argv) else "--"
        found.append((flag, value if equals else True if following.startswith("--") else following))
    twice = [flag for flag, times in Counter(flag for flag, _value in found).items() if times > 1]
    assert not twice
    return dict(found)


ARGUMENTS = {
    "--model-path": f"/models/.checkpoints/nvidia--Qwen3.5-397B-A17B-NVFP4/{REVISION}",
    "--served-model-name": "qwen3.5-397b-a17b",
    "--host": "192.0.2.11",
    "--port": "30000",
    "--quantization": "modelopt_fp4",
    "--tp-size": "8",
    "--attention-backend": "flashinfer",
    "--moe-runner-backend": "flashinfer_cutlass",
    "--fp4-gemm-backend": "flashinfer_cutlass",
    "--kv-cache-dtype": "fp8_e4m3",
    "--mem-fraction-static": "0.85",
    "--chunked-prefill-size": "32768",
    "--page-size": "64",
    "--cuda-graph-max-bs-decode": "32",
    "--disable-custom-all-reduce": True,
    "--reasoning-parser": "qwen3",
    "--tool-call-parser": "qwen3_coder",
    "--model-loader-extra-config": '{"enable_multithread_load": true, "num_threads": 16}',
    "--watchdog-timeout": "1200",
    "--sleep-on-idle": True,
    "--enable-metrics": True,
}

ENVIRONMENT = {
    # the engine on this hardware
    "NCCL_IB_DISABLE": "1",
    "NCCL_P2P_LEVEL": "SYS",
    "NCCL_MIN_NCHANNELS": "8",
    "NCCL_ALLOC_P2P_NET_LL_BUFFERS": "1",
    "OMP_NUM_THREADS": "8",
    "SAFETENSORS_FAST_GPU": "1",
    # where it finds its compilers and writes its caches
    "HOME": "/var/lib/sglang-qwen",
    "PATH": f"{RELEASE}/venv/bin:/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin",
    "CUDA_HOME": "/usr/local/cuda",
    "XDG_CACHE_HOME": CACHE,
    "HF_HOME": f"{CACHE}/huggingface",
    "TRITON_CACHE_DIR": f"{CACHE}/triton",
    "TORCHINDUCTOR_CACHE_DIR": f"{CACHE}/inductor",
    "FLASHINFER_WORKSPACE_BASE": CACHE,
    "SGLANG_CACHE_DIR": f"{CACHE}/sglang",
    "SGLANG_JIT_CACHE_DIR": f"{CACHE}/sglang/jit",
    "SGLANG_DG_CACHE_DIR": f"{CACHE}/sglang/deep_gemm",
    "CUDA_CACHE_PATH": f"{CACHE}/nv",
    "TILELANG_CACHE_DIR": f"{CACHE}/tilelang",
    "TVM_FFI_CACHE_DIR": f"{CACHE}/tvm_ffi",
    # what the compilers that it runs have to know of the cards and of the host
    "TORCH_CUDA_ARCH_LIST": "12.0a",
    "FLASHINFER_CUDA_ARCH_LIST": "12.0a",
    "MAX_JOBS": "16",
    "HF_HUB_OFFLINE": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def test_both_hosts_get_a_unit_that_differs_in_the_address_alone(fleet: dict[str, Rendered]) -> None:
    assert sorted(fleet) == ["gpu01", "gpu02"]
    state = re.compile("LLMFLEET_STATE=.*")
    first, second = (state.sub("", fleet[host].unit) for host in ("gpu01", "gpu02"))
    assert first != second
    assert first.replace("192.0.2.11", "192.0.2.12") == second


def test_the_command_line(fleet: dict[str, Rendered]) -> None:
    argv = reader.argv(fleet["gpu01"].value("ExecStart"))
    assert argv[:3] == [f"{RELEASE}/venv/bin/python", "-m", "sglang.launch_server"]
    assert argv[3].startswith("--")
    assert arguments(argv) == ARGUMENTS
    assert "auto" not in argv


def test_the_environment(fleet: dict[str, Rendered]) -> None:
    assert fleet["gpu01"].environment == ENVIRONMENT


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Type", "exec"),
        ("User", "sglang"),
        ("Group", "sglang"),
        ("KillMode", "mixed"),
        ("TimeoutStopSec", "300"),
        ("LimitMEMLOCK", "infinity"),
        ("LimitNOFILE", "1048576"),
        ("Restart", "on-failure"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("CapabilityBoundingSet", ""),
        ("StateDirectory", "sglang-qwen"),
        ("WorkingDirectory", "/var/lib/sglang-qwen"),
    ],
)
def test_how_systemd_runs_it(fleet: dict[str, Rendered], key: str, value: str) -> None:
    assert fleet["gpu01"].value(key) == value


@pytest.mark.parametrize("key", ["PrivateDevices", "MemoryDenyWriteExecute", "ProcSubset"])
def test_what_would_hide_the_gpus_or_break_the_compilers_is_not_there(fleet: dict[str, Rendered], key: str) -> None:
    assert fleet["gpu01"].values(key) == []


def test_a_crash_loop_ends(fleet: dict[str, Rendered]) -> None:
    """The limit has to span as many starts as it allows, each with all the time it may take, or it is never met."""
    unit, timeout = fleet["gpu01"], fleet["gpu01"].deployment["verify"]["timeout_seconds"]
    assert timeout == 1715  # 600 s, and 223 GB at 200 MB/s
    burst = int(unit.value("StartLimitBurst", "Unit"))
    interval = int(unit.value("StartLimitIntervalSec", "Unit"))
    assert interval > burst * (timeout + int(unit.value("TimeoutStopSec")) + int(unit.value("RestartSec")))
    # In [Service], where older systemd had them, they would count for nothing.
    assert not [key for section, key, _value in reader.entries(unit.unit) if section != "Unit" and "StartLimit" in key]


def test_it_starts_with_the_host_and_after_its_disks(fleet: dict[str, Rendered]) -> None:
    unit = fleet["gpu01"]
    assert unit.value("WantedBy", "Install") == "multi-user.target"
    assert unit.value("RequiresMountsFor", "Unit").split() == [RELEASE, "/models"]
    assert unit.value("X-Llmfleet", "Unit") == "qwen"


def test_the_caches_of_the_compilers_are_ones_that_systemd_makes_for_the_service(fleet: dict[str, Rendered]) -> None:
    folders = [f"/var/cache/{name}" for name in fleet["gpu01"].value("CacheDirectory").split()]
    assert CACHE in folders


def test_what_the_deployment_says_beside_the_unit(fleet: dict[str, Rendered]) -> None:
    found = fleet["gpu01"].deployment
    assert found["replaces"] == ["sglang-kimi"]
    assert found["listen"] == {"host": "192.0.2.11", "port": 30000}
    assert found["paths"]["root"] == "/opt/sglang"
    assert found["checkpoint"]["repository"] == "nvidia/Qwen3.5-397B-A17B-NVFP4"
    assert found["checkpoint"]["revision"] == REVISION
    assert found["build"]["commit"] == COMMIT
    assert [edit["id"] for one in found["patch_sets"] for edit in one["edits"]] == [
        "symm_mem_max_sizes",
        "multimem_world_sizes",
    ]


def test_without_a_key_nobody_is_asked_for_one(fleet: dict[str, Rendered]) -> None:
    assert fleet["gpu01"].values("LoadCredential") == []
    assert "--config" not in fleet["gpu01"].unit


def test_the_key_is_a_credential_and_no_secret_is_in_the_unit_or_the_deployment(guarded: Rendered) -> None:
    text = guarded.unit + json.dumps(guarded.deployment)
    for secret in (API_KEY, "token-of-the-test", "password-of-the-test"):
        assert secret not in text
    assert guarded.value("LoadCredential") == "sglang.yaml:/var/lib/llmfleet/qwen/sglang.yaml"
    line, _space, last = guarded.value("ExecStart").rpartition(" ")
    assert last == "${CREDENTIALS_DIRECTORY}/sglang.yaml"
    assert line.split()[-1] == "--config"
    assert arguments(reader.argv(line.rpartition(" ")[0])) == ARGUMENTS


def test_another_key_is_another_state(fleet: dict[str, Rendered], guarded: Rendered) -> None:
    states = [reader.environment(one.values("Environment"))["LLMFLEET_STATE"] for one in (fleet["gpu01"], guarded)]
    assert states[0] != states[1]


# --- the inventory as it stands, before anything is filled in ---


def test_a_missing_pin_stops_before_any_host_is_touched() -> None:
    done = ansible("ansible-playbook", "playbooks/deploy_qwen.yml", "-i", str(INVENTORY))
    assert done.returncode != 0
    said = re.sub(r"\s+", " ", done.stdout + done.stderr)
    command = "ansible-playbook llmfleet.sglang.pin -i INVENTORY -e sglang_profile=qwen3_5_397b_nvfp4"
    for name in ("sglang_commit", "sglang_version"):
        assert f"{name} is not set: run `{command}`" in said
    assert f"sglang_checkpoint_revisions has no entry 'qwen3_5_397b_nvfp4': run `{command}`" in said
    assert "UNREACHABLE" not in said
    assert re.findall(r"TASK \[(.*?)\]", said) == ["Check that every value is there"]


@pytest.mark.parametrize(
    "command",
    [
        ("ansible-playbook", "playbooks/deploy_qwen.yml", "--syntax-check"),
        ("ansible-playbook", "playbooks/deploy_qwen.yml", "--list-tasks"),
        ("ansible-playbook", "playbooks/stop.yml", "--syntax-check"),
        ("ansible-playbook", "playbooks/pin.yml", "--syntax-check"),
        ("ansible-inventory", "--graph"),
    ],
    ids=" ".join,
)
def test_it_can_be_looked_at_as_it_stands(command: tuple[str, ...]) -> None:
    done = ansible(*command, "-i", str(INVENTORY))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stderr
