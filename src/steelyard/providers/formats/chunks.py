"""The completion that the chunks of a stream make, in OpenAI's format."""

from __future__ import annotations

from typing import Any

from steelyard.providers.bodies import content_text, strict_dict, strict_list
from steelyard.providers.faults import has_finish

TEXT_DELTAS = ("content", "refusal", "reasoning_content", "reasoning")
DELTAS = (*TEXT_DELTAS, "tool_calls", "function_call")
"""What a chunk of a streamed answer may contain."""


def choice_index(choice: dict[str, Any]) -> int:
    """Which choice of a response this is; 0 if it does not say."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def refusal_text(refusal: Any) -> str:
    """What a model says in place of an answer; some servers only say whether it does."""
    return "" if isinstance(refusal, bool) else content_text(refusal)


def called_tools(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls in a message or in a part of one; raises ValueError if a malformed part could hide one."""
    calls = [*strict_list(message.get("tool_calls") or None), message.get("function_call") or None]
    return [call for call in map(strict_dict, calls) if call]


def joined_chunks(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The completion that the chunks of a stream make; raises ValueError where the stream broke off, or went on after its end."""
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        whole |= {name: value for name, value in chunk.items() if name != "choices" and value is not None}
        for part in map(strict_dict, strict_list(chunk.get("choices"))):
            index = choice_index(part)
            choice = choices.setdefault(index, {"message": {}, "index": index, "finish_reason": None, "error": None})
            delta = strict_dict(part.get("delta") or part.get("message"))
            if has_finish(part.get("finish_reason")):
                # some servers write it into every chunk
                choice["finish_reason"] = part["finish_reason"]
            elif choice["finish_reason"] and (part.get("text") or delta.get("content") or called_tools(delta)):
                raise ValueError("the stream went on after its end")
            choice["error"] = part.get("error") or choice["error"]
            _add_delta(choice["message"], delta)
            choice["text"] = choice.get("text", "") + content_text(part.get("text"))
    unfinished = [choice for choice in choices.values() if not (choice["finish_reason"] or choice["error"])]
    if unfinished and not whole.get("error"):
        raise ValueError("the stream broke off")
    return whole | {"choices": list(choices.values())}


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    if isinstance(details := delta.get("reasoning_details"), list):
        message["reasoning_details"] = [*message.get("reasoning_details", []), *details]
    for name in TEXT_DELTAS:
        if text := refusal_text(delta.get(name)) if name == "refusal" else content_text(delta.get(name)):
            message[name] = message.get(name, "") + text
    calls = message.setdefault("tool_calls", [])
    for part in called_tools(delta):
        function = strict_dict(part.get("function")) or part
        call = _begun_call(calls, part, function)
        if call is None and (function.get("name") or part.get("index") is not None):
            call = {
                "index": part.get("index"),
                "id": part.get("id"),
                "function": {"name": function.get("name"), "arguments": ""},
            }
            calls.append(call)
        if call or calls:
            (call or calls[-1])["function"]["arguments"] += content_text(function.get("arguments"))


def _begun_call(calls: list[dict[str, Any]], part: dict[str, Any], function: dict[str, Any]) -> dict[str, Any] | None:
    """The call that a part continues; None if it begins one, or does not say which it continues."""
    # parts of several calls may come in turns; without a number, a name begins a call
    index, name = part.get("index"), part.get("id")
    call = next((each for each in reversed(calls) if index is not None and each["index"] == index), None)
    # some servers number all calls 0
    is_another = call is not None and function.get("name") and name and call["id"] and name != call["id"]
    return None if is_another else call
