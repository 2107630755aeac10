"""What a comparison of two sides can and cannot see."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from functools import cache, lru_cache
from itertools import accumulate, chain, repeat
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.stats.paired import PairedCaseCounts, PairedCaseScores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

DEFAULT_POWER = 0.8
"""The power of a planned comparison."""
MAX_ADVISED_ATTEMPTS = 10_000
"""More attempts at each case than this are not advice."""
UNLUCKY_BASELINE_SHARE = 0.1
"""The share of baselines that count as drawn unluckily."""
INTEGRATION_STEPS = 1000
"""The number of quantiles over which their mean is taken."""
GOLDEN_RATIO_CONJUGATE = (math.sqrt(5) - 1) / 2
"""Its multiples lie more evenly between whole numbers than those of any other number."""
SCORE_GRID_STEPS = 1000
"""The step to which scores are rounded when noise is predicted."""
SLOPE_PRIOR = 1.5
"""The least weight of the assumed slope of a variance, in units; see `_slope_prior`."""


class CaseEvidence(NamedTuple):
    """What both sides scored on one case, as far as the doubt about a mean depends on it."""

    baseline_attempts: float
    baseline: float
    """The mean score."""
    current_attempts: float
    current: float
    square: float
    """The mean of the squared scores over both sides; for pass and fail the pooled pass rate."""
    spread: float
    """An unbiased estimate of the variance of the difference of both means, whether or not it changed."""
    skew: float
    """An estimate of the third central moment of the drop."""

    @property
    def pooled(self) -> float:
        """The mean score over both sides."""
        passes = self.baseline_attempts * self.baseline + self.current_attempts * self.current
        return passes / (self.baseline_attempts + self.current_attempts)

    @property
    def smoothed(self) -> float:
        """The mean score over both sides, had there been half an attempt more at 0 and half a one at 1."""
        attempts = self.baseline_attempts + self.current_attempts
        return (attempts * self.pooled + 0.5) / (attempts + 1)

    @property
    def variance(self) -> float:
        """The variance of one attempt's score, had there been half an attempt more at 0 and half a one at 1.

        So a case on which all attempts agree still leaves doubt; for pass and fail it is p * (1 - p) at the rate
        (passes + 0.5) / (attempts + 1).
        """
        attempts = self.baseline_attempts + self.current_attempts
        return (attempts * self.square + 0.5) / (attempts + 1) - self.smoothed**2

    @property
    def left(self) -> float:
        """The share of the variance of one attempt in the difference of both sides."""
        return 1 / self.baseline_attempts + 1 / self.current_attempts

    @property
    def unit(self) -> float:
        """What one attempt can move the difference by, on the side that has fewer."""
        return 1 / min(self.baseline_attempts, self.current_attempts)

    @property
    def prior(self) -> float:
        """The weight of the assumption that variance grows by one unit with the drop."""
        return float(_slope_prior(self.baseline_attempts, self.current_attempts))


class BaselineRate(NamedTuple):
    """What is known of one case before the current side is tried."""

    attempts: int
    """What the baseline has, or will have."""
    rate: float
    """How often it passes, as far as is known."""
    seen_variance: float | None = None
    """The unbiased estimate of the variance of one attempt; None if fewer than two are known."""

    @property
    def variance(self) -> float:
        """The variance of one attempt, as far as is known."""
        return self.rate * (1 - self.rate) if self.seen_variance is None else self.seen_variance


class MarginTest(NamedTuple):
    """Whether a drop is known to be smaller than a margin."""

    bound: float
    """The drop is at most this, with the confidence asked for."""
    p: float
    """The p-value against a drop of the margin or more."""


class NonInferiority(NamedTuple):
    """Whether the mean drop over the cases is known to be smaller than a margin."""

    drop: float
    """The mean drop from baseline to current."""
    error: float
    """Its standard error if nothing changed, were the same cases tried again."""
    bound: float
    """The drop is at most this, with the confidence asked for."""
    p: float
    """The p-value against a drop of the margin or more."""


class AdditionalAttempts(NamedTuple):
    """Attempts at each case that would probably settle a comparison in which nothing changed."""

    baseline: int
    current: int


def evidence(case: PairedCaseCounts | PairedCaseScores) -> CaseEvidence:
    """What is known of a case; both sides must have been tried."""
    if isinstance(case, PairedCaseCounts):
        before, passes_before, after, passes_after = case
        if not (0 <= passes_before <= before and 0 <= passes_after <= after):
            raise ValueError(f"passes must be between 0 and the attempts, got {case}")
    else:
        before, after = len(case.baseline), len(case.current)
    if not (before and after):
        raise ValueError(f"both sides need an attempt, got {case}")
    if isinstance(case, PairedCaseCounts):
        rates = baseline, current = passes_before / before, passes_after / after
        square = (passes_before + passes_after) / (before + after)
        variances = [rate * (1 - rate) for rate in rates]
        thirds = [rate * (1 - rate) * (1 - 2 * rate) for rate in rates]
    else:
        baseline, current = math.fsum(case.baseline) / before, math.fsum(case.current) / after
        square = math.fsum(score**2 for side in case for score in side) / (before + after)
        sides = (case.baseline, baseline), (case.current, current)
        variances, thirds = (
            [math.fsum((score - mean) ** power for score in side) / len(side) for side, mean in sides]
            for power in (2, 3)
        )
    if min(before, after) == 1:
        # of one attempt no variance is known; the squared difference exceeds that of the difference by any change
        spread, skew = (baseline - current) ** 2, (baseline - current) ** 3
    else:
        spread = variances[0] / (before - 1) + variances[1] / (after - 1)
        skew = _third_moment(before, variances[0], thirds[0], current)
        skew -= _third_moment(after, variances[1], thirds[1], baseline)
    return CaseEvidence(before, baseline, after, current, square, spread, skew)


def _third_moment(attempts: int, variance: float, third: float, other: float) -> float:
    """The third central moment of a mean: the unbiased estimate, or of two attempts what the other side lets one expect."""
    if attempts == 2:
        return variance * (1 - 2 * other) / 2
    return third / ((attempts - 1) * (attempts - 2))


@lru_cache(maxsize=1 << 12)
def baseline_rate(attempts: int, passes: int) -> BaselineRate:
    """What a baseline lets one expect of a case: with half an attempt more that passed and half a one that failed.

    A case that passed 3 times out of 3 is not known to pass always.

    >>> baseline_rate(3, 3), baseline_rate(4, 3).variance
    (BaselineRate(attempts=3, rate=0.875, seen_variance=0.0), 0.25)
    """
    if not 0 <= passes <= attempts or not attempts:
        raise ValueError(
            f"there must be an attempt, and passes must be between 0 and the attempts, got {passes}/{attempts}"
        )
    rate = (passes + 0.5) / (attempts + 1)
    if attempts == 1:
        return BaselineRate(attempts, rate)
    return BaselineRate(attempts, rate, passes * (attempts - passes) / (attempts * (attempts - 1)))


def non_inferiority(
    cases: Iterable[CaseEvidence] | Mapping[CaseEvidence, int], *, margin: float, alpha: float = 0.05
) -> NonInferiority | None:
    """Whether these cases, tried again, would on average drop by less than the margin; None without cases.

    Cases may be given as how many there are of each kind. The suite is fixed: it speaks of these cases, not of others
    like them. A score test, as that of Miettinen and Nurminen 1985, "Comparative analysis of two rates", Statistics in
    Medicine 4, 213-226: the variance is the one that a drop of the margin would have. Each side's unbiased variance says
    how much the drop varies as it was seen; what a larger drop would add is the third moment over the variance, times
    what is missing to the margin. So rare failures of cases that nearly always pass count as in a score test of a
    Poisson rate, and cases that vary evenly on both sides add nothing. A few units, what one attempt can move, are
    assumed beside what was seen (`_slope_prior`): where all attempts agree they are all there is. Calibrated in `benchmarks/all_clears.py`.

    >>> sides = zip([10, 9, 10, 4, 0, 7], [10, 7, 6, 5, 0, 5], strict=True)
    >>> known = [evidence(PairedCaseCounts(10, before, 10, after)) for before, after in sides]
    >>> found = non_inferiority(known, margin=0.05)
    >>> f"{found.drop:.6f} {found.error:.6f} {found.bound:.6f} {found.p:.6f}"
    '0.116667 0.069597 0.232120 0.832336'
    """
    kinds = Counter(cases)
    size = kinds.total()
    if not size:
        return None
    drop = exact_sum((case.baseline - case.current, count) for case, count in kinds.items())
    smoothed = exact_sum((case.variance * case.left, count) for case, count in kinds.items())
    doubt = MeanDoubt(
        exact_sum((case.spread, count) for case, count in kinds.items()),
        exact_sum((case.skew, count) for case, count in kinds.items()),
        exact_sum((case.prior * case.unit**2, count) for case, count in kinds.items()) / size,
        exact_sum((case.prior * case.unit**3, count) for case, count in kinds.items()) / size,
    )
    found = doubt.within(drop, margin * size, alpha)
    return NonInferiority(drop / size, math.sqrt(smoothed) / size, found.bound / size, found.p)


def mean_drop_p(cases: Iterable[CaseEvidence] | Mapping[CaseEvidence, int]) -> float:
    """How likely the mean drops as much when it did not change, though single cases may have; 1 without cases.

    A normal test from the unbiased variance of each side, as of Welch: exact tests of "no case changed" take the attempts of
    both sides together, and where cases changed in both directions the smaller side can vary more than that.

    >>> f"{mean_drop_p([evidence(PairedCaseCounts(30, 30, 5, 4)), evidence(PairedCaseCounts(30, 15, 5, 2))]):.4f}"
    '0.1813'
    """
    kinds = Counter(cases)
    drop = exact_sum((case.baseline - case.current, count) for case, count in kinds.items())
    error = math.sqrt(exact_sum((case.spread, count) for case, count in kinds.items()))
    return math.erfc(drop / error / math.sqrt(2)) / 2 if error else float(drop <= 0)


class MeanDoubt(NamedTuple):
    """What the doubt about a drop summed over cases depends on."""

    variance: float
    skew: float
    """The third central moment."""
    assumed_variance: float
    assumed_skew: float
    """The third central moment that is assumed beside what was seen."""

    @property
    def slope(self) -> float:
        """How much variance each further unit of drop adds."""
        return max(0.0, (self.skew + self.assumed_skew) / (self.variance + self.assumed_variance))

    def within(self, drop: float, margin: float, alpha: float) -> MarginTest:
        """Whether the drop is known to be smaller than the margin."""
        _check_share("alpha", alpha)
        missing = margin - drop
        sure = NormalDist().inv_cdf(1 - alpha)
        reach = sure**2 * self.slope / 2 + sure * math.sqrt(self.variance + (sure * self.slope / 2) ** 2)
        error = math.sqrt(self.variance + self.slope * abs(missing))
        return MarginTest(drop + reach, math.erfc(missing / error / math.sqrt(2)) / 2 if error else 0.5)


def exact_sum(values: Iterable[tuple[float, int]]) -> float:
    """The sum of some values, each repeated by its count, rounded once: the order of the values does not matter.

    >>> exact_sum([(0.1, 10)]) == math.fsum([0.1] * 10)
    True
    """
    return math.fsum(chain.from_iterable(repeat(value, count) for value, count in values))


def minimum_detectable_change(error: float, *, alpha: float = 0.05, power: float = DEFAULT_POWER) -> float:
    """The smallest true change that a one-sided test at level alpha finds with this power, given its standard error.

    The minimum detectable effect of Bloom 1995, "Minimum detectable effects: a simple way to report the statistical
    power of experimental designs", Evaluation Review 19, 547-556. A two-sided test has half of alpha on its side.

    >>> f"{minimum_detectable_change(0.3 / 100**0.5):.10f}"
    '0.0745942458'
    """
    _check_share("alpha", alpha)
    _check_share("power", power)
    return (NormalDist().inv_cdf(1 - alpha) + NormalDist().inv_cdf(power)) * error


def rates_after_drop(cases: Sequence[BaselineRate], drop: float) -> list[float]:
    """The pass rates after such a mean drop, taken evenly from all cases; a case that would fall below 0 stays there.

    >>> [round(rate, 3) for rate in rates_after_drop([baseline_rate(9, 9), baseline_rate(9, 4), baseline_rate(9, 0)], 0.1)]
    [0.825, 0.325, 0.0]
    """
    if not cases or not 0 < drop <= 1:
        raise ValueError(f"a drop of cases must be above 0 and at most 1, got {drop} of {len(cases)} cases")
    left, sharing, taken = drop * len(cases), len(cases), 1.0
    for rate in sorted(case.rate for case in cases):
        if left <= rate * sharing:
            taken = left / sharing
            break
        left -= rate
        sharing -= 1
    return [max(0.0, case.rate - taken) for case in cases]


def typical_passes(rates: Sequence[float], attempts: int) -> list[int]:
    """How many of the attempts at each case pass, as it might well turn out.

    Cases that are alike do not turn out alike: each has another quantile of its binomial distribution, the fractional
    part of a multiple of the golden ratio, in the order of the rates.

    >>> typical_passes([0.5] * 8, 4)
    [1, 3, 2, 1, 3, 2, 0, 2]
    """
    ways = [math.log(math.comb(attempts, passes)) for passes in range(attempts + 1)]

    @cache
    def up_to(rate: float) -> list[float]:
        if not 0 < rate < 1:
            return [1.0 - rate] * attempts
        won, lost = math.log(rate), math.log1p(-rate)
        return list(accumulate(math.exp(way + k * won + (attempts - k) * lost) for k, way in enumerate(ways[:-1])))

    found = [0] * len(rates)
    for place, case in enumerate(sorted(range(len(rates)), key=lambda case: rates[case])):
        found[case] = bisect_left(up_to(rates[case]), (place + 0.5) * GOLDEN_RATIO_CONJUGATE % 1)
    return found


def alarm_chance(cases: Sequence[BaselineRate], drop: float | Sequence[float], attempts: int, *, alpha: float) -> float:
    """How likely the stratified test at level alpha sees this mean drop with this number of attempts at each case.

    A normal approximation of the power of `stratified_worse`: its statistic is a sum over the cases of the difference
    of both sides times b * c / (b + c), for b attempts of the baseline and c of the current side; its variance under
    the null hypothesis is that of Mantel and Haenszel 1959 at the expected margins, and half a pass is lost because
    passes are whole. The drop is taken evenly from all cases, so that those which always passed vary once they have
    dropped; the plain formula, as in Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640), leaves that out. Instead of
    the drop, the rates after it may be given.

    >>> f"{alarm_chance([baseline_rate(30, 15), baseline_rate(30, 30)] * 50, 0.05, 7, alpha=0.025):.4f}"
    '0.8736'
    """
    if alpha <= 0:
        return 0.0
    effect = null = spread = 0.0
    after = rates_after_drop(cases, drop) if isinstance(drop, float) else drop
    for (case, lower), count in Counter(zip(cases, after, strict=True)).items():
        before, both = case.attempts, case.attempts + attempts
        fall, higher_variance, lower_variance = case.rate - lower, case.rate * (1 - case.rate), lower * (1 - lower)
        weight = before * attempts / both
        pooled = (before * higher_variance + attempts * lower_variance) / both
        pooled += before * attempts * fall**2 / (both * (both - 1))
        effect += count * weight * fall
        null += count * weight * pooled
        spread += count * weight**2 * (higher_variance / before + lower_variance / attempts)
    beyond = effect - 0.5 - NormalDist().inv_cdf(1 - alpha) * math.sqrt(null)
    return NormalDist().cdf(beyond / math.sqrt(spread))


def all_clear_chance(cases: Sequence[BaselineRate], margin: float, attempts: int, *, alpha: float) -> float:
    """How likely this number of attempts at each case shows, if nothing changed, that the drop is below the margin.

    That is, how likely the bound of `non_inferiority` stays below the margin.

    >>> f"{all_clear_chance([baseline_rate(30, 15), baseline_rate(30, 30)] * 50, 0.05, 7, alpha=0.05):.4f}"
    '0.9510'
    """
    doubts = []
    for case, count in Counter(cases).items():
        doubts.append((_expected_doubt(case.rate, case.variance, case.attempts, attempts), count))
    doubt = MeanDoubt(*(exact_sum((each[place], count) for each, count in doubts) for place in range(4)))
    doubt = doubt._replace(
        assumed_variance=doubt.assumed_variance / len(cases), assumed_skew=doubt.assumed_skew / len(cases)
    )
    room = margin * len(cases) - doubt.within(0.0, margin * len(cases), alpha).bound
    # where every attempt agreed so far, the next need not
    return NormalDist().cdf(room / math.sqrt(doubt.variance + doubt.assumed_variance))


def _expected_doubt(rate: Any, variance: Any, before: Any, after: Any) -> tuple[Any, Any, Any, Any]:
    """The doubt about a case of this mean score and variance that did not change, by the attempts on both sides."""
    unit = (1 / before + 1 / after + abs(1 / before - 1 / after)) / 2
    prior = _slope_prior(before, after)
    skew = variance * (2 * rate - 1) * (1 / (after * after) - 1 / (before * before))
    return variance * (1 / before + 1 / after), skew, prior * unit**2, prior * unit**3


def _slope_prior(before: Any, after: Any) -> Any:
    """How much is assumed beside what was seen, by the attempts on both sides.

    Where one side has a single attempt, little is known of its variance. Where both have nearly as many, differences lie on a
    coarse grid, and a test of few of them would otherwise spend more than its level; most so with two attempts or one on each.
    Calibrated by `benchmarks/all_clears.py`.
    """
    fewer, more = (before + after - abs(before - after)) / 2, (before + after + abs(before - after)) / 2
    return SLOPE_PRIOR * (1 + ((fewer == 1) | (2 * fewer > more)) + (more <= 2))


def unlucky_alarms(sizes: Iterable[tuple[int, int]] | Mapping[tuple[int, int], int], *, alpha: float) -> float | None:
    """The most innocent changes that the unluckiest tenth of such baselines flags, as a share; None without cases.

    `sizes` are the attempts at each case on both sides, or how many cases have each. A test at level alpha flags a share alpha of innocent changes
    on average over all baselines. But one baseline serves many changes: where it was drawn too well, each of them looks
    worse than it is. With a share r of the noise in the baseline, one that is u standard errors above its true rates
    flags a share of Phi((u * sqrt(r) - z) / sqrt(1 - r)), where Phi(z) = 1 - alpha; this is its mean over the tenth of
    baselines with the largest u. Tests of counts spend less than their level, so the true share is rather smaller.

    >>> [f"{unlucky_alarms([(before, 5)], alpha=0.05):.3f}" for before in (3, 10, 30, 1000)]
    ['0.347', '0.228', '0.148', '0.064']
    """
    _check_share("alpha", alpha)
    kinds = Counter(sizes)
    if not kinds:
        return None
    if min(map(min, kinds)) < 1:
        raise ValueError("both sides need an attempt at every case")
    weights = {(before, after): before * after / (before + after) for before, after in kinds}
    share = exact_sum((weights[size] * size[1] / sum(size), count) for size, count in kinds.items()) / exact_sum(
        (weights[size], count) for size, count in kinds.items()
    )
    normal = NormalDist()
    limit = normal.inv_cdf(1 - alpha)
    luck = [
        normal.inv_cdf(1 - UNLUCKY_BASELINE_SHARE * (place + 0.5) / INTEGRATION_STEPS)
        for place in range(INTEGRATION_STEPS)
    ]
    return (
        math.fsum(normal.cdf((u * math.sqrt(share) - limit) / math.sqrt(1 - share)) for u in luck) / INTEGRATION_STEPS
    )


def additional_attempts(
    cases: Iterable[CaseEvidence] | Mapping[CaseEvidence, int],
    *,
    margin: float,
    alpha: float = 0.05,
    power: float = DEFAULT_POWER,
) -> AdditionalAttempts | None:
    """The cheapest further attempts at each case that would probably show the drop to be within the margin.

    If nothing changed, further attempts at a case score what both sides together scored so far, on average; the answer is
    the least number of them, on the current side or on both, for which the bound of `non_inferiority` then stays below
    the margin with this power. None when `MOST_ATTEMPTS` are not enough.

    >>> additional_attempts([evidence(PairedCaseCounts(30, 24, 5, 4)), evidence(PairedCaseCounts(30, 30, 5, 5))] * 15, margin=0.05)
    AdditionalAttempts(baseline=0, current=2)
    """
    import numpy as np

    _check_share("alpha", alpha)
    _check_share("power", power)
    distinct = Counter(cases)
    size = distinct.total()
    if not size:
        return None
    table = np.array([[*case[:5], case.pooled] for case in distinct], float).T
    before, baseline, after, current, square, pooled = table
    variances = (square - pooled**2) * (before + after) / (before + after - 1)
    weights = np.array(list(distinct.values()), float)
    probable = NormalDist().inv_cdf(power)

    def settled(more: AdditionalAttempts) -> bool:
        before_then, after_then = before + more.baseline, after + more.current
        drops = (before * baseline + more.baseline * pooled) / before_then
        drops -= (after * current + more.current * pooled) / after_then
        each = _expected_doubt(pooled, variances, before_then, after_then)
        variance, skew, assumed_variance, assumed_skew = (float(weights @ values) for values in each)
        doubt = MeanDoubt(variance, skew, assumed_variance / size, assumed_skew / size)
        wander = weights @ (variances * (more.baseline / before_then**2 + more.current / after_then**2))
        drop = float(weights @ drops) + probable * math.sqrt(wander + doubt.assumed_variance)
        return doubt.within(drop, margin * size, alpha).bound < margin * size

    alone = least_sufficient_attempts(lambda number: settled(AdditionalAttempts(0, number)))
    both = least_sufficient_attempts(lambda number: settled(AdditionalAttempts(number, number)))
    found = [AdditionalAttempts(0, alone)] if alone else []
    found += [AdditionalAttempts(both, both)] if both else []
    return min(found, key=lambda more: (more.baseline + more.current, more.baseline), default=None)


def least_sufficient_attempts(suffices: Callable[[int], bool], most: int = MAX_ADVISED_ATTEMPTS) -> int | None:
    """The smallest sufficient number of attempts, if all larger numbers are sufficient too; None if none is.

    >>> least_sufficient_attempts(lambda number: number**2 >= 50), least_sufficient_attempts(lambda number: number > 10, most=10)
    (8, None)
    """
    high = 1
    while not suffices(high):
        if high == most:
            return None
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def expected_flags(
    cases: Iterable[PairedCaseCounts | PairedCaseScores]
    | Mapping[PairedCaseCounts, int]
    | Mapping[PairedCaseCounts | PairedCaseScores, int],
    threshold: float,
) -> float:
    """How many cases noise alone drops by more than the threshold, if none changed.

    Cases may be given as how many there are of each kind. Each attempt, on either side, then scores like one drawn from all attempts at its case with half an attempt more at 0
    and half a one at 1: for pass and fail a rate of (passes + 0.5) / (attempts + 1). Scores are rounded to a
    thousandth. A drop of exactly the threshold does not count as a drop.

    >>> sides = zip([10, 9, 10, 4, 0, 7], [10, 7, 6, 5, 0, 5], strict=True)
    >>> f"{expected_flags([PairedCaseCounts(10, before, 10, after) for before, after in sides], 0.05):.10f}"
    '1.9492350056'
    """
    alike: Counter[_CaseNoise] = Counter()
    for case, count in Counter(cases).items():
        alike[_noise(case)] += count
    return math.fsum(count * _flag_chance(noise, threshold) for noise, count in sorted(alike.items()))


class _CaseNoise(NamedTuple):
    """All that the noise of a case depends on."""

    baseline_attempts: int
    current_attempts: int
    weights: tuple[tuple[int, float], ...]
    """Scores in thousandths, and how many attempts have each."""


def _noise(case: PairedCaseCounts | PairedCaseScores) -> _CaseNoise:
    weights: Counter[int] = Counter()
    if isinstance(case, PairedCaseCounts):
        before, after = case.baseline_attempts, case.current_attempts
        passes = case.baseline_passes + case.current_passes
        weights = Counter({0: before + after - passes, SCORE_GRID_STEPS: passes})
    else:
        before, after = len(case.baseline), len(case.current)
        weights.update(round(score * SCORE_GRID_STEPS) for side in case for score in side)
    return _CaseNoise(before, after, tuple(sorted((weights + Counter({0: 0, SCORE_GRID_STEPS: 0})).items())))


@lru_cache(maxsize=1 << 14)
def _flag_chance(noise: _CaseNoise, threshold: float) -> float:
    """How likely this case drops by more than the threshold with nothing changed; 0 when a side was not tried."""
    import numpy as np

    before, after, weights = noise
    if not (before and after):
        return 0.0
    step = math.gcd(SCORE_GRID_STEPS, *(score for score, _ in weights))
    steps = SCORE_GRID_STEPS // step
    chances = np.zeros(steps + 1)
    for score, count in [*weights, (0, 0.5), (SCORE_GRID_STEPS, 0.5)]:
        chances[score // step] += count / (before + after + 1)

    def sums(attempts: int) -> Floats:
        size = attempts * steps + 1
        length = 1 << (size - 1).bit_length()
        return np.fft.irfft(np.fft.rfft(chances, length) ** attempts, length)[:size]

    # above[s]: how likely the baseline's scores sum to s steps or more
    above = np.append(np.cumsum(sums(before)[::-1])[::-1], 0.0)
    current = sums(after)
    # baseline / before - current / after > threshold, in whole steps
    least = (np.arange(len(current)) / after / steps + threshold + 1e-9) * before * steps
    place = np.minimum(np.floor(least).astype(int) + 1, len(above) - 1)
    return float(min(1.0, max(0.0, current @ above[np.maximum(place, 0)])))


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")
