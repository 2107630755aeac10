"""Tests that speak of the process that they run in: apart from the answer they would speak of another one.

A claim that something did not happen (`"KEY" not in os.environ`, `process_time() - start < 1`) holds there whatever the answer did.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from steelyard.verifiers.python.guest.test_names import ANSWER_MODULE_NAMES, bound_names

if TYPE_CHECKING:
    from collections.abc import Iterator

STATE_NAMES = frozenset(
    {
        *("all_tasks", "atexit", "caplog", "catch_warnings", "chdir", "copy_context", "current_task", "environ"),
        *("faulthandler", "fileinput", "gc", "getcontext", "getrusage", "getswitchinterval", "glob", "iglob", "input"),
        *("linecache", "localcontext", "locale", "logging", "monkeypatch", "multiprocessing", "open", "os", "patch"),
        *("process_time", "process_time_ns", "putenv", "redirect_stderr", "resource", "setcontext", "shutil", "signal"),
        *("socket", "stderr", "stdin", "subprocess", "sys", "tempfile", "thread_time", "thread_time_ns", "times"),
        *("tracemalloc", "tzset", "weakref", "Profile", "cProfile", "profile"),
    }
)
"""Names that speak of the state of a process, its files or its memory."""
FILE_METHODS = frozenset(
    {
        *(
            "exists",
            "is_dir",
            "is_file",
            "iterdir",
            "mkdir",
            "read_bytes",
            "read_text",
            "rglob",
            "rmdir",
            "stat",
            "touch",
        ),
        *("unlink", "write_bytes", "write_text"),
    }
)
"""Methods of paths that look at files; a path alone is a text."""
HARMLESS_ATTRIBUTES = frozenset(
    {
        *("os.linesep", "os.path.abspath", "os.path.basename", "os.path.dirname", "os.path.join", "os.path.realpath"),
        *("os.sep", "sys.exit", "sys.float_info", "sys.maxsize", "sys.path", "sys.platform", "sys.stdout"),
        *("sys.version", "sys.version_info"),
    }
)
"""Attributes of process-related modules that are the same for the answer's process, or are fetched from it."""
CLOCKS = frozenset(
    {
        *("datetime", "default_timer", "monotonic", "monotonic_ns", "now", "perf_counter", "perf_counter_ns", "sleep"),
        *("time", "time_ns", "today", "utcnow"),
    }
)
"""Names for the time, which passes for both processes."""
SINGLE_ASSERTIONS = frozenset({"assertFalse", "assertIsNone", "assertIsNotNone", "assertTrue"})
"""Methods of unittest that look at one value."""
MEMORY_FILES = frozenset({"BytesIO", "StringIO"})
STATELESS_MODULES = frozenset(
    {
        *(
            "bisect",
            "cmath",
            "collections",
            "copy",
            "dataclasses",
            "enum",
            "fractions",
            "functools",
            "heapq",
            "itertools",
        ),
        *("json", "math", "operator", "pytest", "re", "statistics", "textwrap", "typing", "unittest"),
    }
)
"""Modules of which nothing is asserted but what they compute, and the runners of tests."""
USUAL_RECURSION_LIMIT = 1000


def speaks_of_process(tests: ast.Module) -> bool:
    """Whether tests look at the state of their process, so that only a run beside the answer means something."""
    nodes = list(ast.walk(tests))
    modules = _imported_names(nodes)
    stateful = {name for name, module in modules.items() if module not in STATELESS_MODULES}
    names = set(_state_words(nodes, set(modules)))
    if names & STATE_NAMES or (names & {"Path", "pathlib"} and names & FILE_METHODS):
        return True
    if any(_changes_module(node, set(modules)) or _forbids_warnings(node) for node in nodes):
        return True
    return _claims_only_of_modules(nodes, stateful)


