"""How fast an endpoint is asked, when a model is given up, and when the money is: on a clock that nobody waits for."""

from __future__ import annotations

import asyncio
import random
import re
from itertools import pairwise

import pytest

from steelyard.engine.pace import (
    DEFAULT_MAX_OUTPUT_TOKENS,
    DEFAULT_MAX_WAIT_SECONDS,
    MAX_BACKOFF_SECONDS,
    MAX_FAILURES_IN_A_ROW,
    MAX_REFUSALS_IN_A_ROW,
    Budget,
    CircuitBreaker,
    ConcurrencyLimiter,
    backoff_seconds,
    max_request_tokens,
)
from steelyard.protocols import RateLimitHeadroom
from steelyard.records import Attempt, Case, Message
from support.quick_loop import now, quickly


def allowed_after(pace: ConcurrencyLimiter, answers: int) -> int:
    for _ in range(answers):
        pace.answered(None)
    return pace.allowed


def test_it_begins_small_and_doubles_with_every_round_until_it_is_pushed_back() -> None:
    pace = ConcurrencyLimiter(64, clock=lambda: 0.0)
    rounds = [pace.allowed] + [allowed_after(pace, pace.allowed) for _ in range(3)]
    assert rounds == [4, 8, 16, 32]


def test_it_never_allows_more_than_makes_sense() -> None:
    assert ConcurrencyLimiter(2, clock=lambda: 0.0).allowed == 2
    assert allowed_after(ConcurrencyLimiter(10, clock=lambda: 0.0), 1000) == 10


def test_after_a_push_back_a_whole_round_allows_one_more() -> None:
    pace = ConcurrencyLimiter(64, clock=lambda: 10.0)
    assert allowed_after(pace, 12) == 16
    pace.pushed_back(5.0, None, "429")
    assert pace.allowed == 8
    assert allowed_after(pace, 7) == 8
    assert allowed_after(pace, 2) == 9


def test_one_congestion_halves_once_however_many_requests_it_fails() -> None:
    moment = 1.0
    pace = ConcurrencyLimiter(64, clock=lambda: moment)
    assert allowed_after(pace, 12) == 16
    for _ in range(16):
        pace.pushed_back(0.5, None, "429")
    assert pace.allowed == 8
    moment = 2.0
    # a request that began after the first push-back tells of a second congestion
    pace.pushed_back(1.5, None, "429")
    assert pace.allowed == 4


def test_one_request_at_a_time_is_always_allowed() -> None:
    moment = 0.0
    pace = ConcurrencyLimiter(64, clock=lambda: moment)
    for number in range(1, 20):
        moment = float(number)
        pace.pushed_back(number - 0.5, None, "500")
    assert pace.allowed == 1


def test_no_more_are_in_flight_than_are_allowed_and_each_gets_its_turn_in_order() -> None:
    async def go() -> None:
        pace = ConcurrencyLimiter(3)
        in_flight = 0
        turns = []

        async def ask(number: int) -> None:
            nonlocal in_flight
            await pace.enter()
            turns.append(number)
            in_flight += 1
            assert in_flight <= 3
            await asyncio.sleep(1)
            in_flight -= 1
            pace.leave()

        await asyncio.gather(*map(ask, range(10)))
        assert turns == list(range(10))
        assert now() == pytest.approx(4)

    quickly(go())


def test_a_wait_that_the_server_asks_for_is_for_everyone() -> None:
    async def go() -> None:
        pace = ConcurrencyLimiter(8)
        began = await pace.enter()
        pace.leave()
        pace.pushed_back(began, 30, "429 slow down")
        assert pace.reason == "waiting 30 s: 429 slow down"
        starts = list(await asyncio.gather(pace.enter(), pace.enter()))
        assert starts == [30, 30]
        assert pace.reason == ""

    quickly(go())


