"""A function of the user's own, named by its import path."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.errors import InputError
from steelyard.protocols import Offer, Provider, ProviderSettings
from steelyard.records import Answer, Attempt

if TYPE_CHECKING:
    from collections.abc import Callable


class Python:
    """A function from a prompt to a reply: plain or async, a text or the fields of an Answer."""

    at_once = 32

    def __init__(self, path: str, function: Callable[..., Any]) -> None:
        self.endpoint = f"python:{path}"
        self._function = function
        takes = [
            parameter
            for parameter in inspect.signature(function).parameters.values()
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        ]
        self._wants_attempt = len(takes) > 1

    async def ask(self, attempt: Attempt) -> Answer:
        prompt = "\n\n".join(message.content for message in attempt.messages)
        arguments = (prompt, attempt) if self._wants_attempt else (prompt,)
        started = time.monotonic()
        if inspect.iscoroutinefunction(self._function):
            said = await self._function(*arguments)
        else:
            said = await asyncio.to_thread(self._function, *arguments)
        if isinstance(said, Answer):
            return said
        if isinstance(said, str):
            return Answer(text=said, latency=time.monotonic() - started)
        return msgspec.convert(said, Answer)

    def headroom(self) -> None:
        return None

    def available(self, case: str) -> None:  # noqa: ARG002  a function answers anything
        return None

    async def offers(self) -> list[Offer]:
        return [Offer(self.endpoint)]

    async def close(self) -> None:
        pass


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:  # noqa: ARG001  a function has no settings
    """A function, asked by calling it."""
    return {model: Python(model, imported(model))}


def imported(path: str) -> Callable[..., Any]:
    """The function at `package.module:name` or `file.py:name`."""
    module_name, _, name = path.rpartition(":")
    if not module_name or not name:
        raise InputError(f'python:{path}: not "module:function" or "file.py:function"')
    try:
        if module_name.endswith(".py"):
            # the path as its name: no other module has that, and a dataclass looks itself up under it
            spec = importlib.util.spec_from_file_location(str(Path(module_name).resolve()), module_name)
            if spec is None or spec.loader is None:
                raise ImportError(f"cannot read {module_name}")
            module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            if "" not in sys.path:
                sys.path.insert(0, "")  # as `python -m` does: the user's own module lies where the command is run
            module = importlib.import_module(module_name)
    except Exception as error:
        raise InputError(f"python:{path}: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError(f'python:{path}: {module_name} has no function "{name}"')
    return function  # type: ignore[no-any-return]  # callable() is all that can be known
