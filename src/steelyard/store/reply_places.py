"""Single fields of the replies of a run, with their places in the journals, read without decoding the rest."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from steelyard.store.journal import DECODE_ERRORS, StoredRun, fact_offset

REPLY_LINE_START = b'{"kind":"reply",'
"""How every reply begins that we write."""


class ReplyPlace(NamedTuple):
    """A reply in a journal, without its text."""

    key: str
    at: str
    """When it came, in whichever run asked for it."""
    cost_usd: float
    """0 where it is not known."""
    cached_from: tuple[str, ...]
    place: int


class _CostLine(msgspec.Struct):
    usd: float = 0.0


class _AnswerLine(msgspec.Struct):
    cost: _CostLine | None = None
    recorded_at: str = ""


class _ReplyLine(msgspec.Struct):
    key: str
    at: str
    answer: _AnswerLine
    cached_from: tuple[str, ...] = ()


_reply_line = msgspec.json.Decoder(_ReplyLine)


def reply_places(stored: StoredRun, wanted: Container[str]) -> Iterator[ReplyPlace]:
    """The replies with one of these keys, in the order they were written; of two with the same key the later one counts.

    Raises an OSError where a journal cannot be read.
    """
    for number, path in enumerate(stored.journals()):
        begin = fact_offset(number, 0)
        with stored.open(path) as file:
            for line in file:
                if line.startswith(REPLY_LINE_START) and line.endswith(b"\n"):
                    try:
                        found = _reply_line.decode(line)
                    except DECODE_ERRORS:
                        # damaged: its attempt is asked again
                        found = None
                    if found is not None and found.key in wanted:
                        cost = found.answer.cost.usd if found.answer.cost else 0.0
                        at = found.answer.recorded_at or found.at
                        yield ReplyPlace(found.key, at, cost, found.cached_from, begin)
                begin += len(line)


class _AnswerText(msgspec.Struct, frozen=True):
    text: str = ""


class _TextLine(msgspec.Struct):
    answer: _AnswerText = _AnswerText()


_text_line = msgspec.json.Decoder(_TextLine)


def reply_texts(stored: StoredRun, places: Container[int], journals: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The texts of the replies at these places, which count the journals as named; what cannot be read is left out."""
    for number, name in enumerate(journals):
        try:
            lines = stored.open(stored.folder / name)
        except OSError:
            # gone meanwhile, or a link that leads elsewhere
            continue
        place = fact_offset(number, 0)
        with lines:
            while line := lines.readline(stored.largest):
                if place in places:
                    with suppress(*DECODE_ERRORS):
                        yield place, _text_line.decode(line).answer.text
                place += len(line)
