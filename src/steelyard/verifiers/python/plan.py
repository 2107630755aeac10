"""The tests of a Python case, split into steps that a referee can run one by one."""

from __future__ import annotations

import ast
import builtins
import doctest
import math
import platform
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from steelyard.errors import VerifierError, did_you_mean
from steelyard.records import Case, Pair, VerifierSettings
from steelyard.verifiers.code.join_stub import entry_name
from steelyard.verifiers.code.pairs import check_pairs
from steelyard.verifiers.python.answer_claims import answer_claims
from steelyard.verifiers.python.changed_arguments import looks_at_arguments_again
from steelyard.verifiers.python.guest.test_names import ANSWER_MODULE_NAMES, bound_names
from steelyard.verifiers.python.plain.calls import PlainCall, is_renaming, plain_calls
from steelyard.verifiers.python.plain.tests import PlainTests, plain_tests, steps_as_file
from steelyard.verifiers.python.process_claims import HARMLESS_ATTRIBUTES, speaks_of_process
from steelyard.verifiers.python.stubs import StubParts, is_preface, stub_definitions, stub_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON_TEST_STYLES = ("asserts", "check", "doctest", "io", "pytest", "unittest")
IMPLICIT_TEST_MODULES = {
    "bisect",
    "cmath",
    "collections",
    "copy",
    "functools",
    "itertools",
    "json",
    "math",
    "random",
    "re",
    "statistics",
}
"""Modules whose names are not reassigned."""
SHARED_PROCESS_NAMES = frozenset(
    {
        *("Path", "Thread", "ThreadPoolExecutor", "__import__", "breakpoint", "builtins", "chdir"),
        *(
            "contextlib",
            "environ",
            "eval",
            "exec",
            "gc",
            "getcontext",
            "globals",
            "id",
            "importlib",
            "input",
            "inspect",
        ),
        *("locale", "localcontext", "locals", "logging", "mock", "monkeypatch", "multiprocessing", "open", "os"),
        *("patch", "pathlib", "putenv", "redirect_stderr", "seed", "setcontext", "setrecursionlimit", "shutil"),
        *("signal", "socket", "stderr", "stdin", "subprocess", "sys", "tempfile", "threading", "time", "tracemalloc"),
        *("vars", "warnings", "weakref"),
    }
)
"""Names in tests that speak of the process, its files or its state, which answers in another process do not share."""
FILE_STYLES = ("pytest", "unittest")
"""Styles whose tests are a file with a runner of its own."""
BESIDE_NAMES = frozenset(
    {
        *SHARED_PROCESS_NAMES,
        *("assertLogs", "assertNoLogs", "assertWarns", "assertWarnsRegex", "caplog", "capfd", "capfdbinary"),
        *("create_autospec", "deprecated_call", "mock_open", "mocker", "pytester", "recwarn", "testdir", "tmp_path"),
        *("tmp_path_factory", "tmpdir", "tmpdir_factory", "warns"),
    }
) - {"Thread", "ThreadPoolExecutor", "contextlib", "eval", "exec", "id", "mock", "threading", "time"}
"""Names in a file of tests that can mean nothing in another process than the answer's: the file is run beside it at once."""
PRINT_CAPTURE_NAMES = frozenset({"capsys", "capsysbinary", "redirect_stdout", "stdout"})
"""Names in tests that look at what was printed, which crosses in most cases."""
RAISING_ASSERTIONS = frozenset({"assertRaises", "assertRaisesRegex", "raises"})
EXECUTING_BUILTINS = frozenset({"compile", "eval", "exec"})
EXECUTING_MODULES = frozenset(
    {"_pickle", "cloudpickle", "code", "codeop", "dill", "doctest", "joblib", "marshal", "pickle", "runpy", "shelve"}
    | {"subprocess"}
)
"""What makes code of the text or the bytes that an answer returns: such tests run the answer's code where they are."""
ANSWER_MODULES = frozenset(ANSWER_MODULE_NAMES)
"""The names under which tests may import the answer."""


