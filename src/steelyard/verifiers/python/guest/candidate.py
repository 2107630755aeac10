"""The code under test: it is loaded here, called from outside, and knows nothing of any test.

Runs in a contained child of a zygote, on the standard library alone.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import gc
import importlib
import io
import math
import operator
import os
import socket
import sys
import time
import types
from _thread import start_new_thread

from steelyard.verifiers.python.guest.new_interpreter import fork_by_default, leave_recursion_depth
from steelyard.verifiers.python.guest.objects import FUNCTION_KINDS, ObjectPeer, is_plain_enum, is_plain_named_tuple
from steelyard.verifiers.python.guest.sharing import IS_CHANGED, IS_KEPT, KeptContainers, ReferrerSearch
from steelyard.verifiers.python.guest.values import (
    NARROWED_TYPES,
    FlatEncoder,
    ValueDecoder,
    ValueEncoder,
    is_plain,
    is_standard_module,
)
from steelyard.verifiers.python.guest.wire import (
    REHEARSALS,
    MessageSocket,
    OversizedValueError,
    PeerGone,
    exception_text,
    load_random,
    own_random_in_forks,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_PRINT_BUFFER_BYTES = 64 << 10
MAX_AWAIT_SECONDS = 5
"""Seconds for which one awaitable of an answer's may wait."""
DEPTH_OF_A_CALL, DEPTH_OF_A_PLAIN_CALL = 2, -1
"""Frames between what loads an answer and a function of it that is called, beyond those of tests in one process with it."""
A_FUNCTION = {"h": [0, 0, "function", True, []]}
"""A function as it is described to tests that only call it."""
ANSWER_MODULE_NAMES = ("answer", "solution", "candidate", "main")
"""What tests may call the module of the answer."""


class BoundedPrintBuffer(io.BytesIO):
    """Keeps what is printed, up to a bound."""

    def write(self, text: Any) -> int:
        if self.tell() < MAX_PRINT_BUFFER_BYTES:
            super().write(bytes(text)[: MAX_PRINT_BUFFER_BYTES - self.tell()])
            if self.tell() == MAX_PRINT_BUFFER_BYTES:
                os.write(1, self.getvalue())  # a program that prints forever may never hand it over
        return len(text)


class LentIterator:
    """An iterator of the tests, read one item at a time."""

    def __init__(self, peer: CandidatePeer, number: int) -> None:
        self._peer = peer
        self._number = number

    def __iter__(self) -> LentIterator:
        return self

    def __next__(self) -> Any:
        return self._peer.request("next", (), {}, self._number)


def call(function: Any, *positional: Any, **named: Any) -> Any:
    """Call it."""
    return function(*positional, **named)


def leave(thing: Any, error: BaseException | None) -> Any:
    """Leave a context, by an exception or without one."""
    return type(thing).__exit__(thing, type(error) if error else None, error, error.__traceback__ if error else None)


def awaited(thing: Any) -> Any:
    """The result of an awaitable, in the answer's own event loop."""
    asyncio = importlib.import_module("asyncio")  # heavy, and rarely needed
    if not _LOOPS:
        _LOOPS.append(asyncio.new_event_loop())
        asyncio.set_event_loop(_LOOPS[0])

    async def outcome() -> Any:
        # what waits for something that only the tests can do would wait for ever
        try:
            async with asyncio.timeout(MAX_AWAIT_SECONDS) as ours:
                return await thing
        except TimeoutError:
            if not ours.expired():
                raise
        raise OversizedValueError(f"waits for more than {MAX_AWAIT_SECONDS} s")

    return _LOOPS[0].run_until_complete(outcome())


