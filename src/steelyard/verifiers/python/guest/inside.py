"""Tests that need the answer's own objects, run beside it, and heard by a process that runs no line of the answer.

The process that is called here holds the tests and the results. It forks a session, which loads the answer and runs the
tests, each in a fork of its own; what comes back carries a secret that only the frames of the session hold, and no answer
sees those. Tests are compiled from memory before the answer is loaded and are in no file. Runs in a contained child of
a zygote.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import gc
import importlib.util
import io
import math
import os
import random
import re
import resource
import select
import shutil
import signal
import struct
import sys
import time
import types
from importlib.machinery import ModuleSpec

from steelyard.verifiers.python.guest.fairness import ComparisonJudge, all_types
from steelyard.verifiers.python.guest.genuine import POINTER_BYTES, DictWatch, MemoryWatch, own_dict
from steelyard.verifiers.python.guest.introspection import (
    MEMORY_MODULES,
    IntrospectionGuard,
    hide_classes,
    loaded_memory_modules,
)
from steelyard.verifiers.python.guest.new_interpreter import fork_by_default, leave_recursion_depth
from steelyard.verifiers.python.guest.runners import (
    StyleRunner,
    TestResultLine,
    empty_tests_module,
    is_begun_for,
    received_job,
    run_pytest,
    run_unittest,
    undefined_name,
)
from steelyard.verifiers.python.guest.step_runner import OneProgramRunner, StepRunner, compiled_steps
from steelyard.verifiers.python.guest.test_names import ANSWER_MODULE_NAMES, StandIn
from steelyard.verifiers.python.guest.test_rewriter import (
    compiled_answer,
    repeatable_code,
    rewritten_code,
    with_frames,
    with_functions,
)
from steelyard.verifiers.python.guest.wire import MAX_EXCEPTION_CHARS, MessageSocket, death, exception_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # a module has a dict there unless it is the first
"""The builtins of our functions, safe from temporary changes by an answer."""
fork_by_default()
ANSWER_FILE = "answer.py"
SESSION_FD = 3
"""The stream of a session's results."""
FIELD_SEPARATOR = "\x1f"
MAX_RESULT_BYTES = 64 << 10
FORGED_RESULT = "wrote to the channel of its results"
PYTEST_PACKAGES = ("pytest", "_pytest", "pluggy")
WATCHED_PACKAGES = ("unittest", *PYTEST_PACKAGES)
WATCHED_MODULES = (
    *("math", "cmath", "operator", "statistics", "itertools", "functools", "collections", "copy", "re"),
    *("decimal", "fractions", "uuid", "pathlib", "enum", "json", "heapq", "bisect", "locale"),
    *("abc", "calendar", "contextlib", "dataclasses", "numbers", "string", "textwrap"),
    *("csv", "inspect"),
)
"""Modules by whose functions and classes tests compare, and which no test replaces for its own ends."""
MODULES_OF_CHANCE = ("datetime", "random", "time")
"""Modules that tests may patch, but no answer while it is loaded."""
WATCHED_BUILTINS = (
    *("abs", "all", "any", "callable", "divmod", "getattr", "hasattr", "hash", "id", "isinstance", "issubclass"),
    *("iter", "len", "max", "min", "next", "ord", "pow", "repr", "round", "setattr", "sorted", "sum"),
)
"""Builtin functions by which tests compare; they do replace others, such as `input` and `open`."""
SHADOWED_NAMES = frozenset(name for name, value in vars(builtins).items() if callable(value) and name[0] != "_")
"""What code of the library finds among the builtins, unless its module has something of that name."""
NOT_WATCHED = frozenset(
    (
        *(*MODULES_OF_CHANCE, "asyncio", "builtins", "json.encoder", "logging", "multiprocessing"),
        *("os", "signal", "socket", "sys", "threading", "warnings"),
    )
)
"""Modules of the library that answers may set hooks, streams, levels or limits in."""
WATCHED_KINDS = (property, classmethod, staticmethod, types.ModuleType, re.Pattern)
HEAP_TYPE_FLAG = 1 << 9
"""Of a class that is not built into the interpreter."""
DEPTH_OF_A_TEST = 10
"""Frames between what loads an answer and a test of it."""
SESSION_EXIT_SECONDS = 0.005


