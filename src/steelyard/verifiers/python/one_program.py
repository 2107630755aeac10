"""Names that an answer shares with its tests where both are one program, as in a plain run of one after the other."""

from __future__ import annotations

import ast
import builtins
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from steelyard.verifiers.python.guest.test_names import bound_names
from steelyard.verifiers.python.impossible_tests import is_told
from steelyard.verifiers.python.plain.answers import is_plain_answer, parsed_answer
from steelyard.verifiers.python.plan import FILE_STYLES, PythonTestPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.records import Case

MAX_CACHED_TESTS = 1000
"""The number of cases whose names are cached."""
ANSWER_IMPORT = "from answer import *"
CLASS_FACTORIES = frozenset({"Enum", "Flag", "IntEnum", "NamedTuple", "StrEnum", "make_dataclass", "namedtuple"})
"""What makes a class that is then given a name."""


NAMESPACES = frozenset({"globals", "locals", "vars"})
"""Functions that return variables by their names."""
HIDING_NAMES = NAMESPACES | {"eval", "exec", "modules", "__dict__", "__globals__"}
"""Names by which an answer binds others that stand only in a text."""
BUILTIN_NAMES = frozenset(name for name in dir(builtins) if not name.startswith("_"))


class TestNames(NamedTuple):
    """What the tests of a case give a name to at their top level."""

    every: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    """Those that are only classes and imports: they hold no expected value."""
    imports: frozenset[str] = frozenset()
    """Those that are only imports: an answer that imports the same has the same."""
    written: frozenset[str] = frozenset()
    """Names in texts of tests that set variables by their names, as `globals()["rate"] = 2` does."""
    builtins: frozenset[str] = frozenset()
    """Names of Python's own that they use."""
    used: frozenset[str] = frozenset()
    """All names that they use."""
    import_lines: frozenset[str] = frozenset()
    """What they import, each name apart."""


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
    nodes = [node for part in body for node in ast.walk(part)]
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    written = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    written |= {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg}
    return TestNames(
        every=frozenset(every),
        classes=frozenset(every - bound_names(others)),
        imports=frozenset(every - unimported),
        written=frozenset(filter(str.isidentifier, written)) if used & NAMESPACES else frozenset(),
        builtins=frozenset(used - every) & BUILTIN_NAMES,
        used=frozenset(used),
        import_lines=_import_lines(body),
    )


def _import_lines(body: Iterable[ast.stmt]) -> frozenset[str]:
    """The imports among statements, each name as a line of its own."""
    return frozenset(
        ast.unparse(ast.ImportFrom(node.module, [alias], node.level))
        if isinstance(node, ast.ImportFrom)
        else ast.unparse(ast.Import([alias]))
        for node in body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )


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


class BoundNames(NamedTuple):
    """The names at the top level of an answer that its tests use, too."""

    twice: frozenset[str]
    """Those that the tests bind again, so that in one program the answer would see theirs, or that its functions bind again."""
    builtins: frozenset[str]
    """Those by which tests mean Python's: in one program they would use the answer's."""


def bound_by_both(names: TestNames, code: str) -> BoundNames:
    """The names that an answer binds at its top level, and its tests mean something else by."""
    suspected = names.every | names.written | names.builtins
    if "global" not in code and not any(name in code for name in suspected):
        return BoundNames(frozenset(), frozenset())
    tree = parsed_answer(code)
    if tree is None:
        return BoundNames(names.every, frozenset())
    own_imports = _import_lines(tree.body)
    same = bound_names(ast.parse("\n".join(own_imports & names.import_lines)).body)
    same -= bound_names(ast.parse("\n".join(own_imports - names.import_lines)).body)
    bound = bound_names(tree.body)
    unimported = bound_names(node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom))
    differing = frozenset(bound - (same & names.imports - unimported))
    nodes = list(ast.walk(tree))
    rebound = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    # those of functions and classes that tests call, not what is counted in a variable
    rebound &= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)} & names.used
    hidden = names.every & _words_of_texts(nodes) if _hides_names(nodes) else frozenset()
    return BoundNames(differing & (names.every | names.written) | rebound | hidden, differing & names.builtins)


def _hides_names(nodes: list[ast.AST]) -> bool:
    """Whether an answer may bind names that stand only in its texts."""
    return any(getattr(node, "id", getattr(node, "attr", "")) in HIDING_NAMES for node in nodes)


def _words_of_texts(nodes: list[ast.AST]) -> frozenset[str]:
    """The words in texts that are used, and the names of arguments, as in `vars().update(helper=1)`."""
    idle = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in idle]
    words = {word for text in texts if isinstance(text, str) for word in re.findall(r"\w+", text)}
    return frozenset(words | {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg})


def changes_tests(case: Case, names: TestNames, used: UsedNames) -> bool:
    """Whether an answer gives a name of its tests to something else while they run, though no case has told it of that name."""
    return any(not is_told(case, name) for name in names.every & used.rebound)


def doubt(case: Case, names: TestNames, used: UsedNames, code: str) -> str:
    """Why a pass with shared names proves less: the answer may have read or set what its tests compare."""
    for name in sorted(used.named & names.every - names.classes):
        if not hasattr(builtins, name) and not is_told(case, name):
            return f"{name} of its tests, which the case does not mention"
    return "" if is_plain_answer(code) else "what may read or set any name of its tests"
