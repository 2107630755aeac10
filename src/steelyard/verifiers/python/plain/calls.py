"""Tests that call a function with plain data and compare what it returns with plain data: most tests of most sets.

They need no process of their own: the calls are sent to the answer, and what it returned is compared here when it has
ended. Nothing of the tests is run, and nothing that the answer sends is more than data. As soon as anything but plain
data is returned, the referee judges the answer instead.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import operator
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.verifiers.code.join_stub import entry_name, is_entry_point
from steelyard.verifiers.python.guest.objects import FUNCTION_KINDS
from steelyard.verifiers.python.guest.remote import MAX_REFEREE_OUTPUT_CHARS
from steelyard.verifiers.python.guest.values import (
    MAX_PLAIN_KEYS,
    MODULES_WITH_EFFECTS,
    ValueDecoder,
    ValueEncoder,
    is_plain,
)
from steelyard.verifiers.python.guest.wire import MAX_EXCEPTION_CHARS, TestFailure, class_failure_cause, difference
from steelyard.verifiers.python.plain.words import is_without_surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from steelyard.protocols import GuestHost, ProcessResult, ResourceLimits

MAX_PLAIN_REPLY_BYTES = 1 << 20
"""Bytes of everything that an answer sends; who sends more is judged by the referee."""
MAX_REPLY_BRACKETS = 50_000
"""Lists and the like in everything that an answer sends: to read more takes tenths of a second, in which nobody else is judged."""
MAX_CONSTANT = 1 << 64
MAX_EXPONENT = 64
MAX_SECONDS = 1e6
READS_AT_ONCE = 32
"""More than a socket holds: who writes without end keeps nobody else waiting."""
SET_PLACES, MAX_ORDERED_ITEMS = 8, 4
"""A set of at most so many numbers has this many places, and smaller numbers have one of their own each: its order is always the same."""
FIRST_READ_SECONDS = 0.05
"""Seconds after which we read while the answer still runs: most have ended by then, and left little to read."""
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


class PlainCall(NamedTuple):
    """One test: a function, what it is given, and what must hold for what it returns."""

    place: int
    """Which of the plan's steps it is."""
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


def plain_calls(steps: Sequence[dict[str, Any]], entry_point: str) -> tuple[PlainCall, ...]:
    """The tests of a plan as calls with plain data; empty if one of them is something else."""
    functions: dict[str, str] = {}
    bound: set[str] = set()
    found = []
    try:
        for place, step in enumerate(steps):
            if step["shares_process"] or "want" in step or "pair" in step:
                return ()
            if not step["test"]:
                for statement in ast.parse(step["source"]).body:
                    if is_renaming(statement, entry_point):
                        functions[statement.targets[0].id] = entry_point
                    else:
                        bound |= set(_prepared_names(statement))
                continue
            call, what_is_wrong = _claim(step)
            found.append(_plain_call(place, call, functions, what_is_wrong))
    except (_NotPlainError, SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        return ()
    called = {call.function for call in found}
    # besides the entry point, other functions of the answer influence the verdict
    roots = set(map(entry_name, called))
    is_tested = called == {entry_point} if entry_point else not any(hasattr(builtins, name) for name in roots)
    is_own = bound.isdisjoint(roots | set(functions) | CONVERSIONS.keys())
    return tuple(found) if is_tested and is_own else ()


class _NotPlainError(Exception):
    """A test that is more than a call with plain data."""


def is_renaming(statement: ast.stmt, entry_point: str) -> bool:
    """Whether a statement gives the function that is tested another name."""
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and ast.unparse(statement.value) == entry_point
    )


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
                raise _NotPlainError
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
        raise _NotPlainError


def _is_idle(value: ast.expr) -> bool:
    """Whether an expression does nothing, such as a text or a `print` that is not called."""
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and hasattr(builtins, value.id))


