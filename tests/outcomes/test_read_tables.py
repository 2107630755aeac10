"""A table of outcomes means the same in CSV, JSONL and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard import outcomes
from steelyard.analysis.counts import Tally
from steelyard.errors import InputError, Problem
from steelyard.outcomes.columns import coded_cells
from steelyard.outcomes.files import UnreadableOutcomesError

FORMATS = ["csv", "tsv", "csv.gz", "jsonl", "ndjson", "jsonl.gz", "parquet"]


def written(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    """The rows in the format that the name asks for."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = name.partition(".")[2].removesuffix(".gz")
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    text = io.StringIO()
    if kind in ("csv", "tsv"):
        writer = csv.DictWriter(text, list(rows[0]), delimiter="," if kind == "csv" else "\t")
        writer.writeheader()
        writer.writerows(rows)
    else:
        text.write("".join(json.dumps(row) + "\n" for row in rows))
    raw = text.getvalue().encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def refusal(*paths: Path, **columns: Any) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as raised:
        outcomes.table(paths, **columns)
    return raised.value.problems


def plainly(rows: list[dict[str, Any]]) -> tuple[Tally, ...]:
    """The tallies by nothing but dictionaries; a sample counts once."""
    samples = {(row["model"], row["case"], row["sample"]): row for row in rows}
    cells: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for (model, case, _), row in samples.items():
        cells[model, case].append(row)
    models, cases = (tuple(sorted({cell[at] for cell in cells})) for at in (0, 1))
    tallies = []
    for model in models:
        own = [cells.get((model, case), []) for case in cases]
        judged = [[row["passed"] for row in some if row["passed"] is not None] for some in own]
        costs = [[row["cost"] for row in some] for some in own]
        scores = [[row["score"] for row in some if row["score"] is not None] for some in own]
        missing = tuple(sum(row["passed"] is None for row in some) for some in own)
        tallies.append(
            Tally(
                model,
                cases,
                tuple(map(len, judged)),
                tuple(map(sum, judged)),
                sum(missing),
                None if any(None in some for some in costs) else tuple(map(sum, costs)),
                tuple(sum(some) / len(some) if some else None for some in scores),
                missing if any(missing) else None,
            )
        )
    return tuple(tallies)


