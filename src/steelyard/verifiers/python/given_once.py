"""Whether tests make what they give to the answer for that alone, so that no test sees what the answer did with it.

A list that is given and read again, or given twice, is another one where the answer has changed it. Names are followed only as
far as that is simple: what is not shown here may be looked at again.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RAISING_ASSERTIONS = {"assertRaises": 1, "assertRaisesRegex": 2, "raises": 1}
"""Assertions that call a function, with the place of the function in their arguments."""
SCOPES = (
    *(ast.For, ast.While, ast.If, ast.Try, ast.FunctionDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""What is run as often as it is reached: what is bound in one of them is another object each time."""
DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict)
MAKING_FUNCTIONS = frozenset(
    {"bytes", "dict", "enumerate", "float", "frozenset", "int", "list", "range", "set", "str", "tuple", "zip"}
)
"""Builtin functions that put no object of a literal into two places."""
LOOKING_FUNCTIONS = frozenset({"all", "any", "frozenset", "len", "list", "max", "min", "set", "sorted", "sum", "tuple"})
"""Builtin functions that keep nothing of what they are given but its items."""


class SourceTree:
    """The statements of tests, with what each part stands in."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.body = body
        self.nodes = [node for statement in body for node in ast.walk(statement)]
        self._parents = {id(child): node for node in self.nodes for child in ast.iter_child_nodes(node)}

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What something is a part of; None for a statement of the file."""
        return self._parents.get(id(node))

    def function(self, node: ast.AST) -> ast.FunctionDef | None:
        """The innermost function that something stands in."""
        above = self.parent(node)
        while above is not None and not isinstance(above, ast.FunctionDef):
            above = self.parent(above)
        return above


