"""One run of one case under one tier, and how judges rated it."""

from __future__ import annotations

from typing import NamedTuple

from steelyard.records import Record


class RunIdentity(NamedTuple):
    """What tells one run from every other: dropping any part of it mixes up runs."""

    experiment: str
    model: str
    tier: str
    case: str
    number: int

    def __str__(self) -> str:
        return f"{self.experiment}, {self.model}, {self.tier}, {self.case}, run {self.number}"


class JudgeIdentity(NamedTuple):
    """One of the judges of a run: a model, and which of its askings."""

    model: str
    number: int = 1

    def __str__(self) -> str:
        return f"{self.model} #{self.number}"


class TierRun(Record, frozen=True, kw_only=True):
    """What one run of one case under one tier came to; None where it is not known."""

    experiment: str = ""
    model: str
    tier: str
    case: str
    """What is asked of every tier; other tools call it a subtest."""
    number: int = 1
    passed: bool | None = None
    """By its tests; where there are none, the judges decide."""
    impl_rate: float | None = None
    """The share of what was asked that is there. Other tools' files have some above 1: they are kept as they are."""
    cost_usd: float | None = None
    """What the run cost, without its judges; unknown is not free."""
    duration_seconds: float | None = None
    input_tokens: int | None = None
    """All of them, those written to and read from a cache included."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Input tokens that were read from a cache; they are part of the input tokens."""
    exit_code: int | None = None

    @property
    def identity(self) -> RunIdentity:
        return RunIdentity(self.experiment, self.model, self.tier, self.case, self.number)


class RunRating(Record, frozen=True, kw_only=True):
    """How one judge rated one run."""

    run: RunIdentity
    judge: JudgeIdentity
    score: float | None = None
    """The total that the judge claims."""
    impl_rate: float | None = None
    """The share of the points that it gave."""
    passed: bool | None = None
    grade: str = ""
    valid: bool = True
    """False for an answer that could not be used: it is counted, and in no mean."""


class CriterionRating(Record, frozen=True, kw_only=True):
    """How one judge rated one run by one criterion."""

    run: RunIdentity
    judge: JudgeIdentity
    criterion: str
    score: float | None = None
    achieved: float | None = None
    """Points that were given; None where the criterion does not apply."""
    max: float | None = None
    """Points that there were to give."""


class RunSource(Record, frozen=True, kw_only=True):
    """Where runs came from: a file or a run folder, and a digest of what it held."""

    name: str
    digest: str
