"""Python answers, judged by running their tests."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import platform
import re
import socket
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from steelyard.errors import MissingToolError, VerifierError
from steelyard.protocols import LIMIT_LABELS, FailureLabel, FalseTests, ProcessResult
from steelyard.records import FLAG_BESIDE_TESTS, Answer, Case, Finding, Test
from steelyard.sandbox.processors import processor_count
from steelyard.verifiers.code.join_stub import code_from_reply
from steelyard.verifiers.code.pairs import finding_by_pairs
from steelyard.verifiers.code.repeatable import PYTHON_CHANCE_PATTERN, is_repeatable_code
from steelyard.verifiers.python.apart import report_apart, why_not_apart
from steelyard.verifiers.python.calls import CallReport, answered_calls
from steelyard.verifiers.python.controls import false_tests
from steelyard.verifiers.python.findings import MAX_ANSWER_OUTPUT_CHARS, compile_failure, failure_label
from steelyard.verifiers.python.guests import (
    GuestChannel,
    answer_guest,
    compiled_together,
    exit_description,
    installed_packages,
    python_guest,
    python_limits,
    venv_base_folders,
)
from steelyard.verifiers.python.impossible_tests import asked_builtin, check_defined, check_tests, told_names
from steelyard.verifiers.python.plain import PlainRuns, reference_code
from steelyard.verifiers.python.plan import PythonTestPlan, python_test_plan
from steelyard.verifiers.python.settings import PythonSettings
from steelyard.verifiers.trouble import trouble_sign
from steelyard.verifiers.witnesses import python_witness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.protocols import GuestHost, Sandbox

PYTHON_BINDING_PATTERN = re.compile(
    r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE
)
"""A line that gives a name to a function, a class or a value."""
WATCHED_SHARE = 0.02
"""The share of verdicts by calls that are looked at by a plain run, too."""
MAX_CACHED_TEST_PLANS = 1000
"""The number of cases whose parsed tests are cached."""


class PythonVerifier:
    """Runs an answer with its tests; where they are calls with plain data, the answer alone, and compares outside."""

    settings = PythonSettings
    version = f"python 32, CPython {platform.python_version()}"
    at_once = processor_count()
    runs_code = True
    _plans: ClassVar[dict[str, PythonTestPlan]] = {}
    """By the digest of tests, for all verifiers of this process: a run checks its cases with one and verifies with another."""

    def __init__(self, sandbox: Sandbox, watch: float = WATCHED_SHARE) -> None:
        """`watch` is the share of verdicts by calls that are looked at by a plain run, too."""
        self._sandbox = sandbox
        self._watch = watch
        self._plain = PlainRuns(sandbox)

    def check(self, case: Case) -> None:
        tests = self._plan(case)
        if tests.names:
            check_tests(case, tests.style)
        environment = PythonSettings.of(case).python_env
        if environment:
            venv_base_folders(Path(environment))
        if tests.style == "pytest" and not environment and importlib.util.find_spec("pytest") is None:
            raise MissingToolError(
                "pytest is not installed here; pip install pytest, or name an environment that has it"
            )

    def surroundings(self, case: Case) -> tuple[str, ...]:
        """What an answer finds to import: the packages of its environment, with their versions."""
        if environment := PythonSettings.of(case).python_env:
            return installed_packages(Path(environment))
        return (f"pytest {metadata.version('pytest')}",) if case.verify.style == "pytest" else ()

    def stub(self, case: Case) -> str:
        """Empty definitions of the names in a case: enough to find what else its tests assume."""
        tests = self._plan(case)
        if tests.is_program or not case.tests or tests.style == "doctest":
            return ""
        return "".join(f"def {name}(*_, **__):\n    return None\n" for name in told_names(case))

    def is_repeatable(self, case: Case, text: str) -> bool:
        return is_repeatable_code(PYTHON_CHANCE_PATTERN, case, text)

    def witness(self, case: Case) -> Case:
        return python_witness(case, self._plan(case).style)

    async def compiling(self, replies: Sequence[tuple[Case, str]]) -> list[bool]:
        """Which replies to cases with one environment and one limit have code that compiles, tried in one process."""
        first, _ = replies[0]
        found = [code_from_reply(case, text).code for case, text in replies]
        guest = python_guest("answer", PythonSettings.of(first).python_env, self._plan(first).style)
        async with self._sandbox.host(guest) as host:
            compiled = await compiled_together(host, [code or "" for code in found], python_limits(first))
        return [code is not None and is_compiled for code, is_compiled in zip(found, compiled, strict=True)]

    def _plan(self, case: Case) -> PythonTestPlan:
        """The case's tests, parsed once for all its attempts."""
        if case.tests_digest not in self._plans:
            if len(self._plans) >= MAX_CACHED_TEST_PLANS:
                self._plans.pop(next(iter(self._plans)))
            self._plans[case.tests_digest] = python_test_plan(case)
        return self._plans[case.tests_digest]

    def false_tests(self, case: Case) -> FalseTests:
        """The tests of a case with expected values changed."""
        style = self._plan(case).style
        return false_tests(msgspec.structs.replace(case, verify=msgspec.structs.replace(case.verify, style=style)))

    async def verify(self, case: Case, answer: Answer) -> Finding:
        plan = self._plan(case)
        if plan.called_builtins and (name := asked_builtin(case, plan.called_builtins)):
            # otherwise its tests would call the function of the language
            verify = msgspec.structs.replace(case.verify, entry_point=name, style=plan.style)
            case = msgspec.structs.replace(case, verify=verify)
            plan = self._plan(case)
        expected = (*case.expectations.expected_functions, *case.expectations.expected_types)
        extracted = code_from_reply(case, answer.text)
        if extracted.code is None:
            return Finding(label=FailureLabel.NO_CODE, reason=f"no code in the reply ({extracted.how})")
        finding = await self._judged(case, plan, extracted.code)
        return msgspec.structs.replace(
            finding,
            code=extracted.code,
            missing=_missing(extracted.code, expected),
            trust=finding.trust or "isolated",
            isolation=self._sandbox.level,
        )

    async def _judged(self, case: Case, plan: PythonTestPlan, code: str) -> Finding:
        """The verdict of the road that these tests can take."""
        if plan.is_program:
            return await self._program(case, code)
        if not plan.names:
            return await self._compiled(case, plan, code)
        called = await self._called(case, plan, code) if plan.calls else None
        if called is None:
            return await self._beside(case, plan, code)
        if called.label and plan.binds_names and called.label not in LIMIT_LABELS and called.compiled:
            # in a plain run it has the names that its tests bind
            beside = await self._beside(case, plan, code)
            is_same = _messages(beside) == _messages(called)
            return msgspec.structs.replace(called, watched=True) if is_same else beside
        return await self._looked_at(case, plan, code, called)

    async def _called(self, case: Case, plan: PythonTestPlan, code: str) -> Finding | None:
        """The verdict of calls with plain data; None if a result is something else."""
        async with self._sandbox.host(answer_guest("answer", case, plan.style, code)) as host:
            report = await answered_calls(host, code, plan.calls, case.verify.entry_point, python_limits(case))
        if report is None:
            return None
        check_defined(case, report.missing)
        return called_finding(report, plan.names)

    async def _looked_at(self, case: Case, plan: PythonTestPlan, code: str, called: Finding) -> Finding:
        """A verdict of calls, of which a share is compared with a plain run."""
        if called.compiled is False or not _is_drawn(code, self._watch):
            return msgspec.structs.replace(called, watched=False)
        plain = await self._plain.judge(case, plan, code)
        if called.label and not plain.label:
            return msgspec.structs.replace(called, watched=True, flag=FLAG_BESIDE_TESTS)
        if plain.label and not called.label and plain.label not in LIMIT_LABELS and not plain.trouble:
            raise VerifierError(f"its calls pass, and a plain run of its tests fails: {plain.reason}")
        return msgspec.structs.replace(called, watched=True)

    async def _beside(self, case: Case, plan: PythonTestPlan, code: str) -> Finding:
        """The verdict of a plain run; a pass is isolated if the tests also pass in a process of their own."""
        plain = await self._plain.judge(case, plan, code)
        if plain.label:
            return plain
        why = why_not_apart(case.tests, plan.style)
        if not why:
            apart = await report_apart(self._sandbox, case, plan, code)
            if apart.passes:
                return msgspec.structs.replace(plain, trust="isolated", note="")
            why = apart.odd or ("" if apart.is_complete else "apart from it they did not come to an end")
            if not why and await self._reference_passes_apart(case, plan):
                return msgspec.structs.replace(plain, flag=FLAG_BESIDE_TESTS)
            why = why or "apart from it they fail its reference"
        return msgspec.structs.replace(plain, note=plain.note or f"judged beside its tests: {why}")

    async def _reference_passes_apart(self, case: Case, plan: PythonTestPlan) -> bool:
        """Whether tests apart from the answer pass the case's reference, as they do where it has none; such answers are rare."""
        code = reference_code(case)
        return code is None or (await report_apart(self._sandbox, case, plan, code)).passes

    async def _compiled(self, case: Case, plan: PythonTestPlan, code: str) -> Finding:
        """Whether an answer compiles that no test looks at, and loads."""
        return await self._plain.judge(case, plan, code)

    async def close(self) -> None:
        """Nothing is kept between answers."""

    async def _program(self, case: Case, code: str) -> Finding:
        """Run the answer as a program once for each pair."""
        said = PythonSettings.of(case)
        async with self._sandbox.host(answer_guest("program", case, "", code)) as host:
            finding = await finding_by_pairs(
                said.pairs, said.tolerance, lambda stdin: _run_program(host, case, code, stdin)
            )
        return finding if finding.compiled is False else msgspec.structs.replace(finding, compiled=True)


