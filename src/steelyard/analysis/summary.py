"""What a run's facts add up to, per model and per case."""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from steelyard.analysis import scoring
from steelyard.analysis.estimates import Estimate, mean, price_of_pass, share
from steelyard.analysis.scoring import FindingMeasures
from steelyard.analysis.suite_scores import SuiteCase, SuiteScores, suite_scores
from steelyard.analysis.suites import classify_response, ordered_class_counts
from steelyard.records import Case, Fact, Failure, Record, Reply, Rule, RunInfo, SuiteRule, Verdict
from steelyard.stats.bootstrap import bootstrap
from steelyard.stats.descriptive import flip_rate, percentile
from steelyard.stats.passk import pass_at_k, pass_hat_k

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from steelyard.stats.intervals import Interval

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
    """Where the tests ran: `isolated` from the code they judge, or `in-process` with it."""
    isolation: str
    """The sandbox the code ran in."""
    node: str = ""
    """The node of a cluster; empty for the machine that asked."""
    attempts: int


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


class Summary(Record, frozen=True, kw_only=True):
    """All that a run adds up to."""

    models: tuple[ModelSummary, ...]
    cases: tuple[CaseSummary, ...]
    rule: str
    warnings: tuple[str, ...] = ()
    """What a reader must know before trusting the numbers."""
    conclusive: bool = True
    """False when more than 5% of the cases of some model are unscored: then nobody can tell."""


class ModelHeadline(Record, frozen=True, kw_only=True):
    """What a list of runs says of one model (under one tier)."""

    model: str
    tier: str = ""
    attempts: int
    """Attempts that were judged."""
    correct: int
    missing: int
    pass_at_1: Estimate | None = None
    """None where nothing was judged."""
    mean_score: Estimate | None = None
    """None where nothing has a score."""
    cost_usd: float | None = None
    """What the priced replies cost; None when no reply has a price."""


class RunHeadlines(Record, frozen=True, kw_only=True):
    """What a list of runs says of one run."""

    made_of: str
    """The state of the files that this was worked out from."""
    cases: int
    models: tuple[ModelHeadline, ...] = ()


class AttemptText(NamedTuple):
    """One attempt with all that is known about it."""

    case: Case
    model: str
    tier: str
    number: int
    reply: Reply | None
    verdict: Verdict | None
    """None also when the stored verdict is of other tests than the case has now."""
    failure: Failure | None
    """What stands between this attempt and its verdict."""
    correct: bool | None
    score: float | None


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
    return summarise_outcomes(info, cases, attempt_outcomes(cases, facts), k=k, rule=rule, suites=suites)


def summarise_outcomes(
    info: RunInfo,
    cases: Sequence[Case],
    ends: Iterable[AttemptOutcome],
    *,
    k: Sequence[int] | None = None,
    rule: str | None = None,
    suites: SuiteRule | None = None,
) -> Summary:
    """The same numbers from attempts that are joined already; they come in the order of their places."""
    chosen = scoring.find_rule(rule or info.rule, info.rules)
    return _summary(info, cases, ends, info.k if k is None else k, chosen, suites or info.suites)


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
    attempts = attempt_texts(info, cases, facts, rule=rule)
    orders = {case.id: order for order, case in enumerate(cases)}
    ends = (
        AttemptOutcome(
            AttemptPlace(orders[tried.case.id], tried.model, tried.tier, tried.number),
            reply_digest(tried.reply) if tried.reply else None,
            *_digest_and_reason(tried),
        )
        for tried in attempts
    )
    summary = summarise_outcomes(info, cases, ends, k=k, rule=rule, suites=suites)
    return RunResults(info=info, cases=tuple(cases), attempts=attempts, summary=summary)


def _digest_and_reason(tried: AttemptText) -> tuple[VerdictDigest | None, str | None]:
    if tried.verdict is None:
        return None, one_line(tried.failure.message) if tried.failure else None
    said = verdict_digest(tried.case, tried.verdict)
    return said, failure_reason(tried.case, tried.verdict, said)


def attempt_texts(
    info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact], *, rule: str | None = None
) -> tuple[AttemptText, ...]:
    """Every attempt that the facts tell of, joined: cases in order, then models, then numbers."""
    chosen = scoring.find_rule(rule or info.rule, info.rules)
    attempts = []
    trails: AttemptHistories[Reply, Verdict, Failure] = AttemptHistories(
        cases, lambda reply: reply, lambda _, verdict: verdict, lambda failure: failure
    )
    for fact in facts:
        trails.add(fact)
    for place, reply, verdict, failure in trails.ends():
        case = cases[place.order]
        attempts.append(
            AttemptText(
                case=case,
                model=place.model,
                tier=place.tier,
                number=place.number,
                reply=reply,
                verdict=verdict,
                failure=failure,
                correct=scoring.is_correct(case, verdict.found) if verdict else None,
                score=scoring.score(case, verdict.found, chosen) if verdict else None,
            )
        )
    return tuple(attempts)


