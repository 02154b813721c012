# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped causes against log samples, and how causes are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis.causes import diagnose, fatal, read

HERE = Path(__file__).parent
SHIPPED = read(yaml.safe_load((HERE.parents[2] / "roles/sglang_verify/files/causes.yml").read_text()))
SAMPLES: list[dict[str, Any]] = yaml.safe_load((HERE / "samples.yml").read_text())
HEALTHY = sorted((HERE / "healthy").glob("*.log"))
NOISE = HEALTHY[0].read_text().splitlines()
ROW = {"id": "one", "patterns": ["boom (?P<what>\\w+)"], "message": "{what} went", "advice": "Wait.", "source": "x"}


@pytest.mark.parametrize("sample", SAMPLES, ids=[f"{n}-{row['cause'] or 'none'}" for n, row in enumerate(SAMPLES)])
def test_each_sample_is_explained_by_its_cause(sample: dict[str, Any]) -> None:
    found = diagnose(SHIPPED, sample["log"].splitlines())
    assert (found.id if found else "") == sample["cause"]
    if found:
        assert sample["says"] in found.describe()
        assert len(found.describe()) < 900 and "{" not in found.message + found.advice


@pytest.mark.parametrize("sample", SAMPLES, ids=[f"{n}-{row['cause'] or 'none'}" for n, row in enumerate(SAMPLES)])
def test_a_sample_is_found_in_the_midst_of_a_long_log(sample: dict[str, Any]) -> None:
    found = diagnose(SHIPPED, [*NOISE, *sample["log"].splitlines(), *NOISE[-5:]])
    assert (found.id if found else "") == sample["cause"]


def test_every_shipped_cause_has_a_sample() -> None:
    assert {cause.id for cause in SHIPPED} == {row["cause"] for row in SAMPLES} - {""}


@pytest.mark.parametrize("log", HEALTHY, ids=[path.stem for path in HEALTHY])
def test_a_healthy_engine_s_log_shows_no_cause(log: Path) -> None:
    """Recorded on the demo fleet: SGLang 0.5.23 from its start to its first answers."""
    lines = log.read_text().splitlines()
    assert len(lines) > 50 and any("fired up" in line for line in lines)
    assert diagnose(SHIPPED, lines) is None


def test_fatal_lines_are_fatal_only_unless_accepted() -> None:
    lines = [*NOISE, "Parameter model.x not found in params_dict"]
    found = fatal(SHIPPED, lines)
    assert found and found.id == "weights_not_loaded"
    assert fatal(SHIPPED, lines, ["weights_not_loaded"]) is None
    assert fatal(SHIPPED, ["CUDA out of memory"]) is None


def test_the_order_is_the_priority() -> None:
    lines = ["boom first", "bang"]
    other = {**ROW, "id": "two", "patterns": ["bang"], "message": "two"}
    first, second = diagnose(read([ROW, other]), lines), diagnose(read([other, ROW]), lines)
    assert first and second and (first.id, second.id) == ("one", "two")
    assert first.message == "first went" and first.evidence == "boom first"


def test_along_with_has_to_be_found_too() -> None:
    causes = read([{**ROW, "along_with": ["context"]}])
    assert diagnose(causes, ["boom x"]) is None
    assert diagnose(causes, ["some context", "boom x"]) is not None


def test_a_message_ends_with_the_page_that_says_more() -> None:
    found = diagnose(read([{**ROW, "link": "https://wiki.example/boom"}]), ["boom x"])
    assert found and found.describe() == "x went Wait. More: https://wiki.example/boom [one; the log says: boom x]"
    assert found.as_dict()["link"] == "https://wiki.example/boom"
    without = diagnose(read([ROW]), ["boom x"])
    assert without and "More" not in without.describe()


def test_evidence_is_cut_around_what_was_found() -> None:
    found = diagnose(read([ROW]), ["x" * 5000 + " boom here " + "y" * 5000])
    assert found and "boom here" in found.evidence and len(found.evidence) <= 300


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({**ROW, "advice": ""}, r"cause 1 \(one\) lacks advice"),
        ({**ROW, "severity": 3}, "has unknown keys: severity"),
        ({**ROW, "patterns": "boom"}, "patterns are a list"),
        ({**ROW, "patterns": ["("]}, "no regular expression"),
        ({**ROW, "patterns": ["boom"]}, "does not give what the message needs: 'what'"),
        ({**ROW, "id": None}, "lacks id"),
    ],
)
def test_a_wrong_row_is_named(row: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read([row])


def test_an_id_stands_for_one_cause() -> None:
    with pytest.raises(ValueError, match="there is another one"):
        read([ROW, ROW])
