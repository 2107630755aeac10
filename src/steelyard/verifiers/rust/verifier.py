"""Rust answers, judged by compiling them, asking clippy and running their tests.

An answer and its tests share a crate, because tests may touch private items: `trust` is `in-process`. What stands
between an answer and a forged result is drawn in docs/verifying-rust.md: tests are found in their source and keep the
usual meaning of the usual names, the compiler says which types they see (`deception`), and a harness that runs no line
of the answer in its own process reports the results (`harness`).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from steelyard.errors import VerifierError
from steelyard.languages.controls import false_tests
from steelyard.protocols import TIMEOUT_LABELS, FailureLabel, ProcessResult, ResourceLimits
from steelyard.records import (
    Answer,
    Case,
    Diagnostic,
    DiagnosticLevel,
    Finding,
    Test,
    TestFailureCause,
    VerifierSettings,
)
from steelyard.sandbox.processors import processor_count
from steelyard.verifiers.code.join_stub import code_from_reply
from steelyard.verifiers.code.repeatable import RUST_CHANCE_PATTERN, is_repeatable_code
from steelyard.verifiers.rust import case_tests, crate, neighbours
from steelyard.verifiers.rust import libraries as rust_libraries
from steelyard.verifiers.rust import source as rust_source
from steelyard.verifiers.rust.author import STANDARD_TYPE_NAMES, AuthorNames, author_names
from steelyard.verifiers.rust.batches import BatchItem, BatchQueue
from steelyard.verifiers.rust.crate import RustCompiler
from steelyard.verifiers.rust.deception import LentMethod, types_seen
from steelyard.verifiers.rust.harness import HarnessOutcome, HarnessReport, HarnessTestResult, harness_report
from steelyard.verifiers.rust.linker import LinkerFinder
from steelyard.verifiers.rust.syntax import require_rust
from steelyard.verifiers.rust.toolchain import toolchain
from steelyard.verifiers.trouble import trouble_sign
from steelyard.verifiers.witnesses import rust_witness

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox, Workspace
    from steelyard.verifiers.rust.crate import CompilationResult, CompilerMessages, CrateModule


MAX_ANSWERS_PER_CRATE = 50
"""Answers that are compiled together; more of them hardly make one cheaper."""
BATCH_COMPILE_CPU_SECONDS = 20
"""CPU seconds for compiling answers together; when they need more, each is compiled alone, with a limit of its own."""

TEST_FAILURE_CAUSES: Mapping[HarnessOutcome, TestFailureCause] = {
    HarnessOutcome.DIFFERS: "comparison",
    HarnessOutcome.FAILED: "exception",
    HarnessOutcome.CPU: "cpu",
}
"""What failed a test; every other outcome is the death of its process."""
TEST_FAILURE_LABELS: Mapping[HarnessOutcome, FailureLabel] = {
    HarnessOutcome.DIFFERS: FailureLabel.WRONG_ANSWER,
    HarnessOutcome.FAILED: FailureLabel.EXCEPTION,
    HarnessOutcome.CPU: FailureLabel.CPU_LIMIT,
}


class RustJob(NamedTuple):
    """An answer to verify."""

    case: Case
    piece: CrateModule


class RustVerifier:
    """Compiles an answer, asks clippy, and runs its tests, each in a process of its own."""

    settings = VerifierSettings
    at_once = MAX_ANSWERS_PER_CRATE * processor_count()
    runs_code = True

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._building = asyncio.Lock()
        """Held while a linker is looked for or dependencies are built, so that it is done once."""
        self._linkers = LinkerFinder(sandbox)
        self._testing = asyncio.Semaphore(processor_count())
        """Held while the tests of an answer run."""
        self._methods: dict[LentMethod, bool] = {}
        """Whether a type has a method of its own, of those that answers lent to it."""
        self._batches: BatchQueue[RustJob, Finding] = BatchQueue(
            self._together, most=MAX_ANSWERS_PER_CRATE, at_once=processor_count()
        )

    @cached_property
    def version(self) -> str:
        return f"rust 13, {toolchain().version}"

    def check(self, case: Case) -> None:
        toolchain()
        if _tests(case).found:
            require_rust(case.tests)
        if case.dependencies:
            rust_libraries.crate_source_folder(case.dependencies)

    def surroundings(self, case: Case) -> tuple[str, ...]:
        """The crates that an answer may use, as their folders are called."""
        return rust_libraries.crate_folders(case.dependencies) if case.dependencies else ()

    def stub(self, case: Case) -> str:
        if not case.expectations.should_compile:
            return ""
        return "\n".join(f"pub {stated.text} {{ todo!() }}" for stated in _author(case).signatures.values())

    def is_repeatable(self, case: Case, text: str) -> bool:
        return is_repeatable_code(RUST_CHANCE_PATTERN, case, text)

    def witness(self, case: Case) -> Case:
        return rust_witness(case)

    async def compiling(self, replies: Sequence[tuple[Case, str]]) -> list[bool]:
        """Which replies to cases with the same dependencies have code that compiles by itself, tried in one crate.

        If the result of the crate is unclear, none counts as compiling.
        """
        pieces: list[CrateModule | None] = []
        for case, text in replies:
            code = code_from_reply(case, text).code or ""
            read = rust_source.rust_tokens(code)
            is_sharing = code and not rust_source.affects_whole_crate(read)
            pieces.append(crate.crate_module(code, read, _tests(case)) if is_sharing else None)
        compiler = await self._compiler(replies[0][0])
        tried = [piece for piece in pieces if piece is not None]
        async with self._sandbox.workspace({}, readable=compiler.readable) as place:
            _, accepted, _ = await _compile_until_clean(compiler.check, place, tried, BATCH_COMPILE_CPU_SECONDS)
        return [piece in accepted for piece in pieces]

    async def verify(self, case: Case, answer: Answer) -> Finding:
        tests = _tests(case)
        extracted = code_from_reply(case, answer.text)
        if extracted.code is None:
            return Finding(label=FailureLabel.NO_CODE, reason=f"no code in the reply ({extracted.how})")
        read = rust_source.rust_tokens(extracted.code)
        job = RustJob(case, crate.crate_module(extracted.code, read, tests))
        is_alone = rust_source.affects_whole_crate(read) or neighbours.is_never_closed(read)
        finding = await self._batches.done((case.dependencies, job.piece.module if is_alone else ""), job)
        if silenced := rust_source.silenced_lints(read):
            note = Diagnostic(
                level=DiagnosticLevel.NOTE, message=f"silences {silenced}; warnings are counted as if it did not"
            )
            finding = msgspec.structs.replace(finding, diagnostics=(*finding.diagnostics, note))
        return msgspec.structs.replace(
            finding,
            code=extracted.code,
            missing=_missing(case, rust_source.defined_names(read)),
            trust="in-process",
            isolation=self._sandbox.level,
        )

    false_tests = staticmethod(false_tests)

    async def close(self) -> None:
        """Nothing to release."""

    async def _together(self, batch: Sequence[BatchItem[RustJob, Finding]]) -> None:
        """Judge several answers in one crate, and separately those with unclear results; each result is delivered at once."""
        if len(batch) > 1:
            broke = False
            # what could not be found out together is tried alone, where it fails by itself
            with contextlib.suppress(VerifierError):
                broke = await self._batched(batch)
            batch = [each for each in batch if not each.is_done]
            if broke and len(batch) > 3:
                # the compiler did not say which piece broke it; it is in one of the halves
                middle = len(batch) // 2
                await self._together(batch[:middle])
                await self._together(batch[middle:])
                return
        for each in batch:
            try:
                each.tell(await self._alone(each.item))
            except Exception as error:  # noqa: BLE001  one answer's trouble is not the others'
                each.tell(error)

    async def _compiler(self, case: Case) -> RustCompiler:
        tools = toolchain()
        libraries = [await asyncio.to_thread(rust_libraries.compiled_harness, tools)]
        async with self._building:
            linker = await self._linkers.found(tools)
            crates = await rust_libraries.compiled_dependencies(case.dependencies, tools, linker, self._sandbox)
        libraries += [crates] if crates else []
        return RustCompiler(tools, linker, tuple(libraries))

    async def _batched(self, batch: Sequence[BatchItem[RustJob, Finding]]) -> bool:
        """Report the certain results of answers compiled together; returns whether the compiler broke."""
        compiler = await self._compiler(batch[0].item.case)
        seconds = min(BATCH_COMPILE_CPU_SECONDS, max(map(_compile_seconds, (each.item.case for each in batch))))
        async with self._sandbox.workspace({}, readable=compiler.readable) as place:
            pieces = [each.item.piece for each in batch]
            checked, accepted, refused = await _compile_until_clean(compiler.check, place, pieces, seconds)
            built: CompilationResult = checked
            fitting: Sequence[CrateModule] = ()
            # without the linter's result of all of them they are judged apart
            is_unclear = bool(compiler.tools.clippy) and not checked.linted
            # unsafe code could reach into the verdicts of all that are linked with it
            tested = [each for each in accepted if each.tests.found and not checked.of(each).is_unsafe]
            if not is_unclear and tested:
                built, fitting, _ = await _compile_until_clean(compiler.build, place, tested, seconds)
        # who has the last verdict may close the sandbox, so the folder is given back before
        for each in batch:
            if each.item.piece.module in refused:
                each.tell(refused[each.item.piece.module])
        if is_unclear:
            return not checked.outcome.limit

        async def tell(each: BatchItem[RustJob, Finding]) -> None:
            piece = each.item.piece
            finding = _lint_finding(checked, checked.of(piece))
            share = checked.outcome.seconds / len(accepted)
            if not piece.tests.found:
                each.tell(msgspec.structs.replace(finding, compile_seconds=share))
            elif piece in fitting:
                share += built.outcome.seconds / len(fitting)
                finding = msgspec.structs.replace(finding, compile_seconds=share)
                number = fitting.index(piece)
                finding, is_complete = await self._fairly_seen(finding, each.item, compiler, built)
                if not is_complete:
                    finding, is_complete = await self._tested(finding, each.item, compiler, built.program, number)
                if is_complete:
                    each.tell(finding)

        # an answer that never ends delays only itself
        telling = [tell(each) for each in batch if each.item.piece in accepted]
        for error in await asyncio.gather(*telling, return_exceptions=True):
            if error is not None and not isinstance(error, VerifierError):
                raise error
        return any(compiled.broke and not compiled.outcome.limit for compiled in (checked, built))

    async def _alone(self, job: RustJob) -> Finding:
        case, piece = job
        compiler = await self._compiler(case)
        async with self._sandbox.workspace({}, readable=compiler.readable) as place:
            checked = await compiler.check(place, [piece], _compile_seconds(case))
            if checked.of(piece).errors or checked.broke:
                return _compiler_failure(checked, checked.of(piece))
            finding = _lint_finding(checked, checked.of(piece))
            if not piece.tests.found:
                return finding
            built = await compiler.build(place, [piece], _compile_seconds(case))
        finding = msgspec.structs.replace(finding, compile_seconds=checked.outcome.seconds + built.outcome.seconds)
        if built.failed_to_link:
            async with self._building:
                await self._linkers.check_again(compiler.tools)
        if built.other_files:
            reason = f"it reads {built.other_files[0]} while it is compiled"
            return msgspec.structs.replace(finding, passed=False, label=FailureLabel.NOT_ALLOWED, reason=reason)
        if not built.program or built.failed:
            require_rust(case.tests)
            return _test_build_failure(finding, piece, built)
        if built.of(piece).is_unsafe:
            finding = _noted(finding, "has unsafe code, by which it could reach its tests")
        finding, is_complete = await self._fairly_seen(finding, job, compiler, built)
        if not is_complete:
            finding, _ = await self._tested(finding, job, compiler, built.program, 0)
        return finding

    async def _fairly_seen(
        self, finding: Finding, job: RustJob, compiler: RustCompiler, built: CompilationResult
    ) -> tuple[Finding, bool]:
        """What the types in the tests of an answer say about it, and whether that settles it: they have another meaning then."""
        case, piece = job
        types = types_seen(built.functions[piece.module], _author(case))
        deception, doubt = types.deception, types.doubt
        for lent in types.lent:
            if not deception and (lent.is_of_tests or await self._has_method(compiler, lent, _compile_seconds(case))):
                deception, doubt = ("", doubt or lent.deception) if lent.is_named else (lent.deception, doubt)
            elif lent.is_doubtful:
                doubt = doubt or lent.deception
        if deception:
            tampered = msgspec.structs.replace(
                finding, passed=False, label=FailureLabel.TAMPERED, reason=deception, tampered=deception
            )
            return tampered, True
        for broken in types.broken:
            async with self._sandbox.workspace({}, readable=compiler.readable) as place:
                is_pinned = await compiler.fits_tests(place, piece, broken.stated.text, _compile_seconds(case))
            if is_pinned:
                reason = f"the prompt says `{broken.stated.text}`, and {broken.name} returns {broken.returns}"
                failed = tuple(Test(name=test.name, outcome="failed", message=reason) for test in piece.tests.found)
                finding = msgspec.structs.replace(
                    finding, tests=failed, label=FailureLabel.DOES_NOT_FIT_THE_TESTS, reason=reason
                )
                return finding, True
        return (_noted(finding, doubt) if doubt else finding), False

    async def _has_method(self, compiler: RustCompiler, lent: LentMethod, seconds: float) -> bool:
        if lent not in self._methods:
            async with self._sandbox.workspace({}, readable=compiler.readable) as place:
                self._methods[lent] = await compiler.has_method(place, lent.type, lent.method, seconds)
        return self._methods[lent]

    async def _tested(
        self, finding: Finding, job: RustJob, compiler: RustCompiler, program: bytes, number: int
    ) -> tuple[Finding, bool]:
        """Run the tests of one piece in a folder of its own; also whether that settles it."""
        case, piece = job
        secret = secrets.token_hex(16).encode()
        seconds = math.ceil(case.timeout_secs)
        # nothing else is in it: no source of tests or answers, and nothing that other answers left
        async with (
            self._testing,
            self._sandbox.workspace({"attempt": program}, readable=compiler.readable) as place,
        ):
            outcome = await place.run(
                ["./attempt", str(number), str(seconds)],
                stdin=secret,
                limits=ResourceLimits(cpu_seconds=seconds, wall_seconds=2 * seconds + 10),
            )
        report = harness_report(outcome, secret)
        tests = _outcomes_of_tests(piece.tests.found, report, outcome)
        label, reason = _why(piece.tests.found, report, tests, outcome)
        finding = msgspec.structs.replace(
            finding,
            tests=tuple(tests),
            label=label,
            reason=reason,
            output=crate.stable_output(outcome.stderr, piece),
            test_seconds=outcome.seconds,
            trouble=_trouble(report, outcome),
        )
        # its tests have a process of their own: alone they would run out of time as well
        return finding, report.finished or outcome.limit in TIMEOUT_LABELS


def _compile_seconds(case: Case) -> float:
    return case.timeout_secs if case.compile_secs is None else case.compile_secs


async def _compile_until_clean(
    compiled_together: Callable[[Workspace, Sequence[CrateModule], float], Awaitable[CompilationResult]],
    place: Workspace,
    pieces: Sequence[CrateModule],
    seconds: float,
) -> tuple[CompilationResult, Sequence[CrateModule], dict[str, Finding]]:
    """Compile, leave out what failed, and compile again.

    Returns the pieces that compile together, none if that is in doubt, and by module what is certain of pieces that do not compile.
    """
    refused: dict[str, Finding] = {}
    while True:
        compiled = await compiled_together(place, pieces, seconds)
        if compiled.broke:
            return compiled, (), refused
        failed = {module: messages for module, messages in compiled.messages.items() if messages.errors}
        errors = {module: messages.errors for module, messages in failed.items()}
        if not neighbours.reached_bodies(errors):
            # those that kept the compiler from looking further are taken out, and it looks at the others again
            stopping = {module for module in failed if neighbours.stops_the_compiler(errors[module])}
            failed = {module: failed[module] for module in stopping or failed}
        elif not compiled.linter_crashed and not any(piece.may_change_inference for piece in pieces):
            share = compiled.outcome.seconds / len(pieces)
            for module, messages in failed.items():
                if not neighbours.depends_on_inference(messages.errors):
                    finding = _compiler_failure(compiled, messages)
                    refused[module] = msgspec.structs.replace(finding, compile_seconds=share)
        pieces = [piece for piece in pieces if piece.module not in failed]
        if not pieces or not failed:
            return compiled, pieces, refused


@cache
def _cached_tests(source: str, expected: tuple[str, ...], crates: tuple[str, ...]) -> case_tests.RustTests:
    return case_tests.parse_rust_tests(source, expected, crates)


def _tests(case: Case) -> case_tests.RustTests:
    """The tests of a case; a VerifierError when they cannot be counted."""
    if not case.expectations.should_compile or not case.expectations.should_pass_tests:
        return case_tests.RustTests((), "", frozenset(), "")
    expected = (*case.expectations.expected_functions, *case.expectations.expected_types, *_redefined(case))
    crates = {dependency.name.replace("-", "_") for dependency in case.dependencies}
    found = _cached_tests(case.tests, expected, tuple(sorted(crates)))
    if found.unsupported:
        raise VerifierError(f"its tests hold {found.unsupported}; write them out as functions with #[test]")
    if not found.found:
        raise VerifierError("no tests; write functions with #[test]")
    for runtime in found.runtimes:
        if (crate_name := runtime.partition("::")[0]) not in crates:
            raise VerifierError(f"its tests hold #[{runtime}]; add {crate_name} to its dependencies")
    return found


def _author(case: Case) -> AuthorNames:
    prompt = "\n".join(message.text for message in case.messages)
    known = (case.reference, *case.expectations.expected_functions, *case.expectations.expected_types)
    return author_names(prompt, "\n".join(known), case.tests)


def _redefined(case: Case) -> Sequence[str]:
    """The names of the standard library that the prompt gives to types of the answer's."""
    return sorted(STANDARD_TYPE_NAMES & _author(case).types)


