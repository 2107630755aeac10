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
from steelyard.cli.options import parsed, parser, take_over_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.analysis.standings import Standings
    from steelyard.analysis.summary import Results
    from steelyard.comparison.gate import Decision
    from steelyard.engine.gate.rounds import Decided
    from steelyard.engine.repairs.judging import Progress as Judging
    from steelyard.engine.run import Run
    from steelyard.engine.session import Means, Progress
    from steelyard.errors import Problem
    from steelyard.evalsets.experiments import Loaded
    from steelyard.records import Case, SuiteRule, Until
    from steelyard.reports.html import Against
    from steelyard.reports.progress import Counts
    from steelyard.settings import Settings
    from steelyard.tiers.analysis import Analysis

FINE, GATE_FAILED, BAD_INPUT, CANNOT_TELL, INTERRUPTED = 0, 1, 2, 3, 130


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
            take_over_defaults(commands, arguments)
        options = parsed(commands, arguments)
        if options.command is None:
            commands.print_help()
            return FINE
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # whoever reads our output has seen enough; nothing more may be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _tell(f"steelyard: the output could not be written: {error.strerror}")
        return CANNOT_TELL
    except KeyboardInterrupt as interrupt:
        folder = getattr(interrupt, "folder", None)
        _tell(
            "\ninterrupted" + (f"; what arrived is stored, continue with: steelyard resume {folder}" if folder else "")
        )
        return INTERRUPTED
    except Exception as error:
        from steelyard.errors import NoRoomError, SteelyardError

        if not isinstance(error, SteelyardError):
            raise
        _tell(f"steelyard: {error}")
        return CANNOT_TELL if isinstance(error, NoRoomError) else BAD_INPUT


def run(options: argparse.Namespace) -> int:
    """Ask models for attempts at each case, verify every one, and print what came of it."""
    from steelyard import evalsets, store
    from steelyard.engine import run as engine
    from steelyard.engine.preflight.select_cases import choose
    from steelyard.errors import InputError
    from steelyard.records import SuiteRule

    settings, means = _means(options)
    paths = [*options.evalset, *(options.eval_set or ())]
    if not paths:
        raise InputError("no eval set; name a file or a folder, such as: steelyard run examples/python-basics.toml")
    loaded = evalsets.load(paths)
    _warn(loaded.problems)
    earlier = store.Stored(_find(options.failed_in, settings)) if options.failed_in else None
    cases = choose(loaded.cases, tags=options.filter, glob=options.case, failed_in=earlier, limit=options.limit)
    models = meaning.models(options.models) or meaning.models(
        [settings.default_model] if settings.default_model else None
    )
    parameters = meaning.parameters(options, settings.default_temperature)
    suite_rule = meaning.suite_rule(options, settings, SuiteRule(), loaded.cases)
    k = options.pass_k or (1,)
    if parameters.get("temperature") == 0 and (options.samples or max(k)) > 1:
        _tell(
            "warning: at temperature 0 the attempts at a case are hardly different; --temperature 0.8 is usual for pass@k"
        )
    mine = _tell_of_shard(options.shard, cases, means) if options.shard else cases
    asked: dict[str, Any] = {
        "models": models,
        "samples": options.samples,
        "k": k,
        "parameters": parameters,
        "system": meaning.text(options.system),
        "base_url": options.base_url or "",
    }
    if options.dry_run:
        for model, count, attempts, dollars in engine.forecast(mine, means=means, **asked) if mine else ():
            price = "at a price that is not known" if dollars is None else f"at ${dollars:.4f} at the most"
            print(f"{model}: {attempts} attempts at {count} cases, {price}")
        return FINE
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
        return _conclude(engine.run(cases, shard=options.shard, **asked, **kept), options, suite_rule)
    from steelyard.engine.gate.rounds import run_until_decided

    del asked["samples"]
    decided = run_until_decided(cases, until=until, tell=_tell, **asked, **kept)
    return _conclude_decided(decided, options, suite_rule)


