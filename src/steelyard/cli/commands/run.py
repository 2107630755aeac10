"""The commands that ask, verify and merge: run, resume, verify, merge."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli import arguments
from steelyard.cli.console import (
    conclude,
    find_named_run,
    is_color_wanted,
    print_to_stderr,
    print_written,
    settings_and_run_options,
    terminal_width,
    warn,
)
from steelyard.cli.options import (
    Command,
    add_allow_self_option,
    add_base_url_option,
    add_decision_options,
    add_default_check_option,
    add_execution_options,
    add_judges_option,
    add_output_option,
    add_request_options,
    add_result_options,
    add_run_argument,
    add_run_folder_options,
    add_settings_option,
    add_strict_option,
    add_trust_option,
    add_verbosity_options,
    attempt_count,
    positive_integer,
)
from steelyard.cli.streams import user_output_on_stderr
from steelyard.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.engine.gate.rounds import SequentialRunResult
    from steelyard.engine.run import Run
    from steelyard.records import Case, StoppingRule, SuiteRule


def run(options: argparse.Namespace) -> int:
    """Ask models for attempts at each case, verify every one, and print the results."""
    from steelyard.engine.asking.request_texts import text_or_file
    from steelyard.engine.gate.rounds import run_until_decided
    from steelyard.engine.plan import plan_notes, select_cases, shard_cases
    from steelyard.engine.preflight.connect import models_to_ask
    from steelyard.engine.preflight.forecast import forecast, forecast_text
    from steelyard.engine.results.report_files import check_report_paths
    from steelyard.engine.run import run as run_cases
    from steelyard.errors import InputError
    from steelyard.records import SuiteRule
    from steelyard.store.journal import StoredRun

    settings, means = settings_and_run_options(options)
    check_report_paths(options.report or ())
    paths = [*options.evalset, *(options.eval_set or ())]
    if not paths:
        raise InputError("no eval set; name a file or a folder (steelyard init writes one): steelyard run evals/")
    with user_output_on_stderr():
        loaded = arguments.load_eval_sets(paths, options)
    warn(loaded.problems)
    earlier = StoredRun(find_named_run(options.failed_in, settings)) if options.failed_in else None
    cases = select_cases(
        loaded.cases,
        tags=options.filter,
        glob=options.case,
        exclude=options.exclude,
        failed_in=earlier,
        limit=options.limit,
    )
    models = models_to_ask(options.models or [settings.default_model], settings)
    parameters = arguments.parameters(options, settings.default_temperature)
    suite_rule = arguments.suite_rule(options, settings, SuiteRule(), loaded.cases)
    k = options.pass_k or (1,)
    for note in plan_notes(cases, parameters, options.samples, k, options.shard, means.max_cost):
        print_to_stderr(note)
    asked: dict[str, Any] = {
        "models": models,
        "samples": options.samples,
        "k": k,
        "parameters": parameters,
        "system": text_or_file(options.system),
        "base_url": options.base_url or "",
        "means": means,
    }
    if options.dry_run:
        mine = shard_cases(cases, *options.shard) if options.shard else cases
        with user_output_on_stderr():
            forecasts = forecast(mine, **asked) if mine else []
        print(forecast_text(forecasts), end="")
        return ExitCode.OK
    asked |= {
        "eval_sets": loaded.files,
        "output": Path(options.output) if options.output else None,
        "seed": options.seed,
        "rule": options.rule or loaded.rule,
        "rules": loaded.rules,
        "suites": suite_rule,
        "require_trust": options.require_trust,
        "skip_unavailable": options.skip_unavailable,
    }
    until = _stopping_rule(options)
    if until is None:
        with user_output_on_stderr():
            done = run_cases(cases, shard=options.shard, **asked)
        return _conclude_run(done, options, suite_rule)
    del asked["samples"]
    with user_output_on_stderr():
        decided = run_until_decided(
            cases,
            until=until,
            tell=print_to_stderr,
            announcement=_announcement(cases, asked, until),
            **asked,
        )
    return _conclude_sequential_run(decided, options, suite_rule)


def _stopping_rule(options: argparse.Namespace) -> StoppingRule | None:
    """When to stop asking, as the options say."""
    from steelyard.engine.gate.rounds import stopping_rule

    return stopping_rule(
        options.baseline,
        until_decided=options.until_decided,
        max_samples=options.max_samples,
        samples=options.samples,
        shard=options.shard,
        alpha=options.alpha,
        margin=float(options.margin),
        cases=options.cases,
        min_effect=options.min_effect,
        on=options.on,
    )


def _announcement(cases: Sequence[Case], asked: Mapping[str, Any], until: StoppingRule) -> str:
    """What a run until decided says first: the most that it may ask for."""
    from steelyard.engine.preflight.forecast import forecast, forecast_text

    most = forecast(cases, **{name: asked[name] for name in FORECAST_ARGUMENTS}, samples=until.most)
    return f"asks until the gate can decide; at most {forecast_text(most).rstrip()}"


FORECAST_ARGUMENTS = ("models", "k", "parameters", "system", "base_url", "means")


def _run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("evalset", nargs="*", metavar="EVALSET", help="a .toml or .jsonl file, or a folder of them")
    sub.add_argument("--eval-set", action="append", metavar="PATH", help="the same, as an option")
    ask = sub.add_argument_group("what to ask")
    ask.add_argument(
        "-m",
        "--models",
        action="append",
        metavar="P/M,...",
        help="provider/model, replay:FILE, command:PROGRAM, agent:NAME or agent:PROGRAM, python:FILE:FUNCTION",
    )
    ask.add_argument(
        "-n",
        "--samples",
        "--epochs",
        "--repeat",
        type=attempt_count,
        metavar="N",
        help="attempts per case and model (default: the largest k; all recorded replies)",
    )
    add_request_options(ask)
    ask.add_argument(
        "--reasoning-effort",
        choices=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
        help="how much a model thinks before it answers; refused if its provider has no such setting",
    )
    ask.add_argument(
        "--response-format",
        metavar="json|SCHEMA",
        help="require replies in JSON, or by the JSON Schema in a file; refused if the provider does not support it",
    )
    ask.add_argument("--system", metavar="FILE|TEXT", help="a system prompt")
    ask.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="sent with the requests: N for first attempts, N+1 for second ones, and so on",
    )
    add_base_url_option(ask)
    add_judges_option(ask, "who judges checks that are rubrics")
    add_allow_self_option(ask)
    which = sub.add_argument_group("which cases")
    which.add_argument("--filter", metavar="TAGS", help="only cases with one of these tags, such as easy,strings")
    which.add_argument("--case", metavar="GLOB", help="only cases whose id matches, such as 'merge-*'")
    which.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave out cases whose id matches; may be repeated",
    )
    which.add_argument("--failed-in", metavar="RUN", help="only cases that were not always correct in that run")
    which.add_argument("--limit", type=positive_integer, metavar="N", help="only the first N cases")
    which.add_argument(
        "--skip-unavailable",
        action="store_true",
        help="leave out and list cases whose toolchain, package or crate is missing on this machine, instead of stopping",
    )
    add_default_check_option(which)
    decide = sub.add_argument_group("stopping as soon as a gate can decide")
    decide.add_argument(
        "--baseline",
        metavar="A",
        help="what to compare the run with, as for steelyard gate; without -n it asks 3 to 10 times per case, until decided",
    )
    decide.add_argument(
        "--until-decided", action="store_true", help="ask in rounds, and stop as soon as the gate can decide"
    )
    decide.add_argument(
        "--max-samples",
        type=attempt_count,
        metavar="N",
        help="the maximum number of attempts per case (default: 20; 10 without --until-decided)",
    )
    add_decision_options(decide)
    add_execution_options(sub, backend=True)
    add_trust_option(sub)
    add_run_folder_options(sub)
    add_result_options(sub)
    add_verbosity_options(sub)


RUN_EXAMPLES = """\
examples:
  steelyard run examples/python-basics.toml --models replay:examples/recordings/python-basics.jsonl.gz --pass-k 1,5,10
  steelyard run evals/ --models openai/gpt-5-mini,anthropic/claude-sonnet-4-5 --samples 10 --temperature 0.8
  steelyard run evals/ --models openai/qwen --base-url http://127.0.0.1:8080/v1 --filter easy --fail-under 0.8
  steelyard run evals/ --models openai/gpt-5-mini --baseline main --until-decided --max-cost 2
  steelyard run evals/ --models openai/gpt-5-mini --samples 10 --shard 3/8 --output shards/3

