"""What a panel of judges and the people who labelled some of its answers say together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from typing import Literal, NamedTuple

from steelyard.analysis import estimates
from steelyard.analysis.estimates import Estimate
from steelyard.analysis.judge_bias import JudgeBias, JudgeVote, judge_biases
from steelyard.records import Label, Record
from steelyard.stats.agreement import gwet_ac1, raw_agreement
from steelyard.stats.intervals import Interval
from steelyard.stats.judged import CorrectedRate, JudgedAnswer, corrected_difference, corrected_rate, transferred_rate

MIN_OWN_LABELS = 10
"""Labels of a model's own answers from which its rate is corrected by them, and not by the labels of other models."""
PRIOR_RIGHT_RATES = {(True, True): 0.9, (True, False): 0.6, (False, False): 0.4, (False, True): 0.1}
"""How often an opinion is right before there are labels of it: a guess that only decides what is labelled first."""
PRIOR_LABELS = 2
"""How many labels the guess is worth."""

OpinionKey = tuple[str, str, tuple[bool, bool]]
"""A model, its tier, and what the judges say."""
CorrectionMethod = Literal["own labels", "labels of other models", "none"]


class AnswerIdentity(NamedTuple):
    """Which answer of a run it is."""

    case: str
    model: str
    tier: str
    number: int


class LabelledAnswer(NamedTuple):
    """An answer that judges or people decide about."""

    identity: AnswerIdentity
    passed: bool | None
    """What the panel says; None if it says nothing."""
    is_sure: bool = True
    labels: Mapping[str, bool] = {}
    """What each person says."""

    @property
    def label(self) -> float | None:
        """What people say together: the share of them who pass it."""
        return math.fsum(self.labels.values()) / len(self.labels) if self.labels else None

    @property
    def judged(self) -> JudgedAnswer:
        """The same as numbers; without a panel all answers are of one opinion."""
        return JudgedAnswer(self.identity.case, bool(self.passed), self.is_sure and self.passed is not None, self.label)


class JudgedRate(Record, frozen=True, kw_only=True):
    """The pass rate of one model by judges and by people."""

    model: str
    tier: str = ""
    answers: int
    labels: int
    """Answers that somebody labelled."""
    raw: Estimate
    """What the judges say, with their errors in it."""
    corrected: Estimate
    labels_only: Estimate
    """The labelled answers alone; it holds only if chance picked them."""
    method: CorrectionMethod = "none"
    reason: str = ""
    """Why there is no corrected rate, or what it is based on."""


class JudgedDifference(Record, frozen=True, kw_only=True):
    """How much more often the second model is right."""

    first: str
    second: str
    raw: float | None
    corrected: Estimate


class JudgedRates(Record, frozen=True, kw_only=True):
    """What judges and people say of the models of a run."""

    criterion: str = ""
    models: tuple[JudgedRate, ...]
    differences: tuple[JudgedDifference, ...] = ()
    labellers: tuple[str, ...] = ()
    agreement: float | None = None
    """How often two people who labelled the same answer say the same."""
    agreement_ac1: float | None = None
    biases: tuple[JudgeBias, ...] = ()
    """What judges' errors were tested to depend on."""


def current_labels(labels: Iterable[Label], criterion: str = "") -> dict[AnswerIdentity, dict[str, bool]]:
    """What each person says of every answer now: the last mark counts, and one that was taken back does not."""
    found: dict[AnswerIdentity, dict[str, bool]] = {}
    for label in labels:
        if label.criterion == criterion:
            marks = found.setdefault(AnswerIdentity(label.case, label.model, label.tier, label.number), {})
            marks.pop(label.by, None)
            if label.passed is not None:
                marks[label.by] = label.passed
    return {identity: marks for identity, marks in found.items() if marks}


