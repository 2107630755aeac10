"""The faults of streams through the whole engine, in every wire format: half a stream is an outage, never an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.protocols import ProviderSettings
from support.facts import facts
from support.fault_server import Behaviour, Exchange, FaultServer, by_prompt, hangs_up, refuses, sends
from support.wire_bodies import BODIES, FORMATS, STREAM_TYPE, frames, sse

TEXT = "the answer is here"
ERROR_EVENTS = {
    "openai": sse({"error": {"message": "upstream died", "code": 502}}),
    "azure": sse({"error": {"message": "upstream died", "code": 502}}),
    "openai-responses": sse(
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "server_error", "message": "died"}},
        }
    ),
    "anthropic": sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "gemini": sse({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}),
    "bedrock": frames(("internalServerException", {"message": "died"})),
}
"""How each format says in the middle of a stream that it broke."""


def kind_of(exchange: Exchange) -> str:
    path = exchange.request.path.partition("?")[0]
    ends = {"/responses": "openai-responses", "/messages": "anthropic", ":streamGenerateContent": "gemini"}
    return next(
        (kind for end, kind in ends.items() if path.endswith(end)), "bedrock" if "converse" in path else "openai"
    )


def events(kind: str) -> list[bytes]:
    """The stream of an answer in pieces, each of whole events."""
    stream = BODIES[kind](text=TEXT)[1]
    if kind != "bedrock":
        return [piece + b"\n\n" for piece in stream.split(b"\n\n") if piece]
    pieces = []
    while stream:
        size = int.from_bytes(stream[:4], "big")
        pieces.append(stream[:size])
        stream = stream[size:]
    return pieces


def streams(changed: Callable[[str, list[bytes]], bytes], *, hangs_up: bool = False) -> Behaviour:
    """A stream as `changed` makes it of its pieces; with `hangs_up` the connection breaks before the end of the body."""

    async def behave(exchange: Exchange) -> None:
        assert exchange.request.body.get("stream", True)
        kind = kind_of(exchange)
        content = changed(kind, events(kind))
        await exchange.begin(200, {**STREAM_TYPE, "transfer-encoding": "chunked"})
        await exchange.write(b"%x\r\n%s\r\n" % (len(content), content) if content else b"")
        if hangs_up:
            exchange.hang_up()
        else:
            await exchange.write(b"0\r\n\r\n")

    return behave


async def stalls(exchange: Exchange) -> None:
    """Half a stream, and then nothing."""
    pieces = events(kind_of(exchange))
    content = b"".join(pieces[: len(pieces) // 2])
    await exchange.begin(200, {**STREAM_TYPE, "transfer-encoding": "chunked"})
    await exchange.write(b"%x\r\n%s\r\n" % (len(content), content))
    await exchange.gone.wait()


WHOLE = streams(lambda _, pieces: b"".join(pieces))
OUTAGES: dict[str, Behaviour] = {
    "429": refuses(429, headers={"retry-after": "0.01"}),
    "503": refuses(503),
    "hangs-up": hangs_up,
    "nothing": streams(lambda *_: b""),
    "ends-in-the-middle": streams(lambda _, pieces: b"".join(pieces[: len(pieces) // 2])),
    "breaks-in-the-middle": streams(lambda _, pieces: b"".join(pieces[: len(pieces) // 2]), hangs_up=True),
    "breaks-in-an-event": streams(lambda _, pieces: b"".join(pieces)[: sum(map(len, pieces[:4])) - 9], hangs_up=True),
    "an-error-in-the-middle": streams(lambda kind, pieces: b"".join(pieces[:4]) + ERROR_EVENTS[kind]),
    "an-error-at-first": streams(lambda kind, _: ERROR_EVENTS[kind]),
    "html": sends(b"<html>Welcome to nginx!</html>", headers={"content-type": "text/html"}),
    "an-error-as-success": sends({"error": {"message": "overloaded"}}),
}


def run(server: FaultServer, folder: Path, names: list[str], **given: float) -> steelyard.Run:
    cases = [Case(id=name, prompt=f"prompt of {name}", target="answer") for name in names]
    reached = {
        kind: ProviderSettings(type=kind, base_url=server.url, api_key="k" * 20, stream="on") for kind in FORMATS
    }
    settings = Settings(retry_delay_ms=5, providers=reached, **given)  # type: ignore[arg-type]
    models = [f"{kind}/m" for kind in FORMATS]
    return steelyard.run(cases, models=models, output=folder, means=Means(settings=settings, environment={}))


def test_a_stream_that_breaks_is_asked_again_and_half_of_it_is_no_reply(server: FaultServer, tmp_path: Path) -> None:
    faults = {f"prompt of {name}": fault for name, fault in OUTAGES.items()}
    server.script = by_prompt({prompt: [fault, WHOLE] for prompt, fault in faults.items()}, then=WHOLE)
    found = facts(run(server, tmp_path / "run", [*OUTAGES, "fine"], max_retries=1, deadline_secs=60).folder)
    each = Counter({(f"{kind}/m", name): 1 for kind in FORMATS for name in (*OUTAGES, "fine")})
    assert found.replied() == found.judged() == each
    assert {reply.answer.text for reply in found.replies} == {TEXT}
    assert all(reply.answer.first_token is not None for reply in found.replies)
    assert {prompt: server.asked(prompt) for prompt in faults} == dict.fromkeys(faults, 2 * len(FORMATS))


@pytest.mark.parametrize("deadline", [60, 0.2])
def test_streams_that_stay_broken_are_missing_and_no_wrong_answers(
    server: FaultServer, tmp_path: Path, deadline: float
) -> None:
    # within a short deadline nothing but a stall is tried, so that a busy machine changes nothing
    faults = OUTAGES if deadline > 1 else {"stalls": stalls}
    server.script = by_prompt({f"prompt of {name}": fault for name, fault in faults.items()})
    down = run(server, tmp_path / "down", list(faults), max_retries=0, deadline_secs=deadline)
    assert facts(down.folder).replies == []
    assert [(model.attempts, model.missing) for model in down.summary.models] == [(0, len(faults))] * len(FORMATS)
    assert down.exit_code == 3
