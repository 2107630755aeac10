"""Answers in any language, judged by commands that the eval set declares."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.errors import InputError, MissingToolError, VerifierError, did_you_mean
from steelyard.languages.controls import false_tests
from steelyard.languages.table import END_PLACEHOLDER
from steelyard.protocols import FailureLabel, ProcessResult, ResourceLimits, Sandbox, Workspace
from steelyard.providers.agent import workspaces
from steelyard.records import Answer, Case, Finding, Test
from steelyard.sandbox.processors import processor_count
from steelyard.verifiers.code.block_names import block_names
from steelyard.verifiers.code.extract import canonical_language, extract
from steelyard.verifiers.code.pairs import check_pairs, finding_by_pairs
from steelyard.verifiers.code.patches import added_lines, patch_in
from steelyard.verifiers.command.needs import needs
from steelyard.verifiers.command.output import (
    MAX_COMMAND_OUTPUT_CHARS,
    bad_end_text,
    build_failure,
    combined_output,
    error_line,
    is_plain_end,
    lint_warnings,
    one_line,
    process_limit,
    short_command,
    subtract_baseline,
)
from steelyard.verifiers.command.own_places import OwnPlaces, own_places
from steelyard.verifiers.command.proof import EndProof, end_line, end_proof, needs_descriptor_paths
from steelyard.verifiers.command.results import RESULT_PARSERS, parse_results
from steelyard.verifiers.command.settings import CommandSettings
from steelyard.verifiers.command.stubs import command_stub
from steelyard.verifiers.command.text_results import MAX_RESULTS_BYTES, ForgedResultsError, UnreadableResultsError
from steelyard.verifiers.trouble import trouble_sign
from steelyard.verifiers.witnesses import command_witness

EXIT_CODE_RESULTS = "exit code"
BEFORE_PAIRS_FIELDS = ("compiled", "compile_seconds", "warnings", "diagnostics")
"""What is known of an answer before it runs as a program."""
COMMAND_MEMORY_BYTES = 2 << 30
"""Twice the usual, because it limits addresses: node reserves 600 MB of them before it runs a line, Go and Java no less."""
MIN_BUILD_CPU_SECONDS = 60
"""CPU seconds for a build where a case's limit is less: that says how long an answer may run, and a C++ compiler takes ten on a busy machine."""
MAX_CACHED_WORKSPACES = 4
"""Workspaces that are kept for further answers."""
GIT_APPLY_COMMAND = ("git", "apply", "--whitespace=nowarn", "-")
GIT_APPLY_ENVIRONMENT = {**workspaces.GIT_ENVIRONMENT, "GIT_DIR": "/nonexistent"}
"""The environment in which a patch is applied: no repository, and none of the settings in the workspace."""

MISSING_TOOLS_SCRIPT = 'for tool; do command -v "$tool" >/dev/null || echo "$tool"; done'
"""Prints the tools that are not there."""

CLEAR_PATHS_SCRIPT = """
chmod u+rwx . || exit 1
for name; do
    case $name in
        */) name=${name%/}
            if [ -d "$name" ] && [ ! -L "$name" ]; then chmod u+rwx -- "$name"
            else rm -rf -- "$name" && mkdir -- "$name"; fi ;;
        *) size=${name%% *} name=${name#* }
            rm -rf -- "$name" && head -c "$size" /dev/zero >"$name" ;;
    esac || exit 1
done
"""
"""Makes room for files: anything in their place, such as a link, is removed, and a full disk is noticed."""


class PackedWorkspace(NamedTuple):
    """A workspace on its way into sandboxes."""

    archive: bytes
    is_replaced: bool
    """Whether a file of the case replaces one of the workspace with different content."""


