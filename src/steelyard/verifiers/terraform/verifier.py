"""Terraform answers, judged by what `validate` says of the module they are part of.

The answer to a case with a workspace is a repair of a module on this disk: it is compared with the unchanged module.
Nothing is planned or applied, no provisioner, data source or backend is called, and nothing is fetched: what an answer
names elsewhere is not there. An answer cannot reach what decides about it, so `trust` is `isolated`.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from steelyard.errors import MissingToolError, VerifierError
from steelyard.protocols import FailureLabel
from steelyard.records import Answer, Case, Diagnostic, DiagnosticLevel, Finding, Target, digest
from steelyard.sandbox.processors import processor_count
from steelyard.text import verbatim_code
from steelyard.verifiers.code.extract import ExtractedCode, extract, is_prose
from steelyard.verifiers.terraform.copies import ModuleCopyPool
from steelyard.verifiers.terraform.diagnostics import TerraformDiagnostic, ValidateOutput, stored_diagnostic
from steelyard.verifiers.terraform.disk_modules import FOLDER_SEPARATOR, DiskModule, DiskModules, TerraformSettings
from steelyard.verifiers.terraform.levels import RepairLevels, repair_levels, with_proof
from steelyard.verifiers.terraform.program import ValidateStoppedError, find_terraform
from steelyard.verifiers.terraform.source import repair_text, terraform_blocks, with_block_replaced
from steelyard.verifiers.terraform.stages import READING_ERRORS, reduced_files, reducible_block
from steelyard.verifiers.terraform.tree import CONFIGURATION_SUFFIXES, ModuleSnapshot
from steelyard.verifiers.witnesses import terraform_witness

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox


MAX_HCL_CHARACTERS = 100_000
"""Characters that are parsed: it takes a second for some ten thousand."""


def version() -> str:
    """The library and its version; says so when there is none."""
    try:
        return f"python-hcl2 {installed('python-hcl2')}"
    except PackageNotFoundError:
        return "no program"


def check() -> None:
    """Raise VerifierError when the library is not installed."""
    try:
        import hcl2  # noqa: F401  whether it is there is the question
    except ImportError:
        raise MissingToolError(
            "checking the syntax alone needs a library; install it with: pip install 'steelyard[hcl]'"
        ) from None


def syntax_error(source: str) -> str:
    """What is wrong with the syntax of a file, in one line; empty when nothing is."""
    import hcl2
    from lark.exceptions import LarkError

    if len(source) > MAX_HCL_CHARACTERS:
        raise VerifierError(
            f"more than {MAX_HCL_CHARACTERS:,} characters, too many to parse; validate it with Terraform instead"
        )
    try:
        hcl2.loads(source if source.endswith("\n") else f"{source}\n")
    except LarkError as wrong:
        return str(wrong).strip().partition("\n")[0]
    except RecursionError:
        return "it is nested too deeply"
    return ""


DEFAULT_ANSWER_FILE = "main.tf"
"""The file that an answer is written to, where the case names none."""
REPAIR_LEVELS = ("plausible", "fixed", "strictly fixed in block", "strictly fixed in module")
"""The levels of success; all but the first need a target."""
REPAIR_FIGURES = (
    *("line_is_clean", "line_specific_error_fixed", "module_total_errors", "file_errors", "module_errors"),
    *("module_original_errors_remaining", "module_fix_introduced_errors", "block_total_errors"),
    *("block_original_errors_remaining", "block_fix_introduced_errors"),
)
"""The fields of RepairLevels that a finding keeps of a repair on disk."""
MAX_INTRODUCED_ERRORS_LISTED = 20
SYNTAX_LEVEL = "syntax"
"""The level that a check of the syntax alone can reach; it is not one of those above."""
MAX_STORED_TERRAFORM_DIAGNOSTICS = 100
"""Diagnostics that are kept."""


class TerraformVerifier:
    """Puts an answer into a private copy of its module, and asks the Terraform of this machine to validate it."""

    settings = TerraformSettings
    at_once = processor_count()
    runs_code = True

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._copies: dict[str, ModuleCopyPool] = {}
        self._modules = DiskModules(sandbox)

    @cached_property
    def version(self) -> str:
        try:
            return f"terraform 3, {find_terraform().version}"
        except VerifierError:
            # a check of the syntax needs no program; `check` reports where a case needs it
            return f"terraform 3, {version()}"

    def check(self, case: Case) -> None:
        if case.workspace:
            find_terraform()
            return
        _check_names(case)
        _check_repair(case)
        if TerraformSettings.of(case).syntax_only:
            check()
        else:
            find_terraform()

    def surroundings(self, case: Case) -> tuple[str, ...]:
        """The provider plugins that a module can be validated with."""
        return () if TerraformSettings.of(case).syntax_only else find_terraform().mirrored

    def witness(self, case: Case) -> Case:
        return terraform_witness(case)

    async def verify(self, case: Case, answer: Answer) -> Finding:
        self.check(case)
        if case.workspace:
            async with self._modules.opened(case) as module:
                finding = await _repair_finding(case, answer, module)
            return msgspec.structs.replace(finding, trust="isolated", isolation=self._sandbox.level)
        name, original = _answer_file(case), _original(case)
        found = _code(case, answer.text)
        if not (found.code or "").strip():
            if original is None:
                return msgspec.structs.replace(
                    _failed(case, FailureLabel.NO_CODE, f"no code in the reply ({found.how})"), passed=None
                )
            return _failed(case, "empty repair", f"nothing to repair with ({found.how})")
        code = _file_with_answer(case, found.code or "")
        if original is not None and is_unchanged(code, original):
            return msgspec.structs.replace(_failed(case, "unchanged", f"{name} is as it was before"), code=found.code)
        if TerraformSettings.of(case).syntax_only:
            finding = await asyncio.to_thread(_syntax_finding, code)
        else:
            finding = await self._validated(case, {name: code})
        return msgspec.structs.replace(finding, code=found.code, trust="isolated", isolation=self._sandbox.level)

    async def close(self) -> None:
        while self._copies:
            await self._copies.popitem()[1].close()
        await self._modules.close()

    async def _validated(self, case: Case, changed: dict[str, str]) -> Finding:
        copies = self._of(case)
        try:
            target = _target(case)
            before = (await copies.validated()).output if target else None
            try:
                answered = await copies.validated(changed)
            except ValidateStoppedError as error:
                return msgspec.structs.replace(_failed(case, error.label, str(error)), trouble=error.trouble)
            reached = None
            if target and before:
                reached = await _levels(copies, _tree(case), target, before, answered.output, changed)
                if reached.fixed is None and not reached.is_hidden:
                    shown = "; ".join(sorted({found.summary for found in before.diagnostics})) or "nothing"
                    raise VerifierError(
                        f'validate does not say "{target.summary}" of the file to be repaired, but: {shown}'
                    )
        finally:
            # the next answer may be to another of any number of cases, and a copy is quickly made
            await copies.release()
        return msgspec.structs.replace(_finding(case, answered.output, reached), compile_seconds=answered.seconds)

    def _of(self, case: Case) -> ModuleCopyPool:
        """The copies of a case's module: the same for all its answers, so that equal ones are validated once."""
        tree = _tree(case)
        key = digest(sorted(tree.files.items()), tree.is_complete, case.timeout_secs)
        if key not in self._copies:
            self._copies[key] = ModuleCopyPool(tree, self._sandbox, find_terraform(), seconds=case.timeout_secs)
        return self._copies[key]


