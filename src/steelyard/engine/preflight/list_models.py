"""The models that can be asked, as far as their endpoints tell."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from steelyard.engine.pool import complete
from steelyard.errors import InputError, ProviderError, StepError, boundary
from steelyard.plugins import part
from steelyard.providers.prices import Prices
from steelyard.settings import BUILT_IN, provider

if TYPE_CHECKING:
    from steelyard.engine.session import Means
    from steelyard.records import Price

PATIENCE = 20.0
"""Seconds an endpoint has to list its models."""


class Offered(NamedTuple):
    """A model at an endpoint, or why the endpoint did not tell."""

    provider: str
    model: str
    detail: str
    price: Price | None


def offers(means: Means, base_url: str = "") -> list[Offered]:
    """What every configured endpoint offers, by name; an endpoint that does not answer says why instead."""
    names = ["openai"] if base_url else _configured(means)
    if not names:
        raise InputError(
            "no provider is configured; set a key such as OPENAI_API_KEY, or write one into steelyard.toml"
        )
    return complete(_all(names, means, base_url))


def _configured(means: Means) -> list[str]:
    """The providers of the settings file, and the built-in ones that the environment has a key or an address for."""
    from_environment = [
        name
        for name, built_in in BUILT_IN.items()
        if any(means.environment.get(variable) for variable in (built_in.key, *built_in.urls) if variable)
    ]
    return [*means.settings.providers, *(name for name in from_environment if name not in means.settings.providers)]


async def _all(names: list[str], means: Means, base_url: str) -> list[Offered]:
    listed = await asyncio.gather(*(_one(name, means, base_url) for name in names))
    return [offered for models in listed for offered in models]


async def _one(name: str, means: Means, base_url: str) -> list[Offered]:
    prices = Prices(means.settings.prices)
    try:
        _, model, reached = provider(f"{name}/*", means.settings, means.environment, base_url)
        (asked,) = part("providers", reached.type)(model, reached).values()
        try:
            async with asyncio.timeout(PATIENCE):
                with boundary(ProviderError):
                    found = await asked.offers()
        finally:
            await asked.close()
    except TimeoutError:
        return [Offered(name, "", f"no answer within {PATIENCE:g} s", None)]
    except (StepError, InputError) as error:
        return [Offered(name, "", str(error), None)]
    return [Offered(name, offer.model, offer.detail, prices.price(f"{name}/{offer.model}")) for offer in sorted(found)]
