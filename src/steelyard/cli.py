"""The command line: it only translates."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.engine.run import Means, Progress, Run
    from steelyard.errors import Problem
    from steelyard.records import Case
    from steelyard.settings import Settings
    from steelyard.summary import Results

FINE, GATE_FAILED, BAD_INPUT, CANNOT_TELL, INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    commands = parser()
    # a script that stops us politely gets the same care as a person with Ctrl-C; a shell makes what it starts in the
    # background deaf to Ctrl-C, and then to that as well
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        if {"-h", "--help"}.isdisjoint(arguments):
            _take_over_defaults(commands, arguments)
        options = commands.parse_args(arguments)
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
    except KeyboardInterrupt as interrupt:
        folder = getattr(interrupt, "folder", None)
        _tell(
            "\ninterrupted" + (f"; what arrived is stored, continue with: steelyard resume {folder}" if folder else "")
        )
        return INTERRUPTED
    except Exception as error:
        from steelyard.errors import SteelyardError, StoreError

        if not isinstance(error, SteelyardError):
            raise
        _tell(f"steelyard: {error}")
        return CANNOT_TELL if isinstance(error, StoreError) and "no room left" in str(error) else BAD_INPUT


def run(options: argparse.Namespace) -> int:
    """Ask models for attempts at each case, verify every one, and print what came of it."""
    from steelyard import evalsets
    from steelyard.engine import run as engine
    from steelyard.errors import InputError

    settings, means = _means(options)
    paths = [*options.evalset, *(options.eval_set or ())]
    if not paths:
        raise InputError("no eval set; name a file or a folder, such as: steelyard run examples/python-basics.toml")
    loaded = evalsets.load(paths)
    _warn(loaded.problems)
    cases = _chosen(loaded.cases, options, Path(settings.output_dir))
    models = _models(options.models) or _models([settings.default_model] if settings.default_model else None)
    parameters = _parameters(options, settings)
    k = options.pass_k or (1,)
    if parameters.get("temperature") == 0 and (options.samples or max(k)) > 1:
        _tell(
            "warning: at temperature 0 the attempts at a case are hardly different; --temperature 0.8 is usual for pass@k"
        )
    asked: dict[str, Any] = {
        "models": models,
        "samples": options.samples,
        "k": k,
        "parameters": parameters,
        "system": _text(options.system),
        "base_url": options.base_url or "",
    }
    if options.dry_run:
        for model, count, attempts, dollars in engine.forecast(cases, means=means, **asked):
            price = "at a price that is not known" if dollars is None else f"at ${dollars:.4f} at the most"
            print(f"{model}: {attempts} attempts at {count} cases, {price}")
        return FINE
    output = Path(options.output) if options.output else None
    done = engine.run(
        cases,
        eval_sets=loaded.files,
        output=output,
        seed=options.seed,
        rule=options.rule or "code",
        means=means,
        **asked,
    )
    return _conclude(done, options)


def resume(options: argparse.Namespace) -> int:
    """Carry on with what a run still owes; with more samples, extend it."""
    from steelyard.engine import run as engine

    settings, means = _means(options)
    return _conclude(engine.resume(_find(options.run, settings), samples=options.samples, means=means), options)


def verify(options: argparse.Namespace) -> int:
    """Verify the stored replies of a run again, with the tests as they are now; no model is asked."""
    from steelyard.engine import run as engine

    settings, means = _means(options)
    folder = _find(options.run, settings)
    return _conclude(engine.verify_again(folder, eval_sets=options.eval_set or (), means=means), options)


def list_runs(options: argparse.Namespace) -> int:
    """The runs that are here, oldest first."""
    from steelyard import store, summary
    from steelyard.reports import terminal

    settings, _ = _means(options)
    stored = store.runs(Path(settings.output_dir))
    entries = [(run.folder.name, summary.summarise(run.info, run.cases, run.facts())) for run in stored]
    print(terminal.runs_text(entries, width=_width(), color=_color()), end="")
    return FINE


def show(options: argparse.Namespace) -> int:
    """A run, one of its cases, or one attempt with everything that is known about it."""
    from itertools import groupby

    from steelyard.errors import InputError, nearest
    from steelyard.reports import terminal

    results, folder = _results(options)
    look: dict[str, Any] = {"width": _width(), "color": _color()}
    attempts = [tried for tried in results.attempts if not (options.failed and tried.correct)]
    if options.case is None:
        if options.failed:
            groups = groupby(attempts, key=lambda tried: tried.case.id)
            print("\n".join(terminal.case_text(list(group), **look) for _, group in groups), end="")
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
        print(terminal.case_text(of_case, **look), end="")
        return FINE
    chosen = [tried for tried in of_case if tried.number == options.number]
    if not chosen:
        raise InputError(f'{folder}: case "{options.case}" has no attempt {options.number} of that kind')
    print("\n".join(terminal.attempt_text(tried, **look) for tried in chosen), end="")
    return FINE


def report(options: argparse.Namespace) -> int:
    """Write reports of a run; the format follows from the file's suffix."""
    from steelyard.errors import InputError

    if not options.report:
        raise InputError("nowhere to write; name a file, such as: -o report.html (.json .md .csv .html)")
    results, _ = _results(options)
    _write(options.report, results)
    return FINE


