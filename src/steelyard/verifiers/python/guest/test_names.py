"""The names that tests bind themselves: an answer that has something of the same name does not change what they mean.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import ast
import enum
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

ANSWER_MODULE_NAMES = ("answer", "solution", "candidate", "main")
"""What tests may call the module of the answer."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OWN_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_star_import(node: ast.ImportFrom) -> bool:
    """Whether this takes every name of the answer."""
    return node.module in ANSWER_MODULE_NAMES and node.names[0].name == "*"


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """What statements of a file give a name to, in branches too, unless they take it from the answer."""
    return set(_bindings(list(body)))


def _bindings(waiting: list[Any]) -> Iterator[str]:
    while waiting:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            yield node.name
            yield from (name for below in ast.walk(node) if isinstance(below, ast.Global) for name in below.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module not in ANSWER_MODULE_NAMES:
                yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id
        elif not isinstance(node, _OWN_SCOPES):
            # exceptions, and the patterns of `match`
            yield from (name for field in ("name", "rest") if isinstance(name := getattr(node, field, None), str))
            waiting += ast.iter_child_nodes(node)


def wanted_names(trees: Iterable[ast.AST]) -> set[str]:
    """The names that tests may take from an answer, in the order of these parts.

    Attributes and texts are not among them: the answer is told these names, and `Color.GREEN` may be what is expected of it.
    """
    modules, wanted = set(ANSWER_MODULE_NAMES), set()
    used: dict[str, tuple[int, int]] = {}
    own: dict[str, tuple[int, int]] = {}
    defined: set[str] = set()
    stars: list[tuple[int, int]] = []
    nodes = [(place, node) for place, tree in enumerate(trees) for node in ast.walk(tree)]
    for place, node in nodes:
        where = (place, getattr(node, "lineno", 0))
        if isinstance(node, ast.Name):
            used[node.id] = min(used.get(node.id, where), where)
        elif isinstance(node, ast.Import):
            modules |= {one.asname or one.name for one in node.names if one.name in ANSWER_MODULE_NAMES}
        elif isinstance(node, ast.ImportFrom) and node.module in ANSWER_MODULE_NAMES:
            wanted |= {one.name for one in node.names}
        elif isinstance(node, ast.Module):
            # what the tests import or define first is theirs
            for part in node.body:
                if isinstance(part, ast.Import | ast.ImportFrom):
                    own = dict.fromkeys(bound_names([part]), (place, part.lineno)) | own
                    stars += [(place, part.lineno)] if isinstance(part, ast.ImportFrom) and is_star_import(part) else []
                elif isinstance(part, _FUNCTIONS):
                    own = {part.name: (place, part.lineno + 1)} | own  # a default may still be the answer's
                    defined.add(part.name)
    for _, node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            wanted.add(node.attr)
    replaced = {name for name in defined if any(star >= own[name] for star in stars)}
    return wanted | replaced | {name for name, where in used.items() if name not in own or own[name] > where}


def looked_up_names(waiting: list[types.CodeType]) -> Iterator[str]:
    """Every name that may be looked up when this is run."""
    while waiting:
        code = waiting.pop()
        yield from code.co_names
        waiting += [constant for constant in code.co_consts if hasattr(constant, "co_names")]


def asserting_functions(trees: Iterable[ast.AST]) -> frozenset[str]:
    """The names of functions in tests that assert something, themselves or in a function in them."""
    functions = (node for tree in trees for node in ast.walk(tree) if isinstance(node, _FUNCTIONS))
    return frozenset(node.name for node in functions if any(map(_is_assertion, ast.walk(node))))


def _is_assertion(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(node, ast.Assert) or (isinstance(called, ast.Attribute) and called.attr.startswith("assert"))


def has_own_claims(found: dict[str, Any], claims: Iterable[list[list[str]]]) -> bool:
    """Whether a name of the answer decides about another one, or stands for something else than a class of that name."""
    words = {name for name, value in found.items() if not _is_class(value)} | {"answer"}
    if any(words & set(left) and words & set(right) for left, right in claims):
        return True
    return any(_is_another_class(name, value) for name, value in found.items())


def _is_class(value: Any) -> bool:
    return isinstance(value, type | types.ModuleType) or getattr(type(value), "_kind", "") == "type"


def _is_another_class(name: str, value: Any) -> bool:
    """Whether a name that tests use for a class stands for another one, for several, or for members that are one."""
    if type(value) is tuple:
        return any(isinstance(one, type) for one in value)
    if not isinstance(value, type):
        return False
    if issubclass(value, enum.Enum):
        members = value.__members__.values()
        return len({member._value_ for member in members}) < len(members)
    return value.__name__ != name and value.__module__ != "answer"


def take_names(module: Any, names: Iterable[Any], scope: dict[str, Any]) -> None:
    """Do what `from answer import *` does, except to what the tests have given a name to before."""
    for name in names:
        if type(name) is str and name not in scope:
            scope[name] = getattr(module, name)


class StandIn(types.ModuleType):
    """A module in the place of an answer: it has every name, and nothing in it can be called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = StandInClass(name, (), {})
        setattr(self, name, made)
        return made


class StandInClass(type):
    """A class, so that tests may inherit from it; what happens when it is called is not known."""

    def __call__(cls, *positional: object, **named: object) -> Any:
        if cls.__module__ == __name__ or "__init__" not in vars(cls):
            raise NotImplementedError(f"{cls.__name__} of the answer is not there yet")
        return super().__call__(*positional, **named)
