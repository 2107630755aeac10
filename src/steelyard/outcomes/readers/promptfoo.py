"""Results of promptfoo: the JSON of `promptfoo eval -o`, and its database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from steelyard.errors import Problem
from steelyard.outcomes.files import UnreadableOutcomesError
from steelyard.outcomes.readers.sources import decoded, json_document, number, text, whole
from steelyard.protocols import ForeignFile
from steelyard.records import Answer, Cost, RecordedAttempt, digest

WHAT = "results of promptfoo"
SQLITE_MAGIC = b"SQLite format 3\0"
MAX_CASE_NAME_CHARACTERS = 120
FAILED_BY_ERROR = 2
"""What promptfoo writes as the reason of a failure that is an error and no failed assertion."""


class _PromptText(msgspec.Struct):
    raw: str = ""
    label: str = ""


class _ProviderName(msgspec.Struct):
    id: str = ""
    label: str | None = None


class _TokenUsage(msgspec.Struct):
    prompt: Any = None
    completion: Any = None
    cached: Any = None


class _Response(msgspec.Struct):
    output: Any = None
    error: Any = None
    tokenUsage: _TokenUsage | None = None  # noqa: N815  as promptfoo spells it
    finishReason: str | None = None  # noqa: N815


class _AssertionResult(msgspec.Struct):
    score: Any = None


class _Grading(msgspec.Struct):
    reason: str | None = None
    componentResults: list[_AssertionResult] | None = None  # noqa: N815


class _TestCase(msgspec.Struct):
    description: str | None = None
    vars: dict[str, Any] | None = None
    asserted: Any = msgspec.field(default=None, name="assert")


class _Result(msgspec.Struct):
    promptIdx: int = 0  # noqa: N815
    success: bool = False
    score: Any = None
    error: Any = None
    cost: Any = None
    provider: _ProviderName | str = ""
    prompt: _PromptText = msgspec.field(default_factory=_PromptText)
    response: _Response | None = None
    gradingResult: _Grading | None = None  # noqa: N815
    testCase: _TestCase = msgspec.field(default_factory=_TestCase)  # noqa: N815
    vars: dict[str, Any] | None = None
    latencyMs: Any = None  # noqa: N815
    failureReason: Any = 0  # noqa: N815


class _Results(msgspec.Struct):
    results: list[_Result]
    timestamp: str = ""
    prompts: list[Any] = []


class _Metadata(msgspec.Struct):
    promptfooVersion: str = ""  # noqa: N815


class _ResultsFile(msgspec.Struct):
    results: _Results
    metadata: _Metadata | None = None


class PromptfooReader:
    """Reads results of promptfoo; where an evaluation has several prompts, each is a tier."""

    def recognises(self, file: ForeignFile) -> bool:
        if file.beginning.startswith(SQLITE_MAGIC):
            return b"eval_results" in file.beginning or file.path.name.startswith("promptfoo")
        keys = (b'"evalId"', b'"results"')
        return file.beginning.startswith(b"{") and all(key in file.beginning[:400] for key in keys)

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        with path.open("rb") as file:
            is_database = file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
        if is_database:
            try:
                yield from _stored_attempts(path)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                # the library cannot even say what is wrong where a damaged name is part of that
                raise UnreadableOutcomesError(f"not a database of promptfoo: {str(error)[:200]}") from None
            return
        found = json_document(path, _ResultsFile, WHAT)
        version = found.metadata.promptfooVersion if found.metadata else ""
        results = found.results.results
        has_tiers = len({result.promptIdx for result in results}) > 1
        for result in results:
            yield _attempt(result, version, found.results.timestamp, has_tiers=has_tiers)


COLUMNS = (
    ("success", "success"),
    ("score", "score"),
    ("error", "error"),
    ("cost", "cost"),
    ("latencyMs", "latency_ms"),
    ("failureReason", "failure_reason"),
    ("promptIdx", "prompt_idx"),
)
JSON_COLUMNS = (
    ("provider", "provider"),
    ("prompt", "prompt"),
    ("response", "response"),
    ("gradingResult", "grading_result"),
    ("testCase", "test_case"),
)


def _stored_attempts(path: Path) -> Iterator[RecordedAttempt | Problem]:
    """The results of the newest evaluation in a database."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        kinds = dict(database.execute("SELECT name, type FROM sqlite_master WHERE name IN ('evals', 'eval_results')"))
        if kinds != {"evals": "table", "eval_results": "table"}:
            raise UnreadableOutcomesError("not a database of promptfoo: it has no results of evaluations")
        evaluations = [str(row[0]) for row in database.execute("SELECT id FROM evals ORDER BY created_at, id")]
        if len(evaluations) > 1:
            others = f"of {len(evaluations)} evaluations the newest is read, {evaluations[-1][:80]}"
            yield Problem(str(path), 0, f"{others}; promptfoo export eval ID -o FILE.json writes another", fatal=False)
        if not evaluations:
            return
        named = (*COLUMNS, *JSON_COLUMNS)
        newest = (evaluations[-1],)
        (prompts,) = database.execute(
            "SELECT count(DISTINCT prompt_idx) FROM eval_results WHERE eval_id = ?", newest
        ).fetchone()
        query = (
            f"SELECT created_at, {', '.join(column for _, column in named)} FROM eval_results "  # noqa: S608  names of ours
            "WHERE eval_id = ? ORDER BY test_idx, prompt_idx"
        )
        for at, *cells in database.execute(query, newest):
            values = dict(zip((name for name, _ in named), cells, strict=True))
            for name, _ in JSON_COLUMNS:
                raw = values[name]
                values[name] = decoded(str(raw).encode(), dict[str, Any], "a result of promptfoo") if raw else None
            values = {name: value for name, value in values.items() if value is not None}
            values["success"] = bool(values.get("success"))
            result = decoded(msgspec.json.encode(values), _Result, "a result of promptfoo")
            yield _attempt(result, "", f"{at}Z".replace(" ", "T"), has_tiers=prompts > 1)


