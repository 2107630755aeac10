"""What a run and the nodes of a Ray cluster send each other."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Hashable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import steelyard
from steelyard.providers.agent.workspaces import GitFile
from steelyard.records import Case, CaseLimit, Record, WitnessResult
from steelyard.text import printable

LOCAL_CLUSTER = "local"
"""The address of a cluster that a run starts for itself."""


class CodeVersion(Record, frozen=True, kw_only=True):
    """What must be the same on the driver and on a node, so that their verdicts are the same."""

    steelyard: str
    python: str
    code: str
    """A digest of the package's files, its data included: two states of it may carry the same version."""

    def difference(self, there: CodeVersion) -> str:
        """Why the verdicts of another machine might differ from ours; empty when they do not."""
        if there.python != self.python:
            return f"it has Python {there.python}, and the driver {self.python}; install the same on both"
        if there.steelyard != self.steelyard:
            return f"it has steelyard {there.steelyard}, and the driver {self.steelyard}; install the same on both"
        if there.code != self.code:
            return f"its steelyard {there.steelyard} is another state of the code than the driver's; install the same on both"
        return ""


@cache
def code_version() -> CodeVersion:
    """What this machine has."""
    code = package_digest(Path(steelyard.__file__).parent)
    return CodeVersion(steelyard=version("steelyard"), python=platform.python_version(), code=code)


def package_digest(root: Path) -> str:
    """A digest of all files of a package but those that Python compiles by itself."""
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            total.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


class Bundle(Record, frozen=True, kw_only=True):
    """Some cases, and the files on the driver's disk that they name."""

    cases: tuple[Case, ...]
    surroundings: tuple[tuple[str, ...], ...]
    """For each case what the driver's machine has for it, in addition to the version of its verifier."""
    checks: dict[str, bytes] = {}
    """The files of the user's own functions, by their paths."""
    workspaces: dict[str, dict[str, GitFile]] = {}
    """The files that agents worked on, by their folders."""


class Terms(Record, frozen=True, kw_only=True):
    """What a node must know before it takes work."""

    run: str
    """A random name, the same on all nodes."""
    kinds: dict[str, str]
    """The kinds of cases, each with the version of its verifier on the driver."""
    groups: Bundle
    """One case of each group that needs the same of a machine; a group is known by its place here."""
    require_isolation: str = ""
    allow_weak_sandbox: bool = False
    recheck: int = 0
    controls: int | None = None
    control_key: str = ""


class Capability(Record, frozen=True, kw_only=True):
    """What a node can do."""

    refused: str = ""
    """Why it gets no work at all."""
    at_once: dict[str, int] = {}
    """How many answers of each kind are worth giving to one of its processors at the same time."""
    unable: dict[int, str] = {}
    """Why it cannot verify answers to a group of cases."""


class WorkItem(Record, frozen=True, kw_only=True, array_like=True):
    """One reply to verify."""

    bundle: int
    place: int
    """Where in the bundle its case is."""
    reply: bytes
    limit: CaseLimit | None = None
    """The limit of its case, where the run knows it."""
    alone: bool = False
    """Whether the node must do nothing else at the same time."""


class WorkResult(Record, frozen=True, kw_only=True, array_like=True):
    """What became of one item."""

    fact: bytes = b""
    """A verdict or a failure; empty if this node cannot verify such a case."""
    failure: str = ""
    """The message, where it is a failure."""
    seconds: float = 0.0
    """How long that took, from when a verifier had room for it."""
    unable: str = ""
    """Why this node cannot verify it."""
    witnesses: tuple[WitnessResult, ...] = ()
    """Results of witnesses that no earlier result carried."""
    limits: tuple[CaseLimit, ...] = ()
    """Limits of cases that no earlier result carried."""


Needs = tuple[Hashable, ...]


def needs(case: Case) -> Needs:
    """What a case needs of the machine that verifies it: a machine that can verify one of two cases with equal needs can verify both."""
    verify = case.verify
    own = verify.python, case.expectations.custom_check
    commands = verify.build, verify.test, verify.lint
    tools = verify.style, verify.syntax_only, verify.python_env, bool(case.workspace)
    return case.kind, case.dependencies, own, commands, tools


def short_line(text: str, most: int = 300) -> str:
    """What Ray says, in one line that no terminal obeys."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
