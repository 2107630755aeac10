"""What every reader of results keeps to: its limits, and how it says that results are unreadable or forged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from steelyard.records import Test

MAX_RESULTS_BYTES = 4 << 20
"""Bytes of results; honest ones have a few thousand."""
MAX_REPORTED_TESTS = 10_000
MAX_SUITE_DEPTH = 40
"""Levels of suites in suites."""
MAX_TEST_NAME_CHARS = 300
MAX_TEST_MESSAGE_CHARS = 2000
MAX_DETAIL_LINES = 100
"""Lines of details that are looked at."""
SUITE_SEPARATOR = " > "
"""Between the name of a suite and that of a test in it."""


class UnreadableResultsError(ValueError):
    """The output is not what its format says."""


class ForgedResultsError(ValueError):
    """The output holds results that no honest runner prints."""


def check_test_count(tests: int) -> None:
    """Refuse more tests than it is worth keeping: printing them is cheap for an answer."""
    if tests > MAX_REPORTED_TESTS:
        raise UnreadableResultsError(f"more than {MAX_REPORTED_TESTS} tests")


def stored_seconds(value: float | str | None) -> float:
    """A duration that can be stored; 0 when it makes no sense."""
    try:
        seconds = float(value or 0)
    except ValueError:
        return 0
    return seconds if math.isfinite(seconds) and 0 <= seconds < 1e9 else 0


def headline(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text[:MAX_TEST_MESSAGE_CHARS].split("\n") if line.strip()), "")


def output_lines(output: bytes) -> Iterator[str]:
    """The lines of the output, without their ends."""
    # not splitlines, for which a form feed inside a printed value would begin a line as well
    for line in output.decode("utf-8", "replace").split("\n"):
        yield line.removesuffix("\r")


def named_in_suite(suite: str, test: Test) -> Test:
    """The test, named after its suite as well."""
    return msgspec.structs.replace(
        test, name=f"{suite[:MAX_TEST_NAME_CHARS]}{SUITE_SEPARATOR}{test.name}"[: 2 * MAX_TEST_NAME_CHARS]
    )


Event = TypeVar("Event")


def decoded(text: str | bytes, kind: type[Event], what: str) -> Event:
    """The value that a JSON text holds; `what` names the text in the error."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        start = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).strip()[:80]
        raise UnreadableResultsError(f'{what} cannot be read: {error}: "{start}"') from None
