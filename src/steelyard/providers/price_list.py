"""The list of what models charge, a data file that `tools/prices` writes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from steelyard.records import Price

PROVIDER_NAMES = {"xai": "x-ai"}
"""Providers that the list knows by another name."""
BATCH_DISCOUNTS = dict.fromkeys(
    ("anthropic", "azure", "gemini", "google", "groq", "mistral", "openai", "openai-responses", "xai"), 0.5
)
"""What providers take off for batches, which the list does not know."""
COMPACT_DATE = re.compile(r"(-|@)(20\d\d)(0[1-9]|1[0-2])([0-2]\d|3[01])$")


class LongPromptRates(msgspec.Struct, frozen=True):
    """US dollars per million tokens in prompts of more than this many tokens."""

    tokens: int
    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    reasoning: float | None = None


class Rates(msgspec.Struct, frozen=True):
    """US dollars per million tokens, from a day on or at certain hours (UTC)."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    reasoning: float | None = None
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
