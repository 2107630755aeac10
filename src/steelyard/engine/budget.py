"""Never spending more than was allowed, what is in flight included."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.records import Attempt

DEFAULT_MAX_OUTPUT_TOKENS = 8192
"""Output tokens that a reply is taken to have at most, where the user sets no limit."""


def max_request_tokens(attempt: Attempt) -> tuple[int, int]:
    """Input and output tokens that a request can come to at most: no tokenizer makes two tokens of one byte."""
    written = sum(len(message.content.encode()) + 16 for message in attempt.messages)
    return written, int(attempt.parameters.get("max_tokens", DEFAULT_MAX_OUTPUT_TOKENS))


class Budget:
    """Dollars that may be spent. A request reserves the most it can cost, and gives back what it did not."""

    def __init__(self, dollars: float | None, spent: float = 0) -> None:
        self._dollars = dollars
        self._reserved = 0.0
        self._given_back = asyncio.Event()
        self.spent = spent
        self.exhausted = False

    async def reserve(self, most: float) -> bool:
        """Set the most a request can cost aside; False when the money does not suffice for it."""
        if self._dollars is None:
            return True
        while self.spent + self._reserved + most > self._dollars:
            if self._reserved == 0 or self.exhausted:
                self.exhausted = True
                return False
            # requests in flight usually cost less than they reserved
            self._given_back.clear()
            await self._given_back.wait()
        self._reserved += most
        return True

    def settle(self, most: float, cost: float) -> None:
        """A request ended: give its reservation back, and count what it cost."""
        if self._dollars is not None:
            self._reserved = max(0.0, self._reserved - most)
            if self._reserved < 1e-12:
                self._reserved = 0.0  # sums of floats do not come back to nothing by themselves
            self._given_back.set()
        self.spent += cost
