"""What an answer can see of the interpreter that it shares with its tests: itself and the library, no test and nothing of ours.

Real frames lead from a function to its caller, so an answer gets views of them that end where the tests begin. What
leads to every object there is, or to the memory itself, is refused. The way back cannot be patched: refusals are made by
an audit hook, which the interpreter never removes, and what we hand out holds only the handle of a generator.
"""

from __future__ import annotations

import _imp
import _thread
import asyncio.coroutines
import builtins
import contextlib
import gc
import importlib
import inspect
import os
import re
import sys
import traceback
import types
import unittest.case
import weakref

from steelyard.verifiers.python.guest.fairness import (
    LIBRARY_FOLDERS,
    SKIPPING_FILES,
    WORD_PATTERN,
    ComparisonJudge,
    codes_of,
)
from steelyard.verifiers.python.guest.genuine import (
    checking_compile,
    compiled_trees,
    is_forged_bytecode,
    is_forged_name,
    is_forged_source,
    is_library_file,
)
from steelyard.verifiers.python.guest.test_rewriter import FRAME_ATTRIBUTES, TESTS_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from typing import Any

FORBIDDEN_EVENTS = {
    *("sys._current_frames", "sys._current_exceptions", "sys.settrace", "sys.setprofile"),
    *("sys.monitoring.register_callback", "gc.get_objects", "gc.get_referrers", "gc.get_referents", "code.__new__"),
    *("sys.addaudithook", "marshal.load"),
}
"""What shows an answer other code than its own, or makes some; none of it has a use in an answer."""
EVENT_NAMES = {"code.__new__": ("CodeType", "__code__"), "marshal.load": ("marshal",)}
"""The words in tests that need this, if they are not the name of the event."""
BUILTIN_COMPILE_PATTERN = re.compile(r"(?<![\w.])compile\(")
FRAME_OWNERS = dict(
    zip(
        FRAME_ATTRIBUTES,
        (types.TracebackType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType),
        strict=True,
    )
)
CODE_ATTRIBUTES = ("__code__", "__defaults__", "__kwdefaults__")
MEMORY_MODULES = ("ctypes", "_ctypes", "_testcapi", "_testinternalcapi", "_xxsubinterpreters", "_interpreters", "cffi")
"""Modules that read memory as it is."""
GUARDED_MODULES = ("_imp", "_signal", "gc", "sys")
"""Modules of which there must be no second copy: some of their functions are replaced here."""
HIDDEN_PACKAGES = ("steelyard", *MEMORY_MODULES)
"""Whose classes no answer finds."""
HARNESS_FOLDERS = ("unittest", "_pytest", "pluggy", "pytest")
CALLED_UNNAMED = ("__call__", "__enter__", "__exit__", "__aenter__", "__aexit__")
"""Methods that are called without being named."""
_LEAVES = (
    traceback.TracebackException.__init__,
    getattr(traceback, "_compute_suggestion_error", inspect.getgeneratorstate),
    inspect.getgeneratorstate,
    inspect.getcoroutinestate,
    getattr(inspect, "getasyncgenstate", inspect.getcoroutinestate),  # from Python 3.12 on
    asyncio.coroutines.__dict__["_format_coroutine"],
    types.coroutine,
    traceback.clear_frames,
)
LEAF_CODES = frozenset(id(function.__code__) for function in _LEAVES)
"""Functions of the library that look at a frame or a code and hand none out."""


_signal = importlib.import_module("_signal")


CTYPES_SOURCE = """
import operator

class NoMemory:
    def __init__(self, *_, **__):
        raise RuntimeError(f"ctypes.{type(self).__name__} is not available to code that is judged beside its tests")

class Number:
    def __init__(self, value=0):
        self.value = value
    def __setattr__(self, name, value):
        half = self.size // 2 * self.is_signed
        object.__setattr__(self, name, (operator.index(value) + half) % self.size - half)
    def __repr__(self):
        return f"{type(self).__name__}({self.value})"

for bits, names in {8: ["byte"], 16: ["short"], 32: ["int"], 64: ["long", "longlong"]}.items():
    for sign in ("", "u"):
        made = type(f"c_{sign}{names[0]}", (Number,), {"size": 1 << bits, "is_signed": not sign})
        globals().update({f"c_{sign}{name}": made for name in (*names, f"int{bits}")})
c_size_t, c_ssize_t = c_ulong, c_long

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return globals().setdefault(name, type(name, (NoMemory,), {}))
"""
"""The ctypes of libraries and answers: numbers that wrap around as in C, and names of what reads memory.

It is compiled as foreign code, so that it gives no access to ours and gets no privileges.
"""


