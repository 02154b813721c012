"""Bytes, modes, owners, links: what happens to the files themselves."""

from __future__ import annotations

import codecs
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.unit.source.helpers import dict_edit, do, done, read_all, write

ENCODINGS = {
    "BOM": codecs.BOM_UTF8 + "# ä\nNAME = {9: 'ö'}\n".encode(),
    "latin-1": "# -*- coding: latin-1 -*-\na = 'äöü'; NAME = {9: 'é'}\n".encode("latin-1"),
    "cookie in the second line": "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nNAME = {9: '€'}\n".encode(
        "cp1252"
    ),
    "utf-8 cookie": "# coding: utf-8\nNAME = {9: '😀'}\n".encode(),
    "BOM, cookie, CRLF": codecs.BOM_UTF8 + "# coding: utf-8\r\nNAME = {\r\n    9: 'ö',\r\n}\r\n".encode(),
    "euc-jp": "# coding: euc-jp\na = '日本'; NAME = {9: '語'}\n".encode("euc-jp"),
}


@pytest.mark.parametrize("raw", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_encoding_is_kept(tmp_path: Path, raw: bytes) -> None:
    root = write(tmp_path, {"a.py": raw})
    done(root, dict_edit())
    after = (root / "a.py").read_bytes()
    assert b"12: []" in after
    new = b"    12: [],\r\n" if b"\r\n" in raw else b", 12: []"
    assert after.replace(new, b"", 1) == raw


DIFFS = {
    "plain": b"x = 1\nNAME = {\n    9: 1,\n}\ny = 2\n",
    "no newline at the end": b"x = 1\nNAME = {9: 1}",
    "CRLF": b"x = 1\r\nNAME = {\r\n    9: 1,\r\n}\r\n",
    "CR": b"x = 1\rNAME = {\r    9: 1,\r}\r",
    "form feed": b"x = 1\n\x0c\ny = 2\x0c\nNAME = {\n    9: 1,\x0c\n    10: 2,\n}\n\x0cz = 1\n",
    "vertical tab": b"x = '\x0b\x1c\x1d'\nNAME = {9: 1}\n# \x0b\n",
    "Unicode's line ends": "x = '\u2028\x85\u2029a'\nNAME = {\n    9: '\x85',\n}\n# \u2028\n".encode(),
    "BOM": codecs.BOM_UTF8 + b"NAME = {9: 1}\n",
}


def patched(before: bytes, diff: str) -> bytes:
    """Return what a unified diff makes of a file; as for patch(1), lines end at line feeds."""
    old, out, at = re.findall(rb"[^\n]*\n|[^\n]+", before), [], 0
    lines = re.findall(rb"[^\n]*\n", diff.encode())
    assert [line[:3] for line in lines[:2]] == [b"---", b"+++"]
    for number, line in enumerate(lines[2:], 3):
        ends = lines[number : number + 1] == [b"\\ No newline at end of file\n"]
        text = line[1:-1] if ends else line[1:]
        if line[:1] == b"@":
            start = int(line.split()[1].partition(b",")[0][1:]) - 1
            out += old[at:start]
            at = start
        elif line[:1] in (b" ", b"-"):
            assert old[at] == text
            at += 1
        if line[:1] in (b" ", b"+"):
            out.append(text)
    return b"".join(out + old[at:])


@pytest.mark.parametrize("raw", DIFFS.values(), ids=DIFFS.keys())
def test_diff_is_exact(tmp_path: Path, raw: bytes) -> None:
    root = write(tmp_path, {"a.py": raw})
    report = do(root, dict_edit())
    assert patched(raw, report.diff[0]["prepared"]) == (root / "a.py").read_bytes()


def test_value_in_the_file_s_encoding(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": b"# coding: latin-1\nNAME = {}\n"})
    done(root, dict_edit("12", "'ä'"))
    assert (root / "a.py").read_bytes() == b"# coding: latin-1\nNAME = {12: '\xe4'}\n"


def test_mixed_endings_elsewhere_are_kept(tmp_path: Path) -> None:
    raw = b"a = 1\nb = 2\r\nNAME = {\r\n    9: 1,\r\n}\r\nc = 3\n"
    root = write(tmp_path, {"a.py": raw})
    done(root, dict_edit())
    assert (root / "a.py").read_bytes() == raw.replace(b"9: 1,\r\n", b"9: 1,\r\n    12: [],\r\n")


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o664, 0o2755])
def test_mode_is_kept(tmp_path: Path, mode: int) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\n"})
    (root / "a.py").chmod(mode)
    done(root, dict_edit())
    assert (root / "a.py").stat().st_mode & 0o7777 == mode


