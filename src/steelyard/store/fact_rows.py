"""The facts of a run as rows of a database, each with what is thought of it."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.errors import Problem
from steelyard.records import Case, Fact, RunInfo
from steelyard.store.database import escape_glob, sql_identifier, sql_string
from steelyard.store.journal import USUAL_JOURNAL_LINE_BYTES, JournalReader, StoredRun

MAX_COPY_PARTITIONS = 256
"""With more pairs of a model and a suite all facts of a run are in one file: smaller files would not help."""


class FactScore(NamedTuple):
    """What one fact of a run becomes."""

    counts: bool | None = None
    """Whether it is the one of its attempt and kind that counts; None when the run has no such case."""
    correct: bool | None = None
    score: float | None = None


FactScorer = Callable[[RunInfo, Sequence[Case], Iterable[Fact]], Iterable[FactScore]]
"""One score for every fact, in their order; all facts are read before it returns."""

FACTS_SQL = """
SELECT $run AS run, kind, key, ask, try_cast("at" AS TIMESTAMP) AS "at", "case", ([$suites]::VARCHAR[])[pair + 1] AS suite, model, coalesce(tier, '') AS tier,
  number, counts,
  answer.text AS reply, if(kind = 'reply', coalesce(answer.finish, 'stop'), NULL) AS finish,
  answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.reasoning_tokens,
  answer.cost.usd AS cost_usd, answer.latency, answer.turns,
  verifier, tests, correct, score, found.code, found.compiled,
  len(list_filter(found.tests, lambda test: test.outcome = 'passed')) AS tests_passed,
  len(list_filter(found.tests, lambda test: test.outcome = 'failed')) AS tests_failed,
  found.warnings, found.passed, found.score AS own_score, found.label, found.reason,
  if(found.trust NOT IN ('', 'isolated', 'in-process', 'recorded'), 'in-process', found.trust) AS trust, found.isolation,
  found.tampered, if(kind = 'verdict', coalesce(found.rechecked, 0), NULL) AS rechecked,
  if(kind = 'verdict', coalesce(found.disagreed, 0), NULL) AS disagreed,
  if(kind = 'verdict', coalesce(found.graded, false), NULL) AS graded,
  found.flag, found.watched, if(kind = 'verdict', coalesce(found.controls, 0), NULL) AS controls,
  stage AS failure_stage, message AS failure, $part::INT AS part
FROM read_json($journal, format = 'newline_delimited', ignore_errors = true, maximum_object_size = $largest, columns = {$columns})
  POSITIONAL JOIN read_csv($scores, auto_detect = false, header = false, nullstr = '', buffer_size = 262144, max_line_size = 4096,
    columns = {counts: 'BOOLEAN', correct: 'BOOLEAN', score: 'DOUBLE', pair: 'INTEGER'})
