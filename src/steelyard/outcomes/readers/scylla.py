"""Experiments of ProjectScylla: its trees of results, and the tables of runs, judges and criteria that it derives from them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from steelyard.errors import Problem
from steelyard.outcomes.experiments import ImportedExperiment, experiment
from steelyard.outcomes.files import UnreadableOutcomesError
from steelyard.outcomes.readers.sources import beginning, decoded, first_object, json_document, number, text, whole
from steelyard.protocols import ForeignFile
from steelyard.records import Answer, Cost, RecordedAttempt, RecordedClaim
from steelyard.stats.cost import cost_of_pass
from steelyard.tiers.formulas import points_share
from steelyard.tiers.results import CriterionRating, JudgeIdentity, RunIdentity, RunRating, RunSource, TierRun

RUN_FILE = "run_result.json"
RUNS_TABLE, JUDGES_TABLE, CRITERIA_TABLE = "runs.csv", "judges.csv", "criteria.csv"
MAX_TREE_RUNS = 1_000_000
MAX_COMPANION_BYTES = 16 << 20
"""Bytes of a prompt, a transcript or a rubric beside a run; what is larger is left out."""
CLAIM_TOLERANCE = 5e-4
"""Published figures have three digits or more."""


class _Tokens(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_tokens: Any = None
    cache_read_tokens: Any = None


class _JudgeEntry(msgspec.Struct):
    model: str = ""
    score: Any = None
    passed: Any = None
    grade: Any = None
    is_valid: Any = True
    judge_number: Any = None
    criteria_scores: Any = None


class _RunResult(msgspec.Struct):
    run_number: Any = None
    exit_code: Any = None
    token_stats: _Tokens = msgspec.field(default_factory=_Tokens)
    cost_usd: Any = None
    duration_seconds: Any = None
    agent_duration_seconds: Any = None
    judge_score: Any = None
    judge_passed: Any = None
    judge_reasoning: Any = None
    judges: list[_JudgeEntry] = []


class _Settings(msgspec.Struct):
    experiment_id: Any = ""
    models: Any = None


class _Task(NamedTuple):
    """What all runs of one experiment folder have in common."""

    name: str
    model: str
    prompt: str
    tests: str
    """A digest of its rubric and criteria."""


class _TreeRun(NamedTuple):
    """One `run_result.json` with the files beside it."""

    folder: Path
    task: _Task
    tier: str
    subtest: str
    number: int
    result: _RunResult
    ratings: tuple[RunRating, ...]
    criteria: tuple[CriterionRating, ...]

    @property
    def identity(self) -> RunIdentity:
        return RunIdentity(self.task.name, self.task.model, self.tier, self.subtest, self.number)


class ScyllaReader:
    """Reads a folder of results of ProjectScylla, `TIER/SUBTEST/run_NN/run_result.json`, or its table of runs.

    The experiment is the task, and so the case. Subtests are variants of a tier that no other tier has: their runs are
    attempts of the tier, and the id of a reply says which it is.
    """

    def recognises(self, file: ForeignFile) -> bool:
        if file.path.is_dir():
            return (file.path / RUNS_TABLE).is_file() or next(_run_files(file.path), None) is not None
        if file.path.name == RUN_FILE:
            return b'"judge_score"' in file.beginning
        return file.beginning.startswith(b"experiment,agent_model,tier,subtest,run_number")

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        if _table(path) is None:
            for run in _tree(path):
                yield _tree_attempt(run)
            return
        found = scylla_experiment(path)
        yield from found.warnings
        judges = ", ".join(sorted({rating.judge.model for rating in found.ratings}))
        for row in found.runs:
            yield _table_attempt(row, judges)

    def claims(self, path: Path) -> Iterator[RecordedClaim]:
        """The figures that ProjectScylla wrote about these runs, beside what the runs give."""
        found = scylla_experiment(path)
        yield from _run_claims(found)
        yield from _tier_claims(path if path.is_dir() else path.parent, found)


def scylla_experiment(path: Path) -> ImportedExperiment:
    """The runs, ratings and criteria of a folder of results, or of the tables that were made of one."""
    runs = _table(path)
    if runs is not None:
        judges, criteria = (runs.with_name(name) for name in (JUDGES_TABLE, CRITERIA_TABLE))
        has_judges = judges.is_file()
        return experiment(
            runs,
            judges=judges if has_judges else None,
            criteria=criteria if has_judges and criteria.is_file() else None,
        )
    found = list(_tree(path))
    rows = tuple(_tier_run(run) for run in found)
    seen: dict[RunIdentity, Path] = {}
    for run in found:
        other = seen.setdefault(run.identity, run.folder)
        if other is not run.folder:
            raise UnreadableOutcomesError(f"{run.folder} and {other} are the same run; import them one by one")
    whole_tree = hashlib.blake2b(msgspec.json.encode((rows, [run.ratings for run in found])), digest_size=16)
    return ImportedExperiment(
        rows,
        tuple(rating for run in found for rating in run.ratings),
        tuple(criterion for run in found for criterion in run.criteria),
        (RunSource(name=path.name or str(path), digest=whole_tree.hexdigest()),),
        (),
    )


def is_scylla(path: Path) -> bool:
    """Whether a folder or file is an experiment of ProjectScylla."""
    return ScyllaReader().recognises(ForeignFile(path, beginning(path)))


def _table(path: Path) -> Path | None:
    """The table of runs that a path stands for; None for a tree."""
    if path.is_dir():
        return path / RUNS_TABLE if (path / RUNS_TABLE).is_file() else None
    if path.suffix in (".yaml", ".yml"):
        raise UnreadableOutcomesError("a task, not results; `steelyard run` and experiments take it as an eval set")
    return None if path.name == RUN_FILE else path


def _run_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    # from the folder of one run up to a folder of experiments; what agents left in their workspaces is theirs
    found = (one for depth in range(5) for one in path.glob("*/" * depth + RUN_FILE))
    ours = (one for one in found if "workspace" not in one.relative_to(path).parts[:-1])
    for _, one in zip(range(MAX_TREE_RUNS), ours, strict=False):
        yield one


def _tree(path: Path) -> Iterator[_TreeRun]:
    tasks: dict[Path, _Task] = {}
    for file in sorted(_run_files(path)):
        folder = file.absolute().parent
        root = folder.parents[2] if len(folder.parents) > 2 else folder
        if root not in tasks:
            tasks[root] = _task(root)
        result = json_document(file, _RunResult, f"a result of ProjectScylla ({file})")
        tier, subtest = folder.parents[1].name, folder.parent.name
        numbered = whole(result.run_number)
        digits = folder.name.rpartition("_")[2]
        place = numbered if numbered is not None else int(digits) if digits.isdecimal() and len(digits) < 9 else 1
        task = tasks[root]
        if not task.model:
            task = task._replace(model=_model_beside(folder))
        run = _TreeRun(folder, task, tier, subtest, place, result, (), ())
        ratings, criteria = _ratings(run)
        yield run._replace(ratings=ratings, criteria=criteria)


def _task(root: Path) -> _Task:
    file = root / "config" / "experiment.json"
    settings = json_document(file, _Settings, "a config of ProjectScylla") if file.is_file() else _Settings()
    models = [one for one in settings.models if isinstance(one, str)] if isinstance(settings.models, list) else []
    rules = [_companion(root / name) for name in ("rubric.yaml", "criteria.md")]
    tests = hashlib.blake2b("\0".join(rules).encode(), digest_size=16).hexdigest() if any(rules) else ""
    # with several models each run says its own
    model = models[0] if len(models) == 1 else ""
    return _Task(text(settings.experiment_id) or root.name, model, _companion(root / "prompt.md"), tests)


def _companion(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > MAX_COMPANION_BYTES:
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _model_beside(folder: Path) -> str:
    """The model that an agent's `MODEL.md` names."""
    for row in _companion(folder / "agent" / "MODEL.md").splitlines():
        key, _, value = row.partition(":")
        if key.strip("* ") == "Model":
            return value.strip("* ")
    return "-"


