"""Attempts in Parquet, found by what users call them, give the pass@k and the gate that the same attempts give elsewhere."""

from __future__ import annotations

import csv
import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard import records
from steelyard.engine.gate.gate import gate
from steelyard.engine.results.read_outcomes import CountingOptions, is_attempts_path, parquet_outcomes
from steelyard.errors import InputError
from steelyard.outcomes.parquet_counts import AttemptColumns
from steelyard.records import Answer, Case, Failure, Finding, Reply, RunInfo, Verdict
from steelyard.store.journal import create_run
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER
from support.command_line import steelyard

MOMENT = "2026-01-02T03:04:06Z"
RIGHT, WRONG = (
    Finding(code="x", compiled=True, tests=(records.Test(name="t", outcome=outcome),), warnings=0)
    for outcome in ("passed", "failed")
)


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def random_rows(seed: int, cases: int = 12) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "case": f"case {chance.randrange(cases)}",
            "model": f"model {chance.randrange(2)}",
            "passed": None if chance.random() < 0.02 else chance.random() < 0.6,
            "sample": number,
        }
        for number in range(800)
    ]


def run(folder: Path, rows: list[dict[str, Any]], name: str = "") -> Path:
    """A run folder in which these attempts were made; what has no outcome was not asked, or not verified."""
    cases = [Case(id=case, prompt="?") for case in sorted({row["case"] for row in rows})]
    known = {case.id: case for case in cases}
    info = RunInfo(id=name or folder.name, started_at=MOMENT, models=tuple(sorted({row["model"] for row in rows})))
    with create_run(folder, info, cases) as journal:
        for row in rows:
            key = f"{row['case']} {row['model']} {row['sample']}"
            where: dict[str, Any] = {"case": row["case"], "model": row["model"], "number": row["sample"], "at": MOMENT}
            if row["passed"] is None and row["sample"] % 2:
                journal.append(Failure(key=key, stage="ask", message="down", **where))
                continue
            journal.append(Reply(key=key, asked="", answer=Answer(text="answer"), **where))
            if row["passed"] is None:
                journal.append(Failure(key=key, stage="verify", message="down", **where))
                continue
            found = RIGHT if row["passed"] else WRONG
            tests = known[row["case"]].tests_digest
            journal.append(Verdict(key=f"v {key}", ask=key, tests=tests, verifier="python", found=found, **where))
    return folder


def sums(names: list[str], root: Path | None = None, **how: Any) -> dict[str, tuple[int, int]]:
    """Attempts and passes by model."""
    found = parquet_outcomes(names, CountingOptions(**how), root=root or DEFAULT_RUNS_FOLDER)
    return {tally.model: (int(sum(tally.tried)), int(sum(tally.passed))) for tally in found.tallies}


def refused(*names: str, **how: Any) -> str:
    with pytest.raises(InputError) as raised:
        parquet_outcomes(list(names), CountingOptions(**how))
    return str(raised.value)


def test_only_a_known_backend_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", [{"case": "a", "model": "m", "passed": True}])
    assert refused(path, backend="rai") == 'unknown backend "rai" (known: local, ray; did you mean "ray"?)'


def test_a_file_a_folder_and_a_pattern_stand_for_the_same_attempts(tmp_path: Path) -> None:
    rows = [{"case": "a", "model": "m", "passed": True}]
    path = written(tmp_path / "there" / "deep" / "x.parquet", rows)
    written(tmp_path / "there" / ".being-written" / "y.parquet", rows)
    written(tmp_path / "there" / "_delta_log" / "z.parquet", rows)
    (tmp_path / "there" / "notes.txt").write_text("no Parquet")
    # a link is no other file
    (tmp_path / "there" / "latest.parquet").symlink_to(path)
    for name in (path, str(tmp_path / "there"), f"{tmp_path}/*/deep/*.parquet", f"{tmp_path}/**/x.parquet"):
        assert sums([name]) == {"m": (1, 1)}, name


