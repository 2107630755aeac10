"""The tests, in a process that the code under test cannot reach.

Runs in a contained child of a zygote of its own, on the standard library alone. It receives the tests, calls the
answer over a socket, and decides.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import gc
import io
import os
import resource
import signal
import socket
import sys
import time
import types
from typing import NamedTuple

from steelyard.verifiers.python.guest.identity import (
    BOTH_NAME,
    IDENTITY_NAMES,
    IS_ASKED_NAME,
    IS_SAME_NAME,
    IdentityWatch,
    WatchedIdentity,
)
from steelyard.verifiers.python.guest.new_interpreter import fork_by_default
from steelyard.verifiers.python.guest.objects import is_twin
from steelyard.verifiers.python.guest.remote import WORDS_OF_ENDING, RefereePeer, RemoteObject, put
from steelyard.verifiers.python.guest.test_names import (
    ANSWER_MODULE_NAMES,
    asserting_functions,
    bound_names,
    has_own_claims,
    is_star_import,
    looked_up_names,
    wanted_names,
)
from steelyard.verifiers.python.guest.values import ValueDecoder, refill, snapshot
from steelyard.verifiers.python.guest.wire import (
    MAX_EXCEPTION_CHARS,
    REHEARSALS,
    MessageSocket,
    PeerGone,
    TestFailure,
    catches_all,
    difference,
    exception_text,
    load_random,
    may_catch,
    own_random_in_forks,
    raised_failure,
    short_repr,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType
    from typing import Any

PRELOADED_TEST_MODULES = ("copy", "functools", "itertools", "math", "operator", "re", "typing")
"""What tests usually import: loaded once, so that no fork has to."""
for _module in PRELOADED_TEST_MODULES:
    __import__(_module)
load_random()
fork_by_default()
COMPARISON_NAME = "__steelyard_is_equal__"
RESERVED_TEST_NAMES = {"__builtins__", "__name__", COMPARISON_NAME, *IDENTITY_NAMES}
"""Names that belong to the tests, even if an answer defines them."""
MAX_FORK_TRIES, FORK_RETRY_SECONDS = 100, 0.05
FUNCTION_METHODS = sorted(
    {name for kind in (types.FunctionType, object) for name in vars(kind) if name.startswith("__")} - set(vars(object))
)
THREAD_NAMES = frozenset({"Thread", "ThreadPoolExecutor", "Timer", "threading", "to_thread", "run_in_executor"})


class UnusableTestsError(Exception):
    """The tests cannot run here for any answer."""


class StepTrace(NamedTuple):
    """What is known about how a result was reached."""

    crossed: bool
    """Whether everything that was looked at is what it would be in one process with the answer."""
    own_word: bool
    """Whether an object of the answer's had a say."""


