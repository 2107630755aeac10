"""Ends of programs that say more about a machine than about an answer."""

from __future__ import annotations

import pytest

from steelyard.protocols import ProcessLimit, ProcessResult
from steelyard.verifiers.trouble import trouble_sign


def ended(code: int, said: bytes = b"", limit: ProcessLimit = "") -> ProcessResult:
    return ProcessResult(exit_code=code, stdout=b"", stderr=said, limit=limit, seconds=0)


@pytest.mark.parametrize(
    "outcome",
    [
        ended(-9),
        ended(137),
        ended(126),
        ended(127),
        ended(134, b"Aborted"),
        ended(1, b"cc1: fatal error: error closing /tmp/x.s: No space left on device"),
        ended(1, b"sh: 1: Cannot fork: Resource temporarily unavailable"),
        ended(1, b"gcc: internal compiler error: Killed (program cc1)"),
        ended(1, b"node: error while loading shared libraries: libuv.so.1"),
        ended(1, b"gcc: fatal error: cannot execute 'cc1': execvp: No such file or directory"),
    ],
)
def test_a_machine_in_trouble_shows_signs(outcome: ProcessResult) -> None:
    assert trouble_sign(outcome)


@pytest.mark.parametrize(
    "outcome",
    [
        ended(0, b"No space left on device"),
        ended(1),
        ended(-6, b"t: t.c:2: main: Assertion `0' failed."),
        ended(-11),
        ended(-9, limit="memory limit"),
    ],
)
def test_a_plain_end_and_a_limit_of_ours_are_no_signs(outcome: ProcessResult) -> None:
    assert trouble_sign(outcome) == ""
