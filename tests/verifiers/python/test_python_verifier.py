"""Python answers are judged by real processes, and whatever an answer does is the answer's doing."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import venv
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steelyard import evalsets
from steelyard.analysis.scoring import SCORING_RULES, is_correct, score
from steelyard.engine.preflight.references import check_references
from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Expectations, Finding, Pair, Verify
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.verifier import PythonVerifier
from support.python_answers import LEVEL, LOOP, VERIFIER, judged, outcomes

EXAMPLES = Path(__file__).parents[3] / "examples"
ADD = "assert add(1, 2) == 3\nassert add(-1, 1) == 0\nassert add('a', 'b') == 'ab'\n"
RIGHT = "def add(a, b):\n    return a + b\n"


def case(tests: str = ADD, *, timeout_secs: float = 20, verify: Verify | None = None, **expected: Any) -> Case:
    return Case(
        id="add",
        prompt="add",
        language="python",
        timeout_secs=timeout_secs,
        verify=verify or Verify(),
        expectations=Expectations(test_file=tests, **expected),
    )


def judge(code: str, of: Case | None = None) -> Finding:
    return judged(code, of or case())


def test_a_right_answer_passes_every_test() -> None:
    finding = judge(RIGHT)
    assert finding.compiled
    assert outcomes(finding) == ["passed"] * 3
    assert [test.name for test in finding.tests] == ["add(1, 2) == 3", "add(-1, 1) == 0", "add('a', 'b') == 'ab'"]
    assert (finding.label, finding.reason) == ("", "")
    assert (finding.code or "").strip() == RIGHT.strip()
    assert (finding.trust, finding.isolation) == ("isolated", LEVEL.level)
    assert is_correct(case(), finding)


def test_a_wrong_answer_says_what_came_instead() -> None:
    finding = judge("def add(a, b):\n    return a * b\n")
    assert outcomes(finding) == ["failed", "failed", "failed"]
    assert (finding.label, finding.reason) == ("wrong answer", "add(1, 2) == 3: got 2, expected 3")
    assert "TypeError" in finding.tests[2].message
    assert not is_correct(case(), finding)


@pytest.mark.parametrize(
    ("tests", "verify"),
    [
        ("assert add(1, 2) == 3\nassert helper(3) == 4\n", Verify()),
        ("assert np.isclose(add(1, 2), 3)\n", Verify()),
        ("def test_add():\n    assert add(1, 2) == helper(3)\n", Verify()),
        ("def check(candidate):\n    assert candidate(1, 2) == helper(3)\n", Verify(style="check", entry_point="add")),
        ("import types\nassert isinstance(add, types.FunctionType)\nassert helper(3) == 4\n", Verify()),
    ],
)
def test_a_name_that_tests_use_and_no_model_was_told_of_is_the_cases_fault(tests: str, verify: Verify) -> None:
    with pytest.raises(VerifierError, match=r"its tests use (helper|np), which they neither import nor define"):
        judge(RIGHT, case(tests, verify=verify))


def test_a_name_that_the_answer_lacks_or_uses_in_vain_is_its_own_fault() -> None:
    of = case("assert add(1, 2) == 3\n")
    for code in ("def plus(a, b): return a + b\n", "def add(a, b): return helper(a)\n"):
        assert judge(code, of).label == "exception"
    # where a prompt names nothing, a model may miss the name that the tests use
    assert judge("def plus(a, b): return a + b\n", replace(of, prompt="Write it.")).label == "exception"


@pytest.mark.parametrize(
    "code",
    [
        "class Short(list):\n    __len__ = lambda self: 1\n    __iter__ = lambda self: iter(())\ndef f(x): return Short()\n",
        "class Short(tuple):\n    __len__ = lambda self: 1\n    __iter__ = lambda self: iter(())\ndef f(x): return Short()\n",
        "class End:\n    def __eq__(self, other): raise StopIteration\ndef f(x): return [End()]\n",
        "def f(x): raise StopIteration\n",
    ],
)
def test_an_answer_that_stops_early_equals_no_value_of_a_pair(code: str) -> None:
    of = case("", verify=Verify(style="io", entry_point="f", pairs=(Pair(input=[1], output=[5]),)))
    assert outcomes(judge(code, of)) == ["failed"]


IMITATIONS = {
    "raise ValueError('got 1, expected 2')": "exception",
    "raise type('got ', (Exception,), {})('1, expected 2')": "exception",
    "raise type('printed 1, expected 2', (Exception,), {})": "exception",
    "raise type('MemoryError', (Exception,), {})": "exception",
    "raise RuntimeError('MemoryError: AssertionError: got 1, expected 2')": "exception",
    "raise AssertionError('got 1, expected 2')": "exception",
    "raise MemoryError('got 1, expected 2')": "memory limit",
    'return "MemoryError: ValueError: stopped at the cpu limit"': "wrong answer",
}
STYLES = {
    "asserts": "assert f() == 2\n",
    "doctest": ">>> f()\n2\n",
    "unittest": "import unittest, answer\nclass T(unittest.TestCase):\n    def test_f(self):\n        assert answer.f() == 2\n",
    "pytest": "import answer\ndef test_f():\n    assert answer.f() == 2\n",
}


@pytest.mark.parametrize("style", STYLES)
def test_the_words_of_an_answer_do_not_decide_what_its_failure_is_called(style: str) -> None:
    of = case(STYLES[style], verify=Verify(style=style))
    for lines, label in IMITATIONS.items():
        finding = judge(f"def f():\n    {lines}\n", of)
        assert (finding.label, outcomes(finding)) == (label, ["failed"]), (lines, finding.reason)
    assert judge("def f():\n    return {}['got 1, expected 2']\n", of).tests[0].cause == "computation"
    assert judge("def f():\n    raise OSError('KeyError: got 1')\n", of).tests[0].cause == "exception"


def test_an_answer_that_is_partly_right_gets_part_of_the_score() -> None:
    finding = judge("def add(a, b):\n    return a + b if isinstance(a, int) else None\n")
    assert outcomes(finding) == ["passed", "passed", "failed"]
    assert not is_correct(case(), finding)
    assert score(case(), finding, SCORING_RULES["code"]) == pytest.approx(0.4 + 0.5 * 2 / 3 + 0.1)


@pytest.mark.parametrize(
    "code", ["def add(a, b)\n    return a + b", "def add(:", "x = (", "print 'hi'", "a = '\\0'; b ="]
)
def test_what_does_not_compile_is_the_answers_fault_and_says_where(code: str) -> None:
    finding = judge(code)
    assert finding.compiled is False
    assert finding.label == "does not compile"
    assert finding.reason.startswith("SyntaxError")
    assert finding.diagnostics[0].spans[0].line_start == 1
    assert finding.tests == ()
    assert not is_correct(case(), finding)


def test_a_monstrous_source_is_the_answers_fault() -> None:
    for code in ("x = " + "(" * 5000 + ")" * 5000, "x = " + "-" * 100_000 + "1"):
        finding = judge(code)
        assert finding.compiled is False
        assert not is_correct(case(), finding)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise RuntimeError('at import')", "RuntimeError: at import"),
        ("import no_such_module_anywhere", "ModuleNotFoundError"),
        ("import sys\nsys.exit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("class Odd(Exception):\n    def __str__(self):\n        raise ValueError\nraise Odd", "Odd"),
    ],
)
def test_what_an_answer_raises_before_the_tests_fails_them_all(code: str, reason: str) -> None:
    finding = judge(f"{RIGHT}\n{code}\n")
    assert finding.compiled
    assert outcomes(finding) == ["failed"] * 3
    assert finding.label == "exception"
    assert reason in finding.reason


def test_what_an_answer_raises_in_one_test_fails_that_one() -> None:
    finding = judge("import sys\ndef add(a, b):\n    if a == -1:\n        sys.exit(0)\n    return a + b\n")
    assert outcomes(finding) == ["passed", "failed", "passed"]
    assert finding.label == "exception"
    assert "SystemExit" in finding.reason


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import ctypes\nctypes.string_at(0)",
        "import os\nos.killpg(0, 9)",
    ],
)
def test_an_answer_that_ends_the_process_has_not_passed(code: str) -> None:
    finding = judge(f"{RIGHT}\n{code}\n")
    assert finding.compiled
    assert outcomes(finding) == ["failed"] * 3
    assert finding.label == "died"
    assert "died before the verdict" in finding.reason


def test_an_answer_that_dies_in_a_test_keeps_what_it_had_passed() -> None:
    finding = judge("import os\ndef add(a, b):\n    if a == -1:\n        os._exit(0)\n    return a + b\n")
    assert outcomes(finding) == ["passed", "failed", "failed"]
    assert finding.label == "died"


def test_an_answer_that_computes_without_end_is_stopped_at_the_cpu_limit() -> None:
    finding = judge("def add(a, b):\n    while True:\n        pass\n", case(timeout_secs=1))
    assert finding.compiled
    assert outcomes(finding) == ["failed"] * 3
    assert finding.label == "cpu limit"
    assert "cpu limit" in finding.reason


def test_an_answer_that_catches_everything_is_stopped_all_the_same() -> None:
    code = """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
