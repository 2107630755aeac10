"""The program that runs Rust tests: `harness.rs`, compiled once and linked with the answers it judges.

Its main process never runs a line of an answer. It takes a secret from standard input, which begins every line that it
prints, and forks a child that forgets the secret, loses standard input and output, and runs the tests one after
the other, each in a thread. The result of a test is in memory that both share: while a test runs, the child cannot touch
that memory, and only code behind the test's end opens it again. A test in which the child ends has reported nothing and so
has failed; another child continues with the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from steelyard.protocols import ProcessResult
from steelyard.verifiers.rust.case_tests import CALL_PLACEHOLDER, HARNESS_ALIAS, RustTest

HARNESS_CRATE = "steelyard_harness"
HARNESS_SOURCE_PATH = Path(__file__).with_name("harness.rs")


class HarnessModule(NamedTuple):
    """An answer's module in a crate, with the tests that judge it."""

    module: str
    tests_module: str
    tests: Sequence[RustTest]


def harness_program(judged: Iterable[HarnessModule]) -> str:
    """The root of a crate whose main is the harness's; what no macro of an answer can reach comes first."""
    judged = list(judged)
    modules = "".join(f'#[path = "{each.module}/answer.rs"] mod {each.module};\n' for each in judged)
    tables = "".join(f"    &[\n{''.join(_entry(each, test) for test in each.tests)}    ],\n" for each in judged)
    return (
        f"fn main() {{\n    ::{HARNESS_ALIAS}::main(ATTEMPTS)\n}}\n"
        f"static ATTEMPTS: &[&[::{HARNESS_ALIAS}::Test]] = &[\n{tables}];\n{modules}"
    )


def _entry(judged: HarnessModule, test: RustTest) -> str:
    if test.ignored:
        return ""
    call = f"crate::{judged.module}::{judged.tests_module}::{test.name}()"
    call = test.runtime.replace(CALL_PLACEHOLDER, call) or call
    run = f"|| ::{HARNESS_ALIAS}::Told::told({call})"
    panics = "None" if test.panics is None else f"Some({test.panics})"
    ends = str(test.tells_its_end).lower()
    return f'        ::{HARNESS_ALIAS}::Test {{ name: "{test.name}", run: {run}, panics: {panics}, ends: {ends} }},\n'


class HarnessOutcome(StrEnum):
    """How a test ended, in the words of the harness."""

    PASSED = "passed"
    FAILED = "failed"
    """It panicked, or could not be run."""
    DIFFERS = "differs"
    """An assertion of the tests did not hold."""
    CPU = "cpu"
    KILLED = "killed"
    EXITED = "exited"


class HarnessTestResult(NamedTuple):
    """What the harness reported about one test."""

    outcome: HarnessOutcome
    code: int
    """The signal that killed it, or its exit code."""
    seconds: float
    message: str


class HarnessReport(NamedTuple):
    """What the harness reported before it ended."""

    began: bool
    finished: bool
    tests: dict[int, HarnessTestResult]


def harness_report(outcome: ProcessResult, secret: bytes) -> HarnessReport:
    """What is in the lines that begin with the secret; all other lines are ignored."""
    began = finished = False
    tests: dict[int, HarnessTestResult] = {}
    for line in outcome.stdout.splitlines():
        if not line.startswith(secret + b" "):
            continue
        parts = line[len(secret) + 1 :].decode("ascii", "replace").split(" ")
        if parts == ["ready"]:
            began = True
        elif parts == ["finished"]:
            finished = True
        elif len(parts) == 5:
            try:
                message = bytes.fromhex(parts[4]).decode("utf-8", "replace")
                tests[int(parts[0])] = HarnessTestResult(
                    HarnessOutcome(parts[1]), int(parts[2]), int(parts[3]) / 1e6, message
                )
            except ValueError:
                break  # it was stopped in the middle of a line
    return HarnessReport(began, finished, tests)
