"""An answer alone in its process: it is loaded here, called from outside with plain data, and knows nothing of any test.

Runs in a contained child of a zygote, on the standard library alone.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import os
import socket
import sys
import time
import types

from steelyard.verifiers.python.guest.new_interpreter import fork_by_default, leave_recursion_depth
from steelyard.verifiers.python.guest.values import NotPlainError, decoded, encoded
from steelyard.verifiers.python.guest.wire import (
    ANSWER_FILE,
    ANSWER_MODULE_NAMES,
    MessageSocket,
    PeerGone,
    exception_text,
    flush_and_end,
    load_random,
    open_output,
    own_random_in_forks,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH_OF_A_CALL = -1
"""Frames between what loads an answer and a function of it that is called, beyond those of tests in one process with it."""
COMPILE_ERRORS = (SyntaxError, ValueError, MemoryError, RecursionError)
PRELOADED_ANSWER_MODULES = ("bisect", "copy", "functools", "heapq", "itertools", "math", "re", "string", "typing")
"""What answers usually import: loaded once, so that no fork has to."""
FUNCTION_KINDS = (types.FunctionType, types.BuiltinFunctionType, functools.partial, type(functools.cache(len)))
"""What can be called, and no more is known of it."""
MAX_SHARED = 50
"""Lists and the like of which is known whether they are still what they were."""
REHEARSALS = 20
"""How often the interpreter must see code until it runs it in its fastest form."""


class AnswerServer:
    """Does with an answer what it is asked, one request at a time."""

    def __init__(self, fd: int) -> None:
        self._peer = MessageSocket(fd)
        self._names: dict[str, Any] = {}
        self._called: dict[str, Any] = {}
        """What was called, by the expressions for it."""
        self._shared: list[tuple[Any, Any]] = []
        """What was given or returned, as it was then: in one process tests would see what becomes of it."""

    def serve(self) -> None:
        """Load the answer that comes first, then do what is asked until no more requests come."""
        kind, code, *names = self._peer.receive()
        if kind == "compile":
            self._peer.send([is_compilable(each) for each in code])
        elif self.load(code, *names):
            while True:
                request, *about = self._peer.receive()
                self._peer.send(self.call(*about) if request == "call" else self.value_of(*about))

    def load(self, code: str, names: list[str]) -> bool:
        """Run the answer and say which of these names it lacks; whether it ran to its end."""
        began = time.perf_counter()
        try:
            compiled = compiled_answer(code)
        except COMPILE_ERRORS as error:
            self._peer.send(["not compiled", exception_text(error), getattr(error, "lineno", None)])
            return False
        self._peer.send(["compiled", time.perf_counter() - began])
        module = types.ModuleType("answer")
        self._names = module.__dict__
        for name in ANSWER_MODULE_NAMES:
            sys.modules[name] = module
        leave_recursion_depth(DEPTH_OF_A_CALL)
        try:
            exec(compiled, self._names)
        except PeerGone:
            raise
        except BaseException as error:
            self._peer.send(["raised", exception_text(error)])
            return False
        self._peer.send(["loaded", [name for name in names if name not in self._names]])
        return True

    def call(self, expression: str, given: list[Any], by_name: list[Any], looks_again: bool) -> list[Any]:
        """What a call returned or raised, as plain data; with `looks_again` also whether it changed what it was given, and what it printed."""
        positional = [decoded(value) for value in given]
        named = {name: decoded(value) for name, value in by_name}
        began = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()) if looks_again else contextlib.nullcontext() as printed:
            try:
                function = self._called.get(expression)
                if function is None:
                    function = self._called[expression] = eval(expression, self._names)
                said: list[Any] = ["ok", function(*positional, **named)]
            except PeerGone:
                raise
            except BaseException as error:  # every exception is the answer's result
                said = raised(error)
        seconds = time.perf_counter() - began
        try:
            returned = said[1]
            if said[0] == "ok":
                said[1] = encoded(returned)
            if looks_again:
                self._shared += zip(
                    (*positional, *named.values()), (*given, *(held for _, held in by_name)), strict=True
                )
                changed = any(encoded(value) != before for value, before in self._shared)
                if said[0] == "ok":
                    self._shared.append((returned, said[1]))
                self._shared = [pair for pair in self._shared if isinstance(pair[1], list | dict)][-MAX_SHARED:]
                said += [changed, printed.getvalue()]  # type: ignore[union-attr]
        except NotPlainError as error:
            return ["odd", f"it returned {error}"]
        return [*said, seconds]

    def value_of(self, name: str) -> list[Any]:
        """What a name of the answer stands for: a function, or a value that nobody can change."""
        if name not in self._names:
            return ["odd", "it makes its names itself"] if "__getattr__" in self._names else ["missing"]
        value = self._names[name]
        if isinstance(value, FUNCTION_KINDS):
            return ["function", str(getattr(value, "__name__", ""))]
        try:
            hash(value)
            return ["value", encoded(value)]
        except (NotPlainError, TypeError):
            return ["odd", f"its {name} is neither a function nor plain data that cannot change"]


def raised(error: BaseException) -> list[Any]:
    """An exception as plain data: its text, and for one of Python's own classes its name and arguments."""
    kind = type(error)
    if kind.__module__ != "builtins":
        return ["raised", exception_text(error), "Exception", None]
    reduced: Any = error.__reduce__()
    _, parts, *more = reduced  # an OSError has its file there, and not among its arguments
    try:
        arguments = None if more else [encoded(part) for part in parts]
    except NotPlainError:
        arguments = None
    return ["raised", exception_text(error), kind.__name__, arguments]


def compiled_answer(code: str) -> types.CodeType:
    """The code of an answer, ready to run."""
    return compile(code, ANSWER_FILE, "exec", dont_inherit=True)


def is_compilable(code: str) -> bool:
    """Whether an answer compiles; nothing of it is run."""
    try:
        compiled_answer(code)
    except COMPILE_ERRORS:
        return False
    return True


for _module in PRELOADED_ANSWER_MODULES:
    __import__(_module)
load_random()
fork_by_default()


def rehearse() -> None:
    """Load and call a small answer a few times: what the interpreter learns from that, every fork knows."""
    tests, answer = (side.detach() for side in socket.socketpair())
    asking, server = MessageSocket(tests), AnswerServer(answer)
    for _ in range(REHEARSALS):
        server.load("def double(items):\n    return [2 * item for item in items]\n", ["double"])
        asking.send(server.call("double", [[1, 2]], [], False))
        server._peer.receive()
        asking.receive()
        asking.receive()
    for name in ANSWER_MODULE_NAMES:
        del sys.modules[name]
    os.close(tests)
    os.close(answer)


def main(fds: list[int]) -> None:
    """Serve over the first socket."""
    own_random_in_forks()
    gc.enable()  # an answer may make circles, as anywhere else
    printed = open_output()
    try:
        AnswerServer(fds[0]).serve()
    except PeerGone:
        pass
    finally:
        flush_and_end(printed)
