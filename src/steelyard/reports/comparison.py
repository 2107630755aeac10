"""Comparisons by threshold, decisions of a gate and plans for one, for people, pull requests and programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.suites import ordered_class_counts
from steelyard.comparison.gate import CANNOT_TELL, NOT_REGRESSED, REGRESSED, CaseDrop, Decision, ModelDecision
from steelyard.comparison.judged import JudgedDecision, JudgedModelDecision
from steelyard.comparison.power import (
    MAX_PLANNED_ATTEMPTS_PER_CASE,
    ComparisonPlan,
    ModelPlan,
    RequiredAttempts,
    SingleRoundCost,
)
from steelyard.comparison.threshold import CaseScoreChange, OverallChange, SuiteChange, ThresholdComparison
from steelyard.reports.figures import money, rate
from steelyard.reports.tables import (
    aligned_lines,
    bullets,
    code,
    escaped,
    json_report,
    markdown_table,
    warning_lines,
    warning_parts,
)
from steelyard.text import counted, line


def comparison_text(comparison: ThresholdComparison) -> str:
    """What a person reads in a terminal."""
    lines = [f"{line(comparison.baseline)} -> {line(comparison.current)}", "", *headline(comparison)]
    suites = suite_rows(comparison)
    if suites:
        lines += [
            "",
            "Suites",
            *aligned_lines([[row.name, row.scores, row.delta, row.model, row.moved] for row in suites]),
        ]
    width = max((len(line(change.case_id)) for change in _changes(comparison)), default=0)
    for title, changes in (("Regressions", comparison.regressions), ("Improvements", comparison.improvements)):
        if changes:
            lines += ["", title]
        for change in changes:
            numbers = f"{change.baseline_score:.3f} -> {change.current_score:.3f}  {change.delta:+.3f}"
            lines.append(f"  {line(change.case_id):<{width}}  {numbers}  {line(change.model)}")
    for title, names in uncompared_names(comparison):
        lines += ["", title, *(f"  {line(name)}" for name in names)]
    return "\n".join(lines) + "\n"


def comparison_markdown(comparison: ThresholdComparison) -> str:
    """The same for a comment on a pull request."""
    parts = [f"### {code(comparison.baseline)} → {code(comparison.current)}"]
    parts.append(bullets(headline(comparison)))
    suites = suite_rows(comparison)
    if suites:
        cells = [
            [
                code(row.name) if row.is_suite else f"**{row.name}**",
                code(row.model),
                row.scores.replace("->", "→"),
                row.delta,
                escaped(row.moved).replace("-\\>", "→"),
            ]
            for row in suites
        ]
        parts += [
            "#### Suites",
            markdown_table(["suite", "model", "score", "delta", "classes that moved"], cells, "---"),
        ]
    for title, changes in (("Regressions", comparison.regressions), ("Improvements", comparison.improvements)):
        if changes:
            rows = [
                [
                    code(change.case_id),
                    code(change.model),
                    f"{change.baseline_score:.3f}",
                    f"{change.current_score:.3f}",
                    f"{change.delta:+.3f}",
                ]
                for change in changes
            ]
            parts += [f"#### {title}", markdown_table(["case", "model", "baseline", "current", "delta"], rows, "---")]
    for title, names in uncompared_names(comparison):
        parts += [f"#### {title}", "\n".join(f"- {code(name)}" for name in names)]
    return "\n\n".join(parts) + "\n"


def comparison_json(comparison: ThresholdComparison) -> str:
    """The same for a program."""
    whole = msgspec.to_builtins(comparison)
    # numbers, as programs that read forgetest's comparisons expect them, and beside them which cases they are
    for name in ("new_case", "removed_case"):
        whole |= {f"{name}_ids": whole[f"{name}s"], f"{name}s": len(whole[f"{name}s"])}
    if not comparison.suites:
        del whole["suites"], whole["overall"]
    return json_report(whole)


COMPARISON_FORMATS: dict[str, Callable[[ThresholdComparison], str]] = {
    "text": comparison_text,
    "json": comparison_json,
    "markdown": comparison_markdown,
}


def _changes(comparison: ThresholdComparison) -> tuple[CaseScoreChange, ...]:
    return (*comparison.regressions, *comparison.improvements)


class SuiteComparisonRow(NamedTuple):
    """A suite before and after, in words."""

    is_suite: bool
    """Rather than all of them together."""
    name: str
    scores: str
    delta: str
    model: str
    moved: str


def suite_rows(comparison: ThresholdComparison) -> list[SuiteComparisonRow]:
    """A row per suite, and one for all suites of a model after them."""
    rows = []
    for overall in comparison.overall:
        of_model = [suite for suite in comparison.suites if suite.model == overall.model]
        rows += [
            SuiteComparisonRow(True, line(suite.suite), *_numbers(suite), _class_changes(suite)) for suite in of_model
        ]
        rows.append(SuiteComparisonRow(False, "overall", *_numbers(overall), ""))
    return rows


def _numbers(change: SuiteChange | OverallChange) -> tuple[str, str, str]:
    interval = "" if change.low is None or change.high is None else f" [{change.low:+.3f}, {change.high:+.3f}]"
    scores = f"{change.baseline_score:.3f} -> {change.current_score:.3f}"
    return scores, f"{change.delta:+.3f}{interval}", line(change.model)


def _class_changes(suite: SuiteChange) -> str:
    """The failures whose share of the attempts changed, such as `refusal 2 -> 7`, with the attempts where these differ."""
    before, after = suite.baseline_classes, suite.current_classes
    if not before or not after:
        return ""
    old, new = sum(before.values()), sum(after.values())
    of_old, of_new = ("", "") if old == new else (f"/{old:,}", f"/{new:,}")
    return ", ".join(
        f"{line(name)} {before.get(name, 0):,}{of_old} -> {after.get(name, 0):,}{of_new}"
        for name in ordered_class_counts(dict.fromkeys([*before, *after], 1))
        if name != "pass" and before.get(name, 0) * new != after.get(name, 0) * old
    )


def headline(comparison: ThresholdComparison) -> list[str]:
    """The size of a change, and how much of it noise alone would explain."""
    flags = counted(len(comparison.regressions), "regression")
    others = f"{counted(len(comparison.improvements), 'improvement')}, {comparison.unchanged:,} unchanged"
    noise = (
        f"noise alone would raise {comparison.expected_regressions:.1f} such regressions if nothing had changed: "
        "the threshold is not a statistical test"
    )
    scale = f"by more than {comparison.threshold:g} of the mean score under rule {line(comparison.rule)}"
    return [f"{flags}, {others} of {counted(comparison.compared, 'case')}, {scale}", noise]


def uncompared_names(comparison: ThresholdComparison) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What was not compared, under its reason."""
    for title, names in (
        (
            "Judged by older rules of steelyard, so not compared (judge the older run again: steelyard verify RUN)",
            comparison.rules_changed,
        ),
        ("With the same replies on both sides, from the reply cache, so not compared", comparison.replies_shared),
        ("New cases", comparison.new_cases),
        ("Removed cases", comparison.removed_cases),
        ("Judged by other tests now, so not compared", comparison.tests_changed),
        ("Without a score on one side", comparison.unscored),
        ("New models", comparison.new_models),
        ("Removed models", comparison.removed_models),
    ):
        if names:
            yield title, names


