# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every place of a source tree that tests for a compute capability: PRIVATE, may change at any time.

What counts as a test, and what it says of a chip, is read from names and literals, so it is a heuristic: a
predicate (`is_sm100_supported`, `get_platform().is_sm90`, `is_blackwell`), a comparison of something named like
a capability with a literal, a membership in literals, or a dict whose keys are capabilities.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .errors import SourceError
from .names import FUNCTIONS
from .text import SourceText
from .tree import Tree

NEEDLE = re.compile(rb"sm_?\d{2}|hopper|blackwell|capability|device_sm|sm_major|cc_major", re.IGNORECASE)
PREDICATE = re.compile(r"^_*(?:is|has|use)?_*(?=.*(?:sm_?\d{2,3}|hopper|blackwell))\w+$", re.IGNORECASE)
SM_WORD = re.compile(r"sm_?(\d{2,3})", re.IGNORECASE)
MEASURE = re.compile(
    r"capability|capabilities|(?:^|_)(?:major|sm|cc|device_sm|sm_version|sm_major|cc_major|sm_arch|compute_cap|cuda_arch)$",
    re.IGNORECASE,
)
FUSION = re.compile(r"all_?reduce_fusion|ar_fusion|comm_fusion|fused_?allreduce", re.IGNORECASE)
FAMILIES = {"hopper": (9,), "blackwell": (10, 11, 12)}
MAJORS = frozenset(range(5, 20))
NUMBERS = frozenset({70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 107, 110, 120, 121})
OPERATORS = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.GtE: "at_least",
    ast.Gt: "above",
    ast.Lt: "below",
    ast.LtE: "at_most",
    ast.In: "member",
    ast.NotIn: "not_member",
}
GROUPS = (
    ("arguments", re.compile(r"arg_groups/|server_args|environ|configs?/")),
    ("communication", re.compile(r"all_?reduce|device_communicators|symm_mem|nccl|comm_fusion|ar_fusion|a2a")),
    ("kv_cache", re.compile(r"kv_?cache|mem_cache|memory_pool|kvcache")),
    ("moe", re.compile(r"moe|expert")),
    ("attention", re.compile(r"attention|attn|mla|dsa|mamba|gdn|kda|flashmla|nsa|indexer")),
    ("gemm", re.compile(r"gemm|quantization|fp8|fp4|mxfp|bf16|linear")),
)


@dataclass
class Site:
    """One test. `falls` says whether the chip is on the true side: in, out or unknown."""

    file: str
    line: int
    function: str
    expression: str
    kind: str
    capabilities: list[str]
    falls: str
    treats: bool
    group: str
    fusion: bool


@dataclass
class Chip:
    """A compute capability."""

    major: int
    minor: int

    @property
    def number(self) -> int:
        """Return it as one number, 120 for 12.0."""
        return self.major * 10 + self.minor


def chip(capability: str) -> Chip:
    """Return the chip of a capability such as 12.0 or 12.

    :raises SourceError: it is none.
    """
    match = re.fullmatch(r"(\d{1,2})(?:\.(\d))?", capability.strip())
    if not match:
        raise SourceError(f"{capability!r} is no compute capability, such as 12.0")
    return Chip(int(match.group(1)), int(match.group(2) or 0))


def audit(root: str, within: Sequence[str], capability: str, every: bool = False) -> list[Site]:
    """Return the tests in a tree that do not treat a capability, or all of them.

    :param root: folder that the patterns `within` start from, or a file.
    :param capability: the chip's, such as 12.0.
    :raises SourceError: a file that may hold a test does not parse; all such files are named.
    """
    tree, wanted, sites, broken = Tree(root), chip(capability), [], []
    for name in tree.files(within):
        raw = tree.raw(name)
        if not NEEDLE.search(raw):
            continue
        try:
            sites += _Reader(SourceText(name, raw), wanted).sites()
        except SourceError as exc:
            broken.append(str(exc))
    if broken:
        wants = tree.requires_python()
        hint = f" (the tree asks for Python {wants})" if wants else ""
        raise SourceError(f"run this with a Python that parses the source{hint}: " + "; ".join(broken))
    return [site for site in sites if every or not site.treats]