def _tell_of_shard(shard: tuple[int, int], cases: Sequence[Case], means: Means) -> Sequence[Case]:
    """The cases of a shard; says how many they are, and whom a budget is for."""
    from steelyard.engine.shards.deal import hand

    number, of = shard
    mine = hand(cases, number, of)
    _tell(f"shard {number}/{of}: {len(mine)} of {len(cases)} cases")
    if means.max_cost is not None and of > 1:
        _tell(f"--max-cost holds for each shard alone: {of} shards may spend ${of * means.max_cost:g} together")
    return mine


def resume(options: argparse.Namespace) -> int:
    """Carry on with what a run still owes; with more samples, extend it."""
    from steelyard.engine import run as engine

    settings, means = _means(options)
    folder = _find(options.run, settings)
    suite_rule = meaning.suite_rule_of(folder, options, settings)
    done = engine.resume(folder, samples=options.samples, means=means)
    if done.info.until is None or options.samples is not None:
        return _conclude(done, options, suite_rule)
    from steelyard.engine.gate.rounds import decided

    return _conclude_decided(decided(done, means=means, tell=_tell), options, suite_rule)


def verify(options: argparse.Namespace) -> int:
    """Verify the stored replies of a run again, with the tests as they are now; no model is asked."""
    from steelyard.engine import run as engine

    settings, means = _means(options)
    folder = _find(options.run, settings)
    suite_rule = meaning.suite_rule_of(folder, options, settings)
    return _conclude(engine.verify_again(folder, eval_sets=options.eval_set or (), means=means), options, suite_rule)


def merge(options: argparse.Namespace) -> int:
    """Join the shards of a run that several machines have done to one run, checked to be of the same plan."""
    from steelyard.engine.shards.merge import merge as merged

    settings, means = _means(options)
    output = Path(options.output) if options.output else None
    done = merged(options.run, output=output, partial=options.partial, means=means)
    return _conclude(done, options, meaning.suite_rule_of(done.folder, options, settings))


def list_runs(options: argparse.Namespace) -> int:
    """The runs that are here, oldest first."""
    from steelyard.engine.results.headline_cache import listed
    from steelyard.reports import terminal

    settings, _ = _means(options)
    print(terminal.runs_text(listed(Path(settings.output_dir)), width=_width(), color=_color()), end="")
    return FINE


def show(options: argparse.Namespace) -> int:
    """A run, one of its cases, or one attempt with everything that is known about it."""
    from itertools import groupby

    from steelyard.engine.results.tier_runs import heard
    from steelyard.errors import InputError, nearest
    from steelyard.reports import terminal
    from steelyard.store import Stored

    results, folder = _results(options)
    look: dict[str, Any] = {"width": _width(), "color": _color()}
    attempts = [tried for tried in results.attempts if not (options.failed and tried.correct)]
    if options.case is None:
        if options.failed:
            groups = groupby(attempts, key=lambda tried: tried.case.id)
            print("\n".join(terminal.case_text(list(group), results.summary, **look) for _, group in groups), end="")
        else:
            print(
                terminal.summary_text(results.summary, title=str(folder), next_commands=_next(folder, results), **look),
                end="",
            )
        return FINE
    of_case = [tried for tried in attempts if tried.case.id == options.case]
    known = [case.id for case in results.cases]
    if options.case not in known:
        raise InputError(f'{folder}: no case "{options.case}" ({nearest(options.case, known)})')
    if options.number is None:
        print(terminal.case_text(of_case, results.summary, **look), end="")
        return FINE
    chosen = [tried for tried in of_case if tried.number == options.number]
    if not chosen:
        raise InputError(f'{folder}: case "{options.case}" has no attempt {options.number} of that kind')
    judged = heard(Stored(folder), {tried.reply.key for tried in chosen if tried.reply})
    texts = (
        terminal.attempt_text(tried, judged.get(tried.reply.key, ()) if tried.reply else (), **look) for tried in chosen
    )
    print("\n".join(texts), end="")
    return FINE


