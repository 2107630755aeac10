"""A check of a list that compares meanings: the cosine between the vectors of two texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from steelyard.errors import VerifierError
from steelyard.records import Answer, Case
from steelyard.text import short_quote
from steelyard.verifiers.checks.outcome import CheckOutcome
from steelyard.verifiers.response.judged import CheckTable

DEFAULT_EMBEDDING_MODEL = "openai/text-embedding-3-small"
DEFAULT_SIMILARITY = 0.8


class Embedder(Protocol):
    """Someone who turns texts into vectors."""

    def require(self, model: str) -> None:
        """Raise VerifierError when no text could be given to this model."""
        ...

    async def vectors(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in their order."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class SimilarCheck:
    """The reply means the same as one of the texts, according to an embedding model."""

    name: str
    texts: tuple[str, ...]
    at_least: float
    model: str
    embedder: Embedder

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  only the text counts
        if not text.strip():
            return CheckOutcome(False, 0.0, "the reply is empty")
        given, *wanted = await self.embedder.vectors(self.model, [text, *self.texts])
        best = max(_cosine(given, vector) for vector in wanted)
        message = f"a similarity of {best:.3f}, where {self.at_least:g} is asked for"
        return CheckOutcome(best >= self.at_least, min(1.0, max(0.0, best)), message)


def _cosine(left: list[float], right: list[float]) -> float:
    """The cosine between two vectors; VerifierError where they cannot be compared."""
    lengths = math.hypot(*left) * math.hypot(*right)
    if len(left) != len(right) or not lengths or not math.isfinite(lengths):
        raise VerifierError("similar: the embedding model sent vectors that cannot be compared")
    return math.fsum(one * other for one, other in zip(left, right, strict=True)) / lengths


def similar_check(table: CheckTable, embedder: Embedder | None) -> SimilarCheck:
    """A text or several, how similar the reply must be, and the embedding model."""
    texts = table.texts("similar")
    at_least = float(table.number("at_least", DEFAULT_SIMILARITY))
    model = table.text("model", DEFAULT_EMBEDDING_MODEL)
    if embedder is None:
        raise VerifierError(f"{table.path}: similar needs embeddings, which are not available here")
    embedder.require(model)
    return SimilarCheck(f"similar to {short_quote(texts[0])[:60]}", texts, at_least, model, embedder)
