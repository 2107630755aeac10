"""What a request asks for, read strictly: every value has its kind, its bounds and its way out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from steelyard.errors import did_you_mean
from steelyard.text import short_quote

MAX_QUERY_VALUE_CHARACTERS = 400
"""Characters of a value."""
MAX_QUERY_VALUES = 60
"""Values in one address."""


class ViewerRequestError(Exception):
    """A request that is answered by an error message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class QueryParameters:
    """The values of an address."""

    def __init__(self, query: str) -> None:
        try:
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_QUERY_VALUES, errors="strict")
        except UnicodeDecodeError:
            raise ViewerRequestError(400, "the address is not UTF-8") from None
        except ValueError:
            raise ViewerRequestError(400, f"an address has at most {MAX_QUERY_VALUES} values") from None
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            if len(name) > MAX_QUERY_VALUE_CHARACTERS or len(value) > MAX_QUERY_VALUE_CHARACTERS:
                raise ViewerRequestError(
                    400, f"a value in an address has at most {MAX_QUERY_VALUE_CHARACTERS} characters"
                )
            self._values.setdefault(name, []).append(value)

    def check(self, known: Collection[str], repeated: Collection[str] = ()) -> None:
        """Refuse parameters that the page does not read, and two values where one is meant."""
        for name, values in self._values.items():
            if name not in known and name not in repeated:
                raise ViewerRequestError(
                    400, f"unknown parameter {short_quote(name)} ({did_you_mean(name[:80], [*known, *repeated])})"
                )
            if len(values) > 1 and name not in repeated:
                raise ViewerRequestError(400, f'parameter "{name}" is given twice')

    def text(self, name: str) -> str:
        """What is given, or nothing."""
        return self._values.get(name, [""])[0]

    def texts(self, name: str) -> tuple[str, ...]:
        """All that is given, each once."""
        return tuple(dict.fromkeys(value for value in self._values.get(name, []) if value))

    def is_given(self, name: str) -> bool:
        """Whether the parameter is present, even if empty."""
        return name in self._values

    def flag(self, name: str) -> bool:
        """`1` for yes; nothing or `0` for no."""
        given = self.text(name)
        if given not in ("", "0", "1"):
            raise ViewerRequestError(400, f'"{name}" is 1 or 0, not {short_quote(given)}')
        return given == "1"

    def whole(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number within its bounds."""
        if not self.is_given(name):
            return default
        given = self.text(name)
        if not re.fullmatch(r"[0-9]{1,9}", given, re.ASCII) or not least <= int(given) <= most:
            raise ViewerRequestError(
                400, f'"{name}" is a whole number from {least} to {most}, not {short_quote(given)}'
            )
        return int(given)

    def share(self, name: str, default: float) -> float:
        """A number between 0 and 1, the ends left out."""
        if not self.is_given(name):
            return default
        given = self.text(name)
        if not re.fullmatch(r"0\.[0-9]{1,6}", given, re.ASCII) or not float(given):
            raise ViewerRequestError(
                400, f'"{name}" is a number between 0 and 1, such as 0.05, not {short_quote(given)}'
            )
        return float(given)

    def choice(self, name: str, known: Collection[str], default: str = "") -> str:
        """One of some words."""
        given = self.text(name)
        if not given:
            return default
        if given not in known:
            raise ViewerRequestError(
                400, f'"{name}" cannot be {short_quote(given)} ({did_you_mean(given[:80], known)})'
            )
        return given


def url_path(path: Sequence[str], values: Mapping[str, Any] | None = None, mark: str = "") -> str:
    """An address on this server; for all names it stays on this server.

    >>> url_path(["runs", "a/../b"], {"case": "<x>", "page": 2}, "pane")
    '/runs/a%2F..%2Fb?case=%3Cx%3E&page=2#pane'
    """
    where = "/" + "/".join(quote(piece, safe="", errors="surrogateescape") for piece in path)
    given = {name: value for name, value in (values or {}).items() if value not in ("", (), [])}
    asked = urlencode(given, doseq=True, errors="surrogateescape")
    return where + (f"?{asked}" if asked else "") + (f"#{mark}" if mark else "")
