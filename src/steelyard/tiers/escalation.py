"""Panels in which the first judges are asked about every answer and the others about some, and the error that adds.

Which answers are checked is drawn at random among those that the first judges are sure of, whatever they say. So what all
judges say of the checked ones is what they would have said of the others, up to chance, and no model of how judges err is
needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import msgspec

from steelyard.analysis.estimates import Estimate
from steelyard.errors import InputError
from steelyard.records import Escalation, Panel, Record, digest
from steelyard.stats.intervals import score_interval, upper_tail
from steelyard.stats.special import student_quantile
from steelyard.tiers.agreement import Consensus, consensus
from steelyard.tiers.rubrics import SCORE_THRESHOLD_TOLERANCE

MIN_CHECKED_SCORES = 5
"""The minimum number of checked answers for an estimate of how all judges would score."""
PSEUDO_SCORE_DIFFERENCE = 0.3
"""Two more differences of this size, one up and one down, count in the spread: a few checked answers may all agree by chance."""


class JudgeOpinion(NamedTuple):
    """What one judge says of one answer, once."""

    judge: str
    score: float | None
    passed: bool | None


class EscalatedAnswer(NamedTuple):
    """One answer, what the first judges say of it, and what all say together if they were asked."""

    tier: str
    is_decided_by_judges: bool
    """Whether they say if it passes, because it has no tests."""
    first: Consensus
    whole: Consensus | None
    """None if the first judges alone were asked."""
    is_checked: bool
    """Whether the others were asked by chance, and not because the first are unsure."""


class EscalationEffect(Record, frozen=True, kw_only=True):
    """What the first judges decide alone in a tier, and what would change if all had been asked."""

    tier: str
    answers: int
    alone: int
    """Answers of which only the first judges were asked."""
    checked: int
    """Answers that the first judges are sure of, about which all were asked by chance."""
    overruled: int
    """Checked answers that all judges together decide otherwise."""
    pass_rate: float | None = None
    """The share of answers that the judges who were asked pass, where they decide; None where tests do."""
    pass_rate_if_all_asked: Estimate | None = None
    """The same if all judges had been asked about all these answers."""
    impl_rate: float | None = None
    """The mean score by the judges who were asked."""
    impl_rate_if_all_asked: Estimate | None = None


class EscalatedPanel(Record, frozen=True, kw_only=True):
    """A panel of which not all judges were asked about every answer."""

    first: tuple[str, ...]
    """The judges that were asked about every answer."""
    escalation: Escalation
    unasked: int
    """Judgments that were not asked for."""
    saved_usd: float | None
    """What those would have cost at the mean cost of the judge's other judgments; None if that is unknown."""
    tiers: tuple[EscalationEffect, ...]


def panel_escalation(
    judges: int, ask_first: int | None, unsure_within: float | None, check_share: float | None, prefix: str = ""
) -> Escalation | None:
    """When the others are asked than the first judges; raises an InputError for numbers that make no sense together."""
    given = {"ask_first": ask_first, "unsure_within": unsure_within, "check_share": check_share}
    named = {key: f"{prefix}{key.replace('_', '-')}" if prefix else key for key in given}
    if ask_first is None:
        others = [named[key] for key, value in given.items() if value is not None]
        if others:
            raise InputError(
                f"{others[0]} has no effect without {named['ask_first']}, the number of judges to ask first"
            )
        return None
    if not 1 <= ask_first < judges:
        raise InputError(
            f"{named['ask_first']} is {ask_first}, and there {'is 1 judge' if judges == 1 else f'are {judges} judges'}; "
            "ask at least one first, and leave at least one for the answers that are not clear"
        )
    for key in ("unsure_within", "check_share"):
        value = given[key]
        if value is not None and not 0 <= value <= 1:
            raise InputError(f"{named[key]} is {value:g}; it must be from 0 to 1")
    return msgspec.convert({key: value for key, value in given.items() if value is not None}, Escalation)


def is_unsure(opinions: Sequence[JudgeOpinion], threshold: float, escalation: Escalation) -> bool:
    """Whether what the first judges say of an answer does not decide: they disagree, are near the threshold, or say nothing.

    >>> said = [JudgeOpinion("a", 0.9, True), JudgeOpinion("b", 0.8, True)]
    >>> is_unsure(said, 0.6, Escalation()), is_unsure(said, 0.8, Escalation())
    (False, True)
    """
    votes = {each.passed for each in opinions}
    score = consensus(each.score for each in opinions).score
    if score is None or None in votes or len(votes) != 1:
        return True
    return abs(score - threshold) < escalation.unsure_within - SCORE_THRESHOLD_TOLERANCE


def is_drawn(ask: str, rubric_digest: str, escalation: Escalation) -> bool:
    """Whether all judges are asked about an answer however sure the first are; the same on every machine.

    >>> sum(is_drawn(str(ask), "", Escalation(check_share=0.25)) for ask in range(1000))
    247
    """
    return int(digest("check", ask, rubric_digest)[:8], 16) < escalation.check_share * 2**32


def together(opinions: Iterable[JudgeOpinion]) -> Consensus:
    """What judges say together; one that was asked several times has one vote."""
    by_judge: dict[str, list[JudgeOpinion]] = {}
    for each in opinions:
        by_judge.setdefault(each.judge, []).append(each)
    voices = [consensus((each.score for each in of), (each.passed for each in of)) for of in by_judge.values()]
    return consensus((voice.score for voice in voices), (voice.passed for voice in voices))


