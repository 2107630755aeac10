"""Everybody can read it: contrasts of the palette by WCAG 2.2, in light, in dark and on paper."""

from __future__ import annotations

import re

import pytest

from steelyard.reports.charts.spec import (
    CHART_COLOURS,
    CHART_DARK_GREY,
    CHART_GREY,
    CHART_GRID_COLOUR,
    CHART_LIGHT_GREY,
)
from steelyard.reports.charts.svg import DARK_COLOURS
from steelyard.reports.page import style

STYLE = str(style())


def palette(theme: str) -> dict[str, str]:
    """The colours of a theme by name."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    light, dark, paper = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", block)) for block in blocks)
    found = {"light": light, "dark": light | dark, "print": light | paper}[theme]
    return {
        name: value if len(value) == 7 else "#" + "".join(2 * each for each in value[1:])
        for name, value in found.items()
    }


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


TEXTS = [
    *((ink, ground) for ink in ("ink", "soft", "accent") for ground in ("page", "sheet", "fill")),
    *((f"{state}-ink", state) for state in ("full", "part", "none", "gap")),
    *((f"{state}-ink", ground) for state in ("full", "part", "none") for ground in ("page", "sheet", "fill")),
    *((f"code-{kind}", "fill") for kind in ("keyword", "string", "number", "comment", "name", "builtin")),
    *((f"chart-{ink}", "sheet") for ink in ("ink", "soft")),
    ("page", "accent"),
]
SHAPES = [(f"hue-{number}", "sheet") for number in range(1, 8)]


def test_a_contrast_is_as_defined() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
@pytest.mark.parametrize(("ink", "ground"), TEXTS)
def test_text_can_be_read(ink: str, ground: str, theme: str) -> None:
    colours = palette(theme)
    assert contrast(colours[ink], colours[ground]) >= 4.5, f"{colours[ink]} on {colours[ground]}"


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
@pytest.mark.parametrize(("ink", "ground"), SHAPES)
def test_lines_and_bars_can_be_seen(ink: str, ground: str, theme: str) -> None:
    colours = palette(theme)
    assert contrast(colours[ink], colours[ground]) >= 3, f"{colours[ink]} on {colours[ground]}"


def test_every_colour_of_a_chart_has_one_of_the_page() -> None:
    for colour in CHART_COLOURS:
        assert f'[fill="{colour}"]' in STYLE
        assert f'[stroke="{colour}"]' in STYLE
    for colour in (CHART_GREY, CHART_DARK_GREY):
        assert f'[fill="{colour}"]' in STYLE
    for colour in (CHART_GREY, CHART_LIGHT_GREY, CHART_GRID_COLOUR):
        assert f'[stroke="{colour}"]' in STYLE


def test_a_drawing_of_its_own_has_the_colours_of_the_page_in_the_dark() -> None:
    dark = palette("dark")
    for number, colour in enumerate(CHART_COLOURS, 1):
        assert DARK_COLOURS[colour] == dark[f"hue-{number}"]
    for colour, name in (
        (CHART_DARK_GREY, "ink"),
        (CHART_GREY, "soft"),
        (CHART_LIGHT_GREY, "rule"),
        (CHART_GRID_COLOUR, "grid"),
    ):
        assert DARK_COLOURS[colour] == dark[f"chart-{name}"]
    assert DARK_COLOURS["#FFFFFF"] == dark["sheet"]


def test_every_name_of_a_colour_that_is_used_is_known_in_both_themes() -> None:
    used = set(re.findall(r"var\(--([\w-]+)\)", STYLE)) - {"tone", "tone-fill", "sign", "swatch"}
    assert used <= palette("light").keys()
    assert palette("light").keys() == palette("dark").keys()


def test_the_style_asks_for_nothing_and_ends_where_it_ends() -> None:
    assert not re.search(r"url\(|@import|@font-face|//|</", STYLE)
    assert STYLE.count("{") == STYLE.count("}")
