"""Claims of tests in which the answer stands on both sides: what one of its functions returns is compared with what another name of it gives.

`assert f(2) == sqrt(2)` in tests that do not import `sqrt` takes the answer's, and `assert is_close(f(2), 1.41)` asks the answer's
`is_close` about its `f`. Such a pass is the answer's own word.
"""

from __future__ import annotations

import ast
import builtins
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from steelyard.verifiers.python.guest.test_names import ANSWER_MODULE_NAMES, bound_names
from steelyard.verifiers.python.process_claims import assigned_names, assignments, claims

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_PASSES = 10
"""How often names are followed through names that tests give to what they compute."""
WHOLE_ANSWER = "answer"
"""Stands for a name of the answer that tests compute, as in `getattr(answer, name)`."""


class AnswerNames:
    """Which names of the answer the expressions of tests depend on."""

    def __init__(self, tests: ast.Module, entry_point: str, given: Iterable[str] = ()) -> None:
        self._nodes = list(ast.walk(tests))
        own = {node.arg for node in self._nodes if isinstance(node, ast.arg)} | set(assigned_names(self._nodes))
        self._modules = (set(ANSWER_MODULE_NAMES) - own) | {
            alias.asname or alias.name
            for node in self._nodes
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name in ANSWER_MODULE_NAMES
        }
        imports = [node for node in self._nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        self._known: dict[str, set[str]] = {name: set() for name in (bound_names(imports) - self._modules).union(given)}
        """Names of the tests, each with those of the answer that its value comes from."""
        self._changed: dict[str, set[str]] = {}
        """Names of the tests for what they call functions of the answer with, and for nothing else, as in `f(x)`."""
        for node in self._nodes:
            if isinstance(node, ast.Try | ast.If):
                # what is defined only if the answer does not define it
                handled = [*node.orelse, *(part for one in getattr(node, "handlers", ()) for part in one.body)]
                handled += node.body if isinstance(node, ast.If) else []
                for name in bound_names(handled):
                    self._known.setdefault(name, set()).add(name)
            if isinstance(node, ast.arg):
                self._known.setdefault(node.arg, set())
            elif isinstance(node, ast.FunctionDef) and node.name == "check" and node.args.args and entry_point:
                self._known[node.args.args[0].arg] = {entry_point}
        for _ in range(MAX_PASSES):
            before = {name: set(known) for name, known in self._known.items()}
            self._follow()
            if before == self._known:
                break

    def _follow(self) -> None:
        for node in self._nodes:
            for target, value in assignments(node):
                for name in (one.id for one in ast.walk(target) if isinstance(one, ast.Name)):
                    self._known.setdefault(name, set()).update(self.of(value) if value is not None else ())
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("test"):
                self._known.setdefault(node.name, set()).update(
                    *(self.of(part.value) for part in ast.walk(node) if isinstance(part, ast.Return) and part.value)
                )
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                # what a call is made for is what it does to its arguments
                for argument in node.value.args:
                    if isinstance(argument, ast.Name):
                        self._changed.setdefault(argument.id, set()).update(self.of(node.value.func))

    def of(self, value: ast.AST) -> set[str]:
        """The names of the answer that an expression uses."""
        found: set[str] = set()
        attributes: set[int] = set()
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._modules:
                found.add(node.attr)
                attributes.add(id(node.value))
            elif isinstance(node, ast.Name) and id(node) not in attributes:
                if node.id in self._modules:
                    found.add(WHOLE_ANSWER)
                elif node.id in self._known:
                    found |= self._known[node.id]
                elif not hasattr(builtins, node.id):
                    found.add(node.id)
        return found

    def _of_side(self, side: ast.expr) -> set[str]:
        """The names of the answer that a side of a comparison depends on."""
        names = (node.id for node in ast.walk(side) if isinstance(node, ast.Name))
        return self.of(side).union(*(self._changed.get(name, ()) for name in names))

    def own_claims(self) -> Iterator[tuple[set[str], set[str]]]:
        """The two sides of what is asserted, where both come from names of the answer, and these are different ones."""
        for claim in claims(self._nodes):
            for sides in self._sides(claim):
                for left, right in combinations(map(self._of_side, sides), 2):
                    if left and right and left.isdisjoint(right):
                        yield left, right

    def _sides(self, claim: ast.expr) -> Iterator[list[ast.expr]]:
        """What is compared with each other in a condition."""
        if isinstance(claim, ast.Tuple):
            yield claim.elts
        for node in ast.walk(claim):
            if isinstance(node, ast.Compare):
                yield from map(list, pairwise([node.left, *node.comparators]))
        for node in _truths(claim):
            if isinstance(node, ast.Call):
                yield [node.func, *node.args]


def _truths(claim: ast.expr) -> Iterator[ast.expr]:
    """The parts of a condition that must be true or false for it to hold."""
    if isinstance(claim, ast.BoolOp):
        for value in claim.values:
            yield from _truths(value)
    elif isinstance(claim, ast.UnaryOp):
        yield from _truths(claim.operand)
    elif isinstance(claim, ast.GeneratorExp | ast.ListComp):
        yield from _truths(claim.elt)
    elif isinstance(claim, ast.Call) and isinstance(claim.func, ast.Name) and claim.func.id in ("all", "any", "bool"):
        for argument in claim.args:
            yield from _truths(argument)
    else:
        yield claim


def answer_claims(tests: ast.Module, entry_point: str, given: Iterable[str] = ()) -> list[list[list[str]]]:
    """The pairs of sides that both come from the answer, by its names; a stub has given these to the tests, too."""
    names = AnswerNames(tests, entry_point, given)
    found = {(tuple(sorted(left)), tuple(sorted(right))) for left, right in names.own_claims()}
    return [[list(left), list(right)] for left, right in sorted(found)]
