"""Work on one node of a Ray cluster: the worker process that Ray starts there verifies replies in sandboxes of its own."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.engine.options import RunOptions
from steelyard.engine.ray.wire import (
    Bundle,
    Capability,
    CodeVersion,
    Needs,
    Terms,
    WorkItem,
    WorkResult,
    code_version,
    needs,
)
from steelyard.engine.steps import failure
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import InputError, VerifierError
from steelyard.plugins import is_plugin, load_plugin
from steelyard.providers.agent import workspaces
from steelyard.records import Case, Failure, Reply, digest
from steelyard.store.own_folders import is_open_to_others

if TYPE_CHECKING:
    from steelyard.protocols import Verifier
    from steelyard.records import WitnessResult

MAX_UNPACKED_BUNDLES = 64
"""Bundles that a worker keeps for further answers to their cases."""
FOLDER_PREFIX = "steelyard-node-"


class UnpackedBundle(NamedTuple):
    """Cases whose files are on this node."""

    cases: tuple[Case, ...]
    surroundings: tuple[tuple[str, ...], ...]


class NodeWorker:
    """The verifiers of one worker process; what a model wrote runs in their sandboxes, never in this process."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._bundles: dict[int, UnpackedBundle] = {}
        self._unable: dict[tuple[Needs, tuple[str, ...]], str] = {}
        """Why answers to such a case cannot be verified here; empty if they can."""
        self._files = NodeFiles(terms.run)
        self._cases, self._surroundings = self._unpacked(terms.groups)
        self._weak = ""
        self._told_witnesses = 0
        """How many results of witnesses the driver knows."""
        # Ray runs one such process per processor
        options = RunOptions(
            require_isolation=terms.require_isolation,
            allow_weak_sandbox=terms.allow_weak_sandbox,
            recheck=terms.recheck,
            controls=terms.controls,
            control_key=terms.control_key,
        )
        try:
            self._verifiers = VerifierSet(self._cases, options, cpus=1, share_witnesses=self._files.tried_once_per_node)
        except InputError as error:
            self._weak = str(error)
            self._verifiers = VerifierSet([case for case in self._cases if not _runs_code(case)], options, cpus=1)

    async def capability(self) -> Capability:
        """Which groups of cases this node can verify."""
        reasons = [
            await self._why_unable(case, theirs) for case, theirs in zip(self._cases, self._surroundings, strict=True)
        ]
        unable = {group: reason for group, reason in enumerate(reasons) if reason}
        return Capability(at_once=self._verifiers.rooms, unable=unable)

    def missing(self, bundles: Iterable[int]) -> list[int]:
        """The bundles that must be fetched before these can be used."""
        return [bundle for bundle in bundles if bundle not in self._bundles]

    async def verify(self, items: Sequence[WorkItem], fetched: Mapping[int, bytes]) -> list[WorkResult]:
        """What becomes of each item; `fetched` has the bundles that were missing."""
        for bundle, content in fetched.items():
            self._bundles[bundle] = self._unpacked(msgspec.json.decode(content, type=Bundle))
        results = await asyncio.gather(*map(self._verify, items))
        used = {item.bundle for item in items}
        for bundle in [bundle for bundle in self._bundles if bundle not in used]:
            if len(self._bundles) > MAX_UNPACKED_BUNDLES:
                del self._bundles[bundle]
        return results

    async def close(self) -> None:
        """End the sandboxes."""
        await self._verifiers.close()
        self._files.remove()

    async def _verify(self, item: WorkItem) -> WorkResult:
        bundle = self._bundles[item.bundle]
        case = bundle.cases[item.place]
        unable = await self._why_unable(case, bundle.surroundings[item.place])
        if unable:
            return WorkResult(unable=unable)
        loop = asyncio.get_running_loop()
        reply = msgspec.json.decode(item.reply, type=Reply)
        began = loop.time()
        self._verifiers.limits.learn(item.limit)
        try:
            async with self._verifiers.turn(case):
                began = loop.time()
                fact = await self._verifiers.witnessed_verdict(reply, case, alone=item.alone)
        except Exception as error:  # noqa: BLE001  the driver must hear of it, whatever it is
            fact = failure(reply, VerifierError(f"{type(error).__name__}: {error}"))
        return WorkResult(
            fact=msgspec.json.encode(fact),
            failure=fact.message if isinstance(fact, Failure) else "",
            seconds=loop.time() - began,
            witnesses=self._new_witnesses(),
            limits=self._verifiers.limits.new(),
        )

    def _new_witnesses(self) -> tuple[WitnessResult, ...]:
        results = self._verifiers.witness_results
        new, self._told_witnesses = tuple(results[self._told_witnesses :]), len(results)
        return new

    def _unpacked(self, bundle: Bundle) -> UnpackedBundle:
        """The cases, with the places on this node of the files that they name."""
        return UnpackedBundle(tuple(self._files.settled(case, bundle) for case in bundle.cases), bundle.surroundings)

    async def _why_unable(self, case: Case, theirs: tuple[str, ...]) -> str:
        key = needs(case), theirs
        if key not in self._unable:
            try:
                await self._check(case, theirs)
                self._unable[key] = ""
            except VerifierError as error:
                self._unable[key] = str(error)
            except Exception as error:  # noqa: BLE001  a plug-in raises what it likes
                self._unable[key] = f"{type(error).__name__}: {error}"
        return self._unable[key]

    async def _check(self, case: Case, theirs: Sequence[str]) -> None:
        """Raises if answers to such a case cannot be verified here, or verdicts might differ from the driver's."""
        if self._weak and _runs_code(case):
            raise VerifierError(self._weak)
        for error in self._verifiers.unverifiable([case]).values():
            raise error
        verifier = self._verifiers.of(case)
        wanted = self._terms.kinds[case.kind]
        if verifier.version != wanted:
            raise VerifierError(f"it has {verifier.version}, and the driver {wanted}")
        _compare(surroundings(verifier, case), theirs)
        if (prepare := getattr(verifier, "prepare", None)) is not None:
            await prepare(case)


