"""Tests that need the answer's own objects, run beside it: unittest and pytest files, with checks against tampering.

Code that shares a process with its tests can reach what judges it, so it is watched: the tests and the machinery are
compared with what they were whenever the answer hands control back, looking for frames, traces and garbage ends the
attempt, results carry a secret that is nowhere to be found, and every test must be accounted for. Runs in a contained
child of a zygote.
"""

from __future__ import annotations

import ast
import builtins
import functools
import io
import operator
import os
import random
import sys
import time
import types
import unittest
import unittest.mock  # loaded before the answer is, so that it is watched as well

from steelyard.verifiers.python.wire import MAX_EXCEPTION_CHARS, MessageSocket, exception_text, short_repr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

try:
    import pytest

    HAS_PYTEST = True
except ImportError:  # only files in pytest's style need it
    HAS_PYTEST = False

ANSWER_FILE, TESTS_FILE, GUARD_MODULE = "answer.py", "test_answer.py", "steelyard_guard"
PLAIN_TYPES = (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, type(None))
DATA_MODULES = (
    "test_answer",
    "builtins",
    "collections",
    "datetime",
    "decimal",
    "fractions",
    "pathlib",
    "uuid",
    "array",
    "numpy",
)
"""Modules whose objects may be compared with plain data: they decide nothing by themselves."""
COMPARISON_METHODS = (
    "__eq__",
    "__ne__",
    "__bool__",
    "__len__",
    "__hash__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__contains__",
)
"""Methods by which an object decides for itself how a comparison comes out."""
FRAME_ATTRIBUTES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
INTROSPECTION_EVENTS = (
    "sys._getframe",
    "sys._current_frames",
    "sys._current_exceptions",
    "sys.settrace",
    "sys.setprofile",
)
FORBIDDEN_EVENT_PREFIXES = (
    *INTROSPECTION_EVENTS,
    "sys.monitoring",
    "gc.get_",
    "ctypes.",
    "object.__setattr__",
    "object.__delattr__",
    "code.__new__",
)
FORBIDDEN_MODULES = (
    "ctypes",
    "_ctypes",
    "_testcapi",
    "_testinternalcapi",
    "_xxsubinterpreters",
    "_interpreters",
    "cffi",
)
"""Modules whose only use here is to look where no answer has to look."""


class Tampering(BaseException):
    """The answer laid hands on what judges it."""


def main(fds: list[int]) -> None:
    """Take an answer with its tests from a socket, run them, and tell how each test went."""
    random.seed(0)
    engine = MessageSocket(fds[0], lenient=True)
    nonce, style, code, tests, names = engine.receive()
    began = time.perf_counter()

    def tell(*fact: Any) -> None:
        engine.send([nonce, *fact])

    if style == "pytest" and not HAS_PYTEST:
        tell("unable", "pytest is not installed in the environment that the case names")
        os._exit(0)
    try:
        compile(code, ANSWER_FILE, "exec")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        tell("not compiled", exception_text(error), getattr(error, "lineno", None))
        os._exit(0)
    tell("compiled", time.perf_counter() - began)
    for name, text in ((ANSWER_FILE, code), (TESTS_FILE, guarded_tests(tests))):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    sys.path.insert(0, os.getcwd())
    # what the answer prints is data too
    sys.stdout = sys.stderr = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", "replace", write_through=True)
    watch = TamperingMonitor(tell)
    sys.modules[GUARD_MODULE] = watch.guard
    outcomes: dict[str, tuple[str, float]] = {}

    def record(name: str, wrong: str, seconds: float) -> None:
        watch.check()
        if name in outcomes:
            watch.caught(f"{name} was run twice")
        outcomes[name] = (wrong, seconds)
        tell("test", name, wrong[:MAX_EXCEPTION_CHARS], seconds)

    try:
        run_pytest(watch, record) if style == "pytest" else run_unittest(watch, names, record)
        watch.check()
    except Tampering as caught:
        tell("tampered", str(caught))
        os._exit(0)
    except BaseException as error:
        tell("raised", exception_text(error))
        os._exit(0)
    tell("finished")
    os._exit(0)


