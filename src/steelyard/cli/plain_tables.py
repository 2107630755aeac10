"""Tables without color, laid out as `reports.lists` does it and without its libraries, which take longer to load than to use."""

from __future__ import annotations

from collections.abc import Sequence

MAX_PLAIN_COLUMNS = 10_000
"""Columns of a page above which a table is folded."""
GAP = "  "


def plain_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str | None:
    """The same text as `rows_text` without color; None where letters may be wider than one column, or lines must be folded."""
    from steelyard.text import line

    head = [line(column) for column in columns]
    cells = [[line(cell, 80) for cell in row] for row in rows]
    if not all(cell.replace("…", "").isascii() for row in (head, *cells) for cell in row):
        return None
    if not rows:
        return f"{GAP.join(head).rstrip()}\n"
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    if sum(widths) + len(GAP) * len(widths) > MAX_PLAIN_COLUMNS:
        return None
    laid_out = (GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *cells))
    return "\n".join(map(str.rstrip, laid_out)).rstrip("\n") + "\n"