def report(options: argparse.Namespace) -> int:
    """Write reports of a run; the format follows from the file's suffix."""
    from steelyard.errors import InputError

    if not options.report:
        raise InputError(
            "nowhere to write; name a file, such as: -o report.html (.json .md .csv .html .xml .sarif .jsonl)"
        )
    settings, _ = _means(options)
    folder = _find(options.run, settings)
    held = None
    if options.baseline:
        from steelyard.engine.results.html_page import against

        if not any(path.endswith(".html") for path in options.report):
            raise InputError("--baseline is for a page, -o FILE.html; steelyard gate and compare write other formats")
        held = against(options.baseline, str(folder.absolute()), rule=options.rule, root=Path(settings.output_dir))
    by = {"k": options.pass_k, "rule": options.rule, "suites": meaning.suite_rule_of(folder, options, settings)}
    _write(options.report, folder, by, held=held)
    return FINE


def compare(options: argparse.Namespace) -> int:
    """What changed between two runs, case by case: mean scores that moved by more than a threshold."""
    from steelyard.comparison.threshold import compare as compared
    from steelyard.engine.gate.sides import side
    from steelyard.reports.comparison import FORMATS

    settings, _ = _means(options)
    root = Path(settings.output_dir)
    sides = [side(name, rule=options.rule, root=root) for name in (options.baseline, options.current)]
    comparison = compared(*sides, threshold=options.threshold)
    print(FORMATS[options.format](comparison), end="")
    return GATE_FAILED if options.fail_on_regression and comparison.regressions else FINE


def gate(options: argparse.Namespace) -> int:
    """Whether a run got worse than its baseline, did not, or cannot be told yet; fit for gating a pull request."""
    from steelyard.engine.gate import gate as gating
    from steelyard.reports.gate import FORMATS

    settings, _ = _means(options)
    found = gating.gate(
        options.baseline,
        options.current,
        alpha=options.alpha,
        margin=options.margin,
        on=options.on,
        rule=options.rule,
        root=Path(settings.output_dir),
        counting=meaning.counting(options),
    )
    print(FORMATS[options.format](found.decision, found.warnings), end="")
    if options.report:
        _write_texts(
            options.report, {suffix: FORMATS[name](found.decision, found.warnings) for suffix, name in GATE_FORMATS}
        )
    return _gate_code(found.decision, fail=options.on_inconclusive == "fail")


GATE_FORMATS = ((".json", "json"), (".md", "markdown"), (".txt", "text"))


def plan(options: argparse.Namespace) -> int:
    """How many attempts a gate needs to see a mean drop from a baseline, and what they cost; nobody is asked."""
    from steelyard import evalsets
    from steelyard.engine.gate.plan import planned
    from steelyard.engine.gate.sides import side
    from steelyard.providers.prices import Prices
    from steelyard.reports.plan import FORMATS

    settings, _ = _means(options)
    loaded = evalsets.load(options.evalset)
    _warn(loaded.problems)
    found = planned(
        loaded.cases,
        side(options.baseline, root=Path(settings.output_dir)),
        Prices(settings.prices),
        models=meaning.models(options.models),
        detect=options.detect,
        power=options.power,
        alpha=options.alpha,
    )
    print(FORMATS[options.format](found), end="")
    return FINE


def bless(options: argparse.Namespace) -> int:
    """Keep runs as a baseline: a small file of counts, fit for committing; several runs are pooled."""
    from steelyard.engine.gate import sides

    settings, _ = _means(options)
    blessed = sides.bless(options.run, options.name, rule=options.rule, root=Path(settings.output_dir))
    _warn(blessed.problems)
    for model, cases in blessed.side.models.items():
        attempts = sorted({trials.attempts for trials in cases})
        each = f"{attempts[0]}" if len(attempts) == 1 else f"{attempts[0]} to {attempts[-1]}"
        print(f"{model}: {len(cases)} cases with {each} attempts each")
    print(f"wrote {blessed.path}")
    return FINE


