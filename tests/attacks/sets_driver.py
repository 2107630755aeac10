"""Verifies the sets of attacks that stand beside the driver's table at one level, with an honest answer after every few of them.

Run as a program of its own, so that it can be run as another user:  python sets_driver.py LEVEL SET...
"""

from __future__ import annotations

import asyncio
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from attacks.blind_attacks import BLIND
from attacks.boundary_attacks import BOUNDARY, BoundaryAttack
from attacks.confirmed_attacks import CONFIRMED
from attacks.hostile import CASES, PYTEST, UNITTEST
from attacks.inside_attacks import FORGERIES
from attacks.library_attacks import ATTACKS, LibraryAttack
from attacks.process_attacks import PROCESS, PROGRAMS
from attacks.reviewed_attacks import REVIEWED
from attacks.state_attacks import STATE
from attacks.unshared_attacks import UNSHARED
from attacks.value_attacks import VALUE_ATTACKS
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding, Pair
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, probe_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.in_process import InProcessJudge
from steelyard.verifiers.python.plan import python_test_plan
from steelyard.verifiers.python.verifier import PythonVerifier

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG_F = "def f(x): return 7\n"
HONEST_EVERY = 5
BESIDE = "import os\nos.environ\n"
"""Tests that say this can only be run beside an answer."""
PROCESS_TESTS = {
    "unittest": UNITTEST.replace("add(1, 2), 3", "f(1), 2").replace("add(-1, 1) == 0", "f(2) == 3"),
    "pytest": PYTEST.replace("add(1, 2) == 3", "f(1) == 2").replace("add(-1, 1) == 0", "f(2) == 3"),
}


class SetAttack(NamedTuple):
    """One attack of a set: by the verifier, or by the tests beside the answer alone."""

    name: str
    case: Case
    code: str
    is_beside: bool = False


def with_tests(style: str, tests: str) -> Case:
    case = CASES[style]
    return replace(case, verify=replace(case.verify, tests=tests)) if tests else case


def boundary_case(attack: BoundaryAttack) -> Case:
    """The case of one attack at the boundary."""
    case = with_tests(attack.style, attack.tests)
    entry_point = "f" if attack.style == "check" else ""
    changed = replace(case.verify, entry_point=entry_point, stub=attack.stub or None)
    return replace(case, verify=changed, timeout_secs=3)


def _boundary() -> Iterator[SetAttack]:
    for attack in BOUNDARY:
        yield SetAttack(f"{attack.kind}: {attack.name}, {attack.style}", boundary_case(attack), attack.code)


def library_case(attack: LibraryAttack) -> Case:
    """The case of one attack by libraries, names and arguments."""
    case = with_tests(attack.style, attack.tests)
    if attack.style == "program":
        return case
    changed = replace(
        case.verify,
        entry_point="f" if attack.style in ("check", "io") else "",
        stub=attack.stub or None,
        pairs=tuple(Pair(input=given, output=wanted) for given, wanted in attack.pairs),
        python_env=sys.prefix if attack.needs_packages else "",
    )
    return replace(case, verify=changed, timeout_secs=3)


def _library() -> Iterator[SetAttack]:
    yield from _with_packages(ATTACKS)


def _unshared() -> Iterator[SetAttack]:
    for attack in UNSHARED:
        yield SetAttack(f"{attack.kind}: {attack.name}, {attack.style}", library_case(attack), attack.code)


def _blind() -> Iterator[SetAttack]:
    yield from _with_packages(BLIND)


def _confirmed() -> Iterator[SetAttack]:
    yield from _with_packages(CONFIRMED)


def _with_packages(attacks: list[LibraryAttack]) -> Iterator[SetAttack]:
    has_packages = Path(sysconfig.get_paths()["purelib"], "pandas").is_dir()
    for attack in attacks:
        if has_packages or not attack.needs_packages:
            yield SetAttack(f"{attack.kind}: {attack.name}, {attack.style}", library_case(attack), attack.code)


def _process() -> Iterator[SetAttack]:
    for name, code in PROCESS.items():
        style = "pytest" if "pytest" in name + code or name in ("conftest", "hook names", "pluggy") else "unittest"
        tests = BESIDE + PROCESS_TESTS[style].replace("import add", "import f").replace("add('a', 'b')", "f('a')")
        wrong = code if "def f" in code else code + WRONG_F
        yield SetAttack(f"{name}, {style}", with_tests(style, tests), wrong)
    for name, code in PROGRAMS.items():
        yield SetAttack(f"{name}, program", CASES["program"], code)


def _inside() -> Iterator[SetAttack]:
    for name, code in FORGERIES.items():
        for style in ("unittest", "asserts"):
            yield SetAttack(f"{name}, {style}", CASES[style], code, is_beside=True)


def _reviewed() -> Iterator[SetAttack]:
    for name, attack in REVIEWED.items():
        yield SetAttack(name, with_tests(attack.style, attack.tests), attack.code)


def _state() -> Iterator[SetAttack]:
    for name, attack in STATE.items():
        for style in ("asserts", "unittest"):
            yield SetAttack(f"{name}, {style}", with_tests(style, getattr(attack, style)()), attack.code)


def _value() -> Iterator[SetAttack]:
    for attack in VALUE_ATTACKS:
        yield SetAttack(f"{attack.name}, {attack.case}", CASES[attack.case], attack.code)


SETS: dict[str, Callable[[], Iterator[SetAttack]]] = {
    "blind": _blind,
    "boundary": _boundary,
    "confirmed": _confirmed,
    "inside": _inside,
    "library": _library,
    "process": _process,
    "reviewed": _reviewed,
    "state": _state,
    "unshared": _unshared,
    "value": _value,
}


async def told(level: str, names: list[str]) -> dict[str, Any]:
    """What became of the attacks of some sets."""
    sandbox = ZygoteSandbox(ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)])
    verifier, judge = PythonVerifier(sandbox), InProcessJudge(sandbox)
    # a Python of the system's, which an ordinary user runs, may lack it
    has_pytest = Path(sysconfig.get_paths()["purelib"], "pytest").is_dir()
    tried, failures, passed, harmed = 0, [], {}, []

    async def judged(case: Case, code: str, *, is_beside: bool = False) -> Finding:
        if is_beside:
            return await judge.judge(case, python_test_plan(case), code)
        return await verifier.verify(case, Answer(text=verbatim_reply(code, "python")))

    for name in names:
        for attack in SETS[name]():
            if attack.case.verify.style == "pytest" and not has_pytest:
                continue
            tried += 1
            try:
                finding = await judged(attack.case, attack.code, is_beside=attack.is_beside)
                if is_correct(attack.case, finding):
                    passed[f"{name}: {attack.name}"] = finding.trust
            except Exception as error:
                failures.append(f"{name}: {attack.name}: {error}")
            if tried % HONEST_EVERY == 0:
                honest = await judged(CASES["asserts"], RIGHT)
                if not is_correct(CASES["asserts"], honest) or honest.trust != "isolated":
                    harmed.append(f"{name}: {attack.name}: {honest.label} {honest.reason}")
    await verifier.close()
    await sandbox.close()
    return {"tried": tried, "failures": failures, "passed": passed, "harmed": harmed}


def main() -> None:
    level, *names = sys.argv[1:]
    found = probe_isolation(level)
    if not found.held:
        print(json.dumps({"level": level, "missing": found.problem, "lacks_program": found.lacks_program}))
        return
    json.dump(asyncio.run(told(level, names)), sys.stdout)


if __name__ == "__main__":
    main()
