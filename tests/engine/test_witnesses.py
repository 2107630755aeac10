"""A verdict that a broken machine could bring about counts only where something known to be right has passed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

import steelyard
from steelyard import records
from steelyard.engine.preflight.witnesses import WitnessSet, could_come_from_machine
from steelyard.engine.results.conclusion import run_conclusion
from steelyard.errors import ExitCode
from steelyard.protocols import FailureLabel
from steelyard.records import Answer, Case, Expectations, Finding, Verify
from steelyard.reports.terminal import summary_text
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.store.journal import StoredRun
from steelyard.store.side_files import witness_results
from steelyard.verifiers.python.verifier import PythonVerifier
from support.facts import facts

RIGHT = "def double(number):\n    return 2 * number\n"
BROKEN = "def double(number:\n"
DIES = "import os\n\ndef double(number):\n    os._exit(3)\n"
TESTS = Expectations(test_file="assert double(2) == 4\nassert double(3) == 6\n")


def python_case(reference: str) -> Case:
    return Case(id="double", prompt="?", language="python", timeout_secs=20, expectations=TESTS, reference=reference)


def run(folder: Path, case: Case, *answers: str) -> steelyard.Run:
    """A run in which a model gives these answers to a case."""
    lines = [json.dumps({"case_id": case.id, "raw_response": f"```python\n{answer}\n```"}) for answer in answers]
    folder.mkdir(exist_ok=True)
    (folder / "samples.jsonl").write_text("\n".join(lines) + "\n")
    return steelyard.run([case], models=f"replay:{folder}/samples.jsonl", output=folder / "run")


def exit_code(done: steelyard.Run) -> ExitCode:
    return run_conclusion(done.folder, done.summary, done.stopped, done.notes).exit_code


def test_a_broken_answer_is_wrong_where_a_right_one_passes(tmp_path: Path) -> None:
    for reference in ("", RIGHT):
        done = run(tmp_path / f"with{len(reference)}", python_case(reference), RIGHT, BROKEN)
        assert sorted(verdict.found.label for verdict in facts(done.folder).verdicts) == ["", "does not compile"]
        assert exit_code(done) == ExitCode.OK


def test_where_the_reference_fails_the_case_is_at_fault_and_no_attempt_at_it_counts(tmp_path: Path) -> None:
    done = run(tmp_path, python_case("def double(number):\n    return 3 * number\n"), DIES, RIGHT, RIGHT)
    found = facts(done.folder)
    (model,) = done.summary.models
    assert (model.attempts, model.missing, model.unscored) == (0, 3, ("double",))
    assert {failure.stage for failure in found.failures} == {"verify"}
    for failure in found.failures:
        assert failure.message.startswith("the case's own reference fails: ")
        assert "got 6, expected 4" in failure.message
    assert exit_code(done) == ExitCode.CANNOT_TELL


def test_what_came_of_witnesses_is_stored_and_shown(tmp_path: Path) -> None:
    done = run(tmp_path, python_case(RIGHT), RIGHT, DIES, DIES)
    (result,) = witness_results(StoredRun(done.folder))
    assert (result.case, result.source, result.problem) == ("double", "reference", "")
    assert result.verifier.startswith("python")
    assert done.info.witnesses == done.summary.witnesses == records.WitnessCounts(tried=1, passed=1)
    shown = summary_text(done.summary, title="", next_commands=(), width=80, color=False, details=True)
    assert "references tried here: 1 of 1 passed" in shown


def test_a_syntax_error_is_believed_where_the_reference_compiles(tmp_path: Path) -> None:
    done = run(tmp_path / "compiles", python_case(RIGHT), BROKEN, BROKEN)
    assert [verdict.found.label for verdict in facts(done.folder).verdicts] == ["does not compile"] * 2
    (result,) = witness_results(StoredRun(done.folder))
    assert (result.case, result.source, result.problem) == ("double", "compiled reference", "")
    newer = "def double(number):\n    unless number:\n        return 2 * number\n"
    done = run(tmp_path / "newer", python_case(newer), BROKEN, RIGHT)
    # one that was reached before the witness failed is withdrawn
    assert [model.missing for model in done.summary.models] == [2], "this Python may be too old for the case"
    assert all(failure.message.startswith("the case's own reference") for failure in facts(done.folder).failures)


def test_references_are_compiled_together_and_each_is_told_apart() -> None:
    async def compiled() -> list[bool]:
        sandbox = ZygoteSandbox(strongest_isolation())
        case = python_case("")
        texts = [f"```python\n{text}\n```" for text in (RIGHT, BROKEN, DIES, "x = 1\nx = = 2")]
        try:
            return await PythonVerifier(sandbox).compiling([(case, text) for text in texts])
        finally:
            await sandbox.close()

    assert asyncio.run(compiled()) == [True, False, True, False]


def test_a_run_in_which_all_pass_needs_no_witness(tmp_path: Path) -> None:
    done = run(tmp_path, python_case(RIGHT), RIGHT, RIGHT)
    assert witness_results(StoredRun(done.folder)) == []
    assert "references" not in summary_text(
        done.summary, title="", next_commands=(), width=80, color=False, details=True
    )


def test_an_answer_that_kills_itself_is_verified_again_alone_and_then_counts(tmp_path: Path) -> None:
    kills = "import os\n\ndef double(number):\n    os.kill(os.getpid(), 9)\n"
    done = run(tmp_path, python_case(""), RIGHT, kills)
    assert [verdict.found.label for verdict in facts(done.folder).verdicts] == ["", "died"]
    assert {verdict.found.trouble for verdict in facts(done.folder).verdicts} == {""}
    assert [result.source for result in witness_results(StoredRun(done.folder))] == ["built-in"]


class ScriptedVerifier:
    """A verifier whose machine works as a script says, and that counts what it is asked."""

    version = "scripted 1"
    at_once = 4
    runs_code = True

    def __init__(self, passes: Callable[[str], bool]) -> None:
        self._passes = passes
        self.asked: list[str] = []

    def witness(self, case: Case) -> Case:
        return Case(id="witness", prompt="", reference="built-in", timeout_secs=case.timeout_secs)

    def check(self, case: Case) -> None:
        pass

    async def verify(self, case: Case, answer: Answer) -> Finding:
        self.asked.append(answer.text)
        await asyncio.sleep(0.01)
        passed = self._passes(answer.text)
        return Finding(passed=passed, reason="" if passed else "no compiler", isolation="full", code=answer.text)

    async def close(self) -> None:
        pass


def problems(verifier: ScriptedVerifier, *cases: Case) -> list[str]:
    """What witnesses say of cases that are asked about at the same time."""

    async def together() -> list[str]:
        witnesses = WitnessSet(lambda case: verifier, "full")
        return list(await asyncio.gather(*(witnesses.problem(case, Finding()) for case in cases)))

    return asyncio.run(together())


def test_a_witness_is_tried_once_for_all_that_wait_for_it() -> None:
    verifier = ScriptedVerifier(lambda text: True)
    own = Case(id="a", prompt="a", reference="own")
    assert problems(verifier, own, own, *(Case(id=name, prompt="") for name in "bcd")) == [""] * 5
    assert sorted(verifier.asked) == ["built-in", "own"]


def test_where_the_built_in_witness_fails_the_machine_is_at_fault() -> None:
    verifier = ScriptedVerifier(lambda text: False)
    for problem in problems(
        verifier, Case(id="a", prompt="", language="rust", reference="own"), Case(id="b", prompt="", language="rust")
    ):
        assert problem == (
            "rust answers cannot be verified on this machine: a correct one fails: no compiler; steelyard doctor says more"
        )
    assert verifier.asked.count("built-in") == 2, "it is tried twice, and once for all cases"


def test_a_witness_that_fails_once_is_tried_again() -> None:
    answers = iter([False, True])
    assert problems(ScriptedVerifier(lambda text: next(answers)), Case(id="a", prompt="", reference="own")) == [""]


def test_an_answer_that_must_not_compile_needs_a_witness_that_does() -> None:
    case = Case(id="a", prompt="", reference="own", expectations=Expectations(should_compile=False))
    verifier = ScriptedVerifier(lambda text: False)
    verifier_of_broken = replace(Finding(), compiled=False, isolation="full", label=FailureLabel.DOES_NOT_COMPILE)
    assert could_come_from_machine(case, verifier_of_broken)
    assert problems(verifier, case) != [""]


PASSED, FAILED = records.Test(name="one", outcome="passed"), records.Test(name="two", outcome="failed")
IN_PROCESS = Finding(code="x", compiled=True, isolation="full", trust="in-process")


def raised(message: str, cause: records.TestFailureCause) -> Finding:
    """What is found out about an answer that raised while it was called from outside."""
    failed = records.Test(name="two", outcome="failed", message=message, cause=cause)
    return replace(IN_PROCESS, tests=(failed,), label=FailureLabel.EXCEPTION, trust="isolated")


@pytest.mark.parametrize(
    ("finding", "suspect"),
    [
        (replace(IN_PROCESS, tests=(PASSED,)), False),
        (replace(IN_PROCESS, compiled=False, label=FailureLabel.DOES_NOT_COMPILE), True),
        (replace(IN_PROCESS, tests=(PASSED, FAILED), label=FailureLabel.DIED), True),
        (replace(IN_PROCESS, tests=(PASSED, FAILED), label=FailureLabel.MEMORY_LIMIT), True),
        (replace(IN_PROCESS, tests=(PASSED, FAILED), label=FailureLabel.WRONG_ANSWER), False),
        (replace(IN_PROCESS, tests=(FAILED,), label=FailureLabel.WRONG_ANSWER), True),
        (replace(IN_PROCESS, tests=(FAILED,), label=FailureLabel.WRONG_ANSWER, trust="isolated"), False),
        (replace(IN_PROCESS, tests=(FAILED,), label=FailureLabel.EXCEPTION, trust="isolated"), True),
        (raised("IndexError: list index out of range", "computation"), False),
        (replace(raised("IndexError: list index out of range", "computation"), trust="in-process"), True),
        (raised("IndexError: raised before any test", ""), True),
        (raised("ModuleNotFoundError: No module named 'numpy'", "exception"), True),
        (raised("RuntimeError: can't start new thread", "exception"), True),
        (raised("BlockingIOError: [Errno 11] Resource temporarily unavailable", "exception"), True),
        (replace(IN_PROCESS, label=FailureLabel.NO_TESTS), True),
        (replace(IN_PROCESS, compiled=False, label=FailureLabel.NOT_ALLOWED), False),
        (Finding(label=FailureLabel.NO_CODE), False),
    ],
)
def test_only_what_a_machine_could_bring_about_needs_a_witness(finding: Finding, suspect: bool) -> None:
    assert could_come_from_machine(Case(id="a", prompt="", language="rust", verify=Verify()), finding) == suspect


def test_a_wrong_answer_beside_its_tests_needs_a_reference_that_passes() -> None:
    """A test that wants what the sandbox lacks, such as a socket, fails right answers next to tests that they pass."""
    finding = replace(IN_PROCESS, tests=(PASSED, FAILED), label=FailureLabel.WRONG_ANSWER)
    case = Case(id="a", prompt="", language="python", reference="own")
    assert could_come_from_machine(case, finding)
    assert not could_come_from_machine(case, replace(finding, trust="isolated"))
    assert not could_come_from_machine(case, replace(IN_PROCESS, tests=(PASSED,)))
    # the runtime of a program may print what the answer did not
    program = Case(id="a", prompt="", language="r", reference="own", verify=Verify(kind="command"))
    assert could_come_from_machine(program, replace(finding, trust="isolated"))
