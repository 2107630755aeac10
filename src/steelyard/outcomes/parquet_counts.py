"""Attempts in Parquet, however many there are, counted case by case in bounded memory."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.counts import OutcomeTallies, Tally
from steelyard.errors import InputError, Problem
from steelyard.outcomes.cells import (
    BOOLEAN_CODES,
    EXPECTED_BOOLEAN_TEXT,
    FALSE_CODE,
    MAX_TOTAL_NAME_CHARACTERS,
    MISSING_CODE,
    TRUE_CODE,
    UNCLEAR_CODE,
)
from steelyard.outcomes.counter import MAX_MODEL_CASE_CELLS
from steelyard.outcomes.files import missing_column_message
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
from steelyard.text import printable, short_quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    import duckdb
    import numpy.typing as npt

COUNTING_MEMORY_LIMIT = "1200MB"
"""What the database may take before it spills to disk; Python and the counts come on top of it.

A million cases fit in there; where they do not, counting on disk costs three times as much.
"""
DEFAULT_OUTCOME_COLUMNS = ("correct", "passed")
"""The names of the column with the outcome where the user gives none; the first that is there counts."""
RUN_COPY_COLUMNS = {"kind", "counts", "case", "model", "tier", "correct", "failure_stage"}
"""The columns by which a copy of a run is known: it has a row for every fact, not for every attempt."""
IRRELEVANT_ROW_CODE = -3
"""The sentinel for a row without an attempt."""
JUDGED_OUTCOME_OFFSET = 2
"""A flag of outcomes whose attempt has another row that is not judged yet."""
NAME_SQL_TYPES = ("VARCHAR", "UUID", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
"""Types of what can be a name; those of whole numbers may be unsigned."""
NUMBER_SQL_TYPES = ("FLOAT", "DOUBLE", "DECIMAL", *NAME_SQL_TYPES[2:])
TRIMMED_WHITESPACE = " \t\n\r\v\f"
MAX_MODEL_CASE_PAIRS = 1 << 24
"""The maximum number of pairs of model and case; each takes a few hundred bytes, and the wrong column may have any number of values."""
MAX_FILES_NAMED = 5
"""Files that a message names."""


class AttemptColumns(NamedTuple):
    """What the columns are called."""

    case: str = "case"
    model: str = "model"
    """Where there is no such column, the model is called like the file or the folder."""
    passed: str | None = None
    """None for the first of the usual ones that is there."""
    sample: str | None = None
    """Which attempt at the case it is; None when every row is an attempt of its own."""


DEFAULT_ATTEMPT_COLUMNS = AttemptColumns()


class ParquetSource(NamedTuple):
    """Some Parquet files that belong together."""

    name: str
    """As the user calls it."""
    files: tuple[str, ...]

    @property
    def stem(self) -> str:
        return Path(self.name).name.removesuffix(".parquet") or self.name


class ModelCaseCounts(NamedTuple):
    """Attempts counted by model and case, in the order of both; one entry for each pair of them."""

    models: npt.NDArray[Any]
    cases: npt.NDArray[Any]
    tried: npt.NDArray[Any]
    """Attempts with an outcome."""
    passed: npt.NDArray[Any]
    missing: npt.NDArray[Any]
    """Attempts without one."""
    unclear: npt.NDArray[Any]
    """Rows whose outcome cannot be read."""
    repeated: npt.NDArray[Any]
    """Rows that repeat an attempt; they are in no other number."""
    contradictory: npt.NDArray[Any]
    """Attempts that rows contradict each other about."""


def counts_from_parquet(
    sources: Sequence[ParquetSource],
    columns: AttemptColumns = DEFAULT_ATTEMPT_COLUMNS,
    *,
    memory: str = COUNTING_MEMORY_LIMIT,
) -> ModelCaseCounts:
    """The attempts in some Parquet files, counted by model and case, as columns; outcomes and names are not checked yet."""
    with tempfile.TemporaryDirectory() as scratch, open_database(scratch, memory, threads=_threads()) as database:
        _count(database, sources, columns)
        return _fetch_counts(database)


def counts_as_arrow(sources: Sequence[ParquetSource], columns: AttemptColumns, *, memory: str) -> Any:
    """The same as an Arrow table, by one thread: a part of the work that `Adding` puts together."""
    with tempfile.TemporaryDirectory() as scratch, open_database(scratch, memory, threads=1) as database:
        _count(database, sources, columns)
        return database.table("counted").to_arrow_table()


class CountsMerger:
    """Counts of files that are merged in any order and any number, in bounded memory."""

    def __init__(self, *, memory: str = COUNTING_MEMORY_LIMIT) -> None:
        self._stack = ExitStack()
        scratch = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._database = self._stack.enter_context(open_database(scratch, memory, threads=_threads()))
        numbers = ", ".join(f"{name} BIGINT" for name in ModelCaseCounts._fields[2:])
        self._database.execute(f'CREATE TABLE parts (model VARCHAR, "case" VARCHAR, {numbers})')

    def add(self, part: Any) -> None:
        """Add counts: an Arrow table with the columns of `Counts`."""
        self._database.register("part", part)
        self._database.execute("INSERT INTO parts FROM part")
        self._database.unregister("part")

    def counts(self) -> ModelCaseCounts:
        """All together."""
        self._add_up()
        return _fetch_counts(self._database)

    def write(self, path: Path) -> None:
        """The same as a Parquet file, which `read_counts` reads."""
        self._add_up()
        self._database.execute(f"COPY counted TO {sql_string(str(path))} (FORMAT parquet)")

    def _add_up(self) -> None:
        sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in ModelCaseCounts._fields[2:])
        question = f'CREATE TABLE counted AS FROM parts SELECT model, "case", {sums} GROUP BY model, "case"'
        call_interruptibly(self._database, lambda: self._database.execute(question))
        _check_size(self._database)

    def __enter__(self) -> CountsMerger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def read_counts(path: Path, *, memory: str = COUNTING_MEMORY_LIMIT) -> ModelCaseCounts:
    """What `Adding` wrote."""
    with tempfile.TemporaryDirectory() as scratch, open_database(scratch, memory, threads=_threads()) as database:
        database.execute(f"CREATE VIEW counted AS FROM read_parquet({sql_string(escape_glob(path))})")
        return _fetch_counts(database)


def outcomes_of(found: ModelCaseCounts, sources: Sequence[ParquetSource], columns: AttemptColumns) -> OutcomeTallies:
    """Counts as tallies, checked; what is wrong is looked for again in the files."""
    wrong = [
        *_nameless_row_problems(found, columns),
        *_unclear_outcome_problems(found, sources, columns),
        *_contradictions(found, columns),
    ]
    if wrong:
        raise InputError(wrong)
    warnings = []
    if repeated := int(found.repeated.sum()):
        warnings.append(Problem(_source_names(sources), 0, f"{repeated:,} rows repeat an attempt; counted once", False))
    if not len(found.cases):
        warnings.append(Problem(_source_names(sources), 0, "no rows", fatal=False))
    return OutcomeTallies(tuple(_tallies(_stripped(found))), tuple(warnings))


def _threads() -> int:
    return min(8, processor_count())


COUNTS_QUERY = """
CREATE TABLE counted AS SELECT model, "case",
  count(*) FILTER (what >= 0)::BIGINT AS tried,
  count(*) FILTER (what IN (1, 3))::BIGINT AS passed,
  greatest(0, count(*) FILTER (what = -1) - count(*) FILTER (what >= 2))::BIGINT AS missing,
  count(*) FILTER (what = -2)::BIGINT AS unclear,
  $repeated::BIGINT AS repeated, $contradictory::BIGINT AS contradictory
