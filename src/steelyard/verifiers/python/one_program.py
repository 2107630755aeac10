"""Names that an answer shares with its tests where both are one program, as in a plain run of one after the other."""

from __future__ import annotations

import ast
import builtins
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from steelyard.verifiers.python.guest.test_names import bound_names
from steelyard.verifiers.python.impossible_tests import is_told
from steelyard.verifiers.python.plain_answers import REACHING_BUILTINS
from steelyard.verifiers.python.plan import FILE_STYLES, PythonTestPlan

if TYPE_CHECKING:
    from steelyard.records import Case
    from steelyard.verifiers.python.in_process import UsedNames

MAX_CACHED_TESTS = 1000
"""The number of cases whose names are cached."""
ANSWER_IMPORT = "from answer import *"
DYNAMIC_NAMES = frozenset(
    {
        *REACHING_BUILTINS,
        *("answer", "attrgetter", "candidate", "gc", "get_type_hints", "import_module", "importlib", "inspect", "main"),
        *("methodcaller", "modules", "pickle", "runpy", "solution"),
    }
)
"""What reads or sets names of a module without naming them."""
HIDDEN_NAME_PATTERN = re.compile(
    r"__(?:bases?|builtins|closure|code|dict|getattribute|globals|import|loader|main|mro|self|spec|subclasses)__"
    r"|(?:ag|cr|f|gi|tb)_\w+"
)
"""Attributes that lead to the names of a module, or to frames that have them."""
CLASS_FACTORIES = frozenset({"Enum", "Flag", "IntEnum", "NamedTuple", "StrEnum", "make_dataclass", "namedtuple"})
"""What makes a class that is then given a name."""


class TestNames(NamedTuple):
    """What the tests of a case give a name to at their top level."""

    every: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    """Those that are only classes and imports: they hold no expected value."""


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
    return TestNames(frozenset(every), frozenset(every - bound_names(others)))


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


def changes_tests(case: Case, names: TestNames, used: UsedNames) -> bool:
    """Whether an answer gives a name of its tests to something else while they run, though no case has told it of that name."""
    return any(not is_told(case, name) for name in names.every & used.rebound)


def doubt(case: Case, names: TestNames, used: UsedNames) -> str:
    """Why a pass with shared names proves less: a name by which the answer may have read or set what its tests compare."""
    for name in sorted(used.named):
        if name in names.every:
            is_given = name in names.classes or hasattr(builtins, name) or is_told(case, name)
            if not is_given:
                return f"{name} of its tests, which the case does not mention"
        elif name in DYNAMIC_NAMES or HIDDEN_NAME_PATTERN.fullmatch(name):
            return f"{name}, which may read or set any name of its tests"
    return ""
