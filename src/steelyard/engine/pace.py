"""How fast an endpoint may be asked, and how much may be spent, including requests in flight."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from steelyard.engine.asking.token_pace import TokenPace
from steelyard.protocols import RateLimitHeadroom
from steelyard.records import Attempt, Tier
from steelyard.text import line

DEFAULT_MAX_OUTPUT_TOKENS = 128_000
"""Output tokens that a reply can have at most, where the user sets no limit: what models of today write at most."""
OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
"""What formats call the limit on a reply."""
MAX_FILE_TOKENS = 16_384
"""Input tokens that an image, a recording or a document is taken to have at most."""


def max_request_tokens(attempt: Attempt) -> tuple[int, int]:
    """Input and output tokens that a request can come to at most: no tokenizer makes two tokens of one byte."""
    files = sum(part.type != "text" for message in attempt.messages for part in message.parts)
    written = sum(len(message.text.encode()) + 16 for message in attempt.messages) + files * MAX_FILE_TOKENS
    shape = attempt.parameters.get("response_format")
    if attempt.tools or shape is not None:
        calls = [(message.tool_calls, message.native) for message in attempt.messages]
        written += len(msgspec.json.encode([attempt.tools, calls, shape]))
    limits = [attempt.parameters[name] for name in OUTPUT_LIMITS if name in attempt.parameters]
    return written, max(map(int, limits), default=DEFAULT_MAX_OUTPUT_TOKENS)


class Budget:
    """Dollars that may be spent. A request reserves the most it can cost, and gives back what it did not."""

    def __init__(self, dollars: float | None, spent: float = 0) -> None:
        self._dollars = dollars
        self._reserved = 0.0
        self._given_back = asyncio.Event()
        self.spent = spent
        self.exhausted = False

    async def reserve(self, most: float) -> bool:
        """Reserve the maximum cost of a request; False if the budget does not cover it."""
        if self._dollars is None:
            return True
        while self.spent + self._reserved + most > self._dollars:
            if self._reserved == 0 or self.exhausted:
                self.exhausted = True
                return False
            # requests in flight usually cost less than they reserved
            self._given_back.clear()
            await self._given_back.wait()
        self._reserved += most
        return True

    def settle(self, most: float, cost: float) -> None:
        """A request ended: give its reservation back, and count what it cost."""
        if self._dollars is not None:
            self._reserved = max(0.0, self._reserved - most)
            if self._reserved < 1e-12:
                self._reserved = 0.0  # sums of floats do not return to exactly 0
            self._given_back.set()
        self.spent += cost


class TierBudgets:
    """A budget for each tier that has one, and for each case under a tier that has one for its cases."""

    def __init__(self, tiers: Iterable[Tier]) -> None:
        self._tiers = {tier.name: tier for tier in tiers}
        self._budgets: dict[tuple[str, str | None], Budget] = {}
        """By tier and case; a tier as a whole has none."""

    def _of(self, tier: str, case: str) -> Iterator[Budget]:
        known = self._tiers.get(tier)
        if known is None:
            return
        for dollars, place in ((known.budget_usd, None), (known.case_budget_usd, case)):
            if dollars is not None:
                yield self._budgets.setdefault((tier, place), Budget(dollars))

    def of(self, attempt: Attempt) -> list[Budget]:
        """The budgets that an attempt is paid from, beside that of the run."""
        return list(self._of(attempt.tier, attempt.case.id)) if self._tiers else []

    def count(self, tier: str, case: str, cost: float) -> None:
        """An earlier session has spent this."""
        for budget in self._of(tier, case):
            budget.spent += cost

    def exhausted(self) -> list[str]:
        """The budgets that do not cover another attempt, in sentences."""
        found = []
        for name, tier in self._tiers.items():
            whole = self._budgets.get((name, None))
            if whole is not None and whole.exhausted:
                found.append(
                    f"the budget of ${tier.budget_usd:g} of tier {line(name, 80)} does not cover another attempt"
                )
            cases = [case for (of, case), budget in self._budgets.items() if of == name and case and budget.exhausted]
            if cases:
                more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
                found.append(
                    f"the budget of ${tier.case_budget_usd:g} of a case under tier {line(name, 80)} does not cover "
                    f"another attempt at {line(cases[0], 80)}{more}"
                )
        return found


async def reserve_all(budgets: Sequence[Budget], most: float) -> bool:
    """Reserve the maximum cost of an attempt in several budgets; False if one does not cover it."""
    for place, budget in enumerate(budgets):
        if not await budget.reserve(most):
            settle_all(budgets[:place], most, 0)
            return False
    return True


def settle_all(budgets: Iterable[Budget], most: float, cost: float) -> None:
    """An attempt ended: give its reservations back, and count what it cost."""
    for budget in budgets:
        budget.settle(most, cost)


MAX_FAILURES_IN_A_ROW = 8
"""Consecutive attempts that may fail permanently before a model is given up."""
MAX_BACKOFF_SECONDS = 60.0
"""Seconds that our own back-off waits at most; a server may ask for more."""
MAX_REFUSALS_IN_A_ROW = 3
"""Attempts in a row that may be refused for a reason that concerns every request, such as a wrong key."""
DEFAULT_MAX_WAIT_SECONDS = 600.0
"""Seconds that a model may keep us waiting without any answer."""
RATE_LIMIT_REASON = "the rate limit is used up"
MAX_STATED_WAIT_SECONDS = 10 * 365 * 86400.0
"""Seconds from now beyond which no moment is stated."""
INITIAL_CONCURRENCY = 4.0
"""Requests at once before anything is known about an endpoint."""


class ConcurrencyLimiter:
    """The requests in flight to one endpoint.

    The number allowed grows with every answer and is halved when the server pushes back: additive increase,
    multiplicative decrease (Chiu and Jain 1989), doubling until the first push-back.
    """

    def __init__(
        self,
        at_once: int,
        *,
        clock: Callable[[], float] | None = None,
        max_wait: float = DEFAULT_MAX_WAIT_SECONDS,
    ) -> None:
        self._max_wait = max_wait
        self._most = float(at_once)
        self._allowed = min(INITIAL_CONCURRENCY, self._most)
        self._clock = clock or asyncio.get_running_loop().time
        self._in_flight = 0
        self._starting = True
        self._pause_until = 0.0
        self._last_push_back = -1.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._tokens = TokenPace()
        self.reason = ""
        """Why we wait, for people who watch."""

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    async def enter(self) -> float:
        """Wait for a turn, which `leave` ends; returns the moment it began, for `pushed_back`."""
        if self._in_flight < self.allowed:
            self._in_flight += 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.leave()
                raise
        try:
            while (wait := self._wait()) > 0:  # noqa: ASYNC110  the pause may grow meanwhile
                await asyncio.sleep(wait)
        except asyncio.CancelledError:
            self.leave()
            raise
        self.reason = ""
        return self._clock()

    def _wait(self) -> float:
        """Seconds until a request may be sent: the pause first, then its share of the tokens of a minute."""
        now = self._clock()
        if self._pause_until > now:
            return self._pause_until - now
        wait = self._tokens.wait(now)
        if not 0 < wait <= self._max_wait:
            return 0.0
        self.reason = f"waiting {wait:.0f} s: the tokens of this minute are used up"
        return wait

    def leave(self) -> None:
        self._in_flight -= 1
        self._call()

    def _call(self) -> None:
        """Hand free places to those who wait, one each: waking all of them for one place costs more than asking."""
        while self._waiting and self._in_flight < self.allowed:
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def answered(self, headroom: RateLimitHeadroom | None, tokens: int = 0) -> None:
        """The endpoint kept up: allow a little more, unless it says that nothing is left; `tokens` are those of the answer."""
        self._tokens.answered(self._clock(), headroom, tokens)
        # until the first push-back every answer allows one more, which doubles with each round
        self._allowed = min(self._most, self._allowed + (1 if self._starting else 1 / self._allowed))
        self._call()
        if headroom is not None and headroom.requests <= 0 and headroom.reset > 0:
            self._pause(headroom.reset, RATE_LIMIT_REASON)

    def pushed_back(self, began: float, wait: float | None, reason: str, *, is_token_limit: bool = False) -> None:
        """The endpoint is overloaded or rate-limits us: ask less, and wait if it asks us to."""
        self._starting = False
        # one congestion fails many requests that began before it was noticed: it counts once
        if began > self._last_push_back:
            self._last_push_back = self._clock()
            self._allowed = max(1.0, self._allowed / 2)
        if wait is not None:
            self._pause(wait, reason)
        elif is_token_limit:
            self._tokens.refused(self._clock())

    def longer_by(self, seconds: float) -> float:
        """By how much a pause of this length would outlast the current one."""
        now = self._clock()
        return max(0.0, now + seconds - max(now, self._pause_until))

    def _pause(self, seconds: float, reason: str) -> None:
        if seconds <= self._max_wait and self.longer_by(seconds) > 0:
            self._pause_until = self._clock() + seconds
            self.reason = f"waiting {seconds:.0f} s: {reason}"


class CircuitBreaker:
    """Gives up on a model that does not answer, and distinguishes its silence from that of a server that is gone."""

    def __init__(self, max_wait: float = DEFAULT_MAX_WAIT_SECONDS) -> None:
        self._max_wait = max_wait
        self._waited = 0.0
        self._in_a_row = 0
        self._refused_in_a_row = 0
        self._asking = 0
        self._overdue: list[asyncio.Future[bool]] = []
        self.answers = 0
        """How often the model has answered."""
        self.broken = ""
        """Why the model was given up or left for later; empty while it was not."""
        self.resume_after = ""
        """When a model that was left for later can be asked again; empty for one that was given up."""

    @property
    def outcome(self) -> str:
        """What became of a model that is asked no more."""
        if not self.resume_after:
            return f"was given up: {self.broken}"
        return f"was left for later: {self.broken}; resume after {self.resume_after}"

    def check_wait(self, seconds: float, reason: str, *, added: float = 0) -> None:
        """Leave the model for later where a wait, or all its waits without an answer, come to more than they may.

        `added` is by how much the wait is longer than those that go on at the same time.
        """
        self._waited += added
        if max(self._waited, seconds) <= self._max_wait or self.broken:
            return
        moment = datetime.now(UTC) + timedelta(seconds=min(seconds, MAX_STATED_WAIT_SECONDS))
        self.resume_after = moment.isoformat(timespec="seconds").replace("+00:00", "Z")
        what = f"it asks for {seconds:,.0f} s" if seconds > self._max_wait else f"{self._waited:,.0f} s of waiting"
        self.broken = f"{what}, and a wait without an answer may last {self._max_wait:g} s: {reason}"
        self._decide(is_its_own=False)

    def __enter__(self) -> None:
        """One attempt, from its first try to its result."""
        self._asking += 1

    def __exit__(self, *_: object) -> None:
        self._asking -= 1
        self._settle()

    def answered(self) -> None:
        self._in_a_row = 0
        self._refused_in_a_row = 0
        self._waited = 0.0
        self.answers += 1
        self._decide(is_its_own=True)

    def failed(self, message: str, *, for_everyone: bool) -> None:
        """An attempt got no answer, for a reason that concerns every request, or maybe only this one."""
        self._in_a_row += 1
        self._refused_in_a_row += for_everyone
        if self._refused_in_a_row >= MAX_REFUSALS_IN_A_ROW:
            self.broken = self.broken or message
        elif self._in_a_row >= MAX_FAILURES_IN_A_ROW:
            self.broken = self.broken or f"{self._in_a_row} attempts in a row got no answer, the last because {message}"
        if self.broken:
            self._decide(is_its_own=False)

    async def stayed_silent(self, message: str, *, in_silence: bool) -> bool:
        """Whether it is the model's own doing that an attempt got no answer in time, and not an outage.

        A timeout alone does not show that: a server that hangs for everybody looks the same. So it waits for what does. The next
        answer of the model proves that it was there; attempts in a row without one, as many as it takes to give a model up,
        prove that it was not, and then none of the time-outs before them is the model's either. If no other attempt
        can still succeed, fewer time-outs than that count as the model's own, provided that it has answered before.
        """
        if not self.answers or in_silence:
            # where others were answered meanwhile, a time-out is not a sign of an outage, however many come at once
            self.failed(message, for_everyone=False)
        if not self.answers or self.broken:
            return False
        overdue: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._overdue.append(overdue)
        self._settle()
        try:
            return await overdue
        finally:
            if overdue in self._overdue:
                self._overdue.remove(overdue)

    def _settle(self) -> None:
        """Decide once every open attempt waits for a decision: no answer can arrive any more."""
        if len(self._overdue) == self._asking:
            self._decide(is_its_own=True)

    def _decide(self, *, is_its_own: bool) -> None:
        if not self._overdue:
            return
        decided, self._overdue = self._overdue, []
        for overdue in decided:
            if not overdue.done():
                overdue.set_result(is_its_own)


def backoff_seconds(tries: int, first: float) -> float:
    """Seconds to wait before the next try: doubling, and never the same for two who failed together."""
    pause: float = min(MAX_BACKOFF_SECONDS, first * 2 ** min(tries, 64))
    return pause * random.uniform(0.5, 1.5)  # noqa: S311  spreading load is no secret