def add(a, b):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
"""
    finding = judge(code, case(timeout_secs=1))
    assert outcomes(finding) == ["failed"] * 3
    assert finding.label == "cpu limit"


def test_an_answer_that_sleeps_is_stopped_at_the_time_limit() -> None:
    finding = judge("import time\ndef add(a, b):\n    time.sleep(1000)\n", case(timeout_secs=0.1))
    assert outcomes(finding) == ["failed"] * 3
    assert finding.label == "time limit"


def test_an_answer_that_fills_the_memory_is_stopped_and_named() -> None:
    finding = judge("def add(a, b):\n    return [0] * (1 << 34)\n")
    assert outcomes(finding) == ["failed"] * 3
    assert finding.label == "memory limit"
    assert "MemoryError" in finding.reason


def test_an_answer_that_recurses_without_end_only_raises() -> None:
    finding = judge("def add(a, b):\n    return add(a, b)\n")
    assert outcomes(finding) == ["failed"] * 3
    assert "RecursionError" in finding.reason


def test_what_an_answer_prints_is_kept_and_is_no_verdict() -> None:
    code = """
import json, os, sys
for line in ({"compiled": True, "seconds": 0}, {"test": 0, "wrong": "", "seconds": 0}, {"finished": True}):
    print(json.dumps(line), flush=True)
    for descriptor in range(1, 10):
        try:
            os.write(descriptor, (json.dumps(line) + "\\n").encode())
            os.write(descriptor, ("0123456789abcdef" + json.dumps(line) + "\\n").encode())
        except OSError:
            pass
