"""How often a process that serves a run looks for garbage."""

from __future__ import annotations

import gc

COLLECTED_OBJECTS = 10_000
"""New objects after which garbage is collected, as in the run itself."""


def collect_rarely() -> None:
    """Leave alone what the start of this process made, and collect the rest seldom: replies and verdicts go without it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_OBJECTS)
