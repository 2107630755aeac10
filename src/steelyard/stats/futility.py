"""The chance that attempts still to come will decide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import NamedTuple

from steelyard.stats.paired import PairedCaseCounts
from steelyard.stats.power import evidence


class FutureLook(NamedTuple):
    """A look that is still to come."""

    attempts: Sequence[int]
    """At each case of the current side."""
    alarm_level: float
    cleared_level: float


def chance_to_decide(cases: Sequence[PairedCaseCounts], future: Iterable[FutureLook], *, margin: float) -> float:
    """How likely the mean over these cases is still found to be worse, or is cleared, given what was seen so far.

    The conditional power of Lan, Simon and Halperin 1982, "Stochastically curtailed testing in long-term clinical trials",
    Communications in Statistics C 1, 207-219, averaged over a flat prior of the change as by Spiegelhalter, Freedman
    and Blackburn 1986, "Monitoring clinical trials: conditional or predictive power?", Controlled Clinical Trials 7, 8-17:
    the drop at a later look has the mean that it has now, and the variance that the current side loses until then. The
    tests are those of the mean alone, which every decision about a suite needs, so that the chance is rather too large. It
    is 1 while a case has fewer than two attempts.

    >>> thin = [PairedCaseCounts(1, each % 2, 5, 2 + each % 2) for each in range(20)]
    >>> f"{chance_to_decide(thin, [FutureLook([20] * 20, 0.01, 0.05)], margin=0.05):.3f}"
    '0.058'
    """
    if any(case.current_attempts < 2 for case in cases):
        return 1.0
    known = [evidence(case) for case in cases]
    rates = [case.current_passes / case.current_attempts for case in cases]
    units = [
        rate * (1 - rate) * case.current_attempts / (case.current_attempts - 1)
        for rate, case in zip(rates, cases, strict=True)
    ]
    drop = math.fsum(each.baseline - each.current for each in known)
    now = math.fsum(unit / case.current_attempts for unit, case in zip(units, cases, strict=True))
    baseline = max(0.0, math.fsum(each.spread for each in known) - now)
    normal = NormalDist()
    cleared = worse = 0.0
    for look in future:
        later = math.fsum(unit / count for unit, count in zip(units, look.attempts, strict=True))
        error, moves = math.sqrt(baseline + later), math.sqrt(max(0.0, now - later))
        if not moves:
            return 1.0
        reach = margin * len(cases) + normal.inv_cdf(look.cleared_level) * error
        cleared = max(cleared, normal.cdf((reach - drop) / moves))
        worse = max(worse, normal.cdf((drop + normal.inv_cdf(look.alarm_level) * error) / moves))
    return min(1.0, cleared + worse)
