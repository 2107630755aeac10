"""The commands about recorded outcomes: import, passk, repairs, synth."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli import arguments
from steelyard.cli.console import (
    conclude,
    is_color_wanted,
    print_to_stderr,
    print_written,
    settings_and_run_options,
    terminal_width,
    warn,
)
from steelyard.cli.options import (
    Command,
    add_attempt_column_options,
    add_backend_options,
    add_counting_options,
    add_format_option,
    add_isolation_options,
    add_output_option,
    add_score_options,
    add_settings_option,
    attempt_count,
    named_rates,
    positive_integer,
    positive_integers,
)
from steelyard.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.counts import Standings


def passk(options: argparse.Namespace) -> int:
    """Compute pass@k with intervals from existing outcomes: files of other tools, or runs."""
    from steelyard.analysis.counts import standings
    from steelyard.engine.results.read_outcomes import ColumnOverrides, gather

    settings, _ = settings_and_run_options(options)
    if options.attempts:
        return _count_attempts(options, Path(settings.output_dir))
    columns = ColumnOverrides(options.case, options.model, options.passed, options.sample, options.cost, options.score)
    found = gather(
        options.outcomes,
        problems=options.problems_csv,
        fixes=options.fixes_csv,
        columns=columns,
        scores=arguments.score_reading(options),
        root=Path(settings.output_dir),
    )
    warn(found.problems)
    return _print_standings(
        standings(found.tallies, _k_values(options.k_values), missing=options.missing), options.format
    )


def _passk_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("outcomes", nargs="*", metavar="FILE|RUN", help="files of outcomes, run folders, or latest")
    sub.add_argument(
        "--attempts",
        nargs="+",
        default=[],
        metavar="PATH",
        help="any number of attempts in Parquet: files, folders, patterns, runs, folders of runs",
    )
    sub.add_argument("--problems-csv", metavar="FILE", help="the problems: column oid")
    sub.add_argument(
        "--fixes-csv",
        nargs="+",
        default=[],
        metavar="FILE",
        help="one file per model: columns oid, iteration_id, plausible_fix",
    )
    sub.add_argument(
        "--k-values",
        "--pass-k",
        nargs="+",
        type=positive_integers,
        default="1,5,10",
        metavar="K",
        help="which pass@k to show (default: 1 5 10)",
    )
    sub.add_argument(
        "--missing",
        default="skip",
        choices=["skip", "zero", "error"],
        help="problems without an outcome: leave out, count as failed, or refuse (default: skip)",
    )
    add_format_option(sub, "table", "json", "csv", "markdown")
    table = sub.add_argument_group("columns of a table of outcomes")
    add_attempt_column_options(table)
    table.add_argument("--cost", metavar="COLUMN", help="what the attempt cost in US dollars, for the cost of a pass")
    add_score_options(sub)
    add_counting_options(sub)
    add_settings_option(sub)


PASSK_EXAMPLES = """\
Outcomes are files of fixes (--fixes-csv), results of HumanEval or EvalPlus, tables in CSV, JSONL or Parquet whose columns you
name, and runs. --attempts counts Parquet files of any size in little memory: a row per attempt with case, model and
correct, or the copies of runs. Exit codes: 0 fine, 2 unreadable input, 3 when more than 5% of the cases have no outcome.

examples:
  steelyard passk --problems-csv problems.csv --fixes-csv gemini_fixes.csv gpt_fixes.csv --k-values 1 5 10
  steelyard passk samples.jsonl_results.jsonl --k-values 1 10 100
  steelyard passk outcomes.parquet --case task --model llm --passed ok --cost usd
  steelyard passk latest --format markdown
  steelyard passk --attempts steelyard-runs/ --k-values 1 10 100
"""


def repairs(options: argparse.Namespace) -> int:
    """Compute pass@k of every model's recorded repairs, as evaluation_config.json says; Terraform validates those without an outcome."""
    from steelyard.engine.progress import ProgressDisplay
    from steelyard.engine.repairs.evaluate import evaluate
    from steelyard.reports import lists

    try:
        evaluation = evaluate(Path(options.evaluation), arguments.run_options(options, ProgressDisplay()))
    except KeyboardInterrupt:
        print_to_stderr("\ninterrupted; what was judged is kept, and the same command continues")
        return ExitCode.INTERRUPTED
    warn(evaluation.problems)
    if evaluation.levels:
        print("plausible")
    print(lists.standings_text(evaluation.standings, color=is_color_wanted()), end="")
    for level, standings in evaluation.levels.items():
        print(f"\n{level}\n{lists.standings_text(standings, color=is_color_wanted())}", end="")
    print_written(evaluation.written)
    return conclude(evaluation.conclusion())


def _repairs_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--config",
        dest="evaluation",
        default="evaluation_config.json",
        metavar="FILE",
        help="the configuration of the evaluation (default: evaluation_config.json)",
    )
    sub.add_argument(
        "-j",
        "--parallelism",
        type=positive_integer,
        metavar="N",
        help="how many validations run at once (default: one per processor)",
    )
    add_backend_options(sub, "validate")
    add_isolation_options(sub)


