"""What models charge for their tokens, as far as anyone knows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from steelyard.errors import InputError, did_you_mean
from steelyard.providers.agent.usage import token_dollars
from steelyard.providers.price_list import listed_price
from steelyard.records import TOKEN_COUNT_FIELDS, Answer, Cost, Price

PROVIDERS_WITHOUT_LIST_PRICES = frozenset({"agent", "command", "http", "ollama", "python", "replay", "vllm"})
"""Providers without list prices, whose models may have slashes of their own: replay:recordings/monday.jsonl."""

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
    """The prices of a table of ours; an empty name has none."""
    if name and name not in PRICE_TABLES:
        raise InputError(f'unknown price_table "{name[:80]}" ({did_you_mean(name[:80], PRICE_TABLES)})')
    return PRICE_TABLES[name] if name else {}


class Prices:
    """The user's own prices first, then the list that comes with steelyard; a model in neither has no known price."""

    def __init__(self, own: Mapping[str, Price]) -> None:
        self._own = own

    def price(self, model: str) -> Price | None:
        """The price of `provider/model`; of one that charges more for long prompts, the price of short ones."""
        if model in self._own:
            own = self._own[model]
            return own if own.source else msgspec.structs.replace(own, source="the settings file")
        return _listed(model)

    def cost(self, model: str, answer: Answer) -> Cost | None:
        """What an answer cost: the provider's own figure, otherwise tokens times price, otherwise unknown."""
        if answer.cost is not None or answer.input_tokens is None or answer.output_tokens is None:
            return answer.cost
        price = self._own.get(model)
        if price is None:
            price = _listed(model, answer.input_tokens)
        if price is None:
            return None
        return Cost(usd=_dollars(price, answer), source=price.source or "the settings file", date=price.date)

    def bound(self, model: str, input_tokens: int, output_tokens: int, *, is_batch: bool = False) -> float | None:
        """The most that a request of this size can cost."""
        answer = Answer(text="", input_tokens=input_tokens, output_tokens=output_tokens, is_batch=is_batch)
        cost = self.cost(model, answer)
        return None if cost is None else cost.usd


def _listed(model: str, input_tokens: int = 0) -> Price | None:
    provider, _, name = model.partition("/")
    if provider == "pydantic-ai":
        provider, _, name = name.replace("/", ":", ":" not in name).partition(":")
    if provider.partition(":")[0] in PROVIDERS_WITHOUT_LIST_PRICES or not name:
        return None
    return listed_price(provider, name, input_tokens=input_tokens)


def _dollars(price: Price, answer: Answer) -> float:
    counts = {name: getattr(answer, name) or 0 for name in TOKEN_COUNT_FIELDS}
    return token_dollars(counts, token_prices(price)) * (1 - price.batch_discount * answer.is_batch)


def token_prices(price: Price) -> dict[str, float]:
    """The prices that are known, by the names of their settings."""
    names = ("input", "output", "cached", "cache_write", "cache_write_1h", "reasoning")
    return {name: float(value) for name in names if (value := getattr(price, name)) is not None}
