"""Who passes tests that are false is found out, nobody else is accused, and the draw can be repeated but not foreseen."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from steelyard import records
from steelyard.analysis.scoring import is_correct
from steelyard.engine.controls import MAX_TRIALS, PASSES_FALSE_TESTS, ControlSet, default_controls
from steelyard.engine.preflight.witnesses import WitnessSet
from steelyard.engine.steps import verify_with_retry
from steelyard.errors import VerifierError
from steelyard.protocols import FalseTests
from steelyard.records import FLAG_CHANGED_TESTS, Answer, Case, Failure, Finding, Reply, TestOutcome, Verdict, Verify

RIGHT = "def double(x): return 2 * x"
EXITS = "import os\nos._exit(0)"
EQUALS_ALL = "class Any:\n    __eq__ = lambda a, b: True\ndef double(x): return Any()"
KNOWS_LATE = "class Any:\n    __eq__ = lambda a, b: True\ndef double(x): return Any() if x < 9 else 18"
CASE = Case(
    id="double",
    prompt="?",
    language="python",
    reference=RIGHT,
    verify=Verify(tests="assert double(1) == 2\nassert double(2) == 4\nassert double(3) == 6\nassert double(9) == 18"),
)


class PlainVerifier:
    """Runs an answer and its tests in one process, and can make tests false."""

    version, at_once, runs_code = "plain 1", 2, True

    def __init__(self, breaks: int = 0, trust: str = "in-process") -> None:
        self.trust = trust
        self.runs: list[tuple[str, str]] = []
        """The answers and the tests that were run."""
        self.breaks = breaks
        """How many runs of false tests break down before they work."""

    def check(self, case: Case) -> None: ...

    async def verify(self, case: Case, answer: Answer) -> Finding:
        if case.tests != CASE.tests and self.breaks:
            self.breaks -= 1
            raise VerifierError("the sandbox would not start")
        code = re.sub(r"```.*\n", "", answer.text)
        self.runs.append((code.strip(), case.tests))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", f"{code}\n{case.tests}", stderr=asyncio.subprocess.DEVNULL
        )
        outcome: TestOutcome = "failed" if await process.wait() else "passed"
        tests = (records.Test(name="test", outcome=outcome),)
        label = "wrong answer" if outcome == "failed" else ""
        return Finding(code=code, tests=tests, trust=self.trust, label=label, isolation="none")

    def false_tests(self, case: Case) -> FalseTests:
        places = [*re.finditer(r"== (\d+)", case.tests)]
        spoilt = [f"{case.tests[: each.start(1)]}777{case.tests[each.end(1) :]}" for each in places]
        every = re.sub(r"== \d+", "== 777", case.tests)
        return FalseTests(tuple(map(_with_tests(case), spoilt)), _with_tests(case)(every))

    async def close(self) -> None: ...


def _with_tests(case: Case) -> Callable[[str], Case]:
    return lambda tests: replace(case, verify=replace(case.verify, tests=tests))


def control_set(verifier: PlainVerifier, number: int | None, key: str) -> ControlSet:
    return ControlSet(lambda _: verifier, number, key, WitnessSet(lambda _: verifier, "none").reference_passes)


def fact(
    code: str, verifier: PlainVerifier, case: Case = CASE, number: int | None = None, key: str = "k"
) -> Verdict | Failure:
    controls = control_set(verifier, number, key)
    reply = Reply(key="r", at="", case=case.id, model="m", number=1, asked="", answer=Answer(text=code))
    return asyncio.run(verify_with_retry(reply, case, verifier, controls=controls))


def found(code: str, verifier: PlainVerifier | None = None, **how: Any) -> Finding:
    verdict = fact(code, verifier or PlainVerifier(), **how)
    assert isinstance(verdict, Verdict)
    return verdict.found


def test_a_right_answer_keeps_its_pass() -> None:
    assert is_correct(CASE, found(RIGHT))
    assert (found(RIGHT).flag, found(RIGHT).tampered, found(RIGHT).controls) == ("", "", 2)


def test_an_answer_that_passes_whatever_is_expected_is_tampered_and_has_failed() -> None:
    for lie in (EXITS, EQUALS_ALL):
        finding = found(lie)
        assert not is_correct(CASE, finding)
        assert (finding.label, finding.tampered, finding.controls) == ("tampered", PASSES_FALSE_TESTS, 2)


def test_an_answer_that_fails_some_false_test_is_flagged_at_most() -> None:
    only = replace(CASE, verify=replace(CASE.verify, tests="assert double(1) == 2\nassert double(9) == 18"))
    flags = {found(KNOWS_LATE, case=only, number=1, key=str(key)).flag for key in range(12)}
    assert flags == {"", FLAG_CHANGED_TESTS}
    assert is_correct(only, found(KNOWS_LATE, case=only, number=1))


def test_an_answer_that_passes_one_of_two_false_tests_is_flagged_whichever_comes_first() -> None:
    only = replace(CASE, verify=replace(CASE.verify, tests="assert double(1) == 2\nassert double(9) == 18"))
    assert {found(KNOWS_LATE, case=only, key=str(key)).flag for key in range(12)} == {FLAG_CHANGED_TESTS}


def test_only_a_pass_that_shared_its_process_is_tried() -> None:
    for code, trust in (("def double(x): return x", "in-process"), (EXITS, "isolated"), (EXITS, "recorded")):
        verifier = PlainVerifier(trust=trust)
        assert found(code, verifier).controls == 0
        assert len(verifier.runs) == 1


def test_without_a_reference_or_with_none_wanted_there_are_no_controls() -> None:
    hows: tuple[dict[str, Any], ...] = ({"case": replace(CASE, reference="")}, {"number": 0})
    for how in hows:
        verifier = PlainVerifier()
        assert is_correct(CASE, found(EXITS, verifier, **how))
        assert len(verifier.runs) == 1


def test_a_value_that_the_reference_does_not_miss_is_no_control() -> None:
    lenient = "assert double(1) == 2\nif 3 > 4:\n    assert double(5) == 10\nassert double(2) == 4 or True"
    verifier = PlainVerifier()
    case = replace(CASE, verify=replace(CASE.verify, tests=lenient))
    assert found(EXITS, verifier, case=case).controls == 1
    assert found("def double(x): return 2", case=case).flag == ""


def test_a_reference_is_tried_six_times_at_most_whatever_the_number_of_answers() -> None:
    tests = "\n".join(f"assert double({number}) == {2 * number}" for number in range(20))
    case = replace(CASE, verify=replace(CASE.verify, tests=tests))
    verifier = PlainVerifier()
    controls = control_set(verifier, 2, "k")

    async def many() -> None:
        for place in range(40):
            answer = Answer(text=f"# {place}\n{RIGHT}")
            await controls.tried(case, answer, await verifier.verify(case, answer))

    asyncio.run(many())
    trials = {tests for code, tests in verifier.runs if code == RIGHT}
    assert len(trials) == 1 + MAX_TRIALS
    assert sum(code == RIGHT for code, _ in verifier.runs) == len(trials)


def test_the_draw_depends_on_the_answer_and_on_the_key_and_on_nothing_else() -> None:
    def drawn(code: str, key: str) -> str:
        verifier = PlainVerifier()
        found(code, verifier, key=key)
        return next(tests for ran, tests in verifier.runs[1:] if ran == code)

    assert drawn(f"{RIGHT}  # 1", "k") == drawn(f"{RIGHT}  # 1", "k")
    assert len({drawn(f"{RIGHT}  # {place}", "k") for place in range(8)}) > 1
    assert len({drawn(f"{RIGHT}  # 1", str(key)) for key in range(8)}) > 1


def test_a_control_that_could_not_be_run_accuses_nobody() -> None:
    assert found(RIGHT, PlainVerifier(breaks=1)).controls == 2
    missing = fact(EXITS, PlainVerifier(breaks=9))
    assert isinstance(missing, Failure)
    assert missing.stage == "verify"


def test_the_number_of_controls_is_part_of_the_key_of_a_verdict() -> None:
    keys = {verdict.key for number in (0, 1, 2) if (verdict := fact(RIGHT, PlainVerifier(), number=number))}
    assert len(keys) == 3


def test_what_a_compiler_works_on_gets_one_control_and_a_script_two() -> None:
    command = Verify(kind="command")
    counts = {
        name: default_controls(replace(CASE, language="", verify=replace(command, answer=name)))
        for name in ("answer.cpp", "Answer.java", "answer.go", "answer.js", "answer.rb")
    }
    assert counts == {"answer.cpp": 1, "Answer.java": 1, "answer.go": 1, "answer.js": 2, "answer.rb": 2}
    assert (default_controls(CASE), default_controls(replace(CASE, language="rust"))) == (2, 1)
    assert default_controls(replace(CASE, workspace="folder")) == 1
