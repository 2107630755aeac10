"""How far a run is, and a display of it on standard error."""

from __future__ import annotations

import math
import os
import re
import select
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TextIO

from steelyard.reports.figures import money
from steelyard.text import counted, line

MIN_WAIT_SECONDS = 3.0
"""Seconds that an answer runs before the line names its case."""
STALLED_FACTOR = 1.5
"""How far an estimate may be above the last one that was shown; beyond that none is, because the work has stalled."""


MIN_BAR_COLUMNS = 5
"""A shorter bar shows nothing."""


class SlowAnswers(NamedTuple):
    """The answers to the case of which one has been running longest."""

    case: str
    answers: int
    seconds: float
    """How long the first of them has been running."""
    limit: float
    """How many seconds of CPU time one may use."""


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
    """How many machines work on it; None if it is this one alone."""
    slow: SlowAnswers | None = None
    """What is being verified and takes longest, where that is known."""
    last_estimate: float = math.inf
    """The remaining seconds that were shown last: an estimate never counts upwards."""
    at_once: int = 1
    """The most attempts that were at work at the same time: the size of the first batch."""


def progress_line(counts: ProgressCounts, elapsed: float, width: int | None = None) -> str:
    """The line for people who wait; cut to `width` columns, the time left, spend and reason go last.

    >>> counts = ProgressCounts(wanted=200, replied=60, judged=50, correct=20, failed=2, spent=0.25, reason="")
    >>> progress_line(counts, 10.0)
    '52/200 done · about 28 s left · $0.250 · 40% correct · 60 replies · 2 failed'
    >>> waits = "waiting 4 s: https://api.openai.com/v1/chat/completions: 429 Too many requests"
    >>> progress_line(counts._replace(reason=waits), 10.0, width=60)
    '52/200 done · 28 s left · $0.250 · 429 api.openai.com, 4 s'
    >>> progress_line(counts, 10.0, width=60)
    '52/200 done · about 28 s left · $0.250 · 40% correct'
    >>> counts = ProgressCounts(240, replied=None, judged=30, correct=None, failed=1, spent=1.5, reason="", done="judgments")
    >>> progress_line(counts, 31.0)
    '31/240 judgments · about 209 s left · $1.50 · 1 failed'
    >>> progress_line(ProgressCounts(9, replied=3, judged=0, correct=0, failed=0, spent=0, reason="", nodes=2), 5.0)
    '0/9 done · 3 replies · 2 nodes'
    >>> loops = SlowAnswers("fib", answers=2, seconds=8.1, limit=10)
    >>> progress_line(ProgressCounts(9, replied=9, judged=7, correct=7, failed=0, spent=0, reason="", slow=loops), 30.0)
    '7/9 done · about 9 s left · 2 answers to fib have run for 8 s of 10 · 100% correct · 9 replies'
    >>> progress_line(ProgressCounts(9, replied=9, judged=7, correct=7, failed=0, spent=0, reason="", last_estimate=2), 30.0)
    '7/9 done · 100% correct · 9 replies'
    """
    needed, further = _progress_parts(counts, elapsed)
    if width is None:
        return " · ".join([*needed, *further])
    while further and len(" · ".join([*needed, *further])) > width:
        further.pop()
    text = " · ".join([*needed, *further])
    if len(text) > width:
        text = text.replace(" · about ", " · ", 1)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _progress_parts(counts: ProgressCounts, elapsed: float) -> tuple[list[str], list[str]]:
    """What must be shown, and what may be shown, the most important first."""
    done = counts.judged + counts.failed
    needed = [f"{done}/{counts.wanted} {counts.done}"]
    if (left := estimate(counts, elapsed)) is not None:
        needed.append(f"about {_remaining_time(left)} left")
    if counts.slow is not None and counts.slow.seconds >= MIN_WAIT_SECONDS:
        needed.append(_slow_answers(counts.slow))
    if counts.spent:
        needed.append(money(counts.spent))
    if counts.reason:
        needed.append(_short_reason(counts.reason))
    further = []
    if counts.judged and counts.correct is not None:
        further.append(f"{counts.correct / counts.judged:.0%} {counts.good}")
    if counts.replied is not None:
        further.append(counted(counts.replied, "reply", "replies"))
    if counts.failed:
        further.append(f"{counts.failed} failed")
    if counts.nodes is not None:
        further.append(counted(counts.nodes, "node"))
    return needed, further


def estimate(counts: ProgressCounts, elapsed: float) -> float | None:
    """The seconds that the rest will take, if that can be told: no more than was said before."""
    done = counts.judged + counts.failed
    if not done or not counts.at_once <= done < counts.wanted:
        return None
    left = elapsed * (counts.wanted - done) / done
    return None if left > STALLED_FACTOR * counts.last_estimate else min(left, counts.last_estimate)


