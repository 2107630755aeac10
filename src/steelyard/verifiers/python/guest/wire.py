"""How the tests and the code under test talk: only plain data crosses.

A value arrives as what it says it is or not at all: there is no class, no method and no reference in it. What is not
plain stays where it is and is spoken of by a number. Only the standard library is used: this module is loaded by bare
interpreters on both sides.
"""

from __future__ import annotations

import ast
import builtins
import errno
import json
import os
import re
import struct
import sys
from _thread import _local, allocate_lock, get_ident
from abc import ABC, abstractmethod
from collections import deque
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from typing import Any

    from steelyard.records import TestFailureCause

MAX_WIRE_MESSAGE_BYTES = 16 << 20
"""Bytes of one message."""
MAX_EXCEPTION_CHARS, MAX_REPR_CHARS = 1000, 200
"""Characters of an exception's words, and of a value's."""
MAX_OPEN_FILES = 256
"""Descriptors that a process of an answer may have, as its sandbox sets it."""
REHEARSALS = 20
"""How often the interpreter must see code until it runs it in its fastest form."""
_LENGTH = struct.Struct("I")
_JSON_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False, ensure_ascii=False).encode
_JSON_DECODE = json.JSONDecoder().raw_decode
"""What `json.loads` does, without looking for blanks around the text: they cost more than a small message."""


class PeerGone(BaseException):
    """The other side is gone; `except Exception` must not catch this."""


class OversizedValueError(Exception):
    """A value too large or too deep to cross."""


class UnsendableValueError(TypeError):
    """A value that is not plain data, and that the other side cannot ask about either."""


class MessageSocket:
    """A socket that carries messages of bounded size."""

    def __init__(self, fd: int, *, lenient: bool = False) -> None:
        self._fd = fd
        self._lenient = lenient
        """Whether invalid text may be repaired: it is shown to people, and is not data for a test."""
        self._rest = b""
        self.lost = False
        """Whether the other side is gone, even if the code under test caught the exception."""

    def connect(self, fd: int) -> None:
        """Speak over another socket from now on."""
        self._fd = fd

    def send(self, message: Any) -> None:
        self.write(self.frame(message))

    def frame(self, message: Any) -> bytes:
        """A message as it is written; raises OversizedValueError."""
        # two halves of a character that stand side by side must not become one on the way, as they would if they were escaped
        body = _JSON_ENCODE(message).encode("utf-8", "replace" if self._lenient else "surrogatepass")
        if len(body) > MAX_WIRE_MESSAGE_BYTES:
            raise OversizedValueError(f"more than {MAX_WIRE_MESSAGE_BYTES >> 20} MB")
        return _LENGTH.pack(len(body)) + body

    def write(self, frame: bytes) -> None:
        try:
            while frame:
                frame = frame[os.write(self._fd, frame) :]
        except OSError:
            raise self.gone() from None

    def receive(self) -> list[Any]:
        (length,) = _LENGTH.unpack(self._take(4))
        if length > MAX_WIRE_MESSAGE_BYTES:
            raise self.gone()
        try:
            text = str(self._take(length), "utf-8", "surrogatepass")
            message, end = _JSON_DECODE(text)
        except (ValueError, RecursionError):
            raise self.gone() from None  # a side that sends something else counts as gone
        if end != len(text) or not isinstance(message, list) or not message:
            raise self.gone()
        return message

    def _take(self, length: int) -> bytes:
        while len(self._rest) < length:
            try:
                piece = os.read(self._fd, max(65536, length - len(self._rest)))
            except OSError:
                raise self.gone() from None
            if not piece:
                raise self.gone()
            self._rest += piece
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken

    def gone(self, why: str = "") -> PeerGone:
        """What to raise when the other side is gone."""
        self.lost = True
        return PeerGone(why)


