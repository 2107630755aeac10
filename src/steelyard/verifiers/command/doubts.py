"""What keeps a pass of a test command from being proved, and the note that says so."""

from __future__ import annotations

import re

from msgspec.structs import replace

from steelyard.protocols import Workspace
from steelyard.records import Case, Finding
from steelyard.text import printable
from steelyard.verifiers.code.answer_values import MAX_READ_CHARS
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.code.nan_orders import too_far_only
from steelyard.verifiers.code.nan_tests import NAN_ACCEPTED_REASON, accepts_nan, may_give_nan
from steelyard.verifiers.code.own_claims import own_decision
from steelyard.verifiers.command.allowed import unlisted
from steelyard.verifiers.command.allowed.asked import asked_names
from steelyard.verifiers.command.allowed.guards import as_loaded
from steelyard.verifiers.command.allowed.native_object import unlisted_in_object
from steelyard.verifiers.command.output import one_line
from steelyard.verifiers.command.proof import has_means_to_end_tests
from steelyard.verifiers.command.settings import CommandSettings

BLANK_LINES_PATTERN = re.compile(r"\n(?:[ \t]*\n){2,}")


def text_doubts(finding: Finding, case: Case, code: str, *, needs_paths: bool) -> Finding:
    """The finding, with what in the text of an answer keeps its pass from being proved."""
    if CommandSettings.of(case).run or not finding.tests:
        return finding
    if len(code) > MAX_READ_CHARS:
        return _doubted(
            finding, f"more than {MAX_READ_CHARS:,} characters, too many to be read for what could forge one"
        )
    # many of them would take time by the square of their number
    code = BLANK_LINES_PATTERN.sub("\n\n", as_loaded(case, code))
    if outside := unlisted(case, code):
        return _doubted(finding, outside)
    if needs_paths:
        # by its list of processes an answer could read the memory of what tests it
        return _doubted(finding, "the list of its processes, which `<( )` needs")
    if has_means_to_end_tests(case, code):
        return _doubted(finding, "a name that could end its tests, or reach their files or variables")
    tests = "\n".join(CommandSettings.of(case).files.values())
    language = canonical_language(case.language)
    if claim := own_decision(tests, code, language):
        return replace(finding, trust="unproved", note=f"a pass is not proved, because {claim}")
    if may_give_nan(code, language) and (accepts_nan(tests) or too_far_only(tests, code, language)):
        return replace(finding, trust="unproved", note=f"a pass is not proved, because {NAN_ACCEPTED_REASON}")
    return finding


async def object_doubts(finding: Finding, place: Workspace, case: Case) -> Finding:
    """The finding, with what in the object file of an answer keeps its pass from being proved."""
    if case.workspace:
        return finding
    asked = asked_names(case)
    outside = await unlisted_in_object(
        place, case, asked.called | set(case.expectations.expected_functions), is_printed=asked.is_printed
    )
    return _doubted(finding, outside) if outside else finding


def _doubted(finding: Finding, outside: str) -> Finding:
    note = f"a pass is not proved, because the answer has {one_line(printable(outside))}"
    return replace(finding, trust="unproved", note=note)
