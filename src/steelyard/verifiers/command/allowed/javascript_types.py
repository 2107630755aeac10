"""Whether the classes and constants that tests take from an answer in JavaScript carry what they are compared by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from steelyard.text import word_set
from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.constants import equal_constants_of
from steelyard.verifiers.command.allowed.tokens import Token, text_at

_ERROR_CLASS_PATTERN = re.compile(
    r"\b(?:throws|rejects|doesNotThrow)\s*\((?:[^;]*?),\s*([A-Z]\w*)\s*[,)]|\.toThrow\w*\(\s*([A-Z]\w*)|\binstanceof\s+([A-Z]\w*)"
)
"""A class by which tests know an error or an object."""
_LANGUAGE_ERRORS = frozenset(
    ("Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "URIError", "EvalError")
)
_VALUE_ENDS = word_set(", ; } ) export const let var function class") | {""}
_EMPTY_VALUES = frozenset(("undefined", "null", "void", "NaN"))


def unlisted_type(found: Sequence[Token], asked: AskedNames) -> str:
    """The first class or constant that tests take from an answer and that says nothing; empty if there is none."""
    declared = {
        text_at(found, at + 1) for at, token in enumerate(found) if token.text == "class" and token.kind == "name"
    }
    named = {name for names in _ERROR_CLASS_PATTERN.findall(asked.tests) for name in names if name}
    for name in sorted((named & asked.words) - _LANGUAGE_ERRORS):
        if any(token.text == name for token in found) and (name not in declared or _is_renamed(found, name)):
            return f"{name}, which is not a class of its own"
    return _equal_constants(found, asked) or equal_constants_of(found, asked, "javascript")


def _is_renamed(found: Sequence[Token], name: str) -> bool:
    """Whether something else is exported under a name."""
    for place, token in enumerate(found):
        if token.text != name or token.kind != "name":
            continue
        before, after, value = text_at(found, place - 1), text_at(found, place + 1), text_at(found, place + 2)
        if before == "as" or (after in ("=", ":") and value not in (name, "class")):
            return True
    return False


def _equal_constants(found: Sequence[Token], asked: AskedNames) -> str:
    """Constants that tests use and that have the same value, or none."""
    values: dict[str, str] = {}
    for name, value in _constants(found, asked.test_words):
        if value in _EMPTY_VALUES or not value:
            return f"{name} without a value"
        if values.setdefault(value, name) != name:
            return f"{values[value]} and {name} with one value"
        values[name] = name
    return ""


def _constants(found: Sequence[Token], used: set[str]) -> Iterator[tuple[str, str]]:
    """The capitalised names that are given a single word, number or text."""
    for place, token in enumerate(found):
        if token.kind not in ("name", "text") or not token.text[:1].isupper() or token.text not in used:
            continue
        after, before = text_at(found, place + 1), text_at(found, place - 1)
        if (after == "=" or (after == ":" and before in ("{", ","))) and place + 2 < len(found):
            value = found[place + 2]
            if text_at(found, place + 3) in _VALUE_ENDS:
                yield token.text, f"'{value.text}'" if value.kind == "text" else value.text
            elif value.text == "void" and value.kind == "name":
                yield token.text, "void"
        elif after in (";", ",") and before in ("let", "var"):
            yield token.text, ""
