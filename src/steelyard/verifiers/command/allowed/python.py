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
from steelyard.verifiers.command.allowed.exit_methods import may_swallow

_PLAIN_TYPES = (str, bytes, bytearray, int, float, complex, list, dict, set, frozenset, tuple, range, slice, property, Exception, type(re.compile("")), type(re.match("", "")))  # fmt: skip
_MAX_CHARS = 200_000
_COMPARING_PATTERN = re.compile(r"==|!=|equal|compar|\border|sort|operator|__\w+__", re.IGNORECASE)
_MUTATING_METHODS = frozenset(
    ("append", "extend", "clear", "update", "pop", "popitem", "setdefault", "remove", "insert", "add", "discard")
)
_ITERATING_PATTERN = re.compile(
    r"\b(?:map|filter|itertools|takewhile|dropwhile|filterfalse|starmap|accumulate|groupby|imap\w*|__next__)\b|\biter\s*\(|\bexcept\b[^:\n]*StopIteration"
)
"""Tests with a loop that a `StopIteration` of the answer ends."""
_CAUGHT_PATTERN = re.compile(
    r"\bexcept\b\s*\(?([\w\s,.]+?)\)?(?:\s+as\b|:)|\b(?:assertRaises\w*|raises)\(\s*\(?([\w.]+)"
)
"""The exceptions that tests expect."""


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
    return _Reader(tree, nodes, names).unlisted()


