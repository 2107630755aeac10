"""Attempts in Parquet, however many there are, counted case by case in bounded memory."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.counts import Outcomes, Tally
from steelyard.errors import InputError, Problem, printable, shown
from steelyard.outcomes.codes import BOOLEANS, EXPECTED, FALSE, MISSING, NAMES_LIMIT, TRUE, UNCLEAR
from steelyard.outcomes.counter import CELLS_LIMIT
from steelyard.outcomes.problems import no_column
from steelyard.store.database import identifier, literal, opened, patiently, quoted, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    import duckdb
    import numpy.typing as npt

MEMORY = "1200MB"
"""What the database may take before it goes on on disk; Python and the counts come on top of it.

A million cases fit in there; where they do not, counting on disk costs three times as much.
"""
PASSED = ("correct", "passed")
"""What the column with the outcome is called where nobody says so, the first that is there."""
FACTS = {"kind", "counts", "case", "model", "tier", "correct", "failure_stage"}
"""The columns by which a copy of a run is known: it has a row for every fact, not for every attempt."""
WORTHLESS = -3
"""Stands for a row that says nothing about any attempt."""
ANSWERED = 2
"""Added to an outcome whose attempt has another row that says that it is not judged yet."""
NAMES = ("VARCHAR", "UUID", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
"""Types of what can be a name; those of whole numbers may be unsigned."""
NUMBERS = ("FLOAT", "DOUBLE", "DECIMAL", *NAMES[2:])
BLANKS = " \t\n\r\v\f"
PAIRS_LIMIT = 1 << 24
"""Models with cases that are counted; each takes a few hundred bytes, and a column that is none of cases may have any number."""
BLAMED = 5
"""Files that a message names."""


class Columns(NamedTuple):
    """What the columns are called."""

    case: str = "case"
    model: str = "model"
    """Where there is no such column, the model is called like the file or the folder."""
    passed: str | None = None
    """None for the first of the usual ones that is there."""
    sample: str | None = None
    """Which attempt at the case it is; None when every row is an attempt of its own."""


USUAL = Columns()


class Source(NamedTuple):
    """Some Parquet files that belong together."""

    name: str
    """As the user calls it."""
    files: tuple[str, ...]

    @property
    def stem(self) -> str:
        return Path(self.name).name.removesuffix(".parquet") or self.name


class Counts(NamedTuple):
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
    """Rows that tell again of an attempt; they are in no other number."""
    contradictory: npt.NDArray[Any]
    """Attempts that rows contradict each other about."""


def counted(sources: Sequence[Source], columns: Columns = USUAL, *, memory: str = MEMORY) -> Outcomes:
    """How the attempts in some Parquet files came out, one tally per model, models and cases sorted by name.

    All files are one table: what they say about the same model and case adds up. Raises an InputError with what is wrong.
    """
    return outcomes_of(counts(sources, columns, memory=memory), sources, columns)


def counts(sources: Sequence[Source], columns: Columns = USUAL, *, memory: str = MEMORY) -> Counts:
    """The same as columns of numbers; outcomes and names are not checked yet."""
    with tempfile.TemporaryDirectory() as scratch, opened(scratch, memory, threads=_threads()) as database:
        _count(database, sources, columns)
        return _fetched(database)


def counts_as_arrow(sources: Sequence[Source], columns: Columns, *, memory: str) -> Any:
    """The same as an Arrow table, by one thread: a part of the work that `Adding` puts together."""
    with tempfile.TemporaryDirectory() as scratch, opened(scratch, memory, threads=1) as database:
        _count(database, sources, columns)
        return database.table("counted").to_arrow_table()


class Adding:
    """Counts of some files that come together, in whatever order and however many, in bounded memory."""

    def __init__(self, *, memory: str = MEMORY) -> None:
        self._stack = ExitStack()
        scratch = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._database = self._stack.enter_context(opened(scratch, memory, threads=_threads()))
        numbers = ", ".join(f"{name} BIGINT" for name in Counts._fields[2:])
        self._database.execute(f'CREATE TABLE parts (model VARCHAR, "case" VARCHAR, {numbers})')

    def add(self, part: Any) -> None:
        """Add counts: an Arrow table with the columns of `Counts`."""
        self._database.register("part", part)
        self._database.execute("INSERT INTO parts FROM part")
        self._database.unregister("part")

    def counts(self) -> Counts:
        """All together."""
        self._add_up()
        return _fetched(self._database)

    def write(self, path: Path) -> None:
        """The same as a Parquet file, which `read_counts` reads."""
        self._add_up()
        self._database.execute(f"COPY counted TO {quoted(str(path))} (FORMAT parquet)")

    def _add_up(self) -> None:
        sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in Counts._fields[2:])
        question = f'CREATE TABLE counted AS FROM parts SELECT model, "case", {sums} GROUP BY model, "case"'
        patiently(self._database, lambda: self._database.execute(question))
        _check_size(self._database)

    def __enter__(self) -> Adding:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def read_counts(path: Path, *, memory: str = MEMORY) -> Counts:
    """What `Adding` wrote."""
    with tempfile.TemporaryDirectory() as scratch, opened(scratch, memory, threads=_threads()) as database:
        database.execute(f"CREATE VIEW counted AS FROM read_parquet({quoted(literal(path))})")
        return _fetched(database)


def outcomes_of(found: Counts, sources: Sequence[Source], columns: Columns) -> Outcomes:
    """Counts as tallies, checked; what is wrong is looked for again in the files."""
    wrong = [*_nameless(found, columns), *_unclear(found, sources, columns), *_contradictions(found, columns)]
    if wrong:
        raise InputError(wrong)
    warnings = []
    if repeated := int(found.repeated.sum()):
        warnings.append(Problem(_where(sources), 0, f"{repeated:,} rows tell again of an attempt; counted once", False))
    if not len(found.cases):
        warnings.append(Problem(_where(sources), 0, "no rows", fatal=False))
    return Outcomes(tuple(_tallies(_stripped(found))), tuple(warnings))


def _threads() -> int:
    return min(8, os.cpu_count() or 1)


GROUPED = """
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