@cache
def _own_worker(terms: Any) -> tuple[NodeWorker, asyncio.AbstractEventLoop]:
    """The worker of this process: Ray uses a process again for the tasks of a job, and sandboxes are slow to start."""
    import ray

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    worker = NodeWorker(msgspec.json.decode(ray.get(terms), type=Terms))
    return worker, loop


def probe_node(theirs: bytes, terms: Sequence[Any]) -> bytes:
    """A Ray task: what this node can do for a driver with some version of the code; `terms` is a reference to them."""
    refused = msgspec.msgpack.decode(theirs, type=CodeVersion).difference(code_version())
    if refused:
        return msgspec.msgpack.encode(Capability(refused=refused))
    worker, loop = _own_worker(terms[0])
    found = asyncio.run_coroutine_threadsafe(worker.capability(), loop).result()
    return msgspec.msgpack.encode(found)


def verify_items(terms: Sequence[Any], items: bytes, bundles: Mapping[int, Any]) -> bytes:
    """A Ray task: the results of some items, in their order; `bundles` are references to what their cases are in."""
    import ray

    worker, loop = _own_worker(terms[0])
    missing = worker.missing(bundles)
    fetched = dict(zip(missing, ray.get([bundles[bundle] for bundle in missing]), strict=True))
    work = worker.verify(msgspec.msgpack.decode(items, type=list[WorkItem]), fetched)
    results = asyncio.run_coroutine_threadsafe(work, loop).result()
    return msgspec.msgpack.encode(results)


def remove_files(run: str) -> None:
    """A Ray task: remove the files of a run from this node."""
    shutil.rmtree(_folder(run), ignore_errors=True)


def surroundings(verifier: Verifier, case: Case) -> tuple[str, ...]:
    """The properties of this machine that a verdict depends on, in addition to the verifier's version."""
    own = getattr(verifier, "surroundings", None)
    return () if own is None else tuple(own(case))