REPAIRS_EXAMPLE = """\
Fixes with repairs and no outcome are judged by terraform or tofu, which is on PATH or named by STEELYARD_TERRAFORM.
Exit codes: 0 fine, 2 unreadable input or no Terraform, 3 when more than 5% of a model's problems or attempts have no outcome.

example:
  steelyard repairs --config evaluation_config.json
"""


def synth(options: argparse.Namespace) -> int:
    """Generate outcomes from known rates, to check that the estimates recover them."""
    from steelyard.engine.results.synthetic import synthesize

    made = synthesize(
        Path(options.output),
        problems=options.problems,
        samples=options.samples,
        models=options.rates,
        seed=options.seed,
    )
    for path in made.written:
        print(f"wrote {path}")
    for model in options.rates:
        print(f"{model}: true pass@k " + ", ".join(f"{made.pass_at(model, k):.3f} at {k}" for k in (1, 5, 10)))
    return ExitCode.OK


def _synth_options(sub: argparse.ArgumentParser) -> None:
    # argparse takes the beginning of an option for it, so --out is understood as before
    sub.add_argument(
        "--output", required=True, metavar="DIR", help="where to write problems.csv and the files of fixes"
    )
    sub.add_argument(
        "--problems", type=positive_integer, default=100, metavar="N", help="how many problems (default: 100)"
    )
    sub.add_argument(
        "--samples", type=attempt_count, default=10, metavar="N", help="attempts per problem (default: 10)"
    )
    sub.add_argument(
        "--models",
        # the setting "models" is what a run asks
        dest="rates",
        type=named_rates,
        default="strong=0.8,weak=0.3",
        metavar="NAME=RATE,...",
        help="models with their true rates",
    )
    sub.add_argument("--seed", type=int, default=0, metavar="N", help="the seed of the outcomes (default: 0)")


SYNTH_EXAMPLE = (
    "example:\n  steelyard synth --output data --problems 200 --samples 20 --models strong=0.8,weak=0.3 --seed 7"
)


def _count_attempts(options: argparse.Namespace, root: Path) -> int:
    """pass@k of attempts in Parquet."""
    from steelyard.analysis.counts import standings
    from steelyard.engine.results.read_outcomes import parquet_outcomes
    from steelyard.errors import InputError

    if options.outcomes or options.problems_csv or options.fixes_csv or options.cost or options.score:
        raise InputError("--attempts counts passes, and cannot be combined with other outcomes, --cost or --score")
    found = parquet_outcomes(options.attempts, arguments.counting_options(options), root=root)
    warn(found.problems)
    return _print_standings(
        standings(found.tallies, _k_values(options.k_values), missing=options.missing), options.format
    )


def _print_standings(standings: Standings, form: str) -> int:
    """Print where models stand, and what to know about it."""
    from steelyard.engine.results.conclusion import standings_conclusion
    from steelyard.reports import lists
    from steelyard.reports.lists import STANDINGS_FORMATS

    text = (
        STANDINGS_FORMATS[form](standings)
        if form in STANDINGS_FORMATS
        else lists.standings_text(standings, color=is_color_wanted())
    )
    print(text, end="")
    return conclude(standings_conclusion(standings))


def _k_values(given: Sequence[int] | Sequence[Sequence[int]]) -> list[int]:
    """The k of `1 5 10` and of `1,5,10`."""
    return [size for piece in given for size in ([piece] if isinstance(piece, int) else piece)]


def import_(options: argparse.Namespace) -> int:
    """Make a run of other tools' files: their replies, their verdicts as recorded, and their failures."""
    from steelyard.engine.results.import_run import import_recordings, published_claims
    from steelyard.reports import terminal
    from steelyard.reports.lists import claims_text

    settings, _ = settings_and_run_options(options)
    done = import_recordings(
        options.file,
        output=options.output,
        reader=options.reader or "",
        scores=arguments.score_reading(options),
        root=Path(settings.output_dir),
    )
    text = terminal.summary_text(
        done.summary,
        title=str(done.folder),
        next_commands=done.next_commands,
        width=terminal_width(),
        color=is_color_wanted(),
    )
    print(text, end="")
    if claims := published_claims(options.file, reader=options.reader or ""):
        print("\n" + claims_text(claims, color=is_color_wanted()), end="")
    return conclude(done.conclusion())


def _import_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("file", nargs="+", metavar="FILE", help="files or folders of other tools")
    add_output_option(sub, "the run folder")
    sub.add_argument("-o", dest="output", help=argparse.SUPPRESS)
    sub.add_argument(
        "--from", dest="reader", metavar="NAME", help="the format, if it cannot be recognised from the file"
    )
    add_score_options(sub)
    add_settings_option(sub)


IMPORT_EXAMPLES = """\
A file is recognised by its content. Nothing is asked and nothing is run: verdicts are marked as recorded by the tool. Every command
takes the run like any other. steelyard verify RUN --eval-set FILE judges the replies again, where you have the tests.

examples:
  steelyard import logs/2026-01-05_gsm8k.eval
  steelyard import run1.eval run2.eval --output runs/gsm8k"""


COMMANDS = {
    "import": Command(import_, _import_options, IMPORT_EXAMPLES),
    "passk": Command(passk, _passk_options, PASSK_EXAMPLES),
    "repairs": Command(repairs, _repairs_options, REPAIRS_EXAMPLE),
    "synth": Command(synth, _synth_options, SYNTH_EXAMPLE),
}
