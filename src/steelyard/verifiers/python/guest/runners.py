"""How the tests of each style are run beside an answer, in the process that has loaded it."""

from __future__ import annotations

import builtins
import contextlib
import os
import pathlib
import re
import sys
import threading
import time
import types
import unittest
import unittest.mock  # loaded before the answer is, so that its classes are known
from importlib import metadata
from typing import NamedTuple, Protocol

from steelyard.verifiers.python.guest.fairness import ComparisonJudge
from steelyard.verifiers.python.guest.test_rewriter import TESTS_FILE, file_of_tests
from steelyard.verifiers.python.guest.wire import (
    MAX_OPEN_FILES,
    MessageSocket,
    TestFailure,
    death,
    exception_text,
    failure_cause,
    shortage,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from steelyard.records import TestFailureCause

try:
    import pytest
    from _pytest import legacypath, terminal
    from _pytest.config import _prepareconfig
    from _pytest.runner import runtestprotocol

    HAS_PYTEST = True
    first = pytest.hookimpl(tryfirst=True)
    _RAISED = pytest.StashKey[list[BaseException]]()
    for _plugin in metadata.entry_points(group="pytest11"):
        if _plugin.name != "steelyard":
            # loaded before the answer is: some of them change pytest, and their changes are not the answer's
            with contextlib.suppress(Exception):
                _plugin.load()
    with contextlib.suppress(Exception):
        keeps_nothing: Any = types.SimpleNamespace(add_cleanup=id)
        legacypath.pytest_load_initial_conftests(keeps_nothing)
except ImportError:  # only files in pytest's style need it
    HAS_PYTEST = False

    def first(hook: Any) -> Any:
        """A hook that comes before those of other plug-ins; without pytest nobody calls it."""
        return hook


__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # a module has a dict there unless it is the first
"""The builtins of our functions, safe from temporary changes by an answer."""
TESTS_MODULE = "test_answer"
NEEDS_TESTS_MODULE_PATTERN = re.compile(
    r"pickle|shelve|test_answer|sys\.modules|multiprocessing|ProcessPool|\{__name__\}|__name__ ?[+%]"
)
"""Tests that must be found by the name of their module; the others are not found."""
PYTEST_OPTIONS = (
    # an empty file of settings; without one pytest would look around for it
    *("-s", "--noconftest", "-c", os.devnull, "--assert=plain", "-p", "no:terminal"),
    *("-p", "no:legacypath", "-p", "no:faulthandler"),
    # ours is for tests of models; here its package cannot be read
    *("-p", "no:steelyard"),
)
OPTIONAL_PYTEST_PLUGINS = {"cacheprovider": re.compile(r"\bcache\b"), "junitxml": re.compile(r"\brecord_\w")}
"""Plug-ins of pytest that take time, and the fixtures for which a file needs them."""
LEGACY_PATHS_PATTERN = re.compile(r"\btmpdir|\bfspath\b")
OUTPUT_OPTIONS_PATTERN = re.compile(r"config\b")


def received_job(fd: int) -> tuple[MessageSocket, dict[str, Any]]:
    """The socket of a guest that runs tests, and its job; a guest that lacks what the tests need ends here."""
    engine = MessageSocket(fd, lenient=True)
    job = engine.receive()[0]
    if job["style"] != "pytest":
        end_session()
    if job["style"] == "pytest" and not HAS_PYTEST:
        engine.send(["unable", "pytest is not installed in the environment that the case names"])
        os._exit(0)
    return engine, job


class TestResultLine(NamedTuple):
    """How one test went."""

    name: str
    outcome: str
    """`passed`, `failed`, `expected` (it failed, as its file says that it will), `skipped` or `declined`: the test itself,
    while it ran, decided that it has nothing to say."""
    message: str
    seconds: float
    cause: TestFailureCause = ""
    undefined: str = ""
    """An undefined name that the tests use."""


class TestRunner(Protocol):
    """Runs the tests that pytest finds."""

    def expect(self, count: int) -> None:
        """Hear how many tests there are, before the first one is run."""

    def run(self, name: str, test: Callable[[], tuple[str, str]]) -> None:
        """Run one test and report its result."""

    def is_answers(self, error: BaseException) -> bool:
        """Whether an exception came out of the answer."""

    def note_error(self, error: BaseException) -> None:
        """Hear of an exception that failed a test."""

    def finish(self) -> None:
        """Hear that all tests have been run, before pytest cleans up."""


class StyleRunner:
    """Runs tests, each in a process of its own or all in this one."""

    def __init__(self, judge: ComparisonJudge, tell: Callable[[TestResultLine], None], *, is_apart: bool) -> None:
        self.judge = judge
        self._tell = tell
        self.is_apart = is_apart
        self._fork, self._wait, self._exit, self._getpid = os.fork, os.wait4, os._exit, os.getpid
        self._clock = time.perf_counter
        self._undefined = ""
        self._cause: TestFailureCause = ""
        """What failed the test that runs."""
        self._shortage = ""

    def expect(self, count: int) -> None:
        """A single test is apart from all others in this process."""
        self.is_apart = self.is_apart and count != 1

    def run(self, name: str, test: Callable[[], tuple[str, str]]) -> None:
        """Run one test and report its result."""
        if not self.is_apart:
            self._run_here(name, test)
            return
        child = self._fork()
        if child == 0:
            try:
                self.judge.process = self._getpid()
                self._run_here(name, test)
            finally:
                self._exit(0)
        try:
            _, status, used = self._wait(child, 0)
            end = death(status, used) if status else None
        except ChildProcessError:
            # an answer may ignore its children, or wait for all of them: the next session, in one process, decides
            end = TestFailure("the answer has waited for the process of this test", "death")
        if end is not None:
            self._tell(TestResultLine(name, "failed", end.text, 0.0, end.cause))

    def is_answers(self, error: BaseException) -> bool:
        """Whether a skip came out of the answer."""
        return self.judge.has_foreign_code(error.__traceback__)

    def note_error(self, error: BaseException) -> None:
        """Remember what failed a test, and an undefined name that the tests themselves use."""
        self._undefined = self._undefined or undefined_name(error)
        is_answers = self.judge.has_answers_code(error.__traceback__)
        self._cause = self._cause or failure_cause(error, is_answers=is_answers)
        self._shortage = self._shortage or shortage(error)

    def finish(self) -> None:
        """Let pytest clean up."""

    def _run_here(self, name: str, test: Callable[[], tuple[str, str]]) -> None:
        began = self._clock()
        self._cause = self._shortage = ""
        try:
            outcome, message = test()
            message += self._shortage
        except BaseException as error:
            self.note_error(error)
            outcome, message = "failed", exception_text(error)
        self.judge.stay()
        hidden = self.judge.hidden_failure()
        if outcome == "passed" and hidden:
            outcome, message, self._cause = "failed", hidden, "comparison"
        self._tell(TestResultLine(name, outcome, message, self._clock() - began, self._cause, self._undefined))


def undefined_name(error: BaseException) -> str:
    """The undefined name that code of the tests used, if that was the error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if type(error) is not NameError or trace is None or trace.tb_frame.f_code.co_filename != TESTS_FILE:
        return ""
    return str(error.name)


def empty_tests_module(source: str) -> types.ModuleType:
    """The tests as a module that no answer finds, with builtins that no answer changes."""
    module = types.ModuleType(TESTS_MODULE)
    module.__file__ = file_of_tests(source)
    module.__dict__["__builtins__"] = dict(vars(builtins))
    if NEEDS_TESTS_MODULE_PATTERN.search(source):
        sys.modules[TESTS_MODULE] = module
    return module


def run_unittest(runner: StyleRunner, module: types.ModuleType) -> None:
    """Run the tests that unittest finds in a module, and also functions test_*."""
    tests = list(_cases_in(unittest.TestLoader().loadTestsFromModule(module)))
    functions = {
        name: function
        for name, function in vars(module).items()
        if name.startswith("test") and isinstance(function, types.FunctionType) and not function.__code__.co_argcount
    }
    runner.expect(len(tests) + len(functions))
    order = None if runner.is_apart else CaseOrder(tests)
    for test in tests:
        runner.run(_case_name(test), _unittest_call(test, module, runner, order))
    for name, function in functions.items():
        runner.run(name, _function_call(function, runner.judge))


def _cases_in(suite: Any) -> Iterator[Any]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _cases_in(test)
        else:
            yield test


def _case_name(test: Any) -> str:
    method = getattr(test, "_testMethodName", "")
    return f"{type(test).__qualname__}.{method}" if method else str(test.id())


class SkipNotingResult(unittest.TestResult):
    """Knows whether a test was skipped by its own code."""

    def __init__(self, runner: StyleRunner) -> None:
        super().__init__()
        self._runner = runner
        self.is_declined = False

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802  the name is unittest's
        error = sys.exc_info()[1]
        self.is_declined = error is not None and not self._runner.is_answers(error)
        super().addSkip(test, reason)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self._runner.note_error(err[1])
        super().addError(test, err)

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self._runner.note_error(err[1])
        super().addFailure(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self._runner.note_error(err[1])
        super().addSubTest(test, subtest, err)


class CaseOrder:
    """Where each test stands among all of them, so that classes and the file are set up once."""

    def __init__(self, tests: list[Any]) -> None:
        self._tests = tests
        self._previous: Any = None

    def begin(self, test: Any, result: Any) -> tuple[bool, bool]:
        """Whether a test is the first one, and whether it is the last: what a class tears down waits for that."""
        is_first, is_last = self._previous is None, test is self._tests[-1]
        result._previousTestClass, result._testRunEntered = self._previous, not is_last
        self._previous = type(test)
        return is_first, is_last


def _unittest_call(
    test: Any, module: types.ModuleType, runner: StyleRunner, order: CaseOrder | None
) -> Callable[[], tuple[str, str]]:
    def call() -> tuple[str, str]:
        result = SkipNotingResult(runner)
        is_first, is_last = order.begin(test, result) if order else (True, True)
        # unittest itself looks for them in the module's name, which cannot be found
        set_up, tear_down = (
            None if TESTS_MODULE in sys.modules else getattr(module, name, None)
            for name in ("setUpModule", "tearDownModule")
        )
        if set_up is not None and is_first:
            try:
                set_up()
            except unittest.SkipTest as skipped:
                return "skipped", str(skipped)
        suite = unittest.TestSuite([test])
        suite.run(result)
        if tear_down is not None and is_last:
            tear_down()
        return _unittest_outcome(result)

    return call


def _unittest_outcome(result: SkipNotingResult) -> tuple[str, str]:
    for _, trace in (*result.failures, *result.errors):
        return "failed", trace.strip().splitlines()[-1]
    if result.unexpectedSuccesses:
        return "failed", "passed, although it is expected to fail"
    if result.skipped:
        return "declined" if result.is_declined else "skipped", str(result.skipped[0][1])
    if result.expectedFailures:
        return "expected", "failed, as expected"
    return ("passed", "") if result.testsRun == 1 else ("failed", "did not run as a test")


def _function_call(function: Any, judge: ComparisonJudge) -> Callable[[], tuple[str, str]]:
    def call() -> tuple[str, str]:
        try:
            function()
        except unittest.SkipTest as skipped:
            is_own = not judge.has_foreign_code(skipped.__traceback__)
            return "declined" if is_own else "skipped", str(skipped)
        return "passed", ""

    return call


def _rarely_needed_parts(source: str) -> Any:
    """A plug-in with what a few files need of those that are switched off: fixtures of old paths, options of what is printed."""

    def pytest_addoption(parser: Any) -> None:
        if OUTPUT_OPTIONS_PATTERN.search(source):
            terminal.pytest_addoption(parser)

    def pytest_configure(config: Any) -> None:
        if LEGACY_PATHS_PATTERN.search(source):
            legacypath.pytest_configure(config)

    last = pytest.hookimpl(trylast=True)
    return types.SimpleNamespace(pytest_addoption=pytest_addoption, pytest_configure=last(pytest_configure))


def _item_outcome(item: Any, nextitem: Any, file: PytestFile) -> tuple[str, str]:
    """Run one test of pytest's; how it went."""
    outcome, message = _pytest_outcome(runtestprotocol(item, log=False, nextitem=nextitem))
    raised = item.stash[_RAISED]
    if outcome == "expected" and any(
        isinstance(error, pytest.xfail.Exception) and file.runner.is_answers(error) for error in raised
    ):
        return "failed", message
    if outcome == "failed" and file.is_without_answer and item.get_closest_marker("xfail") is not None:
        # the mark may name an exception that only an answer raises
        return "expected", message
    is_own = outcome == "skipped" and raised and not any(map(file.runner.is_answers, raised))
    return "declined" if is_own else outcome, message


class PytestFile(NamedTuple):
    """A file of tests that pytest runs."""

    runner: TestRunner
    load: Callable[[], types.ModuleType]
    hidden: tuple[type, ...]
    """Types whose values are not tests."""
    is_without_answer: bool


class MemoryPlugin:
    """Collects from memory, and hears how each test went."""

    file: PytestFile

    def __init__(self) -> None:
        self.problem = ""
        """Why the file cannot be loaded."""
        self._failed_parts: list[str] = []
        plugin = self

        class MemoryModule(pytest.Module):
            """A module of tests that is in no file."""

            def _getobj(self) -> Any:
                return plugin.file.load()

            def collect(self) -> Any:
                names = vars(self.obj)
                kept = {name: value for name, value in names.items() if isinstance(value, plugin.file.hidden)}
                for name in kept:
                    del names[name]
                try:
                    return list(super().collect())
                finally:
                    names.update(kept)

        self._module = MemoryModule

    def pytest_collection(self, session: Any) -> bool:
        session.config.option.tbstyle = "line"
        from_memory = self._module.from_parent(session, path=session.path / TESTS_FILE)
        session.items = list(session.genitems(from_memory))
        session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=session.items)
        session.testscollected = len(session.items)
        self.file.runner.expect(len(session.items))
        return True

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome == "failed":
            self.problem = _last_line(report)
            raise pytest.UsageError(self.problem)
        if report.outcome == "skipped":
            self.file.runner.run("the file", lambda: ("skipped", _last_line(report)))

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        name = item.nodeid.partition("::")[2].replace("::", ".")
        item.stash[_RAISED] = []

        def call() -> tuple[str, str]:
            del self._failed_parts[:]
            outcome, message = _item_outcome(item, nextitem, self.file)
            return (
                ("failed", self._failed_parts[0]) if self._failed_parts and outcome == "passed" else (outcome, message)
            )

        self.file.runner.run(name, call)
        return True

    @first
    def pytest_sessionfinish(self) -> None:
        self.file.runner.finish()

    def pytest_runtest_logreport(self, report: Any) -> None:
        # subtests are reported here, and their test continues
        if report.outcome == "failed":
            self._failed_parts.append(_last_line(report))

    # before pytest makes its own exception of a unittest.SkipTest, and forgets where that came from
    @first
    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is not None:
            self.file.runner.note_error(call.excinfo.value)
        if call.excinfo is not None and call.when == "call":
            item.stash[_RAISED].append(call.excinfo.value)


