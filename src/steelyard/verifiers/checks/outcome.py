"""What one check of a list says about one answer."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from steelyard.records import Answer, Case, Evidence


class CheckOutcome(NamedTuple):
    """Whether a check holds, how well, and why."""

    passed: bool
    score: float
    """From 0 to 1."""
    message: str
    evidence: tuple[Evidence, ...] = ()
    is_error: bool = False
    """Whether the check itself broke, so that it does not hold the other way round either."""


class ListedCheck(Protocol):
    """One check of a list."""

    @property
    def name(self) -> str:
        """What reports call it, such as `contains "Paris"`."""
        ...

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:
        """What it says; `text` is the answer without what the model thought aloud. VerifierError where it cannot tell."""
        ...


def plain_outcome(message: str, *, passed: bool) -> CheckOutcome:
    """The outcome of a check without degrees."""
    return CheckOutcome(passed, float(passed), message)
