"""What a case's stub gives to its answer besides the requested function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from steelyard.verifiers.code.join_stub import entry_name
from steelyard.verifiers.python.guest.wire import ANSWER_MODULE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OWN_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def stub_statements(stub: str, entry_point: str) -> Iterator[tuple[str, set[str]]]:
    """Imports, literals, and definitions that are written out, each with the names that it binds."""
    try:
        body = ast.parse(stub).body
    except (SyntaxError, ValueError):
        return
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom) and not _is_from_future(node):
            # those who need it will miss it
            yield f"try:\n    {ast.unparse(node)}\nexcept ImportError:\n    pass", bound_names([node])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and _is_given(node, entry_name(entry_point)):
            yield ast.unparse(node), {node.name}
        elif isinstance(node, ast.Assign | ast.AnnAssign) and _is_literal(node.value):
            yield ast.unparse(node), bound_names([node])


def _is_from_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_given(node: ast.FunctionDef | ast.ClassDef, asked: str) -> bool:
    """Whether a definition is not what is asked for: a function that has more than a docstring, or another class."""
    if isinstance(node, ast.ClassDef):
        return bool(asked) and node.name != asked
    return node.name != asked and any(
        not isinstance(part, ast.Pass | ast.Raise)
        and not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in node.body
    )


def _is_literal(value: ast.expr | None) -> bool:
    try:
        ast.literal_eval(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def bound_names(statements: Iterable[ast.AST]) -> set[str]:
    """What statements give a name to, in branches too, unless they take it from the answer."""
    return set(_bindings(list(statements)))


def _bindings(waiting: list[Any]) -> Iterator[str]:
    while waiting:
        node = waiting.pop()
        if isinstance(node, _OWN_SCOPES[:3]):
            yield node.name
        elif isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module not in ANSWER_MODULE_NAMES:
                yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id
        elif not isinstance(node, _OWN_SCOPES):
            # exceptions, and the patterns of `match`
            yield from (name for field in ("name", "rest") if isinstance(name := getattr(node, field, None), str))
            waiting += ast.iter_child_nodes(node)