CTYPES_CODE = compile(CTYPES_SOURCE, "ctypes.py", "exec", dont_inherit=True)


def loaded_memory_modules() -> list[str]:
    """The modules by which Python reads memory, as far as they are loaded."""
    return [name for name in sys.modules if name.partition(".")[0] in MEMORY_MODULES]


def hide_classes() -> None:
    """Take classes of ours, and those that read memory, off all that `__subclasses__` lists.

    A class leads to its functions, and these to all that their module holds. Lists of subclasses are dicts of weak
    references by address, which no class shows, but garbage collection does; it must not have been frozen yet.
    """
    for held in gc.get_objects():
        if type(held) is not dict:
            continue
        for address, reference in list(held.items()):
            if type(address) is not int or type(reference) is not weakref.ref:
                break
            kind = reference()
            is_listed = isinstance(kind, type) and address == id(kind)
            if is_listed and str(kind.__module__).partition(".")[0] in HIDDEN_PACKAGES:
                del held[address]


def ctypes_without_memory() -> types.ModuleType:
    """A replacement module for ctypes."""
    module = types.ModuleType("ctypes")
    exec(CTYPES_CODE, module.__dict__)
    return module


class FrameView:
    """What an answer sees of a frame."""

    __class__ = types.FrameType  # type: ignore[assignment]


