"""Tests that call a function with plain data and compare what it returns with plain data: most tests of most sets.

They need no process of their own: each call is sent to the answer, and what it returned is compared here, where the answer
never was. Nothing of the tests is run. As soon as anything but plain data is returned, a plain run decides instead.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import operator
import socket
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.verifiers.code.join_stub import entry_name, is_entry_point
from steelyard.verifiers.python.guest.steps import is_same
from steelyard.verifiers.python.guest.values import (
    MAX_PLAIN_KEYS,
    NotPlainError,
    decoded,
    encoded,
    is_quick_to_read,
)
from steelyard.verifiers.python.guest.wire import MAX_EXCEPTION_CHARS, TestFailure, class_failure_cause, difference
from steelyard.verifiers.python.guests import GuestChannel, finish_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from steelyard.protocols import GuestHost, ProcessResult, ResourceLimits
    from steelyard.records import Pair, TestFailureCause

MAX_PLAIN_REPLY_BYTES = 1 << 20
"""Bytes of one reply; to read more takes tenths of a second, in which nobody else is judged."""
MAX_CONSTANT = 1 << 64
MAX_EXPONENT = 64
MAX_SECONDS = 1e6
SET_PLACES, MAX_ORDERED_ITEMS = 8, 4
"""A set of at most so many numbers has this many places, and smaller numbers have one of their own each: its order is always the same."""
MAX_CONVERTED_PARTS = 5000
"""Parts of all items of a result that is converted here: of equal hashes, each item may be compared with each."""
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "frozenset": frozenset,
    "len": len,
    "list": list,
    "set": set,
    "sorted": sorted,
    "tuple": tuple,
}
"""What tests do with a result before they compare it."""


class Step(NamedTuple):
    """A statement of tests."""

    statement: ast.stmt
    is_test: bool


class PlainCall(NamedTuple):
    """One test: a function, what it is given, and what must hold for what it returns."""

    function: str
    """An expression of the answer's: the name of a function, or a method such as `Solution().two_sum`."""
    positional: list[Any]
    """As JSON carries it."""
    named: list[Any]
    what_is_wrong: Callable[[Any], TestFailure]
    """Says what is wrong with a value; empty for a right one."""
    is_bound: bool = False
    """Whether the tests have given it a name, so that all calls go to one object."""

    @property
    def expression(self) -> str:
        """What is evaluated once in the answer's module, and called."""
        if self.is_bound or self.function.isidentifier():
            return self.function
        return f"lambda *positional, **named: {self.function}(*positional, **named)"


def plain_calls(steps: Sequence[Step], entry_point: str) -> tuple[tuple[PlainCall, ...], set[str]]:
    """The tests as calls with plain data, and the names that they bind besides; nothing if one of them is something else."""
    functions: dict[str, str] = {}
    bound: set[str] = set()
    found = []
    try:
        for statement, is_test in steps:
            if is_test:
                call, what_is_wrong = _claim(statement)
                found.append(_plain_call(call, functions, what_is_wrong))
            elif _is_renaming(statement, entry_point):
                functions[statement.targets[0].id] = entry_point  # type: ignore[attr-defined]
            else:
                bound |= set(_prepared_names(statement))
    except (_NotPlainTestError, NotPlainError, SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError):
        return (), set()
    called = {call.function for call in found}
    # besides the entry point, other functions of the answer influence the verdict
    roots = set(map(entry_name, called))
    is_tested = called == {entry_point} if entry_point else not any(hasattr(builtins, name) for name in roots)
    is_own = bound.isdisjoint(roots | set(functions) | CONVERSIONS.keys())
    return (tuple(found), bound) if is_tested and is_own else ((), set())


def pair_calls(entry_point: str, pairs: Iterable[Pair]) -> tuple[PlainCall, ...]:
    """Pairs of arguments and what a function returns for them, as calls."""
    if not is_entry_point(entry_point):
        return ()
    try:
        return tuple(
            PlainCall(entry_point, encoded(list(pair.input)), [], _same_as(pair.output), is_bound=True)
            for pair in pairs
        )
    except NotPlainError:
        return ()


