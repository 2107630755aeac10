"""The commands as functions, for scripts and notebooks: the options of the command line are their keywords.

Input: files, runs and cases, as paths, names or values. Output: results that print as the commands print.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack, get_args

from msgspec.structs import replace

from steelyard import evalsets
from steelyard import settings as settings_module
from steelyard.analysis.attempt_texts import StoredAttempts
from steelyard.analysis.counts import Standing, Standings, standings
from steelyard.analysis.scoring import find_rule
from steelyard.analysis.suites import settled_suite_rule, suite_settings
from steelyard.analysis.summary import Summary
from steelyard.comparison.power import ComparisonPlan
from steelyard.comparison.threshold import ThresholdComparison
from steelyard.comparison.threshold import compare as compare_sides
from steelyard.engine.asking.request_texts import response_format, text_or_file
from steelyard.engine.gate.gate import GateResult
from steelyard.engine.gate.gate import gate as gate_runs
from steelyard.engine.gate.panels import refuse_changed_judges
from steelyard.engine.gate.planning import gate_plan, planned_sides
from steelyard.engine.gate.rounds import continue_until_decided, run_until_decided, stopping_rule
from steelyard.engine.gate.sides import side
from steelyard.engine.options import AgentSandboxMode, RunOptions
from steelyard.engine.plan import select_cases
from steelyard.engine.preflight.connect import models_to_ask, split_model_names
from steelyard.engine.preflight.forecast import forecast, forecast_text
from steelyard.engine.results.conclusion import (
    Conclusion,
    comparison_exit_code,
    next_commands,
    standings_conclusion,
)
from steelyard.engine.results.import_run import check_report_request, named_run, write_run_reports
from steelyard.engine.results.merge import merge as merge_runs
from steelyard.engine.results.read_outcomes import ColumnOverrides, CountingOptions, gather, parquet_outcomes
from steelyard.engine.results.report_files import ScoringOverrides, scored_run
from steelyard.engine.results.stored_results import (
    AttemptSelection,
    StoredResults,
    attempts_by_case,
    check_selection,
    selected_attempts,
    stored_results,
)
from steelyard.engine.resume import verify_again
from steelyard.engine.run import Run, eval_sets_of
from steelyard.engine.run import run as run_cases
from steelyard.engine.tiers.reply_judgments import reply_judgments
from steelyard.engine.tiers.winners import resume_all_stages
from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.evalsets.benchmarks.datasets import column_map
from steelyard.evalsets.tools import load_tools, with_run_tools
from steelyard.outcomes.parquet_counts import DEFAULT_ATTEMPT_COLUMNS, AttemptColumns
from steelyard.outcomes.scores import PLAIN_SCORES, ScoreReading, score_range
from steelyard.protocols import StreamMode
from steelyard.providers.prices import Prices, price_table
from steelyard.records import Case, EvalSetFile, StoppingRule, SuiteRule, Trust
from steelyard.reports.comparison import COMPARISON_FORMATS, PLAN_FORMATS
from steelyard.reports.lists import standings_rows, standings_text
from steelyard.reports.tables import html_table, html_text
from steelyard.reports.terminal import case_text, summary_text
from steelyard.reports.terminal_attempt import attempt_text
from steelyard.secret_texts import Environment
from steelyard.settings import Settings
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import find_run
from steelyard.text import short_quote

RunName = str | Path | Run
"""A run: its folder, its name, `latest`, or a result of a function of this module."""
EvalSetSource = str | Path | Sequence[str | Path] | Sequence[Case]
"""Files or folders of cases, or cases."""


class SettingsKeywords(TypedDict, total=False):
    """What every function takes."""

    config: str | Path
    """The settings file; by default steelyard.toml, where there is one."""
    options: RunOptions
    """How the work is carried out, with settings of its own; no file of settings is read then."""
    means: RunOptions
    """The earlier name of `options`."""


class VerificationKeywords(SettingsKeywords, total=False):
    """How replies are verified."""

    recheck: int
    controls: int
    python_env: str | Path
    require_isolation: str
    allow_weak_sandbox: bool
    allow_code: bool
    backend: str
    ray_address: str
    env_file: str | Path


class RequestKeywords(VerificationKeywords, total=False):
    """How models are asked, too."""

    stream: StreamMode
    batch: bool
    cache: bool
    cache_for: float
    agent_sandbox: AgentSandboxMode


class SuiteKeywords(TypedDict, total=False):
    """How suites are scored."""

    penalty: Mapping[str, float]
    """By class what a failure costs."""
    suite_weight: Mapping[str, float]
    latency_target: float
    latency_limit: float


class FurtherRunKeywords(RequestKeywords, SuiteKeywords, total=False):
    """What `run` takes beside its named parameters."""

    seed: int
    parameters: Mapping[str, Any]
    """Whatever else is sent with each request."""
    reasoning_effort: str
    response_format: str | Path | Mapping[str, Any]
    """`json`, or a JSON Schema or its file."""
    judges: str | Sequence[str]
    allow_self: bool
    filter: str | Sequence[str]
    case: str
    exclude: str | Sequence[str]
    failed_in: RunName
    skip_unavailable: bool
    shard: tuple[int, int]
    map: str | Mapping[str, str]
    default_check: str | Mapping[str, Any]
    """A check for all cases without one, `json` or a table, or one for each suite."""
    tools: str | Path
    eval_sets: Sequence[EvalSetFile]
    """The files that cases were chosen from, as `load` gives them: `verify` takes their tests."""
    baseline: RunName
    until_decided: bool
    max_samples: int
    margin: float | str
    alpha: float
    cases: str
    min_effect: float
    on: str
    rule: str
    require_trust: Trust
    k: int | Sequence[int]
    """The earlier name of `pass_k`."""


class FurtherResumeKeywords(RequestKeywords, SuiteKeywords, total=False):
    """What `resume` takes beside its named parameters."""


class FurtherVerifyKeywords(VerificationKeywords, SuiteKeywords, total=False):
    """What `verify` takes beside its named parameters."""

    max_cost: float


class FurtherResultKeywords(SettingsKeywords, SuiteKeywords, total=False):
    """What functions that show runs take beside their named parameters."""


class FurtherCompareKeywords(SettingsKeywords, total=False):
    """What `compare` takes beside its named parameters: what tables and scores of other tools mean."""

    case: str
    model: str
    passed: str
    sample: str
    """The columns of a table with a row per attempt."""
    score: str
    score_range: str | tuple[float, float]
    lower_is_better: bool


class FurtherGateKeywords(FurtherCompareKeywords, total=False):
    """What `gate` takes beside its named parameters."""

    copies: str | Path
    backend: str
    ray_address: str


class FurtherPasskKeywords(FurtherGateKeywords, total=False):
    """What `passk` takes beside its named parameters."""

    cost: str


def run(
    evalset: EvalSetSource,
    *,
    models: str | Sequence[str] | None = None,
    samples: int | None = None,
    pass_k: int | Sequence[int] | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    system: str | Path | None = None,
    limit: int | None = None,
    base_url: str | None = None,
    max_cost: float | None = None,
    parallelism: int | None = None,
    output: str | Path | None = None,
    **more: Unpack[FurtherRunKeywords],
) -> Run:
    """Ask models for attempts at each case, verify every one, and return the results.

    `evalset` is a file, a folder, a list of them, or cases. What is left out is as for `steelyard run`,
    with the settings of steelyard.toml. The result prints, and has summary, conclusion() and frame().

    More keywords, each as the option of the command:
      asking      seed parameters reasoning_effort response_format judges allow_self
      cases       filter case exclude failed_in skip_unavailable shard map default_check tools eval_sets
      stopping    baseline until_decided max_samples margin alpha cases min_effect on
      scoring     rule require_trust penalty suite_weight latency_target latency_limit
      verifying   recheck controls python_env require_isolation allow_weak_sandbox allow_code
      carrying out  stream batch cache cache_for agent_sandbox backend ray_address
      settings    config env_file options
    """
    asked, options = _asked("run", locals(), FurtherRunKeywords)
    root = Path(options.settings.output_dir)
    sets = _eval_sets(evalset, asked, options)
    cases = _selected(sets.cases, asked, root)
    baseline = _name(asked["baseline"]) if "baseline" in asked else None
    plan: dict[str, Any] = {
        "models": _models(asked.get("models") or options.settings.default_model, options.settings),
        "k": _k_values(asked) or (1,),
        "parameters": _parameters(asked, options.settings),
        "system": text_or_file(asked.get("system")),
        "base_url": asked.get("base_url", ""),
        "means": options,
        "eval_sets": asked.get("eval_sets", sets.files),
        "output": asked.get("output"),
        "seed": asked.get("seed"),
        "rule": asked.get("rule") or sets.rule,
        "rules": sets.rules,
        "suites": _suite_rule(asked, options.settings, SuiteRule(), sets.cases),
        "require_trust": asked.get("require_trust", ""),
        "skip_unavailable": asked.get("skip_unavailable", False),
    }
    if "margin" in asked:
        asked["margin"] = _margin_share(asked["margin"], PLAIN_SCORES)
    limits: dict[str, Any] = {"samples": asked.get("samples"), "shard": asked.get("shard")}
    until = stopping_rule(
        baseline,
        until_decided=asked.get("until_decided", False),
        **limits,
        **_only(asked, "max_samples", "alpha", "margin", "cases", "min_effect", "on"),
    )
    if until is None:
        return run_cases(cases, **plan, **limits)
    # who is told what happens is told first what it may cost
    announcement = _announcement(cases, plan, until) if options.say else ""
    tell = options.say or _say_nothing
    return run_until_decided(cases, until=until, tell=tell, announcement=announcement, **plan).decided_run


def resume(
    run: RunName,
    *,
    samples: int | None = None,
    base_url: str | None = None,
    max_cost: float | None = None,
    parallelism: int | None = None,
    pass_k: int | Sequence[int] | None = None,
    rule: str | None = None,
    **more: Unpack[FurtherResumeKeywords],
) -> Run:
    """Carry on with what a run still owes, failures included; `samples` extends it, and a base URL replaces its own.

    `run` is a folder, a name, `latest` or a result. More keywords, each as the option of `steelyard resume`:
    recheck controls python_env require_isolation allow_weak_sandbox allow_code stream batch cache cache_for
    agent_sandbox backend ray_address penalty suite_weight latency_target latency_limit config env_file options
    """
    asked, options = _asked("resume", locals(), FurtherResumeKeywords)
    folder = _folder(run, options, with_comparisons=True)
    scoring = _scoring(StoredRun(folder), asked, options.settings)
    done = resume_all_stages(folder, samples=asked.get("samples"), base_url=asked.get("base_url", ""), means=options)
    if done.info.until is not None and "samples" not in asked:
        done = continue_until_decided(done, means=options, tell=options.say or _say_nothing).decided_run
    return scored_run(done, scoring=scoring)[0]


def verify(
    run: RunName,
    *,
    eval_sets: str | Path | Sequence[str | Path] = (),
    parallelism: int | None = None,
    pass_k: int | Sequence[int] | None = None,
    rule: str | None = None,
    **more: Unpack[FurtherVerifyKeywords],
) -> Run:
    """Verify the stored replies of a run again, with the tests as its eval sets have them now, or others; no model is asked.

    `run` is a folder, a name, `latest` or a result. More keywords, each as the option of `steelyard verify`:
    recheck controls python_env require_isolation allow_weak_sandbox allow_code max_cost backend ray_address
    penalty suite_weight latency_target latency_limit config env_file options
    """
    asked, options = _asked("verify", locals(), FurtherVerifyKeywords)
    folder = _folder(run, options)
    scoring = _scoring(StoredRun(folder), asked, options.settings)
    done = verify_again(folder, eval_sets=_listed(eval_sets), means=options)
    return scored_run(done, scoring=scoring)[0]


def merge(
    runs: Sequence[RunName],
    *,
    output: str | Path | None = None,
    partial: bool = False,
    pass_k: int | Sequence[int] | None = None,
    rule: str | None = None,
    **more: Unpack[FurtherResultKeywords],
) -> Run:
    """Join the shards of one plan, or imported runs, to one ordinary run in a folder of its own.

    Nothing is asked and nothing verified. With `partial`, shards may be missing, to be merged later.
    More keywords: penalty suite_weight latency_target latency_limit config options
    """
    asked, options = _asked("merge", locals(), FurtherResultKeywords)
    folders = [each.folder if isinstance(each, Run) else each for each in _listed(runs)]
    done = merge_runs(folders, output=asked.get("output"), partial=partial, means=options)
    return scored_run(done, scoring=_scoring(StoredRun(done.folder), asked, options.settings))[0]


def gate(
    baseline: RunName,
    current: RunName,
    *,
    margin: float | str | None = None,
    alpha: float | None = None,
    on: str | None = None,
    cases: str | None = None,
    min_effect: float | None = None,
    rule: str | None = None,
    **more: Unpack[FurtherGateKeywords],
) -> GateResult:
    """Decide whether a run is worse than its baseline: yes, no, or cannot tell yet.

    Sides are named as for `steelyard gate`; a Path is a folder or a file, never a name. A mean drop below
    `margin`, by default "5%" of the range of the scores, passes; `alpha` bounds false alarms, by default 0.05.
    Every look at a run is counted in its folder. More keywords, each as the option of the command:
    case model passed sample score score_range lower_is_better copies backend ray_address config options
    """
    asked, options = _asked("gate", locals(), FurtherGateKeywords)
    root, scores = Path(options.settings.output_dir), _score_reading(asked)
    sides = _name(baseline), _name(current)
    refuse_changed_judges(*sides, root=root)
    if "margin" in asked:
        asked["margin"] = _margin_share(asked["margin"], scores)
    return gate_runs(
        *sides,
        **_only(asked, "margin", "alpha", "on", "cases", "min_effect", "rule"),
        root=root,
        counting=_counting_options(asked, options),
        scores=scores,
    )


class CompareResult(NamedTuple):
    """What changed between two runs by more than a threshold; it prints as `steelyard compare` prints it."""

    comparison: ThresholdComparison
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        return COMPARISON_FORMATS["text"](self.comparison).rstrip()

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def conclusion(self, *, fail_on_regression: bool = False) -> Conclusion:
        """The exit code."""
        return Conclusion(comparison_exit_code(self.comparison, fail_on_regression=fail_on_regression))


def compare(
    baseline: RunName,
    current: RunName,
    *,
    threshold: float | None = None,
    rule: str | None = None,
    **more: Unpack[FurtherCompareKeywords],
) -> CompareResult:
    """Show which mean scores changed by more than a threshold, by default 0.05, between two runs.

    Sides are named as for `gate`. More keywords, each as the option of `steelyard compare`:
    case model passed sample score score_range lower_is_better config options
    """
    asked, options = _asked("compare", locals(), FurtherCompareKeywords)
    root = Path(options.settings.output_dir)
    names = _name(baseline), _name(current)
    refuse_changed_judges(*names, root=root)
    reading: dict[str, Any] = {"columns": _attempt_columns(asked), "scores": _score_reading(asked)}
    sides = [side(name, rule=asked.get("rule"), root=root, **reading) for name in names]
    return CompareResult(
        compare_sides(*sides, **_only(asked, "threshold")), tuple(text for each in sides for text in each.warnings)
    )


class PlanResult(NamedTuple):
    """The attempts that a gate needs, and what they cost; it prints as `steelyard plan` prints it."""

    plan: ComparisonPlan
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        return PLAN_FORMATS["text"](self.plan).rstrip()

    def _repr_html_(self) -> str:
        return html_text(str(self))


def plan(
    evalset: RunName | Sequence[str | Path],
    *,
    baseline: RunName | None = None,
    models: str | Sequence[str] | None = None,
    detect: float | None = None,
    power: float | None = None,
    alpha: float | None = None,
    **more: Unpack[SettingsKeywords],
) -> PlanResult:
    """Compute how many attempts a gate needs to see a mean drop from a baseline, and what they cost.

    `evalset` is what will be run and compared with `baseline`; or without one a run or baseline, planned
    for its own cases. `detect` is the drop, by default 0.05, to be seen with the chance `power`, 0.8.
    More keywords: config options
    """
    # the setting `models` is what a run asks
    asked, options = _asked("plan", locals(), SettingsKeywords, not_from_file={"models"})
    against = _name(asked["baseline"]) if "baseline" in asked else None
    sides = planned_sides([_name(each) for each in _listed(evalset)], against, root=Path(options.settings.output_dir))
    found = gate_plan(
        sides.cases,
        sides.baseline,
        Prices(options.settings.prices),
        models=split_model_names(_texts(asked.get("models", ()))),
        **_only(asked, "detect", "power", "alpha"),
    )
    return PlanResult(found, tuple(map(str, sides.problems)))


class PasskResult(NamedTuple):
    """How often models pass by outcomes that exist; it prints as `steelyard passk` prints it."""

    standings: Standings
    warnings: tuple[str, ...]

    @property
    def models(self) -> tuple[Standing, ...]:
        return self.standings.models

    def __str__(self) -> str:
        return standings_text(self.standings, color=False).rstrip()

    def _repr_html_(self) -> str:
        return html_table(*standings_rows(self.standings))

    def conclusion(self) -> Conclusion:
        """The exit code, and what to say beside the table."""
        return standings_conclusion(self.standings)


def passk(
    outcomes: RunName | Sequence[RunName] = (),
    *,
    k: int | Sequence[int] = (1, 5, 10),
    problems_csv: str | Path | None = None,
    fixes_csv: str | Path | Sequence[str | Path] = (),
    attempts: str | Path | Sequence[str | Path] = (),
    missing: str = "skip",
    **more: Unpack[FurtherPasskKeywords],
) -> PasskResult:
    """Compute pass@k with intervals from outcomes that exist: files of other tools, or runs.

    `attempts` are any number of attempts in Parquet: files, folders, patterns, folders of runs. Cases without
    an outcome are left out, or count as failed with missing="zero", or are refused with "error".
    More keywords, each as the option of `steelyard passk`: case model passed sample cost score score_range
    lower_is_better copies backend ray_address config options
    """
    asked, options = _asked("passk", locals(), FurtherPasskKeywords)
    root, scores = Path(options.settings.output_dir), _score_reading(asked)
    if _listed(attempts):
        if _listed(outcomes) or problems_csv or _listed(fixes_csv) or "cost" in asked or "score" in asked:
            raise InputError("attempts counts passes, and cannot be combined with other outcomes, cost or score")
        found = parquet_outcomes(_texts(attempts), _counting_options(asked, options), root=root)
    else:
        found = gather(
            [_name(each) for each in _listed(outcomes)],
            problems=str(problems_csv) if problems_csv else None,
            fixes=_texts(fixes_csv),
            columns=ColumnOverrides(**_only(asked, *ColumnOverrides._fields)),
            scores=scores,
            root=root,
        )
    sizes = [k] if isinstance(k, int) else list(k)
    return PasskResult(standings(found.tallies, sizes, missing=missing), tuple(map(str, found.problems)))


def report(
    run: RunName,
    *files: str | Path,
    baseline: RunName | None = None,
    pass_k: int | Sequence[int] | None = None,
    rule: str | None = None,
    **more: Unpack[FurtherResultKeywords],
) -> list[Path]:
    """Write reports of a run, or of a file of another tool, each in the format of its suffix; returns what was written.

    With a baseline a page, .html, compares the run with it. More keywords:
    penalty suite_weight latency_target latency_limit config options
    """
    asked, options = _asked("report", locals(), FurtherResultKeywords)
    root, against = Path(options.settings.output_dir), _name(asked["baseline"]) if "baseline" in asked else None
    check_report_request(_texts(files), baseline=against)
    with named_run(_name(run), root=root) as source:
        scoring = _scoring(source.stored, asked, options.settings)
        written = write_run_reports(source, _texts(files), scoring, baseline=against, root=root)
        _warn((*source.notes, *source.stored.damaged), options.say, frames=3)
    return written


class ShowResult(NamedTuple):
    """A run, one of its cases or one attempt; it prints as `steelyard show` prints it."""

    folder: Path
    results: StoredResults
    chosen: AttemptSelection
    attempts: StoredAttempts
    """Each with its case, reply, verdict or failure, and whether it is correct; texts are read when they are asked for."""
    warnings: tuple[str, ...]

    @property
    def summary(self) -> Summary:
        """The whole run."""
        return self.results.summary

    def text(self, *, width: int, color: bool = False) -> str:
        """What a terminal of this width shows."""
        chosen, summary = self.chosen, self.summary
        look: dict[str, Any] = {"width": width, "color": color}
        if chosen.case is None and not chosen.only_failed:
            commands = next_commands(self.folder, self.results.info, summary)
            return summary_text(summary, title=str(self.folder), next_commands=commands, details=True, **look)
        if chosen.case is None:
            groups = attempts_by_case(self.results, self.attempts)
            return "\n".join(case_text(group, of_case, **look) for group, of_case in groups)
        if chosen.number is None:
            return case_text(self.attempts, summary, **look)
        shown = list(self.attempts)
        judged = reply_judgments(StoredRun(self.folder), {tried.reply.key for tried in shown if tried.reply})
        return "\n".join(
            attempt_text(tried, judged.get(tried.reply.key, ()) if tried.reply else (), **look) for tried in shown
        )

    def __str__(self) -> str:
        return self.text(width=shutil.get_terminal_size((100, 40)).columns).rstrip()

    def _repr_html_(self) -> str:
        return html_text(str(self))


def show(
    run: RunName,
    case: str | None = None,
    number: int | None = None,
    *,
    model: str | None = None,
    failed: bool = False,
    require_trust: Trust | None = None,
    pass_k: int | Sequence[int] | None = None,
    rule: str | None = None,
    **more: Unpack[FurtherResultKeywords],
) -> ShowResult:
    """Show a run, one of its cases, or one attempt with everything that is known about it.

    The result prints, and its `attempts` are the chosen ones, `failed` for those that were not correct.
    More keywords: penalty suite_weight latency_target latency_limit config options
    """
    # the setting `case` says which cases are run
    asked, options = _asked("show", locals(), FurtherResultKeywords, not_from_file={"case", "number", "failed"})
    folder = _folder(run, options)
    stored = StoredRun(folder)
    info = stored.info
    if asked.get("require_trust"):
        info = replace(info, require_trust=asked["require_trust"])
    results = stored_results(stored, info=info, **_scoring(stored, asked, options.settings)._asdict())
    chosen = AttemptSelection(case, number, asked.get("model", ""), only_failed=failed)
    check_selection(results, folder, chosen)
    attempts = selected_attempts(results, folder, chosen)
    return ShowResult(folder, results, chosen, attempts, tuple(map(str, stored.damaged)))


# ---- what the keywords mean

_WHOLE_NUMBERS = ("samples", "max_samples", "max_tokens", "limit", "parallelism")
"""Keywords that are whole numbers from 1 on."""
_AMOUNTS = ("max_cost", "cache_for", "recheck")
"""Keywords that are numbers from 0 on."""
_CHOICES: dict[str, Sequence[Any]] = {
    "require_trust": ("", "isolated", "in-process"),
    "stream": get_args(StreamMode),
    "agent_sandbox": get_args(AgentSandboxMode),
    "controls": (0, 1, 2),
    "missing": ("skip", "zero", "error"),
}
_COMMAND_LINE_ONLY = frozenset(("allow_code", "default_check", "penalty", "suite_weight"))
"""Options that are not taken from the settings file: one would let a file allow itself, and the others are lists of texts there."""


def _asked(
    function: str, call: Mapping[str, Any], further: type[Any], *, not_from_file: Collection[str] = ()
) -> tuple[dict[str, Any], RunOptions]:
    """What a call asks, and how it is carried out; the settings file says what its keywords leave out.

    `call` holds the parameters by their names, those of no name as `more`. Raises a TypeError for an unknown keyword.
    """
    words = {name: value for name, value in call.items() if name != "more"}
    known = {*words, *further.__annotations__}
    for name in call["more"].keys() - known:
        raise TypeError(f'{function}() has no keyword "{name}" ({did_you_mean(name, known)})')
    given = {name: value for name, value in {**words, **call["more"]}.items() if value is not None}
    options = given.pop("options", given.pop("means", None))
    config, env_file = given.pop("config", None), given.pop("env_file", None)
    if env_file is not None:
        settings_module.read_env_file(Path(env_file), os.environ)
    if options is None or config is not None:
        settings, problems = _settings(config)
        _warn(problems)
        options = (options or RunOptions())._replace(settings=settings)
        from_file = known - _COMMAND_LINE_ONLY - set(not_from_file)
        given = {name: value for name, value in settings.options.items() if name in from_file} | given
    _check(given)
    changed = {name: given.pop(name) for name in RunOptions._fields if name in given}
    if given.pop("cache", False):
        changed["cache_days"] = float("inf")
    if "cache_for" in given:
        changed["cache_days"] = given.pop("cache_for")
    if "judges" in changed:
        changed["judges"] = tuple(_models(changed["judges"], options.settings))
    if "python_env" in changed:
        changed["python_env"] = str(changed["python_env"])
    return given, options._replace(**changed)


def _settings(config: str | Path | None) -> tuple[Settings, list[Problem]]:
    settings, problems = settings_module.load(Path(config) if config else None, Environment())
    if settings.price_table:
        settings = replace(settings, prices={**price_table(settings.price_table), **settings.prices})
    return settings, problems


def _check(given: Mapping[str, Any]) -> None:
    for name, value in _only(given, *_WHOLE_NUMBERS).items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} must be a whole number from 1 on, not {value!r}")
    for name, value in _only(given, *_AMOUNTS).items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise InputError(f"{name} must be a number from 0 on, not {value!r}")
    for name, choices in _CHOICES.items():
        if name in given and given[name] not in choices:
            raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, not {given[name]!r}")


def _only(asked: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Some of the keywords, where they are given."""
    return {name: asked[name] for name in names if name in asked}


