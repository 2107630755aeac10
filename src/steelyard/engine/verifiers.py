"""Who verifies the answers of a run, and in which sandbox their code runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from steelyard.analysis.scoring import is_correct
from steelyard.engine.controls import ControlSet
from steelyard.engine.limits import CaseLimits
from steelyard.engine.options import RunOptions
from steelyard.engine.plugin_guard import guarded_plugin
from steelyard.engine.preflight.witnesses import (
    WitnessSet,
    could_come_from_machine,
)
from steelyard.engine.reference_time import ReferenceTimers
from steelyard.engine.sharing import WitnessSharing, share_with_nobody
from steelyard.engine.steps import failure, is_out_of_time, is_verified_again_alone, verdict_key, verify_with_retry
from steelyard.errors import InputError, VerifierError, did_you_mean, problems_by_reason
from steelyard.plugins import explain_plugin_errors, is_plugin, load_plugin, plugin_names
from steelyard.protocols import Sandbox, Verifier, VerifierFactory
from steelyard.providers.embeddings import SettingsEmbedder
from steelyard.records import JUDGE_ONLY_KIND, Case, Failure, Reply, Verdict, WitnessResult
from steelyard.sandbox.levels import ISOLATION_LEVELS, strongest_isolation
from steelyard.sandbox.processors import processor_count
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.store.stored_cases import changed_cases
from steelyard.verifiers.checks.rubric import RunJudges, rubric_tables
from steelyard.verifiers.checks.verifier import ChecksVerifier
from steelyard.verifiers.function import check_unchanged


class VerifierSet:
    """The verifier of each kind of case, all with one sandbox: the strongest that holds here."""

    def __init__(
        self,
        cases: Sequence[Case],
        means: RunOptions,
        *,
        cpus: float | None = None,
        share_witnesses: WitnessSharing = share_with_nobody,
    ) -> None:
        """`cpus` is how many of this machine's processors are ours, where that is not all of them."""
        kinds = {case.kind for case in cases if case.kind and case.has_verifier}
        kinds = {kind for kind in kinds if is_plugin("verifiers", kind)}
        # where nothing is run, because others do it or because there is nothing to run, nothing has to hold
        self._verifies_here = getattr(load_plugin("pools", means.backend), "verifies_here", True)
        runs_code = self._verifies_here and any(_verifier_factory(kind).runs_code for kind in kinds)
        enclosure = (
            strongest_isolation(means.require_isolation, allow_weak=means.allow_weak_sandbox)
            if runs_code
            else ISOLATION_LEVELS[-1]
        )
        self._sandbox = means.sandbox or ZygoteSandbox(enclosure)
        self._has_own_root = runs_code and means.sandbox is None and enclosure.own_root
        self._parallelism = means.parallelism
        self._recheck = means.recheck
        self.judging: RunJudges | None = None
        """Who judges checks that are rubrics, if somebody does."""
        self._share = 1.0 if cpus is None else cpus / processor_count()
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._timers = ReferenceTimers(self._sandbox, _verifier)
        self.limits = CaseLimits(self._timers.time, share_witnesses)
        """How long answers may run to the cases that do not say."""
        self._witnesses = WitnessSet(self.of, self._sandbox.level, share_witnesses, cases)
        reference_passes = self._witnesses.reference_passes
        self._controls = ControlSet(self.of, means.controls, means.control_key, reference_passes, share_witnesses)
        self._verifiers: dict[str, Verifier] = {kind: _verifier(kind, self._sandbox) for kind in kinds}
        for verifier in self._verifiers.values():
            if isinstance(verifier, ChecksVerifier):
                verifier.use_embedder(SettingsEmbedder(means.settings, means.variables))

    def check(self, cases: Sequence[Case]) -> None:
        """Find the cases that cannot be verified, before anything is paid for."""
        if reasons := self.unverifiable(cases):
            raise InputError(problems_by_reason(reasons))

    async def unprepared(self, cases: Sequence[Case]) -> dict[str, VerifierError]:
        """Why no answer to a case could be verified, where only the sandbox can find out, by the id of the case."""
        reasons: dict[str, VerifierError] = {}
        for case in cases:
            if (
                not self._verifies_here
                or not case.has_verifier
                or (prepare := getattr(self.of(case), "prepare", None)) is None
            ):
                continue
            try:
                with explain_plugin_errors("verifiers", case.kind, f'case "{case.id}"'):
                    await prepare(case)
            except VerifierError as error:
                reasons[case.id] = error
        return reasons

    def unverifiable(self, cases: Sequence[Case]) -> dict[str, VerifierError]:
        """Why no answer to a case could be verified, by the id of the case."""
        reasons: dict[str, VerifierError] = {}
        for case in cases:
            if not case.has_verifier:
                continue
            try:
                if not case.kind:
                    raise VerifierError(
                        "nothing says how to verify it; give it a language with tests, a target, or verify"
                    )
                if case.kind not in self._verifiers:
                    known = did_you_mean(case.kind, {*plugin_names("verifiers"), JUDGE_ONLY_KIND})
                    raise VerifierError(f'unknown verifier "{case.kind}" ({known})')
                with explain_plugin_errors("verifiers", case.kind, f'case "{case.id}"'):
                    self.of(case).check(case)
                check_unchanged(case)
            except VerifierError as error:
                reasons[case.id] = error
        return reasons

    def of(self, case: Case) -> Verifier:
        """The verifier of a case that can be verified."""
        return self._verifiers[case.kind]

    def verdict_key(self, ask: str, case: Case) -> str:
        """The key of a verdict by this machine on the reply to an ask key."""
        return verdict_key(ask, case, self.of(case), self._controls.number(case))

    def has_false_tests(self, case: Case) -> bool:
        """Whether tests of a case can be made false."""
        return self._controls.has_false_tests(case)

    def rules(self, case: Case) -> tuple[str, ...]:
        """The verifier of a case with the version of its rules, as sides of a comparison name it; empty for judges."""
        if case.kind not in self._verifiers:
            return ()
        return (self.of(case).version.partition(",")[0],)

    @property
    def level(self) -> str:
        """How strong the sandbox is that code runs in."""
        return self._sandbox.level

    def is_verified_apart(self, case: Case) -> bool:
        """Whether another process of this machine would come to the same verdicts: sandboxes there are closed to each other."""
        return (
            case.has_verifier
            and self._has_own_root
            and not case.expectations.custom_check
            and not rubric_tables(case)
            and _verifier_factory(case.kind).runs_code
        )

    @property
    def rooms(self) -> dict[str, int]:
        """How many answers of each kind are worth giving to its verifier at the same time."""
        return {kind: self._most(verifier) for kind, verifier in self._verifiers.items()}

    @property
    def at_once(self) -> int:
        """How many answers are worth giving to all the verifiers at the same time."""
        return sum(self.rooms.values()) or 1

    def _most(self, verifier: Verifier) -> int:
        most = max(1, round(verifier.at_once * self._share))
        return min(most, self._parallelism or most)

    @property
    def witness_results(self) -> Sequence[WitnessResult]:
        """The results of the witnesses so far, in order."""
        return self._witnesses.results

    def turn(self, case: Case) -> asyncio.Semaphore:
        """What to hold while an answer to this case is verified: one kind of case must not crowd out another's."""
        if case.kind not in self._turns:
            self._turns[case.kind] = asyncio.Semaphore(self._most(self.of(case)))
        return self._turns[case.kind]

    async def verdict(self, reply: Reply, case: Case, *, alone: bool = False) -> Verdict | Failure:
        """The verdict on one reply, in its turn."""
        async with self.turn(case):
            return await self.witnessed_verdict(reply, case, alone=alone)

    async def witnessed_verdict(self, reply: Reply, case: Case, *, alone: bool = False) -> Verdict | Failure:
        """The verdict on one reply; a failure of ours if this machine fails an answer that is known to be right.

        `alone` says that this machine does nothing else at the same time. Otherwise a verdict that must be reached
        alone comes back without a witness, and does not count.
        """
        witnesses = self._witnesses
        if problem := witnesses.known_problem(case):
            return failure(reply, VerifierError(problem))
        began = time.monotonic()
        fact = await self._limited_verdict(reply, case)
        if isinstance(fact, Verdict) and not alone and not is_correct(case, fact.found) and self._was_crowded(began):
            return _with_trouble(fact, "code beside it had many processes")
        if isinstance(fact, Failure) or (is_verified_again_alone(fact.found) and not alone):
            return fact
        if could_come_from_machine(case, fact.found):
            await witnesses.problem(case, fact.found)
        elif fact.found.trust == "in-process" and case.reference and not case.workspace:
            # how far answers to its case can be trusted at all; a verdict does not depend on it
            with suppress(VerifierError):
                await witnesses.reference_passes(case)
        # a witness that other callers waited for also covers this answer, even if it passed
        if problem := witnesses.known_problem(case):
            return failure(reply, VerifierError(problem))
        return _with_trouble(fact, "") if fact.found.trouble else fact

    async def _limited_verdict(self, reply: Reply, case: Case) -> Verdict | Failure:
        """The verdict within the limits of a case, which are settled once an answer reaches them."""
        verifier, limited = self._judged(reply, case), self.limits.limited(case)
        fact = await verify_with_retry(reply, limited, verifier, self._recheck, self._controls)
        if is_out_of_time(fact) and (settled := await self.limits.settled(case)) != limited:
            fact = await verify_with_retry(reply, settled, verifier, self._recheck, self._controls)
        return fact

    def _judged(self, reply: Reply, case: Case) -> Verifier:
        """The verifier of a case, with the judges of a reply to it where they are needed."""
        verifier = self.of(case)
        if self.judging is None or not isinstance(verifier, ChecksVerifier):
            return verifier
        return verifier.judged_by(self.judging.about(reply))

    def _was_crowded(self, since: float) -> bool:
        """Whether code may have lacked processes because of code beside it; sandboxes of others may not know."""
        was_crowded = getattr(self._sandbox, "was_crowded_since", None)
        return was_crowded is not None and bool(was_crowded(since))

    async def close(self) -> None:
        """End everything that is kept for further answers."""
        for verifier in self._verifiers.values():
            await verifier.close()
        await self._timers.close()
        await self._sandbox.close()


