"""Whether the current side is worse than the baseline, case by case."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from steelyard.stats.intervals import Interval
from steelyard.stats.special import student_quantile

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    import numpy as np

    Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
    Integers = np.ndarray[tuple[int], np.dtype[np.int64]]

MAX_DIRECT_CONVOLUTION_STEPS = 3000
"""Up to this many steps from the worst to the best outcome, plain convolution is as quick as a Fourier transform."""
SCORE_RESOLUTIONS = (1000, 100, 20)
"""Steps per unit of score, the finest first: the first that is quick enough is used."""
MAX_PERMUTATION_ADDITIONS = 4e8
"""Up to this many additions, counting the ways to share out the scores of all cases is quick enough."""
MAX_EXACT_PERMUTATION_STEPS = 500_000
"""Up to this many steps from the worst to the best outcome of a suite, every permutation of its scores is counted."""
NEGLIGIBLE_LOG_CHANCE = 46.0
"""What is less likely than exp(-46), 1e-20, changes no digit of a float beside it."""


class PairedCaseCounts(NamedTuple):
    """What both sides scored on one case."""

    baseline_attempts: int
    baseline_passes: int
    current_attempts: int
    current_passes: int


class ContingencyMargins(NamedTuple):
    """What is left of `Counts` when the side of each pass is not known."""

    baseline_attempts: int
    current_attempts: int
    passes: int

    @property
    def fewest(self) -> int:
        """The fewest passes that the current side can have."""
        return max(0, self.passes - self.baseline_attempts)

    @property
    def most(self) -> int:
        """The most passes that the current side can have."""
        return min(self.passes, self.current_attempts)


class PairedCaseScores(NamedTuple):
    """What every attempt of both sides scored on one case, each in [0, 1]."""

    baseline: tuple[float, ...]
    current: tuple[float, ...]


class SmallestPDistribution(NamedTuple):
    """How small the smallest p-value of many cases can be when none of them got worse."""

    p: Sequence[float]
    """Every p-value below 1 that some case can attain, ascending."""
    chances: Sequence[float]
    """How likely the smallest is up to each."""

    def chance(self, p: float) -> float:
        """How likely any case at all attains this p-value or a smaller one."""
        place = bisect_right(self.p, p)
        return 1.0 if p >= 1 else float(self.chances[place - 1]) if place else 0.0

    def spent(self, level: float) -> float:
        """The largest chance up to the level that can be attained, 0 when none: what a test at this level costs.

        It depends on nothing but how many attempts passed on both sides together, so what is left of an error rate
        may be spent on another test of the same cases.
        """
        place = bisect_right(self.chances, level)
        return float(self.chances[place - 1]) if place else 0.0


class ScorePermutationTest(NamedTuple):
    """What the permutation test found in scores."""

    overall: float
    """The one-sided p-value that the current side is worse over all cases."""
    exact: bool
    """Whether `overall` counts every permutation, rather than drawing some with the seed."""
    cases: list[float]
    """The one-sided p-value of each case alone."""
    smallest: SmallestPDistribution
    """What becomes of the smallest of them when no case got worse."""


def fisher_worse(case: PairedCaseCounts) -> float:
    """The one-sided p-value that the current side is worse on this case: Fisher's exact test, correctly rounded.

    Fisher 1935, "The logic of inductive inference", Journal of the Royal Statistical Society 98, 39-82.

    >>> f"{fisher_worse(PairedCaseCounts(10, 10, 10, 3)):.12f}"
    '0.001547987616'
    """
    margins = _margins(case)
    return _attainable(margins)[case.current_passes - margins.fewest]


def stratified_worse(cases: Iterable[PairedCaseCounts] | Mapping[PairedCaseCounts, int]) -> float:
    """The one-sided p-value that the current side is worse over all cases; 1 when they hold no information.

    Cases may be given as how many there are of each kind. Given the passes of each case, and if no case changed, every way to share them out between the sides is equally
    likely, so the current side's passes are a sum of independent hypergeometric numbers. This is the chance of a sum
    as small as the one seen: the test of Cochran, Mantel and Haenszel without its normal approximation (Mantel and
    Haenszel 1959, "Statistical aspects of the analysis of data from retrospective studies of disease", Journal of the
    National Cancer Institute 22, 719-748), and for one attempt per case McNemar's exact test. It is exact at any
    size: nothing is rounded but floats, which leaves a relative error near 1e-12 on 10,000 cases, in tiny p-values too.

    >>> sides = zip([10, 9, 10, 4, 0, 7], [10, 7, 6, 5, 0, 5], strict=True)
    >>> f"{stratified_worse(PairedCaseCounts(10, before, 10, after) for before, after in sides):.12f}"
    '0.071165060349'
    """
    strata: Counter[ContingencyMargins] = Counter()
    seen = 0
    for case, count in Counter(cases).items():
        margins = _margins(case)
        if margins.fewest < margins.most:
            strata[margins] += count
            seen += (case.current_passes - margins.fewest) * count
    # one order for all, so that the order of the cases cannot change the last digit
    groups = [(margins, strata[margins]) for margins in sorted(strata)]
    span = sum((margins.most - margins.fewest) * count for margins, count in groups)
    if seen == span:
        return 1.0
    return min(
        1.0,
        _lower_tail(groups, seen) if span <= MAX_DIRECT_CONVOLUTION_STEPS else _distant_lower_tail(groups, seen, span),
    )


def smallest_p_distribution(
    cases: Iterable[PairedCaseCounts] | Mapping[PairedCaseCounts, int],
) -> SmallestPDistribution:
    """How small the smallest of Fisher's p-values can be over these cases, whichever side their passes fell on.

    Its `chance` adjusts a case's p-value for looking at many cases: `1 - prod_j(1 - F_j(p))`, where F_j(p) is the largest
    p-value up to p that case j can attain. A case that cannot attain a small one costs nothing: Tarone 1990, "A modified
    Bonferroni method for discrete data", Biometrics 46, 515-522; Westfall and Young 1993, "Resampling-Based Multiple
    Testing", Wiley. Naming every case whose value is at most alpha names a case that did not get worse with a chance of
    at most alpha. Cases may be given as how many there are of each kind.

    >>> smallest_p_distribution([PairedCaseCounts(3, 3, 3, 0), PairedCaseCounts(3, 1, 3, 1)]).p
    [0.05, 0.2, 0.5, 0.8, 0.95]
    """
    strata: Counter[ContingencyMargins] = Counter()
    for case, count in Counter(cases).items():
        strata[_margins(case)] += count
    steps: list[tuple[float, float]] = []
    for margins, count in strata.items():
        weights = _weights(margins)
        left = sum(weights)
        # at its last p-value, 1, a case is sure to have looked as bad: that needs no sum
        for p, weight in zip(_attainable(margins)[:-1], weights[:-1], strict=True):
            steps.append((p, count * math.log1p(-(weight / left))))
            left -= weight
    steps.sort()
    reached: dict[float, float] = {}
    for (p, _), survival in zip(steps, accumulate(log for _, log in steps), strict=True):
        reached[p] = -math.expm1(survival)
    return SmallestPDistribution(list(reached), list(reached.values()))


def scores_worse(cases: Sequence[PairedCaseScores], *, seed: int, replicates: int = 10_000) -> ScorePermutationTest:
    """Whether scores got worse: over all cases, and case by case.

    If a case did not change, every way to share its scores out between the sides is equally likely, so the sum of the
    current side's scores is compared with all its shares: Fisher 1935, "The Design of Experiments", section 21, and
    Pitman 1937, "Significance tests which may be applied to samples from any populations", Supplement to the Journal
    of the Royal Statistical Society 4, 119-130, within each case. Scores of 0 and 1 give `stratified_worse` and
    `smallest_p_distribution`. Where scores have 3 decimals at most and the suite is not too large, every share is counted; else
    `replicates` shares are drawn, and p is (1 + those as low as what was seen) / (1 + all): Phipson and Smyth 2010,
    "Permutation p-values should never be zero", Statistical Applications in Genetics and Molecular Biology 9, 39.
    Cases alone are always counted out, on scores rounded as far as their number asks: a permutation test holds its
    level whatever it compares. Counting is exact to within 1e-12.

    >>> found = scores_worse([PairedCaseScores((1.0, 0.9, 1.0), (0.5, 0.4, 0.9)), PairedCaseScores((0.5, 0.5), (0.5, 0.5))], seed=1)
    >>> found.overall, found.exact, found.cases
    (0.1, True, [0.1, 1.0])
    """
    import numpy as np

    for scores in cases:
        if not all(0 <= score <= 1 for side in scores for score in side):
            raise ValueError(f"every score must be in [0, 1], got {scores}")
    # a case whose scores are all alike says nothing, and must not move the draws of the others
    telling = [place for place, scores in enumerate(cases) if len(set(scores.baseline + scores.current)) > 1]
    resolution = next(
        (
            each
            for each in SCORE_RESOLUTIONS
            if _permutation_additions([cases[place] for place in telling], each) <= MAX_PERMUTATION_ADDITIONS
        ),
        SCORE_RESOLUTIONS[-1],
    )
    pooled = [_pooled_scores(cases[place], resolution) for place in telling]
    step = math.gcd(*(value - each.values[0] for each in pooled for value in each.values)) or 1
    strata = Counter((each.values, each.current_attempts) for each in pooled)
    shares = {key: _score_sum_distribution(*key, step) for key in sorted(strata)}
    p = [1.0] * len(cases)
    seen = 0
    for place, each in zip(telling, pooled, strict=True):
        share = shares[each.values, each.current_attempts]
        index = (each.current_sum - each.current_attempts * each.values[0]) // step - share.lowest
        p[place] = float(share.p[index])
        seen += index
    whole = resolution == SCORE_RESOLUTIONS[0] and all(
        abs(score * resolution - round(score * resolution)) < 1e-6
        for place in telling
        for side in cases[place]
        for score in side
    )
    span = sum((len(share.chances) - 1) * strata[key] for key, share in shares.items())
    exact = whole and span <= MAX_EXACT_PERMUTATION_STEPS
    if exact:
        together = _convolved([(share.chances, strata[key]) for key, share in shares.items()])
        overall = min(1.0, max(0.0, math.fsum(together[: seen + 1])))
        # what a Fourier transform leaves of an even number is not quite even
        overall = float(_rounded(np.array([overall]))[0])
    else:
        overall = _sampled_permutation_p([cases[place] for place in telling], seed, replicates)
    return ScorePermutationTest(
        overall, exact, p, _smallest_score_p_distribution([(share, strata[key]) for key, share in shares.items()])
    )


def difference_interval(
    baseline: Sequence[float],
    current: Sequence[float],
    *,
    attempts: float,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Interval | None:
    """Interval for the mean of current - baseline over cases like these; None below 2 cases, or 2 groups.

    Both sides give one value in [0, 1] per case, in the same order; `attempts` is the harmonic mean of the attempts
    behind each. This is Student's interval after adding two cases that differ by +1/attempts and -1/attempts, so it
    never has zero width; with one attempt it is that of Bonett and Price 2012, "Adjusted Wald confidence interval for a
    difference of binomial proportions based on paired data", Journal of Educational and Behavioral Statistics 37,
    479-488, with t for z. The estimate to show beside it is the plain mean, which is not its centre.

    `groups` names the group of each case. Cases of one group may change together: where any two share one, the sampling unit
    is the group, and the variance is the cluster-robust one with the factor C / (C - 1) and C - 1 degrees of freedom for C
    groups (Cameron and Miller 2015, "A practitioner's guide to cluster-robust inference", Journal of Human Resources 50).

    >>> low, high = difference_interval([1, 0.9, 1, 0.4, 0, 0.7], [1, 0.7, 0.6, 0.5, 0, 0.5], attempts=10)
    >>> f"{low:.12f} {high:.12f}"
    '-0.222547141014 0.047547141014'
    """
    if len(baseline) != len(current):
        raise ValueError(f"both sides need the same cases, got {len(baseline)} and {len(current)}")
    if not all(0 <= value <= 1 for side in (baseline, current) for value in side):
        raise ValueError("every value must be in [0, 1]")
    if not 1 <= attempts < math.inf:
        raise ValueError(f"a value rests on 1 attempt or more, got {attempts}")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    if len(current) < 2:
        return None
    differences = [after - before for before, after in zip(baseline, current, strict=True)]
    differences += [1 / attempts, -1 / attempts]
    size = len(differences)
    mean = math.fsum(differences) / size
    square, freedom = unit_squares([difference - mean for difference in differences], groups)
    if not freedom:
        return None
    half = student_quantile(freedom, (1 + level) / 2) * math.sqrt(square) / size
    return Interval(max(-1.0, mean - half), min(1.0, mean + half))


def unit_squares(deviations: Sequence[float], groups: Sequence[Hashable] | None) -> tuple[float, int]:
    """The sum of the squared deviations of what was sampled, cases or groups of them, and its degrees of freedom.

    Deviations beyond those of the cases that have a group stand for themselves.

    >>> unit_squares([1.0, 1.0, -2.0, 0.5], ["a", "a", "b"])
    (16.25, 1)
    """
    plain = math.fsum(deviation**2 for deviation in deviations), len(deviations) - 1
    if groups is None or len(set(groups)) == len(groups):
        return plain
    together: dict[Hashable, float] = {}
    for group, deviation in zip(groups, deviations, strict=False):
        together[group] = together.get(group, 0.0) + deviation
    alone = math.fsum(deviation**2 for deviation in deviations[len(groups) :])
    count = len(together)
    clustered = math.fsum(each**2 for each in together.values()) * count / max(count - 1, 1)
    return clustered + alone, count - 1


def _margins(case: PairedCaseCounts) -> ContingencyMargins:
    # numpy's integers would overflow silently where Python's grow
    baseline_attempts, baseline_passes, current_attempts, current_passes = map(int, case)
    if not (0 <= baseline_passes <= baseline_attempts and 0 <= current_passes <= current_attempts):
        raise ValueError(f"passes must be between 0 and the attempts, got {case}")
    return ContingencyMargins(baseline_attempts, current_attempts, baseline_passes + current_passes)


@lru_cache(maxsize=1024)
def _weights(margins: ContingencyMargins) -> tuple[int, ...]:
    """In how many ways the current side can have `fewest` to `most` passes."""
    baseline, current, passes = margins
    fewest, most = margins.fewest, margins.most
    ways = math.comb(passes, fewest) * math.comb(baseline + current - passes, current - fewest)
    found = [ways]
    for taken in range(fewest, most):
        ways = ways * (passes - taken) * (current - taken) // ((taken + 1) * (baseline - passes + taken + 1))
        found.append(ways)
    return tuple(found)


@lru_cache(maxsize=1024)
def _attainable(margins: ContingencyMargins) -> tuple[float, ...]:
    """Fisher's p-value for each number of passes from `fewest` to `most`; equal fractions are equal floats."""
    sums = list(accumulate(_weights(margins)))
    return tuple(ways / sums[-1] for ways in sums)


