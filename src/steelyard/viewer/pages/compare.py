"""Two runs compared: the decision of the gate, then case by case, with their texts side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from steelyard.analysis.measure import ComparedMeasure
from steelyard.analysis.summary import AttemptText
from steelyard.comparison.gate import NOT_REGRESSED, REGRESSED, ModelDecision
from steelyard.comparison.sides import Trials
from steelyard.reports import figures as reports
from steelyard.reports.comparison import VERDICT_WORDS, reasons
from steelyard.text import counted, plain
from steelyard.viewer.comparisons import CaseChangeState, ComparedCase, SideComparison, compared_sides, trials_figure
from steelyard.viewer.matrix import PAGE_SIZES, page_slice
from steelyard.viewer.pages.rendering import PageUrl, rendered
from steelyard.viewer.query_params import QueryParameters
from steelyard.viewer.run_cache import RunCache, RunViewSide
from steelyard.viewer.run_list import ListedRun
from steelyard.viewer.run_view import AttemptRow, RunView

MAX_DIFF_LINES = 1_500
"""Lines of a text that is compared with another; finding what differs takes time that grows with their product."""
MAX_DIFF_CHARACTERS = 200_000


class TextDiffSegment(NamedTuple):
    """A part of a line."""

    text: str
    is_changed: bool
    """Whether the line beside it, which is otherwise like this one, differs here."""


class TextDiffLine(NamedTuple):
    """A line on one side."""

    number: int
    """From 1."""
    pieces: tuple[TextDiffSegment, ...]


class TextDiffRow(NamedTuple):
    """What stands beside each other; None if a side has nothing there."""

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


MAX_COMPARISON_CHOICES = 100
"""Runs that can be chosen for a comparison without typing; any other is reached from the list."""


class SideChoice(NamedTuple):
    """A run that can be compared, and its models."""

    name: str
    when: str
    models: tuple[str, ...]


class SideBySideAttempts(NamedTuple):
    """An attempt of each side at one case, beside each other."""

    change: ComparedCase
    left: AttemptText | None
    right: AttemptText | None
    left_rows: tuple[AttemptRow, ...]
    right_rows: tuple[AttemptRow, ...]
    pairs: Sequence[TextDiffRow] | None
    """None where the texts are too long to be compared."""
    what: str
    """`reply` or `code`."""


def compare(run_cache: RunCache, asked: QueryParameters) -> str:
    """Two runs, or two models: the gate's verdict, then case by case, culprits first, and two replies side by side."""
    listing = run_cache.listing()
    names, hint = _sides(listing.runs, asked)
    alpha, margin = asked.share("alpha", 0.05), asked.share("margin", 0.05)
    state = asked.choice("state", ("all", "changed", *CaseChangeState), "changed")
    what = asked.choice("what", ("reply", "code"), "reply")
    values = {
        "baseline": names[0],
        "current": names[1],
        "alpha": "" if alpha == 0.05 else f"{alpha:g}",
        "margin": "" if margin == 0.05 else f"{margin:g}",
        "state": "" if state == "changed" else state,
        "what": "" if what == "reply" else what,
    }
    choices = [_choice(one) for one in listing.runs[:MAX_COMPARISON_CHOICES] if one.state != "broken" and one.models]
    context: dict[str, Any] = {
        "choices": choices,
        "known": {side for one in choices for side in (one.name, *(f"{one.name}@{model}" for model in one.models))},
        "hint": hint,
        "values": values,
        "here": PageUrl(["compare"], values),
        "state": state,
        "what": what,
        "states": [*CaseChangeState],
        "compared": None,
    }
    if not all(names):
        return rendered("compare.html.j2", **context)
    baseline, current = (run_cache.side(name) for name in names)
    found = compared_sides(run_cache, baseline, current, alpha=alpha, margin=margin)
    wanted = [
        one
        for one in found.changes
        if state == "all" or one.state == state or (state == "changed" and one.state != CaseChangeState.SAME)
    ]
    here = page_slice(range(len(wanted)), asked.whole("page", 1, least=1, most=1_000_000), PAGE_SIZES[1])
    values["page"] = "" if here.number == 1 else str(here.number)
    beside = _side_by_side_attempts(run_cache, found, (baseline, current), asked, what)
    if beside is not None:
        values |= {"case": beside.change.case, "of": beside.change.model}
        values |= {"left": str(beside.left.number)} if beside.left else {}
        values |= {"right": str(beside.right.number)} if beside.right else {}
    on = found.gated.decision.rule.on
    means = {one.name: _means(one.cases, on) for one in found.gated.pairing.models}
    counts = {one: sum(change.state == one for change in found.changes) for one in CaseChangeState}
    return rendered(
        "compare.html.j2",
        **context
        | {
            "compared": found,
            "decision": found.gated.decision,
            "model_reasons": [
                (model, list(reasons(model, found.gated.decision))) for model in found.gated.decision.models
            ],
            "words": VERDICT_WORDS,
            "warnings": found.gated.warnings,
            "pairing": found.gated.pairing,
            "baseline": baseline,
            "current": current,
            "counts": counts,
            "means": means,
            "sentence": verdict_sentence(found.gated.decision.models, means, on),
            "alpha": found.gated.alpha,
            "page": here,
            "changes": [wanted[place] for place in here.cases],
            "beside": beside,
        },
    )


