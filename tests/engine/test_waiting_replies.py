"""Asking goes on while verification is busy, and memory stays bounded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from steelyard import run
from steelyard.engine.verifier_processes.reply_order import MAX_QUEUED_REPLIES
from steelyard.engine.waiting_replies import MAX_HELD_REPLIES, WaitingReplies
from steelyard.records import Answer, Case, Reply, RunInfo, Verify
from steelyard.store.journal import create_run

CASE = Case(id="a", prompt="?", target="x")
ASKED_AND_CHECKED = """
import asyncio
from pathlib import Path

asked = Path(__file__).with_name("asked")

async def ask(prompt):
    with asked.open("a") as file:
        file.write("x")
    return f"answer {asked.stat().st_size}"

async def score(reply):
    while asked.stat().st_size < @ALL@:
        await asyncio.sleep(0.01)
    return True
"""


class BusyPool:
    """A pool that takes nothing until it is told to."""

    given_up = ""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.taken: list[int] = []

    async def put(self, reply: Reply, case: Case) -> None:
        await self.opened.wait()
        self.taken.append(reply.number)


def test_replies_wait_in_order_and_most_of_them_on_disk(tmp_path: Path) -> None:
    async def handed_over() -> tuple[int, list[int]]:
        pool: Any = BusyPool()
        with create_run(tmp_path / "run", RunInfo(id="r", started_at="then"), [CASE]) as journal:
            waiting = WaitingReplies(pool, journal, {"a": CASE})
            feeding = asyncio.create_task(waiting.feed())
            for number in range(1, 1001):
                answer = Answer(text=f"{number}" * 50)
                reply = Reply(key=f"{number}", at="", case="a", model="m", number=number, asked="", answer=answer)
                journal.append(reply)
                waiting.add(reply, journal.last_place)
                await asyncio.sleep(0)
            in_memory = len(waiting._held)
            pool.opened.set()
            waiting.end()
            await asyncio.wait_for(feeding, 60)
        return in_memory, pool.taken

    in_memory, taken = asyncio.run(handed_over())
    assert in_memory <= MAX_HELD_REPLIES
    assert taken == list(range(1, 1001))


def test_every_model_is_asked_before_the_first_answer_is_verified(tmp_path: Path) -> None:
    many = MAX_QUEUED_REPLIES + 2 * MAX_HELD_REPLIES
    (tmp_path / "own.py").write_text(ASKED_AND_CHECKED.replace("@ALL@", str(many)))
    case = Case(id="a", prompt="?", verify=Verify(python=f"{tmp_path}/own.py:score"))
    done = run([case], models=f"python:{tmp_path}/own.py:ask", samples=many, output=tmp_path / "run")
    (model,) = done.summary.models
    assert (model.correct, model.attempts) == (many, many)
