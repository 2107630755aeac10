"""An object of another distribution, whose exceptions become one sentence with the name of its plug-in."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from steelyard.plugins import BUILT_IN_PLUGINS, PluginKind, explain_plugin_errors


def guarded_plugin(kind: PluginKind, name: str, part: Any, protocol: type, unguarded: Collection[str] = ()) -> Any:
    """What a plug-in made; if it is another distribution's, whatever its members raise becomes one sentence with its name.

    A member that is `unguarded` raises as it likes: its caller turns that into a failure beside the verdicts.
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