class PythonSettings(VerifierSettings, frozen=True, kw_only=True):
    """What a case says to the verifier `python`."""

    pairs: tuple[Pair, ...] = ()
    """Inputs and outputs, for the style `io`."""
    tolerance: float = 0
    """How far numbers that a program prints may be off, absolutely or relatively."""
    python_env: str = ""
    """A virtual environment with the packages that answers and tests may import."""


class PythonTestPlan(NamedTuple):
    """What must be run for a verdict; the names of the tests are known before anything runs."""

    style: str
    names: tuple[str, ...]
    """The tests; for a style inside, a name may stand for several tests that begin with it."""
    steps: tuple[dict[str, Any], ...] = ()
    """Tests and what prepares them, in order, for the referee."""
    file: dict[str, Any] = {}
    """What the referee of a whole file of tests must know of it; empty if the file can only be run beside the answer."""
    source: str = ""
    """The file of tests, with the imports that it leaves to its runner."""
    calls: tuple[PlainCall, ...] = ()
    """The tests as calls with plain data, where all of them are: no referee is needed for these."""
    is_program: bool = False
    """Whether the answer is a whole program, run once for each pair of the case."""
    called_builtins: tuple[str, ...] = ()
    """The builtin functions that the tests call, if they use no name of an answer's: one of these may be what is asked for."""
    is_examined: bool = False
    """Whether the claims of the tests were looked at; all below is known only then."""
    runs_text: bool = False
    """Whether the tests may run text that the answer returns as code: they are kept beside it."""
    speaks_of_process: bool = False
    """Whether the tests look at the state of their process: they are kept beside the answer, which shares that."""
    claims: tuple[Any, ...] = ()
    """Pairs of sides of assertions that both come from the answer, by its names."""
    stub: StubParts = StubParts()
    """What the stub of the case defines besides what is asked for."""
    rereads_arguments: bool = False
    """Whether the tests look again at what they have handed to the answer."""
    plain: PlainTests | None = None
    """What is known of tests that mean the same in another process than the answer's; None for all others."""


def python_test_plan(case: Case) -> PythonTestPlan:
    """The steps of a case's tests; raises VerifierError when no answer could be judged by them."""
    said = PythonSettings.of(case)
    style = said.style or ("io" if said.pairs else "check" if said.entry_point else "asserts")
    if style not in PYTHON_TEST_STYLES:
        raise VerifierError(f'unknown style "{style}" ({did_you_mean(style, PYTHON_TEST_STYLES)})')
    if not case.expectations.should_compile or not case.expectations.should_pass_tests:
        return PythonTestPlan(style, ())
    made = _io(case) if style == "io" else _doctest(case) if style == "doctest" else _source(style, case)
    if style not in FILE_STYLES and style != "io":
        steps = tuple(_with_shared(made.steps, case.verify.entry_point))
        made = made._replace(steps=steps, calls=plain_calls(steps, case.verify.entry_point))
        made = made if case.verify.entry_point else made._replace(called_builtins=_called_builtins(made))
    if not made.names:
        raise VerifierError("no tests; write asserts, functions test_*, check(candidate), examples with >>>, or pairs")
    return made if made.calls else with_claims(made, case)


def _called_builtins(plan: PythonTestPlan) -> tuple[str, ...]:
    trees = [tree for part in _sources(plan) if (tree := _parsed(part)) is not None]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}.union(*(bound_names([tree]) for tree in trees))
    if imported.intersection(ANSWER_MODULE_NAMES) or any(not hasattr(builtins, name) for name in names - own):
        return ()
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return tuple(sorted(called - own))


