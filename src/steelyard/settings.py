"""Which providers to ask and how: the settings file and the environment."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import msgspec

from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.plugins import foreign_plugins, has_unchecked_settings, is_plugin, plugin_names, settings_type
from steelyard.protocols import ProviderSettings
from steelyard.records import AgentSettings, Price, Record
from steelyard.secret_texts import HiddenFrames, Secret
from steelyard.text import printable

PROVIDER_KEYS = tuple(key for key in ProviderSettings.__struct_fields__ if key != "settings")
DEFAULT_SETTINGS_PATH = Path("steelyard.toml")
MAX_SETTINGS_BYTES = 16 << 20


class SuiteSettings(Record, frozen=True, kw_only=True):
    """How suites are scored beside the plain rule; what is left out is left to the run."""

    penalties: dict[str, float] | None = None
    weights: dict[str, float] | None = None
    latency_target: float | None = None
    latency_limit: float | None = None


class Settings(Record, frozen=True, kw_only=True):
    """The settings file; what is left out keeps these values."""

    providers: dict[str, ProviderSettings] = {}
    agents: dict[str, AgentSettings] = {}
    """Programs that work in a folder, and what they need to reach; asked as `agent:NAME`."""
    prices: dict[str, Price] = {}
    """Your own prices per million tokens, by `provider/model`."""
    price_table: str = ""
    """One of our price tables, used after your own prices: `worked-examples`, the example prices of a document."""
    suites: SuiteSettings = SuiteSettings()
    """What failures of suites cost, what suites weigh, and how quick replies must be."""
    default_provider: str = ""
    default_model: str = ""
    default_temperature: float | None = None
    max_retries: int = 3
    retry_delay_ms: int = 1000
    parallelism: int | None = None
    deadline_secs: float = 600
    """How long one request may take before it counts as unanswered."""
    max_wait_secs: float = 600
    """How long a model may keep a run waiting without any answer; then it is left for later, and the run can be resumed."""
    ray_wait_secs: float = 120
    """With `--backend ray`: how long a run waits when no node of the cluster is left; then it stops, and can be resumed."""
    output_dir: str = "steelyard-runs"
    options: dict[str, Any] = {}
    """Any option of the command line by its name, such as `samples = 10`."""


class _BuiltInProvider(Record, frozen=True, kw_only=True):
    type: str = "openai"
    url: str = ""
    key: str = ""
    """The environment's names for the key; of several, `A|B`, the first that is set, and `A+B` joins two by a colon."""
    urls: tuple[str, ...] = ()
    """The environment's names for another address."""
    version: str = ""
    """The environment's name for the api-version, which becomes the query of the address."""


AWS_REGION = "AWS_REGION|AWS_DEFAULT_REGION"
"""The environment's names for a region of AWS."""
BUILT_IN_PROVIDERS = {
    "openai": _BuiltInProvider(
        url="https://api.openai.com/v1", key="OPENAI_API_KEY", urls=("OPENAI_BASE_URL", "OPENAI_API_BASE")
    ),
    "anthropic": _BuiltInProvider(
        type="anthropic", url="https://api.anthropic.com", key="ANTHROPIC_API_KEY", urls=("ANTHROPIC_BASE_URL",)
    ),
    "agent": _BuiltInProvider(type="agent"),
    "ollama": _BuiltInProvider(
        type="ollama", url="http://127.0.0.1:11434", urls=("OLLAMA_HOST", "OLLAMA_BASE_URL", "OLLAMA_API_BASE")
    ),
    "openai-responses": _BuiltInProvider(
        type="openai-responses", url="https://api.openai.com/v1", key="OPENAI_API_KEY", urls=("OPENAI_BASE_URL",)
    ),
    "azure": _BuiltInProvider(
        type="azure", key="AZURE_OPENAI_API_KEY", urls=("AZURE_OPENAI_ENDPOINT",), version="OPENAI_API_VERSION"
    ),
    "gemini": _BuiltInProvider(
        type="gemini",
        url="https://generativelanguage.googleapis.com/v1beta",
        key="GEMINI_API_KEY|GOOGLE_API_KEY",
    ),
    "bedrock": _BuiltInProvider(
        type="bedrock",
        url=f"https://bedrock-runtime.{{{AWS_REGION}}}.amazonaws.com",
        key="AWS_BEARER_TOKEN_BEDROCK|AWS_ACCESS_KEY_ID+AWS_SECRET_ACCESS_KEY+AWS_SESSION_TOKEN",
        urls=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",),
    ),
    "openrouter": _BuiltInProvider(url="https://openrouter.ai/api/v1", key="OPENROUTER_API_KEY"),
    "groq": _BuiltInProvider(url="https://api.groq.com/openai/v1", key="GROQ_API_KEY"),
    "together": _BuiltInProvider(url="https://api.together.xyz/v1", key="TOGETHER_API_KEY"),
    "mistral": _BuiltInProvider(url="https://api.mistral.ai/v1", key="MISTRAL_API_KEY"),
    "deepseek": _BuiltInProvider(url="https://api.deepseek.com/v1", key="DEEPSEEK_API_KEY"),
    "xai": _BuiltInProvider(url="https://api.x.ai/v1", key="XAI_API_KEY"),
    "fireworks": _BuiltInProvider(url="https://api.fireworks.ai/inference/v1", key="FIREWORKS_API_KEY"),
    "openai-completions": _BuiltInProvider(type="openai-completions"),
    "vllm": _BuiltInProvider(url="http://127.0.0.1:8000/v1", urls=("VLLM_BASE_URL",)),
    "sglang": _BuiltInProvider(url="http://127.0.0.1:30000/v1", urls=("SGLANG_BASE_URL",)),
    "llama.cpp": _BuiltInProvider(url="http://127.0.0.1:8080/v1", urls=("LLAMA_CPP_BASE_URL",)),
    "lmstudio": _BuiltInProvider(url="http://127.0.0.1:1234/v1", urls=("LMSTUDIO_BASE_URL",)),
    "replay": _BuiltInProvider(type="replay"),
    "command": _BuiltInProvider(type="command"),
    "pydantic-ai": _BuiltInProvider(type="pydantic-ai"),
    "python": _BuiltInProvider(type="python"),
}
"""Providers that need no settings file."""


