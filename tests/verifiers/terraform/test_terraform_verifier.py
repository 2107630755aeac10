"""Terraform answers are put into their module and validated, and what they reach is told level by level."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steelyard.analysis.scoring import is_correct
from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Finding, Target, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.terraform.program import TERRAFORM_PROGRAM_VARIABLE
from steelyard.verifiers.terraform.verifier import REPAIR_LEVELS, TerraformVerifier
from support.toolchains import needs_terraform, terraform

NET = 'variable "size" {\n  type = number\n}\n\noutput "size" {\n  value = var.size\n}\n'
CALL = Case(
    id="call",
    prompt="Call the module in ./net with a size of 3, and give its size as the output o.",
    language="terraform",
    reference='module "net" {\n  source = "./net"\n  size = 3\n}\n\noutput "o" {\n  value = module.net.size\n}\n',
    verify=Verify(files={"net/main.tf": NET}),
)
BROKEN = """\
variable "size" {
  default = 3
}

output "o" {
  value = var.sise
}

output "p" {
  value = var.size
}
"""
REPAIR = Case(
    id="repair",
    prompt="Repair the output o.",
    verify=Verify(
        kind="terraform",
        files={"main.tf": BROKEN},
        lines=(5, 7),
        target=Target(summary="Reference to undeclared input variable", line_start=6, line_end=6),
    ),
)
WRONG = 'output "o" {\n  value = var.sise\n}\n'
RIGHT = 'output "o" {\n  value = var.size\n}\n'


def judged(pairs: list[tuple[Case, str]]) -> list[Finding]:
    async def verify() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        verifier = TerraformVerifier(sandbox)
        turns = asyncio.Semaphore(verifier.at_once)

        async def one(case: Case, text: str) -> Finding:
            async with turns:
                return await verifier.verify(case, Answer(text=text))

        try:
            return list(await asyncio.gather(*(one(*pair) for pair in pairs)))
        finally:
            await verifier.close()
            await sandbox.close()

    return asyncio.run(verify())


def changed(case: Case, **verify: Any) -> Case:
    return replace(case, verify=replace(case.verify, **verify))


STATES = """\
data "terraform_remote_state" "dns" {
  backend = "local"
  bogus   = 1
}

data "terraform_remote_state" "other" {
  config = {}
}
"""
HIDDEN = Case(
    id="hidden",
    prompt="Repair the state dns.",
    verify=Verify(
        kind="terraform",
        files={"main.tf": STATES},
        lines=(1, 4),
        target=Target(summary="Unsupported argument", line_start=3, line_end=3),
    ),
)
"""The state `other` has an error as well, so Terraform skips every block that refers to it."""
NEEDS_OTHER = """\
data "terraform_remote_state" "dns" {
  backend  = "local"
  config   = { path = data.terraform_remote_state.other.outputs["path"].name }
  defaults = { zone = "${data.terraform_remote_state.other.workspace}-a" }
}
"""

ANSWERS: dict[str, tuple[Case, str]] = {
    "a call": (CALL, f"Here you are:\n\n```hcl\n{CALL.reference}```\nIt calls the module."),
    "a call with a mistake": (CALL, f"```terraform\n{CALL.reference.replace('size = 3', 'speed = 3')}```"),
    "a call cut short": (CALL, "<answer>" + CALL.reference[:40]),
    "a repair": (REPAIR, f"<fixed_code><![CDATA[\n{RIGHT}]]></fixed_code>"),
    "a repair, as it was recorded": (REPAIR, verbatim_reply(RIGHT, "hcl")),
    "a repair of some lines": (changed(REPAIR, lines=(6, 6)), "  value = var.size\n"),
    "a repair that renames": (REPAIR, RIGHT.replace('"o"', '"q"')),
    "hidden, and gone": (HIDDEN, NEEDS_OTHER),
    "hidden, and still there": (HIDDEN, NEEDS_OTHER.replace("defaults ", "bogus = 1\n  defaults ")),
    "hidden, and renamed": (HIDDEN, NEEDS_OTHER.replace('"dns"', '"names"')),
    "hidden twice": (HIDDEN, NEEDS_OTHER.replace('"local"', "local.nothing")),
    "hidden, and about a value": (
        changed(
            HIDDEN,
            files={"main.tf": STATES.replace("bogus   = 1", "config = { path = f(1) }")},
            target=Target(summary="Call to unknown function", line_start=3, line_end=3),
        ),
        NEEDS_OTHER,
    ),
    "a repair that breaks another": (REPAIR, RIGHT.replace("size", "size\n  of = 3")),
}


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, Finding]]:
    before = os.environ.get(TERRAFORM_PROGRAM_VARIABLE)
    os.environ[TERRAFORM_PROGRAM_VARIABLE] = str(terraform())
    yield dict(zip(ANSWERS, judged(list(ANSWERS.values())), strict=True))
    os.environ.pop(TERRAFORM_PROGRAM_VARIABLE)
    os.environ.update({TERRAFORM_PROGRAM_VARIABLE: before} if before else {})


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Terraform that has nothing to say."""
    path = tmp_path / "bin" / "terraform"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n[ $1 = version ] && echo Terraform v1.9.8\n")
    path.chmod(0o755)
    monkeypatch.setenv(TERRAFORM_PROGRAM_VARIABLE, str(path))
    return path


