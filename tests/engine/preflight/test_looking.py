"""Looking at archives, recordings and imported files runs nothing, whatever they name."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from outcomes.test_read_scylla import write_run
from outcomes.test_recordings import CODE_RESULTS, OTHER_RESULTS
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


def poisoned_text(content: Any) -> str:
    """A file's text that names code, where its format has room for that."""
    if not isinstance(content, str):
        return json.dumps(poisoned(content))
    lines = content.splitlines()
    if not lines[0].startswith("{"):
        return content
    return "".join(json.dumps({**json.loads(line), "hostile": HOSTILE}) + "\n" for line in lines)


def files_by_reader(place: Path) -> dict[str, list[Path]]:
    """Files of other tools by the names of their readers, poisoned where they are JSON."""
    made: dict[str, list[Path]] = {}

    def add(reader: str, name: str, content: bytes) -> None:
        path = place / reader / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        made.setdefault(reader, []).append(path)

    for name, content, _ in (*CODE_RESULTS, *OTHER_RESULTS):
        reader, _, path = name.partition("/")
        add(reader, path, poisoned_text(content).encode())
    record = min((TOOLS / "every-eval-ever").glob("*.json"))
    for reader, name in (
        ("inspect", "better.json"),
        ("promptfoo", "results.json"),
        ("deepeval", "test_run.json"),
        ("evalplus", "model_eval_results.json"),
        ("every-eval-ever", record.name),
    ):
        add(reader, name, poisoned_text(json.loads((TOOLS / reader / name).read_text())).encode())
    instances = record.with_name(f"{record.stem}_samples.jsonl")
    (place / "every-eval-ever" / instances.name).write_text(poisoned_text(instances.read_text()))
    (samples,) = (TOOLS / "lm-eval" / "better").glob("samples_capitals_*")
    add("lm-eval", samples.name, poisoned_text(samples.read_text()).encode())
    add("promptfoo", "promptfoo.db", gzip.decompress((TOOLS / "promptfoo" / "promptfoo.db.gz").read_bytes()))
    add("inspect", "better.eval", (TOOLS / "inspect" / "better.eval").read_bytes())
    for trial in (TOOLS / "harbor").rglob("*.json"):
        content = poisoned_text(json.loads(trial.read_text()))
        add("harbor", str(trial.relative_to(TOOLS / "harbor")), content.encode())
    made["harbor"] = [place / "harbor"]
    hostile_suite = f'<testsuites><testsuite><testcase classname="hostile" name="{CODE}"/></testsuite></testsuites>'
    add("junit", "hostile.xml", hostile_suite.encode())
    write_run(place / "scylla" / "T0" / "00" / "run_01", 0.5)
    experiment = poisoned({"experiment_id": "task", "models": ["command:./hostile.sh"], "tiers_to_run": ["T0"], "n": 1})
    (place / "scylla" / "config").mkdir()
    (place / "scylla" / "config" / "experiment.json").write_text(json.dumps(experiment))
    made["scylla"] = [place / "scylla"]
    return made


def test_looking_at_archives_recordings_and_imported_files_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "hostile.py").write_text(f"{CODE}\ndef run(*a):\n    {CODE}\n    return True\n")
    (tmp_path / "hostile.sh").write_text(f"#!/bin/sh\ntouch {MARK}\n")
    (tmp_path / "hostile.sh").chmod(0o755)
    (tmp_path / "steelyard.toml").write_text('models = "command:./hostile.sh"\njudges = "python:hostile.py:run"\n')
    reply = {"kind": "reply", "key": "0" * 32, "at": "", "case": "a", "model": "python:hostile.py:run", "number": 1}
    recording = {**reply, "answer": {"text": CODE, "finish": "stop"}}
    (tmp_path / "recording.jsonl").write_text(json.dumps(recording) + "\n")
    rows = f'"=cmd|{CODE}",python:hostile.py:run,1\nb,command:./hostile.sh,0\n'
    (tmp_path / "rows.csv").write_text(f"task,model,passed\n{rows}")
    (tmp_path / "fixes.csv").write_text(
        "problem_id,llm_name,sample_id,is_fixed\nhostile.py:run,command:./hostile.sh,1,True\n"
    )
    by_reader = files_by_reader(tmp_path / "files")
    readers = {point.name for point in entry_points(group="steelyard.outcomes")}
    assert readers - by_reader.keys() == {"table", "fixes"}, "a reader without a hostile file"
    imported: list[list[str]] = []
    looks: list[list[str]] = [["show", "recording.jsonl"], ["report", "recording.jsonl", "-o", "x.json"]]
    for number, path in enumerate(path for paths in by_reader.values() for path in paths):
        run = f"steelyard-runs/{number}"
        imported.append(["import", str(path), "--output", run])
        looks.append(["show", run])
    for number, paths in enumerate(by_reader.values()):
        first = str(paths[0])
        looks.append(["compare", "--baseline", first, "--current", first] if number % 2 else ["passk", first])
    for number in range(0, len(imported), 8):
        looks += [["report", f"steelyard-runs/{number}", "-o", f"{number}.html", "-o", f"{number}.json"]]
    looks += [["passk", "rows.csv", "--case", "task"], ["passk", "fixes.csv"], ["passk", "0.json"], ["show", "0.json"]]
    looks += [["list"], ["query", "SELECT * FROM attempts"], ["view", "--export", "pages"]]
    told = audited(tmp_path, [*imported, *looks])
    for words, (_, said, seen) in zip([*imported, *looks], told, strict=True):
        assert seen == [], (words, said)
    assert not (tmp_path / MARK).exists()
    # what was refused would prove nothing
    refused = [(words, said) for words, (code, said, _) in zip(imported, told, strict=False) if code not in (0, 3)]
    assert refused == []
    read = Counter(words[0] for words, (code, *_) in zip(looks, told[len(imported) :], strict=True) if code in (0, 3))
    assert read.keys() == {"list", "query", "show", "report", "compare", "passk", "view"}
    assert read["show"] >= len(imported)
    assert read["compare"] + read["passk"] > len(by_reader) * 3 // 4


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