class RefereeStep:
    """A statement of the tests, ready to run: a test, or what prepares one."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.is_test: bool = spec["test"]
        self.shares_process: bool = spec.get("shares_process", False)
        """Whether it looks at what only tests in one process with the answer can see, such as identity or patches."""
        self.handed: list[str] = spec.get("handed", [])
        """Names in the file that are not only called."""
        sources = [spec[key] for key in ("left", "right") if key in spec]
        self.sides = [compiled_test(source, "eval") for source in sources]
        mode = "single" if "want" in spec else "exec"
        self.code: CodeType | None = None
        self.trees = [ast.parse(source) for source in sources or [spec.get("source", "0")]]
        # nothing else in an expression binds a name
        self.binds = bound_names(tree for tree, source in zip(self.trees, sources, strict=False) if ":=" in source)
        """Names that are the tests' own once it has run."""
        if not self.sides and "pair" not in spec:
            self.binds |= bound_names(self.trees)
            self.code = compiled_test(spec["source"], mode)
        self.names = set(looked_up_names([code for code in (*self.sides, self.code) if code is not None]))

    def run(self, known: dict[str, Any], candidate: Any, referee: RefereePeer) -> TestFailure:
        """What is wrong, or nothing."""
        if self.sides:
            left = eval(self.sides[0], known)
            is_equal, right = compared(referee, left, lambda: eval(self.sides[1], known))
            return TestFailure() if is_equal else difference(left, right)
        if "pair" in self.spec:
            given, wanted = self.spec["pair"]
            # an answer may change what it is given, but not what the next one is given
            got = candidate(*copy.deepcopy(given))
            return TestFailure() if is_same_value(got, wanted) else difference(got, wanted)
        if "want" in self.spec:
            return self._example(known, referee)
        exec(self.code, known)  # type: ignore[arg-type]
        return TestFailure()

    def _example(self, known: dict[str, Any], referee: RefereePeer) -> TestFailure:
        """One example of a doctest."""
        import doctest  # heavy, and rarely needed

        printed = io.StringIO()
        wanted, raises, flags = self.spec["want"], self.spec["raises"], self.spec["flags"]
        checker = doctest.OutputChecker()
        try:
            with contextlib.redirect_stdout(printed):
                exec(self.code, known)  # type: ignore[arg-type]
        except Exception as error:
            if raises is None:
                return raised_failure(error)
            got = exception_text(error) + "\n"
            # whoever wrote the example may have had the answer in a module of another name
            prefix, colon, rest = raises.partition(":")
            name = prefix.rpartition(".")[2]
            raises = name + colon + rest
            # a class of the answer's own may have the name of a built-in one
            referee.own_word |= is_twin(type(error)) and hasattr(builtins, name.strip())
            if flags & doctest.IGNORE_EXCEPTION_DETAIL:
                is_expected = got.partition(":")[0] == raises.partition(":")[0].rpartition(".")[2]
            else:
                is_expected = checker.check_output(raises, got, flags)
            return TestFailure() if is_expected else TestFailure(f"raised {got}", "exception")
        if raises is not None:
            return TestFailure(f"raised nothing, expected {raises}", "comparison")
        got = printed.getvalue()
        if got and not got.endswith("\n"):
            got += "\n"  # as doctest does
        if checker.check_output(wanted, got, flags):
            return TestFailure()
        return TestFailure(f"got {got[:200]!r}, expected {wanted[:200]!r}", "comparison")


