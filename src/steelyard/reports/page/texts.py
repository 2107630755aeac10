"""The texts of attempts on a page, cut so that all of them fit into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from steelyard.analysis.summary import AttemptText
from steelyard.reports.page.templates import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from steelyard.records import Case
    from steelyard.tiers.rubrics import JudgingResult

ATTEMPT_TEXT_CHARACTER_LIMITS = (100_000, 20_000, 8_000, 3_000, 1_200, 500, 200, 80, 0)
"""Of each text of an attempt: the first that leaves room for the others. With 0 only the line that sums it up is left."""
PAGE_FULL_NOTICE = Markup(
    '<p class="soft small">The page has no room for the rest; steelyard show and steelyard view have it.</p>\n'
)
MAX_CACHED_PART_BYTES = 16_000
"""Bytes up to which a part of the page is cached rather than rendered again."""


class FittedTexts(NamedTuple):
    """Parts of the page that fit into it together."""

    cases: dict[str, Markup]
    attempts: dict[int, Markup]


class TextFitter:
    """The parts of a page that hold the texts of others, made as long as there is room for."""

    def __init__(
        self, cases: Sequence[Case], shown: Sequence[AttemptText], judgments: Mapping[str, Sequence[JudgingResult]]
    ) -> None:
        macros: Any = environment().get_template("attempt.html.j2").module
        asked = {tried.case.id for tried in shown}
        self._cases = [case for case in cases if case.id in asked]
        self._shown = shown

        def case_head(case: Case) -> Callable[[int], Markup]:
            return lambda most: macros.case_head(case, most)

        def attempt(tried: AttemptText) -> Callable[[int], Markup]:
            given = judgments.get(tried.reply.key, ()) if tried.reply else ()

            def made(most: int) -> Markup:
                # the longer the texts may be, the more of them
                body = (
                    macros.attempt_body(tried, given, most, max(2, min(200, most // 40))) if most else PAGE_FULL_NOTICE
                )
                return Markup("<summary>{}</summary>\n<div>\n{}</div>").format(macros.attempt_line(tried), body)

            return made

        self._makers = [*map(case_head, self._cases), *map(attempt, self._shown)]

    def fitted(self, room: int) -> FittedTexts:
        """All of them, the longest cut until all together take no more bytes than there is room for."""
        made = _fitted_parts(self._makers, room)
        heads, bodies = made[: len(self._cases)], made[len(self._cases) :]
        return FittedTexts(
            {case.id: head for case, head in zip(self._cases, heads, strict=True)},
            {id(tried): body for tried, body in zip(self._shown, bodies, strict=True)},
        )


def _fitted_parts(makers: Sequence[Callable[[int], Markup]], room: int) -> list[Markup]:
    first, *smaller = ATTEMPT_TEXT_CHARACTER_LIMITS
    kept: dict[int, Markup] = {}
    sizes = []
    for place, make in enumerate(makers):
        piece = make(first)
        sizes.append(len(piece.encode()))
        if sizes[-1] <= MAX_CACHED_PART_BYTES:
            kept[place] = piece
    level = _fair_size_limit(sizes, room)
    return [
        _longest_fitting(make, level, smaller) if size > level else kept[place] if place in kept else make(first)
        for place, (make, size) in enumerate(zip(makers, sizes, strict=True))
    ]


def _longest_fitting(make: Callable[[int], Markup], most_bytes: int, sizes: Sequence[int]) -> Markup:
    """The longest of some sizes that fits, which come in descending order; the smallest where none does."""
    best = None
    low, high = 0, len(sizes) - 1
    while low <= high:
        middle = (low + high) // 2
        piece = make(sizes[middle])
        if len(piece.encode()) <= most_bytes:
            best, high = piece, middle - 1
        else:
            low = middle + 1
    return make(sizes[-1]) if best is None else best


def _fair_size_limit(sizes: Sequence[int], room: int) -> int:
    """The size that all larger ones must come down to, so that all fit: short ones leave their share to long ones.

    >>> _fair_size_limit([10, 20, 500, 900], 230), _fair_size_limit([10, 20], 1000)
    (100, 20)
    """
    left = room
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        share = left // (len(ordered) - place)
        if size > share:
            return max(share, 0)
        left -= size
    return ordered[-1] if ordered else 0
