"""A run as OpenTelemetry traces: read by OpenTelemetry's own messages, and taken by a collector's socket."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from steelyard.reports.exports import otlp
from support.command_line import steelyard

KEPT_RUN = Path(__file__).parents[1] / "data" / "run-0.1.0" / "runs" / "whole"


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("otlp")
    done = steelyard(place, "report", str(KEPT_RUN), "-o", "run.otlp.json", "-o", "again.otlp.json")
    assert done.returncode == 0, done.stderr
    assert (place / "run.otlp.json").read_bytes() == (place / "again.otlp.json").read_bytes()
    return (place / "run.otlp.json").read_text("utf-8")


def parsed(body: str) -> Any:
    """What OpenTelemetry's own messages make of it; a name or type that they do not have is an error. OTLP writes ids in hex."""
    whole = json.loads(body)
    for span in whole["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                assert len(bytes.fromhex(span.pop(name))) == (16 if name == "traceId" else 8)
    return json_format.ParseDict(whole, ExportTraceServiceRequest())


def values(found: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in found.attributes}


def test_every_attempt_is_a_span_below_that_of_the_run(body: str) -> None:
    spans = json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    root, *attempts = spans
    assert len(attempts) == 12
    assert {span["parentSpanId"] for span in attempts} == {root["spanId"]}
    assert len({span["spanId"] for span in spans}) == 13
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in spans)


def test_spans_keep_to_the_conventions_for_generative_models(body: str) -> None:
    spans = parsed(body).resource_spans[0].scope_spans[0].spans
    judged = [span for span in spans if span.events]
    for span in judged:
        found = values(span)
        assert found["gen_ai.operation.name"] == "chat"
        assert span.name == f"chat {found['gen_ai.request.model']}"
        (event,) = span.events
        assert event.name == "gen_ai.evaluation.result"
        label = values(event)["gen_ai.evaluation.score.label"]
        assert (label == "pass") == (found["steelyard.outcome"] == "correct")
        assert span.status.code == otlp.STATUS_OK, "a wrong answer is no error of the request"
    assert {values(span.events[0])["gen_ai.evaluation.score.label"] for span in judged} == {"pass", "fail"}


def test_a_missing_attempt_is_an_error_and_has_no_evaluation(body: str) -> None:
    spans = parsed(body).resource_spans[0].scope_spans[0].spans
    (missing,) = (span for span in spans if values(span).get("steelyard.outcome") == "missing")
    assert missing.status.code == otlp.STATUS_ERROR
    assert missing.status.message
    assert not missing.events


def test_texts_of_prompts_and_replies_are_left_out(body: str) -> None:
    journal = (KEPT_RUN / "attempts.jsonl").read_text("utf-8").splitlines()
    replies = [json.loads(line)["answer"]["text"] for line in journal if json.loads(line)["kind"] == "reply"]
    assert replies
    assert not [text for text in replies if len(text) > 20 and json.dumps(text)[1:-1] in body]


def test_a_collector_takes_the_file_as_it_is(body: str) -> None:
    taken: list[tuple[str, str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            taken.append((self.path, self.headers["content-type"], content))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/v1/traces"
        answer = httpx2.post(url, content=body.encode(), headers={"content-type": "application/json"}, trust_env=False)
        thread.join()
    assert answer.status_code == 200
    ((path, kind, content),) = taken
    assert (path, kind) == ("/v1/traces", "application/json")
    assert len(parsed(content.decode()).resource_spans[0].scope_spans[0].spans) == 13
