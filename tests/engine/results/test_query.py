"""Questions over many runs: the tables agree with the summary, and a question only reads."""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pytest

from steelyard import records
from steelyard.analysis.attempt_texts import AttemptText, attempt_texts
from steelyard.engine.results import query
from steelyard.errors import InputError, StoreError
from steelyard.records import Answer, Case, Cost, EvalSetFile, Fact, Failure, Finding, Reply, RunInfo, Verdict
from steelyard.store.archive import open_run_database
from steelyard.store.database import import_duckdb
from steelyard.store.journal import Journal, StoredRun, create_run
from support.studies import with_slow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parents[3]
A = Case(
    id="a", prompt="a?", language="python", tags=("easy",), metadata={"from": ["x"]}, verify=records.Verify(tests="1")
)
B = Case(
    id="b", prompt=(records.Message(role="user", content="b?"),), language="python", critical=True, group="g", suite="s"
)
PASSED, FAILED = (records.Test(name="t", outcome=outcome) for outcome in ("passed", "failed"))
RIGHT = Finding(code="x", compiled=True, tests=(PASSED,), warnings=0)
WRONG = Finding(code="x", compiled=True, tests=(PASSED, FAILED), warnings=2, reason="got 4")
FORGED = msgspec.structs.replace(RIGHT, tampered="patched unittest", rechecked=3, disagreed=1)
FINDINGS = [RIGHT, WRONG, FORGED, Finding(label="no code"), Finding(passed=True), Finding(score=0.25)]


def info(name: str = "one", **fields: Any) -> RunInfo:
    return RunInfo(**{"id": name, "started_at": "2026-01-02T03:04:05Z", "models": ("m",), **fields})


def reply(case: Case = A, number: int = 1, key: str = "k", model: str = "m", tier: str = "", **answer: Any) -> Reply:
    return Reply(
        key=key,
        at="2026-01-02T03:04:06Z",
        case=case.id,
        model=model,
        tier=tier,
        number=number,
        asked="",
        answer=Answer(**{"text": "answer", **answer}),
    )


def verdict(
    found: Finding, case: Case = A, number: int = 1, ask: str = "k", model: str = "m", tier: str = "", tests: str = ""
) -> Verdict:
    return Verdict(
        key="v",
        at="2026-01-02T03:04:07Z",
        case=case.id,
        model=model,
        tier=tier,
        number=number,
        ask=ask,
        tests=tests or case.tests_digest,
        verifier="python",
        found=found,
    )


def failure(
    stage: records.FailureStage, case: Case = A, number: int = 1, key: str = "k", model: str = "m", tier: str = ""
) -> Failure:
    return Failure(
        key=key,
        at="2026-01-02T03:04:08Z",
        case=case.id,
        model=model,
        tier=tier,
        number=number,
        stage=stage,
        message="5",
    )


def run(folder: Path, facts: Iterable[Fact] = (), cases: Sequence[Case] = (A, B), **fields: Any) -> Path:
    """A run folder with these facts, without a copy."""
    with create_run(folder, info(folder.name, **fields), cases) as journal:
        for fact in facts:
            journal.append(fact)
    return folder


def asked(sql: str, root: Path) -> list[tuple[Any, ...]]:
    """The answer, when nothing had to be left out."""
    with query.run_query(sql, root) as answer:
        rows = list(answer.rows)
        assert answer.warnings == ()
        return rows


def random_facts(chance: random.Random) -> list[Fact]:
    """A journal of resumed, failed, asked again and verified again attempts; keys are few, so that they meet."""
    facts: list[Fact] = []
    for _ in range(chance.randrange(60)):
        where: dict[str, Any] = {
            "case": chance.choice([A, B, Case(id="gone", prompt="?")]),
            "number": chance.choice([1, 1, 2]),
            "model": chance.choice(["m", "n"]),
            "tier": chance.choice(["", "", "t"]),
        }
        key = chance.choice(["k", "k", "l", "m"])
        kind = chance.random()
        if kind < 0.4:
            facts.append(reply(key=key, text=str(len(facts)), **where))
        elif kind < 0.75:
            found, tests = chance.choice(FINDINGS), chance.choice(["", "", "stale"])
            facts.append(verdict(found, ask=key, tests=tests, **where))
        else:
            facts.append(failure(chance.choice(["ask", "verify"]), key=key, **where))
    return facts


