"""One run of a case under a tier as judges rated it, and the figures of an experiment, as records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance
from typing import TYPE_CHECKING, Literal, NamedTuple

from steelyard.analysis.estimates import Estimate
from steelyard.records import Record
from steelyard.stats.descriptive import Statistics
from steelyard.stats.special import student_quantile
from steelyard.tiers.agreement import PanelAgreement
from steelyard.tiers.escalation import EscalatedPanel


class RunIdentity(NamedTuple):
    """What identifies a run: without any part of it, runs are mixed up."""

    experiment: str
    model: str
    tier: str
    case: str
    number: int

    def __str__(self) -> str:
        return f"{self.experiment}, {self.model}, {self.tier}, {self.case}, run {self.number}"


class JudgeIdentity(NamedTuple):
    """One of the judges of a run: a model, and which of its askings."""

    model: str
    number: int = 1

    def __str__(self) -> str:
        return f"{self.model} #{self.number}"


class TierRun(Record, frozen=True, kw_only=True):
    """The result of one run of one case under one tier; None if it is not known."""

    experiment: str = ""
    model: str
    tier: str
    case: str
    """What is asked of every tier; other tools call it a subtest."""
    number: int = 1
    passed: bool | None = None
    """By its tests; if there are none, the judges decide."""
    score: float | None = None
    """The weighted score that was recorded for it."""
    impl_rate: float | None = None
    """The share of what was asked that is there, as recorded. Other tools' files have some above 1: they are kept as they are."""
    cost_usd: float | None = None
    """What the run cost, without its judges; unknown is not free."""
    duration_seconds: float | None = None
    input_tokens: int | None = None
    """All of them, those written to and read from a cache included."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Input tokens that were read from a cache; they are part of the input tokens."""
    exit_code: int | None = None

    @property
    def identity(self) -> RunIdentity:
        return RunIdentity(self.experiment, self.model, self.tier, self.case, self.number)


class RunRating(Record, frozen=True, kw_only=True):
    """How one judge rated one run."""

    run: RunIdentity
    judge: JudgeIdentity
    score: float | None = None
    """The total that the judge claims."""
    impl_rate: float | None = None
    """The share of the points that it gave."""
    passed: bool | None = None
    grade: str = ""
    valid: bool = True
    """False for an answer that could not be used: it is counted, and in no mean."""


class CriterionRating(Record, frozen=True, kw_only=True):
    """How one judge rated one run by one criterion."""

    run: RunIdentity
    judge: JudgeIdentity
    criterion: str
    score: float | None = None
    achieved: float | None = None
    """Points that were given; None if the criterion does not apply."""
    max: float | None = None
    """The points possible."""


class RunSource(Record, frozen=True, kw_only=True):
    """Where runs came from: a file or a run folder, and a digest of what it held."""

    name: str
    digest: str


RUN_METRICS = ("pass_rate", "impl_rate", "composite", "cost_usd", "duration_seconds", "cost_of_pass")
"""What is known of every run, and described for every tier."""
RunFlag = Literal[
    "the judges' majority says otherwise",
    "the recorded impl_rate is not that of the judges",
    "impl_rate above 1",
    "passed with a non-zero exit code",
]
JUDGES_DISAGREE_FLAG: RunFlag = "the judges' majority says otherwise"
IMPL_RATE_DIFFERS_FLAG: RunFlag = "the recorded impl_rate is not that of the judges"
IMPL_RATE_ABOVE_ONE_FLAG: RunFlag = "impl_rate above 1"
NONZERO_EXIT_CODE_FLAG: RunFlag = "passed with a non-zero exit code"
SamplingUnit = Literal["case", "variant", "run"]
Tasks = Literal["fixed", "sampled"]
"""Whether intervals speak of these tasks with other variants and runs, or of tasks like these."""
PassedBy = Literal["record", "judges", ""]

ImplRate = Literal["score", "points", "recorded"]
IMPL_RATES: tuple[ImplRate, ...] = ("score", "points", "recorded")
"""What the impl rate of a run is taken from, the default first: the weighted score that was recorded, the points that its
judges gave, or the impl_rate that was recorded. Of all runs the same is taken, because they differ."""

PairBy = Literal["case", "experiment"]
PAIR_BY: tuple[PairBy, ...] = ("case", "experiment")
"""What runs of different tiers must have in common to be compared."""


class MetricStatistics(Statistics, frozen=True, kw_only=True):
    """The statistics of one metric over all runs of a tier."""

    infinite: tuple[str, ...] = ()
    """Those of them that are infinite, and so not written as a number."""


class TierGrade(Record, frozen=True, kw_only=True):
    """The letter of a median composite, and those that its interval allows."""

    letter: str | None
    could_be: tuple[str, ...] = ()
    """Other letters, the best first."""


