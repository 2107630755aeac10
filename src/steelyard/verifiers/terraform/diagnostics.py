"""The output of `terraform validate -json`, read strictly: malformed output counts as no output."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import Annotated, Literal, NamedTuple

import msgspec

from steelyard.records import Diagnostic, Record, Span
from steelyard.text import counted

MAX_VALIDATE_OUTPUT_BYTES = 16 << 20
"""Bytes of an answer; a thousand diagnostics take less than one million."""
MAX_VALIDATE_DIAGNOSTICS = 10_000
"""Diagnostics of one validation."""
MAX_TERRAFORM_MESSAGE_CHARACTERS = 2000
"""Characters of a diagnostic that are stored."""
VALIDATE_FORMAT_MAJOR_VERSIONS = ("0", "1")
"""Major versions of the format; before 0.15 none is given."""


class UnreadableValidateOutput(ValueError):
    """The output is not that of `terraform validate -json`."""


class TerraformDiagnostic(Record, frozen=True, kw_only=True):
    """One thing that Terraform says about a module."""

    severity: Literal["", "error", "warning"]
    """Empty if only the place of a diagnostic was given."""
    summary: str
    detail: str = ""
    address: str = ""
    """The resource that a provider names; Terraform's own diagnostics have none, nor do those before 0.15."""
    file: str = ""
    """Relative to the folder that was validated; empty if no file can be named, as for a cycle."""
    line_start: int | None = None
    line_end: int | None = None
    column_start: int | None = None
    column_end: int | None = None
    """Lines and columns count from 1; the last column is the one behind the end."""


class ValidateOutput(NamedTuple):
    """The answer of one validation."""

    valid: bool
    diagnostics: tuple[TerraformDiagnostic, ...]

    @property
    def errors(self) -> tuple[TerraformDiagnostic, ...]:
        """The diagnostics that make a module invalid."""
        return tuple(diagnosis for diagnosis in self.diagnostics if diagnosis.severity == "error")


_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class _ValidatePosition(msgspec.Struct):
    line: _Count
    column: _Count


class _ValidateRange(msgspec.Struct):
    filename: str
    start: _ValidatePosition
    end: _ValidatePosition


class _ValidateDiagnostic(msgspec.Struct):
    severity: Literal["error", "warning"]
    summary: str
    detail: str = ""
    address: str = ""
    range: _ValidateRange | None = None


class _ValidateJson(msgspec.Struct):
    valid: bool
    error_count: _Count
    warning_count: _Count
    diagnostics: list[_ValidateDiagnostic]
    format_version: str = ""


def parse_validate_output(stdout: bytes) -> ValidateOutput:
    """The answer that a validation printed, in a fixed order; raises UnreadableValidateOutput if there is none."""
    if len(stdout) > MAX_VALIDATE_OUTPUT_BYTES:
        raise UnreadableValidateOutput(f"more than {MAX_VALIDATE_OUTPUT_BYTES >> 20} MB of output")
    try:
        # 0.13 marks its output for the parent process, which under TF_FORK=0 is not there to take the mark off
        answer = msgspec.json.decode(stdout.removeprefix(b"o:"), type=_ValidateJson)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableValidateOutput(f"not the output of terraform validate -json: {error}") from error
    if answer.format_version and answer.format_version.partition(".")[0] not in VALIDATE_FORMAT_MAJOR_VERSIONS:
        raise UnreadableValidateOutput(
            f"the answer has the format {answer.format_version[:20]}; supported are {', '.join(VALIDATE_FORMAT_MAJOR_VERSIONS)}"
        )
    if len(answer.diagnostics) > MAX_VALIDATE_DIAGNOSTICS:
        raise UnreadableValidateOutput(f"more than {MAX_VALIDATE_DIAGNOSTICS} diagnostics")
    counts: Counter[str] = Counter(entry.severity for entry in answer.diagnostics)
    for word, claimed in (("error", answer.error_count), ("warning", answer.warning_count)):
        if claimed != counts[word]:
            raise UnreadableValidateOutput(f"the answer counts {claimed} {word}s but lists {counts[word]}")
    if answer.valid == bool(answer.error_count):
        raise UnreadableValidateOutput(
            f"the answer says valid = {str(answer.valid).lower()} with {counted(answer.error_count, 'error')}"
        )
    # Terraform looks at many things at once, and speaks of them as it is done with them
    return ValidateOutput(answer.valid, tuple(sorted(map(_terraform_diagnostic, answer.diagnostics), key=_order)))


def canonical_summary(summary: str) -> str:
    """A summary in a fixed order: Terraform begins a cycle at any of its members.

    >>> canonical_summary("Cycle: local.b (expand), local.a (expand)")
    'Cycle: local.a (expand), local.b (expand)'
    """
    head, cycle, members = summary.partition("Cycle: ")
    return f"{cycle}{', '.join(sorted(members.split(', ')))}" if cycle and not head else summary


def _order(diagnosis: TerraformDiagnostic) -> tuple[str, int, int, str, str, str]:
    place = diagnosis.file, diagnosis.line_start or 0, diagnosis.column_start or 0
    return *place, diagnosis.severity, diagnosis.summary, diagnosis.detail


def _terraform_diagnostic(entry: _ValidateDiagnostic) -> TerraformDiagnostic:
    place = entry.range
    file = posixpath.normpath(place.filename.replace("\\", "/")) if place and place.filename else ""
    start, end = (place.start, place.end) if place else (None, None)
    # a diagnostic about a whole file comes with lines and columns of zero
    return TerraformDiagnostic(
        severity=entry.severity,
        summary=canonical_summary(entry.summary),
        detail=entry.detail,
        address=entry.address,
        file=file,
        line_start=start.line if start and start.line > 0 else None,
        line_end=max(start.line, end.line) if start and end and start.line > 0 else None,
        column_start=start.column if start and start.column > 0 else None,
        column_end=end.column if end and end.column > 0 else None,
    )


def stored_diagnostic(diagnosis: TerraformDiagnostic) -> Diagnostic:
    """The same for storage beside what other compilers say, cut to a bounded length."""
    spans: tuple[Span, ...] = ()
    if diagnosis.line_start is not None and diagnosis.line_end is not None:
        spans = (
            Span(
                file=diagnosis.file,
                line_start=diagnosis.line_start,
                line_end=diagnosis.line_end,
                column_start=diagnosis.column_start or 1,
                column_end=diagnosis.column_end or 1,
            ),
        )
    message = f"{diagnosis.summary}: {diagnosis.detail}" if diagnosis.detail else diagnosis.summary
    return Diagnostic(level=diagnosis.severity, message=message[:MAX_TERRAFORM_MESSAGE_CHARACTERS], spans=spans)