def _attempt(result: _Result, version: str, at: str, *, has_tiers: bool) -> RecordedAttempt:
    case = result.testCase
    values = case.vars or result.vars or {}
    given = result.response or _Response()
    failed = text(result.error or given.error or "error") if result.failureReason == FAILED_BY_ERROR else ""
    usd, latency = number(result.cost), number(result.latencyMs)
    tokens = given.tokenUsage or _TokenUsage()
    answer = Answer(
        text=text(given.output),
        finish=given.finishReason or "stop",
        input_tokens=whole(tokens.prompt),
        output_tokens=whole(tokens.completion),
        cached_tokens=whole(tokens.cached),
        # promptfoo writes 0 where it knows no price
        cost=Cost(usd=usd, source="promptfoo") if usd else None,
        latency=None if latency is None else latency / 1000,
    )
    provider = result.provider
    model = provider if isinstance(provider, str) else provider.label or provider.id
    return RecordedAttempt(
        case=case.description or _name(values),
        model=model,
        tier=_tier(result) if has_tiers else "",
        judged_by="promptfoo",
        tool=f"promptfoo {version}".strip(),
        passed=None if failed else result.success,
        score=None if failed else number(result.score),
        graded=_is_graded(result),
        answer=None if failed and given.output is None else answer,
        prompt=result.prompt.raw,
        reason="" if result.success or not result.gradingResult else result.gradingResult.reason or "",
        failure=failed,
        tests=digest(case.asserted) if case.asserted else "",
        at=at,
    )


def _is_graded(result: _Result) -> bool:
    """Whether an assertion gave a part of its score; the share of assertions that hold is no such grade."""
    assertions = result.gradingResult.componentResults if result.gradingResult else None
    scores = [number(each.score) for each in assertions or ()]
    return any(score is not None and 0 < score < 1 for score in scores)


def _name(values: dict[str, Any]) -> str:
    """A name for a test without a description: its variables, cut where they are long, so that equal tests are one case.

    >>> _name({"country": "fr", "year": 1990})
    'country=fr, year=1990'
    """
    name = ", ".join(f"{key}={text(value)}" for key, value in sorted(values.items())) or "-"
    return name if len(name) <= MAX_CASE_NAME_CHARACTERS else f"{name[:MAX_CASE_NAME_CHARACTERS]}… {digest(values)[:8]}"


def _tier(result: _Result) -> str:
    label = result.prompt.label
    return label if label and len(label) <= MAX_CASE_NAME_CHARACTERS else f"prompt {result.promptIdx + 1}"
