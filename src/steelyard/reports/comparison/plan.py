"""What a comparison will need and cost, for people, pull requests and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.comparison.power import MAX_PLANNED_ATTEMPTS_PER_CASE
from steelyard.reports.figures import money
from steelyard.reports.tables import (
    aligned_lines,
    bullets,
    code,
    escaped,
    json_text,
    markdown_table,
    warning_lines,
    warning_parts,
)
from steelyard.text import counted, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.comparison.power import ComparisonPlan, ModelPlan, RequiredAttempts, SingleRoundCost

MAX_LISTED_PLAN_CASES = 5


def text(plan: ComparisonPlan) -> str:
    """What a person reads in a terminal: the number first, then what else there is to know."""
    lines = [_headline(plan)]
    for model in plan.models:
        lines += ["", line(model.model), *(f"  {reason}" for reason in _reasons(model, plan)), ""]
        lines += aligned_lines([_heads(plan), *_rows(model)], to_the_right=True)
    return "\n".join([*lines, *warning_lines(list(_warnings(plan)))]) + "\n"


def markdown(plan: ComparisonPlan) -> str:
    """The same for a comment on a pull request."""
    parts = [f"### {escaped(_headline(plan))}"]
    for model in plan.models:
        parts.append(f"**{code(model.model)}**")
        parts += [bullets(_reasons(model, plan)), markdown_table(_heads(plan), _rows(model))]
    return "\n\n".join([*parts, *warning_parts(list(_warnings(plan)))]) + "\n"


PLAN_FORMATS: dict[str, Callable[[ComparisonPlan], str]] = {"text": text, "json": json_text, "markdown": markdown}


def _headline(plan: ComparisonPlan) -> str:
    """What to ask for so that the drop is seen with every model."""
    what = f"to see a mean drop of {_points(plan.detect)} from {line(plan.baseline)} with a chance of {plan.power:.0%}"
    needs = [model.seen or model.seen_with_more for model in plan.models]
    known = [need for need in needs if need is not None]
    if len(known) < len(needs):
        return f"More than {MAX_PLANNED_ATTEMPTS_PER_CASE:,} attempts per case {what}"
    sides = " on both sides" if any(need.baseline for need in known) else ""
    return f"{counted(max(need.current for need in known), 'attempt')} per case{sides} {what}"


def _reasons(model: ModelPlan, plan: ComparisonPlan) -> Iterator[str]:
    """What each answer takes."""
    each = f"{model.fewest}" if model.fewest == model.most else f"{model.fewest} to {model.most}"
    yield f"baseline: {counted(model.cases, 'case')} with {each} attempts each, mean pass rate {model.rate:.1%}"
    for verdict, as_it_is, with_more in (
        ("REGRESSED after such a drop", model.seen, model.seen_with_more),
        ("NOT REGRESSED by as much, if nothing changed", model.cleared, model.cleared_with_more),
    ):
        if as_it_is is not None:
            yield f"{verdict}: {_need(model, as_it_is)}"
        elif with_more is not None:
            yield f"{verdict}: the baseline is too thin, even {MAX_PLANNED_ATTEMPTS_PER_CASE:,} attempts per case do not suffice"
        else:
            yield f"{verdict}: more than {MAX_PLANNED_ATTEMPTS_PER_CASE:,} attempts per case on both sides; it takes more cases"
        if with_more is not None:
            yield f"{'or ' if as_it_is else ''}bless more runs: with {_need(model, with_more)}"
    yield f"the gate's first look, at {plan.look_alpha:g} of alpha {plan.alpha:g}, by the number of attempts per case:"


def _need(model: ModelPlan, need: RequiredAttempts) -> str:
    sides = " on both sides" if need.baseline else ""
    more = "more in all" if need.baseline else "in all"
    return f"{counted(need.current, 'attempt')} per case{sides} ({need.attempts:,} {more}, {_cost(model.once, need.cost_usd)})"


def _heads(plan: ComparisonPlan) -> list[str]:
    drop = _points(plan.detect)
    return ["attempts", "sees a drop of", f"sees {drop}", "clears no change", "in all", "cost"]


def _rows(model: ModelPlan) -> list[list[str]]:
    return [
        [
            f"{row.current}",
            "-" if row.drop is None else f"{row.drop * 100:.1f} points",
            f"{row.seen:.0%}",
            f"{row.cleared:.0%}",
            f"{row.attempts:,}",
            "unknown" if row.cost_usd is None else _cost(model.once, row.cost_usd),
        ]
        for row in model.outlook
    ]


def _warnings(plan: ComparisonPlan) -> Iterator[str]:
    for what, cases in (
        ("not in the baseline", plan.new_cases),
        ("only in the baseline", plan.removed_cases),
        ("judged by other tests now", plan.tests_changed),
        ("without a judged attempt in the baseline", plan.unjudged),
    ):
        if cases:
            more = f" and {len(cases) - MAX_LISTED_PLAN_CASES:,} more" if len(cases) > MAX_LISTED_PLAN_CASES else ""
            yield f"{counted(len(cases), 'case')} {what}, not planned on: {', '.join(cases[:MAX_LISTED_PLAN_CASES])}{more}"


def _cost(once: SingleRoundCost, usd: float | None) -> str:
    if usd is None:
        return "price not known"
    return f"{'at most' if once.at_most else 'about'} {money(usd)}"


def _points(drop: float) -> str:
    """A drop as people say it.

    >>> _points(0.05), _points(0.0123), _points(0.01)
    ('5 points', '1.2 points', '1 point')
    """
    number = f"{drop * 100:.1f}".removesuffix(".0")
    return f"{number} point" if number == "1" else f"{number} points"
