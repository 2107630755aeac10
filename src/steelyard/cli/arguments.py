"""What the options of a command mean, together with the settings file and the environment: for the command line and for pytest."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.engine.options import RunOptions
    from steelyard.engine.progress import ProgressCallback
    from steelyard.engine.results.conclusion import OnInconclusive
    from steelyard.engine.results.read_outcomes import CountingOptions
    from steelyard.evalsets import EvalSets
    from steelyard.outcomes.parquet_counts import AttemptColumns
    from steelyard.outcomes.scores import ScoreReading
    from steelyard.records import Case, SuiteRule
    from steelyard.settings import Settings


def command_settings(options: argparse.Namespace) -> Settings:
    """The settings; warnings about them go to standard error."""
    from msgspec.structs import replace

    from steelyard import settings as settings_module
    from steelyard.secret_texts import Environment

    if getattr(options, "env_file", None):
        settings_module.read_env_file(Path(options.env_file), os.environ)
    settings, problems = settings_module.load(Path(options.config) if options.config else None, Environment())
    for problem in problems:
        _print_to_stderr(f"warning: {problem}")
    if settings.price_table:
        # a list of thousands of runs takes as long as this import
        from steelyard.providers.prices import price_table

        settings = replace(settings, prices={**price_table(settings.price_table), **settings.prices})
    return settings


def settings_and_run_options(
    options: argparse.Namespace, watch: ProgressCallback | None = None
) -> tuple[Settings, RunOptions]:
    """The settings, and what a run is carried out with."""
    settings = command_settings(options)
    means = run_options(options, watch)
    return settings, means._replace(
        settings=settings, cache_days=cache_days(options), judges=_judges(options, settings)
    )


def run_options(options: argparse.Namespace, watch: ProgressCallback | None = None) -> RunOptions:
    """What a command was told about how a run is carried out, where both have the same name for it."""
    from steelyard.engine.options import RunOptions

    given = {name: value for name, value in vars(options).items() if name in RunOptions._fields and value is not None}
    return RunOptions(**given)._replace(watch=watch)


def _judges(options: argparse.Namespace, settings: Settings) -> tuple[str, ...]:
    """The judges that a command names."""
    if not getattr(options, "judges", None):
        return ()
    from steelyard.engine.preflight.connect import models_to_ask

    return tuple(models_to_ask(options.judges, settings))


def cache_days(options: argparse.Namespace) -> float | None:
    """The maximum age of cached replies; None if no cached replies are used."""
    days: float | None = getattr(options, "cache_for", None)
    return float("inf") if days is None and getattr(options, "cache", False) else days


def on_inconclusive(options: argparse.Namespace) -> OnInconclusive:
    """What becomes of a gate that cannot tell."""
    if options.strict or options.on_inconclusive == "fail":
        return "fail"
    return "pass"


def attempt_columns(options: argparse.Namespace) -> AttemptColumns:
    """The columns of a table with a row per attempt."""
    from steelyard.outcomes.parquet_counts import DEFAULT_ATTEMPT_COLUMNS

    columns = DEFAULT_ATTEMPT_COLUMNS._replace(passed=options.passed, sample=options.sample)
    return columns._replace(
        case=options.case or DEFAULT_ATTEMPT_COLUMNS.case, model=options.model or DEFAULT_ATTEMPT_COLUMNS.model
    )


def score_reading(options: argparse.Namespace) -> ScoreReading:
    """How the scores of other tools are meant."""
    from steelyard.outcomes.scores import ScoreReading, score_range

    low, high = (0.0, 1.0) if options.score_range is None else score_range(options.score_range)
    return ScoreReading(options.score, low, high, options.lower_is_better)


def margin_share(margin: float, scores: ScoreReading) -> float:
    """A margin as a share of the range of the scores."""
    from steelyard.cli.options import Percentage

    return float(margin) if isinstance(margin, Percentage) else margin / (scores.high - scores.low)


def counting_options(options: argparse.Namespace) -> CountingOptions:
    """How attempts in Parquet are read and counted."""
    from steelyard.engine.results.read_outcomes import CountingOptions

    return CountingOptions(attempt_columns(options), options.copies, options.backend, options.ray_address)


def parameters(options: argparse.Namespace, default_temperature: float | None = None) -> dict[str, Any]:
    """What is sent with each request."""
    import msgspec

    from steelyard.engine.asking.request_texts import response_format
    from steelyard.errors import InputError

    given: dict[str, Any] = {}
    for text in options.param:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--param {text}: not NAME=VALUE, such as --param top_p=0.9")
        try:
            given[name] = msgspec.json.decode(value)
        except msgspec.MsgspecError:
            given[name] = value
    temperature = default_temperature if options.temperature is None else options.temperature
    form = getattr(options, "response_format", None)
    named = {
        "temperature": temperature,
        "max_tokens": options.max_tokens,
        "reasoning_effort": getattr(options, "reasoning_effort", None),
        "response_format": response_format(form, "--response-format") if form else None,
    }
    return given | {name: value for name, value in named.items() if value is not None}


def load_eval_sets(paths: Sequence[str | Path], options: argparse.Namespace) -> EvalSets:
    """The cases of eval sets, with the columns of --map, the checks of --default-check and the tools of --tools."""
    import msgspec

    from steelyard import evalsets
    from steelyard.errors import InputError
    from steelyard.evalsets.benchmarks.datasets import column_map
    from steelyard.evalsets.tools import load_tools, with_run_tools

    checks: dict[str, dict[str, Any]] = {}
    for given in options.default_check or ():
        suite, equals, check = given.partition("=")
        if not equals or given.lstrip().startswith("{"):
            suite, check = "", given
        if suite in checks:
            raise InputError(
                f"--default-check {given}: there is one for {f'suite {suite}' if suite else 'all suites'} already"
            )
        try:
            checks[suite] = msgspec.json.decode(check, type=dict) if check.lstrip().startswith("{") else {"type": check}
        except msgspec.MsgspecError as error:
            raise InputError(f"--default-check {given}: not a table in JSON: {error}") from None
    if options.map:
        column_map(options.map)
        # the map stays with the path, so that reading the file again gives the same cases
        paths = [path if str(path).startswith("suite:") else f"{path}#{options.map}" for path in paths]
    sets = evalsets.with_default_checks(evalsets.load(paths), checks)
    if not getattr(options, "tools", None):
        return sets
    return sets._replace(cases=with_run_tools(sets.cases, load_tools(options.tools)))


def suite_rule(
    options: argparse.Namespace, settings: Settings, own: SuiteRule, cases: Sequence[Case]
) -> SuiteRule | None:
    """How suites are scored: by the options or settings, otherwise by the run's own rule; None if there is neither."""
    from steelyard.analysis.suites import settled_suite_rule, suite_settings
    from steelyard.errors import did_you_mean

    where = options.config or "steelyard.toml"
    in_file, suites = suite_settings(settings.suites, cases)
    given = {
        "penalties": _numbers_by_name("--penalty", options.penalty, "refusal=0.25"),
        "weights": _numbers_by_name("--suite-weight", options.suite_weight, "injection=2"),
        "latency_target": options.latency_target,
        "latency_limit": options.latency_limit,
    }
    given = {name: value for name, value in given.items() if value is not None}
    rule = settled_suite_rule(own, in_file, given, suites, where)
    # one settings file serves many runs, and not all of them have every suite
    for suite in sorted(in_file.get("weights", {}).keys() - suites):
        _print_to_stderr(
            f'warning: {where}: [suites]: a weight for "{suite}", which is not a suite of this run ({did_you_mean(suite, suites)})'
        )
    return rule


def suite_rule_of(folder: Path, options: argparse.Namespace, settings: Settings) -> SuiteRule | None:
    """How the suites of a stored run are scored, as above; refuses a rule that the run does not know."""
    from steelyard.analysis.scoring import find_rule
    from steelyard.store.journal import StoredRun

    stored = StoredRun(folder)
    if options.rule:
        find_rule(options.rule, stored.info.rules)
    return suite_rule(options, settings, stored.info.suites, stored.cases)


def _numbers_by_name(option: str, given: Sequence[str] | None, example: str) -> dict[str, float] | None:
    """The numbers that NAME=NUMBER gives to names; None if nothing is given."""
    from steelyard.errors import InputError

    numbers: dict[str, float] = {}
    for each in given or ():
        name, equals, number = each.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InputError(f"{option} {each}: not NAME=NUMBER, such as {option} {example}")
        if name in numbers:
            raise InputError(f'{option}: "{name}" is named twice')
        numbers[name] = value
    return numbers or None


def _print_to_stderr(what: str) -> None:
    from steelyard.text import plain

    print(plain(what), file=sys.stderr, flush=True)
