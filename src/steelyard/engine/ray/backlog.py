"""Replies that wait for a node which can verify them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from steelyard.engine.ray.wire import Needs
from steelyard.records import Case, Failure, Reply


@dataclass(eq=False, slots=True)
class Piece:
    """One reply on its way through the cluster."""

    number: int
    reply: Reply
    case: Case
    needs: Needs
    size: int
    """Characters of the reply, about."""
    losses: int = 0
    """How many nodes were lost with it."""
    failed: dict[str, Failure] = field(default_factory=dict)
    """What went wrong, by the ids of the nodes it went wrong on."""


Can = Callable[[Piece], bool]
"""Whether a node can verify a piece."""


class Backlog:
    """Pieces in the order they came, but those to one case together: a node that knows its tests need not learn them anew."""

    def __init__(self) -> None:
        self._groups: OrderedDict[Needs, OrderedDict[str, deque[Piece]]] = OrderedDict()
        self._again: deque[Piece] = deque()
        """What went wrong on a node, and waits for another one."""
        self.count = 0
        self.size = 0

    def add(self, piece: Piece) -> None:
        self._counted(piece, 1)
        if piece.failed:
            self._again.append(piece)
        else:
            self._own(piece).append(piece)

    def give_back(self, piece: Piece) -> None:
        """Put a piece that was taken before where it is taken next."""
        self._counted(piece, 1)
        if piece.failed:
            self._again.appendleft(piece)
            return
        self._own(piece).appendleft(piece)
        self._groups[piece.needs].move_to_end(piece.case.id, last=False)
        self._groups.move_to_end(piece.needs, last=False)

    def next(self, can: Can) -> Piece | None:
        """The next piece for somebody who can verify it; it stays where it is."""
        for piece in self._again:
            if can(piece):
                return piece
        for cases in self._groups.values():
            piece = next(iter(cases.values()))[0]
            if can(piece):
                return piece
        return None

    def take(self, piece: Piece) -> None:
        """Take out a piece that was the next."""
        self._counted(piece, -1)
        if piece.failed:
            self._again.remove(piece)
            return
        cases = self._groups[piece.needs]
        own = cases[piece.case.id]
        own.popleft()
        if not own:
            del cases[piece.case.id]
        if not cases:
            del self._groups[piece.needs]

    def hopeless(self, has_hope: Can) -> Iterator[Piece]:
        """Take out all that nobody is left to verify."""
        for piece in [piece for piece in self._again if not has_hope(piece)]:
            self.take(piece)
            yield piece
        for cases in list(self._groups.values()):
            while cases:
                piece = next(iter(cases.values()))[0]
                if has_hope(piece):
                    break
                self.take(piece)
                yield piece

    def _own(self, piece: Piece) -> deque[Piece]:
        """Where the replies to the same case wait."""
        return self._groups.setdefault(piece.needs, OrderedDict()).setdefault(piece.case.id, deque())

    def _counted(self, piece: Piece, sign: int) -> None:
        self.count += sign
        self.size += sign * piece.size
