"""Two answers held against each other, once in each order, so that standing first wins nothing.

Judges favour a position: Wang et al. 2024, "Large Language Models are not Fair Evaluators", ACL (arXiv 2305.17926).
"""

from __future__ import annotations

from typing import Any, Literal

from steelyard.records import Message, MessageRole, Record
from steelyard.tiers.rubrics import Rubric
from steelyard.verifiers.judge.answer import MAX_JUDGE_REASON_CHARACTERS, UnusableJudgeReply, single_json_object
from steelyard.verifiers.judge.prompt import (
    INJECTION_WARNING,
    JUDGE_SYSTEM_PROMPT,
    MAX_JUDGED_ANSWER_CHARACTERS,
    MAX_JUDGED_TASK_CHARACTERS,
    REASON_PLACEHOLDER,
    REPLY_INSTRUCTION,
    closed_object_schema,
    explanation,
    quotation,
    rubric_text,
    unused_nonce,
)
from steelyard.verifiers.response.text import surrogates_replaced
from steelyard.verifiers.response.unicode import printable_excerpt

PairPosition = Literal["first", "second", "tie"]
PAIR_POSITIONS: tuple[PairPosition, ...] = ("first", "second", "tie")


class Preference(Record, frozen=True, kw_only=True):
    """Which of two answers a judge prefers, by where they stood."""

    winner: PairPosition
    reason: str = ""


class PairwiseJudgment(Record, frozen=True, kw_only=True):
    """Which of two answers is better, by one judge asked in both orders."""

    winner: Literal["a", "b", "tie"]
    """An answer wins that is preferred in both orders; all else is a tie."""
    swayed: bool
    """Whether the two orders came out differently: a tie that only the order of the answers made."""
    favoured: str = ""
    """`first` or `second` when the same place won both times, whichever answer stood there."""


def messages(prompt: str, first: str, second: str, nonce: str, rubric: Rubric | None = None) -> tuple[Message, Message]:
    """One question to a judge about two answers in this order; ask again with the answers swapped, and a new nonce."""
    mark = unused_nonce(nonce, (prompt, first, second))
    parts = [
        "Two answers to one task follow. Say which of them is better.",
        explanation(mark),
        quotation("TASK", prompt, mark, MAX_JUDGED_TASK_CHARACTERS),
        quotation("FIRST ANSWER", first, mark, MAX_JUDGED_ANSWER_CHARACTERS),
        quotation("SECOND ANSWER", second, mark, MAX_JUDGED_ANSWER_CHARACTERS),
        INJECTION_WARNING,
        *([f"What counts:\n\n{rubric_text(rubric)}"] if rubric else []),
        "The order of the answers means nothing, and neither does their length.",
        f'{REPLY_INSTRUCTION} Give the reason before the winner:\n\n{{"reason": "{REASON_PLACEHOLDER}", "winner": {_choice()}}}',
    ]
    return Message(role=MessageRole.SYSTEM, content=JUDGE_SYSTEM_PROMPT), Message(
        role=MessageRole.USER, content="\n\n".join(parts)
    )


def schema() -> dict[str, Any]:
    """The JSON Schema of the reply."""
    return closed_object_schema(
        {"reason": {"type": "string"}, "winner": {"type": "string", "enum": list(PAIR_POSITIONS)}}
    )


def preference(text: str) -> Preference | UnusableJudgeReply:
    """What a judge says of two answers, or why that cannot be used.

    >>> preference('{"reason": "It runs.", "winner": "second"}')
    Preference(winner='second', reason='It runs.')
    """
    table = single_json_object(text, ("winner",))
    if isinstance(table, UnusableJudgeReply):
        return table
    winner, reason = table.get("winner"), table.get("reason")
    for known in PAIR_POSITIONS:
        if winner == known:
            return Preference(
                winner=known,
                reason=surrogates_replaced(reason[:MAX_JUDGE_REASON_CHARACTERS]) if isinstance(reason, str) else "",
            )
    what = "is missing" if winner is None else f"is {printable_excerpt(repr(winner), 60)}"
    return UnusableJudgeReply(reason=f'"winner" {what}; expected one of {_choice()}')


def combined_preference(a_first: Preference, b_first: Preference) -> PairwiseJudgment:
    """What both orders together say: the answer that wins in both, else a tie.

    >>> combined_preference(Preference(winner="first"), Preference(winner="second")).winner
    'a'
    >>> combined_preference(Preference(winner="first"), Preference(winner="first"))
    PairwiseJudgment(winner='tie', swayed=True, favoured='first')
    """
    if a_first.winner == "first" and b_first.winner == "second":
        return PairwiseJudgment(winner="a", swayed=False)
    if a_first.winner == "second" and b_first.winner == "first":
        return PairwiseJudgment(winner="b", swayed=False)
    is_placed = a_first.winner == b_first.winner != "tie"
    return PairwiseJudgment(
        winner="tie",
        swayed=a_first.winner != "tie" or b_first.winner != "tie",
        favoured=a_first.winner if is_placed else "",
    )


def _choice() -> str:
    return " | ".join(f'"{place}"' for place in PAIR_POSITIONS)
