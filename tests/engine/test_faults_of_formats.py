"""The faults of a server in the formats of Responses, Gemini, Azure and Bedrock: an outage is no result, and what was paid for is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import steelyard
from steelyard import Case, Means, Settings
from support.facts import facts
from support.fault_server import (
    Behaviour,
    Exchange,
    FaultServer,
    breaks_json,
    by_prompt,
    closes_mid_body,
    closes_mid_chunk,
    hangs_up,
    refuses,
    says,
    sends,
)

FORMATS = ["openai-responses/m", "gemini/m", "azure/m", "bedrock/m"]
SOON = {"retry-after": "0.01"}
OUTAGES: dict[str, Behaviour] = {
    "429-with-seconds": refuses(429, headers=SOON),
    "429-with-milliseconds": refuses(429, headers={"retry-after-ms": "20"}),
    "500": refuses(500),
    "503": refuses(503),
    "529": refuses(529),
    "408": refuses(408),
    "hangs-up": hangs_up,
    "closes-mid-body": closes_mid_body,
    "closes-mid-chunk": closes_mid_chunk,
    "broken-JSON": breaks_json,
    "html": sends(b"<html>Welcome to nginx!</html>", headers={"content-type": "text/html"}),
    "nothing": sends(b""),
    "an-error-as-success": sends({"error": {"message": "overloaded"}}),
    "no-answer": sends({"choices": [], "candidates": [], "output": []}),
    "finish-error": says("half an ans", finish="error"),
    "finish-abort": says("half an ans", finish="abort"),
    "no-resources": says("", finish="insufficient_system_resource"),
    "an-error-beside": says("half an ans", error={"message": "upstream died"}),
    "an-odd-end": says("", finish="vexed"),
}


def run(server: FaultServer, folder: Path, names: list[str], **given: Any) -> steelyard.Run:
    cases = [Case(id=name, prompt=f"prompt of {name}", target="answer") for name in names]
    means = Means(settings=Settings(retry_delay_ms=5, deadline_secs=30, **given), environment={})
    return steelyard.run(cases, models=FORMATS, base_url=server.url, output=folder, means=means)


def test_an_outage_costs_a_retry_when_it_passes_and_is_missing_when_it_lasts(
    server: FaultServer, tmp_path: Path
) -> None:
    faults = {f"prompt of {name}": fault for name, fault in OUTAGES.items()}
    server.script = by_prompt({prompt: [fault] for prompt, fault in faults.items()})
    done = run(server, tmp_path / "run", [*OUTAGES, "fine"], max_retries=1)
    found = facts(done.folder)
    each = Counter({(model, name): 1 for model in FORMATS for name in (*OUTAGES, "fine")})
    assert found.replied() == found.judged() == each
    assert not any("half" in reply.answer.text for reply in found.replies)
    assert {server.asked(prompt) for prompt in faults} == {2 * len(FORMATS)}

    server.script = by_prompt(faults)
    down = run(server, tmp_path / "down", list(OUTAGES), max_retries=0)
    assert facts(down.folder).replies == []
    assert [(model.attempts, model.missing) for model in down.summary.models] == [(0, len(OUTAGES))] * len(FORMATS)
    assert down.exit_code == 3


TOKENS = 12345
PAID: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "half-a-surrogate-pair": (lambda body: body.replace(b"@", b"\\ud83d"), "answer \ufffd"),
    "a-bad-byte": (lambda body: body.replace(b"@", b"\xff"), "answer \ufffd"),
    "a-raw-newline": (lambda body: body.replace(b"@", b"\n"), "answer \n"),
    "garbage-after-the-end": (lambda body: body + b"\r\n<html>502 Bad Gateway</html>", "answer @"),
    "the-same-twice": (lambda body: body + b"\n" + body, "answer @"),
    **{
        f"tokens-{name}": (lambda body, said=said: body.replace(b"12345", said), "answer @")  # type: ignore[misc]
        for name, said in (
            *(("huge", b"1e30"), ("in-words", b'"abc"'), ("below-zero", b"-5"), ("true", b"true")),
            *(("not-a-number", b"NaN"), ("without-end", b"1" + b"0" * 5000), ("a-list", b"[]"), ("null", b"null")),
        )
    },
}


def test_what_was_paid_for_is_stored_whatever_its_accounting_says(server: FaultServer, tmp_path: Path) -> None:
    def odd(name: str) -> Behaviour:
        async def behave(exchange: Exchange) -> None:
            body = exchange.completion("answer @", usage={"input": TOKENS})
            await exchange.send(200, PAID[name][0](body))

        return behave

    server.script = by_prompt({f"prompt of {name}": odd(name) for name in PAID})
    found = facts(run(server, tmp_path / "run", list(PAID), max_retries=2).folder)
    assert found.failures == []
    assert len(server.requests) == len(PAID) * len(FORMATS)
    for reply in found.replies:
        assert reply.answer.text == PAID[reply.case][1], (reply.model, reply.case)
        is_odd = reply.case.startswith("tokens")
        assert reply.answer.input_tokens == (None if is_odd else TOKENS), (reply.model, reply.case)
        assert ("no count of tokens" in reply.answer.note) == (is_odd and reply.case != "tokens-null")


def test_a_refusal_for_all_is_asked_a_few_times(server: FaultServer, tmp_path: Path) -> None:
    server.script = lambda request: refuses(407)
    done = run(server, tmp_path / "run", [f"case-{number}" for number in range(12)], max_retries=2)
    assert len(done.stopped) == len(FORMATS)
    assert len(server.requests) < 8 * len(FORMATS)
    assert facts(done.folder).replies == []
