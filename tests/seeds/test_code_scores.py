"""Scores of generated code, pass@k and regressions, as the document of forgetest has them, by its own commands.

Beside these: `cli/test_cli.py` (fail-under, exit codes, init, validate, models), `reports/test_sarif.py`, `reports/test_html.py`,
`reports/test_json_report.py` (forgetest reads our report), `test_examples.py` (right answers pass), `comparison/test_compare.py`.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from support.command_line import steelyard
from support.toolchains import needs

Report = dict[str, Any]


def exact_pass_at_k(n: int, c: int, k: int) -> Fraction:
    """1 - C(n-c, k) / C(n, k), in whole numbers."""
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


def mean(values: Iterable[float | Fraction]) -> float:
    """The mean of at least one value."""
    total = [Fraction(value) for value in values]
    return float(sum(total) / len(total))


def by_the_document(found: Report) -> float:
    """The score of one result, by the formula of the document."""
    if not found["compilation"]["success"]:
        return 0.0
    tests = found["test_execution"] or {"passed": 0, "failed": 0}
    ran = tests["passed"] + tests["failed"]
    clippy = found["clippy"] or {"warning_count": 0}
    share = tests["passed"] / ran if ran else 0
    return float(0.4 + 0.5 * share + 0.1 * max(0, 1 - 0.1 * clippy["warning_count"]))


def result(
    case: str, attempt: int, *, compiled: bool = True, passed: int = 2, failed: int = 0, warnings: int = 0
) -> Report:
    """One result of a report in forgetest's shape."""
    tests = {"passed": passed, "failed": failed, "ignored": 0, "duration_ms": 9, "failures": []}
    return {
        "case_id": case,
        "model": "small-1",
        "provider": "nobody",
        "generated_code": "pub fn f() {}",
        "compilation": {"success": compiled, "errors": [], "warnings": [], "duration_ms": 7},
        "test_execution": tests if compiled and passed + failed else None,
        "clippy": {"warnings": [], "warning_count": warnings} if compiled else None,
        "timing": {"llm_request_ms": 100 * attempt, "compilation_ms": 7, "test_execution_ms": 9, "total_ms": 120},
        "token_usage": {
            "prompt_tokens": 10,
            "completion_tokens": 20,
            "total_tokens": 30,
            "estimated_cost_usd": 0.01,
        },
        "attempt": attempt,
        "run_id": "00000000-0000-0000-0000-000000000000",
    }


def write_report(file: Path, results: list[Report]) -> None:
    cases = len({each["case_id"] for each in results})
    whole = {
        "id": "00000000-0000-0000-0000-000000000000",
        "created_at": "2026-02-01T10:00:00Z",
        "eval_set": {"id": "drawn", "name": "Drawn", "case_count": cases},
        "models_evaluated": ["small-1"],
        "results": results,
        "aggregate": {"per_model": {}, "per_case": {}},
        "duration_ms": 1000,
    }
    file.write_text(json.dumps(whole), "utf-8")


def write_pair(place: Path, *cases: tuple[int, int], tests: int = 100) -> None:
    """Two reports of ten attempts a case; each case names how many of its tests pass before, and how many after."""
    for name, side in (("baseline.json", 0), ("latest.json", 1)):
        results = [
            result(f"case-{number:02}", attempt, passed=counts[side], failed=tests - counts[side])
            for number, counts in enumerate(cases)
            for attempt in range(1, 11)
        ]
        write_report(place / name, results)


COMPARE = ("compare", "--baseline", "baseline.json", "--current", "latest.json")


# ---- a run, its score and its aggregates