def _listed(given: Any) -> list[Any]:
    """One thing, or several."""
    return [given] if isinstance(given, str | Path | Run) else list(given)


def _texts(given: str | Path | Sequence[str | Path]) -> list[str]:
    return [str(each) for each in _listed(given)]


def _name(given: RunName) -> str:
    """A run, a baseline or a file, as the command line names it; a `Path` is a place, and no name."""
    place = given.folder if isinstance(given, Run) else given
    return str(place.absolute()) if isinstance(place, Path) else place


def _folder(given: RunName, options: RunOptions, *, with_comparisons: bool = False) -> Path:
    if isinstance(given, str):
        return find_run(given, Path(options.settings.output_dir), with_comparisons=with_comparisons)
    return given.folder if isinstance(given, Run) else given


def _models(given: str | Sequence[str], settings: Settings) -> list[str]:
    return models_to_ask([given] if isinstance(given, str) else given, settings)


def _eval_sets(given: EvalSetSource, asked: Mapping[str, Any], options: RunOptions) -> evalsets.EvalSets:
    """The cases, with the columns of `map`, the checks of `default_check` and the tools of `tools`."""
    columns = asked.get("map", "")
    if columns:
        text = columns if isinstance(columns, str) else ",".join(f"{ours}={own}" for ours, own in columns.items())
        column_map(text)
        # the map stays with the path, so that reading the file again gives the same cases
        given = [path if str(path).startswith("suite:") else f"{path}#{text}" for path in _listed(given)]
    sets = eval_sets_of(given)
    _warn(sets.problems, options.say)
    checks = asked.get("default_check", {})
    if isinstance(checks, str) or "type" in checks:
        checks = {"": checks}
    tables = {suite: {"type": check} if isinstance(check, str) else check for suite, check in checks.items()}
    sets = evalsets.with_default_checks(sets, tables)
    return sets._replace(cases=with_run_tools(sets.cases, load_tools(asked["tools"]))) if "tools" in asked else sets


