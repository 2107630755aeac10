"""What a check is declared with, and what it found out about a response, with the evidence."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Final, Literal, Protocol

from steelyard.errors import VerifierError, did_you_mean
from steelyard.records import Evidence, Record
from steelyard.text import short_quote
from steelyard.verifiers.response.unicode import printable_excerpt

ResponseClass = Literal[
    "timeout", "crash", "error", "policy_violation", "truncated", "pass", "refusal", "wrong_format", "fail"
]
"""What a response is; `classes` says in which order the classes are tried."""
PASS: Final = "pass"  # noqa: S105  the class of a response, no password
FAIL: Final = "fail"
WRONG_FORMAT: Final = "wrong_format"
POLICY_VIOLATION: Final = "policy_violation"
MAX_EVIDENCE_PIECES = 20
"""Pieces of evidence that are kept, the one that decided first."""


class ResponseCheckResult(Record, frozen=True, kw_only=True):
    """What a check says of one response."""

    primary: ResponseClass
    """A check alone says `pass`, `fail`, `wrong_format` or `policy_violation`."""
    score: float
    """From 0 to 1: the weighted share of its parts that are met."""
    details: tuple[Evidence, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the response is what the case asks for."""
        return self.primary == PASS


class ResponseCheck(Protocol):
    """Something that a case asks of a response."""

    @property
    def asks(self) -> bool:
        """Whether it asks for an answer, so that no refusal can meet it; not where it only forbids, or says which words it wants."""
        ...

    def judge(self, text: str) -> ResponseCheckResult:
        """The judgement of any text: it never raises, and takes time bounded by the text's length."""
        ...


def line_and_column(text: str, start: int) -> tuple[int, int]:
    r"""The line and the column of a position, both from 1.

    >>> line_and_column("a\nbc", 3)
    (2, 2)
    """
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def evidence(rule: str, what: str, text: str, start: int, end: int) -> Evidence:
    """Evidence with the part of the reply that it speaks of."""
    line, column = line_and_column(text, start)
    matched = printable_excerpt(text[start : min(end, start + 101)])
    return Evidence(rule=rule, what=what, matched=matched, position=start, line=line, column=column)


def check_result(primary: ResponseClass, *details: Evidence) -> ResponseCheckResult:
    """A judgement without partial credit: 1 for a pass, 0 for anything else."""
    return ResponseCheckResult(primary=primary, score=1.0 if primary == PASS else 0.0, details=details)


VALUE_TYPE_DESCRIPTIONS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a table",
}


def value_type_description(value: object) -> str:
    """What kind of thing a value is, in the words of the files."""
    return "nothing" if value is None else VALUE_TYPE_DESCRIPTIONS.get(type(value), type(value).__name__)


class CheckTable:
    """One table of a check; every message names the path to the key."""

    def __init__(self, data: object, path: str) -> None:
        if not isinstance(data, dict):
            raise VerifierError(
                f'{path}: expected a table such as {{type = "contains", value = "ok"}}, got {value_type_description(data)}'
            )
        self.path = path
        self._data: dict[Any, Any] = data
        self._taken: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def wrong(self, key: str, what: str) -> VerifierError:
        """The error to raise about a key."""
        return VerifierError(f"{self.path}.{key}: {what}")

    def take(self, key: str, default: Any = None) -> Any:
        """A value of any kind."""
        self._taken.add(key)
        return self._data.get(key, default)

    def required(self, key: str) -> Any:
        """A value of any kind that must be there."""
        if key not in self._data:
            raise VerifierError(f"{self.path}: {key} is missing")
        return self.take(key)

    def text(self, key: str, default: str | None = None) -> str:
        """A text; without a default it must be there and not be empty."""
        value = self.required(key) if default is None else self.take(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"expected text, got {value_type_description(value)}")
        if default is None and not value:
            raise self.wrong(key, "must not be empty")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """One text or several, none of them empty."""
        value = self.required(key)
        values = value if isinstance(value, list | tuple) else [value]
        if not values:
            raise self.wrong(key, "must not be empty")
        for number, item in enumerate(values):
            if not isinstance(item, str) or not item:
                where = f"{key}[{number}]" if values is value else key
                raise self.wrong(
                    where,
                    f"expected text that is not empty, got {short_quote(item) if item == '' else value_type_description(item)}",
                )
        return tuple(values)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self.take(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, f"expected true or false, got {value_type_description(value)}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number, from 0 up where it has a default."""
        value = self.required(key) if default is None else self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, f"expected a number, got {value_type_description(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong(key, "expected a finite number")
        if default is not None and value < 0:
            raise self.wrong(key, "expected a number from 0 up")
        return value

    def whole(self, key: str) -> int | None:
        """A whole number from 0 up; None if it is left out."""
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(key, "expected a whole number from 0 up")
        return value

    def choice(self, key: str, known: Collection[str], default: str | None = None) -> str:
        """One of the known words."""
        value = self.text(key, default)
        if value not in known:
            raise self.wrong(key, f"unknown word {short_quote(value)} ({did_you_mean(value[:80], known)})")
        return value

    def rest(self) -> dict[Any, Any]:
        """All keys that were not read yet; they count as read now."""
        left = {key: value for key, value in self._data.items() if key not in self._taken or key == "type"}
        self._taken |= left.keys()
        return left

    def close(self) -> None:
        """Raise for the first key that no check has read."""
        for key in self._data:
            if key not in self._taken:
                way_out = did_you_mean(str(key)[:80], self._taken)
                raise VerifierError(f"{self.path}: unknown key {short_quote(str(key))} ({way_out})")
