"""A share of the verdicts by calls is looked at by a plain run, too; here all of them are."""

from __future__ import annotations

import pytest

from steelyard.records import Case, Pair
from steelyard.verifiers.python.verifier import PythonVerifier
from support.python_answers import SANDBOX, judged, python_case

WATCHING, BLIND = PythonVerifier(SANDBOX, watch=1.0), PythonVerifier(SANDBOX, watch=0.0)
CASES = (
    python_case("assert f(10) == 20\n"),
    python_case("def check(candidate):\n    assert candidate(10) == 20\n", entry_point="f"),
    python_case(style="io", entry_point="f", pairs=(Pair(input=[10], output=20),)),
)
DOUBLE, WRONG = "def f(n): return 2 * n\n", "def f(n): return 3 * n\n"
READS_THE_TEST = (
    "import sys\ndef f(n): return max(c for c in sys._getframe(1).f_code.co_consts if isinstance(c, int))\n"
)


@pytest.mark.parametrize("case", CASES, ids=["asserts", "check", "io"])
def test_an_honest_answer_is_watched_and_both_roads_agree(case: Case) -> None:
    for code, label in ((DOUBLE, ""), (WRONG, "wrong answer")):
        finding = judged(code, case, WATCHING)
        assert (finding.label, finding.trust, finding.watched, finding.flag) == (label, "isolated", True, "")
        assert judged(code, case, BLIND).watched is False


@pytest.mark.parametrize("case", CASES, ids=["asserts", "check", "io"])
def test_an_answer_that_reads_the_expected_value_fails_and_is_flagged(case: Case) -> None:
    finding = judged(READS_THE_TEST, case, WATCHING)
    assert (finding.label, finding.watched, finding.flag) == ("wrong answer", True, "only beside its tests")
    assert judged(READS_THE_TEST, case, BLIND).flag == ""


def test_an_answer_that_does_not_compile_is_not_run_to_be_watched() -> None:
    finding = judged("def f(n):\n", CASES[0], WATCHING)
    assert (finding.label, finding.watched) == ("does not compile", False)


def test_a_verdict_of_a_plain_run_has_nothing_to_be_watched() -> None:
    assert judged(DOUBLE, python_case("for n in range(3):\n    assert f(n) == n + n\n"), WATCHING).watched is None
