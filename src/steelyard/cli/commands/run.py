"""The commands that ask, verify and merge: run, resume, verify, merge."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli import arguments
from steelyard.cli.console import (
    announced_shard_cases,
    find_named_run,
    gate_exit_code,
    is_color_wanted,
    next_commands,
    print_to_stderr,
    settings_and_run_options,
    terminal_width,
    warn,
    write_reports,
)
from steelyard.cli.options import (
    Command,
    add_decision_options,
    add_execution_options,
    add_inconclusive_option,
    add_result_options,
    add_run_argument,
    add_settings_option,
    add_shard_option,
    positive_integer,
)
from steelyard.errors import ExitCode

if TYPE_CHECKING:
    from steelyard.engine.gate.rounds import SequentialRunResult
    from steelyard.engine.run import Run
    from steelyard.records import StoppingRule, SuiteRule


def run(options: argparse.Namespace) -> int:
    """Ask models for attempts at each case, verify every one, and print what came of it."""
    from steelyard import evalsets
    from steelyard.engine import run as engine
    from steelyard.engine.preflight.select_cases import select_cases
    from steelyard.errors import InputError
    from steelyard.records import SuiteRule
    from steelyard.store.journal import StoredRun

    settings, means = settings_and_run_options(options)
    paths = [*options.evalset, *(options.eval_set or ())]
    if not paths:
        raise InputError("no eval set; name a file or a folder, such as: steelyard run examples/python-basics.toml")
    loaded = evalsets.load(paths)
    warn(loaded.problems)
    earlier = StoredRun(find_named_run(options.failed_in, settings)) if options.failed_in else None
    cases = select_cases(loaded.cases, tags=options.filter, glob=options.case, failed_in=earlier, limit=options.limit)
    models = arguments.split_model_names(options.models) or arguments.split_model_names(
        [settings.default_model] if settings.default_model else None
    )
    parameters = arguments.parameters(options, settings.default_temperature)
    suite_rule = arguments.suite_rule(options, settings, SuiteRule(), loaded.cases)
    k = options.pass_k or (1,)
    if parameters.get("temperature") == 0 and (options.samples or max(k)) > 1:
        print_to_stderr(
            "warning: at temperature 0 the attempts at a case are hardly different; --temperature 0.8 is usual for pass@k"
        )
    mine = announced_shard_cases(options.shard, cases, means) if options.shard else cases
    asked: dict[str, Any] = {
        "models": models,
        "samples": options.samples,
        "k": k,
        "parameters": parameters,
        "system": arguments.text_or_file(options.system),
        "base_url": options.base_url or "",
    }
    if options.dry_run:
        for model, count, attempts, dollars in engine.forecast(mine, means=means, **asked) if mine else ():
            price = "at a price that is not known" if dollars is None else f"at ${dollars:.4f} at the most"
            print(f"{model}: {attempts} attempts at {count} cases, {price}")
        return ExitCode.OK
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
    decided = run_until_decided(cases, until=until, tell=print_to_stderr, **asked, **kept)
    return _conclude_sequential_run(decided, options, suite_rule)


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
        type=positive_integer,
        metavar="N",
        help="attempts per case and model (default: the largest k; of recorded replies all)",
    )
    ask.add_argument("--temperature", type=float, metavar="T", help="sent only when given, like every parameter")
    ask.add_argument("--max-tokens", type=positive_integer, metavar="N", help="the longest reply")
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
    which.add_argument("--limit", type=positive_integer, metavar="N", help="only the first N cases")
    add_shard_option(which)
    decide = sub.add_argument_group("asking only until a gate can decide")
    decide.add_argument("--baseline", metavar="A", help="what the run is held against, as for steelyard gate")
    decide.add_argument(
        "--until-decided", action="store_true", help="ask in rounds, and stop as soon as the gate can decide"
    )
    decide.add_argument(
        "--max-samples", type=positive_integer, metavar="N", help="attempts per case at the most (default: 20)"
    )
    add_decision_options(decide)
    add_execution_options(sub, backend=True)
    sub.add_argument("--dry-run", action="store_true", help="say what would be asked and what it may cost, and stop")
    sub.add_argument("--output", metavar="DIR", help="the run folder (default: a new one under steelyard-runs/)")
    add_result_options(sub)


RUN_EXAMPLES = """\
examples:
  steelyard run examples/python-basics.toml --models replay:examples/recordings/python-basics.jsonl.gz --pass-k 1,5,10
  steelyard run evals/ --models openai/gpt-5-mini,anthropic/claude-sonnet-4-5 --samples 10 --temperature 0.8
  steelyard run evals/ --models openai/qwen --base-url http://127.0.0.1:8080/v1 --filter easy --fail-under 0.8
  steelyard run evals/ --models openai/gpt-5-mini --baseline main --until-decided --max-cost 2
  steelyard run evals/ --models openai/gpt-5-mini --samples 10 --shard 3/8 --output shards/3

