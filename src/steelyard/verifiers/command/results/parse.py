"""What test runners print, read as tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from steelyard.records import Test
from steelyard.verifiers.command.results.bounds import (
    MAX_RESULTS_BYTES,
    MAX_TEST_MESSAGE_CHARS,
    MAX_TEST_NAME_CHARS,
    ForgedResultsError,
    UnreadableResultsError,
)
from steelyard.verifiers.command.results.json_reports import go, jest
from steelyard.verifiers.command.results.junit import junit
from steelyard.verifiers.command.results.libtest import libtest
from steelyard.verifiers.command.results.tap import tap

RESULT_PARSERS: dict[str, Callable[[bytes], list[Test]]] = {
    "tap": tap,
    "junit": junit,
    "libtest": libtest,
    "go": go,
    "jest": jest,
}


def parse_results(output: bytes, kind: str) -> list[Test]:
    r"""The tests that a runner reports, in the format `kind`; none when it ran none.

    >>> [(test.name, test.outcome) for test in parse_results(b"1..2\nok 1 - adds\nnot ok 2 - carries\n", "tap")]
    [('adds', 'passed'), ('carries', 'failed')]
    """
    if len(output) > MAX_RESULTS_BYTES:
        raise UnreadableResultsError(f"more than {MAX_RESULTS_BYTES >> 20} MB of results")
    tests = RESULT_PARSERS[kind](output)
    for name, count in Counter(test.name for test in tests).items():
        if count > 1:
            raise ForgedResultsError(
                f'{count} results for the test "{name[:MAX_TEST_NAME_CHARS]}"; every test needs a name of its own'
            )
    return [
        Test(
            name=test.name[:MAX_TEST_NAME_CHARS],
            outcome=test.outcome,
            message=test.message[:MAX_TEST_MESSAGE_CHARS],
            seconds=test.seconds,
        )
        for test in tests
    ]