def row(run: str, tried: AttemptText) -> tuple[Any, ...]:
    return (
        *(run, tried.case.id, tried.model, tried.tier, tried.number),
        tried.reply.answer.text if tried.reply else None,
        *(tried.correct, tried.score),
        *((tried.failure.stage, tried.failure.message) if tried.failure else (None, None)),
    )


def test_an_attempt_is_what_the_summary_says_it_is_whatever_happened_to_it(tmp_path: Path) -> None:
    chance = random.Random(5)
    names = [str(number) for number in range(25)]
    for name in names:
        run(tmp_path / name, random_facts(chance), rule=chance.choice(["code", "code-structured"]))
    columns = 'run, "case", model, tier, number, reply, correct, score, failure_stage, failure'
    rows = asked(f"SELECT {columns} FROM attempts", tmp_path)
    expected = []
    for name in names:
        stored = StoredRun(tmp_path / name)
        expected += [row(name, tried) for tried in attempt_texts(stored.info, stored.cases, stored.facts())]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)
    assert {row[6] for row in rows} == {True, False, None}
    assert sum(row[8] is not None for row in rows) > 40


def test_everything_about_an_attempt_is_in_its_row(tmp_path: Path) -> None:
    said = reply(
        text="naïve",
        finish="length",
        input_tokens=10,
        output_tokens=20,
        cached_tokens=5,
        reasoning_tokens=7,
        cost=Cost(usd=0.5, source="list"),
        latency=1.5,
    )
    flagged = msgspec.structs.replace(FORGED, flag="only beside its tests", watched=True, controls=2)
    found = msgspec.structs.replace(
        flagged, tests=WRONG.tests, trust="in-process", isolation="full", label="x", reason="y"
    )
    run(tmp_path / "one", [said, verdict(found)])
    with query.run_query("FROM attempts", tmp_path) as answer:
        (row,) = answer.rows
        values = dict(zip(answer.columns, row, strict=True))
    assert str(values.pop("at")) == "2026-01-02 03:04:06"
    assert values == (
        {
            "run": "one",
            "case": "a",
            "suite": "",
            "model": "m",
            "tier": "",
            "number": 1,
            "reply": "naïve",
            "finish": "length",
        }
        | {"input_tokens": 10, "output_tokens": 20, "cached_tokens": 5, "reasoning_tokens": 7, "cost_usd": 0.5}
        | {"latency": 1.5, "correct": False, "score": 0.0, "compiled": True, "tests_passed": 1, "tests_failed": 1}
        | {"warnings": 0, "label": "x", "reason": "y", "trust": "in-process", "isolation": "full"}
        | {
            "tampered": "patched unittest",
            "rechecked": 3,
            "disagreed": 1,
            "graded": False,
            "flag": "only beside its tests",
            "watched": True,
            "controls": 2,
            "failure_stage": None,
            "failure": None,
        }
    )


def test_a_failure_is_missing_data_in_the_tables_too(tmp_path: Path) -> None:
    run(tmp_path / "one", [reply(), verdict(RIGHT), failure("ask", number=2)])
    assert asked("SELECT avg(correct::int), count(*), count(failure) FROM attempts", tmp_path) == [(1.0, 2, 1)]


def test_verdicts_and_failures_are_all_there_and_say_which_count(tmp_path: Path) -> None:
    run(tmp_path / "one", [failure("ask"), reply(), verdict(WRONG, tests="old"), verdict(WRONG), verdict(RIGHT)])
    verdicts = asked("SELECT counts, correct, score FROM verdicts", tmp_path)
    assert [row[:2] for row in verdicts] == [(False, None), (False, False), (True, True)]
    assert verdicts[0][2] is None
    assert asked("SELECT counts, stage, message FROM failures", tmp_path) == [(False, "ask", "5")]