def random_rows(seed: int) -> list[dict[str, Any]]:
    # numbers of few binary digits, whose sums do not depend on their order
    chance = random.Random(seed)
    count = chance.choice([1, 20, 3000])
    models, cases = chance.randint(1, 5), chance.randint(1, 40)
    rows = [
        {
            "model": f"model {chance.randrange(models)}",
            "case": f'case,\n"{chance.randrange(cases)}"',
            "sample": number,
            "passed": chance.choice([True, False]) if chance.random() < 0.95 else None,
            "cost": chance.randrange(64) / 64 if chance.random() < 0.999 else None,
            "score": chance.randrange(65) / 64 if chance.random() < 0.9 else None,
        }
        for number in range(count)
    ]
    rows += [dict(chance.choice(rows)) for _ in range(count // 10)]
    chance.shuffle(rows)
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_every_format_gives_the_tallies_of_plain_counting(tmp_path: Path, seed: int) -> None:
    rows = random_rows(seed)
    expected = plainly(rows)
    for name in FORMATS:
        path = written(tmp_path, f"rows.{name}", rows)
        assert outcomes.table([path], sample="sample", cost="cost", score="score").tallies == expected, name
    half = len(rows) // 2
    if half:
        parts = [written(tmp_path, "one.csv", rows[:half]), written(tmp_path, "two.parquet", rows[half:])]
        assert outcomes.table(parts, sample="sample", cost="cost", score="score").tallies == expected


@pytest.mark.parametrize("name", FORMATS)
def test_without_samples_every_row_is_an_attempt_and_files_add_up(tmp_path: Path, name: str) -> None:
    rows = [{"case": "a", "model": "m", "passed": True}, {"case": "a", "model": "m", "passed": True}]
    paths = [written(tmp_path, f"{part}.{name}", rows) for part in "xy"]
    (tally,) = outcomes.table(paths).tallies
    assert (tally.model, tally.tried, tally.passed) == ("m", (4,), (4,))


@pytest.mark.parametrize("name", FORMATS)
def test_columns_are_named_by_the_caller(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, f"x.{name}", [{"task id": 7, "llm": "m", "ok": 1, "usd": 0.5, "n": 1, "rate": 0.25}])
    read = outcomes.table([path], case="task id", model="llm", passed="ok", sample="n", cost="usd", score="rate")
    assert read.tallies == (Tally("m", ("7",), (1,), (1,), 0, (0.5,), (0.25,)),)


@pytest.mark.parametrize("name", FORMATS)
def test_one_column_can_serve_twice(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, f"x.{name}", [{"case": "a", "passed": 1}, {"case": "a", "passed": 0}])
    assert outcomes.table([path], score="passed").tallies[0].scores == (0.5,)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_without_a_column_of_models_names_its_model(tmp_path: Path, name: str) -> None:
    paths = [written(tmp_path, f"{stem}.{name}", [{"case": "a", "passed": True}]) for stem in ("gpt", "claude_fixes")]
    assert [tally.model for tally in outcomes.table(paths).tallies] == ["claude_fixes", "gpt"]
    paths = [written(tmp_path, f"{folder}/gpt.{name}", [{"case": "a", "passed": True}]) for folder in "ab"]
    assert [tally.model for tally in outcomes.table(paths).tallies] == ["a/gpt", "b/gpt"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_column_that_was_asked_for_must_be_there(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, f"x.{name}", [{"cse": "a", "passed": True, "model": "m"}])
    case, model = sorted(problem.what for problem in refusal(path, model="modell"))
    assert case == 'no column "case" (known: cse, model, passed; did you mean "cse"?)'
    assert model == 'no column "modell" (known: cse, model, passed; did you mean "model"?)'


@pytest.mark.parametrize("name", FORMATS)
def test_an_attempt_without_outcome_is_missing_and_warned_of(tmp_path: Path, name: str) -> None:
    rows = [{"case": "a", "model": "m", "passed": passed} for passed in (True, None, False, None)]
    read = outcomes.table([written(tmp_path, f"x.{name}", rows)])
    assert read.tallies == (Tally("m", ("a",), (2,), (1,), 2, missing_by_case=(2,)),)
    (problem,) = read.problems
    assert not problem.fatal
    assert "passed is empty: an attempt without an outcome, which is not counted; 2 such rows" in problem.what


@pytest.mark.parametrize(
    ("name", "place"), [("csv", "x.csv:3: "), ("jsonl", "x.jsonl:2: "), ("parquet", "x.parquet: row 2: ")]
)
@pytest.mark.parametrize(
    ("column", "good", "bad", "what"),
    [
        ("passed", "yes", "perhaps", 'passed is "perhaps"; expected true or false, 1 or 0, yes or no'),
        ("passed", 1, 2, "expected true or false, 1 or 0, yes or no"),
        ("passed", 1.0, 0.5, "expected true or false, 1 or 0, yes or no"),
        ("case", "a", " ", "case is empty; expected text or a whole number"),
        ("model", "a", None, "model is empty; expected text or a whole number"),
        ("sample", "a", "", "sample is empty; expected text or a whole number"),
        ("cost", 0, -1, "expected a number, 0 or more"),
        ("cost", 0.0, float("inf"), "expected a number, 0 or more"),
        ("cost", 0.0, float("nan"), "expected a number, 0 or more"),
        ("score", 1.0, 1.5, "expected a number from 0 to 1, or the range of its scores, such as --score-range 1:5"),
    ],
)
def test_a_cell_that_cannot_be_read_is_an_error_with_its_line(
    tmp_path: Path, name: str, place: str, column: str, good: Any, bad: Any, what: str
) -> None:
    row: dict[str, Any] = {"case": "a", "model": "m", "passed": "true", "sample": "1", "cost": 0.0, "score": 0.0}
    path = written(tmp_path, f"x.{name}", [{**row, column: good, "sample": "0"}, {**row, column: bad}])
    (problem,) = refusal(path, sample="sample", cost="cost", score="score")
    assert str(problem).startswith(str(tmp_path / place))
    assert problem.what.endswith(what)


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_an_unpriced_attempt_makes_the_cost_of_its_model_unknown(tmp_path: Path, name: str) -> None:
    rows: list[dict[str, Any]] = [
        {"case": "a", "model": "m", "passed": True, "cost": 1.0},
        {"case": "a", "model": "m", "passed": True, "cost": None},
        {"case": "a", "model": "n", "passed": None, "cost": 0.5},
    ]
    read = outcomes.table([written(tmp_path, f"x.{name}", rows)], cost="cost")
    assert [tally.costs for tally in read.tallies] == [None, (0.5,)]
    assert any("cost is empty: what this model costs is not known" in problem.what for problem in read.problems)


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_rows_about_the_same_sample_are_one_or_a_contradiction(tmp_path: Path, name: str) -> None:
    row = {"case": "a", "model": "m", "sample": 1, "passed": True, "score": 0.5}
    first = written(tmp_path, f"x.{name}", [row, {**row, "case": "b"}])
    again = written(tmp_path, f"y.{name}", [{**row, "case": "c"}, row])
    read = outcomes.table([first, again], sample="sample")
    assert read.tallies[0].tried == (1, 1, 1)
    (problem,) = read.problems
    unit, line = ("row", 1) if name == "parquet" else ("line", 2 if name == "csv" else 1)
    assert f'"m", "a", sample "1" is already on {unit} {line} of {first}; counted once' in problem.what
    other = written(tmp_path, f"z.{name}", [{**row, "passed": False}])
    (problem,) = refusal(first, other, sample="sample")
    assert (
        f"is false, of score 0.5 here but true, of score 0.5 on {unit} {line} of {first}; keep one of the two"
        in problem.what
    )
    other = written(tmp_path, f"z.{name}", [{**row, "score": 0.75}])
    (problem,) = refusal(first, other, sample="sample", score="score")
    assert f"is true, of score 0.75 here but true, of score 0.5 on {unit} {line}" in problem.what


def test_sparse_samples_are_compared_by_sorting(tmp_path: Path) -> None:
    rows = [{"case": f"c{n}", "model": "m", "sample": f"{n}-{n}", "passed": True} for n in range(3000)]
    read = outcomes.table([written(tmp_path, "x.csv", [*rows, rows[1234]])], sample="sample")
    assert sum(read.tallies[0].tried) == 3000
    assert [problem.line for problem in read.problems] == [3002]


def parquet(folder: Path, **columns: Any) -> Path:
    path = folder / "x.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=3, store_schema=True)
    return path


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int64(), pa.large_string()),
        pa.int8(),
        pa.uint64(),
        pa.int64(),
    ],
    ids=str,
)
def test_names_in_parquet_may_be_of_many_types(tmp_path: Path, kind: Any) -> None:
    values = ["1", "2", "1", "3", "1", "2", "1"]
    column = pa.array(list(map(int, values))) if pa.types.is_integer(kind) else pa.array(values)
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type).dictionary_encode().cast(kind)
    elif pa.types.is_string_view(kind):
        column = pa.array(values, kind)
    else:
        column = column.cast(kind)
    path = parquet(tmp_path, case=column, model=column, sample=pa.array(range(7)), passed=pa.array([True] * 7))
    read = outcomes.table([path], sample="sample")
    assert [(tally.model, tally.tried) for tally in read.tallies] == [
        ("1", (4, 0, 0)),
        ("2", (0, 2, 0)),
        ("3", (0, 0, 1)),
    ]
    assert outcomes.table([path]).tallies == read.tallies
    nothing = parquet(tmp_path, case=pa.concat_arrays([column, pa.nulls(1, column.type)]), passed=pa.array([True] * 8))
    (problem,) = refusal(nothing)
    assert problem.what == "row 8: case is empty; expected text or a whole number"


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True, None, False, True]),
        pa.array([1, None, 0, 1], pa.int8()),
        pa.array([1.0, None, 0.0, 1.0], pa.float32()),
        pa.array(["yes", None, "No", "TRUE"]),
        pa.array(["1", "", "0.0", "1.0"]).dictionary_encode(),
        pa.array(["1", " ", "0", "1"], pa.string_view()),
    ],
    ids=lambda column: str(column.type),
)
def test_outcomes_in_parquet_may_be_of_many_types(tmp_path: Path, column: Any) -> None:
    path = parquet(tmp_path, case=pa.array(list("aabb")), passed=column)
    (tally,) = outcomes.table([path]).tallies
    assert (tally.tried, tally.passed, tally.missing) == ((1, 2), (1, 1), 1)


