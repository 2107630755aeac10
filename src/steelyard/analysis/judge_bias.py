"""Whether a judge's errors depend on something that should not matter."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, NamedTuple

from steelyard.analysis.estimates import Estimate
from steelyard.records import Record
from steelyard.stats.multiplicity import holm
from steelyard.stats.special import student_cdf, student_quantile

MIN_BIAS_LABELS = 20
"""The minimum number of labelled answers for a test of a judge."""
MIN_GROUP_LABELS = 5
"""Labelled answers on either side of a comparison of two groups."""
BiasSource = Literal["length", "own family", "language"]
MODEL_FAMILIES = {
    "openai": ("gpt", "chatgpt", "o1", "o3", "o4", "codex"),
    "anthropic": ("claude",),
    "google": ("gemini", "gemma", "palm"),
    "meta": ("llama",),
    "mistral": ("mistral", "mixtral", "codestral", "devstral", "magistral", "ministral"),
    "alibaba": ("qwen", "qwq"),
    "deepseek": ("deepseek",),
    "xai": ("grok",),
    "microsoft": ("phi",),
    "cohere": ("command",),
}
"""Whose a model is, by how its name begins."""


class JudgeVote(NamedTuple):
    """What a judge says of an answer that people labelled."""

    judge: str
    case: Hashable
    model: str
    passed: bool
    label: float
    characters: int
    language: str = ""
    weight: float = 1.0
    """How many answers it stands for: labels are not given to all opinions equally often."""


class JudgeBias(Record, frozen=True, kw_only=True):
    """How a judge's leniency, its passes less those of people, moves with something."""

    judge: str
    by: BiasSource
    of: str = ""
    """The language."""
    effect: Estimate
    """Per doubling of the length, or within the group less outside of it; as a share of passes."""
    p: float
    """How likely so large an effect is without a bias, adjusted by Holm for all tests of the run."""


def model_family(model: str) -> str:
    """Who made a model, as far as its name says.

    >>> model_family("openrouter/anthropic/claude-sonnet-4-5"), model_family("ollama/qwen3"), model_family("x/own-7b")
    ('anthropic', 'alibaba', 'own')
    """
    name = model.rpartition("/")[2].casefold()
    for family, beginnings in MODEL_FAMILIES.items():
        if name.startswith(beginnings):
            return family
    found = re.match(r"[a-z]+", name)
    return found.group() if found else name


def judge_biases(votes: Sequence[JudgeVote]) -> tuple[JudgeBias, ...]:
    """Every bias that can be tested, with the weighted regression of errors on it and cases as clusters.

    Cameron and Miller 2015, "A practitioner's guide to cluster-robust inference", Journal of Human Resources 50. Errors are
    votes less labels, compared among answers with the same label, so that longer answers that are better do not count as a bias.
    """
    found = list(_tested(votes))
    adjusted = holm([each.p for each in found])
    return tuple(
        JudgeBias(judge=each.judge, by=each.by, of=each.of, effect=each.effect, p=p)
        for each, p in zip(found, adjusted, strict=True)
    )


def _tested(votes: Sequence[JudgeVote]) -> Iterator[JudgeBias]:
    for judge in sorted({vote.judge for vote in votes}):
        own = [vote for vote in votes if vote.judge == judge]
        if len(own) < MIN_BIAS_LABELS:
            continue
        family = model_family(judge)
        columns: list[tuple[BiasSource, str, list[float]]] = [
            ("length", "", [math.log2(vote.characters + 1) for vote in own]),
            ("own family", "", [float(model_family(vote.model) == family) for vote in own]),
        ]
        columns += [
            ("language", language, [float(vote.language == language) for vote in own])
            for language in sorted({vote.language for vote in own if vote.language})
        ]
        for by, of, values in columns:
            inside = sum(map(bool, values))
            if by != "length" and not MIN_GROUP_LABELS <= inside <= len(own) - MIN_GROUP_LABELS:
                continue
            slope = _slope(own, values)
            if slope is not None:
                yield JudgeBias(judge=judge, by=by, of=of, effect=slope[0], p=slope[1])