def test_runs_and_cases_are_tables(tmp_path: Path) -> None:
    files = (EvalSetFile(path="e.toml", digest="d"),)
    run(tmp_path / "one", seed=7, samples=2, parameters={"temperature": 0.5}, eval_sets=files, names=("p/m",))
    run(tmp_path / "it's [1]*?", ended_at="2026-01-02T04:04:05Z")
    rows = asked("SELECT id, year(started_at), ended_at IS NULL, models, parameters, eval_sets FROM runs", tmp_path)
    assert sorted(rows) == [
        ("it's [1]*?", 2026, False, ["m"], {}, []),
        ("one", 2026, True, ["p/m"], {"temperature": 0.5}, [{"path": "e.toml", "digest": "d"}]),
    ]
    assert asked("SELECT DISTINCT folder FROM runs WHERE seed = 7", tmp_path) == [(str(tmp_path / "one"),)]
    cases = asked("SELECT * FROM cases WHERE run = 'one' ORDER BY id", tmp_path)
    assert cases == [
        ("one", "a", "", "python", "", ["easy"], "", 1.0, False, "a?", {"from": ["x"]}),
        ("one", "b", "", "python", "s", [], "g", 1.0, True, '[{"role":"user","content":"b?"}]', {}),
    ]
    assert asked("SELECT count(*) FROM cases", tmp_path) == [(4,)]


def test_a_run_folder_can_be_asked_alone(tmp_path: Path) -> None:
    run(tmp_path / "one", [reply(), verdict(RIGHT)])
    run(tmp_path / "two")
    assert asked("SELECT id FROM runs", tmp_path / "one") == [("one",)]


def test_links_to_runs_are_followed_and_other_links_are_not(tmp_path: Path) -> None:
    run(tmp_path / "elsewhere" / "one", [reply(), verdict(RIGHT)])
    (tmp_path / "elsewhere" / "secret.csv").write_text("secret\n1\n")
    root = tmp_path / "runs"
    root.mkdir()
    (root / "linked").symlink_to(tmp_path / "elsewhere" / "one")
    (root / "secret.csv").symlink_to(tmp_path / "elsewhere" / "secret.csv")
    (tmp_path / "too").symlink_to(root)
    sql = (
        "SELECT folder, correct, prompt FROM attempts JOIN runs ON run = runs.id JOIN cases ON cases.id = attempts.case"
    )
    for name in (root, tmp_path / "too", tmp_path / "elsewhere" / ".." / "runs"):
        assert asked(sql, name) == [(str(name / "linked"), True, "a?")]
        query.write_query_result(sql, name / "answer.parquet", name)
        with pytest.raises(InputError, match="Cannot access file"):
            asked(f"FROM '{name}/secret.csv'", name)


