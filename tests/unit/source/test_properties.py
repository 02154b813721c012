"""Random dicts and gates, formatted at random: back is back, twice is once, and libcst reads what we read."""

from __future__ import annotations

import ast

import libcst
from ansible_collections.llmfleet.sglang.plugins.module_utils._source import dicts, gates
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.prove import prove
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.spec import DictEntry, Gate
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.text import (
    SourceText,
    apply_splices,
    undo_splices,
)
from hypothesis import given, settings
from hypothesis import strategies as st

BLANKS = st.sampled_from(["", "", " ", "  ", "\t", "\n", "\n    ", "\n\n  ", "  # c, } ) or\n    ", " \\\n  ", "\x0c"])
VALUES = st.sampled_from(
    [
        "1",
        "'}'",
        "[4, 6]",
        "{1: 2, 3: {}}",
        "lambda: 1",
        "f(x, y=2)[0]",
        '"""a\n#}"""',
        "x if y else z",
        "-1",
        "'ä😀'",
        "{}",
    ]
)
KEYS = st.lists(st.sampled_from(["9", "10", "-1", "1 << 3", "2 * (3)", "7 // 2", "0x11"]), unique=True, max_size=5)
PARENS = st.integers(0, 2)
HEADS = st.sampled_from(["", "K = 77\n", "'''doc'''\nfrom __future__ import annotations\n", "s = 'äöü€'; "])
TAILS = st.sampled_from(["", "\n", "  # end }\n", "\nOTHER = {9: 1}\n", "; y = 1\n"])
NEWLINES = st.sampled_from(["\n", "\r\n"])


@st.composite
def dict_texts(draw: st.DrawFn) -> str:
    """Return a module that assigns one dict literal to NAME."""

    def wrapped(text: str) -> str:
        count: int = draw(PARENS)
        before: str = draw(BLANKS) if count else ""
        after: str = draw(BLANKS) if count else ""
        return "(" * count + before + text + after + ")" * count

    parts = []
    for key in draw(KEYS):
        entry = draw(BLANKS) + wrapped(key) + draw(BLANKS) + ":" + draw(BLANKS) + wrapped(draw(VALUES)) + draw(BLANKS)
        parts.append(entry)
    text = ",".join(parts)
    trailing: bool = draw(st.booleans())
    if parts and trailing:
        text += "," + draw(BLANKS)
    elif not parts:
        text = draw(BLANKS)
    newline: str = draw(NEWLINES)
    return f"{draw(HEADS)}NAME = {{{text}}}{draw(TAILS)}".replace("\n", newline)


@st.composite
def gate_texts(draw: st.DrawFn) -> str:
    """Return a module with one `or` of A and B, among others, in parentheses."""
    operands = [
        "A",
        "B",
        *draw(st.lists(st.sampled_from(["x", "not y", "f(x)", "(p and q)", "'or'", "z > 1"]), max_size=3)),
    ]
    operands = draw(st.permutations(operands))
    parts = []
    for operand in operands:
        count = draw(PARENS)
        opening, closing = draw(BLANKS) * bool(count), draw(BLANKS) * bool(count)
        parts.append(f"{draw(BLANKS)} {'(' * count}{opening}{operand}{closing}{')' * count} {draw(BLANKS)}")
    shape = draw(st.sampled_from(["v = ({})", "if ({}) and u: pass", "v = [i for i in j if ({})]", "v = lambda: ({})"]))
    text: str = draw(HEADS) + "A = B = 1\n" + shape.format("or".join(parts)) + draw(TAILS)
    return text.replace("\n", draw(NEWLINES))


def parses(text: str) -> bool:
    """Say whether a generated text is Python at all."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def entries_by_libcst(text: str) -> list[tuple[str, str]]:
    """Return the entries of the dict NAME as libcst reads them."""
    module = libcst.parse_module(text)
    found: list[tuple[str, str]] = []

    class Visitor(libcst.CSTVisitor):
        def visit_Assign(self, node: libcst.Assign) -> None:
            target = node.targets[0].target
            if isinstance(target, libcst.Name) and target.value == "NAME" and isinstance(node.value, libcst.Dict):
                for element in node.value.elements:
                    assert isinstance(element, libcst.DictElement)
                    codes = [module.code_for_node(part) for part in (element.key, element.value)]
                    found.append((bare(codes[0]), bare(codes[1])))

    module.visit(Visitor())
    return found


def bare(code: str) -> str:
    """Return an expression without formatting."""
    return ast.unparse(ast.parse(f"({code}\n)", mode="eval"))


def entries_by_us(source: SourceText, what: DictEntry) -> list[tuple[str, str]]:
    """Return the entries of the dict NAME as we read them."""
    (target,) = dicts.find(source, what)
    node = target.node
    assert isinstance(node, ast.Dict)
    return [(ast.unparse(key), ast.unparse(value)) for key, value in zip(node.keys, node.values) if key]


@settings(max_examples=400, deadline=None)
@given(dict_texts(), st.sampled_from(["[]", "{2: 64}", "[\n    4,\n]"]))
def test_dict(text: str, value: str) -> None:
    if not parses(text):
        return
    source = SourceText("a.py", text.encode())
    what = DictEntry(("NAME",), (), "12", value, None)
    (target,) = dicts.find(source, what)
    assert dicts.state(target, what)[0] == "absent"
    before = entries_by_us(source, what)
    assert before == entries_by_libcst(text)

    expected = source.fresh_tree()
    splices = sorted(dicts.plan(target, what, expected), key=lambda splice: splice.start)
    after = source.with_text(apply_splices(text, splices))
    prove(after, expected, 1)
    wanted = [*before, ("12", bare(value))]
    assert entries_by_us(after, what) == wanted == entries_by_libcst(after.text)
    assert undo_splices(after.text, splices) == text
    assert dicts.state(dicts.find(after, what)[0], what)[0] == "upstream", "a second time would add it again"
    if "\r\n" in text:
        assert "\n" not in after.text.replace("\r\n", "")


@settings(max_examples=400, deadline=None)
@given(gate_texts(), st.booleans())
def test_gate(text: str, both: bool) -> None:
    if not parses(text):
        return
    source = SourceText("a.py", text.encode())
    what = Gate(("A", "B") if both else ("B",), (), (), "C", "B")
    targets = [target for target in gates.find(source, what) if isinstance(target.node, ast.BoolOp)]
    (target,) = targets
    assert not gates.has_term(target, "C", [])
    expected = source.fresh_tree()
    splices = sorted(gates.plan_term(target, what, expected), key=lambda splice: splice.start)
    after = source.with_text(apply_splices(text, splices))
    prove(after, expected, 1)
    (again,) = (target for target in gates.find(after, what) if isinstance(target.node, ast.BoolOp))
    assert gates.has_term(again, "C", [])
    assert undo_splices(after.text, splices) == text
    assert libcst.parse_module(after.text).code == after.text
    if "\r\n" in text:
        assert "\n" not in after.text.replace("\r\n", "")
