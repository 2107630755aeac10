"""From what a verifier found to an opinion about it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from steelyard.errors import InputError, did_you_mean
from steelyard.records import Case, Finding, Rule

SCORING_RULES = {
    rule.name: rule
    for rule in (
        Rule(name="code", compile=0.4, tests=0.5, lint=0.1),
        Rule(name="code-structured", compile=0.3, tests=0.45, lint=0.1, structure=0.15),
    )
}
SCORED_FACTS = ("compile", "tests", "lint", "structure", "correct")
"""What a rule can weigh."""


def find_rule(name: str, own: Iterable[Rule] = ()) -> Rule:
    """The rule of this name among ours and an eval set's own; an InputError when no rule has it."""
    known = SCORING_RULES | {rule.name: rule for rule in own}
    if name not in known:
        raise InputError(f'unknown rule "{name}"; {did_you_mean(name, known)}')
    return known[name]


class FindingMeasures(NamedTuple):
    """What a finding measures, before a rule weighs it."""

    correct: bool
    """Whether it counts as a success."""
    passing: float | None
    """The share of tests that passed; None if there were none to run."""
    settled: float | None
    """The score under every rule; None if it is for the facts to say."""
    facts: tuple[float | None, ...] = ()
    """A share for each of SCORED_FACTS, where they decide; None if one is not known."""

    def score(self, rule: Rule) -> float | None:
        """How good it is under a rule, in [0, 1]; None when a fact that the rule weighs is not known."""
        if self.settled is not None:
            return self.settled
        weighed = [(weight, value) for weight, value in zip(_weights(rule), self.facts, strict=True) if weight]
        parts = [weight * value for weight, value in weighed if value is not None]
        # a missing fact is not a bad one
        return math.fsum(parts) / math.fsum(weight for weight, _ in weighed) if len(parts) == len(weighed) else None

    def unknown(self, rule: Rule) -> tuple[str, ...]:
        """The facts that stand between it and its score under a rule."""
        if self.settled is not None:
            return ()
        weighed = zip(SCORED_FACTS, _weights(rule), self.facts, strict=True)
        return tuple(fact for fact, weight, value in weighed if weight and value is None)


def _weights(rule: Rule) -> tuple[float, ...]:
    """How much each of SCORED_FACTS weighs."""
    return rule.compile, rule.tests, rule.lint, rule.structure, rule.correct


def finding_measures(case: Case, finding: Finding) -> FindingMeasures:
    """What a finding has to say to any rule."""
    tests = test_pass_share(case, finding)
    success = _is_correct_given_tests(case, finding, tests)
    settled: float | None = None
    if finding.tampered:
        # a forged result is no evidence, not even that the code compiles
        settled = 0.0
    elif is_without_code(finding) or not case.expectations.should_compile:
        settled = float(success)
    elif finding.compiled is False:
        settled = 0.0
    elif finding.compiled is None and tests is None:
        # nothing was compiled or tested: such an answer has its verifier's own score under every rule
        settled = _own_score(finding)
    if settled is not None:
        return FindingMeasures(success, tests, settled)
    untested = _own_score(finding) if case.expectations.should_pass_tests else 1.0
    is_linted = finding.warnings is not None or case.kind == "rust" or bool(case.verify.lint)
    # what needs no compiling cannot fail to compile
    facts = (
        1.0,
        untested if tests is None else tests,
        lint_score(finding) if is_linted else 1.0,
        structure_score(case, finding),
        float(success),
    )
    return FindingMeasures(success, tests, None, facts)


def is_correct(case: Case, finding: Finding) -> bool:
    """Whether this attempt counts as a success: what pass@k counts."""
    return _is_correct_given_tests(case, finding, test_pass_share(case, finding))


def _is_correct_given_tests(case: Case, finding: Finding, tests: float | None) -> bool:
    """The same from the share of tests that passed."""
    expected = case.expectations
    if is_without_code(finding) or finding.passed is False or finding.tampered:
        return False
    if not expected.should_compile:
        return finding.compiled is False
    if finding.compiled is False:
        return False
    allowed = expected.max_clippy_warnings
    if allowed is not None and finding.warnings is not None and finding.warnings > allowed:
        return False
    if tests is not None:
        return tests == 1
    if finding.passed is not None:
        return finding.passed
    if finding.score is not None:
        return finding.score >= 1
    return bool(finding.compiled)


