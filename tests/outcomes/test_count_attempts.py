"""Attempts in Parquet are counted as plain counting counts them, whatever the files hold, in little memory."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.analysis.counts import OutcomeTallies
from steelyard.errors import InputError, Problem
from steelyard.outcomes import parquet_counts
from steelyard.outcomes.parquet_counts import (
    DEFAULT_ATTEMPT_COLUMNS,
    MAX_MODEL_CASE_PAIRS,
    AttemptColumns,
    CountsMerger,
    ParquetSource,
    counts_as_arrow,
    counts_from_parquet,
    outcomes_of,
)

Row = dict[str, Any]
Told = dict[str, tuple[dict[str, tuple[int, int]], int]]


def written(path: Path, rows: list[Row] | pa.Table) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), path)
    return str(path)


def source(*files: str, name: str = "table") -> ParquetSource:
    return ParquetSource(name, files)


def told(found: OutcomeTallies) -> Told:
    """By model the attempts and passes of each case that has any, and how many have no outcome."""
    return {
        tally.model: (
            {
                case: (int(tried), int(passed))
                for case, tried, passed in zip(tally.cases, tally.tried, tally.passed, strict=True)
                if tried
            },
            tally.missing,
        )
        for tally in found.tallies
    }


def plainly(rows: list[Row]) -> Told:
    """The same by nothing but dictionaries."""
    tried = Counter((row["model"], row["case"]) for row in rows if row["correct"] is not None)
    passed = Counter((row["model"], row["case"]) for row in rows if row["correct"])
    missing = Counter(row["model"] for row in rows if row["correct"] is None)
    return {
        model: (
            {case: (tried[model, case], passed[model, case]) for own, case in tried if own == model},
            missing[model],
        )
        for model in {row["model"] for row in rows}
    }


def outcomes_from_parquet(
    sources: Sequence[ParquetSource], columns: AttemptColumns = DEFAULT_ATTEMPT_COLUMNS
) -> OutcomeTallies:
    return outcomes_of(counts_from_parquet(sources, columns), sources, columns)


def refusal(*sources: ParquetSource, **columns: Any) -> list[Problem]:
    with pytest.raises(InputError) as raised:
        outcomes_from_parquet(sources, AttemptColumns(**columns))
    return list(raised.value.problems)


def random_rows(chance: random.Random) -> list[Row]:
    models, cases = chance.randint(1, 4), chance.randint(1, 60)
    return [
        {
            "model": f"model '{chance.randrange(models)}\"",
            "case": f'case,\n"{chance.randrange(cases)}" ☃',
            "correct": chance.choice([True, False]) if chance.random() < 0.9 else None,
            "number": number,
        }
        for number in range(chance.choice([1, 30, 2000]))
    ]


SPELLINGS: list[dict[bool | None, Any]] = [
    {True: 1, False: 0, None: None},
    {True: 1.0, False: 0.0, None: None},
    {True: " Yes", False: "NO\t", None: ""},
    {True: "true", False: "0.0", None: None},
]


@pytest.mark.parametrize("seed", range(8))
def test_counts_are_those_of_plain_counting_however_outcomes_are_spelled_and_rows_are_spread(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    rows = random_rows(chance)
    parts: list[list[Row]] = [[] for _ in range(4)]
    for row in rows:
        chance.choice(parts).append(row)
    files = []
    for number, (part, spelling) in enumerate(zip(parts, SPELLINGS, strict=True)):
        spelled = [row | {"correct": spelling[row["correct"]]} for row in part]
        files += [written(tmp_path / f"it's [{number}].parquet", spelled)] if part else []
    assert told(outcomes_from_parquet([source(*files)])) == plainly(rows)
    assert told(outcomes_from_parquet([source(path, name=path) for path in files])) == plainly(rows)
    with CountsMerger() as adding:
        for path in chance.sample(files, len(files)):
            adding.add(counts_as_arrow([source(path)], AttemptColumns(), memory="200MB"))
        assert told(parquet_counts.outcomes_of(adding.counts(), [], AttemptColumns())) == plainly(rows)


@pytest.mark.parametrize("seed", range(4))
def test_rows_about_the_same_sample_count_once_and_contradictions_are_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    rows = random_rows(chance)
    again = [chance.choice(rows) for _ in range(chance.randint(1, 40))]
    shuffled = chance.sample([*rows, *again], len(rows) + len(again))
    files = [
        written(tmp_path / "a.parquet", shuffled[::2] or shuffled),
        written(tmp_path / "b.parquet", shuffled[1::2]),
    ]
    found = outcomes_from_parquet([source(*files)], AttemptColumns(sample="number"))
    assert told(found) == plainly(rows)
    assert [problem.what for problem in found.problems] == [f"{len(again)} rows repeat an attempt; counted once"]
    liar = rows[0] | {"correct": not rows[0]["correct"]}
    (problem,) = refusal(source(*files, written(tmp_path / "c.parquet", [liar])), sample="number")
    assert problem.what.startswith("rows about the same number contradict each other: ")
    assert problem.what.endswith("; 1 such attempts")


def test_files_of_one_folder_may_have_other_types_and_each_is_read_for_what_it_is(tmp_path: Path) -> None:
    first = written(tmp_path / "0.parquet", [{"case": "7", "correct": True}])
    second = written(tmp_path / "1.parquet", [{"case": 7, "correct": 0, "more": [1]}])
    third = written(tmp_path / "2.parquet", [{"passed": "yes", "case": "007"}])
    expected = {"table": ({"7": (2, 1), "007": (1, 1)}, 0)}
    for files in ([first, second, third], [third, second, first]):
        assert told(outcomes_from_parquet([source(*files)])) == expected
    # a database that took all files for what the first one is would take seven for a yes
    seven = written(tmp_path / "3.parquet", [{"case": "7", "correct": 7}])
    (problem,) = refusal(source(first, seven))
    assert problem.what == 'correct is "7"; expected true or false, 1 or 0, yes or no'


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [
        ([{"task": "a", "correct": True}], {}, 'no column "case"'),
        ([{"case": "a", "ok": True}], {}, 'no column "correct"'),
        ([{"case": "a", "correct": True}], {"model": "llm"}, 'no column "llm"'),
        ([{"case": "a", "correct": True}], {"sample": "number"}, 'no column "number"'),
        ([{"case": 1.5, "correct": True}], {}, 'column "case" holds DOUBLE; expected text or whole numbers'),
        ([{"case": ["a"], "correct": True}], {}, 'column "case" holds a list; expected text or whole numbers'),
        ([{"case": {"a": 1}, "correct": True}], {}, 'column "case" holds STRUCT'),
        ([{"case": "a", "correct": [True]}], {}, 'column "correct" holds a list; expected booleans'),
        ([{"case": "a", "correct": b"\xff"}], {}, "not a Parquet file, or a broken one"),
        ([{"case": "a", "correct": 0.5}], {}, 'correct is "0.5"; expected true or false'),
        ([{"case": "a", "correct": float("nan")}], {}, 'correct is "nan"; expected true or false'),
        ([{"case": "a", "correct": "x" * 100_000}], {}, 'correct is "xxx'),
        ([{"case": "a", "correct": "\x1b[31m"}] * 2, {}, "; 2 such rows"),
        ([{"case": None, "correct": True}, {"case": "a", "correct": True}], {}, "case is empty; expected text"),
        ([{"case": " \n", "correct": True}], {}, "case is empty; expected text or a whole number; 1 such rows"),
        ([{"case": "a", "model": None, "correct": True}, {"case": "a", "model": "m", "correct": None}], {}, "model is"),
    ],
)
def test_what_cannot_be_counted_is_one_short_sentence(
    tmp_path: Path, rows: list[Row], columns: dict[str, str], said: str
) -> None:
    path = written(tmp_path / "x.parquet", rows)
    (problem,) = refusal(source(path), **columns)
    assert said in problem.what
    assert len(str(problem)) < 600
    assert str(problem).isprintable()


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"\x00" * 4096, b"case,correct\na,true\n"]
)
def test_the_one_broken_file_among_many_is_named(tmp_path: Path, content: bytes) -> None:
    good = [written(tmp_path / f"{number}.parquet", [{"case": "a", "correct": True}]) for number in range(3)]
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(content)
    (problem,) = refusal(source(*good, str(broken)))
    assert problem.where == str(broken)
    assert problem.what.startswith("not a Parquet file, or a broken one: ")


def test_a_file_that_is_cut_off_or_spoiled_in_the_middle_is_named(tmp_path: Path) -> None:
    rows = [{"case": f"case {number % 7}", "correct": number % 2 == 0} for number in range(20_000)]
    path = Path(written(tmp_path / "x.parquet", rows))
    whole = path.read_bytes()
    for content in (whole[:-9], whole[:100], b"PAR1" + b"\xff" * (len(whole) // 2) + whole[len(whole) // 2 + 4 :]):
        path.write_bytes(content)
        assert str(path) in str(refusal(source(str(path)))[0])


def test_a_file_without_rows_says_so_and_counts_nothing(tmp_path: Path) -> None:
    empty = pa.table({"case": pa.array([], pa.string()), "correct": pa.array([], pa.bool_())})
    found = outcomes_from_parquet([source(written(tmp_path / "x.parquet", empty))])
    assert found.tallies == ()
    assert [str(problem) for problem in found.problems] == ["table: no rows"]


def test_dictionaries_bytes_and_large_strings_are_text(tmp_path: Path) -> None:
    names = pa.array(["a", "b", "a"])
    for kind in (names.dictionary_encode(), names.cast(pa.large_string()), names.cast(pa.binary())):
        table = pa.table({"case": kind, "correct": [True, False, None]})
        assert told(outcomes_from_parquet([source(written(tmp_path / "x.parquet", table))])) == {
            "table": ({"a": (1, 1), "b": (1, 0)}, 1)
        }


def test_blanks_around_names_are_no_part_of_them(tmp_path: Path) -> None:
    rows = [{"case": case, "model": model, "correct": True} for case in ("a", " a", "a\u3000") for model in ("m", "m ")]
    assert told(outcomes_from_parquet([source(written(tmp_path / "x.parquet", rows))])) == {"m": ({"a": (6, 6)}, 0)}


def test_names_that_look_like_sql_or_patterns_are_names(tmp_path: Path) -> None:
    hostile = "\"); DROP TABLE x; --'"
    rows = [{hostile: "a", "m'": "n", 'p"q': 1, "s": 1}]
    path = written(tmp_path / "it's * [a]? $rows.parquet", rows)
    found = outcomes_from_parquet([source(path)], AttemptColumns(case=hostile, model="m'", passed='p"q', sample="s"))
    assert told(found) == {"n": ({"a": (1, 1)}, 0)}


def test_a_path_tells_models_and_cases_as_text(tmp_path: Path) -> None:
    for model in ("007", "a%2Fb"):
        written(tmp_path / f"model={model}" / "case=1" / "x.parquet", [{"correct": True}])
    files = sorted(str(path) for path in tmp_path.rglob("*.parquet"))
    assert told(outcomes_from_parquet([source(*files)])) == {"007": ({"1": (1, 1)}, 0), "a/b": ({"1": (1, 1)}, 0)}


def test_a_model_that_no_column_names_is_called_like_its_source(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{name}.parquet", [{"case": "a", "passed": True}]) for name in ("gpt", "claude")]
    assert set(told(outcomes_from_parquet([source(path, name=path) for path in files]))) == {"gpt", "claude"}


COUNTING = """
import resource, sys
from steelyard.outcomes.parquet_counts import AttemptColumns, ParquetSource, counts_from_parquet, outcomes_of
counts_from_parquet([ParquetSource("x", (sys.argv[1],))])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sources = [ParquetSource("x", tuple(sys.argv[2:]))]
(tally,) = outcomes_of(counts_from_parquet(sources, memory="64MB"), sources, AttemptColumns()).tallies
print(len(tally.cases), int(tally.tried.sum()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_table_larger_than_its_memory_is_counted_in_it(tmp_path: Path) -> None:
    files = []
    for part in range(4):
        path = tmp_path / f"{part}.parquet"
        # long names, so that the table is large and not its counts; no two neighbours are alike
        duckdb.execute(f"""COPY (SELECT repeat(md5((i * 7919 % 20000)::VARCHAR), 6) AS "case", i % 3 = 0 AS correct
          FROM range(250000) AS r(i)) TO '{path}' (COMPRESSION zstd)""")
        files.append(str(path))
    tiny = written(tmp_path / "tiny.parquet", [{"case": "a", "correct": True}])
    ran = subprocess.run([sys.executable, "-c", COUNTING, tiny, *files], capture_output=True, text=True, check=True)
    cases, tried, grown = map(int, ran.stdout.split())
    assert (cases, tried) == (20_000, 1_000_000)
    unit = 1 if sys.platform == "darwin" else 1024
    # 200 bytes of a name in each of a million rows are 200 MB
    assert grown * unit < 120e6


@pytest.mark.slow
def test_a_column_that_is_none_of_cases_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    duckdb.execute(
        f"""COPY (SELECT i AS "case", true AS correct FROM range({MAX_MODEL_CASE_PAIRS + 1}) AS r(i)) TO '{path}'"""
    )
    (problem,) = refusal(source(str(path)))
    assert problem.what.startswith("16,777,217 pairs of a model and a case, whose names have 206,992,711 bytes")
    assert problem.what.endswith(" are too many to count; are these the right columns?")
