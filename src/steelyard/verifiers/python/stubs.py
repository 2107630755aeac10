"""What a case's stub gives to its answer besides the requested function: tests mean that, not what an answer makes of it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.verifiers.python.guest.test_names import bound_names

if TYPE_CHECKING:
    from collections.abc import Iterator


class StubParts(NamedTuple):
    """What the stub of a case defines and its tests may use."""

    helpers: tuple[str, ...] = ()
    """Names of functions that are written out, and of what is imported."""
    imports: tuple[str, ...] = ()
    """Imports of what the tests use, as statements that may fail."""
    constants: dict[str, str] = {}
    """Literals with a name, as text."""


def stub_parts(stub: str, entry_point: str, tests: ast.AST) -> StubParts:
    """What a stub defines for these tests."""
    body = _body(stub)
    used = {node.id for node in ast.walk(tests) if isinstance(node, ast.Name)}
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {name for node in imports for name in bound_names([node])}
    helpers = [name for name in _written_functions(body, entry_point) if name not in imported]
    return StubParts(
        helpers=(*helpers, *sorted(imported)),
        imports=tuple(_lenient(node) for node in imports if used & bound_names([node])),
        constants={name: text for node in body for name, text in _constants(node) if name in used},
    )


def stub_definitions(stub: str, entry_point: str) -> Iterator[str]:
    """Imports, functions and classes of a stub other than the requested function, as statements."""
    for node in _body(stub):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield _lenient(node)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name != entry_point:
            yield ast.unparse(node)


def is_preface(node: ast.stmt) -> bool:
    """Whether a statement must stay in front: a docstring or an import from the future."""
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) or (
        isinstance(node, ast.ImportFrom) and node.module == "__future__"
    )


def _body(stub: str) -> list[ast.stmt]:
    try:
        return ast.parse(stub).body
    except (SyntaxError, ValueError):
        return []


def _lenient(node: ast.stmt) -> str:
    """An import that does nothing if there is no such module: those who need it will miss it."""
    return f"try:\n    {ast.unparse(node)}\nexcept ImportError:\n    pass"


def _written_functions(body: list[ast.stmt], entry_point: str) -> Iterator[str]:
    """Functions that have more than a docstring, and so are not what is asked for."""
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name != entry_point:
            empty = (ast.Pass, ast.Raise)
            if any(not (isinstance(part, empty) or is_preface(part)) for part in node.body):
                yield node.name


def _constants(node: ast.stmt) -> Iterator[tuple[str, str]]:
    target: Any = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    value = getattr(node, "value", None)
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and value is not None:
        try:
            ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return
        yield target.id, ast.unparse(value)