def rehearse() -> None:
    """Hide what no answer may find, once for all that are forked from this process."""
    hide_classes()


def main(fds: list[int]) -> None:
    """Take an answer with its tests from a socket, run them, and report the result of each test."""
    engine, job = received_job(fds[0])
    began = time.perf_counter()
    answer = None
    if job["code"] is not None:
        try:
            answer = compiled_answer(job["code"], os.path.join(os.getcwd(), ANSWER_FILE))
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            engine.send(["not compiled", exception_text(error), getattr(error, "lineno", None)])
            os._exit(0)
    seconds = time.perf_counter() - began
    tests, packed = None, ""
    if not (job["steps"] and job["shares"]):  # those are compiled otherwise
        tests, packed = repeatable_code(lambda: compiled_tests(job), job["packed_tests"])
    engine.send(["compiled", seconds, packed])
    if answer is not None:
        # of a source that is known to compile the engine sees whether it can change anything
        job["is_plain"] = engine.receive()[0]
    if answer is not None and job["shares"]:
        named, bound, rebound = names_of_module(answer)
        named -= bound.intersection(job["imports"])
        engine.send(["named", sorted(named), sorted(rebound)])
        if named.isdisjoint(job["shares"]):
            engine.send(["finished"])
            os._exit(0)
    session = SessionHost(engine, job, answer, tests)
    is_file = job["style"] in ("unittest", "pytest")
    session.run(is_apart=is_file)
    # tests that build on each other, threads that do not survive a fork, and state that an answer keeps from one test
    # to the next are judged as every runner does it; a single test, and an answer that passed apart, have been judged so
    is_due = session.has_failures or (session.test_count > 1 and not job["confirms"] and session.can_repeat)
    if is_file and is_due and session.test_count != 1 and not session.is_over:
        session.run(is_apart=False)
    engine.send(["finished"])
    os._exit(0)


def compiled_tests(job: dict[str, Any]) -> Any:
    """The code of a file of tests, or of each of the steps that they were taken apart into."""
    return compiled_steps(job["steps"]) if job["steps"] else rewritten_code(job["tests"])


def names_of_module(module: types.CodeType) -> tuple[set[str], set[str], set[str]]:
    """The names of its module that code uses, those that it binds there, and those that its functions bind again or delete."""
    named: set[str] = set()
    bound: set[str] = set()
    rebound: set[str] = set()
    waiting = [module]
    while waiting:
        code = waiting.pop()
        for step in dis.get_instructions(code):
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                rebound.add(step.argval)
            elif step.opname == "STORE_NAME" and code is module:
                bound.add(step.argval)
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
                named.add(step.argval)
        waiting += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return named | bound | rebound, bound, rebound


