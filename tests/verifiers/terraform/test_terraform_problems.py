"""Real repairs of real problems reach the levels they deserve, as a real Terraform sees them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import msgspec
import pytest

from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.terraform.copies import ModuleCopyPool
from steelyard.verifiers.terraform.diagnostics import ValidateOutput
from steelyard.verifiers.terraform.levels import repair_levels
from steelyard.verifiers.terraform.program import TERRAFORM_PROGRAM_VARIABLE, find_terraform
from steelyard.verifiers.terraform.tree import ModuleSnapshot
from steelyard.verifiers.terraform.verifier import REPAIR_LEVELS, TerraformVerifier
from support.terraform_problems import ORIGINAL, VERSIONS, Problem, problems, reached, recorded
from support.toolchains import needs_terraform, terraform

QUICK = ("cycle-modules", "module-unsupported-argument", "quoted-reference", "syntax-missing-value")
"""Problems of every stage, one of them a warning, for those who have not the time for all."""
ALL = [(problem, version) for version in VERSIONS for problem in problems(version)]


def case(problem: Problem, name: str) -> Case:
    repair = problem.repairs[name]
    has_lines = repair.line_start is not None and repair.line_end is not None
    return Case(
        id=f"{problem.name}-{name}",
        prompt="Repair it.",
        language="terraform",
        verify=Verify(
            answer=repair.file,
            files=problem.sources,
            lines=(repair.line_start or 0, repair.line_end or 0) if has_lines else None,
            target=problem.target,
        ),
    )


def judged(problem: Problem, names: Sequence[str]) -> list[Finding]:
    async def verify() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        verifier = TerraformVerifier(sandbox)
        try:
            return [
                await verifier.verify(
                    case(problem, name), Answer(text=verbatim_reply(problem.repairs[name].content, "hcl"))
                )
                for name in names
            ]
        finally:
            await verifier.close()
            await sandbox.close()

    return asyncio.run(verify())


def said(problem: Problem, version: str) -> dict[str, ValidateOutput]:
    """What a Terraform says of a problem and its repairs in our copies."""
    asked = find_terraform({TERRAFORM_PROGRAM_VARIABLE: str(terraform(version)), "PATH": "/usr/bin:/bin"})
    tree = ModuleSnapshot(".", {name: text.encode() for name, text in problem.sources.items()})

    async def validate() -> dict[str, ValidateOutput]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        copies = ModuleCopyPool(tree, sandbox, asked)
        try:
            found = {ORIGINAL: (await copies.validated()).output}
            for name, repair in problem.repairs.items():
                changed = {
                    file: text for file, text in repair.applied({**problem.sources}).items() if file == repair.file
                }
                found[name] = (await copies.validated(changed)).output
            return found
        finally:
            await copies.close()
            await sandbox.close()

    return asyncio.run(validate())


def sorted_by_place(found: ValidateOutput) -> list[str]:
    """What was said, without what differs: the order, what was perhaps meant, and what only a refused init lets 0.13 say."""
    texts = (
        msgspec.json.encode(diagnosis).decode()
        for diagnosis in found.diagnostics
        if not diagnosis.detail.startswith("This module is not yet installed")
    )
    return sorted(re.sub(r" Did you mean [^?]*\?|Cycle: [^\"]*", "", text) for text in texts)


@needs_terraform()
@pytest.mark.parametrize("name", QUICK)
def test_a_correct_repair_reaches_every_level_and_a_masking_one_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TERRAFORM_PROGRAM_VARIABLE, str(terraform()))
    (problem,) = [problem for problem in problems() if problem.name == name]
    for repair, finding in zip(names := ("correct", "masking"), judged(problem, names), strict=True):
        assert tuple(finding.levels.values()) == problem.repairs[repair].expected, (repair, finding)
    assert tuple(finding.levels) == REPAIR_LEVELS


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "version"), ALL, ids=[f"{problem.name}-{version}" for problem, version in ALL])
def test_a_copy_hears_what_was_heard_after_init_and_every_repair_reaches_its_level(
    problem: Problem, version: str
) -> None:
    if needs_terraform(version).args[0]:
        pytest.skip(f"Terraform {version} is not installed")
    found = said(problem, version)
    for name, heard in found.items():
        assert sorted_by_place(heard) == sorted_by_place(recorded(problem.name, version)[name]), name
    for name, repair in problem.repairs.items():
        achieved = repair_levels(
            found[ORIGINAL],
            found[name],
            target=problem.target,
            sources_before=problem.sources,
            sources_after=repair.applied(problem.sources),
        )
        assert reached(achieved) == repair.expected, name
