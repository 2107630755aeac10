"""What changed between two runs, for people, pull requests and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from steelyard.analysis.suites import ordered_class_counts
from steelyard.reports.tables import aligned_lines, bullets, code, escaped, json_text, markdown_table
from steelyard.text import counted, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.comparison.threshold import CaseScoreChange, OverallChange, SuiteChange, ThresholdComparison


def text(comparison: ThresholdComparison) -> str:
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


def markdown(comparison: ThresholdComparison) -> str:
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


def as_json(comparison: ThresholdComparison) -> str:
    """The same for a program."""
    whole = msgspec.to_builtins(comparison)
    if not comparison.suites:
        del whole["suites"], whole["overall"]
    return json_text(whole)


COMPARISON_FORMATS: dict[str, Callable[[ThresholdComparison], str]] = {
    "text": text,
    "json": as_json,
    "markdown": markdown,
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
    """How much changed, and how much of it noise alone would change."""
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
        ("New cases", comparison.new_cases),
        ("Removed cases", comparison.removed_cases),
        ("Judged by other tests now, so not compared", comparison.tests_changed),
        ("Without a score on one side", comparison.unscored),
        ("New models", comparison.new_models),
        ("Removed models", comparison.removed_models),
    ):
        if names:
            yield title, names