def test_costs_in_parquet_may_be_decimals(tmp_path: Path) -> None:
    costs = pa.array([1, 2, 3]).cast(pa.decimal128(30, 3))
    path = parquet(tmp_path, case=pa.array(list("aab")), passed=pa.array([True] * 3), cost=costs)
    assert outcomes.table([path], cost="cost").tallies[0].costs == (3.0, 3.0)


def test_categories_that_no_row_has_are_no_cases(tmp_path: Path) -> None:
    cases = pa.DictionaryArray.from_arrays(pa.array([2, 0, None], pa.int8()), pa.array(["z", "unused", "a"]))
    path = parquet(tmp_path, case=cases.slice(0, 2), passed=pa.array([True, False]))
    (tally,) = outcomes.table([path]).tallies
    assert (tally.cases, tally.tried, tally.passed) == (("a", "z"), (1, 1), (1, 0))


def test_columns_in_parquet_of_other_types_are_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path, case=pa.array([["a"]]), passed=pa.array([{"x": 1}]), cost=pa.array(["1"]))
    assert [problem.what for problem in refusal(path, cost="cost")] == [
        'column "case" holds list<element: string>; expected text or whole numbers',
        'column "cost" holds string; expected numbers',
        'column "passed" holds struct<x: int64>; expected booleans',
    ]


