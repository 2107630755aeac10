"""The progress line names what it waits for, and its estimate never counts upwards."""

from __future__ import annotations

import asyncio
import re
import time

import pytest

from steelyard.engine.pool import LocalPool
from steelyard.engine.progress import ProgressCounts, ProgressDisplay, SlowAnswers, progress_line
from steelyard.records import Answer, Case, Failure, Reply, Verdict, WitnessResult

COUNTS = ProgressCounts(wanted=100, replied=100, judged=0, correct=0, failed=0, spent=0, reason="")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    return seconds


def test_an_estimate_never_counts_upwards(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay()
    display._pause = 0
    for judged in (10, 40, 41, 41, 41, 41, 90, 95):
        clock[0] += 10
        display.show(COUNTS._replace(judged=judged))
    lines = capsys.readouterr().err.splitlines()
    left = [float(found[1]) for line in lines if (found := re.search(r"about (\d+) s left", line))]
    assert len(lines) == 8
    assert left == sorted(left, reverse=True)
    # while nothing ends it says nothing rather than the same for ever
    assert 3 <= len(left) < 8


def test_a_line_names_the_case_whose_answers_run_longest() -> None:
    slow = SlowAnswers("fib", answers=2, seconds=8, limit=10)
    assert "2 answers to fib have run for 8 s of 10" in progress_line(COUNTS._replace(slow=slow), 30)
    assert "fib" not in progress_line(COUNTS._replace(slow=slow._replace(seconds=1)), 30)


class Endless:
    """Verifies until it is told to stop."""

    at_once = 3
    witness_results: tuple[WitnessResult, ...] = ()

    def __init__(self) -> None:
        self.told = asyncio.Event()

    async def verdict(self, reply: Reply, case: Case, *, alone: bool = False) -> Verdict | Failure:
        await self.told.wait()
        return Failure(key=reply.key, at="", case=case.id, model="m", number=1, stage="verify", message="stopped")

    async def close(self) -> None: ...


def test_a_pool_tells_which_answers_it_waits_for() -> None:
    async def told() -> tuple[int, SlowAnswers | None]:
        service = Endless()
        pool = LocalPool(service)
        async with pool.at_work(lambda *_: None):
            for number, name in enumerate(("fib", "sort", "fib", "fib")):
                reply = Reply(key=f"{number}", at="", case=name, model="m", number=1, asked="", answer=Answer(text=""))
                await pool.put(reply, Case(id=name, prompt="?", timeout_secs=10))
            await asyncio.sleep(0.01)
            running = pool.running
            service.told.set()
        assert pool.running == (0, None)
        return running

    count, slow = asyncio.run(told())
    assert slow is not None
    assert (count, slow.case, slow.answers, slow.limit) == (3, "fib", 3, 10)