class TamperingMonitor:
    """Keeps an eye on the answer."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._home = os.getcwd() + os.sep
        self._busy = False
        self.guard = types.ModuleType(GUARD_MODULE)
        self.guard.__dict__.update(compare=compare, truth=truth)
        self._watched: list[tuple[str, Any, dict[str, Any]]] = []
        for name in [name for name in vars(unittest.TestCase) if name.startswith("assert")]:
            setattr(unittest.TestCase, name, guarded_assertion(getattr(unittest.TestCase, name)))
        self._remember(GUARD_MODULE, self.guard)

    def begin(self) -> None:
        """From now on the machinery is what it is; no line of the answer has run yet."""
        for name, module in sorted(sys.modules.items()):
            if name.partition(".")[0] in ("builtins", "unittest", "pytest", "_pytest", "pluggy", "json"):
                self._remember(name, module)
        sys.addaudithook(self._hear)

    def _remember(self, name: str, thing: Any) -> None:
        self._watched.append(
            (name, thing, {key: value for key, value in vars(thing).items() if is_callable_like(value)})
        )
        for inner in list(vars(thing).values()):
            if isinstance(inner, type) and inner.__module__ == thing.__name__:
                held = {key: value for key, value in vars(inner).items() if is_callable_like(value)}
                self._watched.append((f"{name}.{inner.__name__}", inner, held))

    def remember_tests(self, module: types.ModuleType) -> None:
        """From now on the tests are what they are."""
        self._remember("the tests", module)

    def check(self) -> None:
        """End the attempt when something that judges is not what it was."""
        for name, thing, before in self._watched:
            now = vars(thing)
            for key, value in before.items():
                if now.get(key) is not value:
                    self.caught(f"changed {name}.{key}")
            if len(now) > len(before):
                fresh = [key for key in now if key not in before and is_callable_like(now[key])]
                # a module may gain a part of itself, and pytest completes its own classes while it runs; but nothing may
                # come to stand in front of what a test case inherits or of what everyone knows
                grown = isinstance(thing, type) and not name.startswith(("_pytest", "pluggy"))
                if fresh and (grown or any(hasattr(builtins, key) for key in fresh)):
                    self.caught(f"added {name}.{fresh[0]}")

    def caught(self, evidence: str) -> None:
        """Tell, and end: what was tampered with cannot be trusted for one more step."""
        self._tell("tampered", evidence[:MAX_EXCEPTION_CHARS])
        os._exit(0)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Every call that looks into the interpreter passes here."""
        if self._busy:
            return
        frames = event == "object.__getattr__" and arguments[1] in FRAME_ATTRIBUTES
        forbidden = event == "import" and str(arguments[0]).partition(".")[0] in FORBIDDEN_MODULES
        memory = event == "open" and str(arguments[0]).startswith("/proc")
        if not (frames or forbidden or memory or event.startswith(FORBIDDEN_EVENT_PREFIXES)):
            return
        self._busy = True
        try:
            frame = sys._getframe(1)
            # these act for the code that calls them
            while frame.f_back and frame.f_code.co_filename.endswith(("inspect.py", "importlib._bootstrap>")):
                frame = frame.f_back
            if frame.f_code.co_filename.endswith("traceback.py") and not frames and frame.f_back:
                frame = frame.f_back
            if self._is_answer(frame.f_code.co_filename):
                what = arguments[1] if frames else arguments[0] if forbidden or memory else ""
                self.caught(f"{event} {what}".strip())
        finally:
            self._busy = False

    def _is_answer(self, file: str) -> bool:
        """Whether code came with the answer: its file, or text that it compiled itself."""
        if file.endswith(TESTS_FILE):
            return False
        return file.startswith(("<string>", "<unknown>", self._home)) or not os.path.isabs(file)

    def loaded(self, module: types.ModuleType) -> None:
        """Look again each time a function of the answer's hands control back."""
        for name, thing in list(vars(module).items()):
            if isinstance(thing, types.FunctionType) and thing.__module__ == module.__name__:
                setattr(module, name, self._returning(thing))
            elif isinstance(thing, type) and thing.__module__ == module.__name__:
                for key, method in list(vars(thing).items()):
                    if isinstance(method, types.FunctionType):
                        with_check = self._returning(method)
                        try:
                            setattr(thing, key, with_check)
                        except (AttributeError, TypeError):
                            break  # a class that refuses is left as it is
        self.check()

    def _returning(self, function: types.FunctionType) -> Any:
        @functools.wraps(function)
        def call(*positional: Any, **named: Any) -> Any:
            try:
                return function(*positional, **named)
            finally:
                self.check()

        return call


