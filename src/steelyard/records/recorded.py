"""An attempt that another tool made and judged, as its files record it."""

from __future__ import annotations

from steelyard.records.base import Record
from steelyard.records.facts import Answer
from steelyard.records.messages import Message


class RecordedAttempt(Record, frozen=True, kw_only=True):
    """One attempt out of a file of another tool; what the file does not say is left at its default."""

    case: str
    """The case by the name that is the same in all files about it."""
    model: str
    judged_by: str
    """What decided, such as `inspect match`: attempts judged by something else are not comparable."""
    tool: str = ""
    """The program that wrote the file, with its version."""
    number: int | None = None
    """Which attempt of the model at the case it is, from 1; None if the order in the file says it."""
    tier: str = ""
    passed: bool | None = None
    """The tool's own yes or no; where it only scored, whether it is the best score there is."""
    score: float | None = None
    """The score that decides, as the tool gives it; with neither this nor `passed` the attempt has no outcome."""
    scores: dict[str, float] = {}
    """All scores by name, the one that decides first; empty where there is only one, without a name."""
    lower_is_better: tuple[str, ...] = ()
    """The names of scores of which less is better."""
    graded: bool = False
    """Whether `passed` only says that the score, which is what was measured, reached a threshold."""
    answer: Answer | None = None
    """None where the file does not have the text."""
    prompt: str | tuple[Message, ...] = ""
    target: str = ""
    label: str = ""
    """What kind of failure it is."""
    reason: str = ""
    """Why it is not right, as the tool says it."""
    levels: dict[str, bool] = {}
    """What each scorer says, where there are several."""
    failure: str = ""
    """The error in the tool or the connection that prevented an outcome."""
    tests: str = ""
    """A digest of the tests, where the file has one."""
    group: str = ""
    tags: tuple[str, ...] = ()
    at: str = ""
    """When it was made, in ISO 8601."""
    times: int = 1
    """How many attempts were exactly like this one, where a file has only counts."""


class RecordedClaim(Record, frozen=True, kw_only=True):
    """A figure that a tool published about its attempts, beside what the attempts give."""

    about: str
    they: str
    we: str
    differs: int = 0
    """How many runs or figures behind it differ; 0 if both say the same."""