def judged_rates(
    answers: Sequence[LabelledAnswer], *, criterion: str = "", votes: Sequence[JudgeVote] = ()
) -> JudgedRates:
    """Raw, corrected and labels-only rates of every model, the corrected differences between them, and biases of judges."""
    columns: dict[tuple[str, str], list[LabelledAnswer]] = {}
    for answer in answers:
        columns.setdefault((answer.identity.model, answer.identity.tier), []).append(answer)
    found = {column: _corrected(column, columns) for column in columns}
    rates = {column: _judged_rate(column, of, *found[column]) for column, of in columns.items()}
    differences = [
        JudgedDifference(
            first=_name(first),
            second=_name(second),
            raw=_difference(rates[first].raw.value, rates[second].raw.value),
            corrected=_estimate(two.value - one.value, corrected_difference(one, two)),
        )
        for first, second in combinations(columns, 2)
        # a judge that is transferred errs the same way for both, which an interval of independent errors does not know
        if (one := found[first][0])
        and (two := found[second][0])
        and {found[first][1], found[second][1]} == {"own labels"}
    ]
    people = sorted({person for answer in answers for person in answer.labels})
    ratings = [[_vote(answer.labels.get(person)) for answer in answers] for person in people]
    return JudgedRates(
        criterion=criterion,
        models=tuple(rates.values()),
        differences=tuple(differences),
        labellers=tuple(people),
        agreement=raw_agreement(ratings) if len(people) > 1 else None,
        agreement_ac1=gwet_ac1(ratings) if len(people) > 1 else None,
        biases=judge_biases(votes),
    )


def _corrected(
    column: tuple[str, str], columns: Mapping[tuple[str, str], Sequence[LabelledAnswer]]
) -> tuple[CorrectedRate | None, CorrectionMethod]:
    own = [answer.judged for answer in columns[column]]
    if sum(answer.label is not None for answer in own) >= MIN_OWN_LABELS:
        return corrected_rate(own), "own labels"
    others = [answer.judged for other, of in columns.items() if other != column for answer in of]
    if any(answer.passed is None for answer in columns[column]):
        return None, "none"
    found = transferred_rate(own, others) if sum(each.label is not None for each in others) >= MIN_OWN_LABELS else None
    return found, "labels of other models" if found else "none"


def _judged_rate(
    column: tuple[str, str], answers: Sequence[LabelledAnswer], found: CorrectedRate | None, method: CorrectionMethod
) -> JudgedRate:
    labelled = [answer for answer in answers if answer.label is not None]
    votes = [(answer.identity.case, float(answer.passed)) for answer in answers if answer.passed is not None]
    reason = ""
    if method == "labels of other models":
        reason = "holds only if the judges err as often about this model as about the labelled ones"
    elif found is None:
        reason = f"{len(labelled)} of the {MIN_OWN_LABELS} labels that a corrected rate needs"
    return JudgedRate(
        model=column[0],
        tier=column[1],
        answers=len(answers),
        labels=len(labelled),
        raw=_mean(votes),
        corrected=_estimate(found.value, found.interval, answers) if found else Estimate(value=None),
        labels_only=_mean([(each.identity.case, each.label) for each in labelled if each.label is not None]),
        method=method if found else "none",
        reason=reason,
    )


def _mean(values: Sequence[tuple[str, float]]) -> Estimate:
    return estimates.mean([value for _, value in values], len(values), groups=[case for case, _ in values])


def _estimate(value: float, interval: Interval, answers: Sequence[LabelledAnswer] = ()) -> Estimate:
    cases = len({answer.identity.case for answer in answers})
    return Estimate(value=value, low=interval.low, high=interval.high, cases=cases, attempts=len(answers))


