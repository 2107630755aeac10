"""How long a server asks us to wait, in the many ways that servers write it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from steelyard.protocols import RateLimitHeadroom


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks us to wait, if it gives a readable value."""
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return _seconds_from_now(milliseconds) if milliseconds >= MIN_EPOCH_SECONDS else milliseconds / 1000
    return seconds_until(headers.get("retry-after", ""))


def headroom(headers: Mapping[str, str]) -> RateLimitHeadroom | None:
    """What rate-limit headers leave, in the spellings of OpenAI, Anthropic and the IETF draft."""
    present = {name.lower() for name in headers}
    tightest, tokens, tokens_reset = None, None, 0.0
    for left, reset in (
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
        ("ratelimit-remaining", "ratelimit-reset"),
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ):
        if left not in present:
            continue
        remaining = _number(headers[left])
        seconds = seconds_until(headers.get(reset, ""))
        if remaining is None or seconds is None:
            continue
        if tightest is None or (remaining, -seconds) < (tightest.requests, -tightest.reset):
            tightest = RateLimitHeadroom(int(remaining), seconds)
        if "tokens" in left:
            tokens, tokens_reset = int(remaining), seconds
    return None if tightest is None else tightest._replace(tokens=tokens, tokens_reset=tokens_reset)


def seconds_until(text: str) -> float | None:
    """A moment or a span of time, as servers write them, in seconds from now.

    >>> seconds_until("6m0.5s"), seconds_until("20"), seconds_until("120ms"), seconds_until("soon")
    (360.5, 20.0, 0.12, None)
    """
    if (plain := _number(text)) is not None:
        return _seconds_from_now(plain)
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
    if re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d))+", text):
        return math.fsum(float(n) * units[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text))
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
        except (ValueError, TypeError, OverflowError):
            continue
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None


MIN_EPOCH_SECONDS = 1e9
"""No server asks for a wait of thirty years: such a number is a Unix timestamp, in seconds or in a fraction of them."""


def _seconds_from_now(number: float) -> float:
    """A number of seconds, or a moment in seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if number < MIN_EPOCH_SECONDS:
        return number
    while number >= 1000 * MIN_EPOCH_SECONDS:
        number /= 1000
    return max(0.0, number - time.time())


def _number(text: str) -> float | None:
    """A number of things that can be waited for; servers also send nan, infinity and words."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