class RunFigures(Record, frozen=True, kw_only=True):
    """The metrics of one run; None if they are not known."""

    experiment: str
    model: str
    tier: str
    case: str
    number: int
    passed: bool | None
    pass_rate: float | None
    impl_rate: float | None
    """That which the analysis uses, at most 1."""
    impl_rates: dict[ImplRate, float] = {}
    """All that are known, by what they are taken from, and as they are: some are above 1."""
    composite: float | None
    cost_usd: float | None
    duration_seconds: float | None
    cost_of_pass: float | None
    cost_of_pass_infinite: bool = False
    """The run failed, so it would never pass at any price."""
    passed_by: PassedBy = ""
    """`record` or `judges`; empty if it is not known whether it passed."""
    flags: tuple[RunFlag, ...] = ()
    """What is odd about it."""


class ImplRateResult(Record, frozen=True, kw_only=True):
    """The figures of a tier by one of the impl rates."""

    mean: float | None
    composite_median: float | None
    grade: str | None
    uplift: float | None
    """Of the median composite over that of the baseline."""
    runs: int
    """Runs that have this impl rate."""


ClaimColumn = Literal["score", "impl_rate"]


class ClaimCheck(Record, frozen=True, kw_only=True):
    """The totals that judges claim, compared with the sum of the points that they gave."""

    claim: ClaimColumn
    checked: int
    """Ratings with such a claim and with points."""
    off: int
    """Those that differ by more than 0.02."""
    mean_distance: float
    """The mean distance between a claim and the points."""


class TierAnalysis(Record, frozen=True, kw_only=True):
    """One tier of one model."""

    tier: str
    cases: int
    runs: int
    unit: SamplingUnit
    """What intervals take as the sampling unit: `case` where tasks are sampled, otherwise `variant` where a task has several, or `run`."""
    unjudged: int = 0
    """Runs that have no outcome."""
    unscored: tuple[str, ...] = ()
    """Cases with no run that did or did not pass."""
    unrated: int = 0
    """Runs without an impl_rate."""
    unpriced: int = 0
    """Runs whose cost is not known; with any of them the tier has no figure of costs."""
    untimed: int = 0
    statistics: dict[str, MetricStatistics]
    pass_rate: Estimate
    impl_rate: Estimate
    by_impl_rate: dict[ImplRate, ImplRateResult]
    """The figures of the tier by each impl rate that any run has."""
    composite: Estimate
    """The mean."""
    composite_median: Estimate
    grade: TierGrade
    cost_usd: float | None
    """What all its runs cost."""
    cost_of_pass: Estimate
    uplift: Estimate
    """Of the median composite over that of the baseline; None for the baseline itself, and where its median is 0."""
    on_pareto_front: bool | None
    """Whether no other tier of any model is cheaper and no worse, or better and no more expensive; None if that is not known."""


class TierComparison(Record, frozen=True, kw_only=True):
    """A tier against another, on the cases that both ran; differences are tier - other."""

    model: str
    tier: str
    other: str
    cases: int
    tier_only: int
    """Cases that the other tier did not run."""
    other_only: int
    pass_rate: Estimate
    composite: Estimate
    cost_usd: Estimate
    """Of a run."""
    p: float | None
    """How likely pass counts differ as much, either way, when the tiers do not; exact. None without a shared case."""
    p_adjusted: float | None
    """The same adjusted by Holm for all comparisons of the analysis; a pair of tiers counts once."""


class ModelAnalysis(Record, frozen=True, kw_only=True):
    """All tiers of one model."""

    model: str
    tiers: tuple[TierAnalysis, ...]
    against_baseline: tuple[TierComparison, ...]
    ablation: tuple[TierComparison, ...]
    """Every tier against the one before it: what was added, and what that bought and cost."""
    pass_rate_variance: float | None
    """Of the tiers' medians, as the two below."""
    composite_variance: float | None
    cost_variance: float | None
    cost_delta: float | None
    """The difference between the highest and the lowest median cost."""


class CostFrontier(Record, frozen=True, kw_only=True):
    """The least that a pass costs over all tiers and models."""

    model: str
    tier: str
    cost_of_pass: Estimate
    """That of the cheapest tier; infinite when nothing passed."""
    case_mean: Estimate
    """Every case done by the cheapest tier that passes it: the mean over the cases that anything passes."""
    cases: int
    unsolved: int
    """Cases without a finite cost of pass."""


if TYPE_CHECKING:
    AnalysedRuns = Sequence[RunFigures]
else:
    # what is read from JSON is a tuple; an analysis of columns has a sequence that makes records when they are asked for
    AnalysedRuns = tuple[RunFigures, ...]