class RpcPeer(MessageSocket, ABC):
    """One of two sides that can ask each other, also while being asked, and from several threads.

    Each message names the thread it belongs to, so that what a thread asks is answered to that thread.
    """

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        # not those of `threading`: merely having loaded it would make every fork of ours more expensive
        self._sending = allocate_lock()
        self._turn = allocate_lock()
        self._waiting: list[LockType] = []
        """One lock for each thread that waits for another to read."""
        self._is_read = False
        """Whether a thread reads for all that wait."""
        self._mail: dict[int, deque[list[Any]]] = {}
        self._current = _local()
        self._first_thread = get_ident()
        self._started_threads = 0

    @abstractmethod
    def perform(self, request: list[Any]) -> list[Any]:
        """The reply to a request: ["ok", value, ...] or ["raised", ...]."""

    @abstractmethod
    def refused(self, why: str) -> list[Any]:
        """The reply to a request whose result cannot cross."""

    @abstractmethod
    def new_thread(self, number: int) -> int:
        """The name of a thread of this side, the n-th that speaks; the first one is always 0."""

    def thread(self) -> int:
        """The name of the conversation that this thread is in."""
        name: int | None = getattr(self._current, "name", None)
        if name is None:
            if get_ident() == self._first_thread:
                name = 0
            else:
                with self._turn:
                    self._started_threads += 1
                    name = self.new_thread(self._started_threads)
            self._current.name = name
        return name

    def send(self, message: Any) -> None:
        frame = self.frame(message)
        with self._sending:
            self.write(frame)

    def ask(self, *request: Any) -> list[Any]:
        """What the other side says to a request."""
        thread = self.thread()
        self.send(["ask", thread, *request])
        while True:
            message = self.next_message(thread)
            if message[0] != "ask":
                return message[2:]
            self.answer(message)

    def answer(self, message: list[Any]) -> None:
        """Do what is asked, and send the result, or that it is too large to be sent."""
        own = self.thread()
        self._current.name = thread = message[1]
        try:
            reply = self.perform(message[2:])
            try:
                self.send(["reply", thread, *reply])
            except (OversizedValueError, ValueError, MemoryError) as error:
                self.send(["reply", thread, *self.refused(f"{type(error).__name__}: {error}")])
        finally:
            self._current.name = own

    def next_message(self, thread: int) -> list[Any]:
        """The next message for a thread; a waiting thread reads for all others too."""
        while True:
            with self._turn:
                if self._mail.get(thread):
                    return self._mail[thread].popleft()
                if self.lost:
                    raise self.gone()
                if not self._is_read:
                    self._is_read = True
                    break
                news = allocate_lock()
                news.acquire()
                self._waiting.append(news)
            news.acquire()
        try:
            while True:
                message = self.receive()
                if len(message) < 3 or type(message[1]) is not int:
                    raise self.gone()
                if message[1] == thread or self.takes(message[1]):
                    return message
                self.deliver(message)
        finally:
            with self._turn:
                self._is_read = False
                self.wake()

    def deliver(self, message: list[Any]) -> None:
        """Leave a message for the thread it belongs to."""
        with self._turn:
            self._mail.setdefault(message[1], deque()).append(message)
            self.wake()

    def wake(self) -> None:
        """Let every waiting thread look again."""
        for news in self._waiting:
            news.release()
        self._waiting.clear()

    @abstractmethod
    def takes(self, thread: int) -> bool:
        """Whether the reader acts for a thread of the other side that has no counterpart here."""


def load_random() -> None:
    """Load `random` without the handler that would seed it anew in every fork of ours; `own_random_in_forks` makes up for it.

    Seeded once here, it is the same chance in all forks of this process.
    """
    register, os.register_at_fork = os.register_at_fork, lambda **_: None
    try:
        __import__("random").seed(0)
    finally:
        os.register_at_fork = register


def own_random_in_forks() -> None:
    """In processes that an answer or its tests fork, chance is what it is anywhere."""
    os.register_at_fork(after_in_child=sys.modules["random"].seed)


def exception_text(error: BaseException) -> str:
    """The message of an exception, even a hostile one; a proxy carries the message of its original."""
    try:
        if "said" in error.__dict__:
            return str(error.__dict__["said"])
        text = str(error)[:MAX_EXCEPTION_CHARS]
    except PeerGone:
        raise
    except BaseException:
        text = "(an exception that cannot be printed)"
    text += shortage(error)
    name = type(error).__name__[:100]
    # half characters, which neither a file nor another program could take, are left out
    return (f"{name}: {text}" if text else name).encode("utf-8", "replace").decode("utf-8")


def shortage(error: BaseException) -> str:
    """The limit behind an error of the system, which may name only what came of it; empty if none is reached."""
    if type(error).__module__ != "builtins" or not isinstance(error, OSError):
        return ""
    try:
        os.close(os.open(".", os.O_RDONLY))
        room = os.statvfs(".")
    except Exception as reached:
        is_reached = getattr(reached, "errno", 0) == errno.EMFILE
        return f" (it has {MAX_OPEN_FILES} open files, which is the limit)" if is_reached else ""
    if not room.f_bavail:
        return f" (its folder is full: {room.f_blocks * room.f_frsize >> 20} MiB is the limit)"
    return f" (its folder is full: {room.f_files:,} files is the limit)" if room.f_files and not room.f_favail else ""


class TestFailure(NamedTuple):
    """What is wrong with a test, in words and as a cause; both are empty where nothing is."""

    text: str = ""
    cause: TestFailureCause = ""
    undefined: str = ""
    """An undefined name that the tests use."""


