"""What a run saved by caches and batches, and what it spent on conversations without a reply."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from steelyard.providers.prices import Prices
from steelyard.providers.prompt_cache import prompt_cache_savings
from steelyard.records import TOKEN_COUNT_FIELDS, Answer, Judgment, Reply, Spending


class SpendingTally:
    """Adds up over the replies of a run what a plain request for each of them would have cost more."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._cached = self._batched = self._prompts = 0.0

    def count(self, reply: Reply) -> None:
        """Count what one reply saved."""
        if reply.cached_from:
            self._cached += reply.answer.cost.usd if reply.answer.cost else 0.0
            return
        for model, request in _requests(reply):
            if request.cost is None or not (request.is_batch or request.cached_tokens or request.cache_write_tokens):
                continue
            plain = replace(request, cost=None, cached_tokens=None, cache_write_tokens=None, cache_write_1h_tokens=None)
            uncached = self._prices.cost(model, plain)
            single = self._prices.cost(model, replace(plain, is_batch=False))
            if uncached is None or single is None:
                continue
            self._prompts += uncached.usd - request.cost.usd
            self._batched += single.usd - uncached.usd

    def count_judgment(self, judgment: Judgment) -> None:
        """Count what one judgment saved."""
        self._prompts += prompt_cache_savings(self._prices, judgment.judge, judgment.answer)

    def total(self, unfinished_usd: float) -> Spending | None:
        """The counts so far; None if there is nothing to report."""
        found = Spending(
            cache_saved_usd=_rounded(self._cached),
            batch_saved_usd=_rounded(self._batched),
            prompt_caching_saved_usd=_rounded(self._prompts),
            unfinished_usd=_rounded(unfinished_usd),
        )
        return None if found == Spending() else found


def _requests(reply: Reply) -> Iterator[tuple[str, Answer]]:
    """The requests behind a reply, each with the model that was asked; of a conversation those that may have saved something."""
    if not reply.answer.turns:
        yield reply.model, reply.answer
    for turn in reply.answer.turns:
        if turn.cost is None or not (turn.cached_tokens or turn.cache_write_tokens):
            continue  # nothing was saved by it
        counts = {name: getattr(turn, name) for name in TOKEN_COUNT_FIELDS}
        yield turn.model or reply.model, Answer(text="", cost=turn.cost, **counts)


def _rounded(usd: float) -> float:
    """An amount without the digits that the order of adding decides."""
    return round(usd, 9) + 0.0
