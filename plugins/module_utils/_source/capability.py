# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every place of a source tree that tests for a compute capability: PRIVATE, may change at any time.

What counts as a test, and what it says of a chip, is read from names, their definitions and literals, so it is a
heuristic: a predicate (`is_sm100_supported`, `get_platform().is_sm90`, `is_blackwell`), a comparison of something
named like a capability with a literal, a membership in literals, a dict whose keys are capabilities, or a least
capability that a quantization method returns. One place is one boolean expression, however many tests it joins.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .chips import NUMBERS, PREDICATE, Atom, Chip, chip
from .errors import SourceError, SpecError
from .judge import Definitions, Judge
from .modules import Modules
from .names import FUNCTIONS, is_whole
from .text import SourceText
from .tree import Tree

NEEDLE = re.compile(
    rb"sm_?\d{2}|hopper|blackwell|capability|device_sm|sm_major|cc_major|get_device_properties", re.IGNORECASE
)
FUSION = re.compile(r"all_?reduce_fusion|ar_fusion|comm_fusion|fused_?allreduce", re.IGNORECASE)
LEAST = re.compile(r"min_capability$")
GROUPS = (
    ("arguments", re.compile(r"arg_groups/|server_args|environ|(?:^|srt/)configs?/")),
    ("communication", re.compile(r"all_?reduce|device_communicators|symm_mem|nccl|comm_fusion|ar_fusion|a2a")),
    ("kv_cache", re.compile(r"kv_?cache|mem_cache|memory_pool|kvcache")),
    ("moe", re.compile(r"moe|expert")),
    ("attention", re.compile(r"attention|attn|mla|dsa|mamba|gdn|kda|flashmla|nsa|indexer")),
    ("gemm", re.compile(r"gemm|quantization|fp8|fp4|mxfp|bf16|linear")),
)
IDENTITY = ("file", "function", "expression", "kind", "capabilities")


@dataclass
class Site:
    """One test. `falls` says whether the chip is on the true side: in, out or unknown."""

    file: str
    line: int
    function: str
    expression: str
    tests: list[str]
    kind: str
    capabilities: list[str]
    falls: str
    treats: bool
    group: str
    fusion: bool


def audit(root: str, within: Sequence[str], capability: str, every: bool = False) -> list[Site]:
    """Return the tests in a tree that do not treat a capability, or all of them.

    :param root: folder that the patterns `within` start from, or a file.
    :param capability: the chip's, such as 12.0.
    :raises SourceError: a file that may hold a test does not parse; all such files are named.
    """
    tree, wanted, broken = Tree(root), chip(capability), []
    shared, modules = Definitions(), Modules(tree.module)
    judges: list[Judge] = []
    for name in tree.files(within):
        raw = tree.raw(name)
        if NEEDLE.search(raw):
            try:
                judges.append(Judge(SourceText(name, raw), wanted, shared, modules))
            except SourceError as exc:
                broken.append(str(exc))
            except RecursionError:
                broken.append(f"{name}:1: is nested too deeply to be read")
    sites: list[Site] = []
    for judge in judges:
        try:
            sites += _Reader(judge).sites()
        except RecursionError:
            broken.append(f"{judge.source.name}:1: is nested too deeply to be read")
    if broken:
        wants = tree.requires_python()
        hint = f" (the tree asks for Python {wants})" if wants else ""
        raise SourceError(f"run this with a Python that parses the source{hint}: " + "; ".join(broken))
    return [site for site in sites if every or not site.treats]


