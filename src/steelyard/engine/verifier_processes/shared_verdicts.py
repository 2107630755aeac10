"""Replies with the same text to the same case are verified once, and the others say whose verdict they have.

So are those with the same code as one that ran out of time: nobody waits for the same loop twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from steelyard.engine.limits import TIMED_KINDS
from steelyard.engine.options import RunOptions
from steelyard.engine.progress import SlowAnswers
from steelyard.engine.steps import is_out_of_time, is_verified_again_alone
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import VerifierError
from steelyard.plugins import explain_plugin_errors
from steelyard.protocols import LIMIT_LABELS, FailureLabel, Pool, VerdictCallback
from steelyard.records import Case, Failure, Reply, Verdict, WitnessResult, digest
from steelyard.store.files import now
from steelyard.store.journal import JournalFact
from steelyard.verifiers.checks.rubric import rubric_tables
from steelyard.verifiers.code.join_stub import code_from_reply

MAX_KEPT_BYTES = 16 << 20
"""Verdicts that are kept for replies to come, in bytes of JSON; those that were not used for longest go first."""
MAX_WAITING_REPLIES = 256
"""Replies that wait for the verdict on an identical one; any more are verified themselves."""
KEPT_ENTRY_BYTES = 250
"""What an entry takes beside its verdict."""
UNSHARED_LABELS = LIMIT_LABELS | {FailureLabel.DIED}
"""How an attempt ends that a busy or small machine may have ended."""
MAX_SHARE_OF_TIME_LIMIT = 0.5
"""An answer that took more than this of its time limit might exceed it the next time."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Verdict)


