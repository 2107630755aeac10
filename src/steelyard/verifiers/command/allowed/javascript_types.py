"""Whether the classes and constants that tests take from an answer in JavaScript carry what they are compared by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.constants import equal_constants_of
from steelyard.verifiers.command.allowed.tokens import Token, closing, text_at

_ERROR_CLASS_PATTERN = re.compile(
    r"\b(?:throws|rejects|doesNotThrow)\s*\((?:[^;]*?),\s*([A-Z]\w*)\s*[,)]|\.toThrow\w*\(\s*([A-Z]\w*)|\binstanceof\s+([A-Z]\w*)"
)
"""A class by which tests know an error or an object."""
_LANGUAGE_ERRORS = frozenset(
    ("Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "URIError", "EvalError")
)
_DEEP_LINE_PATTERN = re.compile(r"(?:[dD]eep\w*(?:\.\w+)?|\.to(?:Strict)?Equal)\s*\([^;]*")
_MADE_PATTERN = re.compile(r"(?:\b(\w+)\s*=\s*)?\bnew\s+([A-Z]\w*)")
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
    compared = _compared_classes(asked.tests) & declared
    for place, token in enumerate(found):
        if token.text == "class" and text_at(found, place + 1) in compared and not _keeps_arguments(found, place):
            return f"class {text_at(found, place + 1)}, which does not keep what it is made of"
    return _equal_constants(found, asked) or equal_constants_of(found, asked, "javascript")


def _compared_classes(tests: str) -> set[str]:
    """The classes of which tests compare objects field by field."""
    lines = "\n".join(_DEEP_LINE_PATTERN.findall(tests))
    words = set(re.findall(r"\w+", lines))
    return {name for variable, name in _MADE_PATTERN.findall(tests) if variable in words} | {
        name for _, name in _MADE_PATTERN.findall(lines)
    }


def _is_renamed(found: Sequence[Token], name: str) -> bool:
    """Whether something else is exported under a name."""
    for place, token in enumerate(found):
        if token.text != name or token.kind != "name":
            continue
        before, after, value = text_at(found, place - 1), text_at(found, place + 1), text_at(found, place + 2)
        if before == "as" or (after in ("=", ":") and value not in (name, "class")):
            return True
    return False


def _keeps_arguments(found: Sequence[Token], place: int) -> bool:
    """Whether the constructor of a class does nothing but set each parameter as a field of its own."""
    opening = next((at for at in range(place, len(found)) if text_at(found, at) == "{"), len(found))
    end = closing(found, opening) if opening < len(found) else len(found)
    begin = next((at for at in range(opening, end) if text_at(found, at) == "constructor"), end)
    if begin == end or text_at(found, begin + 1) != "(":
        return False
    inside = closing(found, begin + 1)
    parameters = {
        found[at].text
        for at in range(begin + 2, inside)
        if found[at].kind == "name" and text_at(found, at - 1) in ("(", ",", "...")
    }
    body = range(inside + 2, closing(found, inside + 1)) if text_at(found, inside + 1) == "{" else range(0)
    kept = {
        text_at(found, at + 4)
        for at in body
        if text_at(found, at) == "this"
        and [text_at(found, at + step) for step in (1, 3)] == [".", "="]
        and text_at(found, at + 2)[:1] not in ("#", "")
        and text_at(found, at + 5) in (";", "}", ",", "this")
    }
    fields = [text_at(found, at + 2) for at in body if text_at(found, at) == "this" and text_at(found, at + 1) == "."]
    return bool(parameters) and parameters <= kept and len(set(fields)) == len(fields)


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
            if text_at(found, place + 3) in (
                ",",
                ";",
                "}",
                ")",
                "",
                "export",
                "const",
                "let",
                "var",
                "function",
                "class",
            ):
                yield token.text, f"'{value.text}'" if value.kind == "text" else value.text
            elif value.text == "void" and value.kind == "name":
                yield token.text, "void"
        elif after in (";", ",") and before in ("let", "var"):
            yield token.text, ""
