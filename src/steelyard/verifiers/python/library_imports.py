"""What tests import of the library without replacing any of it: an answer must leave that as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

REPLACING_CALLS = frozenset(
    ("setattr", "delattr", "setitem", "delitem", "patch", "patch.object", "patch.dict", "patch.multiple", "spy")
)
"""Functions and methods by which tests put something in the place of what they name first."""
IMPORTING_CALLS = frozenset({"__import__", "import_module", "importorskip", "reload"})
MADE_BY_TESTS = (ast.Constant, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.Call, ast.JoinedStr, ast.BinOp, ast.Lambda)
MOCK_ATTRIBUTES = frozenset({"return_value", "side_effect", "wraps"})
OWN_OBJECTS = frozenset({"self", "cls"})


class LibraryImports(NamedTuple):
    """The modules that tests import, and words in the names of those that they replace something in."""

    modules: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    @classmethod
    def of(cls, tests: str) -> LibraryImports:
        r"""As tests say it; none where it cannot be told what they replace.

        >>> LibraryImports.of("import os, json as j\nj.dumps = str")
        LibraryImports(modules=('json', 'os'), replaced=('json',))
        """
        try:
            tree = ast.parse(tests)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return cls()
        return _Reading(tree).imports()


class _Reading:
    """The syntax tree of tests, gone through once."""

    def __init__(self, tree: ast.Module) -> None:
        self._modules: set[str] = set()
        self._aliases: dict[str, str] = {}
        """What stands behind a name that an import gives: a module, or something in it."""
        self._own: set[str] = set(OWN_OBJECTS)
        """Names of what tests make themselves."""
        self._targets: list[ast.expr] = []
        """What is replaced."""
        self._texts: set[str] = set()
        for node in ast.walk(tree):
            self._read(node)

    def imports(self) -> LibraryImports:
        replaced = set(self._texts)
        for target in self._targets:
            words = _words(target)
            if words and words[0] in self._aliases:
                words = [*self._aliases[words[0]].split("."), *words[1:]]
            elif not words or words[0] not in self._own:
                # a parameter or a loop may stand for any module
                return LibraryImports()
            replaced.update(words)
        return LibraryImports(tuple(sorted(self._modules)), tuple(sorted(replaced)))

    def _read(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._modules.add(alias.name)
                top = alias.name.partition(".")[0]
                self._aliases[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            self._modules.add(node.module)
            for alias in node.names:
                self._aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._own.add(node.name)
        elif isinstance(node, ast.Call):
            self._read_call(node)
        else:
            self._read_targets(node)

    def _read_call(self, node: ast.Call) -> None:
        called = _words(node.func)
        self._modules.update(_imported_by_call(node))
        if node.args and not REPLACING_CALLS.isdisjoint((*called[-1:], ".".join(called[-2:]))):
            if not isinstance(node.args[0], ast.Constant):
                self._targets.append(node.args[0])
            keys = [key for given in node.args if isinstance(given, ast.Dict) for key in given.keys]
            for given in (*node.args, *keys):
                self._add_text(given)
            self._texts.update(keyword.arg for keyword in node.keywords if keyword.arg)

    def _add_text(self, node: ast.expr | None) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._texts.update(node.value.split("."))

    def _read_targets(self, node: ast.AST) -> None:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) else None
        for target in _targets(node):
            if isinstance(target, ast.Name):
                if isinstance(node, ast.withitem):
                    self._own.add(target.id)
                elif isinstance(value, ast.Call) and (module := next(_imported_by_call(value), "")):
                    self._aliases[target.id] = module
                elif isinstance(value, MADE_BY_TESTS):
                    self._own.add(target.id)
            elif isinstance(target, ast.Attribute):
                if target.attr not in MOCK_ATTRIBUTES:
                    self._targets.append(target.value)
            elif isinstance(target, ast.Subscript) and _is_namespace(target.value):
                self._add_text(target.slice)
                self._targets.append(target.value)


def _imported_by_call(node: ast.Call) -> Iterator[str]:
    """The module that a call imports by its name."""
    first = node.args[0] if node.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield from (first.value for name in _words(node.func)[-1:] if name in IMPORTING_CALLS)


def _is_namespace(node: ast.expr) -> bool:
    """Whether this is `sys.modules`, the `__dict__` of something or `vars` of it."""
    called = node.func if isinstance(node, ast.Call) else None
    return _words(node)[-1:] in (["modules"], ["__dict__"]) or (called is not None and _words(called) == ["vars"])


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns to, item by item."""
    waiting: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        waiting = list(node.targets)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor | ast.NamedExpr):
        waiting = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        waiting = [node.optional_vars]
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Tuple | ast.List):
            waiting += target.elts
        elif isinstance(target, ast.Starred):
            waiting.append(target.value)
        else:
            yield target


def _words(node: ast.expr) -> list[str]:
    """The words of a dotted name, the last ones if it begins with a call; none if it is no name."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        words.insert(0, node.id)
    return words
