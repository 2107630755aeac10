"""The commands about tiers and judges: tiers, judge, pairs."""

from __future__ import annotations

import argparse
import shlex
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
    add_execution_options,
    add_format_option,
    add_judges_option,
    add_output_option,
    add_report_option,
    add_request_options,
    add_run_argument,
    add_run_folder_options,
    attempt_count,
    fraction,
)
from steelyard.cli.streams import user_output_on_stderr
from steelyard.errors import ExitCode

if TYPE_CHECKING:
    from steelyard.engine.options import RunOptions
    from steelyard.engine.run import Run
    from steelyard.tiers.results import ExperimentAnalysis


def tiers(options: argparse.Namespace) -> int:
    """Run an experiment in tiers, or analyse one that was run, here or by another tool: quality, cost, grade and uplift."""
    from steelyard.engine.tiers import tier_runs
    from steelyard.engine.tiers.tier_runs import csv_source, stored_source
    from steelyard.errors import InputError

    settings, means = settings_and_run_options(options)
    _check_files(options)
    if bool(options.experiment) == bool(options.runs_csv):
        raise InputError("name one of these: an experiment (.toml), a run, or recorded runs with --runs-csv FILE")
    if not options.runs_csv and (options.judges_csv or options.criteria_csv):
        raise InputError("--judges-csv and --criteria-csv belong to --runs-csv FILE")
    is_run = (options.experiment or "").endswith(".toml")
    if options.shard and not is_run:
        raise InputError("--shard is for running an experiment (.toml); recorded runs are analysed as a whole")
    if options.dry_run and not is_run:
        raise InputError("--dry-run is for an experiment (.toml); analysing recorded runs costs nothing")
    root = Path(settings.output_dir)
    stopped: tuple[str, ...] = ()
    if is_run:
        done = _run_experiment(options, means)
        if done is None:
            return ExitCode.OK
        source, stopped = stored_source(str(done.folder), root=root), done.stopped
    elif options.runs_csv:
        source = csv_source(options.runs_csv, options.judges_csv, options.criteria_csv)
    else:
        source = stored_source(options.experiment, root=root)
    warn(source.problems)
    found = tier_runs.tier_result(
        source.experiment,
        stopped=stopped,
        baseline=options.baseline,
        pair_by=options.pair_by or source.pair_by,
        impl_rate=options.impl_rate,
        tasks=options.tasks,
    )
    if found.analysis is not None:
        _print_tiers(found.analysis, options)
    return conclude(found.conclusion(f"steelyard resume {shlex.quote(str(source.folder))}"))


def _run_experiment(options: argparse.Namespace, means: RunOptions) -> Run | None:
    """Run an experiment; None if there is nothing to analyse, because the shard is empty or it is only planned."""
    from steelyard.engine.plan import plan_notes
    from steelyard.engine.preflight.forecast import forecast_experiment, forecast_text
    from steelyard.engine.run import shard_cases_of
    from steelyard.engine.tiers.winners import run_staged_experiment
    from steelyard.evalsets import experiments
    from steelyard.tiers.analysis import check_baseline

    with user_output_on_stderr():
        loaded = experiments.load(options.experiment)
    warn(loaded.problems)
    check_baseline(options.baseline, [tier.name for tier in (*loaded.experiment.tiers, *loaded.trials)])
    for note in plan_notes(loaded.cases, {}, None, (1,), options.shard, means.max_cost):
        print_to_stderr(note)
    mine = shard_cases_of(loaded.cases, options.shard)
    if options.dry_run:
        forecasts = forecast_experiment(loaded._replace(cases=mine), means=means) if mine else []
        print(forecast_text(forecasts, about="request about", total=True), end="")
        return None
    with user_output_on_stderr():
        done = run_staged_experiment(loaded, output=options.output, shard=options.shard, means=means)
    print_to_stderr(str(done.folder))
    return done if mine else None


def _tiers_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "experiment", nargs="?", metavar="EXPERIMENT", help="an experiment (.toml), a run folder, its name, or latest"
    )
    files = sub.add_argument_group("experiments of other tools")
    files.add_argument("--runs-csv", metavar="FILE", help="one row per run: tier, case, passed, cost and so on")
    files.add_argument("--judges-csv", metavar="FILE", help="one row per run and judge")
    files.add_argument("--criteria-csv", metavar="FILE", help="one row per run, judge and criterion")
    sub.add_argument("--baseline", metavar="TIER", help="compare the others with this tier (default: the first)")
    files.add_argument(
        "--pair-by",
        choices=["case", "experiment"],
        help="what identifies the same task in two tiers; use experiment where subtests are variants of a tier (default: case; "
        "experiment for a folder of ProjectScylla)",
    )
    sub.add_argument(
        "--impl-rate",
        choices=["score", "points", "recorded"],
        help="take impl rates from the recorded weighted score, from the points that judges gave, or from the recorded "
        "impl_rate (default: the first that exists; points for a run of ours)",
    )
    sub.add_argument(
        "--tasks",
        choices=["fixed", "sampled"],
        help="whether intervals are about exactly these tasks, with other variants and runs, or about tasks like these "
        "(default: depends on their number)",
    )
    add_run_folder_options(sub)
    _tier_report_options(sub)
    add_execution_options(sub)


