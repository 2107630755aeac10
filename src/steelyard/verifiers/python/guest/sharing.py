"""Lists, dicts and the like that the tests and the answer both hold: copies of one object, which may come to differ.

In one process they would be one object. Where a copy is changed after it has crossed, and the other side still holds its own,
only a run beside the answer can decide. Each side notes what it must know for that.
"""

from __future__ import annotations

import gc
import sys

from steelyard.verifiers.python.guest.values import CONTAINER_TAGS, contents, is_unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

IS_KEPT, IS_CHANGED = 1, 2
"""What the answer's side says with a reply: it keeps something that crossed, and it changed something that it had kept."""
MAX_WALKED_CONTAINERS = 200
MAX_KEPT_CONTAINERS = 200
MAX_SEARCHED_BLOCKS = 20_000_000
"""Blocks of memory that are searched for references in one attempt: about half a second of CPU time, the same in every run."""


class KeptContainers:
    """Containers that crossed, with what they held then."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(self, containers: Iterable[Any]) -> None:
        """Keep these, as they are now."""
        known = {id(container) for container, _ in self._kept}
        self._kept += [(one, contents(one)) for one in containers if id(one) not in known]
        del self._kept[MAX_KEPT_CONTAINERS:]

    def take_changes(self) -> bool:
        """Whether one holds something else than when this was last asked."""
        changed = [place for place, (one, before) in enumerate(self._kept) if not is_unchanged(one, before)]
        for place in changed:
            container = self._kept[place][0]
            self._kept[place] = (container, contents(container))
        return bool(changed)

    def is_any_held(self) -> bool:
        """Whether someone else than us holds one."""
        return any(count > _UNHELD for count in self.reference_counts())

    def reference_counts(self) -> list[int]:
        """How many references there are to each."""
        return [sys.getrefcount(pair[0]) for pair in self._kept]


def _unheld_count() -> int:
    kept = KeptContainers()
    kept.add([[]])
    return kept.reference_counts()[0]


_UNHELD = _unheld_count()
"""The references to a container that only we hold."""


class ReferrerSearch:
    """Finds out whether an answer keeps what has crossed, as long as that does not take too long."""

    def __init__(self) -> None:
        self._blocks_before = sys.getallocatedblocks()
        self._blocks_left = MAX_SEARCHED_BLOCKS

    def kept(self, values: Iterable[Any], ours: Iterable[Any]) -> list[Any]:
        """The containers in these values, if one of them is in an object that is neither one of them nor ours."""
        containers, passed = _containers_in(values)
        if not containers or self._blocks_left < 0:
            return []
        self._blocks_left -= max(sys.getallocatedblocks() - self._blocks_before, 0)
        known = {id(containers), id(passed), *map(id, containers), *map(id, passed), *map(id, ours)}
        is_kept = any(id(one) not in known for one in gc.get_referrers(*containers))
        return containers if is_kept else []


def _containers_in(values: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """The first containers in values, and the tuples on the way to them."""
    containers: list[Any] = []
    tuples: list[Any] = []
    seen: set[int] = set()
    waiting = list(values)
    while waiting and len(containers) < MAX_WALKED_CONTAINERS:
        value = waiting.pop()
        if type(value) is tuple:
            tuples.append(value)
            waiting += value[:MAX_WALKED_CONTAINERS]
        elif type(value) in CONTAINER_TAGS and id(value) not in seen:
            seen.add(id(value))
            containers.append(value)
            held = contents(value)
            waiting += held[:MAX_WALKED_CONTAINERS] if type(held) is list else []
    return containers, tuples
