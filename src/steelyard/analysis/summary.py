"""What a run adds up to, per model and per case."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis import scoring
from steelyard.analysis.attempt_texts import AttemptText
from steelyard.analysis.attempts import AttemptTable, attempt_table
from steelyard.analysis.case_attempts import CaseAttempts, CasesByColumn, attempts_by_case
from steelyard.analysis.estimates import Estimate, share
from steelyard.analysis.judged_rates import JudgedRates
from steelyard.analysis.model_summary import Flag, ModelSummary, VerificationCount, model_summary
from steelyard.analysis.suites import SuiteCase, SuiteScores, suite_scores
from steelyard.analysis.warnings import run_warnings
from steelyard.records import Case, Fact, Record, RunInfo, Spending, SuiteRule, WitnessCounts
from steelyard.stats.descriptive import flip_rate, percentile
from steelyard.stats.passk import pass_at_k
from steelyard.text import most_frequent

if TYPE_CHECKING:
    from steelyard.analysis.attempts import Column

__all__ = ["AttemptText", "CaseSummary", "Flag", "ModelSummary", "RunResults", "Summary", "VerificationCount"]


class CaseSummary(Record, frozen=True, kw_only=True):
    """One case under one model (and tier)."""

    case: str
    model: str
    tier: str = ""
    attempts: int
    correct: int
    missing: int
    rate: Estimate
    """The share of correct attempts, with the interval for this case alone."""
    score: float | None
    pass_at: dict[int, float | None]
    flake_rate: float | None = None
    """How often two attempts disagree; None below 2 attempts."""
    cost_usd: float | None = None
    """What the replies to its judged attempts cost; None if a price is unknown."""
    why: str = ""
    """The most frequent reason for a failed attempt, with its count when there were several."""
    first_wrong: int | None = None
    """The number of the first attempt that was judged and not correct; None if there was none."""


class Summary(Record, frozen=True, kw_only=True):
    """All that a run adds up to."""

    models: tuple[ModelSummary, ...]
    cases: tuple[CaseSummary, ...]
    rule: str
    warnings: tuple[str, ...] = ()
    """What a reader must know before trusting the numbers."""
    witnesses: WitnessCounts | None = None
    """Of the cases that needed something known to be right to pass before a verdict counted, if any did."""
    spending: Spending | None = None
    """What caches and batches saved, and what unfinished conversations cost; None if there is nothing to report."""
    judged: JudgedRates | None = None
    """What judges and people say together; None if nobody labelled anything."""
    conclusive: bool = True
    """False when more than 5% of the cases of some model are unscored, or more than 5% of its attempts are missing."""


class RunResults(NamedTuple):
    """A whole run with its texts, in the order of reports: by case, then model, then number."""

    info: RunInfo
    cases: Sequence[Case]
    attempts: Sequence[AttemptText]
    summary: Summary


def summarise(
    info: RunInfo,
    cases: Sequence[Case],
    facts: Iterable[Fact],
    *,
    k: Sequence[int] | None = None,
    rule: str | None = None,
    suites: SuiteRule | None = None,
) -> Summary:
    """The numbers of a run, by its own k and rules or by others; reads the facts once and keeps none of their texts."""
    return summarise_attempts(info, cases, attempt_table(info, cases, facts), k=k, rule=rule, suites=suites)


def summarise_attempts(
    info: RunInfo,
    cases: Sequence[Case],
    table: AttemptTable,
    *,
    k: Sequence[int] | None = None,
    rule: str | None = None,
    suites: SuiteRule | None = None,
) -> Summary:
    """The numbers of attempts that are joined already."""
    weights = scoring.find_rule(rule or info.rule, info.rules)
    scores = [digest.measured.score(weights) for digest in table.digests]
    unknown = [digest.measured.unknown(weights) for digest in table.digests]
    sizes = sorted(set(info.k if k is None else k))
    names = {case.suite for case in cases if case.suite}
    by_column = attempts_by_case(info, cases, table)
    quantiles = _latency_quantiles(table, by_column)
    models = tuple(
        model_summary(
            column,
            list(asked.values()),
            table.digests,
            scores,
            sizes,
            _suites(asked.values(), suites or info.suites, names) if names else None,
            quantiles[column],
        )
        for column, asked in by_column.items()
    )
    rates = _Rates(sizes)
    is_judged = any(model.attempts for model in models) or _needs_no_verdict(info, cases)
    return Summary(
        models=models,
        rule=weights.name,
        witnesses=info.witnesses,
        spending=info.spending,
        warnings=tuple(run_warnings(info, cases, by_column, models, weights.name, unknown)),
        conclusive=is_judged
        and not any(
            _lacks_verdicts(model, by_column[column].values()) for column, model in zip(by_column, models, strict=True)
        ),
        cases=tuple(  # last, because what a case is made of is given up for it
            _case_summary(column, asked.pop(order), scores, rates)
            for order in range(len(cases))
            for column, asked in by_column.items()
            if order in asked
        ),
    )


def _latency_quantiles(table: AttemptTable, by_column: CasesByColumn) -> Mapping[Column, Sequence[float | None]]:
    """For each model half, and nineteen of twenty, of its replies take no longer than these; None where no time is known."""
    latencies = {column: array("d") for column in by_column}
    for row in table.rows:
        column = table.columns[row.column]
        if row.latency is not None and row.case in by_column.get(column, ()):
            latencies[column].append(row.latency)
    return {column: [percentile(values, share) for share in (0.5, 0.95)] for column, values in latencies.items()}


def _lacks_verdicts(model: ModelSummary, asked: Collection[CaseAttempts]) -> bool:
    """Whether more than 5% of a model's cases or attempts have no verdict, without those that were left out on purpose."""
    unscored = sum(not attempts.judged and attempts.left_out < attempts.unjudged for attempts in asked)
    unscored += sum(attempts.planned == 0 for attempts in asked)
    missing = sum(attempts.unjudged - attempts.left_out for attempts in asked)
    return 20 * unscored > len(asked) or 20 * missing > model.attempts + missing


