"""The attacks are run once at each level and as each user, whichever test asks first."""

from __future__ import annotations

import sys

import pytest

from attacks.scenes import DRIVER, LEVELS, USERS, Told, interpreter, told_once
from support.toolchains import unavailable


@pytest.fixture(scope="session", params=[(level, user) for level in LEVELS for user in USERS], ids=" as ".join)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What became of all attacks at one level; whichever test process comes first runs them."""
    level, user = request.param
    python = interpreter(user)
    if not python:
        unavailable(f"no Python {sys.version_info[0]}.{sys.version_info[1]} with our packages that {user} can read")
    much = "all" if (level, user) == (LEVELS[0], USERS[0]) else "everywhere"
    told = told_once(tmp_path_factory, f"{level}-{user}", user, [python, str(DRIVER), level, much])
    if "missing" in told:
        reason = f"{level} as {user} is not supported here: {told['missing']}"
        # a kernel that forbids a level is a fact; a program that is not installed is a hole
        unavailable(reason) if told["lacks_program"] else pytest.skip(reason)
    return Told(level, user, told)
