"""Suites of responses as other people write them: each form loads, and judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import steelyard
from steelyard import Means
from steelyard.errors import InputError
from steelyard.evalsets import with_default_checks
from steelyard.records import Verdict
from steelyard.store.journal import StoredRun

CASE = {"case_id": "c", "suite_id": "s", "prompt": "p"}
OTHER = {"id": "c", "family": "s", "prompt": "p"}


def outcomes(place: Path, case: dict[str, Any], *replies: str) -> list[str]:
    """What each reply to a case is, all the way from two files to the verdicts."""
    (place / "cases.jsonl").write_text(json.dumps(case))
    lines = [json.dumps({"case_id": "c", "raw_response": reply}) for reply in replies]
    (place / "replies.jsonl").write_text("\n".join(lines))
    done = steelyard.run(
        [place / "cases.jsonl"],
        models=f"replay:{place}/replies.jsonl",
        output=place / "run",
        means=Means(environment={}),
    )
    assert done.notes == ()
    verdicts = {fact.number: fact.found for fact in StoredRun(done.folder).facts() if isinstance(fact, Verdict)}
    return [verdicts[number].label or "pass" for number in sorted(verdicts)]


def problem(place: Path, content: str) -> tuple[int, str]:
    (place / "cases.jsonl").write_text(content)
    with pytest.raises(InputError) as caught:
        steelyard.load([place / "cases.jsonl"])
    (one,) = caught.value.problems
    return one.line, one.what


def test_an_expected_response_is_searched_as_a_regular_expression(tmp_path: Path) -> None:
    case = CASE | {
        "prompt": "Hi {{name}}",
        "prompt_vars": {"name": "Ada"},
        "expected_response": r"\bA[dD]a\b.*[0-9]{2}$",
    }
    assert outcomes(tmp_path, case, "hello ADa, 42", "hello Adam, 42", "Ada 42\nand so on") == ["pass", "fail", "fail"]
    (loaded,) = steelyard.load([tmp_path / "cases.jsonl"]).cases
    assert (loaded.prompt, loaded.suite) == ("Hi Ada", "s")


@pytest.mark.parametrize("expected", ["f(x = (1", "[sic", "*bold*", "C++"])
def test_an_expected_response_that_is_no_regular_expression_is_plain_text(tmp_path: Path, expected: str) -> None:
    found = outcomes(tmp_path, CASE | {"expected_response": expected}, f"so: {expected}!", expected[1:])
    assert found == ["pass", "fail"]


@pytest.mark.parametrize("expected", [r"(?<=a)b", r"(a)\1", r"a(?=b)"])
def test_an_expression_that_cannot_be_searched_in_bounded_time_is_refused_before_anything_is_asked(
    tmp_path: Path, expected: str
) -> None:
    with pytest.raises(InputError, match="RE2 cannot use this regular expression"):
        outcomes(tmp_path, CASE | {"expected_response": expected}, "ab")
    assert not (tmp_path / "run").exists()


def test_what_an_author_expects_of_models_is_kept_and_is_no_part_of_the_verdict(tmp_path: Path) -> None:
    case = CASE | {"expected_response": "no", "expected_classification": "fail", "tags": ["injection"]}
    assert outcomes(tmp_path, case, "no", "yes") == ["pass", "fail"]
    (loaded,) = steelyard.load([tmp_path / "cases.jsonl"]).cases
    assert (loaded.expected_classification, loaded.tags) == ("fail", ("injection",))


def test_json_is_held_against_its_schema(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}
    case = OTHER | {"expect": {"type": "json", "schema": schema}}
    found = outcomes(
        tmp_path, case, '{"ok": true}', '{"ok": 1}', "{'ok': true}", "I'm sorry, but I can't help with that."
    )
    assert found == ["pass", "fail", "wrong_format", "refusal"]


def test_csv_is_held_against_its_columns_and_rows(tmp_path: Path) -> None:
    expect: dict[str, Any] = {"type": "csv", "columns": ["a", "b"], "rows": 1}
    replies = ("a,b\n1,2\n", "a,b\n", "a;b\n1;2\n", "Here you are:\n\na,b\n1,2\n")
    strict = OTHER | {"expect": {**expect, "strict_no_extra_text": True}}
    assert outcomes(tmp_path, strict, *replies) == ["pass", "fail", "wrong_format", "wrong_format"]
    given = OTHER | {"expect": {**expect, "rows": [["1", "2"]], "strict_no_extra_text": True}}
    (tmp_path / "given").mkdir()
    assert outcomes(tmp_path / "given", given, "a,b\n1,2\n", "a,b\n1,3\n") == ["pass", "fail"]


def test_html_is_held_against_its_tags(tmp_path: Path) -> None:
    case = OTHER | {"expect": {"type": "html", "required_tags": ["h1", "p"]}}
    found = outcomes(tmp_path, case, "<h1>Hi</h1><p>there</p>", "<h1>Hi</h1>", "h1 and p")
    assert found == ["pass", "fail", "wrong_format"]


def test_a_case_that_says_nothing_about_its_answer_is_left_to_judges_or_to_a_check_of_its_suite(tmp_path: Path) -> None:
    silent = [
        CASE | {"case_id": "a", "expected_classification": "fail"},
        OTHER | {"id": "b", "family": "t"},
        OTHER | {"id": "c", "family": "t", "expect": {}, "meta": {"seed": 1}},
        CASE | {"case_id": "d", "expected_response": "x"},
        CASE | {"case_id": "e", "expected_response": ""},
    ]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, silent)))
    loaded = steelyard.load([tmp_path / "cases.jsonl"])
    assert [case.kind for case in loaded.cases] == ["judge", "judge", "judge", "response", "judge"]
    assert loaded.cases[2].metadata == {"meta": {"seed": 1}}
    checked = with_default_checks(loaded, {"t": {"type": "json"}, "": {"type": "contains", "value": "x"}}).cases
    assert [case.verify.expect.get("type") for case in checked] == ["contains", "json", "json", None, "contains"]
    assert {case.kind for case in checked} == {"response"}
    with pytest.raises(InputError, match='no suite "tt"'):
        with_default_checks(loaded, {"tt": {"type": "json"}})


def test_a_case_is_the_same_in_both_formats_down_to_the_digest_of_its_tests(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(json.dumps(OTHER | {"expect": {"type": "html", "required_tags": ["p"]}}))
    (tmp_path / "cases.toml").write_text(
        '[eval_set]\nid = "s"\nname = "S"\nsuite = "s"\n[[cases]]\nid = "c"\nname = ""\nprompt = "p"\n'
        'verify.expect = { type = "html", required_tags = ["p"] }\n'
    )
    line, table = (steelyard.load([tmp_path / f"cases.{suffix}"]).cases[0] for suffix in ("jsonl", "toml"))
    assert line == table
    assert line.tests_digest == table.tests_digest


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"{json.dumps(CASE)} {json.dumps(CASE)}", "column 50: a second value after the first"),
        (json.dumps(json.dumps(CASE)), "column 1: a string that contains JSON"),
        (json.dumps([CASE]), "column 1: no JSON object"),
        ('{"case_id": "c", "prompt": "\\ud83d"}', "column 29: half of a surrogate pair, which is not text"),
        ('{"case_id": "c", "prompt": "\\ud83d and more"}', "column 29: half of a surrogate pair, which is not text"),
    ],
)
def test_a_broken_line_is_named_with_line_and_column(tmp_path: Path, text: str, where: str) -> None:
    line, what = problem(tmp_path, f'\n{{"id": "0", "prompt": "p"}}\n{text}\n')
    assert (line, what.startswith(where)) == (3, True), what
