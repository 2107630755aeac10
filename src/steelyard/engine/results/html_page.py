"""The page of a run out of its folder, in little memory however long the run is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from steelyard.analysis.attempts import attempt_text, placed_attempt_table
from steelyard.analysis.summary import summarise_attempts
from steelyard.comparison.threshold import compare
from steelyard.engine.gate.gate import gate_sides
from steelyard.engine.gate.sides import side
from steelyard.engine.results import tier_runs
from steelyard.errors import InputError
from steelyard.reports.html import BaselineReport, HtmlReportData, page
from steelyard.reports.page import shown_attempts, truncated_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.records import SuiteRule
    from steelyard.store.journal import StoredRun
    from steelyard.tiers.results import ExperimentAnalysis


MAX_PAGE_TEXT_CHARACTERS, MIN_PAGE_TEXT_CHARACTERS, MAX_ALL_PAGE_TEXTS_CHARACTERS = 100_000, 2_000, 10_000_000
"""Characters that are kept of a text at most, at least, and of one text of every attempt together."""

ShortenedValue = TypeVar("ShortenedValue")


def shortened(value: ShortenedValue, most: int) -> ShortenedValue:
    r"""A record whose texts have at most `most` characters; in longer ones a note stands for the middle.

    >>> shortened(("ab", "a" * 50 + "b" * 50), 6)
    ('ab', 'aaaa\n[94 characters left out]\nbb')
    """
    return cast("ShortenedValue", _shortened(value, most))


def _shortened(value: Any, most: int) -> Any:
    if isinstance(value, str):
        short = truncated_text(value, most)
        return f"{short.head}\n[{short.left_out:,} characters left out]\n{short.tail}" if short.left_out else value
    if isinstance(value, tuple):
        return tuple(_shortened(each, most) for each in value)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {
            name: new for name, old in fields.items() if (new := _shortened(old, most)) is not old and new != old
        }
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def baseline_comparison(baseline: str, current: str, *, rule: str | None, root: Path) -> BaselineReport:
    """How one side compares with another, by threshold and by the gate; no look at a run is counted."""
    old, new = (side(name, rule=rule, root=root) for name in (baseline, current))
    found = gate_sides(old, new)
    return BaselineReport(compare(old, new), found.decision, found.warnings)


def html_page(
    stored: StoredRun,
    *,
    k: Sequence[int] | None = None,
    rule: str | None = None,
    suites: SuiteRule | None = None,
    held: BaselineReport | None = None,
) -> str:
    """The page of a run, by its own k and rules or by others; of a large one only the texts that are shown are kept.

    The journal is read once for the numbers of all attempts, and again for the texts of those that are chosen.
    """
    info, cases = stored.info, stored.cases
    table = placed_attempt_table(info, cases, stored.placed(), rule=rule)
    summary = summarise_attempts(info, cases, table, k=k, rule=rule, suites=suites)
    picked = shown_attempts(table.rows)
    most = max(
        MIN_PAGE_TEXT_CHARACTERS,
        min(MAX_PAGE_TEXT_CHARACTERS, MAX_ALL_PAGE_TEXTS_CHARACTERS // max(1, len(picked.rows))),
    )
    wanted = {place for row in picked.rows for place in (row.reply_place, row.verdict_place, row.failure_place)}
    facts = {place: shortened(fact, most) for place, fact in stored.placed() if place in wanted}
    shown = [attempt_text(cases, table.columns, row, facts) for row in picked.rows]
    judgments: dict[str, Any] = tier_runs.reply_judgments(stored, {tried.reply.key for tried in shown if tried.reply})
    return page(HtmlReportData(info, cases, summary, table, picked, shown, judgments, _analysis(stored), held))


def _analysis(stored: StoredRun) -> ExperimentAnalysis | None:
    """What there is to say of tiers; None where there are none, or nothing to hold them against yet."""
    info = stored.info
    if info.experiment is None and info.panel is None:
        return None
    try:
        return tier_runs.analysis(tier_runs.tier_experiment(stored))
    except InputError:
        return None
