"""Charts are valid, hold all that they show, and are the same every time."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

import jsonschema
import pytest

from steelyard.reports.charts import tiers as charts
from steelyard.reports.charts.tiers import CHART_COLOURS, chart_image
from steelyard.text import INVISIBLE_CHARACTER_PATTERN
from steelyard.tiers.analysis import ExperimentAnalysis, analyse_tiers
from steelyard.tiers.runs import JudgeIdentity, RunRating, RunSource, TierRun

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def all_charts() -> Iterator[tuple[str, dict[str, Any]]]:
    for number in (1, 2, 5):
        for name, spec in charts.charts(analysis(number)).items():
            yield f"{name} of {number}", spec
    for name, spec in charts.charts(analysis(tiers=("plain", HOSTILE, HOSTILE + "!"))).items():
        yield f"{name} of hostile tiers", spec


ALL = dict(all_charts())
pictured = pytest.mark.skipif(
    importlib.util.find_spec("vl_convert") is None and "CI" not in os.environ,
    reason="vl-convert-python is not installed",
)


def nodes(value: Any) -> Iterator[Any]:
    yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(below)


def test_there_is_a_chart_of_everything_there_is() -> None:
    assert tuple(charts.charts(analysis())) == NAMES
    assert tuple(charts.charts(analysis(judged=False))) == NAMES[:-1]
    bare = analyse_tiers([TierRun(model="m", tier="T0", case="a")])
    assert charts.charts(bare) == {}
    unpriced = analyse_tiers([TierRun(model="m", tier="T0", case="a", passed=True, impl_rate=0.5)])
    assert tuple(charts.charts(unpriced)) == ("pass-rate", "scores")


@pytest.mark.parametrize("name", ALL)
def test_a_chart_is_json_that_fetches_nothing_and_speaks_to_those_who_do_not_see_it(name: str) -> None:
    spec = ALL[name]
    text = json.dumps(spec, allow_nan=False)
    assert spec["$schema"] == "https://vega.github.io/schema/vega-lite/v5.json"
    assert [node for node in nodes(spec) if isinstance(node, dict) and "url" in node] == []
    assert INVISIBLE_CHARACTER_PATTERN.search(text.encode().decode("unicode-escape")) is None
    assert spec["description"].startswith(spec["title"]["text"])
    assert len(spec["description"]) > 40
    assert spec["usermeta"] == {"inputs": "0123abcd"}
    titles = [
        node["axis"]["title"] for node in nodes(spec) if isinstance(node, dict) and node.get("axis", {}).get("title")
    ]
    assert titles
    colours = set(re.findall("#[0-9A-Fa-f]{6}", text)) - {
        charts.CHART_GREY,
        charts.CHART_LIGHT_GREY,
        charts.CHART_DARK_GREY,
        "#EEEEEE",
    }
    assert colours <= set(CHART_COLOURS)


def test_charts_are_valid_by_the_schema_of_vega_lite() -> None:
    found = importlib.util.find_spec("altair")
    if found is None or found.origin is None:
        pytest.skip("the schema comes with altair")
    (path,) = Path(found.origin).parent.glob("vegalite/v5/schema/vega-lite-schema.json")
    validator = jsonschema.Draft7Validator(json.loads(path.read_text("utf-8")))
    for name, spec in ALL.items():
        assert [error.message[:200] for error in validator.iter_errors(spec)] == [], name


@pictured
@pytest.mark.parametrize("name", ALL)
def test_vega_lite_compiles_a_chart_without_a_warning(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    import vl_convert

    vl_convert.vegalite_to_vega(ALL[name], vl_version=charts.VEGA_LITE_VERSION, show_warnings=True)
    assert capfd.readouterr().err == ""


def marks(spec: dict[str, Any]) -> list[tuple[str, str]]:
    """Every drawn thing of a picture: what it is, and what it is called."""
    tree = ElementTree.fromstring(chart_image(spec, "svg"))
    return [
        (node.get("aria-roledescription", ""), node.get("aria-label", ""))
        for node in tree.iter()
        if node.get("aria-roledescription")
    ]


@pictured
def test_a_picture_holds_the_marks_of_every_tier() -> None:
    drawn = charts.charts(analysis())
    pass_rates = marks(drawn["pass-rate"])
    assert sum(kind == "point" for kind, _ in pass_rates) == 4
    assert sum(kind == "rule mark" for kind, _ in pass_rates) == 4
    assert sum(kind == "text mark" for kind, _ in pass_rates) == 4
    assert any("T2" in label for _, label in pass_rates)
    costs = chart_image(drawn["cost-of-pass"], "svg").decode()
    assert "no pass" in costs
    # nothing passed under T0, so its interval ends in an arrow and it has no dot
    assert sum(kind == "point" for kind, _ in marks(drawn["cost-of-pass"])) == 3 + 1
    assert sum(kind == "bar" for kind, _ in marks(drawn["scores"])) >= 8
    front = marks(drawn["cost-quality"])
    assert sum(kind == "line mark" for kind, _ in front) == 1
    assert sum(kind == "point" for kind, _ in front) == 4
    assert [label for kind, label in marks(drawn["judges"]) if kind == "bar"] != []


@pictured
@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_the_same_every_time(name: str) -> None:
    for picture in ("svg", "png"):
        assert chart_image(charts.charts(analysis())[name], picture) == chart_image(
            charts.charts(analysis())[name], picture
        )


@pictured
def test_a_png_is_one() -> None:
    assert chart_image(charts.charts(analysis())["pass-rate"], "png").startswith(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(ValueError, match="svg, png"):
        chart_image({}, "pdf")  # type: ignore[arg-type]  # that is the point


@pictured
@pytest.mark.parametrize("picture", ["svg", "png"])
def test_a_picture_fetches_nothing(picture: Literal["svg", "png"]) -> None:
    spec = charts.charts(analysis())["pass-rate"] | {"data": {"url": "http://127.0.0.1:9/rows.json"}}
    with pytest.raises(ValueError, match="not allowed"):
        chart_image(spec, picture)


@pictured
def test_no_name_becomes_markup_of_a_picture() -> None:
    for name in NAMES:
        svg = chart_image(ALL[f"{name} of hostile tiers"], "svg").decode()
        assert "<script" not in svg
        assert INVISIBLE_CHARACTER_PATTERN.search(svg) is None


def test_names_that_were_cut_to_the_same_stay_apart() -> None:
    long = "x" * 50
    spec = charts.charts(analysis(tiers=("T0", long + "1", long + "2")))["pass-rate"]
    assert len({row["tier"] for row in spec["data"]["values"]}) == 3


def test_more_tiers_than_can_be_told_apart_are_not_drawn() -> None:
    given = [
        TierRun(model="m", tier=f"T{place}", case=case, passed=True, impl_rate=0.5, cost_usd=0.1)
        for place in range(200)
        for case in "ab"
    ]
    spec = charts.charts(analyse_tiers(given, replicates=1))["pass-rate"]
    assert len(spec["data"]["values"]) == charts.MAX_CHART_TIERS
    assert spec["title"]["subtitle"][-1] == "the first 60 of 200 tiers"


def test_a_wide_range_of_costs_is_drawn_on_a_logarithmic_scale() -> None:
    def costs(*prices: float) -> dict[str, Any]:
        given = [
            TierRun(model="m", tier=f"T{place}", case=f"c{case}", passed=True, impl_rate=0.5, cost_usd=price)
            for place, price in enumerate(prices)
            for case in range(8)
        ]
        scale: dict[str, Any] = charts.charts(analyse_tiers(given))["cost-of-pass"]["layer"][0]["encoding"]["y"][
            "scale"
        ]
        return scale

    assert costs(0.01, 5.0)["type"] == "log"
    assert costs(0.5, 1.0)["type"] == "linear"
    # what is free has no place on a logarithmic scale
    assert costs(0.0, 5.0)["type"] == "linear"


def test_without_the_package_one_sentence_says_how_to_get_it() -> None:
    program = (
        "import sys\n"
        "sys.modules['vl_convert'] = None\n"
        "from steelyard.errors import InputError\n"
        "from steelyard.reports.charts.tiers import chart_image\n"
        "try:\n"
        "    chart_image({}, 'svg')\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert (
        said
        == "pictures of charts need the package vl-convert-python; install it with: pip install 'steelyard[charts]'\n"
    )
