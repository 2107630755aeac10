"""What models charge for their tokens, as far as anyone knows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import msgspec

from steelyard.errors import InputError, did_you_mean
from steelyard.records import Answer, Cost, Price

PRICE_LIST_PROVIDER_NAMES = {"xai": "x-ai"}
"""Providers that the price list knows by another name."""
PROVIDERS_WITHOUT_LIST_PRICES = frozenset({"agent", "command", "http", "ollama", "python", "replay", "vllm"})
"""Providers without list prices: the list is not even imported for them, it costs a quarter of a CPU second."""

_EXAMPLE_PRICE_SOURCE = "Metrics Formulas Documentation, examples"
PRICE_TABLES = {
    "worked-examples": {
        "anthropic/claude-opus-4-5": Price(input=15, output=75, source=_EXAMPLE_PRICE_SOURCE),
        "anthropic/claude-sonnet-4": Price(input=3, output=15, source=_EXAMPLE_PRICE_SOURCE),
        "openai/gpt-4o": Price(input=5, output=15, source=_EXAMPLE_PRICE_SOURCE),
    }
}
"""Prices that a document works its examples with, by the name that `price_table` gives; none of them need be what is paid today."""


def price_table(name: str) -> dict[str, Price]:
    """The prices of a table of ours; an empty name stands for none."""
    if name and name not in PRICE_TABLES:
        raise InputError(f'unknown price_table "{name[:80]}" ({did_you_mean(name[:80], PRICE_TABLES)})')
    return PRICE_TABLES[name] if name else {}


class Prices:
    """The user's own prices first, then the list of genai-prices; a model in neither has no known price."""

    def __init__(self, own: Mapping[str, Price]) -> None:
        self._own = own

    def price(self, model: str) -> Price | None:
        """The price of `provider/model`; of one that charges more for long prompts, the price of short ones."""
        if model in self._own:
            own = self._own[model]
            return own if own.source else msgspec.structs.replace(own, source="the settings file")
        return _listed(model)

    def cost(self, model: str, answer: Answer) -> Cost | None:
        """What an answer cost: the provider's own word first, then tokens times price, else unknown."""
        if answer.cost is not None or answer.input_tokens is None or answer.output_tokens is None:
            return answer.cost
        own = self._own.get(model)
        if own is not None:
            return Cost(usd=_dollars(own, answer), source=own.source or "the settings file", date=own.date)
        price = _listed(model)
        if price is None:
            return None
        from genai_prices import Usage, calc_price

        provider, _, name = model.partition("/")
        usage = Usage(
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cache_read_tokens=answer.cached_tokens or 0,
        )
        total = calc_price(usage, name, provider_id=PRICE_LIST_PROVIDER_NAMES.get(provider, provider)).total_price
        return Cost(usd=float(total), source=price.source, date=price.date)

    def bound(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """The most that a request of this size can cost."""
        cost = self.cost(model, Answer(text="", input_tokens=input_tokens, output_tokens=output_tokens))
        return None if cost is None else cost.usd


def _listed(model: str) -> Price | None:
    provider, _, name = model.partition("/")
    # a file or a program has slashes of its own: replay:recordings/monday.jsonl
    if provider.partition(":")[0] in PROVIDERS_WITHOUT_LIST_PRICES or not name:
        return None
    from genai_prices.data_snapshot import get_snapshot

    now = datetime.now(UTC)
    try:
        _, entry = get_snapshot().find_provider_model(
            name, None, PRICE_LIST_PROVIDER_NAMES.get(provider, provider), None
        )
    except LookupError:
        return None
    prices = entry.get_prices(now)
    base: list[Any] = [
        getattr(rate, "base", rate) for rate in (prices.input_mtok, prices.output_mtok, prices.cache_read_mtok)
    ]
    if base[0] is None or base[1] is None:
        return None
    return Price(
        input=float(base[0]),
        output=float(base[1]),
        cached=None if base[2] is None else float(base[2]),
        source=f"genai-prices {version('genai-prices')}",
        date=now.date().isoformat(),
    )


def _dollars(price: Price, answer: Answer) -> float:
    cached = answer.cached_tokens or 0
    rate = price.input if price.cached is None else price.cached
    fresh = (answer.input_tokens or 0) - cached
    return (fresh * price.input + cached * rate + (answer.output_tokens or 0) * price.output) / 1e6
