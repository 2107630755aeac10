"""The sides of a comparison, found by the names that users give them: runs, JSON reports, and baselines kept in files."""

from __future__ import annotations

import math
import mmap
import os
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from steelyard.analysis import scoring
from steelyard.analysis.suites import classify_response, ordered_class_counts
from steelyard.comparison.exact_tests import CasesRule
from steelyard.comparison.sides import Side, Trials, run_side, score_counts, share_replies
from steelyard.engine.gate.history import add_to_history, history_path, read_history
from steelyard.engine.limits import limit_reader
from steelyard.engine.results.attempt_tables import stored_attempt_table
from steelyard.engine.results.read_outcomes import counted_side, is_counted_file
from steelyard.engine.results.recordings import is_recorded, recorded_side
from steelyard.errors import InputError, Problem, check_format, did_you_mean
from steelyard.outcomes.parquet_counts import DEFAULT_ATTEMPT_COLUMNS, AttemptColumns
from steelyard.outcomes.scores import PLAIN_SCORES, ScoreReading
from steelyard.records import Case, Expectations, Finding, Test
from steelyard.records.base import Count, ReportedTestCount, SignedNumber
from steelyard.store.files import AtomicFiles, TolerantDecoder, explain_write_errors, format_number, now
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER, find_run
from steelyard.store.side_files import case_limits
from steelyard.text import printable

DecodedReport = TypeVar("DecodedReport")
MAX_REPORT_FILE_BYTES = 1 << 30
REPORT_FORMAT = 1
"""The newest format of JSON reports that is read."""


class _ReportedCompilation(msgspec.Struct):
    success: bool | None = None


class _ReportedTests(msgspec.Struct):
    passed: ReportedTestCount = 0
    failed: ReportedTestCount = 0


class _ReportedLint(msgspec.Struct):
    warning_count: Count = 0


class _ReportedResult(msgspec.Struct):
    case_id: str
    model: str
    compilation: _ReportedCompilation = msgspec.field(default_factory=_ReportedCompilation)
    test_execution: _ReportedTests | None = None
    clippy: _ReportedLint | None = None
    correct: bool | None = None
    score: SignedNumber | None = None
    graded: bool = False
    run_id: str = ""
    cached_from: tuple[str, ...] = ()

    @property
    def found(self) -> Finding:
        tests = self.test_execution
        outcomes: list[Any] = ["passed"] * tests.passed + ["failed"] * tests.failed if tests else []
        return Finding(
            code="reported",
            compiled=self.compilation.success,
            tests=tuple(Test(name=str(number), outcome=outcome) for number, outcome in enumerate(outcomes, 1)),
            warnings=self.clippy.warning_count if self.clippy else None,
        )


class _ReportedSummary(msgspec.Struct):
    rule: str = ""


class _JsonReport(msgspec.Struct):
    results: list[_ReportedResult]
    format: Any = 0
    summary: _ReportedSummary = msgspec.field(default_factory=_ReportedSummary)


REPORTED_CASE_STUB = Case(id="", prompt="", expectations=Expectations(expected_functions=("not told",)))
"""The known part of a reported case: expected functions are unknown, so none counts as defined."""


def _json_report(path: Path) -> _JsonReport:
    """A report; raises an InputError for any other file."""
    where = printable(str(path))
    try:
        if path.stat().st_size > MAX_REPORT_FILE_BYTES:
            raise InputError(f"{where}: larger than {MAX_REPORT_FILE_BYTES >> 30} GB; use the run's folder instead")
        report = _decoded(path, _JsonReport)
    except OSError as error:
        raise InputError(f"{where}: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{where}: not the JSON report of a run: {str(error)[:200]}; write one with: steelyard report RUN -o {where}"
        ) from None
    if isinstance(report.format, int):
        check_format(where, report.format, REPORT_FORMAT)
    return report


def _decoded(path: Path, kind: type[DecodedReport]) -> DecodedReport:
    """What a report says, without holding its texts in memory; raises what msgspec raises."""
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return msgspec.json.decode(b"", type=kind)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return msgspec.json.decode(content, type=kind)


BASELINES_FOLDER = Path("steelyard-baselines")
"""Where baselines are kept; small files, fit for committing."""
BASELINE_FORMAT = 1
"""The format of baselines; it goes up when older versions cannot read it, not when a field is added."""


class _NumberedSide(Side, frozen=True, kw_only=True):
    """A baseline as its file has it."""

    format: int = 0


_side: TolerantDecoder[_NumberedSide] = TolerantDecoder(_NumberedSide)


