"""Which of two models' answers judges prefer."""

from __future__ import annotations

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.judge_bias import PositionBias
from steelyard.records import Record


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
