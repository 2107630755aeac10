"""How a command ends on an unexpected error: one line, a file with the traceback, and its own exit code."""

from __future__ import annotations

import errno
import os
import resource
import traceback
from collections.abc import Iterator
from pathlib import Path

from steelyard.errors import ExitCode, SteelyardError

_RESOURCE_ADVICE = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "raise the limit with ulimit -f",
    errno.EIO: "check the disk",
    errno.EROFS: "make it writable",
    errno.ESTALE: "check the network disk",
    errno.EMFILE: "raise the limit with ulimit -n",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "make memory available",
    errno.EAGAIN: "raise the limit with ulimit -u",
}
"""What helps where the machine, and not this program, is in trouble."""


def conclude_unexpected(error: BaseException) -> tuple[ExitCode, str]:
    """The exit code and the sentence for an exception that came to the top."""
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, SteelyardError):
            return leaf.exit_code, str(leaf)
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        return ExitCode.INTERRUPTED, "interrupted"
    for leaf in leaves:
        if trouble := _machine_trouble(leaf):
            return ExitCode.CANNOT_TELL, trouble
    first = leaves[0]
    where = _place(first)
    try:
        stored = f"report it with {_stored_traceback(error)}"
    except OSError as problem:
        stored = f"its traceback could not be stored: {problem.strerror}"
    what = f"{type(first).__name__}: {first}".strip(": ").splitlines()[0][:300]
    return ExitCode.INTERNAL_ERROR, f"an internal error{where}: {what}; {stored}"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _machine_trouble(error: BaseException) -> str:
    """What this machine lacks, where that explains the error; empty if it does not."""
    if isinstance(error, OSError) and error.errno in _RESOURCE_ADVICE:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}; {_RESOURCE_ADVICE[error.errno]}, then try again"
    try:
        Path.cwd()
    except OSError:
        return "the current folder no longer exists; change to another one, then try again"
    from steelyard.sandbox.process_room import SMALL_OPEN_FILES_LIMIT, process_shortage

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < SMALL_OPEN_FILES_LIMIT and isinstance(error, OSError | EOFError | RuntimeError):
        return f"{files} open files are too few; raise the limit with ulimit -n, then try again"
    if isinstance(error, MemoryError):
        return "out of memory; make memory available, then try again"
    # Python and libraries raise various exceptions if no thread can be started
    return process_shortage()


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


def _stored_traceback(error: BaseException) -> str:
    """The file that the traceback was written to; only its owner can read it."""
    import tempfile
    from importlib.metadata import version

    number, path = tempfile.mkstemp(prefix="steelyard-error-", suffix=".txt")
    with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"steelyard {version('steelyard')}\n")
        file.writelines(traceback.format_exception(error))
    return path