class GivenOnce:
    """Follows what tests give to functions of the answer."""

    def __init__(self, tree: SourceTree, calls: Iterable[ast.Call], deep_copiers: set[str], *, is_file: bool) -> None:
        self._tree = tree
        self._deep_copiers = deep_copiers
        """What is `copy.deepcopy` here, as it is written."""
        self._calls = list(calls)
        """The calls of functions of the answer."""
        names = [getattr(node, "attr", getattr(node, "id", "")) for node in tree.nodes]
        functions = {node.name for node in tree.nodes if isinstance(node, ast.FunctionDef)}
        # the runner of a file calls its tests, and in single steps their calls are steps
        self._run_once = {name for name in functions if names.count(name) <= (0 if is_file else 1)}
        self._bound = {node.id for node in tree.nodes if isinstance(node, ast.Name) and is_stored(node)}
        self._bound |= {node.arg for node in tree.nodes if isinstance(node, ast.arg)}
        self._bound |= functions
        lambdas = (node for node in tree.nodes if isinstance(node, ast.Lambda))
        self._lambda_names = {part.arg for one in lambdas for part in ast.walk(one.args) if isinstance(part, ast.arg)}

    def holds(self) -> bool:
        """Whether all that is given to the answer is made for that, and used for nothing else."""
        return all(map(self._is_given_once, self._given()))

    def _given(self) -> Iterator[ast.expr]:
        """What functions of the answer are called with."""
        for node in self._calls:
            yield from (*node.args, *(keyword.value for keyword in node.keywords))

    def _is_given_once(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Starred):
            value = value.value
        return self._is_new(value) or (isinstance(value, ast.Name) and self._is_read_once(value))

    def _is_new(self, value: ast.AST | None) -> bool:
        """Whether an expression makes its value of nothing that has a name."""
        if value is None:
            return False
        is_single = isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords
        if is_single and ast.unparse(value.func) in self._deep_copiers:  # type: ignore[attr-defined]
            return True
        nodes = list(ast.walk(value))
        own = {node.id for node in nodes if isinstance(node, ast.Name) and is_stored(node)}
        return not any(isinstance(node, ast.Name) and node.id in self._bound - own for node in nodes)

    def _is_read_once(self, name: ast.Name) -> bool:
        """Whether what a name stands for here is read here alone: it is bound anew each time before that."""
        if name.id in self._lambda_names:
            return False
        function = self._tree.function(name)
        if function is not None and name.id in parameter_names(function):
            return self._is_parameter_of_table(name, function)
        events: dict[int, list[ast.Name]] = {}
        for node in self._same(name, function):
            events.setdefault(id(self._scope(node)), []).append(node)
        scope = self._scope(name)
        for nodes in map(self._without_looks, events.values()):
            if not is_stored(nodes[0]) or any(
                not is_stored(one) and not is_stored(next_) for one, next_ in pairwise(nodes)
            ):
                return False
            other = self._scope(nodes[0])
            if other is not scope and self._is_around(scope, other):
                return False
        return all(self._is_bound_to_new(node, scope) for node in events[id(scope)] if is_stored(node))

    def _without_looks(self, nodes: list[ast.Name]) -> list[ast.Name]:
        """The same without statements that, before it is given, only look at numbers and texts in it: these keep nothing of it."""
        kept: list[ast.Name] = []
        looks: list[ast.Name] = []
        for node in nodes:
            if kept and is_stored(kept[-1]) and self._holds_constants(kept[-1]) and self._is_look(node):
                looks.append(node)
                continue
            if not is_stored(node) and self._statement(node) in map(self._statement, looks):
                return nodes  # within a statement, what comes first in the text may come last
            kept.append(node)
            looks.clear()
        return kept

    def _holds_constants(self, target: ast.Name) -> bool:
        above = self._tree.parent(target)
        is_simple = isinstance(above, ast.Assign) and len(above.targets) == 1
        return is_simple and self._is_of_constants(above.value)  # type: ignore[union-attr]

    def _is_of_constants(self, value: ast.expr) -> bool:
        """Whether this is a list or the like of constants alone, or of a range of numbers."""
        if isinstance(value, ast.Call):
            name = getattr(value.func, "id", "")
            is_known = name in ("list", "range", "set", "tuple") and name not in self._bound and not value.keywords
            return is_known and (name == "range" or all(map(self._is_of_constants, value.args)))
        nodes = [*getattr(value, "elts", ()), *(_items(value) if isinstance(value, ast.Dict) else ())]
        return isinstance(value, DISPLAYS) and not any(
            isinstance(part, (*DISPLAYS, ast.Call, ast.Name)) for node in nodes if node for part in ast.walk(node)
        )

    def _is_look(self, name: ast.Name) -> bool:
        """Whether only the items are taken of what a name stands for: nothing holds it afterwards."""
        above = self._tree.parent(name)
        if isinstance(above, ast.comprehension) and above.iter is name:
            above = self._tree.parent(above)
            if isinstance(above, ast.ListComp | ast.SetComp | ast.DictComp):
                return True
            name, above = above, above and self._tree.parent(above)  # type: ignore[assignment]
        called = getattr(above.func, "id", "") if isinstance(above, ast.Call) else ""
        is_only_given = isinstance(above, ast.Call) and above.args == [name]
        return is_only_given and called in LOOKING_FUNCTIONS - self._bound

    def _statement(self, node: ast.AST) -> ast.AST | None:
        above: ast.AST | None = node
        while above is not None and not isinstance(above, ast.stmt):
            above = self._tree.parent(above)
        return above

    def _same(self, name: ast.Name, function: ast.FunctionDef | None) -> Iterator[ast.Name]:
        """Where this name is meant, in the order of the text: in a function that binds it, or anywhere."""
        waiting: list[ast.AST] = list(reversed(self._tree.body))
        if function is not None:
            bound = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and is_stored(node)}
            waiting = [function] if name.id in bound | parameter_names(function) else waiting
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Name) and node.id == name.id:
                yield node
            # what is only shown when a test fails is not looked at by one that passes
            is_shown = isinstance(node, ast.Call) and last_name(node.func) == "subTest"
            below = [node.test] if isinstance(node, ast.Assert) else [] if is_shown else ast.iter_child_nodes(node)
            waiting += reversed(list(below))

    def _is_around(self, outer: ast.AST | None, inner: ast.AST | None) -> bool:
        while inner is not None and inner is not outer:
            inner = self._scope(inner)
        return inner is outer

    def _scope(self, node: ast.AST) -> ast.AST | None:
        """The innermost loop, branch or function that something stands in; None in what is run once."""
        below: ast.AST | None = node
        above = self._tree.parent(node)
        while above is not None:
            # what is gone through is computed before
            is_before = isinstance(above, ast.For) and below is above.iter
            if isinstance(above, ast.comprehension) and below is above.iter and self._is_first(above):
                above = self._tree.parent(above)
            elif isinstance(above, SCOPES) and not is_before and not self._is_run_once(above):
                return above
            below, above = above, None if above is None else self._tree.parent(above)
        return None

    def _is_first(self, part: ast.comprehension) -> bool:
        return bool(getattr(self._tree.parent(part), "generators", [None])[0] is part)

    def _is_run_once(self, scope: ast.AST) -> bool:
        """Whether this is a test, which is run once."""
        is_test = isinstance(scope, ast.FunctionDef) and scope.name.startswith("test") and not scope.decorator_list
        return is_test and scope.name in self._run_once  # type: ignore[attr-defined]

    def _is_bound_to_new(self, target: ast.Name, scope: ast.AST | None) -> bool:
        """Whether a name is bound to a new value, or to a part of a literal that is gone through here."""
        above = self._tree.parent(target)
        if isinstance(above, ast.Assign | ast.AnnAssign):
            return len(getattr(above, "targets", [0])) == 1 and self._is_new(above.value)
        while isinstance(above, ast.Tuple | ast.List):
            above = self._tree.parent(above)
        if isinstance(above, ast.Assign):
            return len(above.targets) == 1 and is_literal(above.value)
        if isinstance(above, ast.For):
            return above is scope and self._is_table(above.iter)
        if isinstance(above, ast.comprehension):
            return self._tree.parent(above) is scope and self._is_first(above) and self._is_table(above.iter)
        return False

    def _is_table(self, value: ast.expr) -> bool:
        """Whether this is a literal, or the name of one that is read here alone."""
        if not isinstance(value, ast.Name):
            return is_literal(value)
        bindings = [
            node
            for node in self._tree.nodes
            if isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == [value.id]
        ]
        return self._is_read_once(value) and all(is_literal(node.value) for node in bindings) and bool(bindings)

    def _is_parameter_of_table(self, name: ast.Name, function: ast.FunctionDef) -> bool:
        """Whether a name is read once in a test that pytest gives literals to."""
        if (
            list(self._same(name, function)) != [name]
            or self._scope(name) is not function
            or function.name not in self._run_once
        ):
            return False
        tables = [one.args[1] for one in function.decorator_list if isinstance(one, ast.Call) and len(one.args) > 1]
        # several tables are combined: a value of one is given more than once
        return len(function.decorator_list) == len(tables) == 1 and is_literal(tables[0])


def is_literal(value: ast.AST) -> bool:
    """Whether this is a literal of which no two parts are the same object."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, DISPLAYS):
        return all(map(is_literal, filter(None, (*getattr(value, "elts", ()), *_items(value)))))
    if isinstance(value, ast.UnaryOp | ast.BinOp):
        return not any(isinstance(node, (*DISPLAYS, ast.Call, ast.Name)) for node in ast.walk(value))
    if isinstance(value, ast.Call) and not value.keywords:
        is_known = isinstance(value.func, ast.Name) and value.func.id in MAKING_FUNCTIONS
        return (is_known or ast.unparse(value.func) == "pytest.param") and all(map(is_literal, value.args))
    return False


def _items(value: ast.AST) -> list[ast.expr | None]:
    return [*value.keys, *value.values] if isinstance(value, ast.Dict) else []


def is_stored(node: ast.Name | ast.Attribute | ast.Subscript) -> bool:
    """Whether this is bound or deleted here, and not read."""
    return not isinstance(node.ctx, ast.Load)


def parameter_names(function: ast.FunctionDef) -> set[str]:
    """The names of a function's parameters."""
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def last_name(function: ast.expr) -> str:
    """The name of what is called, without what it belongs to."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
