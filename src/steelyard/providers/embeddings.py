"""Vectors for texts from an endpoint in the style of OpenAI."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steelyard.errors import InputError, Unavailable
from steelyard.protocols import Delivery, ProviderSettings
from steelyard.providers.wire import HttpEndpoint

EMBEDDING_TYPES = ("openai", "ollama")
"""The wire formats that have such an endpoint."""


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _EmbeddingList(msgspec.Struct):
    data: list[_Embedding]


class EmbeddingEndpoint:
    """One embedding model behind an endpoint."""

    def __init__(self, model: str, settings: ProviderSettings) -> None:
        if settings.type not in EMBEDDING_TYPES or not settings.base_url:
            raise InputError(
                f'provider type "{settings.type}" has no embeddings; name a model of an OpenAI-style server'
            )
        headers = dict(settings.headers)
        if settings.api_key:
            headers["authorization"] = f"Bearer {settings.api_key}"
        self._model = model
        self._http = HttpEndpoint(settings.base_url, headers, secrets=(settings.api_key, *settings.headers.values()))

    async def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in their order."""
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        exchange = await self._http.exchange("POST", "/embeddings", body, Delivery())
        found = sorted(self._http.decode(exchange, _EmbeddingList).data, key=lambda one: one.index)
        if len(found) != len(texts):
            raise Unavailable(f"{self._http.url}: {len(found)} vectors for {len(texts)} texts")
        return [one.embedding for one in found]

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
