"""Python answers, judged in one sandbox that all tests of a process share: a start costs more than an attempt."""

from __future__ import annotations

import asyncio
from typing import Any

from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.plain import PlainRuns
from steelyard.verifiers.python.plan import python_test_plan
from steelyard.verifiers.python.verifier import PythonVerifier

LEVEL = strongest_isolation()
SANDBOX = ZygoteSandbox(LEVEL)
LOOP = asyncio.Runner()
VERIFIER = PythonVerifier(SANDBOX)
PLAIN = PlainRuns(SANDBOX)


def python_case(tests: str = "", *, timeout_secs: float = 20, reference: str = "", **verify: Any) -> Case:
    """A case with these tests; more of what it says to its verifier by name."""
    return Case(
        id="c",
        prompt="Write it.",
        language="python",
        timeout_secs=timeout_secs,
        reference=reference,
        verify=Verify(tests=tests, **verify),
    )


def judged(code: str, case: Case, verifier: PythonVerifier = VERIFIER) -> Finding:
    """The verdict on an answer."""
    return LOOP.run(verifier.verify(case, Answer(text=verbatim_reply(code, "python"))))


def run_plainly(code: str, case: Case) -> Finding:
    """What a run of an answer beside its tests says, whatever other road they could take."""
    return LOOP.run(PLAIN.judge(case, python_test_plan(case), code))


def outcomes(finding: Finding) -> list[str]:
    """How the tests went, in their order."""
    return [test.outcome for test in finding.tests]


def close() -> None:
    """End the processes of the sandbox."""
    LOOP.run(VERIFIER.close())
    LOOP.run(SANDBOX.close())
    LOOP.close()