def test_a_copy_that_is_not_of_the_present_run_is_written_anew(tmp_path: Path) -> None:
    folder = run(tmp_path / "one", [reply(), verdict(WRONG)])
    copy = folder / "attempts" / "model=m" / "suite=__HIVE_DEFAULT_PARTITION__" / "one.parquet"
    score = "SELECT correct, score FROM attempts"

    def rows() -> list[tuple[Any, ...]]:
        found = asked(score, tmp_path)
        stored = StoredRun(folder)
        assert found == [(one.correct, one.score) for one in attempt_texts(stored.info, stored.cases, stored.facts())]
        return found

    first = rows()
    whole = copy.read_bytes()
    changed = copy.stat().st_mtime_ns
    assert rows() == first
    assert copy.stat().st_mtime_ns == changed
    old = tmp_path / "old.parquet"
    duckdb.execute(f"COPY (SELECT 'one' AS run) TO '{old}' (FORMAT parquet, KV_METADATA {{made_of: '[1]'}})")
    for damaged in (b"", b"PAR1", whole[:-10], whole[: len(whole) // 2], old.read_bytes()):
        copy.write_bytes(damaged)
        assert rows() == first
    copy.unlink()
    assert rows() == first
    with Journal(folder) as journal:
        journal.append(verdict(RIGHT))
    assert rows() == [(True, 1.0)]
    with Journal(folder) as journal:
        journal.describe(info("one", rule="code-structured"))
        journal.append(verdict(WRONG))
    structured = rows()
    assert structured != first
    with Journal(folder) as journal:
        journal.ask([msgspec.structs.replace(A, target="other")])
    assert rows() == [(None, None)]


def test_a_folder_that_takes_no_copy_is_asked_all_the_same(tmp_path: Path) -> None:
    folder = run(tmp_path / "one", [reply(), verdict(RIGHT)])
    (folder / "attempts").write_text("in the way")
    before = set(folder.iterdir())
    assert asked("SELECT correct FROM attempts", tmp_path) == [(True,)]
    assert set(folder.iterdir()) == before


def test_a_damaged_run_is_left_out_with_a_warning_and_the_others_answer(tmp_path: Path) -> None:
    run(tmp_path / "good", [reply(), verdict(RIGHT)])
    (run(tmp_path / "no-cases") / "cases.jsonl").unlink()
    (run(tmp_path / "bad-cases") / "cases.jsonl").write_text("{\n")
    (run(tmp_path / "bad-info") / "run.json").write_text("{")
    run(tmp_path / "rule", rule="gone")
    run(tmp_path / "twin", id="good")
    (tmp_path / "empty").mkdir()
    with query.run_query("SELECT run, correct FROM attempts", tmp_path) as answer:
        assert list(answer.rows) == [("good", True)]
    said = "\n".join(answer.warnings).replace(f"{tmp_path}/", "")
    assert len(answer.warnings) == 5
    assert "left out: bad-cases/cases.jsonl:1: not a case" in said
    assert "left out: bad-info/run.json: not the description of a run" in said
    assert "left out: no-cases/cases.jsonl: No such file or directory" in said
    assert 'unknown rule "gone"' in said
    assert "twin: left out, because it is the same run as" in said


def test_a_folder_without_runs_says_how_to_start_one(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="no runs here yet; start one with: steelyard run"):
            asked("FROM runs", root)
    (run(tmp_path / "bad") / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"left out: .*run\.json: not the description of a run"):
        asked("FROM runs", tmp_path)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"; write "case", "group" and "at" in quotes; the tables'),
        ("SELECT case FROM attempts", 'write "case", "group" and "at" in quotes'),
        ("SELECT at FROM attempts", 'write "case", "group" and "at" in quotes'),
        ("SELECT nope FROM attempts", 'Referenced column "nope" not found'),
        ("FROM nowhere", "Table with name nowhere does not exist!"),
        ("SELECT error('\x1b[31m\nred')", r"Error: \[31m red; the tables"),
        ("SELECT reply::int FROM attempts", "Could not convert string 'answer' to INT32.*; the tables are"),
        ("", "a question is one SELECT that changes nothing; the tables are runs"),
        ("-- nothing", "a question is one SELECT"),
        ("SELECT 1; SELECT 2", "a question is one SELECT"),
        ("SELECT '\udcff'", "the question is not UTF-8"),
        ("SELECT 1 /*", "unterminated"),
        ("SELECT 1)", "syntax error"),
    ],
)
def test_a_question_that_cannot_be_answered_gets_one_sentence(tmp_path: Path, sql: str, said: str) -> None:
    run(tmp_path / "one", [reply(), verdict(RIGHT)])
    with pytest.raises(InputError, match=said) as caught:
        asked(sql, tmp_path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "sql",
    [
        "COPY runs TO '{root}/stolen.csv'",
        "COPY (PIVOT runs ON id USING count(*)) TO '{root}/stolen.csv'",
        "WITH x AS (COPY (SELECT 1) TO '{root}/stolen.csv') SELECT * FROM x",
        "EXPLAIN ANALYZE COPY runs TO '{root}/stolen.csv'",
        "EXPORT DATABASE '{root}/stolen.csv'",
        "ATTACH '{root}/stolen.csv' AS other",
        "SELECT 1) TO '{root}/stolen.csv'; --",
        "SELECT 1\n); COPY (SELECT 1) TO '{root}/stolen.csv'; SELECT (1",
        "FROM query('COPY (SELECT 1) TO ''{root}/stolen.csv''')",
        "SET threads = 1",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "LOAD httpfs",
        "DROP VIEW attempts",
        "FROM read_csv('{outside}')",
        "FROM '{outside}'",
        "FROM read_text('{root}/../secret.csv')",
        "FROM read_text('{root}-other/secret.csv')",
        "FROM glob('{outside}')",
        "FROM read_csv('https://example.com/x.csv')",
        "FROM duckdb_secrets()",
    ],
)
def test_a_question_reads_nothing_but_the_runs_and_writes_nothing(tmp_path: Path, sql: str) -> None:
    root, outside = tmp_path / "runs", tmp_path / "secret.csv"
    run(root / "one", [reply(), verdict(RIGHT)])
    outside.write_text("secret\n1\n")
    (tmp_path / "runs-other").mkdir()
    (tmp_path / "runs-other" / "secret.csv").write_text("secret\n1\n")
    asked("FROM attempts", root)
    before = sorted(tmp_path.rglob("*"))
    for attempt in (
        lambda text: asked(text, root),
        lambda text: query.write_query_result(text, tmp_path / "out.parquet", root),
        lambda text: query.write_query_result(text, tmp_path / "out.json", root),
    ):
        with pytest.raises(InputError):
            attempt(sql.format(root=root, outside=outside))
    assert sorted(tmp_path.rglob("*")) == before


