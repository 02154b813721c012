"""Which files a Python or a service imports: asked, not guessed."""

from __future__ import annotations

import json
import os
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.errors import SourceError
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.importing import (
    Runner,
    imported,
    of_service,
)
from ansible_collections.llmfleet.sglang.plugins.modules import python_import_info

from tests.unit.source.helpers import write

EXEC = "ExecStart={{ path={path} ; argv[]={argv} ; ignore_errors=no ; pid=0 ; code=(null) }}"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return the Python of a virtual environment without packages."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    return tmp_path / "venv" / "bin" / "python"


def site(python: Path) -> Path:
    """Return where packages of a virtual environment stand."""
    return python.parents[1] / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def unit(tmp_path: Path, *lines: str, state: str = "loaded") -> str:
    """Return a command that says what `systemctl show` would."""
    path = tmp_path / "systemctl"
    text = "\n".join([f"LoadState={state}", *lines])
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    path.chmod(0o755)
    return str(path)


def process(tmp_path: Path, command: list[str], folder: Path, **variables: str) -> str:
    """Return a /proc with the process 42 in it."""
    place = write(tmp_path / "proc" / "42", {"cmdline": "\0".join(command) + "\0"})
    write(place, {"environ": "\0".join(f"{name}={value}" for name, value in variables.items())})
    (place / "cwd").symlink_to(folder)
    (place / "exe").symlink_to(sys.executable)
    return str(tmp_path / "proc")


def test_site_packages_and_editable(tmp_path: Path, environment: Path) -> None:
    write(site(environment), {"sglang/__init__.py": "raise SystemExit('not to be run')\n"})
    found = imported(Runner(str(environment)), "sglang")
    assert (found.root, found.origin) == (str(site(environment)), str(site(environment) / "sglang/__init__.py"))
    (site(environment) / "sglang/__init__.py").unlink()
    (site(environment) / "sglang").rmdir()
    write(tmp_path, {"checkout/python/sglang/__init__.py": "", "venv/x": ""})
    write(site(environment), {"editable.pth": f"{tmp_path}/checkout/python\n"})
    assert imported(Runner(str(environment)), "sglang").root == str(tmp_path / "checkout/python")


def test_no_package_no_python(tmp_path: Path, environment: Path) -> None:
    with pytest.raises(SourceError, match="finds no package sglang"):
        imported(Runner(str(environment)), "sglang")
    write(site(environment), {"sglang.py": ""})
    with pytest.raises(SourceError, match="finds no package sglang"):
        imported(Runner(str(environment)), "sglang")
    with pytest.raises(SourceError, match="cannot run"):
        imported(Runner(str(tmp_path / "none")), "sglang")


def test_live_process_counts_before_the_unit(tmp_path: Path, environment: Path) -> None:
    folder = write(tmp_path / "work", {"sglang/__init__.py": ""})
    elsewhere = write(tmp_path / "other", {"sglang/__init__.py": ""})
    command = [str(environment), "-m", "sglang.launch_server"]
    proc = process(tmp_path, command, folder, SECRET="x", HOME="/h")
    runner = of_service("a", proc, unit(tmp_path, "MainPID=42", EXEC.format(path="/bin/false", argv="/bin/false")))
    assert runner == Runner(str(environment), str(folder), {"HOME": "/h"}, 42)
    assert imported(runner, "sglang").root == str(folder)
    # a script does not import from the folder that it runs in
    write(tmp_path / "proc/42", {"cmdline": "\0".join([str(environment), "/x/sglang", "serve"]) + "\0"})
    write(tmp_path / "proc/42", {"environ": f"PYTHONPATH={elsewhere}"})
    runner = of_service("a", proc, unit(tmp_path, "MainPID=42"))
    assert imported(runner, "sglang").root == str(elsewhere)


HYBRID = "9:name=systemd:{path}\n8:pids:/\n0::{path}\n"
UNIFIED = "0::{path}\n"
LEGACY = "9:name=systemd:{path}\n8:pids:/elsewhere\n"


@pytest.mark.parametrize("cgroup", [HYBRID, UNIFIED, LEGACY], ids=["hybrid", "unified", "legacy"])
def test_python_below_a_shell_is_found_through_proc(tmp_path: Path, environment: Path, cgroup: str) -> None:
    folder = write(tmp_path / "work", {"x": ""})
    proc = process(tmp_path, ["/bin/bash", "/opt/kimi/run.sh"], folder)
    others = {
        43: ("/system.slice/a.service/sub", [str(environment), "sidecar.py"]),
        44: ("/system.slice/a.service", [str(environment), "-m", "sglang.launch_server"]),
        45: ("/system.slice/a.service2", [str(environment), "-m", "sglang.launch_server", "other"]),
    }
    for pid, (path, command) in others.items():
        place = write(tmp_path / "proc" / str(pid), {"cmdline": "\0".join(command) + "\0", "environ": ""})
        write(place, {"cgroup": cgroup.format(path=path)})
        (place / "cwd").symlink_to(folder)
    write(tmp_path / "proc/42", {"cgroup": cgroup.format(path="/system.slice/a.service")})
    lines = ["MainPID=42", "ActiveState=active", "ControlGroup=/system.slice/a.service"]
    assert of_service("a", proc, unit(tmp_path, *lines)) == Runner(str(environment), str(folder), {}, 44)
    assert of_service("a", proc, unit(tmp_path, *lines), package="sidecar").pid == 43


