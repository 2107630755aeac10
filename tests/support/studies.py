"""Simulations with many settings: a few of them in every run of the tests, all of them in the slow ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def with_slow(quick: Iterable[Any], slow: Iterable[Any]) -> list[Any]:
    """The settings of a study for `parametrize`, the second ones marked slow."""
    return [*quick, *(pytest.param(*_values(setting), marks=pytest.mark.slow) for setting in slow)]


def _values(setting: Any) -> tuple[Any, ...]:
    return setting if isinstance(setting, tuple) else (setting,)
