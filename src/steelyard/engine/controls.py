"""Controls: a pass that shared a process with its tests is run against tests made false, which a right answer fails."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import cast

from msgspec.structs import replace

from steelyard.analysis.scoring import is_correct
from steelyard.engine.preflight.witnesses import reference_answer
from steelyard.engine.sharing import WitnessSharing, share_with_nobody
from steelyard.errors import VerifierError
from steelyard.languages.table import language_of
from steelyard.protocols import LIMIT_LABELS, FailureLabel, FalseTests, HasControls, Verifier
from steelyard.records import FLAG_CHANGED_TESTS, Answer, Case, Finding, digest

MAX_TRIALS = 6
"""False tests of a case that its reference is tried with."""
MAX_KEPT_CASES = 64
"""Cases whose false tests are kept for the next answers."""
MAX_KEPT_TRIALS = 20_000
"""Trials whose results are kept."""
PASSES_FALSE_TESTS = "it also passes tests that are false"
BLIND_LABELS = LIMIT_LABELS | {
    FailureLabel.DIED,
    FailureLabel.NO_CODE,
    FailureLabel.NO_TESTS,
    FailureLabel.NOT_ALLOWED,
    FailureLabel.DOES_NOT_COMPILE,
    FailureLabel.DOES_NOT_FIT_THE_TESTS,
    FailureLabel.TAMPERED,
}
"""How a reference ends where not a changed value has failed it, but that the tests do not run."""


def default_controls(case: Case) -> int:
    """With how many false tests a pass is tried unless a user says otherwise: with fewer where a run is expensive."""
    language = language_of(case)
    return 1 if case.workspace or (language is not None and language.compiled) else 2


class ControlSet:
    """The controls of a run on this machine; which of them an answer gets depends on its text and on the key of the run."""

    def __init__(
        self,
        verifier_of: Callable[[Case], Verifier],
        number: int | None,
        key: str,
        reference_passes: Callable[[Case], Awaitable[bool]],
        share: WitnessSharing = share_with_nobody,
    ) -> None:
        """`reference_passes` says it of the true tests; `share` tries a reference in one process for all of a machine."""
        self._verifier_of = verifier_of
        self._number = number
        self._key = key
        self._reference_passes = reference_passes
        self._share = share
        self._false_tests: OrderedDict[str, FalseTests] = OrderedDict()
        self._trials: dict[str, bool] = {}
        """Whether the reference of a case fails false tests, by a key of these."""
        self._turns: dict[str, asyncio.Lock] = {}

    def number(self, case: Case) -> int:
        """With how many false tests a pass is tried; 0 where nothing tells which tests are false."""
        if not case.reference or not hasattr(self._verifier_of(case), "false_tests"):
            return 0
        return default_controls(case) if self._number is None else self._number

    def has_false_tests(self, case: Case) -> bool:
        """Whether there is something to change in the tests of a case."""
        return hasattr(self._verifier_of(case), "false_tests") and bool(self._false(case).one_by_one)

    async def tried(self, case: Case, answer: Answer, found: Finding) -> Finding:
        """The finding about an answer after its controls: `tampered` where it passes tests of which all are false."""
        number = self.number(case)
        if not number or not _is_pass_beside_tests(case, found):
            return found
        tried, passed = 0, False
        async for control in self._drawn(case, answer):
            found_there = await self._verifier_of(case).verify(control, answer)
            if found_there.trouble:
                # it is verified again alone, and so are its controls
                return replace(found, trouble=found_there.trouble)
            tried += 1
            passed |= is_correct(control, found_there)
            if tried == number:
                break
        found = replace(found, controls=tried) if tried else found
        return await self._tried_with_all(case, answer, found) if passed else found

    async def _tried_with_all(self, case: Case, answer: Answer, found: Finding) -> Finding:
        """The finding about an answer that has passed a control."""
        every = self._false(case).all
        if every is not None and await self._is_failed_by_reference(case, every, -1):
            found_there = await self._verifier_of(case).verify(every, answer)
            if is_correct(every, found_there):
                label = FailureLabel.TAMPERED
                return replace(found, passed=False, label=label, reason=PASSES_FALSE_TESTS, tampered=PASSES_FALSE_TESTS)
        return replace(found, flag=FLAG_CHANGED_TESTS)

    async def _drawn(self, case: Case, answer: Answer) -> AsyncIterator[Case]:
        """The false tests for an answer that the reference of its case fails, in the order in which they are drawn."""
        controls = self._false(case).one_by_one
        identity = _identity(case)
        if not controls or not await self._reference_passes(case):
            return
        tried = self._shuffled(range(len(controls)), identity)[:MAX_TRIALS]
        for place in self._shuffled(tried, identity, answer.text):
            if await self._is_failed_by_reference(case, controls[place], place):
                yield controls[place]

    def _shuffled(self, places: Sequence[int], *parts: str) -> list[int]:
        return sorted(places, key=lambda place: digest(self._key, *parts, place))

    def _false(self, case: Case) -> FalseTests:
        identity = _identity(case)
        if identity not in self._false_tests:
            self._false_tests[identity] = cast("HasControls", self._verifier_of(case)).false_tests(case)
            if len(self._false_tests) > MAX_KEPT_CASES:
                self._false_tests.popitem(last=False)
        self._false_tests.move_to_end(identity)
        return self._false_tests[identity]

    async def _is_failed_by_reference(self, case: Case, control: Case, place: int) -> bool:
        """Whether the reference of a case fails false tests as a wrong answer does; raises if it could not be run."""
        key = digest("control", _identity(case), place)

        async def attempt() -> str:
            found = await self._verifier_of(case).verify(control, reference_answer(case))
            if found.trouble:
                raise VerifierError(f"its reference could not be run beside it: {found.trouble}")
            is_blind = found.compiled is False or found.label in BLIND_LABELS
            return "its reference passes or cannot be run" if is_blind or is_correct(control, found) else ""

        async with self._turns.setdefault(key, asyncio.Lock()):
            if (fails := self._trials.get(key)) is None:
                fails = self._trials[key] = not await self._share(key, attempt, afresh=False)
                if len(self._trials) > MAX_KEPT_TRIALS:
                    del self._trials[next(iter(self._trials))]
        self._turns.pop(key, None)
        return fails


def _is_pass_beside_tests(case: Case, found: Finding) -> bool:
    """Whether an answer passes tests that ran in its own process."""
    ran = any(test.outcome == "passed" for test in found.tests)
    return found.trust == "in-process" and ran and not found.trouble and is_correct(case, found)


def _identity(case: Case) -> str:
    return digest(case.id, case.tests_digest, case.verify.python_env, case.workspace, case.reference)