With --shard, --max-cost applies to each shard separately.
"""


def resume(options: argparse.Namespace) -> int:
    """Continue a run where it stopped; --samples extends it."""
    from steelyard.engine.gate.rounds import continue_until_decided
    from steelyard.engine.results.report_files import check_report_paths
    from steelyard.engine.tiers.winners import resume_all_stages

    settings, means = settings_and_run_options(options)
    check_report_paths(options.report or ())
    folder = find_named_run(options.run, settings, with_comparisons=True)
    suite_rule = arguments.suite_rule_of(folder, options, settings)
    with user_output_on_stderr():
        done = resume_all_stages(folder, samples=options.samples, base_url=options.base_url or "", means=means)
    if done.info.until is None or options.samples is not None:
        return _conclude_run(done, options, suite_rule)
    with user_output_on_stderr():
        decided = continue_until_decided(done, means=means, tell=print_to_stderr)
    return _conclude_sequential_run(decided, options, suite_rule)


def _resume_options(sub: argparse.ArgumentParser) -> None:
    add_run_argument(sub)
    sub.add_argument("-n", "--samples", type=attempt_count, metavar="N", help="attempts per case and model from now on")
    add_base_url_option(sub)
    add_strict_option(sub)
    add_execution_options(sub, backend=True)
    add_result_options(sub)
    add_verbosity_options(sub)


def verify(options: argparse.Namespace) -> int:
    """Verify the stored replies of a run again with the current tests; no model is asked."""
    from steelyard.engine.results.report_files import check_report_paths
    from steelyard.engine.resume import verify_again

    settings, means = settings_and_run_options(options)
    check_report_paths(options.report or ())
    folder = find_named_run(options.run, settings)
    suite_rule = arguments.suite_rule_of(folder, options, settings)
    with user_output_on_stderr():
        done = verify_again(folder, eval_sets=options.eval_set or (), means=means)
    return _conclude_run(done, options, suite_rule)


def _verify_options(sub: argparse.ArgumentParser) -> None:
    add_run_argument(sub)
    sub.add_argument("--eval-set", action="append", metavar="PATH", help="use the tests of this eval set")
    add_execution_options(sub, backend=True, asks=False)
    add_result_options(sub)
    add_verbosity_options(sub)


def merge(options: argparse.Namespace) -> int:
    """Merge the shards of a run from several machines into one run, after checking that they have the same plan; or imported runs."""
    from steelyard.engine.results.merge import merge as merged
    from steelyard.engine.results.report_files import check_report_paths

    settings, means = settings_and_run_options(options)
    check_report_paths(options.report or ())
    output = Path(options.output) if options.output else None
    done = merged(options.run, output=output, partial=options.partial, means=means)
    return _conclude_run(done, options, arguments.suite_rule_of(done.folder, options, settings))


def _merge_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", nargs="+", metavar="RUN", help="the run folders of all shards, in any order")
    add_output_option(sub, "the folder of the merged run")
    sub.add_argument("--partial", action="store_true", help="merge even though shards are missing")
    add_result_options(sub)
    add_settings_option(sub)


MERGE_EXAMPLES = """\
Every machine runs the same command with its own --shard: 1/3 on one, 2/3 on another, 3/3 on the third. Each gets every
third case. Their run folders, copied to one place, are merged into one run, as if one machine had done all of it: resume,
show, report, gate and view take it like any other. No model is asked and nothing is verified; the shards stay as they are. What
an interrupted shard did not get done is done by: steelyard resume RUN, with the merged run.

