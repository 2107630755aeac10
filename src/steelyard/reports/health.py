"""What can be enforced and verified on a machine."""

from __future__ import annotations

from steelyard.errors import ExitCode
from steelyard.records import Record


class ContainmentLevel(Record, frozen=True, kw_only=True):
    """One level of containment, tried out here."""

    name: str
    held: dict[str, bool]
    """What is claimed of the level in words, and whether a probe failed to break it; empty when the machine does not support it."""
    problem: str
    """Why the machine does not support it; empty when it does."""
    holds: bool
    """Whether replies run at this level by default."""


class AttemptLimit(Record, frozen=True, kw_only=True):
    """What one attempt may use up."""

    name: str
    most: str


class ToolStatus(Record, frozen=True, kw_only=True):
    """A program that verifiers can use."""

    name: str
    purpose: str
    version: str
    """Empty when it was not found, or did not say."""
    path: str
    problem: str
    """Why it is of no use here; empty when it is."""
    remedy: str
    """How to get it; empty when it is there."""


class RegisteredPlugin(Record, frozen=True, kw_only=True):
    """A part that another distribution registers."""

    kind: str
    """The seam, such as `verifiers`."""
    name: str
    distribution: str
    """Its name and version."""
    problem: str = ""
    """Why it cannot be loaded; empty when it can."""


class MachineHealth(Record, frozen=True, kw_only=True):
    """All that `steelyard doctor` finds out."""

    system: str
    root: bool
    level: str
    """The level that code runs at unless the user says otherwise; empty when none holds."""
    levels: tuple[ContainmentLevel, ...]
    """From the strongest to the weakest."""
    limits: tuple[AttemptLimit, ...]
    tools: tuple[ToolStatus, ...]
    advice: tuple[str, ...]
    """What is worth knowing or doing about this machine."""
    plugins: tuple[RegisteredPlugin, ...] = ()
    """Other people's parts, by kind and name."""

    @property
    def exit_code(self) -> ExitCode:
        """How a command ends that shows this: whether generated code can be contained here."""
        return ExitCode.OK if self.level else ExitCode.CANNOT_TELL
