"""Whether conversations can be held: the tools work, the models take them, and the users can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.engine.asking.tool_runner import check_tool
from steelyard.engine.asking.users import UserModels
from steelyard.engine.options import RunOptions
from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.connect import check_prices, close_providers
from steelyard.errors import InputError
from steelyard.protocols import Provider
from steelyard.records import Case
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
