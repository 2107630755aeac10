"""Calling the tools of a case: the user's functions and canned results; errors are returned to the model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from steelyard.engine.asking.tool_values import described, returned_text, value_text
from steelyard.errors import InputError, ProviderError, did_you_mean
from steelyard.plugins.user_functions import UserFunction, load_function
from steelyard.providers.bodies import json_value
from steelyard.records import CannedResult, Case, CaseTool, ToolCall, ToolResult, digest
from steelyard.text import short_quote
from steelyard.verifiers.response.schema import CompiledJsonSchema, SchemaTooCostlyError, compile_schema

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