def side(
    name: str,
    *,
    rule: str | None = None,
    root: Path = DEFAULT_RUNS_FOLDER,
    columns: AttemptColumns = DEFAULT_ATTEMPT_COLUMNS,
    scores: ScoreReading = PLAIN_SCORES,
) -> Side:
    """A run folder, its name, `latest`, a baseline's name or file, a report in JSON, a file of another tool, or one model of these, `@MODEL`.

    `columns` are those of a table with a row per attempt, `scores` says how the scores of other tools are meant.
    """
    run, at, model = split_run_and_model(name)
    if _baseline_path(run).is_file():
        whole = _side_of_baseline(_baseline_path(run), rule)
    elif run.endswith(".json") and Path(run).absolute().parent.name == BASELINES_FOLDER.name:
        whole = _side_of_baseline(Path(run), rule)
    elif is_recorded(run):
        whole = recorded_side(run, scores)
    elif run.endswith(".json"):
        whole = _side_of_report(Path(run), rule)
    elif is_counted_file(run, columns, scores):
        whole = counted_side(run, columns, scores)
    else:
        whole = _side_of_run(_find_run(run, root), rule)
    if not at:
        return whole
    if model not in whole.models:
        raise InputError(f'{run}: no model "{model}" ({did_you_mean(model, whole.models)})')
    return msgspec.structs.replace(whole, name=name, models={model: whole.models[model]})


def run_folder(name: str, *, root: Path = DEFAULT_RUNS_FOLDER) -> Path | None:
    """The folder of the run that a side is, or is a model of; None if it is a baseline or a file."""
    run, _, _ = split_run_and_model(name)
    is_counted = run.endswith(".json") or _baseline_path(run).is_file() or is_recorded(run) or Path(run).is_file()
    return None if is_counted else _find_run(run, root)


def _find_run(run: str, root: Path) -> Path:
    """The folder of a run; if no run has this name, it may have been meant for a baseline."""
    try:
        return find_run(run, root)
    except InputError as error:
        raise InputError(f"{error}; a baseline is made with: steelyard bless RUN --as NAME") from None


class BlessedBaseline(NamedTuple):
    """A baseline that was written."""

    path: Path
    side: Side
    problems: tuple[Problem, ...]
    """What was left out, as warnings."""
    history: int = 0
    """The runs that its history has now."""


def bless(
    names: Sequence[str],
    label: str,
    *,
    rule: str | None = None,
    cases: CasesRule | None = None,
    restart_history: bool = False,
    scores: ScoreReading = PLAIN_SCORES,
    root: Path = DEFAULT_RUNS_FOLDER,
) -> BlessedBaseline:
    """Pool some runs as a baseline; a case counts with the tests that the last run judged it by.

    `cases` says what cases that got worse mean for gates on this baseline; by default the gate decides by the models. Runs
    that its history lacks are added to it, or begin it anew.
    """
    if not label or label.startswith(".") or "@" in label or Path(label).name != label or not label.isprintable():
        raise InputError(f'"{label}" cannot be the name of a baseline: it is a file name, without / and @')
    if not restart_history:
        # a history that cannot be read is found before anything is written
        read_history(history_path(_baseline_path(label)))
    sides = [side(name, rule=rule, root=root, scores=scores) for name in names]
    times = [_started_at(name, root) for name in names]
    rules = sorted({each.rule for each in sides})
    if len(rules) > 1:
        raise InputError(f"the runs are scored by different rules ({', '.join(rules)}); name one with --rule")
    runs = dict.fromkeys(run for each in sides for run in each.runs)
    parts = Counter((run, model) for each in sides for run in each.runs for model in each.models)
    twice = [run for (run, _), count in parts.items() if count > 1]
    if twice:
        raise InputError(f"run {twice[0]} is in this baseline twice; its attempts count once")
    models, problems = _pooled_models(sides)
    problems = (*(Problem("", 0, each, fatal=False) for one in sides for each in one.warnings), *problems)
    baseline = Side(name=label, rule=rules[0], models=models, runs=tuple(runs), cases=cases or "")
    path = _baseline_path(label)
    fields = {"format": BASELINE_FORMAT} | msgspec.to_builtins(baseline) | _fields_of_later_versions(path)
    content = msgspec.json.format(msgspec.json.encode(fields), indent=1).decode()
    with explain_write_errors(path.parent), AtomicFiles() as fresh:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write(path, [content, "\n"])
        fresh.finish()
    count = add_to_history(history_path(path), sides, times, restart=restart_history)
    return BlessedBaseline(path, baseline, problems, count)


def _started_at(name: str, root: Path) -> str:
    """When a run started; now for a file, and before all others for a baseline, which is made of earlier runs."""
    if _baseline_path(name).is_file():
        return ""
    folder = run_folder(name, root=root)
    return StoredRun(folder).info.started_at if folder else now()


