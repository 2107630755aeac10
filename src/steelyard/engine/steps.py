"""The two steps of an attempt, asking and verifying: each always ends in a fact."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import NamedTuple, Protocol

import msgspec

from steelyard.analysis.scoring import is_correct
from steelyard.engine.pace import (
    DEFAULT_MAX_WAIT_SECONDS,
    RATE_LIMIT_REASON,
    CircuitBreaker,
    ConcurrencyLimiter,
    backoff_seconds,
)
from steelyard.engine.plugin_guard import ask_provider, round_tripped
from steelyard.errors import (
    FilteredInput,
    ProviderError,
    ProviderTimeout,
    RecordedFailure,
    Rejected,
    StepError,
    Unavailable,
    VerifierError,
    wrap_exceptions,
)
from steelyard.plugins.time_limit import within_seconds
from steelyard.protocols import LIMIT_LABELS, TIMEOUT_LABELS, Delivery, FailureLabel, Provider, Verifier
from steelyard.providers.bodies import sound_answer
from steelyard.providers.prices import Prices
from steelyard.records import Answer, Attempt, Case, Failure, Finding, Finish, Reply, Verdict, digest
from steelyard.sandbox.fair_clock import has_fair_clock
from steelyard.store.files import now
from steelyard.verifiers.function import verify_with_function

BodyKeeper = Callable[[Attempt, str, bytes], None]
"""Stores the body of a response to an attempt, with its timestamp."""


class RetryPolicy(NamedTuple):
    """How hard to try for an answer."""

    retries: int = 3
    first_pause: float = 1.0
    deadline: float = 600.0
    max_wait: float = DEFAULT_MAX_WAIT_SECONDS
    """Seconds of waiting without an answer, after which a model is left for later."""


async def ask(
    attempt: Attempt,
    provider: Provider,
    pace: ConcurrencyLimiter,
    breaker: CircuitBreaker,
    persistence: RetryPolicy,
    prices: Prices,
    keep_body: BodyKeeper | None = None,
) -> Reply | Failure | None:
    """The reply to one attempt, or the reason why it is missing; None when the model was given up before it was asked."""
    with breaker:
        try:
            answer = await _answer(attempt, provider, pace, breaker, persistence, keep_body)
            if answer is None:
                return None
            breaker.answered()
        except ProviderTimeout as error:
            if (obstacle := await _outage_error(attempt, error, breaker)) is not None:
                return failure(attempt, obstacle)
            seconds = persistence.deadline
            answer = Answer(text="", finish=Finish.TIMEOUT, error=f"no answer within {seconds:g} s", latency=seconds)
        except FilteredInput as error:
            # where refusing is an outcome, a filter's refusal is one; elsewhere it says nothing about the model
            if attempt.case.kind != "response":
                return failure(attempt, error)
            answer = Answer(text="", finish=Finish.REFUSAL, error=str(error))
        except StepError as error:
            # a line of a recording says nothing about the lines beside it
            if not isinstance(error, RecordedFailure) and provider.available(attempt.case.id) is None:
                breaker.failed(str(error), for_everyone=isinstance(error, Rejected) and error.everyone)
            return failure(attempt, error)
    return reply_to(attempt, answer, prices)


def reply_to(attempt: Attempt, answer: Answer, prices: Prices) -> Reply:
    """The reply that an answer is, with its cost."""
    cost, native = prices.cost(attempt.model, answer), answer.native if attempt.case.tools else ()
    if cost is not answer.cost or native is not answer.native:
        answer = msgspec.structs.replace(answer, cost=cost, native=native)
    return Reply(
        key=attempt.key,
        at=now(),
        case=attempt.case.id,
        model=attempt.model,
        tier=attempt.tier,
        number=attempt.number,
        asked=attempt.asked,
        answer=answer,
    )


async def _outage_error(attempt: Attempt, error: ProviderTimeout, breaker: CircuitBreaker) -> ProviderError | None:
    """Why no answer in time is not the model's own doing; None when it is, and answering in time is part of the task."""
    if attempt.case.kind != "response" or not error.accepted:
        breaker.failed(str(error), for_everyone=False)
        return error
    if await breaker.stayed_silent(str(error), in_silence=error.in_silence):
        return None
    return ProviderError(f"{error}, and nothing shows that others would have got one: taken for an outage")


async def _answer(
    attempt: Attempt,
    provider: Provider,
    pace: ConcurrencyLimiter,
    breaker: CircuitBreaker,
    persistence: RetryPolicy,
    keep_body: BodyKeeper | None,
) -> Answer | None:
    error: Unavailable | None = None
    backed_off = 0.0
    for tries in count(1):
        began = await pace.enter()
        try:
            if breaker.broken:
                break
            answers_before = breaker.answers
            delivery = Delivery()
            try:
                answer = await within_seconds(persistence.deadline, _asked(provider, attempt, delivery))
            finally:
                if delivery.body and keep_body is not None:
                    keep_body(attempt, now(), delivery.body)
        except TimeoutError:
            error = ProviderTimeout(
                f"{provider.endpoint}: no answer within {persistence.deadline:g} s{delivery.obstacle}",
                accepted=delivery.accepted,
                in_silence=breaker.answers == answers_before,
            )
        except Unavailable as unavailable:
            error = unavailable
        else:
            headroom = provider.headroom()
            pace.answered(headroom, (answer.input_tokens or 0) + (answer.output_tokens or 0))
            if headroom is not None and headroom.requests <= 0:
                breaker.check_wait(headroom.reset, RATE_LIMIT_REASON)
            return answer
        finally:
            pace.leave()
        # a pause that the server asks for is for everyone; one of our own is for this attempt
        wait = error.retry_after
        if wait is not None:
            breaker.check_wait(wait, str(error), added=pace.longer_by(wait))
        pace.pushed_back(began, None if breaker.broken else wait, str(error), is_token_limit=error.is_token_limit)
        if tries > persistence.retries or breaker.broken:
            break
        if error.retry_after is None:
            pause = backoff_seconds(tries - 1, persistence.first_pause)
            backed_off += pause
            if backed_off > persistence.max_wait:
                break
            await asyncio.sleep(pause)
    if error is not None:
        raise error
    return None


