# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release is recorded only when what it imports is what was patched.

The engine is a stand-in of a few modules in a real virtual environment: which file an import takes is Python's doing.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import record

PATCHED = "sglang/srt/distributed/device_communicators/all_reduce_utils.py"
MODULES = {
    "torch.py": "__version__ = '2.14.1'\nclass version:\n    cuda = '13.0'\n",
    "sgl_kernel.py": "",
}
ENGINE = {
    "sglang/__init__.py": "__version__ = '0.5.23'\n",
    "sglang/launch_server.py": "print('a line of the engine')\n",
    "sglang/srt/__init__.py": "",
    "sglang/srt/entrypoints/__init__.py": "",
    "sglang/srt/entrypoints/http_server.py": "",
    "sglang/srt/distributed/__init__.py": "",
    "sglang/srt/distributed/device_communicators/__init__.py": "",
    PATCHED: "SIZES = {12: 1}\n",
}


def write(root: Path, files: dict[str, str]) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@dataclass(frozen=True)
class Release:
    """A release's folder with its tree and its environment."""

    folder: Path

    @property
    def root(self) -> Path:
        """The tree that is imported."""
        return self.folder / "src" / "python"

    @property
    def packages(self) -> Path:
        """Where the environment keeps its packages."""
        (found,) = (self.folder / "venv" / "lib").glob("python*/site-packages")
        return found

    def install(self, tree: Path) -> None:
        """Install a tree the way an editable installation does."""
        (self.packages / "editable.pth").write_text(f"{tree}\n")

    def probe(self, *patched: str, **environment: str) -> dict[str, object]:
        """Probe it."""
        paths = [self.root / name for name in patched or (PATCHED,)]
        digests = {path: record.file_digest(path) if path.is_file() else "" for path in paths}
        return record.probe(self.folder, digests, environment)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty virtual environment, made once."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    return folder


@pytest.fixture
def release(tmp_path: Path, environment: Path) -> Release:
    """A release that is as it should be."""
    made = Release(tmp_path / "releases" / "r1")
    write(made.root, ENGINE)
    subprocess.run(["cp", "-a", str(environment), str(made.folder / "venv")], check=True, timeout=60)
    write(made.packages, MODULES)
    made.install(made.root)
    return made


def test_a_release_that_imports_its_own_tree_says_what_it_is(release: Release) -> None:
    found = release.probe()
    assert found["sglang"] == str(release.root / "sglang" / "__init__.py")
    assert (found["torch"], found["cuda"]) == ("2.14.1", "13.0")
    assert found["python"] == ".".join(str(number) for number in sys.version_info[:3])
    assert found["packages"] == []


def test_the_root_of_the_installation_may_be_a_link(release: Release, tmp_path: Path) -> None:
    (tmp_path / "opt").symlink_to(tmp_path / "releases")
    assert Release(tmp_path / "opt" / "r1").probe()["torch"] == "2.14.1"


def test_an_engine_from_elsewhere_is_refused(release: Release, tmp_path: Path) -> None:
    write(tmp_path / "other", ENGINE)
    release.install(tmp_path / "other")
    with pytest.raises(record.ImportFailed, match=r"sglang is imported from .*/other/sglang/__init__\.py, not from"):
        release.probe()


def test_another_sglang_that_breaks_at_its_import_is_named_all_the_same(release: Release) -> None:
    write(release.packages, {"sglang/__init__.py": ""})
    with pytest.raises(
        record.ImportFailed, match=r"^sglang is imported from .*/site-packages/sglang/__init__\.py, not"
    ):
        release.probe()


def test_an_installed_copy_in_front_of_the_tree_is_refused(release: Release) -> None:
    write(release.packages, ENGINE)
    with pytest.raises(record.ImportFailed, match="site-packages"):
        release.probe()


def test_a_patched_module_from_elsewhere_is_refused(release: Release, tmp_path: Path) -> None:
    write(tmp_path / "other", ENGINE)
    elsewhere = tmp_path / "other" / "sglang" / "srt" / "distributed"
    (release.root / "sglang" / "srt" / "distributed" / "__init__.py").write_text(
        f"__path__.insert(0, {str(elsewhere)!r})\n"
    )
    with pytest.raises(record.ImportFailed, match=r"all_reduce_utils is imported from .*/other/"):
        release.probe()


def test_a_patched_file_that_was_written_again_is_refused(release: Release) -> None:
    patched = {release.root / PATCHED: record.file_digest(release.root / PATCHED)}
    (release.root / PATCHED).write_text("SIZES = {12: 2}\n")
    with pytest.raises(record.ImportFailed, match=r"all_reduce_utils\.py is not as it was patched"):
        record.probe(release.folder, patched, {})


