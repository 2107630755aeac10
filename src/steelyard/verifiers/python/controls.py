"""Tests made false: one expected value of an equality, or every one of them, is changed far outside of any tolerance.

Inputs, bounds, memberships and tolerances stay as they are: a right answer may differ there from the reference.
"""

from __future__ import annotations

import ast
import doctest
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.protocols import FalseTests
from steelyard.verifiers.python.settings import PythonSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from steelyard.records import Case

MAX_CONTROLS = 40
"""Candidates that are made of one file of tests, taken evenly from it."""
FAR = 1_000_003
"""What a number is moved by: no tolerance is so large."""
FAR_TEXT = "steelyard expects something else"
EQUALITY_CALLS = frozenset(
    {
        *(
            "assertAlmostEqual",
            "assertAlmostEquals",
            "assertCountEqual",
            "assertDictEqual",
            "assertEqual",
            "assertEquals",
        ),
        *("assertListEqual", "assertMultiLineEqual", "assertSequenceEqual", "assertSetEqual", "assertTupleEqual"),
        *("assert_allclose", "assert_almost_equal", "assert_array_almost_equal", "assert_array_equal", "assert_equal"),
        *("assert_frame_equal", "assert_series_equal"),
    }
)
"""Functions of test frameworks whose first two arguments must be equal."""
APPROXIMATIONS = frozenset({"approx", "array"})
"""Functions around an expected value, whose first argument it is."""


class Edit(NamedTuple):
    """A place in tests, in bytes, and what stands there instead."""

    begin: int
    end: int
    text: str


def false_tests(case: Case) -> FalseTests:
    """The tests of a Python case with one expected value changed, and with all of them."""
    style = case.verify.style
    if style == "io" or PythonSettings.of(case).pairs:
        return _false_pairs(case)
    try:
        found = list(_doctest_edits(case.tests) if style == "doctest" else _edits(case.tests))
    except (SyntaxError, ValueError, RecursionError):
        found = []
    if not found:
        return FalseTests((), None)
    data = case.tests.encode()
    chosen = found[:: 1 + (len(found) - 1) // MAX_CONTROLS]
    return FalseTests(
        tuple(_with_tests(case, _edited(data, [edit])) for edit in chosen), _with_tests(case, _edited(data, found))
    )


def _with_tests(case: Case, tests: str) -> Case:
    if case.verify.tests:
        return msgspec.structs.replace(case, verify=msgspec.structs.replace(case.verify, tests=tests))
    return msgspec.structs.replace(case, expectations=msgspec.structs.replace(case.expectations, test_file=tests))


def _edited(data: bytes, edits: Iterable[Edit]) -> str:
    for edit in sorted(edits, reverse=True):
        data = data[: edit.begin] + edit.text.encode() + data[edit.end :]
    return data.decode()


def _false_pairs(case: Case) -> FalseTests:
    """Pairs of a function with other outputs; what a program prints is compared where no program is."""
    pairs = PythonSettings.of(case).pairs
    if not case.verify.entry_point:
        return FalseTests((), None)
    false = [msgspec.structs.replace(pair, output=_far_value(pair.output)) for pair in pairs]

    def changed(places: set[int]) -> Case:
        chosen = tuple(false[place] if place in places else pair for place, pair in enumerate(pairs))
        return msgspec.structs.replace(case, verify=msgspec.structs.replace(case.verify, pairs=chosen))

    every = range(len(pairs))
    return FalseTests(tuple(changed({place}) for place in every[:MAX_CONTROLS]), changed(set(every)))


def _doctest_edits(tests: str) -> Iterator[Edit]:
    """The outputs of examples; an exception is no value."""
    lines = tests.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    for example in doctest.DocTestParser().get_examples(tests):
        if not example.want or example.exc_msg or example.options.get(doctest.SKIP):
            continue
        first = example.lineno + example.source.count("\n")
        last = first + example.want.count("\n")
        yield Edit(starts[first], starts[last], f"{' ' * example.indent}{FAR_TEXT}\n")


def _edits(tests: str) -> Iterator[Edit]:
    tree = ast.parse(tests)
    starts = [0]
    for line in tests.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for node in ast.walk(tree):
        for one, other in _equalities(node):
            if changed := _changed_side(one, other):
                side, text = changed
                begin = starts[side.lineno - 1] + side.col_offset
                end = starts[(side.end_lineno or side.lineno) - 1] + (side.end_col_offset or 0)
                yield Edit(begin, end, f"({text})" if isinstance(side, ast.Tuple) else text)


def _equalities(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Both sides of what a statement or a call says must be equal."""
    if isinstance(node, ast.Assert):
        waiting = [node.test]
        while waiting:
            part = waiting.pop()
            if isinstance(part, ast.BoolOp) and isinstance(part.op, ast.And):
                waiting += part.values
            elif isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq):
                yield part.left, part.comparators[0]
            elif isinstance(part, ast.Call) and _called(part) in ("all", "any") and len(part.args) == 1:
                inner = part.args[0]
                if _called(part) == "all" and isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.Eq):
                    yield inner.left, inner.comparators[0]
    elif isinstance(node, ast.Call) and _called(node) in EQUALITY_CALLS and len(node.args) >= 2:
        yield node.args[0], node.args[1]


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _changed_side(one: ast.expr, other: ast.expr) -> tuple[ast.expr, str] | None:
    """The side that is expected, and another value in its place; None if it cannot be told which side that is."""
    for side in (other, one):
        inner = side
        while isinstance(inner, ast.Call) and _called(inner) in APPROXIMATIONS and inner.args:
            inner = inner.args[0]
        try:
            return inner, repr(_far_value(ast.literal_eval(inner)))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    calls = [any(isinstance(part, ast.Call) for part in ast.walk(side)) for side in (one, other)]
    if calls == [True, False]:
        return other, repr(FAR_TEXT)
    return (one, repr(FAR_TEXT)) if calls == [False, True] else None


def _far_value(value: Any) -> Any:
    """Another value of the same type, far from this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float | complex):
        return value * 7 + FAR
    if isinstance(value, str):
        return f"{value} {FAR_TEXT}"
    if isinstance(value, bytes):
        return value + FAR_TEXT.encode()
    if isinstance(value, list | tuple):
        # as long as before: an object that equals everything may stand at each place
        return type(value)(map(_far_value, value or [None]))
    if isinstance(value, set):
        return {*value, FAR}
    if isinstance(value, dict):
        return {key: _far_value(item) for key, item in value.items()} or {FAR_TEXT: FAR}
    return FAR
