"""The command line: it only translates."""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli import arguments as meaning
from steelyard.cli.options import apply_configured_defaults, parse_options, parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.standings import Standings
    from steelyard.analysis.summary import RunResults
    from steelyard.comparison.gate import Decision
    from steelyard.engine.gate.rounds import SequentialRunResult
    from steelyard.engine.run import Run
    from steelyard.engine.session import RunOptions, SessionProgress
    from steelyard.errors import Problem
    from steelyard.evalsets.experiments import LoadedExperiment
    from steelyard.records import Case, StoppingRule, SuiteRule
    from steelyard.reports.charts.spec import Chart
    from steelyard.reports.html import BaselineReport
    from steelyard.reports.progress import ProgressCounts
    from steelyard.settings import Settings
    from steelyard.tiers.results import ExperimentAnalysis

EXIT_OK, EXIT_GATE_FAILED, EXIT_BAD_INPUT, EXIT_CANNOT_TELL, EXIT_INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:
        # a caller may have closed it; what would be printed is then for nobody
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  it stays open as long as we do
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a terminal that knows few letters must not end a run
        sys.stdout.reconfigure(errors="backslashreplace")
    commands = parser(COMMANDS)
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
            return EXIT_OK
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # whoever reads our output has seen enough; nothing more may be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _print_to_stderr(f"steelyard: the output could not be written: {error.strerror}")
        return EXIT_CANNOT_TELL
    except KeyboardInterrupt as interrupt:
        folder = getattr(interrupt, "folder", None)
        _print_to_stderr(
            "\ninterrupted" + (f"; what arrived is stored, continue with: steelyard resume {folder}" if folder else "")
        )
        return EXIT_INTERRUPTED
    except Exception as error:
        from steelyard.errors import DiskFullError, SteelyardError

        if not isinstance(error, SteelyardError):
            raise
        _print_to_stderr(f"steelyard: {error}")
        return EXIT_CANNOT_TELL if isinstance(error, DiskFullError) else EXIT_BAD_INPUT


def run(options: argparse.Namespace) -> int:
    """Ask models for attempts at each case, verify every one, and print what came of it."""
    from steelyard import evalsets
    from steelyard.engine import run as engine
    from steelyard.engine.preflight.select_cases import select_cases
    from steelyard.errors import InputError
    from steelyard.records import SuiteRule
    from steelyard.store.journal import StoredRun

    settings, means = _settings_and_run_options(options)
    paths = [*options.evalset, *(options.eval_set or ())]
    if not paths:
        raise InputError("no eval set; name a file or a folder, such as: steelyard run examples/python-basics.toml")
    loaded = evalsets.load(paths)
    _warn(loaded.problems)
    earlier = StoredRun(_find(options.failed_in, settings)) if options.failed_in else None
    cases = select_cases(loaded.cases, tags=options.filter, glob=options.case, failed_in=earlier, limit=options.limit)
    models = meaning.split_model_names(options.models) or meaning.split_model_names(
        [settings.default_model] if settings.default_model else None
    )
    parameters = meaning.parameters(options, settings.default_temperature)
    suite_rule = meaning.suite_rule(options, settings, SuiteRule(), loaded.cases)
    k = options.pass_k or (1,)
    if parameters.get("temperature") == 0 and (options.samples or max(k)) > 1:
        _print_to_stderr(
            "warning: at temperature 0 the attempts at a case are hardly different; --temperature 0.8 is usual for pass@k"
        )
    mine = _announced_shard_cases(options.shard, cases, means) if options.shard else cases
    asked: dict[str, Any] = {
        "models": models,
        "samples": options.samples,
        "k": k,
        "parameters": parameters,
        "system": meaning.text_or_file(options.system),
        "base_url": options.base_url or "",
    }
    if options.dry_run:
        for model, count, attempts, dollars in engine.forecast(mine, means=means, **asked) if mine else ():
            price = "at a price that is not known" if dollars is None else f"at ${dollars:.4f} at the most"
            print(f"{model}: {attempts} attempts at {count} cases, {price}")
        return EXIT_OK
    kept: dict[str, Any] = {
        "eval_sets": loaded.files,
        "output": Path(options.output) if options.output else None,
        "seed": options.seed,
        "rule": options.rule or loaded.rule,
        "rules": loaded.rules,
        "suites": suite_rule,
        "means": means,
    }
    until = _until(options)
    if until is None:
        return _conclude_run(engine.run(cases, shard=options.shard, **asked, **kept), options, suite_rule)
    from steelyard.engine.gate.rounds import run_until_decided

    del asked["samples"]
    decided = run_until_decided(cases, until=until, tell=_print_to_stderr, **asked, **kept)
    return _conclude_sequential_run(decided, options, suite_rule)


