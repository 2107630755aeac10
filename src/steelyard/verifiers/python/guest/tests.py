"""An answer and its tests in one process, as their author would run them; or the tests alone, with an answer elsewhere.

Every message that is sent after a line of the answer could have run begins with a word that was drawn for this run.
Runs in a contained child of a zygote.
"""

from __future__ import annotations

import builtins
import gc
import importlib.util
import os
import random
import sys
import time
import types

from steelyard.verifiers.python.guest.harness_marks import HarnessMarks
from steelyard.verifiers.python.guest.new_interpreter import fork_by_default, leave_recursion_depth
from steelyard.verifiers.python.guest.remote import JoinedNames, RemoteAnswer, RemoteModule
from steelyard.verifiers.python.guest.runners import HAS_PYTEST, end_session, run_pytest, run_unittest
from steelyard.verifiers.python.guest.steps import STEP_NAME, StepTeller, TestResultLine, run_examples
from steelyard.verifiers.python.guest.wire import (
    ANSWER_FILE,
    ANSWER_MODULE_NAMES,
    MAX_EXCEPTION_CHARS,
    TESTS_FILE,
    MessageSocket,
    exception_text,
    flush_and_end,
    load_random,
    open_output,
    own_random_in_forks,
    raised_failure,
    without_half_characters,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

COMPILE_ERRORS = (SyntaxError, ValueError, MemoryError, RecursionError)
DEPTH_OF_A_TEST = -1
"""Frames between what loads an answer and a test of it: tests are run by what calls what loads the answer."""
MARKS = HarnessMarks()
"""The state when this module is loaded: no answer has run yet in this process or in one that it was forked from."""
load_random()
fork_by_default()


def main(fds: list[int]) -> None:
    """Take an answer with its tests from the first socket, run them, and tell of each test; the second leads to an answer."""
    own_random_in_forks()
    gc.enable()  # an answer may make circles, as anywhere else
    engine = MessageSocket(fds[0])
    (job,) = engine.receive()
    session = TestSession(engine, job, fds[1] if len(fds) > 1 else None)
    printed = open_output()
    try:
        session.run()
    finally:
        flush_and_end(printed)


class _MissingError(Exception):
    """What is asked for is not there."""


class TestSession:
    """The tests of one answer."""

    def __init__(self, engine: MessageSocket, job: dict[str, Any], answer_fd: int | None) -> None:
        self._engine = engine
        self._job = job
        self._nonce = job["nonce"]
        self._answer_fd = answer_fd
        self._file = os.path.join(os.getcwd(), TESTS_FILE)
        self._send = engine.send
        self._end = os._exit
        self._marks = MARKS
        self._answer: Any = None

    def run(self) -> None:
        """Compile both, load the answer, and run its tests."""
        job = self._job
        if job["style"] == "pytest" and not HAS_PYTEST:
            self._send(["unable", "pytest is not installed in the environment that the case names"])
            return
        if job["style"] != "pytest":
            end_session()
        began = time.perf_counter()
        try:
            self._tests = compile(job["tests"], self._file, "exec", dont_inherit=True)
        except COMPILE_ERRORS as error:
            self._send(["unable", f"its tests do not compile: {exception_text(error)}"])
            return
        if self._answer_fd is None:
            try:
                path = os.path.join(os.getcwd(), ANSWER_FILE)
                self._answer = compile(job["code"], path, "exec", dont_inherit=True)
            except COMPILE_ERRORS as error:
                self._send(["not compiled", exception_text(error), getattr(error, "lineno", None)])
                return
        self._send(["compiled", time.perf_counter() - began])
        os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
        random.seed(0)
        try:
            self._run_tests()
        except _MissingError as error:
            self._tell("raised", str(error), "")
        except BaseException as error:  # every exception is the answer's or the tests' own
            failure = raised_failure(error)
            self._tell("raised", failure.text, failure.undefined)
        if changed := self._marks.first_change():
            self._tell("changed", changed[:MAX_EXCEPTION_CHARS])
        self._tell("complete")

    def _run_tests(self) -> None:
        if self._job["style"] == "pytest":
            run_pytest(self._loaded_tests, self._job["tests"], self._tell_test)
        elif self._job["style"] == "unittest":
            run_unittest(self._loaded_tests(), self._tell_test)
        else:
            names = self._names_of_answer()
            self._give(names)
            if self._job["style"] == "doctest":
                problem = run_examples(self._job["examples"], names, self._tell_test)
                if problem:
                    self._tell("raised", problem, "")
                return
            names[STEP_NAME] = StepTeller(self._tell_test)
            exec(self._tests, names)

    def _loaded_tests(self) -> types.ModuleType:
        """The module with the tests of a file, which may share its names with the answer."""
        module = types.ModuleType("test_answer")
        module.__file__ = self._file
        names = self._names_of_answer()
        if not self._job["is_joined"]:
            names = vars(module)
        before = dict(names)
        sys.modules["test_answer"] = module
        self._give(names)
        exec(self._tests, names)
        if names is not vars(module):
            vars(module).update((name, value) for name, value in names.items() if before.get(name, before) is not value)
        return module

    def _names_of_answer(self) -> dict[str, Any]:
        """Where the names of the answer are, once it is loaded here or elsewhere."""
        if self._answer_fd is None:
            return vars(self._load())
        remote = RemoteAnswer(self._answer_fd, self._give_up)
        remote.load(self._job["code"])
        module = RemoteModule(remote, self._job["used"])
        for name in ANSWER_MODULE_NAMES:
            sys.modules[name] = module
        return JoinedNames(remote)

    def _load(self) -> types.ModuleType:
        """The answer, loaded from a file, under every name that tests use for it."""
        path = self._answer.co_filename
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(self._job["code"])
        sys.path.insert(0, os.getcwd())
        spec = importlib.util.spec_from_file_location("answer", path)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        for name in ANSWER_MODULE_NAMES:
            sys.modules[name] = module
        # tests and an answer that stand in one file are the program
        sys.modules["__main__"] = module if self._job["is_joined"] else types.ModuleType("__main__")
        vars(module)["__builtins__"] = builtins
        if self._job["style"] == "pytest":
            self._marks = HarnessMarks()  # its plug-ins have changed by now what they change
        leave_recursion_depth(DEPTH_OF_A_TEST)
        exec(self._answer, vars(module))
        entry_point = self._job["entry_point"]
        if self._job["is_joined"] and entry_point.isidentifier() and entry_point not in vars(module):
            raise _MissingError(f"the answer does not define {entry_point}")
        return module

    def _give(self, names: dict[str, Any]) -> None:
        """Run what the case gives to answer and tests, as far as they have not bound it themselves."""
        for source, given in self._job["given"]:
            if any(name not in names and not hasattr(builtins, name) for name in given):
                exec(compile(source, self._file, "exec", dont_inherit=True), names)

    def _give_up(self, why: str) -> NoReturn:
        """End because something cannot be forwarded by value."""
        self._tell("odd", why)
        self._end(0)
        raise SystemExit

    def _tell_test(self, line: TestResultLine) -> None:
        message = line.message[:MAX_EXCEPTION_CHARS]
        self._tell("test", line.name, line.outcome, message, line.seconds, line.cause, line.undefined)

    def _tell(self, *message: Any) -> None:
        clean = [without_half_characters(each) if isinstance(each, str) else each for each in message]
        self._send([self._nonce, *clean])
