"""Asking one provider one thing, without an engine around it."""

from __future__ import annotations

import asyncio
from typing import Any

from steelyard.protocols import Delivery, OfferedModel, Provider
from steelyard.records import Answer, Attempt, Case, Message

KEY = "sk-very-secret-0123456789"


def attempt(
    prompt: str | tuple[Message, ...] = "say hi", *, number: int = 1, system: str = "", **parameters: Any
) -> Attempt:
    case = Case(id="greet", prompt=prompt, target="hi")
    return Attempt(case=case, model="p/m", parameters=parameters, system=system, number=number)


def answer(provider: Provider, asked: Attempt | None = None, *, deadline: float = 20) -> Answer:
    async def ask() -> Answer:
        try:
            async with asyncio.timeout(deadline):
                return await provider.ask(asked or attempt(), Delivery())
        finally:
            await provider.close()

    return asyncio.run(ask())


def offers(provider: Provider) -> list[OfferedModel]:
    async def list_them() -> list[OfferedModel]:
        try:
            return await provider.offers()
        finally:
            await provider.close()

    return asyncio.run(list_them())