async def _asked(provider: Provider, attempt: Attempt, delivery: Delivery) -> Answer:
    with wrap_exceptions(ProviderError):
        return sound_answer(await ask_provider(provider, attempt, delivery), delivery.note)


class Controls(Protocol):
    """Tries passes with tests that are made false."""

    def number(self, case: Case) -> int:
        """With how many of them a pass is tried."""
        ...

    async def tried(self, case: Case, answer: Answer, found: Finding) -> Finding:
        """The finding about an answer after that."""
        ...


async def verify_with_retry(
    reply: Reply, case: Case, verifier: Verifier, rechecks: int = 0, controls: Controls | None = None
) -> Verdict | Failure:
    """The verdict on one reply after at most two tries, and how often repeated verification gave another one."""
    fact = await verify(reply, case, verifier, controls)
    if isinstance(fact, Failure):
        # a sandbox that was killed under an answer says nothing about it
        fact = await verify(reply, case, verifier, controls)
    if isinstance(fact, Verdict) and rechecks:
        fact = await recheck(fact, reply, case, verifier, rechecks)
    return fact


def is_verified_again_alone(found: Finding) -> bool:
    """Whether a finding counts only from a machine that does nothing else."""
    # where waiting for a processor counts, a time limit may be the fault of a busy machine
    return bool(found.trouble) or (found.label == FailureLabel.TIME_LIMIT and not has_fair_clock())


def is_out_of_time(fact: Verdict | Failure) -> bool:
    """Whether a limit of time ended an answer."""
    return isinstance(fact, Verdict) and fact.found.label in TIMEOUT_LABELS


async def verify(reply: Reply, case: Case, verifier: Verifier, controls: Controls | None = None) -> Verdict | Failure:
    """The verdict on one reply, or the reason why it is missing."""
    try:
        with wrap_exceptions(VerifierError):
            found = round_tripped(await verifier.verify(case, reply.answer), Finding)
            if controls is not None:
                found = await controls.tried(case, reply.answer, found)
            if case.expectations.custom_check:
                checked = await verify_with_function(case.expectations.custom_check, case, reply.answer.text)
                found = _with_custom_check(found, round_tripped(checked, Finding))
    except StepError as error:
        return failure(reply, error)
    return Verdict(
        key=verdict_key(reply.key, case, verifier, controls.number(case) if controls is not None else 0),
        at=now(),
        case=reply.case,
        model=reply.model,
        tier=reply.tier,
        number=reply.number,
        ask=reply.key,
        tests=case.tests_digest,
        verifier=verifier.version,
        found=found,
    )


async def recheck(verdict: Verdict, reply: Reply, case: Case, verifier: Verifier, times: int) -> Verdict:
    """The verdict, and how often repeated verification gave another one; wrong answers are not verified again."""
    passed = is_correct(case, verdict.found)
    if not passed and verdict.found.label not in LIMIT_LABELS:
        return verdict
    again = [await verify(reply, case, verifier) for _ in range(times)]
    outcomes = [is_correct(case, fact.found) for fact in again if isinstance(fact, Verdict)]
    found = msgspec.structs.replace(
        verdict.found, rechecked=len(outcomes), disagreed=sum(outcome != passed for outcome in outcomes)
    )
    return msgspec.structs.replace(verdict, found=found)


def _with_custom_check(found: Finding, checked: Finding) -> Finding:
    """What the verifier found, together with what the user's own check found."""
    return msgspec.structs.replace(
        found,
        passed=checked.passed,
        score=checked.score,
        label=found.label or checked.label,
        reason=found.reason or checked.reason,
    )


def verdict_key(ask: str, case: Case, verifier: Verifier, controls: int) -> str:
    """Two verdicts with the same key judge the same reply by the same tests, verifier and toolchain, and by as many controls."""
    return digest(ask, case.tests_digest, verifier.version, *((controls,) if controls else ()))


def failure(of: Attempt | Reply | Verdict, error: StepError) -> Failure:
    """A step of ours that broke, as a fact beside the others; with the key of a verdict it takes that back."""
    case = of.case.id if isinstance(of, Attempt) else of.case
    return Failure(
        key=of.key,
        at=now(),
        case=case,
        model=of.model,
        tier=of.tier,
        number=of.number,
        stage=error.stage,
        message=" ".join(str(error).split())[:1000],
    )