FROM ($rows) WHERE what <> -3
GROUP BY model, "case"
"""
"""The counts; `what` says what a row means."""

UNIQUE_SAMPLES_QUERY = """
SELECT model, "case", any_value(what) AS what, count(*) - 1 AS again, min(what) <> max(what) AS contradicted
FROM ($rows) WHERE what <> -3 GROUP BY model, "case", sample
"""
"""Rows about the same sample, as one."""


def _count(database: duckdb.DuckDBPyConnection, sources: Sequence[ParquetSource], columns: AttemptColumns) -> None:
    """Make a table of the counts; raises an InputError that names the files where there is nothing to count."""
    duckdb = import_duckdb()

    try:
        alike = [group for source in sources for group in _split_by_column_types(database, source, columns)]
        rows = " UNION ALL ".join(_rows_query(database, group, columns) for group in alike)
        words = {"$repeated": "0", "$contradictory": "0"}
        if columns.sample is not None:
            rows = UNIQUE_SAMPLES_QUERY.replace("$rows", rows)
            words = {"$repeated": "sum(again)", "$contradictory": "count(*) FILTER (contradicted)"}
        question = COUNTS_QUERY
        for word, meaning in (*words.items(), ("$rows", rows)):
            question = question.replace(word, meaning)
        call_interruptibly(database, lambda: database.execute(question))
    except duckdb.Error as error:
        raise InputError(_file_problems(database, sources, columns, error)) from None
    _check_size(database)


def _split_by_column_types(
    database: duckdb.DuckDBPyConnection, source: ParquetSource, columns: AttemptColumns
) -> list[ParquetSource]:
    """The files of a source, those together whose columns have the same types.

    The database takes all files for what the first one is, and makes a yes of every number where that one holds booleans.
    """
    if len(source.files) == 1:
        return [source]
    names = ", ".join(
        sql_string(name) for name in {*columns, *DEFAULT_OUTCOME_COLUMNS, *RUN_COPY_COLUMNS} if name is not None
    )
    kind = "{name: name, type: type, meaning: coalesce(logical_type, converted_type::VARCHAR), children: num_children}"
    question = f"""FROM parquet_schema([{_file_list_sql(source)}])
      SELECT file_name, (list({kind} ORDER BY name) FILTER (name IN ({names})))::VARCHAR GROUP BY file_name"""
    kinds = dict(call_interruptibly(database, lambda: database.execute(question).fetchall()))
    together: dict[str | None, list[str]] = {}
    for path in source.files:
        together.setdefault(kinds.get(path), []).append(path)
    return [ParquetSource(source.name, tuple(files)) for files in together.values()]


def _check_size(database: duckdb.DuckDBPyConnection) -> None:
    """An InputError if there is more to count than memory should hold."""
    size = 'SELECT count(*), coalesce(sum(strlen(model) + strlen("case")), 0) FROM counted'
    ((pairs, names),) = database.execute(size).fetchall()
    if pairs > MAX_MODEL_CASE_PAIRS or names > MAX_TOTAL_NAME_CHARACTERS:
        what = f"{pairs:,} pairs of a model and a case, whose names have {names:,} bytes, are too many to count"
        raise InputError(f"{what}; are these the right columns?")


def _fetch_counts(database: duckdb.DuckDBPyConnection) -> ModelCaseCounts:
    """The counts of a table, in order."""
    question = 'FROM counted ORDER BY model, "case"'
    found = call_interruptibly(database, lambda: database.execute(question).fetchnumpy())
    return ModelCaseCounts(*map(_unmasked, found.values()))


def _unmasked(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column with None for missing values."""
    import numpy as np

    return np.array(column.tolist(), object) if np.ma.is_masked(column) else np.asarray(column)