def _ratings(run: _TreeRun) -> tuple[tuple[RunRating, ...], tuple[CriterionRating, ...]]:
    """What each judge of a run said, with the points in its own file where there is one."""
    ratings: list[RunRating] = []
    criteria: list[CriterionRating] = []
    for place, entry in enumerate(run.result.judges, 1):
        numbered = whole(entry.judge_number) or place
        judge = JudgeIdentity(entry.model or "-", numbered)
        if any(rating.judge == judge for rating in ratings):
            raise UnreadableOutcomesError(f"{run.folder / RUN_FILE}: judge {judge} is there twice")
        file = run.folder / "judge" / f"judge_{numbered:02d}" / "judgment.json"
        found = json_document(file, _JudgeEntry, f"a judgment of ProjectScylla ({file})") if file.is_file() else entry
        marks = found.criteria_scores if isinstance(found.criteria_scores, dict) else {}
        points = [_criterion(run.identity, judge, name, mark) for name, mark in marks.items() if isinstance(mark, dict)]
        criteria += points
        ratings.append(
            RunRating(
                run=run.identity,
                judge=judge,
                score=number(entry.score),
                impl_rate=points_share((one.achieved, one.max) for one in points),
                passed=entry.passed if isinstance(entry.passed, bool) else None,
                grade=text(entry.grade),
                valid=found.is_valid is not False and entry.is_valid is not False,
            )
        )
    return tuple(ratings), tuple(criteria)