def is_callable_like(value: Any) -> bool:
    """Whether something can be called, or stands for something that can."""
    return callable(value) or isinstance(value, (property, classmethod, staticmethod))


def has_custom_comparison(value: Any, depth: int = 0) -> bool:
    """Whether a value is, or holds, an object that decides about comparisons itself."""
    kind = type(value)
    if kind in PLAIN_TYPES:
        if depth < 5 and kind in (list, tuple, set, frozenset):
            return any(has_custom_comparison(item, depth + 1) for item in value)
        if depth < 5 and kind is dict:
            return any(has_custom_comparison(item, depth + 1) for pair in value.items() for item in pair)
        return False
    return not is_known(kind) and any(name in vars(above) for above in kind.__mro__[:-1] for name in COMPARISON_METHODS)


def is_known(kind: type) -> bool:
    """Whether a class is of the tests' own or of a module whose objects are data, and not one that only says so."""
    module = kind.__module__.partition(".")[0]
    return module in DATA_MODULES and getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def is_plain_data(value: Any) -> bool:
    """Whether a value is data, through and through."""
    return type(value) in PLAIN_TYPES and not has_custom_comparison(value)


def is_unfair_comparison(*values: Any) -> bool:
    """Whether an object that is its own judge is held against plain data."""
    return any(map(has_custom_comparison, values)) and (len(values) == 1 or any(map(is_plain_data, values)))


COMPARISON_WORDS = {"NotEq": "not", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
COMPARISON_WORDS |= {"Is": "the same as", "IsNot": "another than", "In": "one of", "NotIn": "none of"}
COMPARISON_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name.lower()) for name in ("Eq", "Lt", "Gt")},
    "NotEq": operator.ne,
    "LtE": operator.le,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda item, container: item in container,
    "NotIn": lambda item, container: item not in container,
}


def compare(how: str, left: Any, right: Any) -> Any:
    """A comparison in a test; one that the answer would decide itself does not hold."""
    if is_unfair_comparison(left, right):
        raise AssertionError("an object of the answer's own class stands where plain data should")
    result = COMPARISON_OPERATORS[how](left, right)
    if not result:
        wanted = short_repr(right) if how == "Eq" else f"{COMPARISON_WORDS[how]} {short_repr(right)}"
        raise AssertionError(f"got {short_repr(left)}, expected {wanted}")
    return result


def truth(value: Any) -> Any:
    """What a test takes for true."""
    if is_unfair_comparison(value):
        raise AssertionError("an object of the answer's own class stands where plain data should")
    return value


def guarded_assertion(method: Any) -> Any:
    """An assertion of unittest that looks at what it is given first."""

    @functools.wraps(method)
    def call(self: Any, *positional: Any, **named: Any) -> Any:
        if positional and is_unfair_comparison(*positional[:2]):
            raise AssertionError("an object of the answer's own class stands where plain data should")
        return method(self, *positional, **named)

    return call