def _imported_names(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    modules = (
        [statement.module or ""] if isinstance(statement, ast.ImportFrom) else [one.name for one in statement.names]
    )
    for module in modules:
        first = module.partition(".")[0]
        if first not in sys.stdlib_module_names or first in MODULES_WITH_EFFECTS:
            raise _NotPlainError
    for one in statement.names:
        if one.name == "*":
            raise _NotPlainError
        yield (one.asname or one.name).partition(".")[0]


def _claim(step: dict[str, Any]) -> tuple[ast.expr, Callable[[Any], TestFailure]]:
    """The call in a test, and what must hold for its result."""
    if "left" in step:
        expected = _constant(ast.parse(step["right"], mode="eval").body)
        call, convert = _conversion(ast.parse(step["left"], mode="eval").body)
        msgspec.json.encode(ValueEncoder(_refuse).encode(expected))  # raises for what no answer could send
        if convert is None:
            return call, lambda got: _difference(got, expected)
        return call, lambda got: _difference(_converted(got, convert), expected)
    (statement,) = ast.parse(step["source"]).body
    if not isinstance(statement, ast.Assert):
        raise _NotPlainError
    words = "" if statement.msg is None else str(_constant(statement.msg))[:MAX_EXCEPTION_CHARS]
    failure = TestFailure(f"AssertionError: {words}" if words else "AssertionError", "comparison")
    call, holds = _condition(statement.test)
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
        raise _NotPlainError
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
        raise _NotPlainError
    left, (operation,), (right,) = test.left, test.ops, test.comparators
    if isinstance(operation, ast.Is | ast.IsNot):
        single = _constant(right)
        if single is not None and not isinstance(single, bool):
            raise _NotPlainError
        is_same = isinstance(operation, ast.Is)
        return left, (lambda got: got is single) if is_same else (lambda got: got is not single)
    if isinstance(operation, ast.Lt) and isinstance(left, ast.Call) and len(left.args) == 1:
        distance = left.args[0]
        is_distance = isinstance(distance, ast.BinOp) and isinstance(distance.op, ast.Sub)
        if isinstance(left.func, ast.Name) and left.func.id == "abs" and not left.keywords and is_distance:
            expected, most = _number(distance.right), _number(right)  # type: ignore[attr-defined]
            return distance.left, lambda got: abs(_number_of(got) - expected) < most  # type: ignore[attr-defined]
    raise _NotPlainError


def _number(node: ast.expr) -> Any:
    return _number_of(_constant(node))


def _number_of(value: Any) -> Any:
    if type(value) not in (int, float) or (type(value) is int and abs(value) > MAX_CONSTANT):
        raise _NotPlainError
    return value


def _constant(node: ast.expr) -> Any:
    """The value of an expression of plain data: a literal, or short arithmetic."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        left, right = _constant(node.left), _constant(node.right)
        if not (type(left) is str and type(right) is str and isinstance(node.op, ast.Add)):
            left, right = _number_of(left), _number_of(right)
        if isinstance(node.op, ast.Pow) and not (type(right) is int and 0 <= right <= MAX_EXPONENT):
            raise _NotPlainError
        return ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.List | ast.Tuple):
        items = list(map(_constant, node.elts))
        return items if isinstance(node, ast.List) else tuple(items)
    inner, convert = _conversion(node)
    return ast.literal_eval(node) if convert is None else _converted(_constant(inner), convert)


def _plain_call(
    place: int, call: ast.expr, functions: dict[str, str], what_is_wrong: Callable[[Any], TestFailure]
) -> PlainCall:
    if not isinstance(call, ast.Call) or not is_entry_point(called := ast.unparse(call.func)):
        raise _NotPlainError
    encoder = ValueEncoder(_refuse)
    positional = [encoder.encode(_given(argument)) for argument in call.args]
    named = [[keyword.arg, encoder.encode(_given(keyword.value))] for keyword in call.keywords]
    if any(keyword.arg is None for keyword in call.keywords):
        raise _NotPlainError
    msgspec.json.encode([positional, named])  # raises ValueError for half characters, which could not be sent
    return PlainCall(place, functions.get(called, called), positional, named, what_is_wrong, called in functions)


def _given(argument: ast.expr) -> Any:
    """What an answer is given; raises for sets that may be read in another order there than where the tests stand."""
    value = _constant(argument)
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, set | frozenset) and not (
            len(one) <= MAX_ORDERED_ITEMS and all(type(item) is int and 0 <= item < SET_PLACES for item in one)
        ):
            raise _NotPlainError
        if isinstance(one, list | tuple | dict):
            waiting += [*one, *(one.values() if isinstance(one, dict) else ())]
    return value


def _refuse(*_: object) -> Any:
    raise _NotPlainError


def _difference(got: Any, expected: Any) -> TestFailure:
    return TestFailure() if got == expected else difference(got, expected)


async def answered_calls(
    host: GuestHost, code: str, calls: Sequence[PlainCall], limits: ResourceLimits
) -> tuple[ProcessResult, bytes]:
    """Have an answer do these calls in a process of its own: how that ended, and everything it sent.

    A later call may tell what an earlier one should return, as in tests of `encode` and `decode`. An answer that might find it
    in its process is sent each call when it has answered the one before.
    """
    wanted = sorted({call.expression for call in calls})
    every = [[wanted.index(call.expression), call.positional, call.named] for call in calls]
    first, *others = [every] if is_without_surroundings(code) else [[call] for call in every]
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        talk = _CallsAndReplies(ours, others)
        talk.send(["load", code, wanted, False, first, bool(others)])
        talk.expected_messages = 2 + len(first)
        # most answers are done before anything has to be read
        reading = asyncio.get_running_loop().call_later(0 if others else FIRST_READ_SECONDS, talk.begin_reading)
        try:
            outcome = await host.call([theirs], limits)
            talk.read()
        finally:
            reading.cancel()
            talk.end()
    return outcome, bytes(talk.received)


class _CallsAndReplies:
    """What an answer is sent, part after part, and what it sends."""

    def __init__(self, channel: socket.socket, parts: list[list[Any]]) -> None:
        self._channel = channel
        self._parts = parts
        """Calls that are to be sent once all before them are answered."""
        self._is_reading = self._is_writing = False
        self._unsent = bytearray()
        self._counted = self._messages = 0
        self.received = bytearray()
        self.expected_messages = 0
        """How many come before the next part is sent."""

    def send(self, message: list[Any]) -> None:
        body = msgspec.json.encode(message)
        self._unsent += struct.pack("I", len(body)) + body
        self._write()

    def _write(self) -> None:
        """Write as much as is taken now; an answer may reply before it reads."""
        try:
            del self._unsent[: self._channel.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()  # who has ended reads no more
        if bool(self._unsent) != self._is_writing:
            self._is_writing = not self._is_writing
            loop, number = asyncio.get_running_loop(), self._channel.fileno()
            if self._is_writing:
                loop.add_writer(number, self._write)
            else:
                loop.remove_writer(number)

    def begin_reading(self) -> None:
        self._is_reading = True
        asyncio.get_running_loop().add_reader(self._channel.fileno(), self.read)

    def read(self) -> None:
        """Read what is available, and let others have a turn; at most a bound is kept, and the writer never has to wait."""
        try:
            for _ in range(READS_AT_ONCE):
                piece = self._channel.recv(1 << 16)
                if not piece:
                    self.end()
                    return
                if len(self.received) <= MAX_PLAIN_REPLY_BYTES:
                    self.received.extend(piece)
        except BlockingIOError:
            pass
        except OSError:
            self.end()
            return
        if len(self.received) <= MAX_PLAIN_REPLY_BYTES:
            self._send_next()
        else:
            self._give_up()

    def _send_next(self) -> None:
        while self._parts and self._counted + 4 <= len(self.received):
            (length,) = struct.unpack_from("I", self.received, self._counted)
            if self._counted + 4 + length > len(self.received):
                return
            self._counted += 4 + length
            self._messages += 1
            if self._messages == self.expected_messages:
                part = self._parts.pop(0)
                self.expected_messages += len(part)
                self.send([part, bool(self._parts)])

    def _give_up(self) -> None:
        """Let an answer end that waits for more."""
        self._parts.clear()
        self._unsent.clear()
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        if self._is_reading:
            self._is_reading = False
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
        if self._is_writing:
            self._is_writing = False
            asyncio.get_running_loop().remove_writer(self._channel.fileno())
        self._unsent.clear()


def plain_report(
    calls: Sequence[PlainCall], entry_point: str, outcome: ProcessResult, received: bytes
) -> dict[str, Any] | None:
    """What the referee would have said of an answer that sent this; None if only the referee can decide."""
    report: dict[str, Any] = {"tests": [], "output": []}
    try:
        if len(received) > MAX_PLAIN_REPLY_BYTES or sum(map(received.count, (b"[", b"{"))) > MAX_REPLY_BRACKETS:
            raise _NotPlainError
        messages = _messages(received)
        first = next(messages, None)
        if first is None:
            return report | {"gone": ""}
        report["compiled"] = first[0] == "compiled"
        if not report["compiled"]:
            return report | {"error": str(first[1]), "line": first[2] if type(first[2]) is int else None}
        report["seconds"] = _seconds(first[1])
        loaded = next(messages, None)
        if loaded is None:
            return report | {"gone": ""}
        _show(report, loaded[2])
        if loaded[0] != "loaded":
            return report | {"raised": str(loaded[1]) or "nothing that has words"}
        if entry_point.isidentifier() and entry_point not in loaded[1]:
            return report | {"raised": f"the answer does not define {entry_point}"}
        if any(not _is_function(loaded[1].get(call.expression)) for call in calls):
            raise _NotPlainError
        for call in calls:
            reply = next(messages, None)
            if reply is None:
                return report | {"gone": "", "crossed": True}
            result, held, printed, narrowed, seconds = reply
            _show(report, printed)
            if narrowed:
                raise _NotPlainError
            wrong = _what_is_wrong(call, result, held)
            said = wrong.text[:MAX_EXCEPTION_CHARS]
            report["tests"].append([call.place, said, wrong.cause, _seconds(seconds), True, False])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, ArithmeticError, _NotPlainError):
        # one that was stopped at a limit is not run again
        return {"compiled": True, "seconds": 0.0, **report, "gone": "", "crossed": True} if outcome.limit else None
    return report


def _what_is_wrong(call: PlainCall, result: str, held: Any) -> TestFailure:
    """The problem with the result of a call; raises if the result is not plain data."""
    if result == "raised":
        kind, _, _, text, *_ = held["x"]
        raised = getattr(builtins, kind["X"], Exception)
        cause = class_failure_cause(raised)
        return TestFailure(str(text)[:MAX_EXCEPTION_CHARS] or "an exception without words", cause)
    if result != "ok" or not is_plain(held):
        raise _NotPlainError
    return call.what_is_wrong(ValueDecoder(_refuse).decode(held))


def _seconds(said: Any) -> float:
    """A time that an answer said; a log could not hold what is no number."""
    if not 0 <= (seconds := float(said)) <= MAX_SECONDS:
        raise _NotPlainError
    return seconds


def _is_function(held: Any) -> bool:
    """Whether a name of the answer is a function, or one wrapped by the standard library."""
    _, _, kind, is_standard, *_ = held["h"]
    return kind in FUNCTION_KINDS or is_standard is True


def _show(report: dict[str, Any], printed: Any) -> None:
    """Keep what the answer printed, up to a bound."""
    room = MAX_REFEREE_OUTPUT_CHARS - sum(map(len, report["output"]))
    if printed and room > 0:
        report["output"].append(str(printed)[:room])


def _messages(received: bytes) -> Iterator[list[Any]]:
    """What was sent, one by one; the last one may have been cut off by its sender's end."""
    place = 0
    while len(received) >= place + 4:
        (length,) = struct.unpack_from("I", received, place)
        body = received[place + 4 : place + 4 + length]
        if len(body) < length:
            return
        yield msgspec.json.decode(body, type=list)
        place += 4 + length
