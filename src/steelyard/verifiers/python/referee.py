"""The tests, in a process that the code under test cannot reach.

Runs in a contained child of a zygote of its own, on the standard library alone. It receives the tests, calls the
answer over a socket, and decides.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import gc
import io
import os
import random
import resource
import shutil
import signal
import socket
import sys
import time
from typing import NamedTuple

from steelyard.verifiers.python.wire import (
    MAX_EXCEPTION_CHARS,
    MessageSocket,
    PeerGone,
    RpcPeer,
    decoded_value,
    encoded_value,
    exception_text,
    short_repr,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType
    from typing import Any, NoReturn

PRELOADED_TEST_MODULES = ("copy", "functools", "itertools", "math", "operator", "re", "typing")
"""What tests usually import: loaded once, so that no fork has to."""
for _module in PRELOADED_TEST_MODULES:
    __import__(_module)
MAX_REFEREE_OUTPUT_CHARS = 64 << 10
MAX_STEP_PRINT_CHARS = 16 << 20
"""Characters of what is printed during one step that tests can look at."""
MAX_EXCEPTION_LINEAGE = 50
RESERVED_TEST_NAMES = {"__builtins__", "__name__"}
"""Names that are the tests' own, whatever an answer gives them to."""


class RefereePeer(RpcPeer):
    """The tests' end of the connection."""

    def __init__(self, fd: int, *, may_stop: bool = False) -> None:
        super().__init__(fd)
        self._may_stop = may_stop
        """Whether the tests speak of StopIteration; to others it would look as if there were nothing more to test."""
        self._callbacks: list[Any] = []
        self._exceptions: dict[int, type[BaseException]] = {}
        self.output: list[str] = []
        self.stdout = sys.stdout = io.StringIO()
        self._room = MAX_REFEREE_OUTPUT_CHARS
        self.own_word = False
        """Whether something other than what is tested was asked of the answer, so that its own word may have decided."""
        self.crossed = True
        """Whether every value so far arrived as what it was, and nothing was asked of an object that did not."""

    def encode(self, value: Any) -> Any:
        return encoded_value(value, self._lend)

    def decode(self, value: Any) -> Any:
        return decoded_value(value, self._met)

    def _lend(self, thing: Any) -> Any:
        if isinstance(thing, RemoteObject):
            return {"handle": [thing._number]}
        self.crossed = False
        if callable(thing) and not isinstance(thing, type):
            self._callbacks.append(thing)
            return {"callback": len(self._callbacks) - 1}
        raise TypeError(
            f"{type(thing).__name__} is not plain data; tests that hand over such objects need style = unittest"
        )

    def _met(self, mark: str, held: Any) -> Any:
        if mark == "handle":
            self.crossed = False
            return RemoteObject(self, int(held[0]), str(held[1]))
        if mark == "exception":
            return self.exception(held)
        # the one module that does something when it is imported: it opens a browser
        if mark == "module" and held in sys.stdlib_module_names and held != "antigravity":
            return __import__(held)
        return None

    def exception(self, lineage: Any) -> type[BaseException]:
        """Our own class for an exception of the answer's: those that everyone knows are themselves."""
        kind: type[BaseException] = Exception
        if len(lineage) > MAX_EXCEPTION_LINEAGE:
            raise ValueError("an inheritance cycle")
        for number, name in reversed(lineage):
            if number is None:
                known = getattr(builtins, name)
                kind = known if issubclass(known, BaseException) else Exception
            else:
                kind = self._exceptions.setdefault(number, type(str(name)[:100], (kind,), {}))
        return kind

    def perform(self, request: list[Any]) -> list[Any]:
        """Call back a function that a test handed over."""
        try:
            _, number, positional, named = request
            return ["ok", self.encode(self._callbacks[number](*self.decode(positional), **self.decode(named)))]
        except PeerGone:
            raise
        except BaseException as error:
            return ["raised", exception_text(error)]

    def refused(self, why: str) -> list[Any]:
        return ["raised", why]

    def do(self, deed: str, *positional: Any, **named: Any) -> Any:
        """Have the answer's side do something, and take what comes of it."""
        if deed != "call":
            self.crossed = False
        given = [self.encode(list(positional))]
        if named:
            given.append([[name, self.encode(value)] for name, value in named.items()])
        reply = self.ask(deed, *given)
        try:
            if reply[0] == "ok":
                _, value, printed, *changed = reply
                self.printed(printed)
                for place, now in changed:
                    update_in_place(positional[place] if isinstance(place, int) else named[place], self.decode(now))
                return self.decode(value)
            _, kind, message, arguments, printed = reply
            self.printed(printed)
            raised = self.exception(kind["exception"])
            # of an exception that the language does not define, only its name and arguments arrive
            self.crossed &= kind["exception"][0][0] is None
            given = self.decode(arguments)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise self.gone(f"said something that is no value: {type(error).__name__}") from None
        if issubclass(raised, StopIteration) and deed != "next" and not self._may_stop:
            # `all(map(answer, ...))` would take it for the end of what there is to test
            raise RuntimeError(f"the answer raised {raised.__name__}")
        raise remote_exception(raised, given, str(message))

    def own(self, deed: str, thing: RemoteObject, other: Any) -> bool:
        """The answer's own yes or no about something of its own."""
        claim = self.do(deed, thing, other) is True
        self.own_word |= claim
        return claim

    def printed(self, text: str) -> None:
        if text:
            if sys.stdout is not self.stdout or self.stdout.tell() < MAX_STEP_PRINT_CHARS:
                sys.stdout.write(text)
            if self._room > 0:
                self.output.append(text[: self._room])
                self._room -= len(text)


