"""Calling the tools of a case: the user's functions and canned results; errors are returned to the model."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections import deque
from collections.abc import AsyncIterable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from steelyard.errors import InputError, ProviderError, did_you_mean
from steelyard.plugins.user_functions import UserFunction, in_loop, in_thread, load_function
from steelyard.providers.bodies import json_value
from steelyard.records import CannedResult, Case, CaseTool, ToolCall, ToolResult, digest
from steelyard.text import short_quote
from steelyard.verifiers.response.schema import CompiledJsonSchema, SchemaTooCostlyError, compile_schema

MAX_YIELDED_ITEMS = 10_000
"""Maximum items of a generator; an endless one would take all memory."""
_ADDRESS_PATTERN = re.compile(r" at 0x[0-9A-Fa-f]+\b")
"""Python's default `repr` of a value; its address differs between processes."""


class _YieldedError(Exception):
    """What a generator of the user's raised while its items were listed; that is the cause."""


async def returned_text(function: UserFunction, arguments: Mapping[str, Any]) -> str:
    """What a function returns for these arguments, as text; what it yields is listed."""
    returned = await function._replace(body=partial(_body_text, function.body)).call_with(arguments)
    while inspect.isawaitable(returned):
        returned = await in_loop(returned)
    if isinstance(returned, AsyncIterable):
        returned = await in_loop(_items(returned))
    # items of a generator are computed by code of the user's, and must not hold up others
    return returned if isinstance(returned, str) else str(await in_thread(value_text, returned))


def _body_text(body: Any, /, **arguments: Any) -> Any:
    """What a function returns as text, made in the function's own thread; what only an event loop can wait for as it is."""
    returned = body(**arguments)
    return returned if inspect.isawaitable(returned) or isinstance(returned, AsyncIterable) else value_text(returned)


async def _items(yielded: AsyncIterable[Any]) -> list[Any]:
    items: list[Any] = []
    async for item in yielded:
        items.append(item)
        _check_item_count(items)
    return items


def value_text(value: Any) -> str:
    """A text as it is, any other value as JSON, and what JSON cannot hold by its `str`; raises if that fails."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value, enc_hook=_listed).decode()
    except _YieldedError as error:
        raise (error.__cause__ or error) from None
    except (TypeError, ValueError, RecursionError):
        text = described(value)
    if _ADDRESS_PATTERN.search(text):
        raise TypeError(
            f"the tool returned {_ADDRESS_PATTERN.sub('', text)[:200]}, which is not a value for a model; return text or JSON values"
        )
    return text


def _listed(value: Any) -> list[Any]:
    """The items of a value that JSON cannot hold."""
    if not isinstance(value, Iterator | range | KeysView | ValuesView | ItemsView | deque):
        raise TypeError
    try:
        items = list(islice(value, MAX_YIELDED_ITEMS + 1))
        _check_item_count(items)
    except Exception as error:
        raise _YieldedError from error
    return items


def _check_item_count(items: list[Any]) -> None:
    if len(items) > MAX_YIELDED_ITEMS:
        raise OverflowError(f"the tool yielded more than {MAX_YIELDED_ITEMS:,} items")


def described(value: Any) -> str:
    """The `str` of a value of the user's code; one that raises must not end the run."""
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001  it comes from code of the user's
        return f"{type(value).__name__} that cannot be written as text ({type(error).__name__})"


MAX_TOOL_RESULT_CHARACTERS = 200_000
"""Maximum characters of a result that a model gets; more would not fit into its context."""


class ToolCallError(Exception):
    """Why a tool call failed, as it is returned to the model."""


async def tool_results(case: Case, calls: Iterable[ToolCall]) -> tuple[ToolResult, ...]:
    """What the calls of one turn return, one after the other, so that a later one sees what an earlier one did."""
    tools = {tool.name: tool for tool in case.tools}
    return tuple([await _result(tools, call) for call in calls])