class SessionHost:
    """The process that hears how the tests go; it never runs a line of the answer."""

    def __init__(self, engine: MessageSocket, job: dict[str, Any], answer: types.CodeType | None, tests: Any) -> None:
        self._engine = engine
        self._job = job
        self._answer = answer
        self._tests = tests
        self._seconds = float(job["seconds"])
        self._folder = ""
        """Where the last session ran."""
        self.has_failures = False
        self.test_count = 0
        self.can_repeat = False
        """Whether the time that is left is enough for the same once more."""
        self.is_over = False
        """Whether to stop: a limit was hit, or the answer was caught cheating."""

    def run(self, *, is_apart: bool) -> None:
        """Run the tests in a separate session and pass on its results."""
        if self._folder:  # the last one is removed with all that the sandbox holds
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = folder = os.path.join(os.getcwd(), os.urandom(4).hex())
        os.mkdir(folder)
        reader, writer = os.pipe()
        secret = os.urandom(16).hex()
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                os.setpgid(0, 0)
                os.close(reader)
                os.dup2(writer, SESSION_FD)
                os.close(writer)
                os.chdir(folder)
                limit_cpu(self._seconds)
                AnswerSession(self._job, self._answer, self._tests, secret).run(is_apart=is_apart)
            finally:
                os._exit(1)
        os.close(writer)
        self._hear(reader, child, secret)
        _, status, used = os.wait4(child, 0)
        os.close(reader)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        took = used.ru_utime + used.ru_stime
        # the limit in wall time is twice the CPU seconds plus ten
        self.can_repeat = 2 * took < self._seconds and time.monotonic() - began < self._seconds + 4
        self._seconds -= took
        if status:
            self.is_over = True
            end = death(status, used)
            self._engine.send(["died", end.text, end.cause])
        if self._seconds <= 0:
            self.is_over = True
        self._engine.send(["session", time.monotonic() - began])

    def _hear(self, reader: int, child: int, secret: str) -> None:
        os.set_blocking(reader, False)
        waiting = select.poll()
        waiting.register(reader, select.POLLIN)
        ended = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
        if ended is not None:
            waiting.register(ended, select.POLLIN)
        rest = b""
        is_alive = True
        while is_alive and not self.is_over:
            waiting.poll(None if ended is not None else SESSION_EXIT_SECONDS * 1000)
            # checked first: its last output is read after its end
            is_alive = not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            rest += _available(reader)
            rest = self._take(rest, secret)
            if rest and not is_alive:
                self._forged()
        if self.is_over:
            os.killpg(child, signal.SIGKILL)
        if ended is not None:
            os.close(ended)

    def _take(self, received: bytes, secret: str) -> bytes:
        """Pass on whole results; what is left is the beginning of another."""
        while len(received) >= 4:
            (length,) = struct.unpack("I", received[:4])
            if length > MAX_RESULT_BYTES:
                self._forged()
                return b""
            if len(received) < 4 + length:
                break
            fields = received[4 : 4 + length].decode("utf-8", "replace").split(FIELD_SEPARATOR)
            received = received[4 + length :]
            if fields[0] != secret or len(fields) < 2:
                self._forged()
                return b""
            if fields[1] == "tampered":
                self.is_over = True
            self.test_count += fields[1] == "test"
            self.has_failures |= fields[1] == "raised" or (fields[1] == "test" and fields[4] == "failed")
            self._engine.send(fields[1:])
        return received

    def _forged(self) -> None:
        self.is_over = True
        self._engine.send(["tampered", FORGED_RESULT])


def _available(reader: int) -> bytes:
    pieces = b""
    while len(pieces) < MAX_RESULT_BYTES * 16:
        try:
            piece = os.read(reader, MAX_RESULT_BYTES)
        except BlockingIOError:
            break
        if not piece:
            break
        pieces += piece
    return pieces


def limit_cpu(seconds: float) -> None:
    """Limit the CPU time of this process."""
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    whole = max(1, math.ceil(seconds))
    if most == resource.RLIM_INFINITY or whole < most:
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))


