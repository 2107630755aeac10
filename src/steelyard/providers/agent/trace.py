"""The turns of an agent, if its transcript records them as Claude Code and Codex do: one JSON object per line."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from steelyard.providers.agent.usage import unwrapped, usage_fields
from steelyard.records import Cost, ToolCall, ToolResult, Turn

MAX_TRACE_TURNS = 2000
MAX_TRACE_CHARACTERS = 20_000
"""Characters of a text, of arguments or of a result that are kept; the transcript has them all."""
CODEX_TOOLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")
"""What Codex calls the items that are calls of tools."""


def agent_turns(transcript: str) -> tuple[Turn, ...]:
    """The turns in a transcript; none if it is not JSON. A line that was cut off is left out."""
    trace = _Trace()
    for text in transcript.splitlines():
        if text.startswith("{"):
            try:
                printed = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(printed, dict):
                trace.add(unwrapped(printed))
    return tuple(trace.turns[:MAX_TRACE_TURNS])


class _Trace:
    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._message = ""
        self._is_open = False
        """Whether what Codex does next belongs to the last turn."""

    def add(self, printed: dict[str, Any]) -> None:
        """Take one event of either agent."""
        kind, message, item = printed.get("type"), printed.get("message"), printed.get("item")
        if kind == "assistant" and isinstance(message, dict):
            self._add_message(message)
        elif kind == "user" and isinstance(message, dict):
            self._add_results(message)
        elif kind == "item.completed" and isinstance(item, dict):
            self._add_item(item)
        elif kind == "turn.completed" and self.turns:
            self.turns[-1] = _with_usage(self.turns[-1], printed)
            self._is_open = False

    def _add_message(self, message: dict[str, Any]) -> None:
        """A message of Claude Code, which comes in one event for each of its blocks."""
        name = str(message.get("id") or "")
        if not self.turns or not name or name != self._message:
            self.turns.append(Turn())
        self._message = name
        turn, blocks = self.turns[-1], _blocks(message)
        calls = tuple(
            ToolCall(
                name=str(block.get("name") or ""), arguments=_text(block.get("input")), id=str(block.get("id") or "")
            )
            for block in blocks
            if block.get("type") == "tool_use"
        )
        self.turns[-1] = _with_usage(
            replace(
                turn,
                text=turn.text + "".join(_text(block.get("text")) for block in blocks if block.get("type") == "text"),
                reasoning=turn.reasoning
                + "".join(_text(block.get("thinking")) for block in blocks if "thinking" in block),
                tool_calls=(*turn.tool_calls, *calls),
                finish="tool_calls" if calls or turn.tool_calls else "stop",
            ),
            message,
        )

    def _add_results(self, message: dict[str, Any]) -> None:
        for block in _blocks(message):
            if block.get("type") != "tool_result" or not self.turns:
                continue
            called = str(block.get("tool_use_id") or "")
            place = next(
                (
                    at
                    for at in reversed(range(len(self.turns)))
                    if any(c.id == called for c in self.turns[at].tool_calls)
                ),
                None,
            )
            if place is not None:
                turn = self.turns[place]
                name = next(call.name for call in turn.tool_calls if call.id == called)
                result = ToolResult(
                    name=name,
                    content=_text(block.get("content")),
                    call_id=called,
                    is_error=block.get("is_error") is True,
                )
                self.turns[place] = replace(turn, results=(*turn.results, result))

    def _add_item(self, item: dict[str, Any]) -> None:
        """An item of Codex: what it said, or one thing that it did."""
        kind = str(item.get("type") or "")
        if kind not in (*CODEX_TOOLS, "agent_message", "reasoning"):
            return
        if not self._is_open:
            self.turns.append(Turn())
            self._is_open = True
        turn = self.turns[-1]
        if kind in ("agent_message", "reasoning"):
            field = "text" if kind == "agent_message" else "reasoning"
            said = "\n\n".join(filter(None, (getattr(turn, field), _text(item.get("text")))))
            self.turns[-1] = replace(turn, **{field: said})
            return
        name = str(item.get("tool") or kind)
        asked = {key: item[key] for key in ("command", "arguments", "changes", "query") if key in item}
        failed = item.get("status") == "failed" or item.get("exit_code") not in (None, 0)
        called = str(item.get("id") or "")
        result = ToolResult(
            name=name,
            content=_text(item.get("aggregated_output") or item.get("result") or item.get("error")),
            call_id=called,
            is_error=failed,
        )
        call = ToolCall(name=name, arguments=_text(asked), id=called)
        self.turns[-1] = replace(turn, tool_calls=(*turn.tool_calls, call), results=(*turn.results, result))


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()[:MAX_TRACE_CHARACTERS]


def _with_usage(turn: Turn, printed: dict[str, Any]) -> Turn:
    told = usage_fields(printed)
    counts = {name: int(value) for name, value in told.items() if name != "cost_usd"}
    cost = Cost(usd=told["cost_usd"], source="the agent") if "cost_usd" in told else turn.cost
    return replace(turn, cost=cost, **counts) if told else turn
