"""The parts of the HTML page that the report and the viewer share: templates, style, and texts cut to fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from markupsafe import Markup

from steelyard.analysis.attempts import AttemptOutcome, row_index
from steelyard.analysis.estimates import Estimate
from steelyard.analysis.summary import AttemptText
from steelyard.reports import figures
from steelyard.reports.charts.svg import svg_element
from steelyard.reports.highlight import highlighted
from steelyard.reports.traces import turn_texts
from steelyard.text import counted, line, plain

if TYPE_CHECKING:
    import jinja2

    from steelyard.analysis.attempts import AttemptRow
    from steelyard.records import Case
    from steelyard.tiers.rubrics import JudgingResult


class TruncatedText(NamedTuple):
    """A text, or its beginning and its end."""

    head: str
    left_out: int = 0
    """Characters."""
    tail: str = ""


def truncated_text(text: str, most: int) -> TruncatedText:
    """A text cut to a number of characters, with more of its beginning than of its end.

    >>> truncated_text("abcdefghij", 6)
    TruncatedText(head='abcd', left_out=4, tail='ij')
    """
    if len(text) <= most:
        return TruncatedText(text)
    tail = most // 3
    head = most - tail
    return TruncatedText(text[:head], len(text) - most, text[len(text) - tail :])


CellState = Literal["full", "part", "none", "gap"]


def cell_state(judged: int, correct: int) -> CellState:
    """How many of the attempts in a cell of the matrix are correct; a gap when none was judged."""
    if not judged:
        return "gap"
    if not correct:
        return "none"
    return "full" if correct == judged else "part"


def code(text: str, language: str) -> Markup:
    """Code in colours, made harmless."""
    return highlighted(plain(text).rstrip("\n"), language)


def code_language(tried: AttemptText) -> str:
    """What the code of an attempt is written in: that of an agent is a patch."""
    # the answer to a case with a workspace is a patch, unless the case names the file to write
    return "diff" if tried.case.workspace and not tried.case.verify.answer else tried.case.language or tried.case.kind


def _percent(share: float) -> str:
    """A position on a scale, as CSS wants it."""
    return f"{min(max(share, 0), 1) * 100:.2f}%"


def _interval(estimate: Estimate) -> str:
    """Only the brackets of a rate."""
    return figures.rate(estimate).partition(" ")[2]


@cache
def environment(*further: jinja2.BaseLoader) -> jinja2.Environment:
    """The templates of reports, with those of further loaders before them; all values in them are escaped."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([*further, jinja2.PackageLoader("steelyard", "reports")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "case_figures": figures.case_figures,
        "code": code,
        "code_language": code_language,
        "counted": counted,
        "drawing": svg_element,
        "cut": truncated_text,
        "evidence": figures.evidence_text,
        "interval": _interval,
        "line": line,
        "money": figures.money,
        "obstacle": figures.missing_reason,
        "turns": turn_texts,
        "outcome": figures.outcome,
        "percent": _percent,
        "plain": plain,
        "price": figures.price,
        "response_class": figures.response_class,
        "seconds": figures.seconds,
        "tests_passed": figures.tests_passed,
        "why": figures.attempt_failure_reason,
    }
    return made


@cache
def style() -> Markup:
    """The style that report and viewer share; it is ours alone, so it may stand unescaped."""
    loader = environment().loader
    assert loader is not None  # noqa: S101  it was given one
    return Markup(loader.get_source(environment(), "page.css")[0])  # noqa: S704


ATTEMPT_TEXT_CHARACTER_LIMITS = (100_000, 20_000, 8_000, 3_000, 1_200, 500, 200, 80, 0)
"""Of each text on the page: the first with which all fit. With 0 only the line that sums up an attempt is left."""
PAGE_FULL_NOTICE = Markup(
    '<p class="soft small">The page has no room for the rest; steelyard show and steelyard view have it.</p>\n'
)