def add(a, b):
    print("hello from the answer")
    return None
"""
    finding = judge(code)
    assert outcomes(finding) == ["failed"] * 3
    assert "compiled" in finding.output
    assert not is_correct(case(), finding)


def test_an_answer_may_print_on_every_stream_and_still_be_right() -> None:
    code = f"import os, sys\nprint('out'); print('err', file=sys.stderr); os.write(1, b'raw')\n{RIGHT}"
    finding = judge(code)
    assert outcomes(finding) == ["passed"] * 3
    assert all(said in finding.output for said in ("out", "err", "raw"))


def test_an_answer_that_prints_without_end_is_stopped_and_only_the_beginning_is_kept() -> None:
    finding = judge("def add(a, b):\n    while True:\n        print('x' * 100_000)\n", case(timeout_secs=1))
    assert outcomes(finding)[0] == "failed"
    assert 0 < len(finding.output) <= 64 << 10


def test_an_answer_that_closes_every_stream_is_judged_all_the_same() -> None:
    finding = judge(f"import os\n{RIGHT}\nos.closerange(0, 3)\n")
    assert outcomes(finding) == ["passed"] * 3
    finding = judge(f"import os\n{RIGHT}\nos.closerange(0, 50)\n")
    assert outcomes(finding) == ["failed"] * 3


def test_a_message_that_is_no_text_spoils_no_other_test() -> None:
    finding = judge("def add(a, b):\n    if a == 1:\n        raise ValueError('\\udcff')\n    return a + b\n")
    assert outcomes(finding) == ["failed", "passed", "passed"]
    assert finding.tests[0].message.startswith("ValueError")
    finding = judge("def add(a, b):\n    return '\\udcff\\x00' if a == 1 else a + b\n")
    assert outcomes(finding) == ["failed", "passed", "passed"]


def test_a_value_that_cannot_be_shown_or_compared_is_wrong_and_spoils_no_other_test() -> None:
    code = """
