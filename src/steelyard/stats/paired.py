"""Whether the current side is worse than the baseline, case by case."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from steelyard.stats.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

    Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
    Integers = np.ndarray[tuple[int], np.dtype[np.int64]]

DIRECT = 3000
"""Up to so many steps from the worst to the best outcome, plain convolution is as quick as a Fourier transform."""
NEGLIGIBLE = 46.0
"""What is less likely than exp(-46), 1e-20, changes no digit of a float beside it."""


class Counts(NamedTuple):
    """What both sides scored on one case."""

    baseline_attempts: int
    baseline_passes: int
    current_attempts: int
    current_passes: int


class Margins(NamedTuple):
    """What is left of `Counts` when nobody says on which side the passes fell."""

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


class McNemar(NamedTuple):
    """The p-values of McNemar's test."""

    two_sided: float
    """That the sides differ."""
    one_sided: float
    """That the current side is worse."""


def fisher_worse(case: Counts) -> float:
    """The one-sided p-value that the current side is worse on this case: Fisher's exact test, correctly rounded.

    Fisher 1935, "The logic of inductive inference", Journal of the Royal Statistical Society 98, 39-82.

    >>> f"{fisher_worse(Counts(10, 10, 10, 3)):.12f}"
    '0.001547987616'
    """
    margins = _margins(case)
    return _attainable(margins)[case.current_passes - margins.fewest]


def stratified_worse(cases: Iterable[Counts]) -> float:
    """The one-sided p-value that the current side is worse over all cases; 1 when they hold no information.

    Given the passes of each case, and if no case changed, every way to share them out between the sides is equally
    likely, so the current side's passes are a sum of independent hypergeometric numbers. This is the chance of a sum
    as small as the one seen: the test of Cochran, Mantel and Haenszel without its normal approximation (Mantel and
    Haenszel 1959, "Statistical aspects of the analysis of data from retrospective studies of disease", Journal of the
    National Cancer Institute 22, 719-748), and for one attempt per case McNemar's exact test. It is exact at any
    size: nothing is rounded but floats, which leaves a relative error near 1e-12 on 10,000 cases, in tiny p-values too.

    >>> sides = zip([10, 9, 10, 4, 0, 7], [10, 7, 6, 5, 0, 5], strict=True)
    >>> f"{stratified_worse(Counts(10, before, 10, after) for before, after in sides):.12f}"
    '0.071165060349'
    """
    strata: Counter[Margins] = Counter()
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
    return min(1.0, _lower_tail(groups, seen) if span <= DIRECT else _distant_lower_tail(groups, seen, span))


def minimum_p(cases: Sequence[Counts]) -> list[float]:
    """For each case the chance that any case at all looks as bad as this one does when none got worse.

    Fisher's p-values, adjusted for looking at many cases by the exact distribution of the smallest: `1 - prod_j(1 -
    F_j(p))`, where F_j(p) is the largest p-value up to p that case j can attain. A case that cannot attain a small one
    costs nothing: Tarone 1990, "A modified Bonferroni method for discrete data", Biometrics 46, 515-522; Westfall and
    Young 1993, "Resampling-Based Multiple Testing", Wiley. Naming every case whose value is at most alpha names a case
    that did not get worse with a chance of at most alpha.

    >>> sides = zip([10, 9, 10, 4, 0, 7], [10, 7, 6, 5, 0, 5], strict=True)
    >>> f"{min(minimum_p([Counts(10, before, 10, after) for before, after in sides])):.12f}"
    '0.125468521647'
    """
    seen = Counter(cases)
    strata: Counter[Margins] = Counter()
    for case, count in seen.items():
        strata[_margins(case)] += count
    attainable = {margins: _attainable(margins) for margins in strata}
    steps: list[tuple[float, float]] = []
    for margins, count in strata.items():
        weights = _weights(margins)
        left = sum(weights)
        # at its last p-value, 1, a case is sure to have looked as bad: that needs no sum
        for p, weight in zip(attainable[margins][:-1], weights[:-1], strict=True):
            steps.append((p, count * math.log1p(-(weight / left))))
            left -= weight
    steps.sort()
    survival = [0.0, *accumulate(log for _, log in steps)]

    def adjusted(case: Counts) -> float:
        margins = _margins(case)
        p = attainable[margins][case.current_passes - margins.fewest]
        return 1.0 if p == 1 else -math.expm1(survival[bisect_right(steps, (p, math.inf))])

    found = {case: adjusted(case) for case in seen}
    return [found[case] for case in cases]


def mcnemar(worse: int, better: int) -> McNemar:
    """Whether of the cases that changed sides too many got worse; both p-values are 1 when none changed.

    The exact form of McNemar 1947, "Note on the sampling error of the difference between correlated proportions or
    percentages", Psychometrika 12, 153-157: each change goes either way with chance one half.

    >>> mcnemar(5, 1)
    McNemar(two_sided=0.21875, one_sided=0.109375)
    """
    if worse < 0 or better < 0:
        raise ValueError(f"cases are counted from 0, got {worse} worse and {better} better")
    return McNemar(min(1.0, 2 * _fair_tail(max(worse, better), min(worse, better))), _fair_tail(worse, better))


