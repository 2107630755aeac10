"""Python answers, judged by running their tests."""

from __future__ import annotations

import asyncio
import importlib.util
import platform
import re
import socket
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from steelyard.errors import MissingToolError, VerifierError
from steelyard.protocols import LIMIT_LABELS, FailureLabel, ProcessResult, ResourceLimits
from steelyard.records import Answer, Case, Finding, Test
from steelyard.sandbox.processors import processor_count
from steelyard.verifiers.code.join_stub import code_from_reply
from steelyard.verifiers.code.pairs import finding_by_pairs
from steelyard.verifiers.code.repeatable import PYTHON_CHANCE_PATTERN, is_repeatable_code
from steelyard.verifiers.python.findings import compile_failure
from steelyard.verifiers.python.guests import (
    GuestChannel,
    RefereeProcess,
    answer_guest,
    compiled_together,
    exit_description,
    finish_call,
    installed_packages,
    python_guest,
    venv_base_folders,
)
from steelyard.verifiers.python.impossible_tests import (
    asked_builtin,
    check_defined,
    check_tests,
    told_names,
    untold_names,
)
from steelyard.verifiers.python.in_process import (
    InProcessJudge,
    Rehearsal,
)
from steelyard.verifiers.python.inseparable_answers import changes_settings, why_inseparable
from steelyard.verifiers.python.one_program import as_one_program, bound_by_both, changes_tests, doubt, test_names
from steelyard.verifiers.python.plain.answers import defines_itself, is_plain_answer
from steelyard.verifiers.python.plain.calls import answered_calls, plain_report
from steelyard.verifiers.python.plan import FILE_STYLES, PythonSettings, PythonTestPlan, python_test_plan, with_claims
from steelyard.verifiers.python.refereed import (
    RefereedFinding,
    inseparable_finding,
    referee_death,
    refereed_file_finding,
    refereed_finding,
)
from steelyard.verifiers.witnesses import python_witness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from steelyard.protocols import GuestHost, Sandbox

PYTHON_BINDING_PATTERN = re.compile(
    r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE
)
"""A line that gives a name to a function, a class or a value."""
FAILURES_BY_NAMES = frozenset({FailureLabel.WRONG_ANSWER, FailureLabel.EXCEPTION})
"""What an answer does that has another object than its tests by one name, or none."""
CONFIRMATION_START_SECONDS = 5
"""CPU seconds that a second judging may take beyond what tests and answer may take each."""
MAX_CACHED_TEST_PLANS = 1000
"""The number of cases whose parsed tests are cached."""


