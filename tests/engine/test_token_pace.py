"""Tokens a minute: from headers, and learned where there are none."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.engine.asking.token_pace import LEARNED_SHARE, WINDOW_SECONDS, TokenPace
from steelyard.engine.pace import ConcurrencyLimiter
from steelyard.errors import Unavailable
from steelyard.protocols import RateLimitHeadroom
from steelyard.providers.faults import headroom, provider_error


def test_a_request_waits_for_the_reset_where_the_tokens_that_are_left_do_not_suffice() -> None:
    pace = TokenPace()
    assert pace.wait(0.0) == 0
    pace.answered(0.0, RateLimitHeadroom(100, 1.0, tokens=2500, tokens_reset=20.0), 1000)
    # two requests of 1,000 tokens fit into what is left, a third does not
    assert [pace.wait(1.0), pace.wait(1.0), pace.wait(1.0)] == [0, 0, 19.0]
    assert pace.wait(20.0) == 0


def test_without_headers_no_more_is_asked_in_a_minute_than_was_taken_before_the_refusal() -> None:
    pace = TokenPace()
    for second in range(10):
        assert pace.wait(float(second)) == 0
        pace.answered(float(second), None, 1000)
    pace.refused(10.0)
    assert pace.wait(10.0) == pytest.approx(WINDOW_SECONDS - 10)
    # once the first answers are a minute old, there is room for as many again
    assert pace.wait(WINDOW_SECONDS + 1.5) == 0
    assert LEARNED_SHARE < 1


def test_a_learned_limit_grows_while_nothing_is_refused() -> None:
    pace = TokenPace()
    pace.answered(0.0, None, 1000)
    pace.refused(0.0)
    for minute in range(1, 10):
        pace.answered(60.0 * minute, None, 1000)
    assert pace.wait(540.0) == 0


def test_refusals_about_requests_teach_nothing_about_tokens_and_those_about_tokens_do() -> None:
    async def wait_after(said: str, status: int = 429) -> bool:
        error = provider_error(f"http://tokens: {status} {said}", status, {"error": {"message": said}}, parameters=[])
        assert isinstance(error, Unavailable)
        clock = [0.0]
        pace = ConcurrencyLimiter(8, clock=lambda: clock[0])
        began = await pace.enter()
        pace.answered(None, 1000)
        pace.leave()
        pace.pushed_back(began, None, str(error), is_token_limit=error.is_token_limit)
        entering = asyncio.create_task(pace.enter())
        await asyncio.sleep(0.01)
        is_waiting = not entering.done()
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        return is_waiting

    assert not asyncio.run(wait_after("Rate limit reached on requests per min"))
    assert not asyncio.run(wait_after("too many tokens", 503))
    assert asyncio.run(wait_after("Rate limit reached on tokens per min (TPM)"))


def test_headers_tell_the_tokens_that_are_left() -> None:
    found = headroom(
        {
            "x-ratelimit-remaining-requests": "50",
            "x-ratelimit-reset-requests": "1s",
            "x-ratelimit-remaining-tokens": "1500",
            "x-ratelimit-reset-tokens": "6s",
        }
    )
    assert found is not None
    assert (found.requests, found.tokens, found.tokens_reset) == (50, 1500, 6.0)
