"""The files of a new folder of evals, for the models that a first run can ask: by a key, on a server of this machine, or from recorded replies."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.engine.preflight.forecast import forecast, forecast_text
from steelyard.errors import InputError, SteelyardError
from steelyard.evalsets import load, starter
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


FIRST_SAMPLES = 5
"""Attempts per case of a first run that asks a model."""


class StarterFolder(NamedTuple):
    """What was written, and what to do with it."""

    written: tuple[Path, ...]
    asks: str
    """What a first run asks, why, and what that costs at most."""
    next_commands: tuple[str, ...]
    with_key: str = ""
    """The command for somebody who gets a key later."""


def write_starter(folder: Path, environment: Mapping[str, str]) -> StarterFolder:
    """Write an eval set and settings; raises an InputError, and writes nothing, if one of the files exists."""
    found = starting_point(environment)
    evals = Path("evals", "starter.toml" if found else "python-basics.toml")
    model = found.model if found else "replay:recordings/python-basics.jsonl.gz"
    files = {
        Path("evals", "starter.toml"): starter.starter().encode(),
        Path("steelyard.toml"): starter.starter_settings(model, found.base_url if found else "").encode(),
        Path("eval-set.schema.json"): starter.SCHEMA_FILE.read_bytes(),
    }
    if not found:
        recording = starter.DEMO_FOLDER / "python-basics.jsonl.gz"
        files[evals] = (starter.DEMO_FOLDER / "python-basics.toml").read_bytes()
        files[Path("recordings", recording.name)] = recording.read_bytes()
    standing = [str(folder / path) for path in files if (folder / path).exists()]
    if standing:
        raise InputError(
            f"{', '.join(standing)}: already exists; nothing was written; name another folder, such as: steelyard init more"
        )
    for path, content in files.items():
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        except OSError as error:
            raise InputError(f"{folder / path}: {error.strerror}") from None
    enter = [] if folder.absolute() == Path.cwd() else [f"cd {shlex.quote(str(folder))}"]
    samples = f" --samples {FIRST_SAMPLES}" if found else ""
    return StarterFolder(
        tuple(folder / path for path in files),
        _first_run(found, folder / evals),
        (*enter, f"steelyard validate {evals}", f"steelyard run {evals}{samples}"),
        "" if found else "OPENAI_API_KEY=... steelyard run evals/starter.toml -m openai/gpt-5-mini",
    )


def _first_run(found: StartingPoint | None, evals: Path) -> str:
    """What a first run asks, why, and what that costs at most."""
    if found is None:
        return "nobody and costs nothing: no key and no server with a model was found, so it verifies recorded replies"
    if found.is_local:
        return f"{found.model} on this machine, because {found.found}, and costs nothing"
    try:
        cases = load([evals]).cases
        planned = forecast(
            cases, models=[found.model], samples=FIRST_SAMPLES, k=(1,), parameters={}, system="", base_url=""
        )
    except SteelyardError as error:
        return f"{found.model}, because {found.found}; what that costs is not known: {error}"
    return f"a model, because {found.found}: {forecast_text(planned).rstrip()}"