def _missing(case: Case, defined: rust_source.DefinedNames) -> tuple[str, ...]:
    functions = [
        name for name in case.expectations.expected_functions if _last_path_segment(name) not in defined.functions
    ]
    types = [name for name in case.expectations.expected_types if _last_path_segment(name) not in defined.types]
    return (*functions, *types)


def _last_path_segment(name: str) -> str:
    """A method is looked for by its own name: `push` for `Stack::push`."""
    return name.rpartition("::")[2].removeprefix("r#")


def _noted(finding: Finding, doubt: str) -> Finding:
    """A finding whose pass should be read, with the reason."""
    note = Diagnostic(level=DiagnosticLevel.NOTE, message=f"read this answer: it {doubt}")
    return msgspec.structs.replace(finding, diagnostics=(*finding.diagnostics, note))


def _lint_finding(checked: CompilationResult, messages: CompilerMessages) -> Finding:
    return Finding(
        compiled=True,
        warnings=len(messages.lints) if checked.linted else None,
        diagnostics=messages.lints[: crate.MAX_DIAGNOSTICS_PER_ANSWER],
        compile_seconds=checked.outcome.seconds,
    )


def _compiler_failure(checked: CompilationResult, messages: CompilerMessages) -> Finding:
    """What is true of an answer that the compiler did not accept by itself."""
    finding = Finding(
        compiled=False,
        diagnostics=(messages.errors + messages.lints)[: crate.MAX_DIAGNOSTICS_PER_ANSWER],
        compile_seconds=checked.outcome.seconds,
    )
    return msgspec.structs.replace(finding, **_compiler_label_and_reason(checked, messages.errors))


