"""The list of runs as it is printed."""

from __future__ import annotations

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.headlines import ModelHeadline
from steelyard.cli.run_list import listed_lines
from steelyard.engine.results.headline_cache import run_lines

HEADLINE = ModelHeadline(
    model="openai/gpt-5", attempts=4, correct=3, missing=1, pass_at_1=Estimate(value=0.75), cost_usd=0.25
)
NAME = "20260203-040506-ab12"
ONE = run_lines(NAME, [HEADLINE], "2026-02-03T04:05:06+00:00", ["evals/geo.toml", "more/\x1b[2Jx.jsonl"])


def test_a_list_of_runs_has_date_eval_set_rate_and_cost_and_fits_sixty_columns() -> None:
    lines = list(listed_lines([ONE], width=60, color=False))
    assert [text.split("  ", 1)[0] for text in lines] == [NAME, ""]
    assert "  2026-02-03 04:05  geo, " in lines[0]
    assert lines[1] == "  openai/gpt-5  75.0%  3/4  $0.250  1 missing"
    assert "\x1b" not in "".join(lines)
    assert max(map(len, lines)) <= 60
    assert list(listed_lines([], width=60, color=False)) == ["no runs yet"]


def test_rates_counts_and_costs_of_a_list_stand_below_each_other() -> None:
    certain = Estimate(value=1.0, low=0.7, high=1.0)
    sure = ModelHeadline(model="a/b", attempts=10, correct=10, missing=0, pass_at_1=certain, cost_usd=12.5)
    bare = ModelHeadline(model="a/longer", attempts=4, correct=0, missing=2, pass_at_1=Estimate(value=0.0))
    lines = listed_lines([run_lines("monday", [sure]), run_lines("tuesday", [bare])], width=80, color=False)
    assert [text for text in lines if text.startswith("  ")] == [
        "  a/b       100.0% [70.0, 100.0]  10/10  $12.50",
        "  a/longer    0.0%                  0/4          2 missing",
    ]


def test_what_does_not_fit_is_cut_behind_the_name_and_figures_get_a_line() -> None:
    lines = list(listed_lines([ONE], width=36, color=True))
    assert lines == [
        f"\x1b[1m{NAME}\x1b[0m  2026-02-03 04…",
        "  openai/gpt-5",
        "    75.0%  3/4  $0.250  1 missing",
    ]


def test_names_of_double_width_are_aligned_by_columns() -> None:
    wide = run_lines("r", [ModelHeadline(model=name, attempts=1, correct=1, missing=0) for name in ("模型", "abcdef")])
    assert list(listed_lines([wide], width=60, color=False))[1:] == ["  模型    -  1/1", "  abcdef  -  1/1"]
