"""What differs between servers that all speak OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from steelyard.providers.bodies import as_dict

EFFORT_PATH = ("reasoning_effort",)


class ChatDialect(NamedTuple):
    """How one server calls what is not called alike everywhere."""

    max_tokens: str = "max_tokens"
    seed: str = "seed"
    effort: tuple[str, ...] = EFFORT_PATH
    """The path to the reasoning effort in a request; empty if there is none."""
    schemas: bool = True
    """Whether a reply can be held to a JSON Schema, and not only to JSON."""
    stream_usage: bool = True
    """Whether the tokens of a streamed answer have to be asked for."""


DIALECTS: Mapping[str, ChatDialect] = {
    "": ChatDialect(),
    # their own models refuse the older name of the limit, other servers do not know the newer one
    "openai": ChatDialect(max_tokens="max_completion_tokens"),
    "azure": ChatDialect(max_tokens="max_completion_tokens"),
    "openrouter": ChatDialect(effort=("reasoning", "effort")),
    # refuses what it does not know
    "mistral": ChatDialect(seed="random_seed", stream_usage=False),
    "deepseek": ChatDialect(schemas=False),
    "llama.cpp": ChatDialect(effort=("chat_template_kwargs", "reasoning_effort")),
    "lmstudio": ChatDialect(effort=()),
}
"""Dialects by name; a server that is not here speaks the plain one."""


def chat_dialect(name: str, url: str) -> tuple[str, ChatDialect]:
    """The dialect of a name, and else of the server at an address."""
    if not name and urlsplit(url).hostname == "api.openai.com":
        name = "openai"
    return (name, DIALECTS[name]) if name in DIALECTS else ("", DIALECTS[""])


def in_dialect(parameters: Mapping[str, Any], dialect: ChatDialect) -> dict[str, Any]:
    """Parameters as a server calls them."""
    sent = dict(parameters)
    for ours, theirs in (("max_tokens", dialect.max_tokens), ("seed", dialect.seed)):
        if ours in sent:
            sent[theirs] = sent.pop(ours)
    if "reasoning_effort" in sent and len(dialect.effort) == 2:
        table, name = dialect.effort
        sent[table] = {**sent.get(table, {}), name: sent.pop("reasoning_effort")}
    return sent


def unsupported_in(dialect: ChatDialect, parameters: Mapping[str, Any]) -> str:
    """Why a server that speaks this dialect cannot be sent these parameters; empty if it can."""
    if "reasoning_effort" in parameters and not dialect.effort:
        return "has no reasoning effort"
    given = parameters.get("response_format")
    if not dialect.schemas and isinstance(given, dict) and given.get("type") == "json_schema":
        return "supports JSON, but no schema; use --response-format json"
    return ""


REASONING_FIELDS = {"deepseek": "reasoning_content", "openrouter": "reasoning_details"}
"""By dialect of chat completions where a message holds its reasoning, which has to come back with it."""


def chat_native(message: dict[str, Any], calls: Sequence[Any], dialect: str) -> tuple[dict[str, Any], ...]:
    """A message of chat completions that calls tools, to be sent back; empty if our own words say as much.

    A call keeps what its server added to it, such as a signature.
    """
    field = REASONING_FIELDS.get(dialect, "")
    known = [as_dict(call) for call in calls]
    is_plain = all(call.keys() <= {"index", "id", "type", "function"} for call in known)
    if not calls or not all(call.get("id") for call in known) or (is_plain and not field):
        return ()
    kept = [{"type": "function"} | {key: value for key, value in call.items() if key != "index"} for call in known]
    said: dict[str, Any] = {"role": "assistant", "content": message.get("content"), "tool_calls": kept}
    if field == "reasoning_content":
        # there it has to be, even if it is empty
        said[field] = message.get(field) or ""
    elif field and message.get(field):
        said[field] = message[field]
    return (said,)
