"""The commands around a run: validate, suites, models, init, allow, doctor."""

from __future__ import annotations

import argparse
from pathlib import Path

from steelyard.cli import arguments
from steelyard.cli.console import (
    is_color_wanted,
    print_report,
    print_to_stderr,
    settings_and_run_options,
    terminal_width,
    warn,
)
from steelyard.cli.options import (
    Command,
    add_allow_code_option,
    add_base_url_option,
    add_default_check_option,
    add_format_option,
    add_sandbox_options,
    add_settings_option,
)
from steelyard.cli.streams import user_output_on_stderr
from steelyard.errors import ExitCode


def validate(options: argparse.Namespace) -> int:
    """Read eval sets, report all their problems, and prove that references pass and counterexamples fail."""
    from steelyard.engine.preflight.references import check_references, check_settings_problems
    from steelyard.errors import InputError
    from steelyard.evalsets.loader import EvalSetError
    from steelyard.text import counted

    try:
        with user_output_on_stderr():
            loaded = arguments.load_eval_sets(options.evalset, options)
    except InputError as error:
        problems = [*error.problems]
        if isinstance(error, EvalSetError):
            problems += check_settings_problems(error.cases)
        for problem in problems:
            print_report(f"{'' if problem.fatal else 'warning: '}{problem}\n")
        print_to_stderr(f"steelyard: {counted(sum(problem.fatal for problem in problems), 'problem')}")
        return ExitCode.BAD_INPUT
    _, means = settings_and_run_options(options)
    # these are reported even if the proofs fail
    for problem in loaded.problems:
        print_report(f"{'' if problem.fatal else 'warning: '}{problem}\n")
    with user_output_on_stderr():
        checked = check_references(loaded.cases, means, paths=options.evalset)
    for problem in checked.problems:
        print_report(f"{'' if problem.fatal else 'warning: '}{problem}\n")
    read = f"{counted(len(loaded.cases), 'case')} in {counted(len(loaded.files), 'file')}"
    print(f"{read}; {counted(checked.proved, 'answer')} proved; {counted(checked.wrong, 'problem')}")
    return checked.exit_code


def _validate_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("evalset", nargs="+", metavar="EVALSET", help="a .toml or .jsonl file, or a folder of them")
    add_default_check_option(sub)
    add_sandbox_options(sub)
    add_allow_code_option(sub)
    add_settings_option(sub)


def suites(options: argparse.Namespace) -> int:
    """List the included suites, show the cases of some, write them as JSONL, or score recorded classifications."""
    from steelyard.engine.results.report_files import write_cases
    from steelyard.reports import lists
    from steelyard.text import counted

    if options.results or options.cases:
        return _recorded_suites(options)
    loaded = arguments.load_eval_sets(options.evalset or ["suite:all"], options)
    warn(loaded.problems)
    if options.report:
        write_cases(options.report, loaded.cases)
        print(f"wrote {options.report}: {counted(len(loaded.cases), 'case')}")
    elif options.evalset:
        print(lists.cases_text(loaded.cases, color=is_color_wanted()), end="")
    else:
        print(lists.suites_text(loaded.cases, color=is_color_wanted()), end="")
    return ExitCode.OK


def _recorded_suites(options: argparse.Namespace) -> int:
    """Score the classifications in files of results."""
    from steelyard.engine.results.recorded_suites import score_recorded_suites
    from steelyard.errors import InputError
    from steelyard.reports import lists
    from steelyard.reports.tables import json_report

    if not options.results or options.evalset or options.report:
        raise InputError("--cases needs --results FILE..., and cannot be combined with an eval set or -o")
    loaded = arguments.load_eval_sets(options.cases, options) if options.cases else None
    warn(loaded.problems if loaded else ())
    found = score_recorded_suites(options.results, loaded.cases if loaded else None)
    if options.format == "json":
        print(json_report({"runs": found}), end="")
    else:
        print(lists.recorded_suites_text(found, width=terminal_width(), color=is_color_wanted()), end="")
    return ExitCode.OK


def _suites_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "evalset", nargs="*", metavar="EVALSET", help="suite:NAME, or any eval set (default: a list of suites)"
    )
    sub.add_argument("-o", "--report", metavar="FILE", help="write the cases instead, one JSON object per line")
    recorded = sub.add_argument_group("recorded results")
    recorded.add_argument(
        "--results", nargs="+", metavar="FILE", help="score the classifications in these files of results, in JSONL"
    )
    recorded.add_argument(
        "--cases", nargs="+", metavar="EVALSET", help="judge the responses again by these cases, and list what differs"
    )
    add_format_option(recorded, "text", "json")
    add_default_check_option(sub)