def _announced_shard_cases(shard: tuple[int, int], cases: Sequence[Case], means: RunOptions) -> Sequence[Case]:
    """The cases of a shard; says how many they are, and whom a budget is for."""
    from steelyard.engine.shards.deal import shard_cases

    number, of = shard
    mine = shard_cases(cases, number, of)
    _print_to_stderr(f"shard {number}/{of}: {len(mine)} of {len(cases)} cases")
    if means.max_cost is not None and of > 1:
        _print_to_stderr(
            f"--max-cost holds for each shard alone: {of} shards may spend ${of * means.max_cost:g} together"
        )
    return mine


def resume(options: argparse.Namespace) -> int:
    """Carry on with what a run still owes; with more samples, extend it."""
    from steelyard.engine import run as engine

    settings, means = _settings_and_run_options(options)
    folder = _find(options.run, settings)
    suite_rule = meaning.suite_rule_of(folder, options, settings)
    done = engine.resume(folder, samples=options.samples, means=means)
    if done.info.until is None or options.samples is not None:
        return _conclude_run(done, options, suite_rule)
    from steelyard.engine.gate.rounds import continue_until_decided

    return _conclude_sequential_run(
        continue_until_decided(done, means=means, tell=_print_to_stderr), options, suite_rule
    )


def verify(options: argparse.Namespace) -> int:
    """Verify the stored replies of a run again, with the tests as they are now; no model is asked."""
    from steelyard.engine import run as engine

    settings, means = _settings_and_run_options(options)
    folder = _find(options.run, settings)
    suite_rule = meaning.suite_rule_of(folder, options, settings)
    return _conclude_run(
        engine.verify_again(folder, eval_sets=options.eval_set or (), means=means), options, suite_rule
    )


def merge(options: argparse.Namespace) -> int:
    """Join the shards of a run that several machines have done to one run, checked to be of the same plan."""
    from steelyard.engine.shards.merge import merge as merged

    settings, means = _settings_and_run_options(options)
    output = Path(options.output) if options.output else None
    done = merged(options.run, output=output, partial=options.partial, means=means)
    return _conclude_run(done, options, meaning.suite_rule_of(done.folder, options, settings))


def list_runs(options: argparse.Namespace) -> int:
    """The runs that are here, oldest first."""
    from steelyard.engine.results.headline_cache import run_headlines
    from steelyard.reports import terminal

    settings, _ = _settings_and_run_options(options)
    print(terminal.runs_text(run_headlines(Path(settings.output_dir)), width=_width(), color=_color()), end="")
    return EXIT_OK


def show(options: argparse.Namespace) -> int:
    """A run, one of its cases, or one attempt with everything that is known about it."""
    from itertools import groupby

    from steelyard.engine.results.tier_runs import reply_judgments
    from steelyard.errors import InputError, did_you_mean
    from steelyard.reports import terminal
    from steelyard.store.journal import StoredRun

    results, folder = _results(options)
    look: dict[str, Any] = {"width": _width(), "color": _color()}
    attempts = [tried for tried in results.attempts if not (options.failed and tried.correct)]
    if options.case is None:
        if options.failed:
            groups = groupby(attempts, key=lambda tried: tried.case.id)
            print("\n".join(terminal.case_text(list(group), results.summary, **look) for _, group in groups), end="")
        else:
            print(
                terminal.summary_text(
                    results.summary, title=str(folder), next_commands=_next_commands(folder, results), **look
                ),
                end="",
            )
        return EXIT_OK
    of_case = [tried for tried in attempts if tried.case.id == options.case]
    known = [case.id for case in results.cases]
    if options.case not in known:
        raise InputError(f'{folder}: no case "{options.case}" ({did_you_mean(options.case, known)})')
    if options.number is None:
        print(terminal.case_text(of_case, results.summary, **look), end="")
        return EXIT_OK
    chosen = [tried for tried in of_case if tried.number == options.number]
    if not chosen:
        raise InputError(f'{folder}: case "{options.case}" has no attempt {options.number} of that kind')
    judged = reply_judgments(StoredRun(folder), {tried.reply.key for tried in chosen if tried.reply})
    texts = (
        terminal.attempt_text(tried, judged.get(tried.reply.key, ()) if tried.reply else (), **look) for tried in chosen
    )
    print("\n".join(texts), end="")
    return EXIT_OK


def report(options: argparse.Namespace) -> int:
    """Write reports of a run; the format follows from the file's suffix."""
    from steelyard.errors import InputError

    if not options.report:
        raise InputError(
            "nowhere to write; name a file, such as: -o report.html (.json .md .csv .html .xml .sarif .jsonl)"
        )
    settings, _ = _settings_and_run_options(options)
    folder = _find(options.run, settings)
    held = None
    if options.baseline:
        from steelyard.engine.results.html_page import baseline_comparison

        if not any(path.endswith(".html") for path in options.report):
            raise InputError("--baseline is for a page, -o FILE.html; steelyard gate and compare write other formats")
        held = baseline_comparison(
            options.baseline, str(folder.absolute()), rule=options.rule, root=Path(settings.output_dir)
        )
    by = {"k": options.pass_k, "rule": options.rule, "suites": meaning.suite_rule_of(folder, options, settings)}
    _write_reports(options.report, folder, by, held=held)
    return EXIT_OK


