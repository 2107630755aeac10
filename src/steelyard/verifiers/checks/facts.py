"""Checks of a list that look at what is known of the answer besides its text: time and cost."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.errors import VerifierError
from steelyard.records import Answer, Case
from steelyard.verifiers.checks.outcome import CheckOutcome, plain_outcome
from steelyard.verifiers.response.judged import CheckTable


@dataclass(frozen=True)
class LatencyCheck:
    """The answer took no longer than this."""

    name: str
    seconds: float

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  the text does not matter
        if answer.latency is None:
            # unknown is not fast
            raise VerifierError(
                f"{self.name}: nobody measured how long this answer took; ask again without a recording"
            )
        return plain_outcome(f"the answer took {answer.latency:g} s", passed=answer.latency <= self.seconds)


@dataclass(frozen=True)
class CostCheck:
    """The answer cost no more than this."""

    name: str
    usd: float

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  the text does not matter
        if answer.cost is None:
            raise VerifierError(
                f"{self.name}: no price is known for this model; give one under [prices] in the settings"
            )
        return plain_outcome(f"the answer cost {answer.cost.usd:g} USD", passed=answer.cost.usd <= self.usd)


def latency_check(table: CheckTable) -> LatencyCheck:
    """At most this number of seconds."""
    seconds = _positive(table, "latency_below")
    return LatencyCheck(f"latency below {seconds:g} s", seconds)


def cost_check(table: CheckTable) -> CostCheck:
    """At most this number of US dollars."""
    usd = _positive(table, "cost_below")
    return CostCheck(f"cost below {usd:g} USD", usd)


def _positive(table: CheckTable, key: str) -> float:
    table.required(key)
    return float(table.number(key, 0))
