"""A function of the user's own as the judge."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from steelyard.analysis.scoring import SCORING_RULES, is_correct, score
from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.function import FunctionVerifier

NOWHERE = ZygoteSandbox(ISOLATION_LEVELS[-1])
"""Nothing is run, so nothing is started."""
CHECKS = """
from __future__ import annotations

from dataclasses import dataclass

@dataclass
class Opinion:
    good: bool

def yes(reply): return Opinion(True).good
def no(reply): return False
def half(reply): return 0.5
def one(reply): return 1
def table(reply): return {"pass": False, "score": 0.25, "reason": "too short"}
def passes(reply): return {"pass": True}
def scores(reply): return {"score": 1.0}
def reads(reply): return "hi" in reply
def knows(reply, case): return case.target in reply
async def waits(reply):
    import asyncio
    await asyncio.sleep(0)
    return True

def nothing(reply): return None
def words(reply): return "good"
def beyond(reply): return 1.5
def below(reply): return {"score": -0.1}
def lost(reply): return float("nan")
def empty(reply): return {}
def odd(reply): return {"score": True}
def raises(reply): raise KeyError("lost")
"""


@pytest.fixture
def checks(tmp_path: Path) -> Path:
    (tmp_path / "checks.py").write_text(CHECKS)
    return tmp_path / "checks.py"


def case(checks: Path, function: str) -> Case:
    return Case(id="c", prompt="?", target="hi", verify=Verify(python=f"{checks}:{function}"))


def judge(checks: Path, function: str, reply: str = "hi there") -> Finding:
    return asyncio.run(FunctionVerifier(NOWHERE).verify(case(checks, function), Answer(text=reply)))


@pytest.mark.parametrize(
    ("function", "passed", "own_score", "reason"),
    [
        ("yes", True, None, ""),
        ("no", False, None, "refused by the check"),
        ("half", False, 0.5, "refused by the check"),
        ("one", True, 1.0, ""),
        ("table", False, 0.25, "too short"),
        ("passes", True, None, ""),
        ("scores", True, 1.0, ""),
        ("reads", True, None, ""),
        ("knows", True, None, ""),
        ("waits", True, None, ""),
    ],
)
def test_a_check_may_say_yes_or_no_or_how_much_and_why(
    checks: Path, function: str, passed: bool, own_score: float | None, reason: str
) -> None:
    finding = judge(checks, function)
    assert (finding.passed, finding.score, finding.reason) == (passed, own_score, reason)
    assert is_correct(case(checks, function), finding) == passed
    expected = own_score if own_score is not None else float(passed)
    assert score(case(checks, function), finding, SCORING_RULES["code"]) == expected


def test_a_check_sees_the_reply_as_it_came(checks: Path) -> None:
    assert not judge(checks, "reads", "HI").passed
    assert not judge(checks, "knows", "").passed


@pytest.mark.parametrize("function", ["nothing", "words", "beyond", "below", "lost", "empty", "odd"])
def test_a_check_that_says_nothing_of_use_is_a_failure_of_ours(checks: Path, function: str) -> None:
    with pytest.raises(VerifierError, match=f"checks.py:{function} returned"):
        judge(checks, function)


def test_what_a_check_raises_leaves_it(checks: Path) -> None:
    with pytest.raises(KeyError):
        judge(checks, "raises")


@pytest.mark.parametrize("function", ["missing", ""])
def test_a_check_that_is_not_there_is_found_out_before_anything_is_asked(checks: Path, function: str) -> None:
    with pytest.raises(VerifierError):
        FunctionVerifier(NOWHERE).check(case(checks, function))


def test_a_file_that_cannot_be_read_or_run_is_found_out_before_anything_is_asked(checks: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def score(reply:\n")
    (tmp_path / "raising.py").write_text("1 / 0\n")
    for name, what in (("none.py", "No such file"), ("broken.py", "SyntaxError"), ("raising.py", "ZeroDivisionError")):
        with pytest.raises(VerifierError, match=what):
            FunctionVerifier(NOWHERE).check(case(tmp_path / name, "score"))


def test_a_check_that_is_edited_is_the_edited_check(tmp_path: Path) -> None:
    path = tmp_path / "checks.py"
    path.write_text("def score(reply):\n    return False\n")
    assert not judge(path, "score").passed
    path.write_text("def score(reply):\n    return 'hi' in reply\n")
    assert judge(path, "score").passed


def test_a_check_that_hangs_is_our_failure_not_the_models(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("import time\ndef hangs(reply):\n    time.sleep(3600)\n")
    slow = Case(id="c", prompt="?", timeout_secs=0.2, verify=Verify(python=f"{tmp_path / 'checks.py'}:hangs"))
    with pytest.raises(VerifierError, match=r"no verdict within 0\.2 s"):
        asyncio.run(FunctionVerifier(NOWHERE).verify(slow, Answer(text="hi")))
