"""What a question is about: read off its text, and never less than it can use."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steelyard.engine.results.headline_cache import run_headlines
from steelyard.engine.results.query import fact_scores
from steelyard.records import Answer, Case, Reply, RunInfo
from steelyard.store import run_index
from steelyard.store.archive import open_run_database
from steelyard.store.database import import_duckdb
from steelyard.store.journal import Journal, create_run
from steelyard.store.question_scope import question_scope
from steelyard.store.run_index import RUN_INDEX_FILE, current_runs, unpacked_parts

DATABASE = import_duckdb().connect()


def named(values: list[frozenset[str] | None]) -> str:
    """The values that are named in any of these places."""
    if not values:
        return "none"
    return "all" if None in values else " ".join(sorted({value for each in values for value in each or ()}))


@pytest.mark.parametrize(
    ("sql", "facts", "cases"),
    [
        ("SELECT count(*) FROM runs", "none", "none"),
        ("SELECT 1", "none", "none"),
        ("FROM attempts WHERE run = 'a' AND model = 'm'", "a", "none"),
        ("SELECT a.* FROM Attempts AS a WHERE 'a' = A.run AND run IN ('a', 'b')", "a", "none"),
        ("FROM verdicts WHERE run IN ('a', 'b')", "a b", "none"),
        ("FROM failures WHERE (run = 'a' AND number = 1) OR run = 'b'", "a b", "none"),
        ("FROM attempts WHERE run = 'a' UNION ALL FROM attempts WHERE run = 'b'", "a b", "none"),
        ("WITH x AS (FROM attempts WHERE run = 'a') SELECT * FROM x, runs", "a", "none"),
        ("FROM cases WHERE run = 'a'", "none", "a"),
        ("FROM attempts WHERE run = 'a' AND \"case\" IN (SELECT id FROM cases)", "a", "all"),
        # what follows is about more than one run, or is written in a way that we do not follow
        ("FROM attempts", "all", "none"),
        ("FROM attempts WHERE run <> 'a'", "all", "none"),
        ("FROM attempts WHERE NOT (run = 'a')", "all", "none"),
        ("FROM attempts WHERE run = 'a' OR number = 1", "all", "none"),
        ("FROM attempts WHERE run = model", "all", "none"),
        ("FROM attempts WHERE run = 'a' COLLATE NOCASE", "all", "none"),
        ("FROM attempts WHERE 'a' IN (run, model)", "all", "none"),
        ("SELECT upper(run) AS run FROM attempts WHERE run = 'a'", "all", "none"),
        ("SELECT * FROM attempts AS t(model, run) WHERE run = 'a'", "all", "none"),
        ("SELECT count(*), (SELECT count(*) FROM attempts) FROM attempts WHERE run = 'a'", "all", "none"),
        ("FROM attempts JOIN runs ON run = id WHERE run = 'a'", "all", "none"),
        ("SELECT * FROM attempts TABLESAMPLE 10 ROWS WHERE run = 'a'", "all", "none"),
        ("FROM stored.facts WHERE run = 'a'", "all", "all"),
        ("SHOW TABLES", "all", "all"),
        ("PIVOT attempts ON model USING avg(score)", "all", "all"),
        ("SELECT", "all", "all"),
    ],
)
def test_a_question_is_about_the_tables_and_runs_that_it_names(sql: str, facts: str, cases: str) -> None:
    scope = question_scope(DATABASE, sql)
    assert [named([limits.runs for limits in uses]) for uses in (scope.facts, scope.cases)] == [facts, cases]


@pytest.mark.parametrize(
    ("sql", "models", "suites"),
    [
        ("FROM attempts WHERE model = 'm' AND suite IN ('s', 't')", "m", "s t"),
        ("FROM turns t WHERE t.model IN ('m', 'n') AND number > 1", "m n", "all"),
        ("FROM failures WHERE (model = 'm' AND suite = 's') OR (suite = 't' AND model = 'n')", "m n", "s t"),
        ("FROM attempts WHERE model = 'm' UNION ALL FROM verdicts WHERE model = 'n'", "m n", "all"),
        ("FROM attempts WHERE suite = ''", "all", ""),
        # what follows is about more than it names, or is written in a way that we do not follow
        ("FROM attempts WHERE model = 'm' OR suite = 's'", "all", "all"),
        ("FROM attempts WHERE model LIKE 'm%' AND lower(suite) = 's'", "all", "all"),
        ("FROM attempts WHERE model = 'M' COLLATE NOCASE", "all", "all"),
        ("SELECT 'm' AS model FROM attempts WHERE model = 'm' AND suite = 's'", "all", "s"),
        ("FROM attempts WHERE model = 'm' UNION ALL FROM verdicts", "all", "all"),
        ("SELECT count(*) FILTER (model = 'm') FROM attempts", "all", "all"),
        ("FROM attempts a LEFT JOIN runs ON a.model = 'm' AND run = id", "all", "all"),
        ("SELECT * FROM attempts AS t(suite, x, model) WHERE model = 'm'", "all", "all"),
    ],
)
def test_a_question_is_about_the_models_and_suites_that_it_names(sql: str, models: str, suites: str) -> None:
    scope = question_scope(DATABASE, sql)
    uses = [named([limits[place] for limits in scope.facts]) for place in (1, 2)]
    assert uses == [models, suites]


def test_a_question_needs_a_run_for_one_place_where_it_uses_facts_and_not_for_parts_of_two() -> None:
    scope = question_scope(
        DATABASE, "FROM attempts WHERE model = 'm' AND suite = 's' UNION FROM attempts WHERE run = 'r'"
    )
    assert scope.needs_facts_of("q", [("m", "t"), ("m", "s")])
    assert not scope.needs_facts_of("q", [("m", "t"), ("n", "s")])
    assert scope.needs_facts_of("r", [("n", "t")])
    # facts about several models or suites, and facts that are not known
    assert scope.needs_facts_of("q", [(None, "s")])
    assert scope.needs_facts_of("q", [("m", None)])
    assert scope.needs_facts_of("q")
    assert not scope.needs_facts_of("q", [])


CASES = (Case(id="plain", prompt="?"), Case(id="hard", prompt="?", suite="s"))


def reply(case: str, model: str) -> Reply:
    key = f"{case} {model}"
    return Reply(key=key, at="2026-01-02T03:04:06Z", case=case, model=model, number=1, asked="", answer=Answer(text=""))


def settle(root: Path) -> None:
    """Make all runs look as if they were written some time ago."""
    some_time_ago = time.time() - 3600
    for folder in root.glob("r*"):
        for path in (*folder.iterdir(), folder):
            os.utime(path, (some_time_ago, some_time_ago))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs with copies and an index that has seen a question about all of them."""
    monkeypatch.setattr(run_index, "MIN_INDEXED_RUNS", 1)
    facts = {
        "r0": [("plain", "a")],
        "r1": [("plain", "b"), ("hard", "b")],
        "r2": [("plain", "a"), ("hard", "b")],
        # its description does not know this model
        "r3": [("hard", "c")],
    }
    for name, attempts in facts.items():
        with create_run(
            tmp_path / name, RunInfo(id=name, started_at="2026-01-02T03:04:05Z", models=("a",)), CASES
        ) as run:
            for case, model in attempts:
                run.append(reply(case, model))
    told("count(*)", "true", tmp_path)
    settle(tmp_path)
    told("count(*)", "true", tmp_path)
    assert all(unpacked_parts(run.fact_parts) for run in current_runs(tmp_path).values())
    return tmp_path


