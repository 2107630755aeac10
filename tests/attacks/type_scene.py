"""A Rust case that wrong answers with clever types attack."""

from __future__ import annotations

from typing import NamedTuple


class TypeScene(NamedTuple):
    """A case with an honest answer, and wrong ones."""

    prompt: str
    tests: str
    honest: str
    attacks: dict[str, str]
