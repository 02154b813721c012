# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pip and uv are told where packages come from in their environment, and tell no password."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import interpreter
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.lock import LockRequest, compile_lock
from ansible_collections.llmfleet.sglang.plugins.module_utils._release.packages import PackageError, PackageSource, run

SECRET = "hidden-word"
INDEX = f"https://user:{SECRET}@packages.example/simple/"

# Stands in for uv: it writes down how it was called, prints a lock, and fails when it is told to.
FAKE = f"""#!{sys.executable}
import json, os, pathlib, sys
pathlib.Path(os.environ["SEEN"]).write_text(json.dumps(
    dict(argv=sys.argv, cwd=os.getcwd(), environment=dict(os.environ),
         files={{path: open(path).read() for path in sys.argv if path.endswith((".toml", ".txt", ".in"))}})))
if "FAIL" in os.environ:
    print("could not fetch " + os.environ.get("UV_DEFAULT_INDEX", "nothing"), file=sys.stderr)
    sys.exit(int(os.environ["FAIL"]))
print("click==8.1.7 --hash=sha256:aa")
"""


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stand-in for uv."""
    program = tmp_path / "uv"
    program.write_text(FAKE)
    program.chmod(0o755)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    return str(program)


def seen(uv: str) -> dict[str, object]:
    """Return how the stand-in was called."""
    found: dict[str, object] = json.loads(Path(uv).with_name("seen.json").read_text())
    return found


def test_the_index_reaches_pip_and_uv_in_the_environment_alone(uv: str) -> None:
    assert run([uv, "pip", "sync"], PackageSource(index_url=INDEX)).startswith("click==8.1.7")
    called = seen(uv)
    assert SECRET not in json.dumps(called["argv"])
    environment = called["environment"]
    assert isinstance(environment, dict)
    assert environment["UV_DEFAULT_INDEX"] == environment["PIP_INDEX_URL"] == INDEX
    assert called["cwd"] == "/"  # no configuration of a project is picked up by chance


@pytest.mark.parametrize(
    ("source", "has", "lacks"),
    [
        (
            PackageSource(),
            {"UV_LINK_MODE": "hardlink", "UV_PYTHON_DOWNLOADS": "never"},
            ["UV_DEFAULT_INDEX", "UV_OFFLINE"],
        ),
        (PackageSource(offline=True), {"UV_OFFLINE": "1", "PIP_NO_INDEX": "1"}, ["UV_DEFAULT_INDEX"]),
        (
            PackageSource(index_url="http://10.77.0.1:8081/simple/", offline=True),
            {"UV_DEFAULT_INDEX": "http://10.77.0.1:8081/simple/", "PIP_TRUSTED_HOST": "10.77.0.1:8081"},
            ["UV_OFFLINE", "PIP_NO_INDEX"],
        ),
        (
            PackageSource(index_url=f"http://user:{SECRET}@packages.example/simple/"),
            {"PIP_TRUSTED_HOST": "packages.example"},
            [],
        ),
        (PackageSource(index_url=INDEX), {"PIP_CONFIG_FILE": os.devnull}, ["PIP_TRUSTED_HOST"]),
        (
            PackageSource(link_mode="symlink", cache="/var/cache/uv"),
            {"UV_LINK_MODE": "symlink", "UV_CACHE_DIR": "/var/cache/uv"},
            [],
        ),
        (
            PackageSource(environment={"HTTPS_PROXY": "http://proxy.example:3128"}),
            {"HTTPS_PROXY": "http://proxy.example:3128"},
            [],
        ),
        (PackageSource(index_url=INDEX, environment={"UV_DEFAULT_INDEX": "x"}), {"UV_DEFAULT_INDEX": "x"}, []),
    ],
)
def test_the_variables_of_a_source(source: PackageSource, has: dict[str, str], lacks: list[str]) -> None:
    values = source.variables()
    assert {name: values.get(name) for name in has} == has
    assert not set(lacks) & set(values)
    assert all(isinstance(value, str) for value in values.values())


INHERITED = {
    "PATH": "/bin",
    "PIP_EXTRA_INDEX_URL": "https://elsewhere.example/",
    "UV_FIND_LINKS": "/tmp",
    "HOME": "/root",
}


@pytest.mark.parametrize("source", [PackageSource(offline=True), PackageSource(index_url=INDEX)])
def test_a_source_that_is_given_is_the_only_one(source: PackageSource) -> None:
    values = source.complete(INHERITED)
    assert (values["PATH"], values["HOME"]) == ("/bin", "/root")
    assert "PIP_EXTRA_INDEX_URL" not in values
    assert "UV_FIND_LINKS" not in values


def test_without_a_source_the_hosts_own_holds() -> None:
    assert PackageSource().complete(INHERITED)["PIP_EXTRA_INDEX_URL"] == "https://elsewhere.example/"


def test_an_error_says_what_was_run_and_what_it_said_without_passwords(uv: str) -> None:
    source = PackageSource(
        index_url=INDEX, environment={"FAIL": "2", "HTTPS_PROXY": f"http://user:{SECRET}-2@proxy.example:3128"}
    )
    with pytest.raises(PackageError) as caught:
        run([uv, "pip", "sync", "requirements"], source)
    said = str(caught.value)
    assert "pip sync requirements` failed:\ncould not fetch https://user:***@packages.example/simple/" in said
    assert SECRET not in said


def test_a_program_that_is_not_there_or_does_not_end_is_named(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="no-such-uv is not there"):
        run([str(tmp_path / "no-such-uv")], PackageSource())
    with pytest.raises(PackageError, match=r"took longer than 0 s"):
        run([sys.executable, "-c", "import signal; signal.pause()"], PackageSource(), timeout=0.2)


# --- the lock ---


def request(uv: str, **changes: Any) -> LockRequest:
    """Return an example of what a lock is made from."""
    given: dict[str, Any] = {
        "pyproject": "[project]\nname = 'sglang'\n",
        "overrides": "torch==2.14.1\n",
        "python": sys.executable,
        "uv": uv,
        "uv_version": "0.13.9",
    }
    return LockRequest(**{**given, **changes})


def test_a_lock_is_made_of_the_projects_requirements_and_the_overrides(uv: str) -> None:
    assert compile_lock(request(uv), PackageSource(index_url=INDEX)) == "click==8.1.7 --hash=sha256:aa\n"
    called = seen(uv)
    files = called["files"]
    assert isinstance(files, dict)
    # What builds SGLang is locked too, for it is installed without build isolation.
    assert sorted(files.values()) == ["[project]\nname = 'sglang'\n", "setuptools>=61.0\n", "torch==2.14.1\n"]
    assert not [path for path in files if Path(path).exists()]  # nothing is left behind
    argv = called["argv"]
    assert isinstance(argv, list)
    for option in ("--generate-hashes", "--no-emit-index-url", "--overrides"):
        assert option in argv
    assert not {"--extra", "--prerelease"} & set(argv)
    compile_lock(request(uv, extras=("srt",), prerelease="explicit"), PackageSource(index_url=INDEX))
    argv = seen(uv)["argv"]
    assert isinstance(argv, list)
    assert argv[argv.index("--extra") + 1] == "srt"
    assert argv[argv.index("--prerelease") + 1] == "explicit"


def test_a_locks_name_is_made_of_what_it_is_made_from(uv: str) -> None:
    key = request(uv).key("cpython 3.11.2 x86_64")
    assert key == request("/elsewhere/uv", python="/usr/bin/python3").key("cpython 3.11.2 x86_64")
    others = {
        request(uv, pyproject="x").key("cpython 3.11.2 x86_64"),
        request(uv, overrides="").key("cpython 3.11.2 x86_64"),
        request(uv, uv_version="0.13.10").key("cpython 3.11.2 x86_64"),
        request(uv).key("cpython 3.11.3 x86_64"),
    }
    assert len(others | {key}) == 5


def test_the_interpreter_says_what_it_is(tmp_path: Path) -> None:
    kind, version, machine = interpreter.describe(sys.executable).split()
    assert kind == sys.implementation.name
    assert version.split(".")[:2] == [str(number) for number in sys.version_info[:2]]
    assert machine == os.uname().machine
    with pytest.raises(interpreter.InterpreterError, match="no-python does not run on this host"):
        interpreter.describe(str(tmp_path / "no-python"))
