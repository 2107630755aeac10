"""The installed command: says so where this system cannot run it, before anything is imported that only others have."""

from __future__ import annotations

import os
import sys

UNSUPPORTED_SYSTEM = (
    "steelyard: the command needs Linux or macOS; on Windows install it in WSL (Windows Subsystem for Linux), "
    "where all of it works"
)
USAGE_EXIT_CODE = 2


def main(system: str = os.name) -> int:
    """Run one command; returns its exit code."""
    if system != "posix":
        print(UNSUPPORTED_SYSTEM, file=sys.stderr)
        return USAGE_EXIT_CODE
    from steelyard.cli.main import main as command

    return command()