class WatchedComparisons(WatchedIdentity):
    """Puts a look at the answer's changes between the two sides of an asserted equality."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:  # noqa: N802  the names are ast's
        # the names of the answer that tests use are there from the beginning
        return ast.copy_location(ast.Pass(), node) if is_star_import(node) else node

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:  # noqa: N802
        self.generic_visit(node)
        test = node.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
            return node
        right = test.comparators[0]
        if any(isinstance(below, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for below in ast.walk(test)):
            return node
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        function = ast.Name(id=COMPARISON_NAME, ctx=ast.Load())
        node.test = ast.Call(func=function, args=[test.left, ast.Lambda(args=nothing, body=right)], keywords=[])
        return ast.fix_missing_locations(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:  # noqa: N802
        # a function in the body of a class does not see the names of that body
        for place, part in enumerate(node.body):
            node.body[place] = super().generic_visit(part) if isinstance(part, ast.Assert) else self.visit(part)  # type: ignore[assignment]
        return node


def compiled_test(source: str, mode: str) -> CodeType:
    """A statement, expression or example of the tests, ready to run."""
    tree: Any = ast.parse(source, "tests.py", mode)
    watched = WatchedComparisons if mode == "exec" else WatchedIdentity
    code: CodeType = compile(watched().visit(tree), "tests.py", mode, dont_inherit=True)
    return code


def watch_identity(peer: RefereePeer, names: set[str], scope: dict[str, Any]) -> IdentityWatch | None:
    """Give tests that ask which object is which what they ask by; None for others."""
    if names.isdisjoint({*IDENTITY_NAMES, "id", "is_", "is_not"}):
        return None
    watch = peer.watch_identity()
    scope |= {IS_SAME_NAME: watch.is_same, BOTH_NAME: watch.both, IS_ASKED_NAME: watch.is_asked}
    if "id" in names:
        scope["id"] = watch.number
    if "is_" in names or "is_not" in names:
        watch.replace_operators()
    return watch


def compared(referee: RefereePeer, left: Any, right_side: Callable[[], Any]) -> tuple[bool, Any]:
    """Whether what came equals what is expected, and what that is: it is computed from what the answer never saw."""
    if not referee.changed:
        right = right_side()
        return bool(left == right), right
    # an answer that empties its argument must not have the expected value computed from what is left
    with rewound(referee), contextlib.suppress(Exception):
        asked = referee.requests
        right = right_side()
        if asked != referee.requests:
            referee.own_word = True
    with contextlib.suppress(UnboundLocalError):
        if left == right:
            return True, right
    right = right_side()
    is_equal = bool(left == right)
    # a function that is meant to change its argument: but then it had a say in what is expected
    referee.own_word |= is_equal
    return is_equal, right


@contextlib.contextmanager
def rewound(referee: RefereePeer) -> Iterator[None]:
    """For a while, what the answer changed is as it was before."""
    now = [(container, snapshot(container)) for container, _ in referee.changed.values()]
    for container, before in referee.changed.values():
        refill(container, before)
    try:
        yield
    finally:
        for container, content in now:
            refill(container, content)


def is_same_value(got: Any, wanted: Any) -> bool:
    """Whether a value is the one in a file: files have no tuples."""
    if isinstance(wanted, list):
        return isinstance(got, (list, tuple)) and len(got) == len(wanted) and all(map(is_same_value, got, wanted))
    if isinstance(wanted, dict):
        return (
            isinstance(got, dict)
            and got.keys() == wanted.keys()
            and all(is_same_value(got[key], wanted[key]) for key in got)
        )
    return bool(got == wanted) and isinstance(got, bool) == isinstance(wanted, bool)


class RefereeTests:
    """The tests of a case, with all that is the same for each of its answers: what a fork need not do costs it nothing."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.steps = [RefereeStep(step) for step in job["steps"]]
        self.entry_point: str = job["entry_point"]
        self.entry_name = self.entry_point.partition(".")[0].removesuffix("()")
        self.helpers: list[str] = job.get("helpers", [])
        """Functions that the answer was given, for what it is asked for."""
        self.claims: list[Any] = job.get("claims", [])
        self.constants: dict[str, str] = job.get("constants", {})
        """Literals that the answer was given a name for, as text."""
        looked_up = {name for step in self.steps for name in step.names}
        wanted = looked_up & wanted_names(tree for step in self.steps for tree in step.trees)
        wanted = {name for name in wanted if not hasattr(builtins, name)} - RESERVED_TEST_NAMES
        # a method is asked for by the step that gives it to the tests
        is_asked = self.entry_point.isidentifier() or any("pair" in step.spec for step in self.steps)
        self.names = sorted(wanted | ({self.entry_point} if self.entry_point and is_asked else set()))
        """What the tests may want of an answer."""
        self.handed = {name for step in self.steps for name in step.handed}
        self.share_process = any(step.shares_process for step in self.steps)
        self.may_catch = may_catch("\n".join(str(value) for step in job["steps"] for value in step.values()))
        self.asserting = asserting_functions(tree for step in self.steps for tree in step.trees)
        self.looked_up = looked_up
        self.have_threads = not THREAD_NAMES.isdisjoint(looked_up)
        self.cpu_limit = cpu_limit(job["seconds"])


def cpu_limit(seconds: float) -> tuple[int, int]:
    """The CPU limit of a process for this many seconds, if we may set one."""
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    whole = int(seconds) + 1
    return whole if most == resource.RLIM_INFINITY else min(whole, most), most


