"""A Python answer as a program: run as an interpreter runs a script, from its first line to the end of its last thread.

Runs in a contained child of a zygote, on the standard library alone.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import importlib.machinery
import io
import json
import os
import random
import site
import struct
import sys
import types

from steelyard.verifiers.python.guest.new_interpreter import fork_by_default, leave_recursion_depth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PRELOADED_PROGRAM_MODULES = ("bisect", "copy", "functools", "heapq", "itertools", "math", "re", "string", "typing")
"""What programs usually import: loaded once, so that no fork has to."""
for _module in PRELOADED_PROGRAM_MODULES:
    __import__(_module)
for _builtins in (site.setquit, site.setcopyright, site.sethelper):
    _builtins()  # `exit` and the others, which an interpreter that imports no site lacks
fork_by_default()
PROGRAM_FILE = "answer.py"
INTERRUPTED_STATUS, FLUSH_FAILED_STATUS = 130, 120
"""Exit codes of an interpreter that was interrupted, and of one that could not write its last output."""


def main(fds: list[int]) -> None:
    """Compile the answer that comes over the socket, report the result, and run it with all our descriptors closed."""
    random.seed(0)
    gc.enable()  # an answer may make circles, as anywhere else
    (channel,) = fds
    (source,) = json.loads(_exactly(channel, *struct.unpack("I", _exactly(channel, 4))))
    content = source.encode("utf-8", "surrogatepass")
    path = os.path.join(os.getcwd(), PROGRAM_FILE)
    with open(path, "wb") as file:
        file.write(content)
    try:
        code = compile(content, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        _tell(channel, ["not compiled", f"{type(error).__name__}: {error}", getattr(error, "lineno", None)])
        return
    _tell(channel, ["compiled"])
    os.close(channel)  # from here on only its output and its exit code count
    _open_streams()
    sys.argv = [PROGRAM_FILE]
    sys.path.insert(0, os.path.dirname(path))
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules["__main__"].__dict__.update(
        __builtins__=builtins,
        __cached__=None,
        __file__=path,
        __loader__=importlib.machinery.SourceFileLoader("__main__", path),
    )

    def run() -> None:
        leave_recursion_depth()
        exec(code, sys.modules["__main__"].__dict__)

    status = 1
    try:
        status = _finish(_status_of(run))
    finally:
        os._exit(status)


def _exactly(channel: int, length: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < length:
        piece = os.read(channel, length - len(pieces))
        if not piece:
            raise EOFError("the program did not come")
        pieces += piece
    return bytes(pieces)


def _tell(channel: int, message: list[str | int | None]) -> None:
    body = json.dumps(message).encode()
    os.write(channel, struct.pack("I", len(body)) + body)


def _open_streams() -> None:
    """Text streams on the descriptors 0, 1 and 2, as a new interpreter opens them."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        raw = io.FileIO(fd, "r" if fd == 0 else "w", closefd=False)
        raw.name = f"<{name}>"
        errors = "backslashreplace" if name == "stderr" else "surrogateescape"
        buffered = io.BufferedReader(raw) if fd == 0 else io.BufferedWriter(raw)
        stream = io.TextIOWrapper(buffered, "utf-8", errors, "\n", line_buffering=name == "stderr")
        stream.mode = "r" if fd == 0 else "w"  # type: ignore[misc]  # as an interpreter sets it
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _status_of(run: Callable[[], object]) -> int:
    """Run something, and report what it raises as an interpreter does; the exit code that this makes."""
    try:
        run()
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        for _ in range(2):  # the frames that are ours
            trace = trace.tb_next if trace and trace.tb_next else trace
        shown = error.with_traceback(trace)
        try:
            sys.excepthook(type(shown), shown, trace)
        except BaseException:
            sys.__excepthook__(type(shown), shown, trace)
        return INTERRUPTED_STATUS if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _finish(status: int) -> int:
    """What an interpreter does at its end, in its order; the final exit code.

    It does not tear down the zygote's modules: that is not observable, and would take longer than most programs.
    """
    threading = sys.modules.get("threading")
    if threading is not None:
        _status_of(threading._shutdown)
    atexit._run_exitfuncs()
    flushed = _flush(sys.stdout) and _flush(sys.stderr)
    sys.modules.pop("__main__", None)
    gc.collect()  # objects may have something to say at their end
    flushed = _flush(sys.stdout) and flushed
    for thing in gc.get_objects():
        if type(thing) in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom):
            _flush(thing)  # an interpreter that ends closes every file
    return status if flushed else FLUSH_FAILED_STATUS


def _flush(stream: Any) -> bool:
    """Write what is still buffered; whether it could be written."""
    try:
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()
    except BaseException:
        return False
    return True
