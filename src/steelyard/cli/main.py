"""The command line: its parser, the other places where options can be set, and one call for each command."""

from __future__ import annotations

import _thread
import argparse
import contextlib
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from steelyard.cli.commands import completion, demo, gate, label, look, outcomes, run, setup, tiers
from steelyard.cli.console import print_to_stderr
from steelyard.cli.limits import check_memory_limits
from steelyard.cli.options import Command, add_help_options
from steelyard.cli.streams import guarded_output
from steelyard.errors import ExitCode, SteelyardError

if TYPE_CHECKING:
    from steelyard.plugins.built_in import PluginKind


TRUE_WORDS = ("1", "true", "yes", "on")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help that shows an option's value once, after its last name, in every version of Python."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # noqa: ARG002  argparse always gives it
        from steelyard.cli.console import filled

        return filled(text, width)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class _OneLineErrorParser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the whole usage."""

    def error(self, message: str) -> NoReturn:
        from steelyard.errors import InputError

        raise InputError(f"{message}; see {self.prog} --help")


class _VersionAction(argparse.Action):
    """Prints the version; the module that knows it is imported only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"steelyard {version('steelyard')}")
        parser.exit()


def command_parser(commands: Mapping[str, Command], asked: str = "") -> argparse.ArgumentParser:
    """The parser of all commands; each is explained by its docstring. If one is asked for, there are no others."""
    parser = _OneLineErrorParser(
        prog="steelyard",
        description="Measure how good the output of language models is, and whether a difference between two of them is real.",
        epilog="Every option can also be set in the environment (--pass-k as STEELYARD_PASS_K) and in steelyard.toml "
        "(pass_k). Exit codes: 0 fine, 1 a gate failed, 2 wrong usage or unreadable input, 3 cannot tell because data "
        "are missing, 70 an internal error, 130 interrupted and resumable.",
    )
    parser.set_defaults(command=None)
    parser.add_argument("--version", action=_VersionAction, nargs=0, help="show the version and exit")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, command in commands.items() if asked not in commands else [(asked, commands[asked])]:
        about = command.function.__doc__ or ""
        sub = subparsers.add_parser(
            name, help=about, description=about, epilog=command.epilog, formatter_class=_HelpFormatter, add_help=False
        )
        sub.set_defaults(command=command.function)
        add_help_options(sub, command.common)
        command.add_options(sub)
    return parser


