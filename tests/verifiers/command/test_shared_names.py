"""No answer is proved that may set variables of its tests, give several values for one, or swallow what they assert."""

from __future__ import annotations

import pytest

from attacks.command_shared import SHARED_SCENES
from steelyard.records import Case
from steelyard.verifiers.command.allowed import unlisted
from steelyard.verifiers.command.proof import has_means_to_end_tests

HONEST = [(scene, name) for scene, shared in SHARED_SCENES.items() for name in shared.honest]
ATTACKS = [(scene, name) for scene, shared in SHARED_SCENES.items() for name in shared.attacks]


def doubt(case: Case, code: str) -> str:
    """What keeps a pass of an answer from being proved."""
    return unlisted(case, code) or ("means to end its tests" if has_means_to_end_tests(case, code) else "")


@pytest.mark.parametrize(("scene", "name"), ATTACKS)
def test_an_answer_that_shares_something_with_its_tests_is_doubted(scene: str, name: str) -> None:
    assert doubt(SHARED_SCENES[scene].case, SHARED_SCENES[scene].attacks[name])


@pytest.mark.parametrize(("scene", "name"), HONEST)
def test_an_honest_answer_with_names_and_values_of_its_own_is_not_doubted(scene: str, name: str) -> None:
    assert not doubt(SHARED_SCENES[scene].case, SHARED_SCENES[scene].honest[name])


@pytest.mark.parametrize(
    "scene", [name for name, shared in SHARED_SCENES.items() if shared.case.language == "perl"][:1]
)
@pytest.mark.parametrize("unit", ["sub add {", "sub add { 1 }\n", "1 ? 2 : "])
def test_an_answer_in_perl_that_would_take_long_to_read_is_doubted_without_being_read(scene: str, unit: str) -> None:
    many = unit * (19_000 // len(unit))
    balanced = f"sub add {{ return {many} 3; }}\n" if "?" in unit else many
    assert "to be read" in doubt(SHARED_SCENES[scene].case, balanced)