class CaseCounts(NamedTuple):
    """The judged attempts of one model at one case."""

    case: Case
    model: str
    tier: str
    passes: int
    scores: tuple[float | None, ...]
    """One per attempt; None where a fact is missing that the rule asks for."""
    classes: tuple[tuple[str, int], ...]
    """How many of them are of each class, where the case belongs to a suite."""
    cost_usd: float | None
    """What they cost; None where a price is unknown."""
    further_attempts: int | None
    """Judged attempts beyond those planned at all cases; None where none are planned at this one."""
    further_passes: int


def case_counts(
    info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact], *, rule: str | None = None
) -> list[CaseCounts]:
    """How the attempts of a run came out, by model and case; reads the facts once and keeps none of their texts."""
    chosen = scoring.find_rule(rule or info.rule, info.rules)
    ends = list(attempt_outcomes(cases, facts))
    rows = _case_rows(info, cases, (end for end in ends if not _is_further(info, end.place)), chosen)
    further: dict[tuple[int, str], list[bool]] = {}
    for place, _, gist, _ in ends:
        if gist and _is_further(info, place):
            further.setdefault((place.order, place.model), []).append(gist.measured.correct)
    found = []
    for (model, tier), asked in rows.items():
        for order, row in asked.items():
            beyond = further.get((order, model), [])
            planned = (info.more.get(model, {}).get(cases[order].id, 0)) > (info.samples or 0)
            scores = tuple(one.score for one in row.judged)
            found.append(
                CaseCounts(
                    case=cases[order],
                    model=model,
                    tier=tier,
                    passes=row.correct,
                    scores=scores,
                    classes=tuple(ordered_class_counts(row.classes).items()) if cases[order].suite else (),
                    cost_usd=row.cost,
                    further_attempts=len(beyond) if planned else None,
                    further_passes=sum(beyond),
                )
            )
    return found


def _is_further(info: RunInfo, place: AttemptPlace) -> bool:
    """Whether an attempt is one of those that only some cases got, because they looked worse."""
    return bool(info.more) and place.number > (info.samples or 0)


def headlines(info: RunInfo, cases: Sequence[Case], ends: Iterable[AttemptOutcome]) -> tuple[ModelHeadline, ...]:
    """What a list of runs says of each model, by the run's own rule; much less work than a summary."""
    rows = _case_rows(info, cases, ends, scoring.find_rule(info.rule, info.rules))
    return tuple(_headline(*group, list(asked.values())) for group, asked in rows.items())


def _headline(model: str, tier: str, rows: Sequence[_CaseRow]) -> ModelHeadline:
    pass_at_1 = _pass_at(pass_at_k, rows, 1)
    score = _rate(rows, lambda judged: judged.score)
    return ModelHeadline(
        model=model,
        tier=tier,
        attempts=sum(len(row.judged) for row in rows),
        correct=sum(row.correct for row in rows),
        missing=sum(len(row.missing) for row in rows),
        pass_at_1=None if pass_at_1.value is None else pass_at_1,
        mean_score=None if score.value is None else score,
        cost_usd=_cost([reply for row in rows for reply in row.answered]),
    )


def headlines_from_summary(cases: Sequence[Case], summary: Summary) -> tuple[ModelHeadline, ...]:
    """The same out of a summary by the run's own rule."""
    groups = {case.id: _group(case) for case in cases}
    judged: dict[tuple[str, str], list[CaseSummary]] = {}
    for row in summary.cases:
        if row.attempts:
            judged.setdefault((row.model, row.tier), []).append(row)
    found = []
    for model in summary.models:
        rows = judged.get((model.model, model.tier), [])
        values = [value for row in rows if (value := pass_at_k(row.attempts, row.correct, 1)) is not None]
        found.append(
            ModelHeadline(
                model=model.model,
                tier=model.tier,
                attempts=model.attempts,
                correct=model.correct,
                missing=model.missing,
                # a run need not ask for pass@1, and has it all the same
                pass_at_1=mean(values, model.attempts, groups=_groups_if_shared([groups[row.case] for row in rows]))
                if rows
                else None,
                mean_score=None if model.score.value is None else model.score,
                cost_usd=model.cost_usd,
            )
        )
    return tuple(found)


