"""An event loop whose clock runs as fast as nobody has anything to do."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class Impatient(selectors.DefaultSelector):
    """Where a loop would wait, time passes at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        self.now += timeout
        return super().select(0)


class QuickLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = Impatient()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


def quickly(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=QuickLoop) as runner:
        return runner.run(work)


def now() -> float:
    return asyncio.get_running_loop().time()
