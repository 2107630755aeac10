"""A file of tests for unittest or pytest, run by its own runner in a process that runs no line of the answer.

The file imports a proxy module as the answer: its functions and classes are asked over a socket. Runs
in a contained child of a zygote of its own, like the referee of single statements.
"""

from __future__ import annotations

import ast
import builtins
import functools
import os
import sys
import time
import types
import unittest

from steelyard.verifiers.python.guest.referee import (
    COMPARISON_NAME,
    RESERVED_TEST_NAMES,
    THREAD_NAMES,
    WatchedComparisons,
    caught_failure,
    compared,
    cpu_limit,
    decoded_constant,
    forked_for_answer,
    is_equal_or_says,
    leave_to_others,
    load_candidate,
    says_otherwise,
    watch_identity,
)
from steelyard.verifiers.python.guest.remote import WORDS_OF_ENDING, RefereePeer, RemoteObject, put
from steelyard.verifiers.python.guest.runners import TESTS_MODULE, received_job, run_pytest
from steelyard.verifiers.python.guest.test_names import (
    ANSWER_MODULE_NAMES,
    asserting_functions,
    has_own_claims,
    is_star_import,
    looked_up_names,
    take_names,
    wanted_names,
)
from steelyard.verifiers.python.guest.test_rewriter import EQUALITY_ASSERTIONS, TESTS_FILE, file_of_tests
from steelyard.verifiers.python.guest.wire import (
    MAX_EXCEPTION_CHARS,
    MessageSocket,
    TestFailure,
    catches_all,
    exception_text,
    failure_cause,
    is_pytest_outcome,
    may_catch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from steelyard.records import TestFailureCause

BOTH_SIDES_NAME, STAR_IMPORT_NAME = "__steelyard_both_sides__", "__steelyard_star_import__"
CHANGING_TYPES = (list, dict, set, bytearray)
"""Plain data that the answer can change after the tests have imported it by name."""


class FileRefereePeer(RefereePeer):
    """A referee's end of the connection that knows what means something to a runner."""

    is_steered = False
    """Whether the answer raised something that tells unittest how a test ended."""
    is_stopped = False
    """Whether that was what only unittest itself raises."""

    def request(self, deed: str, positional: Any, named: dict[str, Any], *more: Any) -> Any:
        try:
            return super().request(deed, positional, named, *more)
        except Exception as error:
            self.is_steered |= any(above.__module__.partition(".")[0] == "unittest" for above in type(error).__mro__)
            self.is_stopped |= self.is_steered and not isinstance(error, unittest.SkipTest)
            raise


class AnswerModule(types.ModuleType):
    """A proxy of the answer: functions and classes are handles, and plain data is fetched whenever tests read it."""

    def __init__(self, peer: RefereePeer, found: dict[str, Any]) -> None:
        super().__init__("answer")
        lasting = (RemoteObject, type, types.ModuleType)
        self.__dict__.update({name: value for name, value in found.items() if isinstance(value, lasting)})
        # a star import does not change what means something without the answer
        self.__dict__["__all__"] = [name for name in found if not name.startswith("_") and not hasattr(builtins, name)]
        self.__dict__["_fetched"] = {}
        self.__dict__["_peer"] = peer

    def __getattr__(self, name: str) -> Any:
        peer: RefereePeer = self.__dict__["_peer"]
        missing = AttributeError(f"module 'answer' has no attribute {name!r}", name=name, obj=self)
        if name in ("__path__", "__wrapped__"):
            raise missing  # what imports and runners ask of every module
        peer.requests += 1
        peer.traffic.is_data_only = False
        outcome, held, _, narrowed, *_ = peer.ask("globals", [name], [])
        if outcome != "ok":
            peer.crossed &= not narrowed  # it may be there, and too large
            raise missing
        was, value = self.__dict__["_fetched"].get(name, (None, None))
        if was != held:
            try:
                value = decoded_constant(peer, held)[name]
            except Exception as error:
                raise peer.gone(exception_text(error)) from None
            self.__dict__["_fetched"][name] = (held, value)
        # what the tests do to it, the answer does not see
        peer.crossed = False
        return value

    def __dir__(self) -> list[str]:
        peer: RefereePeer = self.__dict__["_peer"]
        peer.crossed, peer.own_word, peer.traffic.is_data_only = False, True, False
        return list(self.__dict__["__all__"])


class WatchedAssertions(WatchedComparisons):
    """Puts a look at the answer's changes between the two sides of what unittest compares, too."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:  # noqa: N802  the name is ast's
        if not is_star_import(node):
            return node
        scope = ast.Call(ast.Name("globals", ast.Load()), [], [])
        taken = ast.Expr(ast.Call(ast.Name(STAR_IMPORT_NAME, ast.Load()), [scope], []))
        return ast.fix_missing_locations(ast.copy_location(taken, node))

    def visit_Call(self, node: ast.Call) -> ast.Call:  # noqa: N802  the name is ast's
        super().visit_Call(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in EQUALITY_ASSERTIONS and len(node.args) >= 2 and is_movable(node.args[:2]):
            sides = deferred_call(BOTH_SIDES_NAME, *node.args[:2])
            node.args[:2] = [ast.Starred(value=sides, ctx=ast.Load())]
        elif name == "assertTrue" and node.args and isinstance(node.args[0], ast.Compare):
            test = node.args[0]
            if len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq) and is_movable([test]):
                node.args[0] = deferred_call(COMPARISON_NAME, test.left, test.comparators[0])
        return ast.fix_missing_locations(node)


def is_movable(sides: list[Any]) -> bool:
    """Whether these expressions mean the same in a function of their own."""
    kept = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Starred)
    nodes = [node for side in sides for node in ast.walk(side)]
    return not any(isinstance(node, kept) or (isinstance(node, ast.Name) and node.id == "super") for node in nodes)


def deferred_call(function: str, left: ast.expr, right: ast.expr) -> ast.Call:
    """A call with one side of a comparison, and with a function that computes the other one."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Call(ast.Name(function, ast.Load()), [left, ast.Lambda(args=nothing, body=right)], [])


class RefereedFile:
    """One file of tests, for one answer."""

    def __init__(self, engine: MessageSocket, fd: int, job: dict[str, Any]) -> None:
        self._engine = engine
        self._fd = fd
        self._job = job
        tree = ast.parse(job["source"], TESTS_FILE)
        self._code = compile(WatchedAssertions().visit(tree), TESTS_FILE, "exec", dont_inherit=True)
        self._names = set(looked_up_names([self._code])) - RESERVED_TEST_NAMES
        plain_tree = ast.parse(job["source"])
        self._wanted = sorted(self._names & wanted_names([plain_tree]))
        """What the answer is told of its tests."""
        self._asserting = asserting_functions([plain_tree])
        self._may_catch, self._catches_all = may_catch(job["source"]), catches_all(job["source"])
        self._prepared = (True, False)
        self._result: dict[str, Any] = {"tests": []}
        self._began = 0.0
        self._requests = 0
        """What had been asked of the answer when the test that runs began."""
        self._cause: TestFailureCause = ""
        """What failed the test that runs."""
        self._shares_process: bool = job["shares_process"]
        self._cpu_limit = cpu_limit(job["seconds"])
        self._peer: FileRefereePeer

    def judge_answers(self) -> NoReturn:
        """Judge answers, each in a fork, until no more come."""
        try:
            if self._job["style"] == "pytest":
                # it forks when pytest is ready; looking for tests must not ask anything of the answer's objects
                run_pytest(self, self.load, self._job["source"], (RemoteObject,))
            else:
                self._run_unittest(self.load())
        except BaseException as error:
            if not hasattr(self, "_peer"):
                self._engine.send(["unable", exception_text(error)])
                os._exit(0)
            self._break(error)
        self._finish()

    def _finish(self, **more: Any) -> NoReturn:
        self._peer.settle()
        if self._peer.lost:
            more = {"gone": True, "crossed": self._peer.crossed and not self._shares_process, **more}
        self._engine.send([{**self._result, **self._peer.summary(), **more}])
        os._exit(0)

    def finish(self) -> NoReturn:
        """Report, when the last test is done."""
        self._finish()

    def load(self) -> types.ModuleType:
        """The tests, loaded against one answer, in a process of their own."""
        self._peer = peer = FileRefereePeer(forked_for_answer(self._engine, self._fd, self._cpu_limit))
        peer.always_describes = bool(THREAD_NAMES & self._names)
        peer.give_up = lambda: leave_to_others(
            self._engine, any(outcome == "failed" for _, outcome, *_ in self._result["tests"])
        )
        peer.asserting = self._asserting
        self._result["output"] = peer.output
        code, peer.withholds = self._engine.receive()
        module = types.ModuleType(TESTS_MODULE)
        watch_identity(peer, set(looked_up_names([self._code])), vars(module))
        found = load_candidate(peer, code, self._wanted, self._result)
        if found is None:
            self._finish()
        if self._is_inseparable(found):
            self._finish(beside=True)
        for name in self._job["helpers"]:
            if isinstance(found.get(name), RemoteObject):
                put(found[name], "_helps", True)
        answer = AnswerModule(peer, found)
        sys.modules.update(dict.fromkeys(ANSWER_MODULE_NAMES, answer))
        handed = any(isinstance(found.get(name), RemoteObject) for name in self._job["handed"])
        self._shares_process |= handed
        peer.crossed, peer.own_word = True, False
        sys.modules[TESTS_MODULE] = module
        module.__file__ = file_of_tests(self._job["source"])
        vars(module)[COMPARISON_NAME] = lambda left, right: is_equal_or_says(peer, left, right)
        vars(module)[BOTH_SIDES_NAME] = self._both_sides
        vars(module)[STAR_IMPORT_NAME] = functools.partial(take_names, answer, vars(answer)["__all__"])
        constants = self._job["constants"].items()
        is_own_word = any(name in found and says_otherwise(found[name], text) for name, text in constants)
        is_own_word |= has_own_claims(found, self._job["claims"])
        # unittest would let a function of the answer's say what is equal
        is_own_word |= handed and "addTypeEqualityFunc" in self._names
        try:
            for source in self._job["imports"]:
                exec(source, vars(module))
            exec(self._code, vars(module))
        except BaseException as error:
            if is_skip(error):
                raise
            self._break(error)
            self._finish()
        self._result["asked_at_load"] = bool(peer.requests)
        self._prepared = (peer.crossed, peer.own_word or is_own_word)
        return module

    def _is_inseparable(self, found: dict[str, Any]) -> bool:
        """Whether the tests use names of the answer that mean something else here, or data that would not stay the same."""
        public = {name: value for name, value in found.items() if not name.startswith("_")}
        taken = [name for name, value in public.items() if not isinstance(value, types.ModuleType)]
        if self._job["has_star_import"] and any(hasattr(builtins, name) for name in taken):
            return True
        return any(isinstance(found.get(name), CHANGING_TYPES) for name in self._job["imported"])

    def _break(self, error: BaseException) -> None:
        """Note what keeps the tests from being run at all."""
        if isinstance(error, ImportError) and "said" not in error.__dict__ and error.name not in ANSWER_MODULE_NAMES:
            self._finish(unable=f"the tests need {error.name or error}, which is not installed here")
        self._note_undefined(error)
        if not self._peer.lost:
            self._result["raised"] = exception_text(error)
            self._result["crossed"] = self._peer.crossed and not self._shares_process

    def _note_undefined(self, error: BaseException) -> None:
        if type(error) is NameError and "said" not in error.__dict__:
            self._result.setdefault("undefined", []).append(str(error.name))

    def _both_sides(self, left: Any, right_side: Callable[[], Any]) -> tuple[Any, Any]:
        if not self._peer.changed:
            return left, right_side()
        is_equal, right = compared(self._peer, left, right_side)
        # almost equal to something that the answer had a say in
        self._peer.own_word |= not is_equal
        return left, right

    def begin(self) -> None:
        """Note that a test begins; what came between two tests counts for all that come after it."""
        peer = self._peer
        crossed, own_word = self._prepared
        self._prepared = (crossed and peer.crossed, own_word or peer.own_word)
        peer.crossed, peer.own_word = self._prepared
        peer.stopped, peer.is_steered = "", False
        self._requests = peer.requests
        peer.caught.clear()
        self._cause = ""
        if peer.stdout.tell():
            peer.stdout.seek(0)
            peer.stdout.truncate()
        self._began = time.perf_counter()

    def _may_expect(self, stopped: str) -> bool:
        return self._catches_all or not WORDS_OF_ENDING[stopped].isdisjoint(self._names)

    def end(self, name: str, outcome: str, message: str) -> None:
        """Note how a test went."""
        peer = self._peer
        if outcome == "passed" and peer.stopped and not self._may_expect(peer.stopped):
            outcome, message, self._cause = "failed", f"{peer.stopped}: raised by the answer", "computation"
        caught = caught_failure(peer, self._may_catch) if outcome == "passed" else TestFailure()
        if caught.text:
            outcome, message, self._cause = "failed", caught.text, caught.cause
        if outcome != "failed" and peer.is_steered:
            outcome, message, self._cause = "failed", "the answer raised an exception of unittest's own", "exception"
            peer.crossed = peer.is_stopped
        is_apart = not (peer.keeps_arguments or peer.is_diverged or self._shares_process)
        crossed = (peer.crossed and is_apart) or bool(peer.stopped)
        if peer.lost:
            # nor does a test pass that swallowed the end of the answer together with its exceptions
            self._finish()
        own_word = peer.own_word or peer.catches_assertions or bool(peer.stopped)
        own_word |= peer.identities is not None and peer.identities.has_met_objects
        # a test that is skipped after it has asked the answer may be skipped because of what that said
        own_word |= outcome in ("skipped", "declined") and peer.requests != self._requests
        seconds = time.perf_counter() - self._began
        said = message[:MAX_EXCEPTION_CHARS]
        self._result["tests"].append([name, outcome, said, self._cause, seconds, crossed, own_word])
        peer.crossed, peer.own_word = self._prepared

    def expect(self, count: int) -> None:
        """All of them run in the process that was made for one answer."""

    def is_answers(self, error: BaseException) -> bool:
        """Whether an exception came out of the answer."""
        return "said" in error.__dict__

    def run(self, name: str, test: Callable[[], tuple[str, str]]) -> None:
        """Run one test of pytest's, or a function."""
        self.begin()
        try:
            outcome, message = test()
        except BaseException as error:
            self.note_error(error)
            outcome, message = "failed", exception_text(error)
        self.end(name, outcome, message)

    def note_error(self, error: BaseException) -> None:
        """Hear of an exception that failed a test."""
        self._note_undefined(error)
        self._cause = self._cause or failure_cause(error, is_answers=self.is_answers(error))

    def _run_unittest(self, module: types.ModuleType) -> None:
        """Run the tests that unittest finds in a module, and also functions test_*."""
        unittest.TestLoader().loadTestsFromModule(module).run(RefereedResult(self))
        functions = {name: one for name, one in vars(module).items() if isinstance(one, types.FunctionType)}
        for name, function in functions.items():
            if name.startswith("test") and not function.__code__.co_argcount:
                self.run(name, functools.partial(called, function, self))

    def note_broken_class(self, error: BaseException) -> None:
        """Hear that the tests of a class, or of the file, will not run."""
        if not is_skip(error) or self.is_answers(error):
            self._break(error)


def called(function: Callable[[], object], file: RefereedFile) -> tuple[str, str]:
    """How a test went that is a plain function."""
    try:
        function()
    except unittest.SkipTest as skipped:
        return "skipped" if file.is_answers(skipped) else "declined", str(skipped)
    return "passed", ""


def is_skip(error: BaseException) -> bool:
    """Whether tests say that they are not for here."""
    return isinstance(error, unittest.SkipTest) or is_pytest_outcome(error)


class RefereedResult(unittest.TestResult):
    """Hears from unittest how each test goes."""

    def __init__(self, file: RefereedFile) -> None:
        super().__init__()
        self._file = file
        self._outcome = ("", "")
        self._is_failed = False

    def startTest(self, test: Any) -> None:  # noqa: N802  the names are unittest's
        super().startTest(test)
        self._outcome = ("failed", "it did not come to its end")
        self._is_failed = False
        self._file.begin()

    def stopTest(self, test: Any) -> None:  # noqa: N802
        super().stopTest(test)
        method = getattr(test, "_testMethodName", "")
        self._file.end(f"{type(test).__qualname__}.{method}" if method else str(test.id()), *self._outcome)

    def _fail(self, test: Any, error: BaseException) -> None:
        self._file.note_error(error)
        if not isinstance(test, unittest.TestCase):
            self._file.note_broken_class(error)
        elif not self._is_failed:
            self._is_failed = True
            self._outcome = ("failed", exception_text(error))

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self._fail(test, err[1])

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self._fail(test, err[1])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802, ARG002
        if err is not None:
            self._fail(test, err[1])

    def addSuccess(self, test: Any) -> None:  # noqa: N802, ARG002
        if not self._is_failed:
            self._outcome = ("passed", "")

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802, ARG002
        error = sys.exc_info()[1]
        if not self._is_failed:
            self._outcome = ("skipped" if error is None or self._file.is_answers(error) else "declined", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802, ARG002
        self._outcome = ("expected", "failed, as expected")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802, ARG002
        self._outcome = ("failed", "passed, although it is expected to fail")


def main(fds: list[int]) -> None:
    """Take a file of tests from a socket, then judge one answer after the other with it, each in a fork."""
    engine, job = received_job(fds[0])
    RefereedFile(engine, fds[0], job).judge_answers()
