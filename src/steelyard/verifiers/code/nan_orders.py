"""Whether tests fail a number of their answer only by an order, such as `got > 4`, which is false for NaN."""

from __future__ import annotations

import re
from functools import lru_cache

from steelyard.verifiers.code.answer_values import (
    MAX_READ_CHARS,
    AnswerValues,
    Statement,
    answer_values,
    closing_place,
    side_after,
    side_before,
)

_ORDER_PATTERN = re.compile(r"(?<=\s)[<>]=?(?=\s)|(?<=[\w)\]])[<>]=?(?=-?\d)")
_LARGEST_PATTERN = re.compile(r"\b(?:std::)?f?(?:max|min)[fl]?\s*\(|\bf(?:32|64)::(?:max|min)\b\s*\)?()")
_TRUTH_PATTERN = re.compile(
    r"(?:[\w.]+\.)?(?!\w*(?:[fF]alse|FALSE|[nN]ot|[eE]qual|EQ|[fF]ail|throw))(?:debug_)?(?:assert|check|expect|verify|ensure|require|must|ok|test|is_?[tT]rue|ASSERT|CHECK|EXPECT|REQUIRE|OK|TEST)\w*"
)
_LOOP_PATTERN = re.compile(r"\s*(?:\}?\s*)?(?:for|while|until|do)\b")
_COUNT_PATTERN = re.compile(
    r"(?:\.|->)\s*(?:length|size|len|count|Len)\b|\b(?:len|strlen|sizeof|scalar|indexOf|find|compareTo|cmp|localeCompare)\b"
)
_CONDITION_PATTERN = re.compile(r"^\s*(?:\}?\s*else\s+)?(?:if|elif|unless)\b")
_FAILING_PATTERN = re.compile(
    r"\b(?:throw|raise|die|panic|abort|exit|fail\w*|Fatal\w*|Error\w*|return\s+1|assert)\b|\bt\.Error"
)


def too_far_only(tests: str, code: str, language: str) -> bool:
    """Whether tests fail a number of the answer's only where an order is true, which none is of NaN: `if (got < 2 || got > 4) fail()`."""
    return len(code) <= MAX_READ_CHARS and _fails_by_order(answer_values(tests, code, language), tests)


@lru_cache(maxsize=256)
def _fails_by_order(values: AnswerValues, tests: str) -> bool:
    """Whether a number of the answer's, which is in no claim that must hold, is in an order that must not."""
    strict: set[str] = set()
    loose: list[set[str]] = []
    for written in values.statements:
        statement = written._replace(text=_without_loop(written.text))
        text = statement.text
        if any(values.fractions(text[each.end() :]) for each in _LARGEST_PATTERN.finditer(text)):
            return True
        for sign in _ORDER_PATTERN.finditer(text):
            left, right = side_before(text, sign.start()), side_after(text, sign.end())
            sides = [side for side in (left, right) if values.fractions(side)]
            if not sides or any(_COUNT_PATTERN.search(side) for side in sides):
                continue
            words = set(re.findall(r"\w+", " ".join(sides)))
            if _must_hold(statement, sign.start() - len(left), sign.end() + len(right), tests):
                strict |= words & values.variables.keys()
            else:
                loose.append(words)
    return any(not words & strict for words in loose)


def _must_hold(statement: Statement, start: int, end: int, tests: str) -> bool:
    """Whether tests pass only if the comparison from one place to another is true, as it never is of NaN."""
    text = statement.text
    while True:
        # each part of `a && b` must hold where the whole must; what is counted, chosen by or compared is another thing
        before, after = text[:start], text[end:]
        if re.match(r"\s*(?:[-+*/%?]|[=!<>]=|\|\|(?!\s*(?:die|fail|throw)))", after) or re.search(
            r"\|\|\s*$|[-+*/%]\s*$", before
        ):
            return False
        brackets = [each.start() for each in re.finditer(r"[(\[{]", before)]
        opening = max((at for at in brackets if closing_place(before, at) == len(before)), default=-1)
        if opening < 0:
            return _statement_must_hold(statement, start, end, tests)
        head = before[:opening]
        if text[opening] != "(":
            return False
        if re.search(r"(?<!\w)!\s*$|\bnot\s*$", head):
            return bool(re.search(r"(?:\bif\s*\(?\s*|[-+|&]=\s*)(?:[^&|=]*(?:\|\||\bor)\s*)?!\s*$", head))
        name = (re.search(r"([\w.]*)\s*!?\s*$", head) or [""] * 2)[1]
        if name in ("if", "elif"):
            return _may_pass_over(statement, after)
        if _TRUTH_PATTERN.fullmatch(name) or name == "unless":
            compared = re.match(r"\s*(?:[=!]=|is\b)", text[closing_place(text, opening) + 1 :])
            return not (compared or re.match(r"\s*,\s*(?:false|False)\b", after))
        if name and name.rpartition(".")[2] not in ("every", "all"):
            return False
        start, end = opening - len(name), closing_place(text, opening) + 1


def _statement_must_hold(statement: Statement, start: int, end: int, tests: str) -> bool:
    """The same for a comparison that is in no brackets."""
    text = statement.text
    before, after, compared = text[:start], text[end:], text[start:end]
    if re.match(r"\s*(?:assert|ok)\s+(?!not\b|!)", before + compared) or re.search(r"\bunless\s", before + compared):
        return True
    if re.match(r"\s*(?:\|\||or)\s*(?:die|fail|throw)", after) or re.search(r"(?:&&|&=|\band)\s*$", before):
        return True
    if _CONDITION_PATTERN.match(before + compared):
        return _may_pass_over(statement, after)
    if re.search(r"\breturn\b", before + compared):
        return re.search(r"<", compared) is not None
    named = re.search(r"(\w+)\s*(?::\s*\w+\s*)?:?=\s*$", before)
    claimed = (
        rf"(?:\b(?:assert\w*|ok|check|expect|CHECK|REQUIRE)\b[.\w]*!?\s*\(?|\bif\s*\(?\s*!|\bunless\s*\(?)\s*\$?{named[1]}\b"
        if named
        else "(?!)"
    )
    return re.search(claimed, tests) is not None


def _may_pass_over(statement: Statement, after: str) -> bool:
    """Whether a condition neither fails a test nor keeps the largest number so far."""
    keeps_largest = re.search(r"\)\s*\{?\s*\w+\s*=[^=]", after) or re.match(r"\s*\w+\s*=[^=]", statement.following)
    return not _FAILING_PATTERN.search(statement.text + statement.following) and not keeps_largest


def _without_loop(text: str) -> str:
    """A statement without the head of a loop before it."""
    while _LOOP_PATTERN.match(text):
        opening = text.find("(")
        text = text[closing_place(text, opening) + 1 :] if opening >= 0 else ""
    return text