def _test_build_failure(finding: Finding, piece: CrateModule, built: CompilationResult) -> Finding:
    """What is true of an answer that compiles, but not together with its tests."""
    messages = built.of(piece)
    finding = msgspec.structs.replace(
        finding, diagnostics=(messages.errors + finding.diagnostics)[: crate.MAX_DIAGNOSTICS_PER_ANSWER]
    )
    fits_badly = bool(messages.errors) and not built.outcome.limit and all(map(crate.is_about_tests, messages.errors))
    if not fits_badly:
        return msgspec.structs.replace(finding, compiled=False, **_compiler_label_and_reason(built, messages.errors))
    reason = f"the tests do not compile with it: {messages.errors[0].message}"
    tests = tuple(Test(name=test.name, outcome="failed", message=reason) for test in piece.tests.found)
    return msgspec.structs.replace(finding, tests=tests, label=FailureLabel.DOES_NOT_FIT_THE_TESTS, reason=reason)


def _compiler_label_and_reason(compiled: CompilationResult, errors: Sequence[Diagnostic]) -> dict[str, str]:
    """Why the compiler gave no result, as a label and a reason."""
    if compiled.outcome.limit:
        return {"label": compiled.outcome.limit, "reason": f"the compiler was stopped at the {compiled.outcome.limit}"}
    if errors or compiled.elsewhere:
        return {
            "label": FailureLabel.DOES_NOT_COMPILE,
            "reason": errors[0].message if errors else compiled.elsewhere[0],
            # about what it names a place for, the compiler is at work
            "trouble": "" if errors else trouble_sign(compiled.outcome),
        }
    # an answer can influence the messages, which are JSON objects; the other lines are the compiler's own
    lines = [line for line in compiled.outcome.stdout.splitlines() if not line.startswith(b"{")]
    if any(b"memory allocation of" in line or b"out of memory" in line for line in lines):
        return {"label": FailureLabel.MEMORY_LIMIT, "reason": "the compiler was stopped at the memory limit"}
    reason = f"the compiler {_process_end_text(compiled.outcome.exit_code)}"
    return {"label": FailureLabel.DIED, "reason": reason, "trouble": trouble_sign(compiled.outcome)}