Shards of different plans (other cases, tests, models, parameters, samples...) are refused with what differs, and so is a duplicate
shard. When shards are missing, they are named and nothing is written, unless --partial is given; the partial
run can be merged with them later.

Runs that were imported from other tools' files are merged as if their files had been imported together.

Exit codes: 0 fine, 1 under --fail-under, 2 shards that cannot be merged, 3 cannot tell because attempts are missing, or the disk
is full.

examples:
  steelyard merge shards/* --output runs/change
  steelyard merge shards/* --output runs/change -o report.html --fail-under 0.8"""


def _conclude_run(done: Run, options: argparse.Namespace, suite_rule: SuiteRule | None) -> int:
    """Print the results of a run, write its reports, and return its exit code."""
    return conclude(_shown(done, options, suite_rule).conclusion(fail_under=options.fail_under))


def _conclude_sequential_run(
    decided: SequentialRunResult, options: argparse.Namespace, suite_rule: SuiteRule | None
) -> int:
    """Print the results of a run, the decision, and what stopping early saved."""
    decided = decided._replace(run=_shown(decided.run, options, suite_rule))
    if options.format == "text":
        print(f"\n{decided.text}" if decided.text else "", end="")
    elif decided.text:
        print_to_stderr(decided.text)
    return conclude(
        decided.conclusion(fail_under=options.fail_under, on_inconclusive=arguments.on_inconclusive(options))
    )


def _shown(done: Run, options: argparse.Namespace, suite_rule: SuiteRule | None) -> Run:
    """Print a run and write its reports; returns it with its summary as it was scored for that."""
    from itertools import groupby

    from steelyard import reports
    from steelyard.engine.results.report_files import ScoringOverrides, formats_without_page, scored_run, write_reports
    from steelyard.engine.results.stored_results import stored_results
    from steelyard.reports import terminal
    from steelyard.store.journal import StoredRun

    stored = StoredRun(done.folder)
    scoring = ScoringOverrides(options.pass_k, options.rule, suite_rule)
    is_every_attempt_shown = options.format != "text" or bool(formats_without_page(options.report or ()))
    done, results = scored_run(done, stored, scoring, with_attempts=is_every_attempt_shown)
    if options.format != "text" and results is not None:
        sys.stdout.writelines(reports.rendered_pieces(options.format, results))
    elif getattr(options, "quiet", False):
        print(terminal.summary_line(done.summary, title=str(done.folder)))
    else:
        look: dict[str, Any] = {"width": terminal_width(), "color": is_color_wanted()}
        title, commands = str(done.folder), done.next_commands
        is_verbose = getattr(options, "verbose", False)
        print(
            terminal.summary_text(done.summary, title=title, next_commands=commands, details=is_verbose, **look), end=""
        )
        if is_verbose:
            every = results or stored_results(stored, **scoring._asdict())
            for _, attempts in groupby(every.attempts, key=lambda tried: tried.case.id):
                print(f"\n{terminal.case_text(list(attempts), every.summary, **look)}", end="")
    print_written(write_reports(options.report or (), stored, scoring, results=results))
    warn(stored.damaged if options.report else ())
    return done


COMMANDS = {
    "run": Command(
        run,
        _run_options,
        RUN_EXAMPLES,
        "--models --samples --pass-k --temperature --max-tokens --system --base-url --filter --case --failed-in --limit "
        "--baseline --strict --parallelism --max-cost --dry-run --output --config --fail-under --format --report",
    ),
    "resume": Command(
        resume,
        _resume_options,
        "example:\n  steelyard resume latest --samples 20",
        "--samples --base-url --strict --parallelism --max-cost --allow-code --config --fail-under --format --pass-k "
        "--report --quiet --verbose",
    ),
    "verify": Command(
        verify,
        _verify_options,
        "example:\n  steelyard verify latest --eval-set evals/fixed.toml",
        "--eval-set --parallelism --python-env --allow-code --config --fail-under --format --rule --pass-k --report "
        "--quiet --verbose",
    ),
    "merge": Command(merge, _merge_options, MERGE_EXAMPLES),
}
