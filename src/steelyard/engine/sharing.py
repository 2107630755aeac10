"""What one of several processes of a machine tries for all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol


class WitnessSharing(Protocol):
    """Lets one of several processes of a machine try a witness for all of them."""

    async def __call__(self, key: str, attempt: Callable[[], Awaitable[str]], *, afresh: bool) -> str:
        """What `attempt` returned in the process that came first; with `afresh` it is called in any case."""
        ...


async def share_with_nobody(key: str, attempt: Callable[[], Awaitable[str]], *, afresh: bool) -> str:  # noqa: ARG001
    """For a process that is alone on its machine."""
    return await attempt()
