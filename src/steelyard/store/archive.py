"""Many runs as tables that answer questions, in bounded memory."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from steelyard.errors import DiskError, InputError, SteelyardError, StoreError
from steelyard.sandbox.processors import processor_count
from steelyard.store.database import (
    call_interruptibly,
    error_line,
    escape_glob,
    import_duckdb,
    open_database,
    sql_identifier,
    sql_string,
)
from steelyard.store.fact_rows import FactScorer
from steelyard.store.journal import COPY_MANIFEST_FILE, USUAL_JOURNAL_LINE_BYTES
from steelyard.store.parquet import PARQUET_COPY_OPTIONS, CopiedRun, copied_runs, is_name_in_path
from steelyard.store.run_folders import no_runs_message

if TYPE_CHECKING:
    import duckdb

DatabaseCallResult = TypeVar("DatabaseCallResult")


class SqlResult(NamedTuple):
    """The result of a query."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """As DuckDB names them, such as `VARCHAR` or `JSON`."""
    rows: Iterator[tuple[Any, ...]]
    """Read lazily, for any number of rows."""


class RunDatabase:
    """Many runs as the tables of a read-only database."""

    def __init__(self, database: duckdb.DuckDBPyConnection, warnings: Sequence[str], runs: Sequence[CopiedRun]) -> None:
        self._database = database
        self._runs = runs
        self.warnings = tuple(warnings)
        """Which runs are not in the tables, and why."""

    def ask(self, sql: str) -> SqlResult:
        """The answer to one SELECT; an InputError when that cannot be answered."""
        question = self._unzoned(self._question(sql))
        answer = self._execute(lambda: self._database.execute(question))
        described = answer.description or []
        return SqlResult(
            columns=tuple(str(column[0]) for column in described),
            types=tuple(str(column[1]) for column in described),
            rows=itertools.chain.from_iterable(
                iter(lambda: self._execute(lambda: answer.fetchmany(ROWS_PER_FETCH)), [])
            ),
        )

    def copy(self, sql: str, path: Path) -> None:
        """Write the answer to one SELECT as Parquet, to the file that the archive was opened for."""
        question = self._question(sql)
        self._wait(lambda: self._database.execute(f"DESCRIBE {question}"))
        # a file beside it would be another file
        options = f"{PARQUET_COPY_OPTIONS}, USE_TMP_FILE false"
        copy = f"COPY ({question}) TO {sql_string(str(_resolved_output_path(path)))} ({options})"
        self._execute(lambda: self._database.execute(copy))

    def _question(self, sql: str) -> str:
        duckdb = import_duckdb()

        try:
            text = sql.encode()
        except UnicodeEncodeError:
            raise InputError(f"the question is not UTF-8; {_TABLES_HINT}") from None
        statements = self._wait(lambda: self._database.extract_statements(sql))
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise InputError(f"a question is one SELECT that changes nothing; {_TABLES_HINT}")
        for start, kind in reversed(duckdb.tokenize(sql)):
            if kind != duckdb.token_type.comment and not text.startswith(b";", start):
                break
            text = text[:start]
        # within another one, a SELECT cannot hold a COPY that writes
        return f"FROM (\n{text.decode()}\n)"

    def _unzoned(self, question: str) -> str:
        """The question with moments that need no library of time zones to be read; they are in UTC, like all others."""
        columns = self._wait(lambda: self._database.execute(f"DESCRIBE {question}").fetchall())
        casts = ", ".join(
            f"CAST({sql_identifier(column)} AS {kind.replace(ZONED_TIMESTAMP_TYPE, 'TIMESTAMP')}) AS {sql_identifier(column)}"
            for column, kind, *_ in columns
            if ZONED_TIMESTAMP_TYPE in kind
        )
        return f"SELECT * REPLACE ({casts}) {question}" if casts else question

    def _execute(self, call: Callable[[], DatabaseCallResult]) -> DatabaseCallResult:
        """The result of a call that executes a question which was described before: then files fail by the disk alone."""
        return self._wait(call, on_file_error=_disk_error)

    def _wait(
        self,
        call: Callable[[], DatabaseCallResult],
        *,
        on_file_error: Callable[[Exception], SteelyardError] | None = None,
    ) -> DatabaseCallResult:
        duckdb = import_duckdb()

        try:
            return call_interruptibly(self._database, call)
        except duckdb.Error as error:
            self._look_for_damage(str(error))
            if on_file_error and isinstance(error, duckdb.IOException):
                raise on_file_error(error) from None
            hint = 'write "case", "group" and "at" in quotes; ' if isinstance(error, duckdb.ParserException) else ""
            raise InputError(f"{error_line(error)}; {hint}{_TABLES_HINT}") from None

    def _look_for_damage(self, message: str) -> None:
        """Give up a copy that the database says it cannot read: it is as long as it was written, but not what was written."""
        # the database has no other way to name the file; what it says about the file does not matter
        for run in self._runs:
            if damaged := next((path for path in run.files if str(path) in message), None):
                with suppress(OSError):
                    (run.place / COPY_MANIFEST_FILE).unlink()
                raise StoreError(f"{damaged}: the copy is damaged; run the query again to rebuild it")


def _disk_error(error: Exception) -> DiskError:
    return DiskError(f"{error_line(error)}; if the disk is full, free some space, and run the query again")


ZONED_TIMESTAMP_TYPE = "TIMESTAMP WITH TIME ZONE"
ROWS_PER_FETCH = 1000
"""Rows that are fetched together."""
MEMORY_LIMIT = "256MB"
"""What the database may use before it spills to disk."""
MAX_DATABASE_THREADS = 2
"""Each thread has buffers of its own."""


@contextmanager
def open_run_database(
    root: Path, opinions: FactScorer, *, writing: Path | None = None, copies: Path | None = None
) -> Iterator[RunDatabase]:
    """The runs below a folder as tables; `writing` is the one file that an answer may be written to.

    A run whose copy is not of its present state gets a new one: in its folder, or where that cannot be written to, in
    the folder `copies`, and without it for the time of the question elsewhere. A run that cannot be read is left
    out, with a warning.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        threads = min(MAX_DATABASE_THREADS, processor_count())
        database = stack.enter_context(open_database(str(scratch), MEMORY_LIMIT, threads=threads))
        runs, warnings = copied_runs(root, opinions, scratch, copies)
        if not runs:
            raise InputError("; ".join(warnings) or no_runs_message(root))
        runs.sort(key=lambda run: run.shown)
        _create_tables(database, runs, scratch)
        # a run may be a link to a folder elsewhere
        places = [root.resolve(), scratch, *([copies.resolve()] if copies else [])]
        linked = [run.folder for run in runs if not run.folder.is_relative_to(places[0])]
        folders = ", ".join(sql_string(str(folder)) for folder in dict.fromkeys([*places, *linked]))
        database.execute(f"SET allowed_directories = [{folders}]")
        if writing:
            database.execute(f"SET allowed_paths = [{sql_string(str(_resolved_output_path(writing)))}]")
        # every timestamp in the tables is UTC, and now() must be UTC too, whatever the local time zone
        database.execute("SET TimeZone = 'UTC'")
        # what a model wrote may have been pasted into the question
        database.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield RunDatabase(database, warnings, runs)