def _slope(votes: Sequence[JudgeVote], values: Sequence[float]) -> tuple[Estimate, float] | None:
    """The slope of the errors with its interval and p-value; None if the values or the errors do not vary."""
    centred = _within_labels(votes, values)
    errors = _within_labels(votes, [vote.passed - vote.label for vote in votes])
    rows = list(zip(votes, centred, errors, strict=True))
    spread = math.fsum(vote.weight * value**2 for vote, value, _ in rows)
    units = len({vote.case for vote in votes})
    if spread <= 1e-12 or units < 4:
        return None
    slope = math.fsum(vote.weight * value * error for vote, value, error in rows) / spread
    sums: dict[Hashable, float] = {}
    for vote, value, error in rows:
        sums[vote.case] = sums.get(vote.case, 0.0) + vote.weight * value * (error - slope * value)
    freedom = units - 3
    deviation = math.sqrt(math.fsum(each**2 for each in sums.values()) * units / freedom) / spread
    if deviation <= 1e-12:
        return None
    half = student_quantile(freedom, 0.975) * deviation
    p = 2 * student_cdf(freedom, -abs(slope) / deviation)
    return Estimate(value=slope, low=slope - half, high=slope + half, cases=units, attempts=len(votes)), p


def _within_labels(votes: Sequence[JudgeVote], values: Sequence[float]) -> list[float]:
    """Values less their mean among answers with the same label: a judge that errs at random fails right and passes wrong ones."""
    sums: dict[bool, tuple[float, float]] = {}
    for vote, value in zip(votes, values, strict=True):
        weight, total = sums.get(vote.label > 0.5, (0.0, 0.0))
        sums[vote.label > 0.5] = weight + vote.weight, total + vote.weight * value
    means = {key: total / weight for key, (weight, total) in sums.items()}
    return [value - means[vote.label > 0.5] for vote, value in zip(votes, values, strict=True)]


class PositionBias(Record, frozen=True, kw_only=True):
    """Whether a judge that was asked about pairs in both orders favours a place."""

    pairs: int
    first: int
    """Pairs in which the answer in first place won both times."""
    second: int
    p: float
    """How likely places are favoured as unequally by a judge to whom places are alike (exact, two-sided)."""

    @property
    def share(self) -> float | None:
        """The share of pairs that the place decided; None without pairs."""
        return (self.first + self.second) / self.pairs if self.pairs else None


def position_bias(favoured: Sequence[Literal["", "first", "second"]]) -> PositionBias:
    """The sign test (Conover 1999, "Practical Nonparametric Statistics", 3.4) of `PairwiseJudgment.favoured` over pairs.

    >>> position_bias(["first"] * 9 + ["second"] + [""] * 30).p
    0.021484375
    """
    first, second = (sum(each == place for each in favoured) for place in ("first", "second"))
    decided, fewer = first + second, min(first, second)
    # whole numbers, because 2**decided may be beyond any float
    tail = sum(math.comb(decided, count) for count in range(fewer + 1))
    p = min(1.0, 2 * tail / 2**decided)
    return PositionBias(pairs=len(favoured), first=first, second=second, p=p)


class JudgePreferences(Record, frozen=True, kw_only=True):
    """What one judge says of all pairs."""

    judge: str
    a: str
    b: str
    pairs: int
    """Pairs that were judged in both orders."""
    a_wins: int
    b_wins: int
    ties: int
    swayed: int
    """Ties that only the order of the answers made."""
    unusable: int
    """Pairs of which an answer of the judge is missing or cannot be used."""
    preferred: Estimate
    """How often a is preferred, a tie counted as half, as the mean over cases; 0.5 means no difference."""
    position: PositionBias
