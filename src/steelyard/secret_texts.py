"""Texts that nobody is shown: keys, and the environment that they come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any


class Secret(str):
    """A text that no `repr` shows, and so no help page, log or traceback with locals; it is used like any other text.

    What is made of one is plain: `Secret(f"Bearer {key}")` hides it again. A record with one cannot be written by accident,
    because msgspec refuses the type; `enc_hook=str` says that it is meant.

    >>> Secret("sk-12345678"), Secret("sk-12345678")[:4], "Bearer " + Secret("sk-12345678")
    (***, ***, 'Bearer sk-12345678')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "***" if self else "''"

    def __getitem__(self, place: Any) -> Secret:
        # tools shorten long texts before they show them
        return Secret(super().__getitem__(place))


def hidden_texts(
    table: Mapping[str, Any], is_hidden: Callable[[str, str], bool] = lambda _name, _value: True
) -> dict[str, Any]:
    """A table, and those within it, whose texts are hidden, or those for whose name and value a function says so.

    >>> hidden_texts({"x-api-key": "sk-12345678", "more": {"a": "b", "c": 1}})
    {'x-api-key': ***, 'more': {'a': ***, 'c': 1}}
    """
    return {
        name: hidden_texts(value, is_hidden)
        if isinstance(value, dict)
        else Secret(value)
        if isinstance(value, str) and is_hidden(name, value)
        else value
        for name, value in table.items()
    }


class Environment(Mapping[str, str]):
    """The variables of this process at the time when they are read, or those that are given; each value is a Secret.

    >>> Environment({"OPENAI_API_KEY": "sk-12345678"}), {**Environment({"OPENAI_API_KEY": "sk-12345678"})}
    (Environment(...), {'OPENAI_API_KEY': ***})
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._given = given

    def __getitem__(self, name: str) -> str:
        return Secret((os.environ if self._given is None else self._given)[name])

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ if self._given is None else self._given)

    def __len__(self) -> int:
        return len(os.environ if self._given is None else self._given)

    def __repr__(self) -> str:
        return "Environment()" if self._given is None else "Environment(...)"


class HiddenFrames(ContextDecorator):
    """A context, or a decorator, of code with keys as plain text in its locals: an error leaves it without the frames that have them.

    The function with the context is one of them. What the error says stays, and so do the frames of the callers.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is not None:
            _drop_frames(error, set())


def _drop_frames(error: BaseException, seen: set[int]) -> None:
    """Drop the frames of an error, of those that led to it and of those that it is a group of."""
    if id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = None
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for other in (error.__cause__, error.__context__, *inner):
        if other is not None:
            _drop_frames(other, seen)