def with_claims(plan: PythonTestPlan, case: Case) -> PythonTestPlan:
    """A plan with what is known of the claims of its tests, which a referee needs; calls with plain data claim nothing else."""
    if plan.is_examined or not (plan.steps or plan.file):
        return plan
    trees = [tree for part in _sources(plan) if (tree := _parsed(part)) is not None]
    whole = ast.Module([statement for tree in trees for statement in tree.body], [])
    runs_text = any(map(_makes_code, ast.walk(whole)))
    parts = stub_parts(case.verify.stub or "", case.verify.entry_point, whole)
    of_process = speaks_of_process(whole)
    given = {*parts.constants, *bound_names(map(ast.parse, parts.imports))}
    own_claims = tuple(answer_claims(whole, case.verify.entry_point, given))
    is_apart = plan.file and not (runs_text or of_process)
    return plan._replace(
        is_examined=True,
        runs_text=runs_text,
        speaks_of_process=of_process,
        claims=own_claims,
        stub=parts,
        rereads_arguments=looks_at_arguments_again(whole),
        plain=_plain(plan, parts, case.verify.entry_point),
        file={**plan.file, **parts._asdict(), "claims": own_claims} if is_apart else {},
    )


def _plain(plan: PythonTestPlan, stub: StubParts, entry_point: str) -> PlainTests | None:
    """What is known of a plan's tests, if they are plain."""
    if plan.file:
        imports = [statement for source in stub.imports for statement in ast.parse(source).body]
        return plain_tests(ast.Module([*imports, *ast.parse(plan.source).body], []), entry_point, is_file=True)
    try:
        return plain_tests(steps_as_file(plan.steps, entry_point), entry_point, is_file=False)
    except SyntaxError:
        return None


def _sources(plan: PythonTestPlan) -> list[str]:
    """The text of the tests, in parts that can be parsed."""
    if plan.file:
        return [plan.source]
    comparisons = [f"assert ({step['left']}) == ({step['right']})" for step in plan.steps if "left" in step]
    examples = [f"assert (\n{step['source']})" for step in plan.steps if step.get("want")]
    examples = [source for source in examples if _parsed(source) is not None]
    return [*(step["source"] for step in plan.steps if "source" in step), *comparisons, *examples]


def _makes_code(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in EXECUTING_BUILTINS
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        return (owner == "builtins" and node.attr in EXECUTING_BUILTINS) or (
            owner == "os" and node.attr in ("popen", "system")
        )
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(module.partition(".")[0] in EXECUTING_MODULES for module in modules)


def _source(style: str, case: Case) -> PythonTestPlan:
    try:
        body = ast.parse(case.tests).body
    except (SyntaxError, ValueError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
        raise VerifierError(f"its tests are not Python {platform.python_version()}: {where}") from None
    if style in FILE_STYLES:
        # what is not written as a function may be made while the file is loaded; its runner finds it
        is_dynamic = any(isinstance(node, ast.ClassDef) or getattr(node, "name", "") == "load_tests" for node in body)
        found = tuple(_tests_in(body)) or (("the file",) if is_dynamic else ())
        source = _with_imports(_without_start(case.tests, body), body, case.verify.entry_point)
        return PythonTestPlan(style, found, file=_file(style, source), source=source)
    if style == "check":
        if not case.verify.entry_point:
            raise VerifierError("style check needs an entry_point, the function that is handed to check()")
        check = next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == "check"), None)
        if check is None:
            raise VerifierError("style check needs a function check(candidate) in the tests")
        return _check(
            case, check, asserts=any(isinstance(node, ast.Assert) for part in body for node in ast.walk(part))
        )
    steps = [step for node in body for step in _imports(node)]
    imported = stub_parts(case.verify.stub or "", case.verify.entry_point, ast.Module(body, [])).imports
    steps += ({"test": False, "source": source} for source in imported)
    names = []
    for node in body:
        step = _statement(node)
        step["test"] |= _is_compound_test(node)
        steps.append(step)
        if step["test"]:
            names.append(_name(node))
    for node in body:
        if _is_test_function(node):
            call = (
                f"{node.name}()" if isinstance(node, ast.FunctionDef) else f"__import__('asyncio').run({node.name}())"
            )
            steps.append({"test": True, "source": call})
            names.append(node.name)
    return PythonTestPlan(style, tuple(names), tuple(steps))