def test_the_longest_of_several_waits_counts() -> None:
    async def go() -> None:
        pace = ConcurrencyLimiter(8)
        for wait in (5, 40, 10):
            pace.pushed_back(0, wait, "429")

        async def longer() -> None:
            await asyncio.sleep(20)
            pace.pushed_back(0, 50, "429")

        _, start = await asyncio.gather(longer(), pace.enter())
        assert start == 70

    quickly(go())


def test_nobody_waits_longer_than_is_sensible_for_a_server() -> None:
    async def go() -> None:
        pace = ConcurrencyLimiter(8)
        pace.pushed_back(0, DEFAULT_MAX_WAIT_SECONDS + 1, "429")
        assert await pace.enter() == 0

    quickly(go())


def test_a_rate_limit_that_is_used_up_is_waited_for_and_one_that_is_not_is_not() -> None:
    async def go() -> None:
        pace = ConcurrencyLimiter(8)
        pace.answered(RateLimitHeadroom(1, 500))
        pace.answered(None)
        pace.answered(RateLimitHeadroom(0, 0))
        assert await pace.enter() == 0
        pace.answered(RateLimitHeadroom(0, 12))
        assert pace.reason == "waiting 12 s: the rate limit is used up"
        assert await pace.enter() == 12

    quickly(go())


def test_whoever_gives_up_waiting_takes_no_place_with_them() -> None:
    """Many come, some leave while they wait for a turn or through a pause; the rest all get their turn."""

    async def go(seed: int) -> None:
        chance = random.Random(seed)
        pace = ConcurrencyLimiter(4)
        served = 0

        async def ask() -> None:
            nonlocal served
            began = await pace.enter()
            try:
                await asyncio.sleep(chance.random())
                served += 1
                if chance.random() < 0.2:
                    pace.pushed_back(began, chance.choice([None, 0.3]), "429")
                else:
                    pace.answered(None)
            finally:
                pace.leave()

        tasks = [asyncio.create_task(ask()) for _ in range(60)]
        for _ in range(25):
            await asyncio.sleep(chance.random() / 3)
            chance.choice(tasks).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert served == sum(not task.cancelled() for task in tasks)
        places = pace.allowed
        async with asyncio.timeout(100):
            await asyncio.gather(*(pace.enter() for _ in range(places)))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await pace.enter()

    for seed in range(30):
        quickly(go(seed))


def test_back_off_doubles_has_chance_in_it_and_an_end() -> None:
    for tries, first in ((0, 1.0), (1, 1.0), (3, 0.5)):
        waits = [backoff_seconds(tries, first) for _ in range(200)]
        middle = first * 2**tries
        assert middle * 0.5 <= min(waits) < middle * 0.7
        assert middle * 1.3 < max(waits) <= middle * 1.5
        assert len(set(waits)) > 190
    assert backoff_seconds(50, 1.0) <= MAX_BACKOFF_SECONDS * 1.5
    assert backoff_seconds(5000, 1.0) <= MAX_BACKOFF_SECONDS * 1.5


def test_a_model_is_given_up_after_some_failures_in_a_row() -> None:
    breaker = CircuitBreaker()
    for _ in range(MAX_FAILURES_IN_A_ROW - 1):
        breaker.failed("500", for_everyone=False)
    assert not breaker.broken
    breaker.answered()
    for _ in range(MAX_FAILURES_IN_A_ROW - 1):
        breaker.failed("500", for_everyone=False)
    assert not breaker.broken
    breaker.failed("503", for_everyone=False)
    assert breaker.broken == f"{MAX_FAILURES_IN_A_ROW} attempts in a row got no answer, the last because 503"


def test_a_model_is_given_up_after_few_refusals_that_concern_everyone_unless_one_is_answered_between() -> None:
    breaker = CircuitBreaker()
    for _ in range(5):
        for _ in range(MAX_REFUSALS_IN_A_ROW - 1):
            breaker.failed("401 stray", for_everyone=True)
        breaker.answered()
    assert not breaker.broken
    for _ in range(MAX_REFUSALS_IN_A_ROW):
        breaker.failed("401 wrong key", for_everyone=True)
    breaker.failed("500", for_everyone=False)
    assert breaker.outcome == "was given up: 401 wrong key"


