"""The constants that an answer in C or C++ declares, with those of their values that can be read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from steelyard.text import word_set
from steelyard.verifiers.command.allowed.native_types import comma_parts, joined
from steelyard.verifiers.command.allowed.tokens import Token, closing, text_at, tokens

_ENUM_VALUE_PATTERN = re.compile(r"(-?) ?(\w+)(?: << (\w+))?")
_TYPE_WORDS = word_set(
    "static const constexpr inline auto int long unsigned signed char double float size_t int32_t uint32_t int64_t uint64_t std string string_view"
)
"""The words of a declaration whose constants have the values that are written; others may cut them off, as `bool` does."""
_WIDE_WORDS = word_set("long size_t int64_t uint64_t")
_TYPE_KEYWORDS = word_set("struct class union enum namespace")
_NO_VARIABLE = word_set("using typedef friend return case goto break continue public private protected operator")


def equal_members(found: Sequence[Token], used: Collection[str]) -> str:
    """The first enumeration whose names the tests use and whose values are not plainly different; empty if there is none."""
    for parts, is_plain in _enumerations(found):
        if not any(part and part[0].text in used for part in parts):
            continue
        if not is_plain:
            return "an enum of bool"
        values = _member_values(parts)
        if values is None or len(set(values.values())) < len(values):
            return "an enum whose values are not plainly different"
    return ""


def native_members(found: Sequence[Token]) -> dict[str, str]:
    """The members of enumerations by name, with what they are compared by."""
    read = [_member_values(parts) or {} for parts, _ in _enumerations(found)]
    return {name: str(value) for values in read for name, value in values.items()}


def native_constants(found: Sequence[Token], macros: Mapping[str, str]) -> dict[str, set[str]]:
    """By name, what an answer gives to macros and to variables outside of functions; an empty text where it is not plain."""
    values: dict[str, set[str]] = {}
    for name, text in macros.items():
        written = tokens(text, "c")
        while len(written) > 1 and text_at(written, 0) == "(" and closing(written, 0) == len(written) - 1:
            written = written[1:-1]
        values.setdefault(name, set()).add(_plain_value(["auto"], written))
    for name, value in _variables(found):
        values.setdefault(name, set()).add(value)
    for name in _changed(found) & set(values):
        values[name].add("")
    return values


def _enumerations(found: Sequence[Token]) -> Iterator[tuple[list[Sequence[Token]], bool]]:
    """The members of each enumeration, and whether all numbers can be their values."""
    for place, token in enumerate(found):
        if token.kind != "name" or token.text != "enum":
            continue
        opening = next((at for at in range(place, len(found)) if found[at].text in ("{", ";", "(", ")", "=")), place)
        if text_at(found, opening) == "{":
            parts = list(comma_parts(found, opening + 1, closing(found, opening), brackets="()[]{}"))
            yield parts, all(each.text != "bool" for each in found[place:opening])


def _member_values(parts: Sequence[Sequence[Token]]) -> dict[str, int] | None:
    """The values of an enumeration by name; None if one of them is not plainly a number."""
    values: dict[str, int] = {}
    following = 0
    for part in parts:
        if text_at(part, 1) == "=":
            value = _whole_value(part[2:])
            if value is None:
                return None
            following = value
        if part:
            values[part[0].text] = following
        following += 1
    return values


def _whole_value(written: Sequence[Token]) -> int | None:
    if len(written) == 1 and written[0].kind == "text" and len(written[0].text) == 1:
        return ord(written[0].text)
    read = _ENUM_VALUE_PATTERN.fullmatch(joined(written).replace("< <", "<<"))
    try:
        return int(read[1] + read[2].rstrip("uUlL"), 0) << int((read[3] or "0").rstrip("uUlL"), 0) if read else None
    except ValueError:
        return None


def _plain_value(type_words: Collection[str], written: Sequence[Token]) -> str:
    """A value as it is compared; empty if that cannot be read, or if the type may cut it off."""
    words, text = set(type_words), joined(written).replace(" ", "")
    if words - _TYPE_WORDS - {"*", "::"}:
        return ""
    is_text = {"*", "string", "string_view"} & words or (len(written) == 1 and len(text) != 1)
    if len(written) == 1 and written[0].kind == "text" and is_text:
        return f'"{text}"' if "\\" not in text else ""
    value: float | None = _whole_value(written)
    if value is None and re.fullmatch(r"-?[\d.]+(?:[eE][-+]?\d+)?[fFlL]?", text):
        value = float(text.rstrip("fFlL"))
    if value is None:
        return ""
    if value % 1:
        return f"{value:.6g}" if {"double", "float", "auto"} & words else ""
    is_short = "float" in words or re.fullmatch(r"[\d.eE+-]+[fF]", text)
    bits = 7 if "char" in words else 19 if is_short else 63 if _WIDE_WORDS & words else 31
    return str(int(value)) if abs(value) < 2**bits else ""


def _variables(found: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """The variables outside of functions, and those of types that belong to no object, with their plain values."""
    scopes: list[str] = []
    place = begin = 0
    while place < len(found):
        text = text_at(found, place)
        head = [each.text for each in found[begin:place] if each.kind != "text"]
        if text in ("(", "["):
            place = closing(found, place)
        elif text == "{":
            is_type = bool(_TYPE_KEYWORDS & set(head)) and "(" not in head and "=" not in head
            if (is_type and "enum" not in head) or head == ["extern"]:
                is_space = "namespace" in head or head == ["extern"]
                scopes.append("namespace" if is_space else "typedef" if "typedef" in head else "type")
                begin = place + 1
            else:
                place = closing(found, place)
                if is_type and "typedef" not in head:
                    yield from _declared_after(found, place)
                if is_type or ("(" in head and "=" not in head):
                    begin = place + 1
        elif text in (";", "}") or (text == ":" and head[-1:] in (["public"], ["private"], ["protected"])):
            yield from _declared(found[begin:place], is_in_type=bool(scopes) and scopes[-1] != "namespace")
            if text == "}" and scopes and scopes.pop() == "type":
                yield from _declared_after(found, place)
            begin = place + 1
        place += 1


def _declared_after(found: Sequence[Token], place: int) -> Iterator[tuple[str, str]]:
    """What has the type whose members end at a place."""
    end = next((at for at in range(place, len(found)) if text_at(found, at) in (";", "{")), place)
    yield from ((each.text, "") for each in found[place:end] if each.kind == "name")


def _declared(statement: Sequence[Token], *, is_in_type: bool) -> Iterator[tuple[str, str]]:
    words = {token.text for token in statement if token.kind == "name"}
    if _NO_VARIABLE & words or (is_in_type and "static" not in words):
        return
    while text_at(statement, 0) == "[":
        statement = statement[closing(statement, 0) + 1 :]
    first: list[str] = []
    for part in comma_parts(statement, 0, len(statement)):
        at = next((n for n in range(len(part)) if text_at(part, n) in ("=", "{", "[", "(", ":")), len(part))
        if text_at(part, at) == "(" or not at or part[at - 1].kind != "name":
            # a value in brackets, unless it is a function that takes what has a type
            if not {"void", *_TYPE_WORDS} & {token.text for token in part[at:]}:
                yield from ((token.text, "") for token in part if token.kind == "name")
            continue
        start = at - 3 if text_at(part, at - 2) == "::" else at - 1
        first = first or [token.text for token in part[: max(start, 0)]]
        value = part[at + 1 : len(part) - (text_at(part, at) == "{")]
        yield part[at - 1].text, _plain_value(first, value) if text_at(part, at) in ("=", "{") else ""


def _changed(found: Sequence[Token]) -> set[str]:
    """The names whose variables code counts up or sets anew."""
    changed = set()
    members = {id(part[0]) for parts, _ in _enumerations(found) for part in parts if part}
    for place, token in enumerate(found):
        before, after = text_at(found, place - 1), text_at(found, place + 1)
        is_set = after == "=" and before in ("", ";", "{", "}", ")", "=", "::", "(", "?", ":")
        is_set = is_set or (after.endswith("=") and len(after) > 1 and after not in ("==", "!=", "<=", ">="))
        is_set = is_set or after in ("++", "--") or before in ("++", "--")
        if token.kind == "name" and is_set and id(token) not in members:
            changed.add(token.text)
    return changed