def _is_test_function(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _is_compound_test(node: ast.stmt) -> bool:
    """Whether a loop, a `with` or a `try` of the file asserts something."""
    return isinstance(node, ast.For | ast.While | ast.With | ast.Try | ast.TryStar | ast.If | ast.Match) and _asserts(
        node
    )


def _asserts(node: ast.AST) -> bool:
    """Whether something is asserted here, and not only in a function that is defined here."""
    if isinstance(node, ast.Assert):
        return not (isinstance(node.test, ast.Constant) and node.test.value)  # `assert True` tests nothing
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return False
    return any(map(_asserts, ast.iter_child_nodes(node)))


def _check(case: Case, check: ast.FunctionDef, *, asserts: bool) -> PythonTestPlan:
    """Each statement of check() that asserts something as a test of its own; check() as a whole where that cannot be."""
    entry_point = case.verify.entry_point
    stub = case.verify.stub or ""
    definitions = stub_definitions(stub, entry_name(entry_point)) if _uses_names_of(stub, case.tests) else ()
    given = ({"test": False, "given": True, "source": source} for source in definitions)
    steps = [*_imports(check), *given, {"test": False, "source": case.tests}]
    parameters = check.args
    plain = len(parameters.args) == 1 and not (parameters.posonlyargs or parameters.kwonlyargs or parameters.defaults)
    inner = [node for statement in check.body for node in ast.walk(statement)]
    # what only a function can do, it must do as one; what stands after an early return might never be meant to run
    whole = not plain or any(
        isinstance(node, ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Nonlocal | ast.Global)
        for node in inner
    )
    # the asserts may be in a function that check() calls
    helped = asserts and not any(map(_asserts, check.body)) and any(isinstance(node, ast.Call) for node in inner)
    if whole or helped:
        call = f"check({entry_point})"
        return PythonTestPlan("check", (call,), (*steps, {"test": True, "source": call}))
    steps.append({"test": False, "source": f"{parameters.args[0].arg} = {entry_point}"})
    names = []
    for node in check.body:
        step = _statement(node)
        if _asserts(node):
            step["test"] = True
            names.append(_name(node))
        steps.append(step)
    if not names:
        raise VerifierError("check(candidate) asserts nothing")
    return PythonTestPlan("check", tuple(names), tuple(steps))


def _uses_names_of(stub: str, tests: str) -> bool:
    """Whether tests use a name that a stub may define for them."""
    nodes = list(ast.walk(ast.parse(tests)))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    own = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    own |= {str(getattr(node, field, "")) for node in nodes for field in ("arg", "name", "asname")}
    given = _parsed(stub)
    return bool(used - own - set(dir(builtins)) or (given is not None and used & bound_names(given.body)))


def _imports(tests: ast.stmt) -> Iterator[dict[str, Any]]:
    """Modules that tests use without importing them: those of the language, not what an answer calls by their names."""
    nodes = list(ast.walk(tests))
    used = {node.value.id for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    for name in sorted((used - called) & IMPLICIT_TEST_MODULES):
        yield {"test": False, "source": f"import {name}"}


def _statement(node: ast.stmt) -> dict[str, Any]:
    if not isinstance(node, ast.Assert) or isinstance(node.test, ast.Constant):  # `assert True` tests nothing
        return {"test": False, "source": ast.unparse(node)}
    compared = node.test
    if isinstance(compared, ast.Compare) and len(compared.ops) == 1 and isinstance(compared.ops[0], ast.Eq):
        # both sides apart, so that a failure can say what came instead
        sides = {"left": ast.unparse(compared.left), "right": ast.unparse(compared.comparators[0])}
        return {"test": True, **sides}
    return {"test": True, "source": ast.unparse(node)}


def _without_start(source: str, body: list[ast.stmt]) -> str:
    """A file of tests without the lines that would start its runner while it is loaded: we start it."""
    lines = source.splitlines(keepends=True)
    for node in body:
        if isinstance(node, ast.Expr) and _starts_runner(node.value):
            # other statements on its lines stay where they are, and so do all line numbers
            first, last = lines[node.lineno - 1].encode(), lines[(node.end_lineno or node.lineno) - 1].encode()
            rest = last[node.end_col_offset :].decode()
            lines[node.lineno - 1 : node.end_lineno] = [
                first[: node.col_offset].decode() + "pass" + rest,
                *["\n"] * ((node.end_lineno or node.lineno) - node.lineno),
            ]
    return "".join(lines)


def _starts_runner(value: ast.expr) -> bool:
    """Whether this is `unittest.main()` or `pytest.main()`, perhaps as the exit code of `sys.exit()`."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    owner = value.func.value
    if not isinstance(owner, ast.Name):
        return False
    if (owner.id, value.func.attr) == ("sys", "exit"):
        return bool(value.args) and _starts_runner(value.args[0])
    return value.func.attr == "main" and owner.id in FILE_STYLES


def _with_imports(source: str, body: list[ast.stmt], entry_point: str) -> str:
    """A file of tests that takes its runner and the answer without importing them, as in BigCodeBench, with the imports."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    missing = [f"import {name}" for name in FILE_STYLES if name in used and name not in modules]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    # a file may also load the answer by its name, unless it is said what it calls
    is_named = not entry_point and any(name in text for name in ANSWER_MODULES for text in texts)
    if modules.isdisjoint(ANSWER_MODULES) and not is_named:
        missing.append("from answer import *")
        missing += [f"from answer import {entry_name(entry_point)}"] if entry_point else []
    first = next((node for node in body if not is_preface(node)), None)
    if not missing or first is None:
        return source
    decorators = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(node.lineno for node in decorators)]) - 1
    lines = source.splitlines(keepends=True)
    return "".join([*lines[:line], "\n".join(missing), "\n", *lines[line:]])