class _Reader:
    """The names of one script."""

    def __init__(self, tree: ast.Module, nodes: list[ast.AST], names: AskedNames) -> None:
        self._tree = tree
        self._nodes = nodes
        self._asked = names.called
        self._words = names.words
        self._prompt = names.prompt
        self._tests = names.tests
        self._files = names.files
        self._test_words = names.test_words
        self._is_printed = names.is_printed
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
                case ast.Subscript(ctx=ast.Store() | ast.Del()) if self._root(node) in self._modules | self._imported:
                    problem = f"another content of {self._root(node)}"
                case ast.Call(func=ast.Attribute(attr=name, value=ast.Attribute() as value)) if (
                    name in _MUTATING_METHODS and self._root(value) in self._modules
                ):
                    problem = f"another content of {self._root(value)}"
                case ast.MatchClass(kwd_attrs=[*read]) if strange := [
                    each for each in read if not self._is_listed(each)
                ]:
                    problem = f".{strange[0]}"
                case ast.keyword(arg="order", value=ast.Constant(value=True)):
                    problem = ""
                case ast.keyword(arg="compare" | "eq" | "unsafe_hash" | "order" | "init"):
                    problem = "a data class that compares in its own way"
                case ast.FunctionDef(name=name) if name.startswith("__") and not self._is_method(node):
                    problem = name
                case ast.AsyncFunctionDef() | ast.Await() if "async" not in self._test_words | self._words:
                    problem = "async"
                case _:
                    problem = ""
            if problem:
                return problem
        return self._shared(self._tree) or may_swallow(self._nodes, self._files)

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
        return name in _listed_attributes() or (not name.startswith("_") and name in self._words | self._test_words)

    def _name(self, node: ast.Name) -> str:
        name = node.id
        if name == "type" and not self._is_plain_type_call(node):
            return "type"
        if name == "print" and self._is_printed:
            return "print"
        if name in self._modules and id(node) not in self._plain_uses:
            return f"{name} as a value"
        if name in vocabulary.PYTHON_BUILTINS:
            return ""
        if name.startswith("__"):
            return "" if name in vocabulary.PYTHON_PLAIN_DUNDERS else name
        is_builtin = hasattr(builtins, name)
        return name if name not in self._bound or (is_builtin and isinstance(node.ctx, ast.Load)) else ""

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
        name = self._root(node)
        if name in self._modules | self._imported or name in vocabulary.PYTHON_BUILTINS:
            return f"another {name}.{node.attr}"
        if (
            name not in ("self", "cls")
            and node.attr in self._test_words - self._asked
            and node.attr in _listed_attributes()
        ):
            return f"another {node.attr}"
        return ""

    def _root(self, node: ast.expr) -> str:
        """The name with which an expression such as `math.inf[0].x` begins."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        return node.id if isinstance(node, ast.Name) else ""

    def _is_method(self, node: ast.FunctionDef) -> bool:
        return any(node in each.body for each in self._classes.values())

    def _shared(self, tree: ast.Module) -> str:
        """What tests that take all names of an answer would take instead of their own, and what would end their loops."""
        top = _bound_names(list(ast.iter_child_nodes(tree))) | {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if re.search(r"\bimport\s*\*", self._tests):
            taken = {
                name
                for name in top | self._imported | self._modules
                if hasattr(builtins, name) or name in self._test_words
            }
            if taken := taken - self._asked:
                return f"its own {min(taken)}"
        caught = {
            name for names in _CAUGHT_PATTERN.findall(self._tests) for name in re.findall(r"\w+", " ".join(names))
        }
        if aliases := caught & top - set(self._classes):
            return f"{min(aliases)}, which is not a class of its own"
        if problem := self._equal_constants(tree):
            return problem
        is_iterating = bool(_ITERATING_PATTERN.search(self._tests))
        ends_iteration = is_iterating and any(self._may_end_iteration(node) for node in self._nodes)
        return "what ends an iteration of the tests" if ends_iteration else ""

    def _equal_constants(self, tree: ast.Module) -> str:
        """Constants of the script or of one class that tests use and that have the same value, or none."""
        members = {id(each) for node in self._classes.values() for each in ast.walk(node)}
        outside = [node for node in self._nodes if isinstance(node, ast.Name) and id(node) not in members]
        stored = [node.id for node in outside if isinstance(node.ctx, ast.Store)]
        stored += [*self._classes, *self._imported]
        plain = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for name in sorted(set(stored) & self._asked):
            is_own = name in plain or name in self._classes or _is_named_tuple(tree, name)
            if name[:1].isupper() and (stored.count(name) > 1 or not is_own):
                return f"{name}, which is not plainly a class or a constant"
        for body in (tree.body, *(each.body for each in self._classes.values())):
            values: dict[object, str] = {}
            for node in body:
                if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                    continue
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
                used = [name for name in names if name in self._test_words and self._is_constant(name)]
                is_empty = isinstance(node.value, ast.Constant) and node.value.value is None
                value = _read_value(node.value)
                if used and (is_empty or len(used) > 1 or values.setdefault(value, used[0]) != used[0]):
                    return f"{used[0]} without a value of its own"
        return ""

    def _is_constant(self, name: str) -> bool:
        """Whether tests take a name for a constant: it is capitalised, or one of a class."""
        return name[:1].isupper() or bool(re.search(rf"\b[A-Z]\w*\.{name}\b(?!\s*\()", self._tests))

    def _may_end_iteration(self, node: ast.AST) -> bool:
        """Whether a node may raise `StopIteration`: only a call of `next` with two arguments that are written out does not."""
        match node:
            case ast.Name(id="StopIteration") | ast.Attribute(attr="send" | "throw" | "__next__"):
                return True
            case ast.MatchClass(kwd_attrs=[*read]):
                return bool({"send", "throw", "__next__"} & set(read))
            case ast.Name(id="next", ctx=ast.Load()):
                call = self._called.get(id(node))
                is_plain = call is not None and not any(isinstance(each, ast.Starred) for each in call.args)
                return call is None or not is_plain or len(call.args) != 2
        return False

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
        # a method can be bound by any statement, a loop or an import among them
        bound = _bound_names([each for each in ast.walk(node) if not isinstance(each, ast.arg)])
        judging = {name for name in bound if name.startswith("__") and name not in vocabulary.PYTHON_PLAIN_DUNDERS}
        judging -= {"__repr__", "__hash__"}
        has_property = any(isinstance(each, ast.Name) and each.id == "property" for each in ast.walk(node))
        is_asked = (node.name in self._asked and node.name[:1].isupper()) or self._is_part(node.name)
        if (judging or has_property) and not is_asked:
            return f"class {node.name} with {min(judging) if judging else 'a property'}"
        if (comparing := judging & vocabulary.PYTHON_COMPARISONS) and not _COMPARING_PATTERN.search(self._prompt):
            return f"class {node.name} with {min(comparing)}"
        if any(isinstance(each, ast.Assign) and len(each.targets) > 1 for each in node.body):
            return f"members of {node.name} that are one"
        if bases & {"Enum", "IntEnum", "StrEnum", "Flag"}:
            return self._enumeration(node)
        return _data_class(node)

    def _enumeration(self, node: ast.ClassDef) -> str:
        values = [ast.dump(each.value) for each in node.body if isinstance(each, ast.Assign)]
        is_counted = all("auto" in value for value in values)
        return f"members of {node.name} that are one" if len(set(values)) < len(values) and not is_counted else ""

    def _is_part(self, name: str) -> bool:
        """Whether a class is a base of one that is asked for."""
        return any(
            other.name in self._asked and any(getattr(base, "id", "") == name for base in other.bases)
            for other in self._classes.values()
        )


def _read_value(node: ast.expr) -> object:
    """A number or a text as it is compared; any other value as it is written."""
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) and sign < 0 else node
    if isinstance(inner, ast.Constant) and isinstance(inner.value, int | float):
        return sign * inner.value
    # what is computed may come out as any other
    return "computed" if isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp | ast.IfExp) else ast.dump(node)


def _is_named_tuple(tree: ast.Module, name: str) -> bool:
    """Whether a name is given to a named tuple, a type variable or the like."""
    for node in tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=target)], value=ast.Call(func=ast.Name(id=function), args=[_, *rest])
            ) if target == name:
                fields = ast.dump(rest[0]) if rest else ""
                return function in ("TypeVar", "NewType") or (
                    function in ("namedtuple", "NamedTuple", "Enum") and bool(re.search(r"value='\w", fields))
                )
    return False


def _data_class(node: ast.ClassDef) -> str:
    """What makes objects of a data class equal that were made of different values."""
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    for method in methods:
        if method.name == "__post_init__" and any(
            isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load) for each in ast.walk(method)
        ):
            return f"class {node.name} with __post_init__ that sets fields"
    if not any("dataclass" in ast.dump(each) for each in node.decorator_list):
        return ""
    has_fields = any(isinstance(each, ast.AnnAssign) for each in node.body)
    if any(method.name == "__init__" for method in methods) or not (has_fields or node.bases):
        return f"data class {node.name} without fields, or with an __init__ of its own"
    return ""


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
            case ast.MatchMapping(rest=str(name)) | ast.alias(asname=str(name)):
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
