"""Which models a first run can ask with what is there: a key in the environment, or a server on this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import NamedTuple

import msgspec

from steelyard.settings import BUILT_IN_PROVIDERS

FIRST_MODELS = {"openai": "gpt-5-mini", "anthropic": "claude-sonnet-4-5", "mistral": "mistral-small-latest"}
"""For each provider whose key may be there, a model that is cheap and has a price in the list."""
LOCAL_SERVERS = {11434: "ollama", 8000: "vllm", 8080: "local", 1234: "local"}
"""The usual ports of Ollama, vLLM, llama.cpp and LM Studio, each with the provider that asks there."""
PROBE_SECONDS = 0.5
MAX_PROBE_BYTES = 1 << 20
MODEL_NAME_PATTERN = re.compile(r"[\w.:/@+-]{1,120}", re.ASCII)


class StartingPoint(NamedTuple):
    """A model that can be asked."""

    model: str
    """Provider and model."""
    found: str
    """What says that it can be asked."""
    base_url: str = ""
    """The address of a server that no built-in provider stands for."""
    is_local: bool = False


class _OfferedName(msgspec.Struct):
    id: str


class _OfferedNames(msgspec.Struct):
    data: list[_OfferedName]


def starting_point(environment: Mapping[str, str], servers: Mapping[int, str] = LOCAL_SERVERS) -> StartingPoint | None:
    """A model of a provider whose key is there, otherwise of a server on this machine; None if there is neither.

    Only loopback is asked, and no key is sent.
    """
    for provider, model in FIRST_MODELS.items():
        key = BUILT_IN_PROVIDERS[provider].key
        if environment.get(key):
            return StartingPoint(f"{provider}/{model}", f"{key} is set")
    for port, provider in servers.items():
        if name := _first_offered_model(port):
            url = "" if provider in BUILT_IN_PROVIDERS else f"http://127.0.0.1:{port}/v1"
            return StartingPoint(f"{provider}/{name}", f"a server answers on port {port}", url, is_local=True)
    return None


def _first_offered_model(port: int) -> str:
    """The first model that a server on this machine lists; empty if none answers as expected."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        response = connection.getresponse()
        offered = msgspec.json.decode(response.read(MAX_PROBE_BYTES), type=_OfferedNames)
    except (OSError, HTTPException, ValueError, RecursionError):
        return ""
    finally:
        connection.close()
    names = [each.id for each in offered.data if MODEL_NAME_PATTERN.fullmatch(each.id)]
    return names[0] if response.status == 200 and names else ""
