"""How far a run is, in one line."""

from __future__ import annotations

from typing import NamedTuple

from steelyard.reports.figures import money
from steelyard.text import counted, line


class ProgressCounts(NamedTuple):
    """What the line is made of."""

    wanted: int
    """Verdicts that were owed when the work began."""
    replied: int | None
    """None where no model is asked."""
    judged: int
    correct: int | None
    """None where that is not counted."""
    failed: int
    spent: float
    reason: str
    """Why the work waits, if it does."""
    good: str = "correct"
    """The word for those that succeeded."""
    done: str = "done"
    """The word for those that have ended."""
    nodes: int | None = None
    """How many machines work on it; None where it is this one alone."""


def progress_line(counts: ProgressCounts, elapsed: float) -> str:
    """The line for people who wait.

    >>> progress_line(ProgressCounts(wanted=200, replied=60, judged=50, correct=20, failed=2, spent=0.25, reason=""), 10.0)
    '52/200 done · 60 replies · 40% correct · 2 failed · $0.250 · about 28 s left'
    >>> counts = ProgressCounts(240, replied=None, judged=30, correct=None, failed=1, spent=1.5, reason="", done="judgments")
    >>> progress_line(counts, 31.0)
    '31/240 judgments · 1 failed · $1.50 · about 209 s left'
    >>> progress_line(ProgressCounts(9, replied=3, judged=0, correct=0, failed=0, spent=0, reason="", nodes=2), 5.0)
    '0/9 done · 3 replies · 2 nodes'
    """
    done = counts.judged + counts.failed
    parts = [f"{done}/{counts.wanted} {counts.done}"]
    if counts.replied is not None:
        parts.append(counted(counts.replied, "reply", "replies"))
    if counts.judged and counts.correct is not None:
        parts.append(f"{counts.correct / counts.judged:.0%} {counts.good}")
    if counts.failed:
        parts.append(f"{counts.failed} failed")
    if counts.nodes is not None:
        parts.append(counted(counts.nodes, "node"))
    if counts.spent:
        parts.append(money(counts.spent))
    if counts.reason:
        parts.append(line(counts.reason, 100))
    elif done and done < counts.wanted:
        parts.append(f"about {_remaining_time(elapsed * (counts.wanted - done) / done)} left")
    return " · ".join(parts)


def progress_bar(done: int, wanted: int, width: int = 20) -> str:
    """How far that is, as a picture.

    >>> progress_bar(50, 200)
    '━━━━━───────────────'
    """
    filled = width * min(done, wanted) // max(wanted, 1)
    return "━" * filled + "─" * (width - filled)


def _remaining_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes >= 5 else f"{60 * minutes + rest} s"
