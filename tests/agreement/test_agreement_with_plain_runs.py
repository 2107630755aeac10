"""The plain evaluator tells right from wrong in the shapes of all benchmarks, and so does the study that compares it with ours."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from benchmarks.agreement import plain
from benchmarks.agreement.samples import plain_order
from benchmarks.agreement.study import (
    BUBBLEWRAP,
    NAMESPACES,
    Found,
    Row,
    disagreements,
    read_rows,
    study,
    table,
    unexplained,
)

from steelyard.records import Case, Pair, Verify
from support.toolchains import needs

PROBLEMS = Path(__file__).parents[2] / "examples" / "human-eval" / "problems.jsonl"
ANSWER = "def double(x):\n    return 2 * x\n"
SPOILED = ANSWER.replace("2 *", "3 *")
METHOD = "class Solution:\n    def double(self, x):\n        return 2 * x\n"
TEST_CASE = "class TestDouble(unittest.TestCase):\n    def test_double(self):\n        self.assertEqual(double(4), 8)\n"
CHECK = "def check(candidate):\n    assert candidate(4) == 8\n"
SHAPES: dict[str, tuple[Verify, str]] = {
    "HumanEval": (Verify(style="check", entry_point="double", tests=CHECK), ANSWER),
    "LeetCodeDataset": (Verify(style="check", entry_point="Solution().double", tests=CHECK), METHOD),
    "MBPP": (Verify(style="asserts", tests="assert double(4) == 8"), ANSWER),
    "test functions": (Verify(style="asserts", tests="def test_it():\n    assert double(4) == 8"), ANSWER),
    "BigCodeBench": (Verify(style="unittest", entry_point="double", tests=f"import unittest\n{TEST_CASE}"), ANSWER),
    "a file that imports": (
        Verify(style="unittest", tests=f"import unittest\nfrom answer import *\n{TEST_CASE}"),
        ANSWER,
    ),
    "doctest": (Verify(style="doctest", tests=">>> double(4)\n8\n"), ANSWER),
    "calls": (Verify(entry_point="double", style="io", pairs=(Pair(input=[4], output=8),)), ANSWER),
    "programs": (Verify(pairs=(Pair(input="4\n", output="8\n"),)), "print(2 * int(input()))"),
}
LIES = {
    "exit": "raise SystemExit(0)",
    "leave": "import os\nos._exit(0)",
    "a fork that leaves": "import os\nos.fork() and os._exit(0)\n1 / 0",
    "endless": "while True: pass",
}


def plain_results(*orders: dict[str, Any]) -> list[str]:
    lines = "".join(f"{json.dumps(order)}\n" for order in orders)
    ran = subprocess.run([sys.executable, plain.__file__], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_plain_run_tells_right_from_wrong_in_every_shape() -> None:
    cases = {name: Case(id=name, prompt="", language="python", verify=verify) for name, (verify, _) in SHAPES.items()}
    right = [plain_order(cases[name], answer) for name, (_, answer) in SHAPES.items()]
    wrong = [plain_order(cases[name], answer.replace("2 *", "3 *")) for name, (_, answer) in SHAPES.items()]
    found = plain_results(*right, *wrong)
    assert found[: len(right)] == [""] * len(right)
    assert all(found[len(right) :])


def test_a_module_of_any_name_is_tested_by_its_own_file() -> None:
    tests = f"import unittest\nfrom two_times import double\n{TEST_CASE}"
    order = {"style": "unittest", "main": "two_times_test"}
    files = [{"two_times.py": answer, "two_times_test.py": tests} for answer in (ANSWER, SPOILED)]
    right, wrong = plain_results(*({**order, "files": one} for one in files))
    assert not right
    assert "unittest failed" in wrong


def test_an_answer_that_does_not_reach_its_end_fails_plainly() -> None:
    case = Case(id="any", prompt="", language="python", verify=SHAPES["HumanEval"][0])
    found = plain_results(*({**plain_order(case, code), "cpu_seconds": 1} for code in LIES.values()))
    assert all(found)


def test_the_study_judges_a_benchmark_by_both_sides_and_keeps_what_it_found(tmp_path: Path) -> None:
    file = tmp_path / "data" / "openai" / "human-eval" / "data" / "HumanEval.jsonl.gz"
    file.parent.mkdir(parents=True)
    problems = [json.loads(line) for line in PROBLEMS.read_text("utf-8").splitlines()]
    spoiled = {**problems[0], "task_id": "Mine/spoiled", "canonical_solution": "    return 0\n"}
    file.write_bytes(gzip.compress("".join(f"{json.dumps(one)}\n" for one in [*problems, spoiled]).encode()))
    kept = tmp_path / "verdicts.jsonl"
    rows = study(tmp_path / "data", ["humaneval"], out=kept)
    assert {row.id: not row.plain for row in rows} == {
        **{one["task_id"]: True for one in problems},
        "Mine/spoiled": False,
    }
    assert not disagreements(rows)
    # the second time nothing is judged
    again = study(tmp_path / "data", ["humaneval"], out=kept)
    assert (
        {row.key: row for row in again}
        == {row.key: row for row in read_rows([kept]).values()}
        == {row.key: row for row in rows}
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read what its owner has closed")
@pytest.mark.parametrize(
    "box", [pytest.param(BUBBLEWRAP, id="bubblewrap", marks=needs("bwrap")), pytest.param(NAMESPACES, id="namespaces")]
)
def test_a_plain_run_has_no_more_rights_than_a_user(box: tuple[str, ...], tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.write_text("x")
    closed.chmod(0)
    command = [*box, sys.executable, "-c", "import sys; open(sys.argv[1])"]
    # below /tmp each has files of its own
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        moved = closed.rename(Path(folder, "closed"))
        ran = subprocess.run([*command, str(moved)], capture_output=True, text=True, check=False)
    assert "PermissionError" in ran.stderr


@pytest.mark.parametrize(
    ("plain_reason", "outcome", "agrees"),
    [
        ("", "passed", True),
        ("", "failed", False),
        ("", "missing", False),
        ("", "tampered", False),
        ("wrong", "passed", False),
        ("wrong", "failed", True),
        ("wrong", "missing", True),
        ("wrong", "tampered", True),
    ],
)
def test_a_disagreement_without_a_reason_is_named(plain_reason: str, outcome: str, agrees: bool) -> None:
    ours = msgspec.convert(("", outcome, "in-process", ""), Found)
    row = Row(source="S", id="s/1", key="k", is_recorded=True, plain=plain_reason, ours=ours, retried=False)
    assert bool(unexplained([row])) is not agrees
    differs = not agrees and outcome != "missing"
    assert table([row]).splitlines()[2].endswith(f"| {int(differs)} |")