@HiddenFrames()
def load(path: Path | None, environment: Mapping[str, str]) -> tuple[Settings, list[Problem]]:
    """The settings file, or the defaults when there is none, with warnings about what it holds."""
    if path is None:
        if not DEFAULT_SETTINGS_PATH.is_file():
            return Settings(), []
        path = DEFAULT_SETTINGS_PATH
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SETTINGS_BYTES + 1)
        if len(content) > MAX_SETTINGS_BYTES:
            raise InputError(
                f"{path}: larger than {MAX_SETTINGS_BYTES >> 20} MB, which is too large for a settings file"
            )
        table = tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also a number with thousands of digits
        raise InputError(f"{path}: not TOML: {error}") from None
    return _settings(table, str(path), environment)


def _settings(table: dict[str, Any], where: str, environment: Mapping[str, str]) -> tuple[Settings, list[Problem]]:
    problems: list[Problem] = []
    known = set(Settings.__struct_fields__)
    providers: dict[str, ProviderSettings] = {}
    sections = table.pop("providers", {})
    if not isinstance(sections, dict):
        raise InputError(f"{where}: providers must be tables, such as [providers.openai]")
    for name, section in sections.items():
        if not isinstance(section, dict):
            raise InputError(f"{where}: providers.{name} must be a table, [providers.{name}]")
        section.setdefault("type", name)
        is_foreign = section["type"] in foreign_plugins("providers")
        own_settings = settings_type("providers", section["type"]) if is_foreign else None
        own_keys = () if own_settings is None else own_settings.__struct_fields__
        if has_unchecked_settings("providers", section["type"]):
            own_keys = tuple(section)
        own = {key: section.pop(key) for key in list(section) if key in own_keys and key not in PROVIDER_KEYS}
        for key in [key for key in section if key not in PROVIDER_KEYS]:
            if key in known:
                # a default_* key below a [providers.X] header is that table's to TOML, but not to its author
                problems.append(
                    Problem(where, 0, f"{key} is inside [providers.{name}]; used as a general setting", False)
                )
                table.setdefault(key, section.pop(key))
            else:
                section.pop(key)
                way_out = did_you_mean(key, [*PROVIDER_KEYS, *own_keys])
                problems.append(Problem(where, 0, f'unknown key "{key}" in [providers.{name}] ({way_out})', False))
        if not is_plugin("providers", str(section["type"])):
            way_out = did_you_mean(str(section["type"]), plugin_names("providers"))
            raise InputError(f'{where}: provider "{name}": unknown type "{section["type"]}" ({way_out})')
        place = f"{where}: providers.{name}"
        own, expanded = _expanded(own, environment), _expanded(section, environment)
        _check_addresses(section, expanded, place)
        providers[name] = _converted({**expanded, "settings": own}, ProviderSettings, place)
        if own_settings is not None:
            try:
                _converted({**own, **{key: section[key] for key in own_keys if key in section}}, own_settings, place)
            except InputError as error:
                raise InputError([*problems, *error.problems]) from None
    suites = table.get("suites", {})
    if not isinstance(suites, dict):
        raise InputError(f"{where}: suites must be a table, [suites]")
    for key in [key for key in suites if key not in SuiteSettings.__struct_fields__]:
        suites.pop(key)
        way_out = did_you_mean(key, SuiteSettings.__struct_fields__)
        problems.append(Problem(where, 0, f'unknown key "{key}" in [suites] ({way_out})', False))
    for name, agent in table["agents"].items() if isinstance(table.get("agents"), dict) else ():
        for key in (
            [key for key in agent if key not in AgentSettings.__struct_fields__] if isinstance(agent, dict) else ()
        ):
            way_out = did_you_mean(key, AgentSettings.__struct_fields__)
            raise InputError(f'{where}: unknown key "{printable(key)}" in [agents.{printable(name)}] ({way_out})')
    general = {key: table.pop(key) for key in list(table) if key in known}
    settings = _converted({**general, "options": {**table, **general.get("options", {})}}, Settings, where)
    return msgspec.structs.replace(settings, providers=providers), problems