def _file(style: str, source: str) -> dict[str, Any]:
    """A file of tests with what its referee must know of it; nothing if only a run beside the answer makes sense."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    names = set(_names_that_share(nodes))
    if names & BESIDE_NAMES or any(map(_asks_of_module, nodes)):
        return {}
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module in ANSWER_MODULES]
    imported = {alias.name for node in imports for alias in node.names}
    own = bound_names(tree.body)
    if "*" in imported:
        imported |= {node.id for node in nodes if isinstance(node, ast.Name)} - own
    compares_identity = any(_is_identity_comparison(node) or _asserts_identity(node) for node in nodes)
    return {
        "style": style,
        "source": source,
        "imported": sorted(imported),
        "has_star_import": "*" in imported,
        "handed": sorted(_handed_names(nodes)),
        "shares_process": bool(names & (SHARED_PROCESS_NAMES | PRINT_CAPTURE_NAMES)) or compares_identity,
    }


def _asks_of_module(node: ast.AST) -> bool:
    """Whether tests look at the module of the answer itself, such as its `__all__` or `__dict__`, or set a name of it."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return False
    return node.value.id in ANSWER_MODULES and (node.attr.startswith("__") or not isinstance(node.ctx, ast.Load))


def _names_that_share(nodes: list[ast.AST]) -> Iterator[str]:
    """The names in a file that may speak of the process; imports alone do not."""
    harmless = {
        id(part)
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node) in HARMLESS_ATTRIBUTES
        for part in ast.walk(node)
    }
    for node in nodes:
        if isinstance(node, ast.Name) and id(node) not in harmless:
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def _handed_names(nodes: list[ast.AST]) -> Iterator[str]:
    """Names that are not only called, by the tests or by an assertion that something is raised."""
    called = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            called.add(id(node.func))
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            called |= {id(part) for part in node.args[:3] if name in RAISING_ASSERTIONS}
    for node in nodes:
        if isinstance(node, ast.Name) and id(node) not in called:
            yield node.id
        elif isinstance(node, ast.Attribute) and id(node) not in called and isinstance(node.value, ast.Name):
            yield from [node.attr] if node.value.id in ANSWER_MODULES else []


