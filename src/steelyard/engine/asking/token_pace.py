"""How many tokens a minute an endpoint takes: as its headers say, or as its refusals teach where it sends none."""

from __future__ import annotations

from collections import deque

from steelyard.protocols import RateLimitHeadroom

WINDOW_SECONDS = 60.0
"""Rate limits of tokens are for a minute."""
LEARNED_SHARE = 0.95
"""The share of the tokens used in the minute before a refusal that is used afterwards."""
LEARNED_LIMIT_GROWTH = 1.1
"""By how much a learned limit grows with every minute without a refusal."""
MAX_GROWTH_MINUTES = 60


class TokenPace:
    """The tokens of one endpoint; a request is taken to need as many as requests needed on average so far."""

    def __init__(self) -> None:
        self._used: deque[tuple[float, int]] = deque()
        """When answers came in the last minute, and how many tokens they took, prompts included."""
        self._in_window = 0
        self._answers = 0
        self._tokens = 0
        self._left: float | None = None
        self._reset_at = 0.0
        self._has_headers = False
        self._limit: float | None = None
        self._learned_at = 0.0

    def wait(self, now: float) -> float:
        """Seconds until the next request fits; it is counted as sent when that is 0."""
        if not self._answers:
            return 0.0
        expected = self._tokens / self._answers
        if self._left is not None:
            if now >= self._reset_at:
                self._left = None
            elif self._left < expected:
                return self._reset_at - now
            else:
                self._left -= expected
            return 0.0
        return self._learned_wait(now, expected)

    def _learned_wait(self, now: float, expected: float) -> float:
        if self._limit is None or self._has_headers:
            return 0.0
        self._forget(now)
        minutes = min(MAX_GROWTH_MINUTES, int((now - self._learned_at) // WINDOW_SECONDS))
        limit = self._limit * LEARNED_LIMIT_GROWTH**minutes
        if not self._used or self._in_window + expected <= limit:
            return 0.0
        return max(0.0, self._used[0][0] + WINDOW_SECONDS - now)

    def answered(self, now: float, headroom: RateLimitHeadroom | None, tokens: int) -> None:
        """An answer came that took these tokens, 0 where that is not known, and headers with it."""
        if tokens:
            self._answers += 1
            self._tokens += tokens
            self._used.append((now, tokens))
            self._in_window += tokens
            self._forget(now)
        if headroom is not None and headroom.tokens is not None:
            self._has_headers = True
            self._left, self._reset_at = float(headroom.tokens), now + headroom.tokens_reset

    def refused(self, now: float) -> None:
        """The endpoint limits our rate: if no header says why, no more tokens a minute than it has just taken."""
        self._forget(now)
        if self._in_window and not self._has_headers:
            self._limit, self._learned_at = LEARNED_SHARE * self._in_window, now

    def _forget(self, now: float) -> None:
        while self._used and self._used[0][0] <= now - WINDOW_SECONDS:
            self._in_window -= self._used.popleft()[1]