def compare(options: argparse.Namespace) -> int:
    """What changed between two runs, case by case: mean scores that moved by more than a threshold."""
    from steelyard.comparison.threshold import compare as compared
    from steelyard.engine.gate.sides import side
    from steelyard.reports.comparison.threshold import COMPARISON_FORMATS

    settings, _ = _settings_and_run_options(options)
    root = Path(settings.output_dir)
    sides = [side(name, rule=options.rule, root=root) for name in (options.baseline, options.current)]
    comparison = compared(*sides, threshold=options.threshold)
    print(COMPARISON_FORMATS[options.format](comparison), end="")
    return EXIT_GATE_FAILED if options.fail_on_regression and comparison.regressions else EXIT_OK


def gate(options: argparse.Namespace) -> int:
    """Whether a run got worse than its baseline, did not, or cannot be told yet; fit for gating a pull request."""
    from steelyard.engine.gate import gate as gating
    from steelyard.reports.comparison.gate import DECISION_FORMATS

    settings, _ = _settings_and_run_options(options)
    found = gating.gate(
        options.baseline,
        options.current,
        alpha=options.alpha,
        margin=options.margin,
        on=options.on,
        rule=options.rule,
        root=Path(settings.output_dir),
        counting=meaning.counting_options(options),
    )
    print(DECISION_FORMATS[options.format](found.decision, found.warnings), end="")
    if options.report:
        _write_texts(
            options.report,
            {suffix: DECISION_FORMATS[name](found.decision, found.warnings) for suffix, name in GATE_FORMATS_BY_SUFFIX},
        )
    return _gate_exit_code(found.decision, fail=options.on_inconclusive == "fail")


GATE_FORMATS_BY_SUFFIX = ((".json", "json"), (".md", "markdown"), (".txt", "text"))


def plan(options: argparse.Namespace) -> int:
    """How many attempts a gate needs to see a mean drop from a baseline, and what they cost; nobody is asked."""
    from steelyard import evalsets
    from steelyard.engine.gate.plan import gate_plan
    from steelyard.engine.gate.sides import side
    from steelyard.providers.prices import Prices
    from steelyard.reports.comparison.plan import PLAN_FORMATS

    settings, _ = _settings_and_run_options(options)
    loaded = evalsets.load(options.evalset)
    _warn(loaded.problems)
    found = gate_plan(
        loaded.cases,
        side(options.baseline, root=Path(settings.output_dir)),
        Prices(settings.prices),
        models=meaning.split_model_names(options.models),
        detect=options.detect,
        power=options.power,
        alpha=options.alpha,
    )
    print(PLAN_FORMATS[options.format](found), end="")
    return EXIT_OK


def bless(options: argparse.Namespace) -> int:
    """Keep runs as a baseline: a small file of counts, fit for committing; several runs are pooled."""
    from steelyard.engine.gate import sides

    settings, _ = _settings_and_run_options(options)
    blessed = sides.bless(options.run, options.name, rule=options.rule, root=Path(settings.output_dir))
    _warn(blessed.problems)
    for model, cases in blessed.side.models.items():
        attempts = sorted({trials.attempts for trials in cases})
        each = f"{attempts[0]}" if len(attempts) == 1 else f"{attempts[0]} to {attempts[-1]}"
        print(f"{model}: {len(cases)} cases with {each} attempts each")
    print(f"wrote {blessed.path}")
    return EXIT_OK


def passk(options: argparse.Namespace) -> int:
    """pass@k with intervals from outcomes that are there already: other tools' files, or runs of ours."""
    from steelyard.analysis.standings import standings
    from steelyard.engine.results.read_outcomes import ColumnOverrides, gather

    settings, _ = _settings_and_run_options(options)
    if options.attempts:
        return _count_attempts(options, Path(settings.output_dir))
    columns = ColumnOverrides(options.case, options.model, options.passed, options.sample, options.cost, options.score)
    found = gather(
        options.outcomes,
        problems=options.problems_csv,
        fixes=options.fixes_csv,
        columns=columns,
        root=Path(settings.output_dir),
    )
    _warn(found.problems)
    return _print_standings(
        standings(found.tallies, _k_values(options.k_values), missing=options.missing), options.format
    )


def _count_attempts(options: argparse.Namespace, root: Path) -> int:
    """pass@k of attempts in Parquet."""
    from steelyard.analysis.standings import standings
    from steelyard.engine.results.count_attempts import parquet_outcomes
    from steelyard.errors import InputError

    if options.outcomes or options.problems_csv or options.fixes_csv or options.cost or options.score:
        raise InputError("--attempts counts who passed, and goes with no other outcomes and with no --cost or --score")
    found = parquet_outcomes(options.attempts, meaning.counting_options(options), root=root)
    _warn(found.problems)
    return _print_standings(
        standings(found.tallies, _k_values(options.k_values), missing=options.missing), options.format
    )


