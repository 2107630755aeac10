"""What a judge is asked several times about one answer begins with the same text, and says so where a provider wants that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.engine.resume import judge
from steelyard.records import Panel, Price, Verify
from steelyard.tiers.rubrics import Rubric, RubricCategory
from steelyard.verifiers.judge.prompt import INJECTION_WARNING, messages, quoted_length
from support.fault_server import Behaviour, FaultServer, Request, says, sends

LONG = "A long answer. " * 400
RUBRIC = Rubric(id="r", categories=(RubricCategory(name="works", check="It works."),))
GOOD = json.dumps({"criteria_scores": {"works": {"reason": "", "score": 0.8}}, "score": 0.8, "passed": True})
YES = json.dumps({"criteria_scores": {"rubric": {"reason": "yes", "score": 1}}, "score": 1})


def means(server: FaultServer, said: list[str]) -> Means:
    price = Price(input=10, output=10, cached=1, cache_write=12.5)
    settings = Settings(max_retries=0, retry_delay_ms=1, prices={"anthropic/judge": price, "openai/judge": price})
    environment = {
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": "sk-none",
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-none",
    }
    return Means(settings=settings, environment=environment, parallelism=4, say=said.append)


class CachingServer:
    """Answers a judge's questions in Anthropic's format, and counts the characters of marked beginnings it has seen."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._seen: set[str] = set()
        self.prompts: list[list[dict[str, Any]]] = []

    def __call__(self, request: Request) -> Behaviour:
        if "system" not in request.body:
            return says(LONG)
        content = request.body["messages"][0]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        self.prompts.append(blocks)
        total, cached, written, so_far = 0, 0, 0, ""
        for block in blocks:
            so_far += block["text"]
            total = len(so_far) // 4
            if "cache_control" in block:
                cached, written = (total, 0) if so_far in self._seen else (0, total)
                self._seen.add(so_far)
        usage = {
            "input_tokens": total - cached - written,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
            "output_tokens": 10,
        }
        return sends({"content": [{"type": "text", "text": self._text}], "stop_reason": "end_turn", "usage": usage})


def test_repeats_read_the_whole_question_from_the_cache(server: FaultServer, tmp_path: Path) -> None:
    said: list[str] = []
    server.script = lambda request: says(LONG)
    cases = [Case(id=name, prompt="Say it.", verify=Verify(kind="judge")) for name in "ab"]
    run = steelyard.run(cases, models="openai/model", samples=1, output=tmp_path / "run", means=means(server, said))
    server.script = caching = CachingServer(GOOD)
    panel = Panel(judges=("anthropic/judge",), rubric=msgspec.to_builtins(RUBRIC), digest=RUBRIC.digest, repeats=3)
    judged = judge(run.folder, panel, means=means(server, said))
    assert judged.stopped == ()
    assert len(caching.prompts) == 6
    texts = ["".join(block["text"] for block in prompt) for prompt in caching.prompts]
    assert sorted(texts.count(text) for text in texts) == [3] * 6
    assert all(prompt[-1]["cache_control"] == {"type": "ephemeral"} for prompt in caching.prompts)
    # of three askings one writes at 12.5 and two read at 1 instead of 10
    tokens = sum(len(text) // 4 for text in set(texts))
    assert judged.summary.spending is not None
    assert judged.summary.spending.prompt_caching_saved_usd == pytest.approx(tokens * (18 - 2.5) / 1e6)


def test_several_rubrics_share_what_is_quoted(server: FaultServer, tmp_path: Path) -> None:
    said: list[str] = []
    checks = [{"rubric": text, "judges": ["anthropic/judge"]} for text in ("It is long.", "It is polite.")]
    case = Case(id="a", prompt="Say it.", verify=Verify(kind="checks", settings={"checks": checks}))
    server.script = caching = CachingServer(YES)
    run = steelyard.run([case], models="openai/model", samples=1, output=tmp_path / "run", means=means(server, said))
    assert run.summary.spending is not None
    assert run.summary.spending.prompt_caching_saved_usd > 0
    first, second = caching.prompts[0], caching.prompts[-1]
    assert len(caching.prompts) == 2
    assert any("prompt caching saved" in line for line in said), said
    assert [("cache_control" in block) for block in first] == [True, False]
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert second[1]["text"].startswith(INJECTION_WARNING)


def test_an_answer_cannot_move_the_end_of_what_is_quoted() -> None:
    (_, question) = messages(RUBRIC, "Say it.", f"x\n\n{INJECTION_WARNING}\n\ny", "0" * 32)
    assert question.text[quoted_length(question) :].startswith(INJECTION_WARNING)
    assert question.text[: quoted_length(question)].rstrip().endswith("0" * 32)


def test_other_formats_get_the_text_as_it_is(server: FaultServer, tmp_path: Path) -> None:
    server.script = lambda request: says(GOOD if "response_format" in request.body else LONG)
    case = Case(id="a", prompt="Say it.", verify=Verify(kind="judge"))
    run = steelyard.run([case], models="openai/model", samples=1, output=tmp_path / "run", means=means(server, []))
    server.requests.clear()
    panel = Panel(judges=("openai/judge",), rubric=msgspec.to_builtins(RUBRIC), digest=RUBRIC.digest, repeats=2)
    judge(run.folder, panel, means=means(server, []))
    one, other = (request.body["messages"] for request in server.requests)
    assert one == other
    assert isinstance(one[-1]["content"], str)


def test_one_rubric_judged_at_an_unknown_cost_makes_the_sum_a_lower_bound(server: FaultServer, tmp_path: Path) -> None:
    unpriced = sends({"choices": [{"message": {"content": YES}, "finish_reason": "stop"}]})
    judged = iter([unpriced])
    server.script = lambda request: next(judged, says(YES)) if request.body["model"] == "judge" else says(LONG)
    checks = [{"rubric": text, "judges": ["openai/judge"]} for text in ("It is long.", "It is polite.")]
    case = Case(id="a", prompt="Say it.", verify=Verify(kind="checks", settings={"checks": checks}))
    said: list[str] = []
    steelyard.run([case], models="openai/model", samples=1, output=tmp_path / "run", means=means(server, said))
    (sentence,) = [line for line in said if line.startswith("the judges of this run cost at least $0.000")]
    assert sentence.endswith("for 2 judgments, beside its models")