def test_a_table_without_rows_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("case,passed\n")
    (tmp_path / "y.jsonl").write_text("\n\n")
    pq.write_table(
        pa.table({"case": pa.array([], pa.string()), "passed": pa.array([], pa.bool_())}), tmp_path / "z.parquet"
    )
    read = outcomes.table([tmp_path / name for name in ("x.csv", "y.jsonl", "z.parquet")])
    assert read.tallies == ()
    assert [problem.what for problem in read.problems] == ["no rows"] * 3


def test_a_line_may_lack_a_key_that_others_have(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"case": "a", "passed": true, "cost": 1}\n\n{"case": "a"}\n')
    read = outcomes.table([path], cost="cost")
    assert (read.tallies[0].tried, read.tallies[0].missing, read.tallies[0].costs) == ((1,), 1, None)
    path.write_text('{"case": "a", "passed": true, "model": "m"}\n{"case": "a", "passed": true}\n')
    assert [str(problem) for problem in refusal(path)] == [f"{path}:2: model is empty; expected text or a whole number"]
    path.write_text('{"case": "a", "passed": true}\n{"case": "a", "passed": true, "model": "m"}\n')
    assert [str(problem) for problem in refusal(path)] == [f"{path}:2: model stands here, but not on the first line"]


def test_lines_of_json_that_are_none_are_errors_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = b'{"case": "a", "passed": true}\n'
    bad = [b"[1]", b'{"case": ', b'{"case": "\xff"}', b'{"x": ' + b"[" * 100_000, b'{"case": "a"} {}', b"nope"]
    path.write_bytes(b"\xef\xbb\xbf" + good + b"\r\n" + b"\r\n".join(bad) + b"\n" + good)
    assert sorted((problem.line, problem.what) for problem in refusal(path)) == [
        (3, "not a JSON object"),
        (4, "broken JSON: Input data was truncated"),
        (5, "not UTF-8 text; save the file as UTF-8"),
        (6, "nested too deeply to be read"),
        (7, "broken JSON: trailing characters"),
        (8, "broken JSON: invalid character"),
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ['{"case": "a", "passed": true, "note": "}', '{"}'],
        ['{"case": "a", "passed": true, "notes": [{}', "{}]}"],
        ['{"case": "a", "passed": true}{"case": "b", "passed": true}', '{"case": "a", "passed": true, "notes": [{}'],
        ['{"case": "a", "passed": true} {"case": "b", "passed": true}'],
    ],
)
def test_an_object_is_one_line_and_a_line_one_object(tmp_path: Path, lines: list[str]) -> None:
    good = '{"case": "a", "passed": true}'
    path = tmp_path / "model.jsonl"
    path.write_text("\n".join([good, *lines, good]), "utf-8")
    with pytest.raises(InputError) as raised:
        outcomes.table([path])
    assert raised.value.problems[0].line == 2