ONCE = """
SELECT model, "case", any_value(what) AS what, count(*) - 1 AS again, min(what) <> max(what) AS contradicted
FROM ($rows) WHERE what <> -3 GROUP BY model, "case", sample
"""
"""Rows about the same sample, as one."""


def _count(database: duckdb.DuckDBPyConnection, sources: Sequence[Source], columns: Columns) -> None:
    """Make a table of the counts; an InputError that says which files are to blame where there are none."""
    import duckdb

    try:
        alike = [group for source in sources for group in _alike(database, source, columns)]
        rows = " UNION ALL ".join(_rows(database, group, columns) for group in alike)
        words = {"$repeated": "0", "$contradictory": "0"}
        if columns.sample is not None:
            rows = ONCE.replace("$rows", rows)
            words = {"$repeated": "sum(again)", "$contradictory": "count(*) FILTER (contradicted)"}
        question = GROUPED
        for word, meaning in (*words.items(), ("$rows", rows)):
            question = question.replace(word, meaning)
        patiently(database, lambda: database.execute(question))
    except duckdb.Error as error:
        raise InputError(_blamed(database, sources, columns, error)) from None
    _check_size(database)


def _alike(database: duckdb.DuckDBPyConnection, source: Source, columns: Columns) -> list[Source]:
    """The files of a source, those together whose columns have the same types.

    The database takes all files for what the first one is, and makes a yes of every number where that one holds booleans.
    """
    if len(source.files) == 1:
        return [source]
    names = ", ".join(quoted(name) for name in {*columns, *PASSED, *FACTS} if name is not None)
    kind = "{name: name, type: type, meaning: coalesce(logical_type, converted_type::VARCHAR), children: num_children}"
    question = f"""FROM parquet_schema([{_listed(source)}])
      SELECT file_name, (list({kind} ORDER BY name) FILTER (name IN ({names})))::VARCHAR GROUP BY file_name"""
    kinds = dict(patiently(database, lambda: database.execute(question).fetchall()))
    together: dict[str | None, list[str]] = {}
    for path in source.files:
        together.setdefault(kinds.get(path), []).append(path)
    return [Source(source.name, tuple(files)) for files in together.values()]


def _check_size(database: duckdb.DuckDBPyConnection) -> None:
    """An InputError if there is more to be told than memory should hold."""
    size = 'SELECT count(*), coalesce(sum(strlen(model) + strlen("case")), 0) FROM counted'
    ((pairs, names),) = database.execute(size).fetchall()
    if pairs > PAIRS_LIMIT or names > NAMES_LIMIT:
        what = f"{pairs:,} pairs of a model and a case, whose names have {names:,} bytes, are too many to count"
        raise InputError(f"{what}; are these the right columns?")


def _fetched(database: duckdb.DuckDBPyConnection) -> Counts:
    """The counts of a table, in order."""
    question = 'FROM counted ORDER BY model, "case"'
    found = patiently(database, lambda: database.execute(question).fetchnumpy())
    return Counts(*map(_unmasked, found.values()))