def _rows_query(database: duckdb.DuckDBPyConnection, source: ParquetSource, columns: AttemptColumns) -> str:
    """A query for what each row of a source says: model, case, what it means, and which sample it is about."""
    kinds = _column_types(database, source)
    if kinds.keys() >= RUN_COPY_COLUMNS:
        if columns != DEFAULT_ATTEMPT_COLUMNS:
            what = "a copy of a run, whose columns are known and whose attempts count once; name no columns"
            raise InputError([Problem(printable(source.name), 0, what)])
        name = "if(coalesce(tier, '') = '', model, model || ' (' || tier || ')')"
        return f"""(FROM {_read_parquet_sql(source, partitioned=False)}
          SELECT {name} AS model, "case", CASE
            WHEN NOT counts OR counts IS NULL THEN {IRRELEVANT_ROW_CODE}
            WHEN kind = 'verdict' AND correct IS NOT NULL THEN {JUDGED_OUTCOME_OFFSET} + correct::TINYINT
            WHEN kind = 'reply' OR (kind = 'failure' AND failure_stage = 'ask') THEN {MISSING_CODE}
            ELSE {IRRELEVANT_ROW_CODE} END::TINYINT AS what)"""
    wrong = [Problem(printable(source.name), 0, what) for what in _column_faults(kinds, columns)]
    if wrong:
        raise InputError(wrong)
    model = f"{sql_identifier(columns.model)}::VARCHAR" if columns.model in kinds else sql_string(source.stem)
    sample = "" if columns.sample is None else f", {sql_identifier(columns.sample)}::VARCHAR AS sample"
    passed = _outcome_column(kinds, columns)
    return f"""(FROM {_read_parquet_sql(source, partitioned=True)}
      SELECT {model} AS model, {sql_identifier(columns.case)}::VARCHAR AS "case",
        {_outcome_sql(sql_identifier(passed), kinds[passed])}::TINYINT AS what{sample})"""