def _converted(value: Any, shape: Any, where: str) -> Any:
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        # it quotes the value, which may be a key of the environment
        raise InputError(f"{where}: {_QUOTED_VALUE_PATTERN.sub('Invalid value', str(error))}") from None


_QUOTED_VALUE_PATTERN = re.compile(r"Invalid enum value '.*'", re.DOTALL)
_ADDRESS_PATTERN = re.compile(r"://|:\d+/?$")
"""What an address has and a key does not; that of an Ollama server may have no scheme."""
_REGION_PATTERN = re.compile(r"[a-z]+(?:-[a-z]+)+-\d{1,2}")


def _check_addresses(section: dict[str, Any], expanded: dict[str, Any], where: str) -> None:
    """Raises an InputError if a variable of the environment is named as an address or a region and holds something else.

    An address is stored and shown, so it must not be a key.
    """
    for key, is_right in (("base_url", _ADDRESS_PATTERN.search), ("region", _REGION_PATTERN.fullmatch)):
        value = expanded.get(key)
        if isinstance(value, str) and value != section[key] and not is_right(value):
            what = "address, such as http://127.0.0.1:8000/v1" if key == "base_url" else "region, such as us-east-1"
            raise InputError(f"{where}: {key}: the variable {printable(section[key][2:-1])} holds no {what}")