class CommandVerifier:
    """Writes an answer beside the eval set's files into a sandbox, and builds, lints and tests it there.

    The answer to a case with a workspace is a patch of it: that is applied to a copy, which is compared with the original.
    """

    settings = CommandSettings
    version = "command 17"
    at_once = processor_count()
    runs_code = True

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._is_there: dict[str, bool] = {}
        self._packed: dict[str, PackedWorkspace] = {}
        self._before: dict[str, Finding] = {}
        """What was found in each workspace before any change."""
        self._turns: dict[str, asyncio.Lock] = {}

    def check(self, case: Case) -> None:
        _check_names(case)
        _check_commands(case)
        if case.workspace:
            _check_change(case)
            _pack(case)

    async def prepare(self, case: Case) -> None:
        """Raise VerifierError when a tool that the case names is not there."""
        await self._need(_required_tools(case))

    def stub(self, case: Case) -> str:
        return command_stub(case)

    def advice(self, case: Case) -> str:
        if not _is_by_exit_code(case) or _end_proof(case):
            return ""
        line = end_line(case)
        return (
            "only an exit code says that its tests passed, so an answer that ends with 0 before they do passes, too; let a file of tests "
            f"print {END_PLACEHOLDER} last{f' ({line})' if line else ''}, or have `results` read a report"
        )

    def witness(self, case: Case) -> Case:
        return command_witness(case, _required_tools(case), needs(case, _own_names(case)))

    async def verify(self, case: Case, answer: Answer) -> Finding:
        _check_names(case)
        _check_commands(case)
        if case.workspace:
            return await self._change(case, answer)
        expected = (*case.expectations.expected_functions, *case.expectations.expected_types)
        extracted = extract(answer.text, case.language, defines=expected)
        if extracted.code is None:
            return Finding(label=FailureLabel.NO_CODE, reason=f"no code in the reply ({extracted.how})")
        await self._need(_required_tools(case))
        proof = _end_proof(case)
        said = CommandSettings.of(case)
        own = {said.answer: extracted.code}
        built = {**(proof.built if proof else said.files), **own}
        readable = _places_of(tuple(_commands(case))).readable
        has_paths = needs_descriptor_paths(case)
        async with self._sandbox.workspace(built, readable=readable, descriptor_paths=has_paths) as place:
            files = {**(proof.tested if proof else said.files), **own}
            finding = await _build_lint_and_test(place, case, files, proof)
        return replace(
            finding,
            code=extracted.code,
            missing=_missing(extracted.code, case.language, expected),
            # what a program must print never enters the sandbox
            trust="isolated" if said.run else "in-process",
            isolation=self._sandbox.level,
        )

    false_tests = staticmethod(false_tests)

    async def close(self) -> None:
        """Nothing to release."""

    async def _change(self, case: Case, answer: Answer) -> Finding:
        """What the patch in an answer makes of the workspace."""
        patch = patch_in(answer.text)
        if not patch.strip():
            return _unjudgeable_finding("no change", answer.error or "the answer is not a patch, or is empty")
        await self._need(_required_tools(case))
        packed, before = await self._untouched(case)
        proof = _end_proof(case)
        async with self._sandbox.workspace({}, readable=_places_of(tuple(_commands(case))).readable) as place:
            finding = await _finding_after_patch(place, case, packed, patch, proof)
        if finding.label != FailureLabel.DOES_NOT_APPLY:
            finding = subtract_baseline(before, finding, CommandSettings.of(case).fixes, replaced=packed.is_replaced)
        expected = (*case.expectations.expected_functions, *case.expectations.expected_types)
        return replace(
            finding,
            code=patch,
            missing=_missing(added_lines(patch), case.language, expected),
            trust="in-process",
            isolation=self._sandbox.level,
        )

    async def _untouched(self, case: Case) -> tuple[PackedWorkspace, Finding]:
        """A workspace and the results of its own tests, which are run once for all waiting answers."""
        key = f"{case.tests_digest} {case.workspace}"
        async with self._turns.setdefault(key, asyncio.Lock()):
            packed = self._packed.pop(key) if key in self._packed else await asyncio.to_thread(_pack, case)
            self._packed[key] = packed
            while len(self._packed) > MAX_CACHED_WORKSPACES:
                del self._packed[next(iter(self._packed))]
            if key not in self._before:
                readable = _places_of(tuple(_commands(case))).readable
                async with self._sandbox.workspace({}, readable=readable) as place:
                    self._before[key] = await _baseline_finding(place, case, packed)
            return packed, self._before[key]

    async def _need(self, tools: Iterable[str]) -> None:
        """Raises if a tool is missing: checked before an answer runs, so that no answer can fake an outage."""
        needed = dict.fromkeys(tools)
        unknown = [tool for tool in needed if tool not in self._is_there]
        if unknown:
            places = own_places(unknown)
            async with self._sandbox.workspace({}, readable=places.readable) as place:
                script = ["/bin/sh", "-c", MISSING_TOOLS_SCRIPT, "sh", *unknown]
                outcome = await place.run(script, environment=dict(places.environment))
            if outcome.exit_code or outcome.limit:
                raise VerifierError(f"no shell in the sandbox: {error_line(combined_output(outcome))}")
            missing = outcome.stdout.decode("utf-8", "replace").split("\n")
            self._is_there |= {tool: tool not in missing for tool in unknown}
        absent = [tool for tool in needed if not self._is_there[tool]]
        if "git" in absent:
            raise MissingToolError(
                f"not found in the sandbox: git, which applies patches; {workspaces.GIT_MISSING_MESSAGE}"
            )
        if absent:
            raise MissingToolError(f"not found in the sandbox: {', '.join(absent)}; install it, or correct the command")


