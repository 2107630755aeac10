"""Every way an HTTP exchange can go wrong has a name."""

from __future__ import annotations

import asyncio
import base64
import gzip
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote

import pytest

from steelyard.errors import InputError, ProviderError, Rejected, Unavailable
from steelyard.protocols import RateLimitHeadroom
from steelyard.providers.faults import decoded_error, error_message, headroom, retry_after, seconds_until
from steelyard.providers.wire import HttpEndpoint, HttpExchange
from support.asking import KEY
from support.fault_server import (
    Behaviour,
    FaultServer,
    breaks_json,
    closes_mid_body,
    closes_mid_chunk,
    drips,
    hangs,
    hangs_up,
    in_turn,
    ok,
    refuses,
    sends,
    sends_too_much,
    sends_wrong_type,
)
from support.fault_server import Exchange as Served


def exchange(
    server: FaultServer, *, deadline: float = 20, **parameters: Any
) -> tuple[HttpExchange, dict[str, Any], RateLimitHeadroom | None]:
    """One exchange with the server, its body, and what the headers left."""

    async def go() -> tuple[HttpExchange, dict[str, Any], RateLimitHeadroom | None]:
        endpoint = HttpEndpoint(f"{server.url}/v1", {}, secrets=[KEY])
        try:
            async with asyncio.timeout(deadline):
                body = {"messages": [{"role": "user", "content": "hi"}], **parameters}
                arrived = await endpoint.exchange("POST", "/chat/completions", body)
            return arrived, endpoint.decode(arrived, dict), endpoint.headroom
        finally:
            await endpoint.close()

    return asyncio.run(go())


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_a_server_that_cannot_answer_now_may_be_asked_again(server: FaultServer, status: int) -> None:
    server.script = in_turn(refuses(status, "not now"))
    with pytest.raises(Unavailable, match=f"{status} not now") as caught:
        exchange(server)
    assert caught.value.retry_after is None


@pytest.mark.parametrize("status", [400, 406, 413, 415, 422])
def test_a_request_that_is_refused_is_refused_alone(server: FaultServer, status: int) -> None:
    server.script = in_turn(refuses(status, "never"))
    with pytest.raises(Rejected, match=f"{status} never") as caught:
        exchange(server)
    assert not caught.value.everyone


@pytest.mark.parametrize("status", [400, 500])
def test_an_error_carries_the_parameters_that_the_server_names(server: FaultServer, status: int) -> None:
    server.script = in_turn(refuses(status, "response_format and top_k are not supported"))
    with pytest.raises(ProviderError) as caught:
        exchange(server, response_format={}, seed=1)
    assert caught.value.parameters == {"response_format"}


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405, 410])
def test_a_wrong_key_or_address_concerns_every_request(server: FaultServer, status: int) -> None:
    server.script = in_turn(refuses(status, "never"))
    with pytest.raises(Rejected, match=f"{status} never") as caught:
        exchange(server)
    assert caught.value.everyone


def test_an_empty_purse_is_not_a_rate_limit(server: FaultServer) -> None:
    server.script = in_turn(
        sends({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}, status=429)
    )
    with pytest.raises(Rejected, match="insufficient_quota") as caught:
        exchange(server)
    assert caught.value.everyone


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_but_told(server: FaultServer, status: int) -> None:
    server.script = in_turn(sends(b"", status=status, headers={"location": "https://elsewhere.example/v1"}))
    with pytest.raises(Rejected, match=r"redirects to https://elsewhere\.example/v1; set that as base URL") as caught:
        exchange(server)
    assert caught.value.everyone
    assert len(server.requests) == 1


@pytest.mark.parametrize("behaviour", [closes_mid_body, closes_mid_chunk, hangs_up])
def test_a_response_that_did_not_arrive_whole_is_none(server: FaultServer, behaviour: Behaviour) -> None:
    server.script = in_turn(behaviour)
    with pytest.raises(Unavailable, match=server.url):
        exchange(server)


def test_what_is_not_json_is_shown_with_a_guess(server: FaultServer) -> None:
    server.script = in_turn(sends(b"<html>Log in", headers={"content-type": "text/html"}))
    with pytest.raises(Unavailable, match=r"sent text/html.*<html>Log in.*is the base URL right"):
        exchange(server)


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"[" * 100_000, b'{"a": "\xff"}', b'{"a": NaN}'])
def test_no_body_breaks_the_reader(server: FaultServer, body: bytes) -> None:
    server.script = in_turn(sends(body))
    with pytest.raises(Unavailable):
        exchange(server)


def test_half_a_json_document_is_none(server: FaultServer) -> None:
    server.script = in_turn(breaks_json)
    with pytest.raises(Unavailable, match="truncated"):
        exchange(server)


