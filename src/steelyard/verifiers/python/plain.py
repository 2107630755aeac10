"""A plain run: an answer and its tests in one process, as their author would run them; what it reports, and what that means."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.errors import VerifierError
from steelyard.protocols import FailureLabel, ProcessResult
from steelyard.records import Finding, Test
from steelyard.text import verbatim_reply
from steelyard.verifiers.code.join_stub import code_from_reply
from steelyard.verifiers.python.findings import MAX_ANSWER_OUTPUT_CHARS, compile_failure, failure_label
from steelyard.verifiers.python.guests import (
    GuestChannel,
    answer_guest,
    exit_description,
    finish_call,
    python_limits,
)
from steelyard.verifiers.python.impossible_tests import check_defined
from steelyard.verifiers.trouble import trouble_sign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.protocols import GuestHost, Sandbox
    from steelyard.records import Case
    from steelyard.verifiers.python.plan import PythonTestPlan

MAX_CACHED_SKIPS = 1000
"""Cases of which is remembered which of their tests the reference skips."""
SKIP_PATTERN = re.compile(r"(?i)skip|xfail|expectedFailure")
"""What a file says that lets a test end without having passed."""
FORGED_RESULT = "wrote to the channel of its results"


class TestFact(NamedTuple):
    """How a test went."""

    name: str
    """For tests that are known in advance, their number."""
    outcome: str
    """`passed`, `failed`, `skipped` or `expected`."""
    message: str
    seconds: float
    cause: Any
    undefined: str


class RunReport(NamedTuple):
    """What came from a run of tests."""

    ended: ProcessResult
    tests: dict[str, TestFact]
    raised: str = ""
    undefined: tuple[str, ...] = ()
    """Undefined names that the tests use."""
    changed: str = ""
    """Something of the test framework that is not as it was before the answer was loaded."""
    odd: str = ""
    """What could not be forwarded by value to an answer in another process."""
    forged: bool = False
    is_complete: bool = False
    compile_error: tuple[str, int | None] | None = None
    compile_seconds: float = 0

    @property
    def passes(self) -> bool:
        """Whether the tests ran to their end and none failed."""
        is_whole = self.is_complete and not (self.raised or self.forged)
        return is_whole and bool(self.tests) and all(test.outcome != "failed" for test in self.tests.values())


def run_job(case: Case, plan: PythonTestPlan, code: str, used: Sequence[str] = ()) -> dict[str, Any]:
    """What a guest is told that runs these tests; `used` are the names that they use of an answer elsewhere."""
    return {
        "style": plan.style,
        "code": code,
        "tests": plan.source,
        "examples": case.tests if plan.style == "doctest" else "",
        "is_joined": plan.is_joined,
        "given": plan.given,
        "entry_point": case.verify.entry_point,
        "nonce": secrets.token_hex(16),
        "used": used,
    }


async def run_report(
    guest: GuestChannel, job: dict[str, Any], running: asyncio.Future[ProcessResult], host: GuestHost
) -> RunReport:
    """Have tests run, and hear how they go: what does not begin with the word of this run is not theirs."""
    await guest.send([job])
    report = RunReport(ProcessResult(0, b"", b"", "", 0), {})
    said = await guest.receive()
    if said is not None and said[0] == "unable":
        raise VerifierError(str(said[1]))
    if said is not None and said[0] == "not compiled":
        report = report._replace(compile_error=(str(said[1]), said[2]))
    elif said is not None:
        report = report._replace(compile_seconds=float(said[1]))
        try:
            while (said := await guest.receive()) is not None:
                report = _heard(report, job["nonce"], *said)
        except (ValueError, TypeError):
            report = report._replace(forged=True)
    if report.forged:
        host.stop()
    return report._replace(ended=await finish_call(host, running), forged=report.forged or guest.garbled)


def _heard(report: RunReport, nonce: str, word: Any, kind: str, *about: Any) -> RunReport:
    """A report with one more message; raises for one that is not of this run."""
    if word != nonce or report.is_complete:
        raise ValueError(FORGED_RESULT)
    if kind == "test":
        name, outcome, message, seconds, cause, undefined = about
        before = report.tests.get(name)
        if before is None or before.outcome != "failed":
            report.tests[name] = TestFact(name, outcome, message, float(seconds), cause, undefined)
        return report._replace(undefined=(*report.undefined, undefined)) if undefined else report
    if kind == "raised":
        return report._replace(
            raised=about[0] or "nothing that has words", undefined=(*report.undefined, *filter(None, about[1:]))
        )
    if kind == "complete":
        return report._replace(is_complete=True)
    return report._replace(**{kind: about[0]})


class PlainRuns:
    """Runs answers with their tests beside them."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._skips: dict[str, asyncio.Task[frozenset[str]]] = {}

    async def report(self, case: Case, plan: PythonTestPlan, code: str) -> RunReport:
        """What a plain run reports."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            async with self._sandbox.host(answer_guest("tests", case, plan.style, f"{code}\n{case.tests}")) as host:
                running = asyncio.ensure_future(host.call([theirs], python_limits(case)))
                try:
                    return await run_report(GuestChannel(ours), run_job(case, plan, code), running, host)
                finally:
                    running.cancel()

    async def judge(self, case: Case, plan: PythonTestPlan, code: str) -> Finding:
        """The verdict of a plain run."""
        report = await self.report(case, plan, code)
        check_defined(case, report.undefined)
        skipped = [name for name, test in report.tests.items() if test.outcome not in ("passed", "failed")]
        allowed: frozenset[str] = frozenset()
        if skipped and SKIP_PATTERN.search(case.tests):
            allowed = await self._skipped_by_reference(case, plan) if case.reference else frozenset(skipped)
        if report.tests and allowed.issuperset(report.tests):
            raise VerifierError("every test of the case skips itself here, so no answer can be judged")
        return plain_finding(report, plan, allowed)

    async def _skipped_by_reference(self, case: Case, plan: PythonTestPlan) -> frozenset[str]:
        """The tests that end without having passed for the reference, too, found once for all answers."""
        key = f"{case.tests_digest} {hash(case.reference)}"
        if key not in self._skips:
            if len(self._skips) >= MAX_CACHED_SKIPS:
                self._skips.pop(next(iter(self._skips)))
            self._skips[key] = asyncio.ensure_future(self._find_skips(case, plan))
        try:
            return await asyncio.shield(self._skips[key])
        except VerifierError:
            self._skips.pop(key, None)  # a sandbox that did not start says nothing about the next one
            raise

    async def _find_skips(self, case: Case, plan: PythonTestPlan) -> frozenset[str]:
        code = reference_code(case)
        if code is None:
            return frozenset()
        report = await self.report(case, plan, code)
        return frozenset(name for name, test in report.tests.items() if test.outcome not in ("passed", "failed"))


def reference_code(case: Case) -> str | None:
    """The code of a case's reference."""
    if not case.reference:
        return None
    text = case.reference if "```" in case.reference else verbatim_reply(case.reference, case.language)
    return code_from_reply(case, text).code


