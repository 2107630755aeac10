"""Paths of facts: whatever models and suites are called, other tools read their names back, and no two share a path."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import polars
import pyarrow
import pyarrow.dataset
import pytest

from steelyard.store.parquet import (
    HIVE_NULL_PARTITION,
    MAX_PATH_SEGMENT_BYTES,
    escaped_segment,
    is_name_in_path,
    partition_paths,
    truncated_segment,
)

HOSTILE = [
    "openai/gpt-5",
    "../../etc/passwd",
    "..",
    ".",
    "/",
    "a b",
    "50%",
    "%2F",
    "a=b",
    "model=x/suite=y",
    "NULL",
    "null",
    "naïve ☃ \U0001f600",
    "5",
    "007",
    "true",
    "nan",
    "2026-01-01",
    'quote\' and "quote"',
    "two\nlines\x1b[31m",
    "nul\x00",
    "c:\\windows\\con",
    "*?[a]",
    "_hidden",
    "~",
    "x" * MAX_PATH_SEGMENT_BYTES,
]


def read_by(folder: Path, tool: str) -> dict[int, str | None]:
    """What a tool takes for the model of each file, by the number in it."""
    pattern = f"{folder}/*/*/*.parquet"
    if tool == "duckdb":
        how = "hive_partitioning = true, hive_types = {model: VARCHAR, suite: VARCHAR}"
        return dict(duckdb.execute(f"SELECT number, model FROM read_parquet('{pattern}', {how})").fetchall())
    if tool == "polars":
        texts = {"model": polars.String, "suite": polars.String}
        frame = polars.scan_parquet(pattern, hive_partitioning=True, hive_schema=texts)
        return dict(frame.select("number", "model").collect().rows())
    schema = pyarrow.schema([("model", pyarrow.string()), ("suite", pyarrow.string())])
    flavour = pyarrow.dataset.partitioning(schema, flavor="hive")
    table = pyarrow.dataset.dataset(str(folder), partitioning=flavour).to_table(columns=["number", "model"])
    return {row["number"]: row["model"] for row in table.to_pylist()}


@pytest.mark.parametrize("tool", ["duckdb", "polars", "pyarrow"])
def test_other_tools_read_names_back_from_paths_however_hostile_they_are(tmp_path: Path, tool: str) -> None:
    places = partition_paths((name, "s") for name in HOSTILE)
    for number, name in enumerate(HOSTILE):
        folder = tmp_path / places[name, "s"]
        folder.mkdir(parents=True)
        duckdb.execute(f"COPY (SELECT {number} AS number) TO '{folder}/facts.parquet'")
    assert read_by(tmp_path, tool) == dict(enumerate(HOSTILE))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        {place.partition("/")[0] for place in places.values()}
    )


def test_no_two_names_share_a_path_even_where_capitals_do_not_count() -> None:
    chance = random.Random(3)
    names = {"".join(chance.choices("aA%2fFé._", k=chance.randrange(1, 5))) for _ in range(500)}
    names |= {letter * size for letter in "aAb" for size in (150, 201, 300, 5000)}
    places = partition_paths((name, name) for name in names)
    assert len({place.lower() for place in places.values()}) == len(names)


def test_a_name_that_is_too_long_for_a_path_is_cut_and_not_told_by_it() -> None:
    for name in ("x" * (MAX_PATH_SEGMENT_BYTES + 1), "é" * 100, "X" * 100):
        (place,) = partition_paths([(name, "")]).values()
        assert max(map(len, place.split("/"))) <= MAX_PATH_SEGMENT_BYTES + len("model=")
        assert not is_name_in_path(name)
    assert truncated_segment("é" * 100) != truncated_segment("é" * 101)
    assert truncated_segment("é" * 100)[: MAX_PATH_SEGMENT_BYTES - 35].replace("%C3%A9", "").strip("%C3") == ""
    assert is_name_in_path("x" * MAX_PATH_SEGMENT_BYTES)


def test_nothing_is_no_name() -> None:
    assert partition_paths([(None, None), ("m", "")]) == {
        (None, None): f"model={HIVE_NULL_PARTITION}/suite={HIVE_NULL_PARTITION}",
        ("m", ""): f"model=m/suite={HIVE_NULL_PARTITION}",
    }
    assert not is_name_in_path("")
    assert not is_name_in_path(None)
    assert escaped_segment(HIVE_NULL_PARTITION) != HIVE_NULL_PARTITION