def _unmasked(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column in which None stands for what is not there."""
    import numpy as np

    return np.array(column.tolist(), object) if np.ma.is_masked(column) else np.asarray(column)


def _rows(database: duckdb.DuckDBPyConnection, source: Source, columns: Columns) -> str:
    """A query for what each row of a source says: model, case, what it means, and which sample it is about."""
    kinds = _kinds(database, source)
    if kinds.keys() >= FACTS:
        if columns != USUAL:
            what = "a copy of a run, whose columns are known and whose attempts count once; name no columns"
            raise InputError([Problem(printable(source.name), 0, what)])
        name = "if(coalesce(tier, '') = '', model, model || ' (' || tier || ')')"
        return f"""(FROM {_read(source, partitioned=False)}
          SELECT {name} AS model, "case", CASE
            WHEN NOT counts OR counts IS NULL THEN {WORTHLESS}
            WHEN kind = 'verdict' AND correct IS NOT NULL THEN {ANSWERED} + correct::TINYINT
            WHEN kind = 'reply' OR (kind = 'failure' AND failure_stage = 'ask') THEN {MISSING}
            ELSE {WORTHLESS} END::TINYINT AS what)"""
    wrong = [Problem(printable(source.name), 0, what) for what in _unfit(kinds, columns)]
    if wrong:
        raise InputError(wrong)
    model = f"{identifier(columns.model)}::VARCHAR" if columns.model in kinds else quoted(source.stem)
    sample = "" if columns.sample is None else f", {identifier(columns.sample)}::VARCHAR AS sample"
    passed = _passed(kinds, columns)
    return f"""(FROM {_read(source, partitioned=True)}
      SELECT {model} AS model, {identifier(columns.case)}::VARCHAR AS "case",
        {_outcome(identifier(passed), kinds[passed])}::TINYINT AS what{sample})"""


def _read(source: Source, *, partitioned: bool) -> str:
    # what a path tells is text, whatever it looks like; paths of ours may tell less than the rows do
    how = "hive_types_autocast = false" if partitioned else "hive_partitioning = false"
    return f"read_parquet([{_listed(source)}], binary_as_string = true, {how})"


def _listed(source: Source) -> str:
    return ", ".join(quoted(literal(Path(path))) for path in source.files)


def _kinds(database: duckdb.DuckDBPyConnection, source: Source) -> dict[str, str]:
    """The types of the columns that a source has."""
    described = database.execute(f"DESCRIBE FROM {_read(source, partitioned=True)}").fetchall()
    return {str(name): str(kind) for name, kind, *_ in described}


def _passed(kinds: Mapping[str, str], columns: Columns) -> str:
    """The column with the outcome."""
    usual = (name for name in PASSED if name in kinds)
    return columns.passed if columns.passed is not None else next(usual, PASSED[0])


def _unfit(kinds: Mapping[str, str], columns: Columns) -> Iterator[str]:
    """What is wrong with the columns."""
    for name, expected, types in (
        (columns.case, "text or whole numbers", NAMES),
        (columns.model, "text or whole numbers", NAMES),
        (columns.sample, "text or whole numbers", NAMES),
        (_passed(kinds, columns), "booleans", ("BOOLEAN", "VARCHAR", *NUMBERS)),
    ):
        if name is None or (name == columns.model == "model" and name not in kinds):
            continue
        if name not in kinds:
            yield no_column(name, kinds)
        elif not kinds[name].removeprefix("U").startswith(types) and not kinds[name].startswith((*types, "ENUM")):
            yield f"column {shown(name)} holds {printable(kinds[name][:80])}; expected {expected}"
        elif kinds[name].endswith("]"):
            yield f"column {shown(name)} holds a list; expected {expected}"


def _outcome(column: str, kind: str) -> str:
    """What the value of a column means, as a number."""
    if kind == "BOOLEAN":
        return f"coalesce({column}::TINYINT, {MISSING})"
    if kind.removeprefix("U").startswith(NUMBERS):
        cases = f"WHEN {column} = 1 THEN {TRUE} WHEN {column} = 0 THEN {FALSE} ELSE {UNCLEAR}"
        return f"(CASE WHEN {column} IS NULL THEN {MISSING} {cases} END)"
    cases = " ".join(f"WHEN {quoted(text)} THEN {meaning}" for text, meaning in BOOLEANS.items())
    blanks = f"concat({', '.join(f'chr({ord(blank)})' for blank in BLANKS)})"
    told = f"coalesce(lower(trim({column}::VARCHAR, {blanks})), '')"
    return f"(CASE {told} {cases} ELSE {UNCLEAR} END)"


def _nameless(found: Counts, columns: Columns) -> Iterator[Problem]:
    """A complaint about rows without a case or a model."""
    for column, names in ((columns.case, found.cases), (columns.model, found.models)):
        empty = [place for place, name in enumerate(names.tolist()) if name is None or not name.strip()]
        if empty:
            rows = sum(int(each[empty].sum()) for each in (found.tried, found.missing, found.unclear))
            yield Problem("", 0, f"{column} is empty; expected text or a whole number; {rows:,} such rows")


def _unclear(found: Counts, sources: Sequence[Source], columns: Columns) -> Iterator[Problem]:
    """A complaint about outcomes that cannot be read."""
    if not (rows := int(found.unclear.sum())):
        return
    with tempfile.TemporaryDirectory() as scratch, opened(scratch, MEMORY, threads=_threads()) as database:
        for source in (group for each in sources for group in _alike(database, each, columns)):
            kinds = _kinds(database, source)
            passed = _passed(kinds, columns)
            told = f"{identifier(passed)}::VARCHAR"
            what = f"{_outcome(identifier(passed), kinds[passed])} = {UNCLEAR}"
            first = f"FROM {_read(source, partitioned=True)} SELECT {told} WHERE {what} LIMIT 1"
            if value := database.execute(first).fetchone():
                more = f"; {rows:,} such rows" if rows > 1 else ""
                what = f"{passed} is {shown(str(value[0]))}; expected {EXPECTED}{more}"
                yield Problem(printable(source.name), 0, what)
                return


def _contradictions(found: Counts, columns: Columns) -> Iterator[Problem]:
    if count := int(found.contradictory.sum()):
        place = int(found.contradictory.argmax())
        which = f"{shown(str(found.models[place]))}, {shown(str(found.cases[place]))}"
        yield Problem(
            "", 0, f"rows about the same {columns.sample} contradict each other: {which}; {count:,} such attempts"
        )


def _stripped(found: Counts) -> Counts:
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
    return Counts(models, cases, *columns)


def _tallies(found: Counts) -> Iterator[Tally]:
    """One tally for each model; all have the same cases."""
    import numpy as np

    models, cases = found.models.tolist(), found.cases.tolist()
    begins = [place for place, model in enumerate(models) if not place or model != models[place - 1]]
    ends = [*begins[1:], len(models)][: len(begins)]
    names = cases if len(begins) == 1 else sorted(set(cases))
    if len(begins) * len(names) > CELLS_LIMIT:
        what = f"{len(begins)} models with {len(names)} cases are too many to count"
        raise InputError(f"{what}; are these the right columns?")
    places = {} if len(begins) == 1 else {name: place for place, name in enumerate(names)}
    for begin, end in zip(begins, ends, strict=True):
        tried, passed = found.tried[begin:end], found.passed[begin:end]
        if places:
            own = np.fromiter((places[case] for case in cases[begin:end]), np.intp, end - begin)
            tried, passed = (_spread(column, own, len(names)) for column in (tried, passed))
        yield Tally(models[begin], names, tried, passed, int(found.missing[begin:end].sum()))


def _spread(column: npt.NDArray[Any], places: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    import numpy as np

    found = np.zeros(size, np.int32)
    found[places] = column
    return found


def _where(sources: Sequence[Source]) -> str:
    return ", ".join(printable(source.name) for source in sources[:BLAMED])


def _blamed(
    database: duckdb.DuckDBPyConnection, sources: Sequence[Source], columns: Columns, error: Exception
) -> list[Problem]:
    """What is wrong with which files; if none is to blame, what the database says."""
    import duckdb

    found: list[Problem] = []
    for source in sources:
        for path in source.files:
            one = Source(path, (path,))
            try:
                kinds = _kinds(database, one)
                of_facts = kinds.keys() >= FACTS
                wrong = [] if of_facts else [Problem(printable(path), 0, what) for what in _unfit(kinds, columns)]
                found += wrong
                if not wrong and not isinstance(error, duckdb.OutOfMemoryException):
                    question = f'FROM {_rows(database, one, columns)} SELECT max(model), max("case"), max(what)'
                    patiently(database, lambda: database.execute(question))  # noqa: B023  used at once
            except duckdb.Error as why:
                found.append(Problem(printable(path), 0, f"no Parquet file, or a broken one: {_said(why)}"))
            if len(found) >= BLAMED:
                return found
    return found or [Problem(_where(sources), 0, _said(error))]


def _said(error: Exception) -> str:
    return shown(sentence(error))[1:-1]
