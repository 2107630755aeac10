"""The commands that hold runs against each other: compare, gate, plan, bless."""

from __future__ import annotations

import argparse
from pathlib import Path

from steelyard.cli import arguments
from steelyard.cli.console import conclude, print_report, print_written, warn
from steelyard.cli.options import (
    Command,
    add_attempt_column_options,
    add_cases_option,
    add_counting_options,
    add_decision_options,
    add_format_option,
    add_report_option,
    add_score_options,
    add_settings_option,
    fraction,
)
from steelyard.errors import ExitCode


def compare(options: argparse.Namespace) -> int:
    """Show which mean scores changed by more than a threshold between two runs, case by case."""
    from steelyard.comparison.threshold import compare as compared
    from steelyard.engine.gate.panels import refuse_changed_judges
    from steelyard.engine.gate.sides import side
    from steelyard.engine.results.conclusion import comparison_exit_code
    from steelyard.reports.comparison import COMPARISON_FORMATS

    settings = arguments.command_settings(options)
    root = Path(settings.output_dir)
    if options.corrected:
        return _compare_corrected(options, root)
    refuse_changed_judges(*_sides(options), root=root)
    columns = arguments.attempt_columns(options)
    scores = arguments.score_reading(options)
    sides = [side(name, rule=options.rule, root=root, columns=columns, scores=scores) for name in _sides(options)]
    warn([warning for each in sides for warning in each.warnings])
    comparison = compared(*sides, threshold=options.threshold)
    print_report(COMPARISON_FORMATS[options.format](comparison), options.format)
    return comparison_exit_code(comparison, fail_on_regression=options.fail_on_regression)


def _compare_corrected(options: argparse.Namespace, root: Path) -> int:
    """Show what changed by judged rates that labels correct."""
    from steelyard.engine.gate.judged import compare_corrected
    from steelyard.engine.results.conclusion import judged_comparison_exit_code
    from steelyard.errors import InputError
    from steelyard.reports.comparison import JUDGED_COMPARISON_FORMATS

    if options.rule:
        raise InputError("--corrected compares what judges and people pass: leave --rule out")
    decision = compare_corrected(*_sides(options), root=root)
    print_report(JUDGED_COMPARISON_FORMATS[options.format](decision), options.format)
    return judged_comparison_exit_code(decision, fail_on_regression=options.fail_on_regression)