class IntrospectionGuard:
    """Refuses what leads from an answer to its tests, and remembers what it refused."""

    def __init__(self, tests: str, *, shows_variables: bool) -> None:
        self._shows_variables = shows_variables
        self.refused: list[str] = []
        """What the answer tried that has no honest use."""
        self._getframe = sys._getframe
        self._thread = _thread.get_ident
        self._busy: set[int] = set()
        self._tests = tests
        self._test_words = frozenset(WORD_PATTERN.findall(tests))
        self._allows_memory = "ctypes" in tests
        self._ours = {id(_frame_source.__code__), id(ComparisonJudge.enter.__code__)}
        self._ours.add(id(IntrospectionGuard._rename.__code__))
        self._rename_code = vars(_imp)["_fix_co_filename"]
        self._compile_wrapper: types.CodeType | None = None
        self.frame_attribute: Callable[[Any, str], Any] = getattr
        """What reads the attributes of an answer's objects by which frames are known."""

    def begin(self, memory_modules: Iterable[str]) -> None:
        """From now on answers may run, without these modules."""
        see = _started(_frame_source(self._getframe, shows_variables=self._shows_variables))
        sys._getframe = _handed_out(_getframe, see)
        at = _handed_out(_walk_traceback, see)
        traceback.walk_tb = at
        if hasattr(traceback, "_walk_tb_with_full_positions"):
            traceback._walk_tb_with_full_positions = _handed_out(_walk_positions, see)
        setting = _started(_calls(vars(_signal)["signal"]))
        vars(_signal)["signal"] = _handed_out(_set_handler, setting, see)
        _imp.create_builtin = _handed_out(_create_builtin, _started(_calls(_imp.create_builtin)))
        vars(_imp)["_fix_co_filename"] = _handed_out(_fix_filename, _started(_calls(self._rename)))
        vars(_imp)["get_frozen_object"] = _handed_out(_frozen_object, _started(_calls(vars(_imp)["get_frozen_object"])))
        compile_source, compile_tree = builtins.compile, _started(compiled_trees(builtins.compile))
        builtins.compile = _handed_out(checking_compile, compile_source, compile_tree, see, os.fsdecode)
        self._compile_wrapper = builtins.compile.__code__  # it is a function now
        # what it keeps of garbage has frames in it
        gc.set_debug = _handed_out(_ignored)
        self.frame_attribute = _handed_out(_frame_attribute, see, dict(FRAME_OWNERS))
        if not self._allows_memory:
            for name in memory_modules:
                del sys.modules[name]
            sys.modules["ctypes"] = ctypes_without_memory()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Every call that looks into the interpreter passes here."""
        if event not in _WATCHED_EVENTS:
            return
        thread = self._thread()
        if thread in self._busy:
            return
        self._busy.add(thread)
        try:
            problem = self._problem(event, arguments)
        finally:
            self._busy.discard(thread)
        if problem:
            raise (ImportError if event == "import" else RuntimeError)(problem)

    def _problem(self, event: str, arguments: tuple[Any, ...]) -> str:
        caller: Any = self._getframe(2)
        if event == "compile" and caller.f_code is self._compile_wrapper:
            caller = caller.f_back
        if event in ("code.__new__", "marshal.loads") and caller.f_code.co_filename.startswith("steelyard."):
            return ""
        if event == "sys._getframe":
            return "" if id(caller.f_code) in self._ours else "frames are not available here"
        if event == "import":
            name, file = str(arguments[0]).partition(".")[0], arguments[1]
            refused = (name in MEMORY_MODULES and not self._allows_memory) or name in GUARDED_MODULES
            if file is not None and not is_library_file(file):
                self.refused.append(f"loaded machine code from {str(file)[:100]}")
                refused = True
            return f"{name} is not available to code that is judged beside its tests" if refused else ""
        if event == "open":
            return "/proc is not available here" if str(arguments[0]).startswith("/proc") else ""
        if event == "compile" and not is_forged_source(arguments[0], arguments[1], caller):
            return ""  # a tree has no name here: whoever compiles those has looked at it
        if event == "marshal.loads":
            if not is_forged_bytecode(arguments[0], caller):
                return ""
        elif event.startswith("object."):
            if arguments[1] in FRAME_ATTRIBUTES:
                allowed = id(caller.f_code) in LEAF_CODES or self._is_asked_for(caller, (arguments[1],))
                return "" if allowed else "frames are not available here"
            if not self._is_guarded(event, arguments):
                return ""
        if event == "code.__new__" and id(caller.f_code) in LEAF_CODES:
            return ""
        is_attribute = event.startswith("object.")
        names = (arguments[1],) if is_attribute else EVENT_NAMES.get(event, (event.rpartition(".")[2],))
        if event != "marshal.loads" and self._is_asked_for(caller, names):
            return ""
        what = f" {arguments[1]}" if is_attribute else ""
        self.refused.append(f"{event}{what}")
        return f"{event}{what} is not available to code that is judged beside its tests"

    @staticmethod
    def _is_guarded(event: str, arguments: tuple[Any, ...]) -> bool:
        """Whether this is the code of a test or of what runs it."""
        function = arguments[0]
        if arguments[1] not in CODE_ATTRIBUTES or not isinstance(function, types.FunctionType):
            return False
        file = function.__code__.co_filename
        if file == TESTS_FILE:
            return event == "object.__setattr__" or function.__name__.startswith("test")
        return file.startswith("steelyard.") or (event == "object.__setattr__" and file.startswith(LIBRARY_FOLDERS))

    def _names(self, code: types.CodeType, names: tuple[str, ...]) -> bool:
        """Whether the code that runs asks for this itself: what an answer returns can call functions while tests read it."""
        if code.co_filename == TESTS_FILE:
            if names == ("compile",):
                return BUILTIN_COMPILE_PATTERN.search(self._tests) is not None
            return any(name in self._tests for name in names)
        # `create_autospec` goes through a tuple of the attributes that it copies
        constants = [item for each in code.co_consts for item in (each if type(each) is tuple else (each,))]
        named = {*code.co_names, *(constant for constant in constants if type(constant) is str)}
        return any(name in named or f"_{name}" in named for name in names)

    def _is_asked_for(self, frame: Any, names: tuple[str, ...]) -> bool:
        """Whether tests, or what runs them, ask for this by its name, or call by its name the function of the library that does.

        What an answer returns is called by code that does not name it.
        """
        code = frame.f_code
        if not self._names(code, names):
            return False
        is_first = True
        while not _is_tests_or_ours(code.co_filename):
            is_harness = _is_harness(code.co_filename)
            below = frame.f_back
            if below is None or not code.co_filename.startswith((*LIBRARY_FOLDERS, "<frozen ")):
                return False
            caller = below.f_code
            is_checked = caller.co_filename == TESTS_FILE
            if _is_hidden(caller.co_filename):  # what runs tests calls its own parts in many ways
                is_checked |= is_first or not is_harness
            if is_checked and not self._calls_by_name(caller, code):
                return False
            frame, code, is_first = below, caller, False
        return True

    def _calls_by_name(self, caller: types.CodeType, called: types.CodeType) -> bool:
        is_harness = _is_harness(caller.co_filename)
        if called.co_name in CALLED_UNNAMED or (is_harness and "/pluggy/" in caller.co_filename):
            return True
        # unittest finds a test by the text of its name: `runTest` is that of an example in a docstring
        if is_harness and (called.co_name.startswith(("<", "__")) or called.co_name == "runTest"):
            return True
        words = self._test_words if caller.co_filename == TESTS_FILE else caller.co_names
        return any(part in words for part in called.co_qualname.split("."))

    def _rename(self, code: Any, file: Any) -> None:
        """Give code the name of its file, as the import system does; the name of another is not given."""
        if not is_forged_name(code, file, self._getframe(3)):
            self._rename_code(code, file)


def _is_tests_or_ours(file: str) -> bool:
    return file == TESTS_FILE or file.startswith("steelyard.")


def _is_harness(file: str) -> bool:
    return file.startswith(LIBRARY_FOLDERS) and any(f"/{folder}/" in file for folder in HARNESS_FOLDERS)


_WATCHED_EVENTS = frozenset(
    {
        *FORBIDDEN_EVENTS,
        "sys._getframe",
        "import",
        "open",
        "compile",
        "marshal.loads",
        "object.__getattr__",
        "object.__setattr__",
    }
)


def _started(generator: Generator[Any, Any, None]) -> Callable[[Any], Any]:
    """A handle to ask a generator: its holder cannot reach into it, because its frame is not available."""
    next(generator)
    return generator.send


def _frame_source(getframe: Callable[[int], Any], *, shows_variables: bool) -> Generator[Any, Any, None]:
    """Views of frames: by depth below the caller, or of a frame or traceback."""
    asked = yield
    while True:
        try:
            if type(asked) is int:
                result = _view(getframe(asked + 2), shows_variables=shows_variables)
            elif type(asked) is types.FrameType:
                result = _view(asked, shows_variables=shows_variables)
            else:
                result = _view(_frame_of(asked), shows_variables=shows_variables)
        except BaseException as error:
            result = error.with_traceback(None)
        asked = None
        asked = yield result


def _frame_of(thing: Any) -> Any:
    """The frame of a traceback, a generator or a coroutine, if it has one now."""
    if type(thing) is types.TracebackType:
        return thing.tb_frame
    if type(thing) is types.GeneratorType:
        return thing.gi_frame
    if type(thing) is types.CoroutineType:
        return thing.cr_frame
    if type(thing) is types.AsyncGeneratorType:
        return thing.ag_frame
    raise TypeError("this has no frame")


def _calls(function: Callable[..., Any]) -> Generator[Any, Any, None]:
    given = yield
    while True:
        try:
            result = function(*given)
        except BaseException as error:
            result = error.with_traceback(None)
        given = None
        given = yield result


def watched_test_parts() -> Any:
    """What runs a part of a test for unittest: what tells unittest to stop without failing counts only if it comes from there."""
    parts, should_stop = vars(unittest.case)["_Outcome"].testPartExecutor, vars(unittest.case)["_ShouldStop"]
    return contextlib.contextmanager(_handed_out(_watched, parts, should_stop, _started(_calls(_is_forged_stop))))


def _watched(part_of_test: Any, should_stop: type[Exception], is_forged: Callable[[Any], bool]) -> Any:
    def testPartExecutor(self: Any, test_case: Any, subTest: bool = False) -> Iterator[None]:  # noqa: N802, N803  unittest's
        with part_of_test(self, test_case, subTest):
            try:
                yield
            except should_stop as error:
                if is_forged((error,)):
                    raise AssertionError("the answer raised an exception of unittest's own") from None
                raise

    return testPartExecutor


def _is_forged_stop(error: BaseException) -> bool:
    *_, code = codes_of(error.__traceback__)
    return not code.co_filename.endswith(SKIPPING_FILES)


def opaque(function: Callable[..., Any]) -> Any:
    """A function with the same arguments that leads to nothing of ours, where an answer can reach it; not for recursion."""
    names = inspect.signature(function).parameters
    lines = (
        f"def {function.__name__}({', '.join(names)}):",
        f"    is_done, result = ask(({''.join(f'{name}, ' for name in names)}))",
        "    if is_done:",
        "        return result",
        "    raise result",
    )
    scope = {"__name__": "sys", "__builtins__": vars(builtins), "ask": _started(_tries(function))}
    exec(compile("\n".join(lines), "<frozen sys>", "exec", dont_inherit=True), scope)
    return scope.pop(function.__name__)


def _tries(function: Callable[..., Any]) -> Generator[Any, Any, None]:
    result: tuple[bool, Any] = (True, None)
    while True:
        given = yield result
        try:
            result = True, function(*given)
        except BaseException as error:
            result = False, error


_BLANK_CODE = compile("", "", "exec", dont_inherit=True)


def _view(frame: Any, *, shows_variables: bool) -> Any:
    """A frame with those behind it, as far as what runs the tests; of tests, and of all behind them, only names and lines are seen."""
    if frame is None:
        return None
    first = FrameView()
    view = first
    is_past_tests = False
    while True:
        code, behind = frame.f_code, frame.f_back
        is_hidden = _is_hidden(code.co_filename)
        is_past_tests |= _is_tests(code)
        view.__dict__.update(
            f_lineno=frame.f_lineno, f_lasti=frame.f_lasti, f_trace=None, f_back=None, f_builtins=vars(builtins)
        )
        if is_hidden or is_past_tests:
            code = _BLANK_CODE.replace(co_filename=code.co_filename, co_name=code.co_name)
            view.__dict__.update(f_lasti=-1, f_code=code, f_globals={"__name__": _module_name(frame)}, f_locals={})
            if shows_variables and _is_tests(code):
                view.__dict__.update(f_globals=_variables(frame.f_globals), f_locals=_variables(frame.f_locals))
        else:
            view.__dict__.update(f_code=code, f_globals=frame.f_globals, f_locals=frame.f_locals)
        if is_past_tests:
            is_last = behind is None or (_is_hidden(behind.f_code.co_filename) and not _is_tests(behind.f_code))
        else:
            is_last = behind is None or is_hidden
        if is_last:
            return first
        view.__dict__["f_back"] = further = FrameView()
        view, frame = further, behind


def _variables(scope: Any) -> dict[str, Any]:
    """A copy of what tests have given a name to; what the interpreter keeps there may be ours."""
    kept = {name: value for name, value in scope.items() if not name.startswith("__")}
    return {**kept, "__name__": "tests"} if "__name__" in scope else kept


def _module_name(frame: Any) -> str:
    name = frame.f_globals.get("__name__")
    return name if type(name) is str and _is_tests(frame.f_code) else "tests"


def _is_tests(code: types.CodeType) -> bool:
    return code.co_filename == TESTS_FILE


def _is_hidden(file: str) -> bool:
    return _is_tests_or_ours(file) or _is_harness(file)


def _handed_out(function: Any, *asking: Any) -> Any:
    """A function that is safe to give to the answer: it does not lead to our objects."""
    inner = function(*asking)
    scope = {"__name__": "sys", "__builtins__": vars(builtins)}
    code = _renamed(inner.__code__)
    made = types.FunctionType(code, scope, inner.__name__, inner.__defaults__, inner.__closure__)
    made.__kwdefaults__ = inner.__kwdefaults__
    return made


def _renamed(code: types.CodeType) -> types.CodeType:
    inner = [_renamed(one) if isinstance(one, types.CodeType) else one for one in code.co_consts]
    return code.replace(co_filename="<frozen sys>", co_consts=tuple(inner))


def _getframe(see: Any) -> Any:
    def _getframe(depth: int = 0) -> Any:
        found = see(depth)
        if isinstance(found, BaseException):
            raise found
        return found

    return _getframe


def _frame_attribute(see: Any, owners: dict[str, type]) -> Any:
    def frame_attribute(thing: Any, name: str) -> Any:
        if type(thing) is not owners[name]:
            return getattr(thing, name)
        found = see(thing)
        if isinstance(found, BaseException):
            raise found
        return found

    return frame_attribute


def _walk_traceback(see: Any) -> Any:
    def walk_tb(tb: Any) -> Any:
        while tb is not None:
            yield see(tb), tb.tb_lineno
            tb = tb.tb_next

    return walk_tb


def _walk_positions(see: Any) -> Any:
    def _walk_tb_with_full_positions(tb: Any) -> Any:
        while tb is not None:
            yield see(tb), (tb.tb_lineno, None, None, None)
            tb = tb.tb_next

    return _walk_tb_with_full_positions


def _set_handler(set_handler: Any, see: Any) -> Any:
    def signal(signalnum: Any, handler: Any) -> Any:
        # a handler is given the frame that it interrupts
        if callable(handler):
            result = set_handler((signalnum, lambda number, frame: handler(number, see(frame))))
        else:
            result = set_handler((signalnum, handler))
        if isinstance(result, BaseException):
            raise result
        return result

    return signal


def _create_builtin(create: Any) -> Any:
    def create_builtin(spec: Any) -> Any:
        if str(spec.name) in ("_imp", "_signal", "gc", "sys", "_ctypes"):
            raise ImportError(f"{spec.name} is loaded")
        result = create((spec,))
        if isinstance(result, BaseException):
            raise result
        return result

    return create_builtin


def _fix_filename(rename: Any) -> Any:
    def _fix_co_filename(code: Any, path: Any) -> None:
        result = rename((code, path))
        if isinstance(result, BaseException):
            raise result

    return _fix_co_filename


def _frozen_object(load: Any) -> Any:
    def get_frozen_object(name: Any) -> Any:
        result = load((name,))
        if isinstance(result, BaseException):
            raise result
        return result

    return get_frozen_object


def _ignored() -> Any:
    def set_debug(flags: Any) -> None:
        pass

    return set_debug
