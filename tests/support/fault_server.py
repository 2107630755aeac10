"""A model server on loopback that speaks every wire format, and fails on request."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple

USAGE = {"input": 10, "output": 5}


class Request(NamedTuple):
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: Any
    prompt: str
    """What the user said last."""
    earlier: int
    """How many requests with this prompt came before, in the same wire format."""
    at: float


class Exchange:
    """One request and the means to answer it."""

    def __init__(self, server: FaultServer, request: Request, writer: asyncio.StreamWriter, gone: asyncio.Event):
        self.request = request
        self.gone = gone
        """Set when the client went away."""
        self.drops_next = False
        """Whether the next request on this connection is dropped before it is read."""
        self._server = server
        self._writer = writer

    def completion(
        self, text: str, finish: str = "stop", usage: Mapping[str, int] | None = None, **extra: Any
    ) -> bytes:
        """An answer in the wire format of the request."""
        count = {**USAGE, **(usage or {})}
        path = self.request.path.partition("?")[0]
        if path.endswith("/responses"):
            answer: dict[str, Any] = {
                "status": "completed" if finish == "stop" else "incomplete",
                "incomplete_details": None if finish == "stop" else {"reason": finish},
                "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}],
                "usage": {"input_tokens": count["input"], "output_tokens": count["output"]},
            }
        elif path.endswith(":generateContent"):
            answer = {
                "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": finish.upper()}],
                "usageMetadata": {"promptTokenCount": count["input"], "candidatesTokenCount": count["output"]},
            }
        elif path.endswith("/converse"):
            answer = {
                "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
                "stopReason": {"stop": "end_turn", "length": "max_tokens"}.get(finish, finish),
                "usage": {"inputTokens": count["input"], "outputTokens": count["output"]},
            }
        elif path.endswith("/messages"):
            words = {"stop": "end_turn", "length": "max_tokens"}
            answer = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": text}],
                "stop_reason": words.get(finish, finish),
                "usage": {"input_tokens": count["input"], "output_tokens": count["output"]},
            }
        else:
            answer = {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish},
                ],
                "usage": {"prompt_tokens": count["input"], "completion_tokens": count["output"]},
            }
        return json.dumps({**answer, **extra}).encode()

    def fresh_text(self) -> str:
        """A text that no other answer of this server has."""
        return f"answer {next(self._server.numbers)} to {self.request.prompt}"

    async def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None, says: str = "") -> None:
        """Send a whole response; `says` is the answer in it, which is then on record as sent."""
        await self.begin(status, {"content-length": str(len(body)), **(headers or {})})
        await self.finish(body, says)

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        headers = {"content-type": "application/json", **headers}
        lines = [f"HTTP/1.1 {status} Status-{status}", *(f"{name}: {value}" for name, value in headers.items())]
        await self.write("\r\n".join([*lines, "", ""]).encode())

    async def write(self, piece: bytes) -> None:
        self._writer.write(piece)
        await self._writer.drain()

    async def finish(self, piece: bytes, says: str) -> None:
        await self.write(piece)
        if says and not self.gone.is_set():
            self._server.sent_whole.append(says)

    def hang_up(self) -> None:
        self._writer.transport.abort()

    def hang_up_gently(self) -> None:
        """Close the connection after all that was written has been sent."""
        self._writer.close()


Behaviour = Callable[[Exchange], Awaitable[None]]
Script = Callable[[Request], Behaviour]


def says(
    text: str | None = None,
    *,
    finish: str = "stop",
    usage: Mapping[str, int] | None = None,
    headers: Mapping[str, str] | None = None,
    **extra: Any,
) -> Behaviour:
    """A whole answer; with a text of its own where none is given."""

    async def behave(exchange: Exchange) -> None:
        said = exchange.fresh_text() if text is None else text
        await exchange.send(200, exchange.completion(said, finish, usage, **extra), headers, says=said)

    return behave


ok = says()


def sends(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Behaviour:
    """A whole response with this body: bytes as they are, anything else as JSON."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(status, body if isinstance(body, bytes) else json.dumps(body).encode(), headers)

    return behave


def refuses(status: int, message: str = "no", *, headers: Mapping[str, str] | None = None) -> Behaviour:
    return sends({"error": {"message": message, "type": f"type_{status}"}}, status=status, headers=headers)


async def drops_next(exchange: Exchange) -> None:
    """A whole answer on a connection that the server then closes, when the client already believes it open."""
    exchange.drops_next = True
    await ok(exchange)


async def hangs(exchange: Exchange) -> None:
    """Takes the request and says nothing until the client goes away."""
    await exchange.gone.wait()


async def hangs_up(exchange: Exchange) -> None:
    """Goes away without a word."""
    exchange.hang_up()