TIERS_EXAMPLES = """\
examples:
  steelyard tiers experiment.toml --dry-run
  steelyard tiers experiment.toml -o tiers.md --charts charts
  steelyard tiers experiment.toml --shard 3/8 --output shards/3
  steelyard tiers --runs-csv runs.csv --judges-csv judges.csv --criteria-csv criteria.csv"""


def judge(options: argparse.Namespace) -> int:
    """Have a panel of models judge the answers of a run by a rubric; verdicts and replies stay as they are."""
    import msgspec

    from steelyard.engine import resume
    from steelyard.engine.plan import plan_warnings
    from steelyard.engine.tiers import tier_runs
    from steelyard.errors import InputError
    from steelyard.evalsets import rubrics
    from steelyard.records import Panel
    from steelyard.store.journal import StoredRun
    from steelyard.tiers.escalation import panel_escalation
    from steelyard.tiers.rubrics import default_rubric

    settings, means = settings_and_run_options(options)
    _check_files(options)
    if not means.judges:
        raise InputError("no judges; name one or several with --judges, such as --judges openai/gpt-5-mini")
    parameters = arguments.parameters(options)
    warn(plan_warnings(parameters, None, (1,)))
    rubric = default_rubric()
    if options.rubric:
        read = rubrics.load(options.rubric)
        warn(read.problems)
        rubric = read.rubric
    panel = Panel(
        judges=means.judges,
        rubric=msgspec.to_builtins(rubric),
        digest=rubric.digest,
        repeats=options.repeats,
        parameters=parameters,
        allow_self=options.allow_self,
        escalation=panel_escalation(
            len(means.judges), options.ask_first, options.unsure_within, options.check_share, prefix="--"
        ),
    )
    with user_output_on_stderr():
        done = resume.judge(find_named_run(options.run, settings), panel, means=means)
    folder, stopped = done.folder, done.stopped
    # the summary of many cases is large, and the analysis does not need it
    del done
    analysis = tier_runs.analysis(tier_runs.tier_experiment(StoredRun(folder)))
    _print_tiers(analysis, options)
    return conclude(tier_runs.TierResult(analysis, stopped).conclusion())


def _judge_options(sub: argparse.ArgumentParser) -> None:
    add_run_argument(sub)
    add_judges_option(sub)
    sub.add_argument("--rubric", metavar="FILE", help="the rubric: .yaml .toml .json (default: ten categories)")
    sub.add_argument(
        "--repeats", type=attempt_count, default=1, metavar="N", help="how often to ask each judge (default: 1)"
    )
    sub.add_argument(
        "--ask-first",
        type=attempt_count,
        metavar="N",
        help="ask the first N judges about every answer, and the others where those disagree or are near the threshold",
    )
    sub.add_argument(
        "--unsure-within",
        type=fraction,
        metavar="X",
        help="with --ask-first: a mean score closer than this to the threshold is near it (default: 0.1)",
    )
    sub.add_argument(
        "--check-share",
        type=fraction,
        metavar="X",
        help="with --ask-first: the share of the other answers that all judge, to measure the error (default: 0.1)",
    )
    add_allow_self_option(sub)
    add_request_options(sub)
    _tier_report_options(sub)
    add_execution_options(sub)