def _imported_names(nodes: list[ast.AST]) -> dict[str, str]:
    """The names of what tests import, other than from the answer, each with the first part of its module."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {
                name: alias.name.partition(".")[0]
                for alias in node.names
                for name in bound_names([ast.Import([alias])])
            }
        elif isinstance(node, ast.ImportFrom):
            found |= dict.fromkeys(bound_names([node]), (node.module or "").partition(".")[0])
    return {name: module for name, module in found.items() if module not in ANSWER_MODULE_NAMES}


def _state_words(nodes: list[ast.AST], modules: set[str]) -> Iterator[str]:
    """Names of modules and builtins and their attributes that are used, except in what means the same in every process."""
    own = set(assigned_names(nodes))
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    known = {name for name in (*modules, *dir(builtins)) if name in modules or name not in own}
    harmless: set[int] = set()
    for node in nodes:
        is_attribute = isinstance(node, ast.Attribute) and ast.unparse(node) in HARMLESS_ATTRIBUTES
        if is_attribute or _raises_limit(node):
            harmless |= {id(part) for part in ast.walk(node)}
    for node in nodes:
        if id(node) in harmless:
            continue
        if isinstance(node, ast.Name) and node.id in known:
            yield node.id
        elif isinstance(node, ast.Attribute) and (node.attr in FILE_METHODS or _root(node) in known):
            yield node.attr


def _root(node: ast.expr) -> str:
    """The name that an attribute is asked of in the end."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _raises_limit(node: ast.AST) -> bool:
    """Whether this allows deeper recursion, which can only help, and is asked of every answer again if it fails."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name) and node.args):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
    try:
        return name == "setrecursionlimit" and eval_number(node.args[0]) >= USUAL_RECURSION_LIMIT
    except ValueError:
        return False


def eval_number(node: ast.expr) -> float:
    """The value of a number, or of one to the power of another; raises ValueError for anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.Mult):
        left, right = eval_number(node.left), eval_number(node.right)
        if isinstance(node.op, ast.Pow) and abs(right) > 10:
            raise ValueError("too large")
        return float(left**right if isinstance(node.op, ast.Pow) else left * right)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)  # type: ignore[arg-type]
    raise ValueError("not a number")


def _changes_module(node: ast.AST, modules: set[str]) -> bool:
    """Whether tests put something else into a module, to see whether an answer uses it."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return isinstance(node.value, ast.Name) and node.value.id in modules and ast.unparse(node) != "sys.stdout"
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and bool(node.args)
    if not is_call or node.func.id not in ("delattr", "setattr"):  # type: ignore[attr-defined]
        return False
    first = node.args[0]  # type: ignore[attr-defined]
    return isinstance(first, ast.Name) and first.id in modules


def _forbids_warnings(node: ast.AST) -> bool:
    """Whether warnings become errors from here on."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name) and node.args):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
    first = node.args[0]
    return name in ("filterwarnings", "simplefilter") and isinstance(first, ast.Constant) and first.value == "error"


def _claims_only_of_modules(nodes: list[ast.AST], modules: set[str]) -> bool:
    """Whether something is asserted of modules alone, such as `random.getstate() == before`."""
    derived = _derived_names(nodes, modules)
    return any(_is_of_modules(claim, modules, derived) for claim in claims(nodes))


def claims(nodes: list[ast.AST]) -> Iterator[ast.expr]:
    """What is asserted: the conditions of `assert`, and what unittest's methods are given."""
    for node in nodes:
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in SINGLE_ASSERTIONS:
                yield from node.args[:1]
            elif name.startswith("assert") and not name.startswith(("assertRaises", "assertWarns", "assert_")):
                yield ast.Tuple(node.args[:2], ast.Load())


def _names(value: ast.AST) -> set[str]:
    """The names in an expression, other than those that it binds itself and builtin ones."""
    found = [node for node in ast.walk(value) if isinstance(node, ast.Name)]
    bound = {node.id for node in found if not isinstance(node.ctx, ast.Load)}
    return {node.id for node in found} - bound - set(dir(builtins))


def _is_of_modules(value: ast.AST, modules: set[str], derived: set[str]) -> bool:
    names = _names(value)
    attributes = [node for node in ast.walk(value) if isinstance(node, ast.Attribute)]
    owners = {node.value.id for node in attributes if isinstance(node.value, ast.Name)}
    words = {node.attr for node in attributes} | (names - owners)
    return bool(names) and names <= modules | derived and words.isdisjoint(CLOCKS | MEMORY_FILES)


def _are_of_modules(values: list[ast.AST | None], modules: set[str], derived: set[str]) -> bool:
    """Whether a name stands for something of modules alone; a literal may be its first value."""
    more = [value for value in values if not isinstance(value, ast.Constant)]
    return bool(more) and all(one is not None and _is_of_modules(one, modules, derived) for one in more)


def _derived_names(nodes: list[ast.AST], modules: set[str]) -> set[str]:
    """Names for what was computed from modules alone, and not given to the answer."""
    values: dict[str, list[ast.AST | None]] = {}
    for node in nodes:
        for target, value in assignments(node):
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    values.setdefault(name.id, []).append(value)
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    derived: set[str] = set()
    while True:
        more = {
            name
            for name, given in values.items()
            if name not in parameters and _are_of_modules(given, modules, derived)
        } - derived
        if not more:
            break
        derived |= more
    handed = {
        name
        for node in nodes
        if isinstance(node, ast.Call) and not _names(node.func) <= modules | derived
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
        for name in _names(argument)
    }
    return derived - handed


def assigned_names(nodes: list[ast.AST]) -> Iterator[str]:
    """The names that tests give to what they compute."""
    targets = (target for node in nodes for target, _ in assignments(node))
    return (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def assignments(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """What a statement gives names to, with the value; None where that depends on what they were."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        yield node.target, node.value
    elif isinstance(node, ast.AugAssign):
        yield node.target, None
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr
