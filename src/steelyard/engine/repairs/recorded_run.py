"""Recorded repairs as an ordinary run: cases, replies, and the verdicts of the Terraform of this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.analysis.attempt_texts import attempt_texts
from steelyard.engine.options import RunOptions
from steelyard.engine.plan import parameters
from steelyard.engine.repairs.reader import FIX, FixRow, OutcomeCells, RecordedRepair, verdict_cells
from steelyard.engine.resume import resume
from steelyard.engine.run import run_id, tool_versions
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import DiskFullError, InputError, StoreError, VerifierError, wrap_exceptions
from steelyard.outcomes.files import OutcomeFile
from steelyard.records import Answer, Attempt, Case, Reply, RunInfo, Verdict, Verify, digest
from steelyard.store.assembled_runs import replace_run
from steelyard.store.files import now
from steelyard.store.journal import StoredRun
from steelyard.text import printable, short_quote, verbatim_reply
from steelyard.verifiers.terraform.disk_modules import FOLDER_SEPARATOR, module_digest, path_in_module
from steelyard.verifiers.terraform.program import TerraformProgram, find_terraform
from steelyard.verifiers.terraform.source import repair_text, with_block_replaced
from steelyard.verifiers.terraform.tree import ModuleSnapshot, read_module_snapshot

VALIDATION_SECONDS = 60.0
"""CPU seconds for one validation."""
MAX_REASON_CHARACTERS = 500
LANGUAGE = "terraform"
NO_REPAIR = "no outcome is recorded, and there is no repair that could be judged"


class FixAttempt(NamedTuple):
    """One attempt of a file of fixes, and what is known of it before anything is judged."""

    row: FixRow
    theirs: OutcomeCells | None = None
    """The outcome that another program found."""
    ours: OutcomeCells | None = None
    """An outcome of an earlier call."""
    repair: RecordedRepair | None = None
    """What to judge; None without anything that could be judged."""

    @property
    def earlier(self) -> OutcomeCells | None:
        """Our earlier outcome of this very repair, of any state of the module and any version of Terraform."""
        ours = self.ours
        return ours if ours is not None and self.repair is not None and ours[FIX] == self.repair.fix else None


class RepairJob(NamedTuple):
    """A file of fixes without outcomes."""

    file: OutcomeFile
    model: str
    attempts: Sequence[FixAttempt]


class UnjudgedRepair(NamedTuple):
    """An attempt without a verdict: neither a success nor a failure, and owed again."""

    fixes: Path
    row: FixRow
    reason: str
    repair: RecordedRepair | None = None


class RepairOutcomes(NamedTuple):
    """What is known about all attempts."""

    cells: Mapping[tuple[Path, int], OutcomeCells]
    """By file of fixes and line."""
    unjudged: tuple[UnjudgedRepair, ...]


def needed_program(jobs: Sequence[RepairJob]) -> TerraformProgram | None:
    """The Terraform of this machine; None if it is neither installed nor needed, an InputError where it is needed."""
    try:
        return find_terraform()
    except VerifierError as error:
        # what was judged where Terraform was installed can be looked at where it is not
        if all(attempt.earlier for job in jobs for attempt in job.attempts if attempt.repair):
            return None
        raise InputError(f"repairs must be judged, but {error}") from None


def judge(
    jobs: Sequence[RepairJob], folder: Path, options: RunOptions, *, k: Sequence[int], seconds: float
) -> RepairOutcomes:
    """The outcomes of all attempts; those that are not known yet come from the run in `folder`, which is made or resumed.

    A verdict of that run holds as long as the repair, the module and Terraform are the same. Raises an InputError if
    Terraform is needed and missing.
    """
    owes = any(attempt.repair for job in jobs for attempt in job.attempts)
    judging = _Judging(jobs, folder, needed_program(jobs) if owes else None, seconds)
    if any(planned.verdict is None for planned in judging.planned):
        try:
            judging.carry_out(options, k)
        except UnicodeEncodeError as error:
            raise InputError(f"{printable(str(error.object))}: not UTF-8; rename the folder") from None
    unjudged = (
        UnjudgedRepair(
            job.file.path,
            attempt.row,
            judging.reasons.get((job.file.path, attempt.row.line), NO_REPAIR),
            attempt.repair,
        )
        for job in jobs
        for attempt in job.attempts
        if (job.file.path, attempt.row.line) not in judging.cells
    )
    return RepairOutcomes(judging.cells, tuple(unjudged))


class _PlannedReply(NamedTuple):
    """A repair on its way into the run."""

    place: tuple[Path, int]
    model: str
    repair: RecordedRepair
    case: Case
    text: str
    """The file with the repair in it; empty for an empty repair."""
    verdict: Verdict | None
    """The verdict of an earlier run, which holds."""


class _Judging:
    """All repairs of all files, those of one module together."""

    def __init__(
        self, jobs: Sequence[RepairJob], folder: Path, program: TerraformProgram | None, seconds: float
    ) -> None:
        self._folder = folder
        self._seconds = float(seconds)
        self.cells: dict[tuple[Path, int], OutcomeCells] = {}
        self.reasons: dict[tuple[Path, int], str] = {}
        self._variants: dict[str, dict[str, Case]] = {}
        self.planned: list[_PlannedReply] = []
        verdicts = _stored_verdicts(folder)
        by_module: dict[tuple[Path, str], list[tuple[RepairJob, FixAttempt, RecordedRepair]]] = {}
        for job in jobs:
            for attempt in job.attempts:
                if attempt.theirs is not None:
                    self.cells[job.file.path, attempt.row.line] = attempt.theirs
                elif (repair := attempt.repair) is not None:
                    by_module.setdefault((repair.clone, repair.folder), []).append((job, attempt, repair))
        for (clone, inside), found in by_module.items():
            tree, module, reason = _snapshot(clone, inside, program)
            for job, attempt, repair in found:
                place = job.file.path, attempt.row.line
                try:
                    if tree is None:
                        raise VerifierError(reason)
                    with wrap_exceptions(VerifierError):
                        name, text = _repaired_file(repair, tree)
                        case = self._case(repair, attempt.row.problem, tree, module, name)
                except VerifierError as error:
                    # a module that is gone has not changed
                    self._settle(place, attempt.earlier if tree is None else None, str(error))
                    continue
                verdict = verdicts.get((repair.fix, case.tests_digest))
                if verdict is not None:
                    self.cells[place] = verdict_cells(verdict, repair.filename, repair.fix, module)
                self.planned.append(_PlannedReply(place, printable(job.model), repair, case, text, verdict))

    def _settle(self, place: tuple[Path, int], outcome: OutcomeCells | None, reason: str) -> None:
        if outcome is not None:
            self.cells[place] = outcome
        else:
            self.reasons[place] = printable(" ".join(reason.split()))[:MAX_REASON_CHARACTERS]

    def _case(self, repair: RecordedRepair, problem: str, tree: ModuleSnapshot, module: str, name: str) -> Case:
        """The case that a repair answers."""
        target = repair.target
        if target is not None:
            target = msgspec.structs.replace(target, file=path_in_module(tree, target.file or "") or name)
        project = repair.clone.name
        where = project if tree.folder == "." else f"{project}{FOLDER_SEPARATOR}{tree.folder}"
        about = "" if target is None else f" Terraform says of {target.file}: {target.summary}."
        case = Case(
            id=problem,
            prompt=f"Repair {name} in the module {where}.{about} Give the whole file.",
            language=LANGUAGE,
            workspace=str(repair.clone.absolute()),
            timeout_secs=self._seconds,
            verify=Verify(
                kind=LANGUAGE,
                answer=f"{tree.folder}{FOLDER_SEPARATOR}{name}",
                target=target,
                workspace_digest=module,
            ),
        )
        # a row may name another file or target than the rows before, which makes another question
        variants = self._variants.setdefault(problem, {})
        if case.tests_digest not in variants and variants:
            case = msgspec.structs.replace(case, id=f"{problem}#{len(variants) + 1}", group=problem)
        return variants.setdefault(case.tests_digest, case)

    def carry_out(self, options: RunOptions, k: Sequence[int]) -> None:
        """Rebuild the run from the current repairs and the verdicts that still hold, and do what it owes."""
        started_at = now()
        info = RunInfo(
            id=run_id(started_at),
            started_at=started_at,
            models=(f"replay:{self._folder.absolute()}",),
            names=tuple(dict.fromkeys(planned.model for planned in self.planned)),
            k=tuple(sorted(set(k))),
            versions=tool_versions(),
        )
        cases = {planned.case.id: planned.case for planned in self.planned}
        VerifierSet([*cases.values()], options).check([*cases.values()])
        replies = list(self._replies(info))
        try:
            for path in (self._folder, self._folder / "attempts.jsonl"):
                if path.is_symlink():
                    raise InputError(f"{printable(str(path))}: a link, so the run cannot be written there; remove it")
            replace_run(self._folder, info, cases.values(), _facts(replies))
            resume(self._folder, means=options)
        except DiskFullError:
            raise
        except StoreError as error:
            raise InputError(str(error)) from None
        self._collect(replies)

    def _replies(self, info: RunInfo) -> Iterator[tuple[_PlannedReply, Reply]]:
        numbers: Counter[tuple[str, str]] = Counter()
        for planned in self.planned:
            case, model = planned.case, planned.model
            numbers[case.id, model] += 1
            number = numbers[case.id, model]
            asked = Attempt(case=case, model=model, parameters=parameters(info, case, number), number=number)
            text = verbatim_reply(planned.text, "hcl") if planned.text else ""
            answer = Answer(text=text, request_id=planned.repair.fix)
            yield (
                planned,
                Reply(
                    key=asked.key,
                    at=info.started_at,
                    case=case.id,
                    model=model,
                    number=number,
                    asked=asked.asked,
                    answer=answer,
                ),
            )

    def _collect(self, replies: Sequence[tuple[_PlannedReply, Reply]]) -> None:
        stored = StoredRun(self._folder)
        found = {
            (one.case.id, one.model, one.number): one
            for one in attempt_texts(stored.info, stored.cases, stored.facts())
        }
        for planned, reply in replies:
            one = found.get((reply.case, reply.model, reply.number))
            cells, reason = None, "the run was stopped before this repair was judged"
            if one is not None and one.verdict is not None:
                module = planned.case.verify.workspace_digest
                cells = verdict_cells(one.verdict, planned.repair.filename, planned.repair.fix, module)
            elif one is not None and one.failure is not None:
                reason = one.failure.message
            self._settle(planned.place, cells, reason)


def _facts(replies: Sequence[tuple[_PlannedReply, Reply]]) -> Iterator[Reply | Verdict]:
    for planned, reply in replies:
        yield reply
        verdict = planned.verdict
        if verdict is not None:
            yield msgspec.structs.replace(
                verdict,
                key=digest(reply.key, verdict.tests, verdict.verifier),
                case=reply.case,
                model=reply.model,
                number=reply.number,
                ask=reply.key,
            )


def _stored_verdicts(folder: Path) -> dict[tuple[str, str], Verdict]:
    """The verdicts of an earlier run, killed or not, by the digests of the repair and of how it was verified."""
    fixes: dict[str, str] = {}
    found = {}
    for fact in StoredRun(folder).facts():
        if isinstance(fact, Reply):
            fixes[fact.key] = fact.answer.request_id
        elif isinstance(fact, Verdict) and fact.ask in fixes:
            found[fixes[fact.ask], fact.tests] = fact
    return found


def _repaired_file(repair: RecordedRepair, tree: ModuleSnapshot) -> tuple[str, str]:
    """The name of a file and its text with the repair in it; a VerifierError where it cannot be put in."""
    name = path_in_module(tree, repair.filename)
    if name is None:
        raise VerifierError(f"{repair.filename}: no such file in the module, nor in the clone where it can be read")
    code = repair_text(repair.text)
    try:
        original = tree.files[tree.path(name)].decode()
        if not code.strip():
            return name, ""
        return name, code if repair.lines is None else with_block_replaced(original, *repair.lines, code)
    except UnicodeDecodeError:
        raise VerifierError(f"{repair.filename}: not UTF-8, so no repair can be put into it") from None
    except ValueError as error:
        raise VerifierError(f"{repair.filename}: {error}") from None


def _snapshot(clone: Path, folder: str, program: TerraformProgram | None) -> tuple[ModuleSnapshot | None, str, str]:
    """A module and its digest; None if it cannot be looked at, and then why."""
    if program is None:
        return None, "", ""
    try:
        with wrap_exceptions(VerifierError):
            if not clone.is_dir():
                raise VerifierError(f"no clone {short_quote(clone.name)} in {printable(str(clone.parent))}")
            tree = read_module_snapshot(clone, folder)
            return tree, module_digest(tree, program), ""
    except VerifierError as error:
        return None, "", str(error)
