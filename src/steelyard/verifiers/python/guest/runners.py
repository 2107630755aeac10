"""How unittest and pytest run the tests of a file, in this process, and what they say of each."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import threading
import time
import types
import unittest
import unittest.mock  # loaded before the answer is: it belongs to what runs the tests
from importlib import metadata

from steelyard.verifiers.python.guest.remote import RemoteFunction
from steelyard.verifiers.python.guest.steps import TestResultLine, result_line
from steelyard.verifiers.python.guest.wire import MAX_OPEN_FILES, TESTS_FILE, TestFailure, raised_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

try:
    import pytest
    from _pytest import legacypath, terminal
    from _pytest.config import _prepareconfig
    from _pytest.runner import runtestprotocol

    HAS_PYTEST = True
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


def run_unittest(module: types.ModuleType, tell: Callable[[TestResultLine], None]) -> None:
    """Run the tests that unittest finds in a module, and also functions test_*."""
    result = TellingResult(tell)
    unittest.TestLoader().loadTestsFromModule(module).run(result)
    functions = {
        name: function
        for name, function in vars(module).items()
        if name.startswith("test") and isinstance(function, types.FunctionType) and not function.__code__.co_argcount
    }
    for name, function in functions.items():
        began = time.perf_counter()
        try:
            function()
            line = result_line(name, TestFailure(), began)
        except unittest.SkipTest as skipped:
            line = TestResultLine(name, "skipped", str(skipped), 0.0)
        except BaseException as error:
            line = result_line(name, raised_failure(error), began)
        tell(line)


class TellingResult(unittest.TestResult):
    """Tells how each test went when it is over."""

    def __init__(self, tell: Callable[[TestResultLine], None]) -> None:
        super().__init__()
        self._tell = tell
        self._running: Any = None
        self._outcome = ""
        self._failure = TestFailure()
        self._began = 0.0

    def startTest(self, test: Any) -> None:  # noqa: N802  the names are unittest's
        super().startTest(test)
        self._running, self._outcome = test, ""
        self._failure = TestFailure("interrupted before it had a result", "exception")
        self._began = time.perf_counter()

    def stopTest(self, test: Any) -> None:  # noqa: N802
        super().stopTest(test)
        self._report(test)
        self._running = None

    def _report(self, test: Any) -> None:
        method = getattr(test, "_testMethodName", "")
        name = f"{type(test).__qualname__}.{method}" if method else str(test.id())
        seconds = time.perf_counter() - self._began
        self._tell(TestResultLine(name, self._outcome or "failed", self._failure.text, seconds, *self._failure[1:]))

    def _note(self, test: Any, outcome: str, failure: TestFailure) -> None:
        if self._running is None:  # of a class or of the file
            self._began = time.perf_counter()
        if self._outcome != "failed" or self._running is None:
            self._outcome, self._failure = outcome, failure
        if self._running is None:
            self._report(test)

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        super().addSuccess(test)
        self._note(test, "passed", TestFailure())

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._note(test, "failed", raised_failure(err[1]))

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._note(test, "failed", raised_failure(err[1]))

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, "failed", raised_failure(err[1]))

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._note(test, "skipped", TestFailure(reason))

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self._note(test, "expected", TestFailure())

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self._note(test, "failed", TestFailure("passed, although it is expected to fail", "comparison"))


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


class MemoryPlugin:
    """Collects from memory, and tells how each test went."""

    load: Callable[[], types.ModuleType]
    tell: Callable[[TestResultLine], None]

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """What the file raised when it was loaded."""
        self.problem = ""
        """Why the file cannot be collected."""
        self._first = TestFailure()
        """The first error of the test that runs."""
        self._failed_parts: list[str] = []
        plugin = self

        class MemoryModule(pytest.Module):
            """A module of tests that is in no file."""

            def _getobj(self) -> Any:
                try:
                    return plugin.load()
                except pytest.skip.Exception:
                    raise
                except BaseException as error:
                    plugin.error = error
                    raise

            def collect(self) -> Any:
                # pytest would look at many attributes of each of them
                names = vars(self.obj)
                hidden = {name: value for name, value in names.items() if isinstance(value, RemoteFunction)}
                for name in hidden:
                    del names[name]
                try:
                    return list(super().collect())
                finally:
                    names.update(hidden)

        self._module = MemoryModule

    def pytest_collection(self, session: Any) -> bool:
        session.config.option.tbstyle = "line"
        from_memory = self._module.from_parent(session, path=session.path / TESTS_FILE)
        session.items = list(session.genitems(from_memory))
        session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=session.items)
        session.testscollected = len(session.items)
        return True

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome == "failed":
            self.problem = _last_line(report)
            raise pytest.UsageError(self.problem)
        if report.outcome == "skipped":
            self.tell(TestResultLine("the file", "skipped", _last_line(report), 0.0))

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        self._first, self._failed_parts = TestFailure(), []
        began = time.perf_counter()
        outcome, message = _outcome(runtestprotocol(item, log=False, nextitem=nextitem))
        if self._failed_parts and outcome == "passed":
            outcome, message = "failed", self._failed_parts[0]
        name = item.nodeid.partition("::")[2].replace("::", ".")
        failure = self._first if outcome == "failed" else TestFailure()
        # of an error of the system it also names the limit
        message = failure.text or message
        self.tell(TestResultLine(name, outcome, message, time.perf_counter() - began, *failure[1:]))
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        # subtests are reported here, and their test continues
        if report.outcome == "failed":
            self._failed_parts.append(_last_line(report))

    def pytest_runtest_makereport(self, call: Any) -> None:
        if call.excinfo is not None and not self._first.text:
            self._first = raised_failure(call.excinfo.value)


def run_pytest(load: Callable[[], types.ModuleType], source: str, tell: Callable[[TestResultLine], None]) -> None:
    """Run the tests that pytest finds in the module that `load` makes, and in no file; raises what that raises."""
    plugin, session = _SESSIONS.pop() if is_begun_for(source) else (MemoryPlugin(), None)
    plugin.load, plugin.tell = load, tell
    if session is not None:
        status = _session_status(session)
    else:
        end_session()
        unneeded = [name for name, use in OPTIONAL_PYTEST_PLUGINS.items() if not use.search(source)]
        status = pytest.main(_pytest_options(unneeded), plugins=[plugin, _rarely_needed_parts(source)])
    if plugin.error is not None:
        raise plugin.error
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


def _outcome(reports: Any) -> tuple[str, str]:
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
