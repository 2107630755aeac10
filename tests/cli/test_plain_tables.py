"""Tables that are laid out without a library are those of the library."""

from __future__ import annotations

import itertools

from steelyard.cli.plain_tables import MAX_PLAIN_COLUMNS, plain_rows
from steelyard.reports.lists import rows_text

CELLS = ("", "a", "two words", " leading", "two\nlines", "12.5", "[bold]x[/bold]", ":smile:", "\x1b[31mred", "x" * 100)


def test_a_plain_table_has_the_bytes_of_the_one_that_is_laid_out_with_color_in_mind() -> None:
    heads = (["model"], ["model", "count_star()"], ["", "b", ""])
    for head, shift in itertools.product(heads, range(len(CELLS))):
        for count in (0, 1, 4):
            rows = [
                [CELLS[(shift + 3 * row + place) % len(CELLS)] for place in range(len(head))] for row in range(count)
            ]
            assert plain_rows(head, rows) == rows_text(head, rows, color=False)


def test_what_needs_more_than_padding_is_left_to_the_library() -> None:
    assert plain_rows(["model"], [["日本"]]) is None
    assert plain_rows(["é"], []) is None
    assert plain_rows(["x" * MAX_PLAIN_COLUMNS], [["a"]]) is None
