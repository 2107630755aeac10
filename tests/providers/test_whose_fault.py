"""One rule of whose fault it is: no outage is an answer, no answer is an outage, whatever provider speaks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steelyard.errors import FilteredInput, InputError, ProviderError, Rejected, Unavailable
from steelyard.protocols import Provider, ProviderSettings
from steelyard.providers.faults import FINISH_REASONS, FaultKind, finish_kind
from steelyard.providers.formats import anthropic, http, openai
from steelyard.records import Answer, ToolCall
from support.asking import KEY, answer
from support.fault_server import FaultServer, in_turn, sends

GEMINI = "candidates.0.content.parts.0.text"
STORED = {
    FaultKind.ANSWER: "stop",
    FaultKind.CUT_OFF: "length",
    FaultKind.TOOL_CALLS: "tool_calls",
    FaultKind.REFUSAL: "refusal",
}


def provider(server: FaultServer, kind: str = "openai", path: str = GEMINI) -> Provider:
    own: dict[str, Any] = {"body": '{"q": "{{prompt}}"}', "answer": path} if kind == "http" else {}
    settings = ProviderSettings(type=kind, api_key=KEY, base_url=server.url, **own)
    connect = {"openai": openai.connect, "anthropic": anthropic.connect, "http": http.connect}[kind]
    return connect("m", settings)["m"]


def outcome(server: FaultServer, body: Any, kind: str = "openai", **given: Any) -> Answer | ProviderError:
    server.script = in_turn(sends(body, **given.pop("sent", {})))
    try:
        return answer(provider(server, kind, **given))
    except ProviderError as error:
        return error


def chat(content: Any = "hi", finish: Any = "stop", *, beside: Any = None, message: Any = None, **choice: Any) -> Any:
    said = {"role": "assistant", "content": content, **(message or {})}
    return {"choices": [{"index": 0, "message": said, "finish_reason": finish, **choice}], **(beside or {})}


def message(text: str = "hi", finish: Any = "end_turn", **beside: Any) -> Any:
    return {"content": [{"type": "text", "text": text}], "stop_reason": finish, **beside}


def events(*objects: Any, end: str = "data: [DONE]\n\n") -> bytes:
    return (": PROCESSING\n\n" + "".join(f"data: {json.dumps(each)}\n\n" for each in objects) + end).encode()


def delta(finish: str | None = None, *, beside: Any = None, **said: Any) -> Any:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}], **(beside or {})}


def test_every_finish_reason_of_the_table_means_what_the_table_says(server: FaultServer) -> None:
    for row in FINISH_REASONS:
        for word in row.words:
            for spelt in (word, word.upper(), word.replace("_", "-"), f"FINISH_REASON_{word.upper()}"):
                assert finish_kind(spelt) is row.kind, spelt
            bodies: dict[str, Any] = {
                "openai": chat("some text", word),
                "anthropic": {"content": [{"type": "text", "text": "some text"}], "stop_reason": word},
                "http": {"candidates": [{"content": {"parts": [{"text": "some text"}]}, "finishReason": word.upper()}]},
            }
            for kind, body in bodies.items():
                came = outcome(server, body, kind)
                if row.kind is FaultKind.OUTAGE:
                    assert isinstance(came, Unavailable), (kind, word, came)
                    assert word in str(came).lower()
                else:
                    assert isinstance(came, Answer), (kind, word, came)
                    assert (came.text, came.finish, came.note) == ("some text", STORED[row.kind], "")


@pytest.mark.parametrize("kind", ["openai", "anthropic", "http"])
def test_an_unknown_finish_with_text_is_flagged_and_without_text_an_outage(server: FaultServer, kind: str) -> None:
    for word in ("vexed", 7, {"type": "vexed"}):
        for text in ("some text", ""):
            bodies: dict[str, Any] = {
                "openai": chat(text, word),
                "anthropic": {"content": [{"type": "text", "text": text}], "stop_reason": word},
                "http": {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": word}]},
            }
            came = outcome(server, bodies[kind], kind)
            if text:
                assert isinstance(came, Answer)
                assert came.finish in ("vexed", "7")
                assert f'finish reason "{came.finish}" is unknown' in came.note
            else:
                assert isinstance(came, Unavailable)


OUTAGES: dict[str, Any] = {
    "OpenRouter in the choice": chat("half an ans", "error", error={"code": 502, "message": "upstream died"}),
    "an error in the choice, finish null": chat("", None, error={"message": "upstream died"}),
    "an error in the choice, finish stop": chat("half", "stop", error="upstream died"),
    "an error in the message": chat("half", "stop", message={"error": {"message": "upstream died"}}),
    "an error beside the choices": chat("half", "stop", beside={"error": {"message": "upstream died", "code": 500}}),
    "an error with a code of its own": chat("", None, beside={"error": {"message": "upstream died", "code": "oops"}}),
    "SGLang": chat("half", {"type": "abort", "message": "upstream died"}),
    "no finish and nothing said": chat(None, None),
    "no choices": {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "upstream died"}},
    "an error as an object": {"object": "error", "message": "upstream died", "code": 50001},
    "a choice without a message": {"choices": [{"message": None, "finish_reason": "stop"}]},
    "a stream with an error": events(delta(content="half"), {"error": {"code": 502, "message": "upstream died"}}),
    "a stream with an error in its choice": events(delta("error", content="half")),
    "a stream that broke off": events(delta(content="half"), end=""),
    "a stream cut within an event": events(delta(content="half"), end='data: {"choices": [{"del'),
}


START: dict[str, Any] = {"type": "message_start", "message": {}}
HALF = [
    START,
    {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "half"}},
]
OUTAGES_AS_MESSAGES: dict[str, Any] = {
    "OpenRouter": message("half an ans", "error", error={"code": 502, "message": "upstream died"}),
    "an error, stop reason null": message("", None, error={"message": "upstream died"}),
    "an error that is a text": message("half", error="upstream died"),
    "an error in a block": {"content": [{"type": "text", "text": "half", "error": "upstream died"}]},
    "an error beside the content": message("half", error={"message": "upstream died", "code": 500}),
    "an error with a code of its own": message("", None, error={"message": "upstream died", "code": "oops"}),
    "SGLang": message("half", {"type": "abort", "message": "upstream died"}),
    "no stop reason and nothing said": {"content": [], "stop_reason": None},
    "a stop reason that nobody knows": message("", "vexed"),
    "a paused turn": message("half", "pause_turn"),
    "no content": {"content": None, "base_resp": {"status_code": 1002, "status_msg": "it died"}},
    "an error as an object": {"type": "error", "error": {"type": "api_error", "message": "upstream died"}},
    "a message without content": {"content": None, "stop_reason": "end_turn"},
    "nothing but a stop reason": {"stop_reason": "end_turn"},
    "an error behind": json.dumps(message("half")).encode() + b'{"error": "upstream died"}',
    "a stream with an error": events(*HALF, {"type": "error", "error": {"message": "upstream died"}}),
    "a stream with an overload": events(START, {"type": "error", "error": {"type": "overloaded_error"}}),
    "a stream with an error as its end": events(*HALF, {"type": "message_delta", "delta": {"stop_reason": "error"}}),
    "a stream that broke off": events(*HALF, end=""),
    "a stream cut within an event": events(*HALF, end='data: {"type": "message_de'),
    "a stream that is all start": events(START, {"type": "content_block_start", "content_block": {}}),
}


@pytest.mark.parametrize(("kind", "table"), [("openai", OUTAGES), ("anthropic", OUTAGES_AS_MESSAGES)])
def test_a_success_that_says_it_failed_is_an_outage(server: FaultServer, kind: str, table: dict[str, Any]) -> None:
    for name, body in table.items():
        came = outcome(server, body, kind)
        assert type(came) is Unavailable, (name, came)
        assert "upstream died" in str(came) or "upstream died" not in str(body) or "SGLang" in name, name


def test_a_product_that_says_it_failed_is_an_outage(server: FaultServer) -> None:
    for body in (
        {"error": "died", "candidates": [{"content": {"parts": [{"text": "half"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "half"}]}, "error": {"code": 13}}]},
        {"candidates": [{"finishReason": "OTHER"}]},
    ):
        assert type(outcome(server, body, "http")) is Unavailable


def test_an_answer_is_not_taken_for_an_outage(server: FaultServer) -> None:
    answers: list[tuple[Any, str, str]] = [
        (chat("hi", error=None), "hi", "stop"),
        (chat("hi", beside={"error": {"code": None, "message": ""}}), "hi", "stop"),
        (chat("error", beside={"errors": []}), "error", "stop"),
        # Azure: only its filter was down
        (chat("hi", content_filter_results={"error": {"code": "content_filter_error"}}), "hi", "stop"),
        (chat("", "content_filter"), "", "refusal"),
        ({"choices": [{"finish_reason": "content_filter"}]}, "", "refusal"),
        ({"choices": [{"finish_reason": "stop", "text": "hi"}]}, "hi", "stop"),
        (events({"choices": [{"text": "h"}]}, {"choices": [{"text": "i", "finish_reason": "stop"}]}), "hi", "stop"),
        # servers that read JSON for us
        (chat({"status": "ok"}), '{"status": "ok"}', "stop"),
        (chat(5), "5", "stop"),
        (chat("", "stop"), "", "stop"),
        (chat([{"type": "text", "text": "h"}, "i"]), "hi", "stop"),
        (events(delta(content="h"), delta("stop", content="i")), "hi", "stop"),
        (events(delta(content="h"), delta("length", content="i"), end=""), "hi", "length"),
    ]
    for body, text, finish in answers:
        came = outcome(server, body)
        assert isinstance(came, Answer), came
        assert (came.text, came.finish, came.note) == (text, finish, "")
    messages: list[tuple[Any, str, str]] = [
        (message("hi", error=None), "hi", "stop"),
        (message("hi", error={"code": None, "message": ""}), "hi", "stop"),
        (message("error", errors=[]), "error", "stop"),
        (message("", "refusal"), "", "refusal"),
        ({"content": None, "stop_reason": "refusal"}, "", "refusal"),
        ({"content": [], "stop_reason": "end_turn"}, "", "stop"),
        ({"content": "hi", "stop_reason": "end_turn"}, "hi", "stop"),
        ({"content": ["h", {"type": "text", "text": "i"}], "stop_reason": "end_turn"}, "hi", "stop"),
        ({"content": {"type": "text", "text": "hi"}, "stop_reason": "end_turn"}, "hi", "stop"),
        (events(*HALF, {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, end=""), "half", "length"),
    ]
    for body, text, finish in messages:
        came = outcome(server, body, "anthropic")
        assert isinstance(came, Answer), came
        assert (came.text, came.finish, came.note) == (text, finish, "")
    blocked = outcome(server, {"candidates": [{"finishReason": "SAFETY", "safetyRatings": []}]}, "http")
    assert isinstance(blocked, Answer)
    assert (blocked.text, blocked.finish) == ("", "refusal")


FILTERED: dict[str, tuple[int, Any]] = {
    "OpenRouter": (
        403,
        {"error": {"code": 403, "message": "no", "metadata": {"reasons": ["violence"], "flagged_input": "how to"}}},
    ),
    "OpenRouter in words": (403, {"error": {"code": 403, "message": "Your input was flagged"}}),
    "Azure": (400, {"error": {"code": "content_filter", "message": "The response was filtered", "status": 400}}),
    "Azure inside": (
        400,
        {"error": {"code": None, "message": "no", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
    ),
    "OpenAI": (400, {"error": {"code": "content_policy_violation", "type": "invalid_request_error", "message": "no"}}),
    "OpenAI reasoning": (400, {"error": {"code": "invalid_prompt", "message": "limited access"}}),
    "Anthropic": (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"},
        },
    ),
    "Alibaba": (400, {"error": {"code": "data_inspection_failed", "message": "may contain inappropriate content"}}),
    "in a success": (200, {"error": {"code": 403, "message": "Your input was flagged"}}),
    "a blocked prompt": (200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
}


KINDS = ("openai", "anthropic", "http")


def test_a_filtered_input_is_one_and_any_other_refusal_is_none(server: FaultServer) -> None:
    for name, (status, body) in FILTERED.items():
        for kind in KINDS:
            assert isinstance(outcome(server, body, kind, sent={"status": status}), FilteredInput), name
    refusals = (
        (401, "Incorrect API key"),
        (403, "Forbidden"),
        (404, "no such model"),
        (400, "max_tokens is too large"),
        (400, "this model's maximum context length is 4096 tokens"),
        (422, "temperature must be at most 2"),
    )
    for kind in KINDS:
        for status, why in refusals:
            came = outcome(server, {"error": {"message": why}}, kind, sent={"status": status})
            assert type(came) is Rejected, why
        for status in (402, 405, 410):
            came = outcome(server, {"error": {"message": "no"}}, kind, sent={"status": status})
            assert isinstance(came, Rejected)
            assert came.everyone
        for status in (408, 409, 421, 424, 425, 429, 460, 499, *range(500, 509), *range(520, 531), 599):
            came = outcome(server, {"error": {"message": "no"}}, kind, sent={"status": status})
            assert type(came) is Unavailable, status
        # a server that is overloaded is so whatever it says about content
        assert type(outcome(server, {"error": {"message": "flagged"}}, kind, sent={"status": 503})) is Unavailable


def test_tool_calls_further_choices_and_reasoning_are_kept(server: FaultServer) -> None:
    paris = ToolCall(name="weather", arguments='{"city": "Paris"}', id="c1")
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
    start = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": '{"city":'}}
    more = {"index": 0, "function": {"arguments": ' "Paris"}'}}
    block = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}}
    for kind, body in (
        ("openai", chat(None, "tool_calls", message={"tool_calls": [call]})),
        ("openai", events(delta(tool_calls=[start]), delta("tool_calls", tool_calls=[more]))),
        ("anthropic", {"content": [block], "stop_reason": "tool_use"}),
        (
            "anthropic",
            events(
                {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
                {"type": "content_block_start", "content_block": {**block, "input": {}}},
                {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": '{"city": '}},
                {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": '"Paris"}'}},
                {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
            ),
        ),
    ):
        came = outcome(server, body, kind)
        assert isinstance(came, Answer), came
        assert (came.text, came.finish, came.tool_calls) == ("", "tool_calls", (paris,))
    london = {"index": 1, "id": "c2", "function": {"name": "weather", "arguments": '{"city": '}}
    in_turns = [start, london, more, {"index": 1, "function": {"name": "weather", "arguments": '"London"}'}}]
    turns = outcome(server, events(*(delta(tool_calls=[part]) for part in in_turns), delta("tool_calls")))
    assert isinstance(turns, Answer)
    assert turns.tool_calls == (paris, ToolCall(name="weather", arguments='{"city": "London"}', id="c2"))
    pieces = [
        delta(function_call={"name": "f", "arguments": "{"}),
        delta("function_call", function_call={"arguments": "}"}),
    ]
    streamed = outcome(server, events(*pieces))
    assert isinstance(streamed, Answer)
    assert streamed.tool_calls == (ToolCall(name="f", arguments="{}"),)
    old = outcome(server, chat(None, "function_call", message={"function_call": {"name": "f", "arguments": "{}"}}))
    assert isinstance(old, Answer)
    assert old.tool_calls == (ToolCall(name="f", arguments="{}"),)
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "first"}]
    two = {"choices": [{"index": 1, "message": {"content": "second"}}, {"index": 0, "message": {"content": thought}}]}
    both = outcome(server, two)
    assert isinstance(both, Answer)
    assert (both.text, both.reasoning, both.other_choices) == ("first", "hm", ("second",))


def test_parameters_that_ask_for_several_answers_in_one_are_refused() -> None:
    from steelyard.engine.preflight.connect import SINGLE_ANSWER_PARAMETERS, check_parameters

    for name in SINGLE_ANSWER_PARAMETERS:
        with pytest.raises(InputError, match=f'"{name}" cannot be sent.*use --samples'):
            check_parameters({}, {name: 2})
    check_parameters({"top_n": 3, "temperature": 1})
