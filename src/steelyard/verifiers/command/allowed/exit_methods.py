"""Whether an answer in Python may swallow what its tests assert inside a `with`."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterable

from steelyard.text import word_set
from steelyard.verifiers.command.allowed import vocabulary

_EXIT_METHODS = word_set("__exit__ __aexit__")
_HARMLESS_BASES = vocabulary.PYTHON_BASES | word_set(
    "AbstractContextManager AbstractAsyncContextManager ContextDecorator AsyncContextDecorator dict list set tuple str int float bytes frozenset "
    "UserDict UserList UserString defaultdict OrderedDict Counter deque Iterator Iterable Generator Mapping MutableMapping Sequence MutableSequence "
    "Collection Container Hashable Sized Callable Awaitable"
)
"""Classes that have no `__exit__`, or one that returns nothing."""
_SWALLOWING = word_set("suppress ExitStack AsyncExitStack __exit__ __aexit__")
"""What of the library swallows exceptions, or may be told to."""
_CONTEXTS_OF_LIBRARIES = word_set(
    "open raises warns assertRaises assertRaisesRegex assertWarns assertLogs subTest redirect_stdout redirect_stderr TemporaryDirectory "
    "NamedTemporaryFile TemporaryFile Lock RLock ThreadPoolExecutor ProcessPoolExecutor catch_warnings localcontext patch"
)
"""What tests use in a `with` that is not of their answer."""
_WITH_PATTERN = re.compile(
    r"^\s*(?:async\s+)?with\b|\b(?:enter_context|enter_async_context|ExitStack)\b|__a?(?:enter|exit)__", re.MULTILINE
)


def may_swallow(nodes: Iterable[ast.AST], tests: Iterable[str]) -> str:
    """What of an answer may end a `with` of its tests without the exception that was raised in it; empty if there is nothing."""
    nodes = list(nodes)
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    return _swallower(nodes) if any(_asserts_inside(text, defined) for text in tests) else ""


def _swallower(nodes: list[ast.AST]) -> str:
    plain = _plain_imports(nodes)
    methods = {id(each) for node in nodes if isinstance(node, ast.ClassDef) for each in node.body}
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in _EXIT_METHODS:
                is_async = isinstance(node, ast.AsyncFunctionDef)
                is_method = id(node) in methods and is_async == (name == "__aexit__")
                if not is_method or node.decorator_list or _returns_something(node):
                    return f"{name} that may return something true"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _yields_inside(node):
                return f"{name}, which may swallow what is raised where it yields"
            case ast.ClassDef(name=name):
                strange = [base for base in node.bases if not _is_harmless(base, plain)]
                if strange or node.keywords:
                    return f"class {name} with an __exit__ that may return something true"
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) | ast.arg(arg=name):
                is_call = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
                if name in _SWALLOWING and not (is_call and name in _EXIT_METHODS):
                    return name
            case _:
                pass
    return next((name for name in _bound_otherwise(nodes) if name in _EXIT_METHODS), "")


def _returns_something(function: ast.AST) -> bool:
    """Whether a function may give anything but `None` and `False`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if isinstance(node, ast.Return) and node.value is not None:
            value = node.value
            if not (isinstance(value, ast.Constant) and (value.value is None or value.value is False)):
                return True
    return False


def _yields_inside(function: ast.AST) -> bool:
    """Whether a generator yields where an exception that is raised there may be caught."""
    for node in ast.walk(function):
        match node:
            case ast.Try() | ast.TryStar():
                caught = [each for each in node.handlers if not (each.body and isinstance(each.body[-1], ast.Raise))]
                is_left = any(
                    isinstance(each, ast.Return | ast.Break | ast.Continue)
                    for end in (*node.finalbody, *node.handlers)
                    for each in ast.walk(end)
                )
                if (caught or is_left) and _has_yield(node.body):
                    return True
            case ast.With() | ast.AsyncWith():
                if _has_yield(node.body):
                    return True
    return False


