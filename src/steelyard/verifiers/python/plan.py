"""The tests of a Python case as they are run: one source, in which each assertion tells how it went."""

from __future__ import annotations

import ast
import builtins
import copy
import doctest
import math
import platform
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from steelyard.errors import VerifierError, did_you_mean
from steelyard.verifiers.code.pairs import check_pairs
from steelyard.verifiers.python.calls import PlainCall, Step, pair_calls, plain_calls
from steelyard.verifiers.python.guest.steps import STEP_NAME
from steelyard.verifiers.python.guest.wire import ANSWER_MODULE_NAMES
from steelyard.verifiers.python.settings import PythonSettings
from steelyard.verifiers.python.stubs import bound_names, stub_statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from steelyard.records import Case

PYTHON_TEST_STYLES = ("asserts", "check", "doctest", "io", "pytest", "unittest")
FILE_STYLES = ("pytest", "unittest")
"""Styles whose tests are a file with a runner of its own."""
IMPLICIT_TEST_MODULES = {
    *("bisect", "cmath", "collections", "copy", "functools", "itertools", "json", "math", "random", "re", "statistics"),
}
"""Modules of the language that tests may use without importing them."""
ANSWER_MODULES = frozenset(ANSWER_MODULE_NAMES)
"""The names under which tests may import the answer."""
MAX_NAME_CHARS = 120
TEST_CALL_PATTERN = re.compile(r"(?:__import__\('asyncio'\)\.run\()?(test\w*)\(\)\)?")
PAIRS_FUNCTION = "__steelyard_function__"
"""What the tests that are made of pairs call the function that is tested."""


class PythonTestPlan(NamedTuple):
    """What must be run for a verdict."""

    style: str
    names: tuple[str, ...]
    """The tests; in a file, those that can be read in it."""
    source: str = ""
    """The tests as they are run; empty for examples."""
    is_joined: bool = True
    """Whether tests and answer stand in one file, and share their names."""
    given: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Statements of the stub and imports that tests leave out, with the names that they bind: run if one of these is not bound."""
    calls: tuple[PlainCall, ...] = ()
    """The tests as calls with plain data, where all of them are."""
    binds_names: bool = False
    """Whether tests that are calls also bind names, which an answer may use in a plain run."""
    called_builtins: tuple[str, ...] = ()
    """The builtin functions that the tests call, if they use no name of an answer's: one of these may be what is asked for."""
    is_program: bool = False
    """Whether the answer is a whole program, run once for each pair of the case."""

    @property
    def has_steps(self) -> bool:
        """Whether every test is known before anything runs, and told by its number."""
        return self.style not in FILE_STYLES


def python_test_plan(case: Case) -> PythonTestPlan:
    """How the tests of a case are run; raises VerifierError when no answer could be judged by them."""
    said = PythonSettings.of(case)
    style = said.style or ("io" if said.pairs else "check" if said.entry_point else "asserts")
    if style not in PYTHON_TEST_STYLES:
        raise VerifierError(f'unknown style "{style}" ({did_you_mean(style, PYTHON_TEST_STYLES)})')
    if not case.expectations.should_compile or not case.expectations.should_pass_tests:
        return PythonTestPlan(style, ())
    made = _io(case) if style == "io" else _doctest(case) if style == "doctest" else _source(style, case)
    if not made.names:
        raise VerifierError("no tests; write asserts, functions test_*, check(candidate), examples with >>>, or pairs")
    return made


def _source(style: str, case: Case) -> PythonTestPlan:
    try:
        body = ast.parse(case.tests).body
    except (SyntaxError, ValueError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
        raise VerifierError(f"its tests are not Python {platform.python_version()}: {where}") from None
    nodes = [node for statement in body for node in ast.walk(statement)]
    given = (*_given_statements(case, nodes), *_implicit_imports(nodes))
    if style in FILE_STYLES:
        return _file(style, case, body, nodes)._replace(given=given)
    entry_point = case.verify.entry_point
    steps = _check_steps(case, body) if style == "check" else _assert_steps(body)
    tests = [step.statement for step in steps if step.is_test]
    calls, bound = plain_calls(steps, entry_point)
    return PythonTestPlan(
        style,
        tuple(map(_name, tests)),
        _told(steps) if style == "asserts" else _check_source(body, steps, _local_statements(given), entry_point),
        given=given,
        calls=calls,
        binds_names=bool(bound or given),
        called_builtins=() if entry_point else _called_builtins(nodes),
    )


def _assert_steps(body: Sequence[ast.stmt]) -> list[Step]:
    """Each statement of the file that asserts something is a test, and so is each of its functions test_*."""
    steps = [Step(node, _asserts(node)) for node in body]
    for node in body:
        if _is_test_function(node):
            call = f"{node.name}()"
            call = call if isinstance(node, ast.FunctionDef) else f"__import__('asyncio').run({call})"
            steps.append(Step(ast.parse(call).body[0], is_test=True))
    return steps


def _check_steps(case: Case, body: Sequence[ast.stmt]) -> list[Step]:
    """Each statement of check() that asserts something is a test; check() as a whole where that cannot be."""
    entry_point = case.verify.entry_point
    if not entry_point:
        raise VerifierError("style check needs an entry_point, the function that is handed to check()")
    check = next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == "check"), None)
    if check is None:
        raise VerifierError("style check needs a function check(candidate) in the tests")
    parameters = check.args
    has_one = len(parameters.args) == 1 and not (parameters.posonlyargs or parameters.kwonlyargs or parameters.defaults)
    # what stands after an early return might never be meant to run
    leaves = any(
        isinstance(node, ast.Return | ast.Yield | ast.Await) for part in check.body for node in _own_nodes(part)
    )
    if not has_one or leaves or not any(map(_asserts, check.body)):
        if not any(isinstance(node, ast.Assert | ast.Raise) for part in body for node in ast.walk(part)):
            raise VerifierError("check(candidate) asserts nothing")
        call = ast.parse(f"check({entry_point})").body[0]
        return [*(Step(node, is_test=False) for node in body), Step(call, is_test=True)]
    renaming = ast.parse(f"{parameters.args[0].arg} = {entry_point}").body[0]
    return [
        *(Step(node, is_test=False) for node in body if node is not check),
        Step(renaming, is_test=False),
        *(Step(node, _asserts(node)) for node in check.body),
    ]