class ExperimentAnalysis(Record, frozen=True, kw_only=True):
    """An experiment in tiers, all of it."""

    models: tuple[ModelAnalysis, ...]
    tiers: tuple[str, ...]
    baseline: str
    frontier: CostFrontier
    impl_rate: ImplRate | None
    """What impl rates are taken from; None if no run has any."""
    panel: PanelAgreement | None
    """The judges and how far they agree; None without any. What they say of each run is in `runs`."""
    claims: tuple[ClaimCheck, ...] = ()
    """How far judges' own totals are what their points add up to."""
    judges_usd: float | None = None
    """What the judges cost, which is in no figure of the tiers; None if that is not known."""
    judges_unpriced: int = 0
    """Judgments of unknown cost: with them the judges cost at least `judges_usd`."""
    escalated: EscalatedPanel | None = None
    """What the first judges decide alone; None if all judges were asked about every answer."""
    judge_shifts: dict[str, tuple[float, ...]]
    """How much more each judge gives a run than the mean of the others: percentiles 5, 25, 50, 75 and 95 over the runs."""
    runs: AnalysedRuns
    weights: tuple[float, float]
    """Of pass rate and impl rate in the composite."""
    pair_by: PairBy
    tasks: Tasks
    tasks_reason: str
    """Why tasks are taken for that, in a sentence."""
    tests: int
    """Pairs of tiers that were tested."""
    seed: int
    replicates: int
    sources: tuple[RunSource, ...] = ()
    warnings: tuple[str, ...] = ()
    conclusive: bool = True
    """False when more than 5% of the cases of some tier have no outcome."""


SUBTEST_ERROR_RATE = 0.05
"""The chance that the best subtest of a tier is not among those that could be."""

TaskValues = Mapping[str, Sequence[float]]
"""The values of a subtest's runs, by task."""


class BestSubtest(Record, frozen=True, kw_only=True):
    """The best subtest of one tier of one model."""

    model: str
    tier: str
    subtests: int
    best: str
    by: str
    """What they are ranked by: composite, or pass rate where no run has one."""
    value: float
    """The mean over tasks."""
    held_out: float | None
    """The mean of runs that had no part in choosing; None with a single run of each."""
    could_be: tuple[str, ...]
    """Other subtests that may as well be the best, the best of them first."""


def best_subtests(runs: Sequence[RunFigures]) -> list[BestSubtest]:
    """The best subtest of each tier that has several, in the order of the runs."""
    by = "composite" if any(run.composite is not None for run in runs) else "pass_rate"
    tiers: dict[tuple[str, str], dict[str, dict[str, list[tuple[int, float]]]]] = {}
    for run in runs:
        value = run.composite if by == "composite" else run.pass_rate
        if value is not None:
            of_tier = tiers.setdefault((run.model, run.tier), {})
            of_tier.setdefault(run.case, {}).setdefault(run.experiment, []).append((run.number, value))
    return [_best(model, tier, of_tier, by) for (model, tier), of_tier in tiers.items() if len(of_tier) > 1]


def _best(model: str, tier: str, subtests: Mapping[str, Mapping[str, list[tuple[int, float]]]], by: str) -> BestSubtest:
    values = {
        name: {task: [value for _, value in of_task] for task, of_task in tasks.items()}
        for name, tasks in subtests.items()
    }
    # one that lacks a task is not compared on the others alone
    tasks = {task for of_subtest in values.values() for task in of_subtest}
    whole = {name: of_subtest for name, of_subtest in values.items() if of_subtest.keys() == tasks} or values
    ranked = sorted(whole, key=lambda name: -_mean(whole[name]))
    best, *others = ranked
    level = 1 - SUBTEST_ERROR_RATE / max(1, len(others))
    return BestSubtest(
        model=model,
        tier=tier,
        subtests=len(subtests),
        best=best,
        by=by.replace("_", " "),
        value=_mean(whole[best]),
        held_out=_held_out({name: subtests[name] for name in ranked}),
        could_be=tuple(name for name in others if not _is_surely_better(whole[best], whole[name], level)),
    )


def _mean(tasks: TaskValues) -> float:
    return fmean(fmean(values) for values in tasks.values())


def _is_surely_better(best: TaskValues, other: TaskValues, level: float) -> bool:
    """Whether a one-sided test over runs within tasks refutes that the other is as good (Welch 1947, by task)."""
    terms = []
    for tasks in (best, other):
        for values in tasks.values():
            if len(values) < 2:
                return False
            terms.append((variance(values) / len(values), len(values) - 1))
    spread = math.fsum(term for term, _ in terms)
    gain = _mean(best) - _mean(other)
    if not spread:
        # equal runs say nothing about how much others would differ
        return False
    # rounded down, which is the careful side
    degrees = max(1, math.floor(spread**2 / math.fsum(term**2 / df for term, df in terms)))
    # of the mean over tasks; both sides have the same tasks
    return gain > student_quantile(degrees, level) * math.sqrt(spread) / len(best)


def _held_out(subtests: Mapping[str, Mapping[str, list[tuple[int, float]]]]) -> float | None:
    """What the chosen subtest scores in runs that had no part in the choice, each run number left out in turn."""
    numbers = sorted({number for tasks in subtests.values() for runs in tasks.values() for number, _ in runs})
    found = []
    for left_out in numbers:
        kept, tested = {}, {}
        for name, tasks in subtests.items():
            rest = {task: [value for number, value in runs if number != left_out] for task, runs in tasks.items()}
            out = [value for runs in tasks.values() for number, value in runs if number == left_out]
            if out and all(rest.values()):
                kept[name], tested[name] = _mean(rest), fmean(out)
        if len(kept) > 1:
            found.append(tested[max(kept, key=lambda name: kept[name])])
    return fmean(found) if found else None