def run_pytest(
    runner: TestRunner,
    load: Callable[[], types.ModuleType],
    source: str,
    hidden: tuple[type, ...] = (),
    *,
    is_without_answer: bool = False,
) -> None:
    """Run the tests that pytest finds in a module, and in no other file; values of hidden types are not tests."""
    plugin, session = _SESSIONS.pop() if is_begun_for(source) else (MemoryPlugin(), None)
    plugin.file = PytestFile(runner, load, hidden, is_without_answer)
    if session is not None:
        status = _session_status(session)
    else:
        end_session()
        unneeded = [name for name, use in OPTIONAL_PYTEST_PLUGINS.items() if not use.search(source)]
        status = pytest.main(_pytest_options(unneeded), plugins=[plugin, _rarely_needed_parts(source)])
    if status not in (0, 1, 5):
        raise RuntimeError(plugin.problem or f"pytest ended with {int(status)}")


def is_begun_for(source: str) -> bool:
    """Whether a session that this file of tests needs was begun before there was an answer."""
    rare = (*OPTIONAL_PYTEST_PLUGINS.values(), LEGACY_PATHS_PATTERN, OUTPUT_OPTIONS_PATTERN)
    return bool(_SESSIONS) and not any(use.search(source) for use in rare)


def end_session() -> None:
    """Undo what a session changed outside of pytest, where nobody needs it."""
    while _SESSIONS:
        _SESSIONS.pop()[1].config._ensure_unconfigure()


