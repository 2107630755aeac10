"""One node of a Ray cluster, which verifies what it is handed in sandboxes of its own."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.engine.ray.wire import Bundle, Done, Introduction, Item, Needs, Terms, WorkspaceFile, needs, same
from steelyard.engine.session import RunOptions
from steelyard.engine.steps import failure, verify_with_retry
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import InputError, VerifierError
from steelyard.plugins import is_plugin, load_plugin
from steelyard.providers.agent import workspaces
from steelyard.records import Case, digest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence
    from typing import IO

    from steelyard.protocols import Verifier

KEPT = 64
"""Bundles that are kept for further answers to their cases."""
MOST = 8 << 20
"""Bytes of facts that are told at a time."""
SIGN_OF_LIFE = 10.0
"""Seconds after which a node says that there is nothing new."""
FOLDER = "steelyard-node-"


class Unpacked(NamedTuple):
    """A bundle on this node."""

    cases: tuple[Case, ...]
    surroundings: tuple[tuple[str, ...], ...]


class Node:
    """An actor of Ray's; what a model wrote never runs in its process, only in the sandboxes that it starts."""

    def __init__(self) -> None:
        self._bundles: dict[str, Unpacked] = {}
        self._in_hand: dict[int, tuple[str, asyncio.Task[None]]] = {}
        self._done: list[bytes] = []
        self._news = asyncio.Event()
        self._able: dict[tuple[Needs, tuple[str, ...]], str] = {}
        """Why answers to such a case cannot be verified here; empty where they can."""
        self._disk = Disk()

    async def same(self) -> bytes:
        """What must be as it is on the driver."""
        return msgspec.json.encode(same())

    async def introduce(self, terms: bytes) -> bytes:
        """What this node can do of what is asked of it."""
        self._terms = msgspec.json.decode(terms, type=Terms)
        means = RunOptions(
            require_isolation=self._terms.require_isolation, allow_weak_sandbox=self._terms.allow_weak_sandbox
        )
        cases, theirs = self._unpacked(self._terms.representatives)
        self._weak = ""
        try:
            self._verifying = VerifierSet(cases, means, cpus=self._terms.cpus)
        except InputError as error:
            self._weak = str(error)
            self._verifying = VerifierSet(
                [case for case in cases if not _runs_code(case)], means, cpus=self._terms.cpus
            )
        reasons = [await self._unable(case, there) for case, there in zip(cases, theirs, strict=True)]
        return msgspec.json.encode(
            Introduction(
                level="" if self._weak else self._verifying.level,
                at_once=self._verifying.rooms,
                unable={place: reason for place, reason in enumerate(reasons) if reason},
            )
        )

    async def give(self, given: bytes, bundles: Mapping[str, Awaitable[bytes]]) -> None:
        """Take items to verify; `bundles` are where their cases can be had from."""
        items = msgspec.json.decode(given, type=list[Item])
        for item in items:
            if item.bundle not in self._bundles:
                bundle = msgspec.json.decode(await bundles[item.bundle], type=Bundle)
                self._bundles[item.bundle] = await asyncio.to_thread(self._unpacked, bundle)
            unpacked = self._bundles[item.bundle]
            case = unpacked.cases[item.place]
            unable = await self._unable(case, unpacked.surroundings[item.place])
            if unable:
                self._tell(Done(number=item.number, fact=None, seconds=0, unable=unable))
            else:
                task = asyncio.create_task(self._verify(item, case))
                self._in_hand[item.number] = item.bundle, task
        self._forget()

    async def collect(self, low: int, patience: float) -> bytes:
        """The facts since the last time: as soon as no more than `low` items are in hand, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while len(self._in_hand) > low:
                    self._news.clear()
                    await self._news.wait()
        if not self._done:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SIGN_OF_LIFE):
                    self._news.clear()
                    await self._news.wait()
        told, size = 0, 0
        while told < len(self._done) and size < MOST:
            size += len(self._done[told])
            told += 1
        facts, self._done = self._done[:told], self._done[told:]
        return b"[" + b",".join(facts) + b"]"

    async def close(self) -> None:
        """End the sandboxes."""
        for _, task in self._in_hand.values():
            task.cancel()
        await self._verifying.close()
        self._disk.remove()

    async def _verify(self, item: Item, case: Case) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with self._verifying.turn(case):
                began = loop.time()
                fact = await verify_with_retry(item.reply, case, self._verifying.of(case), self._terms.recheck)
                seconds = loop.time() - began
            self._tell(Done(number=item.number, fact=fact, seconds=seconds))
        except Exception as error:  # noqa: BLE001  whatever goes wrong here is told, or the driver would wait for ever
            broken = failure(item.reply, VerifierError(f"{type(error).__name__}: {error}"))
            self._tell(Done(number=item.number, fact=broken, seconds=0))
        finally:
            self._in_hand.pop(item.number, None)

    def _tell(self, done: Done) -> None:
        self._done.append(msgspec.json.encode(done))
        # whoever waits looks at what is in hand, so not before this item is out of it
        asyncio.get_running_loop().call_soon(self._news.set)

    def _forget(self) -> None:
        """Keep few bundles, and none that nobody uses for the sake of one that somebody does."""
        used = {bundle for bundle, _ in self._in_hand.values()}
        spare = [bundle for bundle in self._bundles if bundle not in used]
        dropped = [self._bundles.pop(bundle) for bundle in spare[: max(0, len(self._bundles) - KEPT)]]
        if dropped:
            there = {case.workspace for unpacked in self._bundles.values() for case in unpacked.cases}
            for workspace in {case.workspace for unpacked in dropped for case in unpacked.cases} - there:
                self._disk.drop(workspace)

    def _unpacked(self, bundle: Bundle) -> Unpacked:
        """The cases, with what they name on the driver's disk on ours."""
        return Unpacked(tuple(self._disk.settled(case, bundle) for case in bundle.cases), bundle.surroundings)

    async def _unable(self, case: Case, theirs: tuple[str, ...]) -> str:
        key = needs(case), theirs
        if key not in self._able:
            try:
                await self._check(case, theirs)
                self._able[key] = ""
            except VerifierError as error:
                self._able[key] = str(error)
            except Exception as error:  # noqa: BLE001  a plug-in raises what it likes
                self._able[key] = f"{type(error).__name__}: {error}"
        return self._able[key]

    async def _check(self, case: Case, theirs: Sequence[str]) -> None:
        """Raise when answers to such a case cannot be verified here, or might come out otherwise than on the driver."""
        if self._weak and _runs_code(case):
            raise VerifierError(self._weak)
        for reason in self._verifying.unverifiable([case]).values():
            raise VerifierError(reason)
        verifier = self._verifying.of(case)
        wanted = self._terms.kinds[case.kind]
        if verifier.version != wanted:
            raise VerifierError(f"it has {verifier.version}, and the driver {wanted}")
        _compare(surroundings(verifier, case), theirs)
        if (prepare := getattr(verifier, "prepare", None)) is not None:
            await prepare(case)


