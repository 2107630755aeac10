"""The files in messages are stored once per run, and a run goes on without the originals."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import steelyard
from steelyard import Means, Settings
from steelyard.records import Attempt
from steelyard.store.journal import Journal, StoredRun
from support.facts import facts
from support.fault_server import FaultServer, healthy, refuses

PIXEL = b"not really a picture"
SET = """
[eval_set]
id = "s"
"""
CASE = """
[[cases]]
id = "ID"
target = "answer"
[[cases.prompt]]
role = "user"
content = [{type = "text", text = "What is this, ID?"}, {type = "image", path = "cat.png"}]
"""


def test_a_file_is_stored_once_and_sent_from_there_when_the_original_is_gone(
    server: FaultServer, tmp_path: Path
) -> None:
    (tmp_path / "cat.png").write_bytes(PIXEL)
    (tmp_path / "set.toml").write_text(SET + CASE.replace("ID", "a") + CASE.replace("ID", "b"), "utf-8")
    means = Means(settings=Settings(max_retries=0, retry_delay_ms=1), parallelism=1)
    folder = tmp_path / "run"
    server.script = lambda _: refuses(500)
    steelyard.run(tmp_path / "set.toml", models="openai/m", base_url=server.url, output=folder, means=means)
    digest = hashlib.blake2b(PIXEL, digest_size=16).hexdigest()
    assert [path.name for path in (folder / "files").iterdir()] == [digest]
    assert (folder / "files" / digest).read_bytes() == PIXEL
    assert "kept" not in (folder / "cases.jsonl").read_text("utf-8")
    with Journal(folder) as journal:
        stored, asked = StoredRun(folder).cases, journal.cases
    assert [Attempt(case=case, model="m").key for case in stored] == [
        Attempt(case=case, model="m").key for case in asked
    ]

    (tmp_path / "cat.png").unlink()
    (tmp_path / "set.toml").unlink()
    server.script = healthy
    server.requests.clear()
    steelyard.resume(folder, means=means)
    assert len(facts(folder).replies) == 2
    sent = json.dumps(server.requests[0].body)
    assert f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}" in sent


def test_a_copy_with_other_bytes_is_not_sent(server: FaultServer, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(PIXEL)
    (tmp_path / "set.toml").write_text(SET + CASE.replace("ID", "a"), "utf-8")
    means = Means(settings=Settings(max_retries=0, retry_delay_ms=1), parallelism=1)
    folder = tmp_path / "run"
    server.script = lambda _: refuses(500)
    steelyard.run(tmp_path / "set.toml", models="openai/m", base_url=server.url, output=folder, means=means)
    (kept,) = (folder / "files").iterdir()
    kept.write_bytes(b"something else")
    asked = len(server.requests)
    steelyard.resume(folder, means=means)
    assert len(server.requests) == asked
    assert "is not the file that it was" in facts(folder).failures[-1].message