VERDICT_WORDS = {REGRESSED: "REGRESSED", NOT_REGRESSED: "NOT REGRESSED", CANNOT_TELL: "CANNOT TELL"}
MAX_LISTED_CASE_CHANGES = 20


def decision_text(decision: Decision, warnings: Sequence[str]) -> str:
    """What a person reads in a terminal: the verdict first, then the reasons."""
    lines = [_decision_headline(decision)]
    for model in decision.models:
        lines += [
            "",
            f"{line(model.model)}: {VERDICT_WORDS[model.verdict]}",
            *(f"  {reason}" for reason in reasons(model, decision)),
        ]
        for title, changes in _lists(model):
            lines += [f"  {title}", *(f"    {case_change(change)}" for change in changes[:MAX_LISTED_CASE_CHANGES])]
            if len(changes) > MAX_LISTED_CASE_CHANGES:
                lines.append(f"    and {len(changes) - MAX_LISTED_CASE_CHANGES:,} more")
    return "\n".join([*lines, *warning_lines(warnings)]) + "\n"


def decision_markdown(decision: Decision, warnings: Sequence[str]) -> str:
    """The same for a comment on a pull request."""
    parts = [f"### {_decision_headline(decision)}"]
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


def _decision_headline(decision: Decision) -> str:
    """The verdict, and where it is open what would decide it."""
    return open_headline(decision.models) if decision.verdict == CANNOT_TELL else VERDICT_WORDS[decision.verdict]


