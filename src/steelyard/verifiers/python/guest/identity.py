"""Which object is which, in tests that run apart from the answer: copies cross, so some of these questions have no answer there.

Lists and the like that cross in one message keep their identity: `f(x) is x` and `f(x)[0] is x[0]` mean what they say. Whether
two calls returned one list, only a run beside the answer can tell.
"""

from __future__ import annotations

import ast
import datetime
import enum
import operator
import types

from steelyard.verifiers.python.guest.values import CONTAINER_TAGS, data_type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

IS_SAME_NAME, BOTH_NAME, IS_ASKED_NAME = "__steelyard_is_same__", "__steelyard_both__", "__steelyard_is_asked__"
IDENTITY_NAMES = frozenset({IS_SAME_NAME, BOTH_NAME, IS_ASKED_NAME})
"""The names of our functions in tests."""
IDENTITY_ASSERTIONS = ("assertIs", "assertIsNot")
MAX_WATCHED_CONTAINERS = 100_000
CONSTANT_MESSAGE = 0
"""Stands for the messages that bring constants of the answer, each of which is copied apart."""
SINGLE_TYPES = (
    *(bool, type(None), type(Ellipsis), type(NotImplemented), type, enum.Enum, types.ModuleType),
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType),
)


class IdentityWatch:
    """Answers of tests' questions which object is which, as far as they can be known."""

    def __init__(self, is_remote: Callable[[Any], bool], leave: Callable[[], None]) -> None:
        self._is_remote = is_remote
        """Whether something is an object of the answer's, other than a function: which of them is which is its word."""
        self._leave = leave
        """Leaves the judging to a run beside the answer."""
        self._received: dict[int, tuple[int, Any]] = {}
        """The message that brought a container, by its address; the container is held, so that no other gets that."""
        self._sent: dict[int, tuple[list[int], Any]] = {}
        self._messages = CONSTANT_MESSAGE
        self.has_met_objects = False
        """Whether one of the answer's objects was asked which one it is."""

    def note_exchange(self, sent: Iterable[Any], received: Iterable[Any]) -> None:
        """Note what crossed in one message and its reply."""
        self._messages += 1
        known = set()
        for one in sent:
            known.add(id(one))
            self._sent.setdefault(id(one), ([], one))[0].append(self._messages)
        for one in received:
            if id(one) not in known:
                self._received.setdefault(id(one), (self._messages, one))

    def note_constants(self, received: Iterable[Any]) -> None:
        """Note values that the answer gave names to."""
        for one in received:
            self._received[id(one)] = (CONSTANT_MESSAGE, one)

    def is_same(self, left: Any, right: Any) -> bool:
        """Whether two objects are one; leaves that to others where it cannot be known here."""
        self.both(left, right)
        return left is right

    def is_not_same(self, left: Any, right: Any) -> bool:
        return not self.is_same(left, right)

    def both(self, left: Any, right: Any) -> tuple[Any, Any]:
        """Two objects that will be asked whether they are one."""
        self.has_met_objects |= self._is_remote(left) or self._is_remote(right)
        if not self._is_known(left, right):
            self._leave()
        return left, right

    def is_asked(self) -> bool:
        """Note a question that is not looked at closer; true."""
        self._leave()
        return True

    def number(self, thing: Any) -> int:
        """What `id` returns; only that of what is the tests' own means something."""
        is_copy = id(thing) in self._received if type(thing) in CONTAINER_TAGS else _is_value(thing)
        if self._is_remote(thing) or (is_copy and not _is_single(thing)):
            self._leave()
        return id(thing)

    def replace_operators(self) -> None:
        """Have the tests of this process ask us, too, when they ask the module `operator`."""
        operator.is_, operator.is_not = self.is_same, self.is_not_same

    def _is_known(self, left: Any, right: Any) -> bool:
        if _is_single(left) or _is_single(right):
            return True
        if left is right and isinstance(left, BaseException):
            return True  # one of the tests that came back is itself, and others are new each time
        if type(left) not in CONTAINER_TAGS or type(right) not in CONTAINER_TAGS:
            return not (_is_value(left) and _is_value(right))
        if len(self._received) + len(self._sent) > MAX_WATCHED_CONTAINERS:
            return False
        first, second = self._received.get(id(left), (None,))[0], self._received.get(id(right), (None,))[0]
        if first is None and second is None:
            return True  # both are the tests' own
        if first != CONSTANT_MESSAGE and (first == second or left is right):
            return True
        return self._is_apart(left, second) or self._is_apart(right, first)

    def _is_apart(self, container: Any, message: int | None) -> bool:
        """Whether a container was there when another came by this message, or had not been sent before it."""
        if not message:
            return False
        numbers = self._sent.get(id(container), ((),))[0]
        return message in numbers or (id(container) not in self._received and all(one > message for one in numbers))


def _is_single(thing: Any) -> bool:
    """Whether there is one such object in every process, or it is always the same one here for the same one there."""
    kind = type(thing)
    if kind is int:
        return bool(-5 <= thing <= 256)
    if kind in (str, bytes, tuple):
        return len(thing) == 0 or (len(thing) == 1 and kind is not tuple and ord(thing) < 256)
    # a time zone is made once by its name
    return isinstance(thing, SINGLE_TYPES) or thing is datetime.UTC or kind.__module__.startswith("zoneinfo")


def _is_value(thing: Any) -> bool:
    """Whether a copy of this would cross."""
    return bool(data_type_name(type(thing))) or isinstance(thing, (tuple, BaseException))


class WatchedIdentity(ast.NodeTransformer):
    """Has the tests ask us which object is which."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        pairs = zip(node.ops, sides, node.comparators, strict=False)
        if not any(isinstance(one, ast.Is | ast.IsNot) and not _has_constant(*pair) for one, *pair in pairs):
            return node
        if len(node.ops) > 1:
            made: ast.expr = ast.BoolOp(ast.And(), [_call(IS_ASKED_NAME), node])
        else:
            made = _call(IS_SAME_NAME, *sides)
            made = ast.UnaryOp(ast.Not(), made) if isinstance(node.ops[0], ast.IsNot) else made
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in IDENTITY_ASSERTIONS and len(node.args) >= 2 and not any(map(_is_starred, node.args[:2])):
            node.args[:2] = [ast.Starred(_call(BOTH_NAME, *node.args[:2]), ast.Load())]
        return ast.fix_missing_locations(node)


def _has_constant(*sides: ast.expr) -> bool:
    return any(isinstance(side, ast.Constant) and isinstance(side.value, SINGLE_TYPES) for side in sides)


def _is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
