"""How far a run is, and a display of it on standard error."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable

from steelyard.reports.progress import ProgressCounts, progress_bar, progress_line


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
        """How many machines verify; None where it is this one alone."""
        self.appraisals = 0
        """Appraisals that judges still owed when all replies had arrived; 0 before that."""
        self.heard = 0
        self.unheard = 0
        """Appraisals that were asked for in vain."""


ProgressCallback = Callable[[SessionProgress], None]


class ProgressDisplay:
    """Shows a run's progress: one line that is written over in a terminal, now and then a line elsewhere."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._over = sys.stderr.isatty() and "CI" not in os.environ
        self._pause = 1.0 if self._over else 15.0
        self._last = self._started
        self._is_judging = False

    def __call__(self, progress: SessionProgress) -> None:
        if progress.appraisals:
            if not self._is_judging:
                # how long the answers took says nothing of how long their judges will
                self._is_judging, self._started = True, time.monotonic()
            judgments = ProgressCounts(
                wanted=progress.appraisals,
                replied=None,
                judged=progress.heard,
                correct=None,
                failed=progress.unheard,
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
        )
        self.show(counts)

    def show(self, counts: ProgressCounts) -> None:
        """Show these counts, unless something was shown just before."""
        now = time.monotonic()
        ended = counts.judged + counts.failed >= counts.wanted
        if now - self._last < self._pause and not (ended and self._over):
            return
        self._last = now
        text = progress_line(counts, now - self._started)
        if self._over:
            text = f"{progress_bar(counts.judged + counts.failed, counts.wanted)} {text}"
            sys.stderr.write(
                f"\r\x1b[2K{text[: shutil.get_terminal_size((100, 40)).columns - 1]}" + ("\r\x1b[2K" if ended else "")
            )
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