class AnswerSession:
    """The process that runs an answer and its tests; what it holds is in frames and closures that no answer sees."""

    def __init__(self, job: dict[str, Any], answer: types.CodeType | None, tests: Any, secret: str) -> None:
        self._job = job
        self._answer = answer
        self._tests = tests
        self._secret = secret
        self._write = os.write
        self._machinery = MACHINERY

    def run(self, *, is_apart: bool) -> None:
        """Load the answer, run its tests, and end."""
        job, end = self._job, os._exit
        self._folder = os.getcwd()
        # what a process prints is data too
        sys.stdout = sys.stderr = io.TextIOWrapper(
            io.FileIO(1, "w", closefd=False), "utf-8", "replace", write_through=True
        )
        random.seed(0)
        gc.enable()  # an answer may make circles, as anywhere else
        source = job["tests"]
        self._judge = ComparisonJudge(
            source, KNOWN_TYPES, is_own_word_allowed=job["allows_own_word"], may_try_again=job["confirms"]
        )
        made = OneProgramRunner if job["shares"] else StepRunner
        steps = made(job["steps"], job["entry_point"], self._judge, self._tests) if job["steps"] else None
        tests = None
        if not steps:
            tests = with_functions(self._tests or rewritten_code(source), self._judge.functions())
        self._guard = IntrospectionGuard(source, shows_variables=job["shows_variables"])
        sys.modules["__main__"] = types.ModuleType("__main__")
        self._guard.begin(LOADED_MEMORY_MODULES)
        try:
            if steps is None:
                self._run_file(tests, is_apart=is_apart)
            elif wrong := steps.run(self._load(), self._tell_step):
                self.tell("raised", wrong)
            self.check()
        except BaseException as error:
            if name := undefined_name(error):
                self.tell("undefined", name)
            self.tell("raised", exception_text(error))
            self.check()
        self._judge.stay()
        self.tell("complete")
        end(0)

    def _load(self) -> types.ModuleType:
        """The answer, or its proxy, under every name that tests use for it."""
        if self._answer is None:
            module: types.ModuleType = StandIn("answer")
            for name in ANSWER_MODULE_NAMES:
                sys.modules[name] = module
            return module
        path = os.path.join(os.getcwd(), ANSWER_FILE)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._job["code"])
        sys.path.insert(0, os.getcwd())
        spec = importlib.util.spec_from_file_location("answer", path)
        if spec is None:
            raise ImportError("answer")
        module = importlib.util.module_from_spec(spec)
        for name in ANSWER_MODULE_NAMES:
            sys.modules[name] = module
        module.__dict__["__builtins__"] = vars(builtins)
        imported, replaced = self._job["library"]
        self._machinery.remember_imports(imported, replaced, self._job["tests"])
        LOADED.look()
        leave_recursion_depth(DEPTH_OF_A_TEST)
        exec(with_frames(self._answer, self._guard.frame_attribute), module.__dict__)
        if evidence := next(CHANCE.changes(), ""):
            self.tell("tampered", evidence[:MAX_EXCEPTION_CHARS])
            os._exit(0)
        return module

    def _run_file(self, code: Any, *, is_apart: bool) -> None:
        self._runner = runner = StyleRunner(self._judge, self._tell_test, is_apart=is_apart)
        module = empty_tests_module(self._job["tests"])

        is_loaded: list[bool] = []
        is_begun_late = self._job["style"] == "pytest" and not is_begun_for(self._job["tests"])

        def loaded() -> types.ModuleType:
            is_loaded.append(True)
            if is_begun_late and any(self._machinery.changes()):
                # plug-ins of pytest have changed it, and no line of the answer has run yet
                self._machinery = Machinery()
            names = vars(self._load())
            exec(code, module.__dict__)
            names.update((name, vars(module)[name]) for name in self._job["shares"] if name in vars(module))
            self._machinery.remember("the tests", module)
            return module

        if self._job["style"] == "pytest":
            try:
                run_pytest(runner, loaded, self._job["tests"], is_without_answer=self._job["code"] is None)
            except RuntimeError as error:
                if not is_loaded:
                    self.tell("unable", exception_text(error))
                raise
        else:
            run_unittest(runner, loaded())

    def _tell_test(self, line: TestResultLine) -> None:
        if not self._runner.is_single:  # of a single test the check at the end says the same
            self.check()
        self._tell_line(line)

    def _tell_line(self, line: TestResultLine) -> None:
        own = "own" if self._judge.own_word else ""
        if line.undefined:
            self.tell("undefined", line.undefined)
        said = line.message[:MAX_EXCEPTION_CHARS]
        self.tell("test", line.name, str(line.seconds), line.outcome, own, said, line.cause)

    def _tell_step(self, number: int, line: TestResultLine) -> None:
        # steps share one process: it is checked once, at the end, and without an end none of them counts
        self._tell_line(line._replace(name=str(number)))

    def check(self) -> None:
        """End where the answer laid hands on what judges it."""
        is_plain = self._job["is_plain"]
        evidence = next(iter(self._guard.refused), "")
        evidence = evidence or next(strange_library_modules(self._folder, only_new=is_plain), "")
        if self._job["code"] is not None:
            evidence = evidence or next(self._machinery.changes(without_pytest=is_plain), "")
        if evidence:
            self.tell("tampered", evidence[:MAX_EXCEPTION_CHARS])
            os._exit(0)

    def tell(self, *fields: str) -> None:
        """Send a message to the host, with the secret."""
        clean = [field.replace(FIELD_SEPARATOR, " ") for field in fields]
        body = FIELD_SEPARATOR.join([self._secret, *clean]).encode("utf-8", "replace")
        frame = struct.pack("I", len(body)) + body
        while frame:
            frame = frame[self._write(SESSION_FD, frame) :]


