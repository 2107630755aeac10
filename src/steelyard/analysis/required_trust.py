"""Which verdicts count where some trust is required: never by outcome alone, as a case with half its answers right would read 0%."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from steelyard.records import is_trusted

LEFT_OUT = "left out: "
"""How a reason begins why no attempt at a case counts."""


class TrustedOutcome(NamedTuple):
    """What a verdict says, and how far it can be trusted."""

    is_correct: bool
    trust: str
    """Empty where no code was run."""


def discounting_reasons(verdicts: Sequence[TrustedOutcome], reference: str, required: str) -> list[str]:
    """For each verdict at a case why it does not count, empty if it does; `reference` is the trust of that on the case's reference.

    At a case that cannot be judged with the required trust none counts, whether right or wrong; elsewhere only a pass without it
    does not.

    >>> from_calls, beside = TrustedOutcome(False, "isolated"), TrustedOutcome(True, "in-process")
    >>> [bool(reason) for reason in discounting_reasons([from_calls, beside], "", "isolated")]
    [False, True]
    >>> [bool(reason) for reason in discounting_reasons([beside, beside._replace(is_correct=False)], "", "isolated")]
    [True, True]
    """
    run = [verdict for verdict in verdicts if verdict.trust]
    if run and not _can_be_judged(run, reference, required):
        return [f"{LEFT_OUT}no answer to its case can be judged {required}"] * len(verdicts)
    return [
        f"passed, but its verdict is {verdict.trust}, and only {required} passes count"
        if verdict.is_correct and not is_trusted(verdict.trust, required)
        else ""
        for verdict in verdicts
    ]


def _can_be_judged(verdicts: Sequence[TrustedOutcome], reference: str, required: str) -> bool:
    """Whether answers to a case are judged with a trust: some wrong one was, or the reference, or without one every right one."""
    if any(not verdict.is_correct and is_trusted(verdict.trust, required) for verdict in verdicts):
        return True
    if reference:
        return is_trusted(reference, required)
    passes = [verdict.trust for verdict in verdicts if verdict.is_correct]
    return bool(passes) and all(is_trusted(trust, required) for trust in passes)
