"""Tests that no answer could pass are the case's fault, and are found before a model is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from steelyard.analysis.scoring import is_correct
from steelyard.cli.main import main
from steelyard.errors import ExitCode, MissingToolError, VerifierError
from steelyard.records import Answer, Case, Expectations, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.impossible_tests import asked_builtin, check_defined, check_tests
from steelyard.verifiers.python.verifier import PythonVerifier

if TYPE_CHECKING:
    from pathlib import Path


ROOM = ZygoteSandbox(strongest_isolation())
LOOP = asyncio.Runner()
VERIFIER = PythonVerifier(ROOM)


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    LOOP.run(VERIFIER.close())
    LOOP.run(ROOM.close())
    LOOP.close()


def case(tests: str, **verify: str) -> Case:
    return Case(id="c", prompt="Write it.", language="python", verify=Verify(tests=tests, **verify))  # type: ignore[arg-type]


def test_an_expected_name_that_no_code_can_define_is_the_cases_mistake() -> None:
    for name in ("add(a, b)", "class", "2nd", "add two", "Box."):
        for expected in (Expectations(expected_functions=(name,)), Expectations(expected_types=(name,))):
            with pytest.raises(VerifierError, match="is not a name in Python"):
                check_tests(replace(case("assert add(1, 2) == 3"), expectations=expected), "asserts")
    for name in ("add", "Box.add", "größe"):
        check_tests(replace(case("assert f(1)"), expectations=Expectations(expected_functions=(name,))), "asserts")


def test_an_entry_point_is_a_function_or_a_method_of_a_class_that_is_made_without_arguments() -> None:
    tests = "def check(candidate):\n    assert candidate(1)"
    for name in ("add(a, b)", "class", "2nd", "add two", "Box.", "Box(1).add", "Box().add()", "Box()"):
        with pytest.raises(
            VerifierError, match=r"is neither a function such as two_sum nor a method such as Solution\(\)"
        ):
            check_tests(case(tests, entry_point=name), "check")
    for name in ("add", "Box.add", "Box().add", "Box().inner().add", "größe"):
        check_tests(case(tests, entry_point=name), "check")


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


ASKS_FOR_SUM = "Write sum(a, b): the sum of all numbers that divide both."
RIGHT_SUM = "def sum(a, b):\n    total = 0\n    for n in range(1, a + 1):\n        total += 0 if a % n or b % n else n\n    return total\n"


@pytest.mark.parametrize(
    ("style", "tests"),
    [
        ("asserts", "assert sum(10, 15) == 6\nassert sum(100, 150) == abs(-93)\n"),
        ("", "assert sum(10, 15) == 6"),
        ("asserts", "for a, b, want in [(10, 15, 6), (100, 150, 93)]:\n    assert sum(a, b) == want\n"),
        ("doctest", ">>> sum(10, 15)\n6\n"),
    ],
)
def test_a_function_that_has_the_name_of_a_builtin_one_is_judged(style: str, tests: str) -> None:
    asked = Case(id="c", prompt=ASKS_FOR_SUM, language="python", verify=Verify(tests=tests, style=style))
    if style != "doctest":
        check_tests(asked, "asserts")
    for code, is_right in ((RIGHT_SUM, True), ("def sum(a, b):\n    return a + b\n", False), ("x = 1\n", False)):
        finding = LOOP.run(VERIFIER.verify(asked, Answer(text=verbatim_reply(code, "python"))))
        assert is_correct(asked, finding) is is_right, (code, finding.reason)


def test_a_builtin_function_that_nobody_asks_for_is_that_of_the_language() -> None:
    assert asked_builtin(Case(id="c", prompt="Write f, the sum of a list.", language="python"), ["sum"]) == ""
    assert asked_builtin(Case(id="c", prompt="max(x) is larger than min(x).", language="python"), ["max", "min"]) == ""
    with_reference = Case(id="c", prompt="As max(x).", language="python", reference="def min(x): ...")
    assert asked_builtin(with_reference, ["max", "min"]) == "min"
