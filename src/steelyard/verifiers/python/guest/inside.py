"""Tests that need the answer's own objects, run beside it, and heard by a process that runs no line of the answer.

The process that is called here holds the tests and the results. It forks a session, which loads the answer and runs the
tests, each in a fork of its own; what comes back carries a secret. Tests are compiled from memory before the answer is
loaded and are in no file. An answer may do there whatever Python lets it do: its word is as good as that of any program
that is run with its tests, and its pass is `in-process`. Runs in a contained child of a zygote.
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
import resource
import select
import shutil
import signal
import struct
import sys
import time
import types

from steelyard.verifiers.python.guest.fairness import ComparisonJudge, all_types
from steelyard.verifiers.python.guest.harness_marks import HarnessMarks
from steelyard.verifiers.python.guest.new_interpreter import fork_by_default, leave_recursion_depth
from steelyard.verifiers.python.guest.runners import (
    StyleRunner,
    TestResultLine,
    empty_tests_module,
    received_job,
    run_pytest,
    run_unittest,
    undefined_name,
)
from steelyard.verifiers.python.guest.step_runner import OneProgramRunner, StepRunner, compiled_steps
from steelyard.verifiers.python.guest.test_names import ANSWER_MODULE_NAMES, StandIn
from steelyard.verifiers.python.guest.test_rewriter import repeatable_code, rewritten_code, with_functions
from steelyard.verifiers.python.guest.wire import MAX_EXCEPTION_CHARS, MessageSocket, death, exception_text

TYPE_CHECKING = False
if TYPE_CHECKING:
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
DEPTH_OF_A_TEST = 3
"""Frames between what loads an answer and a test of it."""
SESSION_EXIT_SECONDS = 0.005


def main(fds: list[int]) -> None:
    """Take an answer with its tests from a socket, run them, and report the result of each test."""
    engine, job = received_job(fds[0])
    began = time.perf_counter()
    answer = None
    if job["code"] is not None:
        try:
            answer = compile(job["code"], os.path.join(os.getcwd(), ANSWER_FILE), "exec", dont_inherit=True)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            engine.send(["not compiled", exception_text(error), getattr(error, "lineno", None)])
            os._exit(0)
    seconds = time.perf_counter() - began
    tests, packed = None, ""
    if not (job["steps"] and job["shares"]):  # those are compiled otherwise
        tests, packed = repeatable_code(lambda: compiled_tests(job), job["packed_tests"])
    engine.send(["compiled", seconds, packed])
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
    """The process that runs an answer and its tests."""

    def __init__(self, job: dict[str, Any], answer: types.CodeType | None, tests: Any, secret: str) -> None:
        self._job = job
        self._answer = answer
        self._tests = tests
        self._secret = secret
        self._write = os.write
        self._marks: HarnessMarks | None = None
        """What tests are run by, before the answer is loaded."""

    def run(self, *, is_apart: bool) -> None:
        """Load the answer, run its tests, and end."""
        job, end = self._job, os._exit
        self._folder = os.getcwd()
        # what a process prints is data too
        sys.stdout = sys.stderr = io.TextIOWrapper(
            io.FileIO(1, "w", closefd=False), "utf-8", "replace", write_through=True
        )
        os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
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
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            if steps is None:
                self._run_file(tests, is_apart=is_apart)
            elif wrong := steps.run(self._load(), self._tell_step):
                self.tell("raised", wrong)
        except BaseException as error:
            if name := undefined_name(error):
                self.tell("undefined", name)
            self.tell("raised", exception_text(error))
        self._judge.stay()
        self._tell_changes()
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
        # plug-ins of pytest have changed by now what they change
        self._marks = HarnessMarks() if self._job["style"] == "pytest" else MARKS
        leave_recursion_depth(DEPTH_OF_A_TEST)
        exec(self._answer, module.__dict__)
        return module

    def _run_file(self, code: Any, *, is_apart: bool) -> None:
        self._runner = runner = StyleRunner(self._judge, self._tell_test, is_apart=is_apart)
        module = empty_tests_module(self._job["tests"])

        is_loaded: list[bool] = []

        def loaded() -> types.ModuleType:
            is_loaded.append(True)
            names = vars(self._load())
            exec(code, module.__dict__)
            names.update((name, vars(module)[name]) for name in self._job["shares"] if name in vars(module))
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
        if self._runner.is_apart:  # the check at the end does not see what was changed in a fork
            self._tell_changes()
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

    def _tell_changes(self) -> None:
        """Say what of the test framework is not as it was; packages change some of it, too, so it accuses nobody."""
        if self._marks is not None and (changed := self._marks.first_change()):
            self.tell("changed", changed[:MAX_EXCEPTION_CHARS])

    def tell(self, *fields: str) -> None:
        """Send a message to the host, with the secret."""
        clean = [field.replace(FIELD_SEPARATOR, " ") for field in fields]
        body = FIELD_SEPARATOR.join([self._secret, *clean]).encode("utf-8", "replace")
        frame = struct.pack("I", len(body)) + body
        while frame:
            frame = frame[self._write(SESSION_FD, frame) :]


KNOWN_TYPES = all_types()
MARKS = HarnessMarks()
"""The state when this module is loaded: no answer has run yet in this process or in one that it was forked from."""
