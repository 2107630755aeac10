"""Repairs judged by the Terraform of this machine, module by module."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from steelyard.engine.pool import run_concurrently, run_coroutine
from steelyard.engine.repairs.outcome_tables import BY, Journal, Verdict, cells_of
from steelyard.engine.repairs.reader import Attempt, Fixes, Module, Row
from steelyard.errors import InputError, VerifierError, wrap_exceptions
from steelyard.records import Target, digest
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.store.atomic_files import explain_write_errors
from steelyard.text import printable, short_quote
from steelyard.verifiers.terraform.copies import ModuleCopyPool
from steelyard.verifiers.terraform.levels import RepairLevels, repair_levels
from steelyard.verifiers.terraform.program import TerraformProgram, find_terraform
from steelyard.verifiers.terraform.source import repair_text, with_block_replaced
from steelyard.verifiers.terraform.tree import ModuleSnapshot, read_module_snapshot
from steelyard.verifiers.terraform.verifier import is_unchanged

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox
    from steelyard.verifiers.terraform.diagnostics import TerraformDiagnostic, ValidateOutput

RULES = 1
"""How repairs are judged; another number makes every verdict owed again."""
SECONDS = 60.0
"""Seconds of CPU time for one validation."""
SHORT = 500
"""Letters of a reason."""


class Progress:
    """How far judging is, for whoever watches."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        """Attempts that had no verdict when this began."""
        self.judged = 0
        self.plausible = 0
        self.failed = 0


class Means(NamedTuple):
    """What repairs are judged with."""

    parallelism: int | None = None
    """Validations at the same time; as many as there are processors when left out."""
    require_isolation: str = ""
    """The weakest level of containment that will do; empty for any that holds."""
    allow_weak_sandbox: bool = False
    """Whether Terraform may run where it can reach network, files and secrets."""
    watch: Callable[[Progress], None] | None = None
    seconds: float = SECONDS
    """CPU time for one validation."""
    sandbox: ZygoteSandbox | None = None
    """Where Terraform runs; the strongest that holds here when left out."""


USUAL = Means()


class Unjudged(NamedTuple):
    """An attempt about which nothing could be found out: it is no success and no failure, and owed again."""

    fixes: Path
    row: Row
    reason: str


class Job(NamedTuple):
    """A file of fixes that has attempts to be judged."""

    fixes: Fixes
    attempts: Sequence[Attempt]
    known: Mapping[int, Verdict]
    """Our own earlier verdicts, by the attempt's line; each holds as long as all it rests on is the same."""
    journal: Path


class Found(NamedTuple):
    """What judging came to."""

    verdicts: Mapping[Path, Mapping[int, Verdict]]
    """By file of fixes and line."""
    unjudged: tuple[Unjudged, ...]


def judge(jobs: Sequence[Job], means: Means, then: Callable[[Found], None]) -> None:
    """Judge what is not judged yet, and hand over what is known; after that nothing has to survive a kill any more.

    An InputError says so where Terraform is missing but needed. What was found out earlier, also by a process that was
    killed meanwhile, is not found out again unless the repair, the module or Terraform is another one.
    """
    asked = needed_program(jobs)
    with ExitStack() as held:
        journals = {}
        for job in jobs:
            with explain_write_errors(job.journal.parent):
                job.journal.parent.mkdir(parents=True, exist_ok=True)
            journal = journals[job.fixes.file.path] = Journal(job.journal)
            held.callback(journal.close)
        judging = _Judging(jobs, journals, asked, means)
        if asked is not None and judging.owed:
            run_coroutine(judging.carry_out(asked))
        then(judging.found())
        for journal in journals.values():
            journal.clear()


def needed_program(jobs: Sequence[Job]) -> TerraformProgram | None:
    """The Terraform of this machine; None where there is none and none is needed, an InputError where it is."""
    try:
        return find_terraform()
    except VerifierError as error:
        # what was judged where Terraform was there can be looked at where it is not
        if all(earlier(job, attempt) for job in jobs for attempt in job.attempts):
            return None
        raise InputError(f"repairs are to be judged, but {error}") from None


