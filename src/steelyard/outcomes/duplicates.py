"""Rows that tell of the same attempt twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.outcomes.codes import MISSING_CODE, TRUE_CODE
from steelyard.outcomes.counter import OutcomeRows
from steelyard.outcomes.problems import OutcomeProblemCollector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import numpy.typing as npt


def without_repeats(
    batches: Sequence[OutcomeRows], name: Callable[[int, int, int], str], complaints: OutcomeProblemCollector
) -> Sequence[OutcomeRows]:
    """The rows, each attempt once; rows that contradict each other about an attempt are complained about.

    Every batch has samples; `name` puts an attempt into words, given the numbers of its model, case and sample.
    """
    import numpy as np

    batches = [rows for rows in batches if len(rows.cases)]
    if not batches:
        return batches
    models, cases, samples = (
        1 + max(int(column.max()) for column in columns)
        for columns in zip(*((rows.models, rows.cases, _samples(rows)) for rows in batches), strict=True)
    )
    keys = np.concatenate(
        [(rows.models.astype(np.int64) * cases + rows.cases) * samples + _samples(rows) for rows in batches]
    )
    if not _has_repeats(keys, models * cases * samples):
        return batches
    order = np.argsort(keys, kind="stable")
    is_again = np.zeros(len(keys), bool)
    is_again[1:] = keys[order][1:] == keys[order][:-1]
    starts_at = np.maximum.accumulate(np.where(is_again, 0, np.arange(len(keys))))
    first, again = order[starts_at[is_again]], order[is_again]
    in_file_order = np.argsort(again)
    first, again = first[in_file_order], again[in_file_order]
    is_same = np.ones(len(again), bool)
    for fact in _fact_arrays(batches):
        is_same &= (fact[again] == fact[first]) | (np.isnan(fact[again]) & np.isnan(fact[first]))
    ends = np.cumsum([len(rows.cases) for rows in batches])
    lines = np.concatenate([np.asarray(rows.lines) for rows in batches])
    file_of = np.repeat([rows.file.number for rows in batches], [len(rows.cases) for rows in batches])

    def place(row: int) -> tuple[OutcomeRows, int]:
        rows = batches[at := int(np.searchsorted(ends, row, "right"))]
        return rows, row - int(ends[at]) + len(rows.cases)

    for number in np.unique(file_of[again]).tolist():
        for kind, topic in ((True, "counted once"), (False, "contradiction")):
            chosen = np.flatnonzero((file_of[again] == number) & (is_same == kind))
            if len(chosen):
                earlier, later = place(int(first[chosen[0]])), place(int(again[chosen[0]]))
                what = _sentence(earlier, later, name)
                complaints.add(later[0].file, topic, what, lines[again[chosen]], fatal=not kind)
    keep = np.ones(len(keys), bool)
    keep[again] = False
    return [rows.chosen(kept) for rows, kept in zip(batches, np.split(keep, ends[:-1]), strict=True)]


def _samples(rows: OutcomeRows) -> npt.NDArray[Any]:
    if rows.samples is None:
        raise TypeError("rows without samples repeat nothing")
    return rows.samples


def _fact_arrays(batches: Sequence[OutcomeRows]) -> list[npt.NDArray[Any]]:
    """All that the rows say about their attempts, one array per column."""
    import numpy as np

    columns = zip(*((rows.outcomes, rows.costs, rows.scores) for rows in batches), strict=True)
    return [np.concatenate(column) for column in columns if column[0] is not None]


def _has_repeats(keys: npt.NDArray[Any], room: int) -> bool:
    """Whether a key occurs twice: by flags where they take little room, else by sorting."""
    import numpy as np

    if room <= 8 * len(keys) + (1 << 20):
        seen = np.zeros(room, bool)
        seen[keys] = True
        return int(np.count_nonzero(seen)) < len(keys)
    ordered = np.sort(keys)
    return bool((ordered[1:] == ordered[:-1]).any())


def _sentence(
    first: tuple[OutcomeRows, int], again: tuple[OutcomeRows, int], name: Callable[[int, int, int], str]
) -> str:
    """What two rows about one attempt have to do with each other."""
    (earlier, at), (later, here) = first, again
    attempt = name(int(later.models[here]), int(later.cases[here]), int(_samples(later)[here]))
    where = f"{earlier.file.unit} {int(earlier.lines[at])}"
    if earlier.file is not later.file:
        where += f" of {earlier.file.name}"
    now, before = _row_description(later, here), _row_description(earlier, at)
    if now == before:
        return f"{attempt} stands on {where} already; counted once"
    return f"{attempt} is {now} here but {before} on {where}; keep one of the two"


def _row_description(rows: OutcomeRows, at: int) -> str:
    outcome = int(rows.outcomes[at])
    words = ["true" if outcome == TRUE_CODE else "without outcome" if outcome == MISSING_CODE else "false"]
    for noun, column in (("cost", rows.costs), ("score", rows.scores)):
        if column is not None:
            number = float(column[at])
            words.append(f"without {noun}" if number != number else f"of {noun} {number!r}")
    return ", ".join(words)