# ---- what a case declares


def _answer_file(case: Case) -> str:
    return TerraformSettings.of(case).answer.rpartition(FOLDER_SEPARATOR)[2] or DEFAULT_ANSWER_FILE


def _original(case: Case) -> str | None:
    """The file to repair; None if an answer is written from scratch."""
    return TerraformSettings.of(case).files.get(_answer_file(case))


def _check_names(case: Case) -> None:
    if not _answer_file(case).endswith(CONFIGURATION_SUFFIXES):
        raise VerifierError(
            f'the answer\'s file "{_answer_file(case)}" is not a file that Terraform reads; call it main.tf'
        )
    for name in (_answer_file(case), *TerraformSettings.of(case).files):
        path = PurePosixPath(name)
        if str(path) != name or path.is_absolute() or ".." in path.parts or not name.isprintable() or name == ".":
            raise VerifierError(
                f"{name!r:.200} is not a plain path below the module's folder; write it like modules/net/main.tf"
            )
        above = next((str(folder) for folder in path.parents if str(folder) in TerraformSettings.of(case).files), None)
        if above:
            raise VerifierError(f'"{above}" is a file, so "{name}" cannot be in it')


def _check_repair(case: Case) -> None:
    said, original = TerraformSettings.of(case), _original(case)
    if original is None:
        for key in ("lines", "target"):
            if getattr(said, key) is not None:
                raise VerifierError(f"{key} without the file to be repaired; add it to files as {_answer_file(case)}")
    elif said.lines is not None:
        try:
            first, last = said.lines
            with_block_replaced(original, first, last, "")
        except ValueError as error:
            raise VerifierError(
                f"lines must be the first and the last line of a part of {_answer_file(case)}: {error}"
            ) from None
    if said.target is not None and said.syntax_only:
        raise VerifierError("a target needs more than the syntax; leave out syntax_only")