def parse_options(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """The options as given; a mistyped command or option is an error that names the one that was meant."""
    commands = [sub.prog.split()[-1] for sub in _subparsers(parser)]
    if arguments and not arguments[0].startswith("-") and arguments[0] not in commands:
        from difflib import get_close_matches

        from steelyard.errors import InputError
        from steelyard.text import short_quote

        close = get_close_matches(arguments[0][:200], commands, n=1)
        way_out = f'did you mean "{close[0]}"?' if close else "see steelyard --help"
        raise InputError(f"unknown command {short_quote(arguments[0])}; {way_out}")
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        from difflib import get_close_matches

        from steelyard.errors import InputError

        # the dashes that all have in common make no option similar to another
        names = {
            name.lstrip("-"): name
            for sub in _subparsers(parser)
            if sub.prog.split()[-1] == arguments[0]
            for action in sub._actions
            for name in action.option_strings
        }
        close = get_close_matches(unknown[0].partition("=")[0].lstrip("-"), names, n=1)
        way_out = f'did you mean "{names[close[0]]}"?' if close else f"see steelyard {arguments[0]} --help"
        raise InputError(f'unknown argument "{unknown[0]}"; {way_out}')
    return options


def _check_arguments(arguments: list[str]) -> None:
    """Raises an InputError if an argument could not come from a shell, and can name no file."""
    for argument in arguments:
        try:
            is_text = b"\0" not in os.fsencode(argument)
        except UnicodeEncodeError:
            is_text = False
        if not is_text:
            from steelyard.errors import InputError

            raise InputError(f"the argument {argument!r} has a character that is not allowed in file names; remove it")


def apply_configured_defaults(parser: argparse.ArgumentParser, arguments: list[str]) -> None:
    """Take defaults from the environment, then from the settings file."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config")
    given = early.parse_known_args(arguments)[0].config if _takes_settings(parser, arguments) else None
    config = given or os.environ.get("STEELYARD_CONFIG")
    in_file: dict[str, Any] = {}
    if config or Path("steelyard.toml").is_file():
        from steelyard import settings
        from steelyard.secret_texts import Environment

        in_file = settings.load(Path(config) if config else None, Environment())[0].options
    if in_file.pop("allow_code", None):
        # otherwise a file could allow itself
        print_to_stderr(f"warning: {config or 'steelyard.toml'}: allow_code is for the command line alone")
    known = {action.dest for sub in _subparsers(parser) for action in sub._actions}
    if set(in_file) - known:
        # a setting may be one of another command
        known = {action.dest for sub in _subparsers(command_parser(COMMANDS)) for action in sub._actions}
    for name in sorted(set(in_file) - known):
        from steelyard.errors import did_you_mean

        print_to_stderr(
            f'warning: {config or "steelyard.toml"}: unknown setting "{name}" ({did_you_mean(name, known)})'
        )
    for sub in _subparsers(parser):
        for action in sub._actions:  # argparse has no public way to its own options
            if not action.option_strings or action.dest == "help":
                continue
            given = os.environ.get(f"STEELYARD_{action.dest.upper()}", in_file.get(action.dest))
            if given is not None:
                action.default = _as_default(action, given)


def _takes_settings(parser: argparse.ArgumentParser, arguments: list[str]) -> bool:
    """Whether --config of this command is the settings file."""
    chosen = [sub for sub in _subparsers(parser) if arguments and sub.prog.split()[-1] == arguments[0]]
    return all(any(action.dest == "config" for action in sub._actions) for sub in chosen)


def _as_default(action: argparse.Action, given: Any) -> Any:
    if isinstance(action, argparse._StoreTrueAction):
        return str(given).lower() in TRUE_WORDS
    if isinstance(action, argparse._AppendAction):
        return _ReplaceableDefault([str(item) for item in given] if isinstance(given, list) else [str(given)])
    # argparse converts a default that is text as it converts an argument
    return ",".join(map(str, given)) if isinstance(given, list) else str(given)


class _ReplaceableDefault(list[str]):
    """What an option that may be repeated is when it is not given: argparse adds to a copy of the default, and that is empty."""

    def __copy__(self) -> list[str]:
        return []


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    return [
        sub
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for sub in action.choices.values()
    ]


_ROOMS = (run, look, gate, outcomes, setup, tiers, label, demo)
_ORDER = (
    "run resume verify merge list show report compare gate plan bless import passk repairs synth query validate suites tiers judge pairs label "
    "view models init demo allow doctor"
)
_COMMANDS = {
    name: command for name in _ORDER.split() for room in _ROOMS if (command := room.COMMANDS.get(name)) is not None
}
COMMANDS: Mapping[str, Command] = {**_COMMANDS, "completion": completion.completion_command(_COMMANDS)}
"""All commands, in the order in which `--help` lists them."""
LOOKING_COMMANDS = frozenset(("list", "show", "report", "query", "view", "compare", "gate", "merge", "suites", "allow"))
"""Commands that only read files."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code, whether or not anybody reads its output."""
    with guarded_output() as output:
        ended: SystemExit | None = None
        code: int = ExitCode.OK
        try:
            arguments = list(sys.argv[1:] if argv is None else argv)
            with _imports_limited(arguments):
                code = _main(arguments)
        except SystemExit as exit_:
            # how argparse ends --help
            ended = exit_
        except OSError as error:
            # not even a pipe could be opened
            code = _conclude_unexpected(error)
        output.flush()
        if output.error is None:
            if ended is not None:
                raise ended
            return code
        print_to_stderr(f"steelyard: the output could not be written: {output.error.strerror}")
        return code or ExitCode.CANNOT_TELL


def _imports_limited(arguments: list[str]) -> contextlib.AbstractContextManager[None]:
    """No plug-in is imported because a file names it: before the user has agreed to it, and where a command only looks, ever."""
    from steelyard.plugins import plugin_imports_limited

    command = arguments[0] if arguments else ""

    def may_import(kind: PluginKind, name: str) -> bool:
        # what reads or writes a format is asked for by the name of a file, and the doctor looks at all there is
        if command == "doctor" or kind in ("evalsets", "outcomes", "reports"):
            return True
        if kind == "pools" and name in _given_backends(arguments):
            return True
        if command in LOOKING_COMMANDS and kind != "pools":
            return False
        from steelyard.engine.preflight.named_code import is_plugin_allowed

        return _is_all_code_allowed(arguments) or is_plugin_allowed(kind, name)

    return plugin_imports_limited(may_import)


def _given_backends(arguments: list[str]) -> list[str]:
    """The backends that the user names, as opposed to a settings file."""
    spaced = [value for option, value in itertools.pairwise(arguments) if option == "--backend"]
    joined = [word.removeprefix("--backend=") for word in arguments if word.startswith("--backend=")]
    return [*spaced, *joined, os.environ.get("STEELYARD_BACKEND", "")]


def _is_all_code_allowed(arguments: list[str]) -> bool:
    return "--allow-code" in arguments or os.environ.get("STEELYARD_ALLOW_CODE", "").lower() in TRUE_WORDS


def _main(arguments: list[str]) -> int:
    # a script that stops us politely gets the same care as a person with Ctrl-C; a shell makes what it starts in the
    # background deaf to Ctrl-C, and then to that as well
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        # a terminal that was closed; nohup makes us deaf to it
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGINT))
    with _noted_signals() as is_stopped, lost_interrupts_repeated():
        return _concluded(arguments, is_stopped)


