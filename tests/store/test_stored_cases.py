"""Cases that stay in a file are the same cases as those in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from steelyard import evalsets
from steelyard.engine import run as engine
from steelyard.engine.options import RunOptions
from steelyard.engine.plan import select_cases
from steelyard.engine.resume import resume
from steelyard.errors import InputError, StoreError
from steelyard.records import Case
from steelyard.settings import Settings
from steelyard.store import stored_cases
from steelyard.store.journal import StoredRun
from steelyard.store.stored_cases import (
    CaseCollector,
    StoredCases,
    cases_by_id,
    changed_cases,
    chosen_cases,
    collected_cases,
)

CASES = tuple(Case(id=f"c{number}", prompt=f"Say {number}. " + "x" * 40, target=str(number)) for number in range(50))
MANY = tuple(Case(id=f"c{number}", prompt="Say it.", tags=("even",) * (number % 2 == 0)) for number in range(20_000))
"""They have 1 MB of text, and take ten times as much memory."""
MODEL = """
def count(prompt): return prompt.split()[1]
"""


def in_a_file(cases: Iterable[Case]) -> StoredCases:
    """Cases in a file, however few they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_cases, "MAX_CASE_BYTES_IN_MEMORY", 0)
        spilled = collected_cases(cases)
    assert isinstance(spilled, StoredCases)
    return spilled


def test_spilled_cases_are_a_sequence_of_the_same_cases() -> None:
    spilled = in_a_file(iter(CASES))
    assert tuple(spilled) == CASES
    assert (len(spilled), spilled[7], spilled[-1]) == (50, CASES[7], CASES[-1])
    assert tuple(spilled[3::8]) == CASES[3::8]
    assert tuple(spilled[3::8][1:]) == CASES[3::8][1:]
    with pytest.raises(IndexError):
        spilled[50]
    assert list(cases_by_id(spilled).items()) == list(cases_by_id(CASES).items())
    assert "c7" in cases_by_id(spilled)
    assert "d7" not in cases_by_id(spilled)


def test_only_the_cases_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_cases, "KEPT_CASE_BYTES", 300)
    spilled = in_a_file(CASES)
    first = spilled[0]
    assert spilled[0] is first, "what is known of a case is computed once"
    assert [case.id for case in map(spilled.__getitem__, range(50))] == [case.id for case in CASES]
    assert spilled[49] is spilled[49]
    assert spilled[0] is not first


def test_few_cases_are_held_and_many_stay_in_a_file_however_short_they_are() -> None:
    few = collected_cases(CASES)
    assert few == CASES
    assert few[0] is CASES[0]
    many = collected_cases(MANY)
    assert isinstance(many, StoredCases)
    assert tuple(many) == MANY


def open_file_count() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_a_collector_gives_its_file_back_when_nobody_wants_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_cases, "MAX_CASE_BYTES_IN_MEMORY", 0)
    before = open_file_count()
    collector = CaseCollector()
    collector.append(CASES[0])
    assert open_file_count() == before + 1
    del collector
    assert open_file_count() == before


def test_some_of_the_cases_stay_in_the_file() -> None:
    chosen = chosen_cases(in_a_file(CASES), lambda case: case.id.endswith("7"))
    assert isinstance(chosen, StoredCases)
    assert [case.id for case in chosen] == ["c7", "c17", "c27", "c37", "c47"]
    assert [case.id for case in chosen[1::2]] == ["c17", "c37"]
    assert chosen_cases(CASES, lambda case: case.id == "c7") == (CASES[7],)


def test_many_cases_of_an_eval_set_stay_in_a_file_until_they_are_asked(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(
        "".join(json.dumps({"id": case.id, "prompt": "Say it.", "tags": case.tags}) + "\n" for case in MANY)
    )
    loaded = evalsets.load([path]).cases
    assert isinstance(loaded, StoredCases)
    assert [case.id for case in loaded] == [case.id for case in MANY]
    selected = select_cases(loaded, tags="even", exclude=["*00"], limit=7000)
    assert isinstance(selected, StoredCases)
    assert len(selected) == 7000
    assert selected[50].id == "c102"


def test_a_change_is_made_to_every_case() -> None:
    def louder(case: Case) -> Case:
        return msgspec.structs.replace(case, prompt=case.prompt.upper() if isinstance(case.prompt, str) else "")

    changed = changed_cases(in_a_file(CASES), louder)
    assert isinstance(changed, StoredCases)
    assert tuple(changed) == changed_cases(CASES, louder)
    assert changed[2:][0].prompt == "SAY 2. " + "X" * 40


def test_a_run_whose_cases_stay_in_a_file_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models.py").write_text(MODEL, "utf-8")
    means = RunOptions(settings=Settings(output_dir=str(tmp_path / "runs")), allow_code=True)
    model = f"python:{tmp_path}/models.py:count"
    plain = engine.run(CASES, models=model, means=means, output=tmp_path / "plain")
    monkeypatch.setattr(stored_cases, "MAX_CASE_BYTES_IN_MEMORY", 0)
    spilled = engine.run(collected_cases(CASES), models=model, means=means, output=tmp_path / "spilled")
    assert isinstance(StoredRun(spilled.folder).cases, StoredCases)
    assert (spilled.folder / "cases.jsonl").read_bytes() == (plain.folder / "cases.jsonl").read_bytes()
    assert spilled.summary.models[0].correct == 50
    assert spilled.summary.cases == plain.summary.cases
    assert resume(spilled.folder, means=means).summary == spilled.summary
    keys = [[fact.key for fact in StoredRun(run.folder).facts()] for run in (plain, spilled)]
    assert sorted(keys[0]) == sorted(keys[1]), "no reply is asked for again because of where its case is"


def test_damage_is_named_by_its_line_and_a_cut_file_is_no_other_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_cases, "MAX_CASE_BYTES_IN_MEMORY", 0)
    lines = [msgspec.json.encode(case) + b"\n" for case in CASES[:3]]
    path = tmp_path / "cases.jsonl"
    path.write_bytes(lines[0] + b'{"id": 3}\n' + lines[2])
    with pytest.raises(InputError, match=r"cases.jsonl:2: not a case"):
        _ = StoredRun(tmp_path).cases
    path.write_bytes(b"".join(lines))
    cases = StoredRun(tmp_path).cases
    path.write_bytes(lines[0])
    assert cases[0] == CASES[0]
    with pytest.raises(StoreError, match="cut off"):
        cases[2]
