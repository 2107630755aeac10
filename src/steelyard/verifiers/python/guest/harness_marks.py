"""What builtins, unittest and pytest are before an answer is loaded, and what of them is something else afterwards."""

from __future__ import annotations

import builtins
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MARKED_PACKAGES = frozenset({"builtins", "unittest", "_pytest", "pytest", "pluggy"})


class HarnessMarks:
    """The functions and classes by which tests are run, as they are now."""

    def __init__(self) -> None:
        self._marked = list(_marked())

    def first_change(self) -> str:
        """The name of something that is not as it was; empty if all is."""
        for holder, name, before in self._marked:
            if vars(holder).get(name) is not before:
                return f"{getattr(holder, '__name__', type(holder).__name__)}.{name}"
        return ""


def _marked() -> Iterator[tuple[Any, str, Any]]:
    modules: list[Any] = [module for name, module in sys.modules.items() if name.partition(".")[0] in MARKED_PACKAGES]
    for module in modules:
        if not isinstance(module, types.ModuleType):
            continue
        for name, value in vars(module).items():
            if callable(value):
                yield module, name, value
            if isinstance(value, type) and module is not builtins and value.__module__ == module.__name__:
                yield from ((value, inner, held) for inner, held in vars(value).items() if callable(held))
