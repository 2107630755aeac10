"""Checks of a response that is to be JSON, to the letter of RFC 8259."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.errors import VerifierError
from steelyard.records import Evidence
from steelyard.verifiers.response.fences import blocks
from steelyard.verifiers.response.judged import FAIL, PASS, WRONG_FORMAT, Judged, evidence, judged
from steelyard.verifiers.response.schema import Schema, TooMuchError, schema
from steelyard.verifiers.response.table import Table
from steelyard.verifiers.response.unicode import quoted

DEEPEST = 100
"""Levels of nesting that are read; RFC 8259, section 9, lets a reader set such limits."""
LONGEST_NUMBER = 300
"""Digits of a number that are read."""
MENDABLE = 1 << 20
"""Characters up to which mending is tried."""

BLANKS = " \t\n\r"
# every alternative matches whatever follows and never backtracks, so that no text can make scanning slow
BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
KEY = re.compile(r'("(?:[^"\\]++|\\.)*+")([ \t\n\r]*+:)?|[{}]', re.DOTALL)
LOOSE = re.compile(
    r"""(?P<double>"(?:[^"\\\n]++|\\.)*+"?)|(?P<single>'(?:[^'\\\n]++|\\.)*+'?)"""
    r"""|(?P<comment>//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?|\#[^\n]*+)|(?P<comma>,(?=[ \t\n\r]*+[\]}]))"""
    r"""|(?<![A-Za-z0-9_$])(?:(?P<word>True|False|None|undefined)\b|(?P<key>[A-Za-z_$][A-Za-z0-9_$]*+)(?=[ \t]*+:))""",
    re.DOTALL,
)
WORDS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}


class Fault(NamedTuple):
    """Where and why a text is no JSON."""

    position: int
    what: str


class _DuplicateError(ValueError):
    """An object names a key twice."""


class _NumberError(ValueError):
    """A number, or what stands for one, that JSON does not have or we do not read."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise _DuplicateError
    return table


def _constant(word: str) -> Any:
    raise _NumberError(f"{word} is no JSON", word)


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise _NumberError(f"a number of more than {LONGEST_NUMBER} digits", digits)
    return int(digits)


def _broken(digits: str) -> float:
    value = float(digits) if len(digits) <= LONGEST_NUMBER else float("inf")
    if value in (float("inf"), float("-inf")):
        raise _NumberError("a number too long or too large to be read", digits)
    return value


DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_int=_whole, parse_float=_broken, strict=True
)


def parsed(text: str, deepest: int = DEEPEST) -> Any | Fault:
    """The value of a JSON text, or the fault in it: the same on every version of Python."""
    if text.count("[") + text.count("{") > deepest and (position := _too_deep(text, deepest)) is not None:
        return Fault(position, f"nested more than {deepest} levels deep")
    start = len(text) - len(text.lstrip(BLANKS))
    try:
        value, end = DECODER.raw_decode(text, start)
    except _DuplicateError:
        return _duplicate(text)
    except _NumberError as error:
        what, digits = error.args
        return Fault(_outside_strings(text, digits), what)
    except json.JSONDecodeError as error:
        return _fault(text, error)
    rest = text[end:].lstrip(BLANKS)
    return Fault(len(text) - len(rest), "text after the value") if rest else value


def _too_deep(text: str, deepest: int) -> int | None:
    depth = 0
    for match in BRACKET.finditer(text):
        sign = match[0]
        if sign in "[{":
            depth += 1
            if depth > deepest:
                return match.start()
        elif sign in "]}":
            depth -= 1
    return None


def _duplicate(text: str) -> Fault:
    """The first key that its object has already."""
    objects: list[set[str]] = []
    for match in KEY.finditer(text):
        if match[0] == "{":
            objects.append(set())
        elif match[0] == "}":
            objects.pop()
        elif match[2]:
            key = DECODER.decode(match[1])
            if key in objects[-1]:
                return Fault(match.start(), f'the key "{quoted(key)}" stands twice in one object')
            objects[-1].add(key)
    return Fault(0, "a key stands twice in one object")


def _outside_strings(text: str, digits: str) -> int:
    """Where a number or word stands, strings not counted."""
    end = 0
    for match in BRACKET.finditer(text):
        if match[0][0] == '"':
            if (start := text.find(digits, end, match.start())) >= 0:
                return start
            end = match.end()
    return max(text.find(digits, end), 0)


def _fault(text: str, error: json.JSONDecodeError) -> Fault:
    """The reader's error in our words, which do not change with the version of Python."""
    position, said = min(error.pos, len(text)), error.msg
    if said.startswith("Unterminated string"):
        return Fault(position, "a string that does not end")
    if said.startswith("Invalid control character") and position < len(text):
        return Fault(position, f"U+{ord(text[position]):04X} within a string, where it must be escaped")
    if said.startswith("Invalid \\"):
        return Fault(position, "an escape that JSON does not have")
    if said.startswith("Illegal trailing comma"):
        # Python 3.13 points at the comma, others behind it
        position += 1
    while position < len(text) and text[position] in BLANKS:
        position += 1
    before = text[:position].rstrip(BLANKS)[-1:]
    if position >= len(text):
        return Fault(position, "the reply is empty" if not text.strip(BLANKS) else "the text ends too early")
    if before == "," and text[position] in "]}":
        return Fault(position, "a comma with nothing after it")
    if text[position] == "'":
        return Fault(position, "single quotes, where JSON has double quotes")
    return Fault(position, f'unexpected "{quoted(text[position])}"')


