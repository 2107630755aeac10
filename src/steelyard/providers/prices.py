"""What models charge for their tokens, as far as anyone knows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import msgspec

from steelyard.errors import InputError, did_you_mean
from steelyard.providers.agent.usage import token_dollars
from steelyard.records import TOKEN_COUNT_FIELDS, Answer, Cost, Price

PRICE_LIST_PROVIDER_NAMES = {"xai": "x-ai"}
"""Providers that the price list knows by another name."""
GENAI_USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cached_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "cache_write_1h_tokens": "cache_write_1h_tokens",
}
"""What the price list calls the tokens of an answer."""
LISTED_BATCH_DISCOUNTS = {"anthropic": 0.5, "openai": 0.5, "google": 0.5, "groq": 0.5, "mistral": 0.5, "xai": 0.5}
"""What providers take off for batches, which the price list does not know."""
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
        counts = {genai: getattr(answer, ours) or 0 for genai, ours in GENAI_USAGE_NAMES.items()}
        if answer.cache_write_1h_tokens is None:
            del counts["cache_write_1h_tokens"]
        found = calc_price(Usage(**counts), name, provider_id=PRICE_LIST_PROVIDER_NAMES.get(provider, provider))
        total = float(found.total_price) * (1 - price.batch_discount * answer.is_batch)
        return Cost(usd=total, source=price.source, date=price.date)

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
    names = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    found: list[Any] = [getattr(prices, f"{name}_mtok", None) for name in names]
    given, said, read, write, write_1h = (
        None if rate is None else float(getattr(rate, "base", rate)) for rate in found
    )
    if given is None or said is None:
        return None
    return Price(
        input=given,
        output=said,
        cached=read,
        cache_write=write,
        cache_write_1h=write_1h,
        batch_discount=LISTED_BATCH_DISCOUNTS.get(provider, 0.0),
        source=f"genai-prices {version('genai-prices')}",
        date=now.date().isoformat(),
    )


def _dollars(price: Price, answer: Answer) -> float:
    counts = {name: getattr(answer, name) or 0 for name in TOKEN_COUNT_FIELDS}
    return token_dollars(counts, token_prices(price)) * (1 - price.batch_discount * answer.is_batch)


def token_prices(price: Price) -> dict[str, float]:
    """The prices that are known, by the names of their settings."""
    names = ("input", "output", "cached", "cache_write", "cache_write_1h", "reasoning")
    return {name: float(value) for name in names if (value := getattr(price, name)) is not None}
