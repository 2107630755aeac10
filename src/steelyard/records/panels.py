"""Who judges answers, and when not all of them are asked."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from steelyard.records.base import AttemptNumber, Record, Share


class Escalation(Record, frozen=True, kw_only=True):
    """When the other judges of a panel are asked, and how often that is checked."""

    ask_first: AttemptNumber = 1
    """How many judges, from the first in the list, are asked about every answer."""
    unsure_within: Share = 0.1
    """The others are asked where the mean score of the first is closer than this to the pass threshold, or they disagree."""
    check_share: Share = 0.1
    """The share of the other answers, drawn at random, about which all judges are asked too."""


class Panel(Record, frozen=True, kw_only=True):
    """Who judges answers, by what, and how often."""

    judges: tuple[str, ...]
    """Provider and model of each."""
    rubric: dict[str, Any]
    """What they look for, whole, so that a judgment can be read without the file."""
    digest: str
    """Equal for rubrics that ask the same."""
    repeats: AttemptNumber = 1
    """How often each judge is asked about the same answer."""
    parameters: dict[str, Any] = {}
    """Sent with each request to a judge."""
    allow_self: bool = False
    """Whether a model may judge its own answers."""
    escalation: Escalation | None = None
    """When judges after the first are asked; None if every judge is asked about every answer."""

    @property
    def first_judges(self) -> tuple[str, ...]:
        """Those who are asked about every answer."""
        return self.judges if self.escalation is None else self.judges[: self.escalation.ask_first]

    @property
    def other_judges(self) -> tuple[str, ...]:
        """Those who are asked only about some."""
        return self.judges[len(self.first_judges) :]


LABELLER_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}"
"""A name that can be part of a file's name everywhere."""
LabellerName = Annotated[str, Meta(pattern=f"^{LABELLER_PATTERN}$")]


class Label(Record, frozen=True, kw_only=True):
    """One mark that a person gave an answer, or took back."""

    by: LabellerName
    at: str
    case: str
    model: str
    tier: str = ""
    number: AttemptNumber = 1
    criterion: str = ""
    """A category of the rubric; empty for the answer as a whole."""
    passed: bool | None
    """None takes an earlier mark back."""