def repairs(options: argparse.Namespace) -> int:
    """pass@k of every model's recorded repairs, as evaluation_config.json says; Terraform judges what is not judged yet."""
    from steelyard.engine.repairs.evaluate import evaluate
    from steelyard.engine.session import RunOptions
    from steelyard.reports import terminal

    means = RunOptions(
        parallelism=options.parallelism,
        require_isolation=options.require_isolation or "",
        allow_weak_sandbox=options.allow_weak_sandbox,
        watch=_ProgressDisplay(),
    )
    try:
        evaluation = evaluate(Path(options.evaluation), means)
    except KeyboardInterrupt:
        _print_to_stderr("\ninterrupted; what was judged is kept, and the same command goes on")
        return EXIT_INTERRUPTED
    _warn(evaluation.problems)
    if evaluation.levels:
        print("plausible")
    _print_standings(evaluation.standings, "table")
    for level, standings in evaluation.levels.items():
        print(f"\n{level}\n{terminal.standings_text(standings, color=_color())}", end="")
        for note in standings.notes:
            if note not in evaluation.standings.notes:
                _print_to_stderr(f"note: {level}: {note}")
    for line in evaluation.excuses():
        _print_to_stderr(f"steelyard: {line}")
    for path in evaluation.written:
        _print_to_stderr(f"wrote {path}")
    return EXIT_OK if evaluation.conclusive else EXIT_CANNOT_TELL


def synth(options: argparse.Namespace) -> int:
    """Make up outcomes from known rates, to see that the estimates recover them."""
    from steelyard.engine.results.synthetic import synthesize

    made = synthesize(
        Path(options.out), problems=options.problems, samples=options.samples, models=options.models, seed=options.seed
    )
    for path in made.written:
        print(f"wrote {path}")
    for model in options.models:
        print(f"{model}: true pass@k " + ", ".join(f"{made.pass_at(model, k):.3f} at {k}" for k in (1, 5, 10)))
    return EXIT_OK


def query(options: argparse.Namespace) -> int:
    """Ask a question in SQL over all runs."""
    from steelyard.engine.results import query as questions
    from steelyard.reports import terminal

    settings, _ = _settings_and_run_options(options)
    root = Path(settings.output_dir)
    if options.report:
        warnings = questions.write_query_result(options.sql, options.report, root, copies=options.copies)
        _print_to_stderr(f"wrote {options.report}")
    elif options.format == "table":
        with questions.run_query(options.sql, root, copies=options.copies) as answer:
            rows, is_more = answer.shown()
            print(terminal.rows_text(answer.columns, rows, color=_color()), end="")
        warnings = answer.warnings
        if is_more:
            _print_to_stderr(f"only the first {len(rows):,} rows are shown; --format csv and -o FILE give all of them")
    else:
        sys.stdout.flush()
        warnings = questions.stream_query_result(
            options.sql, options.format, sys.stdout.buffer, root, copies=options.copies
        )
    for warning in warnings:
        _print_to_stderr(f"warning: {warning}")
    return EXIT_OK


def validate(options: argparse.Namespace) -> int:
    """Read eval sets, report every problem at once, and prove that references pass and counterexamples fail."""
    from steelyard import evalsets
    from steelyard.engine.preflight.references import check_references
    from steelyard.errors import InputError

    try:
        loaded = evalsets.load(options.evalset)
    except InputError as error:
        for problem in error.problems:
            print(problem if problem.fatal else f"warning: {problem}")
        _print_to_stderr(f"steelyard: {sum(problem.fatal for problem in error.problems)} problems")
        return EXIT_BAD_INPUT
    _, means = _settings_and_run_options(options)
    proved, problems = check_references(loaded.cases, means)
    for problem in (*loaded.problems, *problems):
        print(problem if problem.fatal else f"warning: {problem}")
    wrong = sum(problem.fatal for problem in problems)
    print(f"{len(loaded.cases)} cases in {len(loaded.files)} files; {proved} answers proved; {wrong} problems")
    return EXIT_BAD_INPUT if wrong else EXIT_OK


def suites(options: argparse.Namespace) -> int:
    """List the suites that come with steelyard, show the cases of some, or write them as JSONL to be edited."""
    from steelyard import evalsets
    from steelyard.evalsets.export import case_json_lines
    from steelyard.reports import terminal
    from steelyard.store.atomic_files import AtomicFiles, explain_write_errors

    loaded = evalsets.load(options.evalset or ["suite:all"])
    for problem in loaded.problems:
        _print_to_stderr(f"warning: {problem}")
    if options.report:
        path = Path(options.report)
        with explain_write_errors(path.parent), AtomicFiles() as fresh:
            fresh.write(path, case_json_lines(loaded.cases))
            fresh.finish()
        print(f"wrote {path}: {len(loaded.cases)} cases")
    elif options.evalset:
        print(terminal.cases_text(loaded.cases, color=_color()), end="")
    else:
        print(terminal.suites_text(loaded.cases, color=_color()), end="")
    return EXIT_OK


