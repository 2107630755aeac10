"""The installed command: refuses systems that cannot run it before anything is imported that only other systems have."""

from __future__ import annotations

import os
import signal
import sys
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


def main(system: str = os.name) -> int:
    """Run one command; returns its exit code."""
    if system != "posix":
        print(UNSUPPORTED_SYSTEM, file=sys.stderr)
        return USAGE_EXIT_CODE
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave_at_once)
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
