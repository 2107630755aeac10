"""How successful a repair of a Terraform module is, judged by the diagnostics before it and after it.

A repair is *plausible* when the module validates. It has *fixed* its target when four things hold:

- The target is no longer reported. A diagnostic is the same as an earlier one when it is in the same block (or local
  value, or file outside of blocks) with the same summary; the lines do not matter. Of several such in one block the
  details, and then the lines' texts, tell which is which; where these do not, all of them must be gone.
- No error may hide it: the absence of a diagnostic proves something only if Terraform came to look (stages.py). Where the
  repair made that error, it has masked its target, which is not a fix. Where the error was there before, nothing is known,
  unless a smaller module proves it (stages.py).
- The block is still there, in some file of the same folder and under the same address, and so is the local value, and the
  module that they are in is still called. A block that is deleted, renamed, commented out or put into a string was not
  repaired. Only where the target is about the name itself (an unsupported block type, an invalid name) may it change, but
  no block may be lost; and where a header was so broken that no block could be made out, there must be one more now.
- The block was not emptied: if it held more than the lines that the target points at, something must be left in it.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from steelyard.records import Record, Target
from steelyard.verifiers.terraform.diagnostics import TerraformDiagnostic, ValidateOutput, canonical_summary
from steelyard.verifiers.terraform.module import ModuleSources, TerraformLocation
from steelyard.verifiers.terraform.stages import hiding_error

BLOCK_NAME_ERROR = re.compile(
    r"Extraneous label|Invalid (.* name|data source|ephemeral resource|resource type)$|Missing \S+ for |Unsupported block type$"
)
BLOCK_HEADER_START = re.compile(r"(resource|data|module|variable|output|provider|locals|terraform)\b")
NAME_SUGGESTION = re.compile(r" ?Did you mean [^?\n]{0,200}\?")
REPEATABLE_ADDRESSES = ("locals", "terraform")
"""Addresses that several blocks may have."""
CYCLE_PREFIX = "Cycle: "


class RepairScope(StrEnum):
    """How far from its target something is."""

    SAME_BLOCK = "same block"
    SAME_FILE = "same file"
    SAME_MODULE = "same module"
    """Another file of the folder."""
    ELSEWHERE = "elsewhere"
    """Another folder, or no file at all."""


class IntroducedError(Record, frozen=True, kw_only=True):
    """An error that the original does not have."""

    diagnosis: TerraformDiagnostic
    scope: RepairScope


class RepairLevels(Record, frozen=True, kw_only=True):
    """How successful one repair is; warnings never count as errors.

    Fields about the target are None without a target, or where the original does not show it. Where `is_hidden`, it is not
    known whether the target is fixed.
    """

    plausible: bool
    """The repaired module validates."""
    fixed: bool | None = None
    """The target is gone, provably, and its block is still there; `is_fixed` in tables of outcomes."""
    strictly_fixed_in_block: bool | None = None
    """Fixed, and no new error in the target's block."""
    strictly_fixed_in_module: bool | None = None
    """Fixed, and no new error at all."""
    reason: str = ""
    """Why the target does not count as fixed."""
    is_hidden: bool = False
    """An error that the repair did not make may hide the target, so that `fixed` is not known."""
    introduced: tuple[IntroducedError, ...] = ()
    """The new errors."""
    line_is_clean: bool | None = None
    """No error stands on the lines that took the place of the target's, and none may be hidden there."""
    line_specific_error_fixed: bool | None = None
    """The target itself does not stand on those lines, and is not hidden; what became of its block does not matter."""
    module_total_errors: int
    """All errors after the repair."""
    module_errors: int
    """Those of them in files of the target's folder, or of the validated one without a target."""
    file_errors: int | None = None
    """Those of them in the target's file."""
    module_original_errors_remaining: int
    """Those of all errors that the original has as well."""
    module_fix_introduced_errors: int
    """Those of all errors that it does not have."""
    block_total_errors: int | None = None
    """The errors in the target's block; None when it is in none."""
    block_original_errors_remaining: int | None = None
    """Those of them that the original has as well."""
    block_fix_introduced_errors: int | None = None
    """Those of them that it does not have."""