def _create_tables(database: duckdb.DuckDBPyConnection, runs: Sequence[CopiedRun], scratch: Path) -> None:
    described = scratch / "runs.jsonl"
    rows = [_run_row(run) for run in runs]
    described.write_bytes(b"".join(rows))
    files: dict[bool, list[Path]] = {}
    for run in runs:
        for part, _, path in run.copy.files():
            is_named = is_name_in_path(part.model) and (part.suite == "" or is_name_in_path(part.suite))
            files.setdefault(is_named, []).append(run.place / path)
    words = {
        "$runs": _quoted_paths([described]),
        # the database takes twice this memory
        "$longest_run": str(max(1 << 16, *map(len, rows))),
        "$cases": _quoted_paths(run.folder / "cases.jsonl" for run in runs),
        "$longest_case": str(max(USUAL_JOURNAL_LINE_BYTES, *(run.cases_size for run in runs))),
        "$facts": " UNION ALL BY NAME ".join(_facts_sql(paths, is_named=named) for named, paths in files.items()),
    }
    database.execute(re.sub(r"\$[a-z_]+", lambda word: words[word[0]], TABLES_SQL))


def _run_row(run: CopiedRun) -> bytes:
    """A run in the table of runs, as a line of JSON."""
    info = run.info
    row = {
        "id": info.id,
        "folder": str(run.shown),
        "started_at": info.started_at,
        "ended_at": info.ended_at,
        "models": info.names or info.models,
        "samples": info.samples,
        "k": info.k,
        "rule": info.rule,
        "seed": info.seed,
        "parameters": info.parameters,
        "eval_sets": info.eval_sets,
        "versions": info.versions,
        "place": str(run.folder / "cases.jsonl"),
    }
    return msgspec.json.encode(row) + b"\n"