def _expanded(section: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """The section with each "${VAR}" replaced by the environment's value, where there is one."""
    filled = {}
    for key, value in section.items():
        if isinstance(value, dict):
            value = _expanded(value, environment)  # noqa: PLW2901  as below
        elif isinstance(value, str) and value.startswith("${") and value.endswith("}"):
            # one that is not set matters only where this provider is asked
            value = environment.get(value[2:-1], value)  # noqa: PLW2901  the filled-in value is what the loop is for
        filled[key] = value
    return filled


def resolve_provider(
    model: str, settings: Settings, environment: Mapping[str, str], base_url: str = "", *, asks: bool = True
) -> tuple[str, str, ProviderSettings]:
    """The provider's name, the model's name there, and how it is reached; a plan asks no model and needs no key.

    >>> resolve_provider("openai/gpt-5", Settings(), {"OPENAI_API_KEY": "k"})[:2]
    ('openai', 'gpt-5')
    """
    place = min((at for at in (model.find(":"), model.find("/")) if at > 0), default=-1)
    name, rest = (model[:place], model[place + 1 :]) if place > 0 else (settings.default_provider, model)
    if not rest and name:
        raise InputError(f'model "{model}": name the model too, such as openai/gpt-5')
    if not name or not rest:
        raise InputError(f'model "{model}": say who offers it, such as openai/{model or "gpt-5"}')
    if name in settings.providers:
        reached = settings.providers[name]
        if asks:
            _check_expanded(name, msgspec.structs.asdict(reached), environment)
    elif name in BUILT_IN_PROVIDERS:
        reached = ProviderSettings(type=BUILT_IN_PROVIDERS[name].type)
    elif name in foreign_plugins("providers"):
        reached = ProviderSettings(type=name)
    else:
        known = {*BUILT_IN_PROVIDERS, *settings.providers, *foreign_plugins("providers")}
        raise InputError(f'model "{model}": unknown provider "{name}" ({did_you_mean(name, known)})')
    return name, rest, _completed_provider_settings(name, reached, environment, base_url, asks=asks)


def _check_expanded(name: str, table: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Raises an InputError if a provider asks for a variable that the environment does not have."""
    for key, value in table.items():
        if isinstance(value, dict):
            _check_expanded(f"{name}: {key}", value, environment)
        elif (
            isinstance(value, str) and value.startswith("${") and value.endswith("}") and value[2:-1] not in environment
        ):
            raise InputError(
                f"provider {name}: {key} asks for the environment variable {value[2:-1]}, which is not set"
            )


def _completed_provider_settings(
    name: str, given: ProviderSettings, environment: Mapping[str, str], base_url: str, *, asks: bool
) -> ProviderSettings:
    """What the settings leave open, from the environment, then from the built-in table; a key goes only to its own address."""
    built_in = BUILT_IN_PROVIDERS.get(name) or BUILT_IN_PROVIDERS.get(given.type) or _BuiltInProvider()
    region = given.region or (environment_value(AWS_REGION, environment) if given.type == "bedrock" else "")
    built_in_url = _filled_url(built_in.url, {**environment, "AWS_REGION": region} if region else environment)
    environment_url = next((environment[url] for url in built_in.urls if environment.get(url)), "")
    if environment_url and "?" not in environment_url and environment.get(built_in.version or "-"):
        environment_url += f"?api-version={environment[built_in.version]}"
    environment_url = environment_url or built_in_url
    settings_url = _full_url(given.base_url or environment_url, given.type)
    url = _full_url(base_url, given.type) or settings_url
    own_urls = {_full_url(known, given.type) for known in (environment_url, built_in_url)}
    environment_key = environment_value(built_in.key, environment) if url and url in own_urls else ""
    api_key = (given.api_key if url == settings_url else "") or environment_key
    if asks and built_in.key and not api_key and url and url == built_in_url:
        wanted = built_in.key.replace("|", " or ").replace("+AWS_SESSION_TOKEN", "").replace("+", " and ")
        raise InputError(
            f"provider {name}: no key; set {wanted}, or api_key under [providers.{name}] in the settings file"
        )
    headers = given.headers if url == settings_url else {}
    # openai is what every server calls itself
    dialect = given.dialect or (name if name in BUILT_IN_PROVIDERS and name != "openai" else "")
    return msgspec.structs.replace(
        given, base_url=url, api_key=api_key, headers=headers, dialect=dialect, region=region
    )


def environment_value(names: str, environment: Mapping[str, str]) -> str:
    """The value of the first of some variables that is set; those of `A+B` are joined, and only the third may be missing.

    >>> str(environment_value("A|B+C+D", {"B": "b", "C": "c"})), environment_value("A|B+C", {"B": "b"})
    ('b:c', '')
    """
    for name in filter(None, names.split("|")):
        values = [environment.get(part, "") for part in name.split("+")]
        if all(values[:2]):
            return Secret(":".join(filter(None, values)))
    return ""


def _filled_url(url: str, environment: Mapping[str, str]) -> str:
    """A built-in address with what the environment says in its braces; empty if it says nothing."""
    before, brace, rest = url.partition("{")
    names, _, after = rest.partition("}")
    value = environment_value(names, environment)
    return url if not brace else f"{before}{value}{after}" if value.replace("-", "").isalnum() else ""


def _full_url(url: str, provider_type: str) -> str:
    """An address as it is asked: that of an Ollama server may be given without a scheme and a path."""
    url = url.rstrip("/")
    if provider_type != "ollama" or not url:
        return url
    url = (url if "://" in url else f"http://{url}").replace("//0.0.0.0", "//127.0.0.1")
    return url if url.endswith("/v1") else f"{url}/v1"


@HiddenFrames()
def read_env_file(path: Path, environment: MutableMapping[str, str]) -> None:
    """Take NAME=value lines over into the environment; what is set there already stays."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SETTINGS_BYTES + 1)
        if len(content) > MAX_SETTINGS_BYTES:
            raise InputError(
                f"{path}: larger than {MAX_SETTINGS_BYTES >> 20} MB, which is not a file of NAME=value lines"
            )
        lines = content.decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    for number, line in enumerate(lines, 1):
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if not name or name.startswith("#"):
            continue
        if not equals or not name.strip().isidentifier():
            raise InputError([Problem(str(path), number, "not NAME=value")])
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        environment.setdefault(name.strip(), value)
