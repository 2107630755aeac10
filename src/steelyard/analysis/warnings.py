"""What a reader of a run's numbers must be warned about, and what they should know beside: cases left out, how replies ended, where they are from."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from steelyard.analysis.case_attempts import CaseAttempts
from steelyard.records import Case, Finish, RunInfo
from steelyard.text import counted, line, most_frequent, short_quote

if TYPE_CHECKING:
    from steelyard.analysis.case_attempts import CasesByColumn
    from steelyard.analysis.model_summary import ModelSummary


MAX_NAMED_FINISHES = 5
KNOWN_FINISHES = frozenset((*Finish, "tool_use", "content_filter"))
"""Finish reasons that we know, also under the names that recordings have."""
MAX_NAMED_SOURCES = 3


def uncontained_warnings(info: RunInfo) -> Iterator[str]:
    """The agents that ran with the rights of their user."""
    for agent, reason in info.uncontained.items():
        yield f"{agent}: agent not contained: {reason}"


def skipped_case_notes(info: RunInfo) -> Iterator[str]:
    """The cases that were left out, by reason."""
    cases: dict[str, list[str]] = {}
    for case, reason in info.skipped.items():
        cases.setdefault(reason, []).append(case)
    for reason, names in cases.items():
        what = "1 case was" if len(names) == 1 else f"{len(names)} cases were"
        yield f"{what} left out ({', '.join(names)}): {reason}"


def more_attempts_note(info: RunInfo, model: str) -> Iterator[str]:
    """How many cases got more attempts than the others, if some did."""
    more = sum(samples > (info.fair_samples(model, case) or 0) for case, samples in info.more.get(model, {}).items())
    if more:
        looked = "1 case that looked" if more == 1 else f"{more} cases that looked"
        yield f"{looked} worse than before got more attempts than the others, which moves means a little"


def finish_notes(finishes: Counter[str]) -> Iterator[str]:
    """What a reader should know about how replies ended."""
    calls = finishes[Finish.TOOL_CALLS]
    if calls:
        yield f"{calls} of {counted(finishes.total(), 'reply', 'replies')} {'ends' if calls == 1 else 'end'} in tool calls: show prints them"
    unknown = sorted((finish, count) for finish, count in finishes.items() if finish not in KNOWN_FINISHES)
    for finish, count in unknown[:MAX_NAMED_FINISHES]:
        yield f"{counted(count, 'reply', 'replies')} ended with the unknown finish reason {short_quote(finish)}: judged as it is"


def cached_reply_notes(replies: int, cached: Iterable[tuple[Sequence[str], int, float]]) -> Iterator[str]:
    """How many of the replies come from which earlier runs, given with counts, and what of the cost was paid there."""
    known = list(cached)
    if not known:
        return
    sources = sorted({source for (source, *_), _, _ in known})
    more = f" and {len(sources) - MAX_NAMED_SOURCES} more" if len(sources) > MAX_NAMED_SOURCES else ""
    paid = math.fsum(usd for _, _, usd in known)
    cost = f", which paid ${paid:.4f} of the cost" if paid else ""
    whose = f"run {line(sources[0], 80)}" if len(sources) == 1 else f"{counted(len(sources), 'run')}"
    listed = (
        "" if len(sources) == 1 else f" ({', '.join(line(each, 80) for each in sources[:MAX_NAMED_SOURCES])}{more})"
    )
    yield (
        f"{sum(count for _, count, _ in known)} of {counted(replies, 'reply', 'replies')} were taken from {whose}{listed}{cost}: "
        "they are not further samples, and a comparison with their run leaves their cases out"
    )


MAX_NAMED_UNSCORED_CASES = 5
"""Cases without a judged attempt that are named; the others are only counted."""
SINGLE_ATTEMPT_WARNING = "one attempt per case says nothing about how often a model succeeds: use --samples"


def run_warnings(
    info: RunInfo,
    cases: Sequence[Case],
    by_column: CasesByColumn,
    models: Sequence[ModelSummary],
    rule: str,
    unknown: Sequence[tuple[str, ...]],
) -> Iterator[str]:
    """About the run, then about each model; `unknown` are, for each digest, the facts that the rule needs and that are missing."""
    alone = sum(case.by_judges for case in cases)
    if alone:
        what = "1 case is" if alone == 1 else f"{alone} cases are"
        yield f"{what} for judges alone to decide, and in no figure here: see steelyard tiers, or steelyard pairs"
    yield from skipped_case_notes(info)
    yield from uncontained_warnings(info)
    if info.shard is not None:
        shard = info.shard
        what = f"shard {shard.numbers[0]}" if len(shard.numbers) == 1 else f"{len(shard.numbers)} shards"
        yield f"{what} of {shard.of}, so not all of the {shard.cases} cases: steelyard merge joins the shards"
    most = [max((attempts.planned for attempts in asked.values()), default=0) for asked in by_column.values()]
    is_single = bool(most) and all(size == 1 for size in most)
    if is_single:
        yield SINGLE_ATTEMPT_WARNING
    temperature = info.parameters.get("temperature")
    if temperature is not None and temperature == 0 and any(size > 1 for size in most):
        yield "at temperature 0 the attempts at a case are nearly copies of each other: leave --temperature out"
    is_limited = "max_tokens" in info.parameters or any(case.max_tokens is not None for case in cases)
    some_priced = any(model.cost_usd is not None for model in models)
    for model, (column, asked), size in zip(models, by_column.items(), most, strict=True):
        if size == 1 and not is_single:
            yield f"{column.label}: {SINGLE_ATTEMPT_WARNING}"
        for text in itertools.chain(
            more_attempts_note(info, column.model),
            _gaps(model, asked.values(), is_limited=is_limited),
            _unknown_facts(model, asked.values(), rule, unknown),
            _unknown_prices(model, asked.values()) if some_priced else (),
        ):
            yield f"{column.label}: {text}"


def _gaps(model: ModelSummary, asked: Collection[CaseAttempts], *, is_limited: bool) -> Iterator[str]:
    """What was cut off, not judged or not there; `is_limited` says whether a limit was asked for."""
    replies = sum(attempts.replies.replies for attempts in asked)
    if 50 * model.truncated > replies:
        way_out = "raise --max-tokens" if is_limited else "it is the server's own, set --max-tokens for all models"
        yield f"{model.truncated} of {replies} replies were cut off at the token limit: {way_out}"
    finishes: Counter[str] = Counter()
    for attempts in asked:
        finishes.update(dict(attempts.replies.finishes))
    yield from finish_notes(finishes)
    yield from cached_reply_notes(replies, (each for attempts in asked for each in attempts.replies.cached))
    if model.unscored:
        more = len(model.unscored) - MAX_NAMED_UNSCORED_CASES
        listed = ", ".join(model.unscored[:MAX_NAMED_UNSCORED_CASES]) + (f" and {more} more" if more > 0 else "")
        yield f"{len(model.unscored)} of {len(asked)} cases have no judged attempt: {listed}"
    empty = [each.suite for each in model.suites.suites if not each.attempts] if model.suites else []
    if empty and model.attempts:
        yield f"no judged attempt, and so not in the overall score: suite {', '.join(empty)}"
    if model.missing:
        reasons: Counter[str] = Counter()
        for attempts in asked:
            reasons.update(dict(attempts.missing))
        reason = most_frequent(reasons)
        planned = model.attempts + model.missing
        yield f"{model.missing} of {planned} attempts are missing, most often: {reason}"


def _unknown_facts(
    model: ModelSummary, asked: Collection[CaseAttempts], rule: str, unknown: Sequence[tuple[str, ...]]
) -> Iterator[str]:
    """How many attempts have no score under the rule, and why."""
    if not any(unknown):
        return
    digests = [pair for attempts in asked for pair in attempts.digests if unknown[pair[0]]]
    if digests:
        facts = ", ".join(sorted({fact for digest, _ in digests for fact in unknown[digest]}))
        unscored = f"{sum(count for _, count in digests)} of {model.attempts} attempts have no score under rule {rule}"
        yield f"{unscored}, because these facts are unknown: {facts}"


def _unknown_prices(model: ModelSummary, asked: Collection[CaseAttempts]) -> Iterator[str]:
    replies = sum(attempts.replies.replies for attempts in asked)
    if model.unpriced:
        yield f"the price of {model.unpriced} of {replies} replies is unknown, so the cost is incomplete"
