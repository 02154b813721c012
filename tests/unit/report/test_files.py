# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a report goes, and under which names."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import files
from ansible_collections.llmfleet.sglang.tests.unit.report import fleet

NAME = "blackwell-qwen-deployment-20261130T120311Z"


def test_page_and_json_are_written_and_are_the_latest(tmp_path: Path) -> None:
    report = fleet.made(fleet.fleet(2))
    paths = files.write(tmp_path / "a" / "reports", report)
    assert [path.name for path in paths] == [f"{NAME}.html", f"{NAME}.json"]
    assert json.loads(paths[1].read_text("utf-8")) == report
    folder = paths[0].parent
    assert (folder / "latest.html").read_bytes() == paths[0].read_bytes()
    assert (folder / "latest.json").read_bytes() == paths[1].read_bytes()
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    later = replace(fleet.RUN, made_at="2026-11-30T12:10:00+00:00")
    files.write(folder, fleet.made({}, later))
    assert len(list(folder.iterdir())) == 6
    assert "No host took part" in (folder / "latest.html").read_text("utf-8")


def test_nothing_half_is_left_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        files.write(tmp_path, fleet.made({}))
    assert list(tmp_path.iterdir()) == []


def test_names_hold_nothing_strange() -> None:
    report = fleet.made(fleet.fleet(2))
    assert files.names({**report, "fleet": "../a b/<c>"})[0] == "a-b-c-qwen-deployment-20261130T120311Z.html"
    assert files.names({**report, "instances": ["a", "b"]})[0].startswith("blackwell-2-instances-")
    assert files.names({**report, "instances": [], "fleet": ".."})[0].startswith("fleet-0-instances-")


@pytest.mark.parametrize(
    ("sources", "name"),
    [
        (["/x/inventories/blackwell"], "blackwell"),
        (["/x/inventories/blackwell/hosts.yml"], "blackwell"),
        (["/x/prod.ini"], "prod"),
        (["h1,h2,"], "fleet"),
        (["h1,", "/x/lab"], "lab"),
        ([], "fleet"),
    ],
)
def test_a_fleet_is_called_as_its_inventory(sources: list[str], name: str) -> None:
    assert files.fleet_name(sources) == name


def test_a_relative_folder_is_meant_from_where_one_stands(tmp_path: Path) -> None:
    assert files.folder("reports", tmp_path) == tmp_path / "reports"
    assert files.folder("/srv/reports", tmp_path) == Path("/srv/reports")
    assert files.folder("~/reports", tmp_path) == Path.home() / "reports"


def test_what_is_in_the_way_is_said_before_anything_is_written(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    inventory.mkdir()
    assert "read the reports as inventories" in files.hindrance(inventory / "a" / "reports", [str(inventory)])
    assert files.hindrance(tmp_path / "reports", [str(inventory), "h1,", str(tmp_path / "hosts.yml")]) == ""
    (tmp_path / "file").write_text("")
    assert files.hindrance(tmp_path / "file" / "x", []) == f"{tmp_path / 'file'} is no folder"


def test_a_folder_that_cannot_be_written_to() -> None:
    """Its mode would tell root otherwise."""
    assert files.hindrance(Path("/proc/nope"), []).startswith("/proc cannot be written to (")


def test_looking_leaves_nothing(tmp_path: Path) -> None:
    assert files.hindrance(tmp_path / "reports", []) == files.hindrance(tmp_path, []) == ""
    assert list(tmp_path.iterdir()) == []
