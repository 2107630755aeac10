"""A repair is as successful as it provably is: what is hidden, deleted or moved does not count as fixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steelyard.records import Target
from steelyard.verifiers.terraform.diagnostics import TerraformDiagnostic, ValidateOutput, parse_validate_output
from steelyard.verifiers.terraform.levels import RepairLevels, RepairScope, repair_levels
from steelyard.verifiers.terraform.module import ModuleSources
from steelyard.verifiers.terraform.stages import ValidationStage, possible_stages
from support.terraform_problems import HERE, ORIGINAL, REPAIRS, VERSIONS, Problem, Repair, problems, reached, recorded

EVERY = [
    pytest.param(version, problem, repair, id=f"{version}-{problem.name}-{repair}")
    for version in VERSIONS
    for problem in problems(version)
    for repair in REPAIRS
]


def judged(version: str, problem: Problem, repair: str) -> RepairLevels:
    answers = recorded(problem.name, version)
    return repair_levels(
        answers[ORIGINAL],
        answers[repair],
        target=problem.target,
        sources_before=problem.sources,
        sources_after=problem.repairs[repair].applied(problem.sources),
    )


# ---- what real programs said


@pytest.mark.parametrize(("version", "problem", "repair"), EVERY)
def test_a_repair_reaches_the_levels_it_deserves(version: str, problem: Problem, repair: str) -> None:
    assert reached(judged(version, problem, repair)) == problem.repairs[repair].expected


def test_there_are_problems_enough_and_repairs_of_every_quality() -> None:
    assert len(problems()) >= 22
    for problem in [*problems("1.0.3"), *problems("0.13.5")]:
        assert tuple(problem.repairs) == REPAIRS
        expected = {name: repair.expected for name, repair in problem.repairs.items()}
        assert expected["correct"] == (True, True, True, True)
        assert not expected["masking"].fixed
        assert not expected["partial"].strictly_fixed_in_module or not expected["partial"].plausible
        assert not expected["introducing"].strictly_fixed_in_module


@pytest.mark.parametrize(("version", "problem", "repair"), EVERY)
def test_the_figures_add_up(version: str, problem: Problem, repair: str) -> None:
    found = judged(version, problem, repair)
    assert found.fixed or not found.strictly_fixed_in_block
    assert found.strictly_fixed_in_block or not found.strictly_fixed_in_module
    assert found.module_total_errors == found.module_original_errors_remaining + found.module_fix_introduced_errors
    assert (
        found.module_total_errors >= found.module_errors >= (found.file_errors or 0) >= (found.block_total_errors or 0)
    )
    assert len(found.introduced) == found.module_fix_introduced_errors
    scopes = [error.scope for error in found.introduced]
    assert (found.block_fix_introduced_errors or 0) == scopes.count(RepairScope.SAME_BLOCK)
    assert found.plausible == (found.module_total_errors == 0)
    assert (found.reason == "") == (found.fixed is True)
    assert found.line_specific_error_fixed or not found.fixed
    assert msgspec.json.decode(msgspec.json.encode(found), type=RepairLevels) == found


def moved(told: ValidateOutput, file: str, by: int) -> ValidateOutput:
    """The same said of a file with so many more lines at its top."""

    def further(line: int | None) -> int | None:
        return None if line is None else line + by

    return ValidateOutput(
        told.valid,
        tuple(
            msgspec.structs.replace(one, line_start=further(one.line_start), line_end=further(one.line_end))
            if one.file == file
            else one
            for one in told.diagnostics
        ),
    )


@pytest.mark.parametrize(("version", "problem", "repair"), EVERY)
def test_moving_lines_changes_nothing(version: str, problem: Problem, repair: str) -> None:
    answers = recorded(problem.name, version)
    file = problem.repairs[repair].file
    after = problem.repairs[repair].applied(problem.sources)
    found = repair_levels(
        answers[ORIGINAL],
        moved(answers[repair], file, 3),
        target=problem.target,
        sources_before=problem.sources,
        sources_after=after | {file: f"# one\n# two\n\n{after[file]}"},
    )
    assert reached(found) == problem.repairs[repair].expected
    still = judged(version, problem, repair)
    assert (found.reason, [error.scope for error in found.introduced]) == (
        still.reason,
        [error.scope for error in still.introduced],
    )
    assert found.block_total_errors == still.block_total_errors


@pytest.mark.parametrize("version", VERSIONS)
def test_whatever_is_said_after_a_repair_success_is_nested(version: str) -> None:
    for problem in problems(version):
        for other in problems(version):
            for name, answer in recorded(other.name, version).items():
                sources = other.repairs[name].applied(other.sources) if name in other.repairs else other.sources
                found = repair_levels(
                    recorded(problem.name, version)[ORIGINAL],
                    answer,
                    target=problem.target,
                    sources_before=problem.sources,
                    sources_after=sources,
                )
                assert not found.strictly_fixed_in_module or found.strictly_fixed_in_block
                assert not found.strictly_fixed_in_block or found.fixed


def test_a_repair_that_changes_nothing_fixes_nothing() -> None:
    for version in VERSIONS:
        for problem in problems(version):
            original = recorded(problem.name, version)[ORIGINAL]
            found = repair_levels(
                original,
                original,
                target=problem.target,
                sources_before=problem.sources,
                sources_after=problem.sources,
            )
            assert (found.fixed, found.introduced, found.reason) == (False, (), "the target is still there")


# ---- stages, as they were seen


class Seen:
    """A module, and what Terraform said of it."""

    def __init__(self, path: Path) -> None:
        told = json.loads(path.read_text("utf-8"))
        self.module = ModuleSources(told["sources"])
        self.said = parse_validate_output(json.dumps(told["answer"]).encode())

    def lines(self, file: str = "main.tf") -> set[int | None]:
        return {one.line_start for one in self.said.errors if one.file == file}


@pytest.fixture(params=VERSIONS)
def seen(request: pytest.FixtureRequest) -> Callable[[str], Seen]:
    return lambda name: Seen(HERE / "recorded" / request.param / "stages" / f"{name}.json")


def test_what_needs_something_broken_is_not_looked_at(seen: Callable[[str], Seen]) -> None:
    # line 5 calls an unknown function of the local value that line 2 breaks
    assert seen("broken-upstream").lines() == {2, 8}


def test_in_one_expression_references_come_before_functions_and_outer_functions_before_inner(
    seen: Callable[[str], Seen],
) -> None:
    found = seen("same-expression")
    assert [(one.line_start, one.summary) for one in found.said.errors] == [
        (2, "Reference to undeclared input variable"),
        (5, "Call to unknown function"),
        (6, "Invalid function argument"),
        (7, "Call to unknown function"),
    ]


def test_references_to_resources_hide_those_to_variables_in_the_same_expression(seen: Callable[[str], Seen]) -> None:
    found = [one.summary for one in seen("references").said.errors if one.line_start == 2]
    assert sorted(found) == [
        "Invalid reference",
        "Reference to undeclared module",
        "Reference to undeclared resource",
        "Unsupported attribute",
    ]
    # all references of one block to variables and local values are spoken of
    assert {8, 9, 10} < seen("references").lines()


def test_the_inputs_of_only_one_call_are_spoken_of(seen: Callable[[str], Seen]) -> None:
    found = seen("two-calls")
    assert len({found.module.home(error).block for error in found.said.errors}) == 1


def test_inputs_hide_cycles_and_all_cycles_are_spoken_of(seen: Callable[[str], Seen]) -> None:
    assert [one.summary for one in seen("cycle-and-inputs").said.errors] == ["Unsupported argument"]
    assert len(seen("two-cycles").said.errors) == 2


def test_a_name_that_nobody_knows_hides_the_reference_behind_it(seen: Callable[[str], Seen]) -> None:
    # in lines 1 to 4 a wrong reference hides a wrong argument; line 7 has both
    assert seen("evaluation").lines() & {1, 2, 3, 6, 7} == {2, 7}
    assert [one.summary for one in seen("evaluation").said.errors if one.line_start == 7] == ["Unsupported argument"]


def test_what_is_wrong_with_the_files_is_said_together(seen: Callable[[str], Seen]) -> None:
    found = seen("reading-and-loading")
    assert (found.lines("main.tf"), found.lines("b.tf")) == ({2, 5}, {2, 5})
    # a block whose labels are wrong is skipped, and no longer a duplicate
    assert [one.summary for one in seen("labels").said.errors] == [
        "Extraneous label for variable",
        "Missing name for variable",
    ]


EARLY = {ValidationStage.READING, ValidationStage.LOADING, ValidationStage.MODULES}
LATE = {ValidationStage.REFERENCES, ValidationStage.NAMES, ValidationStage.VALUES, ValidationStage.PROVIDERS}
TOGETHER = [EARLY, {ValidationStage.PLUGINS}, {ValidationStage.INPUTS}, {ValidationStage.CYCLES}, LATE]


@pytest.mark.parametrize("version", VERSIONS)
def test_all_errors_of_one_answer_are_known_to_come_from_stages_that_speak_together(version: str) -> None:
    every = [Seen(path) for path in sorted((HERE / "recorded" / version / "stages").glob("*.json"))]
    answers = [(one.module, one.said) for one in every]
    for problem in problems(version):
        for name, answer in recorded(problem.name, version).items():
            sources = problem.repairs[name].applied(problem.sources) if name in problem.repairs else problem.sources
            answers.append((ModuleSources(sources), answer))
    for module, answer in answers:
        earliest = {possible_stages(one, module).earliest for one in answer.errors}
        latest = {possible_stages(one, module).latest for one in answer.errors}
        assert any(earliest <= together for together in TOGETHER), answer
        assert any(latest <= together for together in TOGETHER), answer


# ---- cases of our own


def wrong(line: int, summary: str = "Bad", *, file: str = "main.tf", **more: Any) -> TerraformDiagnostic:
    plain = TerraformDiagnostic(severity="error", summary=summary, file=file, line_start=line, line_end=line)
    return msgspec.structs.replace(plain, **more)


def told(*diagnostics: TerraformDiagnostic) -> ValidateOutput:
    return ValidateOutput(all(one.severity != "error" for one in diagnostics), diagnostics)


NAMES = "Reference to undeclared input variable"
FUNCTION = "Call to unknown function"
TWO = 'output "a" {\n  value = var.x\n}\n\noutput "b" {\n  value = 1\n}\n'
FIXED = TWO.replace("var.x", "2")


def repaired(
    before: ValidateOutput,
    after: ValidateOutput,
    new: str | dict[str, str] = FIXED,
    *,
    old: str | dict[str, str] = TWO,
    **target: Any,
) -> RepairLevels:
    return repair_levels(
        before,
        after,
        target=msgspec.structs.replace(Target(file="main.tf", line_start=2, line_end=2, summary=NAMES), **target),
        sources_before={"main.tf": old} if isinstance(old, str) else old,
        sources_after={"main.tf": new} if isinstance(new, str) else new,
    )


def test_a_target_that_is_gone_is_fixed() -> None:
    assert reached(repaired(told(wrong(2, NAMES)), told())) == (True, True, True, True)


def test_without_a_target_only_plausibility_and_errors_are_known() -> None:
    found = repair_levels(
        told(wrong(2, NAMES)),
        told(wrong(2, NAMES), wrong(6, FUNCTION), wrong(1, file="m/main.tf"), wrong(0, file="", line_start=None)),
        target=None,
        sources_before={"main.tf": TWO},
        sources_after={"main.tf": TWO},
    )
    assert reached(found) == (False, None, None, None)
    assert (found.line_is_clean, found.file_errors, found.block_total_errors) == (None, None, None)
    assert sorted(error.scope for error in found.introduced) == ["elsewhere", "elsewhere", "same module"]
    assert (found.module_total_errors, found.module_errors, found.module_original_errors_remaining) == (4, 2, 1)


def test_a_target_that_the_original_does_not_show_is_neither_fixed_nor_not() -> None:
    found = repaired(told(wrong(6, FUNCTION)), told(wrong(6, FUNCTION)))
    assert reached(found) == (False, None, None, None)
    assert found.reason == "the original does not show the target"
    assert (found.file_errors, found.block_total_errors) == (1, 0)


def test_blanks_and_case_of_a_summary_do_not_matter() -> None:
    before = told(wrong(2, NAMES, detail="An  input\nvariable."))
    assert repaired(before, told(), summary=NAMES.upper(), detail="an input variable.").fixed
    assert repaired(before, told(), detail="something else").fixed is None


def test_a_target_may_be_given_by_the_lines_of_its_block() -> None:
    assert repaired(told(wrong(2, NAMES)), told(), line_start=1, line_end=3).fixed
    assert repaired(told(wrong(2, NAMES)), told(wrong(2, NAMES)), line_start=1, line_end=3).fixed is False


def test_a_block_may_move_to_another_file_of_the_module_but_takes_its_error_along() -> None:
    first, _, second = TWO.partition("\n\n")
    split = {"main.tf": second, "a.tf": first}
    assert repaired(told(wrong(2, NAMES)), told(), {"main.tf": second, "a.tf": FIXED.partition("\n\n")[0]}).fixed
    assert (
        repaired(told(wrong(2, NAMES)), told(wrong(2, NAMES, file="a.tf")), split).reason == "the target is still there"
    )


@pytest.mark.parametrize(
    "new",
    [
        FIXED.replace('output "a"', 'output "c"'),
        FIXED.partition("\n\n")[2],
        FIXED.replace('output "a" {\n', '/* output "a" {\n').replace("}\n\n", "} */\n\n"),
        f"locals {{\n  text = <<EOF\n{FIXED}EOF\n}}\n",
        FIXED.replace('output "a"', 'variable "a"'),
        {"other/main.tf": FIXED},
        {"main.tf.disabled": FIXED},
        {},
    ],
)
def test_a_block_that_is_no_longer_there_was_not_repaired(new: str | dict[str, str]) -> None:
    found = repaired(told(wrong(2, NAMES)), told(), new)
    assert reached(found) == (True, False, False, False)
    assert found.reason == "output.a is gone"


def test_a_block_that_lost_all_it_held_was_not_repaired() -> None:
    alone = 'variable "a" {\n  default = local.x\n}\n'
    more = 'variable "a" {\n  default = local.x\n  type    = string\n}\n'
    summary = "Variables not allowed"
    emptied = repaired(told(wrong(2, summary)), told(), 'variable "a" {}\n', old=more, summary=summary)
    assert emptied.reason == "variable.a was emptied"
    # what held nothing but the culprit may well be empty now
    assert repaired(told(wrong(2, summary)), told(), 'variable "a" {}\n', old=alone, summary=summary).fixed


def test_of_two_alike_in_one_block_the_detail_tells_which_is_which() -> None:
    old = 'output "a" {\n  one = 1\n  two = 2\n}\n'
    summary = "Unsupported argument"
    one, two = (wrong(line, summary, detail=f'An argument named "{name}"') for line, name in ((2, "one"), (3, "two")))
    kept = 'output "a" {\n  two = 2\n}\n'
    still = msgspec.structs.replace(two, line_start=2, line_end=2)
    assert repaired(told(one, two), told(still), kept, old=old, summary=summary).fixed
    other = repaired(told(one, two), told(one), 'output "a" {\n  one = 1\n}\n', old=old, summary=summary)
    assert other.reason == "the target is still there"
    assert other.module_original_errors_remaining == 1


def test_of_two_that_nothing_tells_apart_both_must_go() -> None:
    old = 'resource "a" "b" {\n  x {\n    c = var.x\n  }\n  x {\n    c = var.x\n  }\n}\n'
    half = old.replace("var.x", "1", 1)
    both = told(wrong(3, NAMES), wrong(6, NAMES))
    place = {"line_start": 3, "line_end": 3}
    assert repaired(both, told(wrong(6, NAMES)), half, old=old, **place).reason == "the target is still there"
    assert repaired(both, told(), old.replace("var.x", "1"), old=old, **place).fixed


def test_of_two_with_the_same_detail_the_lines_tell_which_is_which() -> None:
    old = 'resource "a" "b" {\n  c = var.x\n  d = [var.x]\n}\n'
    both = told(wrong(2, NAMES), wrong(3, NAMES))
    assert repaired(both, told(wrong(3, NAMES)), old.replace("c = var.x", "c = 1"), old=old).fixed
    assert not repaired(both, told(wrong(2, NAMES)), old.replace("[var.x]", "1"), old=old).fixed


def test_the_same_complaint_with_another_detail_is_the_same_complaint() -> None:
    found = repaired(
        told(wrong(2, NAMES, detail="x")), told(wrong(2, NAMES, detail="y")), TWO.replace("var.x", "var.y")
    )
    assert (found.fixed, found.introduced) == (False, ())


def test_new_errors_are_listed_with_their_distance_from_the_target() -> None:
    new = {
        "main.tf": FIXED.replace("value = 2", "value = 2\n  depends_on = [local.z]"),
        "b.tf": 'output "c" {\n  value = f()\n}\n',
        "m/main.tf": 'output "d" {\n  value = f()\n}\n',
    }
    after = told(
        wrong(3, "Reference to undeclared local value"),
        wrong(7, FUNCTION),
        wrong(2, FUNCTION, file="b.tf"),
        wrong(2, FUNCTION, file="m/main.tf"),
        wrong(2, file="../shared/main.tf", summary=FUNCTION),
    )
    found = repaired(told(wrong(2, NAMES)), after, new)
    assert [error.scope for error in found.introduced] == [
        "same block",
        "same file",
        "same module",
        "elsewhere",
        "elsewhere",
    ]
    assert reached(found) == (False, True, False, False)
    assert (found.module_total_errors, found.module_errors, found.file_errors, found.block_total_errors) == (5, 3, 2, 1)


def test_warnings_are_neither_errors_nor_introduced() -> None:
    warning = wrong(2, "Deprecated", severity="warning")
    found = repaired(told(wrong(2, NAMES)), told(warning))
    assert reached(found) == (True, True, True, True)
    assert (found.introduced, found.module_total_errors, found.line_is_clean) == ((), 0, True)


def test_a_warning_as_a_target_is_fixed_when_it_is_no_longer_said() -> None:
    warning = wrong(2, "Quoted references are deprecated", severity="warning")
    target = {"summary": warning.summary, "severity": "warning"}
    assert repaired(told(warning), told(), **target).fixed
    assert repaired(told(warning), told(warning), TWO, **target).reason == "the target is still there"
    assert repaired(told(msgspec.structs.replace(warning, severity="error")), told(), **target).fixed is None


def test_a_broken_file_hides_everything_that_is_found_later() -> None:
    for summary in (NAMES, "Duplicate output definition", "Unsupported argument"):
        before = told(wrong(2, summary))
        found = repaired(
            before, told(wrong(1, "Invalid expression", file="b.tf")), {"main.tf": TWO, "b.tf": "x ="}, summary=summary
        )
        assert found.reason == '"Invalid expression" may hide the target'
        assert (found.line_is_clean, found.line_specific_error_fixed) == (False, False)


def test_what_was_broken_before_as_well_hides_nothing_new() -> None:
    duplicate = "Duplicate output definition"
    broken = wrong(1, "Invalid expression", file="b.tf")
    files = {"main.tf": TWO, "b.tf": "x ="}
    assert repaired(told(wrong(2, duplicate), broken), told(broken), files, old=files, summary=duplicate).fixed


def test_an_error_in_another_block_hides_only_what_needs_that_block() -> None:
    old = 'locals {\n  a = var.x\n  b = 1\n}\n\noutput "o" {\n  value = f(1)\n}\n'
    place = {"line_start": 7, "line_end": 7, "summary": FUNCTION}
    before = told(wrong(2, NAMES), wrong(7, FUNCTION))
    assert repaired(before, told(wrong(2, NAMES)), old.replace("f(1)", "local.b"), old=old, **place).fixed
    hidden = repaired(before, told(wrong(2, NAMES)), old.replace("f(1)", "f(local.a)"), old=old, **place)
    assert hidden.reason == f'"{NAMES}" may hide the target'
    assert (hidden.fixed, hidden.strictly_fixed_in_module, hidden.line_specific_error_fixed) == (None, None, None)
    masked = repaired(
        told(wrong(7, FUNCTION)), told(wrong(2, NAMES)), old.replace("f(1)", "f(local.a)"), old=old, **place
    )
    assert (masked.fixed, masked.reason) == (False, hidden.reason)


def test_an_error_reaches_far_through_names() -> None:
    old = {
        "main.tf": 'output "o" {\n  value = f(local.a)\n}\n',
        "a.tf": 'locals {\n  a = "${module.m.x}"\n}\nmodule "m" {\n  source = "./m"\n  y = data.d.e.z\n}\n',
        "d.tf": 'data "d" "e" {\n  q = 1\n}\nprovider "d" {\n}\n',
        "m/main.tf": 'output "x" {\n  value = 1\n}\n',
    }
    before = told(wrong(2, FUNCTION))
    place = {"line_start": 2, "line_end": 2, "summary": FUNCTION}
    for error in (wrong(2, NAMES, file="d.tf"), wrong(4, NAMES, file="d.tf"), wrong(2, NAMES, file="m/main.tf")):
        assert repaired(before, told(error), old, old=old, **place).reason == f'"{NAMES}" may hide the target'
    apart = old | {"main.tf": 'output "o" {\n  value = 1\n}\n'}
    for error in (wrong(2, NAMES, file="d.tf"), wrong(4, NAMES, file="d.tf"), wrong(2, NAMES, file="m/main.tf")):
        assert repaired(before, told(error), apart, old=old, **place).fixed


def test_an_error_of_a_provider_proves_that_terraform_itself_was_content() -> None:
    old = 'resource "a" "b" {\n  x = var.x\n}\n'
    summary = {"summary": "Unsupported argument"}
    before = told(wrong(2, "Unsupported argument", detail='An argument named "x"'))
    by_provider = wrong(2, "expected size to be small", address="a.b")
    found = repaired(before, told(by_provider), 'resource "a" "b" {\n  size = 9\n}\n', old=old, **summary)
    assert reached(found) == (False, True, False, False)
    # the other way round nothing is proven: the provider was not asked
    before = told(wrong(2, "expected size to be small", address="a.b"))
    after = told(wrong(3, "Unsupported argument", detail='An argument named "y"'))
    new = old.replace("}\n", "  y = 1\n}\n")
    found = repaired(before, after, new, old=old, summary="expected size to be small")
    assert found.reason == '"Unsupported argument" may hide the target'


def test_the_inputs_of_another_call_hide_those_of_this_one() -> None:
    old = 'module "m" {\n  source = "./m"\n  bogus  = 1\n}\n\nmodule "n" {\n  source = "./m"\n  surplus = 1\n}\n'
    new = old.replace("bogus ", "named ")
    summary = "Unsupported argument"
    before = told(wrong(3, summary, detail='An argument named "bogus"'))
    other = told(wrong(8, summary, detail='An argument named "surplus"'))
    place = {"line_start": 3, "line_end": 3, "summary": summary}
    hidden = repaired(before, other, new, old=old, **place)
    assert (hidden.fixed, hidden.reason) == (None, f'"{summary}" may hide the target')
    assert repaired(before, other, new.replace("surplus", "surplus "), old=old, **place).fixed is False
    assert repaired(before, told(), new, old=old, **place).fixed


def test_a_duplicate_is_not_mended_by_making_the_other_block_unreadable() -> None:
    old = 'variable "a" {}\nvariable "a" {}\n'
    before = told(wrong(2, "Duplicate variable declaration"))
    for header, summary in (
        ('variables "a"', "Unsupported block type"),
        ('variable "a" "b"', "Extraneous label for variable"),
    ):
        new = f'variable "a" {{}}\n{header} {{}}\n'
        found = repaired(before, told(wrong(2, summary)), new, old=old, summary="Duplicate variable declaration")
        assert found.reason == f'"{summary}" may hide the target'


def test_a_header_that_is_still_wrong_is_still_the_target() -> None:
    (problem,) = [one for one in problems() if one.name == "unsupported-block-type"]
    assert judged(VERSIONS[0], problem, "partial").reason == "the target is still there"


def test_a_renamed_resource_proves_nothing_while_something_else_is_newly_broken() -> None:
    old = 'resource "bad" "b" {\n  x = local.a\n}\nlocals {\n  a = 1\n}\n'
    place = {"line_start": 1, "line_end": 1, "summary": "Invalid resource type"}
    new = old.replace("bad", "good")
    assert repaired(told(wrong(1, "Invalid resource type")), told(), new, old=old, **place).fixed
    found = repaired(
        told(wrong(1, "Invalid resource type")), told(wrong(5, NAMES)), new.replace("1", "var.x"), old=old, **place
    )
    assert found.reason == f'"{NAMES}" may hide the target'


def test_an_old_error_in_a_call_hides_what_newly_needs_its_input() -> None:
    child = 'variable "y" {}\noutput "x" {\n  value = f(1)\n}\n'
    root = 'module "m" {\n  source = "./m"\n  y = local.nope\n}\n'
    in_root = wrong(3, "Reference to undeclared local value")
    before = told(in_root, wrong(3, FUNCTION, file="m/main.tf"))
    place = {"file": "m/main.tf", "line_start": 3, "line_end": 3, "summary": FUNCTION}
    old = {"main.tf": root, "m/main.tf": child}
    assert repaired(before, told(in_root), old | {"m/main.tf": child.replace("f(1)", "1")}, old=old, **place).fixed
    needy = old | {"m/main.tf": child.replace("f(1)", "f(var.y)")}
    assert repaired(before, told(in_root), needy, old=old, **place).reason == f'"{in_root.summary}" may hide the target'


def test_a_module_that_is_no_longer_called_says_nothing_of_what_is_in_it() -> None:
    child = 'module "deep" {\n  source = "../deep"\n}\n'
    deep = 'output "x" {\n  value = f(1)\n}\n'
    old = {"main.tf": 'module "m" { source = "./m" }\n', "m/main.tf": child, "deep/main.tf": deep}
    before = told(wrong(2, FUNCTION, file="deep/main.tf"))
    place = {"file": "deep/main.tf", "summary": FUNCTION}
    assert repaired(before, told(), old | {"m/main.tf": ""}, old=old, **place).reason == "no module calls deep any more"
    assert repaired(before, told(), old | {"deep/main.tf": deep.replace("f(1)", "1")}, old=old, **place).fixed


def test_local_values_in_another_file_are_not_in_the_same_block() -> None:
    old = {"main.tf": "locals {\n  a = var.x\n}\n", "b.tf": "locals {\n  b = 1\n}\n"}
    new = {"main.tf": "locals {\n  a = 1\n}\n", "b.tf": "locals {\n  b = f(1)\n}\n"}
    found = repaired(told(wrong(2, NAMES)), told(wrong(2, FUNCTION, file="b.tf")), new, old=old)
    assert reached(found) == (False, True, True, False)
    assert [error.scope for error in found.introduced] == ["same module"]


def test_what_was_perhaps_meant_is_no_part_of_a_complaint() -> None:
    old = 'output "a" {\n  one = 1\n  two = 2\n}\n'
    summary = "Unsupported argument"
    one, two, again = (
        wrong(line, summary, detail=f'An argument named "{name}" is not expected here. Did you mean "{meant}"?')
        for line, name, meant in ((2, "one", "a"), (3, "two", "b"), (2, "two", "c"))
    )
    found = repaired(told(one, two), told(again), 'output "a" {\n  two = 2\n}\n', old=old, summary=summary)
    assert (found.fixed, found.introduced) == (True, ())


def test_a_complaint_that_nobody_knows_is_given_no_credit() -> None:
    found = repaired(told(wrong(2, NAMES)), told(wrong(6, "Something of a later version")))
    assert found.reason == '"Something of a later version" may hide the target'


def test_a_missing_program_part_hides_what_is_evaluated() -> None:
    plugin = wrong(0, "Could not load plugin", file="", line_start=None, line_end=None)
    assert repaired(told(wrong(2, NAMES)), told(plugin)).reason == '"Could not load plugin" may hide the target'
    assert repaired(told(wrong(2, "Invalid expression")), told(plugin), summary="Invalid expression").fixed


def test_a_repair_can_be_given_as_lines_or_as_a_file() -> None:
    (problem,) = [one for one in problems() if one.name == "unknown-function"]
    repair = problem.repairs["correct"]
    as_file = Repair(repair.file, repair.applied(problem.sources)[repair.file], repair.expected)
    assert as_file.applied(problem.sources) == repair.applied(problem.sources)


@pytest.mark.parametrize("size", [3000])
def test_many_diagnostics_and_blocks_are_no_trouble(size: int) -> None:
    source = "".join(f'output "o{number}" {{\n  value = local.o{number}\n}}\n' for number in range(size))
    before = told(*(wrong(3 * number + 2, NAMES) for number in range(size)))
    found = repaired(before, told(*before.diagnostics[1:]), source, old=source)
    assert found.fixed
    assert found.module_original_errors_remaining == size - 1