def _asserts_identity(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return node.func.attr in ("assertIs", "assertIsNot") and not any(map(_is_singleton, node.args[:2]))


def _with_shared(steps: tuple[dict[str, Any], ...], entry_point: str) -> Iterator[dict[str, Any]]:
    """The steps with what their file looks at that an answer in another process has for itself: files, patches."""
    parts = _sources(PythonTestPlan("", (), steps))
    try:
        trees = [ast.parse("\n".join(parts))]
    except SyntaxError:
        trees = [tree for part in parts if (tree := _parsed(part)) is not None]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {alias.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    only_called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    # what hands the function over to check() is our own, and check() does with it what its text says
    for statement in (statement for tree in trees for statement in tree.body):
        is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if is_renaming(statement, entry_point) or (is_call and ast.unparse(statement) == f"check({entry_point})"):
            only_called |= {id(node) for node in ast.walk(statement)}
    handed = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in only_called}
    checks = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "check"]
    if any(
        parameter.arg in handed
        for check in checks
        for parameter in ast.walk(check.args)
        if isinstance(parameter, ast.arg)
    ):
        handed.add(entry_point)
    shares = bool(names & SHARED_PROCESS_NAMES) or any(map(_is_identity_comparison, nodes))
    for step in steps:
        yield {**step, "shares_process": shares, "handed": sorted(handed)}


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except SyntaxError:
        return None


def _is_identity_comparison(node: ast.AST) -> bool:
    """Whether this asks if two objects are the same one."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    return any(
        isinstance(operator, ast.Is | ast.IsNot) and not _is_singleton(left) and not _is_singleton(right)
        for operator, left, right in zip(node.ops, sides, node.comparators, strict=False)
    )


def _is_singleton(node: ast.expr) -> bool:
    """Whether there is one such object in every process: None, a truth value, a type of the language."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and hasattr(builtins, node.id))


def _name(node: ast.stmt) -> str:
    name = ast.unparse(node.test if isinstance(node, ast.Assert) else node).partition("\n")[0]
    return name if len(name) <= 120 else f"{name[:117]}..."


def _tests_in(body: list[ast.stmt]) -> list[str]:
    """The tests of a file: functions test_*, and methods test_* of its classes."""
    names = []
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
            names.append(node.name)
        elif isinstance(node, ast.ClassDef):
            inner = [node for node in node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
            names += [f"{node.name}.{method.name}" for method in inner if method.name.startswith("test")]
    return names


def _doctest(case: Case) -> PythonTestPlan:
    try:
        examples = doctest.DocTestParser().get_examples(case.tests)
    except ValueError as error:
        raise VerifierError(f"its examples cannot be read: {error}") from None
    steps = []
    names = []
    for example in examples:
        if example.options.get(doctest.SKIP):
            continue
        is_test = bool(example.want)
        flags = sum(flag for flag, on in example.options.items() if on)
        steps.append(
            {"test": is_test, "source": example.source, "want": example.want, "raises": example.exc_msg, "flags": flags}
        )
        if is_test:
            names.append(example.source.strip()[:120])
    return PythonTestPlan("doctest", tuple(names), tuple(steps))


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
    steps = []
    for pair in said.pairs:
        if not isinstance(pair.input, (list, tuple)):
            raise VerifierError("the input of a pair is the list of the function's arguments, such as input = [1, 2]")
        if _holds_no_json_number([pair.input, pair.output]):
            raise VerifierError(
                "a pair cannot hold infinity or nan; compare in asserts, as in assert f(x) == float('inf')"
            )
        steps.append({"test": True, "pair": [list(pair.input), pair.output]})
    names = tuple(f"{said.entry_point}({', '.join(map(repr, pair.input))})"[:120] for pair in said.pairs)
    return PythonTestPlan("io", names, tuple(steps))


def _holds_no_json_number(value: Any) -> bool:
    """Whether a value has a number in it that JSON, which pairs travel as, has no word for."""
    if isinstance(value, dict):
        return any(map(_holds_no_json_number, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_no_json_number, value))
    return isinstance(value, float) and not math.isfinite(value)
