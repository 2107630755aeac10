"""A drawing is shapes and text, whatever the names in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

from steelyard.reports.charts.spec import Axis, Chart, ChartPanel, Layer, Point, share_axis
from steelyard.reports.charts.svg import svg_element, svg_file

HOSTILE = """</text><script>alert(1)</script><a href="javascript:alert(2)">'&<!--"""


def hostile(name: str = "one") -> Chart:
    """A chart with a hostile text wherever text can stand."""
    y = Axis(HOSTILE, (HOSTILE, "plain"))
    points = (Point(1 / 3, HOSTILE, label=HOSTILE), Point(0.7, "plain", label=HOSTILE))
    layers = (Layer("dot", points, 0, width=8), Layer("text", points, 1, dx=4), Layer("bar", points, width=10))
    panel = ChartPanel(share_axis(HOSTILE), y, layers, title=HOSTILE)
    return Chart(name, HOSTILE, HOSTILE, (panel,), ("a", HOSTILE), (("b", HOSTILE),), (HOSTILE, "other"))


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_only_shapes_and_text_are_drawn() -> None:
    for text in (str(svg_element(hostile())), svg_file(hostile())):
        page = Elements(text)
        assert {tag for tag, _ in page.found} <= {"svg", "title", "desc", "style", "rect", "path", "circle", "text"}
        names = {name for tag, attributes in page.found for name in attributes if tag != "svg"}
        assert names <= {
            *("id", "x", "y", "width", "height", "d", "cx", "cy", "r", "fill", "stroke", "stroke-width"),
            *("opacity", "font-size", "text-anchor", "transform", "stroke-dasharray"),
        }
        assert HOSTILE in "".join(page.texts)


def test_ids_of_a_drawing_are_its_own_and_numbers_are_short() -> None:
    first, second = (str(svg_element(hostile(name))) for name in ("one", "two"))
    assert 'id="chart-one-title"' in first
    assert "chart-one" not in second
    assert re.search(r"\d\.\d{3}", first) is None


def test_a_drawing_has_words_for_those_who_do_not_see_it() -> None:
    chart = hostile()._replace(title="Latency", head=("model", "median"), rows=(("m", "3 s"),))
    for text in (str(svg_element(chart)), svg_file(chart)):
        assert 'role="img" aria-labelledby="chart-one-title" aria-describedby="chart-one-desc"' in text
        assert '<title id="chart-one-title">Latency</title><desc id="chart-one-desc">model m: median 3 s</desc>' in text


def test_a_file_follows_the_theme_of_its_reader() -> None:
    text = svg_file(hostile())
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "@media (prefers-color-scheme: dark)" in text


def test_labels_of_panels_above_each_other_do_not_touch() -> None:
    points = (Point(0.1, 0.2), Point(0.7, 0.9))
    panels = tuple(ChartPanel(share_axis("x"), share_axis(name), (Layer("dot", points, 0),)) for name in "ab")
    page = Elements(str(svg_element(Chart("two", "", "", panels, ("a",), (("b",),)))))
    labels = sorted(
        float(said["y"] or 0) for tag, said in page.found if tag == "text" and said.get("text-anchor") == "end"
    )
    assert len(labels) >= 4
    assert min(after - before for before, after in pairwise(labels)) >= 10
