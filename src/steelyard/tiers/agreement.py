"""What several judges say together, and how far each of them can be relied on.

A judge that was asked several times about the same thing has one voice in it: the mean of its scores, and the strict majority
of its yes or no. Ratings are kept by the whole identity of what was judged, and by the judge.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, repeat
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.analysis import estimates
from steelyard.analysis.estimates import Estimate
from steelyard.records import Record
from steelyard.stats.agreement import MeasurementLevel, alpha_interval, gwet_ac1, krippendorff_alpha, raw_agreement
from steelyard.stats.descriptive import flip_rate, percentile
from steelyard.stats.intervals import standard_error, upper_tail
from steelyard.stats.special import student_quantile
from steelyard.tiers.rubrics import SCORE_THRESHOLD_TOLERANCE

OUTLIER_SPREAD_FACTOR = 3
"""A score is an outlier when it is this many times the panel's spread away from the others."""
MEDIAN_DISTANCE_TO_STANDARD_DEVIATION = 1.4826
"""The standard deviation of normal values in units of their median distance (Rousseeuw and Croux 1993)."""
MIN_OUTLIER_DISTANCE = 0.1
"""A score this close to the others is not an outlier, even if the panel agrees better elsewhere."""
MIN_JUDGES_FOR_OUTLIERS = 3
"""Judges of one thing that show which of them is off: of two, either could be."""
MIN_ITEMS_FOR_INTERVAL = 5
"""Redraws of fewer things that judges rated hardly differ, so their spread tells nothing."""
SCORE_COMPARISON_DECIMALS = 9
"""The decimals to which scores are compared, so that rounding does not count as disagreement."""


class AttemptIdentity(Record, frozen=True, kw_only=True, order=True):
    """What was judged; no part of it can be left out, or different things would be taken for one."""

    case: str
    model: str
    tier: str
    number: int


class JudgeRating(Record, frozen=True, kw_only=True):
    """One judge's rating of one thing, once."""

    thing: AttemptIdentity
    judge: str
    repeat: int = 1
    valid: bool = True
    """False where no usable judgment came; the other fields then mean nothing."""
    score: float | None = None
    """None where nothing in the rubric applies."""
    passed: bool | None = None
    categories: dict[str, float | None] = {}
    claim_off: bool = False
    """Whether the judge's own total is not what its categories give."""


class Consensus(Record, frozen=True, kw_only=True):
    """What judges say together."""

    score: float | None
    """The mean of the valid scores; None without any."""
    passed: bool | None
    """Whether more than half of the votes are for it; None without a vote."""
    judges: int = 0
    """How many had a score or a vote."""


class PanelRuling(Record, frozen=True, kw_only=True):
    """What the panel says of one thing."""

    thing: AttemptIdentity
    consensus: Consensus


class AgreementStatistics(Record, frozen=True, kw_only=True):
    """How far judges agree on the same things."""

    alpha: Estimate
    """Krippendorff's: 1 is perfect, 0 is what chance gives. Its interval is over things like these, each taken as if it had
    nothing to do with the others, so that it is too narrow where many things come from a few cases."""
    same: float | None
    """The share of pairs of judges that say just the same, averaged over things."""
    ac1: float | None
    """Gwet's agreement beyond chance, which stays sensible where nearly all say the same."""
    apart: float | None = None
    """The mean difference between two judges' scores of the same item; None for yes or no."""
    reasons: dict[str, str] = {}
    """Why a figure is None, by its name."""


class JudgeReport(Record, frozen=True, kw_only=True):
    """One judge among the others."""

    judge: str
    ratings: int
    """How often it was asked."""
    invalid: Estimate
    """The share without a usable judgment."""
    things: int
    """How many things it scored."""
    mean: Estimate
    """Its mean score over these things."""
    leniency: Estimate
    """How much higher it scores than the mean of the other judges, on average over the things that others scored too."""
    spread: float | None
    """The standard deviation of its scores when it is asked again about the same thing."""
    flips: float | None
    """How likely it is, asked twice about the same thing, to say pass once and fail once."""
    decides: int | None
    """The number of pass or fail rulings that would change without it; None if it is never one of several."""
    claims_off: int
    """How often its own total is not what its categories give."""
    reasons: dict[str, str] = {}
    """Why a figure is None, by its name."""


