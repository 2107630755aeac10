"""What an answer's process has as a new interpreter would, although it was forked from one that is warm.

Processes of an answer are forks, as they were by default before Python 3.14. Since then the default is a server of
forks, which is reached by a local socket, and no answer may have one.
"""

from __future__ import annotations

import sys
import types

DEFAULT_RECURSION_LIMIT = 1000
"""Of a new interpreter, whose first frame is that of the program."""


def fork_by_default() -> None:
    """Make forks the default of multiprocessing; an answer may still choose something else."""
    if sys.version_info >= (3, 14) and sys.platform == "linux":
        from multiprocessing import context

        context._default_context._default_context = context._concrete_contexts["fork"]  # type: ignore[attr-defined,unused-ignore]


def leave_recursion_depth(more: int = 0) -> None:
    """Let what the caller runs recurse as deep as if nothing of ours were below it, and this much deeper."""
    # until Python 3.12 functions in C are counted as well, and `exec` is one
    depth = more + (sys.version_info < (3, 12))
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(DEFAULT_RECURSION_LIMIT + depth)
