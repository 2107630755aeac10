"""Whether an eval set's own answers have the expected results: references pass, counterexamples fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from steelyard.analysis.scoring import is_correct
from steelyard.engine.limits import longest
from steelyard.engine.options import RunOptions
from steelyard.engine.pool import run_concurrently, run_coroutine
from steelyard.engine.preflight.connect import check_case_settings
from steelyard.engine.preflight.named_code import case_code, require_allowed_code, settings_code
from steelyard.engine.preflight.witnesses import fenced
from steelyard.engine.verifiers import VerifierSet, with_python_env
from steelyard.errors import ExitCode, Problem, VerifierError, problems_by_reason
from steelyard.plugins import is_plugin
from steelyard.protocols import FailureLabel
from steelyard.records import Answer, Case
from steelyard.text import counted
from steelyard.verifiers.checks.rubric import rubric_tables


class ReferenceCheck(NamedTuple):
    """The results of the answers in an eval set."""

    proved: int
    """The number of answers with the expected result."""
    problems: list[Problem]

    @property
    def wrong(self) -> int:
        """How many problems are more than a warning."""
        return sum(problem.fatal for problem in self.problems)

    @property
    def exit_code(self) -> ExitCode:
        """How a command ends that checked them."""
        return ExitCode.BAD_INPUT if self.wrong else ExitCode.OK


def check_references(
    cases: Sequence[Case], means: RunOptions = RunOptions(), *, paths: Sequence[str | Path] = ("EVALSET",)
) -> ReferenceCheck:
    """How many answers were proved, and what is wrong; a case whose verifier is not there is only warned about.

    Code that the cases name is run if the user agreed to it; a refusal names the `paths` that they came from.
    """
    require_allowed_code(case_code(cases, means) + settings_code(means.settings), means, *paths)
    check_case_settings(cases)
    return run_coroutine(_check_references(with_python_env(cases, means.python_env), means))


def check_settings_problems(cases: Sequence[Case], means: RunOptions = RunOptions()) -> list[Problem]:
    """Problems in the cases' lists of checks; nothing is run."""

    async def found() -> list[Problem]:
        checked = [case for case in cases if case.kind in {"checks", "scripted-checks"}]
        verifying = VerifierSet(checked, means)
        try:
            return problems_by_reason(verifying.unverifiable(checked))
        finally:
            await verifying.close()

    return run_coroutine(found())


async def _check_references(cases: Sequence[Case], means: RunOptions) -> ReferenceCheck:
    verifying = VerifierSet(cases, means)
    # files are shared with tools that know other languages, so what we cannot judge is not a mistake
    foreign = Counter(
        case.kind for case in cases if case.kind and case.has_verifier and not is_plugin("verifiers", case.kind)
    )
    problems = [
        Problem("", 0, f'{count} cases cannot be verified: no verifier "{kind}" here', fatal=False)
        for kind, count in foreign.items()
    ]
    ours = [case for case in cases if case.kind not in foreign and case.has_verifier]
    reasons = verifying.unverifiable(ours)
    problems += problems_by_reason(reasons)
    proved = 0

    async def try_out(claim: tuple[Case, str, bool]) -> None:
        nonlocal proved
        case, text, must_pass = claim
        wrong = await _reference_problem(verifying, case, text, must_pass=must_pass)
        if wrong:
            problems.append(Problem(f'case "{case.id}"', 0, wrong))
        else:
            proved += 1

    for_judges = [case for case in ours if rubric_tables(case) and (case.reference or case.counterexample)]
    if for_judges:
        what = f"{counted(len(for_judges), 'case')} with a rubric: the reference is not tried, because only judges can tell"
        problems.append(Problem("", 0, what, fatal=False))
    problems += _advice(verifying, [case for case in ours if case.id not in reasons])
    claims = [
        (case, text, must_pass)
        for case in ours
        for text, must_pass in ((case.reference, True), (case.counterexample, False))
        if text and case.id not in reasons and not rubric_tables(case)
    ]

    async def try_stub(case: Case) -> None:
        problems.extend(await _stub_problems(verifying, case))

    unproved = [case for case in ours if not case.reference and case.id not in reasons]
    problems += _uncontrolled_cases(verifying, unproved)
    try:
        await run_concurrently(iter(claims), try_out, verifying.at_once)
        await run_concurrently(iter(unproved), try_stub, verifying.at_once)
    finally:
        await verifying.close()
    return ReferenceCheck(proved, sorted(problems))


def _uncontrolled_cases(verifying: VerifierSet, cases: Sequence[Case]) -> list[Problem]:
    """What to know of cases without a reference whose passes would otherwise be tried with false tests, all of them at once."""
    beside = [case for case in cases if verifying.has_false_tests(case)]
    if not beside:
        return []
    what = (
        f"{counted(len(beside), 'case')} without a reference, such as {beside[0].id}: a pass is not tried with false tests, which "
        "a reference has to fail; one that runs in the answer's own process is taken as it is"
    )
    return [Problem("", 0, what, fatal=False)]


def _advice(verifying: VerifierSet, cases: Sequence[Case]) -> list[Problem]:
    """What passes of these cases leave open: each advice once, with all cases that it is for."""
    advised: dict[str, list[str]] = {}
    for case in cases:
        advice = getattr(verifying.of(case), "advice", None)
        if text := advice(case) if advice is not None else "":
            advised.setdefault(text, []).append(f'"{case.id}"')
    return [
        Problem(
            f"{'case' if len(ids) == 1 else counted(len(ids), 'case') + ':'} {', '.join(ids)}", 0, text, fatal=False
        )
        for text, ids in advised.items()
    ]


async def _reference_problem(verifying: VerifierSet, case: Case, text: str, *, must_pass: bool) -> str:
    """What is wrong with an answer that must pass, or must not; empty if its result is as expected."""
    what = "reference" if must_pass else "counterexample"
    try:
        async with verifying.turn(case):
            limited = longest(case) if must_pass else verifying.limits.limited(case)
            finding = await verifying.of(case).verify(limited, Answer(text=fenced(text, case.language)))
    except Exception as error:  # noqa: BLE001  whatever a verifier raises is listed with the other problems
        return f"its {what} could not be verified: {error}"
    if is_correct(case, finding) == must_pass:
        return ""
    if must_pass:
        return f"its reference does not pass: {finding.reason}"
    return "its counterexample passes, so the tests miss its fault"


async def _stub_problems(verifying: VerifierSet, case: Case) -> list[Problem]:
    """Whether the tests of a case without a reference fit what its prompt states; a warning, as the prompt may ask for more in words."""
    stub = getattr(verifying.of(case), "stub", None)
    text = stub(case) if stub is not None else ""
    if not text:
        return []
    try:
        async with verifying.turn(case):
            finding = await verifying.of(case).verify(
                verifying.limits.limited(case), Answer(text=fenced(text, case.language))
            )
    except VerifierError as error:
        return [Problem(f'case "{case.id}"', 0, f"its tests could not be tried: {error}", fatal=False)]
    in_stub = any(span.file == case.verify.answer for each in finding.diagnostics for span in each.spans)
    is_tests_fault = finding.label == FailureLabel.DOES_NOT_COMPILE and bool(case.verify.answer) and not in_stub
    if finding.label != FailureLabel.DOES_NOT_FIT_THE_TESTS and not is_tests_fault:
        return []
    wrong = f"the tests do not compile with it: {finding.reason}" if is_tests_fault else finding.reason
    what = f"where an answer has the signatures in the prompt, {wrong}; add a reference that passes"
    return [Problem(f'case "{case.id}"', 0, what, fatal=False)]
