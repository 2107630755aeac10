"""A drawing as a part of a page: nothing in it but shapes and text, and words for those who do not see it."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup, escape

ALLOWED_SVG_ELEMENTS = frozenset(("svg", "g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clipPath"))
ALLOWED_SVG_ATTRIBUTES = frozenset(
    (
        *("clip-path", "cx", "cy", "d", "dx", "dy", "fill", "fill-opacity", "font-size", "font-style", "font-weight"),
        *("height", "id", "opacity", "r", "stroke", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"),
        *("stroke-miterlimit", "stroke-opacity", "stroke-width", "text-anchor", "transform", "viewBox", "width"),
        *("x", "x1", "x2", "y", "y1", "y2"),
    )
)
"""What a drawing needs; whatever else its maker writes is left out, and all that could be followed or run is among it."""

_LONG_DECIMAL_PATTERN = re.compile(r"-?\d+\.\d{3,}")


SVG_SCALE = 1.25
"""Pixels of a page per pixel of a drawing: its letters are made for a denser page."""


WIDE_SVG_PIXELS = 500
"""A drawing of more pixels wants the width of the page."""


class InlineSvg(NamedTuple):
    """An element of a page."""

    markup: Markup
    is_wide: bool


def inline_svg(drawing: bytes, name: str, title: str, description: str) -> InlineSvg:
    """An SVG file as an element of a page, under a name that no other drawing of the page has.

    Colours stay as they are: the page's style says what becomes of each in light, in dark and on paper.
    """
    root = ElementTree.fromstring(drawing)  # noqa: S314  drawn by us a moment ago, from data, and without a document type
    width, height = (float(root.get(side, "0")) for side in ("width", "height"))
    said = Markup('<title id="{0}-title">{1}</title><desc id="{0}-desc">{2}</desc>').format(name, title, description)
    head = Markup(
        '<svg role="img" aria-labelledby="{0}-title" aria-describedby="{0}-desc" width="{1}" height="{2}" viewBox="{3}">'
    ).format(name, round(width * SVG_SCALE), round(height * SVG_SCALE), f"0 0 {width:g} {height:g}")
    whole = Markup("").join([head, said, *(_element(child, name) for child in root), Markup("</svg>")])
    return InlineSvg(whole, width > WIDE_SVG_PIXELS)


def _element(element: ElementTree.Element, name: str) -> Markup:
    tag = element.tag.rpartition("}")[2]
    if tag not in ALLOWED_SVG_ELEMENTS or _is_unseen(tag, element):
        return Markup("")
    kept = {
        key: value
        for key, value in element.attrib.items()
        if key in ALLOWED_SVG_ATTRIBUTES and not _is_default(key, value)
    }
    attributes = Markup("").join(Markup(' {}="{}"').format(key, _value(key, kept[key], name)) for key in kept)
    inside = Markup("").join([escape(element.text or ""), *(_element(child, name) for child in element)])
    if tag == "g" and not inside:
        return Markup("")
    if tag == "g" and not kept:
        return inside
    return Markup("<{0}{1}>{2}</{0}>").format(tag, attributes, inside)


def _is_unseen(tag: str, element: ElementTree.Element) -> bool:
    if element.get("display") == "none" or element.get("opacity") == "0":
        return True
    if tag == "rect":
        return element.get("fill") == "transparent"
    return tag == "path" and element.get("d", "") in ("", "M0,0h0v0h0Z")


def _is_default(key: str, value: str) -> bool:
    return (key, value) in {("opacity", "1"), ("transform", "translate(0,0)"), ("font-weight", "normal")}


def _value(key: str, value: str, name: str) -> str:
    """An attribute of a drawing: numbers as exact as a screen, and names that are its own."""
    if key == "id":
        return f"{name}-{value}"
    if key == "clip-path":
        return re.sub(r"url\(#", f"url(#{name}-", value)
    return _LONG_DECIMAL_PATTERN.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), value)
