"""A function of the user's own, named by its import path."""

from __future__ import annotations

import time

import msgspec

from steelyard.errors import InputError
from steelyard.plugins import UserFunction, load_function
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings
from steelyard.records import Answer, Attempt


class PythonProvider:
    """A function from a prompt to a reply: plain or async, a text or the fields of an Answer."""

    at_once = 32

    def __init__(self, path: str, model: UserFunction) -> None:
        self.endpoint = f"python:{path}"
        self._model = model

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        prompt = "\n\n".join(message.content for message in attempt.messages)
        started = time.monotonic()
        delivery.accepted = True
        model_result = await self._model.call(prompt, attempt)
        if isinstance(model_result, Answer):
            return model_result
        if isinstance(model_result, str):
            return Answer(text=model_result, latency=time.monotonic() - started)
        return msgspec.convert(model_result, Answer)

    def headroom(self) -> None:
        return None

    def available(self, case: str) -> None:  # noqa: ARG002  a function answers anything
        return None

    async def offers(self) -> list[OfferedModel]:
        return [OfferedModel(self.endpoint)]

    async def close(self) -> None:
        pass


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:  # noqa: ARG001  a function has no settings
    """A function, asked by calling it."""
    try:
        return {model: PythonProvider(model, load_function(model))}
    except InputError as error:
        raise InputError(f"python:{error}") from error