def test_running_service_without_a_python_is_not_said_to_be_down(tmp_path: Path) -> None:
    proc = process(tmp_path, ["/bin/bash", "run.sh"], tmp_path)
    lines = ["MainPID=42", "ActiveState=active", EXEC.format(path="/bin/run", argv="/bin/run")]
    with pytest.raises(SourceError, match=r"service a runs, but none of its processes \(42\) is a Python"):
        of_service("a", proc, unit(tmp_path, *lines))


FINDER = """
import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location
PACK = {folder!r}
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "sglang":
            return spec_from_file_location(name, PACK + "/__init__.py", submodule_search_locations=[PACK])
        return PathFinder.find_spec(name, path=[PACK]) if name.startswith("sglang.") else None
sys.meta_path.append(Finder)
"""


def test_checkout_beside_the_service_hides_no_editable_package(tmp_path: Path, environment: Path) -> None:
    """A folder sglang in the working folder is a namespace package; its modules come from the editable one."""
    files = {"__init__.py": "raise SystemExit('not to be run')\n", "srt/__init__.py": "raise SystemExit\n", "b.py": ""}
    write(tmp_path / "opt/sglang/python/sglang", dict(files))
    folder = str(tmp_path / "opt/sglang/python/sglang")
    write(site(environment), {"finder.py": FINDER.format(folder=folder), "editable.pth": "import finder\n"})
    runner = Runner(str(environment), str(tmp_path / "opt"))
    assert imported(runner, "sglang").root == str(tmp_path / "opt/sglang/python")
    write(tmp_path / "opt/sglang/srt", {"__init__.py": ""})
    with pytest.raises(SourceError, match=r"but not sglang\.srt: a folder sglang in its path"):
        imported(runner, "sglang")
    (site(environment) / "editable.pth").unlink()
    with pytest.raises(SourceError, match=r"opt/sglang for the package sglang, which is a folder without"):
        imported(runner, "sglang")


def test_python_by_name_is_looked_up_in_the_process_s_path(tmp_path: Path, environment: Path) -> None:
    proc = process(tmp_path, ["python", "-m", "x"], tmp_path, PATH=str(environment.parent))
    assert of_service("a", proc, unit(tmp_path, "MainPID=42")).python == str(environment)


def test_unit_that_does_not_run(tmp_path: Path, environment: Path) -> None:
    write(site(environment), {"sglang/__init__.py": ""})
    script = write(tmp_path, {"sglang": f"#!{environment}\n"}) / "sglang"
    for path in (environment, script):
        lines = ["MainPID=0", EXEC.format(path=path, argv=f"{path} -m x"), 'Environment=A=1 "PYTHONPATH=/a b"']
        runner = of_service("a", systemctl=unit(tmp_path, *lines, f"WorkingDirectory={tmp_path}"))
        assert runner == Runner(str(environment), str(tmp_path), {"PYTHONPATH": "/a b"})
        assert imported(runner, "sglang").root == str(site(environment))


def test_unit_that_starts_a_shell(tmp_path: Path) -> None:
    line = EXEC.format(path="/bin/bash", argv="/bin/bash -c x")
    with pytest.raises(SourceError, match="its unit starts /bin/bash, which is no Python"):
        of_service("a", systemctl=unit(tmp_path, "MainPID=0", line))
    with pytest.raises(SourceError, match="starts nothing"):
        of_service("a", systemctl=unit(tmp_path, "MainPID=0"))


def test_no_such_service(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no service a \(not-found\)"):
        of_service("a", systemctl=unit(tmp_path, state="not-found"))


def test_module(tmp_path: Path, environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(**options: Any) -> dict[str, Any]:
        with patch_module_args(options), pytest.raises(SystemExit):
            python_import_info.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    write(site(environment), {"pack/__init__.py": ""})
    result = run(python=str(environment), package="pack")
    assert result["root"] == str(site(environment)) and not result["changed"]
    assert set(yaml.safe_load(python_import_info.RETURN)) == set(result) - {"changed", "invocation"}
    assert "finds no package sglang" in run(python=str(environment))["msg"]
    assert "one of the following is required" in run()["msg"]
    assert os.path.exists(environment)
