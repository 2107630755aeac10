"""The median and the 95th percentile of latencies, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from steelyard.analysis.attempts import AttemptTable, Column
from steelyard.analysis.case_attempts import CasesByColumn
from steelyard.stats.descriptive import percentile, streamed_percentiles

LATENCY_SHARES = (0.5, 0.95)
MAX_SORTED_LATENCIES = 250_000
"""Latencies of one model that are sorted in memory; more are counted in several passes over the attempts."""


def latency_quantiles(table: AttemptTable, by_column: CasesByColumn) -> Mapping[Column, Sequence[float | None]]:
    """For each model half, and nineteen of twenty, of its replies take no longer than these; None where no time is known."""
    indexes = {column: index for index, column in enumerate(table.columns)}
    judged = {column: set(asked) for column, asked in by_column.items()}

    def latencies(column: Column) -> Iterator[float]:
        index, cases = indexes[column], judged[column]
        return (
            row.latency for row in table.rows if row.column == index and row.latency is not None and row.case in cases
        )

    few: dict[Column, list[float]] = {}
    found: dict[Column, Sequence[float | None]] = {}
    for column, asked in by_column.items():
        size = sum(attempts.replies.latencies for attempts in asked.values())
        if size <= MAX_SORTED_LATENCIES:
            few[column] = []
        else:
            found[column] = streamed_percentiles(lambda column=column: latencies(column), LATENCY_SHARES, size)  # type: ignore[misc]
    wanted = {indexes[column]: (values, judged[column]) for column, values in few.items() if column in indexes}
    if wanted and any(attempts.replies.latencies for column in few for attempts in by_column[column].values()):
        for row in table.rows:
            if row.latency is not None and row.column in wanted and row.case in wanted[row.column][1]:
                wanted[row.column][0].append(row.latency)
    return found | {column: [percentile(values, share) for share in LATENCY_SHARES] for column, values in few.items()}