def judge(referee: RefereePeer, code: str, tests: RefereeTests, engine: MessageSocket | None = None) -> dict[str, Any]:
    """The results of one answer."""
    steps, entry_point = tests.steps, tests.entry_point
    result: dict[str, Any] = {"tests": [], "output": referee.output}
    referee.give_up = lambda: leave_to_others(engine, any(wrong for _, wrong, *_ in result["tests"]))
    scope = {"__name__": "tests", COMPARISON_NAME: lambda left, right: is_equal_or_says(referee, left, right)}
    identities = watch_identity(referee, tests.looked_up, scope)
    found = load_candidate(referee, code, tests.names, result)
    if found is None:
        return result
    result["printed_at_load"] = len(referee.output)
    known = {**scope, **found}
    candidate = known.get(entry_point)
    if entry_point in tests.names and candidate is None:
        return {**result, "raised": f"the answer does not define {entry_point}"}
    for name, value in found.items():
        is_helper = name in tests.helpers or (entry_point and name not in (entry_point, tests.entry_name))
        if is_helper and isinstance(value, RemoteObject):
            put(value, "_helps", True)
    # a function or class of the answer's that is handed on, and not only called, can be looked at in many ways
    handed = any(isinstance(found.get(name), RemoteObject) for name in tests.handed)
    shares_process = handed or tests.share_process
    constants = AnswerConstants(referee, known, found)
    referee.asserting = tests.asserting
    # what prepares the tests counts for all that come after it
    prepared = StepTrace(crossed=True, own_word=has_own_claims(found, tests.claims))
    changed_constants = {
        name for name, text in tests.constants.items() if name in found and says_otherwise(found[name], text)
    }
    for number, step in enumerate(steps):
        constants.refresh()
        referee.crossed, referee.own_word = prepared
        try:
            wrong, seconds = run_step(referee, step, known, candidate)
            if not wrong.text:
                wrong = caught_failure(referee, tests.may_catch)
        except UnusableTestsError as error:
            return {**result, "unable": str(error)}
        misses_constant = not referee.too_large.isdisjoint(step.names)
        if wrong.undefined and not misses_constant:
            result.setdefault("undefined", []).append(wrong.undefined)
        crossed = referee.crossed and not shares_process and constants.names.isdisjoint(step.names)
        # a generator that was made from a list of the tests' changes its own copy when it runs
        crossed &= not (referee.keeps_arguments or misses_constant or referee.is_diverged)
        # in one process it would look like the end of what there is to test
        crossed |= bool(referee.stopped)
        # which of its objects is which is the answer's word, too
        is_own_word = referee.own_word or referee.catches_assertions or bool(referee.stopped)
        is_own_word |= not changed_constants.isdisjoint(step.names)
        is_own_word |= identities is not None and identities.has_met_objects
        trace = StepTrace(crossed, is_own_word)
        if referee.lost:
            # nor does a test pass that swallowed the end of the answer together with its exceptions
            result |= {"gone": wrong.text, "crossed": trace.crossed}
            break
        if step.is_test:
            result["tests"].append([number, wrong.text[:MAX_EXCEPTION_CHARS], wrong.cause, seconds, *trace])
        elif wrong.text:
            result |= {"raised": wrong.text, "crossed": trace.crossed}
            break
        else:
            prepared = trace
        constants.names -= step.binds
    referee.settle()
    return result | referee.summary()


def leave_to_others(engine: MessageSocket | None, is_failed: bool) -> None:
    """End this process where only tests beside the answer can decide: what a test waits for now may never come."""
    if engine is not None and not is_failed:
        engine.send([{"beside": True}])
        os._exit(0)


def says_otherwise(value: Any, text: str) -> bool:
    """Whether an answer gave a name to something else than the literal that it was given."""
    return isinstance(value, RemoteObject) or value != ast.literal_eval(text)


def is_equal_or_says(referee: RefereePeer, left: Any, right_side: Callable[[], Any]) -> bool:
    """Whether two sides of an assertion are equal; an exception with both values where they are not."""
    is_equal, right = compared(referee, left, right_side)
    if not is_equal:
        raise AssertionError(f"got {short_repr(left)}, expected {short_repr(right)}")
    return True


