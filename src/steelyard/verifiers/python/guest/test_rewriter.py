"""The code of tests that run beside an answer: every comparison in it is made by our functions.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import ast
import base64
import importlib.util
import itertools
import marshal
import os
import re
import types
import warnings
from operator import is_

from steelyard.verifiers.python.guest.test_names import is_star_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

TESTS_FILE = "test_answer.py"
"""The file name in the code of tests; there is no such file."""
COMPARED_FILE_PATTERN = re.compile(r"(?:[=!]=|,)\s*__file__\b|\b__file__\s*[=!]=")
"""Tests that compare the name of their file with that in a warning, a traceback or a frame."""
COMPARE, ENTER, HOLDS, LEAVE, SAME = "\0compare", "\0enter", "\0holds", "\0leave", "\0same"
CHAIN, LOOK_UP, MATCH, METHOD, SEEK = "\0chain", "\0look up", "\0match", "\0method", "\0seek"
STAR_IMPORT, GENUINE = "\0star import", "\0genuine "
"""Placeholders of our functions in the code of tests until it is compiled: a name could be redefined."""
MAX_PACKED_CHARS = 64 << 10
"""Characters of compiled tests that are kept for the next answer."""
PLACES = itertools.count()
"""Numbers of assertions."""
EQUALITY_ASSERTIONS = {
    *("assertEqual", "assertEquals", "assertAlmostEqual", "assertListEqual", "assertTupleEqual", "assertSetEqual"),
    *("assertDictEqual", "assertSequenceEqual", "assertCountEqual", "assertMultiLineEqual"),
}
"""Methods of unittest that pass when their first two arguments are equal."""
ENFORCED_ASSERTIONS = {
    **dict.fromkeys(("assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertSetEqual"), "Eq"),
    **dict.fromkeys(("assertDictEqual", "assertMultiLineEqual"), "Eq"),
    "assertNotEqual": "NotEq",
    "assertIn": "In",
    "assertNotIn": "NotIn",
    "assertIs": "Is",
    "assertIsNot": "IsNot",
    "assertLess": "Lt",
    "assertLessEqual": "LtE",
    "assertGreater": "Gt",
    "assertGreaterEqual": "GtE",
}
"""Methods of unittest that pass only where a comparison holds: we check it as well, in case unittest was changed."""
SEEKING_METHODS = {"count", "discard", "get", "index", "pop", "remove", "setdefault"}
"""Methods of lists, sets and dicts that compare what they are given with what they hold."""


class _AssertionRewriter(ast.NodeTransformer):
    """Lets every comparison of a test file go through our functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._entered(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._entered(node)

    def _entered(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        if node.name.startswith("test"):
            has_docstring = ast.get_docstring(node, clean=False) is not None
            _LeaveRewriter().visit_body(node)
            node.body.insert(int(has_docstring), ast.Expr(_call(ENTER)))
            node.body.append(ast.Expr(_call(LEAVE)))
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if not is_star_import(node):
            return node
        scope = ast.Call(ast.Name("globals", ast.Load()), [], [])
        return ast.copy_location(ast.Expr(_call(STAR_IMPORT, ast.Constant(node.module), scope)), node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and node.msg is None:
            left, right = self.visit(test.left), self.visit(test.comparators[0])
            how, place = ast.Constant(type(test.ops[0]).__name__), ast.Constant(next(PLACES))
            return ast.copy_location(ast.Expr(_call(HOLDS, how, left, right, place)), node)
        # an assert fails where a chain ends early, so what comes later may be computed
        is_chain = isinstance(test, ast.Compare) and len(test.ops) > 1
        node.test = self._chained(test) if is_chain else self.visit(test)  # type: ignore[arg-type]
        if node.msg is not None:
            node.msg = self.visit(node.msg)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) > 1:
            later = node.comparators[1:]
            is_plain = all(isinstance(one, ast.Constant | ast.Name | ast.UnaryOp | ast.Attribute) for one in later)
            return self._chained(node) if is_plain else self.generic_visit(node)
        self.generic_visit(node)
        how = ast.Constant(type(node.ops[0]).__name__)
        return ast.copy_location(_call(COMPARE, how, node.left, node.comparators[0]), node)

    def _chained(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        steps: Any = tuple((type(one).__name__, place) for place, one in enumerate(node.ops))
        operands = ast.Tuple([node.left, *node.comparators], ast.Load())
        return ast.copy_location(_call(CHAIN, ast.Constant(steps), operands), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func
        is_assertion = isinstance(called, ast.Attribute) and called.attr in {*EQUALITY_ASSERTIONS, *ENFORCED_ASSERTIONS}
        if is_assertion and len(node.args) >= 2 and not any(isinstance(one, ast.Starred) for one in node.args[:2]):
            name = ast.Constant(called.attr)  # type: ignore[attr-defined]
            node.args[:2] = [ast.Starred(_call(SAME, name, *node.args[:2]), ast.Load())]
        elif isinstance(called, ast.Attribute) and called.attr in SEEKING_METHODS and node.args:
            node.func = _call(METHOD, called.value, ast.Constant(called.attr))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, ast.Constant | ast.Slice | ast.Tuple):
            return node
        if isinstance(node.value, ast.Dict):
            return ast.copy_location(_call(LOOK_UP, node.value, node.slice), node)
        if isinstance(node.value, ast.Name):
            # the name is looked up twice, so that what it stands for is asked from the tests' own line
            node.slice = _call(SEEK, ast.Name(node.value.id, ast.Load()), node.slice)
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        self.generic_visit(node)
        values = [value for case in node.cases for value in _values_of_subject(case.pattern)]
        if constants := [value for value in values if isinstance(value, ast.Constant)]:
            node.subject = _call(MATCH, node.subject, ast.Tuple(list(constants), ast.Load()))
        return node


class _LeaveRewriter(ast.NodeTransformer):
    """Notes the end of a test wherever it returns."""

    def visit_body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        return [ast.copy_location(ast.Expr(_call(LEAVE)), node), node]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node  # what is defined in a test returns from itself

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


class _NameRewriter(ast.NodeTransformer):
    """Puts constants in the place of names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Constant(GENUINE + node.id), node) if node.id in self._names else node

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        node.kwd_patterns = [self.visit(pattern) for pattern in node.kwd_patterns]
        return node  # its class must be a name


def _values_of_subject(pattern: ast.pattern) -> Iterator[ast.expr]:
    """What a pattern compares with the subject itself, not with its parts."""
    if isinstance(pattern, ast.MatchValue):
        yield pattern.value
    elif isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        yield from _values_of_subject(pattern.pattern)
    elif isinstance(pattern, ast.MatchOr):
        for inner in pattern.patterns:
            yield from _values_of_subject(inner)


def _call(function: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Constant(function), list(arguments), [])


def rewritten_code(source: str, mode: str = "exec", genuine: Iterable[str] = ()) -> types.CodeType:
    """The compiled tests with placeholders of our functions, and of these names: it is the same for every answer."""
    parsed = ast.parse(source, TESTS_FILE, mode)
    if genuine:
        parsed = _NameRewriter(genuine).visit(parsed)
    tree = ast.fix_missing_locations(_AssertionRewriter().visit(parsed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a constant that is called will be a function
        code: types.CodeType = compile(tree, TESTS_FILE, mode, dont_inherit=True)
    return code


def repeatable_code(make: Callable[[], Any], packed: str) -> tuple[Any, str]:
    """The compiled tests with placeholders, and as a text if they were not in one: an interpreter of this version need not compile that."""
    magic = importlib.util.MAGIC_NUMBER
    data = base64.b64decode(packed)
    if data.startswith(magic):
        return marshal.loads(data[len(magic) :]), ""  # noqa: S302  ours: it was made before an answer ran
    try:
        code = make()
    except Exception:
        return None, ""  # whoever runs the tests fails at it, too
    data = marshal.dumps(code)
    packed = base64.b64encode(magic + data).decode()
    is_kept = len(packed) <= MAX_PACKED_CHARS and _orders_of_sets(code) == _orders_of_sets(marshal.loads(data))  # noqa: S302  ours, too
    return code, packed if is_kept else ""


def _orders_of_sets(held: Any) -> list[Any]:
    """The items of each set among the constants of code, in their order: a set that is read again may have another."""
    if isinstance(held, types.CodeType):
        return _orders_of_sets(held.co_consts)
    inner = [order for item in held for order in _orders_of_sets(item)] if isinstance(held, list | tuple) else []
    return [*inner, list(map(repr, held))] if isinstance(held, frozenset) else inner


def with_functions(code: Any, functions: dict[str, Any]) -> Any:
    """The same code with these functions in the place of their placeholders."""
    return code.replace(co_consts=tuple(_constant(constant, functions) for constant in code.co_consts))


def _constant(constant: Any, functions: dict[str, Any]) -> Any:
    if isinstance(constant, types.CodeType):
        return with_functions(constant, functions)
    if isinstance(constant, tuple | frozenset):
        # the compiler makes one constant of several
        items = [_constant(item, functions) for item in constant]
        # a set that is made again may be read in another order
        return constant if all(map(is_, items, constant)) else type(constant)(items)
    return functions.get(constant, constant) if isinstance(constant, str) else constant


def file_of_tests(source: str) -> str:
    """The `__file__` of the tests: as warnings and tracebacks name it, where tests compare the two, else a whole path."""
    return TESTS_FILE if COMPARED_FILE_PATTERN.search(source) else os.path.join(os.getcwd(), TESTS_FILE)