def open_headline(models: Sequence[ModelDecision]) -> str:
    """That the gate cannot tell, and the attempts and dollars that would decide about these models."""
    words = VERDICT_WORDS[CANNOT_TELL]
    if any(model.data_missing for model in models):
        return f"{words}: too many attempts have no verdict"
    needed = [model.further for model in models if model.verdict == CANNOT_TELL]
    known = [each for each in needed if each is not None]
    if not needed or len(known) < len(needed):
        return words
    costs = [each.cost_usd for each in known]
    cost = "" if None in costs else f", about {money(sum(each or 0.0 for each in costs))},"
    return f"{words}: {sum(each.attempts for each in known):,} more attempts{cost} would probably decide"


def decision_json(decision: Decision, warnings: Sequence[str]) -> str:
    """The same for a program."""
    return json_report({"decision": decision, "warnings": list(warnings)})


DECISION_FORMATS: dict[str, Callable[[Decision, Sequence[str]], str]] = {
    "text": decision_text,
    "json": decision_json,
    "markdown": decision_markdown,
}


def judged_decision_text(decision: JudgedDecision, warnings: Sequence[str]) -> str:
    """The decision by corrected rates, for a terminal."""
    lines = [VERDICT_WORDS[decision.verdict]]
    for model in decision.models:
        lines += ["", f"{line(model.model)}: {VERDICT_WORDS[model.verdict]}"]
        lines += [f"  {reason}" for reason in _judged_reasons(model, decision)]
    return "\n".join([*lines, *warning_lines(warnings)]) + "\n"


def judged_decision_markdown(decision: JudgedDecision, warnings: Sequence[str]) -> str:
    """The same for a comment on a pull request."""
    parts = [f"### {VERDICT_WORDS[decision.verdict]}"]
    for model in decision.models:
        parts.append(f"**{code(model.model)}: {VERDICT_WORDS[model.verdict]}**")
        parts.append(bullets(_judged_reasons(model, decision)))
    return "\n\n".join([*parts, *warning_parts(warnings)]) + "\n"


JUDGED_DECISION_FORMATS: dict[str, Callable[[JudgedDecision, Sequence[str]], str]] = {
    "text": judged_decision_text,
    "json": lambda decision, warnings: json_report({"decision": decision, "warnings": list(warnings)}),
    "markdown": judged_decision_markdown,
}


def _judged_change(model: JudgedModelDecision, decision: JudgedDecision) -> list[str]:
    """Both rates and what changed between them, without a verdict."""
    return list(islice(_judged_reasons(model, decision), 3))


JUDGED_COMPARISON_FORMATS: dict[str, Callable[[JudgedDecision], str]] = {
    "text": lambda decision: (
        "\n\n".join("\n  ".join([line(model.model), *_judged_change(model, decision)]) for model in decision.models)
        + "\n"
    ),
    "json": lambda decision: json_report(
        {
            "models": [
                {"model": each.model, "baseline": each.baseline, "current": each.current, "effect": each.effect}
                for each in decision.models
            ]
        }
    ),
    "markdown": lambda decision: (
        "\n\n".join(
            part
            for model in decision.models
            for part in (f"**{code(model.model)}**", bullets(_judged_change(model, decision)))
        )
        + "\n"
    ),
}


