"""A drawing on a page is shapes and text, whatever its maker wrote."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from steelyard.reports.charts.svg import ALLOWED_SVG_ATTRIBUTES, ALLOWED_SVG_ELEMENTS, inline_svg

HOSTILE = b"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="100" height="50"
  onload="alert(1)" viewBox="0 0 100 50"><script>alert(2)</script><style>@import url(http://evil.invalid)</style>
  <a xlink:href="javascript:alert(3)"><text>link</text></a><image href="http://evil.invalid/x.png"/>
  <foreignObject><p>page</p></foreignObject><animate onbegin="alert(4)"/><use href="#x"/>
  <g onclick="alert(5)" style="fill:url(http://evil.invalid)" transform="translate(0,0)"><path d="M0,0h0v0h0Z"/></g>
  <g clip-path="url(#clip0)"><text fill="#262626" transform="translate(53.500000000000014,16)">&lt;script&gt;6&lt;/script&gt;</text></g>
  <defs><clipPath id="clip0"><rect width="1" height="1"/></clipPath></defs>
  <text opacity="0">unseen</text></svg>"""


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


def test_only_shapes_and_text_are_left() -> None:
    page = Elements(str(inline_svg(HOSTILE, "one", "<b>title</b>", '"described" & <i>')[0]))
    tags = {tag for tag, _ in page.found}
    assert tags <= {element.lower() for element in ALLOWED_SVG_ELEMENTS} | {"title", "desc"}
    names = {name for tag, attributes in page.found for name in attributes if tag not in ("svg", "title", "desc")}
    assert names <= {attribute.lower() for attribute in ALLOWED_SVG_ATTRIBUTES}
    said = "".join(page.texts)
    assert "<script>6</script>" in said
    assert "<b>title</b>" in said
    assert "unseen" not in said
    assert "alert" not in said
    assert all("evil" not in str(value) for _, attributes in page.found for value in attributes.values())


def test_names_inside_a_drawing_are_its_own_and_numbers_are_short() -> None:
    first, second = (str(inline_svg(HOSTILE, name, "t", "d")[0]) for name in ("one", "two"))
    assert 'clip-path="url(#one-clip0)"' in first
    assert 'id="one-clip0"' in first
    assert "one-" not in second
    assert "translate(53.5,16)" in first
    assert re.search(r"\d\.\d{3}", first) is None


def test_a_drawing_speaks_to_those_who_do_not_see_it() -> None:
    drawn = inline_svg(HOSTILE, "one", "Latency", "m: 3 s.")
    assert 'role="img" aria-labelledby="one-title" aria-describedby="one-desc"' in drawn.markup
    assert '<title id="one-title">Latency</title><desc id="one-desc">m: 3 s.</desc>' in drawn.markup
    assert not drawn.is_wide