def test_comments_and_semicolons_at_the_end_do_no_harm(tmp_path: Path) -> None:
    run(tmp_path / "one")
    for end in ("", ";", " ; -- é", ";; /* ; */", " -- x", "\n;\n"):
        assert asked(f"SELECT 'é;' AS x{end}", tmp_path) == [("é;",)]
    assert asked("SHOW TABLES", tmp_path) == [
        (name,) for name in ("attempts", "cases", "failures", "runs", "turns", "verdicts")
    ]


def test_the_order_that_a_question_asks_for_is_kept(tmp_path: Path) -> None:
    run(tmp_path / "one")
    rows = asked("SELECT i, hash(i) AS h FROM range(100_000) AS t(i) ORDER BY h", tmp_path)
    assert rows == sorted(rows, key=lambda row: row[1])
    assert asked("FROM range(5) ORDER BY 1 DESC LIMIT 2", tmp_path) == [(4,), (3,)]


def test_an_answer_is_read_as_it_is_wanted_however_long_it_is(tmp_path: Path) -> None:
    run(tmp_path / "one")
    with query.run_query("FROM range(1_000_000_000_000)", tmp_path) as answer:
        assert list(islice(answer.rows, 3)) == [(0,), (1,), (2,)]
    with query.run_query("FROM range(1_000_000_000_000)", tmp_path) as answer:
        rows, more = answer.shown()
        assert (len(rows), more) == (query.MAX_SHOWN_QUERY_ROWS, True)


ODD = """SELECT 1 AS i, 0.25 AS d, 'nan'::DOUBLE AS n, '-inf'::DOUBLE AS m, NULL AS nothing, true AS b, '=1+1' AS formula,
  'two' || chr(10) || 'lines' AS t, [1, NULL] AS l, {'x': 'nan'::DOUBLE, 'y': DATE '2026-01-02'} AS s,
  '{"a": [1]}'::JSON AS j, TIMESTAMP '2026-01-02 03:04:05' AS at, chr(27) || '[2J' AS control, 1::HUGEINT << 70 AS big"""


def test_csv_is_safe_to_open_and_nested_values_are_json(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "one")
    query.write_query_result(ODD, tmp_path / "odd.csv", tmp_path / "runs")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "odd.csv").read_text("utf-8"), newline=""))
    assert row == (
        {"i": "1", "d": "0.25", "n": "", "m": "", "nothing": "", "b": "true", "formula": "'=1+1"}
        | {"t": "two\nlines", "l": "[1, null]", "s": '{"x": null, "y": "2026-01-02"}', "j": '{"a": [1]}'}
        | {"at": "2026-01-02T03:04:05", "control": "⟨U+001B⟩[2J", "big": "1180591620717411303424"}
    )


def test_json_has_null_for_what_is_no_number(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "one")
    query.write_query_result(ODD, tmp_path / "odd.json", tmp_path / "runs")
    text = (tmp_path / "odd.json").read_text("utf-8")
    assert "\x1b" not in text
    (row,) = json.loads(text)
    assert row.pop("big") == 1 << 70
    assert row == (
        {"i": 1, "d": 0.25, "n": None, "m": None, "nothing": None, "b": True, "formula": "=1+1", "t": "two\nlines"}
        | {"l": [1, None], "s": {"x": None, "y": "2026-01-02"}, "j": {"a": [1]}, "at": "2026-01-02T03:04:05"}
        | {"control": "\x1b[2J"}
    )