def _target(case: Case) -> Target | None:
    asked = TerraformSettings.of(case).target
    if asked is None:
        return None
    return msgspec.structs.replace(asked, file=_answer_file(case)) if asked.file is None else asked


def _tree(case: Case) -> ModuleSnapshot:
    """The module without the answer: with the file to repair, or with the reference in its place."""
    files = dict(TerraformSettings.of(case).files)
    if _original(case) is None and case.reference:
        files[_answer_file(case)] = _code(case, case.reference).code or ""
    return ModuleSnapshot(
        folder=".",
        files={name: content.encode() for name, content in files.items()},
        is_complete=_answer_file(case) in files,
    )


# ---- what an answer is


def _code(case: Case, text: str) -> ExtractedCode:
    verbatim = verbatim_code(text)
    if verbatim is not None:
        return ExtractedCode(verbatim, "as it stands") if verbatim.strip() else ExtractedCode(None, "empty reply")
    if _answer_file(case).endswith(".json"):
        return extract(text, "json")
    code = repair_text(text)
    if terraform_blocks(code):
        return ExtractedCode(code, "Terraform")
    found = extract(text, "hcl")
    if found.code is None and TerraformSettings.of(case).lines and not all(map(_is_prose, code.splitlines())):
        # some lines of a block are not a block, and cannot be recognised
        return ExtractedCode(code, "some lines")
    return found


def _is_prose(line: str) -> bool:
    return not line.strip() or is_prose(line)


def _file_with_answer(case: Case, code: str) -> str:
    """The file with the answer in it."""
    original, lines = _original(case), TerraformSettings.of(case).lines
    return code if original is None or lines is None else with_block_replaced(original, *lines, code)


def is_unchanged(code: str, original: str) -> bool:
    """Whether two files differ only in blanks at the ends of lines and blank lines around them."""
    lines, others = ([line.rstrip() for line in text.strip().splitlines()] for text in (code, original))
    return lines == others


# ---- repairs of modules on this disk


async def _repair_finding(case: Case, answer: Answer, module: DiskModule) -> Finding:
    name = _answer_file(case)
    code, why_not = _repaired_file(case, answer, module)
    if not module.is_begun:
        # the others validate their repairs meanwhile
        await module.original()
    after = None
    if not why_not and not module.is_given_up:
        after = (await module.copies.validated({name: code})).output
    before = await module.original()
    tree, target = module.tree, _target(case)
    changed = {} if after is None else {name: code}
    reached = await _levels(module.copies, tree, target, before, after or before, changed)
    if target is not None and reached.fixed is None and not reached.is_hidden:
        # Terraform does not say where a cycle is
        anywhere = msgspec.structs.replace(target, file="")
        elsewhere = await _levels(module.copies, tree, anywhere, before, after or before, changed)
        reached = elsewhere if elsewhere.fixed is not None or elsewhere.is_hidden else reached
    achieved: tuple[bool | None, ...] = (
        *(reached.plausible, reached.fixed, reached.strictly_fixed_in_block, reached.strictly_fixed_in_module),
    )
    if after is None:
        achieved = tuple(None if level is None else False for level in achieved)
        finding = Finding(passed=False, label=why_not, reason=why_not)
    else:
        first = after.errors[0] if after.errors else None
        reason = reached.reason or (_error_summary(first, with_detail=False) if first else "")
        finding = msgspec.structs.replace(_finding(case, after, reached), reason=reason)
    return msgspec.structs.replace(
        finding, code=code or None, levels=_known_levels(achieved), figures=_figures(reached)
    )


def _repaired_file(case: Case, answer: Answer, module: DiskModule) -> tuple[str, str]:
    """The file with the repair in it, and the reason if there is nothing to validate."""
    name = _answer_file(case)
    content = module.tree.files.get(module.tree.path(name))
    if content is None:
        raise VerifierError(f"{name}: no such file in the module")
    original = content.decode()
    verbatim = verbatim_code(answer.text)
    code = repair_text(answer.text) if verbatim is None else verbatim
    if not code.strip():
        return "", "empty repair"
    if (lines := TerraformSettings.of(case).lines) is not None:
        code = with_block_replaced(original, *lines, code)
    return code, "unchanged" if is_unchanged(code, original) else ""


