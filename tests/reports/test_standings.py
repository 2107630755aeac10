"""Where models stand reads as reviewed, whatever the format and whatever a model is called."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from steelyard.analysis.counts import Standings, Tally, standings
from steelyard.reports.lists import STANDINGS_FORMATS, rows_text, standings_text
from steelyard.text import INVISIBLE_CHARACTER_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = "=cmd|'/c calc'!A1 <b>\x1b]0;x\x07@octocat\u202e"


def found() -> Standings:
    plain = Tally("gemini", ["a", "b", "c"], [10, 10, 10], [10, 7, 0], costs=[0.1, 0.2, 0.1], scores=[1.0, 0.9, 0.2])
    thin = Tally(HOSTILE, ["a", "b", "c"], [10, 3, 0], [5, 0, 0], missing=2)
    return standings([plain, thin], [1, 5, 20])


def test_the_table_reads_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("standings.txt", standings_text(found(), color=False))


def test_the_comment_reads_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("standings.md", STANDINGS_FORMATS["markdown"](found()))


def test_a_spreadsheet_gets_the_columns_of_the_document_first(golden: Callable[[str, str], None]) -> None:
    text = STANDINGS_FORMATS["csv"](found())
    golden("standings.csv", text)
    head, first, second = csv.reader(io.StringIO(text))
    assert head[:4] == ["LLM", "pass@1", "pass@5", "pass@20"]
    assert [float(first[1]), first[3]] == [17 / 30, ""]
    assert second[0].startswith("'=cmd")


def test_a_program_gets_nothing_for_what_cannot_be_estimated() -> None:
    models = json.loads(STANDINGS_FORMATS["json"](found()))["models"]
    assert models[0]["pass_at"]["20"]["value"] is None
    assert models[0]["pass_at"]["1"]["low"] < 17 / 30 < models[0]["pass_at"]["1"]["high"]
    assert models[1]["unscored"] == ["c"]


def test_no_name_commands_a_terminal() -> None:
    for text in (standings_text(found(), color=False), *(form(found()) for form in STANDINGS_FORMATS.values())):
        assert INVISIBLE_CHARACTER_PATTERN.search(text.replace("@\u200b", "@")) is None
    assert INVISIBLE_CHARACTER_PATTERN.search(rows_text([HOSTILE], [[HOSTILE]], color=False)) is None


def test_an_answer_without_rows_still_has_its_columns() -> None:
    assert rows_text(["model", "rate"], [], color=False) == "model  rate\n"


def test_a_wide_table_is_never_cut() -> None:
    many = standings([Tally("m" * 300, ["a", "b"], [50, 50], [20, 30])], range(1, 20))
    assert "…" not in standings_text(many, color=False)