class JudgeOutlier(Record, frozen=True, kw_only=True):
    """A score that is far from what the other judges say of the same thing."""

    thing: AttemptIdentity
    judge: str
    score: float
    others: float
    """The consensus of the others, without those that are further off."""


class PanelAgreement(Record, frozen=True, kw_only=True):
    """What a panel of judges says, and how far it can be relied on."""

    ratings: int
    invalid: Estimate
    """The share without a usable judgment."""
    rulings: tuple[PanelRuling, ...]
    """One per thing that was judged, in order."""
    judges: tuple[JudgeReport, ...]
    scores: AgreementStatistics
    """On the scores, as numbers."""
    passes: AgreementStatistics
    """On pass or fail."""
    categories: dict[str, AgreementStatistics]
    """On the scores of each category."""
    spread: float | None
    """The usual distance of a score from the consensus of the others: a robust standard deviation."""
    outliers: tuple[JudgeOutlier, ...] | None
    claims_off: int
    reasons: dict[str, str] = {}
    """Why a figure is None, by its name."""


def consensus(scores: Iterable[float | None], passes: Iterable[bool | None] = ()) -> Consensus:
    """The mean of the valid scores, and whether more than half of the valid votes are for a pass: a tie fails.

    >>> consensus([0.9, None, 0.6], [True, None, False])
    Consensus(score=0.75, passed=False, judges=2)
    """
    valid = [score for score in scores if score is not None]
    votes = [vote for vote in passes if vote is not None]
    return Consensus(
        score=_mean(valid),
        passed=2 * sum(votes) > len(votes) if votes else None,
        judges=max(len(valid), len(votes)),
    )


def panel_agreement(ratings: Iterable[JudgeRating], *, seed: int) -> PanelAgreement:
    """What the ratings of many judges on many things say together; their order does not matter.

    Agreement is as in `stats.agreement`, over one voice per judge and thing. An outlier is further from the consensus of
    the others on the same thing than 3 times the panel's spread and than 0.1, where at least 3 judges scored it. The
    furthest is taken first, and is then no longer one of the others, so that it does not make outliers of those it is far
    from. The spread is 1.4826 times the median distance of all scores from the consensus of the others: Rousseeuw and
    Croux 1993, "Alternatives to the median absolute deviation", Journal of the American Statistical Association 88,
    1273-1283.
    """
    panel, rulings = PanelRatings(), []
    for thing, of_thing in groupby(sorted(ratings, key=_rating_key), key=attrgetter("thing")):
        rulings.append(PanelRuling(thing=thing, consensus=panel.add(thing, list(of_thing))))
    return replace(panel.agreement(seed=seed), rulings=tuple(rulings))


class PanelRatings:
    """The ratings of one thing after the other, of which only numbers are kept: there may be a hundred thousand things."""

    def __init__(self) -> None:
        self._things: list[AttemptIdentity] = []
        self._tallies: dict[str, _JudgeTally] = {}

    def add(self, thing: AttemptIdentity, ratings: Sequence[JudgeRating]) -> Consensus:
        """Add all ratings of a thing, in the order of judges and repeats, and return what they say; things come in order."""
        _check(ratings)
        place = len(self._things)
        self._things.append(thing)
        voices = []
        for judge, given in groupby(ratings, key=attrgetter("judge")):
            voice = self._tallies.setdefault(judge, _JudgeTally()).add(place, list(given))
            if voice is not None:
                voices.append(voice)
        return consensus((voice.score for voice in voices), (voice.passed for voice in voices))

    def agreement(self, *, seed: int) -> PanelAgreement:
        """What they say together, without the rulings."""
        things, judges = self._things, sorted(self._tallies)
        tallies = [self._tallies[judge] for judge in judges]
        scores = [each.scores.values(len(things)) for each in tallies]
        passes = [each.passes.values(len(things)) for each in tallies]
        nothing = _RatedThings()
        spread, outliers = _outliers(things, judges, scores)
        few = f"no thing was scored by {MIN_JUDGES_FOR_OUTLIERS} judges or more, and with two it is unknown which one is off"
        total = sum(each.ratings for each in tallies)
        return PanelAgreement(
            ratings=total,
            invalid=estimates.share(sum(each.invalid for each in tallies), total),
            rulings=(),
            judges=tuple(
                _report(own, judge, tally, things, scores, passes)
                for own, (judge, tally) in enumerate(zip(judges, tallies, strict=True))
            ),
            scores=_agreement(scores, "interval", seed),
            passes=_agreement(passes, "nominal", seed),
            categories={
                # one after the other, since the scores of all of them are large
                name: _agreement(
                    [each.categories.get(name, nothing).values(len(things)) for each in tallies], "interval", seed
                )
                for name in sorted({name for each in tallies for name in each.categories})
            },
            spread=spread,
            outliers=outliers,
            claims_off=sum(each.claims_off for each in tallies),
            reasons={"spread": few, "outliers": few} if outliers is None else {},
        )


