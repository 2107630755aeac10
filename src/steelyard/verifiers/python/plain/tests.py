"""Tests of which it is certain that they mean the same in another process than the answer's.

Such tests call functions of the answer, compare what these return by value, and otherwise do only what is listed here. What
is not listed may well mean the same, too, but nobody has shown that: a pass of such tests is confirmed beside the answer.
"""

from __future__ import annotations

import ast
import builtins
import unittest
from typing import TYPE_CHECKING, NamedTuple

from steelyard.verifiers.python.given_once import (
    RAISING_ASSERTIONS,
    GivenOnce,
    SourceTree,
    is_stored,
    last_name,
)
from steelyard.verifiers.python.guest.test_names import ANSWER_MODULE_NAMES, bound_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

PURE_BUILTINS = frozenset(
    {
        *(
            "abs",
            "all",
            "any",
            "ascii",
            "bin",
            "bool",
            "bytes",
            "chr",
            "complex",
            "dict",
            "divmod",
            "enumerate",
            "filter",
        ),
        *("float", "format", "frozenset", "hex", "int", "isinstance", "len", "list", "map", "max", "min", "oct", "ord"),
        *("pow", "print", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "type", "zip"),
    }
)
"""Builtin functions whose result depends on nothing but their arguments."""
PURE_METHODS = frozenset(
    {
        *("as_integer_ratio", "bit_length", "capitalize", "center", "conjugate", "copy", "count", "days", "day"),
        *("decode", "denominator", "difference", "elements", "encode", "endswith", "find", "format", "fromkeys", "get"),
        *("hex", "hour", "imag", "index", "intersection", "is_integer", "isalnum", "isalpha", "isascii", "isdecimal"),
        *("isdigit", "isdisjoint", "islower", "isnumeric", "isoformat", "isspace", "issubset", "issuperset", "istitle"),
        *("isupper", "items", "join", "keys", "ljust", "lower", "lstrip", "microsecond", "minute", "month"),
        *(
            "most_common",
            "numerator",
            "partition",
            "real",
            "replace",
            "rfind",
            "rindex",
            "rjust",
            "rpartition",
            "rsplit",
        ),
        *(
            "rstrip",
            "second",
            "seconds",
            "split",
            "splitlines",
            "startswith",
            "strip",
            "swapcase",
            "symmetric_difference",
        ),
        *("title", "total_seconds", "union", "upper", "values", "weekday", "year", "zfill"),
        # of a match, of an exception, and of a generator of random numbers that the tests made
        *(
            "group",
            "groups",
            "args",
            "exception",
            "value",
            "choice",
            "randint",
            "random",
            "randrange",
            "sample",
            "uniform",
        ),
        "__name__",
    }
)
"""Methods and attributes of data that change nothing."""
CHANGING_METHODS = frozenset(
    {"add", "append", "appendleft", "discard", "extend", "insert", "pop", "popleft", "remove", "setdefault", "sort"}
)
"""Methods that tests may call on a list or the like that they made themselves."""
PURE_MODULES: dict[str, frozenset[str] | None] = {
    "bisect": frozenset({"bisect", "bisect_left", "bisect_right"}),
    "cmath": None,
    "collections": frozenset({"Counter", "OrderedDict", "defaultdict", "deque"}),
    "copy": frozenset({"copy", "deepcopy"}),
    "datetime": frozenset({"date", "datetime", "timedelta"}),
    "fractions": frozenset({"Fraction"}),
    "functools": frozenset({"cmp_to_key", "reduce"}),
    "heapq": frozenset({"nlargest", "nsmallest"}),
    "itertools": None,
    "json": frozenset({"dumps", "loads"}),
    "math": None,
    "operator": frozenset({"add", "itemgetter", "mul", "sub"}),
    "pytest": frozenset({"approx", "fail", "mark", "param", "raises"}),
    "random": frozenset({"Random", "choice", "choices", "randint", "random", "randrange", "sample", "uniform"}),
    "re": frozenset({"compile", "escape", "findall", "fullmatch", "match", "search", "split", "sub"}),
    "statistics": None,
    "string": None,
    "typing": None,
    "unittest": frozenset({"TestCase"}),
}
"""Modules whose functions depend on nothing but their arguments, with the names of those; None stands for all."""
VALUE_ASSERTIONS = frozenset(
    {
        *("assertAlmostEqual", "assertCountEqual", "assertDictEqual", "assertEqual", "assertFalse", "assertGreater"),
        *("assertGreaterEqual", "assertIn", "assertIsInstance", "assertIsNone", "assertIsNotNone", "assertLess"),
        *("assertLessEqual", "assertListEqual", "assertMultiLineEqual", "assertNotAlmostEqual", "assertNotEqual"),
        *("assertNotIn", "assertNotIsInstance", "assertRaises", "assertRaisesRegex", "assertRegex"),
        *("assertSequenceEqual", "assertSetEqual", "assertTrue", "assertTupleEqual", "fail", "maxDiff", "subTest"),
    }
)
"""What unittest asserts of values."""
CLAIMLESS_ASSERTIONS = frozenset({*RAISING_ASSERTIONS, "fail", "subTest"})
"""Those whose arguments need not come from the answer."""
PLAIN_NODES = (
    *(ast.Module, ast.Expr, ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.If, ast.While),
    *(ast.Pass, ast.Break, ast.Continue, ast.Return, ast.Try, ast.ExceptHandler, ast.Raise, ast.With, ast.withitem),
    *(ast.FunctionDef, ast.ClassDef, ast.arguments, ast.arg, ast.Lambda, ast.Import, ast.ImportFrom, ast.alias),
    *(ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Subscript, ast.Slice, ast.Attribute),
    *(ast.Call, ast.keyword, ast.Starred, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr),
    *(ast.FormattedValue, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)
"""Everything that tests may be written with."""
NEW_CONTAINERS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
SINGLETONS = (None, True, False)


class PlainTests(NamedTuple):
    """What is known of tests that are plain."""

    names: frozenset[str]
    """The functions of the answer that they call."""
    gives_once: bool
    """Whether nothing that they give to the answer is used again: no test sees what the answer did with it."""


def plain_tests(tests: ast.Module, entry_point: str, *, is_file: bool) -> PlainTests | None:
    """What is known of tests, if they are plain."""
    try:
        checker = PlainTestChecker(tests, entry_point)
        checker.check()
    except (NotPlainTestError, RecursionError):
        return None
    return PlainTests(frozenset(checker.called), checker.gives_once(is_file=is_file))


def steps_as_file(steps: Iterable[dict[str, Any]], entry_point: str) -> ast.Module:
    """The steps of a plan as one file, in their order."""
    body: list[ast.stmt] = []
    for step in steps:
        if "left" in step:
            body += ast.parse(f"assert (\n{step['left']}\n) == (\n{step['right']}\n)").body
        elif "source" in step:
            body += ast.parse(step["source"]).body
    if entry_point and not any(map(_calls_check, body)):
        # its statements are steps
        body = [node for node in body if not (isinstance(node, ast.FunctionDef) and node.name == "check")]
    return ast.Module(body, [])


class NotPlainTestError(Exception):
    """Something in tests that is not listed."""


class PlainTestChecker:
    """Goes through tests and raises where something is not listed."""

    def __init__(self, tests: ast.Module, entry_point: str) -> None:
        self._tree = SourceTree([node for node in tests.body if not _starts_program(node)])
        self._entry_point = entry_point
        self._modules: dict[str, str] = {}
        """Names of modules in these tests."""
        self._imported: set[str] = set()
        """Names that the tests import from a module that is listed."""
        self._answer_modules: set[str] = set()
        self.called: set[str] = {entry_point} - {""}
        """Names of functions of the answer."""
        self._deep_copiers: set[str] = set()
        """What these tests call `copy.deepcopy`."""
        self._aliases: set[str] = set()
        """Names that the tests give to functions of the answer."""
        self._bound = bound_names(self._tree.body)
        self._bound |= {node.arg for node in self._tree.nodes if isinstance(node, ast.arg)}
        self._bound |= {node.id for node in self._tree.nodes if isinstance(node, ast.Name) and is_stored(node)}
        self._bound |= {node.name for node in self._tree.nodes if isinstance(node, ast.ExceptHandler) and node.name}
        self._bound |= {node.name for node in self._tree.nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        self._allowed: set[int] = set()
        """Nodes that were found to be allowed where they stand."""
        self._marks: set[int] = set()
        """Decorators of pytest's."""
        self._own_attributes: set[str] = set()

    def check(self) -> None:
        """Raise where something is not listed."""
        for node in self._tree.nodes:
            if not isinstance(node, PLAIN_NODES):
                raise NotPlainTestError
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._take_import(node)
        self._take_aliases()
        for node in self._tree.nodes:
            if isinstance(node, ast.FunctionDef):
                self._check_function(node)
            elif isinstance(node, ast.ClassDef):
                self._check_class(node)
            elif isinstance(node, ast.Call):
                self._allowed.add(id(node.func))
        derived = self._derived_names()
        for node in self._tree.nodes:
            self._check_claim(node, derived)
            if isinstance(node, ast.With):
                self._check_with(node)
            elif isinstance(node, ast.Compare):
                self._check_comparison(node)
            elif isinstance(node, ast.Name):
                self._check_name(node)
            elif isinstance(node, ast.Attribute):
                self._check_attribute(node)
            elif isinstance(node, ast.Subscript) and is_stored(node):
                self._check_own(node.value)
            elif isinstance(node, ast.AugAssign):
                # `y += [1]` changes a list that the answer may hold, too
                self._check_own(node.target, (*NEW_CONTAINERS, ast.Constant))

    def _derived_names(self) -> set[str]:
        """Names of the tests whose values may come from the answer."""
        derived = {node.arg for node in self._tree.nodes if isinstance(node, ast.arg)}
        derived |= {node.name for node in self._tree.nodes if isinstance(node, ast.ExceptHandler) and node.name}
        size = -1
        while size < len(derived):
            size = len(derived)
            for node in self._tree.nodes:
                is_binding = isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.comprehension)
                is_told = isinstance(node, ast.Expr) or (isinstance(node, ast.FunctionDef) and node.name[:4] != "test")
                if (is_binding or is_told) and self._speaks_of_answer(node, derived):
                    whole = node.value if isinstance(node, ast.Expr) else node
                    # `results.append(f(x))`
                    places = [whole.func.value] if is_told and _is_method_call(whole) else []  # type: ignore[attr-defined]
                    derived |= {part.id for place in places for part in ast.walk(place) if isinstance(part, ast.Name)}
                    derived |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and is_stored(part)}
                    derived |= {node.name} if isinstance(node, ast.FunctionDef) else set()
        return derived - self._modules.keys() - self._imported

    def _speaks_of_answer(self, node: ast.AST, derived: set[str]) -> bool:
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and not is_stored(part)}
        return any(name in derived or name in self._answer_modules or self._is_answers(name) for name in names)

    def _check_claim(self, node: ast.AST, derived: set[str]) -> None:
        """Raise at a claim about the library alone: whether an answer has changed that, only its process knows."""
        parts: list[ast.AST] = []
        if isinstance(node, ast.Assert):
            parts = [] if isinstance(node.test, ast.Constant) else [node.test]
        elif isinstance(node, ast.Try | ast.With):
            parts = list(node.body)
        elif isinstance(node, ast.Call) and last_name(node.func) in VALUE_ASSERTIONS - CLAIMLESS_ASSERTIONS:
            parts = list(node.args)
        names = {below.id for part in parts for below in ast.walk(part) if isinstance(below, ast.Name)}
        uses_library = names & (self._modules.keys() | self._imported | (PURE_BUILTINS - self._bound))
        if uses_library and not any(self._speaks_of_answer(part, derived) for part in parts):
            raise NotPlainTestError

    def _take_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = {alias.name: alias.asname or alias.name for alias in node.names}
            if module in ANSWER_MODULE_NAMES:
                # a star takes the names that nobody else has
                self.called |= names.keys() - {"*"}
                self._aliases |= {name for first, name in names.items() if name != first}
                return
            listed = PURE_MODULES.get(module, frozenset())
            if node.level or "*" in names or (listed is not None and not listed >= names.keys()):
                raise NotPlainTestError
            self._imported |= set(names.values())
            self._deep_copiers |= {name for first, name in names.items() if (module, first) == ("copy", "deepcopy")}
            return
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name in ANSWER_MODULE_NAMES:
                self._answer_modules.add(name)
            elif alias.name in PURE_MODULES:
                self._modules[name] = alias.name
                self._deep_copiers |= {f"{name}.deepcopy"} if alias.name == "copy" else set()
            else:
                raise NotPlainTestError

    def _take_aliases(self) -> None:
        """Note the names that stand for the function that is tested."""
        for node in self._tree.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and self._is_answers(node.value.id):
                (target,) = node.targets if len(node.targets) == 1 else [None]
                if not isinstance(target, ast.Name):
                    raise NotPlainTestError
                self._aliases.add(target.id)
                self._allowed |= {id(target), id(node.value)}
            elif isinstance(node, ast.FunctionDef) and node.name == "check" and self._entry_point and node.args.args:
                self._aliases.add(node.args.args[0].arg)
            elif isinstance(node, ast.Expr) and self._entry_point and _calls_check(node):
                self._allowed |= {id(part) for part in ast.walk(node)}
            elif isinstance(node, ast.Call):
                place = RAISING_ASSERTIONS.get(last_name(node.func), len(node.args))
                self._allowed |= {id(part) for part in node.args[place : place + 1]}

    def _is_answers(self, name: str) -> bool:
        """Whether a name stands for something of the answer's."""
        if name in self.called or name in self._aliases:
            return True
        known = name in self._bound or name in self._imported or name in self._modules or name in self._answer_modules
        return not known and not hasattr(builtins, name)

    def _check_function(self, node: ast.FunctionDef) -> None:
        given: set[str] = set()
        for decorator in node.decorator_list:
            if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.parametrize"):
                raise NotPlainTestError
            if not decorator.args or any(keyword.arg != "ids" for keyword in decorator.keywords):
                raise NotPlainTestError
            given |= _parameter_names(decorator.args[0])
            self._allowed |= {id(part) for part in ast.walk(decorator.func)}
            self._marks.add(id(decorator.func))
        names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        if isinstance(self._tree.parent(node), ast.ClassDef):
            if names[:1] != ["self"]:
                raise NotPlainTestError
            del names[0]
        # pytest fills other parameters with fixtures
        if (node.name.startswith("test") and not given.issuperset(names)) or node.name in ("load_tests", "setUpModule"):
            raise NotPlainTestError
        if node.name in self.called or node.name.startswith("pytest"):
            raise NotPlainTestError

    def _check_class(self, node: ast.ClassDef) -> None:
        bases = [ast.unparse(base) for base in node.bases]
        is_listed = bases in ([], ["unittest.TestCase"], ["TestCase"])
        if not is_listed or node.decorator_list or node.keywords or isinstance(self._tree.parent(node), ast.stmt):
            raise NotPlainTestError
        if not bases and not node.name.startswith("Test"):
            raise NotPlainTestError
        for part in node.body:
            if isinstance(part, ast.FunctionDef):
                self._own_attributes.add(part.name)
            elif not isinstance(part, ast.Pass | ast.Expr):
                raise NotPlainTestError
        for below in ast.walk(node):
            if isinstance(below, ast.Attribute) and _is_self(below.value) and is_stored(below):
                self._own_attributes.add(below.attr)
        if any(hasattr(unittest.TestCase, name) for name in self._own_attributes - {"maxDiff", "setUp", "tearDown"}):
            raise NotPlainTestError

    def _check_with(self, node: ast.With) -> None:
        for item in node.items:
            call = item.context_expr
            if not (isinstance(call, ast.Call) and last_name(call.func) in (*RAISING_ASSERTIONS, "subTest")):
                raise NotPlainTestError

    def _check_comparison(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for operation, *pair in zip(node.ops, sides, node.comparators, strict=False):
            if isinstance(operation, ast.Is | ast.IsNot) and not any(map(_is_single, pair)):
                raise NotPlainTestError

    def _check_name(self, node: ast.Name) -> None:
        name = node.id
        if name.startswith("__") or (is_stored(node) and name.startswith("pytest")):
            raise NotPlainTestError
        if is_stored(node):
            # no name means two things
            is_taken = name in self.called or name in self._modules or name in self._imported
            if is_taken and id(node) not in self._allowed:
                raise NotPlainTestError
            return
        if name in self._modules or name in self._answer_modules:
            if not isinstance(self._tree.parent(node), ast.Attribute):
                raise NotPlainTestError
        elif self._is_answers(name):
            if id(node) not in self._allowed:
                raise NotPlainTestError  # it is handed on, and not only called
            self.called |= {name} - self._aliases
        elif name in self._bound or name in self._imported:
            return
        elif name not in PURE_BUILTINS and not _is_exception(name):
            raise NotPlainTestError

    def _check_attribute(self, node: ast.Attribute) -> None:
        owner = node.value
        if id(node) in self._allowed and isinstance(owner, ast.Name) and owner.id in self._answer_modules:
            if node.attr.startswith("_"):
                raise NotPlainTestError
            self.called.add(node.attr)
            return
        if isinstance(owner, ast.Name) and owner.id in self._answer_modules:
            raise NotPlainTestError
        if isinstance(owner, ast.Name) and owner.id in self._modules:
            listed = PURE_MODULES[self._modules[owner.id]]
            is_listed = not node.attr.startswith("_") if listed is None else node.attr in listed
            if not is_listed or is_stored(node) or (node.attr == "mark" and id(node) not in self._allowed):
                raise NotPlainTestError
            return
        if _is_self(owner):
            if node.attr not in VALUE_ASSERTIONS and node.attr not in self._own_attributes:
                raise NotPlainTestError
            return
        if node.attr in CHANGING_METHODS:
            self._check_own(owner)
            return
        is_of_type = isinstance(owner, ast.Name) and owner.id not in self._bound and owner.id not in ("dict", "str")
        is_listed = node.attr in PURE_METHODS or id(node) in self._marks
        if is_of_type or not is_listed or is_stored(node):
            raise NotPlainTestError

    def _check_own(self, owner: ast.expr, kinds: tuple[type[ast.expr], ...] = NEW_CONTAINERS) -> None:
        """Raise if something may not be a container that the tests made: what the answer returned may be in its hands, too."""
        if not isinstance(owner, ast.Name):
            raise NotPlainTestError
        values = [value for target, value in self._bindings() if target == owner.id]
        if not values or not all(isinstance(value, kinds) for value in values):
            raise NotPlainTestError

    def _bindings(self) -> Iterator[tuple[str, ast.AST | None]]:
        """Every name that is bound, with the expression for its value; None where that is not known."""
        for node in self._tree.nodes:
            if isinstance(node, ast.Name) and is_stored(node):
                parent = self._tree.parent(node)
                is_simple = isinstance(parent, ast.Assign | ast.AnnAssign)
                is_whole = isinstance(parent, ast.AugAssign)
                if not is_whole:
                    yield node.id, parent.value if is_simple else None  # type: ignore[union-attr]
            elif isinstance(node, ast.arg):
                yield node.arg, None
            elif isinstance(node, ast.ExceptHandler | ast.FunctionDef | ast.ClassDef) and node.name:
                yield node.name, None

    def gives_once(self, *, is_file: bool) -> bool:
        """Whether nothing that the answer is given is used again."""
        firsts = {name: name.partition(".")[0] for name in self._deep_copiers}
        # a parameter, a function or an exception may have the name of what is imported
        others = {node.arg for node in self._tree.nodes if isinstance(node, ast.arg)}
        named = (
            node for node in self._tree.nodes if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler)
        )
        others |= {node.name for node in named if node.name}
        copiers = {name for name in firsts if firsts[name] not in self._answer_modules | self.called | others}
        return GivenOnce(self._tree, self._answer_calls(), copiers, is_file=is_file).holds()

    def _answer_calls(self) -> Iterator[ast.Call]:
        """The calls of functions of the answer, those in assertions that something is raised as if written out."""
        for node in self._tree.nodes:
            if isinstance(node, ast.Call) and self._is_answers_function(node.func):
                yield node
            elif isinstance(node, ast.Call):
                place = RAISING_ASSERTIONS.get(last_name(node.func), len(node.args))
                if len(node.args) > place:
                    yield ast.Call(node.args[place], node.args[place + 1 :], node.keywords)

    def _is_answers_function(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return self._is_answers(function.id)
        is_attribute = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        return is_attribute and function.value.id in self._answer_modules  # type: ignore[attr-defined]


def _starts_program(node: ast.stmt) -> bool:
    """Whether this is what a file does when it is run as a program, which it never is."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'" and not node.orelse


def _calls_check(node: ast.stmt) -> bool:
    """Whether this hands the function that is tested to `check`."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
    return is_call and node.value.func.id == "check" and len(node.value.args) == 1  # type: ignore[attr-defined]


def _is_method_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_single(side: ast.expr) -> bool:
    """Whether there is one such object in every process."""
    if isinstance(side, ast.Constant):
        return any(side.value is single for single in SINGLETONS)
    return isinstance(side, ast.Name) and isinstance(getattr(builtins, side.id, None), type)


def _is_exception(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def _parameter_names(node: ast.expr) -> set[str]:
    """The names of the parameters that a table of pytest's fills."""
    try:
        said = ast.literal_eval(node)
    except ValueError:
        raise NotPlainTestError from None
    words = said.split(",") if isinstance(said, str) else said
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise NotPlainTestError
    return {word.strip() for word in words}
