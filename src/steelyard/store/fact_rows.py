"""The facts of a run as rows of a database, each with what is thought of it."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from steelyard.records import Case, Fact, RunInfo
from steelyard.store.database import escape_glob, sql_identifier, sql_string
from steelyard.store.journal import StoredRun

MAX_COPY_PARTITIONS = 256
"""With more pairs of a model and a suite all facts of a run are in one file: smaller files would not help."""
SHORT_JOURNAL_LINE_BYTES = 512 << 10
"""Up to this length lines are read in small buffers."""


class FactScore(NamedTuple):
    """What one fact of a run becomes."""

    counts: bool | None = None
    """Whether it is the one of its attempt and kind that counts; None when the run has no such case."""
    correct: bool | None = None
    score: float | None = None


FactScorer = Callable[[RunInfo, Sequence[Case], Iterable[Fact]], Iterable[FactScore]]
"""One opinion for every fact, in their order; all facts are read before it returns, and opinions are read once."""

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
FROM $lines
WHERE kind IS NOT NULL AND pair IS NOT NULL
"""
"""The facts of a journal, one row each, in their order; rows that a growing run has added since have no score yet."""

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
OPINIONS_SQL = """read_csv($path, auto_detect = false, header = false, nullstr = '', buffer_size = 262144, max_line_size = 4096,
  columns = {counts: 'BOOLEAN', correct: 'BOOLEAN', score: 'DOUBLE', pair: 'INTEGER'})"""
"""By default the database would read opinions in buffers of 32 MB."""
JSON_LINES_SQL = """read_json($journal, format = 'newline_delimited', ignore_errors = true, maximum_object_size = $largest, columns = {$columns})
  POSITIONAL JOIN $opinions"""
"""Reads any line, in buffers of at least 32 MB, with its opinion."""
SHORT_LINES_SQL = """(SELECT unnest(json_transform(line, $structure)), counts, correct, score, pair
  FROM read_csv($journal, auto_detect = false, header = false, delim = '\x01', quote = '', escape = '', buffer_size = $buffer, max_line_size = $largest,
    columns = {line: 'VARCHAR'}) POSITIONAL JOIN $opinions)"""
"""Reads lines without damage in small buffers, each with its opinion; it fails at any other line. No line of JSON holds the delimiter.

Only two files are joined by position in a stream: of anything else the database would hold all rows of the second one in memory.
"""


def _sql_type(fields: Any) -> str:
    """The type of a field, as the database writes it."""
    if isinstance(fields, list):
        return f"{_sql_type(fields[0])}[]"
    if isinstance(fields, dict):
        return f"STRUCT({', '.join(f'{sql_identifier(name)} {_sql_type(kind)}' for name, kind in fields.items())})"
    return str(fields)


def lines_sql(journal: str, opinions: str, largest: int) -> str:
    """What reads the lines of a journal with their opinions, given as strings of SQL, if none is longer than this."""
    columns = ", ".join(f"{sql_identifier(name)}: {sql_string(_sql_type(kind))}" for name, kind in FACT_FIELDS.items())
    words = {
        "$journal": journal,
        "$opinions": _with_words(OPINIONS_SQL, {"$path": opinions}),
        "$largest": str(largest),
        "$buffer": str(2 * largest),
        "$columns": columns,
        "$structure": sql_string(msgspec.json.encode(FACT_FIELDS).decode()),
    }
    return _with_words(SHORT_LINES_SQL if largest <= SHORT_JOURNAL_LINE_BYTES else JSON_LINES_SQL, words)


def _with_words(sql: str, words: Mapping[str, str]) -> str:
    """A statement with its words in their places; what comes from a run is not searched for words."""
    return re.sub(r"\$[a-z]+", lambda word: words[word[0]], sql)


class FactQueries(NamedTuple):
    """The facts of a run as a database reads them."""

    run: str
    journals: list[dict[str, str]]
    """For each journal what its part of the query names."""
    pairs: list[tuple[str | None, str | None]]
    """The model and the suite of each part, by number."""
    size: int
    """How many there are."""

    def sql(self, largest: int) -> str:
        """The query that reads all of them, if no line is longer than this."""
        each = (
            {**words, "$lines": lines_sql(words["$journal"], words["$opinions"], largest)} for words in self.journals
        )
        return " UNION ALL ".join(_with_words(FACTS_SQL, words) for words in each)


def fact_queries(stored: StoredRun, opinions: FactScorer, scratch: Path) -> FactQueries:
    """The facts of a run, each with its opinion, its suite and the part that it belongs to."""
    journals = stored.journals()
    counts = dict.fromkeys(journals, 0)
    info, cases = stored.info, stored.cases
    suites = {case.id: case.suite for case in cases}
    numbers: dict[tuple[str | None, str | None], int] = {}

    def counted_facts(file: BinaryIO) -> Iterator[Fact]:
        for path in journals:
            for fact in stored.facts_of(path):
                counts[path] += 1
                number = numbers.setdefault((fact.model, suites.get(fact.case, "")), len(numbers))
                file.write(number.to_bytes(4, "big"))
                yield fact

    with (scratch / "pairs").open("wb") as file:
        found = iter(opinions(info, cases, counted_facts(file)))
    pairs = list(numbers)
    if len(pairs) > MAX_COPY_PARTITIONS or not pairs:
        pairs = [(None, None)]
    nothing = scratch / "nothing.jsonl"
    nothing.touch()
    named = []
    lines = _score_lines(found, _stored_numbers(scratch / "pairs"))
    for place, path in enumerate(journals or [nothing]):
        size = counts.get(path, 0)
        scores = scratch / f"{place}.csv"
        with scores.open("w") as scores_file:
            scores_file.writelines(islice(lines, size))
        damaged = {problem.line for problem in stored.damaged if problem.where == str(path)}
        # two readers need not agree on what a damaged line is, and from there on every opinion would be of another fact
        source = _undamaged_lines(path, damaged, size, scratch / f"{place}.jsonl") if damaged else path
        named.append(
            {
                "$run": sql_string(info.id),
                "$journal": sql_string(escape_glob(source)),
                "$opinions": sql_string(escape_glob(scores)),
                "$suites": ", ".join(sql_string(suite or "") for _, suite in numbers),
                "$part": "pair" if len(pairs) > 1 else "0",
            }
        )
    return FactQueries(info.id, named, pairs, sum(counts.values()))


def _stored_numbers(path: Path) -> Iterator[int]:
    """The numbers in a file, four bytes each."""
    with path.open("rb") as file:
        while piece := file.read(1 << 16):
            yield from (number for (number,) in struct.iter_unpack(">I", piece))


def _score_lines(opinions: Iterable[FactScore], pairs: Iterable[int]) -> Iterator[str]:
    """A line for each fact that the database reads beside it: its opinion, and the number of its model and suite.

    There may be fewer opinions than facts.
    """
    return map(_score_line, opinions, pairs)


# most runs have few different scores
@lru_cache(maxsize=1 << 12)
def _score_line(opinion: FactScore, pair: int) -> str:
    return ",".join("" if value is None else repr(value).lower() for value in (*opinion, pair)) + "\n"


def _undamaged_lines(path: Path, damaged: set[int], count: int, target: Path) -> Path:
    """A copy of the lines of a journal that can be read."""
    with path.open("rb") as lines, target.open("wb") as file:
        good = (line for number, line in enumerate(lines, 1) if number not in damaged)
        file.writelines(islice(good, count))
    return target
