"""Whether this machine passes an answer that is known to be right, asked before it fails an answer of a model."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from steelyard.analysis.scoring import is_correct
from steelyard.engine.limits import longest
from steelyard.engine.sharing import WitnessSharing, share_with_nobody
from steelyard.engine.steps import verify
from steelyard.errors import VerifierError
from steelyard.protocols import FailureLabel, Verifier
from steelyard.records import Answer, Case, Failure, Finding, Reply, Verdict, WitnessResult, WitnessSource, digest
from steelyard.store.files import now
from steelyard.verifiers.trouble import is_own_exception, is_refused_text

LABELS_OF_RAN_CODE = ("", FailureLabel.WRONG_ANSWER, FailureLabel.EXCEPTION)
"""What a finding is called when the code ran to its end; after a passed test that is the code's own doing."""
WITNESS_TRIES = 2
"""How often a witness is tried before the machine or the case is at fault."""
MAX_COMPILED_TOGETHER = 100
"""References that are compiled in one process."""


def could_come_from_machine(case: Case, finding: Finding) -> bool:
    """Whether a broken machine could cause this finding for any answer.

    What was compared outside the sandbox was computed by the answer, and so was an index that is not there; where no
    code ran, no machine is at fault. What failed beside its tests, or printed something else by a toolchain that is not ours, may
    have failed by what the sandbox lacks: a reference tells. Without one, a test that passed tells that the code ran.
    """
    if not finding.isolation or finding.label == FailureLabel.NOT_ALLOWED:
        return False
    if finding.levels:
        # the tool reported what was reached, so it ran; a repair's tool has reported the original's problem as well
        return False
    if finding.compiled is False:
        return True
    if is_correct(case, finding):
        return False
    if case.reference and (finding.trust != "isolated" or case.kind == "command"):
        return True
    if finding.label == FailureLabel.WRONG_ANSWER and finding.trust == "isolated":
        return False
    if finding.label == FailureLabel.EXCEPTION and finding.trust == "isolated" and is_own_exception(finding.tests):
        return False
    has_passed = any(test.outcome == "passed" for test in finding.tests)
    return not (has_passed and finding.label in LABELS_OF_RAN_CODE)


def reference_answer(case: Case) -> Answer:
    """The reference of a case in the form of a reply: bare code is put between fences, so that it is used unchanged."""
    text = case.reference
    return Answer(text=fenced(text, case.language))


def reference_reply(case: Case) -> Reply:
    """The reference of a case as a reply that nobody has asked for."""
    return Reply(key="", at="", case=case.id, model="", number=0, asked="", answer=reference_answer(case))


def fenced(text: str, language: str) -> str:
    """Code between fences; a text that has fences, or is not code, is not changed."""
    if not language or "```" in text:
        return text
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