def told(what: str, condition: str, root: Path) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The answer to a question about attempts, and the runs that were opened for it."""
    sql = f"SELECT {what} FROM attempts WHERE {condition}"
    with open_run_database(root, fact_scores, question=sql) as archive:
        return sorted(archive.ask(sql).rows), sorted(run.info.id for run in archive._runs)


CONDITIONS = {
    "model = 'a'": ["r0", "r2"],
    "model = 'b' AND suite = 's'": ["r1", "r2"],
    "model = 'a' AND suite = 's'": ["r0"],
    "model IN ('b', 'c') AND suite = ''": ["r1"],
    "model = 'c'": ["r3"],
    "run = 'r2' AND model = 'c'": ["r0"],
    "model <> 'a'": ["r0", "r1", "r2", "r3"],
}


def test_a_question_opens_the_runs_with_its_models_and_suites_and_answers_the_same(root: Path) -> None:
    columns = 'run, "case", suite, model'
    indexed = {condition: told(columns, condition, root) for condition in CONDITIONS}
    # where nothing fits, the columns come from any run
    assert {condition: opened for condition, (_, opened) in indexed.items()} == CONDITIONS
    # a list that adds its lines keeps what questions have learned
    run_headlines(root)
    assert told(columns, "model = 'c'", root)[1] == ["r3"]
    for condition, (rows, _) in indexed.items():
        (root / RUN_INDEX_FILE).unlink(missing_ok=True)
        assert told(columns, condition, root)[0] == rows
    assert [row[0] for row in indexed["model = 'c'"][0]] == ["r3"]


def test_a_model_that_a_run_has_since_the_index_was_written_is_found(root: Path) -> None:
    with Journal(root / "r0") as journal:
        journal.append(reply("hard", "c"))
    assert told("run", "model = 'c'", root) == ([("r0",), ("r3",)], ["r0", "r3"])
    settle(root)
    assert told("run", "model = 'c'", root)[0] == [("r0",), ("r3",)]
    assert told("run", "model = 'c'", root) == ([("r0",), ("r3",)], ["r0", "r3"])


@pytest.mark.parametrize("damage", [b"", b"\xc1", b"\x91\x91\x01"])
def test_models_of_the_index_that_cannot_be_read_are_read_from_the_folders(root: Path, damage: bytes) -> None:
    tool, runs = msgspec.msgpack.decode((root / RUN_INDEX_FILE).read_bytes())
    for run in runs:
        run[-1] = damage
    (root / RUN_INDEX_FILE).write_bytes(msgspec.msgpack.encode([tool, runs]))
    assert told("run", "model = 'c'", root) == ([("r3",)], ["r0", "r1", "r2", "r3"])
    assert told("run", "model = 'c'", root) == ([("r3",)], ["r3"])
