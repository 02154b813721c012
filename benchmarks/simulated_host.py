# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated host for benchmarks/scale.py: takes what Ansible pipes into a host's Python, and answers at once.

    python3 -I -S simulated_host.py FOLDER NAME < module

No module is run. What it would say is said here, in the shape and size of a host of the demo fleet, where a run finds
nothing to do or (the file FOLDER/cutover is there) a release and a checkpoint that wait for a cut-over. A line in
FOLDER/calls counts each call: host, module, bytes taken, bytes answered, CPU seconds that this process took.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from typing import Any

RELEASE = "0.5.23-simulated"
_PACKAGES = [(f"package-{number}", hashlib.sha256(str(number).encode()).hexdigest()) for number in range(175)]
_LOCK = "".join(f"{name}==1.2.3 \\\n    --hash=sha256:{digest}\n" for name, digest in _PACKAGES)
_GPU = {"name": "simulated", "uuid": "GPU-" + "0" * 36, "memory_total_mib": 97887, "compute_capability": "12.0"}


def _stat(given: dict[str, Any]) -> dict[str, Any]:
    """What stat says of a file; the bytes are the one thing of a simulated host that is real."""
    path = given["path"]
    if not os.path.exists(path):
        return {"stat": {"exists": False}}
    with open(path, "rb") as file:
        checksum = hashlib.sha1(file.read()).hexdigest()
    kinds = {"exists": True, "isreg": True, "isdir": False, "islnk": False}
    return {"stat": {**kinds, "checksum": checksum, "path": path, "mode": "0644", "uid": 0, "gid": 0}}


def _copy(given: dict[str, Any]) -> dict[str, Any]:
    os.makedirs(os.path.dirname(given["dest"]), exist_ok=True)
    with open(given["src"], "rb") as source, open(given["dest"], "wb") as target:
        target.write(source.read())
    return {"changed": True, "dest": given["dest"], "src": given["src"], "mode": "0644", "owner": "root"}


def _release_status(given: dict[str, Any]) -> dict[str, Any]:
    inputs = {
        "schema": 1,
        "commit": given["commit"],
        "version": given["version"],
        "patch_sets": given["patch_sets"],
        "lock": [f"{name}==1.2.3 sha256:{digest}" for name, digest in _PACKAGES],
        "interpreter": "cpython 3.11.2 x86_64",
        "environment": {},
    }
    path = f"{given['root']}/releases/{RELEASE}"
    found = {"missing": [], "lock": _LOCK, "describe": f"v{given['version']}", "id": RELEASE, "path": path}
    return {**found, "built": True, "inputs": inputs, "compilers": {}, "drift": []}


def _checkpoint(given: dict[str, Any]) -> dict[str, Any]:
    names = ("path", "repository", "revision")
    found = {**{name: given[name] for name in names}, "target": f"{given['store']}/{given['revision']}", "files": 40}
    counted = {"bytes": 223_000_000_000, "bytes_downloaded": 0, "bytes_hashed": 0, "verified_at": "2026-11-30T00:00Z"}
    lists: dict[str, Any] = {"fetched_again": [], "to_download": [], "taken_from": []}
    digest = hashlib.sha256(given["revision"].encode()).hexdigest()
    return {**found, **counted, **lists, "manifest_digest": digest, "complete": True, "message": "unchanged"}


def _service_stop(given: dict[str, Any], cuts: bool) -> dict[str, Any]:
    stops = cuts and given["name"] == "sglang-kimi"
    look = {"unit": {"ActiveState": "inactive"}, "processes": [], "listeners": [], "gpus": []}
    found = {"service": given["name"] + ".service", "stopped": stops, "disabled": False, "reset": False, "drain": {}}
    lists: dict[str, Any] = {"killed": [], "removed": [], "held": []}
    return {"changed": stops, **found, **lists, "seconds": 1.0, "before": look, "after": look}


