"""Rows of datasets as cases: without ids, under other names, in CSV, YAML, Parquet and Arrow."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.evalsets.loader import is_eval_set_available
from steelyard.records import Case
from steelyard.sandbox.levels import ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.checks.verifier import declared_check_list


def loaded(folder: Path, *rows: object) -> Sequence[Case]:
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return load([folder / "rows.jsonl"]).cases


def test_ids_are_made_from_content_and_a_repeated_row_counts_once(tmp_path: Path) -> None:
    first, second = {"question": "1 + 1?", "answer": "2"}, {"question": "2 + 2?", "answer": "4"}
    one, two = loaded(tmp_path, first, second)
    again = loaded(tmp_path, second, first, second)
    assert [case.id for case in again] == [two.id, one.id]
    assert load([tmp_path / "rows.jsonl"]).problems[0].what == (
        "not carried over: 1 × duplicate rows: each counts once"
    )


@pytest.mark.parametrize(
    ("row", "checks", "target"),
    [
        (
            {"question": "q", "answer": "He has 3 + 4.\n#### 1,007"},
            [{"type": "number", "value": 1007, "which": "last"}],
            "",
        ),
        ({"problem": "q", "answer": 7}, [{"type": "number", "value": 7, "which": "last"}], ""),
        ({"input": [{"role": "user", "content": "q"}], "ideal": ["a", "b"]}, [{"contains_any": ["a", "b"]}], ""),
        ({"input": [{"role": "user", "content": "q"}], "ideal": "a"}, None, "a"),
        ({"input": "q", "target": ["a"], "id": 3, "metadata": {"k": 1}}, None, "a"),
        ({"question": "q", "context": "c", "answers": {"text": ["a", "a"], "answer_start": [1, 1]}}, None, "a"),
    ],
)
def test_a_row_says_what_is_right(tmp_path: Path, row: dict[str, Any], checks: list[Any] | None, target: str) -> None:
    (case,) = loaded(tmp_path, row)
    assert case.verify.settings.get("checks") == checks
    assert case.target == target


@pytest.mark.parametrize(
    ("row", "letter"),
    [
        ({"input": "q", "choices": ["x", "y", "z"], "target": "B"}, "B"),
        ({"question": "q", "choices": ["x", "y", "z"], "answer": 2}, "C"),
        ({"question": "q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"}, "B"),
        ({"question": "q", "options": ["x", "y"], "answer": "x"}, "A"),
    ],
)
def test_a_question_with_choices_asks_for_a_letter(tmp_path: Path, row: dict[str, Any], letter: str) -> None:
    (case,) = loaded(tmp_path, row)
    assert "A) x\nB) y" in str(case.prompt)
    (check,) = declared_check_list(case, ZygoteSandbox(ISOLATION_LEVELS[-1])).checks
    verdicts = {other: check.check.check.judge(f"So:\nANSWER: {other}").passed for other in "ABC"}  # type: ignore[attr-defined]
    assert verdicts == {other: other == letter for other in "ABC"}


def test_columns_can_be_mapped_and_the_map_stays_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("frage,antwort\nHauptstadt?,Paris\n")
    given = f"{tmp_path / 'rows.csv'}#prompt=frage,target=antwort"
    sets = load([given])
    assert [(case.prompt, case.target) for case in sets.cases] == [("Hauptstadt?", "Paris")]
    assert is_eval_set_available(sets.files[0].path)
    assert load([sets.files[0].path]).cases == sets.cases
    with pytest.raises(InputError, match='no column "frag" for prompt; the row has frage, antwort'):
        load([given.replace("frage", "frag")])


def test_the_same_rows_are_the_same_cases_in_every_format(tmp_path: Path) -> None:
    import duckdb

    rows = [{"question": "1 + 1?", "answer": "two"}, {"question": "2 + 2?", "answer": "four"}]
    cases = loaded(tmp_path, *rows)
    (tmp_path / "a.csv").write_text("question,answer\n1 + 1?,two\n2 + 2?,four\n")
    (tmp_path / "a.yaml").write_text("\n".join(f"- {json.dumps(row)}" for row in rows))
    (tmp_path / "a.json").write_text(json.dumps({"data": rows}))
    duckdb.sql(f"COPY (FROM '{tmp_path / 'a.csv'}') TO '{tmp_path / 'a.parquet'}'")
    for name in ("a.csv", "a.yaml", "a.json", "a.parquet"):
        assert load([tmp_path / name]).cases == cases, name


def test_an_arrow_file_of_the_library_datasets_is_read(tmp_path: Path) -> None:
    table = pyarrow.table({"question": ["q"], "answer": ["a"]})
    with pyarrow.ipc.new_stream(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    (case,) = load([tmp_path / "a.arrow"]).cases
    assert (case.prompt, case.target) == ("q", "a")


def test_an_arrow_file_cannot_make_us_read_what_is_no_part_of_it(tmp_path: Path) -> None:
    table = pyarrow.table({"question": ["q", "rst"], "answer": ["abc", "de"]})
    with pyarrow.ipc.new_stream(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    whole, offsets = (tmp_path / "a.arrow").read_bytes(), struct.pack("<3i", 0, 1, 4)
    assert whole.count(offsets) == 1
    (tmp_path / "a.arrow").write_bytes(whole.replace(offsets, struct.pack("<3i", 9, 1, 4)))
    with pytest.raises(InputError, match="not an Arrow file"):
        load([tmp_path / "a.arrow"])


def test_a_map_with_a_character_that_no_column_has_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("frage,antwort\nHauptstadt?,Paris\n")
    with pytest.raises(InputError, match="--map"):
        load([f"{tmp_path / 'rows.csv'}#prompt=fra\0ge,target=antwort"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b'question,answer\n"q', "not CSV"),
        ("a.csv", b"question\nq,r,s", "3 cells below 1 columns"),
        ("a.csv", b"\xff\xfe", "not UTF-8"),
        ("a.csv", b"question,answer,answer\nq,r,s", 'two columns are called "answer"'),
        ("a.parquet", b"PAR1 nothing", "not a Parquet file"),
        ("a.yaml", b"a: [", "not YAML"),
        ("a.yaml", b"a: 1", "not a list of cases"),
        ("a.arrow", b"ARROW1..", "not an Arrow file"),
        ("a.jsonl", b'{"question": "q", "choices": ["a", "b"], "answer": 5}', "is not one of the choices"),
        ("a.jsonl", b'{"question": "q", "answers": []}', "no right answer"),
    ],
)
def test_a_broken_table_is_refused_in_one_sentence(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load([tmp_path / name])
