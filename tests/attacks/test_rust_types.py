"""Wrong Rust answers whose types would make the tests pass are failed or flagged; the honest one beside them passes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from itertools import islice

import pytest

from attacks.rust_more_types import READS_MEMORY
from attacks.rust_types import DOUBTED_SCENES, QUICK_SCENES, SCENES, SELF_COMPARING_SCENES, scene_case
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.rust.verifier import RustVerifier
from support.toolchains import needs

pytestmark = needs("rustc")
Findings = dict[tuple[str, str], Finding]
QUICK_ATTACKS = 3
"""How many attacks of a scene are tried in every run of the tests; `make test-slow` tries all."""


def judged(names: Collection[str], most: int | None = None) -> Findings:
    """What becomes of every answer of these scenes, or of the first of each, all of them side by side."""
    answers = {(name, attack): code for name in names for attack, code in islice(SCENES[name].attacks.items(), most)}
    answers |= {(name, "honest"): SCENES[name].honest for name in names}
    answers["texts", "reads memory"] = READS_MEMORY

    async def verify() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        rust = RustVerifier(sandbox)
        try:
            texts = [(scene_case(name), verbatim_reply(code, "rust")) for (name, _), code in answers.items()]
            return await asyncio.gather(*(rust.verify(case, Answer(text=text)) for case, text in texts))
        finally:
            await sandbox.close()

    return dict(zip(answers, asyncio.run(verify()), strict=True))


@pytest.fixture(scope="module")
def findings() -> Findings:
    return judged(QUICK_SCENES, QUICK_ATTACKS)


def only_the_honest_answer_passes(findings: Findings, name: str) -> None:
    for (scene, attack), finding in findings.items():
        if scene == name and attack != "reads memory":
            passed = is_correct(scene_case(name), finding)
            if attack == "honest":
                trust = "unproved" if name in SELF_COMPARING_SCENES else "in-process"
                assert (passed, finding.trust) == (True, trust), (name, finding.label, finding.reason)
                continue
            # of what may be honest as well, a pass is at most unproved
            is_proved = finding.trust != "unproved" or name not in DOUBTED_SCENES
            assert not (passed and is_proved), (name, attack, finding.label, finding.reason)


@pytest.mark.parametrize("name", sorted(QUICK_SCENES))
def test_only_the_honest_answer_passes(findings: Findings, name: str) -> None:
    only_the_honest_answer_passes(findings, name)


def test_a_pass_of_an_answer_with_unsafe_is_unproved(findings: Findings) -> None:
    assert findings["texts", "honest"].trust == "in-process"
    # whether it finds anything depends on where the compiler puts constants
    assert findings["texts", "reads memory"].trust == "unproved"
