"""Whole programs: whatever runs as `python3 answer.py < input` runs the same way here, and is judged by what it prints."""

from __future__ import annotations

import asyncio
import math
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Finding, Pair, Verify
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.sandbox.worker import base_interpreter
from steelyard.text import verbatim_reply
from steelyard.verifiers.code.pairs import check_pairs, output_difference
from steelyard.verifiers.python.plan import python_test_plan
from steelyard.verifiers.python.verifier import PythonVerifier
from support.honest_programs import HOSTILE_PROGRAMS, PROCESS_PROGRAMS, PROGRAMS
from support.toolchains import isolation_level


def program_case(given: str, wanted: str, **verify: object) -> Case:
    pairs = (Pair(input=given, output=wanted),)
    return Case(id="program", prompt="x", language="python", timeout_secs=3, verify=Verify(pairs=pairs, **verify))  # type: ignore[arg-type]


def judged(attempts: Sequence[tuple[Case, str]], level: str = "") -> list[Finding]:
    """The findings of programs that run one after the other."""

    async def work() -> list[Finding]:
        found = ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)] if level else strongest_isolation(allow_weak=True)
        sandbox = ZygoteSandbox(found)
        python = PythonVerifier(sandbox)
        try:
            return [await python.verify(case, Answer(text=verbatim_reply(code, "python"))) for case, code in attempts]
        finally:
            await python.close()
            await sandbox.close()

    return asyncio.run(work())


def plain_output(folder: Path, code: str, given: str) -> tuple[int, str]:
    """What a program prints when nobody contains it."""
    folder.mkdir()
    (folder / "answer.py").write_text(code, "utf-8")
    (folder / "input").write_bytes(given.encode())
    with (folder / "input").open("rb") as stdin, (folder / "output").open("wb") as stdout:
        done = subprocess.run(
            [base_interpreter(), "answer.py"],
            cwd=folder,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUTF8": "1"},
            timeout=60,
            check=False,
        )
    return done.returncode, (folder / "output").read_text("utf-8")


@pytest.mark.slow
def test_the_honest_programs_are_right_by_themselves(tmp_path: Path) -> None:
    programs = [*PROGRAMS, *PROCESS_PROGRAMS]
    with ThreadPoolExecutor(2) as pool:
        folders = (tmp_path / str(number) for number in range(len(programs)))
        ran = list(pool.map(lambda folder, program: plain_output(folder, program[1], program[2]), folders, programs))
    for (name, _, _, wanted), (code, got) in zip(programs, ran, strict=True):
        assert (name, code, output_difference(got, wanted)) == (name, 0, "")


@pytest.mark.parametrize("level", [level for level in ISOLATION_LEVEL_NAMES if level not in ("seatbelt", "process")])
def test_no_honest_program_is_failed(level: str) -> None:
    isolation_level(level)
    # where a sandbox has no file system of its own, processes have no place for semaphores
    programs = [*PROGRAMS, *(PROCESS_PROGRAMS if level != "landlock" else ())]
    found = judged([(program_case(given, wanted), code) for _, code, given, wanted in programs], level)
    assert len(programs) >= 60
    failed = [(name, one.reason) for (name, *_), one in zip(programs, found, strict=True) if one.label]
    assert failed == []
    assert {one.trust for one in found} == {"isolated"}


@pytest.mark.parametrize("level", ["full", "bubblewrap"])
def test_functions_may_use_processes_too(level: str) -> None:
    isolation_level(level)
    codes = (
        (
            "from multiprocessing import Pool\ndef square(x): return x * x\n"
            "def f(n):\n    with Pool(2) as pool:\n        return sum(pool.map(square, range(n)))\n"
        ),
        (
            "from concurrent.futures import ProcessPoolExecutor\ndef square(x): return x * x\n"
            "def f(n):\n    with ProcessPoolExecutor(2) as pool:\n        return sum(pool.map(square, range(n)))\n"
        ),
    )
    of = Case(id="f", prompt="x", language="python", verify=Verify(tests="assert f(4) == 14\nassert f(1) == 0\n"))
    assert [(one.reason, one.trust) for one in judged([(of, code) for code in codes], level)] == [("", "isolated")] * 2


def test_a_program_gains_nothing_by_how_it_ends() -> None:
    found = judged([(program_case("", "6", tolerance=1e-9), code) for _, code, _ in HOSTILE_PROGRAMS])
    labels = [(name, one.label) for (name, *_), one in zip(HOSTILE_PROGRAMS, found, strict=True)]
    assert labels == [(name, label) for name, _, label in HOSTILE_PROGRAMS]


def test_a_program_finds_nowhere_what_it_is_to_print() -> None:
    search = """
import ctypes, gc, os, re, sys
key = "hid" + "den-"
places = [repr(gc.get_objects()), repr(dict(os.environ)), repr(sys.orig_argv), repr(vars(sys))]
frame = sys._getframe()
while frame:
    places.append(repr(frame.f_locals) + repr(frame.f_globals))
    frame = frame.f_back
for folder in (".", "..", "/", "/dev", "/dev/shm", "/dev/streams", "/tmp"):
    try:
        for name in os.listdir(folder):
            if os.path.isfile(folder + "/" + name):
                places.append(open(folder + "/" + name, errors="replace").read(100_000))
    except OSError:
        pass
found = [match for text in places for match in re.findall(key + "[a-z]+", text)]
print(found[0] if found else "nothing")
"""
    case = program_case("given", "hidden-output")
    right, hostile, again = judged([(case, "print('hidden-output')"), (case, search), (case, search)])
    assert (right.label, hostile.label, again.label) == ("", "wrong answer", "wrong answer")
    assert hostile.reason == "pair 1: printed 'nothing\\n', expected 'hidden-output'"


