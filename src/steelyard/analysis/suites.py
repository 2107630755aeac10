"""How a suite of responses scores.

The plain rule is that of FailProof LLM, "Scoring Criteria"; penalties, weights and latency are its section 6, and stand
beside the plain rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from steelyard.errors import InputError, did_you_mean
from steelyard.records import SuiteRule
from steelyard.text import short_quote

RESPONSE_CLASSES = (
    "pass",
    "timeout",
    "crash",
    "error",
    "policy_violation",
    "truncated",
    "refusal",
    "wrong_format",
    "fail",
)
"""What a response can be: a pass, and then the failures, in the order in which they are decided."""
LATENCY_TARGET_SECONDS = 2.0
"""Seconds within which a response loses nothing."""
LATENCY_LIMIT_SECONDS = 30.0
"""Seconds after which a response is worth nothing."""


def classify_response(correct: bool, label: str) -> str:
    """The class of an attempt from whether it is correct and what its verifier calls the failure.

    >>> classify_response(True, ""), classify_response(False, "refusal"), classify_response(False, "")
    ('pass', 'refusal', 'fail')
    """
    if correct:
        return "pass"
    return label if label not in ("", "pass") else "fail"


def ordered_class_counts(classes: Mapping[str, int]) -> dict[str, int]:
    """The counts of the classes that occur, a pass first, then failures as they are decided, then other labels.

    >>> ordered_class_counts({"no code": 1, "fail": 2, "pass": 3, "crash": 0})
    {'pass': 3, 'fail': 2, 'no code': 1}
    """
    places = {name: place for place, name in enumerate(RESPONSE_CLASSES)}
    known = sorted(classes, key=lambda name: (places.get(name, len(places)), name))
    return {name: classes[name] for name in known if classes[name]}


def check_suite_rule(rule: SuiteRule, *, suites: Collection[str] | None = None) -> None:
    """Raise an InputError where a rule cannot be followed; `suites` are those that may have a weight, if that is known."""
    for category, cost in rule.penalties.items():
        if category not in RESPONSE_CLASSES[1:]:
            raise InputError(
                f"penalty: unknown class {short_quote(category)} ({did_you_mean(category[:80], RESPONSE_CLASSES[1:])})"
            )
        if not 0 <= cost <= 1:
            raise InputError(
                f"penalty: {category} must cost from 0, nothing, to 1, as much as any failure; not {cost:g}"
            )
    for suite, weight in rule.weights.items():
        if not 0 <= weight < math.inf:
            raise InputError(f"suite weight: {short_quote(suite)} must weigh 0 or more, not {weight:g}")
        if suites is not None and suite not in suites:
            way_out = did_you_mean(suite[:80], suites) if suites else "no case belongs to one"
            raise InputError(f"suite weight: no suite {short_quote(suite)} ({way_out})")
    target, limit = rule.latency_target, rule.latency_limit
    if not 0 <= target < limit < math.inf:
        raise InputError(f"the latency target must lie below the limit, not {target:g} s with a limit of {limit:g} s")


def accuracy(primary: str) -> int:
    """1 for the classification `pass`, 0 for any other (section 2).

    >>> accuracy("pass"), accuracy("refusal")
    (1, 0)
    """
    return int(primary == "pass")


def credit(primary: str, penalties: Mapping[str, float]) -> float:
    """1 less the penalty of the classification (section 6); a failure without a penalty of its own costs all.

    >>> credit("refusal", {"refusal": 0.25}), credit("policy_violation", {"refusal": 0.25})
    (0.75, 0.0)
    """
    for category, penalty in penalties.items():
        if category == "pass" or not 0 <= penalty <= 1:
            raise ValueError(f'a penalty lies in [0, 1] and is for a failure, got {penalty} for "{category}"')
    return 1.0 if primary == "pass" else 1 - penalties.get(primary, 1.0)


def case_mean(classes: Mapping[str, int], worth: Callable[[str], float]) -> float | None:
    """The mean over the attempts at a case, from how many are of each class; None without attempts.

    FailProof LLM, "Scoring Criteria", section 2, which has one attempt per case.

    >>> case_mean({"pass": 1, "refusal": 1}, accuracy)
    0.5
    """
    attempts = sum(classes.values())
    return math.fsum(worth(primary) * count for primary, count in classes.items()) / attempts if attempts else None


def overall(scores: Mapping[str, float | None], *, weights: Mapping[str, float] | None = None) -> float | None:
    """The mean over suites, each counting once however large it is (section 4), or by weight (section 6).

    A suite that is not in `weights` weighs 1. A suite without a score is left out; None when none is left.

    >>> f"{overall({'injection': 0.9, 'contradictions': 0.8, 'empty': None}):.2f}"
    '0.85'
    >>> f"{overall({'injection': 0.9, 'contradictions': 0.8}, weights={'injection': 3}):.3f}"
    '0.875'
    """
    weights = weights or {}
    for suite, weight in weights.items():
        if not 0 <= weight < math.inf:
            raise ValueError(f'a weight is 0 or more, got {weight} for "{suite}"')
    scored = [(_share(score), weights.get(suite, 1.0)) for suite, score in scores.items() if score is not None]
    total = math.fsum(weight for _, weight in scored)
    return math.fsum(score * weight for score, weight in scored) / total if total else None


def latency_score(
    seconds: float, *, target: float = LATENCY_TARGET_SECONDS, limit: float = LATENCY_LIMIT_SECONDS
) -> float:
    """1 for a response within the target, falling in a straight line to 0 at the limit (section 6).

    >>> latency_score(1.5), latency_score(16), latency_score(45)
    (1.0, 0.5, 0.0)
    """
    if not 0 <= target < limit < math.inf:
        raise ValueError(f"the limit must lie beyond the target, got a target of {target} s and a limit of {limit} s")
    if not seconds >= 0:
        raise ValueError(f"a response takes 0 seconds or more, got {seconds}")
    return min(1.0, max(0.0, (limit - seconds) / (limit - target)))


def mean_latency_score(seconds: Sequence[float], *, target: float, limit: float) -> float | None:
    """The mean latency score over attempts, never mixed into accuracy (section 6); None without attempts.

    >>> mean_latency_score([1.0, 16.0], target=2.0, limit=30.0)
    0.75
    """
    scores = [latency_score(each, target=target, limit=limit) for each in seconds]
    return math.fsum(scores) / len(scores) if scores else None


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"a score lies in [0, 1], got {value}")
    return value
