# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the documentation's Markdown: its links, its code, and the names in it."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import names

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
GUIDES = sorted((DOCS / "guides").glob("*.md"))
FAILURES = sorted((DOCS / "guides" / "failure-modes").glob("*.md"))
# What a reader starts from; links are followed from every other page of the tree too.
READ = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *GUIDES, *FAILURES]
ALL = [*READ, *sorted((ROOT / "roles").glob("*/README.md")), *sorted((ROOT / "playbooks").glob("*/README.md"))]
ALL += [ROOT / folder / "README.md" for folder in ("benchmarks", "fleet", "tests/faults")]

_FENCE = re.compile(r"^ {0,3}```(\w*)\n(.*?)^ {0,3}```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code: its language, "" where none is said, and its text."""

    language: str
    text: str


def name(path: Path) -> str:
    """Name a page as one would open it."""
    return str(path.relative_to(ROOT))


def fenced(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [Block(language, body) for language, body in _FENCE.findall(text)]


def indented(text: str) -> list[str]:
    """Return the blocks that are code by four blanks, without them, in order."""
    found = re.findall(r"(?m)(?:^ {4}.*\n(?:[ \t]*\n(?= {4}))?)+", _FENCE.sub("", text) + "\n")
    return ["\n".join(line[4:] for line in block.rstrip("\n").split("\n")) for block in found]


def code(text: str) -> list[str]:
    """Return everything of a page that is set as code: blocks and spans."""
    return [block.text for block in fenced(text)] + indented(text) + _SPAN.findall(_FENCE.sub("", text))


def ships(path: Path) -> bool:
    """Tell whether a file of the repository is in the collection's tarball."""
    ignored = yaml.safe_load((ROOT / "galaxy.yml").read_text("utf-8"))["build_ignore"]
    inside = path.relative_to(ROOT)
    return not any(fnmatch.fnmatch(str(one), pattern) for one in (inside, *inside.parents) for pattern in ignored)


def links(text: str) -> list[str]:
    """Return where a page links to, code left out."""
    return _LINK.findall(_SPAN.sub("", _FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """Return the names of a page's headings, as a link has them."""
    headings = _HEADING.findall(_FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text: str) -> list[str]:
    """Return the commands of a page: lines after a `$` with what they go on with, and spans that run a playbook."""
    found: list[str] = []
    for block in fenced(text):
        if block.language == "console":
            joined = block.text.replace("\\\n", " ")
            found += [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
    spans = _SPAN.findall(_FENCE.sub("", text))
    return found + [span for span in spans if span.startswith(("ansible-playbook ", "make ", "python3 "))]


def playbooks() -> dict[str, str]:
    """Return the text of every playbook by its name, without its ending."""
    return {path.stem: path.read_text("utf-8") for path in (ROOT / "playbooks").glob("*.yml")}


def make_targets() -> set[str]:
    """Return the targets of the Makefile that have a line in its help."""
    return set(re.findall(r"(?m)^([a-z-]+):.*## ", (ROOT / "Makefile").read_text("utf-8")))


def variables() -> set[str]:
    """Return every variable that something of the collection reads, with the names of roles and of what they return."""
    found = set(names.KNOWN)
    for specs in (ROOT / "roles").glob("*/meta/argument_specs.yml"):
        entries = yaml.safe_load(specs.read_text("utf-8"))["argument_specs"].values()
        found |= {option for entry in entries for option in entry.get("options") or {}}
        found.add(specs.parents[1].name)
    files = [*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").glob("*/tasks/**/*.yml")]
    for path in files:
        found |= set(re.findall(r"\bsglang_[a-z0-9_]+\b", _code_of(path)))
    return found


def _code_of(path: Path) -> str:
    """Return a YAML file without its comments, which may speak of what there is not."""
    lines = path.read_text("utf-8").splitlines()
    return "\n".join(line.split(" #")[0] for line in lines if not line.lstrip().startswith("#"))