def _lower_tail(groups: Sequence[tuple[ContingencyMargins, int]], seen: int) -> float:
    """The chance of a sum up to `seen` by plain convolution, without any subtraction."""
    import numpy as np

    def together(left: Floats, right: Floats) -> Floats:
        # sums only grow, so what is beyond `seen` never comes back
        return np.convolve(left, right)[: seen + 1]

    chances = np.ones(1)
    for margins, count in groups:
        ways = _weights(margins)
        total = sum(ways)
        power = np.array([way / total for way in ways])
        left = count
        while left:
            if left % 2:
                chances = together(chances, power)
            left //= 2
            if left:
                power = together(power, power)
    return math.fsum(chances)


def _distant_lower_tail(groups: Sequence[tuple[ContingencyMargins, int]], seen: int, span: int) -> float:
    """The chance of a sum up to `seen`, of the `span` that are possible, by a tilted Fourier transform.

    A plain transform knows every chance to within 1e-16 of the largest, so a small p-value would be noise. Weighing
    each outcome by exp(tilt * outcome) first moves the bulk to where `seen` is: Keich 2005, "sFFT: a faster accurate
    computation of the p-value of the entropy score", Journal of Computational Biology 12, 416-430. A hypergeometric
    number, tilted or not, is a sum of independent yes-or-no numbers (Vatutin and Mikhailov 1982, "Limit theorems for
    the number of empty cells in an equiprobable scheme for group allocation of particles", Theory of Probability and
    its Applications 27, 734-743), so Bernstein's inequality bounds the window outside of which nothing is left to see.
    """
    import numpy as np

    logs: list[float] = []
    sizes: list[int] = []
    for margins, _ in groups:
        ways = _weights(margins)
        total = sum(ways)
        sizes.append(len(ways))
        logs += [_log_share(way, total) for way in ways]
    starts = np.cumsum([0, *sizes[:-1]])
    counts = np.array([count for _, count in groups], float)
    if seen == 0:
        return math.exp(math.fsum(counts * np.array(logs)[starts]))
    tilted = _tilt(np.array(logs), np.array(sizes), starts, counts, seen)
    reach = NEGLIGIBLE_LOG_CHANCE / 3 + math.sqrt(
        NEGLIGIBLE_LOG_CHANCE**2 / 9 + 2 * NEGLIGIBLE_LOG_CHANCE * tilted.variance
    )
    lowest = max(0, math.floor(tilted.mean - reach))
    highest = min(span, math.ceil(tilted.mean + reach))
    if seen >= highest:
        return 1.0
    length = 1 << (highest - lowest).bit_length()
    spectrum = np.ones(length // 2 + 1, complex)
    for count, chances in zip(counts, np.split(tilted.chances, starts[1:]), strict=True):
        # outcomes a window apart share one place, where all but one of them are negligible
        folded = np.pad(chances, (0, -len(chances) % length)).reshape(-1, length).sum(axis=0)
        spectrum *= np.fft.rfft(folded) ** count
    window = np.roll(np.fft.irfft(spectrum, length), -lowest)[: seen - lowest + 1]
    window *= np.exp(tilted.tilt * np.arange(seen - lowest, -1, -1.0))
    return math.exp(tilted.log_moment - tilted.tilt * seen) * math.fsum(window)


class _TiltedDistribution(NamedTuple):
    """Hypergeometric numbers after weighing each outcome by exp(tilt * outcome)."""

    tilt: float
    log_moment: float
    """The logarithm of what all weights together sum to on average."""
    chances: Floats
    mean: float
    variance: float


def _tilt(logs: Floats, sizes: Integers, starts: Integers, counts: Floats, seen: int) -> _TiltedDistribution:
    """The tilt towards smaller outcomes that brings the mean of the sum close to `seen`; none if it is not above."""
    import numpy as np

    outcomes = np.concatenate([np.arange(size, dtype=float) for size in sizes])
    tilt, low, high = 0.0, -math.inf, 0.0
    while True:
        weights = logs + tilt * outcomes
        tops = np.maximum.reduceat(weights, starts)
        chances = np.exp(weights - np.repeat(tops, sizes))
        sums = np.add.reduceat(chances, starts)
        chances /= np.repeat(sums, sizes)
        means = np.add.reduceat(chances * outcomes, starts)
        variances = np.add.reduceat(chances * (outcomes - np.repeat(means, sizes)) ** 2, starts)
        mean, variance = float(counts @ means), float(counts @ variances)
        # anywhere within the bulk will do: the weights are taken out again exactly
        if abs(mean - seen) <= 0.1 * math.sqrt(variance) or (tilt == 0 and mean < seen):
            return _TiltedDistribution(tilt, math.fsum(counts * (tops + np.log(sums))), chances, mean, variance)
        low, high = (tilt, high) if mean < seen else (low, tilt)
        tilt += (seen - mean) / variance
        if not low < tilt < high:
            tilt = (low + high) / 2 if low > -math.inf else 2 * high - 1


def _log_share(way: int, total: int) -> float:
    """The logarithm of a share that may be too small for a float."""
    share = way / total
    return math.log(share) if share > 1e-300 else math.log(way) - math.log(total)


class _PooledScores(NamedTuple):
    """The scores of a case when the side of each is not known, in whole steps."""

    values: tuple[int, ...]
    current_attempts: int
    current_sum: int


class _ScoreSumDistribution(NamedTuple):
    """What the current side's scores of a case can sum to."""

    lowest: int
    """The lowest sum, in steps above that of as many lowest scores."""
    chances: Floats
    """How likely each sum is, from the lowest on."""
    p: Floats
    """How likely each sum or a lower one is."""


def _pooled_scores(scores: PairedCaseScores, resolution: int) -> _PooledScores:
    current = [round(score * resolution) for score in scores.current]
    values = sorted([*current, *(round(score * resolution) for score in scores.baseline)])
    return _PooledScores(tuple(values), len(current), sum(current))


def _permutation_additions(cases: Sequence[PairedCaseScores], resolution: int) -> float:
    """How many additions the ways to share out the scores take."""
    distinct = {
        (each.values, each.current_attempts) for each in (_pooled_scores(scores, resolution) for scores in cases)
    }
    step = math.gcd(*(value - values[0] for values, _ in distinct for value in values)) or 1
    work = 0.0
    for values, current in distinct:
        fewer = min(current, len(values) - current)
        work += len(values) * (fewer + 1) * (fewer * (values[-1] - values[0]) // step + 1)
    return work


def _score_sum_distribution(values: tuple[int, ...], current: int, step: int) -> _ScoreSumDistribution:
    """How likely each sum of `current` of the values is, when all choices are equally likely."""
    import numpy as np

    steps = [(value - values[0]) // step for value in values]
    fewer = min(current, len(values) - current)
    reach = sum(steps[len(steps) - fewer :])
    # row k, column s: in what share of all choices k of the values so far were taken and sum to s
    table = np.zeros((fewer + 1, reach + 1))
    table[0, 0] = 1.0
    for value in steps:
        # halving keeps the numbers small; what they sum to is taken out at the end
        table *= 0.5
        table[1:, value:] += table[:-1, : reach + 1 - value].copy()
    chances = table[fewer]
    (possible,) = np.nonzero(chances)
    lowest, highest = int(possible[0]), int(possible[-1])
    chances = chances[lowest : highest + 1] / chances.sum()
    if fewer != current:
        lowest, chances = sum(steps) - highest, chances[::-1]
    return _ScoreSumDistribution(lowest, chances, _rounded(np.minimum(np.cumsum(chances), 1.0)))


def _rounded(p: Floats) -> Floats:
    """The same to 12 digits, so that p-values that are equal as fractions are equal as floats."""
    import numpy as np

    scale = 10.0 ** (12 - np.ceil(np.log10(np.maximum(p, 1e-290))))
    rounded: Floats = np.round(p * scale) / scale
    return rounded


def _convolved(parts: Sequence[tuple[Floats, int]]) -> Floats:
    """How likely each sum of independent numbers is; each part is a number's chances and how many such there are."""
    import numpy as np

    def both(left: Floats, right: Floats) -> Floats:
        if min(len(left), len(right)) <= 64:
            return np.convolve(left, right)
        size = len(left) + len(right) - 1
        length = 1 << (size - 1).bit_length()
        return np.fft.irfft(np.fft.rfft(left, length) * np.fft.rfft(right, length), length)[:size]

    left: list[Floats] = []
    for power, count in parts:
        doubled = power
        for bit in range(count.bit_length()):
            if bit:
                doubled = both(doubled, doubled)
            if count >> bit & 1:
                left.append(doubled)
    left.sort(key=len)
    while len(left) > 1:
        # numbers of like size are put together first, so that a long one is not traversed for each short one
        left = [
            both(*left[place : place + 2]) if place + 1 < len(left) else left[place] for place in range(0, len(left), 2)
        ]
    return left[0] if left else np.ones(1)


def _smallest_score_p_distribution(parts: Sequence[tuple[_ScoreSumDistribution, int]]) -> SmallestPDistribution:
    """How small the smallest p-value over these cases can be."""
    import numpy as np

    steps: list[Floats] = []
    logs: list[Floats] = []
    for share, count in parts:
        (possible,) = np.nonzero(share.chances > 0)
        # at its last p-value, 1, a case is sure to have looked as bad: that needs no sum
        chances = share.chances[possible]
        left = np.cumsum(chances[::-1])[::-1]
        steps.append(share.p[possible[:-1]])
        logs.append(count * np.log1p(-(chances / left)[:-1]))
    if not steps:
        return SmallestPDistribution([], [])
    p, hazard = np.concatenate(steps), np.concatenate(logs)
    order = np.lexsort((hazard, p))
    p, survival = p[order], np.cumsum(hazard[order])
    last = np.append(p[1:] != p[:-1], True)[: len(p)]
    return SmallestPDistribution(p[last].tolist(), (-np.expm1(survival[last])).tolist())


def _sampled_permutation_p(cases: Sequence[PairedCaseScores], seed: int, replicates: int) -> float:
    """The one-sided p-value over all cases, from `replicates` random permutations."""
    import numpy as np

    chance = np.random.Generator(np.random.PCG64(seed))
    drawn = np.zeros(replicates)
    seen: list[float] = []
    # one order for all, so that the order of the cases cannot change the draws
    for scores in sorted(cases, key=lambda each: (sorted(each.baseline + each.current), len(each.current))):
        pooled = np.array(sorted(scores.baseline + scores.current))
        taken = np.argpartition(chance.random((replicates, len(pooled))), len(scores.current) - 1, axis=1)
        drawn += pooled[taken[:, : len(scores.current)]].sum(axis=1)
        seen += scores.current
    as_low = int((drawn <= math.fsum(seen) + 1e-9).sum())
    return (1 + as_low) / (1 + replicates)
