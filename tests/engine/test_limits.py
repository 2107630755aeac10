"""A case that names no limit has one that follows its reference, which is timed only for an answer that needs it."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steelyard import evalsets, resume, run, verify
from steelyard.engine.gate.gate import gate
from steelyard.engine.gate.sides import bless
from steelyard.engine.limits import LEAST_COMPILE_SECONDS, CaseLimits, ReferenceTime, longest
from steelyard.engine.options import RunOptions
from steelyard.engine.reference_time import MeteredSandbox
from steelyard.engine.sharing import share_with_nobody
from steelyard.engine.verifier_processes.service import VerifierProcesses
from steelyard.engine.verifiers import VerifierSet
from steelyard.protocols import ProcessResult, ResourceLimits
from steelyard.records import Answer, Case, CaseLimit, Failure, Pair, Reply, Verdict, Verify
from steelyard.reports.figures import metric_rows
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.store.journal import StoredRun
from steelyard.store.side_files import case_limits

QUICK = "def double(x):\n    return 2 * x\n"
BUSY = """
import time

def double(x):
    end = time.process_time() + {seconds}
    while time.process_time() < end:
        pass
    return 2 * x
"""
LOOP = "def double(x):\n    while True:\n        pass\n"
FUNCTION = Case(
    id="double",
    prompt="?",
    language="python",
    follows_reference=True,
    verify=Verify(tests="assert double(2) == 4", entry_point="double", style="asserts"),
    reference=QUICK,
)
SLOW = replace(FUNCTION, id="slow", reference=BUSY.format(seconds=0.3))


def reply(case: Case, code: str, number: int = 1) -> Reply:
    text = f"```{case.language}\n{code}```"
    return Reply(
        key=f"{case.id}-{number}", at="", case=case.id, model="m", number=number, asked="", answer=Answer(text=text)
    )


def verdicts(case: Case, *codes: str) -> tuple[list[Verdict | Failure], tuple[CaseLimit, ...]]:
    """The verdicts on answers to a case, one after the other, and the limits that were found meanwhile."""

    async def carry_out() -> tuple[list[Verdict | Failure], tuple[CaseLimit, ...]]:
        verifying = VerifierSet([case], RunOptions())
        try:
            facts = [await verifying.verdict(reply(case, code), case) for code in codes]
            return facts, verifying.limits.new()
        finally:
            await verifying.close()

    return asyncio.run(carry_out())


def labels(facts: Sequence[Verdict | Failure]) -> list[str]:
    return [fact.found.label if isinstance(fact, Verdict) else fact.message for fact in facts]


def limits(seconds: float | None) -> CaseLimits:
    """The limits of cases whose references take so long; None if they fail."""

    async def time(_: Case) -> ReferenceTime | None:
        return None if seconds is None else ReferenceTime(seconds, seconds)

    return CaseLimits(time, share_with_nobody)


def settled(case: Case, seconds: float | None) -> tuple[float, float | None]:
    """How long an answer may run and compile, once one has reached its limit."""
    found = asyncio.run(limits(seconds).settled(case))
    return found.timeout_secs, found.compile_secs


def test_an_honest_run_times_nothing() -> None:
    facts, found = verdicts(SLOW, QUICK, "def double(x):\n    return x\n")
    assert (labels(facts), found) == (["", "wrong answer"], ())


def test_a_loop_is_stopped_at_the_least_limit_where_the_reference_is_quick() -> None:
    facts, (found,) = verdicts(FUNCTION, LOOP)
    assert labels(facts) == ["cpu limit"]
    assert (found.seconds, found.compile_seconds) == (2, LEAST_COMPILE_SECONDS)
    assert found.reference_seconds is not None
    assert 0 < found.reference_seconds < 0.2
    assert isinstance(facts[0], Verdict)
    assert facts[0].tests == FUNCTION.tests_digest


def test_an_answer_may_take_ten_times_as_long_as_a_slow_reference() -> None:
    facts, (found,) = verdicts(SLOW, BUSY.format(seconds=2.5))
    assert labels(facts) == [""]
    assert found.seconds >= 5


def test_an_answer_may_wait_twice_as_long_as_its_reference() -> None:
    meter = MeteredSandbox(ZygoteSandbox(strongest_isolation()))
    meter.count(ProcessResult(0, b"", b"", "", 20.0, cpu_seconds=0.1), ResourceLimits())
    assert meter.running == 1.5  # so the limit is 20 s, and the clock stops what waits after 50
    meter.count(ProcessResult(0, b"", b"", "", 4.0, cpu_seconds=1.6), ResourceLimits())
    assert meter.running == 1.6


def test_compiling_is_timed_apart_from_running() -> None:
    spin = "n=0; while [ $n -lt 150000 ]; do n=$((n+1)); done"
    case = Case(
        id="shell",
        prompt="?",
        language="sh",
        timeout_secs=20,
        follows_reference=True,
        verify=Verify(kind="command", answer="answer.sh", build=spin, test="sh answer.sh"),
        reference="exit 0\n",
    )
    facts, (found,) = verdicts(case, "while :; do :; done\n")
    assert labels(facts) == ["cpu limit"]
    assert found.reference_seconds is not None
    assert found.reference_compile_seconds is not None
    assert found.reference_seconds < found.reference_compile_seconds
    assert found.seconds == 2


@pytest.mark.parametrize(
    ("took", "seconds", "compiling"),
    [(0.001, 2, 20), (0.2, 2, 20), (0.21, 5, 20), (0.9, 10, 20), (1.5, 20, 20), (2.5, 60, 60), (40, 60, 60)],
)
def test_a_limit_is_ten_times_the_reference_rounded_up(took: float, seconds: float, compiling: float) -> None:
    assert settled(FUNCTION, took) == (seconds, compiling)


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        (replace(FUNCTION, reference=""), 10),
        (replace(FUNCTION, reference="", timeout_secs=3), 3),
        (replace(FUNCTION, reference="", verify=Verify(pairs=(Pair(input="2", output="4"),))), 60),
        (replace(FUNCTION, reference="", language="rust"), 60),
        (replace(FUNCTION, follows_reference=False, timeout_secs=30), 30),
        (replace(FUNCTION, language="terraform"), 60),
    ],
    ids=["function", "short", "program", "rust", "its own", "of a kind that runs no answer"],
)
def test_without_a_reference_or_with_a_limit_of_its_own_nothing_is_timed(case: Case, seconds: float) -> None:
    assert limits(0.001).limited(case).timeout_secs == seconds
    assert settled(case, 0.001)[0] == seconds


def test_a_reference_that_fails_leaves_the_limit_as_without_one() -> None:
    known = limits(None)
    assert asyncio.run(known.settled(FUNCTION)).timeout_secs == 10
    assert known.new() == ()


@pytest.mark.parametrize(("seconds", "least"), [(20, 2), (60, 10), (120, 20)])
def test_commands_that_may_compile_have_a_higher_least_limit(seconds: float, least: float) -> None:
    case = replace(FUNCTION, timeout_secs=seconds, verify=Verify(kind="command", test="make test"))
    assert limits(0).limited(case).timeout_secs == least


def test_what_is_known_to_be_right_may_take_as_long_as_any_limit() -> None:
    assert longest(replace(FUNCTION, timeout_secs=10)).timeout_secs == 60
    assert longest(replace(FUNCTION, timeout_secs=10, follows_reference=False)).timeout_secs == 10


def test_the_first_limit_that_is_told_counts_and_one_for_other_tests_does_not() -> None:
    known = limits(0.001)
    asyncio.run(known.settled(FUNCTION))
    (first,) = known.new()
    known.learn(replace(first, seconds=60), is_new=True)
    assert known.limited(FUNCTION).timeout_secs == first.seconds == 2
    changed = replace(FUNCTION, reference=SLOW.reference)
    assert known.known(FUNCTION) == first
    assert known.known(changed) is None


def test_a_limit_is_named_where_a_file_names_it(tmp_path: Path) -> None:
    toml = '[eval_set]\nid = "s"\n{header}\n[[cases]]\nid = "a"\nprompt = "p"\ntarget = "x"\n{case}\n'
    rows: dict[str, dict[str, Any]] = {"a": {}, "b": {"timeout_secs": 60}}
    found: list[Case] = []
    for header, case in ("", ""), ("default_timeout_secs = 5", ""), ("", "timeout_secs = 60"):
        (tmp_path / "set.toml").write_text(toml.format(header=header, case=case))
        found += evalsets.load([tmp_path / "set.toml"]).cases
    lines = [json.dumps({"id": name, "prompt": "p", "target": "x", **row}) for name, row in rows.items()]
    (tmp_path / "set.jsonl").write_text("\n".join(lines) + "\n")
    found += evalsets.load([tmp_path / "set.jsonl"]).cases
    assert [(case.follows_reference, case.timeout_secs) for case in found] == [
        *((True, 60), (False, 5), (False, 60), (True, 60), (False, 60))
    ]


def test_a_run_keeps_its_limits_and_uses_them_when_it_is_resumed_or_verified(tmp_path: Path) -> None:
    lines = [json.dumps({"case_id": "slow", "raw_response": f"```python\n{code}```"}) for code in (LOOP, QUICK)]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    done = run([SLOW], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run")
    (found,) = case_limits(StoredRun(done.folder))
    assert (found.case, found.seconds >= 5) == ("slow", True)
    # as if it had been found on another machine, where it came to something else
    file = done.folder / "limits.jsonl"
    file.write_text(file.read_text().replace(f'"seconds":{found.seconds}', '"seconds":2.0', 1))
    journal = done.folder / "attempts.jsonl"
    journal.write_bytes(b"".join(line for line in journal.read_bytes().splitlines(keepends=True) if b'"reply"' in line))
    for again in (resume, verify):
        again(done.folder)
        assert [limit.seconds for limit in case_limits(StoredRun(done.folder))] == [2]


def test_a_process_learns_the_limit_of_a_run_or_tells_it() -> None:
    async def carry_out(limit: CaseLimit | None) -> tuple[str, tuple[CaseLimit, ...]]:
        verifying = VerifierSet([FUNCTION], RunOptions())
        verifying.limits.learn(limit)
        processes = VerifierProcesses([FUNCTION], verifying, RunOptions(), 1)
        try:
            fact = await processes.verdict(reply(FUNCTION, BUSY.format(seconds=2.5)), FUNCTION)
            return labels([fact])[0], verifying.limits.new()
        finally:
            await processes.close()

    label, (found,) = asyncio.run(carry_out(None))
    assert (label, found.seconds) == ("cpu limit", 2)
    assert asyncio.run(carry_out(replace(found, seconds=10))) == ("", ())


def test_the_summary_counts_what_a_limit_decided_and_a_gate_names_the_cases_with_other_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"```python\n{code}```" for code in (LOOP, QUICK, QUICK)]
    lines = [json.dumps({"case_id": "double", "raw_response": text}) for text in texts]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    done = run([FUNCTION], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run")
    (model,) = done.summary.models
    assert (model.timed_out, model.correct, model.attempts) == (1, 2, 3)
    assert ("out of time", ("1",), ()) in metric_rows([model])
    shutil.copytree(tmp_path / "run", tmp_path / "slower")
    assert gate(tmp_path / "slower", tmp_path / "run").pairing.limits_changed == ()
    file = tmp_path / "slower" / "limits.jsonl"
    file.write_text(file.read_text().replace('"seconds":2.0', '"seconds":10.0', 1))
    monkeypatch.chdir(tmp_path)
    found = gate(bless([str(tmp_path / "slower")], "main").path, tmp_path / "run")
    assert found.pairing.limits_changed == ("double (10 s, now 2 s)",)
    assert any("1 case with another time limit" in warning and "double (10 s" in warning for warning in found.warnings)
