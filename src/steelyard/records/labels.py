"""What people say of answers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from steelyard.records.base import AttemptNumber, Record

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
