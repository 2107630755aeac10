"""A score follows from the facts and a rule, and from nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard import records
from steelyard.analysis import scoring
from steelyard.errors import InputError
from steelyard.records import Case, Expectations, Finding, Rule, Verify

CODE = scoring.SCORING_RULES["code"]
STRUCTURED = scoring.SCORING_RULES["code-structured"]


def code_case(**expectations: Any) -> Case:
    """A case with tests."""
    return Case(id="sum", prompt="Add.", language="rust", expectations=Expectations(test_file="...", **expectations))


def code(good: int = 5, bad: int = 0, *, ignored: int = 0, **facts: Any) -> Finding:
    """Code that compiles, with as many tests as said."""
    counts: dict[records.TestOutcome, int] = {"passed": good, "failed": bad, "ignored": ignored}
    outcomes = [outcome for outcome, count in counts.items() for _ in range(count)]
    tests = tuple(records.Test(name=f"t{place}", outcome=outcome) for place, outcome in enumerate(outcomes))
    return Finding(**{"code": "fn", "compiled": True, "tests": tests, "warnings": 0, **facts})


@pytest.mark.parametrize(
    ("finding", "plain", "structured"),
    [
        (Finding(code="fn", compiled=False), 0, 0),
        (code(5, 0), 1, 1),
        (code(3, 2), 0.80, 0.82),
        (code(5, 0, warnings=3), 0.97, 0.97),
        (code(5, 0, warnings=15), 0.90, 0.90),
        (code(0, 0), 0.50, 0.55),
    ],
)
def test_the_table_of_scores_holds(finding: Finding, plain: float, structured: float) -> None:
    assert scoring.score(code_case(), finding, CODE) == pytest.approx(plain, abs=1e-12)
    assert scoring.score(code_case(), finding, STRUCTURED) == pytest.approx(structured, abs=1e-12)


def test_a_perfect_score_is_exactly_one_under_every_rule() -> None:
    assert {scoring.score(code_case(), code(), rule) for rule in scoring.SCORING_RULES.values()} == {1.0}


def test_weights_sum_to_one() -> None:
    for rule in scoring.SCORING_RULES.values():
        assert rule.compile + rule.tests + rule.lint + rule.structure == pytest.approx(1, abs=1e-12)


def test_what_was_forged_scores_nothing_under_every_rule() -> None:
    forged = code(tampered="two results for one test")
    assert not scoring.is_correct(code_case(), forged)
    assert {scoring.score(code_case(), forged, rule) for rule in scoring.SCORING_RULES.values()} == {0.0}
    assert scoring.test_pass_share(code_case(), forged) == 0
    assert scoring.finding_failure_reason(code_case(), forged) == "tampered: two results for one test"
    unwanted = code_case(should_compile=False)
    assert scoring.score(unwanted, Finding(code="fn", compiled=False, tampered="hid the error"), CODE) == 0


def test_ignored_tests_do_not_count() -> None:
    assert scoring.score(code_case(), code(3, 2, ignored=5), CODE) == pytest.approx(0.8)
    assert scoring.is_correct(code_case(), code(3, 0, ignored=5))
    assert not scoring.is_correct(code_case(), code(0, 0, ignored=5))


@pytest.mark.parametrize(
    ("finding", "correct"),
    [
        (code(5, 0), True),
        (code(4, 1), False),
        (code(0, 0), False),
        (code(5, 0, warnings=100), True),
        (Finding(code="fn", compiled=False), False),
    ],
)
def test_correct_means_that_a_test_ran_and_none_failed(finding: Finding, correct: bool) -> None:
    assert scoring.is_correct(code_case(), finding) is correct


def test_no_linter_counts_as_clean_where_none_applies() -> None:
    python = Case(id="sum", prompt="Add.", language="python", expectations=Expectations(test_file="..."))
    assert scoring.score(python, code(warnings=None), CODE) == 1.0
    assert scoring.lint_score(code(warnings=None)) is None


def test_a_missing_fact_makes_the_score_unknown_and_not_zero() -> None:
    unlinted = code(warnings=None)
    assert scoring.score(code_case(), unlinted, CODE) is None
    assert scoring.finding_measures(code_case(), unlinted).unknown(CODE) == ("lint",)
    assert scoring.score(code_case(), unlinted, Rule(name="tests", tests=1)) == 1.0
    asked = Case(id="sum", prompt="Add.", language="c", verify=Verify(kind="command", lint="lint a.c", tests="t"))
    assert scoring.score(asked, unlinted, CODE) is None
    shaped = code_case(expected_functions=("add",))
    assert scoring.score(shaped, code(), STRUCTURED) is None
    assert scoring.finding_measures(shaped, code()).unknown(STRUCTURED) == ("structure",)
    assert scoring.finding_measures(shaped, code(missing=())).unknown(STRUCTURED) == ()
    assert scoring.score(shaped, code(), CODE) == 1.0


@pytest.mark.parametrize("rule", [CODE, STRUCTURED, Rule(name="own", structure=1, lint=2)])
def test_code_that_does_not_compile_is_known_to_be_worth_nothing(rule: Rule) -> None:
    finding = Finding(code="fn", compiled=False)
    assert scoring.score(code_case(expected_functions=("add",)), finding, rule) == 0.0


def test_weights_of_ones_own_are_relative_to_their_sum() -> None:
    rule = Rule(name="own", tests=3, lint=1)
    assert scoring.score(code_case(), code(1, 1, warnings=5), rule) == pytest.approx((3 * 0.5 + 0.5) / 4)
    assert scoring.score(code_case(), code(), rule) == 1.0
    assert scoring.score(code_case(), code(4, 1), Rule(name="strict", correct=1)) == 0.0


def test_nine_tenths_of_tests_is_one_twentieth_of_the_score() -> None:
    ten, nine, eight = (scoring.score(code_case(), code(good, 10 - good), CODE) for good in (10, 9, 8))
    assert ten is not None
    assert nine is not None
    assert eight is not None
    assert ten - nine == pytest.approx(0.05)
    assert nine - eight == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("compiled", "passed", "failed", "warnings", "score"),
    [(True, 9, 1, 3, 0.92), (True, 10, 0, 0, 1.0), (True, 0, 0, 0, 0.5), (True, 3, 1, 12, 0.775), (False, 10, 0, 0, 0)],
)
def test_the_worked_scores_hold(compiled: bool, passed: int, failed: int, warnings: int, score: float) -> None:
    finding = code(passed, failed, compiled=compiled, warnings=warnings)
    assert scoring.score(code_case(), finding, CODE) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize(("compiled", "correct"), [(True, False), (False, True), (None, False)])
def test_a_case_that_should_not_compile_is_solved_by_not_compiling(compiled: bool | None, correct: bool) -> None:
    case = code_case(should_compile=False)
    finding = Finding(code=None if compiled is None else "fn", compiled=compiled)
    assert scoring.is_correct(case, finding) is correct
    assert scoring.score(case, finding, CODE) == float(correct)


def test_without_tests_on_purpose_compiling_is_enough() -> None:
    case = code_case(should_pass_tests=False)
    assert scoring.is_correct(case, code(0, 0))
    assert scoring.score(case, code(0, 0), CODE) == 1.0
    assert not scoring.is_correct(case, Finding(code="fn", compiled=False))
    assert scoring.score(case, Finding(code="fn", compiled=False), CODE) == 0.0


@pytest.mark.parametrize(("warnings", "correct"), [(2, True), (3, False), (None, True)])
def test_more_lint_warnings_than_allowed_are_not_correct(warnings: int | None, correct: bool) -> None:
    assert scoring.is_correct(code_case(max_clippy_warnings=2), code(warnings=warnings)) is correct


@pytest.mark.parametrize("label", ["no code", ""])
def test_a_reply_without_code_is_an_attempt_that_failed(label: str) -> None:
    for case in (code_case(), code_case(should_pass_tests=False), code_case(should_compile=False)):
        assert not scoring.is_correct(case, Finding(label=label))
        assert scoring.score(case, Finding(label=label), CODE) == 0.0


@pytest.mark.parametrize(
    ("finding", "correct", "score"),
    [
        (Finding(passed=True), True, 1.0),
        (Finding(passed=False), False, 0.0),
        (Finding(passed=False, score=0.7), False, 0.7),
        (Finding(passed=True, score=0.7), True, 0.7),
        (Finding(score=0.7), False, 0.7),
        (Finding(score=1.0), True, 1.0),
        (Finding(passed=True, score=3.0), True, 1.0),
        (Finding(passed=False, score=-1.0), False, 0.0),
    ],
)
def test_a_verifier_with_a_word_of_its_own_is_taken_at_it(finding: Finding, correct: bool, score: float) -> None:
    case = Case(id="capital", prompt="Which city?", target="Paris")
    assert scoring.is_correct(case, finding) is correct
    assert scoring.score(case, finding, CODE) == score


@pytest.mark.parametrize(
    ("finding", "correct"),
    [
        (code(5, 0, passed=True), True),
        (code(5, 0, passed=False), False),
        (code(4, 1, passed=True), False),
        (code(0, 0, passed=True), False),
        (code(0, 0, passed=True, compiled=False), False),
    ],
)
def test_a_check_of_the_users_and_the_tests_must_both_agree(finding: Finding, correct: bool) -> None:
    assert scoring.is_correct(code_case(custom_check="checks.py:score"), finding) is correct


def test_where_a_check_is_all_there_is_it_stands_for_the_tests() -> None:
    case = Case(id="sum", prompt="Add.", language="rust", expectations=Expectations(custom_check="checks.py:score"))
    assert scoring.is_correct(case, code(0, 0, passed=True))
    assert scoring.score(case, code(0, 0, passed=True), CODE) == 1.0
    assert scoring.score(case, code(0, 0, passed=False), CODE) == pytest.approx(0.5)
    assert scoring.score(case, code(0, 0, score=0.5), CODE) == pytest.approx(0.75)
    assert not scoring.is_correct(case, code(0, 0, score=0.5))
    assert scoring.test_pass_share(case, Finding(code="fn", compiled=False)) is None


def test_a_command_that_only_says_yes_needs_no_list_of_tests() -> None:
    case = Case(id="plan", prompt="Write a plan.", verify=Verify(kind="command", tests="make check"))
    assert scoring.is_correct(case, Finding(code="plan", passed=True))


@pytest.mark.parametrize(("missing", "structure"), [((), 1.0), (("add",), 0.75), (("a", "b", "c", "d", "e"), 0.0)])
def test_structure_is_the_share_of_expected_names(missing: tuple[str, ...], structure: float) -> None:
    case = code_case(expected_functions=("add", "sub", "mul"), expected_types=("Sum",))
    finding = code(missing=missing)
    assert scoring.structure_score(case, finding) == structure
    assert scoring.score(case, finding, STRUCTURED) == pytest.approx(0.85 + 0.15 * structure)
    assert scoring.score(case, finding, CODE) == 1.0


def test_an_unknown_rule_names_the_known_ones() -> None:
    assert scoring.find_rule("code") is CODE
    with pytest.raises(InputError, match=r'unknown rule "kode"; known: code, code-structured; did you mean "code"\?'):
        scoring.find_rule("kode")
    own = Rule(name="mine", tests=1)
    assert scoring.find_rule("mine", [own]) is own
    with pytest.raises(InputError, match="known: code, code-structured, mine"):
        scoring.find_rule("kode", [own])


@pytest.mark.parametrize(
    ("case", "finding", "why"),
    [
        (code_case(), code(4, 1, reason="expected 3, got 4", label="wrong answer"), "expected 3, got 4"),
        (code_case(), code(0, 0, label="time limit"), "time limit"),
        (code_case(), Finding(), "no code in the reply"),
        (code_case(), Finding(code="fn", compiled=False), "does not compile"),
        (code_case(), code(1, 1), "failed t1"),
        (code_case(), code(0, 0), "no test ran"),
        (code_case(should_compile=False), code(0, 0), "compiles, but should not"),
        (code_case(max_clippy_warnings=0), code(warnings=2), "2 lint warnings, 0 allowed"),
        (code_case(), Finding(passed=False), "wrong answer"),
    ],
)
def test_a_failed_attempt_always_has_a_reason(case: Case, finding: Finding, why: str) -> None:
    assert not scoring.is_correct(case, finding)
    assert scoring.finding_failure_reason(case, finding) == why