def test_the_reason_is_what_the_program_said_last() -> None:
    code = "import sys\nprint('debug', file=sys.stderr)\ndef f():\n    raise ValueError('no such case')\nf()\n"
    (finding,) = judged([(program_case("", "6"), code)])
    assert finding.reason == "pair 1: ValueError: no such case"
    assert finding.output.startswith("debug\nTraceback (most recent call last):\n")
    assert "program.py" not in finding.output, "the traceback begins in the answer"
    assert 'answer.py", line 4, in f' in finding.output


def test_a_program_that_runs_out_of_time_is_not_tried_on_every_input() -> None:
    pairs = tuple(Pair(input=str(number), output="6") for number in range(3))
    case = Case(id="program", prompt="x", language="python", timeout_secs=1, verify=Verify(pairs=pairs))
    (finding,) = judged([(case, "while True: pass")])
    assert [test.message for test in finding.tests[1:]] == ["not run after the cpu limit"] * 2


@pytest.mark.parametrize(
    ("got", "wanted", "tolerance", "same"),
    [
        ("0.3333333", "0.33333333", 1e-6, True),
        ("0.3333", "0.33333333", 1e-6, False),
        ("0.3333333", "0.33333333", 0, False),
        ("1e9", "1000000001", 1e-6, True),
        ("1000100000", "1000000000", 1e-6, False),
        ("0", "-0.0000001", 1e-6, True),
        ("5", "5.0", 1e-9, True),
        ("Case 1: 2.0000000001", "Case 1: 2", 1e-6, True),
        ("case 1: 2", "Case 1: 2", 1e-6, False),
        ("1.0  2.0 \n\n", "1 2", 1e-6, True),
        ("1.0 2.0", "1\n2", 1e-6, False),
        ("1 2 3", "1 2", 1e-6, False),
        ("nan", "1", 1e-6, False),
        ("nan", "nan", 1e-6, True),
        ("inf", "1e400", 1e-6, False),
        ("1_000", "1000", 1e-6, False),
        ("٣", "3", 1e-6, False),
        ("YES", "YES", 1e-6, True),
        ("", "", 1e-6, True),
        ("0x10", "16", 1e-6, False),
    ],
)
def test_numbers_may_be_off_by_the_tolerance_that_the_case_gives(
    got: str, wanted: str, tolerance: float, same: bool
) -> None:
    assert (output_difference(got, wanted, tolerance) == "") == same


@pytest.mark.parametrize("character", "\v\f\x1c\x1d\x1e\x85\u2028\u2029 ")
def test_only_an_end_of_line_begins_another_line(character: str) -> None:
    assert output_difference(f"6{character}1\n", "6\n1\n")
    assert output_difference(f"6{character}1\n", "6\n1\n", tolerance=1e-6)
    assert output_difference(f"6{character}1 \r\n", f"6{character}1\n") == ""


def test_a_long_output_is_described_by_its_first_wrong_line() -> None:
    lines = [str(number) for number in range(1000)]
    wrong = [*lines[:500], "x", *lines[501:]]
    assert output_difference("\n".join(wrong), "\n".join(lines)) == "printed 'x', expected '500' on line 501"
    assert output_difference("\n".join(lines[:-1]), "\n".join(lines)) == "printed 999 lines, expected 1,000"


def test_a_tolerance_that_makes_no_sense_is_refused() -> None:
    python = PythonVerifier(ZygoteSandbox(ISOLATION_LEVELS[0]))
    for tolerance in (-1e-6, 1.0, float("nan")):
        with pytest.raises(VerifierError, match="tolerance"):
            python.check(program_case("", "6", tolerance=tolerance))
    with pytest.raises(VerifierError, match="tolerance is for programs"):
        python.check(
            Case(
                id="function",
                prompt="x",
                language="python",
                verify=Verify(pairs=(Pair(input=[1], output=1.0),), entry_point="f", tolerance=1e-6),
            )
        )


def test_a_pair_that_could_not_travel_is_refused_before_anybody_is_asked() -> None:
    for value in (math.inf, math.nan, [1, {"x": -math.inf}]):
        verify = Verify(kind="python", style="io", entry_point="f", pairs=(Pair(input=[value], output=1),))
        with pytest.raises(VerifierError, match="cannot hold infinity or nan"):
            python_test_plan(Case(id="a", prompt="f", language="python", verify=verify))


def test_pairs_that_are_no_records_are_refused_with_what_to_write() -> None:
    told: Any = [{"input": "1\n", "output": "2\n"}]
    with pytest.raises(VerifierError, match=r"write Pair\(input="):
        check_pairs(told, 0)
