# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Do a list of edits in a source tree: PRIVATE to the collection, may change at any time."""

from __future__ import annotations

import ast
import contextlib
import difflib
import glob
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Optional, cast

from .commit import Change, check_writable, commit, locked, recover, recovered_record
from .dicts import DictTarget
from .errors import SourceError, SplicesLost
from .locate import Found, Locator, Target
from .prove import prove, prove_compiles
from .record import OwnEdit, OwnFile, Record, digest, original
from .spec import Edit, expression
from .text import SourceText, apply_splices, map_range
from .tree import Tree

# what was found for an edit, and the file and edit of ours that it continues
Item = tuple[Found, Optional[tuple[str, OwnEdit]]]
# an edit of a file, as asked for now and as recorded
Step = tuple[Optional[Edit], Optional[OwnEdit]]


@dataclass
class EditResult:
    """What was found for an edit, and whether something was (or would be) done about it."""

    id: str
    state: str
    changed: bool = False
    file: str | None = None
    line: int | None = None
    before: str = ""
    after: str = ""
    reason: str = ""
    message: str = ""
    candidates: list[str] = field(default_factory=list)


@dataclass
class FileResult:
    """A file that an edit concerns: SHA-256 before and after this run, and before all our edits."""

    path: str
    before: str
    after: str
    original: str
    changed: bool
    link: str | None = None


