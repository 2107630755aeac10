"""Whether conversations can be held (the tools work, the models take them, the users can be asked), and the most that they can cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from steelyard.engine.asking.conversation import UserModels, model_attempt, user_attempt
from steelyard.engine.asking.tool_runner import check_tool
from steelyard.engine.options import RunOptions
from steelyard.engine.pace import max_request_tokens
from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.connect import check_prices, close_providers
from steelyard.errors import InputError
from steelyard.protocols import Provider
from steelyard.providers.prices import Prices
from steelyard.records import Attempt, Case
from steelyard.text import short_quote


def check_tools(cases: Sequence[Case]) -> None:
    """Raises an InputError if a tool of a case cannot be called."""
    for case in cases:
        for tool in case.tools:
            try:
                check_tool(tool)
            except InputError as error:
                raise InputError(f"case {short_quote(case.id)}: {error}") from None


def check_conversations(cases: Sequence[Case], providers: Mapping[str, Provider], means: RunOptions) -> None:
    """Raises an InputError if cases have tools that cannot be called, or users or models that cannot be asked."""
    try:
        check_tools(cases)
        with_tools = [case.id for case in cases if case.tools][:1]
        for model, provider in providers.items() if with_tools else ():
            if provider.available(with_tools[0]) is None and not getattr(provider, "takes_tools", False):
                raise InputError(
                    f"{model}: this provider has no tools, and case {short_quote(with_tools[0])} has some; "
                    "ask a model of another provider, or leave such cases out with --exclude"
                )
        if any(case.user for case in cases):
            users = UserModels(cases, means).connect_all()
            check_prices(users, means)
            run_coroutine(close_providers(users))
    except InputError:
        run_coroutine(close_providers(providers))
        raise


ASSUMED_TOOL_TOKENS = 4_000
"""Tokens that tools are assumed to return in one turn, unless a canned result is longer: the result of a function is not known in advance."""
MAX_PRICED_TURNS = 1_000
"""Turns that are priced one by one; in a longer conversation each is taken for as long as the last."""


class ConversationSize:
    """How large the requests of one conversation can become."""

    def __init__(self, attempt: Attempt) -> None:
        case = attempt.case
        self.turns = case.turn_limit
        self.user_turns = min(case.user.max_turns, case.turn_limit) if case.user else 0
        self._first, self._output = max_request_tokens(model_attempt(attempt, (), ""))
        self._user_first, self._user_output = 0, 0
        if case.user is not None:
            self._user_first, self._user_output = max_request_tokens(user_attempt(attempt, case.user, (), ""))
        canned = [msgspec.json.encode([tool.result, tool.error, tool.results]) for tool in case.tools]
        tools = max([ASSUMED_TOOL_TOKENS, *map(len, canned)]) if case.tools else 0
        self._growth = self._output + self._user_output + tools

    def model_requests(self) -> Iterator[tuple[int, int]]:
        """Input and output tokens of each request to the model that is tested."""
        return ((self._first + turn * self._growth, self._output) for turn in range(self.turns))

    def user_requests(self) -> Iterator[tuple[int, int]]:
        """The same of the model that plays the user."""
        return ((self._user_first + turn * self._growth, self._user_output) for turn in range(1, self.user_turns + 1))


def conversation_bound(prices: Prices, attempt: Attempt) -> float | None:
    """The most that the model which is tested can cost in one conversation; None if its price is unknown."""
    size = ConversationSize(attempt)
    return _total(prices, attempt.model, size.model_requests(), size.turns)


def user_bounds(prices: Prices, user: str, attempts: Iterable[Attempt]) -> list[float | None]:
    """The most that the model which plays the user can cost in each conversation."""
    sizes = map(ConversationSize, attempts)
    return [_total(prices, user, size.user_requests(), size.user_turns) for size in sizes]


def _total(prices: Prices, model: str, requests: Iterator[tuple[int, int]], count: int) -> float | None:
    if count > MAX_PRICED_TURNS:
        *_, last = requests
        bound = prices.bound(model, *last)
        return None if bound is None else count * bound
    bounds = [prices.bound(model, *size) for size in requests]
    known = [bound for bound in bounds if bound is not None]
    return sum(known) if len(known) == len(bounds) else None
