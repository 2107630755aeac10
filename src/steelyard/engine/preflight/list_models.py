"""The models that can be asked, as far as their endpoints tell."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from steelyard.engine.pool import run_coroutine
from steelyard.errors import ExitCode, InputError, ProviderError, StepError, wrap_exceptions
from steelyard.plugins import explain_plugin_errors, guarded_plugin, load_plugin
from steelyard.protocols import Provider
from steelyard.providers.prices import Prices
from steelyard.settings import BUILT_IN_PROVIDERS, resolve_provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.engine.options import RunOptions
    from steelyard.records import Price

LIST_MODELS_TIMEOUT_SECONDS = 20.0
"""Seconds an endpoint has to list its models."""


class ListedModel(NamedTuple):
    """A model at an endpoint, or why the endpoint did not tell."""

    provider: str
    model: str
    detail: str
    price: Price | None


def list_models(means: RunOptions, base_url: str = "") -> list[ListedModel]:
    """What every configured endpoint offers, by name; an endpoint that does not answer says why instead."""
    names = ["openai"] if base_url else _configured(means)
    if not names:
        raise InputError(
            "no provider is configured; set a key such as OPENAI_API_KEY, or write one into steelyard.toml"
        )
    return run_coroutine(_list_all_models(names, means, base_url))


def models_exit_code(listed: Sequence[ListedModel]) -> ExitCode:
    """How a command ends that lists models: whether any endpoint named one."""
    return ExitCode.OK if any(offer.model for offer in listed) else ExitCode.CANNOT_TELL


def _configured(means: RunOptions) -> list[str]:
    """The providers of the settings file, and the built-in ones that the environment has a key or an address for."""
    from_environment = [
        name
        for name, built_in in BUILT_IN_PROVIDERS.items()
        if any(means.environment.get(variable) for variable in (built_in.key, *built_in.urls) if variable)
    ]
    return [*means.settings.providers, *(name for name in from_environment if name not in means.settings.providers)]


async def _list_all_models(names: list[str], means: RunOptions, base_url: str) -> list[ListedModel]:
    listed = await asyncio.gather(*(_list_endpoint_models(name, means, base_url) for name in names))
    return [offered for models in listed for offered in models]


async def _list_endpoint_models(name: str, means: RunOptions, base_url: str) -> list[ListedModel]:
    prices = Prices(means.settings.prices)
    try:
        _, model, reached = resolve_provider(f"{name}/*", means.settings, means.environment, base_url)
        connect_models = load_plugin("providers", reached.type)
        with explain_plugin_errors("providers", reached.type):
            (connected,) = connect_models(model, reached).values()
        asked: Provider = guarded_plugin("providers", reached.type, connected, Provider, unguarded=("offers",))
        try:
            async with asyncio.timeout(LIST_MODELS_TIMEOUT_SECONDS):
                with wrap_exceptions(ProviderError):
                    found = await asked.offers()
        finally:
            await asked.close()
    except TimeoutError:
        return [ListedModel(name, "", f"no answer within {LIST_MODELS_TIMEOUT_SECONDS:g} s", None)]
    except (StepError, InputError) as error:
        return [ListedModel(name, "", str(error), None)]
    return [
        ListedModel(name, offer.model, offer.detail, prices.price(f"{name}/{offer.model}")) for offer in sorted(found)
    ]
