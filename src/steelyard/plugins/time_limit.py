"""A time limit that costs nothing where nothing is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, TypeVar

Awaited = TypeVar("Awaited")


async def within_seconds(seconds: float, awaitable: Awaitable[Awaited]) -> Awaited:
    """What an awaitable returns; raises TimeoutError once it has taken so long. A timer is set when it first waits."""
    steps: Generator[Any, Any, Awaited] = awaitable.__await__()
    try:
        first = next(steps)
    except StopIteration as ended:
        result: Awaited = ended.value
        return result
    async with asyncio.timeout(seconds):
        return await _Continued(steps, first)


class _Continued(Awaitable[Awaited]):
    """The rest of an awaitable whose first step was taken."""

    def __init__(self, steps: Generator[Any, Any, Awaited], first: Any) -> None:
        self._steps = steps
        self._first = first

    def __await__(self) -> Generator[Any, Any, Awaited]:
        step = self._first
        try:
            while True:
                try:
                    sent = yield step
                except GeneratorExit:
                    self._steps.close()
                    raise
                except BaseException as error:  # noqa: BLE001  whatever it is, it is meant for the awaitable
                    step = self._steps.throw(error)
                else:
                    step = self._steps.send(sent)
        except StopIteration as ended:
            result: Awaited = ended.value
            return result
