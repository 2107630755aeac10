"""What is lost between two processes, and what is shared in one, makes no wrong answer pass; the sets of attacks hold at every level."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from attacks.blind_attacks import BLIND_IN_PROCESS
from attacks.boundary_attacks import BOUNDARY, IN_PROCESS, BoundaryAttack
from attacks.confirmed_attacks import CONFIRMED, CONFIRMED_IN_PROCESS
from attacks.hostile import CASES
from attacks.inside_attacks import READ_OR_REPLACE
from attacks.library_attacks import ATTACKS, LibraryAttack
from attacks.library_attacks import IN_PROCESS as LIBRARY_IN_PROCESS
from attacks.process_attacks import PROCESS_IN_PROCESS
from attacks.scenes import USERS, needs_level, python_of, scenes, told_once
from attacks.sets_driver import RIGHT, SETS, boundary_case, library_case, with_tests
from attacks.test_state_attacks import PASS_IN_PROCESS
from attacks.unshared_attacks import UNSHARED, UNSHARED_IN_PROCESS
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.verifier import PythonVerifier

SETS_DRIVER = Path(__file__).with_name("sets_driver.py")
LOOP = asyncio.new_event_loop()
SANDBOX = ZygoteSandbox(strongest_isolation())
VERIFIER = PythonVerifier(SANDBOX)
FIRST_OF_EACH_KIND = {attack.kind: attack for attack in reversed(BOUNDARY)}
QUICK_LIBRARY_ATTACKS = {
    *("one text", "an enum's member", "a function of the library", "reverse twice", "sqrt", "a constant", "an alias"),
    *(
        "map, pytest",
        "unpacking",
        "an exception of that name",
        "str.upper",
        "kind named function",
        "gc",
        "skip in a test",
    ),
    *("skipTest by the answer", "addTypeEqualityFunc"),
}


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
def _closing() -> Iterator[None]:
    yield
    LOOP.run_until_complete(VERIFIER.close())
    LOOP.run_until_complete(SANDBOX.close())
    LOOP.close()


def verified(case: Case, code: str) -> Finding:
    return LOOP.run_until_complete(VERIFIER.verify(case, Answer(text=verbatim_reply(code, "python"))))


@pytest.mark.parametrize("attack", FIRST_OF_EACH_KIND.values(), ids=lambda attack: attack.kind)
def test_no_wrong_answer_passes_as_isolated(attack: BoundaryAttack) -> None:
    case = boundary_case(attack)
    finding = verified(case, attack.code)
    if is_correct(case, finding):
        assert (attack.kind in IN_PROCESS, finding.trust) == (True, "in-process")


@pytest.mark.parametrize(
    "attack",
    [one for one in ATTACKS if one.name in QUICK_LIBRARY_ATTACKS and not one.needs_packages],
    ids=lambda attack: f"{attack.kind}: {attack.name}",
)
def test_no_name_argument_or_library_makes_a_wrong_answer_pass_as_isolated(attack: LibraryAttack) -> None:
    case = library_case(attack)
    finding = verified(case, attack.code)
    if is_correct(case, finding):
        assert (attack.kind in LIBRARY_IN_PROCESS, finding.trust) == (True, "in-process")


QUICK_UNSHARED_ATTACKS = {
    *(
        "identity: assertIsNot, unittest",
        "identity: id, asserts",
        "identity: operator.is_not, asserts",
        "names: isclose, doctest",
    ),
    *("process: CPU time, check", "stub: members by is, pytest"),
}


@pytest.mark.parametrize(
    "attack",
    [one for one in UNSHARED if f"{one.kind}: {one.name}, {one.style}" in QUICK_UNSHARED_ATTACKS],
    ids=lambda attack: f"{attack.kind}: {attack.name}",
)
def test_what_processes_do_not_share_makes_no_wrong_answer_pass_as_isolated(attack: LibraryAttack) -> None:
    case = library_case(attack)
    finding = verified(case, attack.code)
    assert (is_correct(case, finding), finding.trust) == (attack.kind in ("names", "stub"), "in-process")


QUICK_CONFIRMED_ATTACKS = {
    *("list handed to callback is changed later, asserts", "callback's own list is changed by the answer, asserts"),
    *("subclass of str for a plain text, asserts", "math's pi, asserts", "fsum patched and put back, asserts"),
    *("iterator read dry twice, asserts", "own permutations, asserts", "plain tests, changed builtin, asserts"),
}


@pytest.mark.parametrize(
    "attack",
    [one for one in CONFIRMED if f"{one.name}, {one.style}" in QUICK_CONFIRMED_ATTACKS],
    ids=lambda one: one.name,
)
def test_no_wrong_answer_passes_both_apart_from_its_tests_and_beside_them(attack: LibraryAttack) -> None:
    case = library_case(attack)
    finding = verified(case, attack.code)
    if is_correct(case, finding):
        assert (attack.kind in CONFIRMED_IN_PROCESS, finding.trust) == (True, "in-process")


HONEST: dict[str, tuple[str, str, str]] = {
    "returns fresh lists": ("isolated", "def f(): return []\n", "x = f()\nx.append(1)\nassert f() == []\n"),
    "returns its state": ("isolated", "s = []\ndef f(x):\n    s.append(x)\n    return s\n", "assert f(1) == [1]\nassert f(2) == [1, 2]\n"),
    "sorts in place and returns": ("isolated", "def f(x):\n    x.sort()\n    return x[0]\n", "data = [3, 1]\nassert f(data) == min(data)\nassert all(f(data) <= x for x in data)\n"),
    "is asked what it changed": ("isolated", "def f(x):\n    return x.pop()\n", "data = [3, 1]\nassert f(data) == 1\nassert data == [3]\n"),
    "shares a name with its tests": ("isolated", "LIMIT = 5\ndef f(x): return min(x, LIMIT)\n", "LIMIT = 5\nassert f(9) == LIMIT\nassert f(2) == 2\n"),
    "changes a constant of its own": ("isolated", "count = 0\ndef f():\n    global count\n    count += 1\n", "assert count == 0\nf()\nassert count == 1\n"),
    "is asked for a member of its own": ("isolated", "import enum\nclass Color(enum.Enum):\n    RED = 1\n    GREEN = 2\ndef f(x): return Color(x)\n", "assert f(2) == Color.GREEN\n"),
    "is given its own results later": ("isolated", "def f(x): return x[::-1]\n", "assert f([1, 2, 3]) == [3, 2, 1]\nassert f([3, 2, 1]) == [1, 2, 3]\n"),
    "sorts in place through a function of the tests": ("isolated", "def f(x):\n    x.sort()\n    return x[0]\n", "def run(d): return f(d)\ndata = [3, 1]\nassert run(data) == 1\nassert data == [1, 3]\n"),
    "survives a callback": ("isolated", "def f(g):\n    try: return g(1)\n    except ValueError: return 0\n", "def bad(x): raise ValueError\ndef good(x):\n    assert x == 1\n    return x\nassert f(bad) == 0\nassert f(good) == 1\n"),
    "copies what it is given": ("isolated", "import copy\ndef f(x): return copy.deepcopy(x)\n", "x = [[1]]\ny = f(x)\nassert y is not x and y[0] is not x[0]\nassert f(y) is not y\n"),
    "returns what it is given": ("isolated", "def f(x): return x\n", "x = []\nassert f(x) is x and id(x) == id(x)\nassert f(None) is None and f(list) is list\n"),
    "returns another list each time": ("in-process", "def f(): return []\n", "assert f() is not f()\n"),
    "tries again": ("in-process", "def f(g):\n    try: return g()\n    except AssertionError: return g()\n", "calls = []\ndef flaky():\n    calls.append(1)\n    assert len(calls) > 1\n    return 5\nassert f(flaky) == 5\n"),
    "has a state that tests change": ("in-process", "s = []\ndef f(): return s\n", "x = f()\nx.append(1)\nassert f() == [1]\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_neighbour_passes_with_the_trust_that_it_deserves(name: str) -> None:
    trust, code, tests = HONEST[name]
    case = with_tests("asserts", tests)
    finding = verified(case, code)
    assert is_correct(case, finding), finding.reason
    assert finding.trust == trust


@pytest.mark.parametrize("style", ["asserts", "pytest"])
def test_what_a_stub_imports_and_names_is_not_the_answers_word(style: str) -> None:
    stub = "from math import sqrt\nSCALE = 10\ndef f(x):\n    pass\n"
    line = "assert f(4) == sqrt(4) * SCALE\n"
    tests = line if style == "asserts" else f"from answer import *\ndef test_f():\n    {line}"
    case = with_tests(style, tests)
    case = replace(case, verify=replace(case.verify, stub=stub))
    finding = verified(case, "from math import sqrt\nSCALE = 10\ndef f(x): return sqrt(x) * SCALE\n")
    assert (is_correct(case, finding), finding.trust) == (True, "isolated")


def test_a_star_import_does_not_change_what_the_tests_have_imported() -> None:
    tests = (
        "from math import floor\nfrom answer import *\ndef test_f():\n    assert floor(f(1)) == 2 and helped(2) == 2\n"
    )
    code = "def floor(x): return 9\ndef helped(x): return x\ndef f(x): return x + 1.5\n"
    for tests_beside in ("", "import os\nos.environ\n"):
        case = with_tests("pytest", tests_beside + tests)
        assert is_correct(case, verified(case, code))


def wrong(told: dict[str, Any]) -> list[str]:
    """The attacks that passed and should not, and what came of them otherwise."""
    allowed = {
        "boundary": IN_PROCESS,
        "library": LIBRARY_IN_PROCESS,
        "state": PASS_IN_PROCESS,
        "inside": READ_OR_REPLACE,
        "process": PROCESS_IN_PROCESS,
    }
    allowed |= {"unshared": UNSHARED_IN_PROCESS, "confirmed": CONFIRMED_IN_PROCESS, "blind": BLIND_IN_PROCESS}

    def is_allowed(name: str, trust: str) -> bool:
        of, _, rest = name.partition(": ")
        return trust == "in-process" and any(rest.startswith(kind) for kind in allowed.get(of, ()))

    passed = [f"{name} as {trust}" for name, trust in told["passed"].items() if not is_allowed(name, trust)]
    return [*passed, *told["failures"], *told["harmed"]]


@pytest.mark.slow
@pytest.mark.parametrize("scene", scenes(always=()))
def test_every_set_holds_at_every_level_as_every_user(
    scene: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    level, user = scene
    needs_level(level)
    from_sets = [python_of(user), str(SETS_DRIVER), level, *SETS]
    told = told_once(tmp_path_factory, f"sets-{level}-{user}", user, from_sets)
    assert told["tried"] > (1500 if user == USERS[0] else 1200)
    assert wrong(told) == []


def test_the_honest_answer_is_right() -> None:
    assert is_correct(CASES["asserts"], verified(CASES["asserts"], RIGHT))