SUITES_EXAMPLES = """\
examples:
  steelyard suites suite:injection
  steelyard suites suite:long_context@32000,7 -o long.jsonl
  steelyard suites --results runs/1/results.jsonl --cases suites/full_suite.jsonl

suite:long_context is generated, with about 8,000 characters per prompt and seed 0; @LENGTH or @LENGTH,SEED changes
that."""


def models(options: argparse.Namespace) -> int:
    """List what the configured endpoints offer, with prices per million tokens."""
    from steelyard.engine.preflight.connect import list_models, models_exit_code
    from steelyard.engine.preflight.named_code import provider_code, require_allowed_code
    from steelyard.reports import lists
    from steelyard.settings import DEFAULT_SETTINGS_PATH

    settings, means = settings_and_run_options(options)
    require_allowed_code(provider_code(settings), means, options.config or DEFAULT_SETTINGS_PATH)
    found = list_models(means, options.base_url or "")
    print(lists.available_models_text(found, width=terminal_width(), color=is_color_wanted()), end="")
    return models_exit_code(found)


def _models_options(sub: argparse.ArgumentParser) -> None:
    add_settings_option(sub)
    add_allow_code_option(sub)
    add_base_url_option(sub)


def init(options: argparse.Namespace) -> int:
    """Write an eval set and settings for what you have: a key, a server on this machine, or recorded replies."""
    from steelyard.engine.preflight.starter_files import write_starter
    from steelyard.secret_texts import Environment

    folder = Path(options.folder)
    start = write_starter(folder, Environment())
    for path in start.written:
        print(f"wrote {path}")
    print(f"\nA run asks {start.asks}.")
    print("\nNext:\n" + "".join(f"  {command}\n" for command in start.next_commands), end="")
    if start.with_key:
        print(f"\nWith a key, your own cases:\n  {start.with_key}")
    return ExitCode.OK


def _init_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("folder", nargs="?", default=".", help="where to write (default: the current folder)")


def allow(options: argparse.Namespace) -> int:
    """Agree to the code that files name, so that validate, verify and resume run it; it is listed, and nothing runs."""
    from steelyard.engine.preflight.named_code import allow_path

    _, means = settings_and_run_options(options)
    for path in options.path:
        code = allow_path(path, means)
        for text in code:
            print_to_stderr(f"{path}: allowed {text}")
        if not code:
            print_to_stderr(f"{path}: names no code; there is nothing to allow")
    return ExitCode.OK


def _allow_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "path",
        nargs="+",
        metavar="PATH",
        help="an eval set, a folder of them, an experiment, a run folder or steelyard.toml",
    )
    add_settings_option(sub)


ALLOW_EXAMPLES = """\
Some files name code that runs with your rights: functions that check answers, command:, agent: and python: models, virtual
environments, plug-ins. What you give to run is yours. What comes out of a file that you give to validate, verify, resume or judge
runs only if you have run or allowed just that content before; after a change you are asked again. The digests are in
steelyard/allowed below XDG_STATE_HOME, or else below ~/.local/state; delete a line, and it is no longer allowed.

examples:
  steelyard allow evals/ steelyard-runs/20261116-101500-ab12"""


def doctor(options: argparse.Namespace) -> int:
    """Show what is enforced on generated code on this machine, which toolchains were found, and how to get the missing ones."""
    from steelyard.engine.preflight.doctor import examine_machine
    from steelyard.reports import lists
    from steelyard.reports.tables import json_report

    health = examine_machine()
    if options.format == "json":
        print(json_report(health), end="")
    else:
        print(lists.health_text(health, width=terminal_width(), color=is_color_wanted()), end="")
    return health.exit_code


def _doctor_options(sub: argparse.ArgumentParser) -> None:
    add_format_option(sub, "text", "json")


DOCTOR_EXAMPLE = """\
Every isolation level is started, and a probe inside it tries to escape. Exit codes: 0 when a level holds, 3 when
none does; then code runs only with --allow-weak-sandbox.

example:
  steelyard doctor --format json
"""


COMMANDS = {
    "validate": Command(validate, _validate_options, "example:\n  steelyard validate evals/"),
    "suites": Command(suites, _suites_options, SUITES_EXAMPLES),
    "models": Command(models, _models_options, "example:\n  OPENAI_API_KEY=... steelyard models"),
    "init": Command(init, _init_options, "example:\n  steelyard init my-evals"),
    "allow": Command(allow, _allow_options, ALLOW_EXAMPLES),
    "doctor": Command(doctor, _doctor_options, DOCTOR_EXAMPLE),
}