def _slow_answers(slow: SlowAnswers) -> str:
    """What the work waits for.

    >>> _slow_answers(SlowAnswers("fib", answers=1, seconds=14.4, limit=10))
    '1 answer to fib has run for 14 s, of which it may compute for 10'
    """
    verb = "has" if slow.answers == 1 else "have"
    limit = f" of {slow.limit:g}" if slow.seconds <= slow.limit else f", of which it may compute for {slow.limit:g}"
    return f"{counted(slow.answers, 'answer')} to {line(slow.case, 40)} {verb} run for {slow.seconds:.0f} s{limit}"


def _short_reason(reason: str) -> str:
    """A reason without the address and the words of a server; others as they are.

    >>> _short_reason("waiting 12 s: the rate limit is used up")
    'waiting 12 s: the rate limit is used up'
    """
    found = re.match(r"waiting (\d+ s): https?://(?:[^/\s@]*@)?([^/\s?]+)\S*: (\d{3})\b", reason)
    return line(f"{found[3]} {found[2]}, {found[1]}" if found else reason, 100)


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


class SessionProgress:
    """How far a run is."""

    def __init__(self, verdicts: int) -> None:
        self.verdicts = verdicts
        """Verdicts outstanding when this session began."""
        self.replied = 0
        self.judged = 0
        self.correct = 0
        self.failed = 0
        self.spent = 0.0
        self.reason = ""
        """Why we wait, if we do."""
        self.nodes: int | None = None
        """How many machines verify; None if it is this one alone."""
        self.slow: SlowAnswers | None = None
        """The answers that have been running longest."""
        self.at_once = 1
        """The most attempts that were asked or verified at the same time."""
        self.judgments = 0
        """Judgments outstanding when all replies had arrived; 0 before that."""
        self.judgments_made = 0
        self.judgments_failed = 0


ProgressCallback = Callable[[SessionProgress], None]


class ProgressDisplay:
    """Shows a run's progress: one line that is written over in a terminal, now and then a line elsewhere."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._over = sys.stderr is not None and sys.stderr.isatty() and "CI" not in os.environ
        self._pause = 1.0 if self._over else 15.0
        self._last = self._started
        self._is_judging = False
        self._last_estimate = math.inf

    def __call__(self, progress: SessionProgress) -> None:
        if progress.judgments:
            if not self._is_judging:
                # how long the answers took says nothing of how long their judges will
                self._is_judging, self._started, self._last_estimate = True, time.monotonic(), math.inf
            judgments = ProgressCounts(
                wanted=progress.judgments,
                replied=None,
                judged=progress.judgments_made,
                correct=None,
                failed=progress.judgments_failed,
                spent=progress.spent,
                reason="",
                done="judgments",
            )
            self.show(judgments)
            return
        counts = ProgressCounts(
            wanted=progress.verdicts,
            replied=progress.replied,
            judged=progress.judged,
            correct=progress.correct,
            failed=progress.failed,
            spent=progress.spent,
            reason=progress.reason,
            nodes=progress.nodes,
            slow=progress.slow,
            at_once=progress.at_once,
        )
        self.show(counts)

    def show(self, counts: ProgressCounts) -> None:
        """Show these counts, unless something was shown just before."""
        now = time.monotonic()
        ended = counts.judged + counts.failed >= counts.wanted
        if now - self._last < self._pause and not (ended and self._over):
            return
        self._last = now
        room = shutil.get_terminal_size((100, 40)).columns - 1 if self._over else None
        counts = counts._replace(last_estimate=self._last_estimate)
        left = estimate(counts, now - self._started)
        self._last_estimate = self._last_estimate if left is None else left
        text = progress_line(counts, now - self._started, room)
        if room is not None:
            bar = min(20, room - len(text) - 1)
            if bar >= MIN_BAR_COLUMNS:
                text = f"{progress_bar(counts.judged + counts.failed, counts.wanted, bar)} {text}"
            text = f"\r\x1b[2K{text}" + ("\r\x1b[2K" if ended else "")
        _write_if_read(text if self._over else f"{text}\n")


def _write_if_read(text: str) -> None:
    """Write to standard error if somebody reads it: a stream that is closed or full must not hold up a run."""
    with suppress(OSError, ValueError, AttributeError):
        if _has_room(sys.stderr):
            sys.stderr.write(text)
            sys.stderr.flush()


def _has_room(stream: TextIO) -> bool:
    try:
        number = stream.fileno()
    except OSError:
        # not a stream of the system, such as that of a notebook
        return True
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    return bool(poll.poll(0))
