"""What a conversation of five turns costs us when model and tools cost nothing.

    python benchmarks/conversations.py [--conversations 1000] [--repeat 3]

The scripted model calls a tool with a canned result four times and then answers. `conversation` is a whole run through our public
door, its summary included; `single` is the same run with one request per attempt, and `floor` is as little as asyncio can do:
the same calls, and one line of JSON for each turn. All three run in this process in turns; of several rounds the cheapest counts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from steelyard import Case, run
from steelyard.records import Answer, CaseTool, ToolCall

AIM_MILLISECONDS = 1.0
TURNS = 5
CALL = Answer(
    text="",
    finish="tool_calls",
    tool_calls=(ToolCall(name="add", arguments='{"a": 1}', id="c"),),
    input_tokens=24,
    output_tokens=86,
)
LAST = Answer(text="The sum is 2.", input_tokens=24, output_tokens=86)
TOOL = CaseTool(
    name="add",
    description="Add one.",
    parameters={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    result={"sum": 2},
)


async def answer(prompt: str, attempt: Any) -> Answer:  # noqa: ARG001  the messages count
    """The scripted model."""
    turns = sum(message.role == "assistant" for message in attempt.messages)
    return CALL if attempt.tools and turns < TURNS - 1 else LAST


def conversation(folder: Path, conversations: int) -> None:
    """A run of conversations."""
    _run([Case(id="sum", prompt="Add one to 1.", target="2", tools=(TOOL,))], folder, conversations)


def single(folder: Path, conversations: int) -> None:
    """A run with one request per attempt."""
    _run([Case(id="sum", prompt="Add one to 1.", target="2")], folder, conversations)


def _run(cases: list[Case], folder: Path, samples: int) -> None:
    done = run(cases, models=f"python:{Path(__file__).resolve()}:answer", samples=samples, output=folder / "run")
    (model,) = done.summary.models
    if model.correct != samples:
        raise SystemExit(f"only {model.correct} of {samples} attempts are correct")


def floor(folder: Path, conversations: int) -> None:
    """The same calls and lines, and nothing else."""

    class Bare:
        tools = (TOOL,)

        def __init__(self) -> None:
            self.messages: list[Any] = []

    class Said:
        role = "assistant"

    async def converse(file: Any) -> None:
        state = Bare()
        for _ in range(TURNS):
            said = await answer("", state)
            file.write(msgspec.json.encode(said).decode() + "\n")
            file.flush()
            state.messages.append(Said())

    async def everything() -> None:
        with (folder / "turns.jsonl").open("w") as file:
            async with asyncio.TaskGroup() as group:
                for _ in range(conversations):
                    group.create_task(converse(file))

    asyncio.run(everything())


def milliseconds(contestant: Callable[[Path, int], None], conversations: int) -> float:
    """CPU time per conversation."""
    with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-") as folder:
        began = time.process_time()
        contestant(Path(folder), conversations)
        return 1000 * (time.process_time() - began) / conversations


def main() -> None:
    """Measure all in turns, and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the cheapest counts")
    given = parser.parse_args()
    contestants = {"floor": floor, "single": single, "conversation": conversation}
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        for contestant in contestants.values():
            milliseconds(contestant, 10)  # what is imported and compiled once is not counted
        rounds = [
            {name: milliseconds(each, given.conversations) for name, each in contestants.items()}
            for _ in range(given.repeat)
        ]
    cheapest = {name: min(each[name] for each in rounds) for name in contestants}
    for name, cost in cheapest.items():
        print(f"{name:14}{cost:>8.3f} CPU ms each {cost / cheapest['floor']:>8.1f} x floor")
    verdict = "met" if cheapest["conversation"] <= AIM_MILLISECONDS else "missed"
    print(f"aim: a conversation of {TURNS} turns at {AIM_MILLISECONDS:g} CPU ms at the most: {verdict}")


if __name__ == "__main__":
    main()