def score(case: Case, finding: Finding, rule: Rule) -> float | None:
    """How good this attempt is, in [0, 1]; None when a fact that the rule weighs is not known.

    >>> from steelyard.records import Test
    >>> tests = [Test(name=name, outcome="passed" if name < "d" else "failed") for name in "abcde"]
    >>> code = Finding(code="...", compiled=True, tests=tuple(tests), warnings=0)
    >>> score(Case(id="sum", prompt="Add up.", language="rust"), code, SCORING_RULES["code"])
    0.8
    """
    return finding_measures(case, finding).score(rule)


def is_graded(finding: Finding) -> bool:
    """Whether a score is what was measured; imports that do not say so yet pass where their score is 1."""
    if finding.graded is not None:
        return finding.graded
    return finding.trust == "recorded" and finding.score is not None and finding.passed is (finding.score >= 1)


def is_without_code(finding: Finding) -> bool:
    """Whether the reply held nothing to judge: an attempt that failed."""
    return finding.code is None and finding.compiled is None and not finding.tests and not _has_own_opinion(finding)


def code_compiled(finding: Finding) -> bool | None:
    """Whether there was code that compiled; None if nothing is compiled."""
    return False if is_without_code(finding) else finding.compiled


def test_pass_share(case: Case, finding: Finding) -> float | None:
    """The share of tests that passed, 0 when none ran; None if there were none to run."""
    expected = case.expectations
    # a list of checks has weights, so its own yes or no and score count
    if "checks" in case.verify.settings or not (expected.should_compile and expected.should_pass_tests):
        return None
    if not finding.tests:
        if finding.compiled is None and not is_without_code(finding):
            return None
        # its own yes cannot replace tests that should have run and did not
        if not case.tests and (expected.custom_check or case.verify.python or _has_own_opinion(finding)):
            return None
    if finding.compiled is False or finding.tampered:
        return 0.0
    outcomes = [test.outcome for test in finding.tests]
    passed, failed = outcomes.count("passed"), outcomes.count("failed")
    return passed / (passed + failed) if passed + failed else 0.0


def lint_score(finding: Finding) -> float | None:
    """1 without warnings, a tenth less for each; None when no linter was asked."""
    return None if finding.warnings is None else max(0.0, 1 - 0.1 * finding.warnings)


def structure_score(case: Case, finding: Finding) -> float | None:
    """The share of the expected functions and types that the code defines; 1 when none are expected.

    None when some are expected and the verifier did not look for them.
    """
    expected = len(case.expectations.expected_functions) + len(case.expectations.expected_types)
    if not expected:
        return 1.0
    return None if finding.missing is None else max(0.0, 1 - len(finding.missing) / expected)


def finding_failure_reason(case: Case, finding: Finding) -> str:
    """The reason an attempt is not correct, in one line."""
    if finding.tampered:
        return f"tampered: {finding.tampered}"
    stated = finding.reason or finding.label
    if stated:
        return stated
    expected = case.expectations
    if is_without_code(finding):
        return "no code in the reply"
    if not expected.should_compile and finding.compiled:
        return "compiles, but should not"
    if finding.compiled is False:
        return "does not compile"
    failed = [test.name for test in finding.tests if test.outcome == "failed"]
    if failed:
        return f"failed {failed[0]}"
    allowed = expected.max_clippy_warnings
    if allowed is not None and finding.warnings is not None and finding.warnings > allowed:
        return f"{finding.warnings} lint warnings, {allowed} allowed"
    return "no test ran" if test_pass_share(case, finding) == 0 else "wrong answer"


def _has_own_opinion(finding: Finding) -> bool:
    """Whether the verifier has a yes, a no or a score of its own."""
    return finding.passed is not None or finding.score is not None


def _own_score(finding: Finding) -> float:
    """The verifier's own score, or 1 or 0 for its yes or no; 0 when it says nothing."""
    if finding.score is not None:
        return min(1.0, max(0.0, finding.score))
    return 1.0 if finding.passed else 0.0