def _outcomes_of_tests(
    tests: Sequence[case_tests.RustTest], report: HarnessReport, outcome: ProcessResult
) -> list[Test]:
    """Every test in the source; tests that the program claims do not count."""
    judged: list[Test] = []
    number = 0
    for test in tests:
        if test.ignored:
            judged.append(Test(name=test.name, outcome="ignored"))
            continue
        fact = report.tests.get(number)
        number += 1
        if fact is None:
            judged.append(Test(name=test.name, outcome="failed", message=_harness_end_text(outcome)))
        elif fact.outcome is HarnessOutcome.PASSED:
            judged.append(Test(name=test.name, outcome="passed", seconds=fact.seconds))
        else:
            is_told = fact.outcome in (HarnessOutcome.DIFFERS, HarnessOutcome.FAILED)
            message = fact.message if is_told else _test_end_text(fact)
            cause = TEST_FAILURE_CAUSES.get(fact.outcome, "death")
            judged.append(Test(name=test.name, outcome="failed", message=message, seconds=fact.seconds, cause=cause))
    return judged


def _why(
    tests: Sequence[case_tests.RustTest], report: HarnessReport, judged: Sequence[Test], outcome: ProcessResult
) -> tuple[str, str]:
    """The kind of failure, and the failure in one line."""
    running = [place for place, test in enumerate(tests) if not test.ignored]
    for number, place in enumerate(running):
        test = judged[place]
        if test.outcome == "passed":
            continue
        fact = report.tests.get(number)
        reason = f"{test.name}: {test.message}"
        if fact is None:
            return outcome.limit or FailureLabel.DIED, reason
        if fact.outcome in TEST_FAILURE_LABELS:
            return TEST_FAILURE_LABELS[fact.outcome], reason
        # the standard library says so before it aborts; an answer that says and does the same has failed as well
        is_aborted = fact.outcome is HarnessOutcome.KILLED and fact.code == signal.SIGABRT
        is_short = is_aborted and b"memory allocation of" in outcome.stderr
        return (outcome.limit or (FailureLabel.MEMORY_LIMIT if is_short else FailureLabel.DIED)), reason
    return ("", "") if running else (FailureLabel.NO_TESTS, "all tests are ignored")


def _trouble(report: HarnessReport, outcome: ProcessResult) -> str:
    is_killed = any(
        fact.outcome is HarnessOutcome.KILLED and fact.code == signal.SIGKILL for fact in report.tests.values()
    )
    if not report.began and not outcome.limit:
        # code of the answer that runs before main can do that as well as a machine
        return "the harness did not start"
    return "a test was killed from outside" if is_killed and not outcome.limit else trouble_sign(outcome)


def _test_end_text(fact: HarnessTestResult) -> str:
    if fact.outcome is HarnessOutcome.CPU:
        return "stopped at the cpu limit"
    return _process_end_text(-fact.code if fact.outcome is HarnessOutcome.KILLED else fact.code)


def _harness_end_text(outcome: ProcessResult) -> str:
    return f"stopped at the {outcome.limit}" if outcome.limit else _process_end_text(outcome.exit_code)


def _process_end_text(exit_code: int) -> str:
    if exit_code < 0:
        return f"died before the verdict, by signal {-exit_code}"
    return f"died before the verdict, with exit code {exit_code}"
