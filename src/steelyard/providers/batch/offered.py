"""Which providers offer batches, and how each of them is spoken to."""

from __future__ import annotations

from steelyard.providers.batch.anthropic import AnthropicBatches
from steelyard.providers.batch.api import BatchApi
from steelyard.providers.batch.gemini import GeminiBatches
from steelyard.providers.batch.mistral import MistralBatches
from steelyard.providers.batch.openai import OpenAIBatches

BATCH_APIS: dict[str, BatchApi] = {
    "openai": OpenAIBatches(),
    "anthropic": AnthropicBatches(),
    "mistral": MistralBatches(),
    "gemini": GeminiBatches(),
}
BATCH_API_BY_PROVIDER = {
    "openai": "openai",
    "openai-responses": "openai",
    "azure": "openai",
    "anthropic": "anthropic",
    "mistral": "mistral",
    "gemini": "gemini",
}
"""Providers whose batches can be listed and identify who submitted them."""


def batch_api_name(model: str) -> str:
    """The batches that the provider of a model, `provider/model`, has; empty if we support none."""
    return BATCH_API_BY_PROVIDER.get(model.partition("/")[0], "")