def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path, {"a.py": "NAME = {}\n"}) / "a.py"
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no user attributes")
    do(tmp_path, dict_edit())
    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owner_is_kept_by_root(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\n"})
    for path in (root, root / "a.py"):
        os.chown(path, 12345, 23456)
    do(root, dict_edit())
    owners = {path.name: (path.stat().st_uid, path.stat().st_gid) for path in root.iterdir()}
    assert owners == {"a.py": (12345, 23456), ".python_source.json": (12345, 23456)}


def test_hard_link_is_broken(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"a.py": "NAME = {}\n"})
    os.link(root / "a.py", tmp_path / "cached.py")
    do(root, dict_edit())
    assert (tmp_path / "cached.py").read_text() == "NAME = {}\n"
    assert (root / "a.py").read_text() == "NAME = {12: []}\n"


def test_link_inside_the_root_is_followed_and_said(tmp_path: Path) -> None:
    root = write(tmp_path, {"real/a.py": "NAME = {}\n", "b.py": ""})
    (root / "link.py").symlink_to("real/a.py")
    report = do(root, dict_edit(within=["*.py"]))
    assert not report.failed and (root / "link.py").is_symlink()
    assert (report.files[0].path, report.files[0].link) == ("real/a.py", "link.py")
    assert (root / "real/a.py").read_text() == "NAME = {12: []}\n"
    both = do(root, dict_edit(within=["*.py", "**/*.py"]))
    assert both.edits[0].state == "present" and not both.changed


def test_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"cache/a.py": "NAME = {}\n", "root/b.py": ""})
    (tmp_path / "root/a.py").symlink_to(tmp_path / "cache/a.py")
    message = do(tmp_path / "root", dict_edit()).failed
    assert "a.py: is a link to" in message and "outside the root" in message
    assert (tmp_path / "cache/a.py").read_text() == "NAME = {}\n"


def test_linked_folders_are_not_searched_by_two_stars(tmp_path: Path) -> None:
    root = write(tmp_path, {"real/a.py": "NAME = {}\n"})
    (root / "loop").symlink_to(".")
    assert do(root, dict_edit()).edits[0].file == "real/a.py"


def test_root_that_is_a_link(tmp_path: Path) -> None:
    write(tmp_path, {"real/a.py": "NAME = {}\n"})
    (tmp_path / "current").symlink_to("real")
    assert do(tmp_path / "current", dict_edit()).changed
    assert not do(tmp_path / "real", dict_edit()).changed


def test_stale_bytecode_goes(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\n"})
    cache = root / "__pycache__"
    cache.mkdir()
    unchecked, checked = cache / "a.cpython-311.pyc", cache / "a.cpython-310.pyc"
    unchecked.write_bytes(b"magi" + (1).to_bytes(4, "little") + b"h" * 8)
    checked.write_bytes(b"magi" + (0).to_bytes(4, "little") + b"\0" * 8)
    do(root, dict_edit())
    assert not unchecked.exists() and checked.exists()


def test_folders_that_hold_patterns_in_their_names(tmp_path: Path) -> None:
    root = write(tmp_path, {"[a]*/b?.py": "NAME = {}\n", "a/b1.py": "x = 1\n"})
    done(root, dict_edit())
    assert (root / "[a]*/b?.py").read_text() == "NAME = {12: []}\n"


def test_files_are_found_without_parsing_others(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "NAME = {}\n", "b.py": "this is no Python\n", "c.py": b"\xff\xfe"})
    done(root, dict_edit())


def test_patterns(tmp_path: Path) -> None:
    root = write(tmp_path, {name: "" for name in ("a.py", "s/a.py", "s/t/a.py", "s/t/b.txt", "s/u/c.py")})
    from ansible_collections.llmfleet.sglang.plugins.module_utils._source.tree import Tree

    def files(*within: str) -> list[str]:
        return Tree(str(root)).files(within)

    assert files("*.py") == ["a.py"]
    assert files("**/*.py") == files() == ["a.py", "s/a.py", "s/t/a.py", "s/u/c.py"]
    assert files("s/**/a.py") == ["s/a.py", "s/t/a.py"]
    assert files("s/**") == ["s/a.py", "s/t/a.py", "s/t/b.txt", "s/u/c.py"]
    assert files("./s/?/[a-b].py", "a.py", "a.py") == ["a.py", "s/t/a.py"]
    assert files("s/t") == files("none/*.py") == files("a.py/*") == []


def test_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, {"s/a.py": "NAME = {}\n"})
    folder = str(root / "s")
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder)
    for check in (True, False):
        assert "s/a.py: stands in a folder that is read-only" in do(root, dict_edit(), check=check).failed
    assert read_all(root) == {"s/a.py": b"NAME = {}\n"}


def test_copy_of_a_tree_keeps_its_record(tmp_path: Path) -> None:
    root = write(tmp_path / "one", {"a.py": "NAME = {}\n"})
    do(root, dict_edit())
    shutil.copytree(root, tmp_path / "two")
    do(tmp_path / "two", dict_edit(state="absent"))
    assert read_all(tmp_path / "two") == {"a.py": b"NAME = {}\n"}
