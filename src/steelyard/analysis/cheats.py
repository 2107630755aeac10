"""How attempts that are worse than mistakes, or may be, are counted in words."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.records import FLAG_BESIDE_TESTS, FLAG_CHANGED_TESTS
from steelyard.text import line

PLURAL = {FLAG_BESIDE_TESTS: "only beside their tests", FLAG_CHANGED_TESTS: "passed changed tests"}


def cheats_text(tampered: int, flagged: Mapping[str, int]) -> str:
    """How many attempts tampered, and how many have each flag; empty if none has.

    >>> cheats_text(3, {"only beside its tests": 5})
    '3 tampered, 5 only beside their tests'
    """
    counts = [("tampered", tampered), *((PLURAL.get(flag, line(flag)), flagged[flag]) for flag in sorted(flagged))]
    return ", ".join(f"{count:,} {what}" for what, count in counts if count)