def hardest_cases(summary: Summary, limit: int = 5) -> list[CaseSummary]:
    """The cases that failed most often, each with the model that failed least at it, worst first.

    What a weak model cannot do says little about a case; what the best one cannot do says much.
    """
    best: dict[str, float] = {}
    failed: dict[str, CaseSummary] = {}
    for row in summary.cases:
        if row.attempts:
            best[row.case] = max(best.get(row.case, 0.0), _share(row))
        if row.correct < row.attempts and (row.case not in failed or _share(row) > _share(failed[row.case])):
            failed[row.case] = row
    return sorted(failed.values(), key=lambda row: (best[row.case], _share(row)))[:limit]


def _share(row: CaseSummary) -> float:
    return row.correct / row.attempts


class AttemptPlace(NamedTuple):
    """Which attempt this is; attempts are shown in this order."""

    order: int
    """The place of its case among the cases."""
    model: str
    tier: str
    number: int


class ReplyDigest(NamedTuple):
    """What a summary keeps of a reply: no texts, because a journal can be larger than memory."""

    input_tokens: int
    output_tokens: int
    usd: float | None
    latency: float
    wait: float | None
    """The latency where somebody told it and an answer came; infinity where none came in time."""
    truncated: bool
    empty: bool


class VerdictDigest(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """What a summary keeps of a verdict, whatever the rule; most verdicts have the gist of another."""

    measured: FindingMeasures
    primary: str
    """The class of the response, or what else its verifier calls the failure."""
    compiled: bool | None
    lint: float | None
    tampered: bool
    rechecked: int
    disagreed: int
    trust: str
    isolation: str
    node: str
    levels: tuple[tuple[str, bool], ...]


class AttemptOutcome(NamedTuple):
    """What came of one attempt, without texts."""

    place: AttemptPlace
    answered: ReplyDigest | None
    gist: VerdictDigest | None
    """None where there is no verdict that counts."""
    why: str | None
    """Why it is not correct, empty when it is; without a verdict what stands in the way, None when nobody said."""


class FailureLike(Protocol):
    """What is to be known of a failure."""

    @property
    def stage(self) -> str: ...
    @property
    def key(self) -> str: ...


ReplyPart = TypeVar("ReplyPart")
VerdictPart = TypeVar("VerdictPart")
FailurePart = TypeVar("FailurePart", bound=FailureLike)


@dataclass(slots=True)
class _AttemptHistory(Generic[ReplyPart, VerdictPart, FailurePart]):
    """What the journal has told of one attempt so far."""

    key: str = ""
    said: ReplyPart | None = None
    ask: str = ""
    """The key of the reply that was verified."""
    found: VerdictPart | None = None
    failure: FailurePart | None = None

    def reply(self, key: str, said: ReplyPart) -> None:
        self.key, self.said, self.failure = key, said, None

    def verdict(self, ask: str, found: VerdictPart | None) -> None:
        if self.failure is not None and self.failure.stage == "verify":
            self.failure = None
        # a late verdict on an older reply must not hide the one on the reply that counts
        if found is not None and (self.found is None or ask == self.key or self.ask != self.key):
            self.ask, self.found = self.key if ask == self.key else ask, found

    def end(self) -> tuple[ReplyPart | None, VerdictPart | None, FailurePart | None]:
        """The reply that counts, its verdict, and what stands between them when there is none."""
        if self.said is None or self.ask != self.key:
            return self.said, None, self.failure
        # an answer to an older question must not pass as one to the question that failed to be asked
        if self.failure is not None and self.failure.stage == "ask" and self.failure.key != self.key:
            return self.said, None, self.failure
        return self.said, self.found, None


class AttemptHistories(Generic[ReplyPart, VerdictPart, FailurePart]):
    """The attempts that facts tell of, with what is to be kept of each fact; facts are added in their order."""

    def __init__(
        self,
        cases: Sequence[Case],
        said: Callable[[Reply], ReplyPart],
        found: Callable[[Case, Verdict], VerdictPart],
        failed: Callable[[Failure], FailurePart],
    ) -> None:
        self._cases = cases
        self._orders = {case.id: order for order, case in enumerate(cases)}
        self._tests = [case.tests_digest for case in cases]
        self._said, self._found, self._failed = said, found, failed
        self._trails: dict[AttemptPlace, _AttemptHistory[ReplyPart, VerdictPart, FailurePart]] = {}

    def __len__(self) -> int:
        return len(self._trails)

    def __iter__(self) -> Iterator[AttemptPlace]:
        return iter(self._trails)

    def add(self, fact: Fact) -> AttemptPlace | None:
        """Take a fact into account; returns the attempt it is about, None when the run has no such case."""
        order = self._orders.get(fact.case)
        if order is None:
            return None
        place = AttemptPlace(order, sys.intern(fact.model), sys.intern(fact.tier), fact.number)
        trail = self._trails.get(place)
        if trail is None:
            trail = self._trails[place] = _AttemptHistory()
        if isinstance(fact, Reply):
            trail.reply(fact.key, self._said(fact))
        elif isinstance(fact, Verdict):
            is_of_tests = fact.tests == self._tests[order]
            trail.verdict(fact.ask, self._found(self._cases[order], fact) if is_of_tests else None)
        elif isinstance(fact, Failure) and fact.stage != "judge":
            trail.failure = self._failed(fact)
        return place

    def end(self, place: AttemptPlace) -> tuple[ReplyPart | None, VerdictPart | None, FailurePart | None]:
        """What came of one attempt so far: its reply, its verdict, and what stands between them when there is none."""
        return self._trails[place].end()

    def ends(self) -> Iterator[tuple[AttemptPlace, ReplyPart | None, VerdictPart | None, FailurePart | None]]:
        """The same for all attempts, in order."""
        for place in sorted(self._trails):
            yield place, *self._trails[place].end()


def attempt_outcomes(cases: Sequence[Case], facts: Iterable[Fact]) -> Iterator[AttemptOutcome]:
    """What came of the attempts that facts tell of, in order."""
    # most verdicts say the same as another: a million attempts share a few gists
    shared: dict[VerdictDigest, VerdictDigest] = {}

    def found(case: Case, verdict: Verdict) -> tuple[VerdictDigest, str]:
        said = verdict_digest(case, verdict)
        return shared.setdefault(said, said), failure_reason(case, verdict, said)

    trails: AttemptHistories[ReplyDigest, tuple[VerdictDigest, str], Failure] = AttemptHistories(
        cases, reply_digest, found, _shortened_failure
    )
    for fact in facts:
        trails.add(fact)
    for place, reply, judged, failure in trails.ends():
        said, reason = judged or (None, failure.message if failure else None)
        yield AttemptOutcome(place, reply, said, reason)


def reply_digest(reply: Reply) -> ReplyDigest:
    """What a summary keeps of a reply."""
    answer = reply.answer
    usd = answer.cost.usd if answer.cost else None
    tokens = answer.input_tokens, answer.output_tokens
    return reply_digest_from(*tokens, usd, answer.latency, answer.finish, is_blank(answer.text))


def reply_digest_from(
    input_tokens: int | None, output_tokens: int | None, usd: float | None, latency: float, finish: str, empty: bool
) -> ReplyDigest:
    """The same from what was written down of it."""
    wait = _wait(latency, finish)
    return ReplyDigest(input_tokens or 0, output_tokens or 0, usd, latency, wait, finish == "length", empty)


def is_blank(text: str) -> bool:
    """Whether somebody said nothing at all."""
    return not text or text.isspace()


def _wait(latency: float, finish: str) -> float | None:
    if finish == "timeout":
        return math.inf
    # no answer takes no time at all: where a recording says so, nobody looked at a clock
    return latency if latency > 0 and finish not in ("crash", "error") else None


def verdict_digest(case: Case, verdict: Verdict) -> VerdictDigest:
    """What a summary keeps of a verdict besides the reason."""
    found = verdict.found
    measured = scoring.finding_measures(case, found)
    return VerdictDigest(
        measured,
        classify_response(measured.correct, one_line(found.label)),
        scoring.code_compiled(found),
        scoring.lint_score(found),
        bool(found.tampered),
        found.rechecked,
        found.disagreed,
        found.trust,
        found.isolation,
        verdict.node,
        tuple(found.levels.items()),
    )


def failure_reason(case: Case, verdict: Verdict, gist: VerdictDigest) -> str:
    """Why an attempt is not correct, in one line; empty when it is."""
    return "" if gist.measured.correct else one_line(scoring.finding_failure_reason(case, verdict.found))


def _shortened_failure(failure: Failure) -> Failure:
    return msgspec.structs.replace(failure, message=one_line(failure.message))


def one_line(text: str) -> str:
    """At most 200 characters on one line."""
    if not text:
        return ""
    line = " ".join(text[:1000].split())
    return line if len(line) <= 200 else f"{line[:199]}…"


class _ScoredVerdict(NamedTuple):
    """What a rule makes of a verdict."""

    correct: bool
    primary: str
    score: float | None
    unknown: tuple[str, ...]
    """The facts that the rule asks for and nobody knows."""
    compiled: bool | None
    passing: float | None
    lint: float | None
    why: str
    tampered: bool
    rechecked: int
    disagreed: int
    trust: str
    isolation: str
    node: str
    levels: tuple[tuple[str, bool], ...]


def _scored_verdict(gist: VerdictDigest, why: str, score: float | None, unknown: tuple[str, ...]) -> _ScoredVerdict:
    return _ScoredVerdict(
        correct=gist.measured.correct,
        primary=gist.primary,
        score=score,
        unknown=unknown,
        compiled=gist.compiled,
        passing=gist.measured.passing,
        lint=gist.lint,
        why=why,
        tampered=gist.tampered,
        rechecked=gist.rechecked,
        disagreed=gist.disagreed,
        trust=gist.trust,
        isolation=gist.isolation,
        node=gist.node,
        levels=gist.levels,
    )


@dataclass(slots=True)
class _CaseRow:
    """One case under one model and tier."""

    case: str
    group: str = ""
    """Cases of one group are not independent."""
    suite: str = ""
    expected: str = ""
    """How attempts are expected to come out, where their author says so."""
    asked: bool = False
    """Whether any fact tells of it."""
    correct: int = 0
    answered: list[ReplyDigest] = field(default_factory=list)
    paid: list[float | None] = field(default_factory=list)
    """For every judged attempt, what its reply cost; None when that is not known."""
    judged: list[_ScoredVerdict] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """For every attempt without a verdict, the reason."""
    doubted: list[tuple[int, _ScoredVerdict]] = field(default_factory=list)
    """The attempts to look at, by their numbers."""

    @property
    def classes(self) -> Counter[str]:
        return Counter(judged.primary for judged in self.judged)

    @property
    def cost(self) -> float | None:
        """What the judged attempts cost; None where a price is unknown."""
        known = [usd for usd in self.paid if usd is not None]
        return math.fsum(known) if len(known) == len(self.paid) else None

    @property
    def planned(self) -> int:
        return len(self.judged) + len(self.missing)

    def values(self, of: Callable[[_ScoredVerdict], float | None]) -> list[float]:
        """One value for every judged attempt that has it."""
        return [value for judged in self.judged if (value := of(judged)) is not None]


_CaseRows = dict[tuple[str, str], dict[int, _CaseRow]]
"""By model and tier, then by the place of the case."""


def _case_rows(info: RunInfo, cases: Sequence[Case], ends: Iterable[AttemptOutcome], rule: Rule) -> _CaseRows:
    """The attempts by model and case, together with those that were planned and left no trace."""
    # a model that was never answered is missing, not absent
    rows: _CaseRows = {pair: {} for pair in planned_columns(info)}
    scores: dict[VerdictDigest, tuple[float | None, tuple[str, ...]]] = {}
    opinions: dict[tuple[VerdictDigest, str], _ScoredVerdict] = {}
    for_judges = {order for order, case in enumerate(cases) if case.by_judges}
    for (order, model, tier, number), answered, gist, why in ends:
        if order in for_judges:
            continue
        by_case = rows.get((model, tier))
        if by_case is None:
            by_case = rows[model, tier] = {}
        row = by_case.get(order)
        if row is None:
            row = by_case[order] = _empty_case_row(cases[order])
            row.asked = True
        if answered:
            row.answered.append(answered)
        if gist:
            told = gist, why or ""
            judged = opinions.get(told)
            if judged is None:
                if gist not in scores:
                    scores[gist] = gist.measured.score(rule), gist.measured.unknown(rule)
                judged = opinions[told] = _scored_verdict(*told, *scores[gist])
            row.correct += judged.correct
            row.judged.append(judged)
            row.paid.append(answered.usd if answered else None)
            if judged.tampered or judged.disagreed:
                row.doubted.append((number, judged))
        else:
            row.missing.append("no verdict yet" if why is None else why)
    for (model, _), by_case in rows.items():
        for order, case in enumerate(cases):
            if case.by_judges or (order not in by_case and info.unrecorded.get(model, 0)):
                continue
            row = by_case.setdefault(order, _empty_case_row(case))
            row.missing.extend(["not asked yet"] * ((info.samples or 0) - row.planned))
    return {group: dict(sorted(rows[group].items())) for group in sorted(rows)}


def planned_columns(info: RunInfo) -> list[tuple[str, str]]:
    """Which models a run asks, each with its tier."""
    if info.experiment and info.experiment.tiers:
        return [(tier.model, tier.name) for tier in info.experiment.tiers]
    return list(itertools.product(info.names, info.tiers or ("",)))


def _empty_case_row(case: Case) -> _CaseRow:
    return _CaseRow(case.id, _group(case), case.suite, case.expected_classification)


def _group(case: Case) -> str:
    # a case without a group is a group of its own
    return f"group {case.group}" if case.group else f"case {case.id}"


def _summary(
    info: RunInfo,
    cases: Sequence[Case],
    ends: Iterable[AttemptOutcome],
    k: Sequence[int],
    rule: Rule,
    suites: SuiteRule,
) -> Summary:
    rows = _case_rows(info, cases, ends, rule)
    sizes = sorted(set(k))
    names = {case.suite for case in cases if case.suite}
    models = tuple(
        _model_summary(*group, list(asked.values()), sizes, _suites(asked.values(), suites, names))
        for group, asked in rows.items()
    )
    every = sorted(
        ((order, *group, row) for group, asked in rows.items() for order, row in asked.items()),
        key=lambda entry: entry[:3],
    )
    return Summary(
        models=models,
        cases=tuple(_case_summary(model, tier, row, sizes) for _, model, tier, row in every),
        rule=rule.name,
        warnings=(*_judge_only_warnings(cases), *_warnings(info, rows, models, rule)),
        conclusive=(any(model.attempts for model in models) or _needs_no_verdict(info, cases))
        and not any(20 * len(model.unscored) > len(rows[model.model, model.tier]) for model in models),
    )


def _needs_no_verdict(info: RunInfo, cases: Sequence[Case]) -> bool:
    """Whether nothing is to be verified: the cases are for judges, or a shard was dealt none because there are so few."""
    return all(case.by_judges for case in cases) if cases else info.shard is not None


def _case_summary(model: str, tier: str, row: _CaseRow, sizes: Sequence[int]) -> CaseSummary:
    reasons = [judged.why for judged in row.judged if not judged.correct] if row.judged else row.missing
    return CaseSummary(
        case=row.case,
        model=model,
        tier=tier,
        attempts=len(row.judged),
        correct=row.correct,
        missing=len(row.missing),
        rate=share(row.correct, len(row.judged)),
        score=_mean(row.values(lambda judged: judged.score)),
        pass_at={size: pass_at_k(len(row.judged), row.correct, size) for size in sizes},
        flake_rate=flip_rate(len(row.judged), row.correct),
        cost_usd=row.cost,
        why=_most_frequent(reasons),
    )


def _suites(rows: Iterable[_CaseRow], rule: SuiteRule, names: Collection[str]) -> SuiteScores | None:
    """What the suites of these names score; None where there are none."""
    of_suites = [
        SuiteCase(
            suite=row.suite,
            group=row.group,
            expected=row.expected,
            classes=row.classes,
            missing=len(row.missing),
            waits=[reply.wait for reply in row.answered if reply.wait is not None],
        )
        for row in rows
        if row.suite
    ]
    return suite_scores(of_suites, rule, names=names) if names else None


def _model_summary(
    model: str, tier: str, rows: Sequence[_CaseRow], sizes: Sequence[int], suites: SuiteScores | None
) -> ModelSummary:
    answered = [reply for row in rows for reply in row.answered]
    waits = [reply.latency for reply in answered]
    judged = [one for row in rows for one in row.judged]
    ways = Counter(way for one in judged if any(way := (one.trust, one.isolation, one.node)))
    return ModelSummary(
        model=model,
        tier=tier,
        cases=sum(row.asked for row in rows),
        attempts=len(judged),
        correct=sum(row.correct for row in rows),
        solved=sum(row.correct > 0 for row in rows),
        missing=sum(len(row.missing) for row in rows),
        unscored=tuple(row.case for row in rows if not row.judged),
        pass_at={size: _pass_at(pass_at_k, rows, size) for size in sizes},
        pass_hat={size: _pass_at(pass_hat_k, rows, size) for size in sizes},
        levels=_levels(rows, sizes),
        flaky=sum(0 < row.correct < len(row.judged) for row in rows),
        score=_rate(rows, lambda judged: judged.score),
        compile_rate=_rate(rows, lambda judged: judged.compiled),
        test_pass_rate=_rate(rows, lambda judged: judged.passing),
        lint=_rate(rows, lambda judged: judged.lint),
        input_tokens=sum(reply.input_tokens for reply in answered),
        output_tokens=sum(reply.output_tokens for reply in answered),
        cost_usd=_cost(answered),
        unpriced=sum(reply.usd is None for reply in answered),
        cost_of_pass=_cost_of_pass(rows),
        latency=_latency(rows),
        latency_p50=percentile(waits, 0.5),
        latency_p95=percentile(waits, 0.95),
        truncated=sum(reply.truncated for reply in answered),
        empty=sum(reply.empty for reply in answered),
        tampered=sum(one.tampered for one in judged),
        tampered_attempts=_flagged_attempts(
            rows, lambda one: one.why.removeprefix("tampered: ") if one.tampered else ""
        ),
        rechecked=sum(one.rechecked > 0 for one in judged),
        disagreed=sum(one.disagreed > 0 for one in judged),
        disagreed_attempts=_flagged_attempts(rows, _disagreement),
        verified=tuple(
            VerificationCount(trust=trust, isolation=isolation, node=node, attempts=count)
            for (trust, isolation, node), count in sorted(ways.items())
        ),
        suites=suites,
    )


def _cost(answered: Iterable[ReplyDigest]) -> float | None:
    """What the priced replies cost; None when no reply has a price."""
    prices = [reply.usd for reply in answered if reply.usd is not None]
    return math.fsum(prices) if prices else None


def _flagged_attempts(rows: Sequence[_CaseRow], reason: Callable[[_ScoredVerdict], str]) -> tuple[Flag, ...]:
    """The first attempts that there is a reason to look at."""
    every = (
        Flag(case=row.case, number=number, reason=said)
        for row in rows
        for number, judged in row.doubted
        if (said := reason(judged))
    )
    return tuple(itertools.islice(every, MAX_FLAGGED_ATTEMPTS))


def _disagreement(judged: _ScoredVerdict) -> str:
    if not judged.disagreed:
        return ""
    first, later = ("passed", "failed") if judged.correct else ("failed", "passed")
    return f"{first} at first, then {later} {judged.disagreed} of {judged.rechecked} times"


def _levels(rows: Sequence[_CaseRow], sizes: Sequence[int]) -> dict[str, dict[int, Estimate]]:
    """pass@k at each level of success that some attempt is known to have reached or not, in the verifier's order."""
    names = dict.fromkeys(level for row in rows for one in row.judged for level, _ in one.levels)
    found = {}
    for level in names:
        known = [(row, row.values(lambda one: dict(one.levels).get(level))) for row in rows]  # noqa: B023  called at once
        reached = [(row, (len(each), round(sum(each)))) for row, each in known if each]
        of, counts = [row for row, _ in reached], [pair for _, pair in reached]
        found[level] = {size: _pass_at(pass_at_k, of, size, counts) for size in sizes}
    return found


def _pass_at(
    of: Callable[[int, int, int], float | None],
    rows: Sequence[_CaseRow],
    size: int,
    counted: Sequence[tuple[int, int]] | None = None,
) -> Estimate:
    """The mean pass@k or pass^k of the cases with at least k judged attempts.

    `counted` are attempts and successes of each row, where success is something else than being correct.
    """
    counts = [(len(row.judged), row.correct) for row in rows] if counted is None else counted
    values = {pair: of(*pair, size) for pair in set(counts)}
    usable = [(row, value) for row, pair in zip(rows, counts, strict=True) if (value := values[pair]) is not None]
    return _over_cases(
        [row for row, _ in usable], [value for _, value in usable], sum(len(row.judged) for row, _ in usable)
    )


def _rate(rows: Sequence[_CaseRow], of: Callable[[_ScoredVerdict], float | None]) -> Estimate:
    """The mean over cases of the mean over their attempts, where an attempt has the value."""
    known = [(row, values) for row in rows if (values := row.values(of))]
    means = [math.fsum(values) / len(values) for _, values in known]
    return _over_cases([row for row, _ in known], means, sum(len(values) for _, values in known))


def _over_cases(rows: Sequence[_CaseRow], values: Sequence[float], attempts: int) -> Estimate:
    """The mean over cases; those of one group vary together."""
    return mean(values, attempts, groups=_groups(rows))


def _groups(rows: Sequence[_CaseRow]) -> list[str] | None:
    """The group of each case; None when no two cases share one."""
    return _groups_if_shared([row.group for row in rows])


def _groups_if_shared(groups: list[str]) -> list[str] | None:
    return groups if len(set(groups)) < len(groups) else None


def _cost_of_pass(rows: Sequence[_CaseRow]) -> Estimate:
    """What a correct attempt costs; unknown where the price of a judged one is."""
    judged = [row for row in rows if row.judged]
    costs = [cost for row in judged if (cost := row.cost) is not None]
    if not judged or len(costs) < len(judged):
        return Estimate(value=None)
    attempts = [len(row.judged) for row in judged]
    return price_of_pass(costs, [row.correct for row in judged], attempts, groups=_groups(judged))


MAX_BOOTSTRAP_DRAWS = 10_000_000
"""How many values a bootstrap of many cases may draw."""


def _latency(rows: Sequence[_CaseRow]) -> Estimate:
    """The mean over cases of their mean latency, with the bootstrap's interval: seconds have no upper end."""
    answered = [row for row in rows if row.answered]
    waits = [[reply.latency for reply in row.answered] for row in answered]
    means = [math.fsum(each) / len(each) for each in waits]
    replicates = max(1000, min(10_000, MAX_BOOTSTRAP_DRAWS // max(1, len(means))))
    groups = _groups(answered)
    interval = (
        _grouped_bootstrap(means, groups, replicates) if groups else bootstrap(means, seed=0, replicates=replicates)
    )
    return Estimate(
        value=_mean(means),
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


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _most_frequent(reasons: Iterable[str]) -> str:
    """The reason given most often, the smallest of ties, with its count when there were several.

    >>> _most_frequent(["wrong answer", "time limit", "wrong answer"])
    '2x wrong answer'
    """
    counts = Counter(reasons)
    if not counts:
        return ""
    reason = min(counts, key=lambda reason: (-counts[reason], reason))
    return f"{counts[reason]}x {reason}" if counts[reason] > 1 else reason


def _judge_only_warnings(cases: Sequence[Case]) -> Iterator[str]:
    alone = sum(case.by_judges for case in cases)
    if alone:
        what = "1 case is" if alone == 1 else f"{alone} cases are"
        yield f"{what} for judges alone to decide, and in no figure here: steelyard tiers has what they say"


def _warnings(info: RunInfo, rows: _CaseRows, models: Sequence[ModelSummary], rule: Rule) -> Iterator[str]:
    """What a reader must know first: about the run, then about each model."""
    if info.shard is not None:
        shard = info.shard
        what = f"shard {shard.numbers[0]}" if len(shard.numbers) == 1 else f"{len(shard.numbers)} shards"
        yield f"{what} of {shard.of}, so not all of the {shard.cases} cases: steelyard merge joins the shards"
    largest = {group: max((row.planned for row in asked.values()), default=0) for group, asked in rows.items()}
    alone = "one attempt per case says nothing about how often a model succeeds: use --samples"
    everyone_alone = bool(largest) and all(size == 1 for size in largest.values())
    if everyone_alone:
        yield alone
    temperature = info.parameters.get("temperature")
    if temperature is not None and temperature == 0 and any(size > 1 for size in largest.values()):
        yield "at temperature 0 the attempts at a case are nearly copies of each other: leave --temperature out"
    some_priced = any(model.cost_usd is not None for model in models)
    for model in models:
        name = f"{model.model} ({model.tier})" if model.tier else model.model
        asked = rows[model.model, model.tier]
        replies = sum(len(row.answered) for row in asked.values())
        if largest[model.model, model.tier] == 1 and not everyone_alone:
            yield f"{name}: {alone}"
        topped_up = [case for case, samples in info.more.get(model.model, {}).items() if samples > (info.samples or 0)]
        if topped_up:
            looked = "1 case that looked" if len(topped_up) == 1 else f"{len(topped_up)} cases that looked"
            yield f"{name}: {looked} worse than before got more attempts than the others, which moves means a little"
        if 50 * model.truncated > replies:
            yield f"{name}: {model.truncated} of {replies} replies were cut off at the token limit: raise --max-tokens"
        if model.unscored:
            more = len(model.unscored) - 5
            listed = ", ".join(model.unscored[:5]) + (f" and {more} more" if more > 0 else "")
            yield f"{name}: {len(model.unscored)} of {len(asked)} cases have no judged attempt: {listed}"
        empty = [each.suite for each in model.suites.suites if not each.attempts] if model.suites else []
        if empty and model.attempts:
            yield f"{name}: no judged attempt, and so not in the overall score: suite {', '.join(empty)}"
        if model.missing:
            planned = model.attempts + model.missing
            reason = _most_frequent(itertools.chain.from_iterable(row.missing for row in asked.values()))
            yield f"{name}: {model.missing} of {planned} attempts are missing, most often: {reason}"
        unknown = [one.unknown for row in asked.values() for one in row.judged if one.unknown]
        if unknown:
            facts = ", ".join(sorted({fact for facts in unknown for fact in facts}))
            yield (
                f"{name}: {len(unknown)} of {model.attempts} attempts have no score under rule {rule.name}: "
                f"not known of them: {facts}"
            )
        if model.unpriced and some_priced:
            yield f"{name}: the price of {model.unpriced} of {replies} replies is unknown, so the cost is incomplete"