def passk(options: argparse.Namespace) -> int:
    """pass@k with intervals from outcomes that are there already: other tools' files, or runs of ours."""
    from steelyard.analysis.standings import standings
    from steelyard.engine.results.read_outcomes import Columns, gather

    settings, _ = _means(options)
    if options.attempts:
        return _count_attempts(options, Path(settings.output_dir))
    columns = Columns(options.case, options.model, options.passed, options.sample, options.cost, options.score)
    found = gather(
        options.outcomes,
        problems=options.problems_csv,
        fixes=options.fixes_csv,
        columns=columns,
        root=Path(settings.output_dir),
    )
    _warn(found.problems)
    return _stand(standings(found.tallies, _sizes(options.k_values), missing=options.missing), options.format)


def _count_attempts(options: argparse.Namespace, root: Path) -> int:
    """pass@k of attempts in Parquet."""
    from steelyard.analysis.standings import standings
    from steelyard.engine.results.count_attempts import counted
    from steelyard.errors import InputError

    if options.outcomes or options.problems_csv or options.fixes_csv or options.cost or options.score:
        raise InputError("--attempts counts who passed, and goes with no other outcomes and with no --cost or --score")
    found = counted(options.attempts, meaning.counting(options), root=root)
    _warn(found.problems)
    return _stand(standings(found.tallies, _sizes(options.k_values), missing=options.missing), options.format)


def repairs(options: argparse.Namespace) -> int:
    """pass@k of every model's recorded repairs, as evaluation_config.json says; Terraform judges what is not judged yet."""
    from steelyard.engine.repairs.judging import Means
    from steelyard.engine.repairs.repairs import evaluate
    from steelyard.reports import terminal

    means = Means(
        parallelism=options.parallelism,
        require_isolation=options.require_isolation or "",
        allow_weak_sandbox=options.allow_weak_sandbox,
        watch=_Watch().judging,
    )
    try:
        evaluation = evaluate(Path(options.evaluation), means)
    except KeyboardInterrupt:
        _tell("\ninterrupted; what was judged is kept, and the same command goes on")
        return INTERRUPTED
    _warn(evaluation.problems)
    if evaluation.levels:
        print("plausible")
    _stand(evaluation.standings, "table")
    for level, standings in evaluation.levels.items():
        print(f"\n{level}\n{terminal.standings_text(standings, color=_color())}", end="")
        for note in standings.notes:
            if note not in evaluation.standings.notes:
                _tell(f"note: {level}: {note}")
    for line in evaluation.excuses():
        _tell(f"steelyard: {line}")
    for path in evaluation.written:
        _tell(f"wrote {path}")
    return FINE if evaluation.conclusive else CANNOT_TELL


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
    return FINE


def query(options: argparse.Namespace) -> int:
    """Ask a question in SQL over all runs."""
    from steelyard.engine.results import query as questions
    from steelyard.reports import terminal

    settings, _ = _means(options)
    root = Path(settings.output_dir)
    if options.report:
        warnings = questions.write(options.sql, options.report, root, copies=options.copies)
        _tell(f"wrote {options.report}")
    elif options.format == "table":
        with questions.ask(options.sql, root, copies=options.copies) as answer:
            rows, is_more = answer.shown()
            print(terminal.rows_text(answer.columns, rows, color=_color()), end="")
        warnings = answer.warnings
        if is_more:
            _tell(f"only the first {len(rows):,} rows are shown; --format csv and -o FILE give all of them")
    else:
        sys.stdout.flush()
        warnings = questions.send(options.sql, options.format, sys.stdout.buffer, root, copies=options.copies)
    for warning in warnings:
        _tell(f"warning: {warning}")
    return FINE


def validate(options: argparse.Namespace) -> int:
    """Read eval sets, report every problem at once, and prove that references pass and counterexamples fail."""
    from steelyard import evalsets
    from steelyard.engine.preflight.references import prove
    from steelyard.errors import InputError

    try:
        loaded = evalsets.load(options.evalset)
    except InputError as error:
        for problem in error.problems:
            print(problem if problem.fatal else f"warning: {problem}")
        _tell(f"steelyard: {sum(problem.fatal for problem in error.problems)} problems")
        return BAD_INPUT
    _, means = _means(options)
    proved, problems = prove(loaded.cases, means)
    for problem in (*loaded.problems, *problems):
        print(problem if problem.fatal else f"warning: {problem}")
    wrong = sum(problem.fatal for problem in problems)
    print(f"{len(loaded.cases)} cases in {len(loaded.files)} files; {proved} answers proved; {wrong} problems")
    return BAD_INPUT if wrong else FINE