class Defaults:
    """Holds the defaults of a function that are given by name."""


class Machinery:
    """What runs tests, as it was before an answer was loaded."""

    def __init__(
        self, modules: tuple[str, ...] = WATCHED_MODULES, packages: tuple[str, ...] = WATCHED_PACKAGES
    ) -> None:
        self._watched: list[tuple[str, Any, dict[str, Any]]] = []
        self._modules = {name: sys.modules[name] for name in modules if name in sys.modules}
        found = [
            (name, module)
            for name, module in sorted(sys.modules.items())
            if (name.partition(".")[0] in packages or name in modules) and module is not None
        ]
        unusual = [pair for pair in found if not isinstance(pair[1], types.ModuleType)]
        found = [pair for pair in found if pair not in unusual]
        for name, module in found:
            if name.partition(".")[0] in PYTEST_PACKAGES:
                self.remember(name, module)
        self._after_pytest = len(self._watched)
        for name, module in found:
            if name.partition(".")[0] not in PYTEST_PACKAGES:
                self.remember(name, module)
        kept = {
            key: value for key, value in vars(builtins).items() if isinstance(value, type) or key in WATCHED_BUILTINS
        }
        self._watched.append(("builtins", builtins, kept))
        for kind, _ in KNOWN_TYPES.values():
            # a view of what such a class holds hands that over to what it is compared with
            if not kind.__flags__ & HEAP_TYPE_FLAG:
                self._watched.append((kind.__name__, kind, dict(vars(kind))))
        self._watch = DictWatch(own_dict(thing) for _, thing, _ in self._watched)
        self._watched_count = len(self._watched)
        self._known = {id(thing) for _, thing, _ in self._watched}
        for name, thing in unusual:
            self.remember(name, thing)

    def remember(self, name: str, thing: Any) -> None:
        """Freeze a module and its classes."""
        self._freeze(name, thing)
        for inner in list(vars(thing).values()):
            if isinstance(inner, type) and inner.__module__ == thing.__name__:
                self._freeze(f"{name}.{inner.__name__}", inner)

    def _freeze(self, name: str, thing: Any) -> None:
        kept = {key: value for key, value in vars(thing).items() if callable(value) or isinstance(value, WATCHED_KINDS)}
        self._watched.append((name, thing, kept))
        for key, value in kept.items():
            function = getattr(value, "__func__", value) if isinstance(value, (classmethod, staticmethod)) else value
            if type(function) is types.FunctionType and (defaults := function.__kwdefaults__):
                holder = Defaults()
                holder.__dict__ = defaults
                self._watched.append((f"{name}.{key}", holder, dict(defaults)))

    def remember_imports(self, imported: list[str], replaced: list[str], tests: str) -> None:
        """Freeze what tests import of the library, with all its parts and what these import, unless they replace some of it."""
        found: list[Any] = []
        for name in {*imported, *([os.path.__name__] if not {"os", "os.path"}.isdisjoint(imported) else ())}:
            top = name.partition(".")[0]
            if top in LIBRARY_NAMES and top not in NOT_WATCHED:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
                found += [sys.modules.get(part) for part in (name, *PARTS.get(top, ()))]
        for module in [one for one in found if isinstance(one, types.ModuleType) and id(one) not in self._known]:
            # some modules make what they offer when it is first asked for
            for offered in set(getattr(module, "__all__", ())).difference(vars(module)):
                if offered in tests:
                    getattr(module, offered, None)
            for one in (module, *vars(module).values()):
                self._remember_import(one, replaced)

    def _remember_import(self, module: Any, replaced: list[str]) -> None:
        if not isinstance(module, types.ModuleType) or id(module) in self._known:
            return
        name = module.__name__
        words = {*name.split("."), *(["path"] if module is os.path else ())}
        if (
            name.partition(".")[0] in LIBRARY_NAMES
            and words.isdisjoint(replaced)
            and {name, name.partition(".")[0]}.isdisjoint(NOT_WATCHED)
        ):
            self._known.add(id(module))
            self.remember(name, module)

    def changes(self, *, without_pytest: bool = False) -> Iterator[str]:
        """What is not as it was; looking at pytest copies hundreds of pages, and can be left out."""
        for name, module in self._modules.items() if are_modules_changed() else ():
            if sys.modules.get(name) is not module:
                yield f"replaced the module {name}"
        for place in MODULE_CLASSES.changed():
            yield f"changed the class of the module {MODULES[place][0]}"
        changed = self._watch.changed(self._after_pytest if without_pytest else 0)
        looked_at = [*(self._watched[place] for place in changed), *self._watched[self._watched_count :]]
        for name, thing, before in looked_at:
            now = vars(thing)
            for key, value in before.items():
                if now.get(key) is not value:
                    yield f"changed {name}.{key}"
            if isinstance(thing, types.ModuleType) and thing is not builtins:
                # in its module such a name comes before the builtin function
                for key in SHADOWED_NAMES.intersection(now).difference(before):
                    if callable(now[key]):  # `_sre.copyright` is a text, and was there
                        yield f"added {name}.{key}"
            # nothing may shadow what a test case inherits; pytest completes its own classes as it runs
            if isinstance(thing, type) and name.startswith(("unittest", "the tests")) and len(now) > len(before):
                for key, value in list(now.items()):
                    if key not in before and callable(value) and _is_meant_elsewhere(thing, key):
                        yield f"added {name}.{key}"


