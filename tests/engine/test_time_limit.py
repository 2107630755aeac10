"""A time limit on asking ends what waits too long, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.plugins.time_limit import within_seconds


def test_what_never_waits_sets_no_timer() -> None:
    async def prompt() -> str:
        return "answer"

    async def timers() -> int:
        loop = asyncio.get_running_loop()
        assert await within_seconds(60, prompt()) == "answer"
        return len(loop._scheduled)  # type: ignore[attr-defined]

    assert asyncio.run(timers()) == 0


def test_what_waits_is_continued_where_it_waited_and_may_fail_on_its_own() -> None:
    heard = []

    async def slow(ends: bool) -> str:
        for _ in range(3):
            await asyncio.sleep(0)
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, "late")
        heard.append(await future)
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except TimeoutError:
            heard.append("its own time limit")
        if ends:
            raise ValueError("broken")
        return "answer"

    assert asyncio.run(within_seconds(60, slow(ends=False))) == "answer"
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(within_seconds(60, slow(ends=True)))
    assert heard == ["late", "its own time limit"] * 2


def test_what_waits_too_long_is_ended_and_can_clean_up() -> None:
    cleaned = []

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(TimeoutError):
        asyncio.run(within_seconds(0.01, hangs()))
    assert cleaned == [True]


def test_a_cancellation_from_outside_is_no_time_out() -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(within_seconds(60, asyncio.sleep(60)))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
