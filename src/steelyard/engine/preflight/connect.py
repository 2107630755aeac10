"""Whom a run asks, whether its plan can be asked, verified and paid, and which models can be asked at all."""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard import settings as settings_module
from steelyard.engine.options import RunOptions
from steelyard.engine.plugin_guard import guarded_plugin
from steelyard.engine.pool import run_coroutine
from steelyard.engine.verifiers import VerifierSet, with_python_env
from steelyard.errors import (
    ExitCode,
    InputError,
    MissingToolError,
    Problem,
    ProviderError,
    StepError,
    VerifierError,
    did_you_mean,
    problems_by_reason,
    wrap_exceptions,
)
from steelyard.plugins import explain_plugin_errors, foreign_plugins, load_plugin, settings_type
from steelyard.protocols import Provider, ProviderSettings
from steelyard.providers.agent.containment import AgentAccess, AgentContainment
from steelyard.providers.prices import Prices
from steelyard.records import AgentSettings, Case, Price, Tier, Verify
from steelyard.records.base import MAX_ATTEMPTS_PER_CASE
from steelyard.sandbox.agents.agent_sandbox import ZygoteAgentSandbox
from steelyard.sandbox.agents.allowed_hosts import AllowedHosts
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, strongest_isolation
from steelyard.sandbox.worker import IsolationLevel
from steelyard.settings import BUILT_IN_PROVIDERS, environment_value, resolve_provider
from steelyard.text import counted, printable, short_quote


def connect(
    models: Sequence[str], means: RunOptions, base_url: str = "", *, asks: bool = True, folder: str = ""
) -> dict[str, Provider]:
    """The provider of each model: one name may stand for several, where replies were recorded.

    Relative paths of recordings and functions are looked for in `folder` first.
    """
    providers: dict[str, Provider] = {}
    for model in models:
        name, rest, reached = settings_module.resolve_provider(
            model, means.settings, means.variables, base_url, asks=asks
        )
        if means.stream is not None:
            reached = replace(reached, stream=means.stream)
        connect_models = load_plugin("providers", reached.type)
        check_provider_settings(name, reached)
        with explain_plugin_errors("providers", reached.type, f'model "{model}"'):
            located = located_path(reached.type, rest, folder)
            agent = agent_arguments(rest, means, asks=asks) if reached.type == "agent" else ()
            connected = dict(connect_models(located, reached, *agent))
        for known, provider in connected.items():
            # a model keeps the name it had where the run was started
            full = known if reached.type == "replay" else f"{name}/{rest if known == located else known}"
            if full in providers:
                raise InputError(f'model "{full}" is named twice; --samples N asks one model for more attempts')
            providers[full] = guarded_plugin("providers", reached.type, provider, Provider, unguarded=("ask",))
    if not providers:
        raise InputError("no model to ask; name one with --models, such as --models openai/gpt-5-mini")
    return providers


def split_model_names(given: Iterable[str]) -> list[str]:
    """The models that some texts name, several in one text separated by commas.

    >>> split_model_names(["openai/a, vllm/b", "command:ask --x 1,2"])
    ['openai/a', 'vllm/b', 'command:ask --x 1,2']
    """
    # a comma inside a command or a path does not part two models: the next one names its provider first
    return [model.strip() for text in given for model in re.split(r",(?=\s*[\w.-]+[:/])", text) if model.strip()]


def models_to_ask(given: Iterable[str], settings: settings_module.Settings) -> list[str]:
    """The models that somebody typed, split as above; raises an InputError where blanks stand for commas."""
    models = split_model_names(given)
    for model in models:
        if len(words := model.split()) > 1 and not _may_have_blanks(model, settings):
            raise InputError(f'model "{model}": models are separated by commas; did you mean {",".join(words)}?')
    return models


def _may_have_blanks(model: str, settings: settings_module.Settings) -> bool:
    """Whether a model is a command, a path or what a plug-in understands, as opposed to the name that a server knows."""
    if not settings.default_provider and not re.search("[:/]", model.split(maxsplit=1)[0]):
        return False
    kind = resolve_provider(model, settings, {}, asks=False)[2].type
    named = {built_in.type for built_in in BUILT_IN_PROVIDERS.values()} - {"agent", "command", "python", "replay"}
    return kind not in named


def started_in(models: Iterable[str]) -> str:
    """The folder to keep with a run: this one, where its models are named by paths that depend on it; otherwise empty."""
    return str(Path.cwd()) if any(map(_relative_path, models)) else ""


def _relative_path(model: str) -> str:
    """The relative path of the file that a model is named by; empty if it is not named by a relative path."""
    kind, _, rest = model.partition(":")
    path = {"replay": rest, "python": rest.rpartition(":")[0]}.get(kind, "")
    is_file = kind == "replay" or path.endswith(".py")
    return path if path and is_file and not Path(path).is_absolute() else ""