# ---- with a real Terraform


@needs_terraform()
def test_an_answer_that_validates_in_its_module_is_plausible(found: dict[str, Finding]) -> None:
    finding = found["a call"]
    assert is_correct(CALL, finding)
    assert (finding.compiled, finding.passed, finding.levels) == (True, True, {"plausible": True})
    assert (finding.label, finding.reason, finding.diagnostics) == ("", "", ())
    assert finding.code == CALL.reference
    assert finding.trust == "isolated"


@needs_terraform()
def test_an_answer_that_does_not_validate_is_told_what_is_wrong_and_where(found: dict[str, Finding]) -> None:
    finding = found["a call with a mistake"]
    assert (finding.compiled, finding.passed, finding.levels) == (True, False, {"plausible": False})
    assert finding.label == "not valid"
    assert finding.reason.startswith('main.tf:1: Missing required argument: The argument "size" is required')
    assert [(one.level, one.spans[0].file, one.spans[0].line_start) for one in finding.diagnostics] == [
        ("error", "main.tf", 1),
        ("error", "main.tf", 3),
    ]


@needs_terraform()
def test_an_answer_whose_syntax_is_broken_does_not_compile(found: dict[str, Finding]) -> None:
    finding = found["a call cut short"]
    assert (finding.compiled, finding.passed, finding.label) == (False, None, "does not compile")
    assert not is_correct(CALL, finding)


@needs_terraform()
@pytest.mark.parametrize("name", ["a repair", "a repair, as it was recorded"])
def test_a_repair_that_does_all_it_should_reaches_every_level(found: dict[str, Finding], name: str) -> None:
    assert found[name].levels == dict.fromkeys(REPAIR_LEVELS, True)
    assert is_correct(REPAIR, found[name])
    assert found[name].code == RIGHT


@needs_terraform()
def test_lines_that_are_no_block_are_taken_for_what_they_are(found: dict[str, Finding]) -> None:
    finding = found["a repair of some lines"]
    assert (finding.code, finding.levels) == ("  value = var.size\n", dict.fromkeys(REPAIR_LEVELS, True))


@needs_terraform()
def test_a_repair_that_makes_away_with_the_block_is_plausible_but_nothing_is_fixed(found: dict[str, Finding]) -> None:
    finding = found["a repair that renames"]
    assert finding.passed
    assert finding.levels == {**dict.fromkeys(REPAIR_LEVELS, False), "plausible": True}
    assert [one.message for one in finding.diagnostics if one.level == "note"] == ["not fixed: output.o is gone"]


@needs_terraform()
def test_what_a_repair_breaks_is_listed_with_how_far_it_is_away(found: dict[str, Finding]) -> None:
    finding = found["a repair that breaks another"]
    assert finding.levels["plausible"] is False
    assert "new, same block: Unsupported argument" in [
        one.message for one in finding.diagnostics if one.level == "note"
    ]


@needs_terraform()
def test_whether_a_target_is_fixed_that_an_old_error_hides_is_proved_in_a_smaller_module_or_unknown(
    found: dict[str, Finding],
) -> None:
    _, fixed, in_block, in_module = REPAIR_LEVELS
    assert found["hidden, and gone"].levels == {"plausible": False, fixed: True}
    for name in ("hidden, and still there", "hidden, and renamed"):
        assert [found[name].levels[level] for level in (fixed, in_block, in_module)] == [False] * 3
    for name in ("hidden twice", "hidden, and about a value"):
        assert found[name].levels == {"plausible": False}
        why = 'perhaps not fixed: "Missing required argument" may hide the target'
        assert found[name].diagnostics[-1].message == why


