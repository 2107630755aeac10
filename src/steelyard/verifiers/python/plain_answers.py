"""Answers of which it is certain, by their source, that they change nothing that tests in their process use.

A pass that was confirmed beside such an answer was not forged there. An answer may well be honest without being listed here: it
may want to set something. But nobody has shown that it sets nothing else, so its confirmed pass is `in-process`.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_SOURCE_CHARS = 200_000
"""Longer answers are not looked at."""
LISTED_MODULES: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(("__future__", "abc", "base64", "bisect", "cmath", "collections", "collections.abc", "copy")),
    **dict.fromkeys(("dataclasses", "datetime", "enum", "fractions", "functools", "hashlib", "heapq", "itertools")),
    **dict.fromkeys(("json", "math", "numbers", "numpy", "operator", "os.path", "pandas", "queue", "re", "statistics")),
    **dict.fromkeys(("string", "struct", "textwrap", "typing", "uuid", "weakref", "zlib")),
    "asyncio": frozenset(
        {
            *("CancelledError", "Condition", "Event", "Future", "Lock", "Queue", "Semaphore", "Task", "TaskGroup"),
            *("TimeoutError", "as_completed", "create_task", "ensure_future", "gather", "iscoroutinefunction", "run"),
            *("shield", "sleep", "timeout", "to_thread", "wait", "wait_for"),
        }
    ),
    "concurrent.futures": frozenset({"ThreadPoolExecutor", "as_completed"}),
    "contextlib": frozenset(
        {
            *("AbstractContextManager", "AsyncExitStack", "ContextDecorator", "ExitStack", "aclosing"),
            *("asynccontextmanager", "closing", "contextmanager", "nullcontext", "suppress"),
        }
    ),
    "contextvars": frozenset({"ContextVar"}),
    "csv": frozenset({"DictReader", "DictWriter", "reader", "writer"}),
    "decimal": frozenset({"Decimal", "InvalidOperation", "ROUND_DOWN", "ROUND_HALF_EVEN", "ROUND_HALF_UP", "ROUND_UP"}),
    # a signature shows the defaults of functions of the tests
    "inspect": frozenset({"isawaitable", "iscoroutine", "iscoroutinefunction", "isgenerator"}),
    "io": frozenset({"BytesIO", "StringIO"}),
    "os": frozenset({"path"}),
    "pathlib": frozenset({"Path", "PurePath", "PurePosixPath"}),
    "random": frozenset(
        {"Random", "choice", "choices", "gauss", "randint", "random", "randrange", "sample", "shuffle", "uniform"}
    ),
    "sys": frozenset({"float_info", "getsizeof", "maxsize", "setrecursionlimit", "stderr", "stdin", "stdout"}),
    "threading": frozenset({"Condition", "Event", "Lock", "RLock", "Semaphore", "Thread", "Timer", "local"}),
    "time": frozenset({"monotonic", "perf_counter", "sleep", "time"}),
    "types": frozenset({"MappingProxyType", "SimpleNamespace"}),
    "warnings": frozenset({"warn"}),
}
"""Modules that answers may import, with those of their names that set nothing for others; None stands for all."""
LISTED_BASES = frozenset(
    {
        *("ABC", "Enum", "Flag", "Generic", "IntEnum", "IntFlag", "NamedTuple", "Protocol", "StrEnum", "TypedDict"),
        *("abc.ABC", "enum.Enum", "enum.IntEnum", "object", "typing.NamedTuple", "typing.Protocol"),
    }
)
"""What classes of an answer may inherit from, besides exceptions and each other."""
REACHING_BUILTINS = frozenset(
    {
        *("__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "locals", "setattr"),
        "vars",
    }
)
"""Builtin functions that reach what has no name in the source."""
REACHING_ATTRIBUTES = frozenset(
    {
        *("Formatter", "ForwardRef", "attrgetter", "get_type_hints", "methodcaller", "no_type_check", "register"),
        *("update_abstractmethods", "update_wrapper"),
        # of numpy and pandas
        *("core", "ctypeslib", "lib", "options", "reset_option", "seed", "set_option", "set_printoptions", "set_state"),
        *("set_string_function", "setbufsize", "seterr", "seterrcall", "testing"),
    }
)
"""What reaches attributes by names that it is given, or sets something for all."""
LISTED_DUNDERS = frozenset(
    {
        *(
            "__add__",
            "__annotations__",
            "__bool__",
            "__call__",
            "__class__",
            "__contains__",
            "__doc__",
            "__enter__",
            "__eq__",
        ),
        *(
            "__exit__",
            "__ge__",
            "__getitem__",
            "__gt__",
            "__hash__",
            "__init__",
            "__iter__",
            "__le__",
            "__len__",
            "__lt__",
        ),
        *(
            "__match_args__",
            "__mul__",
            "__name__",
            "__ne__",
            "__new__",
            "__next__",
            "__qualname__",
            "__radd__",
            "__repr__",
        ),
        *(
            "__rmul__",
            "__slots__",
            "__str__",
            "__sub__",
            "__wrapped__",
            "__aenter__",
            "__aexit__",
            "__aiter__",
            "__anext__",
        ),
        *("__cause__", "__context__", "__notes__", "__version__", "__author__", "__all__", "__rsub__", "__truediv__"),
    }
)
"""Names with two underscores that lead to nothing but the object itself."""
FRAME_ATTRIBUTES = re.compile(r"(?:ag|cr|f|gi|tb)_\w+")
"""What leads from a generator, a coroutine or a traceback to the frames of others."""
TEXT_THAT_REACHES = re.compile(r"\{[^}]*__")
"""A format that reads attributes: `"{0.__globals__}"`."""
ANNOTATION_FIELDS = ("annotation", "returns")
LIBRARY_MODULES = (
    *(
        "bisect",
        "cmath",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
    ),
    *("functools", "heapq", "io", "itertools", "json", "math", "operator", "pathlib", "random", "re", "statistics"),
    *("string", "time", "typing"),
)
"""Modules that tests take names of without importing them."""
USUAL_MODULE_NAMES = frozenset({"np", "numpy", "pandas", "pd", "plt", "pytest", "scipy"})


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
        self._nodes = list(ast.walk(tree))
        self._modules: dict[str, str] = {}
        """Modules by the names that the answer has for them."""
        self._imported: set[str] = set()
        """Names that are imported from modules."""
        self._classes = {node.name for node in self._nodes if isinstance(node, ast.ClassDef)}
        functions = [node for node in self._nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        self._own = self._classes | {node.name for node in functions}
        """Functions and classes of the answer."""
        self._selves = {
            part.args.args[0].arg
            for node in self._nodes
            if isinstance(node, ast.ClassDef)
            for part in node.body
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.args.args
        }
        self._fields = set(self._class_fields())
        self._top_names = {name for node in tree.body for name in _bound_here(node)}

    def check(self) -> None:
        """Raise where something is not listed."""
        if any(hasattr(builtins, name) for name in self._top_names):
            raise NotPlainAnswerError
        for node in self._nodes:
            self._check_forms(node)
        for node in self._nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._take_import(node)
        stores = False
        for node in self._nodes:
            if isinstance(node, ast.ClassDef):
                self._check_class(node)
            elif isinstance(node, ast.Attribute):
                self._check_attribute(node)
            elif isinstance(node, ast.Name):
                self._check_name(node)
            if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
                stores |= self._check_store(node)
        harmless = set(self._harmless_places())
        for node in self._nodes:
            if (
                isinstance(node, ast.Name | ast.Attribute)
                and isinstance(node.ctx, ast.Load)
                and id(node) not in harmless
            ):
                self._check_handed(node, stores=stores)

    def _check_handed(self, node: ast.Name | ast.Attribute, *, stores: bool) -> None:
        """Raise if a module is handed on; where attributes of anything are set, so is what comes from one."""
        path = _path(node)
        if path in ([name] for name in self._modules):
            raise NotPlainAnswerError
        if stores and path and (path[0] in self._modules or path[0] in self._imported):
            raise NotPlainAnswerError

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
            is_listed = not any(name.startswith("__") for name in node.kwd_attrs)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            is_listed = node.id not in LISTED_BASES | self._classes and not is_exception(node.id)
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("type", "wraps"):
            is_listed = len(node.args) == 1 and not node.keywords
        elif isinstance(node, ast.alias):
            is_listed = node.asname not in LISTED_BASES and not is_exception(node.asname or "")
        else:
            is_listed = True
        if not is_listed:
            raise NotPlainAnswerError

    def _take_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in LISTED_MODULES or (alias.asname and "." in alias.name):
                    raise NotPlainAnswerError
                self._modules[alias.asname or alias.name.partition(".")[0]] = alias.name.partition(".")[0]
            return
        listed = LISTED_MODULES.get(node.module or "", frozenset())
        for alias in node.names:
            is_listed = listed is None or alias.name in listed
            if node.level or not is_listed or alias.name in REACHING_ATTRIBUTES or alias.name.startswith(("_", "*")):
                raise NotPlainAnswerError
            self._imported.add(alias.asname or alias.name)

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
                yield from map(id, ast.walk(node.type))
            for field in ANNOTATION_FIELDS:
                if (annotation := getattr(node, field, None)) is not None:
                    yield from map(id, ast.walk(annotation))

    def _check_class(self, node: ast.ClassDef) -> None:
        waiting: list[ast.AST] = [*node.body]
        while waiting:
            part = waiting.pop()
            if isinstance(part, ast.Import | ast.ImportFrom):
                # a module would be an attribute, whose own attributes could be set
                raise NotPlainAnswerError
            if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                waiting += ast.iter_child_nodes(part)
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
        if name.startswith("__") and name.endswith("__") and name not in LISTED_DUNDERS:
            raise NotPlainAnswerError
        if FRAME_ATTRIBUTES.fullmatch(name) or name in REACHING_ATTRIBUTES:
            raise NotPlainAnswerError
        path = _path(node)
        if len(path) > 1 and path[0] in self._modules:
            module = self._modules[path[0]]
            listed = LISTED_MODULES.get(module, frozenset()) if len(path) == 2 else None
            is_listed = listed is None or name in listed or f"{module}.{name}" in LISTED_MODULES
            if name.startswith("_") or not is_listed:
                raise NotPlainAnswerError

    def _check_name(self, node: ast.Name) -> None:
        name = node.id
        if name in REACHING_BUILTINS or (name.startswith("__") and name not in LISTED_DUNDERS):
            raise NotPlainAnswerError
        if not isinstance(node.ctx, ast.Load) and (name in self._modules or name in self._imported):
            # no name means two things
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
        if root.id in self._selves and isinstance(node.value, ast.Name):
            return False
        if root.id not in self._own and node.attr not in self._fields:
            raise NotPlainAnswerError
        return root.id not in self._own


@cache
def library_names() -> frozenset[str]:
    """Names that tests mean the library by."""
    names = {name for module in LIBRARY_MODULES for name in dir(import_module(module)) if not name.startswith("_")}
    return frozenset(names | sys.stdlib_module_names | USUAL_MODULE_NAMES)


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
