# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every cause of a failed start has a page, every page a cause, and they say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._diagnosis.causes import Diagnosis, diagnose, read

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "guides" / "failure-modes"
SHIPPED = read(yaml.safe_load((ROOT / "roles/sglang_verify/files/causes.yml").read_text("utf-8")))
PAGES = {path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.md") if path.stem != "README"}
SECTIONS = ["What you see", "Why", "What to do", "Source"]


def flat(text: str) -> str:
    """Return a text as one line, without the marks of a quotation."""
    return " ".join(re.sub(r"(?m)^> ?", "", text).split())


def sections(page: str) -> dict[str, str]:
    """Return the parts of a page by their headings."""
    parts = re.split(r"(?m)^## (.+)$", page)
    return dict(zip(parts[1::2], parts[2::2]))


def seen(page: str) -> Diagnosis | None:
    """Return what is made of the log that a page shows."""
    lines = [line[4:] for line in sections(page)["What you see"].splitlines() if line.startswith("    ")]
    return diagnose(SHIPPED, lines)


def test_every_cause_has_a_page_and_every_page_a_cause() -> None:
    assert set(PAGES) == {cause.id for cause in SHIPPED}


@pytest.mark.parametrize("cause", SHIPPED, ids=lambda cause: cause.id)
def test_a_cause_s_message_leads_to_its_page(cause: object) -> None:
    """In the repository that galaxy.yml names; the same path is in an installed collection."""
    repository = yaml.safe_load((ROOT / "galaxy.yml").read_text("utf-8"))["repository"]
    assert isinstance(cause, type(SHIPPED[0]))
    path = (FOLDER / f"{cause.id}.md").relative_to(ROOT)
    assert cause.link == f"{repository}/blob/main/{path}"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_shows_a_log_that_its_cause_explains_in_these_words(name: str) -> None:
    page = PAGES[name]
    assert page.startswith(f"# {name}\n")
    assert list(sections(page)) == SECTIONS
    found = seen(page)
    assert found and found.id == name
    assert flat(found.message) in flat(sections(page)["What you see"])


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_says_why_and_what_to_do_and_where_that_is_from(name: str) -> None:
    parts = sections(PAGES[name])
    assert len(flat(parts["Why"])) > 80
    assert parts["What to do"].lstrip().startswith("1. ")
    source = flat(parts["Source"])
    [cause] = [one for one in SHIPPED if one.id == name]
    # Numbers of issues and versions are the ones that the cause has; what is no number may be said in other words.
    wanted = re.sub(r"[;,]? ?field report .*$", "", cause.source)
    assert not set(re.findall(r"\d+", wanted)) - set(re.findall(r"\d+", source))
    assert "field report" not in source


def test_the_index_has_every_cause_and_its_example_is_a_real_message() -> None:
    index = (FOLDER / "README.md").read_text("utf-8")
    assert re.findall(r"(?m)^\| \[(\w+)\]\(\1\.md\) \|", index) == [cause.id for cause in SHIPPED]
    found = seen(PAGES["port_in_use"])
    example = flat("\n".join(line for line in index.splitlines() if line.startswith("    ")))
    assert found and example == flat(found.describe())