def test_nan_in_a_column_that_nobody_asked_for_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"case": "a", "passed": true, "loss": NaN}\n')
    assert outcomes.table([path]).tallies[0].tried == (1,)
    (problem,) = refusal(path, score="loss")
    assert (
        problem.what
        == "loss is nan; expected a number from 0 to 1, or the range of its scores, such as --score-range 1:5"
    )


def test_a_name_with_another_ending_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    (problem,) = refusal(tmp_path / "x.xlsx")
    assert problem.what == (
        "unknown kind of file; the name of a table ends in one of .csv, .tsv, .jsonl, .ndjson, .parquet"
    )


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"case,passed\n")
    (problem,) = refusal(tmp_path / "x.parquet")
    assert problem.what.startswith("not a Parquet file, or a broken one: ")
    whole = written(tmp_path, "y.parquet", [{"case": f"{n}", "passed": True} for n in range(5000)])
    whole.write_bytes(whole.read_bytes()[:100] + b"\xff" * 2000 + whole.read_bytes()[2100:])
    (problem,) = refusal(whole)
    assert problem.what.startswith("not a Parquet file, or a broken one: ")


@pytest.mark.parametrize("index", [1, 224, -2])
def test_a_name_that_a_damaged_file_does_not_have_is_refused_and_no_other_one(index: int) -> None:
    indices = pa.array([0, index], pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False)
    with pytest.raises(UnreadableOutcomesError, match="a broken one"):
        coded_cells(column)


@pytest.mark.parametrize(("cost", "told"), [(-1.0, "-1"), (float("inf"), "inf"), (float("nan"), "nan")])
def test_a_number_that_cannot_be_one_is_quoted(tmp_path: Path, cost: float, told: str) -> None:
    path = written(tmp_path, "x.parquet", [{"case": "a", "passed": True, "cost": cost}])
    assert [problem.what for problem in refusal(path, cost="cost")] == [
        f"row 1: cost is {told}; expected a number, 0 or more"
    ]


def test_without_pyarrow_a_parquet_file_says_what_to_install(tmp_path: Path) -> None:
    path = written(tmp_path, "x.parquet", [{"case": "a", "passed": True}])
    program = (
        "import sys\n"
        "sys.modules['pyarrow'] = None\n"
        "from steelyard import outcomes\n"
        "from steelyard.errors import InputError\n"
        "assert outcomes.kind(sys.argv[1]) == 'table'\n"
        "try:\n"
        "    outcomes.table(sys.argv[1:])\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert ran.stdout == 'Parquet files need pyarrow: pip install "steelyard[parquet]"\n'


def test_reading_outcomes_loads_no_numbers_until_there_is_a_file() -> None:
    program = "import sys, steelyard.outcomes; print({'numpy', 'pyarrow', 'pandas', 'scipy'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


def test_a_parquet_file_with_the_usual_columns_is_a_table(tmp_path: Path) -> None:
    assert outcomes.kind(written(tmp_path, "x.parquet", [{"case": "a", "passed": True}])) == "table"
    assert outcomes.kind(written(tmp_path, "y.parquet", [{"id": "a", "passed": True}])) == ""
