"""Each wire format against a scripted server: what is sent, what is read, whole and streamed, and whose fault it is."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steelyard.errors import FilteredInput, InputError, ProviderError, Rejected, Unavailable
from steelyard.plugins import load_plugin
from steelyard.protocols import Delivery, ProviderSettings
from steelyard.providers.faults import FINISH_REASONS, FaultKind
from steelyard.providers.formats.bedrock import AwsCredentials, signed_headers
from steelyard.records import Answer, Attempt, Case, ContentPart, Message, Tool, ToolCall
from steelyard.settings import Settings, resolve_provider
from support.asking import KEY, answer, attempt
from support.fault_server import Exchange, FaultServer, in_turn, refuses, sends
from support.wire_bodies import BODIES, FORMATS, STREAM_TYPE, chat, converse, frames, provider, responses, sse


@pytest.mark.parametrize("kind", FORMATS)
def test_a_streamed_answer_is_the_whole_one_and_has_a_time_to_its_first_token(server: FaultServer, kind: str) -> None:
    whole, stream = BODIES[kind]()
    server.script = in_turn(sends(whole), sends(stream, headers=STREAM_TYPE))
    plain = answer(provider(server, kind, stream="off"))
    streamed = answer(provider(server, kind, stream="on"))
    assert plain.first_token is None
    assert streamed.first_token is not None
    assert 0 < streamed.first_token <= (streamed.latency or 0)
    assert msgspec.structs.replace(streamed, latency=None, first_token=None) == msgspec.structs.replace(
        plain, latency=None
    )
    assert (plain.text, plain.reasoning) == ("hi", "hm")
    assert [(call.name, json.loads(call.arguments), call.id) for call in plain.tool_calls] == [
        ("look", {"at": 1}, "c1")
    ]
    assert (plain.input_tokens, plain.output_tokens, plain.cached_tokens) == (9, 5, 4)
    asked, asked_streaming = server.requests
    is_stream = "stream" in asked_streaming.path.lower() or asked_streaming.body.get("stream") is True
    assert is_stream
    assert "stream" not in asked.path.lower()
    assert "stream" not in asked.body


@pytest.mark.parametrize("kind", FORMATS)
def test_a_stream_that_breaks_off_is_an_outage_and_what_came_of_it_is_kept(server: FaultServer, kind: str) -> None:
    stream = BODIES[kind]()[1]
    cut = stream[: len(stream) // 2]

    async def breaks_off(exchange: Exchange) -> None:
        await exchange.begin(200, {"content-length": str(len(stream)), **STREAM_TYPE})
        await exchange.write(cut)
        exchange.hang_up()

    async def ends_early(exchange: Exchange) -> None:
        await exchange.send(200, cut, STREAM_TYPE)

    async def ask(delivery: Delivery) -> None:
        asked = provider(server, kind, stream="on")
        try:
            await asked.ask(attempt(), delivery)
        finally:
            await asked.close()

    for behaviour in (breaks_off, ends_early):
        server.script = in_turn(behaviour)
        delivery = Delivery()
        with pytest.raises(Unavailable):
            asyncio.run(ask(delivery))
        # what was on its way when the connection broke may be lost, but never all
        assert delivery.body
        assert cut.startswith(delivery.body)


@pytest.mark.parametrize("kind", ["openai-responses", "gemini", "bedrock"])
def test_every_finish_reason_means_in_each_format_what_the_table_says(server: FaultServer, kind: str) -> None:
    stored = {FaultKind.CUT_OFF: "length", FaultKind.TOOL_CALLS: "tool_calls", FaultKind.REFUSAL: "refusal"}
    for row in FINISH_REASONS:
        for word in row.words:
            server.script = in_turn(sends(BODIES[kind](word)[0]))
            try:
                came: Answer | ProviderError = answer(provider(server, kind))
            except ProviderError as error:
                came = error
            if row.kind is FaultKind.OUTAGE:
                assert isinstance(came, Unavailable), (word, came)
            elif row.kind in stored:
                assert isinstance(came, Answer)
                assert (came.text, came.finish) == ("hi", stored[row.kind]), word


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("status", "fault"), [(401, Rejected), (429, Unavailable), (503, Unavailable), (400, Rejected)]
)
def test_an_error_status_is_whose_fault_it_is_and_shows_no_key(
    server: FaultServer, kind: str, status: int, fault: type[ProviderError]
) -> None:
    server.script = in_turn(refuses(status, f"no {KEY}"))
    with pytest.raises(fault) as caught:
        answer(provider(server, kind))
    assert KEY not in str(caught.value)


def test_errors_inside_streams_and_blocked_prompts_are_no_answers(server: FaultServer) -> None:
    throttled = frames(("messageStart", {"role": "assistant"}), ("throttlingException", {"message": "slow"}))
    failed = sse({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}})
    server.script = in_turn(sends(throttled), sends(failed), sends({"promptFeedback": {"blockReason": "SAFETY"}}))
    with pytest.raises(Unavailable, match="slow"):
        answer(provider(server, "bedrock"))
    with pytest.raises(Unavailable):
        answer(provider(server, "openai-responses"))
    with pytest.raises(FilteredInput):
        answer(provider(server, "gemini"))


FINISHED = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
NO_BLOCK = [
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
]
DELTA_OF_TEXT = ("contentBlockDelta", {"contentBlockIndex": 0, "delta": "hi"})


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("openai", sse({"choices": [{"index": 0, "delta": "hi"}]}, FINISHED)),
        ("openai", sse({"choices": {"delta": {"content": "hi"}}}, FINISHED)),
        ("openai", sse("hi", FINISHED)),
        ("openai-responses", {"status": "completed", "output": "hi"}),
        ("openai-responses", {"status": "completed", "output": [{"type": "message", "content": "hi"}]}),
        ("openai-responses", {"status": "completed"}),
        ("anthropic", {"content": 5, "stop_reason": "end_turn"}),
        ("anthropic", sse(*NO_BLOCK)),
        ("gemini", {"candidates": [{"content": "hi", "finishReason": "STOP"}]}),
        ("gemini", {"candidates": [{"content": {"parts": {"text": "hi"}}, "finishReason": "STOP"}]}),
        ("gemini", sse({"candidates": [{"content": "hi"}]}, {"candidates": [{"finishReason": "STOP"}]})),
        ("bedrock", {"output": {"message": "hi"}, "stopReason": "end_turn"}),
        ("bedrock", {"stopReason": "end_turn"}),
        ("bedrock", frames(DELTA_OF_TEXT, ("messageStop", {"stopReason": "end_turn"}))),
    ],
)
def test_a_wrong_type_where_the_answer_should_be_is_an_outage_and_no_empty_answer(
    server: FaultServer, kind: str, body: Any
) -> None:
    server.script = in_turn(sends(body))
    with pytest.raises(Unavailable, match="not the answer expected"):
        answer(provider(server, kind))


def test_the_output_of_a_stream_is_read_where_its_last_event_leaves_it_out(server: FaultServer) -> None:
    whole = responses()[0]
    items = [{"type": "response.output_item.done", "item": item} for item in whole["output"]]
    last = {"type": "response.completed", "response": {**whole, "output": []}}
    server.script = in_turn(sends(whole), sends(sse(*items, last)))
    plain, streamed = (answer(provider(server, "openai-responses")) for _ in range(2))
    assert streamed.text == "hi"
    assert (streamed.text, streamed.tool_calls, streamed.reasoning) == (plain.text, plain.tool_calls, plain.reasoning)


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b" ", b"\r\n: hello\r\n\r\n"])
def test_nothing_before_the_first_line_of_a_stream_costs_its_first_event(server: FaultServer, before: bytes) -> None:
    server.script = in_turn(sends(before + sse({"choices": [{"delta": {"content": "hi"}}]}, FINISHED)))
    assert answer(provider(server, "openai")).text == "hi"


def test_a_damaged_frame_is_an_outage(server: FaultServer) -> None:
    stream = bytearray(converse()[1])
    stream[60] ^= 1
    server.script = in_turn(sends(bytes(stream)))
    with pytest.raises(Unavailable):
        answer(provider(server, "bedrock"))


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/openai/v1/chat/completions"),
        ("/openai/v1", "/openai/v1/chat/completions"),
        ("/openai/v1?api-version=preview", "/openai/v1/chat/completions?api-version=preview"),
        ("?api-version=2024-10-21", "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"),
        ("/openai?api-version=2024-10-21", "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"),
    ],
)
def test_azure_is_reached_at_its_classic_address_and_at_v1(server: FaultServer, base: str, path: str) -> None:
    answer(provider(server, "azure", "my gpt", base_url=server.url + base), attempt(max_tokens=5))
    (request,) = server.requests
    assert request.path == path
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers
    assert (request.body["model"], request.body["max_completion_tokens"]) == ("my gpt", 5)


@pytest.mark.parametrize(("kind", "variable"), [("azure", "AZURE_OPENAI_ENDPOINT"), ("bedrock", "AWS_REGION")])
def test_a_missing_address_names_the_variable_that_gives_it(server: FaultServer, kind: str, variable: str) -> None:
    with pytest.raises(InputError, match=variable):
        provider(server, kind, base_url="")


def test_a_query_of_a_base_url_stays_behind_the_path_and_holds_no_key(server: FaultServer) -> None:
    answer(provider(server, "openai", base_url=f"{server.url}/v1?api-version=1"))
    assert server.requests[0].path == "/v1/chat/completions?api-version=1"
    with pytest.raises(InputError, match="must not contain a key"):
        provider(server, "openai", base_url=f"{server.url}/v1?key=sk-12345678")


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
SHAPE = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}}
JSON_SHAPE = {"type": "json_object"}


@pytest.mark.parametrize(
    ("kind", "model", "dialect", "sent"),
    [
        ("openai", "m", "", {"reasoning_effort": "low", "response_format": SHAPE}),
        ("openai", "m", "openrouter", {"reasoning": {"effort": "low"}, "response_format": SHAPE}),
        ("openai", "m", "llama.cpp", {"chat_template_kwargs": {"reasoning_effort": "low"}, "response_format": SHAPE}),
        (
            "openai-responses",
            "m",
            "",
            {
                "reasoning": {"effort": "low"},
                "text": {"format": {"type": "json_schema", "name": "reply", "schema": SCHEMA, "strict": True}},
            },
        ),
        (
            "anthropic",
            "m",
            "",
            {
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
            },
        ),
        (
            "gemini",
            "gemini-3-pro",
            "",
            {
                "generationConfig": {
                    "thinkingConfig": {"thinkingLevel": "low"},
                    "responseMimeType": "application/json",
                    "responseJsonSchema": SCHEMA,
                }
            },
        ),
        (
            "gemini",
            "gemini-2.5-pro",
            "",
            {
                "generationConfig": {
                    "thinkingConfig": {"thinkingBudget": 1024},
                    "responseMimeType": "application/json",
                    "responseJsonSchema": SCHEMA,
                }
            },
        ),
        (
            "bedrock",
            "m",
            "",
            {
                "outputConfig": {
                    "effort": "low",
                    "textFormat": {
                        "type": "json_schema",
                        "structure": {"jsonSchema": {"name": "reply", "schema": json.dumps(SCHEMA)}},
                    },
                }
            },
        ),
    ],
)
def test_effort_and_structure_are_sent_as_each_provider_calls_them(
    server: FaultServer, kind: str, model: str, dialect: str, sent: dict[str, Any]
) -> None:
    asked: Any = provider(server, kind, model, dialect=dialect)
    body = asked.request(attempt(reasoning_effort="low", response_format=SHAPE))
    usual = {"model", "messages", "input", "contents", "store", "max_tokens"}
    assert {name: value for name, value in body.items() if name not in usual} == sent
    assert not asked.unsupported({"reasoning_effort": "low", "response_format": SHAPE})


@pytest.mark.parametrize(
    ("kind", "dialect", "parameters"),
    [
        ("openai", "lmstudio", {"reasoning_effort": "low"}),
        ("openai", "deepseek", {"response_format": SHAPE}),
        ("openai-completions", "", {"reasoning_effort": "low"}),
        ("anthropic", "", {"reasoning_effort": "minimal"}),
        ("anthropic", "", {"response_format": JSON_SHAPE}),
        ("gemini", "", {"reasoning_effort": "max"}),
        ("bedrock", "", {"reasoning_effort": "none"}),
        ("bedrock", "", {"response_format": JSON_SHAPE}),
    ],
)
def test_what_a_provider_has_not_is_refused_before_anything_is_asked(
    server: FaultServer, kind: str, dialect: str, parameters: dict[str, Any]
) -> None:
    asked: Any = provider(server, kind, dialect=dialect)
    assert asked.unsupported(parameters)


def conversation(folder: Path) -> Attempt:
    (folder / "cat.png").write_bytes(b"png")
    (folder / "a.pdf").write_bytes(b"pdf")
    asked = (
        ContentPart(type="text", text="What is it?"),
        ContentPart(type="image", path=str(folder / "cat.png")),
        ContentPart(type="file", path=str(folder / "a.pdf")),
    )
    call = ToolCall(name="look", arguments='{"at": 1}', id="c1")
    talk = (
        Message(role="system", content="Be brief."),
        Message(role="user", content=asked),
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="a cat", tool_call_id="c1"),
    )
    tool = Tool(name="look", description="looks", parameters={"type": "object"})
    return Attempt(case=Case(id="c", prompt=talk), model="p/m", tools=(tool,))


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
PNG, PDF = "cG5n", "cGRm"


def test_files_tool_calls_and_their_results_are_sent_as_each_format_has_them(
    server: FaultServer, tmp_path: Path
) -> None:
    asked = conversation(tmp_path)
    bodies = {kind: getattr(provider(server, kind), "request")(asked) for kind in FORMATS}  # noqa: B009  no protocol has it
    image, document = f"data:image/png;base64,{PNG}", f"data:application/pdf;base64,{PDF}"
    assert bodies["openai"]["messages"][1:] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": image}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": document}},
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
    ]
    assert bodies["azure"]["messages"] == bodies["openai"]["messages"]
    assert bodies["openai-responses"]["input"][1:] == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is it?"},
                {"type": "input_image", "image_url": image, "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": document},
            ],
        },
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
    ]
    assert bodies["anthropic"]["messages"][1:] == [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a cat"}]},
    ]
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    assert bodies["anthropic"]["messages"][0]["content"][1] == {"type": "image", "source": source}
    assert bodies["gemini"]["contents"][0]["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": PNG}}
    assert bodies["gemini"]["contents"][2]["parts"] == [
        {"functionResponse": {"name": "look", "response": {"result": "a cat"}, "id": "c1"}}
    ]
    assert bodies["bedrock"]["messages"][0]["content"][1:] == [
        {"image": {"format": "png", "source": {"bytes": PNG}}},
        {"document": {"format": "pdf", "name": "a", "source": {"bytes": PDF}}},
    ]
    for kind, body in bodies.items():
        assert "looks" in json.dumps(body.get("tools") or body.get("toolConfig")), kind


def test_a_file_that_changed_since_the_plan_is_not_sent(server: FaultServer, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(b"dog")
    part = ContentPart(type="image", path=str(tmp_path / "cat.png"), digest="0" * 32)
    with pytest.raises(Rejected, match="is not the file that it was"):
        answer(provider(server, "openai"), attempt((Message(role="user", content=(part,)),)))
    assert not server.requests


def test_auto_streams_after_a_server_refused_to_answer_whole_and_the_other_way_round(server: FaultServer) -> None:
    server.script = in_turn(refuses(400, "stream must be true"), sends(chat()[1]))
    assert answer(provider(server, "openai")).text == "hi"
    assert [request.body.get("stream") for request in server.requests] == [None, True]
    server.requests.clear()
    server.script = in_turn(refuses(400, "stream is not supported"))
    answer(provider(server, "anthropic"))
    assert [request.body.get("stream") for request in server.requests] == [True, None]


def test_a_request_to_bedrock_is_signed_by_the_published_example() -> None:
    # the example of AWS for Signature Version 4: GET iam ListUsers, 2015-08-30
    credentials = AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    made = signed_headers(
        credentials,
        "GET",
        "https://example.amazonaws.com/",
        b"",
        region="us-east-1",
        service="service",
        at=datetime(2015, 8, 30, 12, 36, tzinfo=UTC),
    )
    # get-vanilla of the published test suite
    assert made["authorization"].endswith(
        "SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    )


PROFILE = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.a-v1%3A0"


@pytest.mark.parametrize(
    ("address", "session", "signature"),
    [
        (
            "bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-5-sonnet-20241022-v2%3A0/converse",
            "",
            "4800575a92d6aeb73410776dd6c334e8fa67d050bb65a38f2a378b139bfaa0fe",
        ),
        (
            f"Bedrock-Runtime.us-east-1.amazonaws.com:443/model/{PROFILE}/converse-stream",
            "FwoG/tok+en==",
            "eae0633563e6de4d7ca8110d9aaf0e20341a4953b7a1b4707f112b98cdd93fa0",
        ),
        (
            "bedrock-runtime.us-east-1.amazonaws.com:8443/model/my%20model/converse?b=2&a=%2F1&a=0&e=",
            "",
            "9f3f3c92beb349b76ccb32bdeac612092136ae3b28000711bcd290f6539dbac8",
        ),
    ],
)
def test_signatures_are_those_that_botocore_makes(address: str, session: str, signature: str) -> None:
    # made with botocore 1.44.0
    made = signed_headers(
        AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", session),
        "POST",
        f"https://{address}",
        b'{"messages":[]}',
        region="us-east-1",
        service="bedrock",
        at=datetime(2026, 11, 17, 7, 8, 9, tzinfo=UTC),
    )
    signed = "host;x-amz-date;x-amz-security-token" if session else "host;x-amz-date"
    assert made["authorization"].endswith(f"SignedHeaders={signed}, Signature={signature}")


def test_a_key_of_bedrock_signs_and_its_secret_is_sent_nowhere(server: FaultServer) -> None:
    server.script = in_turn(sends(converse()[0]))
    answer(provider(server, "bedrock", "anthropic.claude:0", api_key="AKIDEXAMPLE:very-secret-key:the-session"))
    (request,) = server.requests
    assert request.path == "/model/anthropic.claude%3A0/converse"
    assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert request.headers["x-amz-security-token"] == "the-session"
    assert "very-secret-key" not in json.dumps([request.headers, request.body])


def test_the_region_of_bedrock_is_that_of_its_address_then_that_of_the_settings_and_the_environment(
    server: FaultServer,
) -> None:
    environment = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-key"}
    for given, settings in (("", "eu-west-1"), ("ap-south-2", "ap-south-2")):
        chosen = Settings(providers={"bedrock": ProviderSettings(type="bedrock", region=given)})
        usual = resolve_provider("bedrock/m", chosen, environment)[2]
        assert usual.base_url == f"https://bedrock-runtime.{settings}.amazonaws.com"
        own = {**environment, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.url}
        reached = resolve_provider("bedrock/m", chosen, own)[2]
        server.script = in_turn(sends(converse()[0]))
        connect: Any = load_plugin("providers", "bedrock")
        answer(connect("m", reached)["m"])
        assert f"/{settings}/bedrock/aws4_request" in server.requests[-1].headers["authorization"]