def _selected(cases: Sequence[Case], asked: Mapping[str, Any], root: Path) -> Sequence[Case]:
    """The cases that the keywords choose."""
    if not _only(asked, "filter", "case", "exclude", "failed_in", "limit"):
        return cases
    failed_in = asked.get("failed_in")
    return select_cases(
        cases,
        tags=",".join(_listed(asked.get("filter", ()))),
        glob=asked.get("case"),
        exclude=_listed(asked.get("exclude", ())),
        failed_in=None if failed_in is None else StoredRun(find_run(_name(failed_in), root)),
        limit=asked.get("limit"),
    )


def _parameters(asked: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """What is sent with each request."""
    default = {} if settings.default_temperature is None else {"temperature": settings.default_temperature}
    named = _only(asked, "temperature", "max_tokens", "reasoning_effort")
    if "response_format" in asked:
        named["response_format"] = response_format(asked["response_format"], "response_format")
    return {**default, **asked.get("parameters", {}), **named}


def _k_values(asked: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Which pass@k are wanted; a settings file may name them in one text."""
    given = asked.get("k", asked.get("pass_k"))
    if isinstance(given, str):
        try:
            given = [int(piece) for piece in given.replace(",", " ").split()]
        except ValueError:
            raise InputError(f"pass_k must be numbers, such as 1,5, not {short_quote(given)}") from None
    return given if given is None else (given,) if isinstance(given, int) else tuple(given)


def _suite_rule(
    asked: Mapping[str, Any], settings: Settings, own: SuiteRule, cases: Iterable[Case]
) -> SuiteRule | None:
    """How suites are scored: by the keywords or settings, otherwise by the run's own rule; None if there is neither."""
    in_file, suites = suite_settings(settings.suites, cases)
    given = _only(asked, "latency_target", "latency_limit")
    for word, field in (("penalty", "penalties"), ("suite_weight", "weights")):
        if word in asked:
            given[field] = dict(asked[word])
    return settled_suite_rule(own, in_file, given, suites, "the settings file")


def _scoring(stored: StoredRun, asked: Mapping[str, Any], settings: Settings) -> ScoringOverrides:
    """How a stored run is scored where that is not as the run itself says; refuses a rule that the run does not know."""
    rule = asked.get("rule")
    if rule:
        find_rule(rule, stored.info.rules)
    return ScoringOverrides(_k_values(asked), rule, _suite_rule(asked, settings, stored.info.suites, stored.cases))


def _score_reading(asked: Mapping[str, Any]) -> ScoreReading:
    """How the scores of other tools are meant."""
    ends = asked.get("score_range", PLAIN_SCORES[1:3])
    low, high = score_range(ends if isinstance(ends, str) else ":".join(map(str, ends)))
    return ScoreReading(asked.get("score"), low, high, asked.get("lower_is_better", False))


def _margin_share(margin: float | str, scores: ScoreReading) -> float:
    """A margin as a share of the range of the scores; one in their units, or a percentage such as `5%`."""
    try:
        if isinstance(margin, str) and margin.endswith("%"):
            return float(margin.removesuffix("%")) / 100
        return float(margin) / (scores.high - scores.low)
    except ValueError:
        raise InputError(f"margin must be a number or a percentage, such as 5%, not {margin!r}") from None


def _attempt_columns(asked: Mapping[str, Any]) -> AttemptColumns:
    return DEFAULT_ATTEMPT_COLUMNS._replace(**_only(asked, *AttemptColumns._fields))


def _counting_options(asked: Mapping[str, Any], options: RunOptions) -> CountingOptions:
    copies = str(asked["copies"]) if "copies" in asked else None
    return CountingOptions(_attempt_columns(asked), copies, options.backend, options.ray_address)


def _announcement(cases: Sequence[Case], plan: Mapping[str, Any], until: StoppingRule) -> str:
    """The most that a run until decided may ask for."""
    words = ("models", "k", "parameters", "system", "base_url", "means")
    most = forecast(cases, **_only(plan, *words), samples=until.most)
    return f"asks until the gate can decide; at most {forecast_text(most).rstrip()}"


def _warn(problems: Iterable[object], say: Callable[[str], None] | None = None, *, frames: int = 4) -> None:
    """Say what is odd to whom the options name, otherwise as Python's warnings at the user's line, so many frames away."""
    for problem in problems:
        if say is not None:
            say(f"warning: {problem}")
        else:
            warnings.warn(str(problem), UserWarning, stacklevel=frames)


def _say_nothing(_: str) -> None: ...
