"""What changed between two runs, for people, pull requests and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from steelyard.reports.figures import counted, escaped_json, line
from steelyard.reports.markdown import code, escaped, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.compare import Change, Comparison


def text(comparison: Comparison) -> str:
    """What a person reads in a terminal."""
    said = [f"{line(comparison.baseline)} -> {line(comparison.current)}", "", *_headline(comparison)]
    width = max((len(line(change.case_id)) for change in _changes(comparison)), default=0)
    for title, changes in (("Regressions", comparison.regressions), ("Improvements", comparison.improvements)):
        if changes:
            said += ["", title]
        for change in changes:
            numbers = f"{change.baseline_score:.3f} -> {change.current_score:.3f}  {change.delta:+.3f}"
            said.append(f"  {line(change.case_id):<{width}}  {numbers}  {line(change.model)}")
    for title, names in _lists(comparison):
        said += ["", title, *(f"  {line(name)}" for name in names)]
    return "\n".join(said) + "\n"


def markdown(comparison: Comparison) -> str:
    """The same for a comment on a pull request."""
    parts = [f"### {code(comparison.baseline)} → {code(comparison.current)}"]
    parts.append("\n".join(f"- {escaped(said)}" for said in _headline(comparison)))
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
            parts += [f"#### {title}", table(["case", "model", "baseline", "current", "delta"], rows, "---")]
    for title, names in _lists(comparison):
        parts += [f"#### {title}", "\n".join(f"- {code(name)}" for name in names)]
    return "\n\n".join(parts) + "\n"


def as_json(comparison: Comparison) -> str:
    """The same for a program."""
    return escaped_json(msgspec.json.format(msgspec.json.encode(comparison), indent=2).decode()) + "\n"


FORMATS: dict[str, Callable[[Comparison], str]] = {"text": text, "json": as_json, "markdown": markdown}


def _changes(comparison: Comparison) -> tuple[Change, ...]:
    return (*comparison.regressions, *comparison.improvements)


def _headline(comparison: Comparison) -> list[str]:
    flags = counted(len(comparison.regressions), "regression")
    others = f"{counted(len(comparison.improvements), 'improvement')}, {comparison.unchanged:,} unchanged"
    noise = (
        f"noise alone would raise {comparison.expected_regressions:.1f} such regressions if nothing had changed: "
        "the threshold is no test"
    )
    scale = f"by more than {comparison.threshold:g} of the mean score under rule {line(comparison.rule)}"
    return [f"{flags}, {others} of {counted(comparison.compared, 'case')}, {scale}", noise]


def _lists(comparison: Comparison) -> Iterator[tuple[str, tuple[str, ...]]]:
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