async def _run_program(host: GuestHost, case: Case, code: str, stdin: bytes) -> ProcessResult | Finding:
    """How a program ended; what it says of itself is heard only before its first line runs."""
    ours, theirs = socket.socketpair()
    with ours:
        running = asyncio.ensure_future(host.call([theirs], python_limits(case), stdin=stdin))
        try:
            guest = GuestChannel(ours)
            await guest.send([code])
            compiled = await guest.receive()
            outcome = await running
        finally:
            running.cancel()
    if compiled is None:
        if not outcome.limit and outcome.exit_code >= 0:
            raise VerifierError(f"a program could not be started: exit code {outcome.exit_code}")
        # only compiling something monstrous ends here
        return Finding(compiled=False, label=outcome.limit or FailureLabel.DIED, reason=exit_description(outcome))
    if compiled[0] == "not compiled":
        return compile_failure(compiled[1], compiled[2], outcome.seconds)
    return outcome


def called_finding(report: CallReport, names: Sequence[str]) -> Finding:
    """What the calls to an answer came to."""
    ended = report.ended
    if report.compile_error is not None:
        return compile_failure(*report.compile_error, ended.seconds)
    death = "" if report.raised or len(report.tests) == len(names) else exit_description(ended)
    tests = [
        Test(
            name=name,
            outcome="failed" if wrong.text else "passed",
            message=wrong.text,
            seconds=seconds,
            cause=wrong.cause,
        )
        for name, (wrong, seconds) in zip(names, report.tests, strict=False)
    ]
    tests += [Test(name=name, outcome="failed", message=report.raised or death) for name in names[len(tests) :]]
    label, reason = failure_label(tests, report.raised, (ended.limit or FailureLabel.DIED) if death else "", death)
    return Finding(
        compiled=True,
        tests=tuple(tests),
        label=label,
        reason=reason,
        output=ended.stdout.decode("utf-8", "replace")[:MAX_ANSWER_OUTPUT_CHARS],
        trust="isolated",
        compile_seconds=report.compile_seconds,
        test_seconds=ended.seconds,
        trouble=trouble_sign(ended) if death else "",
    )


def _messages(finding: Finding) -> list[str]:
    return [test.message for test in finding.tests]


def _is_drawn(code: str, share: float) -> bool:
    """Whether an answer is among the share that is looked at twice: its text decides, on every machine alike."""
    return int.from_bytes(hashlib.sha256(code.encode("utf-8", "replace")).digest()[:4]) < share * 2**32


def _missing(code: str, expected: tuple[str, ...]) -> tuple[str, ...]:
    """The expected names that no line defines; a search that hostile code cannot make slow, as parsing it here could be."""
    defined = {name for pair in PYTHON_BINDING_PATTERN.findall(code) for name in pair}
    return tuple(name for name in expected if name not in defined)