def repair_levels(
    before: ValidateOutput,
    after: ValidateOutput,
    *,
    target: Target | None,
    sources_before: Mapping[str, str],
    sources_after: Mapping[str, str],
) -> RepairLevels:
    """How successful a repair is, from the diagnostics of the original and of the repaired module.

    The sources are the files of the module, and of the modules it calls, by their paths from the validated folder.
    """
    old, new = ModuleSources(sources_before), ModuleSources(sources_after)
    errors = _errors_marked_new(before.errors, after.errors, old, new)
    targets = _diagnostics_of_target(target, before) if target else []
    home = old.home(targets[0] if targets else _target_placeholder(target))
    block = _block_now(targets[0], home, old, new) if targets else home.block
    scopes = [_scope(new.home(error), home._replace(block=block)) for error, _ in errors]
    introduced = tuple(
        IntroducedError(diagnosis=error, scope=scope)
        for (error, is_new), scope in zip(errors, scopes, strict=True)
        if is_new
    )
    found = RepairLevels(
        plausible=after.valid,
        introduced=introduced,
        module_total_errors=len(errors),
        module_errors=sum(error.file != "" and posixpath.dirname(error.file) == home.directory for error, _ in errors),
        module_original_errors_remaining=len(errors) - len(introduced),
        module_fix_introduced_errors=len(introduced),
    )
    if target is None:
        return found
    new_in_block = sum(error.scope == RepairScope.SAME_BLOCK for error in introduced)
    all_in_block = scopes.count(RepairScope.SAME_BLOCK)
    found = msgspec.structs.replace(
        found,
        file_errors=sum(error.file == home.file for error, _ in errors) if home.file else None,
        block_total_errors=all_in_block if block else None,
        block_original_errors_remaining=all_in_block - new_in_block if block else None,
        block_fix_introduced_errors=new_in_block if block else None,
    )
    if not targets:
        return msgspec.structs.replace(found, reason="the original does not show the target")
    hiders = filter(None, (hiding_error(one, old, new, errors) for one in targets))
    hider = max(hiders, key=lambda one: one.is_by_repair, default=None)
    name = home.name if block == home.block else block
    here = [said_here for one in targets for said_here in _diagnostics_on_target_lines(one, name, after, old, new)]
    is_said_here = any(_complaint(one) == _complaint(targets[0]) for one in here)
    is_gone = all(_is_gone(one, before, after, old, new) for one in targets)
    lost = next(filter(None, (_lost_part(one, old, new) for one in targets)), "")
    may_hide = f'"{hider.diagnosis.summary}" may hide the target' if hider else ""
    if not is_gone or (block != home.block and is_said_here):
        reason = "the target is still there"
    elif hider is not None and not hider.is_by_repair and not lost:
        return msgspec.structs.replace(
            found,
            is_hidden=True,
            reason=may_hide,
            strictly_fixed_in_block=False if new_in_block else None,
            strictly_fixed_in_module=False if introduced else None,
            line_is_clean=False if any(one.severity == "error" for one in here) else None,
        )
    else:
        reason = may_hide or lost
    return msgspec.structs.replace(
        found,
        fixed=not reason,
        strictly_fixed_in_block=not reason and not new_in_block,
        strictly_fixed_in_module=not reason and not introduced,
        reason=reason,
        line_is_clean=hider is None and all(one.severity != "error" for one in here),
        line_specific_error_fixed=hider is None and not is_said_here,
    )


def with_proof(levels: RepairLevels, reduced: RepairLevels) -> RepairLevels:
    """The levels where an error may hide the target, once the same repair was judged in a module without that error."""
    if reduced.fixed is None or (not reduced.fixed and reduced.introduced):
        # what is new in the smaller module may come from making it smaller
        return levels
    if not reduced.fixed:
        return msgspec.structs.replace(
            levels,
            **dict.fromkeys(("fixed", "strictly_fixed_in_block", "strictly_fixed_in_module"), False),
            is_hidden=False,
            reason=reduced.reason,
            line_specific_error_fixed=False,
        )
    return msgspec.structs.replace(levels, fixed=True, is_hidden=False, reason="", line_specific_error_fixed=True)


# ---- places


def _target_placeholder(target: Target | None) -> TerraformDiagnostic:
    """Where a target stands that the original does not show; nowhere without a target."""
    if target is None or not target.file:
        return TerraformDiagnostic(severity="", summary="")
    return TerraformDiagnostic(
        severity="", summary="", file=posixpath.normpath(target.file), line_start=target.line_start
    )


