# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A key or token that no header can hold: refused by name, and printed by no module that would send it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import bench, measure
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import bearer
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.asking import Server
from ansible_collections.llmfleet.sglang.plugins.modules import checkpoint, completion, pin, smg_worker

PLUGINS = Path(__file__).parents[3] / "plugins"
SECRET = "s3cretX"
NEWLINE = "ends in a newline, which does not belong to it: in YAML use `|-` for `|`, in a shell `printf %s` for `echo`"
UNSENT = "holds a blank, a line break or a character that is not ASCII, and no client can send that"
# Nothing listens there: whoever would ask says so.
NOWHERE = "http://127.0.0.1:9"


def test_a_sound_key_is_sent_as_it_is() -> None:
    assert bearer.bearer("sk-!~9", "the key") == "Bearer sk-!~9"
    assert bearer.hindrance("") == bearer.ended("") == bearer.ended("a\nb") == ""


@pytest.mark.parametrize(
    ("end", "says"),
    [
        *((end, NEWLINE) for end in ("\n", "\r\n", "\n\n")),
        *((end, UNSENT) for end in (" ", "\nb", " b\n", "\xe9", "\x7f", "\t", "\0")),
    ],
)
def test_what_no_header_holds_is_refused_by_name_and_not_quoted(end: str, says: str) -> None:
    with pytest.raises(bearer.Unsendable) as told:
        bearer.bearer(SECRET + end, "sglang_api_key")
    assert str(told.value) == f"sglang_api_key {says}."


def test_an_engine_is_not_asked_with_such_a_key() -> None:
    with pytest.raises(bearer.Unsendable, match=r"^sglang_api_key ends in a newline"):
        Server(NOWHERE, f"{SECRET}\n")
    with pytest.raises(ValueError, match=r"^sglang_api_key ends in a newline"):
        measure.ask_info(NOWHERE, f"{SECRET}\n")


def test_a_benchmarks_client_is_not_handed_such_a_key() -> None:
    """It would quote the header that it cannot send, and what it printed last is told."""
    target = bench.Target("/nowhere/python", "127.0.0.1", 9, "/nowhere/model", {}, api_key=f"{SECRET}\n")
    with pytest.raises(bearer.Unsendable, match=r"^sglang_api_key ends in a newline"):
        bench.environment(target, "/nowhere")


GIVEN: list[tuple[ModuleType, dict[str, Any], str]] = [
    (completion, {"host": "127.0.0.1", "port": 9, "timeout": 1}, "api_key"),
    (
        pin,
        {
            "dest": "/nowhere/pins.yml",
            "repository": NOWHERE,
            "endpoint": NOWHERE,
            "profile": "p",
            "checkpoint": "org/model",
            "what": ["checkpoint"],
        },
        "token",
    ),
    (
        smg_worker,
        {"url": NOWHERE, "worker": NOWHERE, "state": "drained", "record": "/nowhere/smg.json", "timeout": 1},
        "api_key",
    ),
    (
        checkpoint,
        {
            "repository": "org/model",
            "revision": "a" * 40,
            "path": "/nowhere/model",
            "hf": "/nowhere/hf",
            "endpoint": NOWHERE,
            "io_class": "none",
        },
        "token",
    ),
]
NAMED = {"completion": "sglang_api_key", "pin": "sglang_hub_token", "smg_worker": "sglang_smg_api_key"}


@pytest.mark.parametrize("end", ["\n", "\nmore", "\xe9"])
@pytest.mark.parametrize(("module", "given", "option"), GIVEN, ids=[one[0].__name__.split(".")[-1] for one in GIVEN])
def test_a_module_fails_in_a_sentence_without_the_secret(
    module: ModuleType, given: dict[str, Any], option: str, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with patch_module_args({**given, option: SECRET + end}), pytest.raises(SystemExit):
        module.main()
    told = capsys.readouterr()
    assert SECRET not in told.out + told.err
    answer = json.loads(told.out)
    assert answer["failed"] is True
    assert (NEWLINE if end == "\n" else UNSENT) in answer["msg"]
    assert NAMED.get(module.__name__.split(".")[-1], "sglang_hub_token") in answer["msg"]
    assert not answer["msg"].endswith("..")


@pytest.mark.parametrize("path", sorted(PLUGINS.rglob("*.py")), ids=lambda path: str(path.relative_to(PLUGINS)))
def test_no_other_code_builds_the_header(path: Path) -> None:
    texts = [
        node.value
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    built = [text for text in texts if text == "Authorization" or text.startswith("Bearer ")]
    assert bool(built) == (path.name == "bearer.py")
