"""Plain text: quoting it, counting nouns, making it harmless, and finding what is wrong with JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things.

    >>> counted(1, "case"), counted(2, "case"), counted(0, "reply", "replies")
    ('1 case', '2 cases', '0 replies')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def printable(text: str) -> str:
    """Text that no terminal obeys."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text)


def short_quote(text: str) -> str:
    """Somebody's text as a short quotation."""
    return f'"{printable(text[:80])}{"..." if len(text) > 80 else ""}"'


# What a model wrote is data: nothing below lets it command a terminal, a page, a spreadsheet or a reader's eye.

INVISIBLE_CHARACTER_PATTERN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Characters that act instead of being seen: controls, bidi overrides, invisible marks; not tab and newline."""

_INVISIBLE_RUN_PATTERN = re.compile(f"{INVISIBLE_CHARACTER_PATTERN.pattern}+")
MAX_COMBINING_MARKS = 8
"""Marks on one letter; no script needs as many, and a pile of them covers the lines above and below."""
_COMBINING_MARKS_PATTERN = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{"
    + str(MAX_COMBINING_MARKS + 1)
    + ",}"
)
SCANNED_CHARACTERS_PER_SHOWN = 20
"""The maximum characters of a text per character of a line."""
MAX_REASON_LINE_CHARACTERS = 2_000
"""Characters of a reason on one line, where the caller does not ask for fewer."""

_ANSI_COLOUR_PATTERN = re.compile("\x1b\\[[0-9;:]*m")


def plain(text: str) -> str:
    r"""The text with everything invisible made visible, and mere colour taken away.

    >>> plain("\x1b[31mred\x1b[0m \x1b]0;title\x07")
    'red ⟨U+001B⟩]0;title⟨U+0007⟩'
    """
    return _COMBINING_MARKS_PATTERN.sub(
        _trimmed_marks,
        _INVISIBLE_RUN_PATTERN.sub(_visible_code_points, _ANSI_COLOUR_PATTERN.sub("", text.replace("\r\n", "\n"))),
    )


def _trimmed_marks(match: re.Match[str]) -> str:
    return f"{match[0][:MAX_COMBINING_MARKS]}⟨{len(match[0]) - MAX_COMBINING_MARKS:,} more marks⟩"


def _visible_code_points(match: re.Match[str]) -> str:
    return "".join(map(_code_point, match[0]))


@cache
def _code_point(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


def line(text: str, limit: int | None = None) -> str:
    """The same on a single line, cut to a limit."""
    # only the beginning of a long text is read, even if it is blank
    begun = text if limit is None else text[: SCANNED_CHARACTERS_PER_SHOWN * limit]
    joined = " ".join(plain(begun).split())
    if limit is None or (len(joined) <= limit and len(begun) == len(text)):
        return joined
    return joined[: limit - 1].rstrip() + "…"


def escaped_json(text: str) -> str:
    """JSON in which everything invisible is written as an escape: some of it may stand raw, and a terminal obeys it."""
    return INVISIBLE_CHARACTER_PATTERN.sub(lambda match: json.dumps(match[0])[1:-1], text)


# Where a JSON text is broken.

JSON_ESCAPE_PATTERN = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""The escapes in a JSON text; those that are half of a surrogate pair, which is not text, are group 1."""


class JsonErrorLocation(NamedTuple):
    """Where a JSON text is broken, and how."""

    line: int
    """Lines of the text before it."""
    column: int
    """From 1, in characters."""
    what: str
    has_extra_value: bool = False
    """Whether the text is whole and something follows it."""


def json_error_location(raw: bytes, error: Exception) -> JsonErrorLocation:
    r"""What was wrong with a JSON text that could not be decoded, where a person would look for it.

    >>> import msgspec
    >>> for raw in (b'{"a": 1} {"b": 2}', b'{"a": 1}\n{"a"', b'["\\ud800"]'):
    ...     try:
    ...         msgspec.json.decode(raw)
    ...     except msgspec.DecodeError as error:
    ...         print(json_error_location(raw, error))
    JsonErrorLocation(line=0, column=10, what='a second value after the first; put each on its own line', has_extra_value=True)
    JsonErrorLocation(line=1, column=1, what='a second value after the first; put each on its own line', has_extra_value=True)
    JsonErrorLocation(line=0, column=3, what='half of a surrogate pair, which is not text', has_extra_value=False)
    """
    import msgspec

    at, what = 0, f"{str(error).partition(' - at ')[0]}; write such a number as text"
    has_extra_value = False
    if isinstance(error, UnicodeDecodeError):
        what = "not UTF-8 text; save the file as UTF-8"
        try:
            raw.decode()
        except UnicodeDecodeError as invalid:
            at = invalid.start  # that of msgspec counts from the beginning of a string within the text
    elif isinstance(error, RecursionError):
        what = "nested too deeply to be read; nest lists and objects less deeply"
    elif not isinstance(error, msgspec.ValidationError):
        place = re.search(r"\(byte (\d+)\)", str(error))
        at = int(place[1]) if place else len(raw)
        what = str(error).partition(" (byte ")[0]
        if has_extra_value := "trailing characters" in what:
            at, what = at - 1, "a second value after the first; put each on its own line"
        elif half := next((match for match in JSON_ESCAPE_PATTERN.finditer(raw) if match[1]), None):
            at, what = half.start(), "half of a surrogate pair, which is not text"
        elif re.match(rb"-?(?:NaN|Infinity)", raw[at : at + 9]):
            what = "NaN and Infinity are not JSON; write null, or leave the key out"
    column = len(raw[raw.rfind(b"\n", 0, at) + 1 : at].decode(errors="replace")) + 1
    return JsonErrorLocation(raw.count(b"\n", 0, at), column, what, has_extra_value)


# Code in a reply that is judged as it stands.

VERBATIM_FENCE_MARK = " verbatim"


def verbatim_reply(code: str, language: str) -> str:
    """The code as a reply that is marked to be taken verbatim.

    >>> print(verbatim_reply("    return 1", "python"), end="")
    ```python verbatim
        return 1
    ```
    """
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}{VERBATIM_FENCE_MARK}\n{code}\n{fence}\n"


def verbatim_code(text: str) -> str | None:
    """The code of a reply that was marked, to the letter; None for any other reply."""
    head, _, rest = text.partition("\n")
    fence = head[: len(head) - len(head.lstrip("`"))]
    ending = f"\n{fence}\n"
    if len(fence) < 3 or not head.endswith(VERBATIM_FENCE_MARK) or not rest.endswith(ending):
        return None
    return rest[: -len(ending)]


def word_set(text: str) -> frozenset[str]:
    """The words of a text, for tables of names that would be long as lists.

    >>> sorted(word_set("min max"))
    ['max', 'min']
    """
    return frozenset(text.split())


def most_frequent(reasons: Iterable[str]) -> str:
    """The reason given most often, the smallest of ties, with its count when there were several.

    >>> most_frequent(["wrong answer", "time limit", "wrong answer"])
    '2x wrong answer'
    """
    counts = Counter(reasons)
    if not counts:
        return ""
    reason = min(counts, key=lambda reason: (-counts[reason], reason))
    return f"{counts[reason]}x {reason}" if counts[reason] > 1 else reason
