"""Whether a script in Python names nothing but what its list has, decided by its syntax tree."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
import sys
import warnings
from functools import cache

from steelyard.verifiers.command.allowed import vocabulary
from steelyard.verifiers.command.allowed.asked import AskedNames

_PLAIN_TYPES = (str, bytes, bytearray, int, float, complex, list, dict, set, frozenset, tuple, range, slice, property, Exception, type(re.compile("")), type(re.match("", "")))  # fmt: skip
_MAX_CHARS = 200_000


@cache
def _listed_attributes() -> frozenset[str]:
    """The public attributes of plain types, and of the listed modules and their classes."""
    names = {name for kind in _PLAIN_TYPES for name in dir(kind)}
    for module_name in vocabulary.PYTHON_MODULES - {"__future__", "typing_extensions"}:
        module = importlib.import_module(module_name)
        for name, value in vars(module).items():
            if name.startswith("_") or isinstance(value, type(sys)):
                continue
            names.add(name)
            names |= (
                set(dir(value))
                if isinstance(value, type) and value.__module__.partition(".")[0] in vocabulary.PYTHON_MODULES
                else set()
            )
    return frozenset(name for name in names if not name.startswith("_")) - vocabulary.PYTHON_UNLISTED_ATTRIBUTES


def unlisted_in_python(code: str, names: AskedNames) -> str:
    """The first thing in a script that the list does not have; empty if there is none."""
    if len(code) > _MAX_CHARS:
        return "too long to be read"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
            nodes = list(ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "code that this Python cannot read"
    return _Reader(nodes, set(names.words), names.tests, names.is_printed).unlisted()


class _Reader:
    """The names of one script."""

    def __init__(self, nodes: list[ast.AST], asked: set[str], tests: str, is_printed: bool) -> None:
        self._nodes = nodes
        self._asked = asked
        self._test_words = set(re.findall(r"\w+", tests))
        self._is_printed = is_printed
        self._modules = {
            alias.asname or alias.name.partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        self._imported = {
            alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        self._bound = self._modules | self._imported | _bound_names(nodes)
        self._classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        self._own_attributes = _own_attributes(nodes)
        self._plain_uses = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        self._called = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}

    def unlisted(self) -> str:
        for node in self._nodes:
            match node:
                case ast.Import() | ast.ImportFrom():
                    problem = self._import(node)
                case ast.Name():
                    problem = self._name(node)
                case ast.Attribute():
                    problem = self._attribute(node)
                case ast.ClassDef():
                    problem = self._class(node)
                case ast.Assign(value=ast.Name(id=name)) if name in self._imported | self._modules:
                    problem = f"another name for {name}"
                case ast.AsyncFunctionDef() | ast.Await() if "async" not in self._test_words | self._asked:
                    problem = "async"
                case _:
                    problem = ""
            if problem:
                return problem
        return ""

    def _import(self, node: ast.Import | ast.ImportFrom) -> str:
        if isinstance(node, ast.ImportFrom) and node.level:
            return "an import of its own folder"
        paths = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        if strange := next((path for path in paths if path not in vocabulary.PYTHON_MODULES), ""):
            return f"import {strange}"
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom) and node.module != "__future__"
            else []
        )
        return next((f"import {name}" for name in names if not self._is_listed(name) or _is_module(name)), "")

    def _is_listed(self, name: str) -> bool:
        if name in vocabulary.PYTHON_UNLISTED_ATTRIBUTES:
            return False
        if name.startswith("__") and name.endswith("__"):
            return name in vocabulary.PYTHON_PLAIN_DUNDERS
        if name in self._own_attributes:
            return not _is_module(name)
        return name in _listed_attributes() or (not name.startswith("_") and name in self._asked | self._test_words)

    def _name(self, node: ast.Name) -> str:
        name = node.id
        if name == "type" and not self._is_plain_type_call(node):
            return "type"
        if name == "print" and self._is_printed:
            return "print"
        if name in self._modules and id(node) not in self._plain_uses:
            return f"{name} as a value"
        if name in vocabulary.PYTHON_BUILTINS:
            return (
                ""
                if isinstance(node.ctx, ast.Load)
                or name
                in (
                    "id",
                    "hash",
                    "format",
                    "max",
                    "min",
                    "sum",
                    "next",
                    "range",
                    "set",
                    "list",
                    "str",
                    "map",
                    "filter",
                    "iter",
                    "object",
                    "slice",
                    "bin",
                    "dict",
                    "int",
                )
                else f"another {name}"
            )
        if name.startswith("__"):
            return "" if name in vocabulary.PYTHON_PLAIN_DUNDERS else name
        return (
            ""
            if name in self._bound
            and not (
                hasattr(builtins, name)
                and name
                not in ("input", "dir", "vars", "copyright", "credits", "license", "help", "compile", "open", "exit")
            )
            else name
            if name not in self._bound or hasattr(builtins, name)
            else ""
        )

    def _is_plain_type_call(self, node: ast.Name) -> bool:
        call = self._called.get(id(node))
        return (call is None and self._is_annotation(node)) or (
            call is not None and len(call.args) == 1 and not call.keywords
        )

    def _is_annotation(self, node: ast.Name) -> bool:
        return any(isinstance(other, ast.Subscript) and other.value is node for other in self._nodes)

    def _attribute(self, node: ast.Attribute) -> str:
        if not self._is_listed(node.attr) or (
            _is_module(node.attr) and node.attr not in self._own_attributes and node.attr not in _listed_attributes()
        ):
            return f".{node.attr}"
        if isinstance(node.ctx, ast.Load):
            return ""
        root = node.value
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        name = root.id if isinstance(root, ast.Name) else ""
        if name in self._modules | self._imported or name in vocabulary.PYTHON_BUILTINS:
            return f"another {name}.{node.attr}"
        if (
            name not in ("self", "cls")
            and node.attr in self._test_words - self._asked
            and node.attr in _listed_attributes()
        ):
            return f"another {node.attr}"
        return ""

    def _class(self, node: ast.ClassDef) -> str:
        if node.keywords:
            return f"class {node.name} with a metaclass"
        bases = {
            base.value.id
            if isinstance(base, ast.Subscript) and isinstance(base.value, ast.Name)
            else base.attr
            if isinstance(base, ast.Attribute)
            else getattr(base, "id", "?")
            for base in node.bases
        }
        if (strange := bases - vocabulary.PYTHON_BASES - set(self._classes)) and node.name not in self._asked:
            return f"class {node.name}({min(strange)})"
        methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
        methods |= {
            target.id
            for each in node.body
            if isinstance(each, ast.Assign)
            for target in each.targets
            if isinstance(target, ast.Name)
        }
        judging = {
            name for name in methods if name.startswith("__") and name not in vocabulary.PYTHON_PLAIN_DUNDERS
        } - {"__repr__", "__hash__"}
        has_property = any(
            isinstance(mark, ast.Name) and mark.id == "property"
            for each in node.body
            if isinstance(each, ast.FunctionDef)
            for mark in each.decorator_list
        )
        if (judging or has_property) and node.name not in self._asked and not self._is_part(node.name):
            return f"class {node.name} with {min(judging) if judging else 'a property'}"
        return ""

    def _is_part(self, name: str) -> bool:
        """Whether a class is a base of one that is asked for."""
        return any(
            other.name in self._asked and any(getattr(base, "id", "") == name for base in other.bases)
            for other in self._classes.values()
        )


def _is_module(name: str) -> bool:
    plain = name.lstrip("_")
    return plain in sys.stdlib_module_names and plain not in vocabulary.PYTHON_MODULES


def _bound_names(nodes: list[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.arg(arg=name):
                names.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
    return names


def _own_attributes(nodes: list[ast.AST]) -> set[str]:
    """The names of the attributes, methods and fields that a script itself defines."""
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            names |= _bound_names(list(ast.iter_child_nodes(node)))
            names |= {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
            names |= {
                target.id
                for each in node.body
                if isinstance(each, ast.Assign)
                for target in each.targets
                if isinstance(target, ast.Name)
            }
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
            "namedtuple",
            "NamedTuple",
        ):
            names |= {
                word
                for child in ast.walk(node)
                if isinstance(child, ast.Constant) and isinstance(child.value, str)
                for word in child.value.replace(",", " ").split()
            }
    return names
