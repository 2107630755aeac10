"""A number in a response, read the same way in every locale."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from fractions import Fraction

from steelyard.records import Evidence
from steelyard.verifiers.response.judged import FAIL, PASS, WRONG_FORMAT, ResponseCheckResult, check_result, evidence
from steelyard.verifiers.response.table import CheckTable
from steelyard.verifiers.response.unicode import printable_excerpt

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
        # from the end: no number goes on over a blank, so what begins after one is read as it would be in the whole
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
