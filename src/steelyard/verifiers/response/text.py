"""Checks of a response as plain text: equal, holding, matching, no longer than."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from steelyard.records import Evidence
from steelyard.verifiers.response.judged import FAIL, PASS, WRONG_FORMAT, ResponseCheckResult, check_result, evidence
from steelyard.verifiers.response.table import CheckTable
from steelyard.verifiers.response.unicode import (
    NormalizationForm,
    normalized_unicode,
    printable_excerpt,
    unicode_tables,
)

SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class OneOfCheck:
    """The whole reply is one of the values."""

    rule: str
    values: tuple[str, ...]
    casefold: bool
    strip: bool

    def judge(self, text: str) -> ResponseCheckResult:
        given = self._plain(text)
        for value in self.values:
            if given == self._plain(value):
                return check_result(
                    PASS, evidence(self.rule, f'the reply is "{printable_excerpt(value)}"', text, 0, len(text))
                )
        what = f'the reply is not "{printable_excerpt(self.values[0])}"{" or another of the values" if self.values[1:] else ""}'
        return check_result(FAIL, evidence(self.rule, what, text, 0, len(text)))

    def _plain(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.casefold() if self.casefold else text


def exact_check(table: CheckTable) -> OneOfCheck:
    """The reply is the value and nothing else."""
    return OneOfCheck(table.path, (table.text("value"),), table.flag("casefold"), table.flag("strip"))


def one_of_check(table: CheckTable) -> OneOfCheck:
    """The reply is one of the values and nothing else."""
    return OneOfCheck(table.path, table.texts("values"), table.flag("casefold"), table.flag("strip"))


@dataclass(frozen=True)
class ContainsCheck:
    """Every value stands somewhere in the reply."""

    rule: str
    values: tuple[str, ...]
    casefold: bool

    def judge(self, text: str) -> ResponseCheckResult:
        folded = text.casefold() if self.casefold else text
        found = []
        for value in self.values:
            start = folded.find(value.casefold() if self.casefold else value)
            if start < 0:
                return check_result(
                    FAIL, Evidence(rule=self.rule, what=f'the reply does not hold "{printable_excerpt(value)}"')
                )
            what = f'the reply holds "{printable_excerpt(value)}"'
            # folding may change lengths, and then its position is unknown
            is_placed = len(folded) == len(text)
            known = evidence(self.rule, what, text, start, start + len(value))
            found.append(known if is_placed else Evidence(rule=self.rule, what=what))
        return check_result(PASS, *found[:20])


def contains_check(table: CheckTable) -> ContainsCheck:
    """The reply holds the value, or all of them."""
    return ContainsCheck(table.path, table.texts("value"), table.flag("casefold"))


def compile_re2(pattern: str, *, ignore_case: bool = False) -> Any:
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
        message = error.args[0] if error.args else ""
        raise ValueError(message.decode(errors="replace") if isinstance(message, bytes) else str(message)) from None


def surrogates_replaced(text: str) -> str:
    """The text as RE2 can take it: half surrogates become a replacement sign of the same length."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


@dataclass(frozen=True)
class RegexCheck:
    """The pattern is found in the reply."""

    rule: str
    pattern: Any
    whole: bool

    def judge(self, text: str) -> ResponseCheckResult:
        search = self.pattern.fullmatch if self.whole else self.pattern.search
        match = search(surrogates_replaced(text))
        if match is None:
            shown = printable_excerpt(self.pattern.pattern)
            return check_result(FAIL, Evidence(rule=self.rule, what=f"the reply does not match {shown}"))
        return check_result(PASS, evidence(self.rule, "the reply matches", text, *match.span()))


def regex_check(table: CheckTable) -> RegexCheck:
    """The pattern is found in the reply, or is the whole of it."""
    pattern = table.text("pattern")
    try:
        program = compile_re2(pattern, ignore_case=table.flag("ignore_case"))
    except ValueError as error:
        raise table.wrong(
            "pattern", f"RE2 cannot use this regular expression: {printable_excerpt(str(error))}"
        ) from None
    return RegexCheck(table.path, program, table.flag("whole"))


@dataclass(frozen=True)
class MaxLengthCheck:
    """The reply has no more characters, words or lines than it may."""

    rule: str
    characters: int | None
    words: int | None
    lines: int | None

    def judge(self, text: str) -> ResponseCheckResult:
        body = text.removesuffix("\n")
        counts = (
            ("characters", self.characters, len(text)),
            ("words", self.words, 0 if self.words is None else len(text.split())),
            ("lines", self.lines, body.count("\n") + 1 if body else 0),
        )
        for name, most, length in counts:
            if most is not None and length > most:
                what = f"the reply has {length} {name}, more than {most}"
                return check_result(WRONG_FORMAT, Evidence(rule=self.rule, what=what))
        return check_result(PASS, Evidence(rule=self.rule, what="the reply is short enough"))


def max_length_check(table: CheckTable) -> MaxLengthCheck:
    """At most this number of characters, words (separated by blanks) or lines."""
    limits = MaxLengthCheck(table.path, table.whole("characters"), table.whole("words"), table.whole("lines"))
    if (limits.characters, limits.words, limits.lines) == (None, None, None):
        raise table.wrong("characters", "say how long the reply may be, in characters, words or lines")
    return limits


@dataclass(frozen=True)
class NormalFormCheck:
    """The reply is in a normal form and holds no invisible controls that were forbidden."""

    rule: str
    form: NormalizationForm | None
    forbidden: re.Pattern[str] | None

    def judge(self, text: str) -> ResponseCheckResult:
        if self.forbidden and (match := self.forbidden.search(text)):
            what = f"the reply holds U+{ord(match[0]):04X}, which is invisible and forbidden"
            return check_result(WRONG_FORMAT, evidence(self.rule, what, text, *match.span()))
        if self.form and (plain := normalized_unicode(text, self.form)) != text:
            start = _first_difference(text, plain)
            what = f"the reply is not in the normal form {self.form}"
            return check_result(WRONG_FORMAT, evidence(self.rule, what, text, start, start + 10))
        return check_result(PASS, Evidence(rule=self.rule, what="the reply is written as declared"))


def _first_difference(left: str, right: str) -> int:
    """The first position at which two different texts part, found by halving."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return min(low, max(len(left) - 1, 0))


def normal_form_check(table: CheckTable) -> NormalFormCheck:
    """A Unicode normal form, no bidirectional controls, no zero-width characters, as declared."""
    form = table.choice("form", ("", "NFC", "NFD", "NFKC", "NFKD"), "")
    bidi = unicode_tables().bidi_controls if table.flag("no_bidi") else ""
    letters = bidi + (unicode_tables().zero_width if table.flag("no_zero_width") else "")
    if not form and not letters:
        raise table.wrong("form", "say what is asked for: a form such as NFC, no_bidi or no_zero_width")
    forms: dict[str, NormalizationForm | None] = {"": None, "NFC": "NFC", "NFD": "NFD", "NFKC": "NFKC", "NFKD": "NFKD"}
    return NormalFormCheck(table.path, forms[form], re.compile(f"[{letters}]") if letters else None)
