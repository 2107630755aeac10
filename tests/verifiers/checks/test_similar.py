"""The check `similar` and its embeddings endpoint."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from steelyard.errors import VerifierError
from steelyard.protocols import ProviderSettings
from steelyard.providers.embeddings import SettingsEmbedder
from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.settings import Settings
from steelyard.verifiers.checks.verifier import ChecksVerifier

NOWHERE = ZygoteSandbox(ISOLATION_LEVELS[-1])
VECTORS = {"Paris": [1.0, 0.0], "It is Paris": [0.9, 0.1], "Rome": [0.0, 1.0]}


class _Embeddings(BaseHTTPRequestHandler):
    asked: list[dict[str, object]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append({"path": self.path, "key": self.headers["authorization"], **body})
        data = [{"index": i, "embedding": VECTORS.get(text, [0.0, 0.0])} for i, text in enumerate(body["input"])]
        sent = json.dumps({"data": data[::-1]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def settings() -> Iterator[Settings]:
    _Embeddings.asked.clear()
    server = HTTPServer(("127.0.0.1", 0), _Embeddings)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    yield Settings(providers={"mine": ProviderSettings(type="openai", base_url=url, api_key="secret-key")})
    server.shutdown()
    server.server_close()


CASE = Case(
    id="c",
    prompt="?",
    verify=Verify(
        kind="checks", settings={"checks": [{"similar": ["Paris", "Lyon"], "at_least": 0.9, "model": "mine/small"}]}
    ),
)


def test_the_nearest_text_decides_and_a_text_is_embedded_once(settings: Settings) -> None:
    async def judged() -> list[Finding]:
        verifier = ChecksVerifier(NOWHERE)
        verifier.use_embedder(SettingsEmbedder(settings, {}))
        VECTORS["Lyon"] = [0.0, -1.0]
        try:
            return [await verifier.verify(CASE, Answer(text=text)) for text in ("It is Paris", "Rome", " ")]
        finally:
            await verifier.close()

    right, wrong, empty = asyncio.run(judged())
    assert right.passed
    assert right.score == pytest.approx(0.9939, abs=1e-4)
    assert not wrong.passed
    assert wrong.reason == 'similar to "Paris": a similarity of 0.000, where 0.9 is asked for'
    assert not empty.passed
    assert [request["input"] for request in _Embeddings.asked] == [["It is Paris", "Paris", "Lyon"], ["Rome"]]
    assert {(one["path"], one["model"], one["key"]) for one in _Embeddings.asked} == {
        ("/v1/embeddings", "small", "Bearer secret-key")
    }


def test_vectors_that_cannot_be_compared_are_a_failure_of_ours(settings: Settings) -> None:
    async def judged() -> Finding:
        verifier = ChecksVerifier(NOWHERE)
        verifier.use_embedder(SettingsEmbedder(settings, {}))
        try:
            return await verifier.verify(CASE, Answer(text="unheard of"))
        finally:
            await verifier.close()

    with pytest.raises(VerifierError, match="cannot be compared"):
        asyncio.run(judged())


@pytest.mark.parametrize("model", ["openai/text-embedding-3-small", "anthropic/claude-x", "local/none", "nobody/x"])
def test_without_embeddings_the_case_is_refused_before_anything_is_paid_for(model: str) -> None:
    checks = [{"similar": "Paris", "model": model}]
    case = Case(id="c", prompt="?", verify=Verify(kind="checks", settings={"checks": checks}))
    verifier = ChecksVerifier(NOWHERE)
    verifier.use_embedder(SettingsEmbedder(Settings(), {"ANTHROPIC_API_KEY": "k" * 20}))
    with pytest.raises(VerifierError, match="similar"):
        verifier.check(case)
