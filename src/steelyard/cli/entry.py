"""The installed command: refuses systems that cannot run it before anything is imported that only other systems have."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import NoReturn

UNSUPPORTED_SYSTEM = (
    "steelyard: the command needs Linux or macOS; on Windows install it in WSL (Windows Subsystem for Linux), "
    "where all of it works"
)
USAGE_EXIT_CODE, INTERRUPTED_EXIT_CODE = 2, 130
THREADS_VARIABLE = "OPENBLAS_NUM_THREADS"
THREADS_VARIABLES = (THREADS_VARIABLE, "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""What says how many threads numpy's matrix library starts."""
COLLECTED_OBJECTS = 10_000
"""New objects after which garbage is collected; at Python's 700 a short command spends a twentieth of its time on it."""

M_MMAP_THRESHOLD = -3
"""The number of an option of `mallopt` in glibc."""
LARGE_BLOCK_BYTES = 1 << 17
"""From this size on a block of memory is returned to the system when it is freed, as glibc does at first."""


def main(system: str = os.name) -> int:
    """Run one command; returns its exit code."""
    if system != "posix":
        print(UNSUPPORTED_SYSTEM, file=sys.stderr)
        return USAGE_EXIT_CODE
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave_at_once)
    gc.set_threshold(COLLECTED_OBJECTS)
    _return_large_blocks()
    if os.environ.keys().isdisjoint(THREADS_VARIABLES) and "numpy" not in sys.modules:
        sys.meta_path.insert(0, _SingleThreadedNumpy())
    from steelyard.cli.main import main as command

    code = command()
    # all is written: an interrupt while Python takes itself apart changes nothing
    signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    return code


def _leave_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    """End during an import, where Python would show a traceback, or lose the interrupt in a callback and continue."""
    os.write(2, b"\ninterrupted\n")
    os._exit(INTERRUPTED_EXIT_CODE)


def _return_large_blocks() -> None:
    """Let large blocks of memory go back to the system whenever they are freed; does nothing where the C library is not glibc.

    By default glibc keeps blocks of a size of which it has freed one, up to 32 MB: columns that grow then leave holes between them.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


class _SingleThreadedNumpy:
    """Imports numpy with one thread: we multiply no large matrices, and idle threads spin for longer than a short command takes.

    The variable that says so is set for the time of the import alone, so that no process we start inherits it.
    """

    def find_spec(self, name: str, path: object = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """The module as Python finds it, for numpy itself; None for all others."""
        if name != "numpy" or path is not None:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_with_one_thread(module: ModuleType) -> None:
            # not in os.environ, of which environments of other processes are made
            os.putenv(THREADS_VARIABLE, "1")
            try:
                load(module)
            finally:
                os.unsetenv(THREADS_VARIABLE)

        spec.loader.exec_module = load_with_one_thread  # type: ignore[method-assign]
        return spec