def test_a_patched_file_that_no_import_leads_to_is_refused(release: Release) -> None:
    write(release.root, {"sglang/srt/extra-file.py": "x = 1\n"})
    with pytest.raises(record.ImportFailed):
        release.probe("sglang/srt/gone.py")


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("sglang/launch_server.py", "import no_such_package\n", "No module named 'no_such_package'"),
        ("sglang/launch_server.py", "{2: 64 *\n", "SyntaxError"),
        ("sglang/launch_server.py", "raise SystemExit(0)\n", "does not import"),
        ("sglang/__init__.py", "raise ImportError('libcuda.so.1')\n", "libcuda.so.1"),
        # What the service imports once it runs, and what only some models need.
        ("sglang/srt/entrypoints/http_server.py", "import no_such_package\n", "No module named 'no_such_package'"),
        (PATCHED, "SIZES = MiB\n", "name 'MiB' is not defined"),
    ],
)
def test_an_engine_that_does_not_import_says_why(release: Release, file: str, text: str, says: str) -> None:
    (release.root / file).write_text(text)
    with pytest.raises(record.ImportFailed, match=says):
        release.probe()


def test_a_package_that_is_missing_is_named(release: Release) -> None:
    (release.packages / "sgl_kernel.py").unlink()
    with pytest.raises(record.ImportFailed, match="No module named 'sgl_kernel'"):
        release.probe()


def test_what_the_engine_prints_at_its_end_does_no_harm(release: Release) -> None:
    with (release.root / "sglang" / "launch_server.py").open("a") as file:
        file.write("import atexit\natexit.register(print, 'a last line')\n")
    assert release.probe()["torch"] == "2.14.1"


def test_the_import_happens_in_the_services_environment(release: Release) -> None:
    text = "import os\nassert os.environ['SGLANG_USE_CPU_ENGINE'] == '1'\n"
    (release.root / "sglang" / "launch_server.py").write_text(text)
    release.probe(SGLANG_USE_CPU_ENGINE="1")
    with pytest.raises(record.ImportFailed, match="SGLANG_USE_CPU_ENGINE"):
        release.probe()


def test_the_probe_leaves_bytecode_and_nothing_else(release: Release) -> None:
    before = sorted(release.folder.rglob("*"))
    release.probe()
    left = [path for path in sorted(release.folder.rglob("*")) if "__pycache__" not in path.parts]
    assert left == before
    # The service, which cannot write it, finds it.
    assert list(release.packages.glob("__pycache__/torch.*.pyc"))


@pytest.mark.parametrize(
    ("found", "changed", "after"),
    [
        ("absent", True, "present"),
        ("upstream", False, "upstream"),
        ("conflict", False, "conflict"),
        ("not_found", False, "not_found"),
    ],
)
def test_a_record_says_what_an_edit_came_to(found: str, changed: bool, after: str) -> None:
    edit = {"id": "sizes", "state": found, "changed": changed, "file": "a.py", "line": 3, "reason": "long"}
    assert record.patches([edit]) == [{"id": "sizes", "found": found, "state": after, "file": "a.py", "line": 3}]


def test_the_record_appears_when_all_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cache = tmp_path / "r1", tmp_path / "cache"
    folder.mkdir()
    cache.mkdir()
    log = tmp_path / "log"
    command = tmp_path / "bin" / "sync"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\necho "$* $(ls {folder})" >> {log}\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    record.write_record(folder, {"id": "r1"}, [cache])
    assert log.read_text().splitlines() == [
        f"--file-system {folder} ",
        f"--file-system {cache} ",
        f"--file-system {folder} release.json",
    ]


def test_a_disk_that_cannot_be_written_leaves_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "bin" / "sync"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho 'Input/output error' >&2\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    (tmp_path / "r1").mkdir()
    with pytest.raises(OSError, match="r1 cannot be written to its disk: Input/output error"):
        record.write_record(tmp_path / "r1", {"id": "r1"})
    assert list((tmp_path / "r1").iterdir()) == []


def test_without_an_interpreter_there_is_nobody_to_ask(release: Release) -> None:
    (release.folder / "venv" / "bin" / "python").unlink()
    with pytest.raises(FileNotFoundError):
        release.probe()


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("sglang/__init__.py", "sglang"),
        (PATCHED, "sglang.srt.distributed.device_communicators.all_reduce_utils"),
        ("sglang/srt/__init__.py", "sglang.srt"),
    ],
)
def test_the_module_of_a_file(tmp_path: Path, file: str, module: str) -> None:
    assert record.module_name(tmp_path, tmp_path / file) == module


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert record.file_digest(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_what_the_caller_adds_to_pythons_path_does_not_count(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "other", ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "other"))
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    assert release.probe()["sglang"] == str(release.root / "sglang" / "__init__.py")
