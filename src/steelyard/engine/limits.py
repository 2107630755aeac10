"""How long an answer may run where its case names no limit: ten times what the reference of the case takes.

An answer is first run under the least limit. Only one that reaches it has the reference timed, and is run once more if the
limit is more than that; so the references of most cases are never timed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.engine.sharing import WitnessSharing
from steelyard.records import Case, CaseLimit, digest
from steelyard.store.files import now

LIMIT_STEPS = (2, 5, 10, 20, 60)
"""CPU seconds to which limits are rounded up, so that a machine that is a little slower comes to the same."""
TIMES_REFERENCE = 10
FUNCTION_SECONDS = 10
"""CPU seconds for a Python function without a reference."""
LEAST_COMPILE_SECONDS = 20
"""CPU seconds for compiling: how long that takes is up to the compiler more than to the answer, so few references are timed for it."""
MAX_KEPT_CASES = 1000
"""About as many cases as verifiers keep the tests of."""
TIMED_KINDS = frozenset({"command", "python", "rust"})
"""The kinds of cases whose answers are programs that may never end."""


class ReferenceTime(NamedTuple):
    """The CPU seconds of the longest step of verifying a reference."""

    running: float
    compiling: float


ReferenceTimer = Callable[[Case], Awaitable[ReferenceTime | None]]
"""Times the reference of a case; None where it does not pass."""


def follows_reference(case: Case) -> bool:
    """Whether the limits of a case are not named by it."""
    return case.follows_reference and case.kind in TIMED_KINDS


def longest(case: Case) -> Case:
    """The case with the most that limits which follow a reference may come to, for what is known to be right."""
    return _with_limits(case, max(LIMIT_STEPS[-1], case.timeout_secs)) if follows_reference(case) else case


def limit_reader(found: Sequence[CaseLimit]) -> Callable[[Case], float | None]:
    """What tells for each case how many CPU seconds an answer could run, given the limits that a run has found."""
    known = {limit.case: limit for limit in reversed(found)}

    def seconds(case: Case) -> float | None:
        if case.kind not in TIMED_KINDS:
            return None
        if not follows_reference(case):
            return case.timeout_secs
        if not case.reference:
            return _seconds_without_reference(case)
        limit = known.get(case.id)
        return limit.seconds if limit is not None and limit.of == _identity(case) else None

    return seconds


class CaseLimits:
    """The limits of the cases of a run; one that was found holds for the rest of it."""

    def __init__(self, time_reference: ReferenceTimer, share: WitnessSharing) -> None:
        self._time = time_reference
        self._share = share
        self._known: dict[str, CaseLimit] = {}
        """By the id of a case."""
        self._limited: dict[str, tuple[Case, Case]] = {}
        """Some cases beside those with their limits, by id."""
        self._turns: dict[str, asyncio.Lock] = {}
        self._new: list[CaseLimit] = []

    def known(self, case: Case) -> CaseLimit | None:
        """What was found out about a case with these tests and this reference, if anything was."""
        limit = self._known.get(case.id)
        return limit if limit is not None and limit.of == _identity(case) else None

    def learn(self, limit: CaseLimit | None, *, is_new: bool = False) -> None:
        """Use a limit from now on; of several that are new at the same time the first one counts."""
        if limit is None or (is_new and limit.of == getattr(self._known.get(limit.case), "of", None)):
            return
        if self._known.get(limit.case) != limit:
            self._known[limit.case] = limit
            self._limited.pop(limit.case, None)
        if is_new:
            self._new.append(limit)

    def new(self) -> tuple[CaseLimit, ...]:
        """Those that were found since the last call, in order."""
        new, self._new = tuple(self._new), []
        return new

    def limited(self, case: Case) -> Case:
        """The case with the limits that hold for it, as far as they are known."""
        if not follows_reference(case):
            return case
        kept, limited = self._limited.get(case.id, (None, case))
        if kept is not case:
            while len(self._limited) >= MAX_KEPT_CASES:
                del self._limited[next(iter(self._limited))]
            limited = self._with_known_limits(case)
            self._limited[case.id] = case, limited
        return limited

    def _with_known_limits(self, case: Case) -> Case:
        if not case.reference:
            return _with_limits(case, _seconds_without_reference(case))
        if case.id in self._known and (limit := self.known(case)) is not None:
            return _with_limits(case, limit.seconds, limit.compile_seconds)
        return _with_limits(case, _least_seconds(case), LEAST_COMPILE_SECONDS)

    async def settled(self, case: Case) -> Case:
        """The same once an answer has reached a limit: then the reference is timed."""
        if not follows_reference(case) or not case.reference:
            return self.limited(case)
        async with self._turns.setdefault(case.id, asyncio.Lock()):
            if self.known(case) is None:
                found = await self._share(digest("limit", _identity(case)), lambda: self._timed(case), afresh=False)
                limit = msgspec.json.decode(found, type=CaseLimit)
                self.learn(limit, is_new=limit.reference_seconds is not None)
        return self.limited(case)

    async def _timed(self, case: Case) -> str:
        took = await self._time(case)
        limit = CaseLimit(
            at=now(),
            case=case.id,
            of=_identity(case),
            seconds=_seconds_without_reference(case),
            compile_seconds=max(case.timeout_secs, LEAST_COMPILE_SECONDS),
        )
        if took is not None:
            limit = replace(
                limit,
                seconds=_rounded_up(max(TIMES_REFERENCE * took.running, _least_seconds(case)), case),
                compile_seconds=_rounded_up(max(TIMES_REFERENCE * took.compiling, LEAST_COMPILE_SECONDS), case),
                reference_seconds=round(took.running, 3),
                reference_compile_seconds=round(took.compiling, 3),
            )
        return msgspec.json.encode(limit).decode()


def _identity(case: Case) -> str:
    """Equal for cases whose references are timed alike."""
    kept: str | None = case.__dict__.get("limit_of")
    if kept is None:
        kept = case.__dict__["limit_of"] = digest(case.id, case.tests_digest, case.reference)
    return kept


def _with_limits(case: Case, seconds: float, compile_seconds: float | None = None) -> Case:
    """The case with other limits, and the digest that it has with its own."""
    limited = replace(
        case, timeout_secs=seconds, compile_secs=compile_seconds if case.compile_secs is None else case.compile_secs
    )
    limited.__dict__["tests_digest"] = case.tests_digest
    return limited


def _seconds_without_reference(case: Case) -> float:
    is_function = case.kind == "python" and (bool(case.verify.entry_point) or not case.verify.pairs)
    return min(case.timeout_secs, FUNCTION_SECONDS) if is_function else case.timeout_secs


def _least_seconds(case: Case) -> float:
    """The least limit of a case: a command may compile what it runs, so for one it grows with the default of its language."""
    return _rounded_up(case.timeout_secs / TIMES_REFERENCE if case.kind == "command" else 0, case)


def _rounded_up(seconds: float, case: Case) -> float:
    return next((step for step in LIMIT_STEPS if step >= seconds), max(LIMIT_STEPS[-1], case.timeout_secs))