def earlier(job: Job, attempt: Attempt) -> Verdict | None:
    """What was found out about this very repair, in whatever module and by whatever Terraform."""
    known = job.known.get(attempt.row.line)
    return known if known is not None and known.fix == attempt.fix else None


class _Judging:
    """All attempts of all files on their way to a verdict, those at one module together."""

    def __init__(
        self, jobs: Sequence[Job], journals: Mapping[Path, Journal], asked: TerraformProgram | None, means: Means
    ) -> None:
        self._journals = journals
        self._means = means
        self._verdicts: dict[Path, dict[int, Verdict]] = {job.fixes.file.path: {} for job in jobs}
        self._unjudged: list[Unjudged] = []
        self._places: dict[tuple[Path, int], tuple[int, int]] = {}
        """Where attempts stand, so that what is said of them is in their order and not in that of chance."""
        self.owed: dict[Module, list[_Owed]] = {}
        self._survey(jobs, asked)
        self._progress = Progress(sum(map(len, self.owed.values())))
        self._open: dict[Module, _Opened] = {}

    def _survey(self, jobs: Sequence[Job], asked: TerraformProgram | None) -> None:
        """Find out what holds already, and what is owed."""
        by_module: dict[Module, list[tuple[Job, Attempt]]] = {}
        for number, job in enumerate(jobs):
            for place, attempt in enumerate(job.attempts):
                by_module.setdefault(attempt.module, []).append((job, attempt))
                self._places[job.fixes.file.path, attempt.row.line] = number, place
        found = [verdict for journal in self._journals.values() for verdict in journal.verdicts]
        found += [verdict for job in jobs for verdict in job.known.values() if verdict.fix]
        known = {(verdict.fix, verdict.module): verdict for verdict in found}
        for module, attempts in by_module.items():
            key, reason = _looked_at(module, asked)
            for job, attempt in attempts:
                path = job.fixes.file.path
                # a module that is not there any more is not another one
                verdict = known.get((attempt.fix, key)) if key else earlier(job, attempt)
                if verdict is not None:
                    self._verdicts[path][attempt.row.line] = verdict
                elif key:
                    self.owed.setdefault(module, []).append(_Owed(path, attempt))
                else:
                    self._unjudged.append(Unjudged(path, attempt.row, reason))

    def found(self) -> Found:
        """All that is known."""
        unjudged = sorted(self._unjudged, key=lambda one: self._places[one.fixes, one.row.line])
        return Found(self._verdicts, tuple(unjudged))

    # ---- the work

    async def carry_out(self, asked: TerraformProgram) -> None:
        """Judge what is owed."""
        means = self._means
        sandbox = means.sandbox or ZygoteSandbox(
            strongest_isolation(means.require_isolation, allow_weak=means.allow_weak_sandbox)
        )
        ticking = asyncio.create_task(self._tick())
        try:
            await run_concurrently(self._steps(asked, sandbox), self._do, means.parallelism or os.cpu_count() or 1)
        except ExceptionGroup as several:
            # what stops one stops all, so each says the same
            raise several.exceptions[0] from None
        finally:
            ticking.cancel()
            with suppress(asyncio.CancelledError):
                await ticking
            for opened in self._open.values():
                await opened.copies.close()
            await sandbox.close()
        self._sync()

    def _steps(self, asked: TerraformProgram, sandbox: Sandbox) -> Iterator[_Step]:
        """The validations to be made: of each module first the original, then every version of it once."""
        for module, owed in self.owed.items():
            try:
                with wrap_exceptions(VerifierError):
                    tree = _tree(module)
                    copies = ModuleCopyPool(tree, sandbox, asked, seconds=self._means.seconds)
            except VerifierError as error:
                self._give_up(owed, error)
                continue
            opened = _Opened(module, tree, copies, asked)
            self._prepare(opened, owed)
            if opened.steps:
                self._open[module] = opened
                yield from opened.steps

    def _prepare(self, opened: _Opened, owed: Sequence[_Owed]) -> None:
        """Find out which versions the attempts make."""
        versions: dict[tuple[str, str], list[_Owed]] = {}
        for one in owed:
            try:
                with wrap_exceptions(VerifierError):
                    change = _change(one.attempt, opened.tree)
            except VerifierError as error:
                self._give_up([one], error)
                continue
            if change.why_not:
                opened.steps.append(_Step(opened, change, [one]))
            else:
                versions.setdefault((change.name, change.code), []).append(one)
        opened.steps += [_Step(opened, _Change(name, code), those) for (name, code), those in versions.items()]
        if opened.steps:
            opened.steps.insert(0, _Step(opened, None, []))
        opened.left = len(opened.steps)

    async def _do(self, step: _Step) -> None:
        opened = step.opened
        try:
            with wrap_exceptions(VerifierError):
                if step.change is None:
                    await opened.look()
                else:
                    await self._judge(step, step.change)
        except VerifierError as error:
            self._give_up(step.owed, error)
        finally:
            opened.left -= 1
            if not opened.left:
                # what comes next is another module
                await opened.copies.close()
                self._open.pop(opened.module, None)

    async def _judge(self, step: _Step, change: _Change) -> None:
        opened = step.opened
        after = None
        if not change.why_not and not opened.is_given_up:
            after = (await opened.copies.validated({change.name: change.code})).output
        before = await opened.original
        if isinstance(before, VerifierError):
            raise before
        for one in step.owed:
            reached, reason = _judged(one.attempt, opened.tree, change, before, after)
            cells = {"filename": one.attempt.filename, **cells_of(reached, reason), BY: opened.asked.version}
            self._keep(one, Verdict(fix=one.attempt.fix, module=opened.key, cells=cells))
            self._progress.plausible += reached.plausible

    def _keep(self, one: _Owed, verdict: Verdict) -> None:
        self._journals[one.fixes].append(verdict)
        self._verdicts[one.fixes][one.attempt.row.line] = verdict
        self._progress.judged += 1
        self._show()

    def _give_up(self, owed: Iterable[_Owed], error: VerifierError) -> None:
        reason = printable(" ".join(str(error).split()))[:SHORT]
        for one in owed:
            self._unjudged.append(Unjudged(one.fixes, one.attempt.row, reason))
            self._progress.failed += 1
        self._show()

    def _show(self) -> None:
        if self._means.watch is not None:
            self._means.watch(self._progress)

    async def _tick(self) -> None:
        """Once a second what was written reaches the disk."""
        while True:
            await asyncio.sleep(1)
            await asyncio.to_thread(self._sync)

    def _sync(self) -> None:
        for journal in self._journals.values():
            journal.sync()


