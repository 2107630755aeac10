"""No answer to a test command gets more than an `unproved` pass by ending its tests or changing what they say."""

from __future__ import annotations

import pytest

from attacks import command_attacks
from attacks.command_attacks import SCENES
from attacks.inside_attacks import FORGERIES
from attacks.level_attacks import EVERY_ATTACK
from attacks.reviewed_attacks import REVIEWED
from attacks.rust_attacks import ATTACKS as RUST_ATTACKS
from attacks.rust_types import SCENES as RUST_TYPES
from attacks.scenes import needs_level, python_of, sampled_scenes, told_once
from attacks.terraform_attacks import ATTACKS as TERRAFORM_ATTACKS
from attacks.terraform_attacks import BOMBS as TERRAFORM_BOMBS
from support.toolchains import needs


@needs("gcc")
@needs("g++")
@needs("node")
@needs("perl")
@pytest.mark.parametrize("scene", sampled_scenes())
def test_a_pass_that_an_answer_could_have_made_itself_is_unproved_and_the_next_honest_answer_passes(
    scene: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    level, user, much = scene
    needs_level(level)
    command = [python_of(user), command_attacks.__file__, level, much]
    told = told_once(tmp_path_factory, f"command-{level}-{user}-{much}", user, command)
    assert told["wrong"] == []
    assert told["tried"] >= len(command_attacks.C_ENDINGS) / (2 if much == "some" else 1)


def test_the_tables_hold_more_than_800_different_attacks() -> None:
    codes = {attack.code for attack in EVERY_ATTACK if attack.labels}
    codes |= {*FORGERIES.values(), *RUST_ATTACKS.values(), *TERRAFORM_ATTACKS.values(), *TERRAFORM_BOMBS.values()}
    codes |= {code for scene in RUST_TYPES.values() for code in scene.attacks.values()}
    codes |= {code for scene in SCENES.values() for code in scene.attacks.values()}
    codes |= {attack.code for attack in REVIEWED.values()}
    assert len(codes) >= 800
