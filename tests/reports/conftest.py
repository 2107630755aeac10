"""A run made by hand, in which everything that others write is hostile."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.estimates import share as estimated
from steelyard.analysis.summary import (
    AttemptText,
    CaseSummary,
    Flag,
    ModelSummary,
    RunResults,
    Summary,
    VerificationCount,
)
from steelyard.records import (
    Answer,
    Case,
    Cost,
    Diagnostic,
    EvalSetFile,
    Failure,
    Finding,
    Message,
    Price,
    Reply,
    RunInfo,
    Span,
    Test,
    Verdict,
)
from steelyard.reports.lists import AttemptLimit, ContainmentLevel, MachineHealth, ToolStatus

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = (
    '<script>alert(1)</script> "><img src=x onerror=alert(2)> ]]> --> {{ 7*7 }} [bold]b[/bold] :smile:\n'
    "````` ``` ` | @octocat #1 http://evil.example/ www.evil.example \\\n"
    "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x1b[2J \x9b2J \r over \u202egnp.exe\u2066 \x00 \u200b \U000e0041\n"
    "=cmd|'/c calc'!A1\n</pre></details><a href=\"javascript:alert(3)\">x</a>"
)
STRONG, WEAK = "openai/gpt-5", "evil/<b>=m`1|"
AT = "2026-02-03T04:05:06.123456789+00:00"

CASES = (
    Case(id="add", name="Add two numbers", prompt="Write `add(a, b)`.", language="python"),
    Case(
        id="=HYPERLINK(1)",
        name=HOSTILE,
        prompt=(Message(role="system", content="Be brief."), Message(role="user", content=HOSTILE)),
        language="rust",
        tags=("<i>tag</i>",),
    ),
    Case(id="borrow", name="Borrow", prompt="Return a slice.", language="rust"),
)
SPAN = Span(file="src/lib.rs", line_start=3, line_end=3, column_start=5, column_end=9, text="let x = 1;")
GOOD = Finding(
    code="def add(a, b):\n    return a + b\n",
    compiled=True,
    tests=(
        Test(name="test_add", outcome="passed", seconds=0.01),
        Test(name="test_zero", outcome="passed"),
    ),
    warnings=0,
    compile_seconds=0.02,
    test_seconds=0.13,
    isolation="bubblewrap",
    trust="isolated",
)
BAD = Finding(
    code=HOSTILE,
    compiled=True,
    tests=(
        Test(name="test_one", outcome="passed"),
        Test(name=HOSTILE, outcome="failed", message=HOSTILE),
        Test(name="test_slow", outcome="ignored"),
    ),
    warnings=1,
    diagnostics=(
        Diagnostic(level="error", message=HOSTILE, code="E0308", spans=(SPAN,)),
        Diagnostic(level="warning", message="unused variable", code="unused_variables"),
        Diagnostic(
            level="warning",
            message="needless return",
            code="clippy::needless_return",
            spans=(SPAN,),
        ),
    ),
    missing=("frob",),
    label="test failed",
    reason=HOSTILE,
    output=HOSTILE,
)
FORGED = msgspec.structs.replace(BAD, label="tampered", tampered=HOSTILE, isolation="full", trust="in-process")
UNSTEADY = msgspec.structs.replace(GOOD, rechecked=3, disagreed=2)
NONE = Finding(code=None, compiled=False, label="no code", reason="the reply holds no code block")


def answer(text: str, *, priced: bool = True) -> Answer:
    return Answer(
        text=text,
        finish="stop" if text else "length",
        input_tokens=120,
        output_tokens=48,
        cached_tokens=20,
        cost=Cost(usd=0.000246, source="genai-prices", date="2026-01-01") if priced else None,
        latency=1.25,
    )


def tried(
    case: Case,
    model: str,
    number: int,
    found: Finding | None,
    text: str = "",
    *,
    failure: str = "",
    score: float = 0.0,
) -> AttemptText:
    """One attempt: judged when there is a finding, else stopped by a failure of ours."""
    key = f"{case.id}/{model}/{number}"
    about = {"key": key, "at": AT, "case": case.id, "model": model, "number": number}
    said = {"kind": "reply", "answer": answer(text, priced=model == STRONG), "asked": "0"}
    judged = {"kind": "verdict", "ask": key, "tests": "0", "verifier": "python 1", "found": found}
    broken = {"kind": "failure", "stage": "verify" if text else "ask", "message": failure}
    return AttemptText(
        case=case,
        model=model,
        tier="",
        number=number,
        reply=msgspec.convert(about | said, Reply) if found or text else None,
        verdict=msgspec.convert(about | judged, Verdict) if found else None,
        failure=msgspec.convert(about | broken, Failure) if failure else None,
        correct=score == 1.0 if found else None,
        score=score if found else None,
    )


ADD, EVIL, BORROW = CASES
ATTEMPTS = (
    tried(ADD, STRONG, 1, GOOD, "```python\ndef add(a, b):\n    return a + b\n```", score=1.0),
    tried(ADD, STRONG, 2, GOOD, "```python\ndef add(a, b):\n    return a + b\n```", score=1.0),
    tried(ADD, WEAK, 1, GOOD, "def add(a, b):\n    return a + b", score=1.0),
    tried(ADD, WEAK, 2, NONE, ""),
    tried(EVIL, STRONG, 1, BAD, HOSTILE, score=0.625),
    tried(EVIL, STRONG, 2, GOOD, "fine", score=1.0),
    tried(EVIL, WEAK, 1, BAD, HOSTILE, score=0.625),
    tried(EVIL, WEAK, 2, FORGED, HOSTILE),
    tried(BORROW, STRONG, 1, UNSTEADY, "fine", score=1.0),
    tried(BORROW, STRONG, 2, None, failure="HTTP 503 " + HOSTILE),
    tried(BORROW, WEAK, 1, None, failure="HTTP 503"),
    tried(BORROW, WEAK, 2, None, "fn f() {}", failure="the sandbox would not start"),
)

MODELS = (
    ModelSummary(
        model=STRONG,
        cases=3,
        attempts=5,
        correct=4,
        solved=3,
        missing=1,
        pass_at={
            1: Estimate(value=0.8333333, low=0.40123, high=0.9712, cases=3, attempts=5),
            2: Estimate(value=1.0, low=0.34, high=1.0, cases=2, attempts=4),
        },
        score=Estimate(value=0.925, low=0.501, high=0.9987, cases=3, attempts=5),
        compile_rate=Estimate(value=1.0, low=0.566, high=1.0, cases=3, attempts=5),
        test_pass_rate=Estimate(value=0.9, low=0.48, high=0.99, cases=3, attempts=5),
        lint=Estimate(value=0.98, low=0.6, high=0.999, cases=3, attempts=5),
        input_tokens=600,
        output_tokens=240,
        cost_usd=0.00123,
        unpriced=0,
        cost_of_pass=Estimate(value=0.0003075, low=0.00021, high=0.00059, cases=3, attempts=5),
        latency=Estimate(value=1.25, low=1.1, high=1.4, cases=3, attempts=6),
        latency_p50=1.2,
        latency_p95=1.5,
        flaky=1,
        truncated=0,
        empty=0,
        rechecked=4,
        disagreed=1,
        disagreed_attempts=(Flag(case="borrow", number=1, reason="passed at first, then failed 2 of 3 times"),),
        verified=(
            VerificationCount(trust="in-process", isolation="bubblewrap", attempts=1),
            VerificationCount(trust="isolated", isolation="bubblewrap", attempts=4),
        ),
    ),
    ModelSummary(
        model=WEAK,
        cases=3,
        attempts=4,
        correct=1,
        solved=1,
        missing=2,
        unscored=("borrow",),
        pass_at={
            1: Estimate(value=0.25, low=0.046, high=0.699, cases=2, attempts=4),
            2: Estimate(value=0.5, low=0.095, high=0.905, cases=2, attempts=4),
        },
        score=Estimate(value=0.5625, low=0.2, high=0.87, cases=2, attempts=4),
        compile_rate=Estimate(value=0.75, low=0.3, high=0.95, cases=2, attempts=4),
        test_pass_rate=Estimate(value=0.5, low=0.15, high=0.85, cases=2, attempts=4),
        lint=Estimate(value=None),
        input_tokens=600,
        output_tokens=240,
        cost_usd=None,
        unpriced=5,
        cost_of_pass=Estimate(value=None),
        latency=Estimate(value=1.25),
        latency_p50=1.25,
        latency_p95=1.25,
        truncated=1,
        empty=1,
        tampered=3,
        tampered_attempts=(
            Flag(case="=HYPERLINK(1)", number=2, reason=HOSTILE),
            Flag(case="add", number=7, reason="replaced unittest.TestCase.assertEqual"),
        ),
        verified=(VerificationCount(trust="isolated", isolation="bubblewrap", attempts=1),),
    ),
)


def counts(case: Case, model: str, attempts: int, correct: int, missing: int, why: str = "") -> CaseSummary:
    share = correct / attempts if attempts else None
    return CaseSummary(
        case=case.id,
        model=model,
        attempts=attempts,
        correct=correct,
        missing=missing,
        rate=estimated(correct, attempts),
        score=share,
        pass_at={1: share, 2: None if attempts < 2 else float(correct > 0)},
        flake_rate=None if attempts < 2 else float(0 < correct < attempts),
        why=why,
    )


SUMMARY = Summary(
    models=MODELS,
    cases=(
        counts(ADD, STRONG, 2, 2, 0),
        counts(ADD, WEAK, 2, 1, 0, "no code: the reply holds no code block"),
        counts(EVIL, STRONG, 2, 1, 0, HOSTILE),
        counts(EVIL, WEAK, 2, 0, 0, "2 of 2: " + HOSTILE),
        counts(BORROW, STRONG, 1, 1, 1),
        counts(BORROW, WEAK, 0, 0, 2),
    ),
    rule="code",
    warnings=(
        "evil/<b>=m`1|: 1 of 3 cases has no judged attempt (borrow)",
        "@octocat should know: " + HOSTILE,
    ),
    conclusive=False,
)


@pytest.fixture
def results() -> RunResults:
    """The whole run."""
    info = RunInfo(
        id="20260203-040506-ab12",
        started_at="2026-02-03T04:05:06.123456789+00:00",
        ended_at="2026-02-03T04:06:36.623456789+00:00",
        eval_sets=(
            EvalSetFile(path="evals/basic.toml", digest="d1"),
            EvalSetFile(path="evals/hard.toml", digest="d2"),
        ),
        models=(STRONG, WEAK),
        parameters={"temperature": 0.2},
        samples=2,
        k=(1, 2),
        seed=7,
        versions={"steelyard": "0.1.0", "python": "3.11.7"},
        prices={STRONG: Price(input=1.25, output=10, source="genai-prices", date="2026-01-01")},
    )
    return RunResults(info=info, cases=CASES, attempts=ATTEMPTS, summary=SUMMARY)


@pytest.fixture
def health() -> MachineHealth:
    """A machine where little can be enforced, and little is installed."""
    claims = ("files cannot be read", "no network")
    return MachineHealth(
        system="Linux 6.8.0 x86_64",
        root=False,
        level="landlock",
        levels=(
            ContainmentLevel(name="full", held={}, problem="unshare: Operation not permitted", holds=False),
            ContainmentLevel(name="landlock", held=dict.fromkeys(claims, True), problem="", holds=True),
            ContainmentLevel(name="process", held=dict.fromkeys(claims, False), problem="", holds=False),
        ),
        limits=(AttemptLimit(name="CPU time", most="60 s"), AttemptLimit(name="memory", most="1 GiB")),
        tools=(
            ToolStatus(
                name="Python", purpose="Python answers", version="3.11.7", path="/bin/python3", problem="", remedy=""
            ),
            ToolStatus(
                name="rustc",
                purpose="Rust answers",
                version="",
                path="/home/me/.cargo/bin/rustc",
                problem="does not run: " + HOSTILE,
                remedy="rustup",
            ),
            ToolStatus(
                name="go", purpose="Go", version="", path="", problem="not found", remedy="apt install golang-go"
            ),
        ),
        advice=("this machine forbids user namespaces; sudo sysctl user.max_user_namespaces=10000 allows them",),
    )


@pytest.fixture
def hostile() -> str:
    """What a model wrote wherever a text of a model stands in the results."""
    return HOSTILE


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Holds a text against the file that was reviewed; UPDATE_GOLDEN=1 writes it anew, for review."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert _rounded(text) == _rounded(path.read_text(encoding="utf-8"))

    return compare


def _rounded(text: str) -> str:
    """The text with long fractions cut to 12 digits: processors differ in the last ones."""
    return re.sub(r"\d+\.\d{13,}(e-?\d+)?", lambda number: f"{float(number[0]):.12g}", text)