def _session_status(session: Any) -> int:
    """Run the tests of a session that has begun, as pytest does it otherwise; the process ends after it."""
    config = session.config
    session.path = session._bestrelpathcache.path = config._rootpath = pathlib.Path.cwd()
    config.invocation_params = type(config).InvocationParams(args=(), plugins=None, dir=config._rootpath)
    os.environ["PYTEST_VERSION"] = pytest.__version__  # as pytest.main does
    session.exitstatus = 3
    try:
        config.hook.pytest_collection(session=session)
        config.hook.pytest_runtestloop(session=session)
        session.exitstatus = 1 if session.testsfailed else 0 if session.testscollected else 5
    except session.Failed:
        session.exitstatus = 1
    except (KeyboardInterrupt, pytest.exit.Exception):
        session.exitstatus = 2
    except pytest.UsageError:
        session.exitstatus = 4
    finally:
        os.chdir(session.startpath)
        config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)
    return int(session.exitstatus)


def _pytest_options(unneeded: Iterable[str]) -> list[str]:
    return [*PYTEST_OPTIONS, *(f"-pno:{name}" for name in unneeded), "--rootdir", os.getcwd()]


def _usual_sessions() -> list[tuple[MemoryPlugin, Any]]:
    """The session of pytest that most files need, begun before there is an answer: that is most of what pytest does for a short file.

    Empty if pytest, in the version or with the plug-ins of its environment, has to begin it later: no answer may share an open
    file with another, and no thread would be there after a fork.
    """
    if not HAS_PYTEST:
        return []
    before = _open_files()
    config = None
    with contextlib.suppress(BaseException):
        plugin = MemoryPlugin()
        config = _prepareconfig(_pytest_options(OPTIONAL_PYTEST_PLUGINS), plugins=[plugin])
        session = pytest.Session.from_config(config)
        config._do_configure()
        config.hook.pytest_sessionstart(session=session)
        log: Any = config.pluginmanager.get_plugin("logging-plugin")
        log.log_file_handler.stream.close()
        log.log_file_handler.stream = None  # opened again by the first message
        if _open_files() == before and threading.active_count() == 1:
            return [(plugin, session)]
    if config is not None:
        with contextlib.suppress(BaseException):
            config._ensure_unconfigure()
    return []


def _open_files() -> list[int]:
    """The open descriptors of this process, by asking for each: there need not be a /proc."""
    found = []
    for number in range(MAX_OPEN_FILES):
        with contextlib.suppress(OSError):
            os.fstat(number)
            found.append(number)
    return found


_SESSIONS = _usual_sessions()
"""One at most, with our plug-in: a process of tests takes it."""


def _pytest_outcome(reports: Any) -> tuple[str, str]:
    outcome, message = "passed", ""
    for report in reports:
        if report.outcome == "failed":
            return "failed", _last_line(report)
        if report.outcome == "skipped":
            outcome = "expected" if hasattr(report, "wasxfail") else "skipped"
            message = _last_line(report)
    return outcome, message


def _last_line(report: Any) -> str:
    shown = report.longrepr
    crash = getattr(shown, "reprcrash", None)
    text = str(crash.message if crash else shown[2] if isinstance(shown, tuple) else shown)
    return text.strip()
