"""No answer to a test command gets more than an `unproved` pass by ending its tests or changing what they say."""

from __future__ import annotations

import asyncio

from attacks.command_attacks import SCENES, attacks_of
from attacks.inside_attacks import FORGERIES
from attacks.level_attacks import EVERY_ATTACK
from attacks.rust_attacks import ATTACKS as RUST_ATTACKS
from attacks.rust_types import SCENES as RUST_TYPES
from attacks.terraform_attacks import ATTACKS as TERRAFORM_ATTACKS
from attacks.terraform_attacks import BOMBS as TERRAFORM_BOMBS
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.command.verifier import CommandVerifier
from support.toolchains import needs


@needs("gcc")
@needs("g++")
@needs("node")
@needs("perl")
def test_a_pass_that_an_answer_could_have_made_itself_is_unproved_and_the_next_honest_answer_passes() -> None:
    wrong: list[str] = []

    async def verify() -> None:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        command = CommandVerifier(sandbox)

        async def judged(case: Case, code: str) -> Finding:
            return await command.verify(case, Answer(text=verbatim_reply(code, case.language)))

        try:
            for name, scene in SCENES.items():
                for attack, code in attacks_of(name).items():
                    finding = await judged(scene.case, code)
                    if is_correct(scene.case, finding) and finding.trust != "unproved":
                        wrong.append(f"{name}: {attack} passes as {finding.trust}")
                    after = await judged(SCENES["sh"].case, SCENES["sh"].honest)
                    if not is_correct(SCENES["sh"].case, after):
                        wrong.append(f"{name}: after {attack}: {after.label}: {after.reason}")
                honest = await judged(scene.case, scene.honest)
                if not is_correct(scene.case, honest) or honest.trust != "in-process":
                    wrong.append(f"{name}: the honest answer: {honest.label}, {honest.trust}: {honest.reason}")
        finally:
            await sandbox.close()

    asyncio.run(verify())
    assert wrong == []


def test_the_tables_hold_more_than_600_different_attacks() -> None:
    codes = {attack.code for attack in EVERY_ATTACK if attack.labels}
    codes |= {*FORGERIES.values(), *RUST_ATTACKS.values(), *TERRAFORM_ATTACKS.values(), *TERRAFORM_BOMBS.values()}
    codes |= {code for scene in RUST_TYPES.values() for code in scene.attacks.values()}
    codes |= {code for scene in SCENES.values() for code in scene.attacks.values()}
    assert len(codes) >= 600