class Odd:
    def __repr__(self):
        raise RuntimeError
    def __eq__(self, other):
        return False
def add(a, b):
    return Odd() if a == 1 else a + b
"""
    finding = judge(code)
    assert outcomes(finding) == ["failed", "passed", "passed"]


@pytest.mark.parametrize("text", ["", "I cannot help with that.", "```\n```", "```python\n```"])
def test_a_reply_without_code_is_wrong_and_says_so(text: str) -> None:
    finding = LOOP.run(VERIFIER.verify(case(), Answer(text=text)))
    assert finding.code is None
    assert not is_correct(case(), finding)
    assert finding.label == "no code"


def test_no_secret_of_the_parent_is_in_the_environment_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("HOME", "/home/of/the/user")
    finding = judge(f"import os, sys\nprint(dict(os.environ), sys.path, os.getcwd(), os.listdir())\n{RIGHT}")
    assert "PYTHONHASHSEED" in finding.output
    assert "sk-very-secret" not in finding.output
    assert "/home/of/the/user" not in finding.output
    assert str(Path.cwd()) not in finding.output


def test_an_answer_cannot_import_what_we_are_made_of() -> None:
    for module in ("steelyard", "msgspec", "pytest"):
        assert "ModuleNotFoundError" in judge(f"import {module}\n{RIGHT}").reason


def test_the_next_answer_finds_nothing_of_the_one_before() -> None:
    locked = f"import os\nos.makedirs('a/b')\nos.chmod('a', 0)\nos.chmod('.', 0)\n{RIGHT}"
    assert outcomes(judge(locked)) == ["passed"] * 3
    finding = judge(f"import os\nprint(os.listdir(), os.getcwd())\n{RIGHT}")
    assert outcomes(finding) == ["passed"] * 3
    assert finding.output.startswith("[] ")


@pytest.mark.parametrize(
    "tests",
    ["assert add(1, 2 == 3", "", "x = 1\n", "def helper():\n    assert False\n", "async def helper():\n    pass\n"],
)
def test_tests_that_are_broken_are_a_failure_of_ours_not_of_the_model(tests: str) -> None:
    with pytest.raises(VerifierError, match="tests"):
        judge(RIGHT, case(tests))
    with pytest.raises(VerifierError, match="tests"):
        VERIFIER.check(case(tests))


def test_a_sandbox_that_cannot_start_is_a_failure_of_ours(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    with pytest.raises(VerifierError, match=r"the sandbox did not start: .*No such file"):
        judge(RIGHT, case(verify=Verify(python_env=str(tmp_path))))


def test_tests_may_be_asserts_functions_or_a_check_of_a_candidate() -> None:
    styles = [
        case(
            "from math import pi\nexpected = 3\nfor _ in range(2):\n    expected += 0\nassert add(1, 2) == expected, 'sum'\n"
        ),
        case("def test_one():\n    assert add(1, 2) == 3\n\ndef test_two():\n    assert add(1, 1) == 2\n"),
        case("def check(candidate):\n    assert candidate(1, 2) == 3\n", verify=Verify(entry_point="add")),
        case(
            "def check(candidate):\n    assert candidate(1, 2) == 3\n", verify=Verify(style="check", entry_point="add")
        ),
        case("", verify=Verify(tests="assert add(1, 2) == 3")),
    ]
    for style in styles:
        good, bad = judge(RIGHT, style), judge("def add(a, b):\n    return 0\n", style)
        assert set(outcomes(good)) == {"passed"}
        assert "failed" in outcomes(bad)
        assert bad.label == "wrong answer"


def test_what_a_check_asserts_is_counted_one_by_one() -> None:
    tests = "def check(candidate):\n    assert True, 'fine'\n    assert candidate(1, 2) == 3\n    both = candidate(2, 2)\n    assert both == 4\n    for n in (5, 6):\n        assert candidate(n, 0) == n\n"
    of = case(tests, verify=Verify(entry_point="add"))
    finding = judge("def add(a, b):\n    return 3 if a == 1 else 4\n", of)
    assert [test.name for test in finding.tests] == ["candidate(1, 2) == 3", "both == 4", "for n in (5, 6):"]
    assert outcomes(finding) == ["passed", "passed", "failed"]
    early = "def check(candidate):\n    if candidate(1, 2) == 3:\n        return\n    assert False\n"
    finding = judge(RIGHT, case(early, verify=Verify(entry_point="add")))
    assert [(test.name, test.outcome) for test in finding.tests] == [("check(add)", "passed")]


def test_an_answer_without_the_function_under_test_is_wrong() -> None:
    for of in (
        case(),
        case("def check(candidate):\n    assert candidate(1, 2) == 3\n", verify=Verify(entry_point="add")),
    ):
        finding = judge("def subtract(a, b):\n    return a - b\n", of)
        assert set(outcomes(finding)) == {"failed"}
        assert "add" in finding.reason


def test_expected_functions_and_types_that_are_missing_are_named() -> None:
    of = case(expected_functions=("add", "other"), expected_types=("Thing",))
    assert judge(f"{RIGHT}\nclass Thing: pass\n", of).missing == ("other",)
    assert judge("def add(", of).missing == ("other", "Thing")


def test_a_case_that_should_not_compile_is_judged_by_that() -> None:
    of = case("", should_compile=False)
    assert is_correct(of, judge("def add(", of))
    assert not is_correct(of, judge(RIGHT, of))


def test_a_case_whose_tests_are_not_run_is_judged_by_compiling() -> None:
    of = case("assert add(1, 2) == 4", should_pass_tests=False)
    assert is_correct(of, judge(RIGHT, of))
    assert not is_correct(of, judge("def add(", of))


def test_the_same_answer_is_judged_the_same_way_every_time() -> None:
    code = "def add(a, b):\n    return next(iter({str(a), str(b), 'x', 'y'}))\n"
    of = case("assert add(1, 2) == 'x'\n")
    assert len({judge(code, of).reason for _ in range(4)}) == 1


PAIRS = (Pair(input="1 2\n", output="3\n"), Pair(input="20 22", output="42"))


def test_a_program_is_judged_by_what_it_prints_for_each_input() -> None:
    of = case("", verify=Verify(style="io", pairs=PAIRS))
    finding = judge("print(sum(map(int, input().split())), ' ')", of)
    assert (outcomes(finding), finding.trust) == (["passed"] * 2, "isolated")
    finding = judge("print(3)", of)
    assert outcomes(finding) == ["passed", "failed"]
    assert finding.reason == "pair 2: printed '3\\n', expected '42'"
    assert judge("import sys\nsys.exit(3)", of).tests[0].message == "exit code 3"
    assert judge("print(", of).label == "does not compile"
    assert judge("import os\nprint(3, flush=True)\nos._exit(0)", of).label == "wrong answer"


def test_a_function_is_judged_by_what_it_returns_for_each_input() -> None:
    pairs = (Pair(input=[1, 2], output=3), Pair(input=[[1], [2]], output=[1, 2]), Pair(input=["a", "b"], output="ab"))
    of = case("", verify=Verify(pairs=pairs, entry_point="add"))
    assert outcomes(judge(RIGHT, of)) == ["passed"] * 3
    # files know no tuples, so one is as good as a list; but true is not 1
    assert (
        outcomes(judge("def add(a, b):\n    return (a[0], b[0]) if isinstance(a, list) else a + b", of))
        == ["passed"] * 3
    )
    of = case("", verify=Verify(pairs=(Pair(input=[1], output=True),), entry_point="f"))
    assert outcomes(judge("def f(x):\n    return 1", of)) == ["failed"]


def test_examples_are_judged_as_doctest_judges_them() -> None:
    tests = """
    >>> total = add(1, 2)
    >>> total
    3
    >>> shout("hi")
    HI
    >>> add("a", 1)
    Traceback (most recent call last):
        ...
    TypeError: can only concatenate str (not "int") to str
    """
    of = case(tests, verify=Verify(style="doctest"))
    good = f"{RIGHT}\ndef shout(text):\n    print(text.upper())\n"
    assert outcomes(judge(good, of)) == ["passed"] * 3
    assert outcomes(judge(good.replace(".upper()", ""), of)) == ["passed", "failed", "passed"]


def test_what_a_stub_defines_is_what_its_tests_mean() -> None:
    stub = 'import math\n\ndef poly(xs, x):\n    return xs[0] + xs[1] * x\n\ndef root(xs):\n    """Find a root."""\n'
    tests = "def check(candidate):\n    assert math.fabs(poly([1, 2], candidate([1, 2]))) < 1e-4\n"
    of = case(tests, verify=Verify(entry_point="root", stub=stub))
    assert outcomes(judge("def root(xs):\n    return -xs[0] / xs[1]\n", of)) == ["passed"]
    assert outcomes(judge("def poly(xs, x):\n    return 0\ndef root(xs):\n    return 7\n", of)) == ["failed"]
    assert outcomes(judge("class math:\n    fabs = lambda x: 0\ndef root(xs):\n    return 7\n", of)) == ["failed"]


def test_plain_data_arrives_as_it_was() -> None:
    values = [
        (1, (2, [3, {4: "five", (6,): None}])), {1, 2}, frozenset({3}), b"bytes", 1.5, float("inf"), 2 + 3j, 10**4000, -(10**30),
        True, "text\u2028\x00", range(3), [], {}, (), "",
    ]  # fmt: skip
    tests = f"inf = float('inf')\nfor value in {values!r}:\n    got = echo(value)\n    assert got == value and type(got) is type(value), value\n"
    of = case(f"def test_all():\n{''.join(f'    {line}' for line in tests.splitlines(True))}")
    finding = judge("def echo(value):\n    return value\n", of)
    assert outcomes(finding) == ["passed"], finding.reason


UNITTEST = """
import unittest
from answer import add