def _criterion(run: RunIdentity, judge: JudgeIdentity, name: str, mark: Mapping[str, Any]) -> CriterionRating:
    # what does not apply is "N/A"
    score, achieved, most = (number(mark.get(key)) for key in ("score", "achieved", "max"))
    return CriterionRating(run=run, judge=judge, criterion=name, score=score, achieved=achieved, max=most)


def _tier_run(run: _TreeRun) -> TierRun:
    result, tokens = run.result, run.result.token_stats
    return TierRun(
        experiment=run.task.name,
        model=run.task.model,
        tier=run.tier,
        case=run.subtest,
        number=run.number,
        passed=result.judge_passed if isinstance(result.judge_passed, bool) else None,
        score=_at_least_zero(result.judge_score),
        cost_usd=_at_least_zero(result.cost_usd),
        duration_seconds=_at_least_zero(result.duration_seconds),
        input_tokens=_all_input(tokens),
        output_tokens=whole(tokens.output_tokens),
        cached_tokens=whole(tokens.cache_read_tokens),
        exit_code=int(code) if (code := number(result.exit_code)) is not None else None,
    )


def _at_least_zero(value: Any) -> float | None:
    found = number(value)
    return found if found is not None and found >= 0 else None


def _all_input(tokens: _Tokens) -> int | None:
    plain = whole(tokens.input_tokens)
    if plain is None:
        return None
    return plain + (whole(tokens.cache_creation_tokens) or 0) + (whole(tokens.cache_read_tokens) or 0)


def _tree_attempt(run: _TreeRun) -> RecordedAttempt:
    result, tokens = run.result, run.result.token_stats
    passed = result.judge_passed if isinstance(result.judge_passed, bool) else None
    score, usd = number(result.judge_score), _at_least_zero(result.cost_usd)
    transcript = _companion(run.folder / "agent" / "output.txt")
    said = first_object(transcript.encode()).get("result")
    has_outcome = passed is not None or score is not None
    return RecordedAttempt(
        case=run.task.name,
        model=run.task.model or "-",
        judged_by=_judged_by(rating.judge.model for rating in run.ratings),
        tool="ProjectScylla",
        tier=run.tier,
        passed=passed,
        score=score,
        graded=score is not None and 0 < score < 1,
        answer=Answer(
            text=said if isinstance(said, str) else "",
            finish="stop" if isinstance(said, str) else "unrecorded",
            input_tokens=_all_input(tokens),
            output_tokens=whole(tokens.output_tokens),
            cached_tokens=whole(tokens.cache_read_tokens),
            cache_write_tokens=whole(tokens.cache_creation_tokens),
            cost=None if usd is None else Cost(usd=usd, source="ProjectScylla"),
            latency=_at_least_zero(result.agent_duration_seconds),
            exit_code=int(code) if (code := number(result.exit_code)) is not None else None,
            transcript=transcript[:65536],
            request_id=f"{run.tier}/{run.subtest}/run {run.number}",
        ),
        prompt=run.task.prompt,
        reason="" if passed else text(result.judge_reasoning),
        failure="" if has_outcome else "not judged",
        tests=run.task.tests,
    )


def _judged_by(judges: Iterable[str]) -> str:
    return f"scylla {', '.join(sorted(set(judges)))}".strip()