def _completion(given: dict[str, Any]) -> dict[str, Any]:
    answers = [
        {"check": check, "expected": "Paris", "answer": "It is Paris.", "seconds": 0.5, "problem": ""}
        for check in ("prompt", "prompt", "repeat", "together", "stream")
    ]
    return {"answers": answers, "model": given.get("model", ""), "ready_seconds": 1.0}


def answer(module: str, given: dict[str, Any], cuts: bool) -> dict[str, Any]:
    """Say what the module would. cuts: the host has to be cut over; a module that is not known fails."""
    lock = {"run": "0" * 12, "owner": "simulated", "reason": given.get("reason", ""), "taken_at": 0, "expires_at": 1}
    started = {"reason": "the unit is inactive" if cuts else "", "enabled": False, "started": cuts, "main_pid": 4242}
    answers: dict[str, Any] = {
        "ping": lambda: {"ping": "pong"},
        "stat": lambda: _stat(given),
        "copy": lambda: _copy(given),
        "file": lambda: {"changed": False, "path": given.get("path", ""), "mode": "0644", "owner": "root", "uid": 0},
        "command": lambda: {"changed": True, "rc": 0, "stdout": "", "stderr": "", "cmd": [], "delta": "0:00:00.1"},
        "host_lock": lambda: {"held": True, "lock": lock, "took_over": None, "why": ""},
        "preflight": lambda: {"findings": [], "blocking": [], "report": "", "facts": {"gpus": {"gpus": [_GPU] * 8}}},
        "release_status": lambda: _release_status(given),
        "checkpoint": lambda: _checkpoint(given),
        "launch_arguments": lambda: {"checkpoint": {"quantization": {}}, "problems": [], "checked": [], "notes": []},
        "service_prepare": lambda: {"changed": cuts, "written": [], "state": "0" * 64, "diff": []},
        "service_switch": lambda: {"changed": cuts, "enabled": cuts, "disabled": ["sglang-kimi"] if cuts else []},
        "service_start": lambda: {"changed": cuts, **started, "was_active": not cuts},
        "service_stop": lambda: _service_stop(given, cuts),
        "completion": lambda: _completion(given),
        "host_snapshot": lambda: {
            "changed": cuts,
            "served": ["sglang-kimi"],
            "taken_at": "2026-11-30T00:00:00Z",
            "rejected": "",
            "phase": "cutover" if given["state"] == "taken" else "serving",
        },
        "release_prune": lambda: {"removed": [], "debris": [], "kept": {RELEASE: "in use"}},
        "cutover_info": lambda: {
            **{name: "" for name in ("drained", "phase", "service", "release", "commit", "model", "checkpoint")},
            **{name: [] for name in ("served", "patches", "changes", "benchmarks", "trials", "problems")},
            "mine": False,
            "clock_ahead": 0.0,
            "times": {},
        },
    }
    if module not in answers:
        return {"failed": True, "msg": f"{__file__} has no answer for the module {module}: give it one."}
    said: dict[str, Any] = {"changed": False, "invocation": {"module_args": given}, **answers[module]()}
    return said


def main() -> None:
    """Take one call and answer it."""
    folder, host = sys.argv[1:]
    taken = sys.stdin.buffer.read()
    [module] = re.findall(rb"(?m)^ansible_module='(?:[\w.]+\.)?(\w+)'", taken)
    [literal] = re.findall(rb"(?m)^params=('.*'),$", taken)
    given = json.loads(eval(literal, {"__builtins__": {}}))["ANSIBLE_MODULE_ARGS"]  # a literal of Ansible's own
    given = {name: value for name, value in given.items() if not name.startswith("_ansible_")}
    name = module.decode()
    size = len(taken) + (os.path.getsize(given["src"]) if name == "copy" else 0)
    said = json.dumps(answer(name, given, os.path.exists(f"{folder}/cutover"))) + "\n"
    sys.stdout.write(said)
    times = os.times()
    with open(f"{folder}/calls", "a") as calls:
        calls.write(f"{host} {name} {size} {len(said)} {times.user + times.system:.3f}\n")


if __name__ == "__main__":
    main()