class AnswerConstants:
    """Plain data that the answer gave names to: as it is now, since its functions may change it."""

    def __init__(self, referee: RefereePeer, known: dict[str, Any], found: dict[str, Any]) -> None:
        self.names = {
            name for name, value in found.items() if not isinstance(value, (RemoteObject, type, types.ModuleType))
        }
        self._referee = referee
        self._known = known
        self._given = {name: found[name] for name in self.names}
        self._last: dict[str, Any] = {}

    def refresh(self) -> None:
        """Fetch what has changed."""
        if not self.names or self._referee.lost:
            return
        names = sorted(self.names)
        try:
            outcome, held, *_ = self._referee.ask("globals", names, [])
            pairs = dict(held["d"]) if outcome == "ok" else {}
            for name in names:
                if name in pairs and self._last.get(name, pairs[name]) != pairs[name]:
                    value = decoded_constant(self._referee, pairs[name])
                    if (
                        self._known.get(name) is self._given[name]
                    ):  # the tests have not given the name to something else
                        self._known[name] = self._given[name] = value
            self._last = pairs
        except PeerGone:
            pass
        except Exception as error:
            self._referee.gone(exception_text(error))


def decoded_constant(referee: RefereePeer, held: Any) -> Any:
    """The value of a name of the answer's."""
    decoder = ValueDecoder(referee.borrow)
    value = decoder.decode(held)
    if referee.identities is not None:
        referee.identities.note_constants(decoder.containers)
    return value


def load_candidate(referee: RefereePeer, code: str, names: list[str], result: dict[str, Any]) -> dict[str, Any] | None:
    """What an answer gave these names to, once it is loaded; None when that failed, as the result then says."""
    try:
        referee.send(["load", code, names, referee.always_describes])
        reply = referee.receive()
        result["compiled"] = reply[0] == "compiled"
        if not result["compiled"]:
            result |= {"error": str(reply[1]), "line": reply[2] if type(reply[2]) is int else None}
            return None
        result["seconds"] = float(reply[1])
        reply = referee.receive()
        referee.show(str(reply[2]))
        if reply[0] != "loaded":
            result["raised"] = str(reply[1]) or "nothing that has words"
            return None
        # only the requested names: otherwise an answer could redefine built-in names
        found = {name: decoded_constant(referee, reply[1][name]) for name in names if name in reply[1]}
        referee.too_large.update(map(str, reply[3]))
        referee.traffic.is_data_only = all(isinstance(value, RemoteObject) for value in found.values())
        result["found"] = list(found)
    except (PeerGone, Exception) as error:
        result["gone"] = exception_text(error)
        return None
    answer_module = types.ModuleType("answer")
    answer_module.__dict__.update(found)
    sys.modules.update(dict.fromkeys(ANSWER_MODULE_NAMES, answer_module))
    return found


def run_step(
    referee: RefereePeer, step: RefereeStep, known: dict[str, Any], candidate: Any
) -> tuple[TestFailure, float]:
    """What was wrong when a step was run, if anything was, and how long it took."""
    if referee.stdout.tell():
        referee.stdout.seek(0)
        referee.stdout.truncate()
    referee.stopped = ""
    referee.caught.clear()
    began = time.perf_counter()
    try:
        wrong = step.run(known, candidate, referee)
        if referee.stopped and not wrong.text and not speaks_of_stopping(referee.stopped, step, known):
            # `all(map(answer, ...))` took it for the end of what there is to test
            wrong = TestFailure(f"{referee.stopped}: raised by the answer", "computation")
    except ImportError as error:
        if (
            "said" not in error.__dict__ and error.name not in ANSWER_MODULE_NAMES
        ):  # no answer has anything to do with it
            raise UnusableTestsError(f"the tests need {error.name or error}, which is not installed here") from None
        wrong = raised_failure(error)
    except BaseException as error:
        wrong = raised_failure(error) if not isinstance(error, PeerGone) else TestFailure(str(error), "death")
    return wrong, time.perf_counter() - began


