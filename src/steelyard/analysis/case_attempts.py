"""The attempts of each model at each case, and means over the cases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from steelyard.analysis.attempts import NO_PLACE, AttemptRow, AttemptTable, Column, planned_columns
from steelyard.analysis.estimates import Estimate, mean
from steelyard.records import Case, RunInfo


@dataclass(slots=True)
class CaseAttempts:
    """The attempts of one model, under one tier, at one case."""

    case: Case
    is_asked: bool = False
    """Whether any fact is about it."""
    correct: int = 0
    answered: list[AttemptRow] = field(default_factory=list)
    judged: list[AttemptRow] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    """How many attempts have no verdict, by the reason."""

    @property
    def group(self) -> str:
        """Cases of one group are not independent."""
        return case_group(self.case)

    @property
    def classes(self) -> Counter[str]:
        """How many judged attempts are of each class."""
        return Counter("pass" if row.outcome == "correct" else row.failure for row in self.judged)

    @property
    def cost(self) -> float | None:
        """What the judged attempts cost; None if a price is unknown."""
        known = [row.cost_usd for row in self.judged if row.cost_usd is not None]
        return math.fsum(known) if len(known) == len(self.judged) else None

    @property
    def planned(self) -> int:
        return len(self.judged) + self.missing.total()

    def values(self, of: Sequence[float | None]) -> list[float]:
        """One value for every judged attempt that has it, given the value of each digest."""
        return [value for row in self.judged if (value := of[row.digest]) is not None]


CasesByColumn = dict[Column, dict[int, CaseAttempts]]
"""By model and tier, then by the index of the case; both sorted."""


def attempts_by_case(
    info: RunInfo, cases: Sequence[Case], table: AttemptTable, *, rows: Iterable[AttemptRow] | None = None
) -> CasesByColumn:
    """All rows, or some of them, by model and case, with the attempts that were planned and not begun."""
    # a model that never answered is missing, not absent
    found: CasesByColumn = {column: {} for column in planned_columns(info)}
    by_judges = {order for order, case in enumerate(cases) if case.by_judges}
    for row in table.rows if rows is None else rows:
        if row.case in by_judges:
            continue
        by_case = found.setdefault(table.columns[row.column], {})
        attempts = by_case.get(row.case)
        if attempts is None:
            attempts = by_case[row.case] = CaseAttempts(cases[row.case], is_asked=True)
        if row.reply_place != NO_PLACE:
            attempts.answered.append(row)
        if row.digest != NO_PLACE:
            attempts.correct += row.outcome == "correct"
            attempts.judged.append(row)
        else:
            attempts.missing["no verdict yet" if row.failure_place == NO_PLACE else row.reason] += 1
    for column, by_case in found.items():
        for order, case in enumerate(cases):
            if order in by_judges or (order not in by_case and info.unrecorded.get(column.model, 0)):
                continue
            attempts = by_case.setdefault(order, CaseAttempts(case))
            if (unasked := (info.fair_samples(column.model, case.id) or 0) - attempts.planned) > 0:
                attempts.missing["not asked yet"] += unasked
    return {column: dict(sorted(found[column].items())) for column in sorted(found)}


def case_group(case: Case) -> str:
    """The group of a case; a case without one is a group of its own."""
    return f"group {case.group}" if case.group else f"case {case.id}"


def shared_groups(groups: list[str]) -> list[str] | None:
    """The group of each case; None when no two cases share one."""
    return groups if len(set(groups)) < len(groups) else None


def groups_of(cases: Iterable[CaseAttempts]) -> list[str] | None:
    """The group of each case; None when no two cases share one."""
    return shared_groups([attempts.group for attempts in cases])


def mean_pass(
    of: Callable[[int, int, int], float | None],
    cases: Sequence[CaseAttempts],
    k: int,
    counts: Sequence[tuple[int, int]] | None = None,
) -> Estimate:
    """The mean pass@k or pass^k of the cases with at least k judged attempts.

    `counts` are attempts and successes at each case, if success is not the same as being correct.
    """
    if counts is None:
        counts = [(len(attempts.judged), attempts.correct) for attempts in cases]
    values = {pair: of(*pair, k) for pair in set(counts)}
    usable = [
        (attempts, value) for attempts, pair in zip(cases, counts, strict=True) if (value := values[pair]) is not None
    ]
    size = sum(len(attempts.judged) for attempts, _ in usable)
    return mean([value for _, value in usable], size, groups=groups_of(attempts for attempts, _ in usable))


def mean_value(cases: Sequence[CaseAttempts], of: Sequence[float | None]) -> Estimate:
    """The mean over cases of the mean over their attempts, given the value of each digest."""
    known = [(attempts, values) for attempts in cases if (values := attempts.values(of))]
    means = [math.fsum(values) / len(values) for _, values in known]
    return mean(means, sum(len(values) for _, values in known), groups=groups_of(attempts for attempts, _ in known))


def total_cost(rows: Iterable[AttemptRow]) -> float | None:
    """What the priced replies cost; None when no reply has a price."""
    prices = [row.cost_usd for row in rows if row.cost_usd is not None]
    return math.fsum(prices) if prices else None


def most_frequent(reasons: Iterable[str]) -> str:
    """The reason given most often, the smallest of ties, with its count when there were several.

    >>> most_frequent(["wrong answer", "time limit", "wrong answer"])
    '2x wrong answer'
    """
    counts = Counter(reasons)
    if not counts:
        return ""
    reason = min(counts, key=lambda reason: (-counts[reason], reason))
    return f"{counts[reason]}x {reason}" if counts[reason] > 1 else reason