def _read_parquet_sql(source: ParquetSource, *, partitioned: bool) -> str:
    # values from a path are always text; our own paths may have less than the rows
    how = "hive_types_autocast = false" if partitioned else "hive_partitioning = false"
    return f"read_parquet([{_file_list_sql(source)}], binary_as_string = true, {how})"


def _file_list_sql(source: ParquetSource) -> str:
    return ", ".join(sql_string(escape_glob(Path(path))) for path in source.files)


def _column_types(database: duckdb.DuckDBPyConnection, source: ParquetSource) -> dict[str, str]:
    """The types of the columns that a source has."""
    described = database.execute(f"DESCRIBE FROM {_read_parquet_sql(source, partitioned=True)}").fetchall()
    return {str(name): str(kind) for name, kind, *_ in described}


def _outcome_column(kinds: Mapping[str, str], columns: AttemptColumns) -> str:
    """The column with the outcome."""
    usual = (name for name in DEFAULT_OUTCOME_COLUMNS if name in kinds)
    return columns.passed if columns.passed is not None else next(usual, DEFAULT_OUTCOME_COLUMNS[0])


def _column_faults(kinds: Mapping[str, str], columns: AttemptColumns) -> Iterator[str]:
    """What is wrong with the columns."""
    for name, expected, types in (
        (columns.case, "text or whole numbers", NAME_SQL_TYPES),
        (columns.model, "text or whole numbers", NAME_SQL_TYPES),
        (columns.sample, "text or whole numbers", NAME_SQL_TYPES),
        (_outcome_column(kinds, columns), "booleans", ("BOOLEAN", "VARCHAR", *NUMBER_SQL_TYPES)),
    ):
        if name is None or (name == columns.model == "model" and name not in kinds):
            continue
        if name not in kinds:
            yield missing_column_message(name, kinds)
        elif not kinds[name].removeprefix("U").startswith(types) and not kinds[name].startswith((*types, "ENUM")):
            yield f"column {short_quote(name)} holds {printable(kinds[name][:80])}; expected {expected}"
        elif kinds[name].endswith("]"):
            yield f"column {short_quote(name)} holds a list; expected {expected}"


def _outcome_sql(column: str, kind: str) -> str:
    """What the value of a column means, as a number."""
    if kind == "BOOLEAN":
        return f"coalesce({column}::TINYINT, {MISSING_CODE})"
    if kind.removeprefix("U").startswith(NUMBER_SQL_TYPES):
        cases = f"WHEN {column} = 1 THEN {TRUE_CODE} WHEN {column} = 0 THEN {FALSE_CODE} ELSE {UNCLEAR_CODE}"
        return f"(CASE WHEN {column} IS NULL THEN {MISSING_CODE} {cases} END)"
    cases = " ".join(f"WHEN {sql_string(text)} THEN {meaning}" for text, meaning in BOOLEAN_CODES.items())
    blanks = f"concat({', '.join(f'chr({ord(blank)})' for blank in TRIMMED_WHITESPACE)})"
    text = f"coalesce(lower(trim({column}::VARCHAR, {blanks})), '')"
    return f"(CASE {text} {cases} ELSE {UNCLEAR_CODE} END)"


def _nameless_row_problems(found: ModelCaseCounts, columns: AttemptColumns) -> Iterator[Problem]:
    """A complaint about rows without a case or a model."""
    for column, names in ((columns.case, found.cases), (columns.model, found.models)):
        empty = [place for place, name in enumerate(names.tolist()) if name is None or not name.strip()]
        if empty:
            rows = sum(int(each[empty].sum()) for each in (found.tried, found.missing, found.unclear))
            yield Problem("", 0, f"{column} is empty; expected text or a whole number; {rows:,} such rows")


def _unclear_outcome_problems(
    found: ModelCaseCounts, sources: Sequence[ParquetSource], columns: AttemptColumns
) -> Iterator[Problem]:
    """A complaint about outcomes that cannot be read."""
    if not (rows := int(found.unclear.sum())):
        return
    with (
        tempfile.TemporaryDirectory() as scratch,
        open_database(scratch, COUNTING_MEMORY_LIMIT, threads=_threads()) as database,
    ):
        for source in (group for each in sources for group in _split_by_column_types(database, each, columns)):
            kinds = _column_types(database, source)
            passed = _outcome_column(kinds, columns)
            text = f"{sql_identifier(passed)}::VARCHAR"
            what = f"{_outcome_sql(sql_identifier(passed), kinds[passed])} = {UNCLEAR_CODE}"
            first = f"FROM {_read_parquet_sql(source, partitioned=True)} SELECT {text} WHERE {what} LIMIT 1"
            if value := database.execute(first).fetchone():
                more = f"; {rows:,} such rows" if rows > 1 else ""
                what = f"{passed} is {short_quote(str(value[0]))}; expected {EXPECTED_BOOLEAN_TEXT}{more}"
                yield Problem(printable(source.name), 0, what)
                return