def compare(
    before: Sequence[dict[str, Any]], after: Sequence[Site]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (tests that appeared, tests that went); where only the line differs, a test is the same one."""
    old, new = list(before), [asdict(site) for site in after]

    def identity(site: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(site[name] for name in ("file", "function", "expression", "kind"))

    def without(sites: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
        left = [identity(site) for site in others]
        kept = []
        for site in sites:
            if identity(site) in left:
                left.remove(identity(site))
            else:
                kept.append(site)
        return kept

    return without(new, old), without(old, new)


@dataclass
class _Atom:
    kind: str
    capabilities: list[str]
    true: bool | None


class _Reader:
    """Finds the tests of one file."""

    def __init__(self, source: SourceText, wanted: Chip) -> None:
        self.source, self.chip = source, wanted
        self.majors: set[str] = set()

    def sites(self) -> list[Site]:
        """Return the tests in text order."""
        self.majors = self._names_of_majors()
        return sorted(self._walk(self.source.tree, "", []), key=lambda site: site.line)

    def _names_of_majors(self) -> set[str]:
        """Return the plain names that a capability is taken apart into."""
        found = set()
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Assign) and re.search(r"capability|device_sm", ast.unparse(node.value)):
                for target in node.targets:
                    found |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
        return found

    def _walk(self, node: ast.AST, function: str, chain: list[ast.expr]) -> Iterator[Site]:
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or _is_definition(child):
                    continue
                inner, links = function, chain
                if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
                    inner, links = f"{function}.{child.name}".lstrip("."), []
                elif isinstance(child, ast.If):
                    # an elif belongs to the chain of its if
                    links = [*(chain if field == "orelse" and isinstance(node, ast.If) else []), *_tests(child)]
                elif isinstance(child, ast.stmt):
                    links = []
                if isinstance(child, ast.expr):
                    yield from self._expression(child, inner, links)
                else:
                    yield from self._walk(child, inner, links)

    def _expression(self, node: ast.expr, function: str, chain: list[ast.expr]) -> Iterator[Site]:
        atoms = list(self._atoms(node))
        if not atoms:
            yield from self._walk(node, function, chain)
            return
        for atom_node in self._others(node):
            yield from self._walk(atom_node, function, chain)
        capabilities = sorted({item for atom in atoms for item in atom.capabilities}, key=lambda text: float(text))
        if all(float(item) < 9 for item in capabilities):
            return
        kinds = sorted({atom.kind for atom in atoms})
        value = self._value(node)
        treats = any(self._treats(test) for test in [node, *chain])
        text = ast.unparse(node)
        context = f"{self.source.name} {function} {text}"
        yield Site(
            file=self.source.name,
            line=node.lineno,
            function=function,
            expression=text if len(text) <= 200 else text[:199] + "…",
            kind="+".join(kinds),
            capabilities=capabilities,
            falls="unknown" if value is None else "in" if value else "out",
            treats=treats,
            group=next((name for name, words in GROUPS if words.search(context.lower())), "other"),
            fusion=bool(FUSION.search(context)),
        )

    def _others(self, node: ast.expr) -> Iterator[ast.expr]:
        """Yield the terms of a test that are no capability tests, which may hold some inside."""
        if self._atom(node):
            return
        if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            for part in node.values if isinstance(node, ast.BoolOp) else [node.operand]:
                yield from self._others(part)
        else:
            yield node

    def _atoms(self, node: ast.expr) -> Iterator[_Atom]:
        """Yield the capability tests of a boolean expression."""
        atom = self._atom(node)
        if atom:
            yield atom
        elif isinstance(node, ast.BoolOp):
            for part in node.values:
                yield from self._atoms(part)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self._atoms(node.operand)

    def _value(self, node: ast.expr) -> bool | None:
        """Return what the capability tests of an expression come to, whatever its other terms are."""
        atom = self._atom(node)
        if atom:
            return atom.true
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self._value(node.operand)
            return None if value is None else not value
        if isinstance(node, ast.BoolOp):
            values = [value for value in map(self._value, node.values) if value is not None]
            if values:
                return any(values) if isinstance(node.op, ast.Or) else all(values)
        return None

    def _atom(self, node: ast.expr) -> _Atom | None:
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Dict):
            return self._table(node)
        called = node.func if isinstance(node, ast.Call) else node
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        if not isinstance(getattr(called, "ctx", ast.Load()), ast.Load) or not PREDICATE.match(name):
            return None
        return self._predicate(name)

    def _predicate(self, name: str) -> _Atom | None:
        if not re.match(r"^_*(is|has|use)_", name):
            return None
        found: list[tuple[int, int | None]] = []
        for digits in SM_WORD.findall(name):
            number = int(digits)
            # is_sm100_supported and its like are of the whole generation
            found.append((number // 10, None if number % 10 == 0 else number % 10))
        for family, majors in FAMILIES.items():
            if family in name.lower():
                found += [(major, None) for major in majors]
        if not found:
            return None
        true = any(major == self.chip.major and minor in (None, self.chip.minor) for major, minor in found)
        if re.search(r"or_(newer|above|later|higher)|_plus", name):
            true = self.chip.number >= min(major * 10 + (minor or 0) for major, minor in found)
        return _Atom("predicate", [f"{major}.{minor or 0}" for major, minor in found], true)

    def _comparison(self, node: ast.Compare) -> _Atom | None:
        if len(node.ops) != 1 or type(node.ops[0]) not in OPERATORS:
            return None
        left, right, operator = node.left, node.comparators[0], node.ops[0]
        kind = OPERATORS[type(operator)]
        if _literal(left) is not None and _literal(right) is None:
            left, right = right, left
            kind = {"at_least": "at_most", "at_most": "at_least", "above": "below", "below": "above"}.get(kind, kind)
        value = _literal(right)
        if value is None or not self._is_measure(left):
            return None
        values = value if kind in ("member", "not_member") and isinstance(value, (list, set)) else [value]
        if kind in ("member", "not_member") and isinstance(value, tuple):
            values = list(value)
        pairs = [(self._mine(item), item) for item in values]
        if not pairs or any(mine is None for mine, _item in pairs):
            return None
        return _Atom(kind, [_capability(item) for _mine, item in pairs], _holds(kind, pairs))

    def _mine(self, item: Any) -> Any:
        """Return the chip in the form of a literal: 12, 120 or (12, 0); None for no capability."""
        if isinstance(item, tuple) and len(item) == 2 and item[0] in MAJORS and isinstance(item[1], int):
            return (self.chip.major, self.chip.minor)
        if type(item) is int and item in MAJORS:
            return self.chip.major
        if type(item) is int and item in NUMBERS:
            return self.chip.number
        return None

    def _is_measure(self, node: ast.expr) -> bool:
        if "version_info" in ast.unparse(node):
            return False
        if isinstance(node, ast.Name):
            return node.id in self.majors or bool(
                re.search(r"capability|device_sm|sm_major|cc_major|sm_version", node.id)
            )
        return any(
            MEASURE.search(getattr(part, "attr", "") or getattr(part, "id", ""))
            for part in ast.walk(node)
            if isinstance(part, (ast.Attribute, ast.Name))
        )

    def _table(self, node: ast.Dict) -> _Atom | None:
        keys = [_literal(key) for key in node.keys if key is not None]
        if len(keys) < 2 or len(keys) != len(node.keys):
            return None
        numbers = all(type(key) is int and key in NUMBERS for key in keys)
        majors = all(type(key) is int and 7 <= key <= 13 for key in keys) and {9, 10} & set(keys)
        pairs = all(isinstance(key, tuple) and len(key) == 2 and key[0] in MAJORS for key in keys)
        if not (numbers or majors or pairs):
            return None
        return _Atom("table", [_capability(key) for key in keys], any(self._mine(key) == key for key in keys))

    def _treats(self, node: ast.expr) -> bool:
        """Say whether a test mentions the chip."""
        for part in ast.walk(node):
            name = getattr(part, "id", None) or getattr(part, "attr", None) or ""
            numbers = {int(digits) // 10 for digits in SM_WORD.findall(name)}
            for family, majors in FAMILIES.items():
                numbers |= set(majors) if family in name.lower() else set()
            if self.chip.major in numbers or re.search(rf"sm_?{self.chip.major}x", name, re.IGNORECASE):
                return True
            if isinstance(part, ast.Compare):
                atom = self._comparison(part)
                if atom and any(int(float(item)) == self.chip.major for item in atom.capabilities):
                    return True
            elif isinstance(part, ast.Dict):
                table = self._table(part)
                if table and table.true:
                    return True
        return False


def _tests(node: ast.If) -> list[ast.expr]:
    """Return the tests of an if and of its elifs."""
    tests = [node.test]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        tests.append(node.test)
    return tests


def _is_definition(node: ast.AST) -> bool:
    """Say whether a statement only gives a predicate another name, `_is_sm90 = cuda and is_sm90()`."""
    if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Dict):
        return False
    name = getattr(node.targets[0], "id", "")
    return bool(PREDICATE.match(name) and re.match(r"^_*(is|has|use)_", name))


def _literal(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return None
    return value if isinstance(value, (int, tuple, list, set)) and not isinstance(value, bool) else None


def _capability(item: Any) -> str:
    if isinstance(item, tuple):
        return f"{item[0]}.{item[1]}"
    return f"{item}.0" if item in MAJORS else f"{item // 10}.{item % 10}"


def _holds(kind: str, pairs: Sequence[tuple[Any, Any]]) -> bool:
    if kind == "member":
        return any(mine == item for mine, item in pairs)
    if kind == "not_member":
        return all(mine != item for mine, item in pairs)
    mine, item = pairs[0]
    return bool(
        {
            "equal": mine == item,
            "not_equal": mine != item,
            "at_least": mine >= item,
            "above": mine > item,
            "below": mine < item,
            "at_most": mine <= item,
        }[kind]
    )
