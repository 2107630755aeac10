"""The code under test: it is loaded here, called from outside, and knows nothing of any test.

Runs in a contained child of a zygote, on the standard library alone.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import gc
import io
import operator
import os
import random
import sys
import time
import types

from steelyard.verifiers.python.wire import (
    OversizedValueError,
    PeerGone,
    RpcPeer,
    decoded_value,
    encoded_value,
    exception_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

PRELOADED_ANSWER_MODULES = ("bisect", "copy", "functools", "heapq", "itertools", "math", "re", "string", "typing")
"""What answers usually import: loaded once, so that no fork has to."""
for _module in PRELOADED_ANSWER_MODULES:
    __import__(_module)
MAX_PRINT_BUFFER_BYTES = 64 << 10
MUTABLE_TYPES = (list, dict, set, bytearray, collections.deque)


class BoundedPrintBuffer(io.BytesIO):
    """Keeps what is printed, up to a bound."""

    def write(self, text: Any) -> int:
        if self.tell() < MAX_PRINT_BUFFER_BYTES:
            super().write(bytes(text)[: MAX_PRINT_BUFFER_BYTES - self.tell()])
            if self.tell() == MAX_PRINT_BUFFER_BYTES:
                os.write(1, self.getvalue())  # who prints without end may never come to hand it over
        return len(text)


def call(function: Any, *positional: Any, **named: Any) -> Any:
    """Call it."""
    return function(*positional, **named)


REMOTE_OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": call,
    "getattr": getattr,
    "setattr": setattr,
    "iter": iter,
    "next": next,
    "len": len,
    "truth": bool,
    "str": str,
    "repr": repr,
    "isinstance": isinstance,
    "enter": lambda thing: type(thing).__enter__(thing),
    "exit": lambda thing: type(thing).__exit__(thing, None, None, None),
    **{name: getattr(operator, name) for name in ("eq", "lt", "le", "gt", "ge", "getitem", "setitem", "delitem")},
    **{
        name: getattr(operator, name) for name in ("contains", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
    },
    **{name: getattr(operator, name) for name in ("neg", "abs", "and_", "or_", "xor", "invert", "matmul")},
}


class CandidatePeer(RpcPeer):
    """The answer's end of the connection."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._things: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._printed = BoundedPrintBuffer()
        sys.stdout = io.TextIOWrapper(self._printed, "utf-8", "replace", write_through=True)

    def encode(self, value: Any) -> Any:
        return encoded_value(value, self._handle)

    def decode(self, value: Any) -> Any:
        return decoded_value(value, self._thing)

    def _handle(self, thing: Any) -> Any:
        if isinstance(thing, types.ModuleType):
            return {"module": thing.__name__}
        number = self._numbers.get(id(thing))
        if number is None:
            number = self._numbers[id(thing)] = len(self._things)
            self._things.append(thing)
        if isinstance(thing, type) and issubclass(thing, BaseException):
            return {"exception": self._lineage(thing)}
        return {"handle": [number, getattr(thing, "__name__", type(thing).__name__)]}

    def _lineage(self, kind: type) -> list[Any]:
        """The exceptions above one, nearest first: those that everyone knows by name, the answer's own by number too."""
        found: list[Any] = []
        for above in kind.__mro__:
            if getattr(builtins, above.__name__, None) is above:
                found.append([None, above.__name__])
                break
            if issubclass(above, BaseException):
                if id(above) not in self._numbers:
                    self._numbers[id(above)] = len(self._things)
                    self._things.append(above)
                found.append([self._numbers[id(above)], above.__name__])
        return found

    def _thing(self, mark: str, held: Any) -> Any:
        if mark == "handle":
            return self._things[held[0]]

        def callback(*positional: Any, **named: Any) -> Any:
            reply = self.ask("call", held, self.encode(list(positional)), self.encode(named))
            if reply[0] != "ok":
                raise RuntimeError(reply[1])
            return self.decode(reply[1])

        return callback

    def perform(self, request: list[Any]) -> list[Any]:
        deed, positional, *named = request
        try:
            given = self.decode(positional)
            by_name = dict(self.decode(named[0])) if named else {}
            value = REMOTE_OPERATIONS[deed](*given, **by_name)
            changed = [*self._changed(enumerate(positional), given), *self._changed(named[0] if named else (), by_name)]
            return ["ok", self.encode(value), self._taken(), *changed]
        except PeerGone:
            raise
        except BaseException as error:  # whatever an answer raises is what it has to say
            return ["raised", *self._said(error), self._taken()]

    def _changed(self, before: Iterable[Any], arguments: Any) -> Iterator[list[Any]]:
        """The arguments that a call changed in place: the caller sees the change, as it would in the same process."""
        for place, sent in before:
            value = arguments[place]
            if type(value) in MUTABLE_TYPES and (now := self.encode(value)) != sent:
                yield [place, now]

    def refused(self, why: str) -> list[Any]:
        return ["raised", {"exception": [[None, "ValueError"]]}, why, {"t": []}, self._taken()]

    def _said(self, error: BaseException) -> list[Any]:
        kind = type(error)
        try:
            arguments = self.encode(error.args)
        except BaseException:
            arguments = {"t": []}
        return [self._handle(kind), exception_text(error), arguments]

    def _taken(self) -> str:
        if not self._printed.tell():
            return ""
        text = self._printed.getvalue().decode("utf-8", "replace")
        self._printed.seek(0)
        self._printed.truncate()
        return text

    def load(self, code: str, names: list[str]) -> dict[str, Any] | None:
        """Run the answer, and tell what it gave these names to; None when there is nothing to be called."""
        began = time.perf_counter()
        try:
            compiled = compile(code, "answer.py", "exec")
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            self.send(["not compiled", exception_text(error), getattr(error, "lineno", None)])
            return None
        self.send(["compiled", time.perf_counter() - began])
        module = types.ModuleType("answer")
        sys.modules["answer"] = module
        try:
            exec(compiled, module.__dict__)
        except PeerGone:
            raise
        except BaseException as error:
            self.send(["raised", exception_text(error), self._taken()])
            return None
        found = {}
        for name in names:
            if name in module.__dict__:
                # a constant that is too large to cross is missed only by a test that asks for it
                with contextlib.suppress(OversizedValueError):
                    found[name] = self.encode(module.__dict__[name])
        self.send(["loaded", found, self._taken()])
        return found


def main(fds: list[int]) -> None:
    """Load the answer that comes first, then do what is asked until no more requests come."""
    random.seed(0)
    gc.enable()  # an answer may make circles, as anywhere else
    candidate = CandidatePeer(fds[0])
    try:
        job = candidate.receive()
        if job[0] == "program":
            run_program(candidate, job[1], job[2])
        elif candidate.load(job[1], job[2]) is not None:
            while True:
                candidate.answer(candidate.receive()[1:])
    except PeerGone:
        pass
    os._exit(0)


def run_program(candidate: CandidatePeer, code: str, stdin: str) -> None:
    """Run the answer as a program of its own, with this on its standard input."""
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", "replace", line_buffering=False)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape")), "utf-8")
    try:
        compiled = compile(code, "answer.py", "exec")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        candidate.send(["not compiled", exception_text(error), getattr(error, "lineno", None)])
        return
    candidate.send(["compiled", 0])
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    wrong = ""
    try:
        exec(compiled, module.__dict__)
    except SystemExit as error:
        wrong = f"exit code {error.code}" if error.code else ""
    except BaseException as error:
        wrong = exception_text(error)
    try:
        sys.stdout.flush()
    except BaseException as error:
        wrong = wrong or exception_text(error)
    candidate.send(["ran", wrong])
