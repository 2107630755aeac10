"""Charts are valid, hold all that they show, and are the same every time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from steelyard.reports.charts import tiers
from steelyard.reports.charts.svg import svg_file
from steelyard.text import INVISIBLE_CHARACTER_PATTERN
from steelyard.tiers.analysis import analyse_tiers
from steelyard.tiers.results import ExperimentAnalysis, JudgeIdentity, RunRating, RunSource, TierRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.reports.charts.spec import Chart

NAMES = ("pass-rate", "cost-of-pass", "scores", "cost-quality", "judges")
HOSTILE = "=cmd <script>alert(1)</script> \x1b]0;x\x07 {{7*7}} datum['x'] \u202e"


def analysis(
    models: int = 1, *, tiers: tuple[str, ...] = ("T0", "T1", "T2", "T3"), judged: bool = True
) -> ExperimentAnalysis:
    """T0 never passes; every tier after it is better and dearer than the one before, but for the last."""
    runs = [
        TierRun(
            model=f"m{model}",
            tier=tier,
            case=f"c{case}",
            number=number,
            passed=place > 0 and (case + 3 * number + model) % 7 < 2 + 2 * place,
            impl_rate=0.3 + 0.15 * min(place, 2) + 0.03 * case,
            cost_usd=0.1 * (place + 1) + 0.01 * case,
        )
        for model in range(models)
        for place, tier in enumerate(tiers)
        for case in range(9)
        for number in range(3)
    ]
    ratings = [
        RunRating(run=run.identity, judge=JudgeIdentity(judge), impl_rate=(run.impl_rate or 0) + shift)
        for run in runs
        for judge, shift in (("anne", 0.1), ("ben", -0.1 + 0.01 * run.number))
        if judged
    ]
    return analyse_tiers(runs, ratings, replicates=50, sources=[RunSource(name="runs.csv", digest="0123abcd")])


def charts(of: ExperimentAnalysis) -> dict[str, Chart]:
    return {chart.name: chart for chart in tiers.charts(of)}


def all_charts() -> Iterator[tuple[str, Chart]]:
    for number in (1, 2, 5):
        for name, chart in charts(analysis(number)).items():
            yield f"{name} of {number}", chart
    for name, chart in charts(analysis(tiers=("plain", HOSTILE, HOSTILE + "!"))).items():
        yield f"{name} of hostile tiers", chart


ALL = dict(all_charts())


def test_there_is_a_chart_of_everything_there_is() -> None:
    assert tuple(charts(analysis())) == NAMES
    assert tuple(charts(analysis(judged=False))) == NAMES[:-1]
    bare = analyse_tiers([TierRun(model="m", tier="T0", case="a")])
    assert charts(bare) == {}
    unpriced = analyse_tiers([TierRun(model="m", tier="T0", case="a", passed=True, impl_rate=0.5)])
    assert tuple(charts(unpriced)) == ("pass-rate", "scores")


@pytest.mark.parametrize("name", ALL)
def test_a_chart_speaks_to_those_who_do_not_see_it(name: str) -> None:
    chart = ALL[name]
    assert chart.title
    assert len(chart.description) > 40
    assert any(panel.x.title or panel.y.title for panel in chart.panels)


def shapes(chart: Chart) -> Counter[str]:
    """How many shapes of each kind a drawing has."""
    return Counter(node.tag.rpartition("}")[2] for node in ElementTree.fromstring(svg_file(chart)).iter())


def test_a_drawing_holds_the_marks_of_every_tier() -> None:
    drawn = charts(analysis())
    assert shapes(drawn["pass-rate"])["circle"] == 4
    texts = svg_file(drawn["pass-rate"])
    assert all(f">{tier}</text>" in texts for tier in ("T0", "T1", "T2", "T3"))
    # nothing passed under T0, so its interval ends in an arrow and it has no dot
    assert shapes(drawn["cost-of-pass"])["circle"] == 3
    assert ">no pass</text>" in svg_file(drawn["cost-of-pass"])
    assert shapes(drawn["scores"])["rect"] >= 1 + 8
    front = [row for row in drawn["cost-quality"].rows if row[-1] == "yes"]
    assert shapes(drawn["cost-quality"])["circle"] == 4 + len(front)
    assert svg_file(drawn["cost-quality"]).count('stroke-dasharray="4 3"') == 1
    assert shapes(drawn["judges"])["rect"] == 1 + 2


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_is_the_same_every_time(name: str) -> None:
    assert svg_file(charts(analysis())[name]) == svg_file(charts(analysis())[name])


@pytest.mark.parametrize("name", ALL)
def test_a_drawing_fetches_nothing_and_no_name_becomes_markup(name: str) -> None:
    text = svg_file(ALL[name])
    root = ElementTree.fromstring(text)
    tags = {node.tag.rpartition("}")[2] for node in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "path", "circle", "text"}
    names = {attribute for node in root.iter() for attribute in node.attrib}
    assert not any(attribute.startswith("on") or "href" in attribute or attribute == "style" for attribute in names)
    assert "url(" not in text
    assert "<script" not in text
    assert INVISIBLE_CHARACTER_PATTERN.search(text) is None


@pytest.mark.parametrize("name", ALL)
def test_a_chart_has_its_numbers_in_a_table(name: str) -> None:
    chart = ALL[name]
    assert chart.rows
    assert {len(row) for row in chart.rows} == {len(chart.head)}


def test_names_that_were_cut_to_the_same_stay_apart() -> None:
    long = "x" * 50
    chart = charts(analysis(tiers=("T0", long + "1", long + "2")))["pass-rate"]
    assert len(set(chart.panels[0].y.names)) == 3
    assert len({row[0] for row in chart.rows}) == 3


def test_more_tiers_than_can_be_told_apart_are_not_drawn() -> None:
    given = [
        TierRun(model="m", tier=f"T{place}", case=case, passed=True, impl_rate=0.5, cost_usd=0.1)
        for place in range(200)
        for case in "ab"
    ]
    chart = charts(analyse_tiers(given, replicates=1))["pass-rate"]
    assert len(chart.panels[0].y.names) == len(chart.rows) == tiers.MAX_CHART_TIERS
    assert chart.subtitle.endswith("; the first 60 of 200 tiers")


def test_a_wide_range_of_costs_is_drawn_on_a_logarithmic_scale() -> None:
    def is_log(*prices: float) -> bool:
        given = [
            TierRun(model="m", tier=f"T{place}", case=f"c{case}", passed=True, impl_rate=0.5, cost_usd=price)
            for place, price in enumerate(prices)
            for case in range(8)
        ]
        chart = charts(analyse_tiers(given))["cost-of-pass"]
        return chart.panels[0].x.is_log

    assert is_log(0.01, 5.0)
    assert not is_log(0.5, 1.0)
    # what is free has no place on a logarithmic scale
    assert not is_log(0.0, 5.0)
