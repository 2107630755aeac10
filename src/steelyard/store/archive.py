"""Many runs as tables that answer questions, in bounded memory."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from steelyard.store.parquet import (
    PARQUET_COPY_OPTIONS,
    CopiedRun,
    copied_runs,
    is_name_in_path,
)
from steelyard.store.question_scope import EVERYTHING, FactPart, QuestionScope, TableLimits, question_scope
from steelyard.store.run_folders import no_runs_message, unknown_run_folders
from steelyard.store.run_index import (
    DESCRIPTION_FILES,
    FolderState,
    IndexedRun,
    current_runs,
    indexed_run,
    is_current,
    packed_parts,
    run_row,
    run_state,
    unpacked_parts,
    write_run_index,
)

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
        self, database: duckdb.DuckDBPyConnection, warnings: Sequence[str], runs: Sequence[CopiedRun], scratch: Path
    ) -> None:
        self._database = database
        self._runs = runs
        self.scratch = scratch
        """A folder that the database may write to."""
        self.warnings = tuple(warnings)
        """Which runs are not in the tables, and why."""

    def ask(self, sql: str) -> SqlResult:
        """The answer to one SELECT; an InputError when that cannot be answered."""
        if sql == ALL_ATTEMPTS and (parts := self._attempt_parts()) > 1:
            # the database cannot spill texts that it groups, so a part of the attempts is grouped at a time
            found = (self._answer(f"FROM ({_attempts_of_part(part, parts)})") for part in range(parts))
            first = next(found)
            return first._replace(rows=itertools.chain(first.rows, (row for each in found for row in each.rows)))
        return self._answer(self._question(sql))

    def _answer(self, question: str) -> SqlResult:
        question = self._unzoned(question)
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
        self._write(question, _resolved_output_path(path), f"{PARQUET_COPY_OPTIONS}, USE_TMP_FILE false")

    def copy_attempts(self, path: Path, scratch: Path) -> None:
        """Write all attempts as Parquet, to the file that the archive was opened for, through files in a folder of the archive.

        The database cannot spill texts that it groups, so facts are split by attempts first, and then a part is grouped at a time.
        """
        parts = self._attempt_parts()
        split, grouped = scratch / "split", list[Path]()
        if parts > 1:
            how = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS_PER_SPLIT}, PARTITION_BY (part), WRITE_PARTITION_COLUMNS false"
            self._write(SPLIT_FACTS_SQL.replace("$part", _part_sql(parts)), split, how)
        for part in sorted(split.glob("*")):
            grouped.append(scratch / f"{part.name}.parquet")
            facts = f"read_parquet([{_quoted_paths(part.glob('*'))}], hive_partitioning = false)"
            self._write(ATTEMPTS_SQL.replace("stored.facts", facts), grouped[-1], PARQUET_COPY_OPTIONS)
            shutil.rmtree(part)
        attempts = f"FROM read_parquet([{_quoted_paths(grouped)}])" if grouped else "FROM attempts"
        self._write(attempts, _resolved_output_path(path), f"{PARQUET_COPY_OPTIONS}, USE_TMP_FILE false")

    def _attempt_parts(self) -> int:
        size = sum(size for run in self._runs for _, size, _ in run.copy.files())
        return min(MAX_ATTEMPT_PARTS, 1 + size // BYTES_PER_ATTEMPT_PART)

    def _write(self, query: str, path: Path, how: str) -> None:
        copy = f"COPY ({query}) TO {sql_string(str(path))} ({how})"
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
ALL_ATTEMPTS = "SELECT * FROM attempts"
"""The question whose answer may be as large as all runs; it is answered in little memory."""
BYTES_PER_ATTEMPT_PART, MAX_ATTEMPT_PARTS = 8 << 20, 64
"""Bytes of copies for each part in which attempts are grouped, and the most of these parts."""
ROWS_PER_SPLIT = 2048
"""Rows of a part that are written together: those of all parts are in memory."""
ROWS_PER_FETCH = 1000
"""Rows that are fetched together."""
MAX_SMALL_ARCHIVE_BYTES = 1 << 30
"""Bytes of all copies up to which a question is tried with little memory: some ten million attempts with short replies."""
ARCHIVE_MEMORY_LIMITS = ("32MB", "100MB", "160MB", "1GB")
"""What the database may use before it spills to disk; a question for which one does not suffice is asked with the next."""
ATTEMPTS_MEMORY_LIMITS = ("64MB", *ARCHIVE_MEMORY_LIMITS[1:])
"""The same where all attempts are written to a file, for which 32 MB do not suffice where there are many."""


@contextmanager
def open_run_database(
    root: Path,
    opinions: FactScorer,
    *,
    question: str = "",
    writing: Path | None = None,
    copies: Path | None = None,
    memory: str = ARCHIVE_MEMORY_LIMITS[-1],
) -> Iterator[RunDatabase]:
    """The runs below a folder as tables; `writing` is the one file that an answer may be written to.

    With a `question`, there are only the tables that it names, with the runs that it names if it says `run = 'ID'`.

    A run whose copy is not of its present state gets a new one: in its folder, or where that cannot be written to, in
    the folder `copies`, and without it for the time of the question elsewhere. A run that cannot be read is left
    out, with a warning. Without `memory`, a small archive gets little of it and a large one more.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        largest = ARCHIVE_MEMORY_LIMITS[-1]
        database = stack.enter_context(open_database(str(scratch), largest, threads=1))
        scope = question_scope(database, question)
        found, copied, warnings = _runs_for_question(root, opinions, scratch, copies, scope)
        if not found:
            raise InputError("; ".join(warnings) or no_runs_message(root))
        size = sum(size for run in copied for _, size, _ in run.copy.files())
        memory = memory if size <= MAX_SMALL_ARCHIVE_BYTES else largest
        # each thread has buffers of its own, and the most where all texts go through them
        few = 1 if question == ALL_ATTEMPTS else 2
        threads = min(8 if memory == largest else few, processor_count())
        database.execute(f"SET threads = {threads}; CREATE SCHEMA stored")
        if scope.needs_runs:
            _create_runs_table(database, found, scratch)
        if scope.cases:
            with_cases = [run for run in found if scope.case_runs is None or run.id in scope.case_runs] or found[:1]
            _create_cases_view(database, [f"{run.folder}/cases.jsonl" for run in with_cases])
        if scope.facts:
            files = _parquet_files(copied, scope) or _parquet_files(copied, EVERYTHING)
            facts = [_facts_sql(paths, partitioned=partitioned) for partitioned, paths in files.items()]
            database.execute(
                FACT_VIEWS_SQL.replace("$attempts", ATTEMPTS_SQL).replace("$facts", " UNION ALL BY NAME ".join(facts))
            )
        # a run may be a link to a folder elsewhere
        places = [root.resolve(), scratch, *([copies.resolve()] if copies else [])]
        linked = [run.folder for run in found if not run.folder.startswith(f"{places[0]}/")]
        folders = ", ".join(sql_string(folder) for folder in dict.fromkeys([*map(str, places), *linked]))
        database.execute(f"SET allowed_directories = [{folders}]")
        if writing:
            database.execute(f"SET allowed_paths = [{sql_string(str(_resolved_output_path(writing)))}]")
        database.execute(f"SET memory_limit = '{memory}'; SET partitioned_write_flush_threshold = {ROWS_PER_SPLIT}")
        # every timestamp in the tables is UTC, and now() must be UTC too, whatever the local time zone
        database.execute("SET TimeZone = 'UTC'")
        # what a model wrote may have been pasted into the question
        database.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield RunDatabase(database, warnings, copied, scratch)


