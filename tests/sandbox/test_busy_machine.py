"""A busy machine changes no verdict: right answers stay right and wrong ones wrong, in every language."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from steelyard import load, run
from steelyard.records import Case, Failure, Verdict
from steelyard.sandbox.fair_clock import has_fair_clock
from steelyard.store.journal import StoredRun
from support.toolchains import needs

EXAMPLES = Path(__file__).parents[2] / "examples"
BUSY_PROCESSES = 40
ATTEMPTS = 1000
CASES_BY_SET = {"python-basics.toml": 20, "rust-basics.toml": 10, "c-basics.toml": 3}
"""How many cases of each set: an attempt in C takes nine times the CPU time of one in Python, and beside the busy processes each second takes ten."""

pytestmark = [
    pytest.mark.slow,
    needs("rustc"),
    needs("gcc"),
    pytest.mark.skipif(not has_fair_clock(), reason="the kernel does not tell how long processes wait"),
]


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    # they end with whoever started them, even if that is killed
    burn = [sys.executable, "-c", "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"]
    # the kernel shares processors among sessions first
    burning = [subprocess.Popen(burn, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def verdicts(cases: Sequence[Case], recording: Path, folder: Path) -> dict[tuple[str, int], tuple[object, ...]]:
    done = run(cases, models=f"replay:{recording}", output=folder)
    found: dict[tuple[str, int], tuple[object, ...]] = {}
    for fact in StoredRun(done.folder).facts():
        assert not isinstance(fact, Failure), fact
        if isinstance(fact, Verdict):
            outcomes = tuple((test.name, test.outcome) for test in fact.found.tests)
            found[fact.case, fact.number] = (fact.found.compiled, fact.found.label, outcomes)
    return found


def test_forty_busy_processes_beside_a_thousand_attempts_change_no_verdict(tmp_path: Path) -> None:
    cases = [case for name, count in CASES_BY_SET.items() for case in load([EXAMPLES / name]).cases[:count]]
    recording = tmp_path / "samples.jsonl"
    with recording.open("w", encoding="utf-8") as file:
        for number in range(ATTEMPTS):
            case = cases[number % len(cases)]
            # two right answers to each wrong one, no two texts alike
            code = case.counterexample if number // len(cases) % 3 == 2 else case.reference
            text = f"```{case.language}\n{code}\n```" + "\n" * (number // len(cases))
            file.write(json.dumps({"case_id": case.id, "raw_response": text}) + "\n")
    quiet = verdicts(cases, recording, tmp_path / "quiet")
    with busy_processes(BUSY_PROCESSES):
        busy = verdicts(cases, recording, tmp_path / "busy")
    assert len(quiet) == ATTEMPTS
    assert {case.language for case in cases} == {"python", "rust", "c"}
    assert busy == quiet