def _with_trouble(verdict: Verdict, trouble: str) -> Verdict:
    return msgspec.structs.replace(verdict, found=msgspec.structs.replace(verdict.found, trouble=trouble))


def _verifier_factory(kind: str) -> Any:
    return guarded_plugin("verifiers", kind, load_plugin("verifiers", kind), Verifier)


def _verifier(kind: str, sandbox: Sandbox) -> Any:
    """The verifier of a kind; what it says about a case is explained with the case, or stored as a failure."""
    make_verifier: VerifierFactory = load_plugin("verifiers", kind)
    with explain_plugin_errors("verifiers", kind):
        made = make_verifier(sandbox)
    return guarded_plugin("verifiers", kind, made, Verifier, unguarded=("check", "verify"))


def with_python_env(cases: Sequence[Case], python_env: str) -> Sequence[Case]:
    """The cases with the virtual environment that the user names, instead of their own."""
    if not python_env:
        return cases
    if not Path(python_env, "pyvenv.cfg").is_file():
        raise InputError(
            f"--python-env {python_env}: not a virtual environment; create one with: python3 -m venv {python_env}"
        )
    verified_there = {"python_env": python_env}
    return changed_cases(
        cases,
        lambda case: msgspec.structs.replace(case, verify=msgspec.structs.replace(case.verify, **verified_there)),
    )