def compare(before: Sequence[Any], after: Sequence[Site]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (tests that appeared, tests that went); where only the line differs, a test is the same one.

    :raises SpecError: what came before is no list of tests.
    """
    old, new = list(before), [asdict(site) for site in after]
    for number, site in enumerate(old, 1):
        if not isinstance(site, dict) or not all(name in site for name in (*IDENTITY, "line")):
            raise SpecError(f"baseline: element {number} is no test as this module returns them, under `gates`")

    def without(sites: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
        left = [[site[name] for name in IDENTITY] for site in others]
        kept = []
        for site in sites:
            identity = [site[name] for name in IDENTITY]
            if identity in left:
                left.remove(identity)
            else:
                kept.append(site)
        return kept

    return without(new, old), without(old, new)


class _Reader:
    """Finds the tests of one file."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.source = judge.source

    @property
    def chip(self) -> Chip:
        """The chip that is asked about."""
        return self.judge.chip

    def sites(self) -> list[Site]:
        """Return the tests in text order."""
        return sorted(self._walk(self.source.tree, ""), key=lambda site: site.line)

    def _walk(self, node: ast.AST, function: str) -> Iterator[Site]:
        for child in ast.iter_child_nodes(node):
            if _is_definition(child):
                continue
            if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
                inner = f"{function}.{child.name}".lstrip(".")
                yield from self._least(child, inner)
                yield from self._walk(child, inner)
            elif isinstance(child, ast.If):
                yield from self._chain(child, function)
            elif type(child).__name__ == "Match":
                yield from self._match(child, function)
            elif isinstance(child, ast.expr):
                yield from self._expression(child, function, [])
            else:
                yield from self._walk(child, function)

    def _chain(self, node: ast.If, function: str) -> Iterator[Site]:
        """Yield the tests of an if with its elifs, each of which is seen together with the others."""
        parts = [node]
        while len(parts[-1].orelse) == 1 and isinstance(parts[-1].orelse[0], ast.If):
            parts.append(parts[-1].orelse[0])
        tests = [part.test for part in parts]
        for part in parts:
            yield from self._expression(part.test, function, tests)
            yield from self._walk(ast.Module(body=part.body, type_ignores=[]), function)
        yield from self._walk(ast.Module(body=parts[-1].orelse, type_ignores=[]), function)

    def _match(self, node: Any, function: str) -> Iterator[Site]:
        """Yield the cases of a match of a capability, read as comparisons."""
        tests: list[ast.expr] = []
        test: ast.expr
        for case in node.cases if self.judge.is_measure(node.subject) else []:
            patterns = getattr(case.pattern, "patterns", None) if type(case.pattern).__name__ == "MatchOr" else None
            values = [_pattern_value(pattern) for pattern in (patterns or [case.pattern])]
            if all(value is not None for value in values):
                literal = ast.Tuple(elts=[value for value in values if value is not None], ctx=ast.Load())
                test = ast.Compare(left=node.subject, ops=[ast.In()], comparators=[literal])
                tests.append(ast.copy_location(test, case.pattern))
        for test in tests:
            yield from self._expression(test, function, tests)
        if not tests:
            yield from self._expression(node.subject, function, [])
        for case in node.cases:
            yield from self._walk(case, function)

    def _least(self, node: Any, function: str) -> Iterator[Site]:
        """Yield the least capability that a function returns, such as `get_min_capability`."""
        if not LEAST.search(node.name):
            return
        for part in ast.walk(node):
            value = part.value if isinstance(part, ast.Return) else None
            if isinstance(value, ast.Constant) and is_whole(value.value) and value.value in NUMBERS:
                atom = self.chip.listed("at_least", [value.value])
                if atom:
                    yield from self._site(
                        part, f"return {value.value}", function, [(value, atom)], atom.true, atom.treats
                    )

    def _expression(self, node: ast.expr, function: str, chain: list[ast.expr]) -> Iterator[Site]:
        atoms = list(self.judge.atoms(node, function))
        if not atoms:
            yield from self._walk(node, function)
            return
        for other in self._others(node, function):
            yield from self._walk(other, function)
        value = self.judge.value(node, function)
        treats = any(self.judge.treats(test, function) for test in (chain or [node]))
        yield from self._site(node, ast.unparse(node), function, atoms, value, treats)

    def _site(
        self,
        node: Any,
        text: str,
        function: str,
        atoms: list[tuple[ast.expr, Atom]],
        value: bool | None,
        treats: bool,
    ) -> Iterator[Site]:
        capabilities = sorted({item for _node, atom in atoms for item in atom.capabilities}, key=float)
        if all(float(item) < 9 for item in capabilities):
            return
        context = f"{self.source.name} {function} {text}"
        yield Site(
            file=self.source.name,
            line=node.lineno,
            function=function,
            expression=text,
            tests=[ast.unparse(part) for part, _atom in atoms],
            kind="+".join(sorted({atom.kind for _node, atom in atoms})),
            capabilities=capabilities,
            falls="unknown" if value is None else "in" if value else "out",
            treats=treats,
            group=next((name for name, words in GROUPS if words.search(context.lower())), "other"),
            fusion=bool(FUSION.search(context)),
        )

    def _others(self, node: ast.expr, function: str) -> Iterator[ast.expr]:
        """Yield the terms of a test that are no capability tests, which may hold some inside."""
        if self.judge.atom(node, function):
            return
        if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            for part in node.values if isinstance(node, ast.BoolOp) else [node.operand]:
                yield from self._others(part, function)
        else:
            yield node


def _is_definition(node: ast.AST) -> bool:
    """Say whether a statement only gives a test another name that says so, `_is_sm90 = cuda and is_sm90()`."""
    if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Dict):
        return False
    return bool(PREDICATE.match(getattr(node.targets[0], "id", "")))


def _pattern_value(pattern: Any) -> ast.expr | None:
    """Return the literal of a case, or None where the case is something else."""
    value = getattr(pattern, "value", None)
    if isinstance(value, ast.expr):
        return value
    parts = [_pattern_value(part) for part in getattr(pattern, "patterns", [])]
    if type(pattern).__name__ != "MatchSequence" or not parts or any(part is None for part in parts):
        return None
    return ast.Tuple(elts=[part for part in parts if part is not None], ctx=ast.Load())
