"""How the steps of a plan are run beside an answer, one after the other, in the process that has loaded it."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import io
import time
import types

from steelyard.verifiers.python.guest.fairness import ComparisonJudge
from steelyard.verifiers.python.guest.runners import TestResultLine, undefined_name
from steelyard.verifiers.python.guest.test_names import bound_names, looked_up_names
from steelyard.verifiers.python.guest.test_rewriter import GENUINE, STAR_IMPORT, rewritten_code, with_functions
from steelyard.verifiers.python.guest.wire import TestFailure, exception_text, failure_cause, short_repr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    CompiledSteps = list[tuple[list[types.CodeType], set[str]]]

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # a module has a dict there unless it is the first
"""The builtins of our functions, safe from temporary changes by an answer."""


def compiled_steps(steps: list[dict[str, Any]], genuine: Iterable[str] = ()) -> CompiledSteps:
    """The code of each step with placeholders of our functions, and the names that it binds: the same for every answer."""
    compiled = []
    for step in steps:
        mode = "eval" if "left" in step else "single" if "want" in step else "exec"
        codes = [rewritten_code(source, mode, genuine) for source in _sources(step)]
        compiled.append((codes, bound_names(map(ast.parse, _sources(step)))))
    return compiled


def _sources(step: dict[str, Any]) -> list[str]:
    return [step[key] for key in ("left", "right", "source") if key in step]


class StepRunner:
    """Runs the steps of a plan one after the other: what prepares, and what tests."""

    def __init__(
        self, steps: list[dict[str, Any]], entry_point: str, judge: ComparisonJudge, compiled: CompiledSteps | None
    ) -> None:
        self._entry_point = entry_point
        self._function: Any = None
        self._judge = judge
        # before the answer is loaded, which may give other meanings to them
        self._builtins = dict(vars(builtins))
        genuine = self._genuine_builtins(steps)
        functions = {**judge.functions(), STAR_IMPORT: lambda *_: None}
        functions |= {GENUINE + name: value for name, value in genuine.items()}
        self._steps = []
        # the names of the answer that tests use are there from the beginning
        self._names = {entry_point.partition(".")[0].removesuffix("()")} - {""}
        for step, (parts, binds) in zip(steps, compiled or compiled_steps(steps, genuine), strict=True):
            codes = [with_functions(part, functions) for part in parts]
            self._steps.append((step, codes, binds))
            self._names.update(name for name in looked_up_names(list(codes)) if not hasattr(builtins, name))
        self._names -= {"__builtins__", "__name__"}

    def run(self, answer: types.ModuleType, tell: Callable[[int, TestResultLine], None]) -> str:
        """Run all steps; what went wrong in one that only prepares, or nothing."""
        if self._entry_point.isidentifier() and self._entry_point not in vars(answer):
            return f"the answer does not define {self._entry_point}"
        known = self._scope(answer)
        own: set[str] = set()
        for number, (step, codes, binds) in enumerate(self._steps):
            if step.get("given") and binds <= vars(answer).keys():
                continue  # the answer stands below the same definitions, so its classes are those of the tests
            self._take_names(vars(answer), known, own)
            began = time.perf_counter()
            try:
                wrong = self._run_step(step, codes, known)
            except BaseException as error:
                wrong = self._raised(error)
            own |= binds
            self._judge.stay()
            if (hidden := self._judge.hidden_failure() or self._replaced(known, binds)) and not wrong.text:
                wrong = TestFailure(hidden, "comparison")
            if step["test"]:
                seconds = time.perf_counter() - began
                tell(number, TestResultLine("", "failed" if wrong.text else "passed", wrong.text, seconds, *wrong[1:]))
            elif wrong.text:
                return wrong.text
        return ""

    def _genuine_builtins(self, steps: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: ARG002  a sibling looks at them
        """Builtin functions that the code of the steps must hold itself: none, because its own names are around it."""
        return {}

    def _scope(self, answer: types.ModuleType) -> dict[str, Any]:  # noqa: ARG002  a sibling takes its names
        """The names that are around the steps."""
        self._given: dict[str, Any] = {}
        return {"__name__": "tests", "__builtins__": self._builtins}

    def _take_names(self, names: dict[str, Any], known: dict[str, Any], own: set[str]) -> None:
        """Take what the tests use of the answer's names."""
        for name in (self._names & names.keys()) - own:
            # what the answer changes is seen, unless the tests have given the name to something of theirs
            if name not in known or known[name] is self._given.get(name):
                known[name] = self._given[name] = names[name]

    def _replaced(self, known: dict[str, Any], binds: set[str]) -> str:  # noqa: ARG002  a sibling looks at them
        """What the answer did to the names of the tests, which it cannot reach."""
        return ""

    def _raised(self, error: BaseException) -> TestFailure:
        is_answers = self._judge.has_answers_code(error.__traceback__)
        return TestFailure(exception_text(error), failure_cause(error, is_answers=is_answers), undefined_name(error))

    def _run_step(self, step: dict[str, Any], codes: list[Any], known: dict[str, Any]) -> TestFailure:
        if "left" in step:
            left, right = (eval(side, known) for side in codes)
            return TestFailure() if self._judge.compare("Eq", left, right) else _difference(left, right)
        if "pair" in step:
            given, wanted = step["pair"]
            if self._function is None:  # a method is one of the same object in all pairs
                self._function = eval(self._entry_point, known)
            got = self._function(*copy.deepcopy(given))
            return TestFailure() if self._is_same(got, wanted) else _difference(got, wanted)
        if "want" in step:
            return self._example_problem(step, codes[0], known)
        exec(codes[0], known)
        return TestFailure()

    def _is_same(self, got: Any, wanted: Any) -> bool:
        """Whether a value is the one in a file: files have no tuples.

        What an object of the answer's holds is looked at, not what it says when it is asked to list that.
        """
        if isinstance(wanted, list):
            held = (
                list.copy(got)
                if isinstance(got, list)
                else list(tuple.__iter__(got))
                if isinstance(got, tuple)
                else None
            )
            return (
                held is not None
                and len(held) == len(wanted)
                and not any(not self._is_same(one, other) for one, other in zip(held, wanted, strict=True))
            )
        if isinstance(wanted, dict):
            got = dict.copy(got) if isinstance(got, dict) else got
            return (
                isinstance(got, dict)
                and got.keys() == wanted.keys()
                and all(self._is_same(got[key], wanted[key]) for key in got)
            )
        return bool(self._judge.compare("Eq", got, wanted)) and isinstance(got, bool) == isinstance(wanted, bool)

    def _example_problem(self, step: dict[str, Any], code: Any, known: dict[str, Any]) -> TestFailure:
        """What is wrong with one example of a doctest, or nothing."""
        import doctest  # heavy, and rarely needed

        printed = io.StringIO()
        checker = doctest.OutputChecker()
        raises, flags = step["raises"], step["flags"]
        try:
            with contextlib.redirect_stdout(printed):
                exec(code, known)
        except Exception as error:
            if raises is None:
                return self._raised(error)
            got = exception_text(error) + "\n"
            if flags & doctest.IGNORE_EXCEPTION_DETAIL:
                is_expected = got.partition(":")[0] == raises.partition(":")[0].rpartition(".")[2]
            else:
                # the interpreter names the module as well
                forms = (got, f"{type(error).__module__}.{got}")
                is_expected = any(checker.check_output(raises, form, flags) for form in forms)
            return TestFailure() if is_expected else TestFailure(f"raised {got}", "exception")
        if raises is not None:
            return TestFailure(f"raised nothing, expected {raises}", "comparison")
        text = printed.getvalue()
        if text and not text.endswith("\n"):
            text += "\n"  # as doctest does
        if checker.check_output(step["want"], text, flags):
            return TestFailure()
        return TestFailure(f"got {text[:200]!r}, expected {step['want'][:200]!r}", "comparison")