class WitnessSet:
    """The witnesses of a run on this machine, each tried once and only when a verdict needs it."""

    def __init__(
        self,
        verifier_of: Callable[[Case], Verifier],
        level: str,
        share: WitnessSharing = share_with_nobody,
        cases: Sequence[Case] = (),
    ) -> None:
        """`cases` are those of the run: what is cheaper to try together is tried for several of them at once."""
        self._verifier_of = verifier_of
        self._level = level
        self._share = share
        self._problems: dict[str, str] = {}
        """Why answers to a case, or a built-in witness, cannot pass here; empty if the witness passed."""
        self._has_found_problem = False
        """Whether there was one: as long as there was none, no case needs its key."""
        self._turns: dict[str, asyncio.Lock] = {}
        self._groups: dict[str, list[Case]] = defaultdict(list)
        """The cases with references that are verified alike."""
        for case in cases:
            if case.reference:
                self._groups[_group_key(case)].append(case)
        self._trusts: dict[str, str] = {}
        """How far the verdict on the reference of a case can be trusted, by the key of the case, where it passed here."""
        self._compiling: dict[str, bool] = {}
        """Whether the reference of a case compiles here, by the key of the case."""
        self.results: list[WitnessResult] = []
        """The results of the witnesses of each case, in order."""

    def known_problem(self, case: Case) -> str:
        """Why answers to this case cannot be judged here, if that is known without trying."""
        return self._problems.get(_case_key(case), "") if self._has_found_problem else ""

    async def problem(self, case: Case, finding: Finding) -> str:
        """Why answers to this case cannot be judged here, after this finding about one; empty when its witness passed.

        Callers wait while the witness is being tried. After a sign of trouble it is tried again. What a compiler
        refuses is found before any test is run: the reference must compile there, and need not pass its tests.
        """
        afresh = bool(finding.trouble)
        if not afresh and is_refused_text(finding) and await self._does_reference_compile(case):
            return ""
        return await self._once(_case_key(case), lambda: self._recorded_problem(case, afresh=afresh), afresh=afresh)

    async def reference_passes(self, case: Case) -> bool:
        """Whether the reference of a case passes its tests here; raises if it cannot be run.

        Unlike a witness it is not needed by other answers: if it fails, they keep their verdicts.
        """
        if self._trusts.get(_case_key(case)):
            return True
        began = time.monotonic()

        async def attempt() -> str:
            fact = await self._reference_fact(case)
            if isinstance(fact, Failure):
                raise VerifierError(f"its reference cannot be run: {fact.message}")
            if not is_correct(case, fact.found):
                return "it fails"
            self._record(case, "reference", "", began, fact.found.trust)
            return ""

        return not await self._once(_reference_key(case), attempt, afresh=False)

    async def _once(self, key: str, attempt: Callable[[], Awaitable[str]], *, afresh: bool) -> str:
        async with self._turns.setdefault(key, asyncio.Lock()):
            if afresh or key not in self._problems:
                self._problems[key] = await self._share(key, attempt, afresh=afresh)
                self._has_found_problem |= bool(self._problems[key])
            return self._problems[key]

    async def _recorded_problem(self, case: Case, *, afresh: bool) -> str:
        began = time.monotonic()
        problem = await self._case_problem(case, afresh=afresh)
        trust = "" if problem else self._trusts.get(_case_key(case), "")
        self._record(case, "reference" if case.reference else "built-in", problem, began, trust)
        return problem

    def _record(self, case: Case, source: WitnessSource, problem: str, began: float, trust: str = "") -> None:
        self.results.append(
            WitnessResult(
                at=now(),
                case=case.id,
                source=source,
                verifier=self._verifier_of(case).version,
                isolation=self._level,
                problem=problem,
                trust=trust,
                seconds=round(time.monotonic() - began, 3),
            )
        )

    async def _does_reference_compile(self, case: Case) -> bool:
        """Whether the reference of a case compiles in the sandbox, where the built-in witness passes all its tests."""
        compiling = getattr(self._verifier_of(case), "compiling", None)
        if compiling is None or not case.reference or not case.expectations.should_compile:
            return False

        async def attempt() -> str:
            began = time.monotonic()
            problem = await self._machine_problem(case, afresh=False)
            if problem:
                return problem
            group = _group_key(case)
            async with self._turns.setdefault(group, asyncio.Lock()):
                if _case_key(case) not in self._compiling:
                    cases = self._neighbours(case)
                    compiled = await compiling([(one, reference_answer(one).text) for one in cases])
                    self._compiling |= zip(map(_case_key, cases), compiled, strict=True)
            if not self._compiling[_case_key(case)]:
                return "its reference does not compile"
            self._record(case, "compiled reference", "", began)
            return ""

        return not await self._once(digest("compiles", _case_key(case)), attempt, afresh=False)

    def _neighbours(self, case: Case) -> Sequence[Case]:
        """A case and others with references that are verified alike."""
        group = self._groups.get(_group_key(case), [])
        if case not in group:
            return [case]
        first = group.index(case) // MAX_COMPILED_TOGETHER * MAX_COMPILED_TOGETHER
        return group[first : first + MAX_COMPILED_TOGETHER]

    async def _case_problem(self, case: Case, *, afresh: bool) -> str:
        has_passed = not afresh and self._problems.get(_reference_key(case)) == ""
        wrong = await self.fault(case) if case.reference and not has_passed else ""
        if case.reference and not wrong and case.expectations.should_compile:
            return ""
        machine = await self._machine_problem(case, afresh=afresh)
        return machine or (f"the case's own reference fails: {wrong}" if wrong else "")

    async def _machine_problem(self, case: Case, *, afresh: bool) -> str:
        """Why the built-in witness of a case does not pass; empty if it does, or if there is none."""
        own = getattr(self._verifier_of(case), "witness", None)
        if own is None:
            return ""
        witness: Case = own(case)

        async def attempt() -> str:
            if not (fault := await self.fault(witness)):
                return ""
            what = (
                f"{case.language or case.kind} answers cannot be verified on this machine: a correct one fails: {fault}"
            )
            return f"{what}; steelyard doctor says more"

        return await self._once(_case_key(witness), attempt, afresh=afresh)

    async def fault(self, case: Case) -> str:
        """Why the reference of a case does not pass; empty when it does."""
        fact = await self._reference_fact(case)
        if isinstance(fact, Failure):
            return fact.message
        return "" if is_correct(case, fact.found) else _told(fact.found) or fact.found.label or "it is not correct"

    async def _reference_fact(self, case: Case) -> Verdict | Failure:
        """What becomes of the reference of a case, which is tried again if it does not pass."""
        for _ in range(WITNESS_TRIES):
            fact = await verify(reference_reply(case), longest(case), self._verifier_of(case))
            if isinstance(fact, Verdict) and is_correct(case, fact.found):
                self._trusts[_case_key(case)] = fact.found.trust
                break
        return fact


def _told(finding: Finding) -> str:
    """What a finding says is wrong; the name of a test may be a long command, after which a row of a table has no room."""
    failed = next((test for test in finding.tests if test.outcome == "failed"), None)
    return finding.reason.removeprefix(f"{failed.name}: ") if failed else finding.reason


def _group_key(case: Case) -> str:
    """Equal for cases whose answers are compiled and run in the same environment, with the same limits."""
    alike = (case.verify.python_env, case.verify.style, str(case.timeout_secs), repr(case.dependencies))
    return digest("group", case.kind, *alike)


def _reference_key(case: Case) -> str:
    return digest("reference", _case_key(case))


def _case_key(case: Case) -> str:
    """Equal for cases whose references are the same and are verified alike."""
    return digest(case.id, case.tests_digest, case.verify.python_env, case.workspace, case.reference)