def _same_as(wanted: Any) -> Callable[[Any], TestFailure]:
    return lambda got: TestFailure() if is_same(got, wanted) else difference(got, wanted)


def _is_renaming(statement: ast.stmt, entry_point: str) -> bool:
    """Whether a statement gives the function that is tested another name."""
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and ast.unparse(statement.value) == entry_point
    )


class _NotPlainTestError(Exception):
    """A test that is more than a call with plain data."""


def _prepared_names(statement: ast.stmt) -> Iterator[str]:
    """The assignments of a statement that does nothing else; raises if it may do more."""
    if isinstance(statement, ast.FunctionDef) and not statement.decorator_list:
        parameters = statement.args
        for default in (*parameters.defaults, *filter(None, parameters.kw_defaults)):
            _constant(default)
        annotated = (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)
        for annotation in filter(None, (*(one.annotation for one in annotated), statement.returns)):
            # it is looked up when the function is defined
            if not (isinstance(annotation, ast.Name) and isinstance(getattr(builtins, annotation.id, None), type)):
                raise _NotPlainTestError
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from _imported_names(statement)
    elif isinstance(statement, ast.Try):
        # what a stub imports, if it is there
        for part in statement.body:
            yield from _prepared_names(part)
    elif isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        _constant(statement.value)
        yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
    elif not (
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and _is_idle(statement.value))
        or (isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant) and statement.test.value)
    ):
        raise _NotPlainTestError


def _is_idle(value: ast.expr) -> bool:
    """Whether an expression does nothing, such as a text or a `print` that is not called."""
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and hasattr(builtins, value.id))