# ---- what a case declares


def _check_names(case: Case) -> None:
    said = CommandSettings.of(case)
    if not said.answer and not case.workspace:
        raise VerifierError('no file for the answer; write for example answer = "answer.c"')
    if said.answer and case.workspace:
        raise VerifierError("with a workspace the answer is a patch, so the answer has no file; leave it out")
    taken: dict[str, str] = {}
    for name in filter(None, (said.answer, *said.files, _report(case))):
        path = PurePosixPath(name)
        if str(path) != name or name == "." or path.is_absolute() or ".." in path.parts or not name.isprintable():
            raise VerifierError(f"{name!r:.200} is not a plain path below the folder; write it like tests/sum.c")
        # names that differ only in case are one file on macOS
        if name.casefold() in taken:
            raise VerifierError(f'two files are called "{name}"; give each a different name')
        taken[name.casefold()] = name
    for folded, name in taken.items():
        above = next((taken[str(path)] for path in PurePosixPath(folded).parents if str(path) in taken), None)
        if above:
            raise VerifierError(f'"{above}" is a file, so "{name}" cannot be in it')


def _check_commands(case: Case) -> None:
    said = CommandSettings.of(case)
    kind, _, report = said.results.partition(":")
    known = {EXIT_CODE_RESULTS, *RESULT_PARSERS}
    if kind and kind not in known:
        raise VerifierError(f'unknown results "{kind[:80]}" ({did_you_mean(kind[:80], known)})')
    if kind == EXIT_CODE_RESULTS and report:
        raise VerifierError("an exit code is not read from a file")
    if not _is_tested(case) and not said.build:
        raise VerifierError("no build command, so it is unknown whether an answer compiles")
    if _is_tested(case) and not said.test and not said.run:
        raise VerifierError(
            'no test command; write for example test = "node test.mjs", or run = "node answer.mjs" with pairs'
        )
    if said.run or said.pairs:
        _check_program(case)
    for command in _commands(case):
        try:
            list(_tools(command))
        except ValueError as error:
            raise VerifierError(f"{command!r:.200} is not a shell command: {error}") from None


def _check_program(case: Case) -> None:
    verify = CommandSettings.of(case)
    if not verify.run:
        raise VerifierError('pairs need a command that runs the answer; write for example run = "node answer.mjs"')
    if not verify.pairs:
        raise VerifierError('run needs pairs; write for example pairs = [{ input = "1 2", output = "3" }]')
    if verify.test or verify.results or case.workspace:
        raise VerifierError(
            "an answer that is run with pairs has no test command, results or workspace; leave them out"
        )
    check_pairs(verify.pairs, verify.tolerance)


def _check_change(case: Case) -> None:
    if shutil.which("git") is None:
        raise MissingToolError(workspaces.GIT_MISSING_MESSAGE)
    if not case.expectations.should_compile:
        raise VerifierError("with a workspace an answer that must not build makes no sense; leave should_compile out")


def _pack(case: Case) -> PackedWorkspace:
    """The workspace of a case, as it was when the case was loaded."""
    try:
        files = workspaces.workspace_files(case.workspace)
    except InputError as error:
        raise VerifierError(f"workspace: {error}") from None
    if case.verify.workspace_digest and workspaces.workspace_digest(files) != case.verify.workspace_digest:
        raise VerifierError(
            f"workspace {case.workspace} changed since the case was loaded; "
            "ask again with the new one, or put the old one back: FOLDER@COMMIT never changes"
        )
    own = CommandSettings.of(case).files
    is_replaced = any(name in own and own[name].encode() != file.content for name, file in files.items())
    return PackedWorkspace(workspaces.tar_archive(files), is_replaced)