class PythonVerifier:
    """Runs the tests in one sandbox and the answer in another, so that the answer cannot reach what judges it."""

    settings = PythonSettings
    version = f"python 31, CPython {platform.python_version()}"
    at_once = processor_count()
    runs_code = True
    _plans: ClassVar[dict[str, PythonTestPlan]] = {}
    """By the digest of tests, for all verifiers of this process: a run checks its cases with one and verifies with another."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._referees: list[RefereeProcess] = []
        self._in_process = InProcessJudge(sandbox)

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
        guest = python_guest("candidate", PythonSettings.of(first).python_env, self._plan(first).style)
        async with self._sandbox.host(guest) as candidate:
            compiled = await compiled_together(candidate, [code or "" for code in found], _limits(first))
        return [code is not None and is_compiled for code, is_compiled in zip(found, compiled, strict=True)]

    def _plan(self, case: Case) -> PythonTestPlan:
        """The case's tests, parsed once for all its attempts."""
        if case.tests_digest not in self._plans:
            if len(self._plans) >= MAX_CACHED_TEST_PLANS:
                self._plans.pop(next(iter(self._plans)))
            self._plans[case.tests_digest] = python_test_plan(case)
        return self._plans[case.tests_digest]

    def _examined(self, case: Case, tests: PythonTestPlan) -> PythonTestPlan:
        """The case's tests for a referee; most are calls with plain data, which need none."""
        if tests.is_examined:
            return tests
        known = self._plan(case)
        if not known.is_examined:
            known = self._plans[case.tests_digest] = with_claims(known, case)
        return known

    async def verify(self, case: Case, answer: Answer) -> Finding:
        tests = self._plan(case)
        if tests.called_builtins and (name := asked_builtin(case, tests.called_builtins)):
            # otherwise its tests would call the function of the language
            verify = msgspec.structs.replace(case.verify, entry_point=name, style=tests.style)
            case = msgspec.structs.replace(case, verify=verify)
            tests = self._plan(case)
        expected = (*case.expectations.expected_functions, *case.expectations.expected_types)
        extracted = code_from_reply(case, answer.text)
        if extracted.code is None:
            return Finding(label=FailureLabel.NO_CODE, reason=f"no code in the reply ({extracted.how})")
        if tests.is_program:
            finding = await self._program(case, extracted.code)
        elif _belongs_inside(tests):
            finding = await self._inside(case, tests, extracted.code)
        elif tests.names and (why := why_inseparable(extracted.code)):
            finding = await self._inside(case, self._examined(case, tests), extracted.code)
            finding = msgspec.structs.replace(finding, note=finding.note or f"judged beside its tests: {why}")
        else:
            finding = await self._isolated_first(case, tests, extracted.code)
            names = untold_names(case)
            if not finding.label and names and defines_itself(extracted.code, names):
                note = f"the tests use {names[0]} without importing it, and the answer has made its own"
                finding = msgspec.structs.replace(finding, trust="in-process", note=note)
        if finding.label in FAILURES_BY_NAMES and not tests.is_program and changes_settings(extracted.code):
            finding = await self._with_its_settings(case, tests, extracted.code, finding)
        if finding.label in FAILURES_BY_NAMES and not tests.is_program:
            finding = await self._as_one_program(case, tests, extracted.code, finding)
        if not finding.label and not finding.trust and not tests.is_program:
            finding = await self._with_names_of_tests(case, tests, extracted.code, finding)
        is_unexplained = finding.trust == "in-process" and not finding.label and not finding.note
        return msgspec.structs.replace(
            finding,
            note=_why_in_process(tests) if is_unexplained else finding.note,
            code=extracted.code,
            missing=_missing(extracted.code, expected),
            trust=finding.trust or "isolated",
            isolation=self._sandbox.level,
        )

    async def _isolated_first(self, case: Case, tests: PythonTestPlan, code: str) -> Finding:
        """The referee's verdict, or that of tests beside the answer where a failed test saw what cannot cross to the referee."""
        refereed = await self._called(case, tests, code) if tests.calls else None
        if refereed is None:
            tests = self._examined(case, tests)
            if _belongs_inside(tests):
                return await self._inside(case, tests, code)
            refereed = await self._refereed(case, tests, code)
            if tests.rereads_arguments and refereed.is_altered and not refereed.finding.label:
                refereed = await self._without_changes(case, tests, code, refereed)
            if tests.rereads_arguments and refereed.is_drained and not refereed.finding.label:
                refereed = refereed.with_own_word("it has read an iterator that its tests look at again")
        if refereed.is_diverged and not refereed.finding.label:
            beside = await self._inside(case, tests, code)
            note = "judged beside its tests: they and the answer hold the same list or the like, which was changed"
            return msgspec.structs.replace(beside, note=beside.note or note)
        # in one process an answer also finds the parts of packages that its tests have imported
        is_shared = refereed.finding.label in FAILURES_BY_NAMES and PythonSettings.of(case).python_env
        if not (refereed.uncrossed or is_shared) or refereed.finding.label in LIMIT_LABELS:
            return await self._confirmed(case, tests, code, refereed)
        beside = await self._inside(case, tests, code)
        note = "judged beside its tests, which may import parts of packages for it"
        if refereed.uncrossed:
            uncrossed = refereed.uncrossed[0]
            note = f"judged beside its tests: {uncrossed} looks at something that cannot leave the answer's process"
        return msgspec.structs.replace(beside, note=beside.note or note)

    async def _confirmed(self, case: Case, tests: PythonTestPlan, code: str, refereed: RefereedFinding) -> Finding:
        """The referee's finding; a pass that is not certain counts only if the tests pass beside the answer, too."""
        if refereed.finding.label or refereed.is_certain:
            return refereed.finding
        # tests and answer had this much each, in processes of their own
        seconds = 2 * case.timeout_secs + CONFIRMATION_START_SECONDS
        beside = await self._in_process.judge(case, tests, code, seconds=seconds)
        if not beside.label and is_plain_answer(code):
            return refereed.finding
        if not beside.label:
            note = "confirmed beside its tests, where such an answer could have changed what they use"
            return msgspec.structs.replace(refereed.finding, trust="in-process", note=beside.note or note)
        return msgspec.structs.replace(beside, note="passed apart from its tests, but not beside them")

    async def _without_changes(
        self, case: Case, tests: PythonTestPlan, code: str, passed: RefereedFinding
    ) -> RefereedFinding:
        """A pass, if the tests also pass when they do not see what the answer changed in its arguments."""
        again = await self._refereed(case, tests, code, withholds=True)
        if not again.finding.label:
            return passed
        return passed.with_own_word("passes only because it changed what its tests gave it, and looked at again")

    async def _as_one_program(self, case: Case, tests: PythonTestPlan, code: str, failed: Finding) -> Finding:
        """A failure, unless the answer passes where it shares its names with its tests, as in a plain run of both."""
        names = test_names(case, tests)
        if not any(name in code for name in names.every):
            return failed
        passed, used = await self._in_process.judge_as_one_program(case, as_one_program(tests, case), code, names)
        if passed.label or names.every.isdisjoint(used.named) or changes_tests(case, names, used):
            return failed
        why = doubt(case, names, used, code)
        note = f"passes as one program with its tests: it uses {why or min(names.every & used.named)}"
        every = tuple(Test(name=name, outcome="passed") for name in tests.names) if tests.steps else passed.tests
        return msgspec.structs.replace(passed, tests=every, trust="unproved" if why else "in-process", note=note)

    async def _with_names_of_tests(self, case: Case, tests: PythonTestPlan, code: str, passed: Finding) -> Finding:
        """A pass; it is not isolated if a plain run fails because the tests bind names of the answer to something else."""
        names = test_names(case, tests)
        both = bound_by_both(names, code)
        note = f"its tests use {min(both.builtins, default='')} of Python's, and the answer has made its own"
        if not both.builtins:
            if not both.twice:
                return passed
            shared = names._replace(every=names.every | both.twice, imports=names.imports - both.twice)
            together, _ = await self._in_process.judge_as_one_program(case, as_one_program(tests, case), code, shared)
            if not together.label:
                return passed
            note = f"fails as one program with its tests, where {min(both.twice)} is bound to something else"
        return msgspec.structs.replace(passed, trust="in-process", note=note)

    async def _with_its_settings(self, case: Case, tests: PythonTestPlan, code: str, failed: Finding) -> Finding:
        """A failure, unless the answer passes where its tests have the settings that it made, as in a plain run."""
        passed = await self._inside(case, self._examined(case, tests), code)
        note = "judged beside its tests: it changes settings of the interpreter, which they share there"
        return failed if passed.label else msgspec.structs.replace(passed, note=note)

    async def close(self) -> None:
        while self._referees:
            await self._referees.pop().end()

    async def _called(self, case: Case, tests: PythonTestPlan, code: str) -> RefereedFinding | None:
        """Let the answer do all calls of its tests; None if a result needs a referee."""
        async with self._sandbox.host(answer_guest("candidate", case, tests.style, code)) as candidate:
            answered, received = await answered_calls(candidate, code, tests.calls, _limits(case))
        report = plain_report(tests.calls, case.verify.entry_point, answered, received)
        return None if report is None else refereed_finding(report, tests, answered)._replace(is_certain=True)

    async def _refereed(
        self, case: Case, tests: PythonTestPlan, code: str, *, withholds: bool = False
    ) -> RefereedFinding:
        """Let a referee call the answer, each in a sandbox of its own."""
        limits = _limits(case)
        async with (
            self._referee(case, tests, limits) as referee,
            self._sandbox.host(answer_guest("candidate", case, tests.style, code)) as candidate,
        ):
            answering = asyncio.ensure_future(candidate.call([referee.introduce()], limits, beside=referee.host))
            try:
                report = await referee.judged(code, answering, limits.wall_seconds, withholds=withholds)
                answered = await finish_call(candidate, answering)
            finally:
                answering.cancel()
            if report is None and referee.is_late:
                await referee.end()
                return inseparable_finding(tests.names)
            if report is None:
                # its tests may wait for what could not cross
                await referee.end()
                return inseparable_finding(tests.names)
        if report[0].get("beside"):
            return inseparable_finding(tests.names)
        if "died" in report[0]:
            return referee_death(tests, report[0]["died"])
        check_defined(case, report[0].get("undefined", ()))
        if not tests.file:
            refereed = refereed_finding(report[0], tests, answered)
        else:
            refereed = await self._refereed_file(case, tests, report[0], answered)
        return refereed._replace(is_certain=_is_certain(report[0], tests))

    async def _refereed_file(
        self, case: Case, tests: PythonTestPlan, report: dict[str, Any], answered: ProcessResult
    ) -> RefereedFinding:
        """What the referee of a whole file saw; the file must be known well enough to account for all its tests."""
        outcomes = {outcome for _, outcome, *_ in report["tests"]}
        rehearsal = Rehearsal(tests.names, frozenset(), is_whole=False)
        is_made_at_load = report.get("asked_at_load") or tests.names == ("the file",)
        if outcomes & {"skipped", "expected"} or (outcomes and is_made_at_load):
            rehearsal = await self._in_process.rehearsal(case, tests)
        return refereed_file_finding(report, rehearsal, answered)

    @asynccontextmanager
    async def _referee(
        self, case: Case, tests: PythonTestPlan, limits: ResourceLimits
    ) -> AsyncIterator[RefereeProcess]:
        """A referee that knows these tests: one that waits, or a new one in place of one that knows others."""
        environment = PythonSettings.of(case).python_env
        waiting = next((one for one in self._referees if one.tests is tests and one.environment == environment), None)
        if waiting is not None:
            self._referees.remove(waiting)
        else:
            while len(self._referees) >= self.at_once:
                await self._referees.pop(0).end()
            waiting = RefereeProcess(self._sandbox, tests, environment)
            job = tests.file or {
                "steps": tests.steps,
                "entry_point": case.verify.entry_point,
                "claims": tests.claims,
                **tests.stub._asdict(),
            }
            await waiting.begin({**job, "seconds": limits.cpu_seconds})
        try:
            yield waiting
        except BaseException:
            await waiting.end()
            raise
        if not waiting.ended:
            self._referees.append(waiting)

    async def _program(self, case: Case, code: str) -> Finding:
        """Run the answer as a program once for each pair."""
        said = PythonSettings.of(case)
        async with self._sandbox.host(answer_guest("program", case, "", code)) as host:
            finding = await finding_by_pairs(
                said.pairs, said.tolerance, lambda stdin: _run_program(host, case, code, stdin)
            )
        return finding if finding.compiled is False else msgspec.structs.replace(finding, compiled=True)

    async def _inside(self, case: Case, tests: PythonTestPlan, code: str) -> Finding:
        """Run the tests of any style beside the answer: one test per planned name, with trust in-process."""
        return await self._in_process.judge(case, tests, code)