class FittedTexts(NamedTuple):
    """Parts of the page that fit into it together."""

    cases: dict[str, Markup]
    attempts: dict[int, Markup]


def fitted_texts(
    cases: Sequence[Case],
    shown: Sequence[AttemptText],
    judgments: Mapping[str, Sequence[JudgingResult]],
    room: int,
) -> FittedTexts:
    """The parts of the page that hold the texts of others, each text cut so that all parts take no more bytes than there is room for."""
    macros: Any = environment().get_template("attempt.html.j2").module
    asked = {tried.case.id for tried in shown}
    for most in ATTEMPT_TEXT_CHARACTER_LIMITS:
        heads = {case.id: macros.case_head(case, most) for case in cases if case.id in asked}
        bodies: dict[int, Markup] = {}
        left = room - sum(len(head.encode()) for head in heads.values())
        for tried in shown:
            if left < 0 and most:
                break
            given = judgments.get(tried.reply.key, ()) if tried.reply else ()
            # the longer the texts may be, the more of them
            body = macros.attempt_body(tried, given, most, max(2, min(200, most // 40))) if most else PAGE_FULL_NOTICE
            part = Markup("<summary>{}</summary>\n<div>\n{}</div>").format(macros.attempt_line(tried), body)
            bodies[id(tried)] = part
            left -= len(part.encode())
        if left >= 0:
            break
    return FittedTexts(heads, bodies)


MAX_SMALL_RUN_ATTEMPTS = 1_000
"""Attempts of a run all of whose texts are shown."""
MAX_SHOWN_FAILURES = 3_000
"""Failures of a larger run whose texts are shown; with more, no browser would open the page."""
MIN_SHOWN_PASSES = 200
"""The number of correct attempts of a larger run whose texts are shown."""


class ShownAttempts(NamedTuple):
    """The attempts that are shown with their texts."""

    rows: tuple[AttemptRow, ...]
    """In the order of the table."""
    failed: int
    """How many of them are not correct."""
    passed: int


def shown_attempts(rows: Sequence[AttemptRow]) -> ShownAttempts:
    """All of a small run; of a larger one the failures and a sample of the correct attempts, from all cases and models."""
    if len(rows) <= MAX_SMALL_RUN_ATTEMPTS:
        failures = sum(row.outcome != "correct" for row in rows)
        return ShownAttempts(tuple(sorted(rows, key=row_index)), failures, len(rows) - failures)
    failed = even_sample(rows, MAX_SHOWN_FAILURES, ("wrong", "missing"))
    room = max(MIN_SHOWN_PASSES, MAX_SMALL_RUN_ATTEMPTS - len(failed))
    correct: tuple[AttemptOutcome, ...] = ("correct",)
    passed = even_sample(rows, room, correct)
    return ShownAttempts(tuple(sorted((*failed, *passed), key=row_index)), len(failed), len(passed))


def even_sample(
    rows: Iterable[AttemptRow], most: int, outcomes: Collection[AttemptOutcome] = ("correct", "wrong", "missing")
) -> list[AttemptRow]:
    """At most this many of the rows with these outcomes, in their order: first one of each model at each case, then a second one, and so on.

    Where not all of a round fit, they are taken evenly. The rows are gone through twice, and only the sample is kept.
    """
    counts: Counter[tuple[int, int]] = Counter(row[:2] for row in rows if row.outcome in outcomes)
    # a round has a row of each model at each case that has so many
    whole, room = 0, most
    while room and (size := sum(count > whole for count in counts.values())):
        if size > room:
            break
        whole, room = whole + 1, room - size
    else:
        size = 0
    chosen = {place * size // room for place in range(room)} if size else set()
    turns: Counter[tuple[int, int]] = Counter()
    place, sample = 0, []
    for row in rows:
        if row.outcome not in outcomes:
            continue
        turn = turns[row[:2]]
        turns[row[:2]] += 1
        if turn < whole or (turn == whole and place in chosen):
            sample.append(row)
        place += turn == whole
    return sample