_LOOPS: list[Any] = []
"""The one event loop in which everything is awaited, once there is one."""
COMPILE_ERRORS = (SyntaxError, ValueError, MemoryError, RecursionError)
REMOTE_OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": call,
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "iter": iter,
    "next": next,
    "reversed": reversed,
    "len": len,
    "length_hint": operator.length_hint,
    "truth": bool,
    "str": str,
    "repr": repr,
    "format": format,
    "hash": hash,
    "dir": dir,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
    "bytes": bytes,
    "fspath": os.fspath,
    "round": round,
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "divmod": divmod,
    "pow": pow,
    "isinstance": isinstance,
    "issubclass": issubclass,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "enter": lambda thing: type(thing).__enter__(thing),
    "exit": leave,
    "await": awaited,
    "aiter": lambda thing: type(thing).__aiter__(thing),
    "anext": lambda thing: type(thing).__anext__(thing),
    "aenter": lambda thing: type(thing).__aenter__(thing),
    "aexit": lambda thing, error: type(thing).__aexit__(thing, type(error) if error else None, error, None),
    "globals": lambda *names: {name: vars(sys.modules["answer"])[name] for name in names},
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "contains")},
    **{name: getattr(operator, name) for name in ("getitem", "setitem", "delitem", "neg", "pos", "abs", "invert")},
    **{
        prefix + name: getattr(operator, prefix + name)
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "lshift", "rshift", "pow")
        for prefix in ("", "i")
        if prefix + name != "pow"
    },
    **{name: getattr(operator, name) for name in ("and_", "or_", "xor", "iand", "ior", "ixor")},
}


def compiled_answer(code: str) -> types.CodeType:
    """The code of an answer, ready to run."""
    return compile(code, "answer.py", "exec", dont_inherit=True)


def is_compilable(code: str) -> bool:
    """Whether an answer compiles; nothing of it is run."""
    try:
        compiled_answer(code)
    except COMPILE_ERRORS:
        return False
    return True


def method_of(module: types.ModuleType, expression: str) -> Any:
    """What an expression such as `Solution().two_sum` stands for in an answer, as a function."""
    method = eval(expression, module.__dict__)
    if type(method) is types.FunctionType:
        return method
    return lambda *positional, **named: method(*positional, **named)