STOP_SIGNALS = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


@contextmanager
def _noted_signals() -> Iterator[Callable[[], bool]]:
    """Whether a signal asked us to stop, even if the interrupt was swallowed."""
    noted, write = os.pipe()
    os.set_blocking(noted, False)
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def is_stopped() -> bool:
        try:
            return not STOP_SIGNALS.isdisjoint(os.read(noted, 1000))
        except BlockingIOError:
            return False

    try:
        yield is_stopped
    finally:
        signal.set_wakeup_fd(before)
        os.close(noted)
        os.close(write)


REPEAT_SECONDS = 0.01
"""After this long the callback that lost an interrupt has ended."""


@contextmanager
def lost_interrupts_repeated() -> Iterator[None]:
    """Interrupt again where Python prints an interrupt and continues, as in callbacks of imports and of the garbage collector."""
    before, main_thread = sys.unraisablehook, _thread.get_ident()

    def interrupt_again() -> None:
        time.sleep(REPEAT_SECONDS)
        signal.pthread_kill(main_thread, signal.SIGINT)

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(interrupt_again, ())
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _concluded(arguments: list[str], is_stopped: Callable[[], bool]) -> int:
    """The exit code of a command, however it ends."""
    try:
        check_memory_limits()
        _check_arguments(arguments)
        commands = command_parser(COMMANDS, next(iter(arguments), ""))
        if {"-h", "--help", "--help-all"}.isdisjoint(arguments):
            apply_configured_defaults(commands, arguments)
        options = parse_options(commands, arguments)
        if options.command is None:
            commands.print_help()
            return ExitCode.OK
        code: int = options.command(options)
        return code
    except KeyboardInterrupt as interrupt:
        folder = getattr(interrupt, "folder", None)
        print_to_stderr(f"\ninterrupted{_way_on(folder) if folder else ''}")
        return ExitCode.INTERRUPTED
    except SteelyardError as error:
        print_to_stderr(f"steelyard: {error}")
        return error.exit_code
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001  a user sees a sentence, and the traceback is in a file
        if is_stopped():
            # libraries in C turn an interrupt into their own error
            print_to_stderr("\ninterrupted")
            return ExitCode.INTERRUPTED
        return _conclude_unexpected(error)


def _way_on(folder: Path) -> str:
    """The shell command that resumes an interrupted run."""
    import shlex

    return f"; what arrived is stored, continue with: steelyard resume {shlex.quote(str(folder))}"


def _conclude_unexpected(error: BaseException) -> int:
    """Report an unexpected error in one sentence; returns the exit code."""
    from steelyard.cli.last_resort import conclude_unexpected

    code, sentence = conclude_unexpected(error)
    print_to_stderr(f"steelyard: {sentence}")
    return code
