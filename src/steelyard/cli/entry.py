"""The installed command: refuses systems that cannot run it before anything is imported that only other systems have."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

UNSUPPORTED_SYSTEM = (
    "steelyard: the command needs Linux or macOS; on Windows install it in WSL (Windows Subsystem for Linux), "
    "where all of it works"
)
USAGE_EXIT_CODE, INTERRUPTED_EXIT_CODE = 2, 130


def main(system: str = os.name) -> int:
    """Run one command; returns its exit code."""
    if system != "posix":
        print(UNSUPPORTED_SYSTEM, file=sys.stderr)
        return USAGE_EXIT_CODE
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave_at_once)
    from steelyard.cli.main import main as command

    code = command()
    # all is written: an interrupt while Python takes itself apart changes nothing
    signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    return code


def _leave_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    """End during an import, where Python would show a traceback, or lose the interrupt in a callback and continue."""
    os.write(2, b"\ninterrupted\n")
    os._exit(INTERRUPTED_EXIT_CODE)
