"""The command line: it only translates."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from typing import TYPE_CHECKING

from steelyard.cli.commands import gate, look, outcomes, run, setup, tiers
from steelyard.cli.console import print_to_stderr
from steelyard.cli.parser import apply_configured_defaults, command_parser, parse_options
from steelyard.errors import ExitCode, SteelyardError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.cli.options import Command

_ROOMS = (run, look, gate, outcomes, setup, tiers)
_ORDER = (
    "run resume verify merge list show report compare gate plan bless passk repairs synth query validate suites tiers judge "
    "view models init doctor"
)
COMMANDS: Mapping[str, Command] = {
    name: command for name in _ORDER.split() for room in _ROOMS if (command := room.COMMANDS.get(name)) is not None
}
"""All commands, in the order in which `--help` lists them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:
        # a caller may have closed it; what is printed then goes nowhere
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  it stays open as long as we do
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a terminal that knows few letters must not end a run
        sys.stdout.reconfigure(errors="backslashreplace")
    commands = command_parser(COMMANDS)
    # a script that stops us politely gets the same care as a person with Ctrl-C; a shell makes what it starts in the
    # background deaf to Ctrl-C, and then to that as well
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        if {"-h", "--help"}.isdisjoint(arguments):
            apply_configured_defaults(commands, arguments)
        options = parse_options(commands, arguments)
        if options.command is None:
            commands.print_help()
            return ExitCode.OK
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # the reader of our output has seen enough; nothing more may be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print_to_stderr(f"steelyard: the output could not be written: {error.strerror}")
        return ExitCode.CANNOT_TELL
    except KeyboardInterrupt as interrupt:
        folder = getattr(interrupt, "folder", None)
        print_to_stderr(
            "\ninterrupted" + (f"; what arrived is stored, continue with: steelyard resume {folder}" if folder else "")
        )
        return ExitCode.INTERRUPTED
    except SteelyardError as error:
        print_to_stderr(f"steelyard: {error}")
        return error.exit_code
