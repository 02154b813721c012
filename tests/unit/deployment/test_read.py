# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML files on the controller: read by libyaml where PyYAML has it, with the same result, and no object made."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _yaml

from tests.unit.deployment.example import ROOT

SHIPPED = [
    path for folder in ("profiles", "rules", "patch_sets") for path in (ROOT / "playbooks" / folder).glob("*.yml")
]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_is_read_is_what_the_safe_loader_reads(path: Path) -> None:
    assert _yaml.read(path) == yaml.safe_load(path.read_text("utf-8"))


def test_libyaml_is_used_where_it_is_there() -> None:
    assert ("C" in _yaml._LOADER.__name__) == yaml.__with_libyaml__


def test_no_object_is_made(tmp_path: Path) -> None:
    path = tmp_path / "bad.yml"
    path.write_text("!!python/object/apply:os.getcwd []\n")
    with pytest.raises(yaml.YAMLError):
        _yaml.read(path)