async def _run_program(host: GuestHost, case: Case, code: str, stdin: bytes) -> ProcessResult | Finding:
    """How a program ended; what it says of itself is heard only before its first line runs."""
    ours, theirs = socket.socketpair()
    with ours:
        running = asyncio.ensure_future(host.call([theirs], _limits(case), stdin=stdin))
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


def _belongs_inside(tests: PythonTestPlan) -> bool:
    """Whether the tests mean something only in one process with the answer."""
    is_file_beside = tests.style in FILE_STYLES and bool(tests.names) and not tests.file
    return tests.runs_text or tests.speaks_of_process or is_file_beside


def _why_in_process(tests: PythonTestPlan) -> str:
    """Why a pass rests on a run beside its tests, or on what the answer's objects say."""
    if tests.runs_text:
        return "judged beside its tests: they run text as code"
    if tests.speaks_of_process:
        return "judged beside its tests: they look at their process"
    if _belongs_inside(tests):
        return "judged beside its tests: they can only be run there"
    return "its tests take the word of an object that the answer made"


def _limits(case: Case, *, more: float = 0) -> ResourceLimits:
    # a busy machine must not turn right into timed out: CPU time decides, wall time is a backstop
    return ResourceLimits(cpu_seconds=case.timeout_secs + more, wall_seconds=2 * case.timeout_secs + 10 + more)


def _is_certain(report: dict[str, Any], tests: PythonTestPlan) -> bool:
    """Whether what the referee saw would have been the same in one process with the answer."""
    plain = tests.plain
    if plain is None or report.get("data_only") is not True or not plain.names.issuperset(report.get("found", ())):
        return False
    # examples compare what was printed, too
    is_printed = tests.style == "doctest" and any(report.get("output", ())[report["printed_at_load"] :])
    return not is_printed and (plain.gives_once or report.get("gave_containers") is False)


def _missing(code: str, expected: tuple[str, ...]) -> tuple[str, ...]:
    """The expected names that no line defines; a search that hostile code cannot make slow, as parsing it here could be."""
    defined = {name for pair in PYTHON_BINDING_PATTERN.findall(code) for name in pair}
    return tuple(name for name in expected if name not in defined)