def suites(options: argparse.Namespace) -> int:
    """List the suites that come with steelyard, show the cases of some, or write them as JSONL to be edited."""
    from steelyard import evalsets
    from steelyard.evalsets.export import lines
    from steelyard.reports import terminal
    from steelyard.store.atomic_files import Replacement, writing_into

    loaded = evalsets.load(options.evalset or ["suite:all"])
    for problem in loaded.problems:
        _tell(f"warning: {problem}")
    if options.report:
        path = Path(options.report)
        with writing_into(path.parent), Replacement() as fresh:
            fresh.write(path, lines(loaded.cases))
            fresh.finish()
        print(f"wrote {path}: {len(loaded.cases)} cases")
    elif options.evalset:
        print(terminal.cases_text(loaded.cases, color=_color()), end="")
    else:
        print(terminal.suites_text(loaded.cases, color=_color()), end="")
    return FINE


def tiers(options: argparse.Namespace) -> int:
    """Run an experiment in tiers, or analyse one that was run, here or by another tool: quality, cost, grade and uplift."""
    from steelyard import store
    from steelyard.engine import run as engine
    from steelyard.engine.results import tier_runs as comparing
    from steelyard.errors import InputError
    from steelyard.evalsets import experiments

    settings, means = _means(options)
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
            mine = _tell_of_shard(options.shard, loaded.cases, means) if options.shard else loaded.cases
            if options.dry_run:
                return _forecast_tiers(loaded._replace(cases=tuple(mine)), means) if mine else FINE
            done = engine.run_experiment(loaded, output=options.output, shard=options.shard, means=means)
            folder, stopped = done.folder, done.stopped
            _tell(str(folder))
            if not mine:
                return FINE
        else:
            folder = _find(options.experiment, settings)
        found = comparing.compared(store.Stored(folder))
    for reason in stopped:
        _tell(f"steelyard: {reason}; continue with: steelyard resume {folder}")
    if stopped and not found.is_comparable:
        return CANNOT_TELL
    analysis = comparing.analysis(found, baseline=options.baseline, pair_by=options.pair_by)
    _put_tiers(analysis, options)
    return CANNOT_TELL if stopped or not analysis.conclusive else FINE


def judge(options: argparse.Namespace) -> int:
    """Have the answers of a run judged by a panel of models, by a rubric; verdicts and replies stay as they are."""
    import msgspec

    from steelyard import store
    from steelyard.engine import run as engine
    from steelyard.engine.results import tier_runs as comparing
    from steelyard.errors import InputError
    from steelyard.evalsets import rubrics
    from steelyard.records import Panel
    from steelyard.tiers.rubrics import default

    settings, means = _means(options)
    judges = meaning.models(options.judges)
    if not judges:
        raise InputError("no judges; name one or several with --judges, such as --judges openai/gpt-5-mini")
    rubric = default()
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
    analysis = comparing.analysis(comparing.compared(store.Stored(done.folder)))
    _put_tiers(analysis, options)
    for reason in done.stopped:
        _tell(f"steelyard: {reason}; continue with the same command")
    return CANNOT_TELL if done.stopped or not analysis.conclusive else FINE


def view(options: argparse.Namespace) -> int:
    """Show the runs of a folder as web pages, as they grow; on this machine alone, until Ctrl-C."""
    from steelyard.errors import InputError
    from steelyard.viewer.serving import serve

    settings, _ = _means(options)
    root = Path(options.folder or settings.output_dir)
    if options.folder and not root.is_dir():
        raise InputError(f"{root}: no such folder; name one that holds runs, or a run")

    def tell(url: str) -> None:
        print(url, flush=True)
        _tell(f"showing the runs of {root}; Ctrl-C ends it")

    key = os.environ.get("STEELYARD_API_KEY", "")
    serve(root, port=options.port, key=key, tell=tell, browser=not options.no_browser)
    return FINE