class CandidatePeer(ObjectPeer):
    """The answer's end of the connection."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._printed = BoundedPrintBuffer()
        self._stdout = io.TextIOWrapper(self._printed, "utf-8", "replace", write_through=True)
        self._callbacks: dict[int, Any] = {}
        self._homes: dict[int, int] = {}
        """The test functions that are represented by functions here."""
        self._shared = KeptContainers()
        self.search = ReferrerSearch()
        """Made anew before an answer is loaded that may keep what it is given."""
        self._called: dict[str, Any] = {}
        """What the tests want of the answer, by their expressions for it."""
        self._thrown: dict[int, tuple[BaseException, int]] = {}
        """Exceptions of the tests, by address."""

    def begin(self, fd: int) -> None:
        """Take over the connection, and what is printed."""
        self.connect(fd)
        sys.stdout = self._stdout

    def new_thread(self, number: int) -> int:
        return -number

    def takes(self, thread: int) -> bool:
        return thread > 0

    def note(self, printed: str, narrowed: bool, changed: list[tuple[Any, Any]]) -> None:
        """Nothing that comes with a reply of the tests concerns an answer."""

    def lend(self, thing: Any, encoder: ValueEncoder, depth: int) -> Any:
        if isinstance(thing, BaseException):
            if id(thing) in self._thrown:
                return {"home": self._thrown[id(thing)][1]}
            return self.lent_exception(thing, encoder, depth)
        if isinstance(thing, type):
            return self._lent_class(thing, encoder)
        if id(thing) in self._homes:
            return {"home": self._homes[id(thing)]}
        record = self.lent_record(thing, encoder, depth)
        if record is not None:
            return record
        if isinstance(thing, NARROWED_TYPES):
            return None
        if isinstance(thing, types.ModuleType) and is_standard_module(thing):
            return {"module": thing.__name__}
        return self._handle(thing)

    def _lent_class(self, kind: type, encoder: ValueEncoder) -> dict[str, Any]:
        if issubclass(kind, BaseException):
            return self.lent_exception_class(kind, encoder)
        if (issubclass(kind, tuple) and hasattr(kind, "_fields") and is_plain_named_tuple(kind)) or (
            issubclass(kind, enum.Enum) and is_plain_enum(kind)
        ):
            return {"kr": self.lent_record_class(kind, encoder)}
        return self._handle(kind)

    def _handle(self, thing: Any) -> dict[str, Any]:
        kind = type(thing)

        def describe() -> list[Any]:
            special = {name for above in kind.__mro__ if above is not object for name in above.__dict__}
            if getattr(kind, "__hash__", None) is None:
                special.add("unhashable")
            if isinstance(thing, type) and hasattr(thing, "__class_getitem__"):
                special.add("__getitem__")
            known = sorted(name for name in special if name.startswith("__") or name == "unhashable")
            # functions may be asked for more than objects
            is_function = kind in (types.FunctionType, types.BuiltinFunctionType, type)
            title = kind.__name__ if is_function or kind.__name__ not in FUNCTION_KINDS else "object"
            return [title, kind.__module__ != "answer", known]

        return {"h": [self.number(thing), *self.described(kind, describe)["k"]]}

    def borrow(self, mark: str, held: Any, decoder: ValueDecoder) -> Any:
        if mark == "h":
            return self._kept[held]
        if mark in ("K", "X", "kx"):
            return self.borrowed_exception_class(mark, held)
        if mark == "hx":
            error = self.borrowed_exception(held[1], decoder)
            self._thrown[id(error)] = (error, held[0])
            return error
        if mark in ("N", "E"):
            return self.borrowed_record(mark, held, decoder)
        if mark == "iterator":
            return LentIterator(self, held)
        if held[0] not in self._callbacks:
            self._callbacks[held[0]] = made = self._callback(held, decoder)
            self._homes[id(made)] = held[0]
        return self._callbacks[held[0]]

    def _callback(self, held: list[Any], decoder: ValueDecoder) -> Any:
        """A function that calls one of the tests', with its name, words and parameters."""
        number, about, signature, defaults = held

        def ask(*positional: Any, **named: Any) -> Any:
            return self.request("call", positional, named, number)

        function: Any = ask
        if signature is not None:
            parameters, arguments = signature
            scope = {"__ask": ask}
            exec(f"def function({parameters}):\n    return __ask({arguments})\n", scope)
            function = scope["function"]
            function.__defaults__ = tuple(decoder.decode(defaults[0])) or None
            function.__kwdefaults__ = decoder.decode(defaults[1]) or None
        for name, value in about:
            setattr(function, name, value)
        return function

    def sharing(self, values: list[Any], ours: list[Any]) -> int:
        is_changed = self._shared.take_changes()
        kept = self.search.kept(values, [*ours, values])
        self._shared.add(kept)
        return IS_KEPT * bool(kept) | IS_CHANGED * is_changed

    def perform(self, request: list[Any]) -> list[Any]:
        deed, given, by_name, *released = request
        if released:
            self.release(released[0])
        return self.serve(REMOTE_OPERATIONS[deed], given, by_name)

    def printed(self) -> str:
        if not self._printed.tell():
            return ""
        text = self._printed.getvalue().decode("utf-8", "replace")
        self._printed.seek(0)
        self._printed.truncate()
        return text

    def load(self, code: str, names: list[str], *, is_plain: bool = False) -> dict[str, Any] | None:
        """Run the answer, and return the objects under these names; None if there is nothing to call.

        Of functions that are only called with plain data nothing more is told.
        """
        began = time.perf_counter()
        try:
            compiled = compiled_answer(code)
        except COMPILE_ERRORS as error:
            self.send(["not compiled", exception_text(error), getattr(error, "lineno", None)])
            return None
        self.send(["compiled", time.perf_counter() - began])
        module = types.ModuleType("answer")
        for name in ANSWER_MODULE_NAMES:
            sys.modules[name] = module
        leave_recursion_depth(DEPTH_OF_A_PLAIN_CALL if is_plain else DEPTH_OF_A_CALL)
        try:
            exec(compiled, module.__dict__)
            called = {name: method_of(module, name) for name in names if not name.isidentifier()}
        except PeerGone:
            raise
        except BaseException as error:
            self.send(["raised", exception_text(error), self.printed()])
            return None
        known = {name: module.__dict__[name] for name in names if name in module.__dict__} | called
        self._called = known
        found = {}
        for name in known:
            if is_plain and type(known[name]) is types.FunctionType:
                found[name] = A_FUNCTION
            else:
                # a constant that is too large to cross is missed only by a test that asks for it
                with contextlib.suppress(OversizedValueError):
                    found[name] = ValueEncoder(self.lend).encode(known[name])
        printed = self.printed()
        while True:
            too_large = [name for name in known if name not in found]
            with contextlib.suppress(OversizedValueError):
                self.send(["loaded", found, printed, too_large])
                return found
            del found[max(found, key=lambda name: len(str(found[name])))]

    def do_all_calls(self, names: list[str], calls: list[Any], *, has_more: bool) -> None:
        """Call functions of the answer one after the other, until one returns more than plain data."""
        if not all(name in self._called for name in names):
            return
        functions = [self._called[name] for name in names]
        while self.do_calls(functions, calls) and has_more:
            calls, has_more = self.receive()

    def do_calls(self, functions: list[Any], calls: list[Any]) -> bool:
        """Do these calls; whether all of them returned plain data."""
        for place, given, by_name in calls:
            decoder = ValueDecoder(self.borrow)
            positional = [decoder.decode(value) for value in given]
            named = {name: decoder.decode(value) for name, value in by_name}
            began = time.perf_counter()
            try:
                outcome, value = "ok", functions[place](*positional, **named)
            except BaseException as error:  # every exception is the answer's result
                outcome, value = "raised", error
            seconds = time.perf_counter() - began
            encoder = FlatEncoder(self.lend)
            try:
                held = encoder.encode(value)
                narrowed = encoder.narrowed or (outcome == "ok" and not is_plain(held))
            except Exception:
                narrowed = True
            printed = self.printed()
            try:
                self.send([outcome, None if narrowed else held, printed, narrowed, seconds])
            except (OversizedValueError, ValueError, MemoryError):
                narrowed = True
                self.send([outcome, None, printed, narrowed, seconds])
            if narrowed:
                return False
        return True

    def work(self, *, threads: bool) -> None:
        """Do what is asked until no more requests come; with threads, each of the tests' has one here."""
        if threads:
            self.always_describes = True
            with self._turn:
                self._is_read = True
            importlib.import_module("threading")  # it takes the thread that loads it for the main one
            start_new_thread(self._distribute, ())
        while True:
            self.answer(self.next_message(0))

    def _distribute(self) -> None:
        """Read every message, and start a thread for each new one of the tests'."""
        known = {0}
        try:
            while True:
                message = self.receive()
                if message[1] > 0 and message[1] not in known:
                    known.add(message[1])
                    start_new_thread(self._work_for, (message[1],))
                self.deliver(message)
        except PeerGone:
            with self._turn:
                self.wake()

    def _work_for(self, thread: int) -> None:
        self._current.name = thread
        with contextlib.suppress(PeerGone):
            while True:
                self.answer(self.next_message(thread))