def tiers(options: argparse.Namespace) -> int:
    """Run an experiment in tiers, or analyse one that was run, here or by another tool: quality, cost, grade and uplift."""
    from steelyard.engine import run as engine
    from steelyard.engine.results import tier_runs as comparing
    from steelyard.errors import InputError
    from steelyard.evalsets import experiments
    from steelyard.store.journal import StoredRun

    settings, means = _settings_and_run_options(options)
    stopped: tuple[str, ...] = ()
    if bool(options.experiment) == bool(options.runs_csv):
        raise InputError("name an experiment (.toml), a run, or recorded runs with --runs-csv FILE; one of them")
    if not options.runs_csv and (options.judges_csv or options.criteria_csv):
        raise InputError("--judges-csv and --criteria-csv belong to --runs-csv FILE")
    if options.shard and not (options.experiment or "").endswith(".toml"):
        raise InputError("--shard is for running an experiment (.toml); what is recorded is analysed as a whole")
    if options.dry_run and not (options.experiment or "").endswith(".toml"):
        raise InputError("--dry-run is for an experiment (.toml); what is recorded costs nothing to analyse")
    if options.runs_csv:
        found, problems = comparing.from_files(options.runs_csv, options.judges_csv, options.criteria_csv)
        _warn(problems)
    else:
        folder = Path(options.experiment)
        if options.experiment.endswith(".toml"):
            loaded = experiments.load(options.experiment)
            _warn(loaded.problems)
            mine = _announced_shard_cases(options.shard, loaded.cases, means) if options.shard else loaded.cases
            if options.dry_run:
                return _forecast_tiers(loaded._replace(cases=tuple(mine)), means) if mine else EXIT_OK
            done = engine.run_experiment(loaded, output=options.output, shard=options.shard, means=means)
            folder, stopped = done.folder, done.stopped
            _print_to_stderr(str(folder))
            if not mine:
                return EXIT_OK
        else:
            folder = _find(options.experiment, settings)
        found = comparing.tier_experiment(StoredRun(folder))
    for reason in stopped:
        _print_to_stderr(f"steelyard: {reason}; continue with: steelyard resume {folder}")
    if stopped and not found.is_comparable:
        return EXIT_CANNOT_TELL
    analysis = comparing.analysis(found, baseline=options.baseline, pair_by=options.pair_by)
    _print_tiers(analysis, options)
    return EXIT_CANNOT_TELL if stopped or not analysis.conclusive else EXIT_OK


def judge(options: argparse.Namespace) -> int:
    """Have the answers of a run judged by a panel of models, by a rubric; verdicts and replies stay as they are."""
    import msgspec

    from steelyard.engine import run as engine
    from steelyard.engine.results import tier_runs as comparing
    from steelyard.errors import InputError
    from steelyard.evalsets import rubrics
    from steelyard.records import Panel
    from steelyard.store.journal import StoredRun
    from steelyard.tiers.rubrics import default_rubric

    settings, means = _settings_and_run_options(options)
    judges = meaning.split_model_names(options.judges)
    if not judges:
        raise InputError("no judges; name one or several with --judges, such as --judges openai/gpt-5-mini")
    rubric = default_rubric()
    if options.rubric:
        read = rubrics.load(options.rubric)
        _warn(read.problems)
        rubric = read.rubric
    panel = Panel(
        judges=tuple(judges),
        rubric=msgspec.to_builtins(rubric),
        digest=rubric.digest,
        repeats=options.repeats,
        parameters=meaning.parameters(options),
        allow_self=options.allow_self,
    )
    done = engine.judge(_find(options.run, settings), panel, means=means)
    analysis = comparing.analysis(comparing.tier_experiment(StoredRun(done.folder)))
    _print_tiers(analysis, options)
    for reason in done.stopped:
        _print_to_stderr(f"steelyard: {reason}; continue with the same command")
    return EXIT_CANNOT_TELL if done.stopped or not analysis.conclusive else EXIT_OK


def view(options: argparse.Namespace) -> int:
    """Show the runs of a folder as web pages, as they grow; on this machine alone, until Ctrl-C."""
    from steelyard.errors import InputError
    from steelyard.viewer.serving import serve

    settings, _ = _settings_and_run_options(options)
    root = Path(options.folder or settings.output_dir)
    if options.folder and not root.is_dir():
        raise InputError(f"{root}: no such folder; name one that holds runs, or a run")

    def tell(url: str) -> None:
        print(url, flush=True)
        _print_to_stderr(f"showing the runs of {root}; Ctrl-C ends it")

    key = os.environ.get("STEELYARD_API_KEY", "")
    serve(root, port=options.port, key=key, tell=tell, browser=not options.no_browser)
    return EXIT_OK


