"""No answer to a test command gets more than an `unproved` pass by ending its tests or changing what they say."""

from __future__ import annotations

import asyncio

import pytest

from attacks import command_attacks
from attacks.command_attacks import SCENES, command_case
from attacks.command_tricks import C_TRICKS, CPP_TRICKS, NODE_TRICKS, SH_TRICKS
from attacks.inside_attacks import FORGERIES
from attacks.level_attacks import EVERY_ATTACK
from attacks.reviewed_attacks import LOOKS, REVIEWED, lazy_answer
from attacks.rust_attacks import ATTACKS as RUST_ATTACKS
from attacks.rust_types import SCENES as RUST_TYPES
from attacks.scenes import needs_level, python_of, scenes, told_once
from attacks.terraform_attacks import ATTACKS as TERRAFORM_ATTACKS
from attacks.terraform_attacks import BOMBS as TERRAFORM_BOMBS
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.command.verifier import CommandVerifier
from support.toolchains import needs

BASH_TEST = '. ./answer.sh\n[[ "$(add 1 2)" == 3 ]] || false\n'
METHODS_TEST = (
    'import assert from "node:assert";\nimport { add } from "./answer.mjs";\nconst l = add(1, 2);\n'
    "assert.ok(l.includes(1));\nassert.ok(l.every((n) => n > 0));\nassert.strictEqual(l.length, 2);\n"
)


@needs("gcc")
@needs("g++")
@needs("node")
@needs("perl")
@pytest.mark.parametrize("scene", scenes())
def test_a_pass_that_an_answer_could_have_made_itself_is_unproved_and_the_next_honest_answer_passes(
    scene: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    level, user = scene
    needs_level(level)
    command = [python_of(user), command_attacks.__file__, level]
    told = told_once(tmp_path_factory, f"command-{level}-{user}", user, command)
    assert told["wrong"] == []
    assert told["tried"] >= len(command_attacks.C_ENDINGS)


@needs("gcc")
@needs("g++")
@needs("node")
@pytest.mark.slow
def test_no_trick_against_a_test_command_passes_as_proved() -> None:
    bash = command_case("bash", "answer.sh", "bash test.sh", {"test.sh": BASH_TEST})
    tried = [(SCENES[name].case, code) for name in ("C with a secret", "C with TAP") for code in C_TRICKS.values()]
    tried += [(SCENES["C++"].case, code) for code in CPP_TRICKS.values()]
    tried += [(SCENES[name].case, code) for name in ("node", "node with printed TAP") for code in NODE_TRICKS.values()]
    tried += [(case, code) for case in (SCENES["sh"].case, bash) for code in SH_TRICKS.values()]
    methods = command_case("javascript", "answer.mjs", "node test.mjs", {"test.mjs": METHODS_TEST})
    tried += [(methods, code) for name, code in NODE_TRICKS.items() if "methods" in name]

    async def verify() -> list[tuple[str, str]]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        command = CommandVerifier(sandbox)
        passed: list[tuple[str, str]] = []
        try:
            for case, code in tried:
                finding = await command.verify(case, Answer(text=verbatim_reply(code, case.language)))
                if is_correct(case, finding) and finding.trust != "unproved":
                    passed.append((case.id, code))
        finally:
            await sandbox.close()
        return passed

    assert asyncio.run(verify()) == []


def test_the_tables_hold_more_than_800_different_attacks() -> None:
    codes = {attack.code for attack in EVERY_ATTACK if attack.labels}
    codes |= {*FORGERIES.values(), *RUST_ATTACKS.values(), *TERRAFORM_ATTACKS.values(), *TERRAFORM_BOMBS.values()}
    codes |= {code for scene in RUST_TYPES.values() for code in scene.attacks.values()}
    codes |= {code for scene in SCENES.values() for code in scene.attacks.values()}
    codes |= {*(attack.code for attack in REVIEWED.values()), *map(lazy_answer, LOOKS)}
    assert len(codes) >= 800