def test_waits_without_an_answer_add_up_and_then_a_model_is_left_for_later() -> None:
    breaker = CircuitBreaker(max_wait=100)
    for _ in range(5):
        breaker.check_wait(60, "429", added=60)
        breaker.answered()
    # several who wait at the same time wait once
    for added in (60, 0, 0, 30):
        breaker.check_wait(60, "429", added=added)
    assert not breaker.broken
    breaker.check_wait(60, "429 slow down", added=60)
    assert re.fullmatch(
        r"was left for later: 150 s of waiting, and a wait without an answer may last 100 s: 429 slow down; "
        r"resume after \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        breaker.outcome,
    )
    for seconds in (101, 86_400, 1e12, 1e300):
        alone = CircuitBreaker(max_wait=100)
        alone.check_wait(seconds, "429")
        assert "was left for later: it asks for" in alone.outcome


def test_a_pause_that_others_wait_for_already_is_not_counted_twice() -> None:
    moment = 10.0
    pace = ConcurrencyLimiter(8, clock=lambda: moment)
    assert pace.longer_by(30) == 30
    pace.pushed_back(0, 30, "429")
    assert pace.longer_by(30) == 0
    moment = 20.0
    assert pace.longer_by(30) == 10
    assert pace.longer_by(5) == 0


def test_no_request_costs_more_than_it_reserves() -> None:
    case = Case(id="a", prompt=(Message(role="system", content="ä" * 10), Message(role="user", content="x" * 10)))
    assert max_request_tokens(Attempt(case=case, model="m")) == (20 + 10 + 2 * 16, DEFAULT_MAX_OUTPUT_TOKENS)
    assert max_request_tokens(Attempt(case=case, model="m", parameters={"max_tokens": 7}))[1] == 7


def test_without_a_budget_everything_is_affordable_and_counted() -> None:
    async def go() -> None:
        budget = Budget(None, spent=1.0)
        assert await budget.reserve(1e9)
        budget.settle(1e9, 2.5)
        assert budget.spent == 3.5
        assert not budget.exhausted

    quickly(go())


def test_a_request_that_does_not_fit_waits_for_those_in_flight() -> None:
    async def go() -> None:
        budget = Budget(1.0)
        assert await budget.reserve(0.6)
        second = asyncio.create_task(budget.reserve(0.6))
        await asyncio.sleep(1)
        assert not second.done()
        budget.settle(0.6, 0.1)
        assert await second
        budget.settle(0.6, 0.6)
        assert not await budget.reserve(0.6)
        assert budget.exhausted
        assert budget.spent == pytest.approx(0.7)

    quickly(go())


def test_what_was_spent_before_counts() -> None:
    async def go() -> None:
        budget = Budget(1.0, spent=0.95)
        assert not await budget.reserve(0.1)
        assert budget.exhausted

    quickly(go())


def test_whatever_the_order_the_budget_is_kept_and_everybody_gets_an_answer() -> None:
    async def go(seed: int) -> None:
        chance = random.Random(seed)
        budget = Budget(1.0)
        history = [0.0]

        async def ask() -> bool:
            most = chance.uniform(0.05, 0.2)
            if not await budget.reserve(most):
                return False
            await asyncio.sleep(chance.random())
            budget.settle(most, chance.uniform(0, most))
            history.append(budget.spent)
            return True

        async with asyncio.timeout(1000):
            answers = await asyncio.gather(*(ask() for _ in range(40)))
        assert budget.spent <= 1.0
        assert all(before <= after for before, after in pairwise(history))
        assert sum(answers) == len(history) - 1
        assert budget.exhausted == (not all(answers))

    for seed in range(30):
        quickly(go(seed))
