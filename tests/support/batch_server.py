"""A server that takes batches as OpenAI, Anthropic, Mistral and Gemini publish them, and single requests beside them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, str], "str | None"]
"""The text for a model and a prompt; None where the request fails in a batch."""


class BatchServer:
    """What was uploaded, submitted and asked for, whoever asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.singles: list[str] = []
        """The prompts of single requests."""
        self.calls: list[str] = []
        self.looks_needed = 2
        """How often a batch is looked at before it has ended."""
        self.fails: Callable[[str], bool] = lambda _: False
        """Whether the request with this prompt fails in a batch."""
        self.changed: Callable[[str, dict[str, Any]], Any] = lambda _, response: response
        """What becomes of the response to a prompt in a file of results."""
        self.status = "completed"
        self.refusal: tuple[str, int] | None = None
        """Calls that begin with this text get this status."""
        self.kill: tuple[str, bool] | None = None
        """The call at which the client is killed, and whether before it takes effect."""
        self.client = 0
        self._looks: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def submitted(self) -> Counter[str]:
        """How often each prompt is in a batch."""
        return Counter(prompt for batch in self.batches.values() for _, prompt in batch["asked"])

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._respond("GET")

            def do_POST(self) -> None:
                self._respond("POST")

            def _respond(self, method: str) -> None:
                content = self.rfile.read(int(self.headers.get("content-length") or 0))
                call = f"{method} {self.path}"
                status, body = server.handled(call, content, self.headers.get("content-type") or "")
                encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(encoded)))
                    self.end_headers()
                    self.wfile.write(encoded)

            def log_message(self, *_: Any) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
            listening.daemon_threads = True
            threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
            yield f"http://127.0.0.1:{listening.server_port}"
            listening.shutdown()

    def handled(self, call: str, content: bytes, content_type: str) -> tuple[int, Any]:
        with self._lock:
            self.calls.append(call)
            kill = self.kill if self.kill is not None and call.startswith(self.kill[0]) else None
            if kill is not None:
                self.kill = None
            if kill is not None and kill[1]:
                os.kill(self.client, signal.SIGKILL)
                return 500, {}
            if self.refusal is not None and call.startswith(self.refusal[0]):
                return self.refusal[1], {"error": {"message": "no", "type": "invalid_request_error"}}
            found = self._found(call, content, content_type)
            if kill is not None:
                os.kill(self.client, signal.SIGKILL)
            return found

    def _found(self, call: str, content: bytes, content_type: str) -> tuple[int, Any]:
        for pattern, handler in ROUTES:
            if matched := re.fullmatch(pattern, call):
                return 200, getattr(self, handler)(*matched.groups(), content, content_type)
        return 404, {"error": {"message": f"no {call}", "type": "not_found_error"}}

    # ---- files and OpenAI's batches

    def upload(self, content: bytes, content_type: str) -> Any:
        boundary = content_type.partition("boundary=")[2].strip('"').encode()
        parts = content.split(b"--" + boundary)
        heads = [part.partition(b"\r\n\r\n") for part in parts[1:-1]]
        fields = {re.search(rb'name="(\w+)"', head)[1]: body.removesuffix(b"\r\n") for head, _, body in heads}  # type: ignore[index]
        assert fields[b"purpose"] == b"batch"
        name = f"file-{len(self.files) + 1}"
        self.files[name] = fields[b"file"]
        about = {"id": name, "object": "file", "bytes": len(fields[b"file"]), "created_at": int(time.time())}
        return about | {"filename": "asked.jsonl", "purpose": "batch", "status": "processed"}

    def create_batch(self, content: bytes, _: str) -> Any:
        asked = json.loads(content)
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        assert all(line["method"] == "POST" and line["url"] == asked["endpoint"] for line in lines)
        assert len({line["body"]["model"] for line in lines}) == 1
        return self._openai_batch(self._made("batch", asked, lines))

    def _made(self, kind: str, asked: dict[str, Any], lines: list[dict[str, Any]]) -> str:
        name = f"{kind}_{len(self.batches) + 1}"
        bodies: list[Any] = [line.get("body") or line.get("params") or line.get("request") for line in lines]
        self.batches[name] = {
            "given": asked,
            "created": time.time(),
            "asked": [(_custom_id(line), _prompt(body)) for line, body in zip(lines, bodies, strict=True)],
            "bodies": bodies,
        }
        return name

    def _is_ended(self, name: str) -> bool:
        return self._looks[name] >= self.looks_needed

    def _openai_batch(self, name: str) -> Any:
        batch, ended = self.batches[name], self._is_ended(name)
        count = len(batch["asked"])
        failed = sum(self.fails(prompt) for _, prompt in batch["asked"]) if ended else 0
        return {
            "id": name,
            "object": "batch",
            "endpoint": batch["given"]["endpoint"],
            "errors": None,
            "input_file_id": batch["given"]["input_file_id"],
            "completion_window": "24h",
            "status": self.status if ended else "in_progress",
            "output_file_id": f"out-{name}" if ended and self.status != "failed" else None,
            "error_file_id": f"err-{name}" if failed else None,
            "created_at": int(batch["created"]),
            "request_counts": {"total": count, "completed": count - failed if ended else 0, "failed": failed},
            "metadata": batch["given"].get("metadata"),
        }

    def list_batches(self, _query: str, *_: Any) -> Any:
        data = [self._openai_batch(name) for name in reversed(self.batches)]
        ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
        return {"object": "list", "data": data, "has_more": False} | ends

    def one_batch(self, name: str, *_: Any) -> Any:
        self._looks[name] += 1
        return self._openai_batch(name)

    def file_content(self, kind: str, name: str, *_: Any) -> bytes:
        batch = self.batches[name]
        lines = []
        for (custom_id, prompt), body in zip(batch["asked"], batch["bodies"], strict=True):
            if self.fails(prompt) != (kind == "err"):
                continue
            error = {"code": "batch_expired", "message": "This request could not be executed before the window ended."}
            response = {"status_code": 200, "request_id": f"req-{custom_id}", "body": completion(body, prompt)}
            told = {"response": None if kind == "err" else self.changed(prompt, response)}
            told |= {"error": error if kind == "err" else None}
            lines.append({"id": f"batch_req_{custom_id}", "custom_id": custom_id} | told)
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def chat(self, content: bytes, _: str) -> Any:
        body = json.loads(content)
        self.singles.append(_prompt(body))
        return completion(body, _prompt(body))

    # ---- Anthropic's

    def create_message_batch(self, content: bytes, _: str) -> Any:
        asked = json.loads(content)
        for request in asked["requests"]:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", request["custom_id"])
        return self._message_batch(self._made("msgbatch", {}, asked["requests"]))

    def _message_batch(self, name: str) -> Any:
        batch, ended = self.batches[name], self._is_ended(name)
        failed = sum(self.fails(prompt) for _, prompt in batch["asked"])
        count = len(batch["asked"])
        counts = {"processing": count, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        if ended:
            counts |= {"processing": 0, "succeeded": count - failed, "expired": failed}
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch["created"]))
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "ended_at": created if ended else None,
            "created_at": created,
            "expires_at": created,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"/v1/messages/batches/{name}/results" if ended else None,
        }

    def list_message_batches(self, _query: str, *_: Any) -> Any:
        for name in self.batches:
            self._looks[name] += 1
        data = [self._message_batch(name) for name in reversed(self.batches)]
        ends = (data[0]["id"], data[-1]["id"]) if data else (None, None)
        return {"data": data, "has_more": False, "first_id": ends[0], "last_id": ends[1]}

    def one_message_batch(self, name: str, *_: Any) -> Any:
        self._looks[name] += 1
        return self._message_batch(name)

    def message_results(self, name: str, *_: Any) -> bytes:
        batch = self.batches[name]
        lines = []
        for (custom_id, prompt), body in zip(batch["asked"], batch["bodies"], strict=True):
            succeeded = {"type": "succeeded", "message": message(body, prompt)}
            told = {"type": "expired"} if self.fails(prompt) else self.changed(prompt, succeeded)
            lines.append({"custom_id": custom_id, "result": told})
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def messages(self, content: bytes, _: str) -> Any:
        body = json.loads(content)
        self.singles.append(_prompt(body))
        return message(body, _prompt(body))

    # ---- Mistral's

    def create_job(self, content: bytes, _: str) -> Any:
        asked = json.loads(content)
        (file,) = asked["input_files"]
        lines = [json.loads(line) for line in self.files[file].splitlines()]
        return self._job(self._made("job", asked, lines))

    def _job(self, name: str) -> Any:
        batch, ended = self.batches[name], self._is_ended(name)
        failed = sum(self.fails(prompt) for _, prompt in batch["asked"]) if ended else 0
        return {
            "id": name,
            "object": "batch",
            "input_files": batch["given"]["input_files"],
            "metadata": batch["given"]["metadata"],
            "endpoint": batch["given"]["endpoint"],
            "model": batch["given"]["model"],
            "output_file": f"out-{name}" if ended else None,
            "error_file": f"err-{name}" if failed else None,
            "errors": [],
            "status": "SUCCESS" if ended else "RUNNING",
            "created_at": int(batch["created"]),
            "total_requests": len(batch["asked"]),
            "completed_requests": len(batch["asked"]) if ended else 0,
            "succeeded_requests": len(batch["asked"]) - failed if ended else 0,
            "failed_requests": failed,
        }

    def list_jobs(self, _query: str, *_: Any) -> Any:
        return {"object": "list", "total": len(self.batches), "data": [self._job(name) for name in self.batches]}

    def one_job(self, name: str, *_: Any) -> Any:
        self._looks[name] += 1
        return self._job(name)

    # ---- Gemini's

    def create_generation(self, model: str, content: bytes, _: str) -> Any:
        asked = json.loads(content)["batch"]
        lines = asked["input_config"]["requests"]["requests"]
        return self._operation(self._made("batches/g", asked | {"model": model}, lines))

    def _operation(self, name: str) -> Any:
        batch, ended = self.batches[name], self._is_ended(name)
        count = len(batch["asked"])
        metadata = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": batch["given"]["model"],
            "displayName": batch["given"]["display_name"],
            "createTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch["created"])),
            "batchStats": {"requestCount": str(count), "successfulRequestCount": str(count if ended else 0)},
            "state": "BATCH_STATE_SUCCEEDED" if ended else "BATCH_STATE_RUNNING",
        }
        operation: dict[str, Any] = {"name": name, "metadata": metadata}
        if ended:
            inlined = []
            for custom_id, prompt in batch["asked"]:
                error = {"error": {"code": 4, "message": "Deadline exceeded"}}
                told = error if self.fails(prompt) else self.changed(prompt, {"response": generated(prompt)})
                inlined.append((told if isinstance(told, dict) else {}) | {"metadata": {"key": custom_id}})
            operation |= {"done": True, "response": {"inlinedResponses": {"inlinedResponses": inlined}}}
        return operation

    def generate(self, content: bytes, _: str) -> Any:
        prompt = _prompt(json.loads(content))
        self.singles.append(prompt)
        return generated(prompt)

    def list_operations(self, _query: str, *_: Any) -> Any:
        return {"operations": [self._operation(name) for name in self.batches]}

    def one_operation(self, name: str, *_: Any) -> Any:
        self._looks[name] += 1
        return self._operation(name)