def _facts_sql(files: Iterable[Path], *, is_named: bool) -> str:
    """The facts in some files; where paths name the model and the suite, only those are opened that are asked for."""
    if not is_named:
        return f"(FROM read_parquet([{_quoted_paths(files)}], hive_partitioning = false))"
    how = "hive_partitioning = true, hive_types = {model: VARCHAR, suite: VARCHAR}"
    return f"(FROM read_parquet([{_quoted_paths(files)}], {how}) SELECT * REPLACE (coalesce(suite, '') AS suite))"


TABLES_SQL = """
CREATE SCHEMA stored;
CREATE TABLE stored.runs AS
SELECT * REPLACE (try_cast(started_at AS TIMESTAMP) AS started_at, try_cast(ended_at AS TIMESTAMP) AS ended_at)
FROM read_json($runs, format = 'newline_delimited', maximum_object_size = $longest_run, columns = {
  id: 'VARCHAR', folder: 'VARCHAR', started_at: 'VARCHAR', ended_at: 'VARCHAR', models: 'VARCHAR[]', samples: 'BIGINT',
  k: 'BIGINT[]', rule: 'VARCHAR', seed: 'BIGINT', parameters: 'JSON', eval_sets: 'STRUCT(path VARCHAR, digest VARCHAR)[]',
  versions: 'JSON', place: 'VARCHAR'});
CREATE VIEW runs AS SELECT * EXCLUDE (place) FROM stored.runs;
CREATE VIEW cases AS
  SELECT runs.id AS run, described.id, coalesce(name, '') AS name, coalesce(language, '') AS language,
    coalesce(suite, '') AS suite, coalesce(tags, []) AS tags, coalesce("group", '') AS "group", coalesce(weight, 1) AS weight,
    coalesce(critical, false) AS critical,
    if(json_type(prompt) = 'VARCHAR', prompt ->> '$', prompt::VARCHAR) AS prompt,
    coalesce(metadata, '{}'::JSON) AS metadata
  FROM read_json([$cases], format = 'newline_delimited', maximum_object_size = $longest_case, filename = true, columns = {
    id: 'VARCHAR', name: 'VARCHAR', language: 'VARCHAR', suite: 'VARCHAR', tags: 'VARCHAR[]', "group": 'VARCHAR', weight: 'DOUBLE',
    critical: 'BOOLEAN', prompt: 'JSON', metadata: 'JSON'}) AS described
  JOIN stored.runs AS runs ON described.filename = runs.place;
CREATE VIEW stored.facts AS $facts;
CREATE VIEW attempts AS
  SELECT run, "case", suite, model, tier, number,
    coalesce(any_value("at") FILTER (counts AND kind = 'reply'), any_value("at") FILTER (counts)) AS "at",
    any_value(reply) FILTER (counts) AS reply,
    any_value(finish) FILTER (counts) AS finish,
    any_value(input_tokens) FILTER (counts) AS input_tokens,
    any_value(output_tokens) FILTER (counts) AS output_tokens,
    any_value(cached_tokens) FILTER (counts) AS cached_tokens,
    any_value(reasoning_tokens) FILTER (counts) AS reasoning_tokens,
    any_value(cost_usd) FILTER (counts) AS cost_usd,
    any_value(latency) FILTER (counts) AS latency,
    any_value(correct) FILTER (counts) AS correct,
    any_value(score) FILTER (counts) AS score,
    any_value(compiled) FILTER (counts) AS compiled,
    any_value(tests_passed) FILTER (counts) AS tests_passed,
    any_value(tests_failed) FILTER (counts) AS tests_failed,
    any_value(warnings) FILTER (counts) AS warnings,
    any_value(label) FILTER (counts) AS label,
    any_value(reason) FILTER (counts) AS reason,
    any_value(trust) FILTER (counts) AS trust,
    any_value(isolation) FILTER (counts) AS isolation,
    any_value(tampered) FILTER (counts) AS tampered,
    any_value(rechecked) FILTER (counts) AS rechecked,
    any_value(disagreed) FILTER (counts) AS disagreed,
    any_value(graded) FILTER (counts) AS graded,
    any_value(flag) FILTER (counts) AS flag,
    any_value(watched) FILTER (counts) AS watched,
    any_value(controls) FILTER (counts) AS controls,
    any_value(failure_stage) FILTER (counts) AS failure_stage,
    any_value(failure) FILTER (counts) AS failure
  FROM stored.facts WHERE counts IS NOT NULL
  GROUP BY run, "case", suite, model, tier, number;
CREATE VIEW turns AS
  SELECT run, "case", suite, model, tier, number, turn, said.role IS NOT DISTINCT FROM 'user' AS is_user,
    coalesce(said.text, '') AS text, coalesce(said.tool_calls, []) AS tool_calls, coalesce(said.results, []) AS results,
    len(list_filter(coalesce(said.results, []), lambda result: coalesce(result.is_error, false))) AS tool_errors,
    coalesce(said.finish, 'stop') AS finish, try_cast(said."at" AS TIMESTAMP) AS "at",
    said.input_tokens, said.output_tokens, said.cached_tokens, said.reasoning_tokens, said.cost.usd AS cost_usd, said.latency
  FROM (
    SELECT run, "case", suite, model, tier, number, unnest(turns) AS said, unnest(range(1, len(turns) + 1)) AS turn
    FROM stored.facts WHERE counts AND kind = 'reply' AND turns IS NOT NULL);
CREATE VIEW verdicts AS
  SELECT run, "case", suite, model, tier, number, "at", key, ask, verifier, tests, counts, correct, score, code, compiled,
    tests_passed, tests_failed, warnings, passed, own_score, label, reason, trust, isolation, tampered, rechecked,
    disagreed, graded, flag, watched, controls
  FROM stored.facts WHERE kind = 'verdict';
CREATE VIEW failures AS
  SELECT run, "case", suite, model, tier, number, "at", key, counts, failure_stage AS stage, failure AS message
  FROM stored.facts WHERE kind = 'failure';
"""
"""The tables; of the facts of an attempt that count there is at most one of each kind."""

_TABLES_HINT = "the tables are runs, cases, attempts, turns, verdicts and failures"


def _resolved_output_path(path: Path) -> Path:
    """Where a file is or will be, by no other name."""
    return path.parent.resolve() / path.name


def _quoted_paths(paths: Iterable[Path | str]) -> str:
    return ", ".join(sql_string(escape_glob(path)) for path in paths)
