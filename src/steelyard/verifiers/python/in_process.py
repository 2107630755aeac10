"""Answers judged with their tests beside them, seen from outside: what is asked of the guest, and what its report means."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.errors import VerifierError
from steelyard.protocols import FailureLabel, ProcessResult, ResourceLimits
from steelyard.records import Case, Finding, Test, TestFailureCause, TestOutcome
from steelyard.text import verbatim_reply
from steelyard.verifiers.code.join_stub import code_from_reply
from steelyard.verifiers.python.findings import (
    LABELS_BY_CAUSE,
    MAX_ANSWER_OUTPUT_CHARS,
    compile_failure,
    failure_label,
)
from steelyard.verifiers.python.guests import GuestChannel, answer_guest, exit_description, finish_call
from steelyard.verifiers.python.impossible_tests import check_defined
from steelyard.verifiers.python.one_program import TestNames, UsedNames
from steelyard.verifiers.python.plan import FILE_STYLES, PythonSettings, PythonTestPlan
from steelyard.verifiers.trouble import trouble_sign

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox

EQUALITY_METHOD_PATTERN = re.compile(r"__(?:eq|ne)__")
EQUALITY_PHRASE_PATTERN = re.compile(
    r"\b(?:class(?:es)?|instances?|objects?|it|they)\b(?:(?!return|\bsum\b|count|find|number of)[^.!?\n])*"
    r"\b(?:compar\w+|equals?|equality)\b[^.!?\n]*"
    r"\b(?:int|integer|float|number|str|string|text|tuple|list|dict|dictionary|set|bytes|plain|built-?in|ordinary)s?\b",
    re.IGNORECASE,
)
"""A sentence that asks for objects that compare themselves with plain data."""
EQUALITY_NAME_PATTERN = re.compile(
    r"\b(?:[Aa]n?|[Ee]ach|[Ee]very) `?[A-Z]\w*`? (?:also |must |should |can |may |to )*"
    r"(?:(?:compares?|is|be|tests?) equal|equals?)\b[^.!?\n]*"
    r"\b(?:int|integer|float|number|str|string|text|tuple|list|dict|dictionary|set|bytes|plain|built-?in|ordinary)s?\b"
)
"""The same of a class by its name: "A Vec compares equal to a tuple"."""
EQUALITY_EXAMPLE_PATTERN = re.compile(r"\b[A-Z]\w*\([^()\n]*\) *[!=]= *(?:[-\d'\"(\[{]|True\b|False\b|None\b)")
"""An example in which an object is compared with plain data."""
MAX_CACHED_REHEARSALS = 1000
"""Cases whose tests are known by having been run once."""
MAX_PACKED_TESTS = 100
"""Tests whose code is kept: answers to one case come together."""


class TestFact(NamedTuple):
    """How a test went beside an answer."""

    outcome: str
    message: str
    cause: TestFailureCause
    seconds: float
    had_word: bool
    """Whether an object of the answer's said that it equals plain data."""


class InProcessReport(NamedTuple):
    """What the guest reported about one answer."""

    tests: dict[str, TestFact]
    """By name; for steps, the number of the step."""
    raised: str
    died: str
    death: TestFailureCause
    """Why a session died, if it did."""
    tampered: str
    changed: str
    """Something of the test framework that is not as it was before the answer was loaded."""
    is_finished: bool
    is_complete: bool
    """Whether a session ended normally."""
    undefined: list[str]
    """Undefined names that the tests use."""
    compile_error: tuple[str, int | None] | None
    used: UsedNames
    result: ProcessResult


class Rehearsal(NamedTuple):
    """What a file of tests is like, known from running it without the answer that is judged."""

    names: tuple[str, ...]
    skipped: frozenset[tuple[str, str]]
    """Tests that skip themselves or expect to fail for every answer: their names, each with `skipped` or `expected`."""
    is_whole: bool
    """Whether the file could be run; otherwise the names are those of its functions."""