def test_a_name_that_stands_for_nothing_says_what_would(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.parquet").mkdir()
    for name, said in (
        (tmp_path / "none.parquet", "cannot be read: No such file or directory"),
        (tmp_path / "empty", "no Parquet files there; their names end in .parquet"),
        (tmp_path / "folder.parquet", "no Parquet files there"),
        (tmp_path / "*.none", "no Parquet files there"),
        (tmp_path / "nul\0.parquet", "cannot be read"),
        ("no-such-run", 'no run "no-such-run" here'),
        ("x" * 5000, "cannot be read: File name too long"),
    ):
        assert said in refused(str(name))
    both = refused(str(tmp_path / "empty"), str(tmp_path / "none.parquet"))
    assert len(both.splitlines()) == 2


def test_the_same_attempts_are_not_counted_twice_by_two_names(tmp_path: Path) -> None:
    path = written(tmp_path / "table" / "x.parquet", [{"case": "a", "passed": True}])
    link = tmp_path / "link.parquet"
    link.symlink_to(path)
    for other in (path, str(tmp_path / "table"), str(link), f"{tmp_path}/table/../table/x.parquet"):
        assert "given twice, by " in refused(path, other)
    folder = run(tmp_path / "runs" / "one", random_rows(1))
    copy = run(tmp_path / "elsewhere" / "copy", random_rows(1), name="one")
    assert "given twice, by " in refused(str(folder.parent), str(copy))


@pytest.mark.parametrize("seed", range(3))
def test_runs_and_their_copies_count_as_the_table_of_the_same_attempts(tmp_path: Path, seed: int) -> None:
    rows = random_rows(seed)
    half = len(rows) // 2
    runs = [run(tmp_path / "runs" / name, part) for name, part in (("one", rows[:half]), ("two", rows[half:]))]
    table = parquet_outcomes([written(tmp_path / "table.parquet", rows)])
    for names in (
        [str(tmp_path / "runs")],
        [str(folder) for folder in runs],
        ["one", "two"],
        [str(folder / "attempts") for folder in runs],
        [f"{tmp_path}/runs/*/attempts/**/*.parquet"],
    ):
        found = parquet_outcomes(names, root=tmp_path / "runs")
        assert found.problems == ()
        for one, other in zip(found.tallies, table.tallies, strict=True):
            assert (one.model, list(one.cases), one.missing) == (other.model, list(other.cases), other.missing)
            assert list(one.tried) == list(other.tried)
            assert list(one.passed) == list(other.passed)
    (problem,) = InputError(refused(str(tmp_path / "runs"), columns=AttemptColumns(case="task"))).problems
    assert "a copy of a run, whose columns are known" in problem.what


def test_replies_and_failures_of_which_only_the_verdicts_were_kept_are_never_less_than_none(tmp_path: Path) -> None:
    folder = run(tmp_path / "runs" / "one", random_rows(1))
    parquet_outcomes([str(folder)])
    (part, *_) = sorted(folder.glob("attempts/*/*/*.parquet"))
    table = pq.read_table(part, partitioning=None)
    pq.write_table(table.filter(pa.compute.equal(table["kind"], "verdict")), tmp_path / "verdicts.parquet")
    (tally,) = parquet_outcomes([str(tmp_path / "verdicts.parquet")]).tallies
    assert tally.missing == 0


@pytest.mark.parametrize("seed", range(3))
def test_passk_of_attempts_prints_what_passk_of_the_same_outcomes_prints(tmp_path: Path, seed: int) -> None:
    rows = random_rows(seed)
    written(tmp_path / "all" / "0.parquet", rows[:300])
    written(tmp_path / "all" / "1.parquet", [row | {"passed": str(row["passed"] or "")} for row in rows[300:310]])
    written(tmp_path / "all" / "2.parquet", rows[310:])
    rows[300:310] = [row | {"passed": row["passed"] or None} for row in rows[300:310]]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for shape in ("json", "csv", "table"):
        how = ["--k-values", "1", "5", "--format", shape]
        said = steelyard(tmp_path, "passk", "--attempts", "all", *how)
        assert said.returncode == 0
        for other in ("rows.csv", "rows.jsonl"):
            assert said.stdout == steelyard(tmp_path, "passk", other, *how).stdout
        sampled = steelyard(tmp_path, "passk", "--attempts", "all", "--sample", "sample", *how)
        assert said == sampled


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["rows.csv"], "--attempts counts passes, and cannot be combined with other outcomes"),
        (["--cost", "usd"], "other outcomes, --cost or --score"),
        (["--passed", "ok"], 'no column "ok"'),
        (["--backend", "ray", "--sample", "sample"], "--sample needs --backend local"),
        (["--backend", "ray", "--ray-address", "ray://x:1"], "Ray Client is not supported"),
        (["--backend", "ray", "--ray-address", "127.0.0.1:1"], "no Ray cluster answers there"),
    ],
)
def test_what_cannot_be_counted_is_one_sentence_and_exit_code_2(tmp_path: Path, more: list[str], said: str) -> None:
    written(tmp_path / "all.parquet", random_rows(1))
    ended = steelyard(tmp_path, "passk", *more, "--attempts", "all.parquet")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def numbers(found: Any) -> Any:
    return found.decision, found.alpha