def _has_yield(body: Iterable[ast.stmt]) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for node in body for each in ast.walk(node))


def _is_harmless(base: ast.expr, plain: set[str]) -> bool:
    """Whether a base class has no `__exit__` of its own, or is a class of the answer, which is looked at itself."""
    if isinstance(base, ast.Subscript):
        base = base.value
    if isinstance(base, ast.Attribute):
        return base.attr in _HARMLESS_BASES and isinstance(base.value, ast.Name) and base.value.id in plain
    return isinstance(base, ast.Name) and base.id in plain


def _plain_imports(nodes: list[ast.AST]) -> set[str]:
    """The names that stand for a harmless class, a class of the answer or a module, and for nothing else."""
    own, imported = set(), set()
    for node in nodes:
        match node:
            case ast.ClassDef(name=name):
                own.add(name)
            case ast.Import(names=names):
                imported |= {(alias.asname or alias.name).partition(".")[0] for alias in names}
            case ast.ImportFrom(names=names):
                imported |= {alias.name for alias in names if not alias.asname and alias.name in _HARMLESS_BASES}
            case _:
                pass
    known = own | imported | {name for name in _HARMLESS_BASES if hasattr(builtins, name)}
    return known - set(_bound_otherwise(nodes))


def _bound_otherwise(nodes: list[ast.AST]) -> list[str]:
    """The names that a script binds by anything but a class, a plain import or a function."""
    names: list[str] = []
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                names.append(name)
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                names.append(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.append(name)
            case ast.MatchMapping(rest=str(name)) | ast.alias(asname=str(name)):
                names.append(name)
            case ast.ClassDef(name=name) if name in _EXIT_METHODS:
                names.append(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in _HARMLESS_BASES:
                names.append(name)
            case _:
                pass
    return names


def _asserts_inside(text: str, defined: set[str]) -> bool:
    """Whether a file of tests asserts something in a `with`, or in a function with a decorator, that may be of its answer."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return bool(_WITH_PATTERN.search(text))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for node in nodes:
        match node:
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                if any(not _is_of_library(item.context_expr) for item in items) and _may_assert(
                    body, own - defined, defined
                ):
                    return True
            case (
                ast.FunctionDef(decorator_list=[*marks], body=body)
                | ast.AsyncFunctionDef(decorator_list=[*marks], body=body)
            ):
                if any(_root(mark) in defined for mark in marks) and _may_assert(body, own - defined, defined):
                    return True
            case (
                ast.Name(id="ExitStack" | "AsyncExitStack")
                | ast.Attribute(attr="enter_context" | "enter_async_context" | "__exit__" | "__aexit__")
            ):
                return True
            case _:
                pass
    return False


def _is_of_library(value: ast.expr) -> bool:
    """Whether what a `with` of tests uses is plainly not made by the answer."""
    function = value.func if isinstance(value, ast.Call) else value
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return isinstance(value, ast.Call) and name in _CONTEXTS_OF_LIBRARIES


def _may_assert(body: Iterable[ast.stmt], own: set[str], defined: set[str]) -> bool:
    """Whether statements do more than call the answer and plain functions, so that a wrong value may raise something."""
    nodes = [each for statement in body for each in ast.walk(statement)]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        match node:
            case ast.Assert() | ast.Raise():
                return True
            case ast.Call(func=ast.Name(id=name)):
                if name in own or name not in defined | vocabulary.PYTHON_BUILTINS:
                    return True
            case ast.Call(func=ast.Attribute(attr=name) as function):
                if name != "sleep" and name not in defined and _root(function) not in defined | bound:
                    return True
            case ast.Subscript(slice=inner) | ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=inner):
                if any(isinstance(each, ast.Compare | ast.Call) for each in ast.walk(inner)):
                    return True
            case _:
                pass
    return False


def _root(node: ast.expr) -> str:
    """The name with which an expression begins."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