def _is_meant_elsewhere(thing: type, key: str) -> bool:
    """Whether a class inherits something by this name, or the language looks for it; tests add names of their own."""
    return key.startswith("__") or any(key in vars(base) for base in thing.__mro__[1:])


def are_modules_changed() -> bool:
    """Whether other modules may be loaded than when the answer was."""
    return sys.modules is not ALL_MODULES or bool(LOADED.changed())


def strange_library_modules(folder: str, *, only_new: bool) -> Iterator[str]:
    """Modules with names of the library that are not the library's: others than before, made by hand, or from a folder of the answer's."""
    if not are_modules_changed():
        return
    for name, module in () if only_new else KNOWN_LIBRARY.items():
        if sys.modules.get(name) is not module:
            yield f"replaced the module {name}"
    for name in LIBRARY_NAMES & sys.modules.keys() - KNOWN_LIBRARY.keys():
        module = sys.modules[name]
        file = getattr(module, "__file__", None)
        is_loaded = type(module) is types.ModuleType and type(getattr(module, "__spec__", None)) is ModuleSpec
        if not is_loaded or (isinstance(file, str) and file.startswith(folder)):
            yield f"put a module of its own in the place of {name}"


ALL_MODULES = sys.modules
LOADED = DictWatch([ALL_MODULES])
LOADED_MEMORY_MODULES = loaded_memory_modules()
LIBRARY_NAMES = sys.stdlib_module_names - {"test", "this", "antigravity", *MEMORY_MODULES}
KNOWN_LIBRARY = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in LIBRARY_NAMES}
PARTS = {
    top: tuple(name for name in KNOWN_LIBRARY if name.startswith(f"{top}."))
    for top in {name.partition(".")[0] for name in KNOWN_LIBRARY if "." in name}
}
"""Modules of the library that were loaded, by the package that they are part of."""
MODULES = tuple(pair for pair in sys.modules.items() if isinstance(pair[1], types.ModuleType))
# the class of an object is the last part of what each begins with; that of a module may decide what its names mean
MODULE_CLASSES = MemoryWatch(
    (id(module) + object.__basicsize__ - POINTER_BYTES for _, module in MODULES), POINTER_BYTES
)
KNOWN_TYPES = all_types()
CHANCE = Machinery(MODULES_OF_CHANCE, ())
MACHINERY = Machinery()
"""The state when this module is loaded: no answer has run yet in this process or in one that it was forked from."""