def models(options: argparse.Namespace) -> int:
    """What the configured endpoints offer, with prices per million tokens."""
    from steelyard.engine.preflight.list_models import offers
    from steelyard.reports import terminal

    _, means = _means(options)
    found = offers(means, options.base_url or "")
    print(terminal.offers_text(found, width=_width(), color=_color()), end="")
    return FINE if any(offer.model for offer in found) else CANNOT_TELL


def doctor(options: argparse.Namespace) -> int:
    """What is enforced on generated code here, which toolchains were found, and how to get the missing ones."""
    from steelyard.engine.preflight.doctor import examine
    from steelyard.reports import terminal

    health = examine()
    if options.format == "json":
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(health), indent=2).decode())
    else:
        print(terminal.health_text(health, width=_width(), color=_color()), end="")
    return FINE if health.level else CANNOT_TELL


def init(options: argparse.Namespace) -> int:
    """Write a commented eval set and a settings file to begin with."""
    from steelyard import settings
    from steelyard.errors import InputError
    from steelyard.evalsets import starter

    folder = Path(options.folder)
    files = {folder / "evals" / "starter.toml": starter.starter(), folder / "steelyard.toml": settings.starter()}
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
    return FINE


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


def _means(options: argparse.Namespace) -> tuple[Settings, Means]:
    return meaning.means(options, _Watch() if hasattr(options, "parallelism") else None)


def _put_tiers(analysis: Analysis, options: argparse.Namespace) -> None:
    """Print what tiers come to, and write it as tables and charts."""
    from steelyard.reports import tiers as tables
    from steelyard.reports.charts import tiers as charts

    texts = {
        "text": tables.text(analysis, color=_color()),
        "json": tables.as_json(analysis),
        "markdown": tables.markdown(analysis),
        "csv": tables.table_csv(analysis),
    }
    print(texts[options.format], end="")
    if options.report:
        _write_texts(options.report, {".json": texts["json"], ".md": texts["markdown"], ".csv": texts["csv"]})
    if options.charts:
        _draw(charts.charts(analysis), Path(options.charts))