def verdict_sentence(
    models: Sequence[ModelDecision], means: Mapping[str, tuple[float, float] | None], on: ComparedMeasure = "passed"
) -> str:
    """What a reader wants to know first, in one sentence."""
    if len(models) == 1:
        (model,) = models
        claim = {
            REGRESSED: f"{model.model} got worse",
            NOT_REGRESSED: f"{model.model} did not get worse",
        }.get(model.verdict, f"It is not known yet whether {model.model} got worse")
        mean = means.get(model.model)
        change = ""
        if mean and on == "score":
            change = f": mean score {mean[0]:.3f} before, {mean[1]:.3f} now"
        elif mean:
            change = f": {100 * mean[0]:.1f}% passed before, {100 * mean[1]:.1f}% now"
        return f"{claim}{change}, on {counted(model.cases, 'case')}."
    worse = [model.model for model in models if model.verdict == REGRESSED]
    unsure = [model.model for model in models if model.verdict not in (REGRESSED, NOT_REGRESSED)]
    named = f": {', '.join(worse)}" if worse else ""
    claim = f"{len(worse) or 'None'} of {counted(len(models), 'model')} got worse{named}"
    rest = f"; it is not known yet for {', '.join(unsure)}" if unsure else ""
    return f"{claim}{rest}."


def _sides(runs: Sequence[ListedRun], asked: QueryParameters) -> tuple[tuple[str, str], str]:
    """The two sides that are named, or ticked in the list; and what to do where that are not two."""
    ticked = [one.name for one in reversed(runs) if one.name in asked.texts("run")]
    if len(ticked) == 2:
        return (ticked[0], ticked[1]), ""
    names = asked.text("baseline"), asked.text("current")
    if ticked:
        return (ticked[0], ""), "Two runs can be compared, no more and no less; choose the other one."
    if any(names) and not all(names):
        return names, "Choose the other side as well."
    return names, ""


def _means(cases: Sequence[tuple[Trials, Trials]], on: ComparedMeasure) -> tuple[float, float] | None:
    """The mean share of passes, or score, over the cases that both sides judged, before and after."""
    judged = [(old, new) for old, new in cases if old.attempts and new.attempts]
    if not judged:
        return None
    before = math.fsum(trials_figure(old, on) for old, _ in judged) / len(judged)
    return before, math.fsum(trials_figure(new, on) for _, new in judged) / len(judged)


def _choice(run: ListedRun) -> SideChoice:
    models = tuple(reports.model_label(one.model, one.tier) for one in run.models)
    return SideChoice(run.name, run.started_at, models if len(models) > 1 else ())


def _side_by_side_attempts(
    run_cache: RunCache,
    found: SideComparison,
    sides: tuple[RunViewSide, RunViewSide],
    asked: QueryParameters,
    what: str,
) -> SideBySideAttempts | None:
    case, of = asked.text("case"), asked.text("of")
    change = next((one for one in found.changes if one.case == case and (not of or one.model == of)), None)
    if change is None:
        return None
    # where one model stands for another, the comparison calls it by both names
    old, arrow, new = change.model.partition(" -> ")
    named = zip(sides, (old, new if arrow else old), strict=True)
    rows = [_attempts(run_cache, side.opened, case, side.model or name) for side, name in named]
    # what was right before and is wrong now is what a reader looks for, or the other way round
    wanted = ("correct", "wrong") if change.delta <= 0 else ("wrong", "correct")
    tried = [
        _chosen_attempt(side.opened, of_case, asked.whole(which, 0, least=1, most=1_000_000), outcome)
        for side, of_case, which, outcome in zip(sides, rows, ("left", "right"), wanted, strict=True)
    ]
    left, right = (_text(one, what) for one in tried)
    pairs = side_by_side(left, right) if is_comparable(left, right) else None
    return SideBySideAttempts(change, tried[0], tried[1], tuple(rows[0]), tuple(rows[1]), pairs, what)


def _attempts(run_cache: RunCache, opened: RunView, case_id: str, name: str) -> list[AttemptRow]:
    """The attempts of one model at one case, each by its name."""
    cells = run_cache.table(opened).cells
    return [
        opened.rows[number]
        for place, case in enumerate(opened.cases)
        if case.id == case_id
        for column, cell in zip(opened.columns, cells[place], strict=True)
        if reports.model_label(*column) == name
        for number in cell.places
    ]


def _chosen_attempt(opened: RunView, rows: Sequence[AttemptRow], number: int, outcome: str) -> AttemptText | None:
    ranked = sorted(rows, key=lambda row: (row.number != number, row.outcome != outcome, row.number))
    if not ranked:
        return None
    column = opened.columns[ranked[0].column]
    return opened.attempt(opened.cases[ranked[0].case].id, column.model, column.tier, ranked[0].number)


def _text(tried: AttemptText | None, what: str) -> str:
    if tried is None:
        return ""
    if what == "code" and tried.verdict is not None and tried.verdict.found.code is not None:
        return plain(tried.verdict.found.code)
    return plain(tried.reply.answer.text) if tried.reply else ""
