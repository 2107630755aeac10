"""What a gate decided and why, for people, pull requests and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.comparison.gate import CANNOT_TELL, NOT_REGRESSED, REGRESSED
from steelyard.reports.figures import money
from steelyard.reports.tables import bullets, code, json_text, markdown_table, warning_lines, warning_parts
from steelyard.text import counted, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from steelyard.analysis.estimates import Estimate
    from steelyard.comparison.gate import CaseDrop, Decision, ModelDecision

VERDICT_WORDS = {REGRESSED: "REGRESSED", NOT_REGRESSED: "NOT REGRESSED", CANNOT_TELL: "CANNOT TELL"}
MAX_LISTED_CASE_CHANGES = 20


def text(decision: Decision, warnings: Sequence[str]) -> str:
    """What a person reads in a terminal: the verdict first, then the reasons."""
    lines = [VERDICT_WORDS[decision.verdict]]
    for model in decision.models:
        lines += [
            "",
            f"{line(model.model)}: {VERDICT_WORDS[model.verdict]}",
            *(f"  {reason}" for reason in reasons(model, decision)),
        ]
        for title, changes in _lists(model):
            lines += [f"  {title}", *(f"    {_change(change)}" for change in changes[:MAX_LISTED_CASE_CHANGES])]
            if len(changes) > MAX_LISTED_CASE_CHANGES:
                lines.append(f"    and {len(changes) - MAX_LISTED_CASE_CHANGES:,} more")
    return "\n".join([*lines, *warning_lines(warnings)]) + "\n"


def markdown(decision: Decision, warnings: Sequence[str]) -> str:
    """The same for a comment on a pull request."""
    parts = [f"### {VERDICT_WORDS[decision.verdict]}"]
    for model in decision.models:
        parts.append(f"**{code(model.model)}: {VERDICT_WORDS[model.verdict]}**")
        parts.append(bullets(reasons(model, decision)))
        for title, changes in _lists(model):
            rows = [
                [code(change.case), f"{change.baseline:.3f}", f"{change.current:.3f}", _p(change.p)]
                for change in changes[:MAX_LISTED_CASE_CHANGES]
            ]
            parts += [f"{title}:", markdown_table(["case", "baseline", "current", "p"], rows)]
            if len(changes) > MAX_LISTED_CASE_CHANGES:
                parts.append(f"and {len(changes) - MAX_LISTED_CASE_CHANGES:,} more")
    return "\n\n".join([*parts, *warning_parts(warnings)]) + "\n"


def as_json(decision: Decision, warnings: Sequence[str]) -> str:
    """The same for a program."""
    return json_text({"decision": decision, "warnings": list(warnings)})


DECISION_FORMATS: dict[str, Callable[[Decision, Sequence[str]], str]] = {
    "text": text,
    "json": as_json,
    "markdown": markdown,
}


def reasons(model: ModelDecision, decision: Decision) -> Iterator[str]:
    """Why the verdict is what it is, the most telling first."""
    margin = decision.rule.margin
    yield f"mean change over {counted(model.cases, 'case')}: {_points(model.effect)}"
    sure = (
        f"p {_p(model.p_overall)} that the suite looks as bad when nothing changed (alarm at {model.overall_level:.3g})"
    )
    if model.verdict == REGRESSED:
        yield sure + (": small but real" if model.small_but_real else "")
    elif model.verdict == NOT_REGRESSED and model.drop_bound is not None:
        yield f"these cases dropped by less than {margin * 100:g} points: by {model.drop_bound * 100:.1f} at the most"
    elif model.drop_bound is not None:
        yield f"a drop of up to {model.drop_bound * 100:.1f} points cannot be ruled out, {margin * 100:g} may pass"
        yield sure
    if model.verdict != REGRESSED:
        if model.detectable is not None:
            yield f"a mean drop of {model.detectable * 100:.1f} points would have been seen four times out of five"
        if model.smallest_break is not None:
            seen = model.smallest_break
            yield f"a case that always passed would have been named at {seen.current_passes}/{seen.current_attempts} or fewer"
        else:
            yield "the break of a single case could not have been seen"
    if model.further is not None:
        more = model.further
        cost = "" if more.cost_usd is None else f", about {money(more.cost_usd)}"
        sides = [
            f"{count} more of the {name}"
            for name, count in (("baseline", more.baseline), ("current side", more.current))
            if count
        ]
        yield f"attempts per case that would decide if nothing changed: {' and '.join(sides)} ({more.attempts:,} in all{cost})"
    for critical in model.critical:
        state = "BROKEN" if critical.broken else "holds"
        needed = "any number" if critical.needed is None else f"{critical.needed}"
        yield f"critical {line(critical.case)}: {critical.passes}/{critical.attempts}, {needed} needed: {state}"
    yield f"{model.expected_flags:.1f} cases drop by more than {decision.rule.threshold * 100:g} points by noise alone"
    yield from map(line, model.notes)


def _lists(model: ModelDecision) -> Iterator[tuple[str, tuple[CaseDrop, ...]]]:
    if model.confirmed:
        yield "Cases that got worse", model.confirmed
    if model.suspects:
        yield "Suspects, no further down than chance can take them", model.suspects


def _change(change: CaseDrop) -> str:
    return f"{line(change.case)}  {change.baseline:.3f} -> {change.current:.3f}  p {_p(change.p)}"


def _points(estimate: Estimate) -> str:
    """A difference in points with its interval.

    >>> from steelyard.analysis.estimates import Estimate
    >>> _points(Estimate(value=-0.042, low=-0.079, high=-0.005))
    '-4.2 points [-7.9, -0.5]'
    """
    if estimate.value is None:
        return "not known"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value * 100:+.1f} points"
    return f"{estimate.value * 100:+.1f} points [{estimate.low * 100:.1f}, {estimate.high * 100:.1f}]"


def _p(value: float) -> str:
    return "<1e-12" if value < 1e-12 else f"{value:.2g}"
