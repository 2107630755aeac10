"""Several processes of one machine come to the verdicts of one, and one that is lost costs no verdict."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from steelyard.engine.options import RunOptions
from steelyard.engine.pool import LocalPool
from steelyard.engine.verifier_processes import service
from steelyard.engine.verifier_processes.reply_order import RepliesByCase
from steelyard.engine.verifier_processes.service import VerifierProcesses, verification_service
from steelyard.engine.verifier_processes.wire import FrameConnection
from steelyard.engine.verifiers import VerifierSet
from steelyard.records import Answer, Case, Expectations, Failure, Reply, Verdict, Verify
from steelyard.sandbox import processors
from steelyard.sandbox.levels import strongest_isolation

CHECKS = """
import os
from pathlib import Path

calls = Path(__file__).with_name("calls")

def says_who(reply):
    return {"pass": "right" in reply, "reason": str(os.getpid())}

def dies_once(reply):
    if not calls.exists():
        calls.touch()
        os._exit(9)
    return True

def dies(reply):
    os._exit(9)
"""


class ApartSet(VerifierSet):
    """Lets others verify what only has to be read as well: functions are quicker than sandboxes."""

    def is_verified_apart(self, case: Case) -> bool:
        return not case.expectations.custom_check


def reply(case: str, number: int, text: str) -> Reply:
    return Reply(key=f"{case}-{number}", at="", case=case, model="m", number=number, asked="", answer=Answer(text=text))


async def verdicts(
    cases: list[Case], replies: list[Reply], kind: type[VerifierSet], count: int
) -> dict[str, Verdict | Failure]:
    """What becomes of replies in a pool with this number of processes."""
    means = RunOptions()
    service = VerifierProcesses(cases, kind(cases, means), means, count)
    found: dict[str, Verdict | Failure] = {}
    pool = LocalPool(service)
    by_id = {case.id: case for case in cases}
    try:
        async with pool.at_work(lambda fact, _: found.update({getattr(fact, "ask", fact.key): fact})):
            for one in replies:
                await pool.put(one, by_id[one.case])
    finally:
        await pool.close()
    return found


def own_check(tmp_path: Path, function: str, case: str = "a") -> Case:
    (tmp_path / "checks.py").write_text(CHECKS)
    return Case(id=case, prompt="?", verify=Verify(python=f"{tmp_path}/checks.py:{function}"))


def test_replies_are_spread_over_processes_that_are_gone_afterwards(tmp_path: Path) -> None:
    cases = [own_check(tmp_path, "says_who", name) for name in ("a", "b")]
    replies = [reply(case.id, number, "right" if number % 3 else "wrong") for number in range(30) for case in cases]
    found = asyncio.run(verdicts(cases, replies, ApartSet, 2))
    pids = set()
    for one in replies:
        fact = found[one.key]
        assert isinstance(fact, Verdict)
        assert fact.found.passed is (one.answer.text == "right")
        pids.add(int(fact.found.reason))
    assert len(pids) == 2
    assert os.getpid() not in pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_reply_whose_process_is_lost_is_verified_by_another(tmp_path: Path) -> None:
    found = asyncio.run(verdicts([own_check(tmp_path, "dies_once")], [reply("a", 1, "x")], ApartSet, 1))
    fact = found["a-1"]
    assert isinstance(fact, Verdict)
    assert fact.found.passed


def test_a_reply_that_no_process_survives_is_a_failure_of_ours(tmp_path: Path) -> None:
    found = asyncio.run(verdicts([own_check(tmp_path, "dies")], [reply("a", 1, "x")], ApartSet, 1))
    fact = found["a-1"]
    assert isinstance(fact, Failure)
    assert "the process that verified it ended" in fact.message


class PromptSet:
    """Verifiers that take no time, and notice how many replies they are given at once."""

    at_once = 3
    witness_results = ()

    def __init__(self) -> None:
        self.running = self.most = 0

    async def verdict(self, reply: Reply, case: Case, *, alone: bool = False) -> Failure:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        return Failure(
            key=reply.key, at="", case=case.id, model="m", number=reply.number, stage="verify", message=str(alone)
        )

    async def close(self) -> None: ...


@pytest.mark.parametrize(("alone", "at_once"), [(False, 3), (True, 1)])
def test_a_pool_reports_every_reply_once_and_never_verifies_more_than_it_may(*, alone: bool, at_once: int) -> None:
    verifying, case, found = PromptSet(), Case(id="a", prompt="?", target="x"), []

    async def everything() -> None:
        pool = LocalPool(verifying)
        async with pool.at_work(lambda fact, _: found.append((fact.number, getattr(fact, "message", ""))), alone=alone):
            await asyncio.gather(*(put(pool, range(asker, 900, 3)) for asker in range(3)))

    async def put(pool: LocalPool, numbers: range) -> None:
        for number in numbers:
            # two replies with one key are two replies
            await pool.put(msgspec.structs.replace(reply("a", number, "x"), key=str(number // 2)), case)

    asyncio.run(everything())
    assert sorted(found) == [(number, str(alone)) for number in range(900)]
    assert verifying.most == at_once


def test_a_disk_that_takes_no_verdict_ends_the_asking() -> None:
    case, asked = Case(id="a", prompt="?", target="x"), []

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    async def everything() -> None:
        pool = LocalPool(PromptSet())
        async with pool.at_work(refuse):
            for number in range(100_000):
                asked.append(number)
                await pool.put(reply("a", number, "x"), case)

    with pytest.raises(ExceptionGroup) as ended:
        asyncio.run(everything())
    assert ended.group_contains(OSError, match="full")
    assert len(asked) < 1000


def test_a_case_may_hold_numbers_of_any_size(tmp_path: Path) -> None:
    case = msgspec.structs.replace(own_check(tmp_path, "says_who"), metadata={"factorial": 10**30})
    fact = asyncio.run(verdicts([case], [reply("a", 1, "right")], ApartSet, 1))["a-1"]
    assert isinstance(fact, Verdict)
    assert fact.found.passed


def test_whoever_waits_for_a_frame_that_cannot_be_written_hears_that_it_is_lost() -> None:
    async def sent(content: Any) -> list[str]:
        ours, theirs = socket.socketpair()
        heard: list[str] = []
        gone = asyncio.Event()

        loop = asyncio.get_running_loop()
        sender: FrameConnection[Any] = FrameConnection(Any, heard.append, lambda: None)
        receiver: FrameConnection[Any] = FrameConnection(Any, lambda frame: heard.append(str(frame)), gone.set)
        await loop.create_unix_connection(lambda: sender, sock=ours)
        await loop.create_unix_connection(lambda: receiver, sock=theirs)
        sender.send(content)
        await asyncio.sleep(0)
        if sender.transport is not None:
            sender.close()
        async with asyncio.timeout(10):
            await gone.wait()
        receiver.close()
        return heard

    assert asyncio.run(sent(10**30)) == [f"[{10**30}]"]
    assert asyncio.run(sent(object())) == []


def test_a_process_that_cannot_be_started_is_a_failure_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(subprocess, "Popen", fail)
    fact = asyncio.run(verdicts([own_check(tmp_path, "says_who")], [reply("a", 1, "right")], ApartSet, 1))["a-1"]
    assert isinstance(fact, Failure)
    assert os.strerror(errno.ENOMEM) in fact.message


def test_code_is_verified_apart_and_functions_of_the_user_here(tmp_path: Path) -> None:
    if not strongest_isolation().own_root:
        pytest.skip("sandboxes of this machine are not closed to each other, so one process has them all")
    (tmp_path / "checks.py").write_text(CHECKS)
    tests = "assert double(2) == 4\nassert double(3) == 6\n"
    custom = Expectations(custom_check=f"{tmp_path}/checks.py:says_who")
    cases = [
        Case(id="code", prompt="?", language="python", verify=Verify(tests=tests)),
        Case(id="custom", prompt="?", language="python", verify=Verify(tests=tests), expectations=custom),
    ]
    right, wrong = (f"```python\ndef double(n):\n    return {what}  # right\n```" for what in ("2 * n", "n + 2"))
    replies = [reply("code", 1, right), reply("code", 2, wrong), reply("custom", 1, right)]
    found = asyncio.run(verdicts(cases, replies, VerifierSet, 1))
    outcomes = {
        key: [test.outcome for test in fact.found.tests] for key, fact in found.items() if isinstance(fact, Verdict)
    }
    assert outcomes == {
        "code-1": ["passed", "passed"],
        "code-2": ["passed", "failed"],
        "custom-1": ["passed", "passed"],
    }
    judged_here = found["custom-1"]
    assert isinstance(judged_here, Verdict)
    assert judged_here.found.reason == str(os.getpid())


def test_a_share_of_the_processors_bounds_what_one_process_does_at_once() -> None:
    granted = processors.granted_processor_count()
    processors.take_share(1)
    try:
        assert (processors.processor_count(), processors.granted_processor_count()) == (1, granted)
    finally:
        processors._share.clear()


class WideSet(VerifierSet):
    """Verifiers of a machine on which eight answers are verified at once."""

    at_once = 8


@pytest.mark.parametrize(("processors", "processes"), [(1, 0), (2, 0), (3, 3), (8, 8), (64, 8)])
def test_each_of_many_processors_has_its_own_process(
    processors: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "processor_count", lambda: processors)
    cases = [Case(id="a", prompt="?", language="python", verify=Verify(kind="python", tests="assert f() == 1"))]
    verifying = WideSet(cases, RunOptions())
    found = verification_service(cases, verifying, RunOptions())
    if processes:
        assert isinstance(found, VerifierProcesses)
        assert len(found._processes) == processes
    else:
        assert found is verifying


def test_what_only_has_to_be_read_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "processor_count", lambda: 8)
    cases = [Case(id="a", prompt="?", target="x")]
    verifying = WideSet(cases, RunOptions())
    assert verification_service(cases, verifying, RunOptions()) is verifying


def test_a_bound_of_the_user_holds_over_all_processes() -> None:
    cases = [Case(id="a", prompt="?", target="x")]
    means = RunOptions(parallelism=1)
    assert VerifierProcesses(cases, VerifierSet(cases, means), means, 3).at_once == 1
    assert VerifierProcesses(cases, VerifierSet(cases, RunOptions()), RunOptions(), 3).at_once > 3


def test_a_session_that_is_left_early_leaves_no_error_behind(tmp_path: Path) -> None:
    errors: list[str] = []

    async def everything() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["message"]))
        cases, means = [own_check(tmp_path, "says_who")], RunOptions()
        service = VerifierProcesses(cases, ApartSet(cases, means), means, 1)
        pool = LocalPool(service)
        try:
            async with pool.at_work(lambda *_: None):
                await pool.put(reply("a", 1, "right"), cases[0])
                while service._processes[0]._connection is None:  # noqa: ASYNC110  it has no event for tests
                    await asyncio.sleep(0)
                raise ConnectionError
        finally:
            await pool.close()

    with pytest.raises(ExceptionGroup) as ended:
        asyncio.run(everything())
    assert ended.group_contains(ConnectionError)
    assert errors == []


class HandedOut:
    """Replies that two processes are given, each at most three at a time, and that end when a test says so."""

    def __init__(self, cases: str) -> None:
        self.cases = {name: Case(id=name, prompt="?", target="x") for name in cases}
        means = RunOptions(parallelism=2)
        self.service = VerifierProcesses([*self.cases.values()], ApartSet([*self.cases.values()], means), means, 2, 3)
        self.waiting = RepliesByCase()

    def ask(self, cases: str) -> None:
        for name in cases:
            self.waiting.append((reply(name, 1, "x"), self.cases[name]))

    def given(self) -> list[str]:
        """All that is handed out now, by the place of the process and the case."""
        found = []
        while self.waiting and (chosen := self.service.next_reply(self.waiting)):
            _, case, process = chosen
            assert process is not None
            found.append(f"{self.service._processes.index(process)}{case.id}")
        return found

    def end(self, process: int, replies: int) -> None:
        for _ in range(replies):
            self.service._change_load(self.service._processes[process], -1)


def test_a_process_gets_replies_to_the_cases_that_it_knows() -> None:
    handed = HandedOut("abcd")
    handed.ask("abcd")
    first = handed.given()
    assert len(first) == 4
    handed.end(0, 2)
    handed.end(1, 2)
    for _ in range(5):
        handed.ask("dacb")
        assert sorted(handed.given()) == sorted(first)
        handed.end(0, 2)
        handed.end(1, 2)


def test_a_process_takes_over_a_case_only_where_it_would_soon_be_idle() -> None:
    handed = HandedOut("ab")
    handed.ask("ab")
    assert handed.given() == ["0a", "0b"]
    # the second process starts when the first has enough to do
    handed.ask("aaaaaaa")
    assert handed.given() == ["1a", "1a", "0a", "1a"]
    handed.end(0, 3)
    assert handed.given() == ["0a", "0a", "0a"]


def test_a_process_with_enough_to_do_leaves_a_case_to_who_knows_it() -> None:
    handed = HandedOut("abcd")
    handed.ask("abcd")
    given = handed.given()
    known = {place: [one[1] for one in given if one[0] == place] for place in "01"}
    assert [len(cases) for cases in known.values()] == [2, 2]
    handed.ask(known["0"][0])
    assert handed.given() == [f"0{known['0'][0]}"]
    handed.ask(known["0"][0])
    assert handed.given() == []
    handed.end(1, 1)
    assert handed.given() == [f"1{known['0'][0]}"]


def test_what_processes_are_taken_to_know_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_KNOWN_CASES", 3)
    handed = HandedOut("abcdefgh")
    for name in "abcdefgh" * 2:
        handed.ask(name)
        (given,) = handed.given()
        handed.end(int(given[0]), 1)
    assert [*handed.service._processes[0].known] == [*"fgh"]
    assert handed.service._known == {"f": 1, "g": 1, "h": 1}


def test_a_run_counts_the_verdicts_of_its_processes_whatever_type_a_number_of_its_cases_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_PROCESSORS_ALONE", 0)
    answer = "def f():\n    return 1\n"
    lines = [json.dumps({"case_id": name, "raw_response": answer}) for name in ("a", "b")]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    # a journal gives 20 seconds back as 20.0
    case = Case(
        id="a", prompt="?", language="python", timeout_secs=20, expectations=Expectations(test_file="assert f() == 1\n")
    )
    # and which values are defaults is a part of the digest of tests
    other = Case(id="b", prompt="?", language="python", verify=Verify(kind="python", tests="assert f() == 1\n"))
    done = steelyard.run([case, other], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run")
    (model,) = done.summary.models
    assert (model.correct, model.attempts, model.missing) == (2, 2, 0), done.summary.warnings
