"""What some attempts are about: whether they passed, or what they scored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

ComparedMeasure = Literal["passed", "score"]
"""What decides: whether attempts passed, or what they scored."""


class GradedCounts(NamedTuple):
    """What is known of the attempts at one case, on one side or on both."""

    graded: int
    """Attempts whose score is what was measured."""
    passes: int
    scores: tuple[tuple[float, int], ...]
    """Each score with how many attempts have it."""


def deciding_measure(cases: Iterable[GradedCounts]) -> ComparedMeasure:
    """What decides about these cases: their scores if a graded one is a fraction, or if cases are graded and nothing passed.

    >>> deciding_measure([GradedCounts(2, 1, ((0.5, 1), (1.0, 1)))]), deciding_measure([GradedCounts(2, 1, ((0.0, 1), (1.0, 1)))])
    ('score', 'passed')
    """
    is_graded = has_passed = False
    for case in cases:
        has_passed = has_passed or case.passes > 0
        if case.graded:
            is_graded = True
            if any(0 < score < 1 for score, _ in case.scores):
                return "score"
    return "score" if is_graded and not has_passed else "passed"
