"""What a reader should know of a run beside its numbers: cases left out, how replies ended, and where they are from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from steelyard.records import Finish, RunInfo
from steelyard.text import counted, line, short_quote

MAX_NAMED_FINISHES = 5
KNOWN_FINISHES = frozenset((*Finish, "tool_use", "content_filter"))
"""Finish reasons that we know, also under the names that recordings have."""
MAX_NAMED_SOURCES = 3


def uncontained_warnings(info: RunInfo) -> Iterator[str]:
    """The agents that ran with the rights of their user."""
    for agent, reason in info.uncontained.items():
        yield f"{agent}: agent not contained: {reason}"


def skipped_case_notes(info: RunInfo) -> Iterator[str]:
    """The cases that were left out, by reason."""
    cases: dict[str, list[str]] = {}
    for case, reason in info.skipped.items():
        cases.setdefault(reason, []).append(case)
    for reason, names in cases.items():
        what = "1 case was" if len(names) == 1 else f"{len(names)} cases were"
        yield f"{what} left out ({', '.join(names)}): {reason}"


def more_attempts_note(info: RunInfo, model: str) -> Iterator[str]:
    """How many cases got more attempts than the others, if some did."""
    more = sum(samples > (info.fair_samples(model, case) or 0) for case, samples in info.more.get(model, {}).items())
    if more:
        looked = "1 case that looked" if more == 1 else f"{more} cases that looked"
        yield f"{looked} worse than before got more attempts than the others, which moves means a little"


def finish_notes(finishes: Counter[str]) -> Iterator[str]:
    """What a reader should know about how replies ended."""
    calls = finishes[Finish.TOOL_CALLS]
    if calls:
        yield f"{calls} of {counted(finishes.total(), 'reply', 'replies')} {'ends' if calls == 1 else 'end'} in tool calls: show prints them"
    unknown = sorted((finish, count) for finish, count in finishes.items() if finish not in KNOWN_FINISHES)
    for finish, count in unknown[:MAX_NAMED_FINISHES]:
        yield f"{counted(count, 'reply', 'replies')} ended with the unknown finish reason {short_quote(finish)}: judged as it is"


def cached_reply_notes(replies: int, cached: Iterable[tuple[Sequence[str], int, float]]) -> Iterator[str]:
    """How many of the replies come from which earlier runs, given with counts, and what of the cost was paid there."""
    known = list(cached)
    if not known:
        return
    sources = sorted({source for (source, *_), _, _ in known})
    more = f" and {len(sources) - MAX_NAMED_SOURCES} more" if len(sources) > MAX_NAMED_SOURCES else ""
    paid = math.fsum(usd for _, _, usd in known)
    cost = f", which paid ${paid:.4f} of the cost" if paid else ""
    whose = f"run {line(sources[0], 80)}" if len(sources) == 1 else f"{counted(len(sources), 'run')}"
    listed = (
        "" if len(sources) == 1 else f" ({', '.join(line(each, 80) for each in sources[:MAX_NAMED_SOURCES])}{more})"
    )
    yield (
        f"{sum(count for _, count, _ in known)} of {counted(replies, 'reply', 'replies')} were taken from {whose}{listed}{cost}: "
        "they are not further samples, and a comparison with their run leaves their cases out"
    )