def _figures(reached: RepairLevels) -> dict[str, bool | int | str]:
    """The counts of a repair, as in tables of outcomes; unknown ones are left out."""
    introduced = dict.fromkeys(f"{new.scope}: {new.diagnosis.summary}" for new in reached.introduced)
    figures = {name: getattr(reached, name) for name in REPAIR_FIGURES}
    figures["introduced_errors"] = "; ".join(list(introduced)[:MAX_INTRODUCED_ERRORS_LISTED])
    return {name: value for name, value in figures.items() if value is not None}


# ---- what was found


async def _levels(
    copies: ModuleCopyPool,
    tree: ModuleSnapshot,
    target: Target | None,
    before: ValidateOutput,
    after: ValidateOutput,
    changed: dict[str, str],
) -> RepairLevels:
    """What a repair reaches; where an old error may hide the target, a smaller module is validated to find out."""
    sources = tree.sources(), tree.sources(changed)
    reached = repair_levels(before, after, target=target, sources_before=sources[0], sources_after=sources[1])
    address = reducible_block(sources[0], target) if target and reached.is_hidden else ""
    if not address:
        return reached
    files_before, files_after = (reduced_files(source, address) for source in sources)
    reduced = repair_levels(
        (await copies.validated(files_before)).output,
        (await copies.validated(files_after)).output,
        target=target,
        sources_before=sources[0] | files_before,
        sources_after=sources[1] | files_after,
    )
    return with_proof(reached, reduced)


def _failed(case: Case, label: str, reason: str) -> Finding:
    """An attempt that reached nothing, which took no validating to find out."""
    said = TerraformSettings.of(case)
    known = REPAIR_LEVELS if said.target else REPAIR_LEVELS[:1]
    levels = {SYNTAX_LEVEL: False} if said.syntax_only else dict.fromkeys(known, False)
    return Finding(passed=False, levels=levels, label=label, reason=reason)


def _finding(case: Case, output: ValidateOutput, reached: RepairLevels | None) -> Finding:
    # their order depends on threads
    found = sorted(output.diagnostics, key=_order)
    first = next((diagnosis for diagnosis in found if diagnosis.severity == "error"), None)
    is_read = not any(
        error.file == _answer_file(case) and READING_ERRORS.match(error.summary) for error in output.errors
    )
    notes: list[Diagnostic] = []
    achieved: tuple[bool | None, ...] = (output.valid,)
    if reached is not None:
        achieved = output.valid, reached.fixed, reached.strictly_fixed_in_block, reached.strictly_fixed_in_module
        introduced = sorted(reached.introduced, key=lambda new: _order(new.diagnosis))
        notes += [
            Diagnostic(level=DiagnosticLevel.NOTE, message=f"new, {new.scope}: {new.diagnosis.summary}")
            for new in introduced
        ]
        if reached.reason:
            is_fixed = "perhaps not fixed" if reached.is_hidden else "not fixed"
            notes.append(Diagnostic(level=DiagnosticLevel.NOTE, message=f"{is_fixed}: {reached.reason}"))
    return Finding(
        compiled=is_read,
        passed=output.valid if is_read else None,
        levels=_known_levels(achieved),
        diagnostics=(
            *map(stored_diagnostic, found[:MAX_STORED_TERRAFORM_DIAGNOSTICS]),
            *notes[:MAX_STORED_TERRAFORM_DIAGNOSTICS],
        ),
        label="" if first is None else "not valid" if is_read else FailureLabel.DOES_NOT_COMPILE,
        reason="" if first is None else _error_summary(first),
    )


def _known_levels(achieved: tuple[bool | None, ...]) -> dict[str, bool]:
    return {level: value for level, value in zip(REPAIR_LEVELS, achieved, strict=False) if value is not None}


def _order(diagnosis: TerraformDiagnostic) -> tuple[bool, str, int, int, str, str]:
    place = diagnosis.line_start or 0, diagnosis.column_start or 0
    return diagnosis.severity != "error", diagnosis.file, *place, diagnosis.summary, diagnosis.detail


def _error_summary(error: TerraformDiagnostic, *, with_detail: bool = True) -> str:
    place = f"{error.file}:{error.line_start}: " if error.file and error.line_start else ""
    more = " ".join(error.detail.split()) if with_detail else ""
    return f"{place}{error.summary}{': ' if more else ''}{more}"[:500]


def _syntax_finding(code: str) -> Finding:
    """What a check of the syntax alone finds; whether the module would validate stays open."""
    error = syntax_error(code)
    return Finding(
        compiled=not error,
        levels={SYNTAX_LEVEL: not error},
        label=FailureLabel.DOES_NOT_COMPILE if error else "",
        reason=error,
    )