RUST_SET = """
[eval_set]
id = "rust-tiny"
name = "Tiny"
default_language = "rust"

[[cases]]
id = "add"
name = "Add"
prompt = "Write `pub fn add(a: i32, b: i32) -> i32`."
[cases.expectations]
should_compile = true
should_pass_tests = true
test_file = '''
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn small() { assert_eq!(add(1, 2), 3); }
    #[test]
    fn zero() { assert_eq!(add(0, 0), 0); }
    #[test]
    fn opposites() { assert_eq!(add(-7, 7), 0); }
    #[test]
    fn large() { assert_eq!(add(1000, 234), 1234); }
}
'''

[[cases]]
id = "double"
name = "Double"
prompt = "Write `pub fn double(a: i32) -> i32`."
[cases.expectations]
test_file = '''
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn two() { assert_eq!(double(2), 4); }
}
'''
"""
RUST_ANSWERS = {
    "add": (
        "pub fn add(a: i32, b: i32) -> i32 { a + b }",
        "pub fn add(a: i32, b: i32) -> i32 { a - b }",
        "pub fn add(a: i32, b: i32) -> i32 { a + }",
        "pub fn add(a: i32, b: i32) -> i32 { return a + b; }",
        "pub fn add(a: i32, b: i32) -> i32 { b + a }",
    ),
    "double": tuple(f"pub fn double(a: i32) -> i32 {{ a * {by} }}" for by in (2, 3, 2, 2, 3)),
}
PASSES = {"add": 3, "double": 3}
COMPILED = {"add": 4, "double": 5}


