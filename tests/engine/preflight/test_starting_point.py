"""What a first run can ask: nothing but loopback is looked at, and no key is sent."""

from __future__ import annotations

import json
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from steelyard.engine.preflight.starter_files import StartingPoint, starting_point
from steelyard.evalsets.starter import starter_settings
from support.command_line import steelyard


@contextmanager
def local_server(body: bytes, status: int = 200) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """A server on loopback, and the headers of all that it was asked."""
    heard: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append({"path": self.path, **self.headers})
            self.send_response(status)
            self.send_header("Location", "http://192.0.2.1/")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_port, heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def offered(*names: str) -> bytes:
    return json.dumps({"data": [{"id": name} for name in names]}).encode()


def test_a_key_in_the_environment_comes_first() -> None:
    with local_server(offered("m")) as (port, heard):
        found = starting_point({"ANTHROPIC_API_KEY": "k"}, {port: "local"})
    assert (found and found.model, heard) == ("anthropic/claude-sonnet-4-5", [])


def test_a_server_on_this_machine_is_found_and_gets_no_key() -> None:
    with local_server(offered("a b", "qwen3:8b")) as (port, heard):
        found = starting_point({"OTHER_KEY": "sk-secret"}, {port: "local"})
    url = f"http://127.0.0.1:{port}/v1"
    assert found == StartingPoint("local/qwen3:8b", f"a server answers on port {port}", url, is_local=True)
    settings = tomllib.loads(starter_settings(found.model, found.base_url))
    assert (settings["models"], settings["providers"]["local"]["base_url"]) == ("local/qwen3:8b", url)
    assert [each["path"] for each in heard] == ["/v1/models"]
    assert "Authorization" not in heard[0]
    assert "secret" not in str(heard)


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"<html>", 200), (offered('x"\nevil = 1'), 200), (offered("m"), 302), (offered(), 200), (b"[" * 100_000, 200)],
)
def test_a_server_that_answers_otherwise_is_none_of_ours(body: bytes, status: int) -> None:
    with local_server(body, status) as (port, heard):
        assert starting_point({}, {port: "local"}) is None
    assert len(heard) == 1


def test_without_key_and_server_the_first_run_has_recorded_replies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(starting_point, "__defaults__", ({},))
    ran = steelyard(tmp_path, "init")
    assert ran.returncode == 0, ran.stderr
    assert "asks nobody and costs nothing" in ran.stdout
    commands = [line.split("steelyard ")[1].split() for line in ran.stdout.splitlines() if " steelyard " in line]
    validated, command, asked = commands
    assert (validated, command) == (["validate", "evals/python-basics.toml"], ["run", "evals/python-basics.toml"])
    done = steelyard(tmp_path, *command, "--limit", "1", "--samples", "1")
    assert done.returncode == 0, done.stderr
    # the starter has no recording: without a model to ask, the error says what to name
    unasked = steelyard(tmp_path, *asked[:2])
    assert unasked.returncode == 2
    assert "name a model that can be asked, such as --models openai/gpt-5-mini" in unasked.stderr
    without_key = steelyard(tmp_path, *asked)
    assert (without_key.returncode, "set OPENAI_API_KEY" in without_key.stderr) == (2, True)
    assert (tmp_path / "evals" / "starter.toml").read_text().startswith("#:schema ../eval-set.schema.json\n")
    json.loads((tmp_path / "eval-set.schema.json").read_text())
