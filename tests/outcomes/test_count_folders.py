"""Count tables in folders, as libraries leave them that write in shards."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.engine.results.recordings import recorded_by, recorded_side
from steelyard.errors import InputError


def shard(number: int) -> pa.Table:
    return pa.table({"case": [f"{number}-a", f"{number}-b"], "n": [4, 4], "correct": [1, 4]})


def write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        rows = [",".join(map(str, row.values())) for row in table.to_pylist()]
        path.write_text("\n".join([",".join(table.column_names), *rows]) + "\n")
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)


@pytest.mark.parametrize(
    "names",
    [
        ("data-00000-of-00002.arrow", "data-00001-of-00002.arrow"),
        ("train/0.parquet", "train/1.parquet"),
        ("a.csv", "b.csv"),
    ],
)
def test_a_folder_of_count_tables_is_one_table(tmp_path: Path, names: tuple[str, ...]) -> None:
    folder = tmp_path / "mine"
    for number, name in enumerate(names):
        write(shard(number), folder / name)
    (folder / "state.json").write_text("{}")
    assert recorded_by(str(folder)) == ["counts"]
    side = recorded_side(str(folder))
    (trials,) = side.models.values()
    assert sum(one.attempts for one in trials) == 16
    assert list(side.models) == ["mine"]


def test_a_damaged_arrow_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "counts.arrow"
    write(shard(0), path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"counts\.arrow.*Arrow"):
        recorded_side(str(path))
