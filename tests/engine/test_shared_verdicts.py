"""Replies with the same text are verified once, say so, and hide no verdict that could be another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steelyard import resume, run, verify
from steelyard.engine import steps
from steelyard.engine.options import RunOptions
from steelyard.engine.steps import failure
from steelyard.engine.verifier_processes import shared_verdicts
from steelyard.engine.verifier_processes.shared_verdicts import SharedVerdicts
from steelyard.errors import VerifierError
from steelyard.protocols import VerdictCallback
from steelyard.records import Answer, Case, Expectations, Failure, Finding, Reply, Verdict, Verify, digest
from steelyard.store.journal import StoredRun

RIGHT = "```python\ndef double(x):\n    return 2 * x\n```"
WRONG = "```python\ndef double(x):\n    return x\n```"
CHANCE = "```python\nimport random\ndef double(x):\n    return 2 * x + random.choice([0])\n```"
PLAIN = Case(id="double", prompt="?", language="python", expectations=Expectations(test_file="assert double(2) == 4"))


class CountingPool:
    """A pool that notes what it is given and says what it was told to say about each text."""

    given_up = ""
    nodes = None
    notes = ()

    def __init__(self, ends: dict[str, Finding | str]) -> None:
        self.ends = ends
        self.verified: list[int] = []
        self.is_held = False
        """Whether replies are held back until the end."""
        self._replies: list[tuple[Reply, Case]] = []
        self._empty = asyncio.Event()

    @asynccontextmanager
    async def at_work(self, report: VerdictCallback, *, alone: bool = False) -> AsyncIterator[None]:
        self._report = report
        working = asyncio.ensure_future(self._work())
        yield
        self.is_held = False
        await self._empty.wait()
        working.cancel()

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(0)
            while self._replies and not self.is_held:
                reply, case = self._replies.pop(0)
                self.verified.append(reply.number)
                self._report(self._fact(reply, case), case)
            if not self._replies:
                self._empty.set()

    def _fact(self, reply: Reply, case: Case) -> Verdict | Failure:
        about: dict[str, Any] = {"at": "then", "case": case.id, "model": reply.model, "number": reply.number}
        end = self.ends[reply.answer.text]
        if isinstance(end, str):
            return Failure(key=reply.key, stage="verify", message=end, **about)
        return Verdict(key=f"v{reply.key}", ask=reply.key, tests=case.tests_digest, verifier="p 1", found=end, **about)

    async def put(self, reply: Reply, case: Case) -> None:
        self._replies.append((reply, case))
        self._empty.clear()
        if not self.is_held:
            await asyncio.sleep(0)

    async def close(self) -> None: ...

    @property
    def waits(self) -> bool:
        return bool(self._replies)


class OneVerifier:
    """A verifier set of one verifier, which says of every text that it is repeatable."""

    version = "p 1"

    def __init__(self, level: str = "full") -> None:
        self.level = level
        self.limits = self

    def limited(self, case: Case) -> Case:
        return case

    def of(self, case: Case) -> Any:
        return self

    def verdict_key(self, ask: str, case: Case) -> str:
        return digest(ask, case.tests_digest, self.version)

    def is_repeatable(self, case: Case, text: str) -> bool:
        return True


def reply(number: int, text: str) -> Reply:
    return Reply(key=f"k{number}", at="", case="double", model="m", number=number, asked="", answer=Answer(text=text))


def shared(
    pool: CountingPool, texts: list[str], *, is_held: bool, recheck: int = 0, case: Case = PLAIN
) -> dict[int, Verdict | Failure]:
    """What becomes of replies with these texts, numbered from 1."""
    found: dict[int, Verdict | Failure] = {}
    pool.is_held = is_held

    async def carry_out() -> None:
        verifying: Any = OneVerifier()
        sharing = SharedVerdicts(pool, verifying, RunOptions(recheck=recheck))
        async with sharing.at_work(lambda fact, _: found.update({fact.number: fact})):
            for number, text in enumerate(texts, 1):
                await sharing.put(reply(number, text), case)
                while not is_held and pool.waits:  # noqa: ASYNC110  the pool has no event for tests
                    await asyncio.sleep(0)
            pool.is_held = False

    asyncio.run(asyncio.wait_for(carry_out(), 20))
    return found


PASSED = Finding(compiled=True, isolation="full", trust="isolated")


@pytest.mark.parametrize("is_held", [True, False])
def test_an_identical_reply_gets_the_verdict_of_the_first_as_its_own(*, is_held: bool) -> None:
    pool = CountingPool({"a": PASSED, "b": PASSED})
    found = shared(pool, ["a", "b", "a", "a"], is_held=is_held)
    assert pool.verified == [1, 2]
    first, other, third, _ = [found[number] for number in sorted(found)]
    assert isinstance(first, Verdict)
    assert isinstance(other, Verdict)
    assert isinstance(third, Verdict)
    assert (first.shared_from, other.shared_from) == ("", "")
    assert (third.shared_from, third.ask, third.number, third.found) == ("k1", "k3", 3, PASSED)
    assert third.key not in (first.key, other.key)
    assert third.at != "then"
    assert set(found) == {1, 2, 3, 4}


@pytest.mark.parametrize(
    "end",
    [
        "the sandbox was killed",
        Finding(label="memory limit", isolation="full"),
        Finding(label="died", isolation="full"),
        Finding(trouble="a kill from outside", isolation="full"),
        Finding(compiled=True, test_seconds=0.6 * PLAIN.timeout_secs, isolation="full"),
    ],
)
@pytest.mark.parametrize("is_held", [True, False])
def test_what_a_machine_may_have_caused_is_verified_every_time(end: Finding | str, *, is_held: bool) -> None:
    pool = CountingPool({"a": end})
    found = shared(pool, ["a", "a", "a"], is_held=is_held)
    assert sorted(pool.verified) == [1, 2, 3]
    assert not any(getattr(fact, "shared_from", "") for fact in found.values())


LOOP = "def double(x):\n    while True: pass\n"
CHATTY_LOOPS = [f"{words}\n\n```python\n{LOOP}```" for words in ("First I thought:", "Then:", "Then:", "At last:")]


@pytest.mark.parametrize("case", [PLAIN, replace(PLAIN, verify=Verify(kind="command"))], ids=["python", "command"])
def test_no_code_runs_out_of_time_twice_whatever_is_said_around_it(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OneVerifier, "is_repeatable", lambda *_: False)
    pool = CountingPool(dict.fromkeys(CHATTY_LOOPS, Finding(label="cpu limit", isolation="full", code=LOOP)))
    found = shared(pool, CHATTY_LOOPS, is_held=False, case=case)
    assert pool.verified == [1]
    assert [getattr(found[number], "shared_from", None) for number in (1, 2, 3, 4)] == ["", "k1", "k1", "k1"]


def test_another_answer_to_a_case_at_which_one_ran_out_of_time_is_verified() -> None:
    pool = CountingPool({CHATTY_LOOPS[0]: Finding(label="cpu limit", isolation="full", code=LOOP), RIGHT: PASSED})
    shared(pool, [CHATTY_LOOPS[0], RIGHT], is_held=False)
    assert pool.verified == [1, 2]


def test_a_time_out_is_reached_again_where_the_user_asks_for_it() -> None:
    pool = CountingPool({"a": Finding(label="cpu limit", isolation="full")})
    shared(pool, ["a", "a"], is_held=False, recheck=1)
    assert pool.verified == [1, 2]


@pytest.mark.parametrize("is_held", [True, False])
def test_what_wall_time_ended_is_tried_again_once_for_all_with_the_same_text(
    *, is_held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "has_fair_clock", lambda: False)
    pool = CountingPool({"a": Finding(label="time limit", isolation="full")})
    found = shared(pool, ["a", "a", "a"], is_held=is_held)
    assert set(found) == {1, 2, 3}
    assert pool.verified == ([1] if is_held else [1, 2, 3])


def test_rechecked_verdicts_are_reached_every_time() -> None:
    pool = CountingPool({"a": PASSED})
    shared(pool, ["a", "a"], is_held=False, recheck=1)
    assert pool.verified == [1, 2]


def test_what_is_kept_and_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_verdicts, "MAX_KEPT_BYTES", 1500)
    monkeypatch.setattr(shared_verdicts, "MAX_WAITING_REPLIES", 1)
    ends: dict[str, Finding | str] = dict.fromkeys("abcdef", PASSED)
    pool = CountingPool(ends)
    shared(pool, [*"abcdef", *"af"], is_held=False)
    assert pool.verified == [1, 2, 3, 4, 5, 6, 7]  # the oldest verdict made room, the newest is there
    held = CountingPool(ends)
    shared(held, [*"aaaa"], is_held=True)
    assert held.verified == [1, 3, 4]


def test_a_run_says_what_it_shared_and_verifying_it_again_keeps_that(tmp_path: Path) -> None:
    texts = [RIGHT, WRONG, RIGHT, RIGHT, WRONG, CHANCE, CHANCE]
    lines = [json.dumps({"case_id": "double", "raw_response": text}) for text in texts]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    done = run([PLAIN], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run")
    for again in (done, verify(done.folder)):
        (model,) = again.summary.models
        assert (model.correct, model.attempts, model.shared) == (5, 7, 3)
        facts = list(StoredRun(done.folder).facts())
        asked = {fact.key: fact.number for fact in facts if isinstance(fact, Reply)}
        sources = {fact.number: asked.get(fact.shared_from) for fact in facts if isinstance(fact, Verdict)}
        assert sources == {1: None, 2: None, 3: 1, 4: 1, 5: 2, 6: None, 7: None}


def test_what_an_earlier_session_verified_is_not_verified_again(tmp_path: Path) -> None:
    def record(texts: list[str]) -> None:
        lines = [json.dumps({"case_id": "double", "raw_response": text}) for text in texts]
        (tmp_path / "samples.jsonl").write_text("\n".join(lines) + "\n")

    def verdicts() -> dict[int, Verdict]:
        return {fact.number: fact for fact in StoredRun(tmp_path / "run").facts() if isinstance(fact, Verdict)}

    record([RIGHT, CHANCE, WRONG, RIGHT, CHANCE])
    run([PLAIN], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run")
    first = verdicts()
    # as if the session had ended before the last two verdicts, and before that on the wrong answer
    journal = tmp_path / "run" / "attempts.jsonl"
    facts = StoredRun(tmp_path / "run").facts()
    kept = [
        line
        for line, fact in zip(journal.read_bytes().splitlines(keepends=True), facts, strict=True)
        if isinstance(fact, Reply) or fact.number in (1, 2)
    ]
    journal.write_bytes(b"".join(kept))
    (model,) = resume(tmp_path / "run").summary.models
    again = verdicts()
    assert (model.correct, model.attempts, model.shared) == (4, 5, 1)
    # the same text has the verdict of the earlier session; what chance may decide and what is new is verified
    assert {number: fact.shared_from for number, fact in again.items()} == {
        **dict.fromkeys((1, 2, 3, 5), ""),
        4: first[1].ask,
    }
    assert [again[number].found.passed for number in (3, 4)] == [first[number].found.passed for number in (3, 4)]


def recalled(verdict: Verdict, *, level: str = "full", is_withdrawn: bool = False) -> list[int]:
    """The replies that are verified where one with the same text has this verdict from an earlier session."""

    async def carry_out() -> None:
        sharing = SharedVerdicts(pool, OneVerifier(level), RunOptions())  # type: ignore[arg-type]
        sharing.recall(reply(1, "a"), PLAIN)
        sharing.recall(verdict, PLAIN)
        if is_withdrawn:
            sharing.recall(failure(verdict, VerifierError("the witness failed")), PLAIN)
        async with sharing.at_work(lambda *_: None):
            await sharing.put(reply(2, "a"), PLAIN)

    pool = CountingPool({"a": PASSED})
    asyncio.run(asyncio.wait_for(carry_out(), 20))
    return pool.verified


def test_a_verdict_of_an_earlier_session_counts_only_if_it_would_be_the_same_today() -> None:
    current = CountingPool({"a": PASSED})._fact(reply(1, "a"), PLAIN)
    assert isinstance(current, Verdict)
    current = replace(current, key=digest("k1", PLAIN.tests_digest, OneVerifier.version))
    assert recalled(current) == []
    assert recalled(current, level="landlock") == [2]
    assert recalled(current, is_withdrawn=True) == [2]
    assert recalled(replace(current, key=digest("k1", PLAIN.tests_digest, "p 0"))) == [2]
    assert recalled(replace(current, found=replace(PASSED, label="memory limit"))) == [2]
    assert recalled(replace(current, found=replace(PASSED, label="cpu limit"))) == []
