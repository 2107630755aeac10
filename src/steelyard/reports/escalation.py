"""The table of what the first judges of a panel decide alone, and what asking all would change."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.reports.figures import money, points, rate
from steelyard.reports.tables import ReportTable
from steelyard.text import counted, line
from steelyard.tiers.escalation import MIN_CHECKED_SCORES, EscalatedPanel, EscalationEffect

MAX_LISTED_JUDGES = 3


def escalation_table(escalated: EscalatedPanel) -> ReportTable:
    """One row per tier, beside what its judges say now."""
    head = ["tier", "by the first alone", "checked", "overruled"]
    has_passes = any(each.pass_rate is not None for each in escalated.tiers)
    head += ["judged pass rate", "if all were asked"] if has_passes else []
    head += ["impl rate", "if all were asked"]
    rows = [_row(each, has_passes) for each in escalated.tiers]
    return ReportTable(head, rows, "Judges that were asked first", tuple(_sentences(escalated)))


def _row(each: EscalationEffect, has_passes: bool) -> list[str]:
    passes, scores = each.pass_rate_if_all_asked, each.impl_rate_if_all_asked
    row = [line(each.tier), f"{each.alone:,} of {each.answers:,}", f"{each.checked:,}", f"{each.overruled:,}"]
    if has_passes:
        row += ["-" if each.pass_rate is None else f"{each.pass_rate:.1%}", rate(passes) if passes else "-"]
    return [*row, "-" if each.impl_rate is None else f"{each.impl_rate:.3f}", points(scores) if scores else "-"]


def _sentences(escalated: EscalatedPanel) -> Iterator[str]:
    rule = escalated.escalation
    names = ", ".join(line(judge, 60) for judge in escalated.first[:MAX_LISTED_JUDGES])
    rest = len(escalated.first) - MAX_LISTED_JUDGES
    yield (
        f"{names}{f' and {rest} more' if rest > 0 else ''} judged every answer; the others only where that was closer than "
        f"{rule.unsure_within:g} to the pass threshold or undecided, and {rule.check_share:.0%} of the rest as a check"
    )
    saved = "" if escalated.saved_usd is None else f", which saved about {money(escalated.saved_usd)}"
    yield f"{counted(escalated.unasked, 'judgment')} less than if all had judged every answer{saved}"
    if any(each.alone for each in escalated.tiers):
        yield (
            "if all were asked: what all judges would say of these answers, estimated from the checked ones, which were drawn "
            "at random; its interval adds to those above"
        )
        yield "how far judges agree is known of the unsure and the checked answers alone"
    if any(_is_unknown(each) for each in escalated.tiers):
        yield (
            f"-: too few were checked (a pass rate needs one answer that passes and one that fails, an impl rate "
            f"{MIN_CHECKED_SCORES}); a larger check_share checks more"
        )


def _is_unknown(each: EscalationEffect) -> bool:
    found = (each.pass_rate_if_all_asked, each.impl_rate_if_all_asked)
    return any(estimate is not None and estimate.value is None for estimate in found)
