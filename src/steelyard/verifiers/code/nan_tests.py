"""Whether tests would take what is not a number for right, because every comparison with NaN is false."""

from __future__ import annotations

import re
from functools import lru_cache

_FLOAT_PATTERN = re.compile(
    r"\b(?:double|float|float32|float64|f32|f64|Double|Float|auto|decltype|template|complex\w*|_Complex|any|interface|Object|Number)\b|\d\.\d|\.\d|\d[eE]-?\d|<math\.h>|<cmath>"
)
_TYPED_LANGUAGES = frozenset(("c", "cpp", "java", "go", "rust"))
NAN_ACCEPTED_REASON = (
    "the tests fail a number only where it is too far off, so they let NaN pass; write `!(abs(got - want) <= limit)`"
)
_TEXT_OR_COMMENT_PATTERN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|(?<![\w&<])\'(?:[^\'\\\n]|\\.)*\'|//[^\n]*|/\*.*?\*/|(?:^|(?<=\s))#(?![\w[!])[^\n]*',
    re.DOTALL | re.MULTILINE,
)
_SMALL = r"(?:\d\.?\d*[eE]-\d+|\$?\b\w*(?:eps|toler|tol\b)\w*)"
_TOLERANCE = rf"(?:{_SMALL}|\b0?\.\d+|\b\w*(?:delta|precision|margin|slack)\w*\b)"
_DISTANCE = r"(?:\b\w*abs\b|\babs_diff\b|\bhypot\b|\bsqrt\b|\bnorm\b|\bdistance\b)"
_TOO_FAR_PATTERN = re.compile(
    rf"{_DISTANCE}[^;\n{{}}]*?[)\]]\s*(?:>=?(?![>\w])|\.gt\b|-g[te]\b)|(?<![<-])<=?\s*(?:[\w.:]*[.:])?{_DISTANCE}"
    rf"|(?<![-=>])>=?\s*{_SMALL}",
    re.IGNORECASE,
)
"""A distance that is found too large."""
_DISTANCE_NAME_PATTERN = re.compile(rf"(\w+)\s*(?::\s*\w+\s*)?:?=(?!=)[^;\n]*{_DISTANCE}", re.IGNORECASE)
_LARGEST_PATTERN = re.compile(rf"\bf?max\w*\s*\([^;\n]*{_DISTANCE}|{_DISTANCE}[^;\n]*\.\s*max\s*\(", re.IGNORECASE)
"""The largest of several distances, which NaN may be lost in."""
_CONDITION_PATTERN = re.compile(r"\b(?:if|unless|elsif|elif)\b([^{}\n]*)")
_ORDER_PATTERN = re.compile(r"(?<![-=<>|])[<>]=?(?![<>|&(])")
_FRACTION = r"(?<![\w.])(?:\d*\.\d+|\d+\.?\d*[eE]-?\d+)"
_OVER_PATTERN = re.compile(rf"(?<![-=>])>=?\s*-?{_FRACTION}|{_FRACTION}\s*<=?(?![<=])")
"""A number that is found larger than a fraction."""
_NUMBER_ROUNDED_PATTERN = re.compile(
    r"(?:\((?:int|long)\)|\b(?:Math\.)?l?l?r(?:ound|int)l?\s*\(|\bint(?:32|64)?\s*\(|~~|\bas\s+[iu](?:8|16|32|64|128|size)\b)[^;\n]*(?:[!=]==?\s*0\b(?!\.)|,\s*0\s*[,)])|\|\|?\s*0\s*\)?\s*(?:[!=]=|,\s*0\b)|\bf(?:32|64)::(?:max|min)\b|\(\s*0\s*,\s*(?:\(\s*(?:int|long)\s*\)|Math\.round)"
)
"""A number that is made a whole one and compared with 0: some languages make 0 of NaN."""
_CLAIMING_PATTERN = re.compile(
    r"(?:\b(?:assert|ok|check|require|expect|ensure|verify|CHECK|REQUIRE|(?:assert|is|ASSERT_|EXPECT_)(?:True|TRUE))(?:\.\w+)?!?\s*\(|^\s*assert\s)\s*(?:[^;\n!]*(?:&&|\band\b))?[^;\n!|?]*$",
    re.MULTILINE,
)
"""What stands before a comparison that an assertion claims to be true."""
_LOOP_PATTERN = re.compile(r"\b(?:for|while|until)\b[^{}\n]*$")
_CLOSE_PATTERN = re.compile(rf"{_DISTANCE}[^;\n]*[)\]]\s*<=?[^<>]*", re.IGNORECASE)


@lru_cache(maxsize=256)
def accepts_nan(tests: str) -> bool:
    """Whether tests have a claim about a number that NaN fulfils.

    >>> accepts_nan("if (fabs(got - want) > 1e-9) failures++;")
    True
    >>> accepts_nan("assert(fabs(got - want) < 1e-9);")
    False
    """
    plain = _TEXT_OR_COMMENT_PATTERN.sub('""', tests)
    if _TOO_FAR_PATTERN.search(plain) or _LARGEST_PATTERN.search(plain):
        return True
    if _NUMBER_ROUNDED_PATTERN.search(plain) or any(_is_failing(plain, each) for each in _OVER_PATTERN.finditer(plain)):
        return True
    names = set(_DISTANCE_NAME_PATTERN.findall(plain)) - {"return"}
    if any(
        re.search(rf"\b{re.escape(name)}\b\s*\)*\s*>=?(?![>=])|<=?\s*\$?{re.escape(name)}\b", plain) for name in names
    ):
        return True
    for condition in _CONDITION_PATTERN.findall(plain):
        rest = _CLOSE_PATTERN.sub(" ", condition)
        if _ORDER_PATTERN.search(rest) and re.search(_TOLERANCE, rest, re.IGNORECASE):
            return True
    return False


def _is_failing(tests: str, comparison: re.Match[str]) -> bool:
    """Whether a comparison stands where it is not what an assertion claims, nor the head of a loop."""
    before = tests[max(0, comparison.start() - 300) : comparison.start()]
    statement = re.split(r"[;{}]", before)[-1]
    is_denied = bool(re.search(r"!\s*\([^()]*$", statement))
    return not (_CLAIMING_PATTERN.search(statement) or is_denied or _LOOP_PATTERN.search(before))


def may_give_nan(code: str, language: str) -> bool:
    """Whether an answer has anything that is not a whole number; in a language without types of numbers anything may be one."""
    return language not in _TYPED_LANGUAGES or bool(_FLOAT_PATTERN.search(code))
