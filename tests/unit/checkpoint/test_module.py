# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module's thin part: arguments in, result out, and that the documentation tells of both."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.doc_fragments import fanout
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import arguments as thin
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.ensure import Outcome
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.errors import CheckpointError
from ansible_collections.llmfleet.sglang.plugins.modules import checkpoint

REVISION = "a" * 40


def arguments(**changes: t.Any) -> dict[str, t.Any]:
    """The module's arguments with their defaults, as Ansible fills them in."""
    given = {name: option.get("default") for name, option in thin.ARGUMENTS.items()}
    given.update(repository="org/model", revision=REVISION, path="/models/qwen", hf="/opt/hf")
    return {**given, **changes}


def test_the_documentation_and_the_arguments_agree() -> None:
    documented = yaml.safe_load(checkpoint.DOCUMENTATION)["options"]
    documented |= yaml.safe_load(fanout.ModuleDocFragment.DOCUMENTATION)["options"]
    assert set(documented) == set(thin.ARGUMENTS)
    for name, option in thin.ARGUMENTS.items():
        for key in ("type", "default", "choices", "required"):
            assert documented[name].get(key) == option.get(key), (name, key)
        for inner, spec in option.get("options", {}).items():
            for key in ("type", "default", "elements", "required"):
                assert documented[name]["suboptions"][inner].get(key) == spec.get(key), (name, inner, key)
        assert set(documented[name].get("suboptions", {})) == set(option.get("options", {}))


def test_every_returned_value_is_documented() -> None:
    request = thin.build_request(arguments(), check=False)
    documented = yaml.safe_load(checkpoint.RETURN)
    assert set(thin.report(request, Outcome())) - {"changed", "diff"} <= set(documented)


def test_the_store_lies_beside_the_link() -> None:
    request = thin.build_request(arguments(path="/models/qwen/"), check=False)
    assert request.place.path == "/models/qwen"
    assert request.place.target == f"/models/.checkpoints/org--model/{REVISION}"


@pytest.mark.parametrize("option", ["path", "store"])
def test_a_relative_path_is_refused(option: str) -> None:
    with pytest.raises(CheckpointError, match=f"{option} has to be an absolute path"):
        thin.build_request(arguments(**{option: "models/qwen"}), check=False)


def test_a_token_file_is_read_for_the_list_and_named_for_the_downloader(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("secret\n")
    request = thin.build_request(arguments(token_file=str(path)), check=False)
    assert thin.read_token(arguments(token_file=str(path))) == "secret"
    assert (request.hf.token, request.hf.token_file) == (None, str(path))


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"The token file .*/token cannot be read"):
        thin.build_request(arguments(token_file=str(tmp_path / "token")), check=False)


def test_an_empty_token_is_none() -> None:
    assert thin.read_token(arguments(token="")) is None
    assert thin.build_request(arguments(token=""), check=False).hf.environment("/", xet=True).get("HF_TOKEN") is None
