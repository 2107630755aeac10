"""Wrong Rust answers whose types would make the tests pass are failed or flagged; the honest one beside them passes."""

from __future__ import annotations

import asyncio

import pytest

from attacks.rust_types import SCENES, scene_case
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.rust.verifier import RustVerifier
from support.toolchains import needs

pytestmark = needs("rustc")


@pytest.fixture(scope="module")
def findings() -> dict[tuple[str, str], Finding]:
    answers = {(name, attack): code for name, scene in SCENES.items() for attack, code in scene.attacks.items()}
    answers |= {(name, "honest"): scene.honest for name, scene in SCENES.items()}

    async def verify() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        rust = RustVerifier(sandbox)
        try:
            texts = [(scene_case(name), verbatim_reply(code, "rust")) for (name, _), code in answers.items()]
            return await asyncio.gather(*(rust.verify(case, Answer(text=text)) for case, text in texts))
        finally:
            await sandbox.close()

    return dict(zip(answers, asyncio.run(verify()), strict=True))


@pytest.mark.parametrize("name", SCENES)
def test_only_the_honest_answer_passes(findings: dict[tuple[str, str], Finding], name: str) -> None:
    for (scene, attack), finding in findings.items():
        if scene == name:
            passed = is_correct(scene_case(name), finding)
            assert passed == (attack == "honest"), (attack, finding.label, finding.reason)
