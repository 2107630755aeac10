"""Small pictures in the text: how a figure went over time, how sure it is, how the attempts of a cell came out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.estimates import Estimate

TREND_WIDTH_PIXELS, TREND_HEIGHT_PIXELS, TREND_MARGIN_PIXELS = 220, 44, 5
"""Of a trend, in pixels, and what is left free around it."""
BAR_WIDTH_PIXELS, BAR_STEP_PIXELS, CORRECT_BAR_HEIGHT_PIXELS, WRONG_BAR_HEIGHT_PIXELS = 4, 6, 12, 4
"""Of the attempts of a cell: how wide a bar is, how far to the next, how tall a correct one is, and a wrong one."""
MAX_OUTCOME_BARS = 14
"""Attempts of a cell that are drawn; the figures beside them count all."""


class TrendPoint(NamedTuple):
    """One point of a trend."""

    x: float
    y: float


class TrendLine(NamedTuple):
    """A share over time, with its interval as a band."""

    line: str
    band: str
    """Empty where no interval is known."""
    dots: tuple[TrendPoint, ...]


class IntervalScale(NamedTuple):
    """A share and its interval on a line from 0 to 100."""

    value: float
    low: float
    width: float


class OutcomeBars(NamedTuple):
    """The attempts of a cell as bars: tall for correct, low for wrong, an empty box for missing."""

    width: int
    correct: str
    wrong: str
    missing: str


def trend(estimates: Sequence[Estimate]) -> TrendLine:
    """A line through shares with a value, the oldest first, from 0% at the bottom to 100% at the top."""
    known = [estimate for estimate in estimates if estimate.value is not None]
    step = (TREND_WIDTH_PIXELS - 2 * TREND_MARGIN_PIXELS) / max(1, len(known) - 1)
    xs = [
        TREND_MARGIN_PIXELS + place * step if len(known) > 1 else TREND_WIDTH_PIXELS / 2 for place in range(len(known))
    ]
    dots = tuple(TrendPoint(round(x, 1), _height(estimate.value or 0.0)) for x, estimate in zip(xs, known, strict=True))
    line = "M" + "L".join(f"{dot.x:g} {dot.y:g}" for dot in dots) if dots else ""
    sure = [(x, each.low, each.high) for x, each in zip(xs, known, strict=True) if each.low is not None]
    upper = [f"{x:.1f} {_height(high):g}" for x, _, high in sure if high is not None]
    lower = [f"{x:.1f} {_height(low):g}" for x, low, _ in reversed(sure) if low is not None]
    band = f"M{'L'.join([*upper, *lower])}Z" if len(sure) > 1 else ""
    return TrendLine(line, band, dots)


def scale(estimate: Estimate | None) -> IntervalScale | None:
    """A share on its line; None where the share is unknown.

    >>> from steelyard.analysis.estimates import Estimate
    >>> scale(Estimate(value=0.5, low=0.25, high=0.75))
    IntervalScale(value=50.0, low=25.0, width=50.0)
    """
    if estimate is None or estimate.value is None:
        return None
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    low, high = max(0.0, min(low, 1.0)), max(0.0, min(high, 1.0))
    return IntervalScale(
        *(round(100 * each, 2) for each in (min(max(estimate.value, 0.0), 1.0), low, max(high - low, 0.0)))
    )


def bars(outcomes: Sequence[str]) -> OutcomeBars:
    """How the first attempts of a cell came out."""
    paths = {"correct": "", "wrong": "", "missing": ""}
    for place, outcome in enumerate(outcomes[:MAX_OUTCOME_BARS]):
        x = place * BAR_STEP_PIXELS
        if outcome == "correct":
            paths[outcome] += f"M{x} 0h{BAR_WIDTH_PIXELS}v{CORRECT_BAR_HEIGHT_PIXELS}h-{BAR_WIDTH_PIXELS}z"
        elif outcome == "wrong":
            paths[outcome] += (
                f"M{x} {CORRECT_BAR_HEIGHT_PIXELS - WRONG_BAR_HEIGHT_PIXELS}h{BAR_WIDTH_PIXELS}v{WRONG_BAR_HEIGHT_PIXELS}h-{BAR_WIDTH_PIXELS}z"
            )
        else:
            paths["missing"] += (
                f"M{x + 0.5} {CORRECT_BAR_HEIGHT_PIXELS - BAR_WIDTH_PIXELS + 0.5}h{BAR_WIDTH_PIXELS - 1}v{BAR_WIDTH_PIXELS - 1}h-{BAR_WIDTH_PIXELS - 1}z"
            )
    return OutcomeBars(min(len(outcomes), MAX_OUTCOME_BARS) * BAR_STEP_PIXELS, **paths)


def _height(share: float) -> float:
    return round(
        TREND_HEIGHT_PIXELS
        - TREND_MARGIN_PIXELS
        - min(max(share, 0.0), 1.0) * (TREND_HEIGHT_PIXELS - 2 * TREND_MARGIN_PIXELS),
        1,
    )