def validate(options: argparse.Namespace) -> int:
    """Read eval sets, report every problem at once, and prove that references pass and counterexamples fail."""
    from steelyard import evalsets
    from steelyard.engine.prove import prove
    from steelyard.errors import InputError

    try:
        loaded = evalsets.load(options.evalset)
    except InputError as error:
        for problem in error.problems:
            print(problem if problem.fatal else f"warning: {problem}")
        _tell(f"steelyard: {sum(problem.fatal for problem in error.problems)} problems")
        return BAD_INPUT
    proved, problems = prove(loaded.cases)
    for problem in (*loaded.problems, *problems):
        print(problem if problem.fatal else f"warning: {problem}")
    wrong = sum(problem.fatal for problem in problems)
    print(f"{len(loaded.cases)} cases in {len(loaded.files)} files; {proved} answers proved; {wrong} problems")
    return BAD_INPUT if wrong else FINE


def models(options: argparse.Namespace) -> int:
    """What the configured endpoints offer, with prices per million tokens."""
    from steelyard.engine.offers import offers
    from steelyard.reports import terminal

    _, means = _means(options)
    found = offers(means, options.base_url or "")
    print(terminal.offers_text(found, width=_width(), color=_color()), end="")
    return FINE if any(offer.model for offer in found) else CANNOT_TELL


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


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="steelyard",
        description="Find out how good the things are that language models write, and whether a difference is real.",
        epilog="Every option can also be set in the environment (--pass-k as STEELYARD_PASS_K) and in steelyard.toml "
        "(pass_k). Exit codes: 0 fine, 1 a gate failed, 2 wrong usage or unreadable input, 3 cannot tell because data "
        "are missing, 130 interrupted and resumable.",
    )
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, do: Callable[[argparse.Namespace], int], epilog: str) -> argparse.ArgumentParser:
        about = do.__doc__ or ""
        sub = commands.add_parser(
            name,
            help=about,
            description=about,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(command=do)
        return sub

    _run_options(command("run", run, RUN_EXAMPLES))
    sub = command("resume", resume, "example:\n  steelyard resume latest --samples 20")
    _run_argument(sub)
    sub.add_argument("-n", "--samples", type=_count, help="attempts per case and model from now on")
    _means_options(sub)
    _result_options(sub)
    sub = command("verify", verify, "example:\n  steelyard verify latest --eval-set evals/fixed.toml")
    _run_argument(sub)
    sub.add_argument("--eval-set", action="append", metavar="PATH", help="take the tests from here")
    _means_options(sub)
    _result_options(sub)
    sub = command("list", list_runs, "")
    _settings_option(sub)
    sub = command("show", show, "examples:\n  steelyard show latest --failed\n  steelyard show latest merge-bookings 3")
    _run_argument(sub)
    sub.add_argument("case", nargs="?", help="a case's id: its attempts, one line each")
    sub.add_argument("number", nargs="?", type=_count, help="an attempt's number: prompt, reply, code, tests, cost")
    sub.add_argument("--failed", action="store_true", help="only attempts that were not correct")
    _view_options(sub)
    _settings_option(sub)
    sub = command("report", report, "example:\n  steelyard report latest -o report.html -o report.json")
    _run_argument(sub)
    _report_option(sub)
    _view_options(sub)
    _settings_option(sub)
    sub = command("validate", validate, "example:\n  steelyard validate evals/")
    sub.add_argument("evalset", nargs="+", metavar="EVALSET", help="a .toml or .jsonl file, or a folder of them")
    sub = command("models", models, "example:\n  OPENAI_API_KEY=... steelyard models")
    _settings_option(sub)
    sub.add_argument("--base-url", metavar="URL", help="ask this OpenAI-compatible server")
    sub = command("init", init, "example:\n  steelyard init my-evals")
    sub.add_argument("folder", nargs="?", default=".", help="where to write (default: here)")
    return parser


RUN_EXAMPLES = """\
examples:
  steelyard run examples/python-basics.toml --models replay:examples/recordings/python-basics.jsonl.gz --pass-k 1,5,10
  steelyard run evals/ --models openai/gpt-5-mini,anthropic/claude-sonnet-4-5 --samples 10 --temperature 0.8
  steelyard run evals/ --models openai/qwen --base-url http://127.0.0.1:8080/v1 --filter easy --fail-under 0.8
"""


def _run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("evalset", nargs="*", metavar="EVALSET", help="a .toml or .jsonl file, or a folder of them")
    sub.add_argument("--eval-set", action="append", metavar="PATH", help="the same, as an option")
    ask = sub.add_argument_group("what is asked")
    ask.add_argument(
        "-m",
        "--models",
        action="append",
        metavar="P/M,...",
        help="provider/model, replay:FILE, command:PROGRAM, python:FILE:FUNCTION",
    )
    ask.add_argument(
        "-n",
        "--samples",
        "--epochs",
        "--repeat",
        type=_count,
        metavar="N",
        help="attempts per case and model (default: the largest k; of recorded replies all)",
    )
    ask.add_argument("--temperature", type=float, metavar="T", help="sent only when given, like every parameter")
    ask.add_argument("--max-tokens", type=_count, metavar="N", help="the longest reply")
    ask.add_argument("--system", metavar="FILE|TEXT", help="a system prompt")
    ask.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="any other parameter; V is JSON or text"
    )
    ask.add_argument(
        "--seed", type=int, metavar="N", help="sent with the requests: N for first attempts, N+1 for second ones..."
    )
    ask.add_argument("--base-url", metavar="URL", help="ask the models at this address")
    which = sub.add_argument_group("which cases")
    which.add_argument("--filter", metavar="TAGS", help="only cases with one of these tags, such as easy,strings")
    which.add_argument("--case", metavar="GLOB", help="only cases whose id matches, such as 'merge-*'")
    which.add_argument("--failed-in", metavar="RUN", help="only cases that were not always correct in that run")
    which.add_argument("--limit", type=_count, metavar="N", help="only the first N cases")
    _means_options(sub)
    sub.add_argument("--dry-run", action="store_true", help="say what would be asked and what it may cost, and stop")
    sub.add_argument("--output", metavar="DIR", help="the run folder (default: a new one under steelyard-runs/)")
    _result_options(sub)