def death(status: int, used: Any) -> TestFailure:
    """How the process of a test ended."""
    code = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    if code == -24 or (code == -9 and seconds >= 1):  # SIGXCPU, and what follows it where it is ignored
        return TestFailure(f"stopped at the cpu limit after {seconds:.1f} s", "cpu")
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return TestFailure(f"died before the verdict, {how}", "death")


COMPUTATION_ERRORS = frozenset(
    {
        *(AttributeError, IndexError, KeyError, NameError, OverflowError, StopIteration, TypeError, UnboundLocalError),
        *(ValueError, ZeroDivisionError),
    }
)
"""What code raises because of what it computes. A missing module, file, thread or byte of memory raises something else."""


def failure_cause(error: BaseException, *, is_answers: bool) -> TestFailureCause:
    """How an exception fails a test: only one of the tests' own is a comparison that did not hold."""
    if not is_answers and (isinstance(error, AssertionError) or is_pytest_outcome(error)):
        return "comparison"
    return class_failure_cause(type(error))


def class_failure_cause(kind: type) -> TestFailureCause:
    """How an exception of the answer's fails a test."""
    if issubclass(kind, MemoryError):
        return "memory"
    return "computation" if kind in COMPUTATION_ERRORS else "exception"


CATCHING_TESTS_PATTERN = re.compile(
    r"\bexcept\b|suppress\(|AssertionError|\braises\b.*\n\s*(?:async )?def |TypeEqualityFunc|failureException"
)
"""What tests look like that may catch an assertion; most do not, and are not parsed for it."""


def may_catch(tests: str) -> bool:
    """Whether an assertion may fail in these tests without failing one of them."""
    if CATCHING_TESTS_PATTERN.search(tests) is None:
        return False
    try:
        tree = ast.parse(tests)
    except (SyntaxError, ValueError):
        return True
    return any(map(_may_catch_assertion, ast.walk(tree)))


def _may_catch_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        return node.type is None or _may_be_assertion(node.type)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        # `@raises(...)`, `@pytest.mark.xfail(raises=...)`
        return any("raises" in ast.dump(decorator) for decorator in node.decorator_list)
    name = getattr(node, "id", getattr(node, "attr", ""))
    if isinstance(node, ast.Call):
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        return called == "suppress" and any(map(_may_be_assertion, node.args))
    return name in ("AssertionError", "addTypeEqualityFunc", "failureException")


def _may_be_assertion(node: ast.expr) -> bool:
    """Whether a failed assertion may be one of these exceptions; of those that are not builtin nothing is known."""
    if isinstance(node, ast.Tuple):
        return any(map(_may_be_assertion, node.elts))
    kind = getattr(builtins, node.id, None) if isinstance(node, ast.Name) else None
    return not isinstance(kind, type) or issubclass(AssertionError, kind)


def catches_all(tests: str) -> bool:
    """Whether there is an `except` without a name in these tests."""
    return re.search(r"\bexcept\s*:", tests) is not None


def is_failed_assertion(error: object) -> bool:
    """Whether an exception says that an assertion of the tests failed."""
    if not isinstance(error, BaseException) or "said" in error.__dict__:
        return False
    return isinstance(error, AssertionError) or is_pytest_outcome(error)


def is_pytest_outcome(error: BaseException) -> bool:
    """Whether an exception is how pytest ends a test; it says of its classes that they are everyone's."""
    return any(above.__module__ == "_pytest.outcomes" for above in type(error).__mro__)


def raised_failure(error: BaseException) -> TestFailure:
    """What is wrong with a test that raised, where no line of the answer runs in this process."""
    is_answers = "said" in error.__dict__
    undefined = str(error.name) if type(error) is NameError and not is_answers else ""
    return TestFailure(exception_text(error), failure_cause(error, is_answers=is_answers), undefined)


def difference(got: object, wanted: object) -> TestFailure:
    """What is wrong where a value is not the expected one."""
    return TestFailure(f"got {short_repr(got)}, expected {short_repr(wanted)}", "comparison")


def short_repr(value: object) -> str:
    """A value in a readable form."""
    if type(value) in (str, bytes, list, tuple):
        # to write all of a long one would take longer than its test
        value = value[: MAX_REPR_CHARS + 1]  # type: ignore[index]
    try:
        text = repr(value)
    except PeerGone:
        raise
    except BaseException:
        text = f"({type(value).__name__} that cannot be printed)"
    return text if len(text) <= MAX_REPR_CHARS else text[:MAX_REPR_CHARS] + "..."
