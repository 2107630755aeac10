"""What the attempts of one model add up to."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from steelyard.analysis.case_attempts import MAX_FLAGGED_ATTEMPTS, CaseAttempts, deciding_measure_of
from steelyard.analysis.case_means import groups_of, mean_pass, mean_value, total_cost
from steelyard.analysis.estimates import AttemptMeans, Estimate, attempt_mean, price_of_pass
from steelyard.analysis.measure import ComparedMeasure
from steelyard.analysis.suites import SuiteScores
from steelyard.protocols import TIMEOUT_LABELS
from steelyard.records import Record
from steelyard.stats.bootstrap import bootstrap
from steelyard.stats.passk import pass_at_k, pass_hat_k

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from steelyard.analysis.attempts import AttemptRow, Column, VerdictDigest
    from steelyard.stats.intervals import Interval


MAX_BOOTSTRAP_DRAWS = 10_000_000
"""How many values a bootstrap of many cases may draw."""


class Flag(Record, frozen=True, kw_only=True):
    """One attempt that a reader should look at, and why."""

    case: str
    number: int
    reason: str


class FlaggedAttempt(Flag, frozen=True, kw_only=True):
    """One attempt with a flag of its verifier or of its controls."""

    flag: str


class VerificationCount(Record, frozen=True, kw_only=True):
    """How many attempts were verified in one way."""

    trust: str
    """Where the tests ran: `isolated` from the code they judge, or `in-process` with it."""
    isolation: str
    """The sandbox the code ran in."""
    node: str = ""
    """The node of a cluster; empty for the machine that asked."""
    attempts: int
    correct: int = 0


class ModelSummary(Record, frozen=True, kw_only=True):
    """One model (under one tier) over all its cases."""

    model: str
    tier: str = ""
    cases: int
    """Cases that were asked."""
    attempts: int
    """Attempts that were judged: the n of every rate."""
    correct: int
    solved: int
    """Cases with at least one correct attempt."""
    missing: int
    """Attempts that ended as a failure of ours, or have no verdict yet."""
    unscored: tuple[str, ...] = ()
    """Cases without a single judged attempt."""
    pass_at: dict[int, Estimate]
    pass_hat: dict[int, Estimate] = {}
    """pass^k: how likely it is that all of k attempts succeed."""
    levels: dict[str, dict[int, Estimate]] = {}
    """pass@k at each level of success, where a verifier knows more than one; the level that decides is among them."""
    flaky: int = 0
    """Cases with correct attempts and others."""
    score: Estimate
    on: ComparedMeasure = "passed"
    """What decides: whether attempts passed, or what they scored."""
    compile_rate: Estimate
    test_pass_rate: Estimate
    lint: Estimate
    per_attempt: AttemptMeans = AttemptMeans()
    """The same three, not as means over cases but over attempts."""
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """What the priced replies cost; None when no reply has a price."""
    unpriced: int
    """Replies whose price is unknown."""
    cost_of_pass: Estimate
    """What a correct attempt costs: the cost of the judged attempts over the correct ones; nothing if a price is unknown."""
    latency: Estimate
    """Seconds until a model has replied: the mean over cases."""
    latency_p50: float | None
    latency_p95: float | None
    """Half, and nineteen of twenty, replies take no longer than this."""
    truncated: int
    """Replies cut off at the token limit."""
    empty: int
    """Replies without text."""
    timed_out: int = 0
    """Attempts that a limit of time ended, so that the limit has decided; each counts as failed."""
    tampered: int = 0
    """Attempts that were caught forging their result; each counts as failed."""
    tampered_attempts: tuple[Flag, ...] = ()
    """The first of them, with the evidence."""
    flagged: dict[str, int] = {}
    """Attempts that a reader should look at although nobody accuses them, by flag, such as `only beside its tests`."""
    flagged_attempts: tuple[FlaggedAttempt, ...] = ()
    """The first of each flag."""
    separated: int = 0
    """Attempts whose values were compared out of their reach where a plain run could look, too."""
    watched: int = 0
    """Those of them at which one has looked."""
    rechecked: int = 0
    """Attempts that were verified more than once."""
    disagreed: int = 0
    """Those of them that did not come out the same every time."""
    disagreed_attempts: tuple[Flag, ...] = ()
    """The first of these, with how often they did not."""
    verified: tuple[VerificationCount, ...] = ()
    """How the judged attempts were verified, where code was run."""
    shared: int = 0
    """Judged attempts whose verdict was reached on another reply with the same text."""
    suites: SuiteScores | None = None
    """What the suites score; None if no case belongs to one."""

    @property
    def quality(self) -> tuple[str, Estimate]:
        """The figure that decides, by its name: pass@k at the smallest k, or the mean score."""
        if self.on == "score":
            return "mean score", self.score
        k, estimate = min(self.pass_at.items())
        return f"pass@{k}", estimate


def model_summary(
    column: Column,
    cases: Sequence[CaseAttempts],
    digests: Sequence[VerdictDigest],
    scores: Sequence[float | None],
    k: Sequence[int],
    suites: SuiteScores | None,
    latency_quantiles: Sequence[float | None],
) -> ModelSummary:
    """One model over all its cases; `scores` are those of the digests by a rule, quantiles the median and the 95th percentile."""
    answered = [attempts.replies for attempts in cases]
    judged: Counter[int] = Counter()
    for attempts in cases:
        for digest, count in attempts.digests:
            judged[digest] += count
    known = [(digests[index], count) for index, count in judged.items()]
    return ModelSummary(
        model=column.model,
        tier=column.tier,
        cases=sum(attempts.is_asked for attempts in cases),
        attempts=judged.total(),
        correct=sum(attempts.correct for attempts in cases),
        solved=sum(attempts.correct > 0 for attempts in cases),
        missing=sum(attempts.unjudged for attempts in cases),
        unscored=tuple(attempts.case.id for attempts in cases if not attempts.judged),
        pass_at={size: mean_pass(pass_at_k, cases, size) for size in k},
        pass_hat={size: mean_pass(pass_hat_k, cases, size) for size in k},
        levels=_levels(cases, digests, list(judged), k),
        flaky=sum(0 < attempts.correct < attempts.judged for attempts in cases),
        score=mean_value(cases, scores),
        on=deciding_measure_of(cases),
        compile_rate=mean_value(cases, [digest.compiled for digest in digests]),
        test_pass_rate=mean_value(cases, [digest.measured.passing for digest in digests]),
        lint=mean_value(cases, [digest.lint for digest in digests]),
        per_attempt=AttemptMeans(
            compile_rate=attempt_mean((digest.compiled, count) for digest, count in known),
            test_pass_rate=attempt_mean((digest.measured.passing, count) for digest, count in known),
            lint=attempt_mean((digest.lint, count) for digest, count in known),
        ),
        input_tokens=sum(replies.input_tokens for replies in answered),
        output_tokens=sum(replies.output_tokens for replies in answered),
        cost_usd=total_cost(cases),
        unpriced=sum(replies.unpriced for replies in answered),
        cost_of_pass=_cost_of_pass(cases),
        latency=_latency(cases),
        latency_p50=latency_quantiles[0],
        latency_p95=latency_quantiles[1],
        truncated=sum(dict(replies.finishes).get("length", 0) for replies in answered),
        empty=sum(replies.empty for replies in answered),
        timed_out=sum(count for digest, count in known if digest.primary in TIMEOUT_LABELS),
        tampered=sum(count for digest, count in known if digest.tampered),
        tampered_attempts=_flags(cases, [_tampering if digest.tampered else None for digest in digests]),
        flagged=dict(sorted(_flag_counts(known).items())),
        flagged_attempts=_flagged_attempts(cases, digests),
        separated=sum(count for digest, count in known if digest.watched is not None),
        watched=sum(count for digest, count in known if digest.watched),
        rechecked=sum(count for digest, count in known if digest.rechecked),
        disagreed=sum(count for digest, count in known if digest.disagreed),
        disagreed_attempts=_flags(cases, [_disagreement(digest) for digest in digests]),
        verified=_verified(known),
        shared=sum(count for digest, count in known if digest.is_shared),
        suites=suites,
    )


def _verified(known: Sequence[tuple[VerdictDigest, int]]) -> tuple[VerificationCount, ...]:
    """How many attempts were verified in each way, where code was run."""
    ways: Counter[tuple[str, str, str]] = Counter()
    correct: Counter[tuple[str, str, str]] = Counter()
    for digest, count in known:
        way = digest.trust, digest.isolation, digest.node
        ways[way] += count
        correct[way] += count if digest.measured.correct else 0
    return tuple(
        VerificationCount(
            trust=trust, isolation=isolation, node=node, attempts=count, correct=correct[trust, isolation, node]
        )
        for (trust, isolation, node), count in sorted(ways.items())
        if trust or isolation or node
    )


def _flags(cases: Sequence[CaseAttempts], reasons: Sequence[Callable[[AttemptRow], str] | None]) -> tuple[Flag, ...]:
    """The first attempts that a reader should look at, given what says why for each digest."""
    if not any(reasons):
        return ()
    every = (
        Flag(case=attempts.case.id, number=row.number, reason=reason(row))
        for attempts in cases
        for row in attempts.flagged
        if (reason := reasons[row.digest])
    )
    return tuple(itertools.islice(every, MAX_FLAGGED_ATTEMPTS))


def _flag_counts(known: Sequence[tuple[VerdictDigest, int]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for digest, count in known:
        if digest.flag:
            counts[digest.flag] += count
    return counts


def _flagged_attempts(cases: Sequence[CaseAttempts], digests: Sequence[VerdictDigest]) -> tuple[FlaggedAttempt, ...]:
    """The first attempts of each flag."""
    flags = sorted({digest.flag for digest in digests if digest.flag})
    return tuple(
        FlaggedAttempt(case=doubt.case, number=doubt.number, reason=doubt.reason, flag=flag)
        for flag in flags
        for doubt in _flags(cases, [_outcome if digest.flag == flag else None for digest in digests])
    )


def _outcome(row: AttemptRow) -> str:
    return row.reason or "it passes"


def _tampering(row: AttemptRow) -> str:
    return row.reason.removeprefix("tampered: ")


def _disagreement(digest: VerdictDigest) -> Callable[[AttemptRow], str] | None:
    if not digest.disagreed:
        return None
    first, later = ("passed", "failed") if digest.measured.correct else ("failed", "passed")
    return lambda _: f"{first} at first, then {later} {digest.disagreed} of {digest.rechecked} times"


def _levels(
    cases: Sequence[CaseAttempts], digests: Sequence[VerdictDigest], judged: Sequence[int], k: Sequence[int]
) -> dict[str, dict[int, Estimate]]:
    """pass@k at each level of success that some attempt is known to have reached or not, in the verifier's order."""
    names = dict.fromkeys(level for index in judged for level, _ in digests[index].levels)
    found = {}
    for level in names:
        reached = [dict(digest.levels).get(level) for digest in digests]
        known = [(attempts, values) for attempts in cases if (values := attempts.values(reached))]
        counts = [(len(values), round(sum(values))) for _, values in known]
        of_level = [attempts for attempts, _ in known]
        found[level] = {size: mean_pass(pass_at_k, of_level, size, counts) for size in k}
    return found