class _Owed(NamedTuple):
    """An attempt without a verdict."""

    fixes: Path
    attempt: Attempt


class _Change(NamedTuple):
    """What a repair makes of a file."""

    name: str
    """As seen from the module."""
    code: str
    why_not: str = ""
    """Why there is nothing to validate."""


class _Step(NamedTuple):
    """A version of a module with the attempts that make it; no change for the original."""

    opened: _Opened
    change: _Change | None
    owed: list[_Owed]


class _Opened:
    """A module while its versions are validated."""

    def __init__(self, module: Module, tree: ModuleSnapshot, copies: ModuleCopyPool, asked: TerraformProgram) -> None:
        self.module = module
        self.tree = tree
        self.copies = copies
        self.asked = asked
        self.key = _key(tree, asked)
        self.original: asyncio.Future[ValidateOutput | VerifierError] = asyncio.get_running_loop().create_future()
        """What is said of the module as it is, or why that is not known."""
        self.steps: list[_Step] = []
        self.left = 0

    @property
    def is_given_up(self) -> bool:
        return self.original.done() and isinstance(self.original.result(), VerifierError)

    async def look(self) -> None:
        """Validate the module as it is."""
        try:
            with wrap_exceptions(VerifierError):
                self.original.set_result((await self.copies.validated()).output)
        except VerifierError as error:
            self.original.set_result(VerifierError(f"the original cannot be validated: {error}"))
        except BaseException:
            self.original.cancel()
            raise


