"""Looking at archives, recordings and imported files runs nothing, whatever they name."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.audited import MARK

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples"
TOOLS = EXAMPLES / "other-tools"
CODE = f"open('{MARK}', 'w').close()"
HOSTILE = {
    "python": "hostile.py:run",
    "command": "command:./hostile.sh",
    "model_args": "python:hostile.py:run",
    "custom_check": "hostile.py:run",
    "verify": {"python": "hostile.py:run"},
    "assert": [{"type": "python", "value": CODE}, {"type": "javascript", "value": CODE}],
    "py/object": "hostile.run",
    "!!python/object/apply:os.system": [f"touch {MARK}"],
}


def poisoned(value: Any) -> Any:
    """A value whose every table also names code, in the ways that tools do."""
    if isinstance(value, list):
        return [poisoned(one) for one in value]
    if isinstance(value, dict):
        # a table of texts alone, such as one of versions, has no room for others
        is_open = len({type(one) for one in value.values()}) > 1
        return {name: poisoned(one) for name, one in value.items()} | ({"hostile": HOSTILE} if is_open else {})
    return value


def files(place: Path) -> list[Path]:
    """Files of other tools, poisoned where they are JSON; and archives, a database, tables and a recording."""
    made = []
    for source in (
        TOOLS / "inspect" / "better.json",
        TOOLS / "promptfoo" / "results.json",
        TOOLS / "deepeval" / "test_run.json",
        TOOLS / "evalplus" / "model_eval_results.json",
        TOOLS / "swe-bench" / "org__new.run-1.json",
    ):
        path = place / source.parent.name / source.name
        path.parent.mkdir()
        path.write_text(json.dumps(poisoned(json.loads(source.read_text()))))
        made.append(path)
    (samples,) = (TOOLS / "lm-eval" / "better").glob("samples_capitals_*")
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    (place / samples.name).write_text("".join(json.dumps({**line, "hostile": HOSTILE}) + "\n" for line in lines))
    (place / "promptfoo.db").write_bytes(gzip.decompress((TOOLS / "promptfoo" / "promptfoo.db.gz").read_bytes()))
    (place / "suite.xml").write_text(
        f'<testsuites><testsuite><testcase classname="hostile" name="{CODE}"/></testsuite></testsuites>'
    )
    (place / "rows.csv").write_text(
        f'task,model,passed\n"=cmd|{CODE}",python:hostile.py:run,1\nb,command:./hostile.sh,0\n'
    )
    shutil.copy(TOOLS / "inspect" / "better.eval", place)
    names = (samples.name, "promptfoo.db", "suite.xml", "better.eval")
    return [*made, *(place / name for name in names)]


def test_looking_at_archives_recordings_and_imported_files_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "hostile.py").write_text(f"{CODE}\ndef run(*a):\n    {CODE}\n    return True\n")
    (tmp_path / "hostile.sh").write_text(f"#!/bin/sh\ntouch {MARK}\n")
    (tmp_path / "hostile.sh").chmod(0o755)
    (tmp_path / "steelyard.toml").write_text('models = "command:./hostile.sh"\njudges = "python:hostile.py:run"\n')
    reply = {"kind": "reply", "key": "0" * 32, "at": "", "case": "a", "model": "python:hostile.py:run", "number": 1}
    recording = {**reply, "answer": {"text": CODE, "finish": "stop"}}
    (tmp_path / "recording.jsonl").write_text(json.dumps(recording) + "\n")
    imported: list[list[str]] = []
    looks: list[list[str]] = [["show", "recording.jsonl"], ["report", "recording.jsonl", "-o", "x.json"]]
    for number, path in enumerate(files(tmp_path)):
        run = f"steelyard-runs/{number}"
        imported.append(["import", str(path), "--output", run])
        looks += [["compare", "--baseline", str(path), "--current", str(path)], ["passk", str(path)]]
        looks += [["show", run], ["report", run, "-o", f"{number}.html", "-o", f"{number}.json"]]
    looks += [["passk", "rows.csv", "--case", "task"], ["list"], ["query", "SELECT * FROM attempts"]]
    told = audited(tmp_path, [*imported, *looks])
    for words, (_, said, seen) in zip([*imported, *looks], told, strict=True):
        assert seen == [], (words, said)
    assert not (tmp_path / MARK).exists()
    # what was refused would prove nothing
    assert [words for words, (code, *_) in zip(imported, told, strict=False) if code not in (0, 3)] == []
    ends = {words[0]: code for words, (code, *_) in zip(looks, told[len(imported) :], strict=True)}
    assert {ends[name] for name in ("list", "query", "show", "report", "compare", "passk")} <= {0, 3}


def audited(place: Path, commands: list[list[str]]) -> list[tuple[int, str, list[str]]]:
    """How each command ended, what it said, and what it ran."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("STEELYARD")},
        "PYTHONPATH": str(Path(__file__).parent.parent.parent),
        "XDG_STATE_HOME": str(place / "state"),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "support.audited", json.dumps(commands)],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: list[tuple[int, str, list[str]]] = json.loads(ended.stdout)
    return found