def _scope(home: TerraformLocation, target: TerraformLocation) -> RepairScope:
    """How far from the target something stands."""
    if not home.file or home.directory != target.directory:
        return RepairScope.ELSEWHERE
    if (
        target.block
        and home.block == target.block
        and (home.block not in REPEATABLE_ADDRESSES or home.file == target.file)
    ):
        return RepairScope.SAME_BLOCK
    return RepairScope.SAME_FILE if home.file == target.file else RepairScope.SAME_MODULE


def _lines_now(line_start: int, line_end: int, old: list[str], new: list[str]) -> tuple[int, int]:
    """The lines of a file that took the place of these: a changed line may be any of the changed ones now."""
    shared = min(len(old), len(new))
    above = next((at for at in range(shared) if old[at] != new[at]), shared)
    below = next((at for at in range(shared - above) if old[-1 - at] != new[-1 - at]), shared - above)

    def moved(line: int, edge: int) -> int:
        return line if line <= above else edge if line <= len(old) - below else line + len(new) - len(old)

    return moved(line_start, above + 1), moved(line_end, len(new) - below)


def _block_now(target: TerraformDiagnostic, home: TerraformLocation, old: ModuleSources, new: ModuleSources) -> str:
    """The address of the target's block after the repair, which may change if something was wrong with its header."""
    was, now = old.definitions(home.directory), new.definitions(home.directory)
    if home.block in now or not (_is_about_name(target, home) or _is_header(target, home, old)):
        return home.block
    words = re.findall(r"[\w-]+", home.block or _line(target, old))
    added = [block.address for block in new.blocks(home.file) if block.address not in was]
    alike = [address for address in added if address.rpartition(".")[2] in words or address.startswith(f"{words[0]}.")]
    return next(iter(alike or added), home.block)


def _is_about_name(target: TerraformDiagnostic, home: TerraformLocation) -> bool:
    """Whether there is something wrong with the header of a block."""
    return BLOCK_NAME_ERROR.match(target.summary) is not None and home.block != "" and not home.item


def _is_header(target: TerraformDiagnostic, home: TerraformLocation, module: ModuleSources) -> bool:
    """Whether a target stands on the header of what could not be made out as a block."""
    return not home.block and BLOCK_HEADER_START.match(_line(target, module)) is not None


def _diagnostics_on_target_lines(
    target: TerraformDiagnostic, name: str, after: ValidateOutput, old: ModuleSources, new: ModuleSources
) -> list[TerraformDiagnostic]:
    """The diagnostics of the lines that took the place of the target's, if they belong to the object that now has its name.

    For a target without lines these are the diagnostics without lines.
    """
    file = target.file
    if target.line_start is None or target.line_end is None:
        return [one for one in after.diagnostics if one.file == file and one.line_start is None]
    first, last = _lines_now(target.line_start, target.line_end, old.lines(file), new.lines(file))
    here = [one for one in after.diagnostics if one.file == file and _overlaps(one, first, last)]
    is_there = name in new.definitions(posixpath.dirname(file))
    return [one for one in here if not is_there or new.home(one).name == name]


def _overlaps(diagnosis: TerraformDiagnostic, line_start: int, line_end: int) -> bool:
    if diagnosis.line_start is None or diagnosis.line_end is None:
        return not diagnosis.file
    return diagnosis.line_start <= line_end and line_start <= diagnosis.line_end


# ---- which diagnostic is which


def _case_and_space_folded(text: str) -> str:
    """A text without regard to blanks and case."""
    return " ".join(text.lower().split())


def _detail(diagnosis: TerraformDiagnostic | Target) -> str:
    """The detail without what was perhaps meant: of several names that are equally near Terraform takes any."""
    return _case_and_space_folded(NAME_SUGGESTION.sub("", diagnosis.detail))


def _complaint(diagnosis: TerraformDiagnostic | Target) -> tuple[str, str]:
    """What a diagnostic is about, without its place."""
    return diagnosis.severity, _case_and_space_folded(canonical_summary(diagnosis.summary))


def _key(diagnosis: TerraformDiagnostic, module: ModuleSources) -> tuple[str, ...]:
    """What a diagnostic is recognised by."""
    home = module.home(diagnosis)
    return home.directory, home.name or f"in {home.file}", *_complaint(diagnosis)