# ---- modules and what repairs make of them


def _tree(module: Module) -> ModuleSnapshot:
    with wrap_exceptions(VerifierError):
        if not module.root.is_dir():
            raise VerifierError(f"no clone {short_quote(module.root.name)} in {printable(str(module.root.parent))}")
        return read_module_snapshot(module.root, module.folder)


def _looked_at(module: Module, asked: TerraformProgram | None) -> tuple[str, str]:
    """The digest of a module; empty where it cannot be looked at, and then why."""
    if asked is None:
        return "", ""
    try:
        return _key(_tree(module), asked), ""
    except VerifierError as error:
        return "", str(error)


def _key(tree: ModuleSnapshot, asked: TerraformProgram) -> str:
    """A digest of all that verdicts on repairs of a module rest on, but for the repairs."""
    files = sorted(tree.files.items())
    return digest(RULES, asked.version, tree.folder, files, sorted(tree.packages), sorted(tree.left_out))


def _path(tree: ModuleSnapshot, filename: str) -> str | None:
    """The path of a file that is named as seen from the module, or else from the clone; None when it is neither."""
    candidates = (posixpath.normpath(posixpath.join(tree.folder, filename)), posixpath.normpath(filename))
    return next((path for path in candidates if path in tree.files), None)


def _change(attempt: Attempt, tree: ModuleSnapshot) -> _Change:
    """What a repair makes of its file."""
    path = _path(tree, attempt.filename)
    if path is None:
        raise VerifierError(f"{attempt.filename}: no such file in the module, nor in the clone where it can be read")
    name = posixpath.relpath(path, tree.folder)
    try:
        original = tree.files[path].decode()
        code = repair_text(attempt.repair)
        if not code.strip():
            return _Change(name, "", "empty repair")
        if attempt.lines is not None:
            code = with_block_replaced(original, *attempt.lines, code)
    except UnicodeDecodeError:
        raise VerifierError(f"{attempt.filename}: not UTF-8, so no repair can be put into it") from None
    except ValueError as error:
        raise VerifierError(f"{attempt.filename}: {error}") from None
    return _Change(name, code, "unchanged" if is_unchanged(code, original) else "")


def _judged(
    attempt: Attempt, tree: ModuleSnapshot, change: _Change, before: ValidateOutput, after: ValidateOutput | None
) -> tuple[RepairLevels, str]:
    """The levels that a repair reached, and what it lacks; without an answer it changed nothing, and reached none."""
    changed = {} if after is None else {change.name: change.code}
    sources = tree.sources(), tree.sources(changed)

    def reached(target: Target | None) -> RepairLevels:
        return repair_levels(
            before, after or before, target=target, sources_before=sources[0], sources_after=sources[1]
        )

    target = _target(attempt, tree, change)
    found = reached(target)
    if target is not None and found.fixed is None:
        # of a cycle Terraform does not say where it is
        elsewhere = reached(msgspec.structs.replace(target, file=""))
        found = elsewhere if elsewhere.fixed is not None else found
    if after is None:
        nothing = None if found.fixed is None else False
        found = msgspec.structs.replace(
            found, plausible=False, fixed=nothing, strictly_fixed_in_block=nothing, strictly_fixed_in_module=nothing
        )
        return found, change.why_not
    return found, found.reason or (_told(after.errors[0]) if after.errors else "")


def _target(attempt: Attempt, tree: ModuleSnapshot, change: _Change) -> Target | None:
    wanted = attempt.target
    if wanted is None:
        return None
    path = _path(tree, wanted.filename)
    return Target(
        file=change.name if path is None else posixpath.relpath(path, tree.folder),
        line_start=wanted.line_start,
        line_end=wanted.line_end,
        summary=wanted.summary,
        detail=wanted.detail,
        severity=wanted.severity,
    )


def _told(error: TerraformDiagnostic) -> str:
    place = f"{error.file}:{error.line_start}: " if error.file and error.line_start else ""
    return f"{place}{error.summary}"[:SHORT]
