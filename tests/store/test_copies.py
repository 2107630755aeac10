"""Copies of runs as Parquet: only what a question is about is opened, and a folder that cannot be written does no harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pytest

import steelyard
from steelyard import records
from steelyard.engine.results import query
from steelyard.errors import StoreError
from steelyard.records import Answer, Case, Fact, Finding, Reply, RunInfo, Verdict
from steelyard.store.fact_rows import MAX_COPY_PARTITIONS
from steelyard.store.journal import Journal, create_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RIGHT = Finding(code="x", compiled=True, tests=(records.Test(name="t", outcome="passed"),), warnings=0)
MOMENT = "2026-01-02T03:04:06Z"


def attempt(case: Case, model: str, number: int = 1) -> list[Fact]:
    key = f"{case.id} {model} {number}"
    where: dict[str, Any] = {"case": case.id, "model": model, "number": number, "at": MOMENT}
    return [
        Reply(key=key, asked="", answer=Answer(text="answer"), **where),
        Verdict(key="v", ask=key, tests=case.tests_digest, verifier="python", found=RIGHT, **where),
    ]


def run(folder: Path, models: Sequence[str] = ("m",), suites: Sequence[str] = ("",), name: str = "") -> Path:
    """A run folder with an attempt of each model at a case of each suite, without a copy."""
    cases = [Case(id=f"case {suite}", prompt="?", suite=suite) for suite in suites]
    info = RunInfo(id=name or folder.name, started_at=MOMENT, models=tuple(models))
    with create_run(folder, info, cases) as journal:
        for case in cases:
            for model in models:
                for fact in attempt(case, model):
                    journal.append(fact)
    return folder


def asked(sql: str, root: Path, **how: Any) -> list[tuple[Any, ...]]:
    with query.run_query(sql, root, **how) as answer:
        rows = list(answer.rows)
        assert answer.warnings == ()
        return rows


def test_what_a_kill_left_of_a_copy_is_taken_away_with_the_next_one(tmp_path: Path) -> None:
    folder = run(tmp_path / "one")
    left, written = folder / ".attempts.old", folder / ".attempts.new"
    for half in (left, written):
        (half / "part=0").mkdir(parents=True)
        (half / "part=0" / "0.parquet").write_bytes(b"PAR1")
    for path in (*left.rglob("*"), left):
        os.utime(path, (0, 0))
    assert asked("SELECT count(*) FROM attempts", tmp_path) == [(1,)]
    # another process may still be writing the newer one
    assert (left.exists(), written.exists()) == (False, True)


def parts(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder / "attempts")) for path in folder.glob("attempts/*/*/*"))


def spoil(folder: Path, pattern: str) -> None:
    """Make files of a copy unreadable, as long as they are."""
    for path in folder.glob(f"attempts/{pattern}"):
        path.write_bytes(b"x" * path.stat().st_size)


def test_a_run_is_copied_when_a_question_is_first_asked(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text('{"case_id": "a", "raw_response": "yes"}\n')
    case = Case(id="a", prompt="?", target="yes")
    done = steelyard.run([case], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "runs" / "one")
    assert not {"attempts", "copy.json"} & {path.name for path in done.folder.iterdir()}
    assert asked("SELECT correct FROM attempts", tmp_path / "runs") == [(True,)]
    assert {"attempts", "copy.json"} <= {path.name for path in done.folder.iterdir()}
    # a pipe in its place keeps nobody waiting
    (done.folder / "copy.json").unlink()
    os.mkfifo(done.folder / "copy.json")
    assert asked("SELECT correct FROM attempts", tmp_path / "runs") == [(True,)]


def test_each_models_facts_about_each_suite_are_a_file_whose_path_says_so(tmp_path: Path) -> None:
    folder = run(tmp_path / "one", ["a/m", "b/m"], ["s", ""])
    assert asked("SELECT count(*) FROM attempts", tmp_path) == [(4,)]
    nothing = "suite=__HIVE_DEFAULT_PARTITION__"
    assert parts(folder) == [
        f"model={model}%2Fm/{suite}/one.parquet" for model in "ab" for suite in (nothing, "suite=s")
    ]
    for path in folder.glob("attempts/*/*/*"):
        ((model, suite),) = duckdb.execute(f"SELECT DISTINCT model, suite FROM '{path}'").fetchall()
        assert f"model={model.replace('/', '%2F')}" in str(path)
        assert (f"suite={suite}" if suite else nothing) in str(path)


@pytest.mark.parametrize(
    ("where", "opened"),
    [
        ("model = 'b'", "model=b/*/*"),
        ("suite = 't'", "*/suite=t/*"),
        ("model = 'b' AND suite IN ('t', 'u')", "model=b/suite=t/*"),
        ("model LIKE 'b%' AND suite = ''", "model=b/suite=__HIVE*/*"),
    ],
)
def test_a_question_about_one_model_or_suite_opens_no_other_file(tmp_path: Path, where: str, opened: str) -> None:
    # the very first file tells what columns there are
    run(tmp_path / "first")
    runs = [run(tmp_path / name, ["a", "b", "c"], ["s", "t", ""]) for name in ("one", "two")]
    questions = [f"SELECT count(*) FROM {table} WHERE {where}" for table in ("attempts", "verdicts")]
    before = [asked(sql, tmp_path) for sql in questions]
    assert before[0][0][0] > 0
    kept = {path: path.read_bytes() for folder in runs for path in folder.glob(f"attempts/{opened}")}
    for folder in runs:
        spoil(folder, "*/*/*")
    for path, content in kept.items():
        path.write_bytes(content)
    assert [asked(sql, tmp_path) for sql in questions] == before


def test_a_copy_that_is_damaged_though_as_long_as_it_was_is_written_anew_for_the_next_question(tmp_path: Path) -> None:
    run(tmp_path / "first")
    folder = run(tmp_path / "one", ["a", "b"])
    sql = "SELECT count(*) FROM attempts"
    assert asked(sql, tmp_path) == [(3,)]
    spoil(folder, "model=b/*/*")
    with pytest.raises(StoreError, match=r"model=b/.*one\.parquet: the copy is damaged; run the query again"):
        asked(sql, tmp_path)
    assert asked(sql, tmp_path) == [(3,)]


NAMES = ["openai/GPT-5", "openai/gpt-5", "NULL", "../../x", "50% 'é'\n", "x" * 300, "X" * 300, ""]


def test_whatever_models_and_suites_are_called_a_question_finds_them(tmp_path: Path) -> None:
    folder = run(tmp_path / "one", NAMES, NAMES)
    rows = asked("SELECT model, suite, count(*) FROM attempts GROUP BY ALL", tmp_path)
    assert sorted(rows) == sorted((model, suite, 1) for model in NAMES for suite in NAMES)
    assert len(parts(folder)) == len(NAMES) ** 2
    for name in NAMES:
        quoted = name.replace("'", "''")
        for column in ("model", "suite"):
            assert asked(f"SELECT count(*) FROM attempts WHERE {column} = '{quoted}'", tmp_path) == [(len(NAMES),)]


def test_a_run_with_very_many_models_is_one_file(tmp_path: Path) -> None:
    models = [f"m{number}" for number in range(MAX_COPY_PARTITIONS + 1)]
    folder = run(tmp_path / "one", models, ["s"])
    assert asked("SELECT count(DISTINCT model), any_value(suite) FROM attempts", tmp_path) == [(len(models), "s")]
    assert len(parts(folder)) == 1
    assert asked("SELECT correct FROM attempts WHERE model = 'm7'", tmp_path) == [(True,)]


def test_a_copied_run_needs_no_new_copy_of_its_facts(tmp_path: Path) -> None:
    folder = run(tmp_path / "runs" / "one")
    asked("SELECT count(*) FROM attempts", tmp_path / "runs")
    elsewhere = tmp_path / "other" / "moved"
    elsewhere.parent.mkdir()
    # as an object store does it: other moments, other inodes
    shutil.copytree(folder, elsewhere, copy_function=shutil.copyfile)
    before = {path: path.stat().st_mtime_ns for path in elsewhere.rglob("*")}
    assert asked("SELECT correct FROM attempts", tmp_path / "other") == [(True,)]
    assert {path: path.stat().st_mtime_ns for path in elsewhere.rglob("*")} == before


def test_parts_that_a_run_no_longer_has_are_taken_away_and_so_is_the_one_file_of_earlier_times(tmp_path: Path) -> None:
    folder = run(tmp_path / "one", ["a", "b"], ["s"])
    asked("FROM runs", tmp_path)
    (folder / "attempts.parquet").write_bytes(b"PAR1")
    case = Case(id="case s", prompt="?", suite="t")
    with Journal(folder) as journal:
        journal.ask([case])
        journal.append(attempt(case, "a", 2)[0])
    assert asked("SELECT DISTINCT suite FROM attempts", tmp_path) == [("t",)]
    assert parts(folder) == ["model=a/suite=t/one.parquet", "model=b/suite=t/one.parquet"]
    assert sorted(path.name for path in folder.iterdir()) == [
        *("attempts", "attempts.jsonl", "cases.jsonl", "copy.json", "run.json")
    ]


def test_other_cases_of_the_same_length_make_a_copy_an_old_one(tmp_path: Path) -> None:
    folder = run(tmp_path / "one", suites=["s"])
    assert asked("SELECT suite FROM attempts", tmp_path) == [("s",)]
    with Journal(folder) as journal:
        journal.ask([Case(id="case s", prompt="?", suite="t")])
    assert asked("SELECT suite FROM attempts", tmp_path) == [("t",)]


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "for this once"])
def test_runs_in_a_folder_that_cannot_be_written_are_asked_all_the_same(tmp_path: Path, kept: bool) -> None:
    root, copies = tmp_path / "runs", tmp_path / "copies"
    for name in ("one", "two"):
        run(root / name, ["a", "b"])
    with read_only(root):
        before = sorted(root.rglob("*"))
        how = ["--copies", str(copies)] if kept else []
        for _ in range(2):
            assert asking("SELECT count(*) AS n FROM attempts WHERE model = 'a'", root, *how) == "n\n2\n"
        assert sorted(root.rglob("*")) == before
        if kept:
            assert sorted(path.name for path in copies.iterdir()) == ["one", "two"]
            was = {path: path.stat().st_mtime_ns for path in copies.rglob("*")}
            asking("SELECT 1 AS n", root, *how)
            assert {path: path.stat().st_mtime_ns for path in copies.rglob("*")} == was


def test_copies_of_another_version_are_used_with_a_warning_where_they_cannot_be_written_anew(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    folder = run(root / "one")
    asked("SELECT count(*) FROM attempts", root)
    aged(folder)
    with read_only(root):
        assert (
            asking("SELECT correct FROM attempts", root, said="one was scored by another version") == "correct\ntrue\n"
        )
        asking("SELECT correct FROM attempts", root, "--copies", str(tmp_path / "copies"))
        assert (tmp_path / "copies" / "one" / "copy.json").exists()
    assert asked("SELECT correct FROM attempts", root) == [(True,)]
    assert msgspec.json.decode((folder / "copy.json").read_bytes())["tool"] != "0.0"


def aged(folder: Path) -> None:
    """Make the copy one of another version of the tool."""
    copy = msgspec.json.decode((folder / "copy.json").read_bytes())
    (folder / "copy.json").write_bytes(msgspec.json.encode(copy | {"tool": "0.0"}))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"shape": 3}',
        b'{"shape":3,"tool":"","made_of":"","run":"one","parts":[{"model":"../../x","suite":"","bytes":[4]}]}',
        b'{"shape":3,"tool":"","made_of":"","run":"one","parts":[{"model":"m","suite":"","bytes":[]}]}',
        b'{"shape":3,"tool":"","made_of":"","run":"\\u0000","parts":[{"model":"m","suite":"","bytes":[1]}]}',
        b'{"x":' * 100_000,
    ],
)
def test_a_hostile_manifest_is_none(tmp_path: Path, text: bytes) -> None:
    folder = run(tmp_path / "one")
    asked("FROM runs", tmp_path)
    (folder / "copy.json").write_bytes(text)
    assert asked("SELECT correct FROM attempts", tmp_path) == [(True,)]


@contextmanager
def read_only(root: Path) -> Iterator[None]:
    """Nobody may write into these folders, or anything below."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
        if os.geteuid() == 0:
            os.chown(folder, 65534, 65534)
    try:
        yield
    finally:
        for folder in folders:
            folder.chmod(0o755)


