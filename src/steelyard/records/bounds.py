"""The bounds of numbers that come from outside: numbers beyond them cannot be computed with."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

MAX_NUMBER = 1e12
"""More than any cost, duration, score or number of tokens that is meant; sums and squares of it stay finite."""
MAX_ATTEMPTS_PER_CASE = 1_000_000
"""Attempts at one case of one model, and the k of pass@k."""

AttemptNumber = Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS_PER_CASE)]
"""How many attempts there are; a file that says otherwise is damaged."""
AttemptIndex = Annotated[int, Meta(ge=0, le=MAX_ATTEMPTS_PER_CASE)]
"""Which of the attempts at a case it is; other tools count from 0."""
ReportedTestCount = Annotated[int, Meta(ge=0, le=100_000)]
"""Tests of one attempt that a report counts; each of them becomes a record."""
Amount = Annotated[float, Meta(ge=0, le=MAX_NUMBER)]
"""A duration, a price or a weight."""
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=int(MAX_NUMBER))]
SignedNumber = Annotated[float, Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]


def is_bounded(number: float | None, *, least: float = 0) -> bool:
    """Whether a number is one that can be computed with: not NaN, not infinite and not absurd.

    >>> is_bounded(1e308), is_bounded(float("nan")), is_bounded(-1), is_bounded(-1, least=-MAX_NUMBER), is_bounded(0.25)
    (False, False, False, True, True)
    """
    return number is not None and least <= number <= MAX_NUMBER