class RemoteObject:
    """Something of the answer's that is not plain data; it stays there, and is asked."""

    __slots__ = ("_helps", "_mixed", "_name", "_number", "_side")

    def __init__(self, side: RefereePeer, number: int, name: str) -> None:
        object.__setattr__(self, "_side", side)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_name", name[:100])
        # whether plain data, such as what a test expects, went into it
        object.__setattr__(self, "_mixed", False)
        # whether it is not what is tested, but what a test asks about that: a method, another function of the answer's
        object.__setattr__(self, "_helps", False)

    def __call__(self, *positional: Any, **named: Any) -> Any:
        result = self._side.do("call", self, *positional, **named)
        if self._helps and not isinstance(result, RemoteObject) and result is not None:
            self._side.own_word = True
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return mark_as_helper(self._side.do("getattr", self, name))

    def __setattr__(self, name: str, value: Any) -> None:
        self._side.do("setattr", self, name, value)

    def __iter__(self) -> Iterator[Any]:
        items = self._side.do("iter", self)
        if not isinstance(items, RemoteObject):
            raise TypeError(f"{self._name} gave no iterator")
        with contextlib.suppress(StopIteration):
            while True:
                yield self._side.do("next", items)

    def __next__(self) -> Any:
        return self._side.do("next", self)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, RemoteObject) and self._side.own("isinstance", instance, self)

    def __eq__(self, other: object) -> Any:
        # an object that claims to equal plain data would be its own judge
        return self._side.own("eq", self, other) if isinstance(other, RemoteObject) else False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._number)

    def __bool__(self) -> bool:
        # no more than the answer could have said with a plain yes or no, but its own word all the same
        self._side.own_word = True
        return self._side.do("truth", self) is True

    def _compared(self, deed: str, other: Any) -> Any:
        if not isinstance(other, RemoteObject):
            raise TypeError(f"{self._name} is an object of the answer's own: it cannot be compared with plain data")
        return self._side.do(deed, self, other)

    def __lt__(self, other: Any) -> Any:
        return self._compared("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("ge", other)

    def __len__(self) -> int:
        length: int = self._side.do("len", self)
        return length

    def __contains__(self, item: Any) -> bool:
        held: bool = self._side.own("contains", self, item)
        return held

    def __str__(self) -> str:
        return self._words("str")

    def __repr__(self) -> str:
        return self._words("repr")

    def _words(self, deed: str) -> str:
        claim = self._side.do(deed, self)
        if not isinstance(claim, str):
            raise TypeError(f"{self._name} has no words for itself")
        return claim

    def __enter__(self) -> Any:
        return self._side.do("enter", self)

    def __exit__(self, *error: object) -> None:
        self._side.do("exit", self)


def mark_as_helper(thing: Any) -> Any:
    """The same thing, whose word about another is noted as the answer's own."""
    if isinstance(thing, RemoteObject):
        object.__setattr__(thing, "_helps", True)
    return thing


def _remote_method(name: str) -> Any:
    def method(self: RemoteObject, *others: Any) -> Any:
        return self._side.do(name, self, *others)

    return method


def _remote_operator(name: str, *, swapped: bool = False) -> Any:
    """An operation; `abs(answer - 3) < 0.1` must not let the answer say what its distance from 3 is."""

    def method(self: RemoteObject, *others: Any) -> Any:
        operands = (*others, self) if swapped else (self, *others)
        mixed = any(not isinstance(operand, RemoteObject) or operand._mixed for operand in operands)
        result = self._side.do(name, *operands)
        if not mixed:
            return result
        if not isinstance(result, RemoteObject):
            raise TypeError(
                f"{self._name} is an object of the answer's own: what it makes of plain data is its own word; "
                "tests that reckon with such objects need style = unittest"
            )
        object.__setattr__(result, "_mixed", True)
        return result

    return method


for _name in ("getitem", "setitem", "delitem"):
    setattr(RemoteObject, f"__{_name}__", _remote_method(_name))
for _name in ("neg", "abs", "invert"):
    setattr(RemoteObject, f"__{_name}__", _remote_operator(_name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"):
    setattr(RemoteObject, f"__{_name.rstrip('_')}__", _remote_operator(_name))
    setattr(RemoteObject, f"__r{_name.rstrip('_')}__", _remote_operator(_name, swapped=True))


def update_in_place(value: Any, now: Any) -> Any:
    """The same object with other content, as far down as it is of the same kind."""
    if type(value) is not type(now) or not isinstance(value, (list, dict, set, bytearray, collections.deque)):
        return now
    if isinstance(value, list) and len(value) == len(now):
        now = [update_in_place(old, new) for old, new in zip(value, now, strict=True)]
    elif isinstance(value, dict):
        now = {key: update_in_place(value.get(key), new) for key, new in now.items()}
    value.clear()
    (value.update if isinstance(value, (dict, set)) else value.extend)(now)
    return value


def remote_exception(kind: type[BaseException], given: Any, message: str) -> BaseException:
    """An exception of ours that says what the answer's said."""
    try:
        error = kind(*given)
    except Exception:
        error = RuntimeError(message[:MAX_EXCEPTION_CHARS])
    # never empty: nothing to say must not look like nothing wrong
    error.__dict__["said"] = message[:MAX_EXCEPTION_CHARS] or "an exception without words"
    return error


class UnusableTestsError(Exception):
    """The tests cannot run here, whatever the answer."""


class StepTrace(NamedTuple):
    """What is known of the way to a result, besides the result."""

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
        sources = [spec[key] for key in ("left", "right") if key in spec]
        self.sides = [compile(source, "tests.py", "eval") for source in sources]
        mode = "single" if "want" in spec else "exec"
        self.code = None if self.sides or "pair" in spec else compile(spec["source"], "tests.py", mode)

        self.names = set(looked_up_names([code for code in (*self.sides, self.code) if code is not None]))

    def run(self, known: dict[str, Any], candidate: Any) -> str:
        """What is wrong, or nothing."""
        if self.sides:
            left, right = (eval(side, known) for side in self.sides)
            return "" if left == right else f"got {short_repr(left)}, expected {short_repr(right)}"
        if "pair" in self.spec:
            given, wanted = self.spec["pair"]
            # an answer may change what it is given, but not what the next one is given
            got = candidate(*copy.deepcopy(given))
            return "" if is_same_value(got, wanted) else f"got {short_repr(got)}, expected {short_repr(wanted)}"
        if "want" in self.spec:
            return self._example(known)
        exec(self.code, known)  # type: ignore[arg-type]
        return ""

    def _example(self, known: dict[str, Any]) -> str:
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
                return exception_text(error)
            got = exception_text(error) + "\n"
            if flags & doctest.IGNORE_EXCEPTION_DETAIL:
                return "" if got.partition(":")[0] == raises.partition(":")[0].rpartition(".")[2] else f"raised {got}"
            return "" if checker.check_output(raises, got, flags) else f"raised {got}"
        if raises is not None:
            return f"raised nothing, expected {raises}"
        got = printed.getvalue()
        return "" if checker.check_output(wanted, got, flags) else f"got {got[:200]!r}, expected {wanted[:200]!r}"


def looked_up_names(waiting: list[CodeType]) -> Iterator[str]:
    """Every name that may be looked up when this is run."""
    while waiting:
        code = waiting.pop()
        yield from code.co_names
        waiting += [constant for constant in code.co_consts if hasattr(constant, "co_names")]


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


def judge(referee: RefereePeer, code: str, steps: list[RefereeStep], entry_point: str) -> dict[str, Any]:
    """What came of one answer."""
    names = {name for step in steps for name in step.names if not hasattr(builtins, name)} - RESERVED_TEST_NAMES
    if entry_point:
        names.add(entry_point)
    result: dict[str, Any] = {"tests": [], "output": referee.output}
    known = load_candidate(referee, code, names, result)
    if known is None:
        return result
    candidate = known.get(entry_point)
    if entry_point and candidate is None:
        return {**result, "raised": f"the answer does not define {entry_point}"}
    for name in known if entry_point else ():
        if name != entry_point:
            mark_as_helper(known[name])
    # what prepares the tests counts for all that come after it
    prepared = StepTrace(crossed=True, own_word=False)
    for number, step in enumerate(steps):
        referee.crossed, referee.own_word = prepared
        try:
            wrong, seconds = run_step(referee, step, known, candidate)
        except UnusableTestsError as error:
            return {**result, "unable": str(error)}
        trace = StepTrace(crossed=referee.crossed and not step.shares_process, own_word=referee.own_word)
        if referee.lost:
            # nor does a test pass that swallowed the end of the answer together with its exceptions
            result |= {"gone": wrong, "crossed": trace.crossed}
            break
        if step.is_test:
            result["tests"].append([number, wrong[:MAX_EXCEPTION_CHARS], seconds, *trace])
        elif wrong:
            result |= {"raised": wrong, "crossed": trace.crossed}
            break
        else:
            prepared = trace
    return result


def load_candidate(referee: RefereePeer, code: str, names: set[str], result: dict[str, Any]) -> dict[str, Any] | None:
    """What an answer gave these names to, once it is loaded; None when that failed, as the result then says."""
    try:
        referee.send(["load", code, sorted(names)])
        reply = referee.receive()
        result["compiled"] = reply[0] == "compiled"
        if not result["compiled"]:
            result |= {"error": str(reply[1]), "line": reply[2] if type(reply[2]) is int else None}
            return None
        result["seconds"] = float(reply[1])
        reply = referee.receive()
        referee.printed(str(reply[2]))
        if reply[0] != "loaded":
            result["raised"] = str(reply[1]) or "nothing that has words"
            return None
        # nothing but what was asked for: a name of the language would mean what the answer wants it to mean
        found = {name: referee.decode(reply[1][name]) for name in names if name in reply[1]}
    except (PeerGone, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        result["gone"] = exception_text(error)
        return None
    return {"__name__": "tests", **found}


def run_step(referee: RefereePeer, step: RefereeStep, known: dict[str, Any], candidate: Any) -> tuple[str, float]:
    """What was wrong when a step was run, if anything was, and how long it took."""
    if referee.stdout.tell():
        referee.stdout.seek(0)
        referee.stdout.truncate()
    began = time.perf_counter()
    try:
        wrong = step.run(known, candidate)
    except ImportError as error:
        if "said" not in error.__dict__:  # raised here, so no answer has anything to do with it
            raise UnusableTestsError(f"the tests need {error.name or error}, which is not installed here") from None
        wrong = exception_text(error)
    except BaseException as error:
        wrong = exception_text(error) if not isinstance(error, PeerGone) else str(error)
    return wrong, time.perf_counter() - began


def empty_folder(home: str) -> None:
    """Leave nothing that the tests of one answer wrote to those of the next."""
    os.chdir(home)
    for entry in list(os.scandir(home)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


def main(fds: list[int]) -> None:
    """Take the tests of one case from a socket, then judge one answer after the other with them, each in a fork."""
    engine = MessageSocket(fds[0], lenient=True)
    job = engine.receive()[0]
    steps = [RefereeStep(step) for step in job["steps"]]
    engine.send(["ready"])
    may_stop = any("StopIteration" in step.names for step in steps)
    control = socket.socket(fileno=fds[0])
    home = os.getcwd()
    random.seed(0)
    gc.freeze()
    while True:
        _, channels, _, _ = socket.recv_fds(control, 1, 1)
        if not channels:
            os._exit(0)
        code = engine.receive()[0]
        child = os.fork()
        if child == 0:
            referee_one(engine, code, steps, RefereePeer(channels[0], may_stop=may_stop), job)
        os.close(channels[0])
        status = os.waitpid(child, 0)[1]
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what tests started
        if status:
            engine.send([{"died": os.waitstatus_to_exitcode(status)}])
        empty_folder(home)


def referee_one(
    engine: MessageSocket, code: str, steps: list[RefereeStep], referee: RefereePeer, job: dict[str, Any]
) -> NoReturn:
    """Judge one answer in a process that ends with it, so that nothing of it can reach the next."""
    try:
        os.setsid()
        gc.enable()
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        seconds = int(job["seconds"]) + 1
        resource.setrlimit(
            resource.RLIMIT_CPU, (seconds if most == resource.RLIM_INFINITY else min(seconds, most), most)
        )
        report = judge(referee, code, steps, job["entry_point"])
    except BaseException as error:
        report = {"unable": f"the referee failed: {exception_text(error)}"}
    engine.send([report])
    os._exit(0)
