"""Names that an answer shares with its tests where both are one program, as in a plain run of one after the other."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from steelyard.verifiers.python.guest.test_names import bound_names
from steelyard.verifiers.python.impossible_tests import is_told
from steelyard.verifiers.python.plain_answers import is_plain_answer, parsed_answer
from steelyard.verifiers.python.plan import FILE_STYLES, PythonTestPlan

if TYPE_CHECKING:
    from steelyard.records import Case

MAX_CACHED_TESTS = 1000
"""The number of cases whose names are cached."""
ANSWER_IMPORT = "from answer import *"
CLASS_FACTORIES = frozenset({"Enum", "Flag", "IntEnum", "NamedTuple", "StrEnum", "make_dataclass", "namedtuple"})
"""What makes a class that is then given a name."""


class TestNames(NamedTuple):
    """What the tests of a case give a name to at their top level."""

    every: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    """Those that are only classes and imports: they hold no expected value."""
    imports: frozenset[str] = frozenset()
    """Those that are only imports: an answer that imports the same has the same."""


class UsedNames(NamedTuple):
    """What the code of an answer says about names; known only where this was asked for."""

    named: frozenset[str] = frozenset()
    """Names of its module that it uses, but for imports that both have."""
    rebound: frozenset[str] = frozenset()
    """Names of its module that its functions give to something else."""


def test_names(case: Case, tests: PythonTestPlan) -> TestNames:
    """The names of a case's tests that its answer would share in one program; none where a plain run has two modules."""
    if tests.style in FILE_STYLES and (ANSWER_IMPORT in case.tests or ANSWER_IMPORT not in tests.source):
        return TestNames()
    if tests.style == "doctest":
        return _names_in("".join(step["source"] for step in tests.steps))
    return _names_in(case.tests)


@lru_cache(MAX_CACHED_TESTS)
def _names_in(source: str) -> TestNames:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return TestNames()
    others = [node for node in body if not _makes_class(node)]
    every = bound_names(body)
    unimported = bound_names(node for node in body if not isinstance(node, ast.Import | ast.ImportFrom))
    return TestNames(frozenset(every), frozenset(every - bound_names(others)), frozenset(every - unimported))


def _makes_class(node: ast.stmt) -> bool:
    """Whether a statement defines a class or imports something."""
    value = node.value if isinstance(node, ast.Assign) else None
    function = value.func if isinstance(value, ast.Call) else None
    name = getattr(function, "attr", getattr(function, "id", ""))
    return isinstance(node, ast.ClassDef | ast.Import | ast.ImportFrom) or name in CLASS_FACTORIES


def as_one_program(tests: PythonTestPlan, case: Case) -> PythonTestPlan:
    """The plan for one program: what a function of the tests binds is its own there, so `check` is called as it is written."""
    if tests.style != "check":
        return tests
    call = f"check({case.verify.entry_point})"
    steps = ({"test": False, "source": case.tests}, {"test": True, "source": call})
    return tests._replace(names=(call,), steps=steps)


def twice_bound_names(names: TestNames, code: str) -> frozenset[str]:
    """The names that an answer binds at its top level and its tests bind again: in one program it would see theirs."""
    rebound = names.every - names.imports
    if not any(name in code for name in rebound):
        return frozenset()
    tree = parsed_answer(code)
    return rebound if tree is None else rebound & bound_names(tree.body)


def changes_tests(case: Case, names: TestNames, used: UsedNames) -> bool:
    """Whether an answer gives a name of its tests to something else while they run, though no case has told it of that name."""
    return any(not is_told(case, name) for name in names.every & used.rebound)


def doubt(case: Case, names: TestNames, used: UsedNames, code: str) -> str:
    """Why a pass with shared names proves less: the answer may have read or set what its tests compare."""
    for name in sorted(used.named & names.every - names.classes):
        if not hasattr(builtins, name) and not is_told(case, name):
            return f"{name} of its tests, which the case does not mention"
    return "" if is_plain_answer(code) else "what may read or set any name of its tests"
