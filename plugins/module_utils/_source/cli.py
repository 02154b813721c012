# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line of the structural edits: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from .engine import Report, run
from .errors import SourceError, SpecError
from .spec import parse_edits


def load(path: str) -> list[Any]:
    """Return the edits of a patch-set file, JSON or (with PyYAML) YAML; `-` is standard input.

    :raises SpecError: it cannot be read, or holds no edits.
    """
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8") as stream:
                text = stream.read()
    except OSError as exc:
        raise SpecError(f"cannot read {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise SpecError(f"{path} is no UTF-8 text: {exc}") from exc
    data = _decode(text, path)
    edits = data.get("edits") if isinstance(data, dict) else data
    if not isinstance(edits, list) or not edits:
        raise SpecError(f"{path} has no list `edits`")
    return edits


def _decode(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        import yaml
    except ImportError as exc:
        raise SpecError(f"{path} is no JSON, and this Python has no PyYAML to read it as YAML") from exc
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise SpecError(f"{path} is neither JSON nor YAML: {exc}") from exc


def show(report: Report, diff: bool, stream: TextIO) -> None:
    """Print a report for a person."""
    for line in report.recovered:
        stream.write(f"repaired: {line}\n")
    for edit in report.edits:
        where = f" {edit.file}:{edit.line}" if edit.file else ""
        done = " changed" if edit.changed else ""
        stream.write(f"{edit.id}: {edit.state}{done}{where}{' - ' + edit.message if edit.message else ''}\n")
    for file in report.files:
        note = f"{file.before} -> {file.after}" if file.changed else file.after
        link = f" (followed the link {file.link})" if file.link else ""
        stream.write(f"{file.path}{link}: sha256 {note}\n")
    if diff:
        for part in report.diff:
            stream.write(part["prepared"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if nothing could be written, or 2 for a wrong patch set."""
    parser = argparse.ArgumentParser(
        prog="python_source", description="Do the structural edits of a patch set in a tree of Python source."
    )
    parser.add_argument("root", help="folder that the patterns `within` start from, or one file")
    parser.add_argument("patch_set", help="patch set: YAML or JSON, - for standard input")
    parser.add_argument("--check", action="store_true", help="write nothing, say what would be done")
    parser.add_argument("--diff", action="store_true", help="show a unified diff per file")
    parser.add_argument("--state", choices=("present", "absent"), help="in place of what the patch set says")
    parser.add_argument("--only", metavar="ID", action="append", help="only this edit (may be given again)")
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
    options = parser.parse_args(arguments)
    try:
        raw = [dict(edit) if isinstance(edit, dict) else edit for edit in load(options.patch_set)]
        if options.state:
            raw = [{**edit, "state": options.state} if isinstance(edit, dict) else edit for edit in raw]
        edits = [edit for edit in parse_edits(raw) if not options.only or edit.id in options.only]
        if not edits:
            raise SpecError(f"no edit is named {' or '.join(options.only)}")
        report = run(options.root, edits, options.check)
    except SourceError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 2
    if options.json:
        sys.stdout.write(json.dumps(report.to_data(), indent=2, sort_keys=True) + "\n")
    else:
        show(report, options.diff, sys.stdout)
    if report.failed:
        sys.stderr.write(f"error: {report.failed}; nothing was written\n")
        return 1
    return 0