def _is_tested(case: Case) -> bool:
    return case.expectations.should_compile and case.expectations.should_pass_tests


def _report(case: Case) -> str:
    """The file that the results are read from; empty when they are printed."""
    return CommandSettings.of(case).results.partition(":")[2]


def _commands(case: Case) -> list[str]:
    verify = CommandSettings.of(case)
    judging = (verify.test, verify.run) if _is_tested(case) else ()
    return [command for command in (verify.build, verify.lint, *judging) if command]


def _required_tools(case: Case) -> list[str]:
    """The programs that must be there."""
    own = ["git", "tar"] if case.workspace else []
    return [*own, *(tool for command in _commands(case) for tool in _tools(command))]


def _own_names(case: Case) -> frozenset[str]:
    """The names, without suffixes, of all files and folders that a case has itself."""
    said = CommandSettings.of(case)
    try:
        there = workspaces.workspace_files(case.workspace)
    except InputError:
        there = {}  # no answer to the case is judged then, which has a reason of its own
    paths = map(PurePosixPath, [said.answer, *said.files, *there])
    return frozenset(part.partition(".")[0] for path in paths for part in path.parts)


@lru_cache(maxsize=256)
def _places_of(commands: tuple[str, ...]) -> OwnPlaces:
    """What the programs that commands name need to find themselves."""
    return own_places(tool for command in commands for tool in _tools(command))


def _tools(command: str) -> Iterator[str]:
    """The programs that a shell command names; those that it makes itself, such as ./answer, are not among them.

    >>> list(_tools("cd src && LANG=$L gcc -o answer answer.c; ./answer | tee log"))
    ['cd', 'gcc', 'tee']
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.wordchars += "+$:{},@%^"
    words = list(lexer)
    # a script with a function or a here-document is not a plain list of commands
    special = next((number - 1 for number, word in enumerate(words) if "(" in word or "<<" in word), len(words))
    is_first = True
    for word in words[: max(0, special)]:
        if set(word) <= set("&|;"):
            is_first = True
        elif is_first and not re.match(r"\w+=", word):
            is_first = False
            if re.fullmatch(r"/?[\w.+-][\w.+/-]*", word) and ("/" not in word or word.startswith("/")):
                yield word


def _missing(code: str, language: str, expected: tuple[str, ...]) -> tuple[str, ...]:
    """The expected names that no line defines, methods included."""
    bound = block_names("\n".join(line.lstrip() for line in code.split("\n")), canonical_language(language)).bound
    method = r"^[ \t]*(?:[\w<>,]+[ \t]+)*[*&]?{}[ \t]*\([^\n]*\{{"
    return tuple(
        name
        for name in expected
        if name not in bound and not re.search(method.format(re.escape(name)), code, re.MULTILINE)
    )


# ---- what a patch does


async def _baseline_finding(place: Workspace, case: Case, packed: PackedWorkspace) -> Finding:
    """What the workspace's own tests say before any change, without those that the case adds."""
    await _unpack(place, packed)
    found = await _build_lint_and_test(place, case, {})
    if found.tampered:
        raise VerifierError(f"the workspace's own tests cannot be distinguished: {found.tampered}")
    if found.compiled is False and (lint := CommandSettings.of(case).lint):
        warnings = lint_warnings(await _run(place, lint, case, compiles=True), case)
        found = replace(found, warnings=len(warnings), diagnostics=tuple(warnings))
    return found


async def _finding_after_patch(
    place: Workspace, case: Case, packed: PackedWorkspace, patch: str, proof: EndProof | None
) -> Finding:
    """What is true of the workspace with the patch in it, and the case's own files on top of that."""
    await _unpack(place, packed)
    applied = await place.run(GIT_APPLY_COMMAND, stdin=patch.encode(), environment=GIT_APPLY_ENVIRONMENT)
    if applied.exit_code or applied.limit:
        printed = (
            bad_end_text(applied) if applied.limit else error_line(combined_output(applied)) or bad_end_text(applied)
        )
        return _unjudgeable_finding(FailureLabel.DOES_NOT_APPLY, printed.removeprefix("error: "))
    obstacle = await _rewrite_files(place, proof.built if proof else CommandSettings.of(case).files, "the patch")
    if obstacle:
        return _unjudgeable_finding(FailureLabel.DOES_NOT_APPLY, obstacle)
    files = proof.tested if proof else CommandSettings.of(case).files
    return await _build_lint_and_test(place, case, files, proof)


