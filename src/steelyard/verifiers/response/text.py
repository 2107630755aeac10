"""Checks of a response as plain text: equal, holding, matching, no longer than, and the number in it."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

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
from steelyard.verifiers.response.unicode import (
    NormalizationForm,
    normalized_unicode,
    printable_excerpt,
    unicode_tables,
)

FENCE_LINE = re.compile(r"^[ ]{0,3}(`{3,}+|~{3,}+)([^\n`]*+)$", re.MULTILINE)


class FencedText(NamedTuple):
    """What stands between two fences."""

    start: int
    """Where it begins in the reply."""
    body: str


def fenced_texts(text: str) -> list[FencedText]:
    r"""The closed blocks of a reply, in order; a fence closes when it is at least as long as the one that opened.

    >>> fenced_texts("Here:\n```json\n{}\n```\n")
    [FencedText(start=14, body='{}\n')]
    """
    found: list[FencedText] = []
    if "```" not in text and "~~~" not in text:
        return found
    opened: re.Match[str] | None = None
    for match in FENCE_LINE.finditer(text):
        if opened is None:
            opened = match
        elif match[1][0] == opened[1][0] and len(match[1]) >= len(opened[1]) and not match[2].strip():
            start = opened.end() + 1
            found.append(FencedText(start, text[start : max(start, match.start())]))
            opened = None
    return found


SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class OneOfCheck:
    """The whole reply is one of the values."""

    rule: str
    values: tuple[str, ...]
    casefold: bool
    strip: bool
    asks: ClassVar[bool] = False

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
    asks: ClassVar[bool] = True

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
        raise ValueError("it contains half of a surrogate pair") from None
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
    asks: ClassVar[bool] = True

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
    asks: ClassVar[bool] = False

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
    asks: ClassVar[bool] = False

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


# anything that somebody may mean as one number, so that a number written in another way is not read as two
NUMBER_CANDIDATE = re.compile(
    r"(?<![A-Za-z0-9_])(?:[+\-\u2212](?=[0-9.,]))?(?:[.,](?=[0-9]))?[0-9]++(?:[.,'\u2019\u00a0\u202f_](?=[0-9])[0-9]++)*+(?:[eE][+\-\u2212]?[0-9]++)?"
)
DIGIT_GROUPS = r"[0-9]{1,3}(?:(?P<group>[%s])[0-9]{3})(?:(?P=group)[0-9]{3})*"
MAX_NUMBER_CHARACTERS = 200


def _number_pattern(point: str, groups: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<sign>[+-])?(?P<whole>{DIGIT_GROUPS % groups}|[0-9]*)(?:{re.escape(point)}(?P<part>[0-9]+))?(?:[eE](?P<power>[+-]?[0-9]{{1,3}}))?"
    )


NUMBER_PATTERNS = {
    ".": _number_pattern(".", ",'\u2019\u00a0\u202f_"),
    ",": _number_pattern(",", ".'\u2019\u00a0\u202f_"),
}
ACCEPTED_NUMBER_FORMS = {
    ".": "1234.5, 1,234.5, 1 234.5 with a no-break space, 1'234.5 or 1.2345e3",
    ",": "1234,5, 1.234,5, 1 234,5 with a no-break space, 1'234,5 or 1,2345e3",
}


@dataclass(frozen=True)
class NumberCheck:
    """The only number of the reply, or the last one, is the value."""

    rule: str
    value: Fraction
    tolerance: Fraction
    which: str
    decimal: str
    asks: ClassVar[bool] = True

    def judge(self, text: str) -> ResponseCheckResult:
        found = [match for _, match in zip(range(2), NUMBER_CANDIDATE.finditer(text), strict=False)]
        if not found:
            return check_result(
                WRONG_FORMAT,
                Evidence(rule=self.rule, what=f"no number; accepted is {ACCEPTED_NUMBER_FORMS[self.decimal]}"),
            )
        if self.which == "only" and len(found) > 1:
            what = "a second number, where the reply may hold only one"
            return check_result(WRONG_FORMAT, evidence(self.rule, what, text, *found[1].span()))
        match = found[0] if self.which == "only" else _last_number(text)
        number = parse_number(match[0], self.decimal)
        if number is None:
            what = (
                f'"{printable_excerpt(match[0], 40)}" is not written as accepted: {ACCEPTED_NUMBER_FORMS[self.decimal]}'
            )
            return check_result(WRONG_FORMAT, evidence(self.rule, what, text, *match.span()))
        is_near = abs(number - self.value) <= self.tolerance
        what = f"the number is {'near enough' if is_near else 'too far off'}"
        return check_result(PASS if is_near else FAIL, evidence(self.rule, what, text, *match.span()))


def _last_number(text: str) -> re.Match[str]:
    """The last number of a text that has one."""
    size = 256
    while True:
        # from the end: no number continues across a blank, so the part after one is read as in the whole
        start = max(text.rfind(blank, 0, max(0, len(text) - size)) for blank in " \n") + 1
        found = deque(NUMBER_CANDIDATE.finditer(text, start), maxlen=1)
        if found or not start:
            return found[0]
        size *= 8


def parse_number(text: str, decimal: str = ".") -> Fraction | None:
    """The exact value of a number as it is written; None when it is not written as accepted.

    >>> parse_number("1,234.5"), parse_number("1,5"), parse_number("1,5", ",")
    (Fraction(2469, 2), None, Fraction(3, 2))
    """
    match = (
        NUMBER_PATTERNS[decimal].fullmatch(text.replace("\u2212", "-")) if len(text) <= MAX_NUMBER_CHARACTERS else None
    )
    if match is None or not (match["whole"] or match["part"]):
        return None
    whole, part = re.sub("[^0-9]", "", match["whole"]), match["part"] or ""
    size = Fraction(int(whole + part), 10 ** len(part)) * Fraction(10) ** int(match["power"] or 0)
    return -size if match["sign"] == "-" else size


def number_check(table: CheckTable) -> NumberCheck:
    """A value with a tolerance, absolute or relative to the value, whichever is wider."""
    value = Fraction(str(table.number("value")))
    absolute, relative = (Fraction(str(table.number(key, 0))) for key in ("absolute", "relative"))
    which = table.choice("which", ("only", "last"), "only")
    return NumberCheck(
        table.path, value, max(absolute, relative * abs(value)), which, table.choice("decimal", (".", ","), ".")
    )