def _create_runs_table(database: duckdb.DuckDBPyConnection, runs: Sequence[QueriedRun], scratch: Path) -> None:
    path, rows = scratch / "runs.jsonl", [f"{run.row}\n".encode() for run in runs]
    with path.open("wb") as file:
        file.writelines(rows)
    # the database takes twice this memory
    words = {"$runs": _quoted_paths([path]), "$largest": str(max(1 << 16, *map(len, rows)))}
    database.execute(re.sub(r"\$\w+", lambda word: words[word[0]], RUNS_TABLE_SQL))


def _create_cases_view(database: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> None:
    sizes = (os.stat(path).st_size for path in paths)  # noqa: PTH116  thousands of files
    words = {"$cases": _quoted_paths(paths), "$largest": str(max(USUAL_JOURNAL_LINE_BYTES, *sizes))}
    database.execute(re.sub(r"\$\w+", lambda word: words[word[0]], CASES_VIEW_SQL))


def _parquet_files(runs: Iterable[CopiedRun], scope: QuestionScope) -> dict[bool, list[str]]:
    """The files of copies that a question can use, by whether their paths name their model and suite."""
    files: dict[bool, list[str]] = {}
    for run in runs:
        place = str(run.place)
        for part, _, path in run.copy.files():
            if scope.needs_facts_of(run.info.id, [(part.model, part.suite)]):
                is_named = is_name_in_path(part.model) and (part.suite == "" or is_name_in_path(part.suite))
                files.setdefault(is_named, []).append(f"{place}/{path}")
    return files


def _facts_sql(files: Iterable[str], *, partitioned: bool) -> str:
    """The facts in some files; if paths name the model and the suite, only those are opened that are asked for."""
    if not partitioned:
        return f"(FROM read_parquet([{_quoted_paths(files)}], hive_partitioning = false))"
    how = "hive_partitioning = true, hive_types = {model: VARCHAR, suite: VARCHAR}"
    return f"(FROM read_parquet([{_quoted_paths(files)}], {how}) SELECT * REPLACE (coalesce(suite, '') AS suite))"


class QueriedRun(NamedTuple):
    """A run in the table of runs."""

    folder: str
    shown: str
    """The folder as the user would write it."""
    id: str
    parts: tuple[str, ...]
    """The ids of the runs that it was merged from."""
    described: bytes
    """Its row in the table, as JSON, without its folder."""

    @property
    def row(self) -> str:
        """Its whole row."""
        places = {"folder": self.shown, "place": f"{self.folder}/cases.jsonl"}
        return f"{msgspec.json.encode(places).decode()[:-1]},{self.described.decode()[1:]}"


class _RunsForQuestion(NamedTuple):
    runs: list[QueriedRun]
    """All runs."""
    copied: list[CopiedRun]
    """Those that the question needs facts of, or one if there are none of these: the columns come from it."""
    warnings: list[str]
    """What to say about runs that are left out."""


def _runs_for_question(
    root: Path, opinions: FactScorer, scratch: Path, copies: Path | None, scope: QuestionScope
) -> _RunsForQuestion:
    found = _runs_in_scope(root, opinions, scratch, copies, scope)
    if scope.facts and found.runs and not found.copied:
        anyone = scope._replace(facts=(TableLimits(runs=frozenset({found.runs[0].id})),))
        found = _runs_in_scope(root, opinions, scratch, copies, anyone)
    return found if found.copied or not scope.facts else _runs_in_scope(root, opinions, scratch, copies, EVERYTHING)


def _runs_in_scope(
    root: Path, opinions: FactScorer, scratch: Path, copies: Path | None, scope: QuestionScope
) -> _RunsForQuestion:
    """The runs, with copies of those that are needed; of a run in the index that is not, nothing is opened."""
    place, prefix = str(root.resolve()), "" if root == Path() else f"{root}/"
    indexed = current_runs(root, DESCRIPTION_FILES)
    # taken before anything is read: what changes meanwhile is not indexed
    states = {folder.name: run_state(folder) for folder in unknown_run_folders(root, indexed)}
    known = _known_parts(indexed, place, scope)
    skipped = {name: run for name, run in indexed.items() if not scope.needs_facts_of(run.id, known.get(name))}
    if not scope.names_runs:
        unknown = (name for name in indexed.keys() - skipped.keys() if name not in known)
        states |= {
            name: run_state(root / name) for name in unknown if scope.names_parts or not indexed[name].fact_parts
        }
    copied, warnings = copied_runs(root, opinions, scratch, copies, skipped=skipped, needed=scope.needs_facts_of)
    runs = [
        QueriedRun(f"{place}/{name}", f"{prefix}{name}", run.id, run.parts, run.described)
        for name, run in skipped.items()
    ]
    for run in copied:
        parts = tuple(part.id for part in run.info.merged)
        runs.append(QueriedRun(str(run.folder), str(run.shown), run.info.id, parts, run_row(run.info)))
    kept = _without_duplicates(runs, warnings)
    entries = {
        state.name: _index_entry(run, state, indexed.get(state.name), scope)
        for run in copied
        if (state := states.get(run.shown.name)) is not None
    }
    if entries:
        write_run_index(root, (indexed | entries).values(), indexed)
    in_tables = {run.shown for run in kept}
    return _RunsForQuestion(kept, [run for run in copied if run.copy.parts and str(run.shown) in in_tables], warnings)


def _known_parts(
    indexed: Mapping[str, IndexedRun], place: str, scope: QuestionScope
) -> dict[str, Sequence[FactPart] | None]:
    """What the facts of indexed runs are about, for those whose facts have not changed since; nothing where nobody asks."""
    if not scope.names_parts:
        return {}
    return {
        name: parts
        for name, run in indexed.items()
        if (parts := unpacked_parts(run.fact_parts)) is not None and is_current(run, place)
    }


def _index_entry(run: CopiedRun, state: FolderState, before: IndexedRun | None, scope: QuestionScope) -> IndexedRun:
    """The entry of a run that was read after its folder looked like this."""
    parts = tuple((part.model, part.suite) for part in run.copy.parts)
    # a run that was not needed has no copy, whatever its facts are about
    packed = packed_parts(parts) if scope.needs_facts_of(run.info.id) else b""
    if before is not None and before.looks == state:
        return msgspec.structs.replace(before, fact_parts=packed)
    return indexed_run(state, run.info, fact_parts=packed)


def _without_duplicates(runs: Sequence[QueriedRun], warnings: list[str]) -> list[QueriedRun]:
    """The runs in the order of their folders, each once, without parts of merged ones; adds to the warnings."""
    found: dict[str, QueriedRun] = {}
    for run in sorted(runs, key=lambda run: run.shown):
        if run.id in found:
            warnings.append(f"{run.shown}: left out, because it is the same run as {found[run.id].shown}")
        else:
            found[run.id] = run
    whole = {part: run.shown for run in found.values() for part in run.parts}
    for run in [found[part] for part in whole if part in found]:
        warnings.append(f"{run.shown}: left out, because it was merged into {whole[run.id]}")
        del found[run.id]
    return list(found.values())


RUNS_TABLE_SQL = """
CREATE TABLE stored.runs AS
SELECT * REPLACE (try_cast(started_at AS TIMESTAMP) AS started_at, try_cast(ended_at AS TIMESTAMP) AS ended_at)
FROM read_json($runs, format = 'newline_delimited', maximum_object_size = $largest, columns = {
  id: 'VARCHAR', folder: 'VARCHAR', started_at: 'VARCHAR', ended_at: 'VARCHAR', models: 'VARCHAR[]', samples: 'BIGINT',
  k: 'BIGINT[]', rule: 'VARCHAR', seed: 'BIGINT', parameters: 'JSON', eval_sets: 'STRUCT(path VARCHAR, digest VARCHAR)[]',
  versions: 'JSON', place: 'VARCHAR'});
CREATE VIEW runs AS SELECT * EXCLUDE (place) FROM stored.runs;
"""
CASES_VIEW_SQL = """
CREATE VIEW cases AS
  SELECT runs.id AS run, described.id, coalesce(name, '') AS name, coalesce(language, '') AS language,
    coalesce(suite, '') AS suite, coalesce(tags, []) AS tags, coalesce("group", '') AS "group", coalesce(weight, 1) AS weight,
    coalesce(critical, false) AS critical,
    if(json_type(prompt) = 'VARCHAR', prompt ->> '$', prompt::VARCHAR) AS prompt,
    coalesce(metadata, '{}'::JSON) AS metadata
  FROM read_json([$cases], format = 'newline_delimited', maximum_object_size = $largest, filename = true, columns = {
    id: 'VARCHAR', name: 'VARCHAR', language: 'VARCHAR', suite: 'VARCHAR', tags: 'VARCHAR[]', "group": 'VARCHAR', weight: 'DOUBLE',
    critical: 'BOOLEAN', prompt: 'JSON', metadata: 'JSON'}) AS described
  JOIN stored.runs AS runs ON described.filename = runs.place
"""
SPLIT_FACTS_SQL = """
SELECT * EXCLUDE (key, ask, verifier, tests, code, turns, passed, own_score),
  $part AS part
FROM stored.facts WHERE counts IS NOT NULL
"""
"""What attempts are made of, with a part for each attempt."""
ATTEMPTS_SQL = """
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
  GROUP BY run, "case", suite, model, tier, number
"""
"""The attempts of some facts."""


def _attempts_of_part(part: int, parts: int) -> str:
    """A statement for one of so many parts of the attempts."""
    counts = "WHERE counts IS NOT NULL"
    return ATTEMPTS_SQL.replace(counts, f"{counts} AND {_part_sql(parts)} = {part}")


def _part_sql(parts: int) -> str:
    """The part of an attempt, of which all facts are in the same."""
    return f'hash("case", model, tier, number) % {parts}'


FACT_VIEWS_SQL = """
CREATE VIEW stored.facts AS $facts;
CREATE VIEW attempts AS $attempts;
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