def plain_finding(report: RunReport, plan: PythonTestPlan, skipped: frozenset[str]) -> Finding:
    """What a plain run reported, as a finding; only these tests may end without having passed."""
    ended = report.ended
    if report.compile_error is not None:
        return compile_failure(*report.compile_error, ended.seconds)
    death = "" if report.is_complete else exit_description(ended)
    tampered = FORGED_RESULT if report.forged else ""
    otherwise = tampered or report.raised or death or "not run"
    tests = [judged_test(fact.name, fact, skipped) for fact in report.tests.values()]
    if plan.has_steps:
        facts = [(name, report.tests.get(str(number))) for number, name in enumerate(plan.names)]
        tests = [judged_test(name, fact, skipped, otherwise) for name, fact in facts]
    elif not tests and not report.raised and not death:
        otherwise = "none of its tests ran"
    if not plan.has_steps and (not tests or death):
        told = {test.name for test in tests}
        tests += [Test(name=name, outcome="failed", message=otherwise) for name in plan.names if name not in told]
    if report.raised and tests and all(test.outcome != "failed" for test in tests):
        # what the tests do after their last assertion counts, too
        tests.append(Test(name="after the last test", outcome="failed", message=report.raised))
    broken = "" if report.tests else report.raised
    label, reason = failure_label(tests, broken, (ended.limit or FailureLabel.DIED) if death else "", otherwise)
    if tampered:
        label, reason = FailureLabel.TAMPERED, f"tried to forge its result: {tampered}"
    return Finding(
        compiled=True,
        tests=tuple(tests),
        label=label,
        reason=reason,
        output=ended.stdout.decode("utf-8", "replace")[:MAX_ANSWER_OUTPUT_CHARS],
        trust="in-process",
        note=f"it has changed {report.changed}, by which tests are run" if report.changed and not label else "",
        compile_seconds=report.compile_seconds,
        test_seconds=ended.seconds,
        tampered=tampered,
        trouble=trouble_sign(ended) if death else "",
    )


def judged_test(name: str, fact: TestFact | None, skipped: frozenset[str], otherwise: str = "") -> Test:
    """How one test counts; what is not told has failed."""
    if fact is None:
        return Test(name=name, outcome="failed", message=otherwise)
    if fact.outcome == "passed":
        return Test(name=name, outcome="passed", message=fact.message, seconds=fact.seconds)
    if fact.outcome == "failed":
        return Test(name=name, outcome="failed", message=fact.message, seconds=fact.seconds, cause=fact.cause)
    outcome = "ignored" if fact.name in skipped else "failed"
    return Test(name=name, outcome=outcome, message=f"skipped: {fact.message}", seconds=fact.seconds)  # type: ignore[arg-type]