def _table_attempt(row: TierRun, judges: str) -> RecordedAttempt:
    return RecordedAttempt(
        case=row.experiment,
        model=row.model,
        judged_by=_judged_by([judges]),
        tool="ProjectScylla",
        tier=row.tier,
        passed=row.passed,
        score=row.score,
        graded=row.score is not None and 0 < row.score < 1,
        answer=Answer(
            text="",
            finish="unrecorded",
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            cached_tokens=row.cached_tokens,
            cost=None if row.cost_usd is None else Cost(usd=row.cost_usd, source="ProjectScylla"),
            latency=row.duration_seconds,
            exit_code=row.exit_code,
            request_id=f"{row.tier}/{row.case}/run {row.number}",
        ),
        failure="" if row.passed is not None or row.score is not None else "not judged",
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _run_claims(found: ImportedExperiment) -> Iterator[RecordedClaim]:
    """Differences between what is recorded about a run and its judges."""
    of_run: dict[RunIdentity, list[RunRating]] = {}
    for rating in found.ratings:
        if rating.valid:
            of_run.setdefault(rating.run, []).append(rating)
    judged = [(run, of_run[run.identity]) for run in found.runs if run.identity in of_run]
    if not judged:
        return
    votes = [(run.passed, [rating.passed for rating in ratings]) for run, ratings in judged]
    decided = [(passed, sum(v is True for v in cast), sum(v is False for v in cast)) for passed, cast in votes]
    clear = [(passed, yes > no) for passed, yes, no in decided if passed is not None and yes != no]
    yield RecordedClaim(
        about="runs that passed, by their judges' majority",
        they=f"{sum(passed for passed, _ in clear):,} of {len(clear):,}",
        we=f"{sum(majority for _, majority in clear):,} of {len(clear):,}",
        differs=sum(passed != majority for passed, majority in clear),
    )
    for about, pairs in (
        (
            "mean score, by the totals that judges claim",
            [(run.score, _mean(r.score for r in rs)) for run, rs in judged],
        ),
        (
            "mean impl rate, by the points that judges gave",
            [(run.impl_rate, _mean(rating.impl_rate for rating in ratings)) for run, ratings in judged],
        ),
        (
            "mean total that a judge claims, by its points",
            [(rating.score, rating.impl_rate) for _, ratings in judged for rating in ratings],
        ),
    ):
        known = [(they, we) for they, we in pairs if they is not None and we is not None]
        if known:
            yield RecordedClaim(
                about=about,
                they=f"{fmean(they for they, _ in known):.4f}",
                we=f"{fmean(we for _, we in known):.4f}",
                differs=sum(abs(they - we) > CLAIM_TOLERANCE for they, we in known),
            )


def _tier_claims(folder: Path, found: ImportedExperiment) -> Iterator[RecordedClaim]:
    """Differences between what its reports say about tiers and the runs."""
    tiers: dict[str, list[TierRun]] = {}
    for run in found.runs:
        tiers.setdefault(run.tier, []).append(run)
    summary = _object(folder / "summary.json")
    by_tier = summary.get("by_tier")
    for tier, said in by_tier.items() if isinstance(by_tier, dict) else ():
        if tier in tiers and isinstance(said, dict):
            yield from _figures(tier, said, tiers[tier])
    overall = summary.get("overall_stats")
    if isinstance(overall, dict):
        yield from _figures("all tiers", overall, found.runs)
    for tier, runs in tiers.items():
        said = _object(folder / tier / "report.json").get("summary")
        if isinstance(said, dict):
            yield from _figures(tier, said, runs)
            yield _best_claim(tier, said, runs)


def _object(path: Path) -> dict[str, Any]:
    raw = _companion(path)
    return decoded(raw.encode(), dict[str, Any], f"a report of ProjectScylla ({path})") if raw else {}


def _figures(about: str, said: Mapping[str, Any], runs: Iterable[TierRun]) -> Iterator[RecordedClaim]:
    rows = list(runs)
    costs = [run.cost_usd for run in rows]
    total = math.fsum(cost for cost in costs if cost is not None) if None not in costs else None
    known = [(run.cost_usd or 0.0, run.passed) for run in rows if run.passed is not None]
    price = cost_of_pass([cost for cost, _ in known], [bool(passed) for _, passed in known]) if known else None
    ours = {
        "pass_rate": _mean(None if run.passed is None else float(run.passed) for run in rows),
        "mean_score": _mean(run.score for run in rows),
        "mean_impl_rate": _mean(run.impl_rate for run in rows),
        "total_cost": total,
        "cop": price if total is not None else None,
    }
    for key, we in ours.items():
        they = number(said.get(key))
        if they is not None:
            yield RecordedClaim(
                about=f"{about}: {key.replace('_', ' ').replace('cop', 'cost of pass')}",
                they=f"{they:.4f}",
                we="-" if we is None else f"{we:.4f}",
                differs=int(we is None or abs(they - we) > CLAIM_TOLERANCE),
            )


def _best_claim(tier: str, said: Mapping[str, Any], runs: Iterable[TierRun]) -> RecordedClaim:
    scores: dict[str, list[float]] = {}
    for run in runs:
        if run.score is not None:
            scores.setdefault(run.case, []).append(run.score)
    means = {case: fmean(values) for case, values in scores.items()}
    best = max(means, key=lambda case: (means[case], case)) if means else "-"
    score = number(said.get("best_score"))
    named = text(said.get("best_subtest")) or "-"
    return RecordedClaim(
        about=f"{tier}: best subtest, by mean score",
        they=named if score is None else f"{named} ({score:.4f})",
        we=f"{best} ({means[best]:.4f})" if means else "-",
        # of several that are equally good either may be named
        differs=int(not means or abs(means.get(named, -1.0) - means[best]) > CLAIM_TOLERANCE),
    )