def pairs(options: argparse.Namespace) -> int:
    """Have models judge the answers of two models side by side, each pair in both orders; or show such a run again."""
    from steelyard.engine.preflight.connect import split_model_names
    from steelyard.engine.results.conclusion import preferences_conclusion
    from steelyard.engine.tiers.pairs import is_pairs_run, judge_pairs, pair_preferences
    from steelyard.errors import InputError
    from steelyard.evalsets import rubrics
    from steelyard.reports.lists import preferences_text
    from steelyard.reports.tables import json_report
    from steelyard.store.journal import StoredRun

    settings, means = settings_and_run_options(options)
    # without judges, the figures of comparisons are shown again
    stored = StoredRun(find_named_run(options.run, settings, with_comparisons=not options.judges))
    stopped: tuple[str, ...] = ()
    if not is_pairs_run(stored):
        if not means.judges:
            raise InputError("no judges; name one or several with --judges, such as --judges openai/gpt-5-mini")
        rubric = rubrics.load(options.rubric).rubric if options.rubric else None
        between = split_model_names([options.between] if options.between else ())
        asked: dict[str, Any] = {"output": options.output, "parameters": arguments.parameters(options), "means": means}
        with user_output_on_stderr():
            done = judge_pairs(stored, means.judges, between=between, rubric=rubric, **asked)
        print_to_stderr(str(done.folder))
        stored, stopped = StoredRun(done.folder), done.stopped
    found = pair_preferences(stored)
    shown = preferences_text(found, color=is_color_wanted())
    print(json_report({"judges": found}) if options.format == "json" else shown, end="")
    return conclude(preferences_conclusion(stored.folder, found, stopped))


def _pairs_options(sub: argparse.ArgumentParser) -> None:
    add_run_argument(sub)
    add_judges_option(sub)
    sub.add_argument("--between", metavar="A,B", help="the two models (default: those of the run, if it has two)")
    sub.add_argument("--rubric", metavar="FILE", help="what counts: .yaml .toml .json (default: what the judge thinks)")
    add_output_option(sub, "the folder of the judgments")
    add_format_option(sub, "text", "json")
    add_request_options(sub)
    add_execution_options(sub)


def _check_files(options: argparse.Namespace) -> None:
    """Raises an InputError if an analysis or its charts could not be written later."""
    from steelyard.reports.exports.tier_documents import TIER_FORMATS
    from steelyard.store.files import check_new_folder, check_text_paths

    check_text_paths(options.report or (), TIER_FORMATS.keys() - {"text"})
    if options.charts:
        check_new_folder(Path(options.charts))


def _print_tiers(analysis: ExperimentAnalysis, options: argparse.Namespace) -> None:
    """Print the analysis of tiers, and write it as tables and charts."""
    from steelyard.reports import tiers as tables
    from steelyard.reports.charts.svg import chart_files
    from steelyard.reports.charts.tier_details import detail_charts
    from steelyard.reports.charts.tiers import charts
    from steelyard.reports.exports.tier_documents import TIER_FORMATS
    from steelyard.store.files import TEXT_FORMAT_BY_SUFFIX, write_folder, write_texts
    from steelyard.text import counted

    if options.format == "text":
        width = min(terminal_width(), tables.TEXT_COLUMNS) if sys.stdout.isatty() else tables.TEXT_COLUMNS
        print(tables.text(analysis, color=is_color_wanted(), width=width), end="")
    else:
        print(TIER_FORMATS[options.format](analysis), end="")
    wanted = {TEXT_FORMAT_BY_SUFFIX[Path(path).suffix] for path in options.report or ()}
    print_written(write_texts(options.report or (), {name: TIER_FORMATS[name](analysis) for name in wanted}))
    if options.charts:
        drawn = [*charts(analysis), *detail_charts(analysis)]
        write_folder(Path(options.charts), chart_files(drawn))
        print_to_stderr(f"wrote {counted(len(drawn), 'chart')} into {options.charts}")


def _tier_report_options(sub: argparse.ArgumentParser) -> None:
    add_format_option(sub, "text", "json", "markdown", "csv", "html", "latex")
    add_report_option(sub, ".json .md .csv .html .tex")
    sub.add_argument("--charts", metavar="DIR", help="write charts into this folder, each as SVG")


COMMANDS = {
    "tiers": Command(
        tiers,
        _tiers_options,
        TIERS_EXAMPLES,
        "--runs-csv --judges-csv --criteria-csv --pair-by --baseline --impl-rate --tasks --output --shard --dry-run "
        "--format --report --charts --parallelism --max-cost --env-file --config",
    ),
    "pairs": Command(
        pairs,
        _pairs_options,
        "example:\n  steelyard pairs latest --judges openai/gpt-5 --between model-a,model-b",
        "--judges --between --rubric --temperature --max-tokens --output --format --parallelism --max-cost --env-file "
        "--allow-code --config",
    ),
    "judge": Command(
        judge,
        _judge_options,
        "example:\n  steelyard judge latest --rubric rubric.yaml --judges openai/gpt-5,anthropic/claude-sonnet-4-5",
        "--judges --rubric --repeats --allow-self --temperature --max-tokens --format --report --charts --parallelism "
        "--max-cost --env-file --allow-code --config",
    ),
}
