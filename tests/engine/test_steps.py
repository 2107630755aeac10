"""Asking until there is an answer or a reason: on a clock that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from steelyard.engine.pace import MAX_FAILURES_IN_A_ROW, MAX_REFUSALS_IN_A_ROW, CircuitBreaker, ConcurrencyLimiter
from steelyard.engine.steps import RetryPolicy, ask, verify
from steelyard.errors import RecordedFailure, Rejected, Unavailable
from steelyard.protocols import Delivery, OfferedModel, RateLimitHeadroom
from steelyard.providers.prices import Prices
from steelyard.records import Answer, Attempt, Case, Failure, Finding, Price, Reply, Verdict
from support.quick_loop import now, quickly

ATTEMPT = Attempt(case=Case(id="a", prompt="a?", target="x"), model="p/m", system="be brief", number=3)
HI = Answer(text="hi", input_tokens=1_000_000, output_tokens=2_000_000)


class Scripted:
    """Someone who answers or raises as the script says, and knows when it was asked."""

    endpoint = "the endpoint"
    at_once = 8

    def __init__(self, *script: Answer | Exception | Callable[[Delivery], Awaitable[Answer]]) -> None:
        self._script = list(script)
        self.asked: list[float] = []
        self.left: RateLimitHeadroom | None = None

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        self.asked.append(now())
        said = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Answer) else await said(delivery)

    def headroom(self) -> RateLimitHeadroom | None:
        return self.left

    def available(self, case: str) -> int | None:
        return None

    async def offers(self) -> list[OfferedModel]:
        return []

    async def close(self) -> None:
        pass


def outcome(
    provider: Scripted,
    *,
    retries: int = 3,
    breaker: CircuitBreaker | None = None,
    prices: dict[str, Price] | None = None,
) -> Reply | Failure | None:
    async def go() -> Reply | Failure | None:
        persistence = RetryPolicy(retries=retries, first_pause=10.0, deadline=100.0)
        return await ask(
            ATTEMPT, provider, ConcurrencyLimiter(8), breaker or CircuitBreaker(), persistence, Prices(prices or {})
        )

    return quickly(go())


def failed(fact: Reply | Failure | None) -> str:
    assert isinstance(fact, Failure)
    assert (fact.key, fact.case, fact.model, fact.number, fact.stage) == (ATTEMPT.key, "a", "p/m", 3, "ask")
    return fact.message


def test_an_answer_becomes_a_reply_with_its_key_and_its_price() -> None:
    fact = outcome(Scripted(HI), prices={"p/m": Price(input=1, output=10, source="mine", date="2026-01-01")})
    assert isinstance(fact, Reply)
    assert (fact.key, fact.asked, fact.case, fact.model, fact.number) == (ATTEMPT.key, ATTEMPT.asked, "a", "p/m", 3)
    assert fact.answer.cost is not None
    assert (fact.answer.cost.usd, fact.answer.cost.source, fact.answer.cost.date) == (21, "mine", "2026-01-01")


def test_an_unknown_price_is_unknown_not_zero() -> None:
    fact = outcome(Scripted(HI))
    assert isinstance(fact, Reply)
    assert fact.answer.cost is None


def test_an_outage_is_retried_with_longer_and_longer_pauses_and_then_is_a_failure() -> None:
    provider = Scripted(Unavailable("503 busy"))
    assert failed(outcome(provider)) == "503 busy"
    pauses = [after - before for before, after in zip(provider.asked, provider.asked[1:], strict=False)]
    assert len(pauses) == 3
    for pause, middle in zip(pauses, (10, 20, 40), strict=True):
        assert middle * 0.5 <= pause <= middle * 1.5


def test_an_outage_that_passes_leaves_no_trace() -> None:
    assert isinstance(outcome(Scripted(Unavailable("503"), Unavailable("503"), HI)), Reply)


def test_the_wait_that_a_server_asks_for_is_waited_and_no_other() -> None:
    provider = Scripted(Unavailable("429", retry_after=33), Unavailable("429", retry_after=0), HI)
    assert isinstance(outcome(provider), Reply)
    assert provider.asked == [0, 33, 33]


def test_a_server_that_asks_for_hours_is_not_asked_again() -> None:
    provider = Scripted(Unavailable("429 tomorrow", retry_after=86_400))
    assert failed(outcome(provider)) == "429 tomorrow"
    assert provider.asked == [0]


def test_an_answer_that_does_not_come_is_not_waited_for_beyond_the_deadline() -> None:
    async def never(delivery: Delivery) -> Answer:
        await asyncio.sleep(1e6)
        return HI

    provider = Scripted(never)
    assert failed(outcome(provider, retries=1)) == "the endpoint: no answer within 100 s"
    assert len(provider.asked) == 2
    assert isinstance(outcome(Scripted(never, HI), retries=1), Reply)


async def hang(delivery: Delivery) -> Answer:
    """The model's side has the request, and says nothing."""
    delivery.accepted = True
    await asyncio.sleep(1e6)
    return HI