def _add_sides(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("sides", nargs="*", metavar="A B", help="what to compare with, and what to compare")
    sub.add_argument("--baseline", metavar="A", help="what to compare with; a baseline of several runs is best")
    sub.add_argument("--current", metavar="B", help="what to compare")


def _add_reading_options(sub: argparse.ArgumentParser) -> None:
    """How the sides are read, and the answer is shown."""
    sub.add_argument("--rule", help="score both sides by this rule (default: their own)")
    sub.add_argument(
        "--corrected", action="store_true", help="compare judged answers, by rates that people's labels correct"
    )
    add_format_option(sub, "text", "json", "markdown")
    add_attempt_column_options(sub.add_argument_group("columns of a table with a row per attempt"))
    add_score_options(sub)
    add_settings_option(sub)


def _sides(options: argparse.Namespace) -> tuple[str, str]:
    """The two sides, in their places or by name."""
    from steelyard.errors import InputError

    given = list(options.sides)
    # what the settings file names is a default that the command line replaces
    if len(given) == 2:
        return given[0], given[1]
    baseline, current = (value or (given.pop(0) if given else "") for value in (options.baseline, options.current))
    if given or not baseline or not current:
        raise InputError("name two sides: A B, or --baseline A and --current B")
    return baseline, current


def _compare_options(sub: argparse.ArgumentParser) -> None:
    _add_sides(sub)
    sub.add_argument(
        "--threshold", type=fraction, default=0.05, metavar="X", help="how far a mean score may change (default: 0.05)"
    )
    sub.add_argument(
        "--fail-on-regression", action="store_true", help="exit with 1 when a score dropped by more than the threshold"
    )
    _add_reading_options(sub)


COMPARE_EXAMPLES = """\
A side is a run folder, its name, latest, the name of a baseline, a report in JSON, a file of another tool that steelyard import reads, a table
with a row per attempt (CSV or JSON lines), or RUN@MODEL for one model of it; with one model on each side they are compared whatever their names. Exit codes: 0 fine, 1 a regression with --fail-on-regression, 2 unreadable input,
3 no case could be compared.

examples:
  steelyard compare main-report.json latest
  steelyard compare --baseline latest@openai/gpt-5-mini --current latest@openai/gpt-5 --format markdown
  steelyard compare march.csv april.csv --case task --passed ok
"""


def gate(options: argparse.Namespace) -> int:
    """Decide whether a run is worse than its baseline: yes, no, or cannot tell yet; made for gating pull requests."""
    from steelyard.engine.gate import gate as gating
    from steelyard.engine.gate.panels import refuse_changed_judges
    from steelyard.reports.comparison import DECISION_FORMATS
    from steelyard.reports.exports.decision import decision_texts
    from steelyard.store.files import check_text_paths, write_texts

    settings = arguments.command_settings(options)
    if options.history is not None:
        return _gate_history(options)
    if options.corrected:
        return _gate_corrected(options, Path(settings.output_dir))
    check_text_paths(options.report or (), (*DECISION_FORMATS, "junit", "sarif"))
    refuse_changed_judges(*_sides(options), root=Path(settings.output_dir))
    scores = arguments.score_reading(options)
    found = gating.gate(
        *_sides(options),
        alpha=options.alpha,
        margin=arguments.margin_share(options.margin, scores),
        on=options.on,
        cases=options.cases,
        min_effect=options.min_effect,
        rule=options.rule,
        root=Path(settings.output_dir),
        counting=arguments.counting_options(options),
        scores=scores,
    )
    texts = decision_texts(found.decision, found.warnings, found.gone if options.fail_on_removed else ())
    print_report(texts[options.format], options.format)
    print_written(write_texts(options.report or (), texts))
    return conclude(found.conclusion(arguments.on_inconclusive(options), fail_on_removed=options.fail_on_removed))


def _gate_history(options: argparse.Namespace) -> int:
    """Watch the blessed runs of a baseline for drift."""
    from steelyard.engine.gate.history import watch
    from steelyard.engine.gate.sides import BASELINES_FOLDER
    from steelyard.engine.results.conclusion import history_exit_code
    from steelyard.errors import InputError
    from steelyard.reports.exports.history import HISTORY_FORMATS
    from steelyard.store.files import check_text_paths, write_texts

    if options.sides or options.current or options.corrected or options.on:
        raise InputError("--history NAME watches the blessed runs of a baseline: leave sides, --on and --corrected out")
    check_text_paths(options.report or (), HISTORY_FORMATS)
    found = watch(options.history, BASELINES_FOLDER, alpha=options.alpha)
    texts = {name: render(found) for name, render in HISTORY_FORMATS.items()}
    print(texts[options.format], end="")
    print_written(write_texts(options.report or (), texts))
    return history_exit_code(found)


def _gate_corrected(options: argparse.Namespace, root: Path) -> int:
    """Decide by judged rates that labels correct."""
    from steelyard.engine.gate.judged import gate_corrected
    from steelyard.errors import InputError
    from steelyard.reports.comparison import JUDGED_DECISION_FORMATS
    from steelyard.store.files import check_text_paths, write_texts

    check_text_paths(options.report or (), JUDGED_DECISION_FORMATS)

    if options.on or options.rule or options.cases or options.min_effect:
        raise InputError(
            "--corrected compares what judges and people pass: leave --on, --rule, --cases and --min-effect out"
        )
    found = gate_corrected(*_sides(options), alpha=options.alpha, margin=float(options.margin), root=root)
    texts = {name: render(found.decision, found.warnings) for name, render in JUDGED_DECISION_FORMATS.items()}
    print_report(texts[options.format], options.format)
    print_written(write_texts(options.report or (), texts))
    return conclude(found.conclusion(arguments.on_inconclusive(options)))


def _gate_options(sub: argparse.ArgumentParser) -> None:
    _add_sides(sub)
    add_decision_options(sub)
    sub.add_argument(
        "--history",
        metavar="NAME",
        help="watch all runs that were blessed as this baseline for drift, instead of two sides",
    )
    add_report_option(sub, ".json .md .txt .xml .sarif, with --history .html")
    sub.add_argument(
        "--fail-on-removed",
        action="store_true",
        help="exit with 1 when cases of the baseline are gone or have different tests",
    )
    _add_reading_options(sub)
    add_counting_options(sub)


GATE_EXAMPLES = """\
The verdict is REGRESSED (exit code 1), NOT REGRESSED (0) or CANNOT TELL: 3 where data are missing, and where the evidence is thin
0 with a warning, or 3 with --strict. Sides are named as for compare, or are tables with a row per attempt: repairs (fixes
CSV), CSV, JSON lines, or Parquet as a file, a folder, a pattern, or a folder of runs.

examples:
  steelyard gate main latest
  steelyard gate before.eval after.eval
  steelyard gate march/gpt_fixes.csv april/gpt_fixes.csv
  steelyard gate --baseline main --current latest --margin 0.03 --strict -o gate.md
  steelyard gate --history main -o history.html
  steelyard gate --baseline last-year/ --current 'new/*.parquet' --case task --passed ok
"""


def plan(options: argparse.Namespace) -> int:
    """Compute how many attempts a gate needs to see a mean drop from a baseline, and what they cost; no model is asked."""
    from steelyard.engine.gate.planning import gate_plan, planned_sides
    from steelyard.engine.preflight.connect import split_model_names
    from steelyard.providers.prices import Prices
    from steelyard.reports.comparison import PLAN_FORMATS

    settings = arguments.command_settings(options)
    sides = planned_sides(options.evalset, options.baseline, root=Path(settings.output_dir))
    warn(sides.problems)
    found = gate_plan(
        sides.cases,
        sides.baseline,
        Prices(settings.prices),
        models=split_model_names(options.baseline_models or ()),
        detect=options.detect,
        power=options.power,
        alpha=options.alpha,
    )
    print_report(PLAN_FORMATS[options.format](found), options.format)
    return ExitCode.OK


def _plan_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "evalset",
        nargs="+",
        metavar="A|EVALSET",
        help="a run or baseline, planned for its own cases; or with --baseline the files or folders that will be run",
    )
    sub.add_argument("--baseline", metavar="A", help="what a run of the eval sets will be compared with, as for gate")
    sub.add_argument(
        "-m",
        "--models",
        action="append",
        # the setting "models" is what a run asks
        dest="baseline_models",
        metavar="P/M,...",
        help="only these models of the baseline (default: all)",
    )
    sub.add_argument(
        "--detect", type=fraction, default=0.05, metavar="X", help="the mean drop to detect (default: 0.05)"
    )
    sub.add_argument("--power", type=fraction, default=0.8, metavar="X", help="the chance to detect it (default: 0.8)")
    sub.add_argument("--alpha", type=fraction, default=0.05, metavar="X", help="as for gate (default: 0.05)")
    add_format_option(sub, "text", "json", "markdown")
    add_settings_option(sub)