def _contradictions(found: ModelCaseCounts, columns: AttemptColumns) -> Iterator[Problem]:
    if count := int(found.contradictory.sum()):
        place = int(found.contradictory.argmax())
        which = f"{short_quote(str(found.models[place]))}, {short_quote(str(found.cases[place]))}"
        yield Problem(
            "", 0, f"rows about the same {columns.sample} contradict each other: {which}; {count:,} such attempts"
        )


def _stripped(found: ModelCaseCounts) -> ModelCaseCounts:
    """The same, blanks around names taken away; what then has the same name adds up."""
    import numpy as np

    names = [[name.strip() for name in column.tolist()] for column in (found.models, found.cases)]
    if all(fresh == old.tolist() for fresh, old in zip(names, (found.models, found.cases), strict=True)):
        return found
    together: dict[tuple[str, str], list[int]] = {}
    for place, pair in enumerate(zip(*names, strict=True)):
        together.setdefault(pair, []).append(place)
    pairs = sorted(together)
    columns = [np.array([column[together[pair]].sum() for pair in pairs]) for column in found[2:]]
    models, cases = (np.array([pair[at] for pair in pairs], dtype=object) for at in (0, 1))
    return ModelCaseCounts(models, cases, *columns)


def _tallies(found: ModelCaseCounts) -> Iterator[Tally]:
    """One tally for each model; all have the same cases."""
    import numpy as np

    models, cases = found.models.tolist(), found.cases.tolist()
    begins = [place for place, model in enumerate(models) if not place or model != models[place - 1]]
    ends = [*begins[1:], len(models)][: len(begins)]
    names = cases if len(begins) == 1 else sorted(set(cases))
    if len(begins) * len(names) > MAX_MODEL_CASE_CELLS:
        what = f"{len(begins)} models with {len(names)} cases are too many to count"
        raise InputError(f"{what}; are these the right columns?")
    places = {} if len(begins) == 1 else {name: place for place, name in enumerate(names)}
    for begin, end in zip(begins, ends, strict=True):
        tried, passed = found.tried[begin:end], found.passed[begin:end]
        if places:
            own = np.fromiter((places[case] for case in cases[begin:end]), np.intp, end - begin)
            tried, passed = (_scattered_column(column, own, len(names)) for column in (tried, passed))
        yield Tally(models[begin], names, tried, passed, int(found.missing[begin:end].sum()))


def _scattered_column(column: npt.NDArray[Any], places: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    import numpy as np

    found = np.zeros(size, np.int32)
    found[places] = column
    return found


def _source_names(sources: Sequence[ParquetSource]) -> str:
    return ", ".join(printable(source.name) for source in sources[:MAX_FILES_NAMED])


def _file_problems(
    database: duckdb.DuckDBPyConnection, sources: Sequence[ParquetSource], columns: AttemptColumns, error: Exception
) -> list[Problem]:
    """The broken files with their problems; if none is broken, the message of the database."""
    duckdb = import_duckdb()

    found: list[Problem] = []
    for source in sources:
        for path in source.files:
            one = ParquetSource(path, (path,))
            try:
                kinds = _column_types(database, one)
                of_facts = kinds.keys() >= RUN_COPY_COLUMNS
                wrong = (
                    [] if of_facts else [Problem(printable(path), 0, what) for what in _column_faults(kinds, columns)]
                )
                found += wrong
                if not wrong and not isinstance(error, duckdb.OutOfMemoryException):
                    question = f'FROM {_rows_query(database, one, columns)} SELECT max(model), max("case"), max(what)'
                    call_interruptibly(database, lambda: database.execute(question))  # noqa: B023  used at once
            except duckdb.Error as why:
                found.append(Problem(printable(path), 0, f"not a Parquet file, or a broken one: {_error_text(why)}"))
            if len(found) >= MAX_FILES_NAMED:
                return found
    return found or [Problem(_source_names(sources), 0, _error_text(error))]


def _error_text(error: Exception) -> str:
    return short_quote(error_line(error))[1:-1]
