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

HOLDING_EXPRESSIONS = (
    *(ast.Attribute, ast.BoolOp, ast.Dict, ast.IfExp, ast.List, ast.NamedExpr),
    *(ast.Set, ast.Starred, ast.Subscript, ast.Tuple),
)
"""Expressions whose value is, or holds, what stands in them."""
SHOWING_FUNCTIONS = frozenset({"len", "list", "set", "sorted", "sum", "tuple"})
"""What shows all of a container, and can be compared with a literal as well as the container itself."""
CALLING_BUILTINS = frozenset({"filter", "map"})
"""What only calls the function that it is given."""


def looks_at_arguments_again(tree: ast.Module) -> bool:
    """Whether a name that is handed to the answer is read in another way than by comparing it with a literal."""
    nodes = list(ast.walk(tree))
    own = bound_names(tree.body) | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    # a function of the tests may hand on what it is given
    passing = {node.name for node in nodes if isinstance(node, ast.FunctionDef) and _calls_answer(node, own)}
    passing |= {target for node in nodes for target, value in _assigned(node) if _calls_answer(value, own)}
    local = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    local |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    calls = [node for node in nodes if _may_call_answer(node, own - passing)]
    handing = [node for node in nodes if _hands_over_answer(node, (own | local) - passing)]
    given = {name.id for node in (*calls, *handing) for name in _names_in_arguments(node)}
    given = _with_other_names(given, nodes)
    # what stands beside a function may as well be compared with its result: zip(out, data), same(out, data)
    calls += [node for node in handing if _function_name(node) in CALLING_BUILTINS - own]
    harmless = {id(name) for node in calls for name in _names_in_arguments(node)}
    harmless |= {id(name) for node in nodes for name in _shown_beside_literal(node)}
    harmless |= {id(node.value) for node in nodes if isinstance(node, ast.Assign)}
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


def _calls_answer(tree: ast.AST, own: set[str]) -> bool:
    return any(_may_call_answer(node, own) for node in ast.walk(tree))


def _hands_over_answer(node: ast.AST, own: set[str]) -> bool:
    """Whether a function of the answer's is handed to another one, as in `map(f, data)`."""
    if not isinstance(node, ast.Call):
        return False
    names = [one.id for one in node.args if isinstance(one, ast.Name)]
    return any(name not in own and not hasattr(builtins, name) for name in names)


def _function_name(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names that are given to a value, or to what a value holds."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.NamedExpr | ast.AnnAssign | ast.For | ast.comprehension):
        targets = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        targets = [node.optional_vars]
    value = getattr(node, "value", None) or getattr(node, "iter", None) or getattr(node, "context_expr", None)
    if isinstance(value, ast.expr):
        for target in targets:
            yield from ((name.id, value) for name in ast.walk(target) if isinstance(name, ast.Name))


def _with_other_names(given: set[str], nodes: list[ast.AST]) -> set[str]:
    """These names, and those of what holds the same object, or is held by it."""
    pairs = [(target, name.id) for node in nodes for target, value in _assigned(node) for name in _held_names(value)]
    while True:
        more = {one for pair in pairs if given & {*pair} for one in pair} - given
        if not more:
            return given
        given = given | more


def _held_names(value: ast.expr) -> Iterator[ast.Name]:
    """Names of objects that a value may hold; what a comparison or arithmetic makes is new."""
    if isinstance(value, ast.Name):
        yield value
    elif isinstance(value, ast.Call):
        # what enumerate, zip, items or nullcontext returns holds what they are given
        yield from (name for part in value.args for name in _held_names(part))
        yield from _held_names(value.func.value) if isinstance(value.func, ast.Attribute) else ()
    elif isinstance(value, HOLDING_EXPRESSIONS):
        for part in ast.iter_child_nodes(value):
            yield from _held_names(part) if isinstance(part, ast.expr) else ()


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
        elif isinstance(part, ast.BoolOp):
            waiting += part.values
        elif isinstance(part, ast.IfExp):
            waiting += [part.body, part.orelse]
        elif isinstance(part, ast.NamedExpr):
            waiting += [part.target, part.value]


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