def test_the_right_json_under_a_wrong_name_is_taken(server: FaultServer) -> None:
    server.script = in_turn(sends_wrong_type)
    assert exchange(server)[1]["choices"][0]["message"]["content"] == server.answered[0]


def test_a_body_without_end_is_not_read_to_the_end(server: FaultServer) -> None:
    server.script = in_turn(sends_too_much)
    with pytest.raises(Rejected, match="larger than 32 MiB"):
        exchange(server)


def test_an_answer_in_drips_is_an_answer(server: FaultServer) -> None:
    server.script = in_turn(drips(0.01))
    assert exchange(server)[1]["choices"][0]["message"]["content"] == server.answered[0]


def test_a_request_that_is_given_up_is_hung_up(server: FaultServer) -> None:
    gone = threading.Event()

    async def waits(served: Served) -> None:
        await hangs(served)
        gone.set()

    server.script = in_turn(waits)
    with pytest.raises(TimeoutError):
        exchange(server, deadline=1.5)
    assert gone.wait(20)


def test_a_packed_body_is_unpacked_and_a_badly_packed_one_is_no_answer(server: FaultServer) -> None:
    packed = gzip.compress(b'{"a": 1}')
    server.script = in_turn(
        sends(packed, headers={"content-encoding": "gzip"}),
        sends(packed[:-12], headers={"content-encoding": "br,gzip"}),
    )
    assert exchange(server)[1] == {"a": 1}
    with pytest.raises(Unavailable):
        exchange(server)


def test_one_client_serves_many_requests_over_one_connection(server: FaultServer) -> None:
    async def go() -> None:
        endpoint = HttpEndpoint(server.url, {}, secrets=[])
        for _ in range(3):
            await endpoint.exchange("GET", "/v1/models")
        await endpoint.close()

    server.script = lambda request: ok
    asyncio.run(go())
    assert (len(server.requests), server.connections) == (3, 1)


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after": "20"}, 20, 20),
        ({"retry-after": "0"}, 0, 0),
        ({"retry-after": "1.5"}, 1.5, 1.5),
        ({"retry-after": "20", "retry-after-ms": "250"}, 0.25, 0.25),
        ({"retry-after": format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)}, 80_000, 86_400),
        ({"retry-after": format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)}, 0, 0),
    ],
)
def test_the_wait_that_a_server_asks_for_is_understood(headers: Mapping[str, str], low: float, high: float) -> None:
    wait = retry_after(headers)
    assert wait is not None
    assert low <= wait <= high


def test_a_moment_since_1970_is_told_from_a_span_of_time() -> None:
    now = time.time()
    for moment in (
        f"{now + 60:.0f}",
        f"{now + 60}",
        f"{(now + 60) * 1e3:.0f}",
        f"{(now + 60) * 1e6:.0f}",
        f"{(now + 60) * 1e9:.0f}",
    ):
        wait = seconds_until(moment)
        assert wait is not None
        assert 50 < wait <= 61, moment
        left = headroom({"x-ratelimit-remaining": "0", "x-ratelimit-reset": moment})
        assert left is not None
        assert left.requests == 0
        assert 50 < left.reset <= 61
    assert seconds_until(f"{now - 60:.0f}") == 0
    wait = retry_after({"retry-after-ms": f"{(now + 60) * 1e3:.0f}"})
    assert wait is not None
    assert 50 < wait <= 61
    assert seconds_until("86400") == 86400


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-5",
        "nan",
        "inf",
        "1e999",
        "Mon, 99 Foo 2026",
        f"Wed, 1{'0' * 30} Oct 2037 07:28:00 GMT",
        "0x10",
        "9" * 400,
        "２０s",
    ],
)
def test_a_wait_that_cannot_be_understood_is_none(text: str) -> None:
    wait = retry_after({"retry-after": text, "retry-after-ms": "later"})
    assert wait is None or wait >= 0


def test_a_wait_on_the_wire_reaches_the_engine(server: FaultServer) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    quota = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}
    server.script = in_turn(
        refuses(429, headers={"Retry-After": "7"}),
        refuses(503, headers={"Retry-After-Ms": "70"}),
        sends(quota, status=429),
        sends([quota], status=429),
        sends(quota, status=429, headers={"Retry-After": "7"}),
    )
    for wanted in (7, 0.07, 34.5, 34.5, 7):
        with pytest.raises(Unavailable) as caught:
            exchange(server)
        assert caught.value.retry_after == wanted


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({}, None),
        ({"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "6m0s"}, RateLimitHeadroom(9, 360)),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, RateLimitHeadroom(0, 30)),
        ({"x-ratelimit-remaining-requests": "9"}, None),
        ({"x-ratelimit-remaining-requests": "many", "x-ratelimit-reset-requests": "1s"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "9",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "120ms",
            },
            RateLimitHeadroom(0, 0.12, tokens=0, tokens_reset=0.12),
        ),
    ],
)
def test_the_tightest_rate_limit_counts(headers: Mapping[str, str], wanted: RateLimitHeadroom | None) -> None:
    assert headroom(headers) == wanted


