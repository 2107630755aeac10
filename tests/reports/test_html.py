"""The page of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise

import msgspec
import pytest
from msgspec.structs import replace

from steelyard.analysis.summary import RunResults
from steelyard.records import Message
from steelyard.reports import REPORT_FORMAT_BY_SUFFIX, html, report_format_of
from steelyard.reports.html import html_report_data, report
from steelyard.reports.page import style
from steelyard.text import INVISIBLE_CHARACTER_PATTERN, plain
from steelyard.tiers.rubrics import CategoryScore, ItemScore, JudgingResult, RubricScore
from support.hostile_texts import TEXTS

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "nav", "main", "section", "article", "footer"),
    *("h1", "h2", "h3", "h4", "p", "a", "code", "pre", "div", "span", "strong", "small", "br", "b", "i", "ul", "ol"),
    *("li", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "dl", "dt", "dd", "label", "input"),
    *("figure", "figcaption", "svg", "desc", "path", "rect", "circle", "text"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "scope", "style", "open", "type"),
    *("tabindex", "aria-label", "aria-hidden", "aria-labelledby", "aria-describedby", "role"),
    *("width", "height", "viewbox", "fill", "stroke", "d", "x", "y", "cx", "cy", "r", "transform", "opacity"),
    *("stroke-width", "stroke-dasharray", "text-anchor", "font-size"),
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


@pytest.fixture(scope="module")
def drawn() -> dict[str, Page]:
    """The page, made once."""
    return {}


@pytest.fixture
def page(results: RunResults, drawn: dict[str, Page]) -> Page:
    """The whole page."""
    return drawn.setdefault("page", Page(report(results)) if "page" not in drawn else drawn["page"])


def written(results: RunResults) -> str:
    """The page as text."""
    return html.page(html_report_data(results))


def test_every_element_is_closed_in_order(page: Page) -> None:
    assert page.open == []


def test_no_element_or_attribute_came_from_a_model(page: Page) -> None:
    assert {tag for tag, _ in page.elements} <= ELEMENTS
    assert {name for _, attributes in page.elements for name in attributes} <= ATTRIBUTES


def test_markup_in_texts_adds_no_element(results: RunResults, page: Page) -> None:
    tame = msgspec.json.encode(results).translate(bytes.maketrans(b"<>&", b"()+"))
    harmless = Page(report(msgspec.json.decode(tame, type=RunResults)))
    assert "script" in "".join(harmless.texts)
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


def test_the_page_asks_the_network_for_nothing(results: RunResults, page: Page) -> None:
    policy = next(attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    style = written(results).partition("<style>")[2].partition("</style>")[0]
    assert not re.search(r"url\(|@import|@font-face|//", style)
    assert all("//" not in value for _, attributes in page.elements for value in attributes.values())


def test_there_is_no_script(page: Page) -> None:
    assert "script" not in {tag for tag, _ in page.elements}
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)


def test_hostile_texts_are_shown_as_they_are(page: Page, hostile: str) -> None:
    assert page.pre.count(f"\n{plain(hostile)}") > 5


def test_leading_blank_lines_of_a_reply_are_kept(results: RunResults) -> None:
    case = replace(results.cases[0], prompt="\n\nfirst")
    attempts = tuple(tried._replace(case=case) for tried in results.attempts[:4])
    page = Page(written(results._replace(cases=(case,), attempts=attempts)))
    # a browser drops one newline after <pre>
    assert "\n\n\nfirst" in page.pre


def test_nothing_invisible_reaches_the_page(results: RunResults) -> None:
    assert INVISIBLE_CHARACTER_PATTERN.search(written(results)) is None


def test_the_headline_comes_first_with_its_interval(page: Page) -> None:
    text = "".join(page.texts)
    assert text.index("83.3%") < text.index("[40.1, 97.1]") < text.index("Cases and models\n")


def test_a_cell_says_in_words_what_its_colour_says(results: RunResults) -> None:
    cells = re.findall(r'class="cell (\w+)" href="#[\w-]+">(.*?)</a>', written(results))
    assert cells == [
        ("full", "2/2"),
        ("part", "1/2"),
        ("part", "1/2"),
        ("none", "0/2"),
        ("full", "1/1<small>1 missing</small>"),
        ("gap", "-<small>2 missing</small>"),
    ]


def test_every_mark_has_a_sign_besides_its_colour_and_its_word() -> None:
    css = str(style())
    for state in ("full", "part", "none", "gap"):
        assert re.search(rf"\.mark\.{state}::before {{ content: \"\S ?\"", css)
        assert re.search(rf"\.cell\.{state}::before", css)
    for state in ("good", "bad", "unsure", "ahead", "plain"):
        assert re.search(rf"\.verdict\.{state} {{[^}}]*--sign: \"\S\"", css)


def test_an_inconclusive_run_says_so_before_its_numbers(results: RunResults) -> None:
    text = written(results)
    assert text.index("Cannot tell</p>") < text.index("83.3%")
    certain = results._replace(summary=replace(results.summary, conclusive=True))
    assert "Cannot tell</p>" not in written(certain)


def test_who_is_ahead_is_said_first_and_how_sure_that_is(results: RunResults) -> None:
    certain = results._replace(summary=replace(results.summary, conclusive=True))
    text = written(certain)
    said = text.index("No model is clearly ahead")
    assert said < text.index("openai/gpt-5 is 50.0 points of pass@1 [") < text.index("83.3%")
    assert "ahead of evil/&lt;b&gt;=m`1|, over 2 cases that both tried" in text


def test_a_run_of_one_model_says_how_much_of_it_is_correct(results: RunResults) -> None:
    strong = results.summary.models[0]
    alone = replace(results.summary, models=(strong,), conclusive=True)
    text = written(results._replace(summary=alone))
    assert "80.0% correct" in text
    assert "4 of 5 attempts are correct; 3 of 3 cases were solved at least once." in text


def test_a_forged_and_an_unsteady_attempt_wear_a_badge_and_are_listed(results: RunResults) -> None:
    text = written(results)
    assert text.count('<span class="mark none">tampered</span>') == 1
    assert text.count('<span class="mark part">disagreed</span>') == 1
    said = "".join(Page(text).texts)
    assert "3 attempts tried to forge their result and count as failed" in said
    assert "borrow #1 · openai/gpt-5: passed at first, then failed 2 of 3 times" in said
    assert "Verified: 5 isolated, bubblewrap; 1 in-process, bubblewrap" in said


def test_a_page_has_charts_with_words_and_numbers_for_those_who_do_not_see_them(page: Page) -> None:
    drawings = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert len(drawings) >= 4
    assert all(each["role"] == "img" and each["aria-labelledby"] and each["aria-describedby"] for each in drawings)
    said = "".join(page.texts)
    assert "The numbers" in said
    assert "Kinds of failures" in said


def test_headings_go_down_one_level_at_a_time(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_what_judges_said_stands_with_the_attempt(results: RunResults, hostile: str) -> None:
    tried = results.attempts[4]
    assert tried.reply is not None
    judgment = RubricScore(
        categories={
            hostile: CategoryScore(score=0.25, reason=hostile, items={"a": ItemScore(achieved=1, reason=hostile)})
        },
        score=0.25,
        passed=False,
        grade="F",
        reasoning=hostile,
    )
    heard = {tried.reply.key: [JudgingResult(hostile, 1, judgment), JudgingResult("other/judge", 2, None, hostile)]}
    page = Page(html.page(html_report_data(results)._replace(judgments=heard)))
    said = " ".join("".join(page.texts).split())
    assert "does not pass score 0.250" in said
    assert "other/judge, asked again (2) no judgment" in said
    assert {tag for tag, _ in page.elements} <= ELEMENTS


def test_every_chart_is_drawn_without_an_extra_package_and_has_its_numbers_in_a_table(results: RunResults) -> None:
    text = report(results)
    assert text.count("<svg") == text.count('<details class="numbers">') >= 4
    assert "pip install" not in text


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_text_adds_no_element_wherever_it_stands(name: str, results: RunResults) -> None:
    text = TEXTS[name][:5_000]

    def with_text(said: str) -> list[str]:
        case = replace(
            results.cases[1],
            id=said,
            name=said,
            tags=(said,),
            language=said[:20],
            prompt=(Message(role=said, content=said),),
        )
        first = results.attempts[4]
        assert first.verdict is not None
        assert first.reply is not None
        found = replace(
            first.verdict.found, code=said, reason=said, output=said, label=said, missing=(said,), isolation=said
        )
        answer = replace(first.reply.answer, text=said, finish=said, reasoning=said, transcript=said, error=said)
        tried = first._replace(
            case=case,
            model=said,
            reply=replace(first.reply, answer=answer),
            verdict=replace(first.verdict, found=found),
        )
        models = (replace(results.summary.models[0], model=said),)
        cases = (replace(results.summary.cases[2], case=said, model=said, why=said),)
        summary = replace(results.summary, models=models, cases=cases, warnings=(said,))
        page = Page(written(results._replace(cases=(case,), attempts=(tried,), summary=summary)))
        assert page.open == []
        return [tag for tag, _ in page.elements if tag not in ("span", "pre")]

    lines = "x\n" * 50 if "\n" in text or len(text) > 180 else "x"
    assert set(with_text(text)) <= ELEMENTS
    assert abs(len(with_text(text)) - len(with_text(lines))) <= 6


def test_a_run_without_attempts_is_a_page(results: RunResults) -> None:
    nothing = replace(results.summary, models=(), cases=(), warnings=())
    text = report(results._replace(attempts=(), cases=(), summary=nothing))
    assert Page(text).open == []
    assert "Nothing was judged" in text
    assert "No attempt was made yet." in text


def test_the_same_results_give_the_same_bytes(results: RunResults) -> None:
    assert report(results) == report(results)


def test_a_suffix_names_its_format() -> None:
    suffixes = {".json": "json", ".md": "markdown", ".html": "html", ".csv": "csv", ".xml": "junit", ".sarif": "sarif"}
    exchanged = {
        ".jsonl": "results",
        ".eee.json": "every-eval-ever",
        ".inspect.json": "inspect",
        ".promptfoo.json": "promptfoo",
        ".forgetest.json": "forgetest",
        ".otlp.json": "otlp",
        ".evalplus.jsonl": "evalplus",
        ".human-eval.jsonl": "human-eval",
    }
    assert suffixes | exchanged == REPORT_FORMAT_BY_SUFFIX
    assert [report_format_of(name) for name in ("a.eee.json", "a.v2.json", "a.b.inspect.json")] == [
        "every-eval-ever",
        "json",
        "inspect",
    ]


def test_the_page_reads_as_reviewed(results: RunResults, golden: Callable[[str, str], None]) -> None:
    golden("report.html", written(results).replace(str(style()), "/* page.css */\n"))