async def replies(
    *asking: tuple[float, Callable[[Delivery], Awaitable[Answer]]], case: Case = ATTEMPT.case
) -> list[str]:
    """What comes of attempts at one model that begin at these moments: the finish of each, or `failure`."""
    breaker, pace = CircuitBreaker(), ConcurrencyLimiter(64)
    persistence = RetryPolicy(retries=0, deadline=100.0)

    async def one(number: int, begin: float, said: Callable[[Delivery], Awaitable[Answer]]) -> str:
        await asyncio.sleep(begin)
        attempt = Attempt(case=case, model="p/m", number=number)
        fact = await ask(attempt, Scripted(said), pace, breaker, persistence, Prices({}))
        return fact.answer.finish if isinstance(fact, Reply) else "failure" if fact else "not asked"

    return list(await asyncio.gather(*(one(number, *each) for number, each in enumerate(asking, 1))))


class OneArgument(Scripted):
    """A provider as plug-ins once were: nothing says how far its requests got."""

    async def ask(self, attempt: Attempt) -> Answer:  # type: ignore[override]
        return await super().ask(attempt, Delivery())


def test_a_provider_that_takes_the_attempt_alone_is_asked_and_its_timeouts_are_outages() -> None:
    assert isinstance(outcome(OneArgument(HI)), Reply)
    assert "no answer within 100 s" in failed(outcome(OneArgument(hang)))


async def says(delivery: Delivery) -> Answer:
    return HI


def test_no_answer_in_time_is_an_outcome_only_where_answering_in_time_is_the_task() -> None:
    code = Case(id="a", prompt="a?", language="python")
    assert quickly(replies((0, says), (1, hang))) == ["stop", "timeout"]
    assert quickly(replies((0, says), (1, hang), case=code)) == ["stop", "failure"]


def test_no_answer_in_time_from_a_model_that_has_answered_nobody_is_a_failure_also_when_it_answers_later() -> None:
    assert quickly(replies((0, hang), (200, says))) == ["failure", "stop"]


def test_whether_silence_is_an_outage_is_known_when_somebody_is_answered_or_enough_are_not() -> None:
    late = [(1 + number / 10, hang) for number in range(MAX_FAILURES_IN_A_ROW - 1)]
    # the next answer comes 150 s after the time-outs, and speaks for them
    assert quickly(replies((0, says), *late, (250, says))) == ["stop", *["timeout"] * len(late), "stop"]
    # another time-out instead is one too many, and speaks against them
    assert quickly(replies((0, says), *late, (95, hang))) == ["stop", *["failure"] * MAX_FAILURES_IN_A_ROW]
    # nobody is left who could tell
    assert quickly(replies((0, says), *late)) == ["stop", *["timeout"] * len(late)]


def test_time_outs_while_others_are_answered_are_no_sign_of_an_outage() -> None:
    # the pace allows so many at once only after as many answers
    soon, late = [(0.0, says)] * 3 * MAX_FAILURES_IN_A_ROW, [(1.0, hang)] * 2 * MAX_FAILURES_IN_A_ROW
    told = quickly(replies(*soon, *late, (50, says)))
    assert told == [*["stop"] * len(soon), *["timeout"] * len(late), "stop"]


def test_whoever_stops_waiting_for_a_decision_holds_up_nobody() -> None:
    async def go() -> None:
        breaker = CircuitBreaker()
        breaker.answered()

        async def wait() -> bool:
            with breaker:
                return await breaker.stayed_silent("late", in_silence=True)

        async def ask_on() -> None:
            with breaker:
                await asyncio.sleep(100)

        asking = asyncio.create_task(ask_on())
        first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
        await asyncio.sleep(1)
        first.cancel()
        await asyncio.sleep(1)
        assert not second.done()
        await asking
        assert await second
        assert first.cancelled()

    quickly(go())


def test_recordings_of_what_went_wrong_do_not_make_a_model_given_up() -> None:
    breaker = CircuitBreaker()
    for _ in range(2 * MAX_FAILURES_IN_A_ROW):
        assert failed(outcome(Scripted(RecordedFailure("no reply was recorded")), breaker=breaker))
    assert not breaker.broken


