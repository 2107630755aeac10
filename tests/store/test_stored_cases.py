"""Cases that stay in a file are the same cases as those in memory."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from steelyard.engine import run as engine
from steelyard.engine.options import RunOptions
from steelyard.engine.resume import resume
from steelyard.errors import InputError, StoreError
from steelyard.records import Case
from steelyard.settings import Settings
from steelyard.store import stored_cases
from steelyard.store.journal import StoredRun
from steelyard.store.stored_cases import StoredCases, cases_by_id, changed_cases, spilled_cases

CASES = tuple(Case(id=f"c{number}", prompt=f"Say {number}. " + "x" * 40, target=str(number)) for number in range(50))
MODEL = """
def count(prompt): return prompt.split()[1]
"""


def test_spilled_cases_are_a_sequence_of_the_same_cases() -> None:
    spilled = spilled_cases(iter(CASES))
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
    spilled = spilled_cases(CASES)
    first = spilled[0]
    assert spilled[0] is first, "what is known of a case is computed once"
    assert [case.id for case in map(spilled.__getitem__, range(50))] == [case.id for case in CASES]
    assert spilled[49] is spilled[49]
    assert spilled[0] is not first


def test_a_change_is_made_to_every_case() -> None:
    def louder(case: Case) -> Case:
        return msgspec.structs.replace(case, prompt=case.prompt.upper() if isinstance(case.prompt, str) else "")

    changed = changed_cases(spilled_cases(CASES), louder)
    assert isinstance(changed, StoredCases)
    assert tuple(changed) == changed_cases(CASES, louder)
    assert changed[2:][0].prompt == "SAY 2. " + "X" * 40


def test_a_run_whose_cases_stay_in_a_file_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models.py").write_text(MODEL, "utf-8")
    means = RunOptions(settings=Settings(output_dir=str(tmp_path / "runs")), allow_code=True)
    model = f"python:{tmp_path}/models.py:count"
    plain = engine.run(CASES, models=model, means=means, output=tmp_path / "plain")
    monkeypatch.setattr(stored_cases, "MAX_CASE_BYTES_IN_MEMORY", 0)
    spilled = engine.run(spilled_cases(CASES), models=model, means=means, output=tmp_path / "spilled")
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
