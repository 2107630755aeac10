"""What a conversation of five turns costs us when model and tools cost nothing.

    python benchmarks/conversations.py [--conversations 1000] [--repeat 3]

The scripted model calls a tool with a canned result four times and then answers. `conversation` is a whole run through our public
door, its summary included; `single` is the same run with one request per attempt, and `floor` is as little as asyncio can do:
the same calls, and one line of JSON for each turn. `over HTTP` is the run of conversations with a server in another process, and
`bare client` sends the same requests to it with nothing but the HTTP client and a JSON reader. All run in this process in turns; of
several rounds the cheapest counts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from steelyard import Case, Means, Run, run
from steelyard.records import Answer, CaseTool, ToolCall

AIM_MILLISECONDS = 1.0
TURNS = 5
AT_ONCE = 32
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


CHAT_CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
USAGE = {"prompt_tokens": 24, "completion_tokens": 86}
CHAT_TURNS = [
    msgspec.json.encode({"choices": [{"message": message, "finish_reason": finish}], "usage": USAGE})
    for message, finish in (
        ({"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}, "tool_calls"),
        ({"role": "assistant", "content": LAST.text}, "stop"),
    )
]


class ChatServer(asyncio.Protocol):
    """The scripted model behind chat completions, as cheap as it can be."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._received = transport, b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]) if found else 1
        if len(body) < size:
            return
        self._received = b""
        turn = CHAT_TURNS[body.count(b'"assistant"') >= TURNS - 1]
        self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(turn), turn))


async def serve() -> None:
    """Print the port, and answer until nobody needs it any more."""
    server = await asyncio.get_running_loop().create_server(ChatServer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def over_http(folder: Path, conversations: int) -> None:
    """A run of conversations with a server."""
    url = os.environ["CHAT_SERVER"]
    means = Means(environment={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url}, parallelism=AT_ONCE)
    case = Case(id="sum", prompt="Add one to 1.", target="2", tools=(TOOL,))
    _check(run([case], models="openai/m", samples=conversations, output=folder / "run", means=means), conversations)


def bare_client(folder: Path, conversations: int) -> None:  # noqa: ARG001  it writes nothing
    """The same requests without us."""
    said: list[Any] = [{"role": "user", "content": "Add one to 1."}]
    tool = {"name": "add", "description": TOOL.description, "parameters": TOOL.parameters}
    bodies = []
    for _ in range(TURNS):
        bodies.append({"model": "m", "messages": [*said], "tools": [{"type": "function", "function": tool}]})
        said += [{"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}]
        said += [{"role": "tool", "tool_call_id": "c", "content": '{"sum":2}'}]

    async def converse(client: httpx2.AsyncClient) -> None:
        for body in bodies:
            response = await client.post("/chat/completions", content=msgspec.json.encode(body))
            message = msgspec.json.decode(response.content)["choices"][0]["message"]
        assert message["content"] == LAST.text

    async def everything() -> None:
        waiting = iter(range(conversations))

        async def worker(client: httpx2.AsyncClient) -> None:
            for _ in waiting:
                await converse(client)

        headers = {"authorization": "Bearer k", "content-type": "application/json"}
        async with httpx2.AsyncClient(base_url=os.environ["CHAT_SERVER"], headers=headers) as client:
            await asyncio.gather(*(worker(client) for _ in range(AT_ONCE)))

    asyncio.run(everything())


def conversation(folder: Path, conversations: int) -> None:
    """A run of conversations."""
    _run([Case(id="sum", prompt="Add one to 1.", target="2", tools=(TOOL,))], folder, conversations)


def single(folder: Path, conversations: int) -> None:
    """A run with one request per attempt."""
    _run([Case(id="sum", prompt="Add one to 1.", target="2")], folder, conversations)


def _run(cases: list[Case], folder: Path, samples: int) -> None:
    _check(
        run(cases, models=f"python:{Path(__file__).resolve()}:answer", samples=samples, output=folder / "run"), samples
    )


def _check(done: Run, samples: int) -> None:
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
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
    print_costs(cheapest_rounds(given.conversations, given.repeat))


def cheapest_rounds(conversations: int, repeat: int) -> dict[str, float]:
    """The CPU time of a conversation by each contestant, in turns against one server; of the rounds the cheapest counts."""
    contestants = {
        "floor": floor,
        "single": single,
        "conversation": conversation,
        "bare client": bare_client,
        "over HTTP": over_http,
    }
    arguments = [sys.executable, __file__, "--serve"]
    with tempfile.TemporaryDirectory() as state, subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as chat:
        assert chat.stdout is not None
        os.environ["CHAT_SERVER"] = f"http://127.0.0.1:{chat.stdout.readline().strip()}"
        os.environ["XDG_STATE_HOME"] = state
        for contestant in contestants.values():
            milliseconds(contestant, 10)  # what is imported and compiled once is not counted
        rounds = [
            {name: milliseconds(each, conversations) for name, each in contestants.items()} for _ in range(repeat)
        ]
        chat.terminate()
    return {name: min(each[name] for each in rounds) for name in contestants}


def print_costs(cheapest: dict[str, float]) -> None:
    """Print what each costs, and whether the aim is met."""
    for name, cost in cheapest.items():
        print(f"{name:14}{cost:>8.3f} CPU ms each {cost / cheapest['floor']:>8.1f} x floor")
    ours = cheapest["over HTTP"] - cheapest["bare client"]
    print(f"over HTTP, {ours:.3f} CPU ms of a conversation are ours and {cheapest['bare client']:.3f} are the client's")
    verdict = "met" if cheapest["conversation"] <= AIM_MILLISECONDS else "missed"
    print(f"aim: a conversation of {TURNS} turns at {AIM_MILLISECONDS:g} CPU ms at the most: {verdict}")


if __name__ == "__main__":
    main()
