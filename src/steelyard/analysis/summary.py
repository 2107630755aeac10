"""What a run adds up to, per model and per case."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis import scoring
from steelyard.analysis.attempts import AttemptTable, AttemptText, attempt_table, attempts_with_texts
from steelyard.analysis.case_attempts import (
    CaseAttempts,
    attempts_by_case,
    groups_of,
    mean_pass,
    mean_value,
    most_frequent,
    total_cost,
)
from steelyard.analysis.estimates import AttemptMeans, Estimate, attempt_mean, price_of_pass, share
from steelyard.analysis.judged_rates import JudgedRates
from steelyard.analysis.notes import (
    cached_reply_notes,
    finish_notes,
    more_attempts_note,
    skipped_case_notes,
    uncontained_warnings,
)
from steelyard.analysis.suites import SuiteCase, SuiteScores, suite_scores
from steelyard.records import Case, Fact, Record, RunInfo, SuiteRule, WitnessCounts
from steelyard.stats.bootstrap import bootstrap
from steelyard.stats.descriptive import flip_rate, percentile
from steelyard.stats.passk import pass_at_k, pass_hat_k

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from steelyard.analysis.attempts import AttemptRow, Column, VerdictDigest
    from steelyard.analysis.case_attempts import CasesByColumn
    from steelyard.stats.intervals import Interval


MAX_BOOTSTRAP_DRAWS = 10_000_000
"""How many values a bootstrap of many cases may draw."""
MAX_FLAGGED_ATTEMPTS = 20
"""Attempts to look at that are named; the others are only counted."""


class Flag(Record, frozen=True, kw_only=True):
    """One attempt that a reader should look at, and why."""

    case: str
    number: int
    reason: str


class VerificationCount(Record, frozen=True, kw_only=True):
    """How many attempts were verified in one way."""

    trust: str
    """Where the tests ran: `isolated` from the code they judge, `in-process` with it, or `unproved`, without a proof of their end."""
    isolation: str
    """The sandbox the code ran in."""
    node: str = ""
    """The node of a cluster; empty for the machine that asked."""
    attempts: int
    correct: int = 0


class ModelSummary(Record, frozen=True, kw_only=True):
    """One model (under one tier) over all its cases."""

    model: str
    tier: str = ""
    cases: int
    """Cases that were asked."""
    attempts: int
    """Attempts that were judged: the n of every rate."""
    correct: int
    solved: int
    """Cases with at least one correct attempt."""
    missing: int
    """Attempts that ended as a failure of ours, or have no verdict yet."""
    unscored: tuple[str, ...] = ()
    """Cases without a single judged attempt."""
    pass_at: dict[int, Estimate]
    pass_hat: dict[int, Estimate] = {}
    """pass^k: how likely it is that all of k attempts succeed."""
    levels: dict[str, dict[int, Estimate]] = {}
    """pass@k at each level of success, where a verifier knows more than one; the level that decides is among them."""
    flaky: int = 0
    """Cases with correct attempts and others."""
    score: Estimate
    compile_rate: Estimate
    test_pass_rate: Estimate
    lint: Estimate
    per_attempt: AttemptMeans = AttemptMeans()
    """The same three, not as means over cases but over attempts."""
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """What the priced replies cost; None when no reply has a price."""
    unpriced: int
    """Replies whose price is unknown."""
    cost_of_pass: Estimate
    """What a correct attempt costs: the cost of the judged attempts over the correct ones; nothing where a price is unknown."""
    latency: Estimate
    """Seconds until a model has replied: the mean over cases."""
    latency_p50: float | None
    latency_p95: float | None
    """Half, and nineteen of twenty, replies take no longer than this."""
    truncated: int
    """Replies cut off at the token limit."""
    empty: int
    """Replies without text."""
    tampered: int = 0
    """Attempts that were caught forging their result; each counts as failed."""
    tampered_attempts: tuple[Flag, ...] = ()
    """The first of them, with the evidence."""
    rechecked: int = 0
    """Attempts that were verified more than once."""
    disagreed: int = 0
    """Those of them that did not come out the same every time."""
    disagreed_attempts: tuple[Flag, ...] = ()
    """The first of these, with how often they did not."""
    verified: tuple[VerificationCount, ...] = ()
    """How the judged attempts were verified, where code was run."""
    suites: SuiteScores | None = None
    """What the suites score; None where no case belongs to one."""


def model_summary(
    column: Column,
    cases: Sequence[CaseAttempts],
    digests: Sequence[VerdictDigest],
    scores: Sequence[float | None],
    k: Sequence[int],
    suites: SuiteScores | None,
) -> ModelSummary:
    """One model over all its cases; `scores` are those of the digests by a rule."""
    answered = [row for attempts in cases for row in attempts.answered]
    waits = [row.latency for row in answered if row.latency is not None]
    judged = Counter(row.digest for attempts in cases for row in attempts.judged)
    known = [(digests[index], count) for index, count in judged.items()]
    return ModelSummary(
        model=column.model,
        tier=column.tier,
        cases=sum(attempts.is_asked for attempts in cases),
        attempts=judged.total(),
        correct=sum(attempts.correct for attempts in cases),
        solved=sum(attempts.correct > 0 for attempts in cases),
        missing=sum(attempts.missing.total() for attempts in cases),
        unscored=tuple(attempts.case.id for attempts in cases if not attempts.judged),
        pass_at={size: mean_pass(pass_at_k, cases, size) for size in k},
        pass_hat={size: mean_pass(pass_hat_k, cases, size) for size in k},
        levels=_levels(cases, digests, list(judged), k),
        flaky=sum(0 < attempts.correct < len(attempts.judged) for attempts in cases),
        score=mean_value(cases, scores),
        compile_rate=mean_value(cases, [digest.compiled for digest in digests]),
        test_pass_rate=mean_value(cases, [digest.measured.passing for digest in digests]),
        lint=mean_value(cases, [digest.lint for digest in digests]),
        per_attempt=AttemptMeans(
            compile_rate=attempt_mean((digest.compiled, count) for digest, count in known),
            test_pass_rate=attempt_mean((digest.measured.passing, count) for digest, count in known),
            lint=attempt_mean((digest.lint, count) for digest, count in known),
        ),
        input_tokens=sum(row.input_tokens or 0 for row in answered),
        output_tokens=sum(row.output_tokens or 0 for row in answered),
        cost_usd=total_cost(answered),
        unpriced=sum(row.cost_usd is None for row in answered),
        cost_of_pass=_cost_of_pass(cases),
        latency=_latency(cases),
        latency_p50=percentile(waits, 0.5),
        latency_p95=percentile(waits, 0.95),
        truncated=sum(row.finish == "length" for row in answered),
        empty=sum(row.is_empty for row in answered),
        tampered=sum(count for digest, count in known if digest.tampered),
        tampered_attempts=_flags(cases, [_tampering if digest.tampered else None for digest in digests]),
        rechecked=sum(count for digest, count in known if digest.rechecked),
        disagreed=sum(count for digest, count in known if digest.disagreed),
        disagreed_attempts=_flags(cases, [_disagreement(digest) for digest in digests]),
        verified=_verified(known),
        suites=suites,
    )


def _verified(known: Sequence[tuple[VerdictDigest, int]]) -> tuple[VerificationCount, ...]:
    """How many attempts were verified in each way, where code was run."""
    ways: Counter[tuple[str, str, str]] = Counter()
    correct: Counter[tuple[str, str, str]] = Counter()
    for digest, count in known:
        way = digest.trust, digest.isolation, digest.node
        ways[way] += count
        correct[way] += count if digest.measured.correct else 0
    return tuple(
        VerificationCount(
            trust=trust, isolation=isolation, node=node, attempts=count, correct=correct[trust, isolation, node]
        )
        for (trust, isolation, node), count in sorted(ways.items())
        if trust or isolation or node
    )


def _flags(cases: Sequence[CaseAttempts], reasons: Sequence[Callable[[AttemptRow], str] | None]) -> tuple[Flag, ...]:
    """The first attempts that a reader should look at, given what says why for each digest."""
    if not any(reasons):
        return ()
    every = (
        Flag(case=attempts.case.id, number=row.number, reason=reason(row))
        for attempts in cases
        for row in attempts.judged
        if (reason := reasons[row.digest])
    )
    return tuple(itertools.islice(every, MAX_FLAGGED_ATTEMPTS))


def _tampering(row: AttemptRow) -> str:
    return row.reason.removeprefix("tampered: ")


def _disagreement(digest: VerdictDigest) -> Callable[[AttemptRow], str] | None:
    if not digest.disagreed:
        return None
    first, later = ("passed", "failed") if digest.measured.correct else ("failed", "passed")
    return lambda _: f"{first} at first, then {later} {digest.disagreed} of {digest.rechecked} times"


def _levels(
    cases: Sequence[CaseAttempts], digests: Sequence[VerdictDigest], judged: Sequence[int], k: Sequence[int]
) -> dict[str, dict[int, Estimate]]:
    """pass@k at each level of success that some attempt is known to have reached or not, in the verifier's order."""
    names = dict.fromkeys(level for index in judged for level, _ in digests[index].levels)
    found = {}
    for level in names:
        reached = [dict(digest.levels).get(level) for digest in digests]
        known = [(attempts, values) for attempts in cases if (values := attempts.values(reached))]
        counts = [(len(values), round(sum(values))) for _, values in known]
        of_level = [attempts for attempts, _ in known]
        found[level] = {size: mean_pass(pass_at_k, of_level, size, counts) for size in k}
    return found


