"""The page of a run."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec
import pytest
from msgspec.structs import replace

from steelyard.records import Case
from steelyard.reports import FORMATS
from steelyard.reports.figures import UNSEEN, plain
from steelyard.reports.html import report
from steelyard.summary import Results

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "nav", "main", "section", "article", "footer"),
    *("h1", "h2", "h3", "h4", "p", "a", "code", "pre", "div", "span", "strong", "small", "br", "b", "i", "ul", "ol"),
    *("li", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "dl", "dt", "dd", "label", "input"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "scope", "style", "open", "type"),
    *("tabindex", "aria-label", "aria-hidden"),
}
EMPTY = {"meta", "br", "input"}


class Page(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.pre: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in EMPTY:
            self.open.append(tag)
        if tag == "pre":
            self.pre.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open and self.open[-1] == "pre":
            self.pre[-1] += data

    def handle_comment(self, data: str) -> None:
        pytest.fail(f"a comment: {data}")

    def unknown_decl(self, data: str) -> None:
        pytest.fail(f"a declaration: {data}")

    def handle_pi(self, data: str) -> None:
        pytest.fail(f"a processing instruction: {data}")


@pytest.fixture
def page(results: Results) -> Page:
    return Page(report(results))


def test_every_element_is_closed_in_order(page: Page) -> None:
    assert page.open == []


def test_no_element_or_attribute_came_from_a_model(page: Page) -> None:
    assert {tag for tag, _ in page.elements} <= ELEMENTS
    assert {name for _, attributes in page.elements for name in attributes} <= ATTRIBUTES


def test_markup_in_texts_adds_no_element(results: Results, page: Page) -> None:
    tame = msgspec.json.encode(results).translate(bytes.maketrans(b"<>&", b"()+"))
    harmless = Page(report(msgspec.json.decode(tame, type=Results)))
    assert [tag for tag, _ in harmless.elements] == [tag for tag, _ in page.elements]


def test_no_attribute_holds_what_others_wrote(page: Page) -> None:
    written = [value for _, attributes in page.elements for name, value in attributes.items() if name != "content"]
    assert all(re.fullmatch(r"[\w\s#:;.%()/,-]*", value) for value in written)


def test_links_lead_to_places_on_the_page(page: Page) -> None:
    places = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    links = [attributes["href"] for _, attributes in page.elements if "href" in attributes]
    assert links
    assert all(link.startswith("#") and link[1:] in places for link in links)
    assert len(places) == sum("id" in attributes for _, attributes in page.elements)


def test_the_page_asks_the_network_for_nothing(results: Results, page: Page) -> None:
    policy = next(attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    style = report(results).partition("<style>")[2].partition("</style>")[0]
    assert not re.search(r"url\(|@import|@font-face|//", style)
    assert all("//" not in value for _, attributes in page.elements for value in attributes.values())


def test_there_is_no_script(page: Page) -> None:
    assert "script" not in {tag for tag, _ in page.elements}
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)


def test_hostile_texts_are_shown_as_they_are(page: Page, hostile: str) -> None:
    assert page.pre.count(f"\n{plain(hostile)}") > 5


def test_leading_blank_lines_of_a_reply_are_kept(results: Results) -> None:
    case = Case(id="blank", prompt="\n\nfirst")
    page = Page(report(results._replace(cases=(case,))))
    # a browser drops one newline after <pre>
    assert "\n\n\nfirst" in page.pre


def test_nothing_invisible_reaches_the_page(results: Results) -> None:
    assert UNSEEN.search(report(results)) is None


def test_the_headline_comes_first_with_its_interval(page: Page) -> None:
    text = "".join(page.texts)
    assert text.index("83.3%") < text.index("[40.1, 97.1]") < text.index("Cases and models\n")


def test_a_cell_says_in_words_what_its_colour_says(results: Results) -> None:
    cells = re.findall(r'class="cell (\w+)" href="#[\w-]+">(.*?)</a>', report(results))
    assert cells == [
        ("full", "2/2"),
        ("part", "1/2"),
        ("part", "1/2"),
        ("none", "0/2"),
        ("full", "1/1<small>1 missing</small>"),
        ("gap", "-<small>2 missing</small>"),
    ]


def test_an_inconclusive_run_says_so_before_its_numbers(results: Results) -> None:
    text = report(results)
    assert text.index("Cannot tell.") < text.index("83.3%")
    certain = results._replace(summary=replace(results.summary, conclusive=True))
    assert "Cannot tell." not in report(certain)


def test_a_forged_and_an_unsteady_attempt_wear_a_badge_and_are_listed(results: Results, page: Page) -> None:
    text = report(results)
    assert text.count('<span class="mark none">tampered</span>') == 1
    assert text.count('<span class="mark part">disagreed</span>') == 1
    said = "".join(page.texts)
    assert "3 attempts tried to forge their result and count as failed" in said
    assert "borrow #1 · openai/gpt-5: passed at first, then failed 2 of 3 times" in said
    assert "Verified: 5 isolated, bubblewrap; 1 in-process, bubblewrap" in said


def test_a_run_without_attempts_is_a_page(results: Results) -> None:
    nothing = replace(results.summary, models=(), cases=(), warnings=())
    assert Page(report(results._replace(attempts=(), cases=(), summary=nothing))).open == []


def test_the_same_results_give_the_same_bytes(results: Results) -> None:
    assert report(results) == report(results)


def test_a_suffix_names_its_format() -> None:
    suffixes = {".json": "json", ".md": "markdown", ".html": "html", ".csv": "csv", ".xml": "junit", ".sarif": "sarif"}
    assert suffixes | {".jsonl": "results"} == FORMATS