PRELOADED_ANSWER_MODULES = ("bisect", "copy", "functools", "heapq", "itertools", "math", "re", "string", "typing")
"""What answers usually import: loaded once, so that no fork has to."""
for _module in PRELOADED_ANSWER_MODULES:
    __import__(_module)
load_random()
fork_by_default()

_PREPARED = CandidatePeer(-1)
"""Made once: what a fork need not do costs it nothing."""


def rehearse() -> None:
    """Load and call a small answer a few times: what the interpreter learns from that, every fork knows."""
    tests, answer = (side.detach() for side in socket.socketpair())
    asking, candidate = MessageSocket(tests), CandidatePeer(answer)
    for number in range(REHEARSALS):
        asking.send(["load", "def double(items):\n    return [2 * item for item in items]\n", ["double"], False])
        candidate.load(*candidate.receive()[1:3])
        asking.send(["ask", 0, "call", [{"h": number}, [1, 2]], []])
        candidate.answer(candidate.next_message(0))
        candidate.do_all_calls(["double"], [[0, [[1, 2]], []]], has_more=False)
        asking.receive()
    for name in ANSWER_MODULE_NAMES:
        del sys.modules[name]
    os.close(tests)
    os.close(answer)


def main(fds: list[int]) -> None:
    """Load the answer that comes first, then do what is asked until no more requests come."""
    own_random_in_forks()
    gc.enable()  # an answer may make circles, as anywhere else
    candidate = _PREPARED
    candidate.begin(fds[0])
    try:
        job = candidate.receive()
        if job[0] == "compile":
            candidate.send([is_compilable(code) for code in job[1]])
            os._exit(0)
        _, code, names, threads, *calls = job
        if not calls:
            candidate.search = ReferrerSearch()
        if candidate.load(code, names, is_plain=bool(calls)) is not None:
            if calls:
                candidate.do_all_calls(names, calls[0], has_more=calls[1])
            else:
                candidate.work(threads=threads)
    except PeerGone:
        pass
    os._exit(0)