def escalation_effects(answers: Iterable[EscalatedAnswer]) -> tuple[EscalationEffect, ...]:
    """What asking the first judges alone changes, in each tier."""
    by_tier: dict[str, list[EscalatedAnswer]] = {}
    for each in answers:
        by_tier.setdefault(each.tier, []).append(each)
    return tuple(_effect(tier, of_tier) for tier, of_tier in by_tier.items())


def escalated_panel(
    panel: Panel, answers: Sequence[EscalatedAnswer], costs: Mapping[str, Sequence[float | None]]
) -> EscalatedPanel:
    """What a panel with escalation says; `costs` has what each of the other judges took for its judgments."""
    alone = sum(each.whole is None for each in answers) * panel.repeats
    means = [_known_mean(costs.get(judge, ())) for judge in panel.other_judges]
    known = [mean for mean in means if mean is not None]
    return EscalatedPanel(
        first=panel.first_judges,
        escalation=panel.escalation or Escalation(),
        unasked=alone * len(panel.other_judges),
        saved_usd=alone * math.fsum(known) if len(known) == len(means) else None,
        tiers=escalation_effects(answers),
    )


def _known_mean(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return _mean(known) if len(known) == len(costs) else None


def _effect(tier: str, answers: Sequence[EscalatedAnswer]) -> EscalationEffect:
    checked = [each for each in answers if each.is_checked]
    deciding = [each for each in answers if each.is_decided_by_judges and _known(each).passed is not None]
    scored = [each for each in answers if _known(each).score is not None]
    return EscalationEffect(
        tier=tier,
        answers=len(answers),
        alone=sum(each.whole is None for each in answers),
        checked=len(checked),
        overruled=sum(_is_overruled(each) for each in checked),
        pass_rate=_mean([float(bool(_known(each).passed)) for each in deciding]),
        pass_rate_if_all_asked=_pass_rate_if_all(deciding) if deciding else None,
        impl_rate=_mean([_known(each).score or 0.0 for each in scored]),
        impl_rate_if_all_asked=_impl_rate_if_all(scored) if scored else None,
    )


def _known(answer: EscalatedAnswer) -> Consensus:
    return answer.whole or answer.first


def _is_overruled(answer: EscalatedAnswer) -> bool:
    return answer.whole is not None and answer.whole.passed != answer.first.passed


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _pass_rate_if_all(answers: Sequence[EscalatedAnswer]) -> Estimate:
    """The pass rate if all judges had been asked about all these answers.

    Answers that the first judges pass and those that they fail are two strata, in each of which the checked ones are a simple
    random sample. How often the rest would be overruled is Wilson's interval, widened because the rest is a sample too; both
    strata are joined as in Zou and Donner 2008, "Construction of confidence limits about effect measures", Statistics in
    Medicine 27, 1693-1702.
    """
    rate = math.fsum(bool(_known(each).passed) for each in answers) / len(answers)
    squared_normal = NormalDist().inv_cdf(upper_tail(0.95)) ** 2
    shift, below, above, checked = 0.0, 0.0, 0.0, 0
    for passed in (True, False):
        stratum = [each for each in answers if each.first.passed is passed]
        alone = sum(each.whole is None for each in stratum)
        sample = [each for each in stratum if each.is_checked]
        checked += len(sample)
        if not alone:
            continue
        if not sample:
            return Estimate(value=None, cases=0, attempts=checked)
        overruled = sum(map(_is_overruled, sample)) / len(sample)
        low, high = score_interval(overruled, squared_normal * (1 / len(sample) + 1 / alone))
        weight = alone / len(answers)
        up, down = (overruled - low, high - overruled) if passed else (high - overruled, overruled - low)
        shift += -weight * overruled if passed else weight * overruled
        below, above = math.hypot(below, weight * down), math.hypot(above, weight * up)
    return _estimate(rate + shift, below, above, checked)


def _impl_rate_if_all(answers: Sequence[EscalatedAnswer]) -> Estimate:
    """The mean score if all judges had been asked about all these answers, with Student's interval of the difference."""
    rate = math.fsum(_known(each).score or 0.0 for each in answers) / len(answers)
    alone = sum(each.whole is None for each in answers)
    differences = [
        each.whole.score - each.first.score
        for each in answers
        if each.is_checked and each.whole and each.whole.score is not None and each.first.score is not None
    ]
    if not alone:
        return _estimate(rate, 0.0, 0.0, len(differences))
    if len(differences) < MIN_CHECKED_SCORES:
        return Estimate(value=None, attempts=len(differences))
    mean = math.fsum(differences) / len(differences)
    squares = [(each - mean) ** 2 for each in differences] + 2 * [PSEUDO_SCORE_DIFFERENCE**2]
    deviation = math.sqrt(math.fsum(squares) / (len(squares) - 1))
    spread = deviation * math.sqrt(1 / len(differences) + 1 / alone)
    weight = alone / len(answers)
    half = weight * spread * student_quantile(len(differences) - 1, upper_tail(0.95))
    return _estimate(rate + weight * mean, half, half, len(differences))


def _estimate(value: float, below: float, above: float, checked: int) -> Estimate:
    return Estimate(
        value=min(max(value, 0.0), 1.0),
        low=max(value - below, 0.0),
        high=min(value + above, 1.0),
        attempts=checked,
    )