def _fields_of_later_versions(path: Path) -> dict[str, Any]:
    """The fields that a later version added to the replaced baseline; empty if it cannot be read."""
    if not path.is_file() or path.stat().st_size > MAX_REPORT_FILE_BYTES:
        return {}
    content = path.read_bytes()
    try:
        number, earlier = format_number(content), msgspec.json.decode(content, type=dict[str, msgspec.Raw])
        known = ("format", *Side.__struct_fields__)
        fields = {key: msgspec.json.decode(value) for key, value in earlier.items() if key not in known}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    check_format(str(path), number, BASELINE_FORMAT)
    return fields


def _pooled_models(sides: Sequence[Side]) -> tuple[dict[str, tuple[Trials, ...]], tuple[Problem, ...]]:
    """The trials of all sides together, and a warning for each case some of whose trials had other tests."""
    found: dict[str, dict[str, list[tuple[Trials, Sequence[str]]]]] = {}
    for each in sides:
        for model, cases in each.models.items():
            for trials in cases:
                found.setdefault(model, {}).setdefault(trials.case, []).append((trials, each.runs))
    models, problems = {}, []
    for model, by_case in sorted(found.items()):
        pooled = []
        for case in sorted(by_case):
            with_runs = by_case.pop(case)
            every = _without_shared_replies(with_runs)
            if len(every) < len(with_runs):
                left_out = f"{len(with_runs) - len(every)} of {len(with_runs)} runs share replies with another one"
                problems.append(
                    Problem(model, 0, f'case "{case}": {left_out} and are left out: each counts once', fatal=False)
                )
            same = [
                trials
                for trials in every
                if trials.tests == every[-1].tests
                and (trials.judged_by == every[-1].judged_by or not trials.judged_by or not every[-1].judged_by)
            ]
            if len(same) < len(every):
                left_out = f"{len(every) - len(same)} of {len(every)} runs had other tests or rules and are left out"
                problems.append(Problem(model, 0, f'case "{case}": {left_out}', fatal=False))
            pooled.append(_pooled_trials(same))
        models[model] = tuple(pooled)
    return models, tuple(problems)


def _without_shared_replies(every: Sequence[tuple[Trials, Sequence[str]]]) -> list[Trials]:
    """The trials of a case without those that share replies with others: of these the one with the most attempts stays, or the last."""
    kept: list[int] = []
    for index in sorted(range(len(every)), key=lambda index: (every[index][0].attempts, index), reverse=True):
        if not any(share_replies(every[index], every[other]) for other in kept):
            kept.append(index)
    return [every[index][0] for index in sorted(kept)]


def _pooled_trials(trials: Sequence[Trials]) -> Trials:
    first = trials[0]
    if len(trials) == 1 and first.further_attempts is None and not (first.further_passes or first.further_scores):
        # what a run says of a case is in order already, and there may be a hundred thousand
        return first
    scores: Counter[float] = Counter()
    classes: Counter[str] = Counter()
    costs = [each.cost_usd for each in trials]
    for each in trials:
        scores.update(dict(each.scores))
        classes.update(dict(each.classes))
    return msgspec.structs.replace(
        trials[-1],
        judged_by=tuple(sorted({rules for each in trials for rules in each.judged_by})),
        cached_from=tuple(sorted({run for each in trials for run in each.cached_from})),
        attempts=sum(each.attempts for each in trials),
        passes=sum(each.passes for each in trials),
        missing=sum(each.missing for each in trials),
        scores=tuple(sorted(scores.items())),
        graded=sum(each.graded for each in trials),
        # where one run lacks the classes of its attempts, those of all are unknown
        classes=tuple(ordered_class_counts(classes).items())
        if all(each.classes for each in trials if each.attempts)
        else (),
        cost_usd=None if None in costs else math.fsum(cost for cost in costs if cost is not None),
        # asked because of other results: not a fair sample of the case
        further_attempts=None,
        further_passes=0,
        further_scores=(),
    )


def _baseline_path(name: str) -> Path:
    """Where a baseline of this name is; a path is not a name, and leads nowhere here."""
    return BASELINES_FOLDER / f"{name}.json" if Path(name).name == name else BASELINES_FOLDER / "-"


def _side_of_baseline(path: Path, rule: str | None) -> Side:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_REPORT_FILE_BYTES + 1)
        if len(content) > MAX_REPORT_FILE_BYTES:
            raise InputError(f"{path}: larger than {MAX_REPORT_FILE_BYTES >> 30} GB, which is too large for a baseline")
        check_format(str(path), format_number(content), BASELINE_FORMAT)
        found = _side.decode(content)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{path}: not a baseline: {str(error)[:200]}; write one with: steelyard bless RUN --as NAME"
        ) from None
    if rule and rule != found.rule:
        raise InputError(f'{path}: scored by rule "{found.rule}"; a baseline keeps no facts to score by "{rule}"')
    return Side(**{name: getattr(found, name) for name in Side.__struct_fields__})


