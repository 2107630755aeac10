"""The attacks are run once at each level and as each user, whichever test asks first."""

from __future__ import annotations

import pytest

from attacks.scenes import DRIVER, LEVELS, USERS, Told, python_of, told_once
from support.toolchains import unavailable

FIRST_SCENE = (LEVELS[0], USERS[0])
"""Where each attack is tried once in every run of the tests; in the other scenes, some are."""
QUICK_SCENES = {(level, user) for level in LEVELS for user in (USERS if level == LEVELS[0] else USERS[-1:])}
"""Every level, and the strongest as every user; `make test-slow` tries the others."""
SCENES = [
    pytest.param(each, id=" as ".join(each), marks=() if each in QUICK_SCENES else pytest.mark.slow)
    for each in ((level, user) for level in LEVELS for user in USERS)
]


@pytest.fixture(scope="session", params=SCENES)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What became of the attacks that concern one level; whichever test process comes first runs them."""
    level, user = request.param
    return attacked(tmp_path_factory, level, user, "once" if request.param == FIRST_SCENE else "some")


@pytest.fixture(
    scope="session",
    params=[(level, user) for level in LEVELS for user in USERS],
    ids=" as ".join,
)
def whole_scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What became of every attack, in every style of tests; where only the verdict is protected, of those that concern every level."""
    level, user = request.param
    return attacked(tmp_path_factory, level, user, "everywhere" if level == LEVELS[-1] else "all")


def attacked(factory: pytest.TempPathFactory, level: str, user: str, much: str) -> Told:
    python = python_of(user)
    told = told_once(factory, f"{level}-{user}-{much}", user, [python, str(DRIVER), level, much])
    if "missing" in told:
        reason = f"{level} as {user} is not supported here: {told['missing']}"
        # a kernel that forbids a level is a fact; a program that is not installed is a hole
        unavailable(reason) if told["lacks_program"] else pytest.skip(reason)
    return Told(level, user, told)