@pytest.mark.parametrize("seed", range(4))
def test_the_gate_on_parquet_decides_with_the_numbers_of_the_gate_on_runs(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    before = [row for row in random_rows(seed, cases=30) if row["passed"] is not None]
    after = [row | {"passed": row["passed"] and chance.random() > 0.2 * (seed % 2)} for row in before]
    old, new = (
        run(tmp_path / name / "one", rows, name=f"{name}-{seed}") for name, rows in (("old", before), ("new", after))
    )
    tables = [written(tmp_path / f"{name}.parquet", rows) for name, rows in (("then", before), ("now", after))]
    expected = gate(str(old), str(new))
    assert {model.verdict for model in expected.decision.models} & {"regressed", "cannot tell", "not regressed"}
    for baseline, current in (
        (str(old.parent), str(new.parent)),
        (str(old / "attempts"), str(new / "attempts")),
        (tables[0], tables[1]),
        (tables[0], str(new)),
        (str(old), tables[1]),
    ):
        found = gate(baseline, current)
        assert numbers(found) == numbers(expected), (baseline, current)
        assert found.pairing.new_cases == expected.pairing.new_cases
    one, other = (gate(f"{side}@model 1", f"{tables[1]}@model 1").decision for side in (old, tables[0]))
    assert one == other


def test_a_side_of_attempts_is_told_from_a_run_and_a_report(tmp_path: Path) -> None:
    folder = run(tmp_path / "runs" / "one", random_rows(1))
    path = written(tmp_path / "x.parquet", random_rows(1))
    assert [
        is_attempts_path(str(name)) for name in (folder, folder.parent, path, f"{tmp_path}/*.parquet", "latest")
    ] == [*(False, True, True, True, False)]
    with pytest.raises(
        InputError, match="have passes and no scores: they are compared with --on passed, and without --rule"
    ):
        gate(path, path, on="score")


def test_the_gate_on_parquet_tells_its_verdict_by_its_exit_code(tmp_path: Path) -> None:
    good = [{"task": f"c{case}", "ok": True} for case in range(20) for _ in range(30)]
    bad = [row | {"ok": row["task"] != "c3"} for row in good]
    written(tmp_path / "good" / "x.parquet", good)
    written(tmp_path / "bad.parquet", bad)
    columns = ["--case", "task", "--passed", "ok"]
    worse = steelyard(tmp_path, "gate", "--baseline", "good", "--current", "bad.parquet", *columns)
    assert (worse.returncode, worse.stderr) == (1, "")
    assert worse.stdout.startswith("REGRESSED")
    assert "c3" in worse.stdout
    assert steelyard(tmp_path, "gate", "--baseline", "good", "--current", "good/*.parquet", *columns).returncode == 0


def test_runs_that_take_no_copies_are_counted_and_copies_are_kept_where_they_may_be(tmp_path: Path) -> None:
    folder = run(tmp_path / "runs" / "one", random_rows(1))
    # what is not a folder takes no files, whoever asks
    (folder / "attempts").write_text("in the way")
    expected = sums([str(run(tmp_path / "other" / "one", random_rows(1)))])
    before = sorted(folder.iterdir())
    assert sums([str(folder)]) == expected
    assert "cannot hold copies, which all machines must find; keep them in a folder" in refused(
        str(folder), backend="ray"
    )
    assert sums([str(folder)], copies=str(tmp_path / "copies")) == expected
    assert sums([str(tmp_path / "copies")]) == expected
    assert sorted(folder.iterdir()) == before


def test_a_link_in_a_run_that_somebody_handed_over_costs_nobody_a_file(tmp_path: Path) -> None:
    folder = run(tmp_path / "runs" / "one", random_rows(1))
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    for name in ("a.txt", "deep/b.txt"):
        (tmp_path / "mine" / name).write_text("mine")
    (folder / "attempts").symlink_to(os.path.relpath(tmp_path / "mine", folder))
    assert sums([str(folder)])
    assert sorted(path.name for path in (tmp_path / "mine").rglob("*")) == ["a.txt", "b.txt", "deep"]