RatingTable = list[list[float | None]]
"""One row per judge, one column per thing; None if a judge has nothing to say."""


class _RatedThings:
    """One value of each thing that a judge rated, by the places of the things."""

    def __init__(self) -> None:
        self._values = array("d")
        """NaN where there is none."""

    def add(self, place: int, value: float | None) -> None:
        self._values.extend(repeat(math.nan, place - len(self._values)))
        self._values.append(math.nan if value is None else value)

    def values(self, size: int) -> list[float | None]:
        """The value of every thing, None where the judge gave none."""
        known = [None if value != value else value for value in self._values]
        return [*known, *repeat(None, size - len(known))]


class _JudgeTally:
    """What is kept of one judge's ratings."""

    def __init__(self) -> None:
        self.ratings = self.invalid = self.claims_off = 0
        self.scored = 0
        """Ratings with a score."""
        self.scores, self.passes = _RatedThings(), _RatedThings()
        self.categories: dict[str, _RatedThings] = {}
        self._squares, self._freedom = array("d"), 0
        self._flip_rates = array("d")

    def add(self, place: int, ratings: Sequence[JudgeRating]) -> _PooledRating | None:
        """Add its ratings of one thing; returns what they say together, None if none is valid."""
        valid = [each for each in ratings if each.valid]
        self.ratings += len(ratings)
        self.invalid += len(ratings) - len(valid)
        if not valid:
            return None
        self.claims_off += sum(each.claim_off for each in valid)
        self._compare_repeats(_known(each.score for each in valid), _flags(each.passed for each in valid))
        voice = _pooled_rating(valid)
        self.scores.add(place, voice.score)
        self.passes.add(place, voice.passed)
        for name, score in voice.categories.items():
            self.categories.setdefault(name, _RatedThings()).add(place, score)
        return voice

    def _compare_repeats(self, scores: Sequence[float], votes: Sequence[bool | None]) -> None:
        self.scored += len(scores)
        if len(scores) > 1:
            middle = _mean(scores) or 0.0
            self._squares.extend((score - middle) ** 2 for score in scores)
            self._freedom += len(scores) - 1
        known = [vote for vote in votes if vote is not None]
        if (rate := flip_rate(len(known), sum(known))) is not None:
            self._flip_rates.append(rate)

    def repeat_variation(self) -> tuple[float | None, float | None]:
        """How much the judge's scores of one item vary, and how often its votes on one item differ."""
        spread = math.sqrt(math.fsum(self._squares) / self._freedom) if self._freedom else None
        return spread, _mean(self._flip_rates)


class _PooledRating(NamedTuple):
    score: float | None
    passed: bool | None
    categories: Mapping[str, float | None]


def _rating_key(rating: JudgeRating) -> tuple[AttemptIdentity, str, int]:
    return rating.thing, rating.judge, rating.repeat