def _cost_of_pass(cases: Sequence[CaseAttempts]) -> Estimate:
    """What a correct attempt costs; unknown where the price of a judged one is."""
    judged = [attempts for attempts in cases if attempts.judged]
    costs = [cost for attempts in judged if (cost := attempts.cost) is not None]
    if not judged or len(costs) < len(judged):
        return Estimate(value=None)
    tried, passed = [attempts.judged for attempts in judged], [attempts.correct for attempts in judged]
    return price_of_pass(costs, passed, tried, groups=groups_of(judged))


def _latency(cases: Sequence[CaseAttempts]) -> Estimate:
    """The mean over cases of their mean latency, with the bootstrap's interval: seconds have no upper end."""
    answered = [attempts for attempts in cases if attempts.replies.latencies]
    means = [attempts.replies.seconds / attempts.replies.latencies for attempts in answered]
    replicates = max(1000, min(10_000, MAX_BOOTSTRAP_DRAWS // max(1, len(means))))
    groups = groups_of(answered)
    interval = (
        _grouped_bootstrap(means, groups, replicates) if groups else bootstrap(means, seed=0, replicates=replicates)
    )
    return Estimate(
        value=math.fsum(means) / len(means) if means else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cases=len(means),
        attempts=sum(attempts.replies.latencies for attempts in answered),
    )


def _grouped_bootstrap(values: Sequence[float], groups: Sequence[str], replicates: int) -> Interval | None:
    """The interval of a mean over cases where whole groups of them are drawn; None below 2 groups."""
    together: dict[str, list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        together.setdefault(group, []).append(value)
    # one order for all, so that the order of the cases cannot change a draw
    units = [together[group] for group in sorted(together)]
    sums, sizes = [math.fsum(unit) for unit in units], [len(unit) for unit in units]

    def mean_over_cases(_: NDArray[np.float64], weights: NDArray[np.int64]) -> NDArray[np.float64]:
        return (weights @ sums) / (weights @ sizes)

    return bootstrap(range(len(units)), seed=0, replicates=replicates, statistic=mean_over_cases)
