"""The turns of agents, as Claude Code and Codex print them."""

from __future__ import annotations

import json
from typing import Any

from steelyard.providers.agent.trace import agent_turns

CLAUDE: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init"},
    {"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "I look."}], "usage": {"input_tokens": 5, "output_tokens": 1}}},
    {"type": "assistant", "message": {"id": "m1", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}], "usage": {"input_tokens": 5, "output_tokens": 9}}},
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}]}},
    {"type": "assistant", "message": {"id": "m2", "content": [{"type": "text", "text": "Done."}]}},
    {"type": "result", "total_cost_usd": 0.1},
]  # fmt: skip
CODEX: list[dict[str, Any]] = [
    {"type": "thread.started"},
    {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "ls", "aggregated_output": "a.py", "exit_code": 0}},
    {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Done."}},
    {"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": 3}},
]  # fmt: skip


def transcript(events: list[dict[str, Any]]) -> str:
    return "hello\n" + "\n".join(map(json.dumps, events)) + '\n{"type": "assistant", "mess'


def test_the_turns_of_claude_code_have_their_calls_results_and_tokens() -> None:
    first, second = agent_turns(transcript(CLAUDE))
    assert (first.text, first.finish, first.input_tokens, first.output_tokens) == ("I look.", "tool_calls", 5, 9)
    assert [(call.name, call.arguments) for call in first.tool_calls] == [("Bash", '{"command": "ls"}')]
    assert [(result.name, result.content, result.is_error) for result in first.results] == [("Bash", "no", True)]
    assert (second.text, second.tool_calls) == ("Done.", ())


def test_the_turns_of_codex_have_what_it_did_and_said() -> None:
    (turn,) = agent_turns(transcript(CODEX))
    assert (turn.text, turn.input_tokens) == ("Done.", 7)
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [("command_execution", '{"command": "ls"}')]
    assert [(result.content, result.is_error) for result in turn.results] == [("a.py", False)]


def test_a_transcript_of_another_kind_tells_of_no_turns() -> None:
    hostile = ['{"type": "assistant", "message": 5}', '{"type": "user", "message": {"content": [1]}}', "{" * 100_000]
    assert agent_turns("plain text\n[1, 2]\n" + "\n".join(hostile)) == ()
    assert (
        agent_turns('{"type": "item.completed", "item": {"type": "agent_message", "text": "\\ud800"}}')[0].text == "?"
    )
