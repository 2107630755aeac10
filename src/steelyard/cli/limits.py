"""Limits of this process that libraries do not survive: refused in one sentence before any of them is loaded."""

from __future__ import annotations

import resource

from steelyard.errors import ExitCode, SteelyardError

LEAST_MEMORY_BYTES = {resource.RLIMIT_AS: 2 << 30, resource.RLIMIT_DATA: 1 << 30}
"""What a process must be allowed. With less, OpenBLAS ends it with the exit code of a failed gate or interrupts it, DuckDB crashes
it, and the C library aborts it or waits forever: none of these can be caught."""
LIMIT_NAMES = {
    resource.RLIMIT_AS: ("address space", "ulimit -v"),
    resource.RLIMIT_DATA: ("memory for data", "ulimit -d"),
}


class SmallLimitError(SteelyardError):
    """A limit of this process under which no command can be trusted to end as it should."""

    exit_code = ExitCode.CANNOT_TELL


def check_memory_limits() -> None:
    """Raise a SmallLimitError where this process may have too little memory."""
    for kind, least in LEAST_MEMORY_BYTES.items():
        limit = resource.getrlimit(kind)[0]
        if 0 <= limit < least:
            name, command = LIMIT_NAMES[kind]
            raise SmallLimitError(
                f"{limit >> 20} MB of {name} is not enough; raise the limit to {least >> 20} MB or more with {command}, then try again"
            )
