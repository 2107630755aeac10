"""The HTTP API: what pages show, for programs, read-only and in pages whose order holds while a run grows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec
from starlette.responses import Response

from steelyard.analysis.attempt_texts import AttemptText
from steelyard.analysis.attempts import AttemptOutcome
from steelyard.analysis.headlines import ModelHeadline
from steelyard.analysis.summary import RunResults
from steelyard.reports import markdown
from steelyard.reports.exports.attempt_rows import result
from steelyard.reports.figures import model_label
from steelyard.text import escaped_json
from steelyard.viewer import api_records, openapi
from steelyard.viewer.comparisons import compared_sides
from steelyard.viewer.query_params import MAX_QUERY_VALUE_CHARACTERS, QueryParameters, ViewerRequestError
from steelyard.viewer.run_cache import RunCache
from steelyard.viewer.run_list import RUN_STATES, ListedRun
from steelyard.viewer.run_view import AttemptRow, RunView
from steelyard.viewer.tier_views import judgments

DEFAULT_PAGE_ENTRIES, MAX_PAGE_ENTRIES = 50, 200
"""The default and the maximum number of entries on a page."""
MAX_PAGE_REPLY_CHARACTERS = 4 << 20
"""Characters of replies after which a page ends early: no request may fill the memory."""
RUNS_SEARCHED_PER_PAGE = 20
"""Runs that are looked through for one page about a case."""
ATTEMPT_CURSOR_PATTERN = r"[0-9]{1,7}\.[0-9]{1,4}\.[0-9]{1,7}"
"""The cursor of attempts: after which case, column and number."""
OFFSET_CURSOR_PATTERN = r"[0-9]{1,9}"
"""The cursor of a comparison: after how many changes."""


def answer(run_cache: RunCache, path: str, asked: QueryParameters, parts: dict[str, str]) -> Response:
    """The answer of an address of the API; parameters that its description does not have are refused."""
    asked.check([parameter["name"] for parameter in openapi.API_PATHS[path][2] if parameter["in"] == "query"])
    return ANSWERS[path](run_cache, asked, parts)


def runs(run_cache: RunCache, asked: QueryParameters) -> Response:
    """The runs, the newest first."""
    limit = _limit(asked)
    model, eval_set = asked.text("model_id"), asked.text("eval_set")
    state = asked.choice("state", RUN_STATES)
    wanted = [
        one
        for one in run_cache.listing().runs
        if (not model or model in [model_label(each.model, each.tier) for each in one.models])
        and (not eval_set or eval_set in one.eval_sets)
        and (not state or one.state == state)
    ]
    started, _, name = asked.text("cursor").partition("|")
    rest = [one for one in wanted if (one.started_at, one.name) < (started, name)] if asked.text("cursor") else wanted
    return _json(
        api_records.RunsPage(
            items=tuple(_entry(one) for one in rest[:limit]),
            next_cursor=f"{rest[limit - 1].started_at}|{rest[limit - 1].name}" if len(rest) > limit else None,
            total=len(wanted),
        )
    )


def run(run_cache: RunCache, name: str) -> Response:
    """One run with what it was asked to do."""
    opened = run_cache.run(name)
    listed = next((one for one in run_cache.listing().runs if one.name == name), None)
    if listed is None:
        raise ViewerRequestError(404, f'no run "{name[:100]}" here')
    info = opened.info
    entry = msgspec.structs.asdict(_entry(listed))
    return _json(
        api_records.RunDetail(
            **entry
            | {
                "suite_stats": tuple(_suite_stats(opened)) or entry["suite_stats"],
                "ended_at": info.ended_at,
                "samples": info.samples,
                "k": info.k,
                "rule": info.rule,
                "seed": info.seed,
                "parameters": info.parameters,
                "system": info.system,
                "versions": info.versions,
                "version": opened.version,
                "problems": opened.problems,
            }
        )
    )


def _entry(run: ListedRun) -> api_records.RunEntry:
    whole = " + ".join(run.eval_sets)
    return api_records.RunEntry(
        run_id=run.name,
        model_id=", ".join(model_label(one.model, one.tier) for one in run.models),
        timestamp_utc=run.started_at,
        state=run.state,
        problem=run.problem,
        eval_sets=run.eval_sets,
        cases=run.cases,
        models=tuple(map(_figures, run.models)),
        suite_stats=tuple(
            api_records.SuiteStats(
                suite_id=whole,
                model_id=model_label(one.model, one.tier),
                total_cases=one.attempts + one.missing,
                pass_count=one.correct,
                fail_count=one.attempts - one.correct,
                error_count=one.missing,
            )
            for one in run.models
        ),
    )


def _figures(one: ModelHeadline) -> api_records.ModelFigures:
    return api_records.ModelFigures(
        model_id=model_label(one.model, one.tier),
        model=one.model,
        tier=one.tier,
        attempts=one.attempts,
        correct=one.correct,
        missing=one.missing,
        pass_at_1=one.pass_at_1,
        mean_score=one.mean_score,
        decides="mean score" if one.on == "score" else "pass@1",
        cost_usd=one.cost_usd,
    )


def _suite_stats(opened: RunView) -> Iterator[api_records.SuiteStats]:
    """The results of each suite under each model; empty if no case belongs to a suite."""
    counts: dict[tuple[str, int], Counter[str]] = {}
    for row in opened.rows:
        suite = opened.cases[row.case].suite
        if suite:
            counts.setdefault((suite, row.column), Counter())[row.outcome] += 1
    for (suite, column), count in sorted(counts.items()):
        yield api_records.SuiteStats(
            suite_id=suite,
            model_id=model_label(*opened.columns[column]),
            total_cases=count.total(),
            pass_count=count["correct"],
            fail_count=count["wrong"],
            error_count=count["missing"],
        )


def results(run_cache: RunCache, name: str, asked: QueryParameters) -> Response:
    """The judged attempts with their replies, as results are exchanged between tools."""
    opened, limit = run_cache.run(name), _limit(asked)
    wanted = [row for row in _rows(opened, asked) if row.outcome != "missing"]
    items: list[api_records.RunResult] = []
    size = 0
    for row in wanted:
        if len(items) == limit or size > MAX_PAGE_REPLY_CHARACTERS:
            break
        found = result(name, _attempt_of_row(opened, row))
        if found is not None:
            one = msgspec.convert(found, api_records.RunResult)
            items.append(one)
            size += len(one.raw_response or "")
    rest = wanted[len(items) :]
    return _json(
        api_records.ResultsPage(items=tuple(items), next_cursor=_cursor(wanted[len(items) - 1]) if rest else None)
    )


def attempts(run_cache: RunCache, name: str, asked: QueryParameters) -> Response:
    """All attempts, without their texts."""
    opened, limit = run_cache.run(name), _limit(asked)
    outcome = asked.choice("outcome", get_args(AttemptOutcome))
    wanted = [row for row in _rows(opened, asked) if not outcome or row.outcome == outcome]
    return _json(
        api_records.AttemptsPage(
            items=tuple(api_records.AttemptEntry(**_attempt_fields(opened, row)) for row in wanted[:limit]),
            next_cursor=_cursor(wanted[limit - 1]) if len(wanted) > limit else None,
            total=len(opened.rows),
        )
    )


def attempt(run_cache: RunCache, name: str, asked: QueryParameters) -> Response:
    """One attempt with all that is known about it."""
    opened = run_cache.run(name)
    for needed in ("case_id", "model_id"):
        if not asked.is_given(needed):
            raise ViewerRequestError(400, f'name the attempt: "{needed}" is missing')
    number = asked.whole("attempt", 1, least=1, most=1_000_000)
    rows = [row for row in _rows(opened, asked) if row.number == number]
    if not rows:
        raise ViewerRequestError(404, "this run has no such attempt")
    tried = _attempt_of_row(opened, rows[0])
    reply, verdict, failure = tried.reply, tried.verdict, tried.failure
    return _json(
        api_records.AttemptDetail(
            **_attempt_fields(opened, rows[0]),
            messages=tried.case.messages,
            answer=reply.answer if reply else None,
            verifier=verdict.verifier if verdict else "",
            found=verdict.found if verdict else None,
            failure_stage=failure.stage if failure else "",
            failure=failure.message if failure else "",
            judgments=tuple(
                api_records.JudgmentEntry(
                    judge=one.judge,
                    repeat=one.repeat,
                    score=one.judgment.score if one.judgment else None,
                    passed=one.judgment.passed if one.judgment else None,
                    unusable=one.unusable,
                )
                for one in judgments(opened, tried)
            ),
        )
    )


def report(run_cache: RunCache, name: str) -> Response:
    """The summary of a run as Markdown."""
    opened = run_cache.run(name)
    # the tables of this report need no texts of attempts
    whole = RunResults(info=opened.info, cases=opened.cases, attempts=(), summary=opened.summary())
    return Response(markdown.report(whole), media_type="text/markdown; charset=utf-8")


def case(run_cache: RunCache, case_id: str, asked: QueryParameters) -> Response:
    """A case, and its results in the runs that have it, newest first."""
    if len(case_id) > MAX_QUERY_VALUE_CHARACTERS:
        raise ViewerRequestError(400, f"the id of a case has at most {MAX_QUERY_VALUE_CHARACTERS} characters here")
    only = asked.text("run_id")
    listed = [one for one in run_cache.listing().runs if one.state != "broken" and (not only or one.name == only)]
    started, _, name = asked.text("cursor").partition("|")
    if asked.text("cursor"):
        listed = [one for one in listed if (one.started_at, one.name) < (started, name)]
    found, newest = [], None
    for one in listed[:RUNS_SEARCHED_PER_PAGE]:
        try:
            opened = run_cache.run(one.name)
        except ViewerRequestError:
            # it was removed, or broke, since it was listed
            continue
        places = [place for place, each in enumerate(opened.cases) if each.id == case_id]
        if places:
            newest = newest or opened.cases[places[0]]
            cells = run_cache.table(opened).cells[places[0]]
            counts = tuple(
                api_records.CaseModelCounts(
                    model_id=model_label(*column), attempts=cell.attempts, correct=cell.correct, missing=cell.missing
                )
                for column, cell in zip(opened.columns, cells, strict=True)
            )
            found.append(api_records.CaseInRun(run_id=one.name, timestamp_utc=one.started_at, models=counts))
    is_more = len(listed) > RUNS_SEARCHED_PER_PAGE
    if not found and not is_more and not asked.text("cursor"):
        raise ViewerRequestError(404, "no run here has such a case")
    last = listed[RUNS_SEARCHED_PER_PAGE - 1] if is_more else None
    return _json(
        api_records.CaseDetail(
            case_id=case_id,
            case=newest,
            runs=tuple(found),
            searched=min(len(listed), RUNS_SEARCHED_PER_PAGE),
            next_cursor=f"{last.started_at}|{last.name}" if last else None,
        )
    )


def compare(run_cache: RunCache, asked: QueryParameters) -> Response:
    """What a gate says of two runs or models, and every case, culprits first."""
    for needed in ("baseline", "current"):
        if not asked.text(needed):
            raise ViewerRequestError(400, f'name two runs: "{needed}" is missing')
    limit = _limit(asked)
    sides = [run_cache.side(asked.text(name)) for name in ("baseline", "current")]
    compared = compared_sides(run_cache, *sides, alpha=asked.share("alpha", 0.05), margin=asked.share("margin", 0.05))
    start = int(_given_cursor(asked, OFFSET_CURSOR_PATTERN) or 0)
    pairing, decision = compared.gated.pairing, compared.gated.decision
    return _json(
        api_records.ComparisonPage(
            baseline=sides[0].name,
            current=sides[1].name,
            verdict=decision.verdict,
            decision=decision,
            warnings=compared.gated.warnings,
            new_cases=pairing.new_cases,
            removed_cases=pairing.removed_cases,
            tests_changed=pairing.tests_changed,
            rules_changed=pairing.rules_changed,
            replies_shared=pairing.replies_shared,
            items=tuple(
                api_records.CaseChange(
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
    )


def _limit(asked: QueryParameters) -> int:
    return asked.whole("limit", DEFAULT_PAGE_ENTRIES, least=1, most=MAX_PAGE_ENTRIES)


def _given_cursor(asked: QueryParameters, pattern: str) -> str:
    given = asked.text("cursor")
    if asked.is_given("cursor") and not re.fullmatch(pattern, given, re.ASCII):
        raise ViewerRequestError(400, '"cursor" is what an earlier page gave as next_cursor')
    return given


def _cursor(row: AttemptRow) -> str:
    return f"{row.case}.{row.column}.{row.number}"


def _rows(opened: RunView, asked: QueryParameters) -> Sequence[AttemptRow]:
    """The rows after the cursor that are of the case and the model that are asked for."""
    given = _given_cursor(asked, ATTEMPT_CURSOR_PATTERN)
    after = tuple(map(int, given.split("."))) if given else (-1,)
    rows: Sequence[AttemptRow] = [row for row in opened.rows if row[:3] > after] if given else opened.rows
    if asked.is_given("case_id"):
        places = {place for place, each in enumerate(opened.cases) if each.id == asked.text("case_id")}
        rows = [row for row in rows if row.case in places]
    if asked.is_given("model_id"):
        columns = {
            place for place, column in enumerate(opened.columns) if model_label(*column) == asked.text("model_id")
        }
        rows = [row for row in rows if row.column in columns]
    return rows


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


ANSWERS: Mapping[str, Callable[[RunCache, QueryParameters, dict[str, str]], Response]] = {
    "/openapi.json": lambda *_: _json(openapi.document()),
    "/api/v1/runs": lambda cache, asked, _: runs(cache, asked),
    "/api/v1/runs/{run_id}": lambda cache, _, parts: run(cache, parts["run_id"]),
    "/api/v1/runs/{run_id}/summary": lambda cache, _, parts: _json(cache.run(parts["run_id"]).summary()),
    "/api/v1/runs/{run_id}/cases": lambda cache, asked, parts: results(cache, parts["run_id"], asked),
    "/api/v1/runs/{run_id}/attempts": lambda cache, asked, parts: attempts(cache, parts["run_id"], asked),
    "/api/v1/runs/{run_id}/attempt": lambda cache, asked, parts: attempt(cache, parts["run_id"], asked),
    "/api/v1/runs/{run_id}/report.md": lambda cache, _, parts: report(cache, parts["run_id"]),
    "/api/v1/cases/{case_id}": lambda cache, asked, parts: case(cache, parts["case_id"], asked),
    "/api/v1/compare": lambda cache, asked, _: compare(cache, asked),
}
"""What answers which address."""


def _json(answer: Any) -> Response:
    # what a model wrote must not command the terminal that shows it
    try:
        text = escaped_json(msgspec.json.encode(answer).decode())
    except UnicodeEncodeError:
        # a folder's name need not be UTF-8
        text = json.dumps(msgspec.to_builtins(answer))
    return Response(text, media_type="application/json")