def _difference(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else second - first


def _vote(passed: bool | None) -> float | None:
    return None if passed is None else float(passed)


def _name(column: tuple[str, str]) -> str:
    return " ".join(part for part in column if part)


class _Stratum(NamedTuple):
    """The answers of one model of which the judges have one opinion."""

    share: float
    right: float
    """How often such an answer is right, if known."""
    labels: int

    def variance(self, more: int = 0) -> float:
        """What this stratum adds to the variance of the rate after some more labels."""
        # half a label stands for none, so that the first one is worth most
        return self.share**2 * self.right * (1 - self.right) / max(self.labels + more, 0.5)


def label_order(answers: Sequence[LabelledAnswer], person: str) -> Iterator[AnswerIdentity]:
    """Which answers this person should label next, the one that shrinks the intervals most first.

    The next label goes where it takes most from the variance of a model's rate: to common opinions, and to those that are
    right about as often as wrong, such as those on which judges differ. Among the answers of one opinion chance decides, as the
    corrected rate needs it: a hash of the answer and the person, so that two people rarely read the same one.
    """
    waiting: dict[OpinionKey, list[AnswerIdentity]] = {}
    for answer in answers:
        if not answer.labels:
            key = (answer.identity.model, answer.identity.tier, answer.judged.opinion)
            waiting.setdefault(key, []).append(answer.identity)
    for identities in waiting.values():
        identities.sort(key=lambda identity: hashlib.blake2b(repr((person, identity)).encode()).digest(), reverse=True)
    known = _opinion_strata(answers)
    given = dict.fromkeys(known, 0)
    while any(waiting.values()):
        best = max(
            (key for key, left in waiting.items() if left),
            key=lambda key: known[key].variance(given[key]) - known[key].variance(given[key] + 1),
        )
        given[best] += 1
        yield waiting[best].pop()


def labels_for_width(answers: Sequence[LabelledAnswer], width: float) -> dict[tuple[str, str], int | None]:
    """How many more labels of each model would give a corrected rate of this width; None if no number would.

    By the normal approximation, with the labels where they take most from the variance, as `label_order` puts them.
    """
    columns: dict[tuple[str, str], list[LabelledAnswer]] = {}
    for answer in answers:
        columns.setdefault((answer.identity.model, answer.identity.tier), []).append(answer)
    wanted = (width / 2 / NormalDist().inv_cdf(0.975)) ** 2
    found: dict[tuple[str, str], int | None] = {}
    for column, of in columns.items():
        known = _opinion_strata(of)
        left = {key: sum(not each.labels and each.judged.opinion == key[2] for each in of) for key in known}
        mean = math.fsum(stratum.share * stratum.right for stratum in known.values())
        by_cases = math.fsum(s.share * (s.right - mean) ** 2 for s in known.values()) / len(
            {each.identity.case for each in of}
        )
        given = dict.fromkeys(known, 0)
        found[column] = None
        for more in range(sum(left.values()) + 1):
            if by_cases + math.fsum(known[key].variance(given[key]) for key in known) <= wanted:
                found[column] = more
                break
            open_ = [key for key in known if given[key] < left[key]]
            if open_:
                best = max(open_, key=lambda key: known[key].variance(given[key]) - known[key].variance(given[key] + 1))
                given[best] += 1
    return found


def _opinion_strata(answers: Sequence[LabelledAnswer]) -> dict[OpinionKey, _Stratum]:
    sizes: dict[tuple[str, str], int] = {}
    labels: dict[OpinionKey, list[float]] = {}
    counts: dict[OpinionKey, int] = {}
    for answer in answers:
        column = answer.identity.model, answer.identity.tier
        key = (*column, answer.judged.opinion)
        sizes[column] = sizes.get(column, 0) + 1
        counts[key] = counts.get(key, 0) + 1
        known = labels.setdefault(key, [])
        if answer.label is not None:
            known.append(answer.label)
    return {
        key: _Stratum(
            count / sizes[key[:2]],
            (math.fsum(labels[key]) + PRIOR_LABELS * PRIOR_RIGHT_RATES[key[2]]) / (len(labels[key]) + PRIOR_LABELS),
            len(labels[key]),
        )
        for key, count in counts.items()
    }
