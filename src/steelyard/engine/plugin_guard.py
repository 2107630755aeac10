"""Plug-ins of other distributions: their exceptions become one sentence, and old ones are called as they expect."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from inspect import Parameter
from typing import Any, TypeVar, cast

import msgspec

from steelyard.plugins import explain_plugin_errors
from steelyard.plugins.built_in import BUILT_IN_PLUGINS, PluginKind
from steelyard.protocols import Delivery, Provider
from steelyard.records import Answer, Attempt

PluginOutput = TypeVar("PluginOutput")


def guarded_plugin(kind: PluginKind, name: str, part: Any, protocol: type, unguarded: Collection[str] = ()) -> Any:
    """What a plug-in made; if it is another distribution's, every exception of its members becomes one sentence with its name.

    A member that is `unguarded` may raise anything: its caller turns that into a failure beside the verdicts.
    """
    return part if name in BUILT_IN_PLUGINS[kind] else _GuardedPart(kind, name, part, protocol, unguarded)


class _GuardedPart:
    """An object of another distribution behind one of our protocols."""

    def __init__(self, kind: PluginKind, name: str, part: Any, protocol: type, unguarded: Collection[str]) -> None:
        self._guard = functools.partial(explain_plugin_errors, kind, name)
        self._part = part
        self._members = {*vars(protocol), *vars(protocol).get("__annotations__", ())}
        self._unguarded = unguarded

    def __getattr__(self, attribute: str) -> Any:
        if attribute not in self._members:
            # what a protocol does not ask for may be missing
            return getattr(self._part, attribute)
        with self._guard():
            value = getattr(self._part, attribute)
        return value if attribute in self._unguarded or not callable(value) else functools.partial(self._call, value)

    def _call(self, method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        with self._guard():
            returned = method(*arguments, **keywords)
        if inspect.isawaitable(returned):
            return self._awaited(returned)
        return self._entered(returned) if hasattr(returned, "__aenter__") else returned

    async def _awaited(self, returned: Awaitable[Any]) -> Any:
        with self._guard():
            return await returned

    @asynccontextmanager
    async def _entered(self, context: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
        inner: Exception | None = None
        try:
            async with context as entered:
                try:
                    yield entered
                except Exception as error:
                    inner = error
                    raise
        except Exception as error:
            if inner is not None:
                raise  # it came from the block inside, and the part only passed it on
            with self._guard():
                raise error


def ask_provider(provider: Provider, attempt: Attempt, delivery: Delivery) -> Awaitable[Answer]:
    """One request, to a provider of any age."""
    ask_it: Any = provider.ask
    is_method = hasattr(ask_it, "__func__")
    if _max_arguments(ask_it.__func__ if is_method else ask_it) - is_method > 1:
        return provider.ask(attempt, delivery)
    return cast("Awaitable[Answer]", ask_it(attempt))  # a plug-in from before deliveries


@functools.cache
def _max_arguments(function: Callable[..., Any]) -> float:
    """How many positional arguments a function takes."""
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    if Parameter.VAR_POSITIONAL in kinds:
        return math.inf
    return sum(kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)


def round_tripped(returned: PluginOutput, kind: type[PluginOutput]) -> PluginOutput:
    """What a plug-in returned, as it will be read back; what cannot be stored, such as half a character, raises here."""
    if not isinstance(returned, kind):
        raise TypeError(f"it returned {type(returned).__name__}, not {kind.__name__}")
    decoder = _decoder(cast("Any", kind))
    return cast("PluginOutput", decoder.decode(msgspec.json.encode(returned)))


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