def models(options: argparse.Namespace) -> int:
    """What the configured endpoints offer, with prices per million tokens."""
    from steelyard.engine.preflight.list_models import list_models
    from steelyard.reports import terminal

    _, means = _settings_and_run_options(options)
    found = list_models(means, options.base_url or "")
    print(terminal.available_models_text(found, width=_width(), color=_color()), end="")
    return EXIT_OK if any(offer.model for offer in found) else EXIT_CANNOT_TELL


def doctor(options: argparse.Namespace) -> int:
    """What is enforced on generated code here, which toolchains were found, and how to get the missing ones."""
    from steelyard.engine.preflight.doctor import examine_machine
    from steelyard.reports import terminal

    health = examine_machine()
    if options.format == "json":
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(health), indent=2).decode())
    else:
        print(terminal.health_text(health, width=_width(), color=_color()), end="")
    return EXIT_OK if health.level else EXIT_CANNOT_TELL


def init(options: argparse.Namespace) -> int:
    """Write a commented eval set and a settings file to begin with."""
    from steelyard import settings
    from steelyard.errors import InputError
    from steelyard.evalsets import starter

    folder = Path(options.folder)
    files = {
        folder / "evals" / "starter.toml": starter.starter(),
        folder / "steelyard.toml": settings.starter_settings(),
    }
    standing = [str(path) for path in files if path.exists()]
    if standing:
        raise InputError(f"{', '.join(standing)}: there already; nothing was written")
    for path, content in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        print(f"wrote {path}")
    evals = folder / "evals" / "starter.toml"
    print(f"\nNext:\n  steelyard validate {evals}\n  steelyard run {evals} --models openai/gpt-5-mini --samples 5")
    return EXIT_OK


COMMANDS = {
    "run": run,
    "resume": resume,
    "verify": verify,
    "merge": merge,
    "list": list_runs,
    "show": show,
    "report": report,
    "compare": compare,
    "gate": gate,
    "plan": plan,
    "bless": bless,
    "passk": passk,
    "repairs": repairs,
    "synth": synth,
    "query": query,
    "validate": validate,
    "suites": suites,
    "tiers": tiers,
    "judge": judge,
    "view": view,
    "models": models,
    "init": init,
    "doctor": doctor,
}


def _settings_and_run_options(options: argparse.Namespace) -> tuple[Settings, RunOptions]:
    return meaning.settings_and_run_options(options, _ProgressDisplay() if hasattr(options, "parallelism") else None)


def _print_tiers(analysis: ExperimentAnalysis, options: argparse.Namespace) -> None:
    """Print what tiers come to, and write it as tables and charts."""
    from steelyard.reports import tiers as tables
    from steelyard.reports.charts import tiers as charts

    texts = {name: render(analysis) for name, render in tables.TIER_ANALYSIS_FORMATS.items()}
    texts["text"] = tables.text(analysis, color=_color())
    print(texts[options.format], end="")
    if options.report:
        _write_texts(options.report, {".json": texts["json"], ".md": texts["markdown"], ".csv": texts["csv"]})
    if options.charts:
        _write_charts(charts.charts(analysis), Path(options.charts))


def _write_charts(charts: Sequence[Chart], folder: Path) -> None:
    """Write each chart as Vega-Lite and as SVG."""
    from steelyard.reports.charts.svg import chart_files
    from steelyard.store.atomic_files import explain_write_errors

    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in chart_files(charts).items():
            (folder / name).write_text(text, "utf-8")
    _print_to_stderr(f"wrote {len(charts)} charts into {folder}")


def _forecast_tiers(loaded: LoadedExperiment, means: RunOptions) -> int:
    from steelyard.engine import run as engine

    forecasts = engine.forecast_experiment(loaded, means=means)
    for forecast in forecasts:
        dollars = forecast.most_usd
        price = "at a price that is not known" if dollars is None else f"at ${dollars:.4f} at the most"
        print(f"{forecast.model}: {forecast.attempts} requests about {forecast.cases} cases, {price}")
    known = [forecast.most_usd for forecast in forecasts if forecast.most_usd is not None]
    beyond = "" if len(known) == len(forecasts) else ", without those whose price is not known"
    if known:
        print(f"all together: ${sum(known):.4f} at the most{beyond}")
    return EXIT_OK


def _gate_exit_code(decision: Decision, *, fail: bool) -> int:
    from steelyard.comparison.gate import CANNOT_TELL as UNDECIDED
    from steelyard.comparison.gate import REGRESSED

    if decision.verdict == REGRESSED:
        return EXIT_GATE_FAILED
    if decision.verdict == UNDECIDED:
        missing = any(model.data_missing for model in decision.models)
        if not missing and not fail:
            _print_to_stderr("warning: too little evidence to tell; passed, because --on-inconclusive is pass")
        return EXIT_CANNOT_TELL if missing or fail else EXIT_OK
    return EXIT_OK