class SharedVerdicts:
    """A pool that hands on one reply of each text, and gives its verdict to all that are identical.

    It does so only where the verifier says that a verdict on this text comes out the same every time, or a limit of time ended it.
    """

    def __init__(self, pool: Pool, verifying: VerifierSet, options: RunOptions) -> None:
        self._pool = pool
        self._verifying = verifying
        # a user who repeats verification doubts that verdicts are the same every time
        self._shares = not options.recheck
        self._first: dict[str, str] = {}
        """The identities of texts that are being verified, by the ask key of the first reply with each."""
        self._waiting: dict[str, list[tuple[Reply, Case]]] = {}
        """The other replies with these texts, by identity."""
        self._waiting_count = 0
        self._returned: deque[tuple[Reply, Case]] = deque()
        """Replies that waited for a verdict that must not be shared."""
        self._kept: dict[str, bytes] = {}
        """Verdicts as JSON by identity, the least recently used first; empty for one that must not be shared."""
        self._kept_bytes = 0
        self._timed_out: set[str] = set()
        """The cases to which an answer has run out of time."""
        self._recalled: dict[str, str] = {}
        """The identities of texts of earlier sessions whose verdicts were not read yet, by the ask keys of replies."""
        self._changed = asyncio.Event()

    @property
    def given_up(self) -> str:
        return self._pool.given_up

    @property
    def nodes(self) -> int | None:
        return self._pool.nodes

    @property
    def notes(self) -> tuple[str, ...]:
        return self._pool.notes

    @property
    def running(self) -> tuple[int, SlowAnswers | None]:
        running: tuple[int, SlowAnswers | None] = getattr(self._pool, "running", (0, None))
        return running

    @property
    def witness_results(self) -> Sequence[WitnessResult]:
        results: Sequence[WitnessResult] = getattr(self._pool, "witness_results", ())
        return results

    @asynccontextmanager
    async def at_work(self, report: VerdictCallback, *, alone: bool = False) -> AsyncIterator[None]:
        self._report = report
        # a pool that somebody else wrote need not know of replies that are verified alone
        async with self._pool.at_work(self._take_in, alone=True) if alone else self._pool.at_work(self._take_in):
            yield
            while (self._waiting or self._returned) and not self.given_up:
                self._changed.clear()
                await self._put_returned()
                # a pool that gives up reports nothing more
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 1 if self._waiting else 0)

    def recall(self, fact: JournalFact, case: Case) -> None:
        """Learn from the facts of earlier sessions, in their order, which texts need not be verified again."""
        verifier: Any = self._verifying.of(case)
        if isinstance(fact, Reply) and self._shares and _may_be_shared(verifier, case):
            self._recalled[fact.key] = digest(case.id, fact.answer.text)
        elif isinstance(fact, Failure) and fact.stage == VerifierError.stage:
            # it may have taken a verdict back
            self._kept.clear()
            self._kept_bytes = 0
        elif isinstance(fact, Verdict) and (identity := self._recalled.pop(fact.ask, None)) not in self._kept:
            # what another version, other tests or another sandbox found is not what would be found now
            is_current = fact.key == self._verifying.verdict_key(fact.ask, case)
            is_current = is_current and fact.found.isolation == self._verifying.level
            if identity is not None and is_current and not fact.shared_from and self._is_reached_again(fact, case):
                self._keep(identity, _encoder.encode(fact))
                self._keep_time_out(fact, case)

    async def put(self, reply: Reply, case: Case) -> None:
        await self._put_returned()
        if not self._is_for_others_too(reply, case):
            await self._pool.put(reply, case)
            return
        if case.id in self._timed_out:
            code = code_from_reply(case, reply.answer.text).code
            if kept := self._kept.get(_code_identity(case, code)):
                self._report(self._shared_verdict(_decoder.decode(kept), reply, case), case)
                return
        identity = digest(case.id, reply.answer.text)
        kept = self._kept.pop(identity, None)
        if kept is not None:
            self._kept[identity] = kept
            verdict = _decoder.decode(kept) if kept else None
            if verdict is not None and (is_out_of_time(verdict) or self._is_repeatable(reply, case)):
                self._report(self._shared_verdict(verdict, reply, case), case)
                return
        elif identity not in self._waiting:
            self._waiting[identity] = []
            self._first[reply.key] = identity
        elif self._waiting_count < MAX_WAITING_REPLIES:
            self._waiting[identity].append((reply, case))
            self._waiting_count += 1
            return
        await self._pool.put(reply, case)

    async def close(self) -> None:
        await self._pool.close()

    def _is_for_others_too(self, reply: Reply, case: Case) -> bool:
        """Whether the verdict on this reply may be given to others with the same text."""
        return self._shares and reply.key not in self._first and _may_be_shared(self._verifying.of(case), case)

    def _is_repeatable(self, reply: Reply, case: Case) -> bool:
        verifier: Any = self._verifying.of(case)
        if not hasattr(verifier, "is_repeatable"):
            return False
        with explain_plugin_errors("verifiers", case.kind, f'case "{case.id}"'):
            return bool(verifier.is_repeatable(case, reply.answer.text))

    async def _put_returned(self) -> None:
        while self._returned:
            await self._pool.put(*self._returned.popleft())

    def _take_in(self, fact: Verdict | Failure, case: Case) -> None:
        self._report(fact, case)
        if isinstance(fact, Verdict) and self._shares and _may_be_shared(self._verifying.of(case), case):
            self._keep_time_out(fact, case)
        identity = self._first.pop(fact.ask if isinstance(fact, Verdict) else fact.key, None)
        if identity is None:
            return
        waiting = self._waiting.pop(identity)
        self._waiting_count -= len(waiting)
        # one that is to be tried again alone has not run out of time yet, and the others need not do so before that
        is_unsure = is_out_of_time(fact) and isinstance(fact, Verdict) and is_verified_again_alone(fact.found)
        is_sure = isinstance(fact, Verdict) and self._is_reached_again(fact, case)
        if not is_unsure:
            self._keep(identity, _encoder.encode(fact) if is_sure else b"")
        for reply, its_case in waiting:
            is_same = is_unsure or (is_sure and (is_out_of_time(fact) or self._is_repeatable(reply, its_case)))
            if isinstance(fact, Verdict) and is_same:
                self._report(self._shared_verdict(fact, reply, its_case), its_case)
            else:
                self._returned.append((reply, its_case))
        self._changed.set()

    def _shared_verdict(self, verdict: Verdict, reply: Reply, case: Case) -> Verdict:
        """The verdict on one reply as that on an identical reply to the same case."""
        return msgspec.structs.replace(
            verdict,
            key=self._verifying.verdict_key(reply.key, case),
            at=now(),
            model=reply.model,
            tier=reply.tier,
            number=reply.number,
            ask=reply.key,
            shared_from=verdict.ask,
        )

    def _is_reached_again(self, verdict: Verdict, case: Case) -> bool:
        """Whether the same code would get this verdict on any machine that is in order."""
        found = verdict.found
        if is_verified_again_alone(found):
            return False
        if is_out_of_time(verdict):
            return True
        took = found.compile_seconds + found.test_seconds
        longest = MAX_SHARE_OF_TIME_LIMIT * self._verifying.limits.limited(case).timeout_secs
        return found.label not in UNSHARED_LABELS and took <= longest

    def _keep_time_out(self, verdict: Verdict, case: Case) -> None:
        """Keep the verdict on code that ran out of time, whatever is said around it."""
        if is_out_of_time(verdict) and not is_verified_again_alone(verdict.found):
            self._timed_out.add(case.id)
            self._keep(_code_identity(case, verdict.found.code), _encoder.encode(verdict))

    def _keep(self, identity: str, verdict: bytes) -> None:
        self._kept_bytes -= self._size(self._kept.pop(identity, None))
        self._kept[identity] = verdict
        self._kept_bytes += self._size(verdict)
        while self._kept_bytes > MAX_KEPT_BYTES:
            oldest = next(iter(self._kept))
            self._kept_bytes -= self._size(self._kept.pop(oldest))

    @staticmethod
    def _size(verdict: bytes | None) -> int:
        return 0 if verdict is None else len(verdict) + KEPT_ENTRY_BYTES


def _may_be_shared(verifier: Any, case: Case) -> bool:
    """Whether some verdicts on answers to a case hold for others with the same text: no user's function and no judge decides."""
    is_known = hasattr(verifier, "is_repeatable") or case.kind in TIMED_KINDS
    return is_known and not case.expectations.custom_check and not rubric_tables(case)


def _code_identity(case: Case, code: str | None) -> str:
    return digest(case.id, "code", code)
