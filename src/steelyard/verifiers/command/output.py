"""How a command ended, what it printed read as diagnostics, and what changed since the run before."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from steelyard.protocols import FailureLabel, ProcessLimit, ProcessResult
from steelyard.records import Case, Diagnostic, DiagnosticLevel, Finding, Span, Test
from steelyard.verifiers.command.settings import CommandSettings
from steelyard.verifiers.command.text_results import SUITE_SEPARATOR
from steelyard.verifiers.trouble import trouble_sign

MAX_COMMAND_OUTPUT_CHARS = 64 << 10
"""Characters of output that are kept."""
MAX_DIAGNOSTIC_LINES = 10_000
"""The maximum number of lines of a compiler or linter that are read."""
OUT_OF_MEMORY_PATTERN = re.compile(
    r"out of memory|cannot allocate memory|bad_alloc|memory exhausted|memory allocation of|OutOfMemoryError|MemoryError",
    re.IGNORECASE,
)


def _signal(outcome: ProcessResult) -> int:
    """The signal that ended the command, or the last program of a shell command; 0 for none."""
    code = outcome.exit_code
    return -code if code < 0 else code - 128 if 128 < code < 128 + signal.NSIG else 0


def process_limit(outcome: ProcessResult) -> ProcessLimit:
    """The limit that ended a command; empty for none."""
    if outcome.limit or not outcome.exit_code:
        return outcome.limit
    if _signal(outcome) == signal.SIGXCPU:
        return "cpu limit"
    return "memory limit" if OUT_OF_MEMORY_PATTERN.search(outcome.stderr.decode("utf-8", "replace")) else ""


def is_plain_end(outcome: ProcessResult) -> bool:
    """Whether it ended normally; a failed assertion in C ends by a signal, and counts as normal."""
    return not process_limit(outcome) and _signal(outcome) in (0, signal.SIGABRT)


def bad_end_text(outcome: ProcessResult) -> str:
    """How it ended, if it failed."""
    limit = process_limit(outcome)
    if limit:
        return f"stopped at the {limit}"
    if _signal(outcome):
        return f"died by signal {_signal(outcome)}"
    return f"ended with exit code {outcome.exit_code}" if outcome.exit_code else ""


DIAGNOSTIC_LINE_PATTERN = re.compile(
    r"([^\s:(]+)(?::(\d{1,9})(?::(\d{1,9}))?:|\((\d{1,9}),(\d{1,9})\):)[ \t]*"
    r"(?:(fatal error|error|warning|note|info|help|hint)\b:?[ \t]*)?(.*)"
)
"""A line of gcc, clang, go and most linters, or of tsc."""
LINT_RULE_PATTERN = re.compile(r"[ \t]\[([\w+=/.@-]{1,80})\]$|^(TS\d{1,6}):[ \t]*")
ERROR_LINE_PATTERNS = [
    re.compile(r"\w*(?:Error|Exception)\b.*:|error\b|panic"),
    re.compile(r".*(?:\berror\b|Error\b|Assertion|undefined reference)"),
    re.compile(r".*\S"),
]
"""How the line looks that says what went wrong: the first that is found, in this order."""
JAVA_OPTIONS_NOTICE = "Picked up JAVA_TOOL_OPTIONS: "
"""What Java says first about the options that we give it."""
GO_PACKAGE_NOTICE = "# "
"""What Go writes before the name of a package, and before what is wrong in it."""


def combined_output(outcome: ProcessResult) -> str:
    """What a command printed to both outputs."""
    texts = [
        output.decode("utf-8", "replace").strip()
        for output in (outcome.stderr, outcome.stdout[: 2 * MAX_COMMAND_OUTPUT_CHARS])
    ]
    return "\n".join(filter(None, texts))


def error_line(printed: str) -> str:
    """The line that says what went wrong."""
    lines = printed[:MAX_COMMAND_OUTPUT_CHARS].split("\n")
    lines = [line for line in lines if not line.startswith((JAVA_OPTIONS_NOTICE, GO_PACKAGE_NOTICE))]
    found = (line for clue in ERROR_LINE_PATTERNS for line in lines if clue.match(line[:500]))
    return one_line(next(found, ""))


def one_line(text: str) -> str:
    """The beginning of a text, on one line."""
    return " ".join(text[:500].split())


def short_command(command: str) -> str:
    """A command as the name of its test."""
    name = " ".join(command.split())
    return name if len(name) <= 120 else f"{name[:117]}..."


def build_failure(built: ProcessResult, case: Case) -> Finding:
    """What is known about an answer whose build failed."""
    printed = combined_output(built)
    found = [
        diagnostic
        for diagnostic in _diagnostics(printed, case, DiagnosticLevel.ERROR)
        if diagnostic.level == DiagnosticLevel.ERROR
    ]
    limit = process_limit(built)
    reason = (
        bad_end_text(built) if limit else (found[0].message if found else error_line(printed)) or bad_end_text(built)
    )
    answer = CommandSettings.of(case).answer
    place = re.search(rf"^(?:\S*/)?{re.escape(answer)}:(\d{{1,9}})$", printed, re.MULTILINE) if answer else None
    if not found and place:
        # node names the place on a line of its own
        found = [Diagnostic(level=DiagnosticLevel.ERROR, message=reason, spans=(_span(answer, int(place[1]), 1),))]
    return Finding(
        compiled=False,
        diagnostics=tuple(found[:100]),
        label=limit or FailureLabel.DOES_NOT_COMPILE,
        reason=reason,
        output=printed[:MAX_COMMAND_OUTPUT_CHARS],
        compile_seconds=built.seconds,
        trouble=trouble_sign(built),
    )


def lint_warnings(linted: ProcessResult, case: Case) -> list[Diagnostic]:
    """The linter's findings about the answer; those about the eval set's own files do not count."""
    printed = combined_output(linted)
    ended = bad_end_text(linted)
    if not is_plain_end(linted) or (ended and not printed):
        return [Diagnostic(level=DiagnosticLevel.WARNING, message=f"the linter {ended}")]
    found = list(_diagnostics(printed, case, DiagnosticLevel.WARNING))
    if not found:
        lines = [line for line in printed.split("\n")[:MAX_DIAGNOSTIC_LINES] if line.strip()]
        return [Diagnostic(level=DiagnosticLevel.WARNING, message=one_line(line)) for line in lines]
    return [
        diagnostic
        for diagnostic in found
        # an unknown file name was invented by the answer, for example with #line
        if diagnostic.level in (DiagnosticLevel.WARNING, DiagnosticLevel.ERROR)
        and diagnostic.spans[0].file not in CommandSettings.of(case).files
    ]


def _diagnostics(printed: str, case: Case, otherwise: DiagnosticLevel) -> Iterator[Diagnostic]:
    """The lines that speak of a place in a file; those that name no level have the level `otherwise`."""
    for line in printed.split("\n")[:MAX_DIAGNOSTIC_LINES]:
        found = DIAGNOSTIC_LINE_PATTERN.match(line[:2000])
        if not found or not (found[6] or ((found[3] or found[5]) and found[7])):
            continue
        rule = LINT_RULE_PATTERN.search(found[7])
        level = (found[6] or otherwise).removeprefix("fatal ")
        yield Diagnostic(
            level=level,
            message=LINT_RULE_PATTERN.sub("", found[7]).strip(),
            code=(rule[1] or rule[2]) if rule else None,
            spans=(_span(_own_name(found[1], case), int(found[2] or found[4]), int(found[3] or found[5] or 1)),),
        )


def _own_name(path: str, case: Case) -> str:
    """The name of a file as the eval set has it."""
    said = CommandSettings.of(case)
    known = filter(None, (said.answer, *said.files))
    return next((name for name in known if f"/{path}".endswith(f"/{name}")), path)


def _span(file: str, line: int, column: int) -> Span:
    return Span(file=file, line_start=line, line_end=line, column_start=column, column_end=column)


NAME_SEPARATORS = re.compile(rf"{re.escape(SUITE_SEPARATOR)}|::|[./]")
"""What stands between the parts of a test's name: suite, file, module, class and function."""
MAX_LISTED_TESTS = 10
"""Tests that a message names."""
DID_NOT_BUILD_BEFORE = "it did not build before either"