ROUTES = (
    (r"POST /(?:openai/)?(?:v1/)?files", "upload"),
    (r"POST /(?:openai/)?(?:v1/)?batches", "create_batch"),
    (r"GET /(?:openai/)?(?:v1/)?batches(\?limit.*)?", "list_batches"),
    (r"GET /(?:openai/)?(?:v1/)?batches/(batch_\d+)", "one_batch"),
    (r"GET /(?:openai/)?(?:v1/)?files/(out|err)-(\w+)/content", "file_content"),
    (r"POST /(?:openai/)?(?:v1/)?chat/completions", "chat"),
    (r"POST /v1/messages/batches", "create_message_batch"),
    (r"GET /v1/messages/batches(\?.*)?", "list_message_batches"),
    (r"GET /v1/messages/batches/(msgbatch_\d+)", "one_message_batch"),
    (r"GET /v1/messages/batches/(msgbatch_\d+)/results", "message_results"),
    (r"POST /v1/messages", "messages"),
    (r"POST /(?:v1/)?batch/jobs", "create_job"),
    (r"GET /(?:v1/)?batch/jobs(\?.*)?", "list_jobs"),
    (r"GET /(?:v1/)?batch/jobs/(job_\d+)", "one_job"),
    (r"POST (/models/[^:]+):batchGenerateContent", "create_generation"),
    (r"POST /models/[^:]+:(?:stream)?[gG]enerateContent(?:\?.*)?", "generate"),
    (r"GET /batches(\?pageSize.*)?", "list_operations"),
    (r"GET /(batches/g_\d+)", "one_operation"),
)


def _custom_id(line: dict[str, Any]) -> str:
    return str(line.get("custom_id") or line["metadata"]["key"])


def _prompt(body: dict[str, Any]) -> str:
    if "contents" in body:
        return str(body["contents"][-1]["parts"][-1]["text"])
    content = (body.get("messages") or body["input"])[-1]["content"]
    return content if isinstance(content, str) else str(content[-1]["text"])


def completion(body: dict[str, Any], prompt: str) -> dict[str, Any]:
    """A chat completion, or a response where that was asked for."""
    if "input" in body:
        said = {"type": "message", "content": [{"type": "output_text", "text": f"answer to {prompt}"}]}
        return {"status": "completed", "output": [said], "usage": {"input_tokens": 1000, "output_tokens": 100}}
    message = {"role": "assistant", "content": f"answer to {prompt}", "refusal": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body.get("model", "m"),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
    }


def message(body: dict[str, Any], prompt: str) -> dict[str, Any]:
    """A message of Anthropic's format."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": f"answer to {prompt}"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1000, "output_tokens": 100},
    }


def generated(prompt: str) -> dict[str, Any]:
    """A response of Gemini's format."""
    content = {"role": "model", "parts": [{"text": f"answer to {prompt}"}]}
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
