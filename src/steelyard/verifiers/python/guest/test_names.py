"""The names that tests bind themselves: an answer that has something of the same name does not change what they mean.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import ast

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


def take_names(module: Any, names: Iterable[Any], scope: dict[str, Any]) -> None:
    """Do what `from answer import *` does, except to what the tests have given a name to before."""
    for name in names:
        if type(name) is str and name not in scope:
            scope[name] = getattr(module, name)
