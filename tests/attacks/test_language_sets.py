"""No wrong answer of the sets in Rust, to test commands and in Terraform passes as proved, at any level, as any user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attacks import languages_driver
from attacks.languages_driver import SETS
from attacks.rust_types import DOUBTED_SCENES
from attacks.scenes import needs_level, run_as, scenes, told_with_rust
from attacks.terraform_repairs import FIXED_BUT_NOT_STRICTLY, FIXED_BY_DEFINITION
from support.toolchains import needs, terraform, unavailable

DRIVER = Path(languages_driver.__file__)
ALL_LEVELS_OF_FIXED = "fixed, strictly fixed in block, strictly fixed in module"
REACHED = dict.fromkeys(FIXED_BY_DEFINITION, ALL_LEVELS_OF_FIXED) | dict.fromkeys(FIXED_BUT_NOT_STRICTLY, "fixed")
"""What docs/verifying-terraform.md calls fixed, although nobody would call it right."""


def wrong(told: dict[str, Any]) -> list[str]:
    """The attacks that passed and should not, and what else went wrong."""
    passed = [
        f"{name} passes as {trust}"
        for name, trust in told["passed"].items()
        if REACHED.get(name.partition(": ")[2]) != trust
        # of what may be honest as well, a pass is at most unproved
        and not (trust == "unproved" and (not name.startswith("rust: ") or name.split(": ")[1] in DOUBTED_SCENES))
    ]
    return [*passed, *told["failures"], *told["harmed"]]


@needs("gcc")
@needs("g++")
@needs("node")
@pytest.mark.slow
@pytest.mark.parametrize("scene", scenes(always=()))
def test_every_set_holds_at_every_level_as_every_user(
    scene: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    level, user = scene
    needs_level(level)
    if run_as(user, ["test", "-x", str(terraform())]).returncode:
        unavailable(f"no Terraform that {user} can run")
    arguments = [str(DRIVER), level, str(terraform()), *SETS]
    told = told_with_rust(tmp_path_factory, f"languages-{level}-{user}", user, arguments)
    assert wrong(told) == []
    assert {name.partition(": ")[2] for name in told["passed"] if name.startswith("terraform")} == set(REACHED)
    assert told["tried"]["rust"] >= 200
    assert told["tried"]["command"] >= 200