def subtract_baseline(before: Finding, after: Finding, fixes: Sequence[str], *, replaced: bool) -> Finding:
    """The findings after a change, without those from before it.

    A test that failed before and fails now is ignored, unless it is one that the change should fix; one that passed
    before must run and pass, unless its file was `replaced`, so that the test may have been removed.
    """
    if after.tampered:
        return after
    after = replace(after, **_warnings(before, after))
    if after.compiled is False:
        return replace(after, reason=f"{after.reason}; {DID_NOT_BUILD_BEFORE}") if before.compiled is False else after
    then = {test.name: test for test in before.tests}
    ran = list(dict.fromkeys(test.name for test in after.tests))
    meant = {name: _tests_meant(name, ran) for name in fixes}
    fixed = {name for names in meant.values() for name in names}
    tests = [
        _test_against_baseline(test, then.get(test.name), is_fix=test.name in fixed, replaced=replaced)
        for test in after.tests
    ]
    if after.tests:
        tests += [*_vanished_tests(before, after, replaced=replaced), *_fixes_not_run(meant, ran)]
    label, reason = _why(after, tests)
    return replace(after, tests=tuple(tests), label=label, reason=reason)


def _test_against_baseline(now: Test, then: Test | None, *, is_fix: bool, replaced: bool) -> Test:
    """One test, with what it was before."""
    if is_fix:
        return (
            replace(now, outcome="failed", message="should be fixed, and was skipped")
            if now.outcome == "ignored"
            else now
        )
    if then is None:
        return now
    if now.outcome == "failed" and then.outcome == "failed":
        return replace(now, outcome="ignored", message=_with_message("failed before as well", now.message))
    if now.outcome == "failed" and then.outcome == "passed":
        return replace(now, message=_with_message("passed before", now.message))
    if now.outcome == "ignored" and then.outcome == "passed" and not replaced:
        return replace(now, outcome="failed", message="passed before, and is skipped now")
    return now


