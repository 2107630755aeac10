"""Rates that rest on a judge, corrected by the answers that people labelled too."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from steelyard.stats.intervals import Interval, score_interval, standard_error, upper_tail
from steelyard.stats.special import student_quantile
from steelyard.stats.stratified import Stratum, stratified_interval


class JudgedAnswer(NamedTuple):
    """One answer, what the judge says of it, and what people say."""

    case: Hashable
    """Answers to the same case may be alike: the case is the sampling unit."""
    passed: bool
    """What the judge says."""
    is_sure: bool = True
    """Whether the judge is certain, such as a unanimous panel."""
    label: float | None = None
    """1 is right and 0 is wrong, by the people who labelled it; None without a label."""

    @property
    def opinion(self) -> tuple[bool, bool]:
        """What the judge says, and how surely: answers of one opinion are one stratum."""
        return self.passed, self.is_sure


class CorrectedRate(NamedTuple):
    """A rate of right answers, and how far it can be off."""

    value: float
    interval: Interval
    influence: Mapping[Hashable, float]
    """The influence of each case on the rate in this sample."""


def corrected_rate(answers: Sequence[JudgedAnswer], *, level: float = 0.95) -> CorrectedRate | None:
    """The rate of right answers by the judge's opinion of all and people's labels of some; None below 2 cases or labels.

    For every opinion the labels say how often such an answer is right, and all answers say how common the opinion is. That is
    prediction-powered inference with the tuned weight (Angelopoulos, Duchi and Zrnic 2023, "PPI++: efficient
    prediction-powered inference", arXiv 2311.01453): where a judge has a few opinions, its estimate is the post-stratified
    one. It stays right when opinions are labelled unequally often, if chance picks the answers among those of one opinion.

    The interval adds what the labels leave open to what the cases leave open, each side by itself, as Zou and Donner 2008,
    "Construction of confidence limits about effect measures: a general approach", Statistics in Medicine 27, 1693-1702.
    The labels of an opinion have Wilson's interval with Student's t for z, so that it has a width even where all say the same,
    and `stratified_interval` joins those of all opinions; an opinion without a label may be right always or never.

    >>> answers = [JudgedAnswer(case, case % 4 > 0, label=None if case % 3 else case % 4 > 0) for case in range(120)]
    >>> found = corrected_rate(answers)
    >>> f"{found.value:.3f} {found.interval.low:.3f} {found.interval.high:.3f}"
    '0.750 0.629 0.865'
    """
    strata: dict[Hashable, list[JudgedAnswer]] = {}
    for answer in answers:
        strata.setdefault(answer.opinion, []).append(answer)
    labelled = {name: [each for each in of if each.label is not None] for name, of in strata.items()}
    if sum(map(len, labelled.values())) < 2:
        return None
    means = {name: _mean_label(of) for name, of in labelled.items()}
    expected = [means[answer.opinion] for answer in answers]
    error = standard_error(expected, groups=[answer.case for answer in answers])
    if error is None:
        return None
    value = math.fsum(expected) / len(answers)
    by_cases = student_quantile(len({answer.case for answer in answers}) - 1, upper_tail(level)) * error
    by_labels = stratified_interval(
        [
            Stratum(means[name], partial(_label_interval, of), len(strata[name]) / len(answers))
            for name, of in labelled.items()
        ],
        level=level,
    )
    if by_labels is None:
        return None
    interval = Interval(
        max(0.0, value - math.hypot(by_cases, value - by_labels.low)),
        min(1.0, value + math.hypot(by_cases, by_labels.high - value)),
    )
    influence: dict[Hashable, float] = {}
    for answer in answers:
        moved = means[answer.opinion] - value
        if answer.label is not None:
            weight = len(strata[answer.opinion]) / len(labelled[answer.opinion])
            moved += weight * (answer.label - means[answer.opinion])
        influence[answer.case] = influence.get(answer.case, 0.0) + moved / len(answers)
    return CorrectedRate(value, interval, influence)


def corrected_difference(first: CorrectedRate, second: CorrectedRate) -> Interval:
    """The interval of `second - first`, two corrected rates at the same level, paired by their cases.

    Zou 2007, "Toward using confidence intervals to compare correlations", Psychological Methods 12, 399-413, with the
    correlation of how much each case moves the two.

    >>> first = [JudgedAnswer(case, case % 4 > 0, label=None if case % 3 else case % 4 > 0) for case in range(120)]
    >>> second = [JudgedAnswer(case, case % 4 > 1, label=None if case % 3 else case % 4 > 1) for case in range(120)]
    >>> low, high = corrected_difference(corrected_rate(first), corrected_rate(second))
    >>> f"{low:.3f} {high:.3f}"
    '-0.362 -0.136'
    """
    shared = first.influence.keys() & second.influence.keys()
    product = math.fsum(first.influence[case] * second.influence[case] for case in shared)
    scale = math.hypot(*first.influence.values()) * math.hypot(*second.influence.values())
    correlation = product / scale if scale else 0.0
    difference = second.value - first.value

    def distance(one: float, other: float) -> float:
        return math.sqrt(max((one - other) ** 2 + 2 * (1 - correlation) * one * other, 0.0))

    return Interval(
        max(-1.0, difference - distance(second.value - second.interval.low, first.interval.high - first.value)),
        min(1.0, difference + distance(second.interval.high - second.value, first.value - first.interval.low)),
    )


def transferred_rate(
    answers: Sequence[JudgedAnswer], labelled_elsewhere: Sequence[JudgedAnswer], *, level: float = 0.95
) -> CorrectedRate | None:
    """The rate of right answers without labels, from the judge's error rates on the answers of other models.

    Rogan and Gladen 1978, "Estimating prevalence from the results of a screening test", American Journal of Epidemiology 107,
    71-76, with the interval of Fieller 1954, "Some problems in interval estimation", JRSS B 16, 175-185, so that a judge who
    cannot tell right from wrong gives the whole of [0, 1]. It holds only if the judge errs as often here as there, which
    nothing in the data shows: where there are labels of these answers, `corrected_rate` does not need that. None without labels
    of both right and wrong answers, or if the judge's pass is not a sign of a right answer.

    >>> others = [JudgedAnswer(case, case % 10 < 7, label=case % 10 < 6) for case in range(200)]
    >>> found = transferred_rate([JudgedAnswer(case, case % 2 > 0) for case in range(100)], others)
    >>> f"{found.value:.3f} {found.interval.low:.3f} {found.interval.high:.3f}"
    '0.333 0.160 0.484'
    """
    accuracy = _judge_accuracy(labelled_elsewhere)
    votes = [float(answer.passed) for answer in answers]
    cases = [answer.case for answer in answers]
    error = standard_error(votes, groups=cases)
    if accuracy is None or error is None:
        return None
    (right, right_error), (wrong, wrong_error) = accuracy
    youden = right - wrong
    if youden <= 0:
        return None
    passed = math.fsum(votes) / len(votes)
    # answers that all came out alike still leave their rate open
    error = max(error, math.sqrt((passed + 1 / len(votes)) * (1 - passed + 1 / len(votes)) / len(votes)))
    value = min(1.0, max(0.0, (passed - wrong) / youden))
    interval = _fieller(
        passed - wrong,
        youden,
        error**2 + wrong_error**2,
        right_error**2 + wrong_error**2,
        wrong_error**2,
        student_quantile(max(len(set(cases)) - 1, 1), upper_tail(level)),
    )
    influence: dict[Hashable, float] = {}
    for answer in answers:
        influence[answer.case] = influence.get(answer.case, 0.0) + (answer.passed - passed) / youden / len(answers)
    return CorrectedRate(value, interval, influence)


def _judge_accuracy(answers: Sequence[JudgedAnswer]) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """How often the judge passes right and wrong answers, each with its standard error; None without labels of both.

    Opinions may have been labelled unequally often, so each label counts for as many answers as have its opinion.
    """
    every = Counter(answer.opinion for answer in answers)
    labelled = Counter(answer.opinion for answer in answers if answer.label is not None)
    found = []
    for truth in (1.0, 0.0):
        weights = [
            (every[each.opinion] / labelled[each.opinion], each.passed) for each in answers if each.label == truth
        ]
        if not weights:
            return None
        total = math.fsum(weight for weight, _ in weights)
        passed = math.fsum(weight for weight, is_passed in weights if is_passed) / total
        size = total**2 / math.fsum(weight**2 for weight, _ in weights)
        # one more of each kind (Agresti and Coull 1998), so that a judge without an error so far is not taken for perfect
        shrunk = (passed * size + 1) / (size + 2)
        found.append((passed, math.sqrt(shrunk * (1 - shrunk) / size)))
    return found[0], found[1]


def _fieller(
    numerator: float,
    denominator: float,
    numerator_variance: float,
    denominator_variance: float,
    covariance: float,
    t: float,
) -> Interval:
    """The rates x in [0, 1] at which `numerator - x * denominator` is within t standard errors of 0."""
    square = denominator**2 - t**2 * denominator_variance
    middle = numerator * denominator - t**2 * covariance
    constant = numerator**2 - t**2 * numerator_variance
    root = middle**2 - square * constant
    if square <= 0 or root < 0:
        return Interval(0.0, 1.0)
    low, high = (middle - math.sqrt(root)) / square, (middle + math.sqrt(root)) / square
    return Interval(min(1.0, max(0.0, low)), max(0.0, min(1.0, high)))


def _mean_label(labelled: Sequence[JudgedAnswer]) -> float:
    labels = [each.label for each in labelled if each.label is not None]
    # nothing is known of an opinion that nobody labelled, and its interval says so
    return math.fsum(labels) / len(labels) if labels else 0.5


def _label_interval(labelled: Sequence[JudgedAnswer], level: float) -> Interval:
    labels = [each.label for each in labelled if each.label is not None]
    if not labels:
        return Interval(0.0, 1.0)
    cases = [each.case for each in labelled]
    units, size, mean = len(set(cases)), len(labels), _mean_label(labelled)
    error = standard_error(labels, groups=cases)
    # labels of the same case say less than labels of different cases
    told = mean * (1 - mean) / error**2 * units / (units - 1) if error else float(units)
    return score_interval(mean, student_quantile(max(units - 1, 1), upper_tail(level)) ** 2 / min(told, size))
