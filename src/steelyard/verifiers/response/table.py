"""The keys of a declared check, taken one by one, so that nothing unknown or malformed is overlooked."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from steelyard.errors import VerifierError, did_you_mean
from steelyard.text import short_quote

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
        """A whole number from 0 up; None where it is left out."""
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

    def close(self) -> None:
        """Raise for the first key that no check has read."""
        for key in self._data:
            if key not in self._taken:
                way_out = did_you_mean(str(key)[:80], self._taken)
                raise VerifierError(f"{self.path}: unknown key {short_quote(str(key))} ({way_out})")