class InProcessJudge:
    """Runs tests beside an answer; the list of tests is known in advance."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._rehearsals: dict[str, Rehearsal] = {}
        self._rehearsing: dict[str, asyncio.Lock] = {}
        """Answers to one case that come together wait for one rehearsal."""
        self._allowing: dict[str, bool] = {}
        self._packed: dict[tuple[str, ...], str] = {}
        """The code of tests, as the interpreter of an environment has compiled it."""

    async def judge(self, case: Case, tests: PythonTestPlan, code: str, *, seconds: float = 0) -> Finding:
        """The verdict of tests that run beside the answer; one that is to be confirmed there has these CPU seconds."""
        rehearsal = None if seconds else await self.rehearsal(case, tests)
        allows = asks_for_own_equality(case)
        report = await self._run(case, tests, code, allows_own_word=allows, seconds=seconds)
        is_own_word = any(fact.had_word for fact in report.tests.values())
        if is_own_word and not allows and await self._reference_has_own_equality(case, tests):
            report = await self._run(case, tests, code, allows_own_word=True, seconds=seconds)
        check_defined(case, report.undefined)
        if rehearsal is None:
            # where every test passes that is in the file, none has to be known better
            finding = _finding(report, tests, Rehearsal(tests.names, frozenset(), is_whole=False))
            if not finding.label and tests.names != ("the file",):
                return finding
            rehearsal = await self.rehearsal(case, tests)
        return _finding(report, tests, rehearsal)

    async def judge_as_one_program(
        self, case: Case, tests: PythonTestPlan, code: str, names: TestNames
    ) -> tuple[Finding, UsedNames]:
        """The verdict of tests that share these names with the answer, and what it does with them; it fails if it has others."""
        rehearsal = await self.rehearsal(case, tests)
        report = await self._run(case, tests, code, allows_own_word=asks_for_own_equality(case), shares=names)
        return _finding(report, tests, rehearsal), report.used

    async def rehearsal(self, case: Case, tests: PythonTestPlan) -> Rehearsal:
        """The tests of a file by the names that its runner finds, once for all answers."""
        if tests.style not in FILE_STYLES or not tests.names:
            return Rehearsal(tests.names, frozenset(), is_whole=True)
        key = f"{case.tests_digest} {PythonSettings.of(case).python_env} {hash(case.reference)}"
        async with self._rehearsing.setdefault(key, asyncio.Lock()):
            known = self._rehearsals.get(key)
            if known is None:
                if len(self._rehearsals) >= MAX_CACHED_REHEARSALS:
                    forgotten = next(iter(self._rehearsals))
                    self._rehearsals.pop(forgotten)
                    self._rehearsing.pop(forgotten, None)
                known = self._rehearsals[key] = await self._rehearsed(case, tests)
        return known

    async def _rehearsed(self, case: Case, tests: PythonTestPlan) -> Rehearsal:
        reference = _reference_code(case)
        report = await self._run(case, tests, reference, allows_own_word=True)
        if report.raised and not report.tests and reference is not None:
            report = await self._run(case, tests, None, allows_own_word=True)
        skipped = {
            (name, "expected" if fact.outcome == "expected" else "skipped")
            for name, fact in report.tests.items()
            if fact.outcome not in ("passed", "failed")
        }
        if report.tests and len(skipped) == len(report.tests):
            raise VerifierError("every test of the case skips itself here, so no answer can be judged")
        is_whole = bool(report.tests) and not report.raised and report.is_finished
        return Rehearsal(tuple(report.tests) if is_whole else tests.names, frozenset(skipped), is_whole)

    async def _reference_has_own_equality(self, case: Case, tests: PythonTestPlan) -> bool:
        """Whether the reference, too, has an object that says that it equals plain data."""
        reference = _reference_code(case)
        if reference is None:
            return False
        key = f"{case.tests_digest} {hash(reference)}"
        if key not in self._allowing:
            report = await self._run(case, tests, reference, allows_own_word=True)
            self._allowing[key] = any(fact.had_word for fact in report.tests.values())
        return self._allowing[key]

    async def _run(
        self,
        case: Case,
        tests: PythonTestPlan,
        code: str | None,
        *,
        allows_own_word: bool,
        seconds: float = 0,
        shares: TestNames | None = None,
    ) -> InProcessReport:
        ours, theirs = socket.socketpair()
        facts: list[list[Any]] = []
        # CPU time decides, wall time is a backstop
        is_confirmed = seconds > 0
        seconds = seconds or case.timeout_secs
        limits = ResourceLimits(cpu_seconds=seconds, wall_seconds=2 * seconds + 10)
        source = tests.source or case.tests
        key = (case.tests_digest, source, PythonSettings.of(case).python_env)
        job = {
            "style": tests.style,
            "code": code,
            "tests": source,
            "packed_tests": self._packed.get(key, ""),
            "steps": tests.steps,
            "entry_point": case.verify.entry_point,
            "allows_own_word": allows_own_word,
            "confirms": is_confirmed,
            "shares": sorted(shares.every) if shares else [],
            "imports": sorted(shares.imports) if shares else [],
            "seconds": limits.cpu_seconds,
        }
        with ours:
            async with self._sandbox.host(answer_guest("inside", case, tests.style, f"{code}\n{case.tests}")) as host:
                running = asyncio.ensure_future(host.call([theirs], limits))
                try:
                    guest = GuestChannel(ours)
                    await guest.send([job])
                    while (fact := await guest.receive()) is not None:
                        facts.append(fact)
                        if len(facts) == 1 and fact[0] == "compiled" and fact[2]:
                            self._keep_packed(key, fact[2])  # no line of the answer has run
                    result = await finish_call(host, running)
                finally:
                    running.cancel()
        return _report(facts, result)

    def _keep_packed(self, key: tuple[str, ...], packed: str) -> None:
        if len(self._packed) >= MAX_PACKED_TESTS:
            self._packed.pop(next(iter(self._packed)))
        self._packed[key] = packed


def asks_for_own_equality(case: Case) -> bool:
    """Whether a case without a reference asks for objects that compare themselves; a reference says it better."""
    asked = "\n".join((*(message.text for message in case.messages), case.verify.stub or ""))
    return not case.reference and any(
        pattern.search(asked)
        for pattern in (
            *(EQUALITY_METHOD_PATTERN, EQUALITY_PHRASE_PATTERN),
            *(EQUALITY_NAME_PATTERN, EQUALITY_EXAMPLE_PATTERN),
        )
    )


def _reference_code(case: Case) -> str | None:
    if not case.reference:
        return None
    text = case.reference if "```" in case.reference else verbatim_reply(case.reference, case.language)
    return code_from_reply(case, text).code


def _report(facts: list[list[Any]], result: ProcessResult) -> InProcessReport:
    by_kind = {str(kind): values for kind, *values in facts if kind != "test"}
    if "unable" in by_kind:
        raise VerifierError(str(by_kind["unable"][0]))
    tests: dict[str, TestFact] = {}
    for _, name, seconds, outcome, own, message, cause in (fact for fact in facts if fact[0] == "test"):
        # a second session runs all tests in one process, and decides
        had_word = own == "own" or (name in tests and tests[name].had_word)
        tests[name] = TestFact(outcome, message, cause, float(seconds), had_word)
    nothing: list[Any] = ["", ""]
    died, death = by_kind.get("died", nothing)
    error = by_kind.get("not compiled")
    return InProcessReport(
        tests=tests,
        raised=str(by_kind.get("raised", [""])[0]),
        died=died,
        death=death,
        tampered=str(by_kind.get("tampered", [""])[0]),
        changed=str(by_kind.get("changed", [""])[0]),
        is_finished="finished" in by_kind,
        is_complete="complete" in by_kind,
        undefined=[fact[1] for fact in facts if fact[0] == "undefined"],
        compile_error=(str(error[0]), error[1]) if error else None,
        used=UsedNames(*map(frozenset, by_kind.get("named", ()))),
        result=result,
    )


def _finding(report: InProcessReport, tests: PythonTestPlan, rehearsal: Rehearsal) -> Finding:
    """What came from beside the answer, as a finding; what is not accounted for has failed."""
    result = report.result
    if report.compile_error is not None:
        return compile_failure(*report.compile_error, result.seconds)
    output = result.stdout.decode("utf-8", "replace")[:MAX_ANSWER_OUTPUT_CHARS]
    ended = report.died or ("" if report.is_finished else exit_description(result))
    otherwise = report.raised or ended or "not run"
    accounted = _accounted_steps(report, tests) if tests.steps else accounted_tests(report.tests, rehearsal)
    judged = [judged_test(name, fact, rehearsal, report.tampered, otherwise) for name, fact in accounted]
    if tests.steps and report.raised and not any(test.outcome == "failed" for test in judged):
        judged.append(after_last_test(report.raised))
    end = result.limit or LABELS_BY_CAUSE.get(report.death, FailureLabel.DIED)
    label, reason = failure_label(judged, "" if report.tests else report.raised, end if ended else "", otherwise)
    if report.tampered:
        label, reason = FailureLabel.TAMPERED, f"tried to forge its result: {report.tampered}"
    return Finding(
        compiled=True,
        tests=tuple(judged),
        label=label,
        reason=reason,
        output=output,
        trust="in-process",
        note=f"it has changed {report.changed}, by which tests are run" if report.changed and not label else "",
        test_seconds=result.seconds,
        tampered=report.tampered,
        trouble="" if report.is_finished else trouble_sign(result),
    )


def _accounted_steps(report: InProcessReport, tests: PythonTestPlan) -> list[tuple[str, TestFact | None]]:
    """Every test of a plan, with how it went."""
    if not report.is_complete:
        return [(name, None) for name in tests.names]
    places = [str(place) for place, step in enumerate(tests.steps) if step["test"]]
    return [(name, report.tests.get(place)) for name, place in zip(tests.names, places, strict=True)]


def accounted_tests(tests: dict[str, TestFact], rehearsal: Rehearsal) -> list[tuple[str, TestFact | None]]:
    """Every test of a file that must have run, with how it went, and the additional tests that ran."""
    missing: list[tuple[str, TestFact | None]] = []
    for name in rehearsal.names:
        # one test of a file may be run with other arguments
        stem = name.partition("[")[0] if rehearsal.is_whole else name.rpartition(".")[2]
        ran = (known.partition("[")[0] for known in tests)
        if not any((known if rehearsal.is_whole else known.rpartition(".")[2]) == stem for known in ran):
            missing.append((name, None))
    return [*tests.items(), *missing]


def after_last_test(raised: str) -> Test:
    """What the tests do after their last assertion counts, too."""
    return Test(name="after the last test", outcome="failed", message=raised)


def judged_test(name: str, fact: TestFact | None, rehearsal: Rehearsal, tampered: str, otherwise: str) -> Test:
    """How one test of a file counts; what is not accounted for has failed."""
    outcome: TestOutcome = "failed"
    if tampered or fact is None:
        return Test(name=name, outcome=outcome, message=tampered or otherwise)
    message = fact.message
    if fact.outcome == "passed":
        outcome = "passed"
    elif fact.outcome != "failed":
        # what the answer had a hand in is no reason to skip
        if fact.outcome == "declined" or (name, fact.outcome) in rehearsal.skipped:
            outcome = "ignored"
        message = f"skipped: {message}"
    cause = fact.cause if outcome == "failed" else ""
    return Test(name=name, outcome=outcome, message=message, seconds=fact.seconds, cause=cause)