def _imported_names(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    modules = (
        [statement.module or ""] if isinstance(statement, ast.ImportFrom) else [one.name for one in statement.names]
    )
    for module in modules:
        first = module.partition(".")[0]
        if first not in sys.stdlib_module_names:
            raise _NotPlainTestError
    for one in statement.names:
        if one.name == "*":
            raise _NotPlainTestError
        yield (one.asname or one.name).partition(".")[0]


def _claim(statement: ast.stmt) -> tuple[ast.expr, Callable[[Any], TestFailure]]:
    """The call in a test, and what must hold for its result."""
    if not isinstance(statement, ast.Assert):
        raise _NotPlainTestError
    test = statement.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        expected = _constant(test.comparators[0])
        encoded(expected)  # raises for what no answer could send
        call, convert = _conversion(test.left)
        if convert is None:
            return call, lambda got: _difference(got, expected)
        return call, lambda got: _difference(_converted(got, convert), expected)
    words = "" if statement.msg is None else str(_constant(statement.msg))[:MAX_EXCEPTION_CHARS]
    failure = TestFailure(f"AssertionError: {words}" if words else "AssertionError", "comparison")
    call, holds = _condition(test)
    return call, lambda got: TestFailure() if holds(got) else failure


def _conversion(value: ast.expr) -> tuple[ast.expr, Callable[[Any], Any] | None]:
    """An expression without a conversion around it, and that conversion."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        name = value.func.id if isinstance(value.func, ast.Name) else ""
        if name in CONVERSIONS:
            return value.args[0], CONVERSIONS[name]
    return value, None


def _converted(got: Any, convert: Callable[[Any], Any]) -> Any:
    """What a test makes of a result; raises where that may take long, or depends on the order of a set."""
    is_set = isinstance(got, set | frozenset)
    # sets that hold different things are neither before nor after each other: these stay as they were read
    is_unordered = is_set and (convert in (list, tuple) or (convert is sorted and any(map(_holds_set, got))))
    if is_unordered or (
        convert is not len and (len(got) > MAX_PLAIN_KEYS or sum(map(_part_count, got)) > MAX_CONVERTED_PARTS)
    ):
        raise _NotPlainTestError
    return convert(got)


def _holds_set(item: Any) -> bool:
    return isinstance(item, frozenset) or (isinstance(item, tuple) and any(map(_holds_set, item)))


def _part_count(value: Any) -> int:
    """How much of a value may have to be compared."""
    if isinstance(value, int):
        return 1 + value.bit_length() // 64
    return 1 + sum(map(_part_count, value)) if isinstance(value, tuple | list | set | frozenset | dict) else 1


def _condition(test: ast.expr) -> tuple[ast.expr, Callable[[Any], bool]]:
    """The call in an asserted expression, and whether it holds for a value."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        call, holds = _condition(test.operand)
        return call, lambda got: not holds(got)
    if not isinstance(test, ast.Compare):
        return test, bool
    if len(test.ops) != 1:
        raise _NotPlainTestError
    left, (operation,), (right,) = test.left, test.ops, test.comparators
    if isinstance(operation, ast.Is | ast.IsNot):
        single = _constant(right)
        if single is not None and not isinstance(single, bool):
            raise _NotPlainTestError
        is_same = isinstance(operation, ast.Is)
        return left, (lambda got: got is single) if is_same else (lambda got: got is not single)
    if isinstance(operation, ast.Lt) and isinstance(left, ast.Call) and len(left.args) == 1:
        distance = left.args[0]
        is_distance = isinstance(distance, ast.BinOp) and isinstance(distance.op, ast.Sub)
        if isinstance(left.func, ast.Name) and left.func.id == "abs" and not left.keywords and is_distance:
            expected, most = _number(distance.right), _number(right)  # type: ignore[attr-defined]
            return distance.left, lambda got: abs(_number_of(got) - expected) < most  # type: ignore[attr-defined]
    raise _NotPlainTestError


def _number(node: ast.expr) -> Any:
    return _number_of(_constant(node))


def _number_of(value: Any) -> Any:
    if type(value) not in (int, float) or (type(value) is int and abs(value) > MAX_CONSTANT):
        raise _NotPlainTestError
    return value


def _constant(node: ast.expr) -> Any:
    """The value of an expression of plain data: a literal, or short arithmetic."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        left, right = _constant(node.left), _constant(node.right)
        if not (type(left) is str and type(right) is str and isinstance(node.op, ast.Add)):
            left, right = _number_of(left), _number_of(right)
        if isinstance(node.op, ast.Pow) and not (type(right) is int and 0 <= right <= MAX_EXPONENT):
            raise _NotPlainTestError
        return ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.List | ast.Tuple):
        items = list(map(_constant, node.elts))
        return items if isinstance(node, ast.List) else tuple(items)
    inner, convert = _conversion(node)
    return ast.literal_eval(node) if convert is None else _converted(_constant(inner), convert)


def _plain_call(call: ast.expr, functions: dict[str, str], what_is_wrong: Callable[[Any], TestFailure]) -> PlainCall:
    if not isinstance(call, ast.Call) or not is_entry_point(called := ast.unparse(call.func)):
        raise _NotPlainTestError
    if any(keyword.arg is None for keyword in call.keywords):
        raise _NotPlainTestError
    positional = [encoded(_given(argument)) for argument in call.args]
    named = [[keyword.arg, encoded(_given(keyword.value))] for keyword in call.keywords]
    msgspec.json.encode([positional, named])  # raises ValueError for half characters, which could not be sent
    return PlainCall(functions.get(called, called), positional, named, what_is_wrong, called in functions)


def _given(argument: ast.expr) -> Any:
    """What an answer is given; raises for sets that may be read in another order there than where the tests stand."""
    value = _constant(argument)
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, set | frozenset) and not (
            len(one) <= MAX_ORDERED_ITEMS and all(type(item) is int and 0 <= item < SET_PLACES for item in one)
        ):
            raise _NotPlainTestError
        if isinstance(one, list | tuple | dict):
            waiting += [*one, *(one.values() if isinstance(one, dict) else ())]
    return value


def _difference(got: Any, expected: Any) -> TestFailure:
    return TestFailure() if got == expected else difference(got, expected)


class CallReport(NamedTuple):
    """What became of the calls to one answer."""

    ended: ProcessResult
    tests: tuple[tuple[TestFailure, float], ...] = ()
    """What is wrong with each result, and seconds; those that were not reached are missing."""
    raised: str = ""
    """What loading the answer raised."""
    missing: tuple[str, ...] = ()
    """Names that the tests call, and the answer does not define."""
    compile_error: tuple[str, int | None] | None = None
    compile_seconds: float = 0


async def answered_calls(
    host: GuestHost, code: str, calls: Sequence[PlainCall], entry_point: str, limits: ResourceLimits
) -> CallReport | None:
    """Have an answer do these calls in a process of its own, each when it has answered the one before.

    None if what it sends is not plain data: then only a plain run can decide.
    """
    ours, theirs = socket.socketpair()
    with ours:
        running = asyncio.ensure_future(host.call([theirs], limits))
        try:
            talk = _Talk(GuestChannel(ours, MAX_PLAIN_REPLY_BYTES))
            is_decided = await talk.hold(code, calls, entry_point if entry_point.isidentifier() else "")
            ours.close()
            ended = await finish_call(host, running)
        finally:
            running.cancel()
    if not is_decided and not ended.limit:
        return None
    return talk.report(ended)


class _Talk:
    """One conversation with an answer."""

    def __init__(self, guest: GuestChannel) -> None:
        self._guest = guest
        self._tests: list[tuple[TestFailure, float]] = []
        self._raised = ""
        self._missing: tuple[str, ...] = ()
        self._compile_error: tuple[str, int | None] | None = None
        self._compile_seconds = 0.0

    def report(self, ended: ProcessResult) -> CallReport:
        return CallReport(
            ended, tuple(self._tests), self._raised, self._missing, self._compile_error, self._compile_seconds
        )

    async def hold(self, code: str, calls: Sequence[PlainCall], entry_point: str) -> bool:
        """Load the answer and call it; False if a plain run has to decide. Whoever ends early has not done the rest."""
        try:
            called = sorted({entry_name(call.function) for call in calls})
            await self._guest.send(["load", code, called])
            said = await self._guest.receive()
            if said is not None and said[0] == "not compiled":
                self._compile_error = str(said[1]), said[2] if type(said[2]) is int else None
                return True
            if said is not None:
                self._compile_seconds = _seconds(said[1])
                said = await self._guest.receive()
            if said is None:
                return not self._guest.garbled
            if said[0] != "loaded":
                self._raised = str(said[1]) or "nothing that has words"
                return True
            self._missing = tuple(name for name in called if name in said[1])
            if entry_point in self._missing:
                self._raised = f"the answer does not define {entry_point}"
                return True
            for call in calls:
                await self._guest.send(["call", call.expression, call.positional, call.named, False])
                said = await self._guest.receive()
                if said is None:
                    return not self._guest.garbled
                self._tests.append((_what_is_wrong(call, said), _seconds(said[-1])))
        except (
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
            RecursionError,
            ArithmeticError,
            _NotPlainTestError,
        ):
            return False
        return True


def _what_is_wrong(call: PlainCall, said: list[Any]) -> TestFailure:
    """The problem with the result of a call; raises if the result is not plain data."""
    if said[0] == "raised":
        cause: TestFailureCause = class_failure_cause(getattr(builtins, str(said[2]), Exception))
        return TestFailure(str(said[1])[:MAX_EXCEPTION_CHARS] or "an exception without words", cause)
    if said[0] != "ok" or not is_quick_to_read(said[1]):
        raise _NotPlainTestError
    wrong = call.what_is_wrong(decoded(said[1]))
    return wrong._replace(text=wrong.text[:MAX_EXCEPTION_CHARS])


def _seconds(said: Any) -> float:
    """A time that an answer said; a log could not hold what is no number."""
    if not 0 <= (seconds := float(said)) <= MAX_SECONDS:
        raise _NotPlainTestError
    return seconds