def are_called(case: Case, calls: Sequence[ToolCall]) -> bool:
    """Whether all of these calls can be answered: a tool that is only offered ends a conversation."""
    only_offered = {tool.name for tool in case.tools if not tool.is_called}
    return all(call.name not in only_offered for call in calls)


async def _result(tools: dict[str, CaseTool], call: ToolCall) -> ToolResult:
    started = time.monotonic()
    try:
        content, is_error = await _called(tools, call), False
    except ToolCallError as error:
        content, is_error = str(error), True
    return ToolResult(
        name=call.name,
        call_id=call.id,
        content=_bounded(content),
        is_error=is_error,
        seconds=round(time.monotonic() - started, 6),
    )


async def _called(tools: dict[str, CaseTool], call: ToolCall) -> str:
    tool = tools.get(call.name)
    if tool is None:
        raise ToolCallError(f"there is no tool {short_quote(call.name)} ({did_you_mean(call.name[:80], tools)})")
    arguments = _arguments(call)
    try:
        unmet = _schema(msgspec.json.encode(tool.schema)).unmet(arguments, len(call.arguments))
    except (SchemaTooCostlyError, RecursionError):
        raise ToolCallError("the arguments are nested too deeply") from None
    if unmet is not None:
        raise ToolCallError(f"the arguments do not meet the schema of {tool.name}: {unmet.what}")
    if not tool.python:
        return value_text(_canned(tool, arguments))
    # one that is gone or changed is not a mistake of the model's
    function = tool_function(tool.python, tool.source)
    limit = asyncio.timeout(tool.timeout_secs)
    try:
        async with limit:
            return await returned_text(function, arguments)
    except Exception as error:
        if limit.expired():
            raise ToolCallError(f"{tool.name} returned nothing within {tool.timeout_secs:g} s") from None
        raise ToolCallError(f"{type(error).__name__}: {described(error)}") from error


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json_value(call.arguments.encode()) if call.arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ToolCallError(f"the arguments are not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise ToolCallError("the arguments must be a JSON object")
    return arguments


def _canned(tool: CaseTool, arguments: dict[str, Any]) -> Any:
    default = CannedResult(result=tool.result, error=tool.error) if tool.error or tool.result is not None else None
    found = next((known for known in tool.results if _fits(known, arguments)), default)
    if found is None:
        raise ToolCallError(f"{tool.name} has no result for these arguments")
    if found.error:
        raise ToolCallError(found.error)
    return found.result


def _fits(known: CannedResult, arguments: dict[str, Any]) -> bool:
    return all(name in arguments and arguments[name] == value for name, value in known.arguments.items())


def _bounded(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= MAX_TOOL_RESULT_CHARACTERS:
        return text
    return f"{text[:MAX_TOOL_RESULT_CHARACTERS]}... ({len(text) - MAX_TOOL_RESULT_CHARACTERS:,} more characters)"


@cache
def _schema(encoded: bytes) -> CompiledJsonSchema:
    return compile_schema(msgspec.json.decode(encoded))


@cache
def tool_function(path: str, source: str) -> UserFunction:
    """A function of the user's, as it was when its case was loaded; raises if it is gone or has changed."""
    file = path.rpartition(":")[0]
    try:
        if source and digest(Path(file).read_bytes()) != source:
            raise ProviderError(
                f"{file} changed since this run began; a changed tool is a new question: start a new run"
            )
        return load_function(path)
    except OSError as error:
        raise ProviderError(f"{file}: {error.strerror}") from None
    except InputError as error:
        raise ProviderError(str(error)) from None


def check_tool(tool: CaseTool) -> None:
    """Raises an InputError if calling this tool could only fail."""
    try:
        _schema(msgspec.json.encode(tool.schema))
    except ValueError as error:
        raise InputError(f"tool {short_quote(tool.name)}: parameters: {error}") from None
    if tool.python:
        try:
            tool_function(tool.python, tool.source)
        except ProviderError as error:
            raise InputError(f"tool {short_quote(tool.name)}: {error}") from None
