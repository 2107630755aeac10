"""What one check of a list says about one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Evidence

MeasuredFact = Literal["latency", "cost"]


class CheckOutcome(NamedTuple):
    """Whether a check holds, how well, and why."""

    passed: bool
    score: float
    """From 0 to 1."""
    message: str
    evidence: tuple[Evidence, ...] = ()
    is_error: bool = False
    """Whether the check itself broke, so that it does not hold the other way round either."""
    is_graded: bool = False
    """Whether the score is what was measured, and the check holds where it reaches a limit."""


class ListedCheck(Protocol):
    """One check of a list."""

    @property
    def name(self) -> str:
        """What reports call it, such as `contains "Paris"`."""
        ...

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:
        """What it says; `text` is the answer without what the model thought aloud. VerifierError if it cannot decide."""
        ...


def plain_outcome(message: str, *, passed: bool) -> CheckOutcome:
    """The outcome of a check without degrees."""
    return CheckOutcome(passed, float(passed), message)


@dataclass(frozen=True)
class MeasuredCheck:
    """The answer took no longer, or cost no more, than this: its text does not matter."""

    name: str
    what: MeasuredFact
    limit: float
    """In seconds or US dollars."""

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  the text does not matter
        # unknown is neither fast nor cheap
        if self.what == "latency":
            if answer.latency is None:
                raise VerifierError(
                    f"{self.name}: the latency of this answer was not recorded; ask again without a recording"
                )
            return plain_outcome(f"the answer took {answer.latency:g} s", passed=answer.latency <= self.limit)
        if answer.cost is None:
            raise VerifierError(
                f"{self.name}: no price is known for this model; give one under [prices] in the settings"
            )
        return plain_outcome(f"the answer cost {answer.cost.usd:g} USD", passed=answer.cost.usd <= self.limit)
