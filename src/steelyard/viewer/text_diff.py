"""Two texts side by side, line by line, with what differs."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_DIFF_LINES = 1_500
"""Lines of a text that is compared with another; finding what differs takes time that grows with their product."""
MAX_DIFF_CHARACTERS = 200_000


class TextDiffSegment(NamedTuple):
    """A part of a line."""

    text: str
    is_changed: bool
    """Whether the line beside it, which is else like this one, has something else here."""


class TextDiffLine(NamedTuple):
    """A line on one side."""

    number: int
    """From 1."""
    pieces: tuple[TextDiffSegment, ...]


class TextDiffRow(NamedTuple):
    """What stands beside each other; None where a side has nothing there."""

    left: TextDiffLine | None
    right: TextDiffLine | None
    is_same: bool


def is_comparable(left: str, right: str) -> bool:
    """Whether both texts are short enough to be compared line by line."""
    return all(len(text) <= MAX_DIFF_CHARACTERS and text.count("\n") < MAX_DIFF_LINES for text in (left, right))


def side_by_side(left: str, right: str) -> list[TextDiffRow]:
    r"""The lines of two texts beside each other, equal ones in the same row.

    >>> [(pair.left and pair.left.number, pair.right and pair.right.number, pair.is_same)
    ...  for pair in side_by_side("a\nb\nc", "a\nc")]
    [(1, 1, True), (2, None, False), (3, 2, True)]
    """
    before, after = left.split("\n"), right.split("\n")
    pairs: list[TextDiffRow] = []
    for kind, start, stop, other_start, other_stop in SequenceMatcher(None, before, after).get_opcodes():
        for place in range(max(stop - start, other_stop - other_start)):
            old = start + place if start + place < stop else None
            new = other_start + place if other_start + place < other_stop else None
            if kind == "equal":
                pairs.append(TextDiffRow(_whole(before, old), _whole(after, new), True))
            elif old is None or new is None:
                pairs.append(TextDiffRow(_whole(before, old), _whole(after, new), False))
            else:
                ends = _same_ends(before[old], after[new])
                pairs.append(TextDiffRow(_half(before, old, ends), _half(after, new, ends), False))
    return pairs


def _whole(lines: Sequence[str], place: int | None) -> TextDiffLine | None:
    return None if place is None else TextDiffLine(place + 1, (TextDiffSegment(lines[place], is_changed=False),))


def _same_ends(left: str, right: str) -> tuple[int, int]:
    """How many characters two lines begin and end with alike."""
    most = min(len(left), len(right))
    start = next((place for place in range(most) if left[place] != right[place]), most)
    rest = most - start
    stop = next((place for place in range(rest) if left[-1 - place] != right[-1 - place]), rest)
    return start, stop


def _half(lines: Sequence[str], place: int, ends: tuple[int, int]) -> TextDiffLine:
    return TextDiffLine(place + 1, tuple(_pieces(lines[place], *ends)))


def _pieces(line: str, start: int, stop: int) -> Iterator[TextDiffSegment]:
    middle = len(line) - stop
    for text, is_changed in ((line[:start], False), (line[start:middle], True), (line[middle:], False)):
        if text:
            yield TextDiffSegment(text, is_changed)
