"""The HTTP API: what pages show, for programs, read-only and in pages whose order holds while a run grows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.responses import Response

from steelyard.analysis.attempt_texts import AttemptText
from steelyard.analysis.attempts import AttemptOutcome
from steelyard.analysis.summary import RunResults, Summary
from steelyard.reports import markdown
from steelyard.reports.exports.attempt_rows import result
from steelyard.reports.figures import model_label
from steelyard.text import escaped_json
from steelyard.viewer import openapi
from steelyard.viewer.api_records import (
    AttemptDetail,
    AttemptEntry,
    CaseChange,
    CaseDetail,
    CaseInRun,
    CaseModelCounts,
    ComparisonPage,
    JudgmentEntry,
    Page,
    RunDetail,
    RunEntry,
    ServerHealth,
    SuiteStats,
)
from steelyard.viewer.comparisons import compared_sides
from steelyard.viewer.query_params import MAX_QUERY_VALUE_CHARACTERS, QueryParameters, ViewerRequestError
from steelyard.viewer.run_cache import RunCache
from steelyard.viewer.run_list import ListedRun, RunState
from steelyard.viewer.run_view import AttemptRow, RunView
from steelyard.viewer.tier_views import judgments

DEFAULT_PAGE_ENTRIES, MAX_PAGE_ENTRIES = 50, 200
"""The default and the maximum number of entries on a page."""
MAX_PAGE_REPLY_CHARACTERS = 4 << 20
"""Characters of replies after which a page ends early: no request may fill the memory."""
RUNS_SEARCHED_PER_PAGE = 20
"""Runs that are looked through for one page about a case."""
_MOST = MAX_QUERY_VALUE_CHARACTERS

RunId = Annotated[str, Meta(min_length=1, max_length=_MOST, description="The name of the run's folder.")]
OnlyRun = Annotated[str, Meta(max_length=_MOST, description="Only this run.")]
TheCase = Annotated[str, Meta(min_length=1, max_length=_MOST, description="The id of the case.")]
OnlyCase = Annotated[str, Meta(max_length=_MOST, description="Only attempts at this case.")]
TheModel = Annotated[str, Meta(min_length=1, max_length=_MOST, description="The model, as `model_id` names it.")]
OnlyModel = Annotated[str, Meta(max_length=_MOST, description="Only this model, as `model_id` names it.")]
OnlyEvalSet = Annotated[str, Meta(max_length=_MOST, description="Only runs of this eval set.")]
OnlyState = Annotated[Literal["", RunState], Meta(description="Only runs in this state.")]
OnlyOutcome = Annotated[Literal["", AttemptOutcome], Meta(description="Only attempts with this outcome.")]
Number = Annotated[int, Meta(ge=1, le=1_000_000, description="Its number.")]
Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE_ENTRIES, description="Entries on the page.")]
_CURSOR_TEXT = "What the page before gave as `next_cursor`."
RunCursor = Annotated[str, Meta(max_length=_MOST, description=_CURSOR_TEXT)]
AttemptCursor = Annotated[str, Meta(pattern=r"^[0-9]{1,7}\.[0-9]{1,4}\.[0-9]{1,7}$", description=_CURSOR_TEXT)]
"""After which case, column and number."""
ChangeCursor = Annotated[str, Meta(pattern="^[0-9]{1,9}$", description=_CURSOR_TEXT)]
"""After how many changes."""
BaselineSide = Annotated[str, Meta(min_length=1, max_length=_MOST, description="`RUN` or `RUN@MODEL`: what it was.")]
CurrentSide = Annotated[str, Meta(min_length=1, max_length=_MOST, description="`RUN` or `RUN@MODEL`: what it is now.")]
_SHARE = r"^0\.(?!0{1,6}$)[0-9]{1,6}$"
Alpha = Annotated[str, Meta(pattern=_SHARE, description="How often nothing may raise an alarm, such as 0.05.")]
Margin = Annotated[str, Meta(pattern=_SHARE, description="A mean drop below this may pass, such as 0.05.")]


def answer(run_cache: RunCache, path: str, asked: QueryParameters, parts: dict[str, str]) -> Response:
    """The answer of an address of the API; parameters that it does not have are refused."""
    if any(len(part) > MAX_QUERY_VALUE_CHARACTERS for part in parts.values()):
        raise ViewerRequestError(400, f"a name in an address has at most {MAX_QUERY_VALUE_CHARACTERS} characters")
    queried = [each for each in openapi.address_parameters(path, ANSWERS[path]) if not each.is_in_path]
    asked.check([each.name for each in queried])
    found = ANSWERS[path](run_cache, **parts, **{each.name: each.value(asked) for each in queried})
    return Response(found, media_type="text/markdown; charset=utf-8") if isinstance(found, str) else _json(found)


def health(_: RunCache) -> ServerHealth:
    """That the server is there; needs no key."""
    return ServerHealth(version=version("steelyard"))


def description(_: RunCache) -> dict[str, Any]:
    """This description."""
    return openapi.api_document(ANSWERS)


def runs(
    run_cache: RunCache,
    limit: Limit = DEFAULT_PAGE_ENTRIES,
    cursor: RunCursor = "",
    model_id: OnlyModel = "",
    eval_set: OnlyEvalSet = "",
    state: OnlyState = "",
) -> Page[RunEntry]:
    """The runs, the newest first."""
    wanted = [
        one
        for one in run_cache.listing().runs
        if (not model_id or model_id in [model_label(each.model, each.tier) for each in one.models])
        and (not eval_set or eval_set in one.eval_sets)
        and (not state or one.state == state)
    ]
    shown, next_cursor = _older(wanted, cursor, limit)
    return Page(items=tuple(map(_entry, shown)), next_cursor=next_cursor, total=len(wanted))


def run(run_cache: RunCache, run_id: RunId) -> RunDetail:
    """One run with what it was asked to do."""
    opened = run_cache.run(run_id)
    listed = next((one for one in run_cache.listing().runs if one.name == run_id), None)
    if listed is None:
        raise ViewerRequestError(404, f'no run "{run_id[:100]}" here')
    entry = msgspec.structs.asdict(_entry(listed))
    entry["suite_stats"] = tuple(_suite_stats(opened)) or entry["suite_stats"]
    return RunDetail(**entry, info=opened.info, version=opened.version, problems=opened.problems)


def summary(run_cache: RunCache, run_id: RunId) -> Summary:
    """What a run adds up to, per model and per case, each number with its interval."""
    return run_cache.run(run_id).summary()


def results(
    run_cache: RunCache,
    run_id: RunId,
    limit: Limit = DEFAULT_PAGE_ENTRIES,
    cursor: AttemptCursor = "",
    case_id: OnlyCase = "",
    model_id: OnlyModel = "",
) -> Page[dict[str, Any]]:
    """The judged attempts with their replies, as the report `results` has them. A page ends early where the replies are long."""
    opened = run_cache.run(run_id)
    wanted = [row for row in _rows(opened, case_id, model_id) if row.outcome != "missing"]
    rest = _after(wanted, cursor)
    items: list[dict[str, Any]] = []
    size = shown = 0
    for row in rest[:limit]:
        if size > MAX_PAGE_REPLY_CHARACTERS:
            break
        shown += 1
        if (found := result(run_id, _attempt_of_row(opened, row))) is not None:
            items.append(found)
            size += len(found["raw_response"] or "")
    return Page(items=tuple(items), next_cursor=_cursor(rest, shown), total=len(wanted))


def attempts(
    run_cache: RunCache,
    run_id: RunId,
    limit: Limit = DEFAULT_PAGE_ENTRIES,
    cursor: AttemptCursor = "",
    case_id: OnlyCase = "",
    model_id: OnlyModel = "",
    outcome: OnlyOutcome = "",
) -> Page[AttemptEntry]:
    """All attempts, also those that are missing, without their texts."""
    opened = run_cache.run(run_id)
    wanted = [row for row in _rows(opened, case_id, model_id) if not outcome or row.outcome == outcome]
    rest = _after(wanted, cursor)
    items = tuple(AttemptEntry(**_attempt_fields(opened, row)) for row in rest[:limit])
    return Page(items=items, next_cursor=_cursor(rest, len(items)), total=len(wanted))


def attempt(
    run_cache: RunCache, run_id: RunId, case_id: TheCase, model_id: TheModel, attempt: Number = 1
) -> AttemptDetail:
    """One attempt with all that is known about it."""
    opened = run_cache.run(run_id)
    row = next((row for row in _rows(opened, case_id, model_id) if row.number == attempt), None)
    if row is None:
        raise ViewerRequestError(404, "this run has no such attempt")
    tried = _attempt_of_row(opened, row)
    return AttemptDetail(
        **_attempt_fields(opened, row),
        messages=tried.case.messages,
        reply=tried.reply,
        verdict=tried.verdict,
        failure=tried.failure,
        judgments=tuple(JudgmentEntry(**one._asdict()) for one in judgments(opened, tried)),
    )


def report(run_cache: RunCache, run_id: RunId) -> str:
    """The summary of a run as Markdown."""
    opened = run_cache.run(run_id)
    # the tables of this report need no texts of attempts
    return markdown.report(RunResults(info=opened.info, cases=opened.cases, attempts=(), summary=opened.summary()))


def case(run_cache: RunCache, case_id: TheCase, run_id: OnlyRun = "", cursor: RunCursor = "") -> CaseDetail:
    """A case as its newest run asked it, and how it came out in each run that has it. A slash in its id may stay."""
    listed = [one for one in run_cache.listing().runs if one.state != "broken" and run_id in ("", one.name)]
    searched, next_cursor = _older(listed, cursor, RUNS_SEARCHED_PER_PAGE)
    found, newest = [], None
    for one in searched:
        try:
            opened = run_cache.run(one.name)
        except ViewerRequestError:
            # it was removed, or broke, since it was listed
            continue
        place = next((place for place, each in enumerate(opened.cases) if each.id == case_id), None)
        if place is not None:
            newest = newest or opened.cases[place]
            cells = run_cache.table(opened).cells[place]
            counts = tuple(
                CaseModelCounts(
                    model_id=model_label(*column), attempts=cell.attempts, correct=cell.correct, missing=cell.missing
                )
                for column, cell in zip(opened.columns, cells, strict=True)
            )
            found.append(CaseInRun(run_id=one.name, timestamp_utc=one.started_at, models=counts))
    if not found and next_cursor is None and not cursor:
        raise ViewerRequestError(404, "no run here has such a case")
    return CaseDetail(case_id=case_id, case=newest, runs=tuple(found), searched=len(searched), next_cursor=next_cursor)


def compare(
    run_cache: RunCache,
    baseline: BaselineSide,
    current: CurrentSide,
    alpha: Alpha = "0.05",
    margin: Margin = "0.05",
    limit: Limit = DEFAULT_PAGE_ENTRIES,
    cursor: ChangeCursor = "",
) -> ComparisonPage:
    """What a gate says of two runs or models, and every case, culprits first. Asking is not a look: it spends no error rate."""
    sides = [run_cache.side(name) for name in (baseline, current)]
    compared = compared_sides(run_cache, *sides, alpha=float(alpha), margin=float(margin))
    start, pairing = int(cursor or 0), compared.gated.pairing
    return ComparisonPage(
        baseline=sides[0].name,
        current=sides[1].name,
        decision=compared.gated.decision,
        warnings=compared.gated.warnings,
        new_cases=pairing.new_cases,
        removed_cases=pairing.removed_cases,
        tests_changed=pairing.tests_changed,
        rules_changed=pairing.rules_changed,
        replies_shared=pairing.replies_shared,
        items=tuple(
            CaseChange(
                case_id=change.case,
                model_id=change.model,
                state=change.state,
                baseline_attempts=change.before.attempts,
                baseline_passes=change.before.passes,
                current_attempts=change.after.attempts,
                current_passes=change.after.passes,
                delta=change.delta,
                p=change.p,
            )
            for change in compared.changes[start : start + limit]
        ),
        next_cursor=f"{start + limit}" if len(compared.changes) > start + limit else None,
        total=len(compared.changes),
    )


ANSWERS: Mapping[str, Callable[..., Any]] = {
    "/healthz": health,
    "/openapi.json": description,
    "/api/v1/runs": runs,
    "/api/v1/runs/{run_id}": run,
    "/api/v1/runs/{run_id}/summary": summary,
    "/api/v1/runs/{run_id}/cases": results,
    "/api/v1/runs/{run_id}/attempts": attempts,
    "/api/v1/runs/{run_id}/attempt": attempt,
    "/api/v1/runs/{run_id}/report.md": report,
    "/api/v1/cases/{case_id}": case,
    "/api/v1/compare": compare,
}
"""What answers which address: its signature says which parameters there are, what they may be, and what comes back."""


def _older(listed: Sequence[ListedRun], cursor: str, most: int) -> tuple[Sequence[ListedRun], str | None]:
    """The runs of a page, which are older than the last of the page before, and the cursor of the next page."""
    started, _, name = cursor.partition("|")
    rest = [one for one in listed if (one.started_at, one.name) < (started, name)] if cursor else listed
    return rest[:most], f"{rest[most - 1].started_at}|{rest[most - 1].name}" if len(rest) > most else None


def _entry(run: ListedRun) -> RunEntry:
    return RunEntry(
        run_id=run.name,
        model_id=", ".join(model_label(one.model, one.tier) for one in run.models),
        timestamp_utc=run.started_at,
        state=run.state,
        problem=run.problem,
        eval_sets=run.eval_sets,
        cases=run.cases,
        models=run.models,
        suite_stats=tuple(
            _stats(
                " + ".join(run.eval_sets),
                model_label(one.model, one.tier),
                Counter(correct=one.correct, wrong=one.attempts - one.correct, missing=one.missing),
            )
            for one in run.models
        ),
    )


def _stats(suite: str, model: str, outcomes: Counter[str]) -> SuiteStats:
    return SuiteStats(
        suite_id=suite,
        model_id=model,
        total_cases=outcomes.total(),
        pass_count=outcomes["correct"],
        fail_count=outcomes["wrong"],
        error_count=outcomes["missing"],
    )


def _suite_stats(opened: RunView) -> Iterator[SuiteStats]:
    """The results of each suite under each model; empty if no case belongs to a suite."""
    counts: dict[tuple[str, int], Counter[str]] = {}
    for row in opened.rows:
        suite = opened.cases[row.case].suite
        if suite:
            counts.setdefault((suite, row.column), Counter())[row.outcome] += 1
    for (suite, column), count in sorted(counts.items()):
        yield _stats(suite, model_label(*opened.columns[column]), count)


def _rows(opened: RunView, case_id: str, model_id: str) -> Sequence[AttemptRow]:
    """The rows of the case and the model that are asked for."""
    if not (case_id or model_id):
        return opened.rows
    cases = {place for place, each in enumerate(opened.cases) if case_id in ("", each.id)}
    columns = {place for place, column in enumerate(opened.columns) if model_id in ("", model_label(*column))}
    return [row for row in opened.rows if row.case in cases and row.column in columns]


def _after(rows: Sequence[AttemptRow], cursor: str) -> Sequence[AttemptRow]:
    """The rows behind the last of the page before."""
    last = tuple(map(int, cursor.split("."))) if cursor else ()
    return [row for row in rows if row[:3] > last] if last else rows


def _cursor(rows: Sequence[AttemptRow], shown: int) -> str | None:
    """The cursor of the next page, where this one shows so many rows."""
    return ".".join(map(str, rows[shown - 1][:3])) if len(rows) > shown else None


def _attempt_of_row(opened: RunView, row: AttemptRow) -> AttemptText:
    column = opened.columns[row.column]
    tried = opened.attempt(opened.cases[row.case].id, column.model, column.tier, row.number)
    if tried is None:
        raise ViewerRequestError(409, "an attempt of this run can no longer be read; read it again")
    return tried


def _attempt_fields(opened: RunView, row: AttemptRow) -> dict[str, Any]:
    return {
        "case_id": opened.cases[row.case].id,
        "model_id": model_label(*opened.columns[row.column]),
        "attempt": row.number,
        "outcome": row.outcome,
        "score": row.score,
        "label": row.label,
        "reason": row.reason,
        "finish_reason": row.finish,
        "latency_seconds": row.latency,
        "cost_usd": row.cost_usd,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "timestamp_utc": row.at,
    }


def _json(answer: Any) -> Response:
    # what a model wrote must not command the terminal that shows it
    try:
        text = escaped_json(msgspec.json.encode(answer).decode())
    except UnicodeEncodeError:
        # a folder's name need not be UTF-8
        text = json.dumps(msgspec.to_builtins(answer))
    return Response(text, media_type="application/json")