def _judged_reasons(model: JudgedModelDecision, decision: JudgedDecision) -> Iterator[str]:
    for name, each in (("baseline", model.baseline), ("current", model.current)):
        yield (
            f"{name}: judges say {rate(each.raw)}, corrected {rate(each.corrected)}, labels only {rate(each.labels_only)} "
            f"({counted(each.labels, 'label')} of {counted(each.answers, 'answer')})"
        )
    if model.effect.value is None:
        yield "a corrected difference needs 10 labels of this model on both sides: steelyard label RUN"
        return
    judges = "" if model.raw_effect is None else f"; the judges say {model.raw_effect * 100:+.1f} points"
    yield f"corrected change over {counted(model.cases, 'case')}: {effect_points(model.effect)}{judges}"
    if model.verdict == CANNOT_TELL and model.drop_bound is not None:
        yield (
            f"a drop of up to {model.drop_bound * 100:.1f} points cannot be ruled out, {decision.margin * 100:g} may pass: "
            "more labels or cases would decide"
        )


def reasons(model: ModelDecision, decision: Decision) -> Iterator[str]:
    """The reasons for the verdict, the most important first."""
    margin = decision.rule.margin
    what = {"passed": "pass rate", "score": "mean score"}[decision.rule.on]
    yield f"suite: {model.suite} by {what}, {effect_points(model.effect)} over {counted(model.cases, 'case')}"
    yield f"cases: {_cases_sentence(model, decision)}"
    sure = (
        f"p {_p(model.p_overall)} that the suite looks as bad when nothing changed (alarm at {model.overall_level:.3g})"
    )
    if model.suite == REGRESSED:
        yield sure + (": small but real" if model.small_but_real else "")
    elif model.suite == NOT_REGRESSED and model.drop_bound is not None:
        bound = round(model.drop_bound * 100, 1)
        most = f"by {bound:.1f} at the most" if bound >= 0 else f"they rose by {-bound:.1f} or more"
        yield f"these cases dropped by less than {margin * 100:g} points: {most}"
    elif model.drop_bound is not None:
        yield f"a drop of up to {min(model.drop_bound, 1) * 100:.1f} points cannot be ruled out, {margin * 100:g} may pass"
        yield sure
    if model.verdict != REGRESSED:
        if model.detectable is not None:
            drop = f"a mean drop of {model.detectable * 100:.1f} points" if model.detectable < 1 else "no mean drop"
            yield f"{drop} would have been seen four times out of five"
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


def _cases_sentence(model: ModelDecision, decision: Decision) -> str:
    """How many got worse and better, and what that means for the gate."""
    rule = decision.rule
    why = f" ({rule.cases_why})" if rule.cases_why else ""
    if rule.cases == "off":
        return f"not tested{why}"
    if model.case_verdict == "not tested":
        return "too few attempts to name any"
    better = f", {len(model.improved)} better" if rule.on == "passed" else ""
    if model.case_verdict != "worse":
        return f"none named as worse{better}"
    means = "this fails the gate" if rule.cases == "fail" else "this is a warning"
    worse = f"{len(model.confirmed)} got worse" if model.confirmed else "some got worse"
    return f"{worse}{better}; {means}{why}"


def _lists(model: ModelDecision) -> Iterator[tuple[str, tuple[CaseDrop, ...]]]:
    if model.confirmed:
        yield "Cases that got worse", model.confirmed
    if model.suspects:
        yield "Suspects, whose drops chance can explain", model.suspects
    if model.improved:
        yield "Cases that got better", model.improved


def case_change(change: CaseDrop) -> str:
    """What became of a case, in one line."""
    return f"{line(change.case)}  {change.baseline:.3f} -> {change.current:.3f}  p {_p(change.p)}"