async def _unpack(place: Workspace, packed: PackedWorkspace) -> None:
    unpacked = await place.run(["tar", "-xf", "-"], stdin=packed.archive)
    if unpacked.exit_code or unpacked.limit:
        raise VerifierError(f"the workspace does not fit into the sandbox: {error_line(combined_output(unpacked))}")


def _unjudgeable_finding(label: str, reason: str) -> Finding:
    """An answer that left nothing to judge: it scores like one that does not build."""
    return Finding(compiled=False, label=label, reason=reason)


# ---- what an answer does


async def _build_lint_and_test(
    place: Workspace, case: Case, files: Mapping[str, str], proof: EndProof | None = None
) -> Finding:
    verify = CommandSettings.of(case)
    finding = Finding()
    if verify.build:
        built = await _run(place, verify.build, case, compiles=True)
        if built.exit_code or built.limit:
            return build_failure(built, case)
        finding = Finding(compiled=True, compile_seconds=built.seconds)
        obstacle = await _rewrite_files(place, files, "the build")
        if obstacle:
            return replace(
                finding,
                tests=_failed_test(verify.test or verify.run or verify.build, obstacle),
                label=FailureLabel.DIED,
                reason=obstacle,
            )
    if verify.lint:
        warnings = lint_warnings(await _run(place, verify.lint, case, compiles=True), case)
        finding = replace(finding, warnings=len(warnings), diagnostics=tuple(warnings))
    if not _is_tested(case):
        return finding
    if verify.run:
        judged = await finding_by_pairs(
            verify.pairs, verify.tolerance, lambda stdin: _run(place, verify.run, case, stdin)
        )
        return replace(judged, **{name: getattr(finding, name) for name in BEFORE_PAIRS_FIELDS})
    return await _tested(place, case, finding, proof)


async def _tested(place: Workspace, case: Case, finding: Finding, proof: EndProof | None) -> Finding:
    """What the test command says."""
    verify = CommandSettings.of(case)
    report = _report(case)
    if report:
        # what a build or a lint has left there is no result
        obstacle = await _rewrite_files(place, {report: ""}, "the build")
        if obstacle:
            return replace(finding, tests=_failed_test(verify.test, obstacle), label=FailureLabel.DIED, reason=obstacle)
    outcome = await _run(place, verify.test, case)
    printed = await place.read(report, MAX_RESULTS_BYTES + 1) if report else outcome.stdout
    output = proof.without(combined_output(outcome)) if proof else combined_output(outcome)
    finding = replace(finding, output=output[:MAX_COMMAND_OUTPUT_CHARS], test_seconds=outcome.seconds)
    try:
        tests = _tests(printed, outcome, case)
    except ForgedResultsError as error:
        return replace(
            finding,
            tests=_failed_test(verify.test, str(error)),
            label=FailureLabel.TAMPERED,
            reason=f"tampered with the results: {error}",
            tampered=str(error),
        )
    if proof and not proof.is_in(outcome.stdout) and all(test.outcome == "passed" for test in tests):
        tests = list(_failed_test(verify.test, "ended before the end of its tests", outcome.seconds))
    label, reason = _why(tests, outcome)
    return replace(finding, tests=tuple(tests), label=label, reason=reason, trouble=trouble_sign(outcome))


def _end_proof(case: Case) -> EndProof | None:
    """The proof that the tests finished, if they have no report."""
    return end_proof(case) if _is_by_exit_code(case) else None


def _is_by_exit_code(case: Case) -> bool:
    """Whether there are tests of which nothing but an exit code is known."""
    said = CommandSettings.of(case)
    return _is_tested(case) and not said.run and said.results in ("", EXIT_CODE_RESULTS)


