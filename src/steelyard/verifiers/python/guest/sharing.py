"""Lists, dicts and the like that the tests and the answer both hold: copies of one object, which may come to differ.

In one process they would be one object. Where a copy is changed after it has crossed, and the other side still holds its own,
only a run beside the answer can decide. Each side notes what it must know for that.
"""

from __future__ import annotations

import builtins
import gc
import sys

from steelyard.verifiers.python.guest.values import CONTAINER_TAGS, JSON_SCALARS, contents, is_unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

IS_KEPT, IS_CHANGED = 1, 2
"""What the answer's side says with a reply: it keeps something that crossed, and it changed something that it had kept."""
NESTING_TAGS = frozenset({"C", "O", "Q", "c", "d", "r", "s", "t", "z"})
LEAF_TAGS = frozenset({"F", "b", "date", "delta", "i"})
"""How data is marked on its way, with more data in it or without."""
STEERING_EXCEPTIONS = (AssertionError, StopIteration, StopAsyncIteration)
"""Exceptions that mean something to tests and loops, besides that a call failed."""
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


class TrafficWatch:
    """Knows whether nothing but copies of data crossed between tests and answer, as seen by the side of the tests.

    It takes no word of the answer's for that: what came is looked at, and so is what the tests still hold of it.
    """

    def __init__(self) -> None:
        self.is_data_only = True
        """Whether functions were called with data and returned data, and no list or the like of theirs was kept until the next call."""
        self.has_given_containers = False
        """Whether a function was given a list or the like, which it might have changed."""
        self._received: list[Any] = []

    def note_request(self, deed: str, given: list[Any], by_name: list[Any], containers: list[Any]) -> None:
        """Note what the tests ask for."""
        self.has_given_containers |= bool(containers)
        is_data = deed == "call" and all(map(is_copied_data, given[1:]))
        self.is_data_only &= is_data and all(is_copied_data(value) for _, value in by_name)
        self.is_data_only = self.is_data_only and not self._is_any_held()

    def note_reply(self, outcome: str, held: Any, more: Any, containers: list[Any], given_count: int) -> None:
        """Note what the answer sent; more than that is what it changed, or that classes of its own were left out.

        The first containers are those that were given: of these the tests may hold what the answer returned.
        """
        is_data = is_copied_data(held) if outcome == "ok" else outcome == "raised" and _is_plain_exception(held)
        self.is_data_only &= is_data and not more
        if self.is_data_only:
            self._received = containers if _refers_to_first(held, given_count) else containers[given_count:]

    def _is_any_held(self) -> bool:
        """Whether tests still hold what the last call returned; what holds something stands before it."""
        self._received.reverse()
        while self._received:
            if sys.getrefcount(self._received[-1]) > _UNHELD_ITEM:
                return True
            self._received.pop()
        return False


def _unheld_item_count() -> int:
    items: list[Any] = [[]]
    return sys.getrefcount(items[-1])


_UNHELD_ITEM = _unheld_item_count()
"""The references to a container that only a list of ours holds."""


def is_copied_data(held: Any) -> bool:
    """Whether an encoded value is data of which a copy is as good as the original, on either side."""
    if type(held) is list:
        return JSON_SCALARS.issuperset(map(type, held)) or all(map(is_copied_data, held))
    if type(held) is not dict:
        return True
    ((tag, inner),) = held.items()
    if tag in NESTING_TAGS:
        return is_copied_data(inner)
    if tag == "f":
        return bool(inner != "nan")  # it equals itself only as long as it is the same object
    return tag in LEAF_TAGS or tag == "="


def _refers_to_first(held: Any, count: int) -> bool:
    """Whether an encoded value holds one of the first containers that both sides know."""
    if type(held) is list:
        return not JSON_SCALARS.issuperset(map(type, held)) and any(_refers_to_first(item, count) for item in held)
    if type(held) is not dict:
        return False
    ((tag, inner),) = held.items()
    return inner < count if tag == "=" else _refers_to_first(inner, count)


def _is_plain_exception(held: Any) -> bool:
    """Whether this is an exception of a class of the language that ends nothing but the call, made of data."""
    if type(held) is not dict or held.keys() != {"x"}:
        return False
    kind, arguments, state, *_ = held["x"]
    found = getattr(builtins, str(kind.get("X")), None)
    is_plain = isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, STEERING_EXCEPTIONS)
    return is_plain and is_copied_data(arguments) and all(is_copied_data(value) for _, value in state)


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
