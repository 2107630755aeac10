"""Which attempts a page shows with their texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.attempts import row_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.attempts import AttemptRow

MAX_SMALL_RUN_ATTEMPTS = 1_000
"""Attempts of a run all of whose texts are shown."""
MAX_SHOWN_FAILURES = 3_000
"""Failures of a larger run whose texts are shown; with more, no browser would open the page."""
MIN_SHOWN_PASSES = 200
"""Correct attempts of a larger run whose texts are shown, whatever the number of failures."""


class ShownAttempts(NamedTuple):
    """The attempts that are shown with their texts."""

    rows: tuple[AttemptRow, ...]
    """In the order of the table."""
    failed: int
    """How many of them are not correct."""
    passed: int


def shown_attempts(rows: Sequence[AttemptRow]) -> ShownAttempts:
    """All of a small run; of a larger one the failures and a sample of the correct attempts, from all cases and models."""
    failed = [row for row in rows if row.outcome != "correct"]
    passed = [row for row in rows if row.outcome == "correct"]
    if len(rows) > MAX_SMALL_RUN_ATTEMPTS:
        failed = even_sample(failed, MAX_SHOWN_FAILURES)
        passed = even_sample(passed, max(MIN_SHOWN_PASSES, MAX_SMALL_RUN_ATTEMPTS - len(failed)))
    return ShownAttempts(tuple(sorted((*failed, *passed), key=row_index)), len(failed), len(passed))


def even_sample(rows: Sequence[AttemptRow], most: int) -> list[AttemptRow]:
    """At most this many rows: first one of each model at each case, then a second one, and so on; evenly where not all fit."""
    if len(rows) <= most:
        return list(rows)
    counts: dict[tuple[int, int], int] = {}
    rounds: list[list[AttemptRow]] = []
    for row in rows:
        turn = counts.get(row[:2], 0)
        counts[row[:2]] = turn + 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(row)
    sample: list[AttemptRow] = []
    for of_round in rounds:
        room = most - len(sample)
        if len(of_round) > room:
            return sample + [of_round[place * len(of_round) // room] for place in range(room)]
        sample += of_round
    return sample