def test_anthropics_reset_is_a_moment() -> None:
    reset = (datetime.now(UTC) + timedelta(seconds=60)).isoformat().replace("+00:00", "Z")
    names = {"anthropic-ratelimit-requests-remaining": "3", "anthropic-ratelimit-requests-reset": reset}
    left = headroom(names)
    assert left is not None
    assert left.requests == 3
    assert 0 < left.reset <= 60


def test_rate_limit_headers_on_the_wire_reach_the_engine(server: FaultServer) -> None:
    server.script = in_turn(
        sends({}, headers={"X-RateLimit-Remaining-Requests": "4", "X-RateLimit-Reset-Requests": "2s"})
    )
    assert exchange(server)[2] == RateLimitHeadroom(4, 2)


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h2m3s", 3723), ("1d", 86400), ("0s", 0), ("250ms", 0.25), ("1m30.5s", 90.5), ("1 s", None)]
)
def test_spans_of_time_as_servers_write_them(text: str, seconds: float | None) -> None:
    assert seconds_until(text) == seconds


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "no such model", "code": "model_not_found"}}', "no such model (model_not_found)"),
        (
            b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
            "Overloaded (overloaded_error)",
        ),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"error": "plain words"}', "plain words"),
        (b'{"message": "two\\n lines"}', "two lines"),
        (b"<h1>Bad\n  Gateway</h1>", "<h1>Bad Gateway</h1>"),
        (b'["odd"]', "['odd']"),
        (b"", ""),
        (b"\xff", "\ufffd"),
    ],
)
def test_what_a_server_complains_of_is_put_in_one_line(body: bytes, said: str) -> None:
    assert error_message(decoded_error(body)) == said


def test_a_long_complaint_is_cut(server: FaultServer) -> None:
    server.script = in_turn(refuses(500, "x" * 10_000))
    with pytest.raises(Unavailable) as caught:
        exchange(server)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "address",
    ["http:///v1", "http://127.0.0.1:99999/v1", "http://[::1:80/v1", "localhost:8000/v1", "ftp://host/v1", ""],
)
def test_an_address_that_is_none_is_refused_before_anybody_is_asked(address: str) -> None:
    with pytest.raises(InputError, match="is not an address"):
        HttpEndpoint(address, {}, secrets=())


@pytest.mark.parametrize(
    ("proxy", "says"),
    [
        ("nonsense://user:secret@host", 'begins with "nonsense"'),
        ("socks5://host:1", "pip install socksio"),
        ("host:3128", ""),
    ],
)
def test_a_proxy_that_nothing_can_go_through_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, proxy: str, says: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.delenv("all_proxy", raising=False)
    if not says:
        HttpEndpoint("http://127.0.0.1:1/v1", {}, secrets=())
        return
    with pytest.raises(InputError, match=says) as refused:
        HttpEndpoint("http://127.0.0.1:1/v1", {}, secrets=())
    assert "secret" not in str(refused.value)


def test_a_key_is_not_shown_in_whatever_form_a_server_or_a_proxy_returns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    key, password = "sk/verysecret+key==", "proxypassword"
    monkeypatch.setenv("HTTP_PROXY", f"http://user:{password}@127.0.0.1:1")
    endpoint = HttpEndpoint("http://127.0.0.1:2/v1", {}, secrets=[key])
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in key)
    sent = base64.b64encode(f"user:{password}".encode()).decode()
    for text in (key, escaped, key.replace("/", "\\/"), quote(key, safe=""), password, sent):
        said = f'{{"a": "x{text}x"}}'
        assert endpoint.clean(said) == '{"a": "x***x"}'
        assert endpoint.without_secrets(said.encode() + b"\xff") == b'{"a": "x***x"}\xff'
    honest = '{"a": "\\u00e4 50% \\u0041 \\\\ %41"}'
    assert endpoint.clean(honest) == honest


def test_a_proxy_that_is_no_address_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "user:verysecret@http://proxy:1")
    with pytest.raises(InputError) as caught:
        HttpEndpoint("http://127.0.0.1:2/v1", {}, secrets=[])
    assert "HTTPS_PROXY" in str(caught.value)
    assert "verysecret" not in str(caught.value)


@pytest.mark.parametrize("where", ["?x-api-key=K", "#api_key=K", ";api_key=K", "/v1;token=K/chat"])
def test_a_key_in_any_part_of_a_base_url_is_refused(where: str) -> None:
    with pytest.raises(InputError, match="must not contain a key"):
        HttpEndpoint("http://127.0.0.1:2/v1" + where.replace("K", "sk-12345678"), {}, secrets=[])