def _vanished_tests(before: Finding, after: Finding, *, replaced: bool) -> Iterator[Test]:
    """The tests that passed before and did not run any more."""
    there = {test.name for test in after.tests}
    for test in before.tests if not replaced else ():
        if test.outcome == "passed" and test.name not in there:
            yield Test(name=test.name, outcome="failed", message="passed before, and did not run now")


def _fixes_not_run(meant: Mapping[str, Sequence[str]], ran: Sequence[str]) -> Iterator[Test]:
    """The tests that should have been fixed and did not run."""
    for name, names in meant.items():
        if not names:
            alike = [test for test in ran if _share_ending(test, name)]
            what = (
                f"should be fixed, and may be any of {_listed(alike)}; name it in full"
                if alike
                else f"should be fixed, and did not run; what ran: {_listed(ran)}"
            )
            yield Test(name=name, outcome="failed", message=what)


def _tests_meant(name: str, ran: Sequence[str]) -> list[str]:
    """The tests that a name in `fixes` means: those of that name in any suite, otherwise the only one that ends alike."""
    same = [test for test in ran if test == name or test.endswith(f"{SUITE_SEPARATOR}{name}")]
    alike = [] if same else [test for test in ran if _share_ending(test, name)]
    return same or (alike if len(alike) == 1 else [])


def _share_ending(one: str, other: str) -> bool:
    """Whether the parts of one name are the last parts of the other: `test_b` and `pkg.test_x.TestA.test_b`."""
    short, long = sorted((_name_parts(one), _name_parts(other)), key=len)
    return bool(short) and long[-len(short) :] == short


def _name_parts(name: str) -> list[str]:
    # the parameters of a test may hold any sign
    head = re.split(r"[\[(]", name, maxsplit=1)[0]
    parts = [part.strip() for part in NAME_SEPARATORS.split(head)]
    return [*parts[:-1], parts[-1] + name[len(head) :]]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED_TESTS} more" if len(names) > MAX_LISTED_TESTS else ""
    return ", ".join(names[:MAX_LISTED_TESTS]) + more


def _why(after: Finding, tests: Sequence[Test]) -> tuple[str, str]:
    """The kind of failure that is left, and the failure in one line."""
    wrong = next((test for test in tests if test.outcome == "failed"), None)
    if wrong is None:
        if not tests or any(test.outcome == "passed" for test in tests):
            return "", ""
        return FailureLabel.WRONG_ANSWER, one_line(
            _with_message("no test passes", _with_message(tests[0].name, tests[0].message))
        )
    if after.label and after.label != FailureLabel.WRONG_ANSWER:
        return after.label, after.reason
    return FailureLabel.WRONG_ANSWER, one_line(_with_message(wrong.name, wrong.message))


def _warnings(before: Finding, after: Finding) -> dict[str, object]:
    """The warnings beyond those before; which line they stand on does not matter."""
    if after.warnings is None or before.warnings is None:
        return {}
    known = Counter(map(_diagnostic_key, before.diagnostics))
    fresh = []
    for diagnostic in after.diagnostics:
        known[_diagnostic_key(diagnostic)] -= 1
        if known[_diagnostic_key(diagnostic)] < 0:
            fresh.append(diagnostic)
    return {"warnings": max(0, after.warnings - before.warnings), "diagnostics": tuple(fresh)}


def _diagnostic_key(diagnostic: Diagnostic) -> tuple[str, str | None, str]:
    return diagnostic.message, diagnostic.code, diagnostic.spans[0].file if diagnostic.spans else ""


def _with_message(what: str, message: str) -> str:
    return f"{what}: {message}" if message else what