def _check_source(body: Sequence[ast.stmt], steps: Sequence[Step], given: Sequence[str], entry_point: str) -> str:
    """The file as it is, but for the tests in check(), which also has what the case gives; and the call of it."""
    tests = [step.statement for step in steps if step.is_test]
    numbers = {id(test): number for number, test in enumerate(tests)}
    call = ast.parse(f"check({entry_point})").body[0]
    told: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == "check":
            changed = copy.copy(node)
            changed.body = [_wrapped(each, numbers[id(each)]) if id(each) in numbers else each for each in node.body]
            is_whole = not any(id(each) in numbers for each in node.body)
            told += _within(given, changed) if given else [changed]
        else:
            told.append(node)
    return _unparsed([*told, _wrapped(call, 0) if is_whole else call])


def _local_statements(given: Iterable[tuple[str, Any]]) -> list[str]:
    """Functions and imports that tests may have as their own; a class is one for both, because objects of it are handed over."""
    parsed = ((source, ast.parse(source).body[0]) for source, names in given if "*" not in names)
    return [source for source, statement in parsed if not isinstance(statement, ast.ClassDef)]


def _within(given: Sequence[str], check: ast.FunctionDef) -> list[ast.stmt]:
    """A function among what the case gives: an answer may have a helper by one of these names that the tests do not mean."""
    made = ast.parse("def __steelyard_given__():\n    return check\ncheck = __steelyard_given__()").body
    made[0].body[:0] = [*(part for source in given for part in ast.parse(source).body), check]  # type: ignore[attr-defined]
    return made


def _told(steps: Iterable[Step]) -> str:
    """The source of these steps, in which every test tells how it went."""
    told = []
    number = 0
    for step in steps:
        told.append(_wrapped(step.statement, number) if step.is_test else step.statement)
        number += step.is_test
    return _unparsed(told)


def _unparsed(body: list[ast.stmt]) -> str:
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))


def _wrapped(statement: ast.stmt, number: int) -> ast.stmt:
    """A test that tells how it went; the next one is run even if it fails."""
    teller = ast.Name(STEP_NAME, ast.Load())
    compared = statement.test if isinstance(statement, ast.Assert) else None
    if isinstance(compared, ast.Compare) and len(compared.ops) == 1 and isinstance(compared.ops[0], ast.Eq):
        # both sides apart, so that a failure can say what came instead
        sides = [compared.left, compared.comparators[0]]
        statement = ast.Expr(ast.Call(ast.Attribute(teller, "equal", ast.Load()), sides, []))
    told = ast.Call(teller, [ast.Constant(number)], [])
    return ast.With([ast.withitem(told)], [statement])


def _asserts(node: ast.stmt) -> bool:
    """Whether something is asserted here, and not only in a function that is defined here."""
    # `assert True` tests nothing
    return any(
        isinstance(inner, ast.Assert) and not (isinstance(inner.test, ast.Constant) and inner.test.value)
        for inner in _own_nodes(node)
    )


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A statement with all that runs when it does."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _own_nodes(child)


