"""What a reader should know about how replies ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from steelyard.records import Finish
from steelyard.text import counted, short_quote

MAX_NAMED_FINISHES = 5
KNOWN_FINISHES = frozenset((*Finish, "tool_use", "content_filter"))
"""Finish reasons that we know, also under the names that recordings have."""


def finish_notes(finishes: Sequence[str]) -> Iterator[str]:
    """What a reader should know about how replies ended."""
    calls = finishes.count(Finish.TOOL_CALLS)
    if calls:
        yield f"{calls} of {counted(len(finishes), 'reply', 'replies')} {'ends' if calls == 1 else 'end'} in tool calls: show prints them"
    unknown = Counter(finish for finish in finishes if finish not in KNOWN_FINISHES)
    for finish, count in sorted(unknown.items())[:MAX_NAMED_FINISHES]:
        yield f"{counted(count, 'reply', 'replies')} ended with the unknown finish reason {short_quote(finish)}: judged as it is"