@dataclass
class Report:
    """The result of a run. `failed` is empty or says why nothing was written."""

    changed: bool = False
    failed: str = ""
    edits: list[EditResult] = field(default_factory=list)
    files: list[FileResult] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    recovered: list[str] = field(default_factory=list)

    def to_data(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return asdict(self)


def run(root: str, edits: Sequence[Edit], check: bool = False) -> Report:
    """Do the edits: all of them or, when one fails, none.

    :param root: a folder of Python source, or one file.
    :param edits: from `spec.parse_edits`.
    :param check: find out and report, write nothing.
    :returns: the report; `failed` is set where nothing could be written.
    """
    report = Report()
    try:
        tree = Tree(root)
        with contextlib.nullcontext() if check else locked(tree):
            _Run(tree, edits, check, report).go()
    except SourceError as exc:
        report.failed = report.failed or str(exc)
    except RecursionError:
        report.failed = report.failed or f"the source below {root} is nested too deeply to be edited"
    except OSError as exc:
        report.failed = report.failed or f"{exc.strerror or exc}: {exc.filename or root}"
    if report.failed:
        report.changed = bool(report.recovered)
        report.diff = []
        for edit in report.edits:
            edit.changed, edit.after = False, edit.before
        for file in report.files:
            file.after, file.changed = file.before, False
    return report


class _Run:
    def __init__(self, tree: Tree, edits: Sequence[Edit], check: bool, report: Report) -> None:
        self.tree, self.edits, self.check, self.report = tree, edits, check, report
        pending = recovered_record(tree) if check else None
        self.report.recovered = recover(tree, check)
        self.record = pending or Record.load(tree)
        self.bases: dict[str, SourceText] = {}
        self.strange: list[str] = []
        for name, own in list(self.record.files.items()):
            self._own(name, own)
        self.locator = Locator(tree, self.base)

    def _own(self, name: str, own: OwnFile) -> None:
        """Take a file's record as valid only if it fits the file."""
        try:
            current = self.tree.read(name)
        except SourceError:
            current = None
        base = original(current, own) if current else None
        if base is None:
            del self.record.files[name]
            if current is not None and digest(current.raw) != own.before:
                self.strange.append(name)
        else:
            self.bases[name] = base

    def base(self, name: str) -> SourceText:
        """Return a file as it is without our own edits."""
        return self.bases.get(name) or self.tree.read(name)

    def go(self) -> None:
        found = [self._find(edit) for edit in self.edits]
        self.report.edits = [self._result(edit, item) for edit, item in zip(self.edits, found)]
        self._same_place_twice(found)
        failures = [self._failure(edit, item) for edit, item in zip(self.edits, found)]
        if any(failures):
            self.report.failed = "; ".join(filter(None, failures))
            self._files({})
            return
        touched: dict[str, SourceText] = {}
        record = Record(dict(self.record.files))
        for name in self._files_to_build(found):
            try:
                self._build(name, found, touched, record)
            except SourceError as exc:
                self.report.failed = str(exc)
                self._files({})
                return
        self._finish(touched, record)

    def _find(self, edit: Edit) -> Item:
        by_id = self._recorded(lambda own, _name: own.id == edit.id)
        if edit.state == "absent" and by_id:
            return self._ours(edit, *by_id), by_id
        found = self.locator.locate(edit)
        target = found.target
        slot = slot_of(target, edit) if target else ""
        by_slot = self._recorded(lambda own, name: own.slot == slot and name == found.file) if target else None
        mine = by_slot or by_id
        if mine and not found.fatal and (by_slot or found.state in ("absent", "upstream")):
            found.state = "present" if found.state == "absent" or by_slot else found.state
        return found, mine

    def _ours(self, edit: Edit, name: str, mine: OwnEdit) -> Found:
        """Return where an edit of ours stands; to take it back, its place need not be found any more."""
        found = self.locator.locate(edit)
        if found.target and found.file == name and slot_of(found.target, edit) == mine.slot:
            return Found("present", target=found.target, file=name, line=found.line)
        return Found("present", file=name)

    def _recorded(self, wanted: Any) -> tuple[str, OwnEdit] | None:
        for name, own in self.record.files.items():
            for edit in own.edits:
                if wanted(edit, name):
                    return name, edit
        return None

    def _same_place_twice(self, found: Sequence[Item]) -> None:
        places: dict[tuple[str, str], str] = {}
        for edit, (item, _mine) in zip(self.edits, found):
            if item.target and item.file:
                place = (item.file, slot_of(item.target, edit))
                if place in places:
                    raise SourceError(
                        f"the edits {places[place]} and {edit.id} want the same place", item.file, item.line
                    )
                places[place] = edit.id

    def _failure(self, edit: Edit, item: Item) -> str:
        found = item[0]
        if found.fatal:
            return f"{edit.id}: {found.message}"
        if found.state in ("absent", "present", "upstream") or edit.optional:
            return ""
        if found.state == "conflict" and edit.on_conflict == "keep":
            return ""
        return f"{edit.id}: {found.state}: {found.message}"

    def _result(self, edit: Edit, item: Item) -> EditResult:
        found, mine = item
        result = EditResult(edit.id, found.state, file=found.file, line=found.line, reason=edit.reason)
        result.message, result.candidates = found.message, found.candidates
        if found.target and found.file:
            start, end = range_of(found.target)
            current = self.tree.read(found.file)
            for own in self.record.files[found.file].edits if found.file in self.bases else []:
                start, end = map_range(start, end, own.splices)
            result.line = current.line_of(start)
            result.before = result.after = current.text[start:end]
        elif mine and mine[1].splices:
            place = mine[1].splices[0].start
            result.file, result.line = mine[0], self.base(mine[0]).line_of(place)
        if found.file in self.strange and found.state in ("upstream", "conflict", "absent"):
            note = "the file has changed since we last wrote it, so what stands there counts as not ours"
            result.message = f"{result.message}; {note}" if result.message else note
        return result

    def _files_to_build(self, found: Sequence[Item]) -> list[str]:
        names: list[str] = []
        for _edit, (item, mine) in zip(self.edits, found):
            names += [item.file] if item.file and item.target else []
            names += [mine[0]] if mine else []
        return list(dict.fromkeys(names))

    def _steps(self, name: str, found: Sequence[Item]) -> list[Step]:
        """Return the edits that the file is to have, in order: (as asked for or None, as recorded or None)."""
        own = self.record.files[name].edits if name in self.record.files else []
        steps: list[Step] = [(None, edit) for edit in own]
        for edit, (item, mine) in zip(self.edits, found):
            at = next((at for at, step in enumerate(steps) if mine and mine[0] == name and step[1] is mine[1]), None)
            wanted = edit.state == "present" and item.file == name and item.state in ("absent", "present")
            if at is not None and wanted:
                steps[at] = (edit, steps[at][1])
            elif at is not None:
                steps[at] = (None, None)
            elif wanted:
                steps.append((edit, None))
        return [step for step in steps if step != (None, None)]

    def _build(
        self,
        name: str,
        found: Sequence[Item],
        touched: dict[str, SourceText],
        record: Record,
    ) -> None:
        steps = self._steps(name, found)
        own = self.record.files.get(name)
        same = own is not None and len(steps) == len(own.edits)
        slots = {edit.id: slot_of(item.target, edit) for edit, (item, _mine) in zip(self.edits, found) if item.target}
        if same and all(edit is None or (mine and _unchanged(edit, slots.get(edit.id), mine)) for edit, mine in steps):
            return
        if own is None and not steps:
            return
        base = source = self.base(name)
        edits: list[OwnEdit] = []
        for edit, mine in steps:
            if edit is None and mine and not _moved(own, edits, mine):
                source, entry = source.with_text(apply_splices(source.text, mine.splices)), mine
            else:
                source, entry = self._apply(source, edit or Edit(cast(OwnEdit, mine).id, cast(OwnEdit, mine).what))
            edits.append(entry)
        prove_compiles(source)
        touched[name] = source
        record.files.pop(name, None)
        if edits:
            record.files[name] = OwnFile(digest(base.raw), digest(source.raw), edits)
        self._show(name, found, source, edits)

    def _apply(self, source: SourceText, edit: Edit) -> tuple[SourceText, OwnEdit]:
        # the place was chosen before; from here on it is only this file's
        here = replace(edit, what=replace(edit.what, within=(glob.escape(source.name),)))
        locator = Locator(self.tree, lambda name: source if name == source.name else self.base(name))
        found = locator.locate(here)
        if found.fatal or found.target is None or found.file != source.name:
            raise SourceError(f"{edit.id}: {found.message or 'lost its place'}", source.name)
        if found.state != "absent":
            raise SourceError(f"{edit.id}: another edit of this file stands in its place", source.name, found.line)
        try:
            splices, expected = locator.plan(found.target, here)
            after = source.with_text(apply_splices(source.text, splices))
        except (LookupError, ValueError, SplicesLost) as exc:
            raise SourceError(f"{edit.id}: the text there was not understood ({exc})", source.name, found.line) from exc
        prove(after, expected, found.line or 1)
        return after, OwnEdit(edit.id, slot_of(found.target, edit), edit.what, list(splices))

    def _show(
        self,
        name: str,
        found: Sequence[Item],
        source: SourceText,
        edits: Sequence[OwnEdit],
    ) -> None:
        """Fill in what each edit of this file looks like afterwards."""
        for edit, (item, mine), result in zip(self.edits, found, self.report.edits):
            if item.file != name and not (mine and mine[0] == name):
                continue
            now = next((entry for entry in edits if entry.id == edit.id), None)
            result.changed = result.changed or not _alike(now, mine[1] if mine else None)
            if item.target:
                start, end = range_of(item.target)
                for entry in edits:
                    start, end = map_range(start, end, entry.splices)
                result.after = source.text[start:end]

    def _finish(self, touched: dict[str, SourceText], record: Record) -> None:
        changes: dict[str, Change] = {}
        for name, source in touched.items():
            before = self.tree.read(name).raw
            if before != source.raw:
                check_writable(self.tree, name)
                changes[name] = Change(before, source.raw)
                self.report.diff.append(_diff(self.tree.read(name), source))
        renewed = record.to_data() != self.record.to_data()
        if (changes or renewed) and not self.check:
            commit(self.tree, changes, record)
        self.report.changed = bool(changes) or renewed or bool(self.report.recovered)
        self.record = record
        self._files({name: change.after for name, change in changes.items()})

    def _files(self, after: dict[str, bytes]) -> None:
        names = dict.fromkeys([edit.file for edit in self.report.edits if edit.file] + list(after))
        for name in names:
            try:
                before = digest(self.tree.read(name).raw)
            except SourceError:
                continue
            now = digest(after[name]) if name in after else before
            own = self.record.files.get(name)
            link = self.tree.links.get(name)
            self.report.files.append(FileResult(name, before, now, own.before if own else now, now != before, link))


def _unchanged(edit: Edit, slot: str | None, mine: OwnEdit) -> bool:
    """Say whether an edit of ours is as it is asked for now."""
    return slot == mine.slot and edit.what.wanted() == mine.what.wanted()


def _alike(one: OwnEdit | None, two: OwnEdit | None) -> bool:
    """Say whether two edits (or their absence) come to the same text in the same place."""
    if one is None or two is None:
        return one is two
    texts = [[splice.inserted for splice in edit.splices] for edit in (one, two)]
    return one.slot == two.slot and texts[0] == texts[1]


def _moved(own: OwnFile | None, edits: Sequence[OwnEdit], mine: OwnEdit) -> bool:
    """Say whether what stands before an edit of ours is not what stood there when it was made."""
    if own is None:
        return True
    return own.edits[: own.edits.index(mine)] != list(edits)


def slot_of(target: Target, edit: Edit) -> str:
    """Return what tells the place of an edit from all others of its file."""
    if isinstance(target, DictTarget):
        key = ast.unparse(expression(edit.what.key, "key"))  # type: ignore[union-attr]
        return f"{target.slot}[{key}]"
    return f"{target.slot} or {edit.what.add}"  # type: ignore[union-attr]


def range_of(target: Target) -> tuple[int, int]:
    """Return where the target's lines stand."""
    source = target.source
    return source.line_start(source.start(target.node)), source.line_end(source.end(target.node))


def _diff(before: SourceText, after: SourceText) -> dict[str, str]:
    """Return a unified diff. Its lines end at line feeds and nothing else, as those of patch(1) do."""
    sides = [("\ufeff" if side.bom else "") + side.text for side in (before, after)]
    one, two = (re.findall(r"[^\n]*\n|[^\n]+", side) for side in sides)
    lines = difflib.unified_diff(one, two, f"{before.name} (before)", f"{before.name} (after)")
    text = "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
    return {"prepared": text}