def _check(ratings: Sequence[JudgeRating]) -> None:
    for place, times in Counter(map(_rating_key, ratings)).items():
        if times > 1:
            raise ValueError(f"{times} ratings have the same thing, judge and repeat: {place}")
    for each in ratings:
        if not all(math.isfinite(score) for score in (each.score, *each.categories.values()) if score is not None):
            raise ValueError(f"a score is a finite number or None, got {each}")


def _pooled_rating(ratings: Sequence[JudgeRating]) -> _PooledRating:
    agreed = consensus((each.score for each in ratings), (each.passed for each in ratings))
    names = sorted({name for each in ratings for name in each.categories})
    categories = {name: consensus(each.categories.get(name) for each in ratings).score for name in names}
    return _PooledRating(agreed.score, agreed.passed, categories)


def _column(table: RatingTable, place: int) -> list[float | None]:
    return [row[place] for row in table]


def _flags(column: Iterable[float | None]) -> list[bool | None]:
    return [None if vote is None else bool(vote) for vote in column]


def _mean(values: Sequence[float]) -> float | None:
    """The mean, which for equal values is the value itself; None without values."""
    if not values:
        return None
    return values[0] if min(values) == max(values) else math.fsum(values) / len(values)


def _agreement(table: RatingTable, level: MeasurementLevel, seed: int) -> AgreementStatistics:
    rounded = [
        [None if value is None else round(float(value), SCORE_COMPARISON_DECIMALS) for value in row] for row in table
    ]
    items = [rated for column in zip(*rounded, strict=True) if len(rated := _known(column)) > 1]
    alpha = krippendorff_alpha(rounded, level=level)
    is_enough = alpha is not None and len(items) >= MIN_ITEMS_FOR_INTERVAL
    interval = alpha_interval(rounded, level=level, seed=seed) if is_enough else None
    reasons = {}
    if not items:
        reason = "no thing was rated by two judges"
        reasons = {"alpha": reason, "same": reason, "ac1": reason} | ({"apart": reason} if level == "interval" else {})
    elif alpha is None:
        reasons["alpha"] = "all ratings are the same, so agreement cannot be distinguished from habit"
    elif interval is None:
        reasons["alpha.low"] = reasons["alpha.high"] = (
            f"there are fewer than {MIN_ITEMS_FOR_INTERVAL} things that two judges rated"
        )
    return AgreementStatistics(
        alpha=Estimate(
            value=alpha,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            cases=len(items),
            attempts=sum(map(len, items)),
        ),
        same=raw_agreement(rounded),
        ac1=gwet_ac1(rounded),
        apart=_mean([_distance(item) for item in items]) if level == "interval" else None,
        reasons=reasons,
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _distance(values: Sequence[float]) -> float:
    """The mean distance of two of the values."""
    pairs = [abs(left - right) for place, left in enumerate(values) for right in values[:place]]
    return math.fsum(pairs) / len(pairs)


def _report(
    own: int,
    judge: str,
    tally: _JudgeTally,
    things: Sequence[AttemptIdentity],
    scores: RatingTable,
    passes: RatingTable,
) -> JudgeReport:
    reasons = {}
    mean = _mean_score(things, scores[own], tally.scored)
    if mean.value is None:
        reasons["mean"] = "it scored nothing"
    leniency = _leniency(own, things, scores)
    if leniency.value is None:
        reasons["leniency"] = "no other judge scored what it scored"
    elif leniency.low is None:
        reasons["leniency.low"] = reasons["leniency.high"] = "it shares fewer than 2 cases with other judges"
    spread, flips = tally.repeat_variation()
    for name, value in ("spread", spread), ("flips", flips):
        if value is None:
            reasons[name] = "it rated nothing twice"
    decides = _decisive_votes(own, passes)
    if decides is None:
        reasons["decides"] = "no other judge voted on what it voted on"
    return JudgeReport(
        judge=judge,
        ratings=tally.ratings,
        invalid=estimates.share(tally.invalid, tally.ratings),
        things=mean.cases,
        mean=mean,
        leniency=leniency,
        spread=spread,
        flips=flips,
        decides=decides,
        claims_off=tally.claims_off,
        reasons=reasons,
    )


def _mean_score(things: Sequence[AttemptIdentity], scores: Sequence[float | None], attempts: int) -> Estimate:
    """A mean over items, with those of one case as one group."""
    known = _known(scores)
    # scores above 1 occur in other people's files: the mean keeps them, the interval is for shares
    clamped = [min(max(score, 0.0), 1.0) for score in known]
    cases = [thing.case for thing, score in zip(things, scores, strict=True) if score is not None]
    return replace(estimates.mean(clamped, attempts, groups=cases), value=_mean(known))


def _leniency(own: int, things: Sequence[AttemptIdentity], scores: RatingTable) -> Estimate:
    """The mean of the judge's distances from the others, with Student's interval over cases like these."""
    shared = []
    for place, thing in enumerate(things):
        score = scores[own][place]
        others = _mean(_known(row[place] for judge, row in enumerate(scores) if judge != own))
        if score is not None and others is not None:
            shared.append((thing.case, score - others))
    distances, cases = [distance for _, distance in shared], [case for case, _ in shared]
    value, groups = _mean(distances), len(set(cases))
    error = standard_error(distances, groups=cases) if groups > 1 else None
    if value is None or error is None:
        return Estimate(value=value, cases=len(shared), attempts=len(shared))
    reach = student_quantile(groups - 1, upper_tail(0.95)) * error
    return Estimate(value=value, low=value - reach, high=value + reach, cases=len(shared), attempts=len(shared))


def _decisive_votes(own: int, passes: RatingTable) -> int | None:
    """How many majorities would be others without the judge; None if it never voted beside another."""
    is_one_of_several, decided = False, 0
    for place, vote in enumerate(passes[own]):
        votes = _flags(_column(passes, place))
        others = consensus((), votes[:own] + votes[own + 1 :]).passed
        if vote is not None and others is not None:
            is_one_of_several = True
            decided += others != consensus((), votes).passed
    return decided if is_one_of_several else None


def _outliers(
    things: Sequence[AttemptIdentity], judges: Sequence[str], scores: RatingTable
) -> tuple[float | None, tuple[JudgeOutlier, ...] | None]:
    """The panel's spread, and the scores that are too far from the others; None if too few judges scored anything."""

    def rated() -> Iterator[dict[str, float]]:
        for of_thing in zip(*scores, strict=True):
            yield {judge: score for judge, score in zip(judges, of_thing, strict=True) if score is not None}

    distances = [
        abs(score - others)
        for given in rated()
        if len(given) >= MIN_JUDGES_FOR_OUTLIERS
        for judge, score in given.items()
        if (others := _consensus_of_others(given, judge)) is not None
    ]
    middle = percentile(distances, 0.5)
    if middle is None:
        return None, None
    limit = max(OUTLIER_SPREAD_FACTOR * MEDIAN_DISTANCE_TO_STANDARD_DEVIATION * middle, MIN_OUTLIER_DISTANCE)
    found = [
        outlier
        for thing, given in zip(things, rated(), strict=True)
        for outlier in _attempt_outliers(thing, given, limit)
    ]
    return MEDIAN_DISTANCE_TO_STANDARD_DEVIATION * middle, tuple(found)


def _attempt_outliers(thing: AttemptIdentity, given: Mapping[str, float], limit: float) -> list[JudgeOutlier]:
    """The outliers of one thing, furthest first; of equally far ones any could be off, so all are named."""
    left, found = dict(given), []
    while len(left) >= MIN_JUDGES_FOR_OUTLIERS:
        away = {
            judge: (others, abs(score - others))
            for judge, score in left.items()
            if (others := _consensus_of_others(left, judge)) is not None
        }
        furthest = max(distance for _, distance in away.values())
        if furthest <= limit + SCORE_THRESHOLD_TOLERANCE:
            break
        for judge, (others, distance) in away.items():
            if distance >= furthest - SCORE_THRESHOLD_TOLERANCE:
                found.append(JudgeOutlier(thing=thing, judge=judge, score=left.pop(judge), others=others))
    return found


def _consensus_of_others(given: Mapping[str, float], judge: str) -> float | None:
    """The consensus of the others."""
    return consensus(score for other, score in given.items() if other != judge).score