def _draw(specs: Mapping[str, dict[str, Any]], folder: Path) -> None:
    """Write charts as what they are made from, and as pictures where they can be made."""
    import msgspec

    from steelyard.errors import InputError
    from steelyard.reports.charts.tiers import rendered
    from steelyard.store.atomic_files import writing_into

    with writing_into(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, spec in specs.items():
            (folder / f"{name}.vl.json").write_bytes(msgspec.json.format(msgspec.json.encode(spec), indent=1) + b"\n")
        try:
            for name, spec in specs.items():
                (folder / f"{name}.svg").write_bytes(rendered(spec, "svg"))
                (folder / f"{name}.png").write_bytes(rendered(spec, "png"))
        except InputError as error:
            _tell(f"warning: {error}")
    _tell(f"wrote {len(specs)} charts into {folder}")


def _forecast_tiers(loaded: Loaded, means: Means) -> int:
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
    return FINE


def _gate_code(decision: Decision, *, fail: bool) -> int:
    from steelyard.comparison.gate import CANNOT_TELL as UNDECIDED
    from steelyard.comparison.gate import REGRESSED

    if decision.verdict == REGRESSED:
        return GATE_FAILED
    if decision.verdict == UNDECIDED:
        missing = any(model.data_missing for model in decision.models)
        if not missing and not fail:
            _tell("warning: too little evidence to tell; passed, because --on-inconclusive is pass")
        return CANNOT_TELL if missing or fail else FINE
    return FINE


def _write_texts(paths: Sequence[str], texts: dict[str, str]) -> None:
    from steelyard.errors import InputError, nearest

    for path in map(Path, paths):
        if path.suffix not in texts:
            raise InputError(f'{path}: unknown kind of report "{path.suffix}" ({nearest(path.suffix, texts)})')
    for path in map(Path, paths):
        try:
            path.write_text(texts[path.suffix], "utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        _tell(f"wrote {path}")


def _stand(standings: Standings, form: str) -> int:
    """Print where models stand, say what to know about it, and give the exit code."""
    from steelyard.reports import terminal
    from steelyard.reports.standings import FORMATS

    text = FORMATS[form](standings) if form in FORMATS else terminal.standings_text(standings, color=_color())
    print(text, end="")
    for note in standings.notes:
        _tell(f"note: {note}")
    return FINE if standings.conclusive else CANNOT_TELL


def _sizes(given: Sequence[int] | Sequence[Sequence[int]]) -> list[int]:
    """The k of `1 5 10` and of `1,5,10`."""
    return [size for piece in given for size in ([piece] if isinstance(piece, int) else piece)]


def _find(name: str, settings: Settings) -> Path:
    from steelyard import store

    return store.find(name, Path(settings.output_dir))


def _results(options: argparse.Namespace) -> tuple[Results, Path]:
    from steelyard import store
    from steelyard.analysis import summary

    settings, _ = _means(options)
    folder = _find(options.run, settings)
    stored = store.Stored(folder)
    by = {"k": options.pass_k, "rule": options.rule, "suites": meaning.suite_rule_of(folder, options, settings)}
    found = summary.results(stored.info, stored.cases, stored.facts(), **by)
    _warn(stored.damaged)
    return found, folder


def _conclude(done: Run, options: argparse.Namespace, suite_rule: SuiteRule | None) -> int:
    """Print what came of a run, write its reports, and say how it went."""
    from steelyard import reports, store
    from steelyard.analysis import summary
    from steelyard.reports import terminal

    stored = store.Stored(done.folder)
    results = None
    by = {"k": options.pass_k, "rule": options.rule, "suites": suite_rule}
    if options.format != "text" or any(not path.endswith(".html") for path in options.report or ()):
        results = summary.results(done.info, stored.cases, stored.facts(), **by)
        done = done._replace(summary=results.summary)
    elif any(by.values()):
        done = done._replace(summary=summary.summarise(done.info, stored.cases, stored.facts(), **by))
    if options.format == "text":
        print(
            terminal.summary_text(
                done.summary,
                title=str(done.folder),
                next_commands=_next(done.folder, done),
                width=_width(),
                color=_color(),
            ),
            end="",
        )
    elif results is not None:
        print(reports.render(options.format, results), end="")
    if options.report:
        _write(options.report, done.folder, by, results)
    for note in done.notes:
        _tell(f"warning: {note}")
    for reason in done.stopped:
        _tell(f"steelyard: {reason}; continue with: steelyard resume {done.folder}")
    if done.stopped or not done.summary.conclusive:
        return CANNOT_TELL
    if options.fail_under is not None and done.summary.cases:
        for model in done.summary.models:
            k, estimate = min(model.pass_at.items())
            if estimate.value is None:
                return CANNOT_TELL
            if estimate.value < options.fail_under - 1e-9:
                _tell(f"steelyard: {model.model}: pass@{k} is {estimate.value:.1%}, under {options.fail_under:.1%}")
                return GATE_FAILED
    return FINE


def _until(options: argparse.Namespace) -> Until | None:
    """When to stop asking, if a gate is to say so."""
    from steelyard.engine.gate.rounds import MOST
    from steelyard.errors import InputError
    from steelyard.records import Until

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
    most = MOST if options.max_samples is None else options.max_samples
    return Until(baseline=options.baseline, most=most, alpha=options.alpha, margin=options.margin)


def _conclude_decided(decided: Decided, options: argparse.Namespace, suite_rule: SuiteRule | None) -> int:
    """Print what came of a run and what was decided, and what it saved."""
    from steelyard.comparison.gate import CANNOT_TELL as UNDECIDED
    from steelyard.reports.figures import money
    from steelyard.reports.gate import FORMATS

    code = _conclude(decided.run, options, suite_rule)
    if decided.gated is None:
        return code
    said = FORMATS["text"](decided.gated.decision, decided.gated.warnings)
    worth = "" if decided.saved_usd is None else f", about {money(decided.saved_usd)}"
    said += (
        f"\n{decided.asked:,} attempts decided; {decided.planned:,} were allowed: {decided.saved:.0%} saved{worth}\n"
        if decided.gated.decision.verdict != UNDECIDED
        else f"\n{decided.asked:,} of {decided.planned:,} allowed attempts did not decide\n"
    )
    print(f"\n{said}" if options.format == "text" else "", end="")
    if options.format != "text":
        _tell(said)
    # a decision stands, whatever could not be asked any more
    decision = _gate_code(decided.gated.decision, fail=options.on_inconclusive == "fail")
    return decision if decided.gated.decision.verdict != UNDECIDED else decision or code


def _next(folder: Path, done: Run | Results) -> list[str]:
    """What a reader most likely wants to type next."""
    from steelyard.analysis.summary import hardest

    commands = []
    if any(model.missing for model in done.summary.models):
        commands.append(f"steelyard resume {folder}")
    if done.info.experiment or done.info.panel:
        commands.append(f"steelyard tiers {folder}")
    worst = hardest(done.summary, 1)
    commands += [f"steelyard show {folder} {case.case} 1" for case in worst]
    return [*commands, f"steelyard report {folder} -o report.html"]


def _write(
    paths: Sequence[str], folder: Path, by: dict[str, Any], results: Results | None = None, held: Against | None = None
) -> None:
    """Write reports of a run; a page is made from its folder, so that a large run need not fit into memory."""
    from steelyard import reports, store
    from steelyard.analysis import summary
    from steelyard.engine.results.html_page import html_page
    from steelyard.errors import InputError, nearest

    for path in map(Path, paths):
        if path.suffix not in reports.FORMATS:
            raise InputError(f'{path}: no report format for "{path.suffix}" ({nearest(path.suffix, reports.FORMATS)})')
    stored = store.Stored(folder)
    for path in map(Path, paths):
        if path.suffix == ".html":
            text = html_page(stored, **by, held=held)
        else:
            results = results or summary.results(stored.info, stored.cases, stored.facts(), **by)
            text = reports.render(reports.FORMATS[path.suffix], results)
        try:
            path.write_text(text, "utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        _tell(f"wrote {path}")
    _warn(stored.damaged)


def _tell(text: str) -> None:
    from steelyard.reports.figures import plain

    print(plain(text), file=sys.stderr)


def _warn(problems: Sequence[Problem]) -> None:
    for problem in problems:
        _tell(f"warning: {problem}")


def _color() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and "CI" not in os.environ


def _width() -> int:
    import shutil

    return shutil.get_terminal_size((100, 40)).columns


class _Watch:
    """Shows a run's progress: one line that is written over in a terminal, now and then a line elsewhere."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._over = sys.stderr.isatty() and "CI" not in os.environ
        self._pause = 1.0 if self._over else 15.0
        self._last = self._started
        self._hears = False

    def __call__(self, progress: Progress) -> None:
        from steelyard.reports.progress import Counts

        if progress.appraisals:
            if not self._hears:
                # how long the answers took says nothing of how long their judges will
                self._hears, self._started = True, time.monotonic()
            heard = Counts(
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
        counts = Counts(
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

    def judging(self, progress: Judging) -> None:
        """Show how far the judging of repairs is."""
        from steelyard.reports.progress import Counts

        counts = Counts(
            wanted=progress.wanted,
            replied=None,
            judged=progress.judged,
            correct=progress.plausible,
            failed=progress.failed,
            spent=0,
            reason="",
            good="plausible",
        )
        self._show(counts)

    def _show(self, counts: Counts) -> None:
        from steelyard.reports.progress import bar, progress_line

        now = time.monotonic()
        ended = counts.judged + counts.failed >= counts.wanted
        if now - self._last < self._pause and not (ended and self._over):
            return
        self._last = now
        text = progress_line(counts, now - self._started)
        if self._over:
            text = f"{bar(counts.judged + counts.failed, counts.wanted)} {text}"
            sys.stderr.write(f"\r\x1b[2K{text[: _width() - 1]}" + ("\r\x1b[2K" if ended else ""))
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