def _write_texts(paths: Sequence[str], texts: dict[str, str]) -> None:
    from steelyard.errors import InputError, did_you_mean

    for path in map(Path, paths):
        if path.suffix not in texts:
            raise InputError(f'{path}: unknown kind of report "{path.suffix}" ({did_you_mean(path.suffix, texts)})')
    for path in map(Path, paths):
        try:
            path.write_text(texts[path.suffix], "utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        _print_to_stderr(f"wrote {path}")


def _print_standings(standings: Standings, form: str) -> int:
    """Print where models stand, say what to know about it, and give the exit code."""
    from steelyard.reports import terminal
    from steelyard.reports.standings import STANDINGS_FORMATS

    text = (
        STANDINGS_FORMATS[form](standings)
        if form in STANDINGS_FORMATS
        else terminal.standings_text(standings, color=_color())
    )
    print(text, end="")
    for note in standings.notes:
        _print_to_stderr(f"note: {note}")
    return EXIT_OK if standings.conclusive else EXIT_CANNOT_TELL


def _k_values(given: Sequence[int] | Sequence[Sequence[int]]) -> list[int]:
    """The k of `1 5 10` and of `1,5,10`."""
    return [size for piece in given for size in ([piece] if isinstance(piece, int) else piece)]


def _find(name: str, settings: Settings) -> Path:
    from steelyard.store.locate import find_run

    return find_run(name, Path(settings.output_dir))


def _results(options: argparse.Namespace) -> tuple[RunResults, Path]:
    from steelyard.analysis import summary
    from steelyard.store.journal import StoredRun

    settings, _ = _settings_and_run_options(options)
    folder = _find(options.run, settings)
    stored = StoredRun(folder)
    by = {"k": options.pass_k, "rule": options.rule, "suites": meaning.suite_rule_of(folder, options, settings)}
    found = summary.run_results(stored.info, stored.cases, stored.facts(), **by)
    _warn(stored.damaged)
    return found, folder


def _conclude_run(done: Run, options: argparse.Namespace, suite_rule: SuiteRule | None) -> int:
    """Print what came of a run, write its reports, and say how it went."""
    from steelyard import reports
    from steelyard.analysis import summary
    from steelyard.reports import terminal
    from steelyard.store.journal import StoredRun

    stored = StoredRun(done.folder)
    results = None
    by = {"k": options.pass_k, "rule": options.rule, "suites": suite_rule}
    if options.format != "text" or any(not path.endswith(".html") for path in options.report or ()):
        results = summary.run_results(done.info, stored.cases, stored.facts(), **by)
        done = done._replace(summary=results.summary)
    elif any(by.values()):
        done = done._replace(summary=summary.summarise(done.info, stored.cases, stored.facts(), **by))
    if options.format == "text":
        print(
            terminal.summary_text(
                done.summary,
                title=str(done.folder),
                next_commands=_next_commands(done.folder, done),
                width=_width(),
                color=_color(),
            ),
            end="",
        )
    elif results is not None:
        print(reports.render(options.format, results), end="")
    if options.report:
        _write_reports(options.report, done.folder, by, results)
    for note in done.notes:
        _print_to_stderr(f"warning: {note}")
    for reason in done.stopped:
        _print_to_stderr(f"steelyard: {reason}; continue with: steelyard resume {done.folder}")
    if done.stopped or not done.summary.conclusive:
        return EXIT_CANNOT_TELL
    if options.fail_under is not None and done.summary.cases:
        for model in done.summary.models:
            k, estimate = min(model.pass_at.items())
            if estimate.value is None:
                return EXIT_CANNOT_TELL
            if estimate.value < options.fail_under - 1e-9:
                _print_to_stderr(
                    f"steelyard: {model.model}: pass@{k} is {estimate.value:.1%}, under {options.fail_under:.1%}"
                )
                return EXIT_GATE_FAILED
    return EXIT_OK


def _until(options: argparse.Namespace) -> StoppingRule | None:
    """When to stop asking, if a gate is to say so."""
    from steelyard.engine.gate.rounds import DEFAULT_MAX_SAMPLES
    from steelyard.errors import InputError
    from steelyard.records import StoppingRule

    if not options.until_decided:
        for name, given in (("--baseline", options.baseline), ("--max-samples", options.max_samples)):
            if given is not None:
                raise InputError(f"{name} belongs to --until-decided; a finished run is decided by: steelyard gate")
        return None
    if options.baseline is None:
        raise InputError("--until-decided needs a --baseline; make one with: steelyard bless RUN --as NAME")
    if options.shard is not None:
        raise InputError("--until-decided looks at all cases after every round, and a --shard has only some of them")
    if options.samples is not None:
        raise InputError("--until-decided finds out how many attempts it needs; --max-samples N bounds them")
    most = DEFAULT_MAX_SAMPLES if options.max_samples is None else options.max_samples
    return StoppingRule(baseline=options.baseline, most=most, alpha=options.alpha, margin=options.margin)


def _conclude_sequential_run(
    decided: SequentialRunResult, options: argparse.Namespace, suite_rule: SuiteRule | None
) -> int:
    """Print what came of a run and what was decided, and what it saved."""
    from steelyard.comparison.gate import CANNOT_TELL as UNDECIDED
    from steelyard.reports.comparison.gate import DECISION_FORMATS
    from steelyard.reports.figures import money

    code = _conclude_run(decided.run, options, suite_rule)
    if decided.gated is None:
        return code
    said = DECISION_FORMATS["text"](decided.gated.decision, decided.gated.warnings)
    worth = "" if decided.saved_usd is None else f", about {money(decided.saved_usd)}"
    said += (
        f"\n{decided.asked:,} attempts decided; {decided.planned:,} were allowed: {decided.saved:.0%} saved{worth}\n"
        if decided.gated.decision.verdict != UNDECIDED
        else f"\n{decided.asked:,} of {decided.planned:,} allowed attempts did not decide\n"
    )
    print(f"\n{said}" if options.format == "text" else "", end="")
    if options.format != "text":
        _print_to_stderr(said)
    # a decision stands, whatever could not be asked any more
    decision = _gate_exit_code(decided.gated.decision, fail=options.on_inconclusive == "fail")
    return decision if decided.gated.decision.verdict != UNDECIDED else decision or code


def _next_commands(folder: Path, done: Run | RunResults) -> list[str]:
    """What a reader most likely wants to type next."""
    from steelyard.analysis.summary import hardest_cases

    commands = []
    if any(model.missing for model in done.summary.models):
        commands.append(f"steelyard resume {folder}")
    if done.info.experiment or done.info.panel:
        commands.append(f"steelyard tiers {folder}")
    worst = hardest_cases(done.summary, 1)
    commands += [f"steelyard show {folder} {case.case} 1" for case in worst]
    return [*commands, f"steelyard report {folder} -o report.html"]


def _write_reports(
    paths: Sequence[str],
    folder: Path,
    by: dict[str, Any],
    results: RunResults | None = None,
    held: BaselineReport | None = None,
) -> None:
    """Write reports of a run; a page is made from its folder, so that a large run need not fit into memory."""
    from steelyard import reports
    from steelyard.analysis import summary
    from steelyard.engine.results.html_page import html_page
    from steelyard.errors import InputError
    from steelyard.store.journal import StoredRun

    formats = {path: reports.report_format_of(path) for path in map(Path, paths)}
    stored = StoredRun(folder)
    for path, name in formats.items():
        if name == "html":
            text = html_page(stored, **by, held=held)
        else:
            results = results or summary.run_results(stored.info, stored.cases, stored.facts(), **by)
            text = reports.render(name, results)
        try:
            path.write_text(text, "utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        _print_to_stderr(f"wrote {path}")
    _warn(stored.damaged)


def _print_to_stderr(text: str) -> None:
    from steelyard.text import plain

    print(plain(text), file=sys.stderr)


def _warn(problems: Sequence[Problem]) -> None:
    for problem in problems:
        _print_to_stderr(f"warning: {problem}")


def _color() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and "CI" not in os.environ


def _width() -> int:
    import shutil

    return shutil.get_terminal_size((100, 40)).columns


class _ProgressDisplay:
    """Shows a run's progress: one line that is written over in a terminal, now and then a line elsewhere."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._over = sys.stderr.isatty() and "CI" not in os.environ
        self._pause = 1.0 if self._over else 15.0
        self._last = self._started
        self._hears = False

    def __call__(self, progress: SessionProgress) -> None:
        from steelyard.reports.progress import ProgressCounts

        if progress.appraisals:
            if not self._hears:
                # how long the answers took says nothing of how long their judges will
                self._hears, self._started = True, time.monotonic()
            heard = ProgressCounts(
                wanted=progress.appraisals,
                replied=None,
                judged=progress.heard,
                correct=None,
                failed=progress.unheard,
                spent=progress.spent,
                reason="",
                done="judgments",
            )
            self._show(heard)
            return
        counts = ProgressCounts(
            wanted=progress.verdicts,
            replied=progress.replied,
            judged=progress.judged,
            correct=progress.correct,
            failed=progress.failed,
            spent=progress.spent,
            reason=progress.reason,
            nodes=progress.nodes,
        )
        self._show(counts)

    def _show(self, counts: ProgressCounts) -> None:
        from steelyard.reports.progress import progress_bar, progress_line

        now = time.monotonic()
        ended = counts.judged + counts.failed >= counts.wanted
        if now - self._last < self._pause and not (ended and self._over):
            return
        self._last = now
        text = progress_line(counts, now - self._started)
        if self._over:
            text = f"{progress_bar(counts.judged + counts.failed, counts.wanted)} {text}"
            sys.stderr.write(f"\r\x1b[2K{text[: _width() - 1]}" + ("\r\x1b[2K" if ended else ""))
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