def _cost_of_pass(cases: Sequence[CaseAttempts]) -> Estimate:
    """What a correct attempt costs; unknown where the price of a judged one is."""
    judged = [attempts for attempts in cases if attempts.judged]
    costs = [cost for attempts in judged if (cost := attempts.cost) is not None]
    if not judged or len(costs) < len(judged):
        return Estimate(value=None)
    tried, passed = [len(attempts.judged) for attempts in judged], [attempts.correct for attempts in judged]
    return price_of_pass(costs, passed, tried, groups=groups_of(judged))


def _latency(cases: Sequence[CaseAttempts]) -> Estimate:
    """The mean over cases of their mean latency, with the bootstrap's interval: seconds have no upper end."""
    answered = [attempts for attempts in cases if any(row.latency is not None for row in attempts.answered)]
    waits = [[row.latency for row in attempts.answered if row.latency is not None] for attempts in answered]
    means = [math.fsum(each) / len(each) for each in waits]
    replicates = max(1000, min(10_000, MAX_BOOTSTRAP_DRAWS // max(1, len(means))))
    groups = groups_of(answered)
    interval = (
        _grouped_bootstrap(means, groups, replicates) if groups else bootstrap(means, seed=0, replicates=replicates)
    )
    return Estimate(
        value=math.fsum(means) / len(means) if means else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cases=len(means),
        attempts=sum(map(len, waits)),
    )


def _grouped_bootstrap(values: Sequence[float], groups: Sequence[str], replicates: int) -> Interval | None:
    """The interval of a mean over cases where whole groups of them are drawn; None below 2 groups."""
    together: dict[str, list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        together.setdefault(group, []).append(value)
    # one order for all, so that the order of the cases cannot change a draw
    units = [together[group] for group in sorted(together)]
    sums, sizes = [math.fsum(unit) for unit in units], [len(unit) for unit in units]

    def mean_over_cases(_: NDArray[np.float64], weights: NDArray[np.int64]) -> NDArray[np.float64]:
        return (weights @ sums) / (weights @ sizes)

    return bootstrap(range(len(units)), seed=0, replicates=replicates, statistic=mean_over_cases)


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
    """About the run, then about each model; `unknown` are the facts of each digest that the rule asks for in vain."""
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
    replies = sum(len(attempts.answered) for attempts in asked)
    if 50 * model.truncated > replies:
        way_out = "raise --max-tokens" if is_limited else "it is the server's own, set --max-tokens for all models"
        yield f"{model.truncated} of {replies} replies were cut off at the token limit: {way_out}"
    yield from finish_notes([row.finish for attempts in asked for row in attempts.answered])
    yield from cached_reply_notes(row for attempts in asked for row in attempts.answered)
    if model.unscored:
        more = len(model.unscored) - MAX_NAMED_UNSCORED_CASES
        listed = ", ".join(model.unscored[:MAX_NAMED_UNSCORED_CASES]) + (f" and {more} more" if more > 0 else "")
        yield f"{len(model.unscored)} of {len(asked)} cases have no judged attempt: {listed}"
    empty = [each.suite for each in model.suites.suites if not each.attempts] if model.suites else []
    if empty and model.attempts:
        yield f"no judged attempt, and so not in the overall score: suite {', '.join(empty)}"
    if model.missing:
        reason = most_frequent(sum((attempts.missing for attempts in asked), Counter()))
        planned = model.attempts + model.missing
        yield f"{model.missing} of {planned} attempts are missing, most often: {reason}"


def _unknown_facts(
    model: ModelSummary, asked: Collection[CaseAttempts], rule: str, unknown: Sequence[tuple[str, ...]]
) -> Iterator[str]:
    """How many attempts have no score under the rule, and why."""
    if not any(unknown):
        return
    digests = Counter(row.digest for attempts in asked for row in attempts.judged if unknown[row.digest])
    if digests:
        facts = ", ".join(sorted({fact for digest in digests for fact in unknown[digest]}))
        unscored = f"{digests.total()} of {model.attempts} attempts have no score under rule {rule}"
        yield f"{unscored}, because these facts are unknown: {facts}"


def _unknown_prices(model: ModelSummary, asked: Collection[CaseAttempts]) -> Iterator[str]:
    replies = sum(len(attempts.answered) for attempts in asked)
    if model.unpriced:
        yield f"the price of {model.unpriced} of {replies} replies is unknown, so the cost is incomplete"


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
    """What the replies to its judged attempts cost; None where a price is unknown."""
    why: str = ""
    """The most frequent reason for a failed attempt, with its count when there were several."""
    first_wrong: int | None = None
    """The number of the first attempt that was judged and not correct; None where there was none."""


class Summary(Record, frozen=True, kw_only=True):
    """All that a run adds up to."""

    models: tuple[ModelSummary, ...]
    cases: tuple[CaseSummary, ...]
    rule: str
    warnings: tuple[str, ...] = ()
    """What a reader must know before trusting the numbers."""
    witnesses: WitnessCounts | None = None
    """Of the cases that needed something known to be right to pass before a verdict counted, if any did."""
    judged: JudgedRates | None = None
    """What judges and people say together; None where nobody labelled anything."""
    conclusive: bool = True
    """False when more than 5% of the cases of some model are unscored, or more than 5% of its attempts are missing."""


class RunResults(NamedTuple):
    """A whole run, texts included, as reports want it: cases in order, then models, then numbers."""

    info: RunInfo
    cases: tuple[Case, ...]
    attempts: tuple[AttemptText, ...]
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


def run_results(
    info: RunInfo,
    cases: Sequence[Case],
    facts: Iterable[Fact],
    *,
    k: Sequence[int] | None = None,
    rule: str | None = None,
    suites: SuiteRule | None = None,
) -> RunResults:
    """The whole run with its texts, and the summary of it."""
    table, attempts = attempts_with_texts(info, cases, facts, rule=rule)
    summary = summarise_attempts(info, cases, table, k=k, rule=rule, suites=suites)
    return RunResults(info=info, cases=tuple(cases), attempts=attempts, summary=summary)


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
    models = tuple(
        model_summary(
            column,
            list(asked.values()),
            table.digests,
            scores,
            sizes,
            _suites(asked.values(), suites or info.suites, names) if names else None,
        )
        for column, asked in by_column.items()
    )
    every = sorted(
        ((order, column, attempts) for column, asked in by_column.items() for order, attempts in asked.items()),
        key=lambda entry: entry[:2],
    )
    is_judged = any(model.attempts for model in models) or _needs_no_verdict(info, cases)
    return Summary(
        models=models,
        cases=tuple(_case_summary(column, attempts, scores, sizes) for _, column, attempts in every),
        rule=weights.name,
        witnesses=info.witnesses,
        warnings=tuple(run_warnings(info, cases, by_column, models, weights.name, unknown)),
        conclusive=is_judged
        and not any(
            20 * len(model.unscored) > len(by_column[column]) or 20 * model.missing > model.attempts + model.missing
            for column, model in zip(by_column, models, strict=True)
        ),
    )


def _needs_no_verdict(info: RunInfo, cases: Sequence[Case]) -> bool:
    """Whether there is nothing to verify: all cases are for judges, or there are fewer cases than shards."""
    return all(case.by_judges for case in cases) if cases else info.shard is not None


def _case_summary(
    column: Column, attempts: CaseAttempts, scores: Sequence[float | None], sizes: Sequence[int]
) -> CaseSummary:
    tried, known = len(attempts.judged), attempts.values(scores)
    wrong = [row for row in attempts.judged if row.outcome != "correct"]
    return CaseSummary(
        case=attempts.case.id,
        model=column.model,
        tier=column.tier,
        attempts=tried,
        correct=attempts.correct,
        missing=attempts.missing.total(),
        rate=share(attempts.correct, tried),
        score=math.fsum(known) / len(known) if known else None,
        pass_at={size: pass_at_k(tried, attempts.correct, size) for size in sizes},
        flake_rate=flip_rate(tried, attempts.correct),
        cost_usd=attempts.cost,
        why=most_frequent([row.reason for row in wrong] if tried else attempts.missing),
        first_wrong=min((row.number for row in wrong), default=None),
    )


def _suites(asked: Iterable[CaseAttempts], rule: SuiteRule, names: Collection[str]) -> SuiteScores:
    """What the suites of these names score."""
    cases = [
        SuiteCase(
            suite=attempts.case.suite,
            group=attempts.group,
            expected=attempts.case.expected_classification,
            classes=attempts.classes,
            missing=attempts.missing.total(),
            waits=[row.wait for row in attempts.answered if row.wait is not None],
        )
        for attempts in asked
        if attempts.case.suite
    ]
    return suite_scores(cases, rule, names=names)