PLAN_EXAMPLES = """\
No model is asked. Cases are paired with the baseline as in gate, by id and tests; a baseline is named as for gate. Costs are the average
costs of attempts in the baseline, or else an upper bound from the price list.

examples:
  steelyard plan main
  steelyard plan evals/ --baseline main
  steelyard plan evals/ --baseline main --detect 0.03 --power 0.9
"""


def bless(options: argparse.Namespace) -> int:
    """Save runs as a baseline: a small file of counts that can be committed; several runs are pooled."""
    from steelyard.engine.gate import sides
    from steelyard.engine.gate.planning import thin_baseline_sentence
    from steelyard.text import counted

    settings = arguments.command_settings(options)
    blessed = sides.bless(
        options.run,
        options.name,
        rule=options.rule,
        cases=options.cases,
        restart_history=options.restart_history,
        scores=arguments.score_reading(options),
        root=Path(settings.output_dir),
    )
    warn(blessed.problems)
    for model, cases in blessed.side.models.items():
        attempts = sorted({trials.attempts for trials in cases})
        each = f"{attempts[0]}" if len(attempts) == 1 else f"{attempts[0]} to {attempts[-1]}"
        print(f"{model}: {counted(len(cases), 'case')} with {each} attempt{'' if each == '1' else 's'} each")
        if advice := thin_baseline_sentence(cases):
            print(advice)
    print(f"wrote {blessed.path}")
    if blessed.history > 1:
        print(f"its history has {blessed.history} runs; watch them with: steelyard gate --history {options.name}")
    return ExitCode.OK


def _bless_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", nargs="+", metavar="RUN", help="run folders, their names, latest, or reports")
    sub.add_argument(
        "--as", dest="name", required=True, metavar="NAME", help="the name of the baseline, for --baseline"
    )
    sub.add_argument("--rule", help="score by this rule (default: the runs' own)")
    add_cases_option(sub)
    sub.add_argument(
        "--restart-history",
        action="store_true",
        help="begin the history that gate --history watches with these runs: a change was accepted",
    )
    add_score_options(sub)
    add_settings_option(sub)


COMMANDS = {
    "compare": Command(compare, _compare_options, COMPARE_EXAMPLES),
    "gate": Command(
        gate,
        _gate_options,
        GATE_EXAMPLES,
        "--baseline --current --margin --on --strict --cases --fail-on-removed --history --rule --format --report --case "
        "--model --passed --score --score-range --lower-is-better --config",
    ),
    "plan": Command(plan, _plan_options, PLAN_EXAMPLES),
    "bless": Command(bless, _bless_options, "example:\n  steelyard bless latest --as main"),
}