def effect_points(estimate: Estimate) -> str:
    """A difference in points with its interval.

    >>> from steelyard.analysis.estimates import Estimate
    >>> effect_points(Estimate(value=-0.042, low=-0.079, high=-0.005))
    '-4.2 points [-7.9, -0.5]'
    """
    if estimate.value is None:
        return "not known"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value * 100:+.1f} points"
    return f"{estimate.value * 100:+.1f} points [{estimate.low * 100:.1f}, {estimate.high * 100:.1f}]"


def _p(value: float) -> str:
    return "<1e-12" if value < 1e-12 else f"{value:.2g}"


MAX_LISTED_PLAN_CASES = 5


def plan_text(plan: ComparisonPlan) -> str:
    """What a person reads in a terminal: the number first, then the details."""
    lines = [_headline(plan)]
    for model in plan.models:
        lines += ["", line(model.model), *(f"  {reason}" for reason in _reasons(model, plan)), ""]
        lines += aligned_lines([_heads(plan), *_rows(model)], to_the_right=True)
    return "\n".join([*lines, *warning_lines(list(_warnings(plan)))]) + "\n"


def plan_markdown(plan: ComparisonPlan) -> str:
    """The same for a comment on a pull request."""
    parts = [f"### {escaped(_headline(plan))}"]
    for model in plan.models:
        parts.append(f"**{code(model.model)}**")
        parts += [bullets(_reasons(model, plan)), markdown_table(_heads(plan), _rows(model))]
    return "\n\n".join([*parts, *warning_parts(list(_warnings(plan)))]) + "\n"


PLAN_FORMATS: dict[str, Callable[[ComparisonPlan], str]] = {
    "text": plan_text,
    "json": json_report,
    "markdown": plan_markdown,
}


def _headline(plan: ComparisonPlan) -> str:
    """What to ask for so that the drop is seen with every model."""
    what = f"to see a mean drop of {_drop_points(plan.detect)} from {line(plan.baseline)} with a chance of {plan.power:.0%}"
    needs = [model.seen or model.seen_with_more for model in plan.models]
    known = [need for need in needs if need is not None]
    if len(known) < len(needs):
        return f"More than {MAX_PLANNED_ATTEMPTS_PER_CASE:,} attempts per case {what}"
    sides = " on both sides" if any(need.baseline for need in known) else ""
    return f"{counted(max(need.current for need in known), 'attempt')} per case{sides} {what}"


def _reasons(model: ModelPlan, plan: ComparisonPlan) -> Iterator[str]:
    """What each answer takes."""
    each = f"{model.fewest}" if model.fewest == model.most else f"{model.fewest} to {model.most}"
    yield f"baseline: {counted(model.cases, 'case')} with {each} {'attempt' if model.most == 1 else 'attempts'} each, mean pass rate {model.rate:.1%}"
    for verdict, as_it_is, with_more in (
        ("REGRESSED after such a drop", model.seen, model.seen_with_more),
        ("REGRESSED if few cases lose half of their rate", model.seen_in_few, model.seen_in_few_with_more),
        ("NOT REGRESSED by as much, if nothing changed", model.cleared, model.cleared_with_more),
    ):
        if as_it_is is not None:
            yield f"{verdict}: {_need(model, as_it_is)}"
        elif with_more is not None:
            yield f"{verdict}: the baseline is too thin, even {MAX_PLANNED_ATTEMPTS_PER_CASE:,} attempts per case are not enough"
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
    drop = _drop_points(plan.detect)
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
    for model in plan.too_low:
        yield f"{line(model)} passes too rarely to drop by {_drop_points(plan.detect)}; a gate can only see it get better"
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


def _drop_points(drop: float) -> str:
    """A drop as people say it.

    >>> _drop_points(0.05), _drop_points(0.0123), _drop_points(0.01)
    ('5 points', '1.2 points', '1 point')
    """
    number = f"{drop * 100:.1f}".removesuffix(".0")
    return f"{number} point" if number == "1" else f"{number} points"
