"""OpenAI chat completions at Azure: its v1 address, and the classic one with an api-version."""

from __future__ import annotations

from urllib.parse import quote

from steelyard.errors import InputError
from steelyard.protocols import OfferedModel, Provider, ProviderSettings
from steelyard.providers.formats.openai import OpenAIProvider

V1_PATH = "/openai/v1"


class AzureProvider(OpenAIProvider):
    """One deployment of a resource."""

    def __init__(self, deployment: str, settings: ProviderSettings) -> None:
        if not settings.base_url:
            raise InputError("provider azure: no address; set AZURE_OPENAI_ENDPOINT, or give --base-url")
        address, mark, query = settings.base_url.partition("?")
        resource = address.rstrip("/").removesuffix(V1_PATH).removesuffix("/openai")
        self._is_classic = bool(query) and not address.rstrip("/").endswith(V1_PATH)
        if self._is_classic and "api-version=" not in query:
            raise InputError(
                f'provider azure: the query "{query}" of the address has no api-version, such as ?api-version=2024-10-21'
            )
        path = f"/openai/deployments/{quote(deployment, safe='')}" if self._is_classic else V1_PATH
        super().__init__(deployment, settings, base_url=resource + path + mark + query, dialect="azure")

    def key_headers(self, settings: ProviderSettings) -> dict[str, str]:
        return {"api-key": settings.api_key} if settings.api_key else {}

    async def offers(self) -> list[OfferedModel]:
        # the classic address lists what could be deployed, not what is
        return [OfferedModel(self.model, self.endpoint)] if self._is_classic else await super().offers()


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A resource at Azure, asked for one deployment."""
    return {model: AzureProvider(model, settings)}
