"""The command that shows what steelyard does without a key: demo."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from steelyard.cli.commands.look import view
from steelyard.cli.commands.run import COMMANDS as RUN_COMMANDS
from steelyard.cli.console import print_to_stderr, settings_and_run_options
from steelyard.cli.options import Command, add_isolation_options, add_settings_option, positive_integer
from steelyard.errors import ExitCode


def demo(options: argparse.Namespace) -> int:
    """Verify recorded replies of two small open models to Python and Rust cases, on this machine and without a key."""
    from steelyard.evalsets.starter import write_demo

    print_to_stderr(f"writes eval sets and recorded replies to {options.folder}, and runs them; no model is asked")
    code = _run(options, *write_demo("python-basics", Path(options.folder)))
    if code != ExitCode.OK:
        return code
    if reason := _rust_problem(options):
        print(f"\nThe Rust half of the demo is left out: {reason}; steelyard doctor says how to get a toolchain.")
    else:
        print()
        code = _run(options, *write_demo("rust-basics", Path(options.folder)))
    print(NOW_LOOK, end="", flush=True)
    if _is_watched() and not options.no_browser:
        view(argparse.Namespace(path=[], port=0, no_browser=False, config=options.config))
    return code


def _run(options: argparse.Namespace, evalset: Path, recording: Path) -> int:
    """What `steelyard run` does with these files, after the command itself has been shown."""
    words = [str(evalset), "--models", f"replay:{recording}", "--pass-k", "1,5,10"]
    words += ["--limit", str(options.limit)] if options.limit else []
    print(f"$ steelyard run {' '.join(words)}", flush=True)
    parser = argparse.ArgumentParser(prog="steelyard run", allow_abbrev=False)
    RUN_COMMANDS["run"].add_options(parser)
    return RUN_COMMANDS["run"].function(parser.parse_args(words, argparse.Namespace(**vars(options))))


def _rust_problem(options: argparse.Namespace) -> str:
    """Why Rust cannot be verified here; empty when the reference of a case passes."""
    from steelyard.engine.preflight.references import check_references
    from steelyard.evalsets import load
    from steelyard.evalsets.starter import DEMO_FOLDER

    _, means = settings_and_run_options(options)
    checked = check_references(load([DEMO_FOLDER / "rust-basics.toml"]).cases[:1], means)
    return "" if checked.proved and not checked.problems else "; ".join(str(problem) for problem in checked.problems)


def _is_watched() -> bool:
    """Whether a person sits before a terminal, and would see a browser."""
    from steelyard.viewer.app import has_screen

    streams = (sys.stdin, sys.stdout)
    return all(stream is not None and stream.isatty() for stream in streams) and "CI" not in os.environ and has_screen()


NOW_LOOK = """
Now look
  steelyard view                   every case, attempt, test and reason in a browser

Now try your own
  steelyard init                   writes an eval set that runs with the models you have, and says how
  steelyard doctor                 what is enforced on generated code, and which toolchains were found
"""


def _demo_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "folder",
        nargs="?",
        default="steelyard-demo",
        metavar="DIR",
        help="where to write the eval sets and recorded replies (default: steelyard-demo)",
    )
    sub.add_argument("--limit", type=positive_integer, metavar="N", help="only the first N cases of each eval set")
    sub.add_argument("--no-browser", action="store_true", help="do not show the runs in a browser at the end")
    add_isolation_options(sub)
    add_settings_option(sub)


DEMO_EXAMPLE = """\
The replies were recorded; compiling them and running their tests is done here, in the sandbox. Rust is left out where no
toolchain compiles a known right answer. At the end the viewer opens, on a terminal with a display.

example:
  steelyard demo"""

COMMANDS = {"demo": Command(demo, _demo_options, DEMO_EXAMPLE)}