With --shard, --max-cost holds for each shard alone.
"""


def resume(options: argparse.Namespace) -> int:
    """Carry on with what a run still owes; with more samples, extend it."""
    from steelyard.engine import run as engine

    settings, means = settings_and_run_options(options)
    folder = find_named_run(options.run, settings)
    suite_rule = arguments.suite_rule_of(folder, options, settings)
    done = engine.resume(folder, samples=options.samples, means=means)
    if done.info.until is None or options.samples is not None:
        return _conclude_run(done, options, suite_rule)
    from steelyard.engine.gate.rounds import continue_until_decided

    return _conclude_sequential_run(
        continue_until_decided(done, means=means, tell=print_to_stderr), options, suite_rule
    )


def _resume_options(sub: argparse.ArgumentParser) -> None:
    add_run_argument(sub)
    sub.add_argument("-n", "--samples", type=positive_integer, help="attempts per case and model from now on")
    add_inconclusive_option(sub)
    add_execution_options(sub, backend=True)
    add_result_options(sub)


def verify(options: argparse.Namespace) -> int:
    """Verify the stored replies of a run again, with the tests as they are now; no model is asked."""
    from steelyard.engine import run as engine

    settings, means = settings_and_run_options(options)
    folder = find_named_run(options.run, settings)
    suite_rule = arguments.suite_rule_of(folder, options, settings)
    return _conclude_run(
        engine.verify_again(folder, eval_sets=options.eval_set or (), means=means), options, suite_rule
    )


def _verify_options(sub: argparse.ArgumentParser) -> None:
    add_run_argument(sub)
    sub.add_argument("--eval-set", action="append", metavar="PATH", help="take the tests from here")
    add_execution_options(sub, backend=True)
    add_result_options(sub)


def merge(options: argparse.Namespace) -> int:
    """Join the shards of a run that several machines have done to one run, checked to be of the same plan."""
    from steelyard.engine.shards.merge import merge as merged

    settings, means = settings_and_run_options(options)
    output = Path(options.output) if options.output else None
    done = merged(options.run, output=output, partial=options.partial, means=means)
    return _conclude_run(done, options, arguments.suite_rule_of(done.folder, options, settings))


def _merge_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", nargs="+", metavar="RUN", help="the run folders of all shards, in any order")
    sub.add_argument(
        "--output", metavar="DIR", help="the folder of the whole run (default: a new one under steelyard-runs/)"
    )
    sub.add_argument("--partial", action="store_true", help="merge what is there although shards are missing")
    add_result_options(sub)
    add_settings_option(sub)


MERGE_EXAMPLES = """\
Every machine runs the same command with a --shard of its own: 1/3 on one, 2/3 on another, 3/3 on the third. Each gets every
third case. Their run folders, brought together in any way, are merged to one run, as if one machine had done all of it: resume,
show, report, gate and view take it like any other. Nobody is asked and nothing is verified; the shards stay as they are. What
an interrupted shard still owes is owed by the merged run.

Shards of different plans (other cases, tests, models, parameters, samples...) are refused with what differs, and so is a shard
that comes twice. When shards are missing, they are named and nothing is written, unless --partial says to go on without them;
that run can be merged with them later.

Exit codes: 0 fine, 1 under --fail-under, 2 shards that cannot be merged, 3 cannot tell because attempts are missing, or the disk
is full.

examples:
  steelyard merge shards/* --output runs/change
  steelyard merge shards/* --output runs/change -o report.html --fail-under 0.8"""


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
                next_commands=next_commands(done.folder, done),
                width=terminal_width(),
                color=is_color_wanted(),
            ),
            end="",
        )
    elif results is not None:
        print(reports.render(options.format, results), end="")
    if options.report:
        write_reports(options.report, done.folder, by, results)
    for note in done.notes:
        print_to_stderr(f"warning: {note}")
    for reason in done.stopped:
        print_to_stderr(f"steelyard: {reason}; continue with: steelyard resume {done.folder}")
    if done.stopped or not done.summary.conclusive:
        return ExitCode.CANNOT_TELL
    if options.fail_under is not None and done.summary.cases:
        for model in done.summary.models:
            k, estimate = min(model.pass_at.items())
            if estimate.value is None:
                return ExitCode.CANNOT_TELL
            if estimate.value < options.fail_under - 1e-9:
                print_to_stderr(
                    f"steelyard: {model.model}: pass@{k} is {estimate.value:.1%}, under {options.fail_under:.1%}"
                )
                return ExitCode.GATE_FAILED
    return ExitCode.OK


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
        print_to_stderr(said)
    # a decision stands, whatever could not be asked any more
    decision = gate_exit_code(decided.gated.decision, fail=options.on_inconclusive == "fail")
    return decision if decided.gated.decision.verdict != UNDECIDED else decision or code


COMMANDS = {
    "run": Command(run, _run_options, RUN_EXAMPLES),
    "resume": Command(resume, _resume_options, "example:\n  steelyard resume latest --samples 20"),
    "verify": Command(verify, _verify_options, "example:\n  steelyard verify latest --eval-set evals/fixed.toml"),
    "merge": Command(merge, _merge_options, MERGE_EXAMPLES),
}