def asking(sql: str, root: Path, *more: str, said: str = "") -> str:
    """The answer as CSV, asked by somebody with no more rights than a folder gives."""
    settings = root.parent / "settings.toml"
    settings.write_text(f'output_dir = "{root}"\n')
    script = "import sys; from steelyard.cli.main import main; sys.exit(main(sys.argv[1:]))"
    # everything is open to root, unless it gives up that right and the folder is somebody else's
    rights = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    ran = subprocess.run(
        [*rights, sys.executable, "-c", script, "query", sql, "--format", "csv", "--config", str(settings), *more],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert said in ran.stderr
    assert bool(said) == bool(ran.stderr)
    return ran.stdout


def test_a_word_of_an_earlier_or_later_version_for_trust_drops_no_verdict(tmp_path: Path) -> None:
    folder = run(tmp_path / "one", ["m", "n", "o"])
    journal = folder / "attempts.jsonl"
    words = iter(("unproved", "sworn", "isolated"))
    lines = [
        line.replace('"found":{', f'"found":{{"trust":"{next(words)}",') if '"found"' in line else line
        for line in journal.read_text().splitlines(keepends=True)
    ]
    journal.write_text("".join(lines))
    read = [fact.found for fact in Journal(folder).facts() if isinstance(fact, Verdict)]
    assert [(found.trust, found.note) for found in read] == [
        ("in-process", ""),
        ("in-process", 'its trust was given as "sworn"'),
        ("isolated", ""),
    ]
    assert asked("SELECT trust FROM attempts ORDER BY model", tmp_path) == [(found.trust,) for found in read]