class _AssertRewriter(ast.NodeTransformer):
    """Lets every assert of a test file look before it believes."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and node.msg is None:
            how = ast.Constant(type(test.ops[0]).__name__)
            call = ast.Call(_name("compare"), [how, test.left, test.comparators[0]], [])
            return ast.copy_location(ast.Expr(call), node)
        node.test = ast.Call(_name("truth"), [test], [])
        return node


def _name(function: str) -> ast.expr:
    return ast.Attribute(ast.Name(GUARD_MODULE, ast.Load()), function, ast.Load())


def guarded_tests(tests: str) -> str:
    """The tests, with asserts that an answer cannot deceive."""
    tree = ast.fix_missing_locations(_AssertRewriter().visit(ast.parse(tests)))
    place = 0
    while place < len(tree.body) and _must_be_first(tree.body[place]):
        place += 1
    tree.body.insert(place, ast.Import([ast.alias(GUARD_MODULE)]))
    return ast.unparse(ast.fix_missing_locations(tree))


def _must_be_first(node: ast.stmt) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def load_answer_and_tests(watch: TamperingMonitor) -> types.ModuleType:
    """The answer, imported under every name that tests use for it, and then the tests."""
    watch.begin()
    answer = __import__("answer")
    for name in ("solution", "candidate", "main"):
        sys.modules.setdefault(name, answer)
    watch.loaded(answer)
    tests = __import__("test_answer")
    watch.remember_tests(tests)
    watch.check()
    return tests


def run_unittest(watch: TamperingMonitor, names: list[str], record: Callable[[str, str, float], None]) -> None:
    """Run the tests by the names that were known before anything was loaded."""
    module = load_answer_and_tests(watch)
    for name in names:
        owner, _, method = name.rpartition(".")
        began = time.perf_counter()
        wrong = _run_test_case(getattr(module, owner), method) if owner else _run_test_function(getattr(module, name))
        record(name, wrong, time.perf_counter() - began)


def _run_test_case(kind: Any, method: str) -> str:
    result = unittest.TestResult()
    suite = unittest.TestSuite([kind(method)])
    suite.run(result)
    for _, trace in (*result.failures, *result.errors):
        return trace.strip().splitlines()[-1]
    if result.skipped:
        return f"skipped: {result.skipped[0][1]}"
    if result.testsRun != 1 or result.expectedFailures or result.unexpectedSuccesses:
        return "did not run as a test"
    return ""


def _run_test_function(function: Any) -> str:
    try:
        function()
    except Exception as error:
        return exception_text(error)
    return ""


def run_pytest(watch: TamperingMonitor, record: Callable[[str, str, float], None]) -> None:
    """Run the file with pytest, and nothing else that lies around."""

    class Plugin:
        """Hears how each test went."""

        def __init__(self) -> None:
            self._wrong: dict[str, str] = {}

        def pytest_sessionstart(self) -> None:
            # not before: pytest completes its own classes while it gets ready
            load_answer_and_tests(watch)

        def pytest_runtest_logreport(self, report: Any) -> None:
            name = report.nodeid.partition("::")[2].replace("::", ".")
            if report.outcome != "passed" or hasattr(report, "wasxfail"):
                said_so = _last_line(report)
                self._wrong.setdefault(name, said_so if report.outcome == "failed" else f"skipped: {said_so}")
            if report.when == "teardown":
                record(name, self._wrong.get(name, ""), report.duration)

    options = [
        "-q",
        "--noconftest",
        "-c",
        os.devnull,
        "--rootdir",
        os.getcwd(),
        "-p",
        "no:cacheprovider",
        "-p",
        "no:legacypath",
        # ours is for tests of models; here its package cannot be read
        "-p",
        "no:steelyard",
    ]
    status = pytest.main([*options, "--assert=plain", TESTS_FILE], plugins=[Plugin()])
    if status not in (0, 1):
        raise RuntimeError(f"pytest ended with {status!r}")


def _last_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr)[-MAX_EXCEPTION_CHARS:]
