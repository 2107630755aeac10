"""Tests that no answer could pass are the case's fault, and are found before a model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from steelyard.cli.main import main
from steelyard.errors import ExitCode, MissingToolError, VerifierError
from steelyard.records import Case, Expectations, Verify
from steelyard.verifiers.python.impossible_tests import check_defined, check_tests

if TYPE_CHECKING:
    from pathlib import Path


def case(tests: str, **verify: str) -> Case:
    return Case(id="c", prompt="Write it.", language="python", verify=Verify(tests=tests, **verify))  # type: ignore[arg-type]


def test_an_expected_name_that_no_code_can_define_is_the_cases_mistake() -> None:
    for name in ("add(a, b)", "class", "2nd", "add two", "Box."):
        for expected in (Expectations(expected_functions=(name,)), Expectations(expected_types=(name,))):
            with pytest.raises(VerifierError, match="is not a name in Python"):
                check_tests(replace(case("assert add(1, 2) == 3"), expectations=expected), "asserts")
        with pytest.raises(VerifierError, match="is not a name in Python"):
            check_tests(case("def check(candidate):\n    assert candidate(1)", entry_point=name), "check")
    for name in ("add", "Box.add", "größe"):
        check_tests(replace(case("assert f(1)"), expectations=Expectations(expected_functions=(name,))), "asserts")


@pytest.mark.parametrize("style", ["asserts", "unittest", "pytest"])
@pytest.mark.parametrize(
    "tests", ["import numpy_not_here as np\nassert f(1)", "from nowhere.at_all import x\nassert f(x)"]
)
def test_a_package_that_the_tests_need_and_the_sandbox_lacks_is_a_missing_tool(style: str, tests: str) -> None:
    with pytest.raises(
        MissingToolError, match=r"its tests import (numpy_not_here|nowhere), which the sandbox does not have"
    ):
        check_tests(case(tests), style)


def test_a_package_of_the_named_environment_is_there(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (packages / "numpy_not_here").mkdir(parents=True)
    check_tests(case("import numpy_not_here\nassert f(1)", python_env=str(tmp_path)), "asserts")
    with pytest.raises(MissingToolError, match="torch_not_here"):
        check_tests(case("import torch_not_here\nassert f(1)", python_env=str(tmp_path)), "asserts")


@pytest.mark.parametrize(
    "tests",
    [
        "try:\n    import numpy_not_here\nexcept ImportError:\n    numpy_not_here = None\nassert f(1)",
        "def test_it():\n    import numpy_not_here\n    assert f(1)",
        "import math, json, os.path\nassert f(math.pi)",
    ],
)
def test_a_package_that_may_be_missing_is_no_obstacle(tests: str) -> None:
    check_tests(case(tests), "asserts")


@pytest.mark.parametrize(
    "tests",
    [
        "assert 1 + 1 == 2",
        "import math\ndef area(r):\n    return math.pi * r * r\nassert area(1) > 3",
        "import unittest\nclass T(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(1, 1)",
    ],
)
def test_tests_that_never_use_the_answer_are_refused(tests: str) -> None:
    with pytest.raises(VerifierError, match="its tests never use the answer"):
        check_tests(case(tests), "unittest" if "unittest" in tests else "asserts")


@pytest.mark.parametrize(
    "tests",
    [
        "assert double(2) == 4",
        "def test_it():\n    assert double(2) == 4",
        "import answer\nassert answer.double(2) == 4",
        "from solution import *\nassert double(2) == 4",
        "import importlib\nassert importlib.import_module('answer').double(2) == 4",
        "import subprocess, sys\nassert subprocess.run([sys.executable, 'answer.py']).returncode == 0",
        "class T:\n    def test_it(self):\n        assert [double(n) for n in (1, 2)] == [2, 4]",
        "expected = 4\nfor n in range(3):\n    assert double(n) == 2 * n",
    ],
)
def test_tests_that_use_the_answer_in_any_way_are_fine(tests: str) -> None:
    check_tests(case(tests), "asserts")


def test_validate_names_such_cases_without_any_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        '{"id": "missing", "prompt": "Write f.", "language": "python", "verify": {"tests": "import numpy_not_here\\nassert f(1)"}}',
        '{"id": "empty", "prompt": "Write f.", "language": "python", "verify": {"tests": "assert 1 == 1"}}',
        '{"id": "broken", "prompt": "Write f.", "language": "python", "verify": {"tests": "assert f(1) =="}}',
        '{"id": "untold", "prompt": "Write f.", "language": "python", "verify": {"tests": "assert f(1) == helper(2)"}}',
        '{"id": "fine", "prompt": "Write f.", "language": "python", "verify": {"tests": "assert f(1)"}}',
    ]
    (tmp_path / "set.jsonl").write_text("\n".join(lines))
    assert main(["validate", str(tmp_path / "set.jsonl")]) == ExitCode.BAD_INPUT
    captured = capsys.readouterr()
    said = captured.out + captured.err
    assert 'case "missing": its tests import numpy_not_here' in said
    assert 'case "empty": its tests never use the answer' in said
    assert 'case "broken": its tests are not Python' in said
    assert 'case "untold": its tests could not be tried: its tests use helper' in said
    assert '"fine"' not in said


def test_examples_whose_name_an_answer_missed_are_no_file_to_be_read() -> None:
    check_defined(case(">>> add(1, 2)\n3\n", style="doctest"), ["add"])
