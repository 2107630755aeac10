"""What reports say of suites and of the classes of responses."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.analysis.summary import RunResults
from steelyard.records import Evidence, SuiteRule
from steelyard.reports import html, markdown
from steelyard.reports import json as json_report
from steelyard.reports.terminal import summary_text
from steelyard.reports.terminal_attempt import attempt_text
from steelyard.text import INVISIBLE_CHARACTER_PATTERN
from support.suite_facts import attempt, both, case, info, suite
from support.whole_results import run_results

if TYPE_CHECKING:
    from collections.abc import Callable

RULE = SuiteRule(penalties={"refusal": 0.25}, weights={"injection": 3})
SCHEMA = Evidence(
    rule="verify.expect.all[1]",
    what="'bad' is not one of ['ok']",
    matched='{"status": "bad"}',
    position=0,
    line=1,
    column=1,
    schema_path="/properties/status/enum",
    value_path="/status",
    mended=("fence", "single quotes"),
)


@pytest.fixture
def run() -> RunResults:
    """Two suites under one model, with the classes that most runs have."""
    cases, facts = both(
        suite(
            "injection", *["pass"] * 14, "refusal", "policy_violation", "policy_violation", "fail", "truncated", "fail"
        ),
        suite("json_api", *["pass"] * 8, "wrong_format", "failure", expected="pass"),
    )
    return run_results(info(samples=1), cases, facts, suites=RULE)


@pytest.fixture
def hostile_run(hostile: str) -> RunResults:
    """Two models; everything that others write is hostile."""
    evil = case("evil", hostile)
    cases, facts = both(suite("json_api", "pass", "fail"), ([evil], []))
    evidence = Evidence(rule=hostile, what=hostile, matched=hostile, policy=hostile, mended=(hostile,))
    for model in ("m", "n"):
        facts += [fact for each in cases[:2] for fact in attempt(each, "pass", 1, model)]
        facts += attempt(evil, hostile, 1, model, (evidence,), text=hostile)
    return run_results(info(), cases, facts)


def shown(results: RunResults, width: int = 100, *, color: bool = False) -> str:
    return summary_text(results.summary, title="run", next_commands=(), width=width, color=color)


def section(text: str) -> str:
    """The lines about suites."""
    return text[text.index("Suites") :].split("\n\nFailed most", maxsplit=1)[0] + "\n"


@pytest.mark.parametrize("width", [100, 60])
def test_suites_read_as_reviewed(run: RunResults, golden: Callable[[str, str], None], width: int) -> None:
    golden(f"suites-{width}.txt", section(shown(run, width)))


def test_six_classes_and_the_missing_fit_a_hundred_columns(run: RunResults) -> None:
    table = section(shown(run, 100)).splitlines()
    assert table[1].split() == [
        *["score", "cases", "missing", "pass", "policy"],
        "cut",
        "off",
        *["refusal", "format", "fail"],
    ]
    assert max(map(len, table)) <= 100


@pytest.mark.parametrize("width", [40, 60, 80])
def test_where_room_is_short_counts_go_on_in_a_block_below(run: RunResults, width: int) -> None:
    text = section(shown(run, width))
    assert max(map(len, text.splitlines())) <= width
    assert len(re.findall(r"^  overall ", text, re.MULTILINE)) > 1
    numbers = [cells.split()[1:] for cells in re.findall(r"^  overall .*", text, re.MULTILINE)]
    wide = re.findall(r"^  overall .*", section(shown(run, 200)), re.MULTILINE)[0].split()[1:]
    assert [number for row in numbers for number in row] == wide


def test_every_model_has_its_own_block(hostile_run: RunResults) -> None:
    text = shown(hostile_run)
    assert text.index("Suites of m") < text.index("Suites of n")
    assert max(map(len, section(text).splitlines())) <= 100
    for color in (True, False):
        left = re.sub("\x1b\\[[0-9;]*m", "", shown(hostile_run, color=color))
        assert INVISIBLE_CHARACTER_PATTERN.search(left) is None


def test_a_run_without_suites_says_nothing_of_them(results: RunResults) -> None:
    for text in (shown(results), markdown.report(results), html.report(results)):
        assert "uites" not in text
    told = json.loads(json_report.report(results))
    assert all("suites" not in each for each in told["aggregate"]["per_model"].values())
    assert all("classification" not in each and "suite" not in each for each in told["results"])


def test_a_comment_on_suites_reads_as_reviewed(run: RunResults, golden: Callable[[str, str], None]) -> None:
    text = markdown.report(run)
    golden("suites.md", text[text.index("#### Suites") : text.index("#### Failed most")])


def test_a_hostile_suite_has_no_markup_in_a_comment(hostile_run: RunResults) -> None:
    # code spans show all signs as they are
    left = re.sub(r"(?<![`\\])(`+)(?!`).+?(?<!`)\1(?!`)", "", markdown.report(hostile_run))
    left = re.sub(r"\\[!-/:-@\[-`{-~]", "", left)
    assert not re.search(r"[<>&`]|\]\(|://|www\.", left)


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_the_page_shows_suites_and_why_a_response_is_what_it_is(run: RunResults) -> None:
    page = Page(html.report(run))
    assert {"Suites", "policy_violation", "Classification: refusal"} <= set(page.texts)
    assert not any("No code was found" in text for text in page.texts)
    assert any("micro pass rate" in text and "penalised" in text for text in page.texts)


def test_nothing_that_a_suite_or_its_evidence_says_is_markup_in_the_page(hostile_run: RunResults) -> None:
    text = html.report(hostile_run)
    assert Page(text).tags.isdisjoint({"script", "img"})
    assert INVISIBLE_CHARACTER_PATTERN.search(text) is None


@pytest.fixture
def told(run: RunResults) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(json_report.report(run), parse_constant=pytest.fail)
    return whole


def test_programs_get_the_names_of_the_document(told: dict[str, Any]) -> None:
    model = told["aggregate"]["per_model"]["m"]
    assert model["suites"]["json_api"] == {
        "score": pytest.approx(8 / 9),
        "cases": 10,
        "attempts": 9,
        "missing": 1,
        "classes": {"pass": 8, "wrong_format": 1},
    }
    assert model["overall_run_score"] == pytest.approx((0.7 + 8 / 9) / 2)
    assert told["summary"]["models"][0]["suites"]["overall"]["value"] == model["overall_run_score"]


def test_every_response_has_a_classification_with_details_and_an_accuracy(told: dict[str, Any]) -> None:
    by_case = {each["case_id"]: each for each in told["results"]}
    assert by_case["injection-0"]["classification"] == {"primary": "pass", "details": []}
    assert by_case["injection-0"]["scores"] == {"accuracy": 1}
    assert by_case["injection-14"]["classification"]["primary"] == "refusal"
    assert by_case["injection-14"]["scores"] == {"accuracy": 0}
    assert by_case["injection-14"]["suite"] == "injection"


def test_an_attempt_shows_its_class_and_the_evidence_and_nothing_of_code(golden: Callable[[str, str], None]) -> None:
    one = case("one", "json_api")
    policy = Evidence(
        rule="verify.expect.all[0]", what="a canary leaked", policy="canary", form="base64", line=2, column=7
    )
    run = run_results(info(), [one], attempt(one, "policy_violation", evidence=(policy, SCHEMA)))
    text = attempt_text(run.attempts[0], width=100, color=False)
    assert "Code" not in text
    assert "Tests" not in text
    golden("response.txt", text)
    details = json.loads(json_report.report(run))["results"][0]["classification"]["details"]
    assert details[0] == {
        "rule": "verify.expect.all[0]",
        "what": "a canary leaked",
        "line": 2,
        "column": 7,
        "policy": "canary",
        "form": "base64",
    }
    assert details[1]["schema_path"] == "/properties/status/enum"


def test_evidence_commands_no_terminal(hostile_run: RunResults) -> None:
    evil = next(tried for tried in hostile_run.attempts if tried.case.id == "evil")
    assert INVISIBLE_CHARACTER_PATTERN.search(attempt_text(evil, width=100, color=False)) is None


def test_an_attempt_without_a_verdict_has_no_class() -> None:
    one = case("one", "a")
    run = run_results(info(), [one], attempt(one, "failure"))
    text = attempt_text(run.attempts[0], width=100, color=False)
    assert "Classification" not in text
    assert "Missing" in text
