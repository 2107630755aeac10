"""Checks of a response as plain text: equal, holding, matching, no longer than."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from steelyard.records import Evidence
from steelyard.verifiers.response.judged import FAIL, PASS, WRONG_FORMAT, Judged, evidence, judged
from steelyard.verifiers.response.table import Table
from steelyard.verifiers.response.unicode import BIDI, ZERO_WIDTH, Form, normal, quoted

SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class OneOf:
    """The whole reply is one of the values."""

    rule: str
    values: tuple[str, ...]
    casefold: bool
    strip: bool

    def judge(self, text: str) -> Judged:
        given = self._plain(text)
        for value in self.values:
            if given == self._plain(value):
                return judged(PASS, evidence(self.rule, f'the reply is "{quoted(value)}"', text, 0, len(text)))
        what = f'the reply is not "{quoted(self.values[0])}"{" or another of the values" if self.values[1:] else ""}'
        return judged(FAIL, evidence(self.rule, what, text, 0, len(text)))

    def _plain(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.casefold() if self.casefold else text


def exact(table: Table) -> OneOf:
    """The reply is the value and nothing else."""
    return OneOf(table.path, (table.text("value"),), table.flag("casefold"), table.flag("strip"))


def one_of(table: Table) -> OneOf:
    """The reply is one of the values and nothing else."""
    return OneOf(table.path, table.texts("values"), table.flag("casefold"), table.flag("strip"))


@dataclass(frozen=True)
class Contains:
    """Every value stands somewhere in the reply."""

    rule: str
    values: tuple[str, ...]
    casefold: bool

    def judge(self, text: str) -> Judged:
        folded = text.casefold() if self.casefold else text
        found = []
        for value in self.values:
            start = folded.find(value.casefold() if self.casefold else value)
            if start < 0:
                return judged(FAIL, Evidence(rule=self.rule, what=f'the reply does not hold "{quoted(value)}"'))
            what = f'the reply holds "{quoted(value)}"'
            # folding may change lengths, and then nobody knows where it stood
            is_placed = len(folded) == len(text)
            known = evidence(self.rule, what, text, start, start + len(value))
            found.append(known if is_placed else Evidence(rule=self.rule, what=what))
        return judged(PASS, *found[:20])


def contains(table: Table) -> Contains:
    """The reply holds the value, or all of them."""
    return Contains(table.path, table.texts("value"), table.flag("casefold"))


def compiled(pattern: str, *, ignore_case: bool = False) -> Any:
    """The pattern as RE2 reads it, so that no reply can make it hang; ValueError says what RE2 cannot do."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options=options)
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair") from None
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from None


def readable(text: str) -> str:
    """The text as RE2 can take it: half surrogates become a replacement sign of the same length."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


@dataclass(frozen=True)
class Regex:
    """The pattern is found in the reply."""

    rule: str
    pattern: Any
    whole: bool

    def judge(self, text: str) -> Judged:
        search = self.pattern.fullmatch if self.whole else self.pattern.search
        match = search(readable(text))
        if match is None:
            shown = quoted(self.pattern.pattern)
            return judged(FAIL, Evidence(rule=self.rule, what=f"the reply does not match {shown}"))
        return judged(PASS, evidence(self.rule, "the reply matches", text, *match.span()))


def regex(table: Table) -> Regex:
    """The pattern is found in the reply, or is the whole of it."""
    pattern = table.text("pattern")
    try:
        program = compiled(pattern, ignore_case=table.flag("ignore_case"))
    except ValueError as error:
        raise table.wrong("pattern", f"RE2 cannot use this regular expression: {quoted(str(error))}") from None
    return Regex(table.path, program, table.flag("whole"))


@dataclass(frozen=True)
class MaxLength:
    """The reply has no more characters, words or lines than it may."""

    rule: str
    characters: int | None
    words: int | None
    lines: int | None

    def judge(self, text: str) -> Judged:
        body = text.removesuffix("\n")
        counts = (
            ("characters", self.characters, len(text)),
            ("words", self.words, 0 if self.words is None else len(text.split())),
            ("lines", self.lines, body.count("\n") + 1 if body else 0),
        )
        for name, most, length in counts:
            if most is not None and length > most:
                what = f"the reply has {length} {name}, more than {most}"
                return judged(WRONG_FORMAT, Evidence(rule=self.rule, what=what))
        return judged(PASS, Evidence(rule=self.rule, what="the reply is short enough"))


def max_length(table: Table) -> MaxLength:
    """At most so many characters, words (parted by blanks) or lines."""
    limits = MaxLength(table.path, table.whole("characters"), table.whole("words"), table.whole("lines"))
    if (limits.characters, limits.words, limits.lines) == (None, None, None):
        raise table.wrong("characters", "say how long the reply may be, in characters, words or lines")
    return limits


@dataclass(frozen=True)
class Normalised:
    """The reply is in a normal form and holds no invisible controls that were forbidden."""

    rule: str
    form: Form | None
    forbidden: re.Pattern[str] | None

    def judge(self, text: str) -> Judged:
        if self.forbidden and (match := self.forbidden.search(text)):
            what = f"the reply holds U+{ord(match[0]):04X}, which is invisible and forbidden"
            return judged(WRONG_FORMAT, evidence(self.rule, what, text, *match.span()))
        if self.form and (plain := normal(text, self.form)) != text:
            start = _parting(text, plain)
            what = f"the reply is not in the normal form {self.form}"
            return judged(WRONG_FORMAT, evidence(self.rule, what, text, start, start + 10))
        return judged(PASS, Evidence(rule=self.rule, what="the reply is written as declared"))


def _parting(left: str, right: str) -> int:
    """The first position at which two different texts part, found by halving."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return min(low, max(len(left) - 1, 0))


def normalised(table: Table) -> Normalised:
    """A Unicode normal form, no bidirectional controls, no zero-width characters, as declared."""
    form = table.choice("form", ("", "NFC", "NFD", "NFKC", "NFKD"), "")
    letters = (BIDI if table.flag("no_bidi") else "") + (ZERO_WIDTH if table.flag("no_zero_width") else "")
    if not form and not letters:
        raise table.wrong("form", "say what is asked for: a form such as NFC, no_bidi or no_zero_width")
    forms: dict[str, Form | None] = {"": None, "NFC": "NFC", "NFD": "NFD", "NFKC": "NFKC", "NFKD": "NFKD"}
    return Normalised(table.path, forms[form], re.compile(f"[{letters}]") if letters else None)
