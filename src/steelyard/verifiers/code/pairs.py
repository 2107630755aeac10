"""Programs judged by pairs of input and output: what they print is compared outside the sandbox."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from steelyard.errors import VerifierError
from steelyard.protocols import LIMIT_LABELS, FailureLabel, ProcessResult
from steelyard.records import Finding, Pair, Test
from steelyard.verifiers.command.output import MAX_COMMAND_OUTPUT_CHARS, bad_end_text, is_plain_end, process_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

ProgramRun = Callable[[bytes], Awaitable[ProcessResult | Finding]]
"""Runs a program with this on its standard input; a finding where it cannot be run at all."""
DECIMAL_PATTERN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
LINE_END_PATTERN = re.compile(r"\r\n|\r|\n")
BLANKS = " \t"
"""What may stand at the end of a line; other invisible characters, such as a no-break space, are content."""
WORD_PATTERN = re.compile(rf"[^{BLANKS}]+")
MAX_SHOWN_CHARS = 200
"""Characters of an output that a message shows."""


def check_pairs(pairs: Sequence[Pair], tolerance: float) -> None:
    """Raise VerifierError when no program could be judged by these pairs."""
    if any(not isinstance(pair, Pair) for pair in pairs):
        raise VerifierError('pairs are records: write Pair(input="1\\n", output="2\\n")')
    if any(not isinstance(text, str) for pair in pairs for text in (pair.input, pair.output)):
        raise VerifierError("pairs of a program are texts; with an entry_point they are arguments and a value")
    if not 0 <= tolerance < 1:
        raise VerifierError(f"tolerance is {tolerance}; write a number from 0 to below 1, such as 1e-6")


async def finding_by_pairs(pairs: Sequence[Pair], tolerance: float, run: ProgramRun) -> Finding:
    """Run a program once for each pair, and compare what it prints with what it should."""
    tests: list[Test] = []
    errors: list[str] = []
    label, reason = "", ""
    for number, pair in enumerate(pairs, 1):
        name = f"pair {number}"
        if label in LIMIT_LABELS:
            # a program that ran out of time once does not get the same time again for every pair
            tests.append(Test(name=name, outcome="failed", message=f"not run after the {label}"))
            continue
        outcome = await run(pair.input.encode("utf-8", "surrogateescape"))
        if isinstance(outcome, Finding):
            return outcome
        kind, message = _problem(outcome, pair.output, tolerance)
        errors.append(outcome.stderr.decode("utf-8", "replace"))
        tests.append(Test(name=name, outcome="failed" if kind else "passed", message=message, seconds=outcome.seconds))
        if kind and not label:
            label, reason = kind, f"{name}: {message}"
    return Finding(
        tests=tuple(tests),
        label=label,
        reason=reason,
        output="".join(errors)[:MAX_COMMAND_OUTPUT_CHARS],
        test_seconds=sum(test.seconds for test in tests),
    )


def _problem(outcome: ProcessResult, wanted: str, tolerance: float) -> tuple[str, str]:
    """The kind of failure of one run, and the failure in one line; both empty when it is right."""
    limit = process_limit(outcome)
    if limit:
        return limit, f"stopped at the {limit} after {outcome.seconds:.1f} s"
    if not is_plain_end(outcome) or outcome.exit_code < 0:
        return FailureLabel.DIED, bad_end_text(outcome)
    if outcome.exit_code:
        lines = outcome.stderr.decode("utf-8", "replace").strip().splitlines()
        return FailureLabel.EXCEPTION, lines[-1].strip()[:500] if lines else f"exit code {outcome.exit_code}"
    difference = output_difference(outcome.stdout.decode("utf-8", "replace"), wanted, tolerance)
    return (FailureLabel.WRONG_ANSWER, difference) if difference else ("", "")


def output_difference(got: str, wanted: str, tolerance: float = 0) -> str:
    r"""How an output differs from the expected one, ignoring spaces and tabs at the ends of lines; empty if it does not.

    >>> output_difference("2.0000001 m\n", "2 m", tolerance=1e-6)
    ''
    >>> output_difference("2.1 m", "2 m", tolerance=1e-6)
    "printed '2.1 m', expected '2 m'"
    >>> output_difference("2 m\u00a0", "2 m")
    "printed '2 m\\xa0', expected '2 m'"
    """
    got_lines, wanted_lines = _stripped_lines(got), _stripped_lines(wanted)
    if got_lines == wanted_lines or (tolerance and _are_close(got_lines, wanted_lines, tolerance)):
        return ""
    if max(len(got), len(wanted)) <= MAX_SHOWN_CHARS:
        return f"printed {got!r}, expected {wanted!r}"
    for number, (line, wanted_line) in enumerate(zip(got_lines, wanted_lines, strict=False), 1):
        if line != wanted_line and not (tolerance and _are_close([line], [wanted_line], tolerance)):
            return f"printed {line[:MAX_SHOWN_CHARS]!r}, expected {wanted_line[:MAX_SHOWN_CHARS]!r} on line {number:,}"
    return f"printed {len(got_lines):,} lines, expected {len(wanted_lines):,}"


def _stripped_lines(text: str) -> list[str]:
    """What was printed, without spaces and tabs at the ends of lines, and without empty lines at the end."""
    # not by splitlines(): a form feed or U+2028 between two results does not begin a line
    return [line.rstrip(BLANKS) for line in LINE_END_PATTERN.split(text.rstrip(f"{BLANKS}\r\n"))]


def _are_close(got: Sequence[str], wanted: Sequence[str], tolerance: float) -> bool:
    """Whether lines hold the same words, numbers among them up to a tolerance, absolute or relative."""
    lines = zip(map(WORD_PATTERN.findall, got), map(WORD_PATTERN.findall, wanted), strict=True)
    return len(got) == len(wanted) and all(
        len(line) == len(wanted_line)
        and all(_is_close(word, wanted_word, tolerance) for word, wanted_word in zip(line, wanted_line, strict=True))
        for line, wanted_line in lines
    )


def _is_close(got: str, wanted: str, tolerance: float) -> bool:
    if got == wanted:
        return True
    if not DECIMAL_PATTERN.fullmatch(got) or not DECIMAL_PATTERN.fullmatch(wanted):
        return False
    return math.isclose(float(got), float(wanted), rel_tol=tolerance, abs_tol=tolerance)
