"""Files of ours say their format, and what a later version added to them is skipped and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard import Case, Verify, merge, run
from steelyard.engine.gate.sides import bless
from steelyard.errors import InputError
from steelyard.records import Reply, RunInfo
from steelyard.store.journal import RUN_FORMAT, Journal, StoredRun, create_run
from steelyard.store.side_files import gate_looks
from support.command_line import steelyard

INFO = RunInfo(id="a", started_at="2026-01-01T00:00:00.000Z")
NEWER = f"(format {RUN_FORMAT + 1}; this one reads up to {RUN_FORMAT})"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text("def paris(prompt): return 'Paris'\n")
    (tmp_path / "cases.jsonl").write_text('{"id": "france", "question": "Capital of France?", "target": "Paris"}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def changed(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_run_json_baselines_and_reports_carry_a_format_number(place: Path) -> None:
    run("cases.jsonl", models="python:model.py:paris", output="done")
    steelyard(place, "bless", "done", "--as", "main")
    steelyard(place, "report", "done", "-o", "report.json")
    for file in ("done/run.json", "steelyard-baselines/main.json", "report.json"):
        assert json.loads((place / file).read_text())["format"] == 1, file


@pytest.mark.parametrize(
    "command",
    [
        "compare --baseline done --current done",
        "gate --baseline done --current done",
        "plan cases.jsonl --baseline done",
        "passk done",
        "tiers done",
        "report done",
        "doctor",
    ],
)
def test_what_a_command_prints_as_json_begins_with_its_format_number(place: Path, command: str) -> None:
    run("cases.jsonl", models="python:model.py:paris", output="done")
    if command == "report done":
        assert steelyard(place, "report", "done", "-o", "report.json").returncode == 0
        printed = (place / "report.json").read_text()
    else:
        printed = steelyard(place, *command.split(), "--format", "json").stdout
    assert printed.startswith('{\n  "format": 1,\n'), printed


def test_fields_of_a_later_version_are_skipped_and_kept_when_the_run_is_resumed(place: Path) -> None:
    folder = run("cases.jsonl", models="python:model.py:paris", output="done").folder
    suites = json.loads((folder / "run.json").read_text())["suites"]
    changed(folder / "run.json", invented=[1, {"a": 2}], suites=suites | {"mood": "bright"})
    resumed = steelyard(place, "resume", "done", "--samples", "2")
    assert resumed.returncode == 0, resumed.stderr
    written = json.loads((folder / "run.json").read_text())
    assert written["invented"] == [1, {"a": 2}]
    assert written["suites"]["mood"] == "bright"
    assert written["samples"] == 2


def test_fields_of_a_later_version_in_cases_are_kept_when_verify_rewrites_them(place: Path) -> None:
    (place / "more.jsonl").write_text(
        '{"id": "france", "question": "Capital of France?", "target": "Paris"}\n'
        '{"id": "italy", "question": "Capital of Italy?", "target": "Rome"}\n'
    )
    folder = run("more.jsonl", models="python:model.py:paris", output="done").folder
    first, second = (folder / "cases.jsonl").read_text().splitlines()
    newer = json.loads(first) | {"invented": {"a": 1}}
    newer["verify"] = newer.get("verify", {}) | {"mood": "bright"}
    newer["expectations"] = {"haste": 3}
    (folder / "cases.jsonl").write_text(f"{json.dumps(newer)}\n{second}\n")
    (place / "changed.jsonl").write_text((place / "more.jsonl").read_text().replace("Rome", "Roma"))
    ended = steelyard(place, "verify", "done", "--eval-set", "changed.jsonl")
    assert ended.returncode == 0, ended.stderr
    kept, changed_case = (json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines())
    assert kept == newer
    assert changed_case == json.loads(second) | {"target": "Roma"}
    assert [case.target for case in StoredRun(folder).cases] == ["Paris", "Roma"]


def test_fields_of_a_later_version_that_all_shards_share_are_kept_by_a_merge(place: Path) -> None:
    with (place / "cases.jsonl").open("a") as cases:
        cases.write('{"id": "italy", "question": "Capital of Italy?", "target": "Rome"}\n')
    for number in (1, 2):
        folder = run("cases.jsonl", models="python:model.py:paris", output=f"{number}", shard=(number, 2)).folder
        changed(folder / "run.json", invented={"a": 1}, own=number)
    written = json.loads((merge(["1", "2"], output="both").folder / "run.json").read_text())
    assert (written["invented"], "own" in written, written.get("shard")) == ({"a": 1}, False, None)


def test_a_baseline_that_is_replaced_keeps_what_a_later_version_added_and_a_newer_one_is_not_replaced(
    place: Path,
) -> None:
    run("cases.jsonl", models="python:model.py:paris", output="done")
    baseline = bless(["done"], "main").path
    changed(baseline, invented=1, cases="off")
    assert "cases" not in json.loads(bless(["done"], "main").path.read_text())
    assert json.loads(baseline.read_text())["invented"] == 1
    changed(baseline, format=RUN_FORMAT + 1)
    with pytest.raises(InputError, match="written by a newer version of steelyard"):
        bless(["done"], "main")
    assert json.loads(baseline.read_text())["format"] == RUN_FORMAT + 1
    for damaged in (b"", b"[]", b"\xff", b'{"format": "x"}'):
        baseline.write_bytes(damaged)
        assert json.loads(bless(["done"], "main").path.read_text())["format"] == RUN_FORMAT


def test_a_damaged_line_of_cases_has_nothing_to_keep(tmp_path: Path) -> None:
    case = Case(id="a", prompt="?", verify=Verify(kind="response"))
    create_run(tmp_path / "run", INFO, [case]).close()
    (tmp_path / "run" / "cases.jsonl").write_bytes(b'{"id": "a", "prom\n{"id": 3, "new": 1}\n\xff\n')
    with Journal(tmp_path / "run") as journal:
        journal.ask([case])
    assert StoredRun(tmp_path / "run").cases == (case,)


def test_fields_of_a_later_version_in_journals_cases_looks_and_baselines_are_skipped(place: Path) -> None:
    folder = run("cases.jsonl", models="python:model.py:paris", output="done").folder
    steelyard(place, "bless", "done", "--as", "main")
    steelyard(place, "gate", "--baseline", "main", "--current", "done")
    for name in ("attempts.jsonl", "cases.jsonl", "looks.jsonl"):
        lines = [json.loads(line) | {"invented": {"a": 1}} for line in (folder / name).read_text().splitlines()]
        for line in lines:
            if line.get("kind") == "reply":
                line["answer"]["thoughts"] = "none"
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    changed(place / "steelyard-baselines" / "main.json", invented=1)
    stored = StoredRun(folder)
    assert [fact.case for fact in stored.facts()] == ["france", "france"]
    assert not stored.damaged
    assert [case.id for case in stored.cases] == ["france"]
    assert len(gate_looks(folder)) == 1
    assert steelyard(place, "gate", "--baseline", "main", "--current", "done").returncode == 0


@pytest.mark.parametrize("file", ["done/run.json", "steelyard-baselines/main.json", "report.json"])
def test_a_newer_format_is_named_as_such(place: Path, file: str) -> None:
    run("cases.jsonl", models="python:model.py:paris", output="done")
    steelyard(place, "bless", "done", "--as", "main")
    steelyard(place, "report", "done", "-o", "report.json")
    changed(place / file, format=RUN_FORMAT + 1)
    baseline = {"done/run.json": "report.json", "steelyard-baselines/main.json": "main"}.get(file, file)
    ended = steelyard(place, "compare", "--baseline", baseline, "--current", "done")
    assert ended.returncode == 2
    assert f"{file}: written by a newer version of steelyard {NEWER}" in ended.stderr


def test_a_file_without_a_number_is_of_before_there_were_numbers(tmp_path: Path) -> None:
    create_run(tmp_path / "run", INFO, [Case(id="a", prompt="?", verify=Verify(kind="response"))]).close()
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    del described["format"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(described))
    assert StoredRun(tmp_path / "run").info == INFO
    with Journal(tmp_path / "run") as journal:
        journal.describe(INFO)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["format"] == RUN_FORMAT


def test_what_is_wrong_for_another_reason_is_still_refused(tmp_path: Path) -> None:
    create_run(tmp_path / "run", INFO, []).close()
    changed(tmp_path / "run" / "run.json", invented=1, samples="many")
    with pytest.raises(InputError, match="not the description of a run"):
        StoredRun(tmp_path / "run").info  # noqa: B018  it is read here
    (tmp_path / "run" / "attempts.jsonl").write_text('{"kind": "dream", "key": "a"}\n')
    stored = StoredRun(tmp_path / "run")
    assert not [fact for fact in stored.facts() if isinstance(fact, Reply)]
    assert len(stored.damaged) == 1