def _means_options(sub: argparse.ArgumentParser) -> None:
    how = sub.add_argument_group("how it is done")
    how.add_argument(
        "-j", "--parallelism", type=_count, metavar="N", help="never more at once than this; below it the pace adapts"
    )
    how.add_argument("--max-cost", type=float, metavar="USD", help="stop before more than this is spent")
    how.add_argument("--env-file", metavar="FILE", help="read keys from a file of NAME=value lines")
    _settings_option(how)


def _settings_option(sub: Any) -> None:
    sub.add_argument("--config", metavar="FILE", help="the settings file (default: steelyard.toml where it exists)")


def _run_argument(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", metavar="RUN", help="a run folder, its name, or latest")


def _view_options(sub: Any) -> None:
    sub.add_argument("--rule", help="score by this rule: code, code-structured (default: the run's own, or code)")
    sub.add_argument(
        "--pass-k", type=_counts, metavar="K,...", help="which pass@k to show (default: the run's own, or 1)"
    )


def _result_options(sub: argparse.ArgumentParser) -> None:
    result = sub.add_argument_group("what is shown")
    result.add_argument(
        "--fail-under",
        type=_share,
        metavar="X",
        help="exit with 1 when a model's pass@k, at the smallest k, is below X",
    )
    result.add_argument(
        "--format", default="text", choices=["text", "json", "markdown", "csv"], help="what is printed (default: text)"
    )
    _view_options(result)
    _report_option(result)


def _report_option(sub: Any) -> None:
    sub.add_argument(
        "-o", "--report", action="append", metavar="FILE", help="write a report, by suffix: .json .md .csv .html"
    )


def _take_over_defaults(parser: argparse.ArgumentParser, arguments: list[str]) -> None:
    """Let the environment, then the settings file, say what the command line does not."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config")
    config = early.parse_known_args(arguments)[0].config or os.environ.get("STEELYARD_CONFIG")
    in_file: dict[str, Any] = {}
    if config or Path("steelyard.toml").is_file():
        from steelyard import settings

        in_file = settings.load(Path(config) if config else None, os.environ)[0].options
    known = {action.dest for sub in _subparsers(parser) for action in sub._actions}
    for name in sorted(set(in_file) - known):
        from steelyard.errors import nearest

        _tell(f'warning: {config or "steelyard.toml"}: unknown setting "{name}" ({nearest(name, known)})')
    for sub in _subparsers(parser):
        for action in sub._actions:  # argparse has no public way to its own options
            if not action.option_strings or action.dest in ("help", "config"):
                continue
            given = os.environ.get(f"STEELYARD_{action.dest.upper()}", in_file.get(action.dest))
            if given is not None:
                action.default = _as_default(action, given)


def _as_default(action: argparse.Action, given: Any) -> Any:
    if isinstance(action, argparse._StoreTrueAction):
        return str(given).lower() in ("1", "true", "yes", "on")
    if isinstance(action, argparse._AppendAction):
        return [str(item) for item in given] if isinstance(given, list) else [str(given)]
    # argparse converts a default that is text as it converts an argument
    return ",".join(map(str, given)) if isinstance(given, list) else str(given)


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    return [
        sub
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for sub in action.choices.values()
    ]


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {text}")
    return number


def _counts(text: str) -> tuple[int, ...]:
    return tuple(sorted({_count(piece) for piece in text.replace(" ", ",").split(",") if piece}))


def _share(text: str) -> float:
    share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, or a percentage, not {text}")
    return share


def _means(options: argparse.Namespace) -> tuple[Settings, Means]:
    from steelyard import settings as settings_module
    from steelyard.engine.run import Means

    if getattr(options, "env_file", None):
        settings_module.read_env_file(Path(options.env_file), os.environ)
    settings, problems = settings_module.load(Path(options.config) if options.config else None, os.environ)
    _warn(problems)
    watch = _Watch() if hasattr(options, "parallelism") else None
    return settings, Means(
        settings=settings,
        parallelism=getattr(options, "parallelism", None),
        max_cost=getattr(options, "max_cost", None),
        watch=watch,
    )


def _models(given: Sequence[str] | None) -> list[str]:
    import re

    # a comma inside a command or a path does not part two models: the next one names its provider first
    return [model.strip() for text in given or () for model in re.split(r",(?=\s*[\w.-]+[:/])", text) if model.strip()]


def _parameters(options: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    import msgspec

    from steelyard.errors import InputError

    parameters: dict[str, Any] = {}
    for text in options.param:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--param {text}: not NAME=VALUE, such as --param top_p=0.9")
        try:
            parameters[name] = msgspec.json.decode(value)
        except msgspec.MsgspecError:
            parameters[name] = value
    temperature = settings.default_temperature if options.temperature is None else options.temperature
    named = {"temperature": temperature, "max_tokens": options.max_tokens}
    return parameters | {name: value for name, value in named.items() if value is not None}


def _text(given: str | None) -> str:
    """The text itself, or that of the file it names."""
    if not given:
        return ""
    try:
        return Path(given).read_text("utf-8") if Path(given).is_file() else given
    except (OSError, ValueError):
        return given


def _chosen(cases: Sequence[Case], options: argparse.Namespace, runs: Path) -> list[Case]:
    from fnmatch import fnmatchcase

    from steelyard import store, summary
    from steelyard.errors import InputError

    chosen = list(cases)
    if options.filter:
        tags = {tag.strip() for tag in options.filter.split(",")}
        chosen = [case for case in chosen if tags & set(case.tags)]
    if options.case:
        chosen = [case for case in chosen if fnmatchcase(case.id, options.case)]
    if options.failed_in:
        earlier = store.Stored(store.find(options.failed_in, runs))
        rows = summary.summarise(earlier.info, earlier.cases, earlier.facts()).cases
        failed = {row.case for row in rows if row.correct < row.attempts or not row.attempts}
        chosen = [case for case in chosen if case.id in failed]
    if not chosen:
        known = sorted({tag for case in cases for tag in case.tags})
        raise InputError(
            f"none of the {len(cases)} cases is left by --filter, --case and --failed-in (tags: {', '.join(known)})"
        )
    return chosen[: options.limit]


def _find(name: str, settings: Settings) -> Path:
    from steelyard import store

    return store.find(name, Path(settings.output_dir))


def _results(options: argparse.Namespace) -> tuple[Results, Path]:
    from steelyard import store, summary

    settings, _ = _means(options)
    folder = _find(options.run, settings)
    stored = store.Stored(folder)
    found = summary.results(stored.info, stored.cases, stored.facts(), k=options.pass_k, rule=options.rule)
    _warn(stored.damaged)
    return found, folder


def _conclude(done: Run, options: argparse.Namespace) -> int:
    """Print what came of a run, write its reports, and say how it went."""
    from steelyard import reports, store, summary
    from steelyard.reports import terminal

    stored = store.Stored(done.folder)
    results = None
    if options.format != "text" or options.report:
        results = summary.results(done.info, stored.cases, stored.facts(), k=options.pass_k, rule=options.rule)
        done = done._replace(summary=results.summary)
    elif options.pass_k or options.rule:
        chosen = summary.summarise(done.info, stored.cases, stored.facts(), k=options.pass_k, rule=options.rule)
        done = done._replace(summary=chosen)
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
    if options.report and results is not None:
        _write(options.report, results)
    for reason in done.stopped:
        _tell(f"steelyard: {reason}; continue with: steelyard resume {done.folder}")
    if done.stopped or not done.summary.conclusive:
        return CANNOT_TELL
    if options.fail_under is not None:
        for model in done.summary.models:
            k, estimate = min(model.pass_at.items())
            if estimate.value is None:
                return CANNOT_TELL
            if estimate.value < options.fail_under - 1e-9:
                _tell(f"steelyard: {model.model}: pass@{k} is {estimate.value:.1%}, under {options.fail_under:.1%}")
                return GATE_FAILED
    return FINE


def _next(folder: Path, done: Run | Results) -> list[str]:
    """What a reader most likely wants to type next."""
    from steelyard.summary import hardest

    commands = []
    if any(model.missing for model in done.summary.models):
        commands.append(f"steelyard resume {folder}")
    worst = hardest(done.summary, 1)
    commands += [f"steelyard show {folder} {case.case} 1" for case in worst]
    return [*commands, f"steelyard report {folder} -o report.html"]


def _write(paths: Sequence[str], results: Results) -> None:
    from steelyard import reports
    from steelyard.errors import InputError, nearest

    for path in map(Path, paths):
        if path.suffix not in reports.FORMATS:
            raise InputError(f'{path}: no report format for "{path.suffix}" ({nearest(path.suffix, reports.FORMATS)})')
    for path in map(Path, paths):
        try:
            path.write_text(reports.render(reports.FORMATS[path.suffix], results), "utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        _tell(f"wrote {path}")


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


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

    def __call__(self, progress: Progress) -> None:
        from steelyard.reports.progress import Counts, progress_line

        now = time.monotonic()
        ended = progress.judged + progress.failed >= progress.verdicts
        if now - self._last < self._pause and not (ended and self._over):
            return
        self._last = now
        counts = Counts(
            wanted=progress.verdicts,
            replied=progress.replied,
            judged=progress.judged,
            correct=progress.correct,
            failed=progress.failed,
            spent=progress.spent,
            reason=progress.reason,
        )
        text = progress_line(counts, now - self._started)
        if self._over:
            sys.stderr.write(f"\r\x1b[2K{text[: _width() - 1]}" + ("\r\x1b[2K" if ended else ""))
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
