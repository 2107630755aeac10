"""Checks of a response that must be JSON, to the letter of RFC 8259."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import replace

from steelyard.errors import VerifierError
from steelyard.records import Evidence
from steelyard.verifiers.response.judged import (
    FAIL,
    PASS,
    WRONG_FORMAT,
    CheckTable,
    ResponseCheckResult,
    check_result,
    evidence,
)
from steelyard.verifiers.response.schema import CompiledJsonSchema, SchemaTooCostlyError, compile_schema
from steelyard.verifiers.response.text import fenced_texts
from steelyard.verifiers.response.unicode import printable_excerpt

MAX_JSON_NESTING = 100
"""Levels of nesting that are read; RFC 8259, section 9, lets a reader set such limits."""
MAX_JSON_NUMBER_DIGITS = 300
"""Digits of a number that are read."""
MAX_REPAIRABLE_JSON_CHARACTERS = 1 << 20
"""Characters up to which mending is tried."""

JSON_WHITESPACE = " \t\n\r"
# every alternative matches whatever follows and never backtracks, so that no text can make scanning slow
JSON_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
JSON_KEY_OR_BRACE = re.compile(r'("(?:[^"\\]++|\\.)*+")([ \t\n\r]*+:)?|[{}]', re.DOTALL)
LOOSE_JSON_TOKEN = re.compile(
    r"""(?P<double>"(?:[^"\\\n]++|\\.)*+"?)|(?P<single>'(?:[^'\\\n]++|\\.)*+'?)"""
    r"""|(?P<comment>//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?|\#[^\n]*+)|(?P<comma>,(?=[ \t\n\r]*+[\]}]))"""
    r"""|(?<![A-Za-z0-9_$])(?:(?P<word>True|False|None|undefined)\b|(?P<key>[A-Za-z_$][A-Za-z0-9_$]*+)(?=[ \t]*+:))""",
    re.DOTALL,
)
JSON_LITERAL_SPELLINGS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}


class JsonParseFault(NamedTuple):
    """Where and why a text is not JSON."""

    position: int
    what: str


class _DuplicateKeyError(ValueError):
    """An object names a key twice."""


class _JsonNumberError(ValueError):
    """A number, or a word for one, that JSON does not have or we do not read."""


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise _DuplicateKeyError
    return table


def _reject_constant(word: str) -> Any:
    raise _JsonNumberError(f"{word} is not JSON", word)


def _parse_integer(digits: str) -> int:
    if len(digits) > MAX_JSON_NUMBER_DIGITS:
        raise _JsonNumberError(f"a number of more than {MAX_JSON_NUMBER_DIGITS} digits", digits)
    return int(digits)


def _parse_float(digits: str) -> float:
    value = float(digits) if len(digits) <= MAX_JSON_NUMBER_DIGITS else float("inf")
    if value in (float("inf"), float("-inf")):
        raise _JsonNumberError("a number that is too long or too large to be read", digits)
    return value


STRICT_JSON_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_without_duplicates,
    parse_constant=_reject_constant,
    parse_int=_parse_integer,
    parse_float=_parse_float,
    strict=True,
)


def parse_json(text: str) -> Any | JsonParseFault:
    """The value of a JSON text, or the fault in it: the same on every version of Python."""
    if text.count("[") + text.count("{") > MAX_JSON_NESTING and (position := _too_deep(text)) is not None:
        return JsonParseFault(position, f"nested more than {MAX_JSON_NESTING} levels deep")
    start = len(text) - len(text.lstrip(JSON_WHITESPACE))
    try:
        value, end = STRICT_JSON_DECODER.raw_decode(text, start)
    except _DuplicateKeyError:
        return _duplicate(text)
    except _JsonNumberError as error:
        what, digits = error.args
        return JsonParseFault(_outside_strings(text, digits), what)
    except json.JSONDecodeError as error:
        return _fault(text, error)
    rest = text[end:].lstrip(JSON_WHITESPACE)
    return JsonParseFault(len(text) - len(rest), "text after the value") if rest else value


def _too_deep(text: str) -> int | None:
    depth = 0
    for match in JSON_STRING_OR_BRACKET.finditer(text):
        sign = match[0]
        if sign in "[{":
            depth += 1
            if depth > MAX_JSON_NESTING:
                return match.start()
        elif sign in "]}":
            depth -= 1
    return None


def _duplicate(text: str) -> JsonParseFault:
    """The first key that its object has already."""
    objects: list[set[str]] = []
    for match in JSON_KEY_OR_BRACE.finditer(text):
        if match[0] == "{":
            objects.append(set())
        elif match[0] == "}":
            objects.pop()
        elif match[2]:
            key = STRICT_JSON_DECODER.decode(match[1])
            if key in objects[-1]:
                return JsonParseFault(match.start(), f'the key "{printable_excerpt(key)}" appears twice in one object')
            objects[-1].add(key)
    return JsonParseFault(0, "a key appears twice in one object")


def _outside_strings(text: str, digits: str) -> int:
    """Where a number or word stands, strings not counted."""
    end = 0
    for match in JSON_STRING_OR_BRACKET.finditer(text):
        if match[0][0] == '"':
            if (start := text.find(digits, end, match.start())) >= 0:
                return start
            end = match.end()
    return max(text.find(digits, end), 0)