def _is_test_function(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _file(style: str, case: Case, body: list[ast.stmt], nodes: list[ast.AST]) -> PythonTestPlan:
    """A file with a runner of its own, which finds the tests."""
    kept = [node for node in body if not (isinstance(node, ast.Expr) and _starts_runner(node.value))]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    # a file may also load the answer by its name, unless it is said what it calls
    is_named = not case.verify.entry_point and any(name in text for name in ANSWER_MODULES for text in texts)
    # what is not written as a function may be made while the file is loaded
    is_dynamic = any(isinstance(node, ast.ClassDef) or getattr(node, "name", "") == "load_tests" for node in body)
    return PythonTestPlan(
        style,
        tuple(_tests_in(body)) or (("the file",) if is_dynamic else ()),
        case.tests if len(kept) == len(body) else _unparsed(kept),
        is_joined=imported_modules(nodes).isdisjoint(ANSWER_MODULES) and not is_named,
    )


def imported_modules(nodes: Iterable[ast.AST]) -> set[str]:
    """The modules that statements import, by their full names."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def _starts_runner(value: ast.expr) -> bool:
    """Whether this is `unittest.main()` or `pytest.main()`, perhaps as the exit code of `sys.exit()`: we start it."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    owner = value.func.value
    if not isinstance(owner, ast.Name):
        return False
    if (owner.id, value.func.attr) == ("sys", "exit"):
        return bool(value.args) and _starts_runner(value.args[0])
    return value.func.attr == "main" and owner.id in FILE_STYLES


def _tests_in(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The tests of a file: functions test_*, and methods test_* of its classes."""
    for node in body:
        if _is_test_function(node):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{inner.name}" for inner in node.body if _is_test_function(inner))


def _given_statements(case: Case, nodes: Sequence[ast.AST]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the stub of a case defines besides what is asked for, where its tests may use it."""
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    statements = list(stub_statements(case.verify.stub or "", case.verify.entry_point))
    if any(used & names for _, names in statements):
        yield from ((source, tuple(sorted(names))) for source, names in statements)


def _implicit_imports(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Modules that tests use without importing them: those of the language, not what an answer calls by their names."""
    used = {node.value.id for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    own = bound_names(nodes)
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    for name in sorted(((used - called) & IMPLICIT_TEST_MODULES | (named & set(FILE_STYLES))) - own):
        yield f"import {name}", (name,)


def _called_builtins(nodes: Sequence[ast.AST]) -> tuple[str, ...]:
    """The builtin functions that tests call, if they use no name of an answer's."""
    own = bound_names(nodes)
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    if imported_modules(nodes) & ANSWER_MODULES or any(not hasattr(builtins, name) for name in names - own):
        return ()
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return tuple(sorted(called - own))


def _name(node: ast.stmt) -> str:
    name = ast.unparse(node.test if isinstance(node, ast.Assert) else node).partition("\n")[0]
    if call := TEST_CALL_PATTERN.fullmatch(name):
        return call[1]
    return name if len(name) <= MAX_NAME_CHARS else f"{name[: MAX_NAME_CHARS - 3]}..."


def _doctest(case: Case) -> PythonTestPlan:
    try:
        examples = doctest.DocTestParser().get_examples(case.tests)
    except ValueError as error:
        raise VerifierError(f"its examples cannot be read: {error}") from None
    tests = [example for example in examples if example.want and not example.options.get(doctest.SKIP)]
    nodes = [node for example in examples for node in _nodes_of(example.source)]
    return PythonTestPlan(
        "doctest",
        tuple(example.source.strip()[:MAX_NAME_CHARS] for example in tests),
        given=(*_given_statements(case, nodes), *_implicit_imports(nodes)),
        called_builtins=() if case.verify.entry_point else _called_builtins(nodes),
    )


def _nodes_of(source: str) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return []


def _io(case: Case) -> PythonTestPlan:
    said = PythonSettings.of(case)
    if not said.entry_point:
        check_pairs(said.pairs, said.tolerance)
        names = tuple(f"pair {number}" for number in range(1, len(said.pairs) + 1))
        return PythonTestPlan("io", names, is_program=True)
    if said.tolerance:
        raise VerifierError(
            "tolerance is for programs; leave out entry_point, or compare in asserts, as in abs(f(x) - 2) < 1e-6"
        )
    # a method is one of the same object in all pairs
    lines = [f"{PAIRS_FUNCTION} = {said.entry_point}"]
    for number, pair in enumerate(said.pairs):
        if not isinstance(pair.input, (list, tuple)):
            raise VerifierError("the input of a pair is the list of the function's arguments, such as input = [1, 2]")
        if _holds_no_json_number([pair.input, pair.output]):
            raise VerifierError(
                "a pair cannot hold infinity or nan; compare in asserts, as in assert f(x) == float('inf')"
            )
        given = ", ".join(map(repr, pair.input))
        lines.append(f"with {STEP_NAME}({number}):\n    {STEP_NAME}.same({PAIRS_FUNCTION}({given}), {pair.output!r})")
    names = tuple(f"{said.entry_point}({', '.join(map(repr, pair.input))})"[:MAX_NAME_CHARS] for pair in said.pairs)
    return PythonTestPlan("io", names, "\n".join(lines), calls=pair_calls(said.entry_point, said.pairs))


def _holds_no_json_number(value: Any) -> bool:
    """Whether a value has a number in it that JSON, which pairs travel as, has no word for."""
    if isinstance(value, dict):
        return any(map(_holds_no_json_number, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_no_json_number, value))
    return isinstance(value, float) and not math.isfinite(value)