def located_path(kind: str, rest: str, folder: str) -> str:
    """The path of a recording or a function from the current folder, if it is in `folder`."""
    path = _relative_path(f"{kind}:{rest}")
    there = Path(folder, path)
    return f"{there}{rest.removeprefix(path)}" if folder and path and there.exists() else rest


async def close_providers(providers: Mapping[str, Provider]) -> None:
    """Release the connections of providers."""
    for provider in providers.values():
        await provider.close()


SINGLE_ANSWER_PARAMETERS = (
    *("n", "best_of", "num_return_sequences", "candidateCount", "candidate_count"),
    *("stream", "stream_options"),
)
"""Parameters that would change how many answers a request has, or in which form one comes."""


SECRET_PARAMETER_PATTERN = re.compile(
    r"(?:x[-_])?(?:api[-_]?key|access[-_]?token|authorization|password)", re.IGNORECASE
)
"""Names of parameters that no model takes and that people give keys by."""


def check_parameters(*sent: Mapping[str, Any]) -> None:
    """Raises an InputError if a parameter is a key, or would change how many answers a request has."""
    for name in (name for parameters in sent for name in parameters if SECRET_PARAMETER_PATTERN.fullmatch(name)):
        raise InputError(
            f'parameter "{printable(name)}" cannot be sent: parameters are stored with the run; use api_key or headers in the settings file'
        )
    for name in SINGLE_ANSWER_PARAMETERS:
        if any(name in parameters for parameters in sent):
            raise InputError(
                f'parameter "{name}" cannot be sent: each attempt is one request with one whole answer; use --samples for more'
            )


def check_named_options(providers: Mapping[str, Provider], parameters: Mapping[str, Any]) -> None:
    """Raises an InputError if a model cannot be asked with a reasoning effort or for a format of replies."""
    for model, provider in providers.items():
        unsupported = getattr(provider, "unsupported", None)
        if unsupported is not None and (reason := unsupported(parameters)):
            run_coroutine(close_providers(providers))
            raise InputError(f"{model}: this provider {reason}")


def check_plan(cases: Sequence[Case], k: Sequence[int], samples: int | None) -> None:
    """Raises an InputError if there is nothing to ask, or something twice."""
    check_attempts("k", *k or (0,))
    if samples is not None:
        check_attempts("samples", samples)
    if not cases:
        raise InputError("no cases to ask")
    twice = [case for case, count in Counter(case.id for case in cases).items() if count > 1]
    if twice:
        raise InputError(f'case "{twice[0]}" is given twice; --samples N asks for more attempts at one case')


def check_attempts(name: str, *numbers: int) -> None:
    """Raises an InputError for an impossible number of attempts."""
    for number in numbers:
        if number < 1:
            raise InputError(f"{name} must be 1 or more, not {number}")
        if number > MAX_ATTEMPTS_PER_CASE:
            raise InputError(f"{name} must be at most {MAX_ATTEMPTS_PER_CASE:,}, not {number}")


def unavailable_cases(cases: Sequence[Case], means: RunOptions) -> dict[str, str]:
    """The cases that lack a toolchain, package or crate on this machine, by id, with the reason."""
    errors = run_coroutine(_verifier_errors(cases, means))
    return {case: str(error) for case, error in errors.items() if isinstance(error, MissingToolError)}


def check_verifiers(cases: Sequence[Case], means: RunOptions) -> None:
    """Raises an InputError if a case cannot be verified here."""
    check_case_settings(cases)
    errors = run_coroutine(_verifier_errors(cases, means))
    if not errors:
        return
    problems = problems_by_reason(errors)
    if all(isinstance(error, MissingToolError) for error in errors.values()):
        problems.append(Problem("", 0, "--skip-unavailable leaves these cases out and runs the others"))
    raise InputError(problems)


async def _verifier_errors(cases: Sequence[Case], means: RunOptions) -> dict[str, VerifierError]:
    there = with_python_env(cases, means.python_env)
    verifying = VerifierSet(there, means)
    try:
        errors = verifying.unverifiable(there)
        rest = [case for case in there if case.id not in errors] if errors else there
        return errors | await verifying.unprepared(rest)
    finally:
        await verifying.close()


