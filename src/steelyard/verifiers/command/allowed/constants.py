"""Whether the constants that a prompt asks for and tests use have plainly different values, so that a comparison of them says something."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.tokens import Token, UnreadableCodeError, closing, text_at, tokens

_CONSTANT_PATTERN = re.compile(r"[A-Z][A-Z0-9_]+")
_ENDS = frozenset((",", ";", "}", ")", ""))


def equal_constants_of(found: Sequence[Token], asked: AskedNames, language: str) -> str:
    """The first constant that tests use and whose value is not plainly its own; empty if there is none."""
    try:
        used = {token.text for token in tokens(asked.tests, language) if token.kind == "name"}
    except UnreadableCodeError:
        used = asked.test_words
    named = {name for name in used & asked.words if _CONSTANT_PATTERN.fullmatch(name)}
    own = {token.text for token in found if token.kind == "name"}
    # what neither the answer nor its prompt has as a name of code is the library's, or a word
    named = {name for name in named if name in own or re.search(rf"\.\s*{name}\b", asked.tests)} - _library(asked.tests)
    named -= set(re.findall(r"\b(\w+)\s*\(", asked.tests))
    values = _values(found, named, is_macro=language in ("c", "cpp"))
    members = _members(found)
    if strange := sorted(named - set(values) - members):
        return f"{strange[0]} without a plain value"
    plain = [values[name] for name in sorted(values)]
    return "constants with one value" if len(set(plain)) < len(plain) else ""


def _library(tests: str) -> set[str]:
    """The constants of the language's own objects that tests use, such as `Math.PI`."""
    named = re.findall(r"\b(?:Math|Number|Integer|Long|Double|Character|Float|System)\s*\.\s*([A-Z][A-Z0-9_]+)", tests)
    return set(named) | {"STEELYARD_END_OF_TESTS", "NULL", "EOF", "JSON", "URL", "INT_MAX", "INT_MIN"}


def _values(found: Sequence[Token], named: set[str], *, is_macro: bool) -> dict[str, str]:
    values: dict[str, str] = {}
    for place, token in enumerate(found):
        if token.text not in named or token.kind not in ("name", "text"):
            continue
        at = place + 2 if text_at(found, place + 1) in ("=", ":") and text_at(found, place - 1) != "?" else place + 1
        sign = "-" if text_at(found, at) == "-" else ""
        at += len(sign)
        if at >= len(found) or (at < place + 2 and not is_macro):
            continue
        value = found[at]
        is_symbol = value.text == "Symbol" and text_at(found, at + 1) == "("
        if is_symbol and text_at(found, closing(found, at + 1) + 1) in _ENDS | {"export", "const"}:
            values[token.text] = f"symbol {token.text}"
        elif value.kind in ("number", "text") and (is_macro or _ends(found, at + 1)):
            values[token.text] = f"{value.kind} {sign}{_number(value.text) if value.kind == 'number' else value.text}"
    return values


def _ends(found: Sequence[Token], place: int) -> bool:
    return place >= len(found) or (
        found[place].kind != "text" and (found[place].text in _ENDS or found[place].kind == "name")
    )


def _number(text: str) -> str:
    try:
        return str(int(text.rstrip("uUlLn"), 0))
    except ValueError:
        return text


def _members(found: Sequence[Token]) -> set[str]:
    """The members of enumerations, which are looked at elsewhere or are always different."""
    names: set[str] = set()
    for place, token in enumerate(found):
        if token.text == "enum" and token.kind == "name":
            opening = next((at for at in range(place, len(found)) if text_at(found, at) in ("{", ";", "(")), len(found))
            if text_at(found, opening) == "{":
                names |= {each.text for each in found[opening : closing(found, opening)] if each.kind == "name"}
    return names