def mended(text: str) -> tuple[str, ...]:
    """What a simple repair would have to do to make this JSON; nothing when that would not help."""
    if len(text) > MENDABLE:
        return ()
    done: list[str] = []
    body = text
    if found := blocks(text):
        if len(found) > 1:
            return ()
        body = found[0].body
        done.append("fence")
        if not isinstance(parsed(body), Fault):
            return tuple(done)
    starts = [start for start in (body.find("{"), body.find("[")) if start >= 0]
    end = max(body.rfind("}"), body.rfind("]")) + 1
    if not starts or min(starts) >= end:
        return ()
    cut = body[min(starts) : end]
    if cut != body.strip(BLANKS):
        done.append("text around it")
        if not isinstance(parsed(cut), Fault):
            return tuple(done)
    body = cut
    body = _tightened(body, done)
    return () if isinstance(parsed(body), Fault) else tuple(dict.fromkeys(done))


def _tightened(text: str, done: list[str]) -> str:
    """The text with loose spellings replaced by those of JSON; what was replaced is added to `done`."""

    def spelled(match: re.Match[str]) -> str:
        kind, said = match.lastgroup, match[0]
        if kind == "single" and len(said) > 1 and said[-1] == "'":
            done.append("single quotes")
            inner = said[1:-1].replace("\\'", "'")
            return '"' + re.sub(r'(\\.)|"', lambda part: part[1] or '\\"', inner, flags=re.DOTALL) + '"'
        if kind == "comment":
            done.append("comment")
            return ""
        if kind == "comma":
            done.append("trailing comma")
            return ""
        if kind == "word":
            done.append(f"the word {said}")
            return WORDS[said]
        if kind == "key":
            done.append("unquoted key")
            return f'"{said}"'
        return said

    return LOOSE.sub(spelled, text)


@dataclass(frozen=True)
class Json:
    """The reply is one JSON value, and meets the schema if there is one."""

    rule: str
    fenced: bool
    schema: Schema | None

    def judge(self, text: str) -> Judged:
        start, body = 0, text
        if self.fenced and (found := blocks(text)):
            if len(found) > 1:
                return self._malformed(text, Fault(found[1].start, "a second fenced block, where one is permitted"))
            start, body = found[0].start, found[0].body
        value = parsed(body, self.schema.deepest if self.schema else DEEPEST)
        if isinstance(value, Fault):
            return self._malformed(text, value._replace(position=start + value.position))
        if self.schema:
            try:
                unmet = self.schema.unmet(value, len(text))
            except TooMuchError:
                what = "holding the reply against the schema takes too many steps"
                return judged(FAIL, Evidence(rule=self.rule, what=what))
            if unmet:
                said = Evidence(rule=self.rule, what=unmet.what, schema_path=unmet.schema, value_path=unmet.value)
                return judged(FAIL, said)
        what = "the reply is JSON" + (" that meets the schema" if self.schema else "")
        return judged(PASS, evidence(self.rule, what, text, start, start + len(body)))

    def _malformed(self, text: str, fault: Fault) -> Judged:
        said = evidence(self.rule, f"no JSON: {fault.what}", text, fault.position, fault.position + 20)
        return judged(WRONG_FORMAT, replace(said, mended=mended(text)))


def json_check(table: Table) -> Json:
    """Strict JSON, in one fenced block if that is permitted, with a JSON Schema if there is one."""
    given = table.take("schema")
    try:
        known = None if given is None else schema(given)
    except ValueError as error:
        raise VerifierError(f"{table.path}.schema: {error}") from None
    return Json(table.path, table.flag("fenced"), known)
