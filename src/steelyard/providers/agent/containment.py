"""What a provider of agents asks of a sandbox: a place for one agent, with what the agent declares and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from steelyard.protocols import ProcessLimit


class AgentAccess(NamedTuple):
    """What a contained agent can reach outside, all paths absolute."""

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class AgentEnd(NamedTuple):
    """How an agent ended."""

    exit_code: int
    limit: ProcessLimit
    """The limit that ended it; empty if it ended normally."""
    seconds: float


class AgentBox(Protocol):
    """The sandbox of one agent: an empty home in memory, and a network in which there is only our proxy."""

    folder: Path
    """The home as it is seen from outside."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes,
        environment: Mapping[str, str],
        time_limit: float,
        hear: Callable[[bytes, bool], bool | None],
    ) -> AgentEnd:
        """Run a program in the folder `workspace` of the home; `hear` is called with what it prints, and whether that is standard output; it is ended when that returns True."""
        ...

    @property
    def refusals(self) -> Sequence[str]:
        """What it wanted from the network and did not get, in sentences."""
        ...


class AgentSandbox(Protocol):
    """Where agents run that declare what they need."""

    level: str
    """The isolation level."""

    def box(self, access: AgentAccess) -> AbstractAsyncContextManager[AgentBox]:
        """A sandbox that lives as long as the context, and everything in it with it."""
        ...


class AgentContainment(NamedTuple):
    """Where an agent runs that is contained, and what it gets there."""

    sandbox: AgentSandbox
    access: AgentAccess
    keys: Mapping[str, str]
    """The environment variables that it declares, with their values."""
