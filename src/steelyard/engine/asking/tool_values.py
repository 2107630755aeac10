"""The return value of a user's function, as the text that a model is sent."""

from __future__ import annotations

import inspect
import re
from collections import deque
from collections.abc import AsyncIterable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from steelyard.plugins.user_functions import UserFunction, in_loop, in_thread

MAX_YIELDED_ITEMS = 10_000
"""Maximum items of a generator; an endless one would take all memory."""
_ADDRESS_PATTERN = re.compile(r" at 0x[0-9A-Fa-f]+\b")
"""Python's default `repr` of a value; its address differs between processes."""


class _YieldedError(Exception):
    """What a generator of the user's raised while its items were listed; that is the cause."""


async def returned_text(function: UserFunction, arguments: Mapping[str, Any]) -> str:
    """What a function returns for these arguments, as text; what it yields is listed."""
    returned = await function._replace(body=partial(_body_text, function.body)).call_with(arguments)
    while inspect.isawaitable(returned):
        returned = await in_loop(returned)
    if isinstance(returned, AsyncIterable):
        returned = await in_loop(_items(returned))
    # items of a generator are computed by code of the user's, and must not hold up others
    return returned if isinstance(returned, str) else str(await in_thread(value_text, returned))


def _body_text(body: Any, /, **arguments: Any) -> Any:
    """What a function returns as text, made in the function's own thread; what only an event loop can wait for as it is."""
    returned = body(**arguments)
    return returned if inspect.isawaitable(returned) or isinstance(returned, AsyncIterable) else value_text(returned)


async def _items(yielded: AsyncIterable[Any]) -> list[Any]:
    items: list[Any] = []
    async for item in yielded:
        items.append(item)
        _check_item_count(items)
    return items


def value_text(value: Any) -> str:
    """A text as it is, any other value as JSON, and what JSON cannot hold by its `str`; raises if that fails."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value, enc_hook=_listed).decode()
    except _YieldedError as error:
        raise (error.__cause__ or error) from None
    except (TypeError, ValueError, RecursionError):
        text = described(value)
    if _ADDRESS_PATTERN.search(text):
        raise TypeError(
            f"the tool returned {_ADDRESS_PATTERN.sub('', text)[:200]}, which is not a value for a model; return text or JSON values"
        )
    return text


def _listed(value: Any) -> list[Any]:
    """The items of a value that JSON cannot hold."""
    if not isinstance(value, Iterator | range | KeysView | ValuesView | ItemsView | deque):
        raise TypeError
    try:
        items = list(islice(value, MAX_YIELDED_ITEMS + 1))
        _check_item_count(items)
    except Exception as error:
        raise _YieldedError from error
    return items


def _check_item_count(items: list[Any]) -> None:
    if len(items) > MAX_YIELDED_ITEMS:
        raise OverflowError(f"the tool yielded more than {MAX_YIELDED_ITEMS:,} items")


def described(value: Any) -> str:
    """The `str` of a value of the user's code; one that raises must not end the run."""
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001  it comes from code of the user's
        return f"{type(value).__name__} that cannot be written as text ({type(error).__name__})"