def difference_interval(
    baseline: Sequence[float], current: Sequence[float], *, attempts: float, level: float = 0.95
) -> Interval | None:
    """Interval for the mean of current - baseline over cases like these; None below 2 cases.

    Both sides give one value in [0, 1] per case, in the same order; `attempts` is the harmonic mean of the attempts
    behind each. This is Student's interval after adding two cases that differ by +1/attempts and -1/attempts, so it
    never has zero width; with one attempt it is that of Bonett and Price 2012, "Adjusted Wald confidence interval for a
    difference of binomial proportions based on paired data", Journal of Educational and Behavioral Statistics 37,
    479-488, with t for z. The estimate to show beside it is the plain mean, which is not its centre.

    >>> low, high = difference_interval([1, 0.9, 1, 0.4, 0, 0.7], [1, 0.7, 0.6, 0.5, 0, 0.5], attempts=10)
    >>> f"{low:.12f} {high:.12f}"
    '-0.222547141014 0.047547141014'
    """
    if len(baseline) != len(current):
        raise ValueError(f"both sides need the same cases, got {len(baseline)} and {len(current)}")
    if not all(0 <= value <= 1 for side in (baseline, current) for value in side):
        raise ValueError("every value must lie in [0, 1]")
    if not 1 <= attempts < math.inf:
        raise ValueError(f"a value rests on 1 attempt or more, got {attempts}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    if len(current) < 2:
        return None
    from scipy.special import stdtrit

    differences = [after - before for before, after in zip(baseline, current, strict=True)]
    differences += [1 / attempts, -1 / attempts]
    size = len(differences)
    mean = math.fsum(differences) / size
    variance = math.fsum((difference - mean) ** 2 for difference in differences) / size
    half = float(stdtrit(size - 1, (1 + level) / 2)) * math.sqrt(variance / size)
    return Interval(max(-1.0, mean - half), min(1.0, mean + half))


def _margins(case: Counts) -> Margins:
    # numpy's integers would overflow without a word where ours grow
    baseline_attempts, baseline_passes, current_attempts, current_passes = map(int, case)
    if not (0 <= baseline_passes <= baseline_attempts and 0 <= current_passes <= current_attempts):
        raise ValueError(f"passes must lie between 0 and the attempts, got {case}")
    return Margins(baseline_attempts, current_attempts, baseline_passes + current_passes)


def _weights(margins: Margins) -> list[int]:
    """In how many ways the current side can have `fewest` to `most` passes."""
    baseline, current, passes = margins
    fewest, most = margins.fewest, margins.most
    ways = math.comb(passes, fewest) * math.comb(baseline + current - passes, current - fewest)
    found = [ways]
    for taken in range(fewest, most):
        ways = ways * (passes - taken) * (current - taken) // ((taken + 1) * (baseline - passes + taken + 1))
        found.append(ways)
    return found


def _attainable(margins: Margins) -> list[float]:
    """Fisher's p-value for each number of passes from `fewest` to `most`; equal fractions are equal floats."""
    sums = list(accumulate(_weights(margins)))
    return [ways / sums[-1] for ways in sums]


def _lower_tail(groups: Sequence[tuple[Margins, int]], seen: int) -> float:
    """The chance of a sum up to `seen` by plain convolution, where nothing is ever subtracted."""
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


def _distant_lower_tail(groups: Sequence[tuple[Margins, int]], seen: int, span: int) -> float:
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
    reach = NEGLIGIBLE / 3 + math.sqrt(NEGLIGIBLE**2 / 9 + 2 * NEGLIGIBLE * tilted.variance)
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


class _Tilted(NamedTuple):
    """Hypergeometric numbers after weighing each outcome by exp(tilt * outcome)."""

    tilt: float
    log_moment: float
    """The logarithm of what all weights together sum to on average."""
    chances: Floats
    mean: float
    variance: float


def _tilt(logs: Floats, sizes: Integers, starts: Integers, counts: Floats, seen: int) -> _Tilted:
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
            return _Tilted(tilt, math.fsum(counts * (tops + np.log(sums))), chances, mean, variance)
        low, high = (tilt, high) if mean < seen else (low, tilt)
        tilt += (seen - mean) / variance
        if not low < tilt < high:
            tilt = (low + high) / 2 if low > -math.inf else 2 * high - 1


def _log_share(way: int, total: int) -> float:
    """The logarithm of a share that may be too small for a float."""
    share = way / total
    return math.log(share) if share > 1e-300 else math.log(way) - math.log(total)


def _fair_tail(heads: int, tails: int) -> float:
    """The chance that so many tosses of a fair coin give so many heads or more."""
    tosses = heads + tails
    if tosses > 1000:
        from scipy.special import betainc

        return float(betainc(heads, tails + 1, 0.5)) if heads else 1.0
    return float(Fraction(sum(math.comb(tosses, fewer) for fewer in range(tails + 1)), 2**tosses))
