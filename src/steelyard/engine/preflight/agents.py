"""Which agents are contained and by what, and why others are not."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from steelyard.engine.options import RunOptions
from steelyard.errors import InputError
from steelyard.providers.agent.containment import AgentAccess, AgentContainment
from steelyard.records import AgentSettings, Tier
from steelyard.sandbox.agents.agent_sandbox import ZygoteAgentSandbox
from steelyard.sandbox.agents.allowed_hosts import AllowedHosts
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, strongest_isolation
from steelyard.sandbox.worker import IsolationLevel
from steelyard.settings import resolve_provider
from steelyard.text import printable

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
        provider, rest, reached = resolve_provider(model, means.settings, means.environment, asks=False)
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
    return AgentContainment(
        ZygoteAgentSandbox(_enclosure(means)), access, _keys(declared.keys, where, means.environment)
    )


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
