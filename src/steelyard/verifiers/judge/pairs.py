"""Two answers held against each other, once in each order, so that standing first wins nothing.

Judges favour a position: Wang et al. 2024, "Large Language Models are not Fair Evaluators", ACL (arXiv 2305.17926).
"""

from __future__ import annotations

from typing import Any, Literal

from steelyard.records import Message, Record
from steelyard.tiers.rubrics import Rubric
from steelyard.verifiers.judge.answer import LONGEST_REASON, Unusable, the_object
from steelyard.verifiers.judge.prompt import (
    LONGEST_ANSWER,
    LONGEST_TASK,
    REASON,
    REPLY,
    SYSTEM,
    WARNING,
    closed,
    described,
    explanation,
    quotation,
    unused,
)
from steelyard.verifiers.response.text import readable
from steelyard.verifiers.response.unicode import quoted

Place = Literal["first", "second", "tie"]
PLACES: tuple[Place, ...] = ("first", "second", "tie")


class Preference(Record, frozen=True, kw_only=True):
    """Which of two answers a judge prefers, by where they stood."""

    winner: Place
    reason: str = ""


class Comparison(Record, frozen=True, kw_only=True):
    """Which of two answers is better, by one judge asked in both orders."""

    winner: Literal["a", "b", "tie"]
    """An answer wins that is preferred in both orders; all else is a tie."""
    swayed: bool
    """Whether the two orders came out differently: a tie that only the order of the answers made."""
    favoured: str = ""
    """`first` or `second` when the same place won both times, whichever answer stood there."""


def messages(prompt: str, first: str, second: str, nonce: str, rubric: Rubric | None = None) -> tuple[Message, Message]:
    """One question to a judge about two answers in this order; ask again with the answers swapped, and a new nonce."""
    mark = unused(nonce, (prompt, first, second))
    parts = [
        "Two answers to one task follow. Say which of them is better.",
        explanation(mark),
        quotation("TASK", prompt, mark, LONGEST_TASK),
        quotation("FIRST ANSWER", first, mark, LONGEST_ANSWER),
        quotation("SECOND ANSWER", second, mark, LONGEST_ANSWER),
        WARNING,
        *([f"What counts:\n\n{described(rubric)}"] if rubric else []),
        "The order of the answers means nothing, and neither does their length.",
        f'{REPLY} Give the reason before the winner:\n\n{{"reason": "{REASON}", "winner": {_choice()}}}',
    ]
    return Message(role="system", content=SYSTEM), Message(role="user", content="\n\n".join(parts))


def schema() -> dict[str, Any]:
    """The JSON Schema of the reply."""
    return closed({"reason": {"type": "string"}, "winner": {"type": "string", "enum": list(PLACES)}})


def preference(text: str) -> Preference | Unusable:
    """What a judge says of two answers, or why that cannot be used.

    >>> preference('{"reason": "It runs.", "winner": "second"}')
    Preference(winner='second', reason='It runs.')
    """
    table = the_object(text, ("winner",))
    if isinstance(table, Unusable):
        return table
    said, reason = table.get("winner"), table.get("reason")
    for known in PLACES:
        if said == known:
            return Preference(winner=known, reason=readable(reason[:LONGEST_REASON]) if isinstance(reason, str) else "")
    what = "is missing" if said is None else f"is {quoted(repr(said), 60)}"
    return Unusable(reason=f'"winner" {what}; expected one of {_choice()}')


def combined(a_first: Preference, b_first: Preference) -> Comparison:
    """What both orders together say: the answer that wins in both, else a tie.

    >>> combined(Preference(winner="first"), Preference(winner="second")).winner
    'a'
    >>> combined(Preference(winner="first"), Preference(winner="first"))
    Comparison(winner='tie', swayed=True, favoured='first')
    """
    if a_first.winner == "first" and b_first.winner == "second":
        return Comparison(winner="a", swayed=False)
    if a_first.winner == "second" and b_first.winner == "first":
        return Comparison(winner="b", swayed=False)
    is_placed = a_first.winner == b_first.winner != "tie"
    return Comparison(
        winner="tie",
        swayed=a_first.winner != "tie" or b_first.winner != "tie",
        favoured=a_first.winner if is_placed else "",
    )


def _choice() -> str:
    return " | ".join(f'"{place}"' for place in PLACES)