WHERE kind IS NOT NULL AND pair IS NOT NULL
"""
"""The facts of a journal, one row each, in their order; by default the database would read scores in buffers of 32 MB."""

_COST = {"usd": "DOUBLE"}
_TOKENS = dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"), "BIGINT")
_TURN = {
    **dict.fromkeys(("role", "text", "at"), "VARCHAR"),
    "tool_calls": [{"name": "VARCHAR", "arguments": "VARCHAR"}],
    "results": [{"name": "VARCHAR", "content": "VARCHAR", "is_error": "BOOLEAN", "seconds": "DOUBLE"}],
    **dict.fromkeys(("finish", "model"), "VARCHAR"),
    **_TOKENS,
    "cost": _COST,
    "latency": "DOUBLE",
}
FACT_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("kind", "key", "ask", "at", "case", "model"), "VARCHAR"),
    "number": "BIGINT",
    **dict.fromkeys(("tier", "tests", "verifier", "stage", "message"), "VARCHAR"),
    "answer": {"text": "VARCHAR", "finish": "VARCHAR", **_TOKENS, "cost": _COST, "latency": "DOUBLE", "turns": [_TURN]},
    "found": {
        "code": "VARCHAR",
        "compiled": "BOOLEAN",
        "tests": [{"outcome": "VARCHAR"}],
        "warnings": "BIGINT",
        "passed": "BOOLEAN",
        "score": "DOUBLE",
        **dict.fromkeys(("label", "reason", "trust", "isolation", "tampered", "flag"), "VARCHAR"),
        "rechecked": "BIGINT",
        "disagreed": "BIGINT",
        "graded": "BOOLEAN",
        "watched": "BOOLEAN",
        "controls": "BIGINT",
    },
}
"""What is read of a line of a journal: names and types, nested as there."""


def _sql_type(fields: Any) -> str:
    """The type of a field, as the database writes it."""
    if isinstance(fields, list):
        return f"{_sql_type(fields[0])}[]"
    if isinstance(fields, dict):
        return f"STRUCT({', '.join(f'{sql_identifier(name)} {_sql_type(kind)}' for name, kind in fields.items())})"
    return str(fields)


class FactQueries(NamedTuple):
    """The facts of a run as a database reads them."""

    run: str
    journals: list[str]
    """The query for each journal."""
    pairs: list[tuple[str | None, str | None]]
    """The model and the suite of each part, by number."""
    size: int
    """How many there are."""

    def sql(self) -> str:
        """The query that reads all of them."""
        return " UNION ALL ".join(self.journals)


def fact_queries(stored: StoredRun, scorer: FactScorer, scratch: Path) -> FactQueries:
    """The facts of a run, each with its score, its suite and the part that it belongs to."""
    info, cases, journals = stored.info, stored.cases, stored.journals()
    suites = {case.id: case.suite for case in cases}
    numbers: dict[tuple[str | None, str | None], int] = {}
    read: list[_ReadJournal] = []
    part_numbers = array("I")

    def facts() -> Iterator[Fact]:
        for path in journals:
            damaged: list[Problem] = []
            reader, longest, before = JournalReader(stored, path, damaged.append), 0, len(part_numbers)
            for _, line, fact in reader.lines():
                longest = max(longest, len(line))
                part_numbers.append(numbers.setdefault((fact.model, suites.get(fact.case, "")), len(numbers)))
                yield fact
            is_whole = not damaged and reader.byte == path.stat().st_size
            bad = None if is_whole else {problem.line for problem in damaged}
            read.append(_ReadJournal(path, len(part_numbers) - before, longest, bad))

    scores = zip(scorer(info, cases, facts()), part_numbers, strict=False)
    pairs = list(numbers)
    if len(pairs) > MAX_COPY_PARTITIONS or not pairs:
        pairs = [(None, None)]
    if not read:
        nothing = scratch / "nothing.jsonl"
        nothing.touch()
        read.append(_ReadJournal(nothing, 0, 0, None))
    columns = ", ".join(f"{sql_identifier(name)}: {sql_string(_sql_type(kind))}" for name, kind in FACT_FIELDS.items())
    queries = []
    for place, journal in enumerate(read):
        path = scratch / f"{place}.csv"
        with path.open("w") as file:
            file.writelines(_score_line(score, pair) for score, pair in islice(scores, journal.size))
        words = {
            "$run": sql_string(info.id),
            "$journal": sql_string(escape_glob(journal.undamaged(scratch / f"{place}.jsonl"))),
            "$scores": sql_string(escape_glob(path)),
            "$largest": str(max(USUAL_JOURNAL_LINE_BYTES, journal.longest)),
            "$columns": columns,
            "$suites": ", ".join(sql_string(suite or "") for _, suite in numbers),
            "$part": "pair" if len(pairs) > 1 else "0",
        }
        # what comes from a run is not searched for words
        queries.append(re.sub(r"\$[a-z]+", lambda word, words=words: words[word[0]], FACTS_SQL))  # type: ignore[misc]
    return FactQueries(info.id, queries, pairs, len(part_numbers))


class _ReadJournal(NamedTuple):
    path: Path
    size: int
    """How many facts it has."""
    longest: int
    """Bytes of its longest line."""
    damaged: set[int] | None
    """The numbers of the lines that cannot be read; None if it ends with its last fact and has none of these."""

    def undamaged(self, target: Path) -> Path:
        """The journal, or a copy of its facts: two readers need not agree on what a damaged line is."""
        if self.damaged is None:
            return self.path
        with self.path.open("rb") as lines, target.open("wb") as file:
            good = (line for number, line in enumerate(lines, 1) if number not in (self.damaged or ()))
            file.writelines(islice(good, self.size))
        return target


def _score_line(score: FactScore, pair: int) -> str:
    return ",".join("" if value is None else repr(value).lower() for value in (*score, pair)) + "\n"
