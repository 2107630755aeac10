"""Parts found by name: ours are registered the same way as other people's."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from steelyard.errors import InputError, nearest


@cache
def names(kind: str) -> frozenset[str]:
    """The names registered for a kind of part, such as `providers`."""
    return frozenset(point.name for point in entry_points(group=f"steelyard.{kind}"))


@cache
def part(kind: str, name: str) -> Any:
    """The part registered under a name; an unknown name is the user's mistake and says what is known."""
    for point in entry_points(group=f"steelyard.{kind}", name=name):
        return point.load()
    raise InputError(f'unknown {kind.removesuffix("s")} "{name}" ({nearest(name, names(kind))})')