def unmatched_reply_notes(cases: Sequence[Case], providers: Mapping[str, Provider]) -> tuple[str, ...]:
    """What recordings hold for no case of a run, where cases lack a reply; raises if no recording has any for a case."""
    ids = {case.id for case in cases}
    recorded = {model: sum(provider.available(case) or 0 for case in ids) for model, provider in providers.items()}
    live = any(provider.available(cases[0].id) is None for provider in providers.values())
    if not live and not any(recorded.values()):
        run_coroutine(close_providers(providers))
        raise InputError(
            f"{', '.join(providers)}: no recorded reply belongs to a case of this run, such as {short_quote(cases[0].id)}; "
            "name a model that can be asked, such as --models openai/gpt-5-mini, or the eval set that was recorded"
        )
    notes = []
    for model, provider in providers.items():
        unmatched = getattr(provider, "unmatched", None)
        count = unmatched(ids) if unmatched is not None else 0
        if count and any(provider.available(case) == 0 for case in ids):
            notes.append(
                f"{model}: {counted(count, 'recorded reply is', 'recorded replies are')} for no case of this run"
            )
    return tuple(notes)


def check_prices(providers: Mapping[str, Provider], means: RunOptions) -> None:
    """Raises an InputError if a budget could not be kept."""
    if means.max_cost is None:
        return
    prices = Prices(means.settings.prices)
    unknown = [model for model in providers if prices.price(model) is None]
    if unknown:
        raise InputError(
            f"--max-cost cannot be enforced: the price of {', '.join(unknown)} is unknown; "
            f'set it in the settings file under [prices."{unknown[0]}"]'
        )


LIST_MODELS_TIMEOUT_SECONDS = 20.0
"""Seconds an endpoint has to list its models."""


class ListedModel(NamedTuple):
    """A model at an endpoint, or why the endpoint did not say."""

    provider: str
    model: str
    detail: str
    price: Price | None


def list_models(means: RunOptions, base_url: str = "") -> list[ListedModel]:
    """What every configured endpoint offers, by name; an endpoint that does not answer says why instead."""
    names = ["openai"] if base_url else _configured(means)
    if not names:
        raise InputError(
            "no provider is configured; set a key such as OPENAI_API_KEY, or write one into steelyard.toml"
        )
    return run_coroutine(_list_all_models(names, means, base_url))


def models_exit_code(listed: Sequence[ListedModel]) -> ExitCode:
    """How a command ends that lists models: whether any endpoint named one."""
    return ExitCode.OK if any(offer.model for offer in listed) else ExitCode.CANNOT_TELL


def _configured(means: RunOptions) -> list[str]:
    """The providers of the settings file, and the built-in ones that the environment has a key or an address for."""
    from_environment = [
        name
        for name, built_in in BUILT_IN_PROVIDERS.items()
        if environment_value("|".join((built_in.key, *built_in.urls)), means.variables)
    ]
    return [*means.settings.providers, *(name for name in from_environment if name not in means.settings.providers)]


async def _list_all_models(names: list[str], means: RunOptions, base_url: str) -> list[ListedModel]:
    listed = await asyncio.gather(*(_list_endpoint_models(name, means, base_url) for name in names))
    return [offered for models in listed for offered in models]


async def _list_endpoint_models(name: str, means: RunOptions, base_url: str) -> list[ListedModel]:
    prices = Prices(means.settings.prices)
    try:
        _, model, reached = resolve_provider(f"{name}/*", means.settings, means.variables, base_url)
        connect_models = load_plugin("providers", reached.type)
        check_provider_settings(name, reached)
        with explain_plugin_errors("providers", reached.type):
            (connected,) = connect_models(model, reached).values()
        asked: Provider = guarded_plugin("providers", reached.type, connected, Provider, unguarded=("offers",))
        try:
            async with asyncio.timeout(LIST_MODELS_TIMEOUT_SECONDS):
                with wrap_exceptions(ProviderError):
                    found = await asked.offers()
        finally:
            await asked.close()
    except TimeoutError:
        return [ListedModel(name, "", f"no answer within {LIST_MODELS_TIMEOUT_SECONDS:g} s", None)]
    except (StepError, InputError) as error:
        return [ListedModel(name, "", str(error), None)]
    return [
        ListedModel(name, offer.model, offer.detail, prices.price(f"{name}/{offer.model}")) for offer in sorted(found)
    ]


def check_case_settings(cases: Iterable[Case]) -> None:
    """Raises an InputError if a case says something to a verifier of another distribution that it does not know."""
    problems = [
        Problem(f'case "{case.id}"', 0, f"verify: {problem}")
        for case in cases
        if case.kind in foreign_plugins("verifiers")
        for problem in _problems(settings_type("verifiers", case.kind), case.verify, Verify())
    ]
    if problems:
        raise InputError(problems)


def check_provider_settings(name: str, reached: ProviderSettings) -> None:
    """The same for what the settings file says to a provider."""
    if reached.type in foreign_plugins("providers"):
        shape = settings_type("providers", reached.type)
        if problems := _problems(shape, reached, ProviderSettings(type=reached.type)):
            raise InputError([Problem(f"providers.{name}", 0, problem) for problem in problems])