def caught_failure(referee: RefereePeer, may_catch: bool) -> TestFailure:
    """An assertion that failed and that the answer caught, as what is wrong with a test that seems to pass."""
    if not referee.caught:
        return TestFailure()
    if may_catch:
        referee.own_word = True
        return TestFailure()
    return TestFailure(f"{next(iter(referee.caught.values()))} (the answer caught this)", "comparison")


def speaks_of_stopping(stopped: str, step: RefereeStep, known: dict[str, Any]) -> bool:
    """Whether a step expects such an exception, itself, in a function that it calls, or as the end of an example."""
    if (step.spec.get("raises") or "").startswith(stopped) or any(
        catches_all(str(part)) for part in step.spec.values()
    ):
        return True
    called = [known[name].__code__ for name in step.names if isinstance(known.get(name), types.FunctionType)]
    return not WORDS_OF_ENDING[stopped].isdisjoint({*step.names, *looked_up_names(called)})


def forked() -> int:
    """A fork, also on a machine whose user has as many processes as it may have just now."""
    for _ in range(MAX_FORK_TRIES - 1):
        with contextlib.suppress(BlockingIOError):
            return os.fork()
        time.sleep(FORK_RETRY_SECONDS)
    return os.fork()


def empty_folder(home: int) -> None:
    """Leave nothing that the tests of one answer wrote to those of the next; its path may lead through folders of others."""
    os.fchdir(home)
    for entry in list(os.scandir()):
        if entry.is_dir(follow_symlinks=False):
            __import__("shutil").rmtree(entry.path, ignore_errors=True)  # heavy, and rarely needed
        else:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


def rehearse() -> None:
    """Judge a small answer a few times: what the interpreter learns from that, every fork knows."""
    tests = RefereeTests(
        {
            "steps": [{"test": True, "source": "assert double([1, 2]) == [2, 4]"}],
            "entry_point": "double",
            "seconds": 1,
        }
    )
    function = {"h": [0, 1, "function", True, FUNCTION_METHODS]}
    for _ in range(REHEARSALS):
        ours, answers = (side.detach() for side in socket.socketpair())
        answering = MessageSocket(answers)
        answering.send(["compiled", 0.0])
        answering.send(["loaded", {"double": function}, "", []])
        answering.send(["reply", 0, "ok", [2, 4], "", False, []])
        judge(RefereePeer(ours), "", tests)
        os.close(ours)
        os.close(answers)
    for name in ANSWER_MODULE_NAMES:
        del sys.modules[name]
    sys.stdout = sys.__stdout__


def main(fds: list[int]) -> None:
    """Take the tests of one case from a socket, then judge one answer after the other with them, each in a fork."""
    engine = MessageSocket(fds[0], lenient=True)
    tests = RefereeTests(engine.receive()[0])
    referee = RefereePeer(-1)
    referee.always_describes = tests.have_threads
    channel = forked_for_answer(engine, fds[0], tests.cpu_limit)
    try:
        referee.connect(channel)
        code, referee.withholds = engine.receive()
        report = judge(referee, code, tests, engine)
    except BaseException as error:
        report = {"unable": f"the referee failed: {exception_text(error)}"}
    engine.send([report])
    os._exit(0)


def forked_for_answer(engine: MessageSocket, fd: int, cpu_limit: tuple[int, int]) -> int:
    """The connection to an answer, in a process that ends with it, so that nothing of it can reach the next."""
    engine.send(["ready"])
    control = socket.socket(fileno=fd)
    home = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    gc.freeze()
    while True:
        _, channels, _, _ = socket.recv_fds(control, 1, 1)
        if not channels:
            os._exit(0)
        child = forked()
        if child == 0:
            control.detach()  # the report goes the same way
            os.close(home)
            os.setsid()
            sys.modules["random"].seed("tests")  # other numbers than those that the answer draws
            own_random_in_forks()
            gc.enable()
            resource.setrlimit(resource.RLIMIT_CPU, cpu_limit)
            return channels[0]
        os.close(channels[0])
        status = os.waitpid(child, 0)[1]
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what tests started
        if status:
            engine.send([{"died": os.waitstatus_to_exitcode(status)}])
        empty_folder(home)