# ---- without


@pytest.mark.parametrize(
    ("case", "text", "label"),
    [
        (CALL, "", "no code"),
        (CALL, "I would rather not say.", "no code"),
        (REPAIR, "", "empty repair"),
        (REPAIR, "I cannot repair that.\n\nAsk someone else.", "empty repair"),
        (REPAIR, "<think>hm</think>", "empty repair"),
        (REPAIR, "```hcl\n\n```", "empty repair"),
        (REPAIR, f"```hcl\n{WRONG}```", "unchanged"),
        (REPAIR, WRONG.replace("{", "{  "), "unchanged"),
        (changed(REPAIR, lines=None), f"```hcl\n{BROKEN}\n\n```", "unchanged"),
    ],
)
def test_a_repair_that_is_none_has_failed_unasked(silent: Path, case: Case, text: str, label: str) -> None:
    finding = judged([(case, text)])[0]
    assert finding.label == label
    assert not is_correct(case, finding)
    expected = REPAIR_LEVELS if case.verify.target else REPAIR_LEVELS[:1]
    assert finding.levels == dict.fromkeys(expected, False)


def test_a_terraform_that_says_nothing_has_said_nothing_about_the_answer(silent: Path) -> None:
    with pytest.raises(VerifierError, match="terraform validate gave no answer"):
        judged([(CALL, CALL.reference)])


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (changed(CALL, answer="main.txt"), r'"main\.txt" is not a file that Terraform reads; call it main\.tf'),
        (changed(CALL, files={"../net/main.tf": NET}), "not a plain path below the module's folder"),
        (changed(CALL, files={"/etc/main.tf": NET}), "not a plain path below the module's folder"),
        (changed(CALL, files={"net": "", "net/main.tf": NET}), '"net" is a file, so "net/main.tf" cannot be in it'),
        (changed(REPAIR, files={}), "lines without the file to be repaired; add it to files as main.tf"),
        (changed(REPAIR, files={}, lines=None), "target without the file to be repaired"),
        (changed(REPAIR, lines=(5, 70)), "of main.tf: lines 5 to 70 cannot be replaced in a file of 11 lines"),
        (changed(REPAIR, lines=(7, 5)), "of main.tf: lines 7 to 5 are not a range"),
        (
            changed(REPAIR, lines=(7,)),
            "lines must be the first and the last line of a part of main.tf: not enough values",
        ),
        (changed(REPAIR, syntax_only=True), "a target needs more than the syntax"),
    ],
)
def test_a_case_that_cannot_be_verified_says_so_before_anything_is_paid_for(
    silent: Path, case: Case, said: str
) -> None:
    with pytest.raises(VerifierError, match=said):
        TerraformVerifier(ZygoteSandbox(strongest_isolation(allow_weak=True))).check(case)


def test_without_terraform_a_case_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TERRAFORM_PROGRAM_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    verifier = TerraformVerifier(ZygoteSandbox(strongest_isolation(allow_weak=True)))
    with pytest.raises(VerifierError, match="no Terraform here; install OpenTofu"):
        verifier.check(CALL)
    assert verifier.version.startswith("terraform 3, ")


def test_the_verifiers_version_names_the_terraform_it_asks(silent: Path) -> None:
    assert (
        TerraformVerifier(ZygoteSandbox(strongest_isolation(allow_weak=True))).version == "terraform 3, terraform 1.9.8"
    )


def test_syntax_alone_is_judged_without_terraform_and_never_called_plausible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TERRAFORM_PROGRAM_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    case = changed(CALL, syntax_only=True)
    nonsense = 'output "o" {\n  value = var.nothing_like_it\n}\n'
    fine, broken, none = judged([(case, nonsense), (case, nonsense.replace("var", "= var")), (case, "")])
    assert (fine.compiled, fine.passed, fine.levels) == (True, None, {"syntax": True})
    assert (broken.compiled, broken.levels, broken.label) == (False, {"syntax": False}, "does not compile")
    assert "line 2" in broken.reason
    assert none.levels == {"syntax": False}
