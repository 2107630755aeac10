"""Two turns of a conversation with a tool, as each vendor's server sends them."""

from __future__ import annotations

import json
from typing import Any

CALL = {"a": 1}
CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1763000000,
    "model": "m",
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1763000000,
    "model": "m",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 12,
    },
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 3},
}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": json.dumps(CALL)}}
TURNS: dict[str, tuple[Any, Any]] = {
    "openai": (
        CHAT
        | {
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
                    "finish_reason": "tool_calls",
                }
            ]
        },
        CHAT | {"choices": [{"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}]},
    ),
    "openai-responses": (
        RESPONSE
        | {
            "status": "completed",
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": json.dumps(CALL)},
            ],
        },
        RESPONSE
        | {
            "status": "completed",
            "output": [
                {
                    "type": "message",
                    "id": "msg_1",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "42", "annotations": []}],
                }
            ],
        },
    ),
    "anthropic": (
        MESSAGE
        | {
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sealed"},
                {"type": "tool_use", "id": "c1", "name": "add", "input": CALL},
            ],
            "stop_reason": "tool_use",
        },
        MESSAGE | {"content": [{"type": "text", "text": "42"}], "stop_reason": "end_turn"},
    ),
    "gemini": (
        {
            "candidates": [
                {
                    "content": {
                        "parts": [{"functionCall": {"name": "add", "args": CALL}, "thoughtSignature": "sealed"}]
                    },
                    "finishReason": "STOP",
                }
            ]
        },
        {"candidates": [{"content": {"parts": [{"text": "42"}]}, "finishReason": "STOP"}]},
    ),
    "bedrock": (
        {
            "output": {
                "message": {
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sealed"}}},
                        {"toolUse": {"toolUseId": "c1", "name": "add", "input": CALL}},
                    ]
                }
            },
            "stopReason": "tool_use",
        },
        {"output": {"message": {"content": [{"text": "42"}]}}, "stopReason": "end_turn"},
    ),
}
TURNS["deepseek"] = (
    {
        "choices": [
            {
                "message": {"content": "", "reasoning_content": "sealed", "tool_calls": [CHAT_CALL]},
                "finish_reason": "tool_calls",
            }
        ]
    },
    TURNS["openai"][1],
)
TURNS["openrouter"] = (
    {
        "choices": [
            {
                "message": {"content": "", "reasoning_details": [{"data": "sealed"}], "tool_calls": [CHAT_CALL]},
                "finish_reason": "tool_calls",
            }
        ]
    },
    TURNS["openai"][1],
)

SENT_BACK: dict[str, list[Any]] = {
    "openai": [
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ],
    "openai-responses": [
        *TURNS["openai-responses"][0]["output"],
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
    ],
    "anthropic": [
        {"role": "assistant", "content": TURNS["anthropic"][0]["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42"}]},
    ],
    "gemini": [
        {"role": "model", "parts": TURNS["gemini"][0]["candidates"][0]["content"]["parts"]},
        {"role": "user", "parts": [{"functionResponse": {"name": "add", "response": {"result": "42"}}}]},
    ],
    "bedrock": [
        {"role": "assistant", "content": TURNS["bedrock"][0]["output"]["message"]["content"]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "42"}], "status": "success"}}],
        },
    ],
    "deepseek": [
        {"role": "assistant", "content": "", "tool_calls": [CHAT_CALL], "reasoning_content": "sealed"},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ],
    "openrouter": [
        {"role": "assistant", "content": "", "tool_calls": [CHAT_CALL], "reasoning_details": [{"data": "sealed"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ],
}
"""What the second request has in addition to the first."""