async def closes_mid_body(exchange: Exchange) -> None:
    body = exchange.completion("never whole")
    await exchange.begin(200, {"content-length": str(len(body))})
    await exchange.write(body[: len(body) // 2])
    exchange.hang_up()


async def closes_mid_chunk(exchange: Exchange) -> None:
    body = exchange.completion("never whole")
    await exchange.begin(200, {"transfer-encoding": "chunked"})
    await exchange.write(b"%x\r\n" % len(body) + body[: len(body) // 2])
    exchange.hang_up()


async def breaks_json(exchange: Exchange) -> None:
    body = exchange.completion("never whole")
    await exchange.send(200, body[: len(body) // 2])


async def sends_wrong_type(exchange: Exchange) -> None:
    """The right JSON under a wrong name."""
    text = exchange.fresh_text()
    await exchange.send(200, exchange.completion(text), {"content-type": "text/plain"}, says=text)


async def sends_too_much(exchange: Exchange) -> None:
    piece = b" " * (1 << 20)
    await exchange.begin(200, {"content-length": str(40 << 20)})
    for _ in range(40):
        await exchange.write(piece)


def drips(pause: float, pieces: int = 10) -> Behaviour:
    """A whole answer in small pieces, with a pause after each."""

    async def behave(exchange: Exchange) -> None:
        text = exchange.fresh_text()
        body = exchange.completion(text)
        await exchange.begin(200, {"content-length": str(len(body))})
        size = len(body) // pieces + 1
        for start in range(0, len(body) - size, size):
            await exchange.write(body[start : start + size])
            with suppress(TimeoutError):
                await asyncio.wait_for(exchange.gone.wait(), pause)
                return
        await exchange.finish(body[start + size :], text)

    return behave


def healthy(request: Request) -> Behaviour:
    """The script of a server without a fault."""
    if request.method == "GET":
        return sends({"data": [{"id": "model-1", "owned_by": "us"}, {"id": "model-2", "owned_by": "us"}]})
    return ok


def in_turn(*behaviours: Behaviour, then: Behaviour = ok) -> Script:
    """One behaviour per request, in the order the requests come."""
    left = list(behaviours)
    return lambda request: left.pop(0) if left else then


def by_prompt(behaviours: Mapping[str, Behaviour | Iterable[Behaviour]], then: Behaviour = ok) -> Script:
    """A behaviour for each prompt: one for all its requests, or a list for the first ones."""

    def script(request: Request) -> Behaviour:
        chosen = behaviours.get(request.prompt, then)
        if callable(chosen):
            return chosen
        return (list(chosen) + [then] * (request.earlier + 1))[request.earlier]

    return script


class FaultServer:
    """Listens on a port of its own in a thread of its own; every request and every whole answer is on record."""

    def __init__(self) -> None:
        self.script: Script = healthy
        self.requests: list[Request] = []
        self.sent_whole: list[str] = []
        self.connections = 0
        self.most_at_once = 0
        self.numbers = iter(range(1, 1_000_000))
        self._at_once = 0
        self._seen: Counter[tuple[str, str]] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def answered(self) -> list[str]:
        """The text of each answer that was sent whole."""
        # a client may have an answer before we have come round to noting it
        self._do(asyncio.sleep(0.01))
        return list(self.sent_whole)

    def asked(self, prompt: str) -> int:
        """How many requests had this prompt."""
        return sum(request.prompt == prompt for request in self.requests)

    def __enter__(self) -> FaultServer:
        self._thread.start()
        self._listener = self._do(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._listener.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _end(self) -> None:
        self._listener.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not writer.transport.is_closing():
                await self._respond(reader, writer)
        writer.transport.abort()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = self._received(*await _read(reader))
        self.requests.append(request)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        gone = asyncio.Event()
        watching = asyncio.create_task(_watch(reader, gone))
        exchange = Exchange(self, request, writer, gone)
        try:
            await self.script(request)(exchange)
        finally:
            self._at_once -= 1
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        if exchange.drops_next and not gone.is_set():
            await reader.read(1)
            # closed with a reset, as a socket is that has unread data
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if gone.is_set() or exchange.drops_next:
            writer.transport.abort()

    def _received(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Request:
        body = json.loads(content) if content else None
        prompt = ""
        turns = (body.get("messages") or body.get("contents") or body.get("input")) if isinstance(body, dict) else None
        if isinstance(turns, list):
            said = turns[-1].get("content") or turns[-1].get("parts") or ""
            prompt = said if isinstance(said, str) else "".join(part.get("text", "") for part in said)
        self._seen[path, prompt] += 1
        return Request(method, path, headers, body, prompt, self._seen[path, prompt] - 1, time.monotonic())


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return method, path, headers, await reader.readexactly(int(headers.get("content-length", "0")))


async def _watch(reader: asyncio.StreamReader, gone: asyncio.Event) -> None:
    """Notice that the client went away: it sends nothing while it waits for an answer."""
    while not reader.at_eof() and reader.exception() is None:  # noqa: ASYNC110  a stream can be asked, not watched
        await asyncio.sleep(0.02)
    gone.set()
