"""What a set-up gains, and at what price.

The formulas are those of ProjectScylla, "Metrics Formulas Documentation"; the cost of pass is that of Erol et al. 2025,
"Cost-of-Pass: An Economic Framework for Evaluating Language Models" (arXiv 2504.13359).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from steelyard.stats import descriptive
from steelyard.tiers.rubrics import GRADE_THRESHOLDS, LOWEST_GRADE, SCORE_THRESHOLD_TOLERANCE


def pass_rate(passed: bool) -> float:
    """1 for a run that passed all tests, otherwise 0 (section "Pass Rate").

    >>> pass_rate(True), pass_rate(False)
    (1.0, 0.0)
    """
    return 1.0 if passed else 0.0


def composite(pass_rate: float, impl_rate: float, *, pass_weight: float = 0.5, impl_weight: float = 0.5) -> float:
    """Pass rate and the judge's score as one number (section "Composite Score").

    >>> composite(1.0, 0.85)
    0.925
    """
    if not (pass_weight >= 0 and impl_weight >= 0 and 0 < pass_weight + impl_weight < math.inf):
        raise ValueError(f"weights must be 0 or more and not both 0, got {pass_weight} and {impl_weight}")
    return (pass_rate * pass_weight + impl_rate * impl_weight) / (pass_weight + impl_weight)


def points_share(points: Iterable[tuple[float | None, float | None]]) -> float | None:
    """Points given / points available, over criteria that apply (section "Implementation Rate"); None if none does.

    >>> points_share([(3.0, 4.0), (None, None), (1.0, 1.0)])
    0.8
    """
    known = [(achieved, most) for achieved, most in points if achieved is not None and most is not None]
    available = math.fsum(most for _, most in known)
    return math.fsum(achieved for achieved, _ in known) / available if available else None


def cost_of_pass(cost: float | None, pass_rate: float) -> float | None:
    """What a pass costs at this rate (section "Cost of Pass"): infinity at 0; None when the cost is unknown.

    >>> cost_of_pass(0.5, 1.0), cost_of_pass(0.5, 0.0)
    (0.5, inf)
    """
    if cost is None:
        return None
    return cost / pass_rate if pass_rate else math.inf


def frontier(costs_of_pass: Iterable[float | None]) -> float | None:
    """The least cost of pass over the alternatives whose cost is known (Erol et al. 2025, section 2); None without any.

    >>> frontier([0.66, float("inf"), None, 0.5])
    0.5
    """
    return min((cost for cost in costs_of_pass if cost is not None), default=None)


def grade(score: float | None) -> str | None:
    """The letter for a median composite (section "Letter Grade Assignment"); None without one.

    >>> grade(0.925), grade(0.6)
    ('B', 'F')
    """
    if score is None or math.isnan(score):
        return None
    return next(
        (letter for letter, least in GRADE_THRESHOLDS.items() if score >= least - SCORE_THRESHOLD_TOLERANCE),
        LOWEST_GRADE,
    )


def uplift(tier: float | None, t0: float | None) -> float | None:
    """How much better a tier scores than T0, as a share of T0 (section "Tier Uplift"); None when T0 is 0 or missing.

    >>> f"{uplift(0.80, 0.70):.12f}"
    '0.142857142857'
    """
    return None if tier is None or not t0 else (tier - t0) / t0


def cross_tier_variance(medians: Sequence[float]) -> float | None:
    """The spread of the tiers' medians (sections "Pass Rate Variance", "Cost Variance"); None below 2 tiers.

    >>> f"{cross_tier_variance([0.70, 0.80, 0.85, 0.90]):.8f}"
    '0.00546875'
    """
    return None if len(medians) < 2 else descriptive.variance(medians)


def cost_delta(costs: Sequence[float]) -> float | None:
    """The cost difference between the most expensive tier and the cheapest (section "Cost Delta"); None below 2 tiers.

    >>> cost_delta([0.5, 0.75, 0.25])
    0.5
    """
    if not all(map(math.isfinite, costs)):
        raise ValueError(f"what a tier cost is a finite number, got {list(costs)}")
    return None if len(costs) < 2 else max(costs) - min(costs)
