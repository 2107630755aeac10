"""Answers that are text."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.errors import VerifierError
from steelyard.records import Case, Finding, Verify
from steelyard.sandbox.contained import Contained
from steelyard.sandbox.levels import LEVELS
from steelyard.scoring import correct
from steelyard.verifiers.response import Response

NOWHERE = Contained(LEVELS[-1])
"""Nothing is run, so nothing is started."""


def case(target: str = "Paris", style: str = "") -> Case:
    return Case(id="c", prompt="?", target=target, verify=Verify(style=style))


def judge(text: str, of: Case) -> Finding:
    return asyncio.run(Response(NOWHERE).verify(of, text))


@pytest.mark.parametrize(
    ("text", "style", "passed"),
    [
        ("It is Paris, of course.", "", True),
        ("It is Paris, of course.", "contains", True),
        ("It is paris.", "contains", False),
        ("", "contains", False),
        ("Paris", "exact", True),
        ("  Paris\n", "exact", True),
        ("Paris.", "exact", False),
        ("", "exact", False),
    ],
)
def test_a_reply_is_right_when_it_holds_or_is_the_target(text: str, style: str, passed: bool) -> None:
    finding = judge(text, case(style=style))
    assert finding.passed == passed
    assert correct(case(style=style), finding) == passed
    assert finding.label == ("" if passed else "wrong answer")


def test_the_reason_names_what_was_wanted() -> None:
    assert judge("London", case()).reason == 'the reply does not hold "Paris"'
    assert judge("London", case(style="exact")).reason == 'the reply is not "Paris"'


def test_a_target_is_text_not_a_pattern() -> None:
    assert not judge("abc", case(target="a.c")).passed
    assert judge("1+1=2 (yes)", case(target="1+1=2 (")).passed


@pytest.mark.parametrize("of", [case(target=""), case(style="fuzzy")])
def test_a_case_that_cannot_be_judged_is_found_out_before_anything_is_asked(of: Case) -> None:
    with pytest.raises(VerifierError):
        Response(NOWHERE).check(of)
    with pytest.raises(VerifierError):
        judge("Paris", of)