async def _run(
    place: Workspace, command: str, case: Case, stdin: bytes = b"", *, compiles: bool = False
) -> ProcessResult:
    seconds = case.timeout_secs
    if compiles:
        seconds = case.compile_secs or max(seconds, MIN_BUILD_CPU_SECONDS)
    limits = ResourceLimits(
        cpu_seconds=seconds,
        # a busy machine must not turn right into timed out: CPU time decides, wall time is a backstop
        wall_seconds=2 * seconds + 10,
        memory_bytes=COMMAND_MEMORY_BYTES,
        compiles=compiles,
    )
    needed = _places_of(tuple(_commands(case)))
    script = ["/bin/sh", "-c", needed.setup + command]
    return await place.run(script, stdin=stdin, limits=limits, environment=dict(needed.environment))


async def _rewrite_files(place: Workspace, files: Mapping[str, str], after: str) -> str:
    """Write files again, replacing anything in their place; returns what the answer did to prevent it."""
    folders = {f"{above}/": None for name in files for above in reversed(PurePosixPath(name).parents[:-1])}
    sizes = [f"{len(content.encode())} {name}" for name, content in files.items()]
    # a sandbox that cannot write is our failure, so a full disk must show before
    cleared = await place.run(["/bin/sh", "-c", CLEAR_PATHS_SCRIPT, "sh", *folders, *sizes])
    if cleared.exit_code or cleared.limit:
        return f"{after} left no way or room for the tests: {error_line(combined_output(cleared)) or bad_end_text(cleared)}"
    await place.write(files)
    return ""


def _tests(printed: bytes | None, outcome: ProcessResult, case: Case) -> list[Test]:
    """The tests as their runner reports them, with a failed one for every other error."""
    said = CommandSettings.of(case)
    command = said.test
    kind = said.results.partition(":")[0] or EXIT_CODE_RESULTS
    ended = bad_end_text(outcome)
    if kind == EXIT_CODE_RESULTS:
        if not ended:
            return [Test(name=short_command(command), outcome="passed", seconds=outcome.seconds)]
        message = error_line(combined_output(outcome)) if is_plain_end(outcome) else ""
        return list(_failed_test(command, message or ended, outcome.seconds))
    try:
        if printed is None:
            raise UnreadableResultsError(f"no file {_report(case)}")
        tests = [_with_tests(test, case) for test in parse_results(printed, kind)]
    except UnreadableResultsError as error:
        first_line = error_line(combined_output(outcome)) if ended else ""
        return list(_failed_test(command, first_line or str(error), outcome.seconds))
    if not tests:
        first_line = error_line(outcome.stderr.decode("utf-8", "replace")) if ended else ""
        return list(_failed_test(command, first_line or "no test ran", outcome.seconds))
    if ended and (not is_plain_end(outcome) or all(test.outcome != "failed" for test in tests)):
        tests.append(Test(name=EXIT_CODE_RESULTS, outcome="failed", message=ended))
    return tests


def _with_tests(test: Test, case: Case) -> Test:
    """The test, failed when it only says that a whole file ended: `node --test` does when the file ran no test."""
    is_file = any(test.name == name or test.name.endswith(f"/{name}") for name in CommandSettings.of(case).files)
    if not is_file:
        return test
    # the folder has another name every time
    name = PurePosixPath(test.name).name
    if test.outcome == "passed":
        return replace(test, name=name, outcome="failed", message="ended before any of its tests")
    return replace(test, name=name)


def _why(tests: list[Test], outcome: ProcessResult) -> tuple[str, str]:
    """The kind of failure, and the failure in one line."""
    wrong = next((test for test in tests if test.outcome == "failed"), None)
    if wrong is None:
        if any(test.outcome == "passed" for test in tests):
            return "", ""
        return FailureLabel.WRONG_ANSWER, "the only test was ignored" if len(
            tests
        ) == 1 else f"all {len(tests):,} tests were ignored"
    limit = process_limit(outcome)
    if limit:
        return limit, f"stopped at the {limit} after {outcome.seconds:.1f} s"
    if not is_plain_end(outcome):
        return FailureLabel.DIED, bad_end_text(outcome)
    return FailureLabel.WRONG_ANSWER, f"{wrong.name}: {one_line(wrong.message)}" if wrong.message else wrong.name


def _failed_test(command: str, message: str, seconds: float = 0) -> tuple[Test]:
    return (Test(name=short_command(command), outcome="failed", message=message, seconds=seconds),)