def surroundings(verifier: Verifier, case: Case) -> tuple[str, ...]:
    """What of this machine a verdict depends on, besides the verifier's version, as far as the verifier knows."""
    told = getattr(verifier, "surroundings", None)
    return () if told is None else tuple(told(case))


def _compare(ours: Sequence[str], theirs: Sequence[str]) -> None:
    lacking, more = sorted({*theirs} - {*ours}), sorted({*ours} - {*theirs})
    if lacking:
        raise VerifierError(f"it lacks what the driver has: {_listed(lacking)}")
    if more:
        raise VerifierError(f"it has what the driver has not: {_listed(more)}")


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:3]) + (f" and {len(words) - 3} more" if len(words) > 3 else "")


def _runs_code(case: Case) -> bool:
    return is_plugin("verifiers", case.kind) and load_plugin("verifiers", case.kind).runs_code


class Disk:
    """A folder of this node with what cases name on the driver's disk; nothing is made before something is named."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._lock: IO[bytes] | None = None

    def settled(self, case: Case, bundle: Bundle) -> Case:
        """The case, with the places on this node of what the bundle brings along."""
        own, custom = case.verify.python, case.expectations.custom_check
        verify = replace(case.verify, python=self._function(own, bundle.checks))
        expectations = replace(case.expectations, custom_check=self._function(custom, bundle.checks))
        workspace = case.workspace
        if workspace in bundle.workspaces:
            workspace = self._workspace(bundle.workspaces[workspace])
        return replace(case, verify=verify, expectations=expectations, workspace=workspace)

    def drop(self, workspace: str) -> None:
        """Remove a workspace that was put here."""
        if workspace and self._folder is not None and Path(workspace).is_relative_to(self._folder):
            shutil.rmtree(workspace, ignore_errors=True)

    def remove(self) -> None:
        """Leave nothing behind."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
        self._folder = self._lock = None

    def _function(self, path: str, checks: Mapping[str, bytes]) -> str:
        file, _, name = path.rpartition(":")
        if file not in checks:
            return path
        content = checks[file]
        with contextlib.suppress(OSError):
            if Path(file).read_bytes() == content:
                # a disk that all nodes share has also what may lie beside it
                return path
        # its own name is a part of the tests
        place = self._place() / "checks" / digest(content) / Path(file).name
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return f"{place}:{name}"

    def _workspace(self, files: Mapping[str, WorkspaceFile]) -> str:
        found = {name: workspaces.GitFile(file.content, file.mode) for name, file in files.items()}
        place = self._place() / "workspaces" / workspaces.workspace_digest(found)
        if not place.exists():
            fresh = Path(tempfile.mkdtemp(dir=self._place()))
            workspaces.write_files(found, fresh)
            place.parent.mkdir(exist_ok=True)
            fresh.rename(place)
        return str(place)

    def _place(self) -> Path:
        if self._folder is None:
            _sweep(Path(tempfile.gettempdir()))
            # locked before it has a name by which it could be swept away
            made = Path(tempfile.mkdtemp(prefix=f".{FOLDER}"))
            self._lock = (made / "lock").open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._folder = made.rename(made.with_name(made.name[1:]))
        return self._folder


def _sweep(temporary: Path) -> None:
    """Remove what nodes left that were killed: the lock of one that lives cannot be had."""
    for folder in temporary.glob(f"{FOLDER}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid != os.getuid():
                continue
            with (folder / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