def split_run_and_model(name: str) -> tuple[str, str, str]:
    """The run and the model of `RUN@MODEL`; a path that exists is a path, even with an `@` in it."""
    return (name, "", "") if Path(name).exists() else name.partition("@")


def _side_of_run(folder: Path, rule: str | None) -> Side:
    stored = StoredRun(folder)
    info, cases = stored.info, stored.cases
    table = stored_attempt_table(stored, info, cases, rule=rule)
    return run_side(str(folder), rule or info.rule, info, cases, table, limit_reader(case_limits(stored)))


def _side_of_report(path: Path, rule: str | None) -> Side:
    report = _json_report(path)
    reported_rule = report.summary.rule
    name = rule or reported_rule or "code"
    chosen = None if name == reported_rule else scoring.find_rule(name)
    suites = _suites(path)
    # attempts at many cases, one at each, are alike: those share a tuple
    found: dict[str, dict[str, Sequence[tuple[bool, float | None]]]] = {}
    alike: dict[tuple[tuple[bool, float | None]], tuple[tuple[bool, float | None]]] = {}
    same_scores: dict[tuple[tuple[float, int], ...], tuple[tuple[float, int], ...]] = {}
    cached: dict[tuple[str, str], set[str]] = {}
    graded: Counter[tuple[str, str]] = Counter()
    runs: set[str] = set()
    for one in report.results:
        runs.add(one.run_id)
        if one.graded:
            graded[one.model, one.case_id] += 1
        if one.cached_from:
            cached.setdefault((one.model, one.case_id), set()).update(one.cached_from)
        correct = scoring.is_correct(REPORTED_CASE_STUB, one.found) if one.correct is None else one.correct
        # a score that the report gives is of its own rule; what it is derived from may not all be there
        score = one.score if chosen is None else scoring.score(REPORTED_CASE_STUB, one.found, chosen)
        judged = correct, score
        of_model = found.setdefault(one.model, {})
        before = of_model.get(one.case_id)
        if before is None:
            of_model[one.case_id] = alike.setdefault((judged,), (judged,))
        elif isinstance(before, list):
            before.append(judged)
        else:
            of_model[one.case_id] = [*before, judged]

    def trials(model: str, case: str) -> Trials:
        attempts = found[model].pop(case)
        suite = suites.get(model, {}).pop(case, _NO_SUITE)
        scores = score_counts(score for _, score in attempts)
        return Trials(
            case=case,
            attempts=len(attempts),
            passes=sum(correct for correct, _ in attempts),
            scores=same_scores.setdefault(scores, scores),
            graded=graded[model, case],
            suite=suite.name,
            classes=suite.classes,
            cached_from=tuple(sorted(cached.get((model, case), ()))),
        )

    models = {model: tuple(trials(model, case) for case in sorted(found[model])) for model in sorted(found)}
    return Side(name=str(path), rule=name, models=models, runs=tuple(sorted(runs - {""})))


class _SuiteResult(msgspec.Struct):
    """What a report of ours says about an attempt at a case of a suite."""

    case_id: str
    model: str
    suite: str = ""
    correct: bool | None = None
    failure: str = ""


class _SuiteResults(msgspec.Struct):
    results: list[_SuiteResult]


class _SuiteClasses(NamedTuple):
    """The suite of a case, and how many attempts are of each class."""

    name: str
    classes: tuple[tuple[str, int], ...] = ()


_NO_SUITE = _SuiteClasses("")


@lru_cache(maxsize=1 << 12)
def _with_attempt(before: _SuiteClasses, of_class: str) -> _SuiteClasses:
    """The same with one attempt more; cases with the same counts share them."""
    counts = ordered_class_counts(Counter(dict(before.classes)) + Counter([of_class]))
    return _SuiteClasses(before.name, tuple(counts.items()))


def _suites(path: Path) -> dict[str, dict[str, _SuiteClasses]]:
    """By model and case the suite and the classes of the attempts, where a report has them."""
    found: dict[str, dict[str, _SuiteClasses]] = {}
    try:
        for one in _decoded(path, _SuiteResults).results:
            if one.suite and one.correct is not None:
                of_model = found.setdefault(one.model, {})
                before = of_model.get(one.case_id) or _SuiteClasses(one.suite)
                of_model[one.case_id] = _with_attempt(before, classify_response(one.correct, one.failure))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # a report that has other things under these names is a report all the same
        return {}
    return found
