# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe where it cannot answer, and the file that keeps its answers."""

from __future__ import annotations

import dataclasses
import json
import os
import pwd
import tempfile
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch import probe

from tests.unit.launch import engine

BROKEN = "import torchh_that_is_not_there\n"
HANGING = "import threading\nthreading.Event().wait()\n"
NOISY = "import os\nprint('{}')\nos.write(1, b'{}')\nos.system('echo {}')\n" + engine.SERVER_ARGS
QUITS = "import os\nos._exit(0)\n"
WHO = (
    'import os\nopen(os.path.join(os.path.dirname(__file__), "who"), "w").write(f"{os.getuid()} {os.getgid()}")\n'
    + engine.SERVER_ARGS
)
LEAVES = (
    """
import os, pathlib
pathlib.Path(os.environ["HOME"], "left").write_text("x")
open(os.path.join(os.path.dirname(__file__), "home"), "w").write(os.environ["HOME"])
"""
    + engine.SERVER_ARGS
)
PLUGINS = """
def load_plugins():
    from sglang.srt import server_args
    older = server_args.ServerArgs.add_cli_args
    def add_cli_args(parser):
        older(parser)
        parser.add_argument("--plugged-in")
    server_args.ServerArgs.add_cli_args = staticmethod(add_cli_args)
"""
GOOD = {"model-path": "/m"}


def test_an_engine_that_does_not_import_says_why(tmp_path: Path) -> None:
    with pytest.raises(probe.ProbeFailed, match="No module named 'torchh_that_is_not_there'"):
        probe.ask(engine.question(GOOD, engine.write(tmp_path, BROKEN)))


def test_an_engine_that_hangs_is_given_up(tmp_path: Path) -> None:
    asked = dataclasses.replace(engine.question(GOOD, engine.write(tmp_path, HANGING)), timeout=1)
    with pytest.raises(probe.ProbeFailed, match="within 1 s"):
        probe.ask(asked)


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    asked = probe.Question(str(tmp_path / "python"), [], {})
    with pytest.raises(probe.ProbeFailed, match="cannot be run: No such file"):
        probe.ask(asked)


def test_an_engine_that_ends_without_an_answer(tmp_path: Path) -> None:
    with pytest.raises(probe.ProbeFailed, match="gave no answer"):
        probe.ask(engine.question(GOOD, engine.write(tmp_path, QUITS)))


def test_a_user_who_is_not_there(tmp_path: Path) -> None:
    asked = dataclasses.replace(engine.question(GOOD, engine.write(tmp_path)), user="nobody-of-that-name")
    with pytest.raises(probe.ProbeFailed, match="there is no user nobody-of-that-name"):
        probe.ask(asked)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_it_is_asked_as_another_user() -> None:
    user = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # pytest's own folder is closed to others
        os.chmod(folder, 0o755)
        environment = engine.write(Path(folder), WHO)
        os.chmod(Path(folder, "sglang", "srt"), 0o777)
        asked = dataclasses.replace(engine.question(GOOD, environment), python="/usr/bin/python3", user="nobody")
        assert probe.ask(asked)["whole"]["error"] is None
        assert Path(folder, "sglang", "srt", "who").read_text() == f"{user.pw_uid} {user.pw_gid}"


def test_only_root_asks_as_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    asked = dataclasses.replace(engine.question(GOOD, engine.write(tmp_path)), user="root")
    with pytest.raises(probe.ProbeFailed, match="only root can ask as root"):
        probe.ask(asked)


def test_what_the_engine_prints_does_not_disturb_the_answer(tmp_path: Path) -> None:
    assert probe.ask(engine.question(GOOD, engine.write(tmp_path, NOISY)))["whole"]["error"] is None


def test_what_the_engine_leaves_at_home_goes_away(tmp_path: Path) -> None:
    probe.ask(engine.question(GOOD, engine.write(tmp_path, LEAVES)))
    home = Path((tmp_path / "sglang" / "srt" / "home").read_text())
    assert home != Path.home()
    assert not home.exists()
    assert not list(tmp_path.rglob("__pycache__"))


def test_flags_of_plugins_are_known(tmp_path: Path) -> None:
    environment = engine.write(tmp_path)
    (tmp_path / "sglang" / "srt" / "plugins.py").write_text(PLUGINS)
    answer = probe.ask(engine.question({**GOOD, "plugged-in": "x"}, environment))
    assert [group["error"] for group in answer["groups"]] == [None, None]


def test_an_answer_is_kept_for_the_very_same_question(tmp_path: Path) -> None:
    asked, cache = engine.question(GOOD, {"A": "1"}), tmp_path / "arguments.json"
    assert probe.remembered(cache, asked) is None
    probe.remember(cache, asked, {"version": "0.5.99"})
    assert probe.remembered(cache, asked) == {"version": "0.5.99"}
    assert [path.name for path in tmp_path.iterdir()] == ["arguments.json"]
    for other in (
        engine.question({"model-path": "/n"}, {"A": "1"}),
        engine.question(GOOD, {"A": "2"}),
        engine.question(GOOD, {"A": "1"}, ("SGLANG_X",)),
        dataclasses.replace(asked, python="/elsewhere/python"),
    ):
        assert probe.remembered(cache, other) is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"question": 1}', json.dumps({"question": "x", "answer": {}})])
def test_a_damaged_cache_is_no_answer(content: str, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text(content)
    assert probe.remembered(tmp_path / "cache", engine.question(GOOD, {})) is None
