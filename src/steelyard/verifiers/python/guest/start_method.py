"""Processes of an answer are forks, as they were by default before Python 3.14.

Since then the default is a server of forks, which is reached by a local socket, and no answer may have one.
"""

from __future__ import annotations

import sys


def fork_by_default() -> None:
    """Make forks the default of multiprocessing; an answer may still choose something else."""
    if sys.version_info >= (3, 14) and sys.platform == "linux":
        from multiprocessing import context

        context._default_context._default_context = context._concrete_contexts["fork"]  # type: ignore[attr-defined,unused-ignore]