class Sums(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(add(1, 2), 3)
    def test_text(self):
        self.assertEqual(add("a", "b"), "ab")
"""
PYTEST = """
import pytest
from answer import add

@pytest.mark.parametrize(("a", "b", "total"), [(1, 2, 3), (-1, 1, 0)])
def test_sums(a, b, total):
    assert add(a, b) == total

def test_refusals():
    with pytest.raises(TypeError):
        add(1, "b")
"""


@pytest.mark.parametrize(("style", "tests", "count"), [("unittest", UNITTEST, 2), ("pytest", PYTEST, 3)])
def test_files_of_unittest_and_pytest_run_apart_from_the_answer(style: str, tests: str, count: int) -> None:
    of = case(tests, verify=Verify(style=style))
    finding = judge(RIGHT, of)
    assert (outcomes(finding), finding.trust, finding.note) == (["passed"] * count, "isolated", "")
    finding = judge("def add(a, b):\n    return 3\n", of)
    assert outcomes(finding) == ["passed"] + ["failed"] * (count - 1)
    assert finding.label in ("wrong answer", "exception")
    assert judge("def add(a, b)", of).label == "does not compile"


def test_packages_come_from_the_environment_that_is_named(tmp_path: Path) -> None:
    environment = tmp_path / "env"
    venv.create(environment, symlinks=True)
    folder = next((environment / "lib").iterdir()) / "site-packages"
    (folder / "sums.py").write_text("def total(a, b):\n    return a + b\n")
    code = "from sums import total\ndef add(a, b):\n    return total(a, b)\n"
    for tests, style in ((f"import sums\n{ADD}", ""), (UNITTEST, "unittest")):
        of = case(tests, verify=Verify(python_env=str(environment), style=style))
        assert set(outcomes(judge(code, of))) == {"passed"}
        assert "No module named 'sums'" in judge(code, case(tests, verify=Verify(style=style))).reason
    with pytest.raises(VerifierError, match="pytest is not installed"):
        judge(RIGHT, case(PYTEST, verify=Verify(python_env=str(environment), style="pytest")))
    with pytest.raises(VerifierError, match="is not a virtual environment"):
        VERIFIER.check(case(verify=Verify(python_env=str(tmp_path))))


def test_a_sandbox_that_is_given_up_keeps_no_other_from_starting(tmp_path: Path) -> None:
    environment = tmp_path / "env"
    venv.create(environment, symlinks=True)
    of = case(PYTEST, verify=Verify(python_env=str(environment), style="pytest"))

    async def judged_again() -> None:
        # the sockets of the second sandbox get the numbers of the first one's
        sandbox = ZygoteSandbox(LEVEL)
        verifier = PythonVerifier(sandbox)
        try:
            for _ in range(2):
                with pytest.raises(VerifierError, match="pytest is not installed"):
                    await verifier.verify(of, Answer(text=verbatim_reply(RIGHT, "python")))
        finally:
            await verifier.close()
            await sandbox.close()

    asyncio.run(judged_again())


def test_an_environment_with_an_older_python_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /opt/python3.10/bin\nversion = 3.10.13\n")
    with pytest.raises(VerifierError, match=r"has Python 3\.10, and answers are run by 3\.11 or later"):
        VERIFIER.check(case(verify=Verify(python_env=str(tmp_path))))


PLUGIN = """
import _pytest.fixtures, unittest
class Ours: pass
def replaced(owner, name):
    before = getattr(owner, name)
    setattr(owner, name, lambda *a, **k: before(*a, **k))
replaced(_pytest.fixtures.FixtureFunctionMarker, "__call__")
def pytest_configure(config):
    replaced(unittest.TestCase, "assertTrue")
"""
"""Changes pytest when it is loaded, as hypothesis does, and unittest a little later."""


def test_what_a_plug_in_changes_of_pytest_is_not_the_answers_doing(tmp_path: Path) -> None:
    environment = tmp_path / "env"
    venv.create(environment, symlinks=True)
    folder = next((environment / "lib").iterdir()) / "site-packages"
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        found = Path(str(importlib.util.find_spec(name).origin)).parent  # type: ignore[union-attr]
        shutil.copytree(found, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(str(importlib.util.find_spec("py").origin), folder)  # type: ignore[union-attr]
    (folder / "changing.py").write_text(PLUGIN)
    (folder / "changing-1.dist-info").mkdir()
    (folder / "changing-1.dist-info" / "METADATA").write_text("Name: changing\nVersion: 1\n")
    (folder / "changing-1.dist-info" / "entry_points.txt").write_text("[pytest11]\nchanging = changing\n")
    tests = "import pytest\nfrom answer import add\n@pytest.fixture\ndef two(tmp_path): return 2\ndef test_add(two): assert add(1, two) == 3\n"
    of = case(tests, verify=Verify(python_env=str(environment), style="pytest"))
    right, wrong = judge(RIGHT, of), judge("def add(a, b):\n    return 4\n", of)
    assert (right.label, right.trust) == ("", "in-process"), right.reason
    assert wrong.label == "wrong answer", wrong.reason
    assert "changed" not in right.note
    changing = judge("import pytest\ndef add(a, b):\n    pytest.fixture = None\n    return 3\n", of)
    assert (changing.label, changing.note) == ("", "it has changed pytest.fixture, by which tests are run")


def test_every_reference_we_ship_is_accepted_and_every_counterexample_refused() -> None:
    cases = evalsets.load([EXAMPLES / "python-basics.toml"]).cases
    assert all(case.reference and case.counterexample for case in cases)
    proved, problems = check_references(cases)
    assert problems == []
    assert proved == 2 * len(cases)
    assert len(cases) >= 15