def test_the_same_answer_is_written_in_every_format_and_sent_as_it_is_written(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    run(root / "one", [fact for n in range(1, 2500) for fact in (reply(number=n), verdict(RIGHT, number=n))])
    sql = "SELECT number, correct FROM attempts ORDER BY number"
    expected = [(number, True) for number in range(1, 2500)]
    for kind in query.QUERY_FORMATS:
        path = tmp_path / f"out.{kind}"
        assert query.write_query_result(sql, path, root) == ()
        assert duckdb.execute(f"SELECT number, correct FROM '{path}'").fetchall() == expected
        sent = io.BytesIO()
        query.stream_query_result(sql, kind, sent, root)
        if kind != "parquet":
            assert sent.getvalue() == path.read_bytes()
        assert sent.getvalue()[:4] == path.read_bytes()[:4]


def test_no_rows_still_have_a_header(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    run(root / "one")
    sql = "SELECT run, stage FROM failures"
    with query.run_query(sql, root) as answer:
        assert (answer.columns, answer.shown()) == (("run", "stage"), ([], False))
    query.write_query_result(sql, tmp_path / "out.csv", root)
    query.write_query_result(sql, tmp_path / "out.json", root)
    query.write_query_result(sql, tmp_path / "out.parquet", root)
    assert (tmp_path / "out.csv").read_text() == "run,stage\n"
    assert json.loads((tmp_path / "out.json").read_text()) == []
    described = duckdb.execute(f"DESCRIBE FROM '{tmp_path}/out.parquet'").fetchall()
    assert [column[0] for column in described] == ["run", "stage"]


@pytest.mark.parametrize("kind", query.QUERY_FORMATS)
def test_a_file_is_written_whole_or_left_as_it_was(tmp_path: Path, kind: str) -> None:
    root, path = tmp_path / "runs", tmp_path / "out" / f"answer.{kind}"
    run(root / "one")
    with pytest.raises(StoreError, match=r"answer\.\w+: No such file or directory"):
        query.write_query_result("FROM runs", path, root)
    path.parent.mkdir()
    path.write_text("before")
    with pytest.raises(InputError, match="Could not convert"):
        query.write_query_result("SELECT if(i < 300_000, '1', 'x')::int FROM range(400_000) AS t(i)", path, root)
    assert path.read_text() == "before"
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(InputError, match=r"out\.xls: answers are written as \.csv, \.json, \.parquet"):
        query.write_query_result("FROM runs", "out.xls", root)


ENDLESS = """
import sys, threading, time
import duckdb
from steelyard.engine.results import query

def report():
    # opening the database takes a fraction of this, so by then the query itself runs, however busy the machine is
    while time.process_time() < busy_at:
        time.sleep(0.01)
    print("asking", flush=True)

busy_at = time.process_time() + 2
threading.Thread(target=report, daemon=True).start()
try:
    query.write_query_result("SELECT i FROM range(1_000_000_000_000) AS t(i) WHERE hash(i) = 1", sys.argv[2], sys.argv[1])
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.parametrize("kind", with_slow(query.QUERY_FORMATS[:1], query.QUERY_FORMATS[1:]))
def test_a_user_who_will_not_wait_ends_a_question(tmp_path: Path, kind: str) -> None:
    run(tmp_path / "runs" / "one")
    asked("FROM runs", tmp_path / "runs")
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / "runs"), str(tmp_path / f"out.{kind}")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
        process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=600)[0] == "stopped\n"
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == [tmp_path / "runs"]


def test_a_question_larger_than_its_memory_goes_on_on_disk(tmp_path: Path) -> None:
    run(tmp_path / "one")
    with open_run_database(tmp_path, query.fact_scores) as archive:
        answer = archive.ask("SELECT count(*) FROM (FROM range(5_000_000) AS t(i) ORDER BY hash(i) LIMIT 4_000_000)")
        assert list(answer.rows) == [(4_000_000,)]


def test_cases_of_several_runs_are_joined(tmp_path: Path) -> None:
    for number in range(6):
        run(tmp_path / str(number), [reply(), verdict(RIGHT)], id=f"run-{number}")
    sql = 'SELECT c.prompt, count(*) FROM attempts a JOIN cases c ON a.run = c.run AND a."case" = c.id GROUP BY ALL'
    assert asked(sql, tmp_path) == [(A.prompt, 6)]


@functools.cache
def database() -> Any:
    return import_duckdb().connect()


def test_every_column_of_every_table_is_on_the_page(tmp_path: Path) -> None:
    run(tmp_path / "one")
    page = (ROOT / "docs" / "query.md").read_text("utf-8")
    for (table,) in asked("SHOW TABLES", tmp_path):
        section = page.partition(f"### `{table}`")[2].partition("\n#")[0]
        columns = [column for column, *_ in asked(f"DESCRIBE {table}", tmp_path)]
        assert [column for column in columns if f"`{column}`" not in section] == []


def test_moments_with_a_time_zone_are_told_in_utc_wherever_we_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    run(tmp_path / "one", [reply(), verdict(RIGHT)])
    told = "2026-01-02 03:04:06+00"
    sql = f"""SELECT TIMESTAMPTZ '{told}' AS one, [TIMESTAMPTZ '{told}'] AS "so ""many", "at" = TIMESTAMPTZ '{told}' FROM attempts"""
    moment = datetime(2026, 1, 2, 3, 4, 6)
    assert asked(sql, tmp_path) == [(moment, [moment], True)]
    assert asked("SELECT now() > TIMESTAMP '2026-01-01'", tmp_path) == [(True,)]


@pytest.mark.parametrize("kind", query.QUERY_FORMATS)
def test_a_full_disk_is_no_room_whatever_the_format(tmp_path: Path, kind: str) -> None:
    run(tmp_path / "runs" / "one")
    asked("FROM runs", tmp_path / "runs")
    sql = "SELECT sha256(i::VARCHAR) FROM range(100_000) AS t(i)"
    script = f"from steelyard.engine.results import query; query.write_query_result({sql!r}, 'out.{kind}', 'runs')"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    ran = subprocess.run(
        [sys.executable, "-B", "-c", script], preexec_fn=limited, cwd=tmp_path, capture_output=True, text=True
    )
    # Parquet is written by the database, which says only in its own words what went wrong
    error, _, message = ran.stderr.splitlines()[-1].partition(": ")
    assert error == ("steelyard.errors.DiskError" if kind == "parquet" else "steelyard.errors.DiskFullError")
    assert "free some space" in message
    assert list(tmp_path.iterdir()) == [tmp_path / "runs"]


def test_a_name_that_no_file_can_have_is_one_sentence(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "one")
    with pytest.raises(StoreError, match="File name too long"):
        query.write_query_result("FROM runs", tmp_path / ("x" * 300 + ".csv"), tmp_path / "runs")
    with pytest.raises(StoreError, match="xxx: cannot be read: File name too long"):
        asked("FROM runs", tmp_path / ("x" * 300))


def test_names_in_another_encoding_are_written_to_where_they_can_be(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "one")
    strange = os.fsdecode(b"\xff")
    query.write_query_result("SELECT 1 AS one", tmp_path / f"{strange}.csv", tmp_path / "runs")
    assert (tmp_path / f"{strange}.csv").read_text() == "one\n1\n"
    with pytest.raises(StoreError, match=r"\\udcff\.parquet.*: a name that is not UTF-8"):
        query.write_query_result("SELECT 1 AS one", tmp_path / f"{strange}.parquet", tmp_path / "runs")
    run(tmp_path / "runs" / strange, id="other")
    with query.run_query("SELECT id FROM runs", tmp_path / "runs") as answer:
        assert list(answer.rows) == [("one",)]
        assert len(answer.warnings) == 1
        assert "a name that is not UTF-8, which the database cannot open; rename it" in answer.warnings[0]


def test_a_folder_that_may_not_be_looked_into_is_left_out_with_a_warning(tmp_path: Path) -> None:
    run(tmp_path / "one")
    closed = run(tmp_path / "two")
    closed.chmod(0)
    asking = [sys.executable, "-c", "import sys; from steelyard.cli.main import main; sys.exit(main(sys.argv[1:]))"]
    if os.geteuid() == 0:
        # everything is open to root, unless it gives up that right and the folder is somebody else's
        os.chown(closed, 65534, 65534)
        asking = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *asking]
    settings = tmp_path / "settings.toml"
    settings.write_text(f'output_dir = "{tmp_path}"\n')
    ran = subprocess.run(
        [*asking, "query", "SELECT id FROM runs", "--format", "csv", "--config", str(settings)],
        capture_output=True,
        text=True,
    )
    assert ran.stdout == "id\none\n", ran.stderr
    assert f"warning: {closed}: left out, because it cannot be read: Permission denied" in ran.stderr