def _problems(shape: Any, said: Verify | ProviderSettings, nothing_said: Verify | ProviderSettings) -> list[str]:
    """What is wrong with the settings of a part; keys that all parts share count where they are given."""
    keys = () if shape is None else shape.__struct_fields__
    unknown = [f'unknown key "{key}" ({did_you_mean(key, keys)})' for key in said.settings if key not in keys]
    if unknown or shape is None:
        return unknown
    shared, unset = msgspec.structs.asdict(said), msgspec.structs.asdict(nothing_said)
    given = {key: value for key, value in shared.items() if key in keys and value != unset.get(key)}
    try:
        msgspec.convert({**given, **said.settings}, shape)
    except msgspec.ValidationError as error:
        return [str(error)]
    return []


KERNEL_FOLDERS = ("/dev", "/proc", "/sys")
"""Folders that are not the user's files, and lead out of any sandbox."""


def agent_arguments(
    name: str, means: RunOptions, *, asks: bool = True
) -> tuple[AgentSettings | None, AgentContainment | None]:
    """What an agent declares, if it is called by the name of its table, and how it is contained, if it is.

    Raises InputError where it must be contained and cannot be; a plan asks no agent and contains none.
    """
    declared = means.settings.agents.get(name)
    if not asks:
        return declared, None
    reason = uncontained_reason(name, means)
    if reason and means.agent_sandbox == "on":
        raise InputError(f"agent:{printable(name)} cannot be contained, which --agent-sandbox on requires: {reason}")
    return declared, None if reason or declared is None else _containment(name, declared, means)


def uncontained_reason(name: str, means: RunOptions) -> str:
    """Why an agent runs with the rights of its user; empty if it is contained."""
    if means.agent_sandbox == "off":
        return "--agent-sandbox off"
    if name not in means.settings.agents:
        close = difflib.get_close_matches(name, means.settings.agents, n=1)
        meant = f'; did you mean "agent:{printable(close[0])}"?' if close else ""
        return f"it does not declare what it needs, as [agents.NAME] in steelyard.toml would{meant}"
    level = _enclosure(means)
    return "" if level.own_root else f"level {level.level} has no network of its own for it"


def uncontained_agents(models: Iterable[str], means: RunOptions, tiers: Iterable[Tier] = ()) -> dict[str, str]:
    """The agents among these models and tiers that are not contained, by the names that facts carry, with the reason."""
    found: dict[str, str] = {}
    for model in models:
        provider, rest, reached = resolve_provider(model, means.settings, means.variables, asks=False)
        if reached.type == "agent":
            found[f"{provider}/{rest}"] = uncontained_reason(rest, means)
    for tier in tiers:
        if tier.agent:
            found[tier.model or f"agent:{tier.agent}"] = uncontained_reason(tier.agent, means)
    return {name: reason for name, reason in found.items() if reason}


def _containment(name: str, declared: AgentSettings, means: RunOptions) -> AgentContainment:
    where = f"[agents.{printable(name)}]"
    try:
        AllowedHosts(declared.hosts)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    access = AgentAccess(
        readable=_paths(declared.folders, where),
        writable=_paths(declared.writable_folders, where),
        hosts=declared.hosts,
    )
    return AgentContainment(ZygoteAgentSandbox(_enclosure(means)), access, _keys(declared.keys, where, means.variables))


def _enclosure(means: RunOptions) -> IsolationLevel:
    """The level at which generated code would run here."""
    if means.sandbox is not None:
        return ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(means.sandbox.level)]
    return strongest_isolation(means.require_isolation, allow_weak=True)


def _keys(names: Iterable[str], where: str, environment: Mapping[str, str]) -> dict[str, str]:
    missing = [name for name in names if name not in environment]
    if missing:
        raise InputError(f"{where}: keys names {printable(missing[0])}, which is not set in the environment")
    return {name: environment[name] for name in names}


def _paths(given: Iterable[str], where: str) -> tuple[str, ...]:
    """Absolute paths, each by its own name and by what it leads to."""
    found: dict[str, None] = {}
    for path in given:
        # a name such as /var/run may be known to the agent by its own name alone
        whole = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
        real = os.path.realpath(whole)
        if not Path(real).exists():
            raise InputError(f"{where}: {printable(path)}: no such folder")
        if real == "/" or any(real == each or real.startswith(f"{each}/") for each in KERNEL_FOLDERS):
            raise InputError(f"{where}: {printable(path)} cannot be shown to an agent; name the folders that it needs")
        found |= {whole: None, real: None}
    return tuple(found)