@pytest.mark.parametrize(
    "error", [Rejected("400 no"), Rejected("401 who?", everyone=True), KeyError("a bug"), OSError(5)]
)
def test_what_asking_again_would_not_help_is_not_asked_again(error: Exception) -> None:
    provider = Scripted(error)
    assert failed(outcome(provider))
    assert len(provider.asked) == 1


def test_a_plug_ins_exception_is_named() -> None:
    assert failed(outcome(Scripted(KeyError("lost")))) == "KeyError: 'lost'"


def test_a_provider_that_returns_something_else_than_an_answer_fails() -> None:
    async def text(delivery: Delivery) -> Any:
        return "hi"

    assert failed(outcome(Scripted(text))) == "TypeError: it returned str, not Answer"


def test_a_long_message_of_many_lines_is_one_line_of_bounded_length() -> None:
    message = failed(outcome(Scripted(Rejected("x\n" * 5000))))
    assert "\n" not in message
    assert len(message) <= 1000


def test_a_model_that_was_given_up_is_not_asked_and_what_was_not_asked_is_no_failure() -> None:
    breaker = CircuitBreaker()
    for _ in range(MAX_REFUSALS_IN_A_ROW):
        breaker.failed("401", for_everyone=True)
    provider = Scripted(HI)
    assert outcome(provider, breaker=breaker) is None
    assert provider.asked == []


def test_retries_end_when_the_model_is_given_up_meanwhile() -> None:
    breaker = CircuitBreaker()

    async def give_up(delivery: Delivery) -> Answer:
        for _ in range(MAX_REFUSALS_IN_A_ROW):
            breaker.failed("401", for_everyone=True)
        raise Unavailable("500")

    provider = Scripted(give_up)
    assert failed(outcome(provider, breaker=breaker)) == "500"
    assert len(provider.asked) == 1


def test_an_answer_forgives_the_failures_before_it() -> None:
    breaker = CircuitBreaker()
    for _ in range(MAX_FAILURES_IN_A_ROW - 1):
        outcome(Scripted(Rejected("400")), breaker=breaker)
    outcome(Scripted(HI), breaker=breaker)
    outcome(Scripted(Rejected("400")), breaker=breaker)
    assert not breaker.broken


def test_a_used_up_rate_limit_holds_back_the_next_request() -> None:
    async def go() -> None:
        provider = Scripted(HI)
        provider.left = RateLimitHeadroom(0, 44)
        pace = ConcurrencyLimiter(8)
        for _ in range(2):
            await ask(ATTEMPT, provider, pace, CircuitBreaker(), RetryPolicy(), Prices({}))
        assert provider.asked == [0, 44]

    quickly(go())


class Judge:
    """A verifier that says or raises what it was made with."""

    version = "judge 1"
    at_once = 1
    runs_code = False

    def __init__(self, said: Finding | Exception) -> None:
        self._said = said

    def check(self, case: Case) -> None:
        pass

    async def close(self) -> None:
        pass

    async def verify(self, case: Case, answer: Answer) -> Finding:
        if isinstance(self._said, Exception):
            raise self._said
        return self._said


def judged(said: Finding | Exception) -> Verdict | Failure:
    reply = outcome(Scripted(HI))
    assert isinstance(reply, Reply)
    return quickly(verify(reply, ATTEMPT.case, Judge(said)))


def test_a_finding_becomes_a_verdict_on_its_reply() -> None:
    verdict = judged(Finding(passed=True))
    assert isinstance(verdict, Verdict)
    assert (verdict.ask, verdict.tests, verdict.verifier) == (ATTEMPT.key, ATTEMPT.case.tests_digest, "judge 1")
    assert verdict.found == Finding(passed=True)


@pytest.mark.parametrize("said", [RuntimeError("no room to stand"), Finding(passed=False, reason="half a pair \udcff")])
def test_a_verifier_that_breaks_or_cannot_be_quoted_is_a_failure_of_ours(said: Finding | Exception) -> None:
    fact = judged(said)
    assert isinstance(fact, Failure)
    assert (fact.key, fact.stage) == (ATTEMPT.key, "verify")


def test_a_verifier_that_returns_something_else_than_a_finding_is_a_failure_of_ours() -> None:
    fact = judged(cast("Finding", True))
    assert isinstance(fact, Failure)
    assert (fact.stage, fact.message) == ("verify", "TypeError: it returned bool, not Finding")


def test_a_score_that_is_no_number_is_no_score() -> None:
    verdict = judged(Finding(score=float("nan")))
    assert isinstance(verdict, Verdict)
    assert verdict.found.score is None