def _fault(text: str, error: json.JSONDecodeError) -> JsonParseFault:
    """The reader's error in our words, which do not change with the version of Python."""
    position, detail = min(error.pos, len(text)), error.msg
    if detail.startswith("Unterminated string"):
        return JsonParseFault(position, "a string that does not end")
    if detail.startswith("Invalid control character") and position < len(text):
        return JsonParseFault(position, f"U+{ord(text[position]):04X} within a string, where it must be escaped")
    if detail.startswith("Invalid \\"):
        return JsonParseFault(position, "an escape that JSON does not have")
    if detail.startswith("Illegal trailing comma"):
        # Python 3.13 points at the comma, others behind it
        position += 1
    while position < len(text) and text[position] in JSON_WHITESPACE:
        position += 1
    before = text[:position].rstrip(JSON_WHITESPACE)[-1:]
    if position >= len(text):
        return JsonParseFault(
            position, "the reply is empty" if not text.strip(JSON_WHITESPACE) else "the text ends too early"
        )
    if before == "," and text[position] in "]}":
        return JsonParseFault(position, "a comma with nothing after it")
    if text[position] == "'":
        return JsonParseFault(position, "single quotes, where JSON has double quotes")
    return JsonParseFault(position, f'unexpected "{printable_excerpt(text[position])}"')


def json_repairs(text: str) -> tuple[str, ...]:
    """What a simple repair would have to do to make this JSON; nothing when that would not help."""
    if len(text) > MAX_REPAIRABLE_JSON_CHARACTERS:
        return ()
    done: list[str] = []
    body = text
    if found := fenced_texts(text):
        if len(found) > 1:
            return ()
        body = found[0].body
        done.append("fence")
        if not isinstance(parse_json(body), JsonParseFault):
            return tuple(done)
    starts = [start for start in (body.find("{"), body.find("[")) if start >= 0]
    end = max(body.rfind("}"), body.rfind("]")) + 1
    if not starts or min(starts) >= end:
        return ()
    cut = body[min(starts) : end]
    if cut != body.strip(JSON_WHITESPACE):
        done.append("text around it")
        if not isinstance(parse_json(cut), JsonParseFault):
            return tuple(done)
    body = cut
    body = _strict_json_text(body, done)
    return () if isinstance(parse_json(body), JsonParseFault) else tuple(dict.fromkeys(done))


def _strict_json_text(text: str, done: list[str]) -> str:
    """The text with loose spellings replaced by those of JSON; what was replaced is added to `done`."""

    def spelled(match: re.Match[str]) -> str:
        kind, detail = match.lastgroup, match[0]
        if kind == "single" and len(detail) > 1 and detail[-1] == "'":
            done.append("single quotes")
            inner = detail[1:-1].replace("\\'", "'")
            return '"' + re.sub(r'(\\.)|"', lambda part: part[1] or '\\"', inner, flags=re.DOTALL) + '"'
        if kind == "comment":
            done.append("comment")
            return ""
        if kind == "comma":
            done.append("trailing comma")
            return ""
        if kind == "word":
            done.append(f"the word {detail}")
            return JSON_LITERAL_SPELLINGS[detail]
        if kind == "key":
            done.append("unquoted key")
            return f'"{detail}"'
        return detail

    return LOOSE_JSON_TOKEN.sub(spelled, text)


@dataclass(frozen=True)
class JsonCheck:
    """The reply is one JSON value, and meets the schema if there is one."""

    rule: str
    fenced: bool
    schema: CompiledJsonSchema | None
    asks: ClassVar[bool] = True

    def judge(self, text: str) -> ResponseCheckResult:
        start, body = 0, text
        if self.fenced and (found := fenced_texts(text)):
            if len(found) > 1:
                return self._malformed(
                    text, JsonParseFault(found[1].start, "a second fenced block, where one is permitted")
                )
            start, body = found[0].start, found[0].body
        value = parse_json(body)
        if isinstance(value, JsonParseFault):
            return self._malformed(text, value._replace(position=start + value.position))
        if self.schema:
            try:
                unmet = self.schema.unmet(value, len(text))
            except SchemaTooCostlyError:
                what = "holding the reply against the schema takes too many steps"
                return check_result(FAIL, Evidence(rule=self.rule, what=what))
            if unmet:
                detail = Evidence(rule=self.rule, what=unmet.what, schema_path=unmet.schema, value_path=unmet.value)
                return check_result(FAIL, detail)
        what = "the reply is JSON" + (" that meets the schema" if self.schema else "")
        return check_result(PASS, evidence(self.rule, what, text, start, start + len(body)))

    def _malformed(self, text: str, fault: JsonParseFault) -> ResponseCheckResult:
        detail = evidence(self.rule, f"no JSON: {fault.what}", text, fault.position, fault.position + 20)
        return check_result(WRONG_FORMAT, replace(detail, mended=json_repairs(text)))


def json_check(table: CheckTable) -> JsonCheck:
    """Strict JSON, in one fenced block if that is permitted, with a JSON Schema if there is one."""
    given = table.take("schema")
    try:
        known = None if given is None else compile_schema(given)
    except ValueError as error:
        raise VerifierError(f"{table.path}.schema: {error}") from None
    return JsonCheck(table.path, table.flag("fenced"), known)
