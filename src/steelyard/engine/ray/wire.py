"""What a run, its gateway and the nodes of a Ray cluster say to each other."""

from __future__ import annotations

import asyncio
import hashlib
import platform
import struct
from collections.abc import Hashable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import steelyard
from steelyard.records import Case, Failure, Record, Reply, Verdict

LENGTHS = struct.Struct("!IQ")
"""What stands before a frame: how long its header is, and what comes behind it."""


class Frame(NamedTuple):
    """One message over a socket: a small header, and bytes that are only passed on."""

    header: dict[str, Any]
    payload: bytes = b""


async def received(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame; None when the other side is gone."""
    try:
        header, payload = LENGTHS.unpack(await reader.readexactly(LENGTHS.size))
        return Frame(msgspec.json.decode(await reader.readexactly(header)), await reader.readexactly(payload))
    except (asyncio.IncompleteReadError, OSError):
        return None


def send(writer: asyncio.StreamWriter, header: dict[str, Any], payload: bytes = b"") -> None:
    """Write a frame; whoever sends many of them waits for `writer.drain()`."""
    said = msgspec.json.encode(header)
    writer.write(LENGTHS.pack(len(said), len(payload)) + said)
    if payload:
        writer.write(payload)


class Same(Record, frozen=True, kw_only=True):
    """What must be the same on the driver and on a node, so that their verdicts are."""

    steelyard: str
    python: str
    code: str
    """A digest of the package's own files: two states of it may call themselves the same version."""


@cache
def same() -> Same:
    """What this machine has."""
    total = hashlib.blake2b(digest_size=16)
    root = Path(steelyard.__file__).parent
    for path in sorted(root.rglob("*.py")):
        total.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return Same(steelyard=version("steelyard"), python=platform.python_version(), code=total.hexdigest())


class WorkspaceFile(Record, frozen=True, kw_only=True):
    """A file of a workspace, as git sees it."""

    content: bytes
    mode: str


class Bundle(Record, frozen=True, kw_only=True):
    """Some cases, and what they name on the disk of the driver."""

    cases: tuple[Case, ...]
    surroundings: tuple[tuple[str, ...], ...]
    """For each case what the driver has for it, besides the version of its verifier."""
    checks: dict[str, bytes] = {}
    """The files of the user's own functions, by their paths."""
    workspaces: dict[str, dict[str, WorkspaceFile]] = {}
    """The files that agents worked on, by where they lie."""


class Terms(Record, frozen=True, kw_only=True):
    """What a node must know before it takes work."""

    kinds: dict[str, str]
    """The kinds of cases, each with the version of its verifier on the driver."""
    representatives: Bundle
    """One case of each group that asks the same of a machine."""
    cpus: float
    """How many processors the node has in Ray's eyes."""
    require_isolation: str = ""
    allow_weak_sandbox: bool = False
    recheck: int = 0


class Introduction(Record, frozen=True, kw_only=True):
    """What a node says of itself."""

    level: str = ""
    """The sandbox that code runs in there; empty where none may."""
    at_once: dict[str, int] = {}
    """How many answers of each kind it likes to be given at the same time."""
    unable: dict[int, str] = {}
    """Why it cannot verify answers to a representative, by its place among them."""


class Item(Record, frozen=True, kw_only=True, array_like=True):
    """One reply to verify."""

    number: int
    """Which piece of work of this run it is; the node says it again with the fact."""
    bundle: str
    """The digest of the bundle that has the case."""
    place: int
    """Where in it."""
    reply: Reply


class Done(Record, frozen=True, kw_only=True, array_like=True):
    """What became of one item."""

    number: int
    fact: Verdict | Failure | None
    """None where this node cannot verify such a case."""
    seconds: float
    """How long that took, from when a verifier had room for it."""
    unable: str = ""
    """Why it cannot."""


Needs = tuple[Hashable, ...]


def needs(case: Case) -> Needs:
    """What a case asks of the machine that verifies it: what one of two cases with equal needs can, can the other."""
    verify = case.verify
    own = verify.python, case.expectations.custom_check
    commands = verify.build, verify.test, verify.lint
    tools = verify.style, verify.syntax_only, verify.python_env, bool(case.workspace)
    return case.kind, case.dependencies, own, commands, tools