def _needs_no_verdict(info: RunInfo, cases: Sequence[Case]) -> bool:
    """Whether there is nothing to verify: all cases are for judges, or there are fewer cases than shards."""
    return all(case.by_judges for case in cases) if cases else info.shard is not None


class _Rates:
    """The rates of a case by its attempts and those that are correct; many cases have the same."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._known: dict[tuple[int, int], tuple[Estimate, dict[int, float | None], float | None]] = {}

    def of(self, tried: int, correct: int) -> tuple[Estimate, dict[int, float | None], float | None]:
        """The share of correct attempts, pass@k, and how often two attempts disagree."""
        if (known := self._known.get((tried, correct))) is None:
            passes = {size: pass_at_k(tried, correct, size) for size in self._sizes}
            known = self._known[tried, correct] = share(correct, tried), passes, flip_rate(tried, correct)
        return known


def _case_summary(column: Column, attempts: CaseAttempts, scores: Sequence[float | None], rates: _Rates) -> CaseSummary:
    tried, known = attempts.judged, attempts.values(scores)
    rate, passes, flake_rate = rates.of(tried, attempts.correct)
    return CaseSummary(
        case=attempts.case.id,
        model=column.model,
        tier=column.tier,
        attempts=tried,
        correct=attempts.correct,
        missing=attempts.unjudged,
        rate=rate,
        score=math.fsum(known) / len(known) if known else None,
        pass_at=passes,
        flake_rate=flake_rate,
        cost_usd=attempts.cost,
        why=attempts.why if tried else most_frequent(Counter(dict(attempts.missing))),
        first_wrong=attempts.first_wrong,
    )


def _suites(asked: Iterable[CaseAttempts], rule: SuiteRule, names: Collection[str]) -> SuiteScores:
    """What the suites of these names score."""
    cases = (
        SuiteCase(
            suite=attempts.case.suite,
            group=attempts.case.group,
            expected=attempts.case.expected_classification,
            classes=dict(attempts.classes),
            missing=attempts.unjudged,
            waits=attempts.replies.waits,
        )
        for attempts in asked
        if attempts.case.suite
    )
    return suite_scores(cases, rule, names=names)
