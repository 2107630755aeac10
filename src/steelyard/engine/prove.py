"""Whether an eval set's own answers come out as they must: references pass, counterexamples fail."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steelyard.engine.pool import complete, work_through
from steelyard.engine.sitting import Means
from steelyard.engine.verifying import Verifying, in_environment
from steelyard.errors import Problem, VerifierError
from steelyard.plugins import names
from steelyard.scoring import correct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.records import Case, Finding


def prove(cases: Sequence[Case], means: Means = Means()) -> tuple[int, list[Problem]]:
    """How many answers were proved, and what is wrong; a case whose verifier is not there is only warned about."""
    return complete(_prove(in_environment(cases, means.python_env), means))


async def _prove(cases: Sequence[Case], means: Means) -> tuple[int, list[Problem]]:
    problems: list[Problem] = []
    proved = 0
    known = names("verifiers")
    verifying = Verifying(cases, means)
    unproved = [case for case in cases if case.kind not in known and (case.reference or case.counterexample)]
    for kind in sorted({case.kind for case in unproved}):
        count = sum(case.kind == kind for case in unproved)
        problems.append(Problem("", 0, f'answers of {count} cases not proved: no verifier "{kind}" here', fatal=False))

    verifiable = []
    for case in (case for case in cases if case.kind in known):
        try:
            verifying.of(case).check(case)
            verifiable.append(case)
        except VerifierError as error:
            problems.append(Problem(f'case "{case.id}"', 0, str(error)))

    async def try_out(claim: tuple[Case, str, bool]) -> None:
        nonlocal proved
        case, text, must_pass = claim
        what = "reference" if must_pass else "counterexample"
        try:
            async with verifying.turn(case):
                finding: Finding = await verifying.of(case).verify(case, _fenced(text, case.language))
        except Exception as error:  # noqa: BLE001  whatever a verifier raises is told beside the other problems
            problems.append(Problem(f'case "{case.id}"', 0, f"its {what} could not be verified: {error}"))
            return
        if correct(case, finding) == must_pass:
            proved += 1
        elif must_pass:
            problems.append(Problem(f'case "{case.id}"', 0, f"its reference does not pass: {finding.reason}"))
        else:
            problems.append(Problem(f'case "{case.id}"', 0, "its counterexample passes, so the tests miss its fault"))

    claims = [
        (case, text, must_pass)
        for case in verifiable
        for text, must_pass in ((case.reference, True), (case.counterexample, False))
        if text
    ]
    try:
        await work_through(iter(claims), try_out, verifying.at_once)
    finally:
        await verifying.close()
    return proved, sorted(problems)


def _fenced(text: str, language: str) -> str:
    """A reference as a reply would bring it: code alone is put between fences, so that it is taken as it is."""
    if not language or "```" in text:
        return text
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"
