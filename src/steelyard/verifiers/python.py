"""Python answers, judged by running their tests."""

from __future__ import annotations

import ast
import platform
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.errors import VerifierError
from steelyard.protocols import Limits, Outcome
from steelyard.records import Case, Diagnostic, Finding, Span, Test
from steelyard.verifiers.extract import extract

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox

DEFINITION = re.compile(
    r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE
)
"""A line that gives a name to a function, a class or a value."""
HARNESS = Path(__file__).with_name("python_harness.py").read_text("utf-8")


class Python:
    """Compiles an answer and runs its tests in a process of their own."""

    version = f"python 1, CPython {platform.python_version()}"

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def check(self, case: Case) -> None:
        _steps(case)

    async def verify(self, case: Case, text: str) -> Finding:
        steps = _steps(case)
        expected = (*case.expectations.expected_functions, *case.expectations.expected_types)
        entry_point = (case.verify.entry_point,) if case.verify.entry_point else ()
        extracted = extract(text, "python", defines=entry_point or expected)
        if extracted.code is None:
            return Finding(label="no code", reason=f"no code in the reply ({extracted.how})")
        nonce = secrets.token_hex(8)
        job = {"nonce": nonce, "code": extracted.code, "steps": [step.job for step in steps]}
        outcome = await self._sandbox.run(
            # not -I, which would not listen to the hash seed either: the environment holds only what we put there
            [sys.executable, "-P", "-s", "-S", "-B", "-X", "utf8", "harness.py"],
            files={"harness.py": HARNESS},
            stdin=msgspec.json.encode(job),
            # a busy machine must not turn right into timed out: CPU time decides, wall time is a backstop
            limits=Limits(cpu_seconds=case.timeout_secs, wall_seconds=2 * case.timeout_secs + 10),
        )
        finding = _finding(_told(outcome, nonce), steps, outcome)
        return msgspec.structs.replace(
            finding,
            code=extracted.code,
            missing=_missing(extracted.code, expected),
            output=outcome.stderr.decode("utf-8", "replace"),
            trust="in-process",
            isolation=self._sandbox.level,
        )


class _Step(NamedTuple):
    """A statement of the tests: a test, or what prepares one."""

    name: str
    job: dict[str, Any]


def _steps(case: Case) -> list[_Step]:
    """The tests one by one: every assert at top level, every function test_*, or the one call of check()."""
    if not case.expectations.should_compile or not case.expectations.should_pass_tests:
        return []
    try:
        body = ast.parse(case.tests).body
    except SyntaxError as error:
        raise VerifierError(f"its tests are not Python: line {error.lineno}: {error.msg}") from None
    steps = [_step(node) for node in body]
    if case.verify.style == "check" or (not case.verify.style and case.verify.entry_point):
        call = f"check({case.verify.entry_point})"
        steps = [_Step("", {"test": False, "source": step.job["source"]}) for step in steps]
        steps.append(_Step(call, {"test": True, "source": call}))
    else:
        functions = [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
        steps += [_Step(name, {"test": True, "source": f"{name}()"}) for name in functions]
    if not any(step.job["test"] for step in steps):
        raise VerifierError("no tests; write asserts, functions test_*, or check(candidate)")
    return steps


def _step(node: ast.stmt) -> _Step:
    source = ast.unparse(node)
    if not isinstance(node, ast.Assert):
        return _Step("", {"test": False, "source": source})
    name = ast.unparse(node.test)
    job: dict[str, Any] = {"test": True, "source": source}
    compared = node.test
    if isinstance(compared, ast.Compare) and len(compared.ops) == 1 and isinstance(compared.ops[0], ast.Eq):
        # both sides apart, so that a failure can say what came instead
        job |= {"left": ast.unparse(compared.left), "right": ast.unparse(compared.comparators[0])}
    return _Step(name if len(name) <= 120 else f"{name[:117]}...", job)


def _told(outcome: Outcome, nonce: str) -> list[dict[str, Any]]:
    """What the harness told before it ended, in order."""
    facts = []
    for line in outcome.stdout.splitlines():
        if line.startswith(nonce.encode()):
            try:
                facts.append(msgspec.json.decode(line[len(nonce) :]))
            except msgspec.MsgspecError:
                break  # it was stopped in the middle of a line
    return facts


def _finding(told: list[dict[str, Any]], steps: list[_Step], outcome: Outcome) -> Finding:
    if not told:
        raise VerifierError(f"the harness did not start: {outcome.stderr[-300:].decode('utf-8', 'replace')}")
    first = told[1] if len(told) > 1 else {}
    if "compiled" not in first:
        # no answer has run yet; only compiling something monstrous ends here
        return Finding(compiled=False, label=outcome.limit or "died", reason=_death(outcome))
    if not first["compiled"]:
        line = first["line"] or 1
        span = Span(file="answer.py", line_start=line, line_end=line, column_start=1, column_end=1)
        return Finding(
            compiled=False,
            diagnostics=(Diagnostic(level="error", message=first["error"], spans=(span,)),),
            label="does not compile",
            reason=first["error"],
            compile_seconds=outcome.seconds,
        )
    results = {fact["test"]: fact for fact in told if "test" in fact}
    broken = next(
        (str(fact.get("raised") or fact["setup"]) for fact in told if "raised" in fact or "setup" in fact), ""
    )
    finished = any("finished" in fact for fact in told)
    otherwise = broken or ("" if finished else _death(outcome))
    tests = []
    for number, step in enumerate(steps):
        if step.job["test"]:
            fact = results.get(number, {"wrong": otherwise or "not run", "seconds": 0})
            outcome_word = "failed" if fact["wrong"] else "passed"
            tests.append(Test(name=step.name, outcome=outcome_word, message=fact["wrong"], seconds=fact["seconds"]))
    label, reason = _why(tests, broken, "" if finished or broken else (outcome.limit or "died"), otherwise)
    return Finding(
        compiled=True,
        tests=tuple(tests),
        label=label,
        reason=reason,
        compile_seconds=first["seconds"],
        test_seconds=outcome.seconds,
    )


def _why(tests: list[Test], broken: str, ended: str, otherwise: str) -> tuple[str, str]:
    """The kind of failure, and the failure in one line."""
    if broken:
        return "exception", f"raised before any test: {broken}"
    if ended:
        return ended, otherwise
    wrong = next((test for test in tests if test.outcome == "failed"), None)
    if wrong is None:
        return "", ""
    if "MemoryError" in wrong.message:
        return "memory limit", f"{wrong.name}: {wrong.message}"
    wrong_answer = wrong.message.startswith(("got ", "AssertionError"))
    return ("wrong answer" if wrong_answer else "exception"), f"{wrong.name}: {wrong.message}"


def _death(outcome: Outcome) -> str:
    if outcome.limit:
        return f"stopped at the {outcome.limit} after {outcome.seconds:.1f} s"
    if outcome.exit_code < 0:
        return f"died before the verdict, by signal {-outcome.exit_code}"
    return f"died before the verdict, with exit code {outcome.exit_code}"


def _missing(code: str, expected: tuple[str, ...]) -> tuple[str, ...]:
    """The expected names that no line defines; a search that hostile code cannot make slow, as parsing it here could be."""
    defined = {name for pair in DEFINITION.findall(code) for name in pair}
    return tuple(name for name in expected if name not in defined)
