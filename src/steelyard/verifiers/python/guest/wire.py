"""How a guest talks: messages over a socket, and the words for what went wrong.

Only the standard library is used: this module is loaded by bare interpreters.
"""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import sys
from typing import NamedTuple, NoReturn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from steelyard.records import TestFailureCause

MAX_WIRE_MESSAGE_BYTES = 16 << 20
"""Bytes of one message."""
MAX_EXCEPTION_CHARS, MAX_REPR_CHARS = 1000, 200
"""Characters of an exception's words, and of a value's."""
MAX_OPEN_FILES = 256
"""Descriptors that a process of an answer may have, as its sandbox sets it."""
ANSWER_MODULE_NAMES = ("answer", "solution", "candidate", "main")
"""What tests may call the module of the answer."""
ANSWER_FILE = "answer.py"
TESTS_FILE = "test_answer.py"
"""The file name in the code of tests; there is no such file."""
_LENGTH = struct.Struct("I")
_JSON_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False, ensure_ascii=False).encode
_JSON_DECODE = json.JSONDecoder().raw_decode
"""What `json.loads` does, without looking for blanks around the text: they cost more than a small message."""


class PeerGone(BaseException):
    """The other side is gone; `except Exception` must not catch this."""


class MessageSocket:
    """A socket that carries messages of bounded size."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""

    def send(self, message: Any) -> None:
        """Send a message; raises ValueError for one that is too large."""
        # two halves of a character that stand side by side must not become one on the way, as they would if they were escaped
        body = _JSON_ENCODE(message).encode("utf-8", "surrogatepass")
        if len(body) > MAX_WIRE_MESSAGE_BYTES:
            raise ValueError(f"more than {MAX_WIRE_MESSAGE_BYTES >> 20} MB")
        frame = _LENGTH.pack(len(body)) + body
        try:
            while frame:
                frame = frame[os.write(self._fd, frame) :]
        except OSError:
            raise PeerGone from None

    def receive(self) -> list[Any]:
        """The next message; a side that sends something else counts as gone."""
        (length,) = _LENGTH.unpack(self._take(4))
        if length > MAX_WIRE_MESSAGE_BYTES:
            raise PeerGone
        try:
            message, _ = _JSON_DECODE(str(self._take(length), "utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            raise PeerGone from None
        if not isinstance(message, list) or not message:
            raise PeerGone
        return message

    def _take(self, length: int) -> bytes:
        while len(self._rest) < length:
            try:
                piece = os.read(self._fd, max(65536, length - len(self._rest)))
            except OSError:
                raise PeerGone from None
            if not piece:
                raise PeerGone
            self._rest += piece
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken


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


def open_output() -> io.TextIOWrapper:
    """Let everything that is printed go to the first stream, which is kept up to a bound."""
    printed = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8", "replace")
    sys.stdout = sys.stderr = printed
    return printed


def flush_and_end(printed: io.TextIOWrapper, *, end: Callable[[int], NoReturn] = os._exit) -> None:
    """End without what an answer has left to be done at the end, but with what it has printed."""
    try:
        printed.flush()
    finally:
        end(0)


class TestFailure(NamedTuple):
    """What is wrong with a test, in words and as a cause; both are empty where nothing is."""

    text: str = ""
    cause: TestFailureCause = ""
    undefined: str = ""
    """A name that the tests use and nobody defines, or a package that they import and nobody has."""


def raised_failure(error: BaseException) -> TestFailure:
    """What is wrong with a test that raised: only an assertion of the tests' own is a comparison that did not hold."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = os.path.basename(trace.tb_frame.f_code.co_filename) if trace is not None else ""
    is_undefined = type(error) in (NameError, ModuleNotFoundError) and raised_in == TESTS_FILE
    return TestFailure(
        exception_text(error),
        failure_cause(error, is_answers=raised_in == ANSWER_FILE),
        str(error.name).partition(".")[0] if is_undefined else "",  # type: ignore[attr-defined]
    )


COMPUTATION_ERRORS = frozenset(
    {
        *(AttributeError, IndexError, KeyError, NameError, OverflowError, StopIteration, TypeError, UnboundLocalError),
        *(ValueError, ZeroDivisionError),
    }
)
"""What code raises because of what it computes. A missing module, file, thread or byte of memory raises something else."""


def failure_cause(error: BaseException, *, is_answers: bool) -> TestFailureCause:
    """How an exception fails a test."""
    is_outcome = any(above.__module__ == "_pytest.outcomes" for above in type(error).__mro__)
    if not is_answers and (isinstance(error, AssertionError) or is_outcome):
        return "comparison"
    return class_failure_cause(type(error))


def class_failure_cause(kind: type) -> TestFailureCause:
    """How an exception of the answer's fails a test."""
    if issubclass(kind, MemoryError):
        return "memory"
    return "computation" if kind in COMPUTATION_ERRORS else "exception"


def exception_text(error: BaseException) -> str:
    """The message of an exception, even a hostile one."""
    try:
        text = str(error)[:MAX_EXCEPTION_CHARS]
    except BaseException:
        text = "(an exception that cannot be printed)"
    text += shortage(error)
    name = type(error).__name__[:100]
    return without_half_characters(f"{name}: {text}" if text else name)


def without_half_characters(text: str) -> str:
    """A text that a file and other programs can take."""
    return text.encode("utf-8", "replace").decode("utf-8")


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


def difference(got: object, wanted: object) -> TestFailure:
    """What is wrong where a value is not the expected one."""
    return TestFailure(f"got {short_repr(got)}, expected {short_repr(wanted)}", "comparison")


def short_repr(value: object) -> str:
    """A value in a readable form."""
    if type(value) in (str, bytes, list, tuple):
        # to write all of a long one would take longer than its test
        value = value[: MAX_REPR_CHARS + 1]  # type: ignore[index]
    try:
        text = without_half_characters(repr(value))
    except BaseException:
        text = f"({type(value).__name__} that cannot be printed)"
    return text if len(text) <= MAX_REPR_CHARS else text[:MAX_REPR_CHARS] + "..."
