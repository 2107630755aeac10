"""Responses as gateways, proxies and broken servers send them, in every wire format: an answer, an outage, and nothing between."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steelyard.errors import FilteredInput, ProviderError, Rejected, Unavailable
from steelyard.protocols import Delivery, Provider
from steelyard.providers.bodies import stream_events
from steelyard.records import Answer
from support.asking import answer, attempt
from support.fault_server import Behaviour, Exchange, FaultServer, Request, in_turn, sends
from support.wire_bodies import BODIES, FORMATS, STREAM_TYPE, chat, frames, messages, provider, sse

Shape = Callable[[bytes], bytes | None]
"""What becomes of a body that is sound; None where a format has no such fault."""


def sends_raw(response: bytes) -> Behaviour:
    async def behave(exchange: Exchange) -> None:
        await exchange.write(response)
        if b"content-length" not in response and b"chunked" not in response:
            exchange.hang_up_gently()

    return behave


def response(body: bytes, status: str = "200 OK", *lines: str, version: str = "1.1") -> bytes:
    head = [f"HTTP/{version} {status}", *lines, *([] if version == "1.0" else [f"content-length: {len(body)}"])]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def chunked(body: bytes, size: int = 7, end: bytes = b"0\r\nx-checksum: 1\r\n\r\n") -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    content = b"".join(b'%x;name="value"\r\n%s\r\n' % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + content + end


def each_format() -> Iterator[tuple[str, str, bytes]]:
    """Every format with its answer, whole and as a stream; Azure's is OpenAI's."""
    for kind in FORMATS:
        if kind == "azure":
            continue
        whole, stream = BODIES[kind]()
        yield kind, "off", json.dumps(whole).encode()
        yield kind, "on", stream


def came(server: FaultServer, kind: str, mode: str, raw: bytes) -> Answer | ProviderError:
    server.script = in_turn(sends_raw(raw))
    try:
        return answer(provider(server, kind, stream=mode))
    except ProviderError as error:
        return error


def is_event_stream(body: bytes) -> bool:
    return body.startswith(b"data:")


def events(change: Callable[[bytes], bytes]) -> Shape:
    """A fault that only streams of server-sent events have."""
    return lambda body: response(change(body)) if is_event_stream(body) else None


def objects(change: Callable[[bytes], bytes]) -> Shape:
    """A fault that only whole JSON responses have."""
    return lambda body: response(change(body)) if body.startswith(b"{") else None


READ_ALL_THE_SAME: dict[str, Shape] = {
    "chunks with extensions and a trailer": chunked,
    "a length beside chunks": lambda body: chunked(body).replace(b"\r\n\r\n", b"\r\ncontent-length: 5\r\n\r\n", 1),
    "no length, then the end": lambda body: response(body, version="1.0"),
    "early hints": lambda body: b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + response(body),
    "gzip that nobody asked for": lambda body: response(gzip.compress(body), "200 OK", "content-encoding: gzip"),
    "an unknown encoding": lambda body: response(body, "200 OK", "content-encoding: rot13"),
    "a wrong content type": lambda body: response(body, "200 OK", "content-type: image/png; charset=klingon"),
    "headers with odd bytes": lambda body: response(body, "200", "x-request-id: caf\xe9", "x-ratelimit-reset: 1e308"),
    "comments between events": events(lambda body: b": WAIT\n\n" + body.replace(b"\n\n", b"\n\n: keep-alive\n\n:\n\n")),
    "pings and empty data": events(lambda body: body.replace(b"\n\n", b"\n\nevent: ping\ndata: {}\n\ndata:\n\n")),
    "null events": events(lambda body: body.replace(b"\n\n", b"\n\ndata: null\n\n")),
    "one line end between events": events(lambda body: body.replace(b"\n\n", b"\n")),
    "data in several lines": events(lambda body: body.replace(b', "', b',\ndata: "')),
    "text after the end": events(lambda body: body + b"data: [DONE]\n\ndata: bye\n\n<html>"),
    "the same again after the end": events(lambda body: body + b"data: [DONE]\n\n" + body),
    "a field of deep lists": objects(lambda body: body[:-1] + b', "x": ' + b"[" * 500 + b"]" * 500 + b"}"),
    "numbers beyond all bounds": objects(lambda body: body[:-1] + b', "created": 1' + b"0" * 4400 + b', "f": 1e999}'),
    "blanks that keep the connection open": objects(lambda body: b" \r\n" * 500 + body),
}


@pytest.mark.parametrize("fault", READ_ALL_THE_SAME)
def test_a_whole_answer_is_read_however_oddly_it_is_wrapped(server: FaultServer, fault: str) -> None:
    for kind, mode, body in each_format():
        if (raw := READ_ALL_THE_SAME[fault](body)) is not None:
            found = came(server, kind, mode, raw)
            assert isinstance(found, Answer), (kind, mode, found)
            assert (found.text, [call.name for call in found.tool_calls]) == ("hi", ["look"]), (kind, mode)


NO_ANSWER: dict[str, Shape] = {
    "a body longer than its length": lambda body: response(body).replace(
        f"content-length: {len(body)}".encode(), f"content-length: {len(body) - 40}".encode()
    ),
    "two lengths": lambda body: response(body, "200 OK", f"content-length: {len(body) - 9}"),
    "half a body without a length": lambda body: response(body[: len(body) * 2 // 3], version="1.0"),
    "a broken chunk": lambda body: chunked(body[:40], end=b"zz\r\n"),
    "half of a gzip": lambda body: response(gzip.compress(body)[:90], "200 OK", "content-encoding: gzip"),
    "gzip in name only": lambda body: response(body, "200 OK", "content-encoding: gzip"),
    "gzip without its name": lambda body: response(gzip.compress(body)),
    "gzip 2,000 times": lambda body: response(body, "200 OK", "content-encoding: " + "gzip," * 2000),
    "another protocol": lambda body: b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\ncontent-length: 0\r\n\r\n",
    "no content": lambda body: b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
    "a job to ask for later": lambda body: response(b'{"id": "job-1", "status": "queued"}', "202 Accepted"),
    "a part": lambda body: response(body[: len(body) // 2], "206 Partial Content"),
    "a status of its own": lambda body: response(b"denied", "999 Denied"),
    "a page to sign in": lambda body: response(
        b"<!doctype html><title>Wi-Fi</title>", "200 OK", "content-type: text/html"
    ),
    "a captive page": lambda body: response(b"<html>", "511 Network Authentication Required"),
    "an error in an error": lambda body: response(b'{"error": {"error": {"message": "deep"}}}'),
    "an error as a text": lambda body: response(b'"{\\"error\\": {\\"message\\": \\"no\\"}}"'),
    "an error 900 deep": lambda body: response(b'{"error":' * 900 + b'"x"' + b"}" * 900),
    "an error with a huge code": lambda body: response(b'{"error": {"message": "x", "code": 1' + b"0" * 5000 + b"}}"),
    "a message": lambda body: response(b'{"message": "Internal server error"}'),
    "what a function in the cloud says": lambda body: response(b'{"errorMessage": "Task timed out"}'),
    "null": lambda body: response(b"null"),
    "a list of one": objects(lambda body: b"[" + body + b"]"),
    "deep lists": lambda body: response(b"[" * 100_000),
    "UTF-16": objects(lambda body: body.decode().encode("utf-16")),
    "headers without end": lambda body: response(body, "200 OK", "x-big: " + "a" * 200_000),
    "a line that is no header": lambda body: response(body, "200 OK", "this is no header"),
    "no HTTP": lambda body: b"SSH-2.0-OpenSSH_9.6\r\n",
    "only comments": events(lambda body: b": keep-alive\n\n" * 9),
    "only the end": events(lambda body: b"data: [DONE]\n\n"),
    "an event named error": events(lambda body: half(body) + b'event: error\ndata: {"message": "overloaded"}\n\n'),
    "an error in no event": events(lambda body: half(body) + b'{"error": {"message": "died", "code": 502}}'),
    "a line named error": events(lambda body: half(body) + b'error: {"code": 500}\n\ndata: [DONE]\n\n'),
}


def half(stream: bytes) -> bytes:
    """The first half of a stream, up to the end of an event."""
    return stream[: len(stream) // 2].rpartition(b"\n\n")[0] + b"\n\n"


@pytest.mark.parametrize("fault", NO_ANSWER)
def test_what_is_no_answer_is_an_outage_in_every_format(server: FaultServer, fault: str) -> None:
    for kind, mode, body in each_format():
        if (raw := NO_ANSWER[fault](body)) is not None:
            assert isinstance(found := came(server, kind, mode, raw), Unavailable), (kind, mode, found)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_refusal_is_known_by_its_status_even_where_its_body_is_broken(server: FaultServer, kind: str) -> None:
    cut = b"HTTP/1.1 429 Slow\r\nretry-after: 3\r\ncontent-length: 900\r\n\r\n{"

    async def breaks_off(exchange: Exchange) -> None:
        await exchange.write(cut)
        exchange.hang_up_gently()

    server.script = in_turn(
        breaks_off,
        sends_raw(response(b"nonsense", "400 Bad Request", "content-encoding: gzip")),
        sends_raw(response(b"<html>", "407 Proxy Authentication Required")),
        sends_raw(response(b"", "308 Permanent Redirect", "location: /")),
    )
    with pytest.raises(Unavailable, match="429") as slow:
        answer(provider(server, kind))
    assert slow.value.retry_after == 3
    for status, for_everyone in (("400", False), ("407", True), ("308", True)):
        with pytest.raises(Rejected, match=status) as refused:
            answer(provider(server, kind))
        assert refused.value.everyone is for_everyone


def test_an_error_page_without_end_is_an_outage_and_a_bomb_is_kept_in_part(server: FaultServer) -> None:
    async def endless(exchange: Exchange) -> None:
        await exchange.begin(503, {"content-length": str(40 << 20)})
        for _ in range(40):
            await exchange.write(b" " * (1 << 20))

    bomb = gzip.compress(gzip.compress(b" " * (40 << 20)))
    server.script = in_turn(endless, sends_raw(response(bomb, "200 OK", "content-encoding: gzip, gzip")))
    with pytest.raises(Unavailable, match="503"):
        answer(provider(server, "openai"))
    delivery = Delivery()
    with pytest.raises(Rejected, match="larger than 32 MiB"):
        asyncio.run(asked(provider(server, "openai"), delivery))
    assert len(delivery.body) == 1 << 20


async def asked(reached: Provider, *deliveries: Delivery) -> list[str]:
    """The texts of answers that come over one connection, in turn."""
    try:
        return [(await reached.ask(attempt(), delivery)).text for delivery in deliveries]
    finally:
        await reached.close()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_response_that_nobody_asked_for_never_answers_the_next_request(server: FaultServer, kind: str) -> None:
    whole = json.dumps(BODIES[kind](text="hi")[0]).encode()
    other = json.dumps(BODIES[kind](text="of someone else")[0]).encode()
    server.script = lambda request: sends_raw(response(whole) + response(other))
    reached = provider(server, kind)

    async def texts() -> list[str]:
        found = []
        for _ in range(4):
            try:
                found += [(await reached.ask(attempt(), Delivery())).text]
            except Unavailable as error:
                found.append(str(error).rpartition(": ")[2])
        await reached.close()
        return found

    # from then on no connection is used twice: the next such response may come when a request has just been sent
    assert asyncio.run(texts()) == ["hi", "it answers another one", "hi", "hi"]
    assert server.connections == 3


def test_no_cookie_is_sent_back(server: FaultServer) -> None:
    def script(request: Request) -> Behaviour:
        return sends(chat()[0], headers={"set-cookie": f"n{request.earlier}={'v' * 90}; Path=/"})

    server.script = script
    assert asyncio.run(asked(provider(server, "openai"), *(Delivery() for _ in range(3)))) == ["hi"] * 3
    assert not any("cookie" in request.headers for request in server.requests)
    assert server.connections == 1


def delta(finish: str | None = None, **said: Any) -> Any:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def call(name: str, index: int | None = 0) -> list[dict[str, Any]]:
    return [{"index": index, "id": f"id-{name}", "function": {"name": name, "arguments": f'{{"of": "{name}"}}'}}]


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def block_delta(index: int, **said: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": said}


BEGUN = {"type": "message_start", "message": {"id": "r1", "content": [], "stop_reason": None}}
HALF_A_MESSAGE = [BEGUN, start(0, type="text", text=""), block_delta(0, text="half")]
ENDED = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
MIXED_UP: dict[str, tuple[str, bytes]] = {
    "halves of a character in two events": (
        "openai",
        sse(delta(content="hi "), delta(content="\ud83d"), delta("stop", content="\ude00")),
    ),
    "the same in Gemini's format": (
        "gemini",
        sse(
            {"candidates": [{"content": {"parts": [{"text": "hi \ud83d"}]}}]},
            {"candidates": [{"content": {"parts": [{"text": "\ude00"}]}, "finishReason": "STOP"}]},
        ),
    ),
    "a finish reason in every chunk": (
        "openai",
        sse(delta("stop", content="hi "), delta("stop", content="\U0001f600")),
    ),
    "candidates out of order": (
        "gemini",
        sse(
            {"candidates": [{"index": 1, "content": {"parts": [{"text": "other"}]}}]},
            {"candidates": [{"index": 0, "content": {"parts": [{"text": "hi \U0001f600"}]}}]},
            {"candidates": [{"index": 1, "finishReason": "STOP"}, {"index": 0, "finishReason": "STOP"}]},
        ),
    ),
    "blocks in turns": (
        "anthropic",
        sse(
            *(BEGUN, start(0, type="text", text=""), start(1, type="tool_use", id="c", name="look", input={})),
            *(block_delta(0, text="hi "), block_delta(1, partial_json="{}"), block_delta(0, text="\U0001f600"), ENDED),
        ),
    ),
    "a message that is whole when it starts": (
        "anthropic",
        sse({"type": "message_start", "message": messages(text="hi \U0001f600")[0]}, {"type": "message_stop"}),
    ),
}


@pytest.mark.parametrize("fault", MIXED_UP)
def test_the_parts_of_a_stream_come_to_their_places(server: FaultServer, fault: str) -> None:
    kind, stream = MIXED_UP[fault]
    server.script = in_turn(sends(stream, headers=STREAM_TYPE))
    assert answer(provider(server, kind, stream="on")).text == "hi \U0001f600"


def test_every_candidate_and_every_call_is_kept(server: FaultServer) -> None:
    two = {"candidates": [{"index": i, "content": {"parts": [{"text": t}]}, "finishReason": "STOP"} for i, t in ((1, "b"), (0, "a"))]}  # fmt: skip
    calls = sse(delta(tool_calls=call("first")), delta(tool_calls=call("second")), delta("tool_calls"))
    server.script = in_turn(sends(two), sends(calls, headers=STREAM_TYPE))
    found = answer(provider(server, "gemini"))
    assert (found.text, found.other_choices) == ("a", ("b",))
    called = answer(provider(server, "openai", stream="on")).tool_calls
    assert [(each.name, each.arguments) for each in called] == [
        ("first", '{"of": "first"}'),
        ("second", '{"of": "second"}'),
    ]


WORD_NULL = chat()[1].replace(b'"finish_reason": null', b'"finish_reason": "null"')
TOO_MUCH_OR_TOO_LITTLE: dict[str, tuple[str, bytes]] = {
    "twice the same": ("openai", chat()[1].replace(b"data: [DONE]\n\n", b"") * 2),
    "twice the same candidate": ("gemini", BODIES["gemini"]()[1] * 2),
    "two messages": ("anthropic", sse(*HALF_A_MESSAGE) + messages()[1]),
    "two messages in frames": ("bedrock", BODIES["bedrock"]()[1] * 2),
    "a frame of nothing": ("bedrock", BODIES["bedrock"]()[1] + b"\0" * 16),
    "a frame that is too long": ("bedrock", b"\0\xff\xff\xff" + BODIES["bedrock"]()[1][4:]),
    "half an answer without a word for its end": ("openai", b"\n\n".join(WORD_NULL.split(b"\n\n")[:3]) + b"\n\n"),
    "an end that was there from the start": (
        "anthropic",
        sse({"type": "message_start", "message": {"stop_reason": "end_turn"}}, *HALF_A_MESSAGE[1:]),
    ),
    "a call that is no list": (
        "openai",
        json.dumps(chat()[0]).replace('"tool_calls": [{', '"tool_calls": {"0": {').replace("}}]", "}}}").encode(),
    ),
    "a call that is a text": (
        "openai",
        b'{"choices": [{"message": {"tool_calls": ["look(1)"]}, "finish_reason": "tool_calls"}]}',
    ),
}


@pytest.mark.parametrize("fault", TOO_MUCH_OR_TOO_LITTLE)
def test_a_stream_with_too_much_or_too_little_is_an_outage(server: FaultServer, fault: str) -> None:
    kind, body = TOO_MUCH_OR_TOO_LITTLE[fault]
    server.script = in_turn(sends(body, headers=STREAM_TYPE))
    with pytest.raises(Unavailable, match="not the answer expected"):
        answer(provider(server, kind, stream="on"))


def test_what_a_stream_says_about_its_error_is_told(server: FaultServer) -> None:
    said = b'data: {"error": {"message": "overloaded", "type": "overloaded_error"}}\n\n'
    filtered = b'data: {"error": {"message": "no", "code": "content_filter"}}\n\n'
    for kind in ("openai", "openai-responses", "azure", "anthropic", "gemini"):
        server.script = in_turn(sends(said, headers=STREAM_TYPE), sends(filtered, headers=STREAM_TYPE))
        with pytest.raises(Unavailable, match="overloaded"):
            answer(provider(server, kind, stream="on"))
        with pytest.raises(FilteredInput):
            answer(provider(server, kind, stream="on"))


def test_a_word_about_refusing_is_no_refusal(server: FaultServer) -> None:
    body = json.dumps(chat()[0])
    for refusal, finish in (("false", "stop"), ("[]", "stop"), ("true", "refusal")):
        said = re.sub('"role": "assistant"', f'"refusal": {refusal}', body).encode()
        server.script = in_turn(sends(said))
        found = answer(provider(server, "openai"))
        assert (found.text, found.finish) == ("hi", finish)


def test_hundreds_of_thousands_of_comments_are_passed_over() -> None:
    found = stream_events(b":\n\n" * 300_000 + b'data: {"a": 1}\n\n')
    assert found is not None
    assert [event for _, event in found] == [{"a": 1}]
    assert frames(("messageStart", {}))
