"""Vectors for the texts of checks: from an endpoint of the settings, or from a local model where its package is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec

from steelyard.errors import InputError, ProviderError, Unavailable, VerifierError
from steelyard.protocols import Delivery, ProviderSettings
from steelyard.providers.wire import HttpEndpoint
from steelyard.secret_texts import Secret
from steelyard.settings import Settings, resolve_provider

EMBEDDING_TYPES = ("openai", "ollama")
"""The wire formats that have such an endpoint."""
LOCAL_PREFIX = "local/"
LOCAL_PACKAGE = "sentence_transformers"
EMBEDDING_TIMEOUT_SECONDS = 120
MAX_KNOWN_VECTORS = 5000
"""Vectors that are kept for texts that come again, such as those of the checks."""


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
            headers["authorization"] = Secret(f"Bearer {settings.api_key}")
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


class SettingsEmbedder:
    """Every embedding model that a run's checks name, each connected once."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._environment = environment
        self._endpoints: dict[str, EmbeddingEndpoint] = {}
        self._local: dict[str, Any] = {}
        self._known: dict[tuple[str, str], list[float]] = {}

    def require(self, model: str) -> None:
        """Raise VerifierError when no text could be given to this model."""
        if model.startswith(LOCAL_PREFIX):
            if find_spec(LOCAL_PACKAGE) is None:
                raise VerifierError(
                    f"similar: {model} needs the package sentence-transformers; install it, or name a model of a server"
                )
            return
        try:
            _, name, reached = resolve_provider(model, self._settings, self._environment)
            self._endpoints.setdefault(model, EmbeddingEndpoint(name, reached))
        except InputError as error:
            raise VerifierError(f"similar needs embeddings: {error}") from None

    async def vectors(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in their order; a text is given to a model once."""
        self.require(model)
        if len(self._known) > MAX_KNOWN_VECTORS:
            # another check may still wait for its own
            self._known = {}
        known = self._known
        new = [text for text in dict.fromkeys(texts) if (model, text) not in known]
        if new:
            try:
                async with asyncio.timeout(EMBEDDING_TIMEOUT_SECONDS):
                    found = await self._new_vectors(model, new)
            except (ProviderError, TimeoutError) as error:
                raise VerifierError(f"similar: {str(error) or 'no vectors in time'}") from None
            known |= {(model, text): vector for text, vector in zip(new, found, strict=True)}
        return [known[model, text] for text in texts]

    async def _new_vectors(self, model: str, texts: list[str]) -> list[list[float]]:
        if model.startswith(LOCAL_PREFIX):
            return await self._local_vectors(model, texts)
        return await self._endpoints[model].vectors(texts)

    async def _local_vectors(self, model: str, texts: list[str]) -> list[list[float]]:
        if model not in self._local:
            from importlib import import_module

            package = import_module(LOCAL_PACKAGE)
            self._local[model] = await asyncio.to_thread(package.SentenceTransformer, model.removeprefix(LOCAL_PREFIX))
        found = await asyncio.to_thread(self._local[model].encode, texts)
        return [[float(number) for number in vector] for vector in found]

    async def close(self) -> None:
        """Close every connection."""
        for endpoint in self._endpoints.values():
            await endpoint.close()
