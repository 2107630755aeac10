"""Modules that are imported when something of them is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LateModule:
    """Stands for a module by its name; several threads may be the first to use it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
