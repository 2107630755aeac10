"""What models charge for their tokens, as far as anyone knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from steelyard.errors import InputError, did_you_mean
from steelyard.providers.agent.usage import token_dollars
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


PROVIDER_NAMES = {"xai": "x-ai"}
"""Providers that the list knows by another name."""
BATCH_DISCOUNTS = dict.fromkeys(
    ("anthropic", "azure", "gemini", "google", "groq", "mistral", "openai", "openai-responses", "xai"), 0.5
)
"""What providers take off for batches, which the list does not know."""
COMPACT_DATE = re.compile(r"(-|@)(20\d\d)(0[1-9]|1[0-2])([0-2]\d|3[01])$")


class TokenRates(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    reasoning: float | None = None


class LongPromptRates(TokenRates, frozen=True, kw_only=True):
    """The rates in prompts of more than this many tokens."""

    tokens: int


class Rates(TokenRates, frozen=True, kw_only=True):
    """The rates from a day on or at certain hours (UTC)."""

    above: tuple[LongPromptRates, ...] = ()
    since: str = ""
    hours: tuple[str, str] | None = None


class PriceListModel(msgspec.Struct, frozen=True):
    """The names that a model goes by and its prices, the newest last; none where it does not charge by tokens."""

    match: list[Any]
    prices: tuple[Rates, ...]


class ListedProvider(msgspec.Struct, frozen=True):
    """Models of a provider, in the order in which their names are looked for."""

    id: str
    match: list[Any] | None
    fallback: tuple[str, ...]
    models: tuple[PriceListModel, ...]


class PriceList(msgspec.Struct, frozen=True):
    """All of it."""

    source: str
    date: str
    providers: tuple[ListedProvider, ...]


def listed_price(provider: str, model: str, *, input_tokens: int = 0, at: datetime | None = None) -> Price | None:
    """What a model charges for a prompt of this many tokens; None if the list does not know it.

    >>> price = listed_price("openai", "gpt-4o")
    >>> price.input, price.output, price.cached
    (2.5, 10.0, 1.25)
    """
    prices = price_list()
    found = _model(PROVIDER_NAMES.get(provider, provider).lower(), model.lower())
    if found is None or not found.prices:
        return None
    rates: Rates | LongPromptRates = _holding(found.prices, at or datetime.now(UTC))
    for long in rates.above if isinstance(rates, Rates) else ():
        if input_tokens > long.tokens:
            rates = long
    return Price(
        input=rates.input,
        output=rates.output,
        cached=rates.cached,
        cache_write=rates.cache_write,
        cache_write_1h=rates.cache_write_1h,
        reasoning=rates.reasoning,
        batch_discount=BATCH_DISCOUNTS.get(provider, 0.0),
        source=prices.source,
        date=prices.date,
    )


@cache
def price_list() -> PriceList:
    """The list that came with this version."""
    return msgspec.json.decode(files(__package__).joinpath("price_list.json").read_bytes(), type=PriceList)


@lru_cache(maxsize=1024)
def _model(provider: str, model: str) -> PriceListModel | None:
    # a whole list of rules is tried, and every reply has a price
    prices = price_list()
    known = {each.id: each for each in prices.providers}
    home = known.get(provider) or next(
        (each for each in prices.providers if each.match and _fits(each.match, provider)), None
    )
    if home is None:
        return None
    # some list a model as gpt-5.2-20251211, others as gpt-5.2-2025-12-11
    for name in dict.fromkeys((model, COMPACT_DATE.sub(r"\1\2-\3-\4", model))):
        for shelf in (home, *(known[other] for other in home.fallback if other in known)):
            for each in shelf.models:
                if _fits(each.match, name):
                    return each
    return None


def _holding(prices: tuple[Rates, ...], now: datetime) -> Rates:
    """The current prices: the last ones in force, otherwise the first."""
    if len(prices) == 1:
        return prices[0]
    day, hour = now.astimezone(UTC).strftime("%Y-%m-%d"), now.astimezone(UTC).strftime("%H:%M")
    for rates in reversed(prices):
        if rates.hours:
            start, end = rates.hours
            if start <= hour < end if start <= end else not end <= hour < start:
                return rates
        elif rates.since <= day:
            return rates
    return prices[0]


def _fits(rule: list[Any], name: str) -> bool:
    match rule:
        case ["or", *rules]:
            return any(_fits(each, name) for each in rules)
        case ["and", *rules]:
            return all(_fits(each, name) for each in rules)
        case ["equals", text]:
            return name == str(text).lower()
        case ["starts_with", text]:
            return name.startswith(str(text).lower())
        case ["ends_with", text]:
            return name.endswith(str(text).lower())
        case ["contains", text]:
            return str(text).lower() in name
        case ["regex", text]:
            return re.search(str(text), name) is not None
    raise ValueError(f"the price list has an unknown rule: {rule[0]}")
