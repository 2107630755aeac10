"""Whether tests look again at what they have handed to an answer, which may have changed it.

`out = f(data)` and then `all(item in out for item in data)` holds for an answer that empties `data` and returns nothing.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from steelyard.verifiers.python.guest.test_names import ANSWER_MODULE_NAMES, bound_names
from steelyard.verifiers.python.guest.test_rewriter import EQUALITY_ASSERTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWING_FUNCTIONS = frozenset({"len", "list", "set", "sorted", "sum", "tuple"})
"""What shows all of a container, and can be compared with a literal as well as the container itself."""


def looks_at_arguments_again(tree: ast.Module) -> bool:
    """Whether a name that is handed to the answer is read in another way than by comparing it with a literal."""
    nodes = list(ast.walk(tree))
    own = bound_names(tree.body) | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    handed = {id(name): name.id for node in nodes if _may_call_answer(node, own) for name in _names_in_arguments(node)}
    given = set(handed.values())
    harmless = {*handed, *(id(name) for node in nodes for name in _shown_beside_literal(node))}
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in given and id(node) not in harmless
        for node in nodes
    )


def _may_call_answer(node: ast.AST, own: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id not in own and not hasattr(builtins, node.func.id)
    # a method may be one of the answer's objects
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_own = isinstance(owner, ast.Name) and (owner.id in own or owner.id == "self")
    return owner is None or not is_own or (isinstance(owner, ast.Name) and owner.id in ANSWER_MODULE_NAMES)


def _names_in_arguments(node: ast.AST) -> Iterator[ast.Name]:
    """Names that stand in the arguments of a call by themselves, in a list, or with an attribute or an index."""
    waiting: list[ast.AST] = []
    if isinstance(node, ast.Call):
        waiting = [*node.args, *(keyword.value for keyword in node.keywords)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name):
            yield part
        elif isinstance(part, ast.List | ast.Tuple | ast.Set):
            waiting += part.elts
        elif isinstance(part, ast.Dict):
            waiting += part.values
        elif isinstance(part, ast.Attribute | ast.Subscript | ast.Starred):
            waiting.append(part.value)


def _shown_beside_literal(node: ast.AST) -> Iterator[ast.Name]:
    """Names whose content is compared with a literal: whoever changes it must know what is expected."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        sides = [node.left, node.comparators[0]]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in EQUALITY_ASSERTIONS:
        sides = node.args[:2]
    if len(sides) == 2 and any(map(_is_literal, sides)):
        for side in sides:
            shown = side
            is_call = isinstance(shown, ast.Call) and isinstance(shown.func, ast.Name) and len(shown.args) == 1
            if is_call and shown.func.id in SHOWING_FUNCTIONS:  # type: ignore[attr-defined]
                shown = shown.args[0]  # type: ignore[attr-defined]
            elif isinstance(shown, ast.Subscript) and _is_literal(shown.slice):
                shown = shown.value
            if isinstance(shown, ast.Name):
                yield shown


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
