"""Replies with the same text are verified once, say so, and hide no verdict that could be another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steelyard import run, verify
from steelyard.engine.options import RunOptions
from steelyard.engine.verifier_processes import shared_verdicts
from steelyard.engine.verifier_processes.shared_verdicts import SharedVerdicts
from steelyard.protocols import VerdictCallback
from steelyard.records import Answer, Case, Expectations, Failure, Finding, Reply, Verdict
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


class OneVerifier:
    """A verifier set of one verifier, which says of every text that it is repeatable."""

    def of(self, case: Case) -> Any:
        return self

    def is_repeatable(self, case: Case, text: str) -> bool:
        return True


def reply(number: int, text: str) -> Reply:
    return Reply(key=f"k{number}", at="", case="double", model="m", number=number, asked="", answer=Answer(text=text))


def shared(pool: CountingPool, texts: list[str], *, is_held: bool, recheck: int = 0) -> dict[int, Verdict | Failure]:
    """What becomes of replies with these texts, numbered from 1."""
    found: dict[int, Verdict | Failure] = {}
    pool.is_held = is_held

    async def carry_out() -> None:
        verifying: Any = OneVerifier()
        sharing = SharedVerdicts(pool, verifying, RunOptions(recheck=recheck))
        async with sharing.at_work(lambda fact, _: found.update({fact.number: fact})):
            for number, text in enumerate(texts, 1):
                await sharing.put(reply(number, text), PLAIN)
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
        Finding(label="time limit", isolation="full"),
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
