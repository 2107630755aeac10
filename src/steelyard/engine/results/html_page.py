"""The page of a run out of its folder, in little memory however long the run is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from steelyard.analysis import scoring
from steelyard.analysis.summary import added_up, endings, tries
from steelyard.comparison.threshold import compare
from steelyard.engine.gate.gate import gated
from steelyard.engine.gate.sides import side
from steelyard.engine.results import tier_runs
from steelyard.errors import InputError
from steelyard.reports.html import Against, Material, cut, page
from steelyard.reports.outlines import chosen, outlines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.records import SuiteRule
    from steelyard.store import Stored
    from steelyard.tiers.analysis import Analysis


MOST, FEWEST, ALL = 100_000, 2_000, 10_000_000
"""Characters that are kept of a text at most, at least, and of one text of every attempt together."""

Kept = TypeVar("Kept")


def shortened(value: Kept, most: int) -> Kept:
    r"""A record whose texts have at most so many characters; of longer ones the middle is left out, and that is said.

    >>> shortened(("ab", "a" * 50 + "b" * 50), 6)
    ('ab', 'aaaa\n[94 characters left out]\nbb')
    """
    return cast("Kept", _shortened(value, most))


def _shortened(value: Any, most: int) -> Any:
    if isinstance(value, str):
        short = cut(value, most)
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


def against(baseline: str, current: str, *, rule: str | None, root: Path) -> Against:
    """How one side compares with another, by threshold and by the gate; no look at a run is counted."""
    old, new = (side(name, rule=rule, root=root) for name in (baseline, current))
    found = gated(old, new)
    return Against(compare(old, new), found.decision, found.warnings)


def html_page(
    stored: Stored,
    *,
    k: Sequence[int] | None = None,
    rule: str | None = None,
    suites: SuiteRule | None = None,
    held: Against | None = None,
) -> str:
    """The page of a run, by its own k and rules or by others; of a large one only the texts that are shown are kept.

    The journal is read once for the numbers of all attempts, and again for the texts of those that are chosen.
    """
    info, cases = stored.info, stored.cases
    ends = list(endings(cases, stored.facts()))
    summary = added_up(info, cases, ends, k=k, rule=rule, suites=suites)
    attempts = outlines(cases, ends, scoring.rule(rule or info.rule, info.rules))
    del ends
    picked = chosen(attempts)
    most = max(FEWEST, min(MOST, ALL // max(1, len(picked.places))))
    facts = (fact for fact in stored.facts() if (fact.case, fact.model, fact.tier, fact.number) in picked.places)
    shown = tries(info, cases, (shortened(fact, most) for fact in facts), rule=rule)
    heard: dict[str, Any] = tier_runs.heard(stored, {tried.reply.key for tried in shown if tried.reply})
    return page(Material(info, cases, summary, attempts, picked, shown, heard, _analysis(stored), held))


def _analysis(stored: Stored) -> Analysis | None:
    """What there is to say of tiers; None where there are none, or nothing to hold them against yet."""
    info = stored.info
    if info.experiment is None and info.panel is None:
        return None
    try:
        return tier_runs.analysis(tier_runs.compared(stored))
    except InputError:
        return None