def _diagnostics_of_target(target: Target, output: ValidateOutput) -> list[TerraformDiagnostic]:
    """The diagnostics that a target means: those on exactly its lines, otherwise those on some of them."""
    file = posixpath.normpath(target.file) if target.file else ""
    found = [
        diagnosis
        for diagnosis in output.diagnostics
        if diagnosis.file == file
        and _complaint(diagnosis) == _complaint(target)
        and (not target.detail or _detail(diagnosis) == _detail(target))
        and _overlaps(diagnosis, target.line_start, target.line_end)
    ]
    lines = (target.line_start, target.line_end)
    return [diagnosis for diagnosis in found if (diagnosis.line_start, diagnosis.line_end) == lines] or found


def _errors_marked_new(
    before: Iterable[TerraformDiagnostic], after: Iterable[TerraformDiagnostic], old: ModuleSources, new: ModuleSources
) -> list[tuple[TerraformDiagnostic, bool]]:
    """The diagnostics after the repair, each with whether it is new."""
    details: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    groups: dict[tuple[str, ...], list[TerraformDiagnostic]] = defaultdict(list)
    for diagnosis in before:
        details[_key(diagnosis, old)][_detail(diagnosis)] += 1
    for diagnosis in after:
        groups[_key(diagnosis, new)].append(diagnosis)
    found: list[tuple[TerraformDiagnostic, bool]] = []
    for key, group in groups.items():
        left = details[key]
        if left.total() == 1 and all(_detail(one) not in left for one in group):
            # the same complaint with other details is the same complaint, if it was the only one
            left = Counter([_detail(group[0])])
        for diagnosis in group:
            detail = _detail(diagnosis)
            found.append((diagnosis, not left[detail]))
            left[detail] -= left[detail] > 0
    return found


def _is_gone(
    target: TerraformDiagnostic, before: ValidateOutput, after: ValidateOutput, old: ModuleSources, new: ModuleSources
) -> bool:
    """Whether all diagnostics that look like the target are gone."""
    key = _key(target, old)
    was = [one for one in before.diagnostics if _key(one, old) == key]
    left = [one for one in after.diagnostics if _key(one, new) == key]
    if len(was) == 1:
        return not left
    detail = _detail(target)
    others = Counter(_line(one, old) for one in was if _detail(one) == detail)
    del others[_line(target, old)]
    return Counter(_line(one, new) for one in left if _detail(one) == detail) <= others


def _line(diagnosis: TerraformDiagnostic, module: ModuleSources) -> str:
    """The text of the line that a diagnostic begins on."""
    line = diagnosis.line_start
    return _case_and_space_folded(module.text(diagnosis.file, line, line)) if line else ""


# ---- what may not be lost


def _lost_part(target: TerraformDiagnostic, old: ModuleSources, new: ModuleSources) -> str:
    """What a repair removed instead of repairing it; empty if nothing."""
    home = old.home(target)
    was, now = old.definitions(home.directory), new.definitions(home.directory)
    if target.summary.startswith(CYCLE_PREFIX):
        members = map(_cycle_member_name, target.summary.removeprefix(CYCLE_PREFIX).split(", "))
        return next((f"{name} is gone" for name in members if name in was and name not in now), "")
    if home.directory in old.called and home.directory not in new.called:
        return f"no module calls {home.directory} any more"
    count_was, count_now = (sum(map(len, names.values())) for names in (was, now))
    if not home.block:
        is_lost = _is_header(target, home, old) and count_now <= count_was
        return f"the block that line {target.line_start} begins is gone" if is_lost else ""
    if home.name not in now:
        return "" if _is_about_name(target, home) and count_now >= count_was else f"{home.name} is gone"
    held = [item for definition in was.get(home.block, ()) for item in definition.items]
    is_left = any(definition.items for definition in now.get(home.block, ()))
    is_more = any(not _overlaps(target, item.line_start, item.line_end) for item in held)
    return f"{home.block} was emptied" if is_more and not is_left else ""


def _cycle_member_name(member: str) -> str:
    """The name of a member of a cycle, which Terraform writes as `local.a (expand)` or `module.b.var.c (expand)`."""
    kind, _, rest = member.partition(" ")[0].partition(".")
    name = rest.partition(".")[0]
    if kind == "data":
        return ".".join([kind, *rest.split(".")[:2]])
    if kind in ("module", "local", "output", "var"):
        return f"{'variable' if kind == 'var' else kind}.{name}"
    return f"resource.{kind}.{name}"
