"""Whether samples that keep coming still behave as the earlier ones did, asked anew after each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from steelyard.stats.special import normal_cdf

DRIFT_SHIFTS = (0.5, 1.0, 2.0, 4.0)
"""Shifts that are betted on, in standard errors of one sample: slow drifts and large breaks alike."""
LEAST_Z_SCORE = -1.0
"""Scores below count as this one, so that good samples before a change do not hide it."""
MAX_EVIDENCE = 1e300
SMALLEST_P_VALUE = 1e-300


def drift_evidence(p_values: Sequence[float]) -> list[float]:
    """How strong the evidence is, after each sample, that later samples differ from earlier ones in one direction.

    Each p-value compares a sample with all earlier ones, by a test that is exact given the sums over all samples so far. If all
    samples are alike, such p-values are independent of each other and uniform, or larger: what one of them is given by leaves
    no trace in the sums that the next ones are given by. So a bettor who stakes on small ones has a fair game, and the
    chance that the stake ever grows to 1 / alpha is at most alpha, however long the samples keep coming (Ville 1939,
    "Étude critique de la notion de collectif"; Shafer and others 2011, "Test martingales, Bayes factors and p-values", Statistical
    Science 26, 84-101). The stake is spread over the shifts above, and over all samples with which a change may begin:
    1 / (t (t + 1)) for the t-th p-value.

    >>> [f"{value:.3g}" for value in drift_evidence([0.5, 0.4, 0.001, 0.001, 0.001])]
    ['0.7', '0.584', '6.25', '297', '1.99e+04']
    """
    stakes = [0.0] * len(DRIFT_SHIFTS)
    found = []
    for number, p in enumerate(p_values, 1):
        z = max(LEAST_Z_SCORE, -NormalDist().inv_cdf(max(p, SMALLEST_P_VALUE))) if p < 1 else LEAST_Z_SCORE
        begins_here = 1 / (number * (number + 1))
        stakes = [
            min(MAX_EVIDENCE, (stake + begins_here) * _payoff(z, shift))
            for stake, shift in zip(stakes, DRIFT_SHIFTS, strict=True)
        ]
        found.append(math.fsum(stakes) / len(stakes) + 1 / (number + 1))
    return found


def _payoff(z: float, shift: float) -> float:
    """What a stake on a shift becomes; 1 on average for a standard normal score that is bounded from below.

    >>> draws = [NormalDist().inv_cdf((place + 0.5) / 10_000) for place in range(10_000)]
    >>> f"{sum(_payoff(max(z, LEAST_Z_SCORE), 1.0) for z in draws) / 10_000:.3f}"
    '1.000'
    """
    bounded = normal_cdf(LEAST_Z_SCORE) * math.exp(shift * LEAST_Z_SCORE)
    free = math.exp(shift * shift / 2) * normal_cdf(shift - LEAST_Z_SCORE)
    return math.exp(shift * z) / (bounded + free)