@pytest.fixture(scope="module")
def rust_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document's own command on a set in its shape, five recorded answers a case."""
    place = tmp_path_factory.mktemp("rust")
    (place / "eval-sets").mkdir()
    (place / "eval-sets" / "rust-basics.toml").write_text(RUST_SET, "utf-8")
    replies = [
        {"case_id": case, "model": "small-1", "response": f"```rust\n{answer}\n```"}
        for case, answers in RUST_ANSWERS.items()
        for answer in answers
    ]
    (place / "answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in replies), "utf-8")
    said = "run --eval-set eval-sets/rust-basics.toml --models replay:answers.jsonl --pass-k 1,5 --temperature 0.8"
    ran = steelyard(place, *said.split(), "--output", "run")
    assert ran.returncode == 0, ran.stderr
    written = steelyard(place, "report", "run", "-o", "report.json", "-o", "theirs.forgetest.json")
    assert written.returncode == 0, written.stderr
    return place


@pytest.fixture
def rust_report(rust_run: Path) -> Report:
    found: Report = json.loads((rust_run / "report.json").read_text("utf-8"))
    return found


@needs("cargo-clippy")
def test_every_score_of_a_run_is_that_of_the_formula(rust_report: Report) -> None:
    assert len(rust_report["results"]) == 10
    for found in rust_report["results"]:
        assert found["score"] == pytest.approx(by_the_document(found), abs=1e-12), found
    scores = {(each["case_id"], each["attempt"]): each["score"] for each in rust_report["results"]}
    assert [scores["add", number] for number in (1, 3, 5)] == [1.0, 0.0, 1.0]
    # one of four tests holds for a - b, and one warning of clippy costs a hundredth
    assert scores["add", 2] == pytest.approx(0.4 + 0.5 / 4 + 0.1, abs=1e-12)
    assert scores["add", 4] == pytest.approx(0.99, abs=1e-12)
    assert [scores["double", number] for number in (1, 2)] == [1.0, pytest.approx(0.5, abs=1e-12)]


@needs("cargo-clippy")
def test_a_run_has_pass_at_k_and_the_rates_over_its_samples_for_each_model(rust_report: Report) -> None:
    (model,) = rust_report["aggregate"]["per_model"].values()
    for k in (1, 5):
        expected = mean(exact_pass_at_k(5, PASSES[case], k) for case in PASSES)
        assert model["pass_at_k"][str(k)] == pytest.approx(expected, abs=1e-15)
    assert model["avg_compilation_rate"] == pytest.approx(sum(COMPILED.values()) / 10, abs=1e-15)
    # 1, 1/4, not compiled, 1, 1; and 1, 0, 1, 1, 0
    assert model["avg_test_pass_rate"] == pytest.approx((3.25 + 3) / 10, abs=1e-15)
    assert model["total_cost_usd"] is None
    assert model["avg_latency_ms"] is None


@needs("cargo-clippy")
def test_a_run_has_pass_at_k_and_the_mean_score_for_each_case(rust_report: Report) -> None:
    for case, passes in PASSES.items():
        told = rust_report["aggregate"]["per_case"][case]
        scores = [by_the_document(each) for each in rust_report["results"] if each["case_id"] == case]
        ((_, at_k),) = told["per_model_pass_at_k"].items()
        assert at_k == {str(k): pytest.approx(float(exact_pass_at_k(5, passes, k)), abs=1e-15) for k in (1, 5)}
        assert [*told["per_model_avg_score"].values()] == [pytest.approx(mean(scores), abs=1e-12)]


@needs("cargo-clippy")
def test_a_report_for_forgetest_has_the_same_figures_with_0_for_what_is_unknown(
    rust_run: Path, rust_report: Report
) -> None:
    theirs = json.loads((rust_run / "theirs.forgetest.json").read_text("utf-8"))
    assert [by_the_document(each) for each in theirs["results"]] == pytest.approx(
        [each["score"] for each in rust_report["results"]], abs=1e-12
    )
    (model,) = theirs["aggregate"]["per_model"].values()
    (ours,) = rust_report["aggregate"]["per_model"].values()
    assert model["pass_at_k"] == ours["pass_at_k"]
    assert (model["total_cost_usd"], model["avg_latency_ms"]) == (0, 0)


@needs("cargo-clippy")
def test_a_run_is_written_as_a_page_and_what_the_compiler_said_as_sarif(rust_run: Path) -> None:
    written = steelyard(rust_run, "report", "run", "-o", "page.html", "-o", "found.sarif")
    assert written.returncode == 0, written.stderr
    page = (rust_run / "page.html").read_text("utf-8")
    assert all(case in page for case in RUST_ANSWERS)
    (run,) = json.loads((rust_run / "found.sarif").read_text("utf-8"))["runs"]
    # only one answer does not compile
    (error,) = [each for each in run["results"] if each["level"] == "error"]
    assert "expected expression" in error["message"]["text"]


def test_cost_and_latency_of_a_model_are_their_sum_and_their_mean(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text('{"id": "fr", "prompt": "Capital of France?", "target": "Paris"}\n', "utf-8")
    replies = [
        {"id": "fr", "model": "m", "response": answer, "latency_ms": ms, "cost_usd": cost}
        for answer, ms, cost in (("Paris", 400, 0.02), ("Lyon", 700, 0.03), ("Paris", 1000, 0.01))
    ]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(each) + "\n" for each in replies), "utf-8")
    ran = steelyard(tmp_path, "run", "set.jsonl", "-m", "replay:replies.jsonl", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    (model,) = json.loads(ran.stdout)["aggregate"]["per_model"].values()
    assert model["avg_latency_ms"] == pytest.approx((400 + 700 + 1000) / 3)
    assert model["total_cost_usd"] == pytest.approx(0.06)


# ---- pass@k from counts

COUNTS = [(5, 0), (5, 1), (7, 3), (10, 10), (20, 19), (200, 100), (1000, 1)]


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    rows = "".join(f"case-{number},{n},{c}\n" for number, (n, c) in enumerate(COUNTS))
    (tmp_path / "counts.csv").write_text("case,n,correct\n" + rows, "utf-8")
    return tmp_path


def test_pass_at_k_is_the_unbiased_estimator_of_whole_numbers(counted: Path) -> None:
    ran = steelyard(counted, "passk", "counts.csv", "--k-values", "1", "2", "5", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    (model,) = json.loads(ran.stdout)["models"]
    for k in (1, 2, 5):
        expected = mean(exact_pass_at_k(n, c, k) for n, c in COUNTS)
        assert model["pass_at"][str(k)]["value"] == pytest.approx(expected, abs=4e-15)


def test_pass_at_k_with_fewer_samples_than_k_is_no_number_and_says_why(counted: Path) -> None:
    (counted / "few.csv").write_text("case,n,correct\na,4,2\nb,4,4\n", "utf-8")
    ran = steelyard(counted, "passk", "few.csv", "--k-values", "1", "4", "5")
    assert ran.returncode == 0
    head, row = ran.stdout.splitlines()
    assert head.split()[:4] == ["LLM", "pass@1", "pass@4", "pass@5"]
    values = re.sub(r"\[.*?\]", "", row).split()
    assert values[1:4] == [f"{mean((0.5, 1)):.3f}", "1.000", "-"]
    assert "pass@5 needs 5 attempts at a case, and the most there are is 4" in ran.stderr
    some = steelyard(counted, "passk", "counts.csv", "--k-values", "10", "--format", "json")
    (model,) = json.loads(some.stdout)["models"]
    enough = [(n, c) for n, c in COUNTS if n >= 10]
    assert model["pass_at"]["10"]["value"] == pytest.approx(mean(exact_pass_at_k(n, c, 10) for n, c in enough))
    assert json.loads(some.stdout)["notes"]


# ---- its reports, compared and gated


def test_a_report_of_forgetest_is_scored_by_the_formula(tmp_path: Path) -> None:
    before = [
        result("a", 1),
        result("a", 2, passed=4, failed=1, warnings=3),
        result("a", 3, compiled=False),
        result("b", 1, passed=0, failed=0),
        result("b", 2, warnings=25),
    ]
    write_report(tmp_path / "baseline.json", before)
    write_report(tmp_path / "latest.json", [result(case, 1, compiled=False) for case in "ab"])
    ran = steelyard(tmp_path, *COMPARE, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    told = {each["case_id"]: each["baseline_score"] for each in json.loads(ran.stdout)["regressions"]}
    scores = {case: [by_the_document(each) for each in before if each["case_id"] == case] for case in "ab"}
    assert told == {case: pytest.approx(mean(values), abs=1e-12) for case, values in scores.items()}
    assert scores == {
        "a": [1.0, pytest.approx(0.4 + 0.4 + 0.07), 0.0],
        "b": [pytest.approx(0.5), pytest.approx(0.9)],
    }


def test_a_case_regresses_by_a_drop_of_more_than_five_points_by_default(tmp_path: Path) -> None:
    # tests are half of the score: 12 of 100 tests are 6 points, 10 are exactly 5
    write_pair(tmp_path, *[(100, 88)] * 20, *[(100, 90)] * 6, *[(90, 100)] * 4)
    plain = json.loads(steelyard(tmp_path, *COMPARE, "--format", "json").stdout)
    assert plain["threshold"] == 0.05
    assert (len(plain["regressions"]), len(plain["improvements"]), plain["unchanged"]) == (20, 0, 10)
    assert plain["regressions"][0]["delta"] == pytest.approx(-0.06)
    lower = json.loads(steelyard(tmp_path, *COMPARE, "--threshold", "0.04", "--format", "json").stdout)
    assert (len(lower["regressions"]), len(lower["improvements"]), lower["unchanged"]) == (26, 4, 0)
    higher = json.loads(steelyard(tmp_path, *COMPARE, "--threshold", "50%", "--format", "json").stdout)
    assert (len(higher["regressions"]), higher["unchanged"]) == (0, 30)


@pytest.mark.parametrize("threshold", ["5", "-1", "some"])
def test_a_threshold_that_is_no_share_is_refused(tmp_path: Path, threshold: str) -> None:
    write_pair(tmp_path, (10, 10), tests=10)
    ran = steelyard(tmp_path, *COMPARE, f"--threshold={threshold}")
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)


def test_a_comparison_fails_only_where_it_was_asked_to(tmp_path: Path) -> None:
    write_pair(tmp_path, (100, 50), (100, 100))
    assert steelyard(tmp_path, *COMPARE).returncode == 0
    failing = (*COMPARE, "--fail-on-regression", "--threshold", "0.05")
    assert steelyard(tmp_path, *failing).returncode == 1
    assert steelyard(tmp_path, *COMPARE, "--fail-on-regression", "--threshold", "0.25").returncode == 0
    missing = steelyard(tmp_path, "compare", "--baseline", "none.json", "--current", "latest.json")
    assert (missing.returncode, len(missing.stderr.splitlines())) == (2, 1)
    write_report(tmp_path / "latest.json", [result("another", 1)])
    assert steelyard(tmp_path, *failing).returncode == 3


def test_a_comparison_speaks_text_json_and_markdown(tmp_path: Path) -> None:
    write_pair(tmp_path, (100, 50), (50, 100), (100, 100))
    default, text, markdown = (
        steelyard(tmp_path, *COMPARE, *options).stdout
        for options in ((), ("--format", "text"), ("--format", "markdown"))
    )
    assert default == text
    assert "1 regression, 1 improvement, 1 unchanged of 3 cases" in text
    assert re.search(r"case-00.*1\.000 -> 0\.750", text), text
    assert re.search(r"\| .*case-00.*\| .*1\.000 .*\| .*0\.750", markdown), markdown
    found = json.loads(steelyard(tmp_path, *COMPARE, "--format", "json").stdout)
    (regression,), (improvement,) = found["regressions"], found["improvements"]
    assert [regression[key] for key in ("case_id", "model", "baseline_score", "current_score")] == [
        *("case-00", "small-1"),
        *(pytest.approx(1.0), pytest.approx(0.75)),
    ]
    assert improvement["delta"] == pytest.approx(0.25)


def exact_stratified_p(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> float:
    """The one-sided exact conditional test over strata: the chance of as few passes afterwards, by whole-number convolution."""
    ways: dict[int, int] = {0: 1}
    for (n1, c1), (n2, c2) in zip(before, after, strict=True):
        passes = c1 + c2
        here = {
            x: math.comb(n2, x) * math.comb(n1, passes - x) for x in range(max(0, passes - n1), min(n2, passes) + 1)
        }
        longer: dict[int, int] = {}
        for total, count in ways.items():
            for x, more in here.items():
                longer[total + x] = longer.get(total + x, 0) + count * more
        ways = longer
    seen = sum(c for _, c in after)
    return float(Fraction(sum(count for total, count in ways.items() if total <= seen), sum(ways.values())))


@pytest.mark.parametrize(
    ("current", "code"),
    [
        pytest.param(lambda number: 6 + number % 4, 0, id="unchanged"),
        pytest.param(lambda number: max(0, 2 + number % 4), 1, id="worse everywhere"),
    ],
)
def test_the_gate_on_two_reports_has_the_exact_p_value(
    tmp_path: Path, current: Callable[[int], int], code: int
) -> None:
    cases = 30
    passed = {
        "baseline.json": [6 + number % 4 for number in range(cases)],
        "latest.json": [*map(current, range(cases))],
    }
    for name, counts in passed.items():
        results = [
            result(f"case-{number:02}", attempt, passed=int(attempt <= count), failed=int(attempt > count))
            for number, count in enumerate(counts)
            for attempt in range(1, 11)
        ]
        write_report(tmp_path / name, results)
    ran = steelyard(tmp_path, "gate", "--baseline", "baseline.json", "--current", "latest.json", "--format", "json")
    assert ran.returncode == code, ran.stdout + ran.stderr
    (model,) = json.loads(ran.stdout)["decision"]["models"]
    expected = exact_stratified_p(*([(10, count) for count in counts] for counts in passed.values()))
    assert model["p_suite"] == pytest.approx(expected, rel=1e-9)


def test_reports_of_forgetest_are_blessed_as_a_baseline(tmp_path: Path) -> None:
    write_pair(tmp_path, (100, 100), (100, 0))
    blessed = steelyard(tmp_path, "bless", "baseline.json", "--as", "main")
    assert blessed.returncode == 0, blessed.stderr
    ran = steelyard(tmp_path, "compare", "--baseline", "main", "--current", "latest.json", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    assert [each["case_id"] for each in json.loads(ran.stdout)["regressions"]] == ["case-01"]


# ---- other people's tables of attempts


def test_attempts_with_columns_of_ones_own_are_counted_exactly(tmp_path: Path) -> None:
    counts = {"one": (12, 3), "two": (12, 0), "three": (12, 12), "four": (12, 7)}
    with (tmp_path / "attempts.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["task", "llm", "ok"])
        rows.writerows(
            (task, "small-1", "yes" if number < correct else "no")
            for task, (tried, correct) in counts.items()
            for number in range(tried)
        )
    columns = ("--case", "task", "--model", "llm", "--passed", "ok")
    ran = steelyard(tmp_path, "passk", "attempts.csv", *columns, "--k-values", "1,2,3,5,10", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    (model,) = json.loads(ran.stdout)["models"]
    for k in (1, 2, 3, 5, 10):
        expected = mean(exact_pass_at_k(n, c, k) for n, c in counts.values())
        assert model["pass_at"][str(k)]["value"] == pytest.approx(expected, abs=1e-15)
