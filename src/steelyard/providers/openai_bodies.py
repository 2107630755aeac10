"""What the body of a response in OpenAI's format holds, whole or in the chunks of a stream."""

from __future__ import annotations

from typing import Any

import msgspec

from steelyard.providers.bodies import LenientNumbers, as_dict, as_list, content_text
from steelyard.providers.wire import HttpExchange
from steelyard.records import Answer


def choice_index(choice: dict[str, Any]) -> int:
    """Which choice of a response this is; 0 where it does not say."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def message_reasoning(message: dict[str, Any]) -> str:
    """What the model thought aloud: beside its text, or in parts of it as Mistral sends them."""
    parts = [part.get("thinking") for part in map(as_dict, as_list(message.get("content")))]
    return content_text(message.get("reasoning_content") or message.get("reasoning") or parts)


def joined_chunks(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The completion that the chunks of a stream make; raises ValueError where the stream broke off."""
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        whole |= {name: value for name, value in chunk.items() if name != "choices" and value is not None}
        for part in map(as_dict, as_list(chunk.get("choices"))):
            choice = choices.setdefault(choice_index(part), {"message": {}, "index": choice_index(part)})
            for name in ("finish_reason", "error"):
                choice[name] = part.get(name) or choice.get(name)
            _add_delta(choice["message"], as_dict(part.get("delta") or part.get("message")))
            choice["text"] = choice.get("text", "") + content_text(part.get("text"))
    unfinished = [choice for choice in choices.values() if not (choice["finish_reason"] or choice["error"])]
    if unfinished and not whole.get("error"):
        raise ValueError("the stream broke off")
    return whole | {"choices": list(choices.values())}


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name in ("content", "refusal", "reasoning_content", "reasoning"):
        if text := content_text(delta.get(name)):
            message[name] = message.get(name, "") + text
    calls = message.setdefault("tool_calls", [])
    for part in map(as_dict, as_list(delta.get("tool_calls"))):
        function = as_dict(part.get("function"))
        if function.get("name") or not calls:
            calls.append({"id": part.get("id"), "function": {"name": function.get("name"), "arguments": ""}})
        calls[-1]["function"]["arguments"] += content_text(function.get("arguments"))


def answer_with_usage(bare_answer: Answer, exchange: HttpExchange, completion: dict[str, Any]) -> Answer:
    """The answer with what it took, as far as the server tells."""
    usage, numbers = as_dict(completion.get("usage")), LenientNumbers()
    inputs, outputs = as_dict(usage.get("prompt_tokens_details")), as_dict(usage.get("completion_tokens_details"))
    cached = inputs.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    answer = msgspec.structs.replace(
        bare_answer,
        input_tokens=numbers.tokens("prompt_tokens", usage.get("prompt_tokens")),
        output_tokens=numbers.tokens("completion_tokens", usage.get("completion_tokens")),
        cached_tokens=numbers.tokens("cached_tokens", cached),
        reasoning_tokens=numbers.tokens("reasoning_tokens", outputs.get("reasoning_tokens")),
        cost=numbers.cost("cost", usage.get("cost"), "the provider"),
        latency=exchange.seconds,
        request_id=exchange.headers.get("x-request-id") or str(completion.get("id") or ""),
    )
    return msgspec.structs.replace(answer, note="; ".join(filter(None, (answer.note, numbers.note))))
