"""What the reply cache, batches and prompt caching save, as docs/saving.md tells it of three scripted runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.protocols import Delivery, ProviderSettings
from steelyard.providers.formats import bedrock, openai
from steelyard.providers.formats.anthropic import connect
from steelyard.providers.prompt_cache import TRIAL_WRITTEN_TOKENS, PromptCacheMarks
from steelyard.records import Answer, Attempt, Price, Spending
from steelyard.reports.figures import spending_text
from support.asking import answer, attempt
from support.batch_server import BatchServer
from support.facts import facts
from support.fault_server import Exchange, FaultServer, ok, refuses

PAGE = (Path(__file__).parents[2] / "docs" / "saving.md").read_text("utf-8")
PRICE = Price(input=3, output=15, cached=0.3, cache_write=3.75, batch_discount=0.5)
MEANS = Means(
    settings=Settings(max_retries=0, retry_delay_ms=1, prices=dict.fromkeys(("openai/m", "anthropic/m"), PRICE)),
    environment={"ANTHROPIC_API_KEY": "k"},
    parallelism=1,
)
LONG = "All that is known about the product. " * 200


async def caching(exchange: Exchange) -> None:
    """Answer as a server does that caches what is marked: 1,000 tokens of a prompt, and 20 that nobody caches."""
    body = exchange.request.body
    blocks = body["messages"][-1]["content"]
    prefix = json.dumps([body.get("system"), blocks if isinstance(blocks, str) else [blocks[-1]["text"]]])
    is_marked = isinstance(blocks, list) and "cache_control" in blocks[-1]
    usage = {"input_tokens": 1020, "output_tokens": 10}
    if is_marked:
        known = prefix in KNOWN
        KNOWN.add(prefix)
        usage = {"input_tokens": 20, "output_tokens": 10, "cache_read_input_tokens": 1000 * known}
        usage["cache_creation_input_tokens"] = 1000 * (not known)
    message = {"type": "message", "content": [{"type": "text", "text": "answer"}], "stop_reason": "end_turn"}
    await exchange.send(200, json.dumps(message | {"usage": usage}).encode(), says="answer")


KNOWN: set[str] = set()


def spent(run: steelyard.Run) -> float:
    """What the run itself has paid."""
    return sum(r.answer.cost.usd for r in facts(run.folder).replies if r.answer.cost and not r.cached_from)


def amounts(run: steelyard.Run) -> dict[str, float]:
    """What the summary says of money, apart from what is zero."""
    return {name: usd for name, usd in msgspec.structs.asdict(run.summary.spending or Spending()).items() if usd}


def saved_line(what: str, without: float, with_it: float) -> str:
    return f"| {what} | ${without:.5f} | ${with_it:.5f} | {1 - with_it / without:.0%} |"


def test_the_page_tells_what_the_three_runs_saved(server: FaultServer, tmp_path: Path) -> None:
    batches = BatchServer()
    fifty = [Case(id=f"c{number}", prompt=f"prompt {number}", target="answer") for number in range(50)]
    changed = [*fifty[:-1], Case(id="c49", prompt="prompt 49, improved", target="answer")]
    with batches.serving() as url:

        def asked(name: str, cases: list[Case], means: Means) -> steelyard.Run:
            return steelyard.run(cases, models="openai/m", base_url=url, output=tmp_path / name, means=means)

        plain = spent(asked("plain", fifty, MEANS))
        cache_run, batch_run = (
            asked("cached", changed, MEANS._replace(cache_days=1.0)),
            asked("batched", fifty, MEANS._replace(batch=True)),
        )
        cached, batched = spent(cache_run), spent(batch_run)
    assert amounts(cache_run) == {"cache_saved_usd": pytest.approx(plain - cached)}
    assert amounts(batch_run) == {"batch_saved_usd": pytest.approx(plain - batched)}
    KNOWN.clear()
    server.script = lambda _: caching
    long = [Case(id=f"l{number}", prompt=f"{LONG}Question {number}?", target="answer") for number in range(5)]
    marked = steelyard.run(
        long,
        models="anthropic/m",
        samples=10,
        base_url=server.url,
        output=tmp_path / "marked",
        means=MEANS,
    )
    unmarked = 50 * (1020 * 3 + 10 * 15) / 1e6
    assert amounts(marked) == {"prompt_caching_saved_usd": pytest.approx(unmarked - spent(marked))}
    assert spending_text(marked.summary) == "$0.118 saved by prompt caching"
    for line in (
        saved_line("`--cache`, one of 50 prompts changed", plain, cached),
        saved_line("`--batch`, 50 asks", plain, batched),
        saved_line("prompt caching, 10 samples of 5 prompts of 1,000 tokens", unmarked, spent(marked)),
    ):
        assert line in PAGE, line


def test_only_what_is_long_and_asked_again_is_marked(server: FaultServer) -> None:
    server.script = lambda _: caching

    def marks(asked: Attempt, samples: int) -> int:
        settings = ProviderSettings(type="anthropic", api_key="k", base_url=server.url)
        answer(connect("claude-x", settings)["claude-x"], msgspec.structs.replace(asked, samples=samples))
        return json.dumps(server.requests[-1].body).count("cache_control")

    assert [marks(attempt(LONG), 1), marks(attempt(LONG), 3), marks(attempt("short"), 3)] == [0, 1, 0]
    assert marks(attempt("short", system=LONG), 1) == 1
    assert server.requests[-1].body["system"][-1]["cache_control"] == {"type": "ephemeral"}


def test_openrouter_and_bedrock_get_marks_for_models_that_need_them(server: FaultServer) -> None:
    def requested(kind: str, model: str, asked: Attempt, samples: int = 3) -> Any:
        settings = ProviderSettings(type="x", api_key="k", base_url=server.url, dialect="openrouter")
        provider: Any = {"chat": openai, "converse": bedrock}[kind].connect(model, settings)[model]
        return provider.request(msgspec.structs.replace(asked, samples=samples))

    claude, both = "anthropic/claude-x", attempt("Question?", system=LONG)
    chat = requested("chat", claude, both)["messages"]
    assert [part["cache_control"] for message in chat for part in message["content"]] == [{"type": "ephemeral"}] * 2
    assert [message["content"][0]["text"] for message in chat] == [LONG, "Question?"]
    assert "cache_control" not in json.dumps(requested("chat", "openai/x", both))
    assert "cache_control" not in json.dumps(requested("chat", claude, attempt(LONG), samples=1))

    point = {"cachePoint": {"type": "default"}}
    converse = requested("converse", "eu.anthropic.claude-sonnet-4-v1:0", both)
    assert converse["system"] == [{"text": LONG}, point]
    assert converse["messages"] == [{"role": "user", "content": [{"text": "Question?"}, point]}]
    shared = msgspec.structs.replace(attempt(f"{LONG}Question?"), shared_characters=len(LONG))
    judged = requested("converse", "amazon.nova-pro-v1:0", shared, samples=1)
    assert judged["messages"][0]["content"] == [{"text": LONG}, point, {"text": "Question?"}]
    for old in ("anthropic.claude-3-haiku-x", "meta.llama3"):
        assert "cachePoint" not in json.dumps(requested("converse", old, both))


def test_a_model_that_knows_no_marks_is_asked_without_them(server: FaultServer) -> None:
    refusal = refuses(400, "Your request did not allow prompt caching. See the documentation.")
    server.script = lambda request: refusal if "cachePoint" in json.dumps(request.body) else ok
    model = "anthropic.claude-sonnet-4"
    settings = ProviderSettings(type="bedrock", api_key="k", base_url=server.url)
    (provider,) = bedrock.connect(model, settings).values()

    async def ask_twice() -> None:
        for expected in (2, 3):
            await provider.ask(msgspec.structs.replace(attempt(LONG), samples=3), Delivery())
            assert len(server.requests) == expected
        await provider.close()

    asyncio.run(ask_twice())


@pytest.mark.parametrize(("read", "saves"), [(0, False), (10 * TRIAL_WRITTEN_TOKENS, True)])
def test_marks_that_only_cost_are_given_up(*, read: int, saves: bool) -> None:
    marks = PromptCacheMarks()
    assert marks.saves
    marks.learn(Answer(text="", cache_write_tokens=TRIAL_WRITTEN_TOKENS, cached_tokens=read))
    assert marks.saves == saves
    body = {"messages": [{"role": "user", "content": LONG}]}
    assert (marks.marked(body, 2) != body) == saves
