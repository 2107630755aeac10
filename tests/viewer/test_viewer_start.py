"""What the viewer loads for its start and for its first page, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

KEPT_RUNS = Path(__file__).parents[1] / "data" / "run-0.1.0" / "runs"

ASK = """
import asyncio, json, sys
from pathlib import Path
from steelyard.viewer.app import application, run_list

def parts():
    names = {".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("steelyard.")}
    return sorted(names | ({"jinja2"} & set(sys.modules)))

async def answer(path):
    sent = []
    async def send(message):
        sent.append(message)
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}
    headers = [(b"host", b"127.0.0.1:1"), (b"x-api-key", b"k")]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers}
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()

app = application(lambda: run_list.RunCatalog(Path(sys.argv[1])), port=1, key="k")
for path in ("/healthz", "/", "/runs/whole", "/api/v1/runs"):
    status, text = asyncio.run(answer(path))
    print(json.dumps([path, status, "whole" in text, parts()]))
"""


def test_the_viewer_starts_with_its_server_and_each_page_loads_what_it_needs() -> None:
    ended = subprocess.run([sys.executable, "-c", ASK, str(KEPT_RUNS)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    told = {
        path: (status, shows, set(parts)) for path, status, shows, parts in map(json.loads, ended.stdout.splitlines())
    }
    status, _, parts = told["/healthz"]
    assert (status, parts) == (200, {"steelyard.errors", "steelyard.text", "steelyard.viewer"})
    status, shows_run, parts = told["/"]
    assert (status, shows_run) == (200, True)
    # comparing, tiers and what reads eval sets are for other pages
    assert parts.isdisjoint({"steelyard.comparison", "steelyard.engine", "steelyard.evalsets", "steelyard.tiers"})
    assert told["/runs/whole"][:2] == told["/api/v1/runs"][:2] == (200, True)