def _compare(ours: Sequence[str], theirs: Sequence[str]) -> None:
    lacking, more = sorted({*theirs} - {*ours}), sorted({*ours} - {*theirs})
    if lacking:
        raise VerifierError(f"it lacks what the driver has: {_listed(lacking)}")
    if more:
        raise VerifierError(f"it has what the driver lacks: {_listed(more)}")


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:3]) + (f" and {len(words) - 3} more" if len(words) > 3 else "")


def _runs_code(case: Case) -> bool:
    return is_plugin("verifiers", case.kind) and load_plugin("verifiers", case.kind).runs_code


def _folder(run: str) -> Path:
    return Path(tempfile.gettempdir(), FOLDER_PREFIX + run)


class NodeFiles:
    """The files of a run on this node, shared by its workers; no folder is made before a case names a file."""

    def __init__(self, run: str) -> None:
        self._folder = _folder(run)
        self._lock: IO[bytes] | None = None

    def settled(self, case: Case, bundle: Bundle) -> Case:
        """The case, with the places on this node of the bundle's files."""
        own, custom = case.verify.python, case.expectations.custom_check
        verify = replace(case.verify, python=self._function(own, bundle.checks))
        expectations = replace(case.expectations, custom_check=self._function(custom, bundle.checks))
        workspace = case.workspace
        if workspace in bundle.workspaces:
            files = bundle.workspaces[workspace]
            workspace = str(self._written(f"workspaces/{workspaces.workspace_digest(files)}", files))
        return replace(case, verify=verify, expectations=expectations, workspace=workspace)

    def remove(self) -> None:
        """Leave nothing behind."""
        if self._lock is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._lock.close()
            self._lock = None

    async def tried_once_per_node(self, key: str, attempt: Callable[[], Awaitable[str]], *, afresh: bool) -> str:
        """The result of a witness in the first worker of this node that tried it; the others wait for it."""
        folder = self._locked() / "witnesses"
        folder.mkdir(exist_ok=True)
        with (folder / key).open("a+b") as file:
            # a worker that is killed meanwhile leaves an empty file and no lock
            await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
            file.seek(0)
            told = file.read()
            if told and not afresh:
                return msgspec.json.decode(told, type=str)
            problem = await attempt()
            file.truncate(0)
            file.write(msgspec.json.encode(problem))
            return problem

    def _function(self, path: str, checks: Mapping[str, bytes]) -> str:
        file, _, name = path.rpartition(":")
        if file not in checks:
            return path
        content = checks[file]
        with contextlib.suppress(OSError):
            if Path(file).read_bytes() == content:
                # a disk that all nodes share also has the files beside it
                return path
        # its own name is a part of the tests
        written = self._written(f"checks/{digest(content)}", {Path(file).name: workspaces.GitFile(content)})
        return f"{written / Path(file).name}:{name}"

    def _written(self, name: str, files: workspaces.WorkspaceFiles) -> Path:
        """A folder with these files, written once: several workers of this node may need it at the same time."""
        place = self._locked() / name
        if not place.exists():
            fresh = Path(tempfile.mkdtemp(dir=self._folder))
            workspaces.write_files(files, fresh)
            place.parent.mkdir(exist_ok=True)
            try:
                fresh.rename(place)
            except OSError:
                # another worker was quicker, or the disk is full
                shutil.rmtree(fresh, ignore_errors=True)
                if not place.exists():
                    raise
        return place

    def _locked(self) -> Path:
        """The folder, with a shared lock on it for as long as this process lives."""
        while self._lock is None:
            _sweep(self._folder.parent)
            with contextlib.suppress(FileExistsError):
                self._folder.mkdir(mode=0o700, exist_ok=True)
            if is_open_to_others(self._folder):
                # the files in it are code of the user's
                raise VerifierError(f"{self._folder} is not ours alone; remove it, or set TMPDIR to a folder of yours")
            lock = (self._folder / "lock").open("ab")
            fcntl.flock(lock, fcntl.LOCK_SH)
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(lock.fileno()), (self._folder / "lock").stat()):
                    self._lock = lock
        return self._folder


def _sweep(temporary: Path) -> None:
    """Remove the folders of runs whose workers were killed: nothing holds a lock on them."""
    for folder in temporary.glob(f"{FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid != os.getuid():
                continue
            with (folder / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
