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
from steelyard.store.journal import COPY_MANIFEST_FILE, USUAL_JOURNAL_LINE_BYTES
from steelyard.store.parquet import PARQUET_COPY_OPTIONS, CopiedRun, FactScorer, copied_runs, is_name_in_path
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


class QueryMemoryError(InputError):
    """A question needs more memory than the database may use."""


class RunDatabase:
    """Many runs as the tables of a read-only database."""

    def __init__(
        self, database: duckdb.DuckDBPyConnection, warnings: Sequence[str], runs: Sequence[CopiedRun] = ()
    ) -> None:
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
        # a file beside it would be another file
        how = f"{PARQUET_COPY_OPTIONS}, USE_TMP_FILE false"
        question = self._question(sql)
        self._wait(lambda: self._database.execute(f"DESCRIBE {question}"))
        copy = f"COPY ({question}) TO {sql_string(str(_resolved_output_path(path)))} ({how})"
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
            if isinstance(error, duckdb.OutOfMemoryException):
                raise QueryMemoryError(f"{error_line(error)}; {_TABLES_HINT}") from None
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
MAX_SMALL_ARCHIVE_BYTES = 256 << 20
"""Bytes of all copies up to which a question is tried with little memory: some hundred thousand attempts."""
ARCHIVE_MEMORY_LIMITS = ("100MB", "160MB", "1GB")
"""What the database may use before it spills to disk; a question for which one does not suffice is asked with the next."""


@contextmanager
def open_run_database(
    root: Path,
    opinions: FactScorer,
    *,
    writing: Path | None = None,
    copies: Path | None = None,
    memory: str = ARCHIVE_MEMORY_LIMITS[-1],
) -> Iterator[RunDatabase]:
    """The runs below a folder as tables; `writing` is the one file that an answer may be written to.

    A run whose copy is not of its present state gets a new one: in its folder, or where that cannot be written to, in
    the folder `copies`, and without it for the time of the question elsewhere. A run that cannot be read is left
    out, with a warning. Without `memory`, a small archive gets little of it and a large one more.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        found, warnings = copied_runs(root, opinions, scratch, copies)
        if not found:
            raise InputError("; ".join(warnings) or no_runs_message(root))
        size = sum(size for run in found for _, size, _ in run.copy.files())
        largest = ARCHIVE_MEMORY_LIMITS[-1]
        memory = memory if size <= MAX_SMALL_ARCHIVE_BYTES else largest
        # each thread has buffers of its own
        threads = min(8 if memory == largest else 2, processor_count())
        database = stack.enter_context(open_database(str(scratch), memory, threads=threads))
        described = msgspec.json.encode(_run_rows(found)).decode()
        database.execute("CREATE SCHEMA stored")
        database.execute(f"CREATE TABLE stored.runs AS {RUNS_TABLE_SQL}", {"runs": described})
        facts = [
            _facts_sql(files, partitioned=partitioned)
            for partitioned in (True, False)
            if (files := _parquet_files(found, partitioned=partitioned))
        ]
        sources = {
            "$facts": " UNION ALL BY NAME ".join(facts),
            "$cases": _quoted_paths(run.folder / "cases.jsonl" for run in found),
            "$largest": str(max(USUAL_JOURNAL_LINE_BYTES, *(run.cases_size for run in found))),
        }
        database.execute(re.sub(r"\$\w+", lambda word: sources[word[0]], VIEWS_SQL))
        # a run may be a link to a folder elsewhere
        places = [root.resolve(), scratch, *([copies.resolve()] if copies else [])]
        linked = [run.folder for run in found if not run.folder.is_relative_to(places[0])]
        folders = ", ".join(sql_string(str(folder)) for folder in dict.fromkeys([*places, *linked]))
        database.execute(f"SET allowed_directories = [{folders}]")
        if writing:
            database.execute(f"SET allowed_paths = [{sql_string(str(_resolved_output_path(writing)))}]")
        # every timestamp in the tables is UTC, and now() must be UTC too, whatever the local time zone
        database.execute("SET TimeZone = 'UTC'")
        # what a model wrote may have been pasted into the question
        database.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield RunDatabase(database, warnings, found)


def _parquet_files(runs: Iterable[CopiedRun], *, partitioned: bool) -> list[Path]:
    """The files of copies whose paths name their model and suite, or the other files if not `partitioned`."""
    return [
        run.place / path
        for run in runs
        for part, _, path in run.copy.files()
        if partitioned == (is_name_in_path(part.model) and (part.suite == "" or is_name_in_path(part.suite)))
    ]


def _facts_sql(files: Iterable[Path], *, partitioned: bool) -> str:
    """The facts in some files; if paths name the model and the suite, only those are opened that are asked for."""
    if not partitioned:
        return f"(FROM read_parquet([{_quoted_paths(files)}], hive_partitioning = false))"
    how = "hive_partitioning = true, hive_types = {model: VARCHAR, suite: VARCHAR}"
    return f"(FROM read_parquet([{_quoted_paths(files)}], {how}) SELECT * REPLACE (coalesce(suite, '') AS suite))"


def _run_rows(runs: Iterable[CopiedRun]) -> list[dict[str, Any]]:
    """The rows of the table of runs."""
    return [
        {
            "id": info.id,
            "folder": str(shown),
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
            "place": str(folder / "cases.jsonl"),
        }
        for folder, shown, info, *_ in runs
    ]


RUNS_TABLE_SQL = """
SELECT run.* FROM (
  SELECT unnest(from_json($runs, '[{
    "id": "VARCHAR", "folder": "VARCHAR", "started_at": "TIMESTAMP", "ended_at": "TIMESTAMP", "models": ["VARCHAR"],
    "samples": "BIGINT", "k": ["BIGINT"], "rule": "VARCHAR", "seed": "BIGINT", "parameters": "JSON",
    "eval_sets": [{"path": "VARCHAR", "digest": "VARCHAR"}], "versions": "JSON", "place": "VARCHAR"}]')) AS run)
"""

VIEWS_SQL = """
CREATE VIEW runs AS SELECT * EXCLUDE (place) FROM stored.runs;
CREATE VIEW stored.facts AS $facts;
CREATE VIEW cases AS
  SELECT runs.id AS run, described.id, coalesce(name, '') AS name, coalesce(language, '') AS language,
    coalesce(suite, '') AS suite, coalesce(tags, []) AS tags, coalesce("group", '') AS "group", coalesce(weight, 1) AS weight,
    coalesce(critical, false) AS critical,
    if(json_type(prompt) = 'VARCHAR', prompt ->> '$', prompt::VARCHAR) AS prompt,
    coalesce(metadata, '{}'::JSON) AS metadata
  FROM read_json([$cases], format = 'newline_delimited', maximum_object_size = $largest, filename = true, columns = {
    id: 'VARCHAR', name: 'VARCHAR', language: 'VARCHAR', suite: 'VARCHAR', tags: 'VARCHAR[]', "group": 'VARCHAR', weight: 'DOUBLE',
    critical: 'BOOLEAN', prompt: 'JSON', metadata: 'JSON'}) AS described
  JOIN stored.runs AS runs ON described.filename = runs.place;
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
    disagreed
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


def _quoted_paths(paths: Iterable[Path]) -> str:
    return ", ".join(sql_string(escape_glob(path)) for path in paths)
