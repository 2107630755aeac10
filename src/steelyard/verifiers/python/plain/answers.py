"""Answers of which it is certain, by their source, that they change nothing that tests in their process use.

A pass that was confirmed beside such an answer was not forged there. An answer may well be honest without being listed here: it
may want to set something. But nobody has shown that it sets nothing else, so its confirmed pass is `in-process`.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from steelyard.verifiers.python.plain.names import (
    ANNOTATION_FIELDS,
    ANNOTATION_PARTS,
    BUILTIN_MEANINGS,
    FRAME_ATTRIBUTES,
    LISTED_BASES,
    LISTED_CONSTANTS,
    LISTED_DUNDERS,
    LISTED_METHODS,
    LISTED_MODULES,
    LISTED_PRIVATE,
    METHOD_DECORATORS,
    REACHING_ATTRIBUTES,
    REACHING_BUILTINS,
    SETTERS,
    TEXT_THAT_REACHES,
    USUAL_MODULE_NAMES,
    listed_names,
    private_names,
    shared_functions,
    test_case_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_SOURCE_CHARS = 200_000
"""Longer answers are not looked at."""


class NotPlainAnswerError(Exception):
    """Something in an answer that is not listed."""


def is_plain_answer(code: str) -> bool:
    """Whether an answer certainly changes nothing that belongs to others."""
    tree = parsed_answer(code)
    if tree is None:
        return False
    try:
        PlainAnswerChecker(tree).check()
    except NotPlainAnswerError:
        return False
    return True


def parsed_answer(code: str) -> ast.Module | None:
    """The source of an answer that has been compiled elsewhere before, so that this takes no longer than that did."""
    if len(code) > MAX_SOURCE_CHARS:
        return None
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class PlainAnswerChecker:
    """Goes through an answer and raises where something is not listed."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._nodes = list(ast.walk(tree))
        self._modules: dict[str, str] = {}
        """Modules by the names that the answer has for them."""
        self._imported: dict[str, str] = {}
        """Names that are imported from modules, and what they are there."""
        self._class_nodes = [node for node in self._nodes if isinstance(node, ast.ClassDef)]
        self._classes = {node.name for node in self._class_nodes}
        self._bound = {name for node in self._nodes for name in _bound_by_itself(node)}
        """Names that are bound by something else than a definition or an import."""
        self._fields = set(self._class_fields())
        self._own: set[str] = set()
        """Functions and classes of the answer, by names that mean nothing else."""
        self._selves: dict[int, bool] = {}
        """Places of names that stand for an object of the answer's class (False), or for that class (True)."""
        self._methods: set[str] = set()
        self._called = {id(node.func) for node in self._nodes if isinstance(node, ast.Call)}

    def check(self) -> None:
        """Raise where something is not listed."""
        for node in self._nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._take_import(node)
        self._check_meanings()
        self._selves = dict(self._find_selves())
        self._methods = set(self._method_names())
        for node in self._nodes:
            self._check_forms(node)
            if isinstance(node, ast.ClassDef):
                self._check_class(node)
            elif isinstance(node, ast.Attribute):
                self._check_attribute(node)
            elif isinstance(node, ast.Name):
                self._check_name(node)
        self._check_setters()
        used = set(self._harmless_places())
        are_classes_kept = not any(self._class_values(used | set(self._compared_places())))
        if not are_classes_kept:
            # their methods may be called with anything for a self
            self._selves = {}
        targets = [
            node
            for node in self._nodes
            if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
        ]
        stores = sum(self._check_store(node) for node in targets) > 0
        if stores and not are_classes_kept:
            raise NotPlainAnswerError
        for node in self._nodes:
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) not in used:
                self._check_handed(node, stores=stores)

    def _check_meanings(self) -> None:
        """Raise if a name that tests or this class know has another meaning; find those that have one of the answer's."""
        top = set(_top_names(self._tree))
        top.update(name for node in self._nodes if isinstance(node, ast.Global) for name in node.names)
        defined = [
            node for node in self._nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        names = {node.name for node in defined}
        if any(hasattr(builtins, name) or name in LISTED_METHODS for name in top):
            raise NotPlainAnswerError
        if BUILTIN_MEANINGS & (names | self._bound) or (LISTED_BASES | self._classes) & self._bound:
            raise NotPlainAnswerError
        foreign = {
            node.name
            for node in defined
            if any(self._library_name(one) not in SETTERS | METHOD_DECORATORS for one in node.decorator_list)
        }
        methods = {part.name for node in self._class_nodes for part in node.body if part in defined}
        self._own = names - methods - self._bound - foreign - self._imported.keys() - self._modules.keys()

    def _library_name(self, decorator: ast.expr) -> str:
        """What a decorator is called in the library, or in the language."""
        path = _path(decorator.func if isinstance(decorator, ast.Call) else decorator)
        name = path[1] if len(path) == 2 and path[0] in self._modules else ""
        if len(path) == 1:
            name = path[0] if path[0] in BUILTIN_MEANINGS else self._imported.get(path[0], "").rpartition(".")[2]
        if not isinstance(decorator, ast.Call) or name == "wraps":
            return name
        # another function among the arguments would be given what is decorated, or be decorated itself
        arguments = [*decorator.args, *(keyword.value for keyword in decorator.keywords)]
        is_set = name in ("dataclass", "lru_cache") and all(isinstance(value, ast.Constant) for value in arguments)
        return name if is_set else ""

    def _find_selves(self) -> Iterator[tuple[int, bool]]:
        for node in self._class_nodes:
            for part in node.body:
                if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                first = [*part.args.posonlyargs, *part.args.args][:1]
                if not first or not all(self._keeps_method(decorator, node) for decorator in part.decorator_list):
                    continue
                inside = list(_scope(part, first[0].arg))
                if any(first[0].arg in _bound_by_itself(inner) for inner in inside):
                    continue
                is_class = part.name == "__new__" or "classmethod" in map(_last_name, part.decorator_list)
                for inner in inside:
                    if isinstance(inner, ast.Name) and inner.id == first[0].arg:
                        yield id(inner), is_class

    def _keeps_method(self, decorator: ast.expr, node: ast.ClassDef) -> bool:
        path = _path(decorator)
        if len(path) == 2 and path[1] in ("setter", "deleter", "getter"):
            named = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == path[0]]
            return bool(named) and ["property"] in map(_path, named[0].decorator_list) and path[0] not in self._bound
        return self._library_name(decorator) in METHOD_DECORATORS - {"staticmethod"}

    def _method_names(self) -> Iterator[str]:
        for node in self._class_nodes:
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    if not {"classmethod", "staticmethod"} & set(map(_last_name, part.decorator_list)):
                        yield part.name
                elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Name):
                    yield from _bound_here(part)

    def _class_values(self, used: set[int]) -> Iterator[ast.AST]:
        """Where classes, or functions of classes, are handed on, so that a method may be called with anything."""
        called_with_self = {
            id(node.func)
            for node in self._nodes
            if isinstance(node, ast.Call) and node.args and self._selves.get(id(node.args[0])) is False
        }
        for node in self._nodes:
            if self._is_class(node) and id(node) not in used:
                yield node
            is_method = isinstance(node, ast.Attribute) and node.attr in self._methods and self._is_class(node.value)
            if is_method and id(node) not in called_with_self:
                yield node
        is_told = any(getattr(node, "name", "") in ("__exit__", "__aexit__") for node in self._nodes)
        for owner in self._class_nodes:
            if (
                is_told
                and owner.bases
                and any(part.name in self._methods and not _is_dunder(part.name) for part in _functions(owner))
            ):
                # it may be an exception, whose class is told to the end of a context
                yield owner
            again = {id(part.value) for part in owner.body if isinstance(part, ast.Assign) and _names_only(part)}
            for inner in _class_scope(owner):
                if isinstance(inner, ast.Name) and inner.id in self._methods and isinstance(inner.ctx, ast.Load):
                    yield from [inner] if id(inner) not in again else []

    def _are_classes(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return all(map(self._are_classes, node.elts))
        is_builtin = isinstance(node, ast.Name) and isinstance(getattr(builtins, node.id, None), type)
        return self._is_class(node) or (is_builtin and _last_name(node) not in self._bound)

    def _is_class(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return node.id in self._classes or node.id == "type" or self._selves.get(id(node), False)
        return _is_type_of(node)

    def _compared_places(self) -> Iterator[int]:
        """Where a class is looked at, and no method of it is called."""
        for node in self._nodes:
            if isinstance(node, ast.Compare):
                compared = (node.left, *node.comparators)
                # an object of the answer would be given the class to compare itself with
                if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) or all(map(self._are_classes, compared)):
                    yield from map(id, compared)
            elif isinstance(node, ast.FormattedValue):
                yield id(node.value)
            elif isinstance(node, ast.MatchClass):
                yield id(node.cls)
            elif isinstance(node, ast.Raise) and node.exc is not None:
                yield id(node.exc)
            elif isinstance(node, ast.Call) and _last_name(node.func) in (
                "isinstance",
                "issubclass",
                "super",
                "__new__",
            ):
                for argument in node.args:
                    yield from map(id, (argument, *ast.iter_child_nodes(argument)))
            elif isinstance(node, ast.Assign) and [_path(target) for target in node.targets] == [["__slots__"]]:
                yield id(node.value)

    def _check_handed(self, node: ast.Name | ast.Attribute, *, stores: bool) -> None:
        """Raise if a module is handed on; where attributes of anything are set, so is what comes from one."""
        path = _path(node)
        if path and path[0] in self._modules and (len(path) == 1 or self._in_module(path)[1] == []):
            raise NotPlainAnswerError
        if stores and path and (path[0] in self._modules or path[0] in self._imported):
            raise NotPlainAnswerError

    def _in_module(self, path: list[str]) -> tuple[str, list[str]]:
        """The module that a path begins with, and what follows."""
        module, rest = self._modules[path[0]], path[1:]
        while rest and f"{module}.{rest[0]}" in LISTED_MODULES:
            module, rest = f"{module}.{rest[0]}", rest[1:]
        return module, rest

    def _class_fields(self) -> Iterator[str]:
        """Names of the attributes that the answer's own classes have."""
        for node in self._nodes:
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    yield from _bound_here(part)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                yield node.attr

    def _check_forms(self, node: ast.AST) -> None:
        """Raise at what reaches attributes, or gives a known name another meaning, in ways of its own."""
        if isinstance(node, ast.Constant):
            is_listed = not (isinstance(node.value, str) and TEXT_THAT_REACHES.search(node.value))
        elif isinstance(node, ast.MatchClass):
            is_listed = not any(name.startswith("_") or _reaches(name) for name in node.kwd_attrs)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            is_listed = node.id not in LISTED_BASES | self._classes and not is_exception(node.id)
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("type", "wraps"):
            is_listed = len(node.args) == 1 and not node.keywords
        elif isinstance(node, ast.Call) and _last_name(node.func) == "__new__":
            is_listed = bool(node.args) and self._selves.get(id(node.args[0]), False)
        elif isinstance(node, ast.Call) and _last_name(node.func) == "__init__":
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            is_listed = isinstance(owner, ast.Call) and _last_name(owner.func) == "super"
            is_listed = is_listed or (bool(node.args) and self._selves.get(id(node.args[0])) is False)
        elif isinstance(node, ast.Attribute) and node.attr == "__init__":
            is_listed = id(node) in self._called
        elif isinstance(node, ast.alias):
            is_listed = node.asname not in LISTED_BASES and not hasattr(builtins, node.asname or "")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_listed = not _is_dunder(node.name) or node.name in LISTED_METHODS
        else:
            is_listed = True
        if not is_listed:
            raise NotPlainAnswerError

    def _take_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in LISTED_MODULES or (alias.asname and "." in alias.name):
                    raise NotPlainAnswerError
                self._name_import(self._modules, alias.asname, alias.name.partition(".")[0])
            return
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            if node.level or node.module not in LISTED_MODULES:
                raise NotPlainAnswerError
            if whole in LISTED_MODULES:
                self._name_import(self._modules, alias.asname or alias.name, whole)
            elif alias.name in listed_names(node.module):
                self._name_import(self._imported, alias.asname or alias.name, whole)
            else:
                raise NotPlainAnswerError

    def _name_import(self, names: dict[str, str], name: str | None, target: str) -> None:
        known = {**self._modules, **self._imported}
        # no name means two things
        if known.get(name or target, target) != target:
            raise NotPlainAnswerError
        names[name or target] = target

    def _harmless_places(self) -> Iterator[int]:
        """Where a name is used, and not handed on."""
        for node in self._nodes:
            if isinstance(node, ast.Attribute):
                yield id(node.value)
            elif isinstance(node, ast.Call):
                yield id(node.func)
            elif isinstance(node, ast.ClassDef):
                yield from map(id, (*node.bases, *node.decorator_list))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from map(id, node.decorator_list)
            elif isinstance(node, ast.ExceptHandler) and node.type is not None:
                yield from self._named_places(node.type)
            for field in ANNOTATION_FIELDS:
                if (annotation := getattr(node, field, None)) is not None:
                    yield from self._named_places(annotation)

    def _named_places(self, node: ast.expr) -> Iterator[int]:
        """The places of an annotation or a type of exceptions that does nothing; a module is none."""
        parts = list(ast.walk(node))
        if all(isinstance(part, ANNOTATION_PARTS) for part in parts):
            yield from (id(part) for part in parts if not (isinstance(part, ast.Name) and part.id in self._modules))

    def _check_class(self, node: ast.ClassDef) -> None:
        for part in _class_scope(node):
            if isinstance(part, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal):
                # a module would be an attribute, whose own attributes could be set, and a method would be a function
                raise NotPlainAnswerError
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load) and _reaches(part.id):
                raise NotPlainAnswerError
        names = {name for part in node.body for name in _bound_here(part)}
        patterns = [part for part in node.body if "__match_args__" in _bound_here(part)]
        if not all(map(_is_listed_pattern, patterns)):
            raise NotPlainAnswerError
        if names & test_case_names():
            # tests may inherit from it
            raise NotPlainAnswerError
        makers = ("copy", "dataclasses", "enum")
        targets = (*self._modules.values(), *self._imported.values())
        if "__new__" in names and any(target.partition(".")[0] in makers for target in targets):
            # these set attributes of what it makes
            raise NotPlainAnswerError
        if any(keyword.arg not in ("metaclass", "total", "frozen") for keyword in node.keywords):
            raise NotPlainAnswerError
        if any(keyword.arg == "metaclass" and not _is_abstract(keyword.value) for keyword in node.keywords):
            raise NotPlainAnswerError
        for base in node.bases:
            name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
            if name not in LISTED_BASES and name not in self._classes and not is_exception(name):
                raise NotPlainAnswerError

    def _check_attribute(self, node: ast.Attribute) -> None:
        name = node.attr
        if (_is_dunder(name) and name not in LISTED_DUNDERS) or _reaches(name):
            raise NotPlainAnswerError
        path = _path(node)
        if len(path) > 1 and path[0] in self._modules:
            module, rest = self._in_module(path)
            if rest and (module not in LISTED_MODULES or rest[0] not in listed_names(module)):
                raise NotPlainAnswerError
        is_private = name.startswith("_") and not _is_dunder(name)
        if is_private and id(node.value) not in self._selves and name not in LISTED_PRIVATE:
            if path[:1] and (path[0] in self._modules or path[0] in self._imported):
                raise NotPlainAnswerError
            if name not in self._fields or name in private_names():
                raise NotPlainAnswerError

    def _check_name(self, node: ast.Name) -> None:
        name = node.id
        is_read = isinstance(node.ctx, ast.Load)
        dunders = LISTED_DUNDERS | LISTED_METHODS if is_read else LISTED_METHODS - {"__new__"} | LISTED_CONSTANTS
        if name in REACHING_BUILTINS or (name.startswith("__") and name not in dunders) or name == "__class__":
            raise NotPlainAnswerError
        if not is_read and (name in self._modules or name in self._imported):
            # no name means two things
            raise NotPlainAnswerError

    def _check_setters(self) -> None:
        """Raise if a function that sets attributes is more than the decorator of something that the answer defines."""
        decorating: set[int] = set()
        for node in self._nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for decorator in reversed(node.decorator_list):
                    if self._library_name(decorator) not in SETTERS | METHOD_DECORATORS:
                        break
                    decorating.add(id(decorator.func if isinstance(decorator, ast.Call) else decorator))
        for node in self._nodes:
            path = _path(node) if isinstance(node, ast.Name | ast.Attribute) else []
            module = self._modules.get(path[0]) if path else None
            name = self._imported.get(path[0], "") if len(path) == 1 else ".".join(path) if module else ""
            if name.rpartition(".")[2] in SETTERS and id(node) not in decorating:
                raise NotPlainAnswerError

    def _check_store(self, node: ast.Attribute | ast.Subscript) -> bool:
        """Raise if something of others may be set; say whether an attribute of something unknown is."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self._modules or root.id in self._imported:
            raise NotPlainAnswerError
        if isinstance(node, ast.Subscript):
            return False
        if isinstance(node.value, ast.Name) and root.id in self._own:
            return False
        is_own = id(node.value) in self._selves or (_is_type_of(node.value) and id(root) in self._selves)
        if _is_dunder(node.attr) or node.attr in test_case_names():
            raise NotPlainAnswerError
        if is_own:
            return False
        if _is_type_of(node.value) or node.attr not in self._fields or node.attr in shared_functions():
            raise NotPlainAnswerError
        return True


def defines_itself(code: str, names: Iterable[str]) -> bool:
    """Whether an answer may have made one of these names itself, instead of importing it."""
    tree = parsed_answer(code)
    if tree is None:
        return True
    imported: set[str] = set()
    made: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                is_itself = name == alias.name or name in USUAL_MODULE_NAMES
                (imported if is_itself else made).add(name)
        elif isinstance(node, ast.stmt):
            made.update(_bound_here(node))
    return bool(made.intersection(names)) or (not imported.issuperset(names) and not is_plain_answer(code))


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _reaches(name: str) -> bool:
    """Whether an attribute leads to the frames of others, or to attributes by names that it is given."""
    return name in REACHING_ATTRIBUTES or bool(FRAME_ATTRIBUTES.fullmatch(name))


def _is_listed_pattern(node: ast.stmt) -> bool:
    """Whether `__match_args__` are attributes that a pattern may also name."""
    value = node.value if isinstance(node, ast.Assign) else None
    names = [part.value if isinstance(part, ast.Constant) else None for part in getattr(value, "elts", [None])]
    return all(isinstance(name, str) and not name.startswith("_") and not _reaches(name) for name in names)


def _functions(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]


def _names_only(node: ast.Assign) -> bool:
    return all(isinstance(target, ast.Name) for target in node.targets)


def _is_type_of(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "type"
    return isinstance(node, ast.Attribute) and node.attr == "__class__"


def _bound_by_itself(node: ast.AST) -> Iterator[str]:
    """The names that this very node binds, other than by defining or importing them."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def _top_names(tree: ast.AST) -> Iterator[str]:
    """The names that an answer binds at its top level, other than by importing them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif not isinstance(node, ast.Lambda | ast.Import | ast.ImportFrom):
            yield from _bound_by_itself(node)
            yield from _top_names(node)


def _scope(function: ast.AST, name: str) -> Iterator[ast.AST]:
    """What stands in a function where this parameter is meant by its name."""
    body = function.body if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else []
    waiting: list[ast.AST] = [*body]
    while waiting:
        node = waiting.pop()
        yield node
        arguments = getattr(node, "args", None)
        if not (
            isinstance(arguments, ast.arguments)
            and name in {name for part in ast.walk(arguments) for name in _bound_by_itself(part)}
        ):
            waiting += ast.iter_child_nodes(node)


def _class_scope(node: ast.ClassDef) -> Iterator[ast.AST]:
    """What stands in the body of a class, and not in a function there."""
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += part.args.defaults
        else:
            waiting += ast.iter_child_nodes(part)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _path(node: ast.expr) -> list[str]:
    """The names in `a.b.c`; nothing if it begins otherwise."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def _bound_here(node: ast.stmt) -> Iterator[str]:
    """The names that a statement binds where it stands, other than by importing them."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif not isinstance(node, ast.Import | ast.ImportFrom):
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
                yield part.id


def _is_abstract(metaclass: ast.expr) -> bool:
    return ast.unparse(metaclass) in ("ABCMeta", "abc.ABCMeta")


def is_exception(name: str) -> bool:
    """Whether this is one of the language's exceptions."""
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)
