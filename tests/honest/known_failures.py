"""Honest answers that our verifiers still fail; the table must become empty."""

KNOWN_FAILURES: dict[str, str] = {}
"""What was found instead of a pass, by case id."""
NEED_OWN_ROOT = frozenset(
    [
        *("multiprocessing-pool", "process-pool-executor", "program-multiprocessing-pool-program"),
        *("program-multiprocessing-queue-program", "program-shared-memory-value", "program-process-pool-program"),
        *("unittest-threads-and-processes", "program-manager", "program-local-server"),
    ]
)
"""What a level without a file system of its own cannot do, as docs/sandbox.md and `doctor` say."""
NEED_DESCRIPTOR_PATHS = frozenset(["bash-process-substitution", "bash-tests-with-process-substitution"])
"""What only the level `full` can do, as docs/sandbox.md says."""