class OneProgramRunner(StepRunner):
    """Runs the steps in the module of the answer, as if both were one file: what the tests bind, they bind for both."""

    def _genuine_builtins(self, steps: list[dict[str, Any]]) -> dict[str, Any]:
        """The builtin functions that tests use: an answer that has its own `all` or `sorted` does not lend it to them."""
        trees = [ast.parse(source) for step in steps for source in _sources(step)]
        nodes = [node for tree in trees for node in ast.walk(tree)]
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        bound |= {str(getattr(node, field, "")) for node in nodes for field in ("name", "asname", "rest")}
        top = [node for tree in trees for node in tree.body]
        functions = [node for node in top if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        names = {node.name for node in functions}
        changed = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        self._functions_of_tests = names - changed - bound_names(node for node in top if node not in functions)
        self._kept: dict[str, Any] = {}
        # the compiler itself looks for `super`
        return {
            name: value
            for name, value in self._builtins.items()
            if name not in bound and name != "super" and not name.startswith("_")
        }

    def _scope(self, answer: types.ModuleType) -> dict[str, Any]:
        # its class may be the answer's by now
        names: dict[str, Any] = vars(types.ModuleType)["__dict__"].__get__(answer)
        return names

    def _take_names(self, names: dict[str, Any], known: dict[str, Any], own: set[str]) -> None:
        """Take nothing: the names are the same."""

    def _replaced(self, known: dict[str, Any], binds: set[str]) -> str:
        """What the answer did to functions and classes of the tests."""
        for name in sorted(self._functions_of_tests):
            if name in binds:
                self._kept[name] = known.get(name)
            elif name in self._kept and known.get(name) is not self._kept[name]:
                return f"{name} of the tests was replaced"
        return ""


def _difference(got: Any, wanted: Any) -> TestFailure:
    """What is wrong where a value is not the expected one."""
    return TestFailure(f"got {short_repr(got)}, expected {short_repr(wanted)}", "comparison")
