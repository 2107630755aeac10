"""Messages of a conversation, their parts, and the tools that a model may call."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import msgspec

from steelyard.records.base import Record

ContentType = Literal["text", "image", "audio", "file"]


class MessageRole(StrEnum):
    """The roles that we distinguish; an eval set may name another one that its provider knows."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(Record, frozen=True, kw_only=True):
    """A tool call that a model requested."""

    name: str
    arguments: str = ""
    """As the model wrote them: JSON, if it followed its instructions."""
    id: str = ""


class ContentPart(Record, frozen=True, kw_only=True):
    """A part of a message: a text, or a file by its path or its URL."""

    type: ContentType
    text: str = ""
    path: str = ""
    """A file beside the eval set; once loaded, its path on this machine."""
    url: str = ""
    """An address that the provider fetches the file from; nothing is fetched here."""
    media_type: str = ""
    """Such as `image/png`; by default it follows from the suffix."""
    digest: str = ""
    """A digest of the file's bytes, filled in by the loader: it represents the file in the ask key."""
    kept: str = ""
    """Where a run has a copy of the file, filled in while it is asked."""

    @property
    def label(self) -> str:
        """The placeholder for the part where only text can be shown."""
        return self.text if self.type == "text" else f"[{self.type}: {self.url or self.path.rpartition('/')[2]}]"


class Message(Record, frozen=True, kw_only=True):
    """One turn of a conversation."""

    role: str
    """A `MessageRole`, or another role that the provider knows; it is sent as it is."""
    content: str | tuple[ContentPart, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    """For `assistant`: the tool calls that it requested."""
    tool_call_id: str = ""
    """For `tool`: the call that this is the result of."""
    is_error: bool = False
    """For `tool`: whether calling it failed."""
    native: tuple[dict[str, Any], ...] = ()
    """For `assistant`: the original message of its provider, which is sent back instead of our form of it."""

    @property
    def text(self) -> str:
        """The message as text; a file is its name in brackets."""
        return self.content if isinstance(self.content, str) else "\n\n".join(part.label for part in self.content)

    @property
    def parts(self) -> tuple[ContentPart, ...]:
        """The content as parts."""
        if isinstance(self.content, str):
            return (ContentPart(type="text", text=self.content),) if self.content else ()
        return self.content

    @property
    def without_paths(self) -> Message:
        """The message by its content, independent of where its files are."""
        if isinstance(self.content, str):
            return self
        parts = tuple(msgspec.structs.replace(part, path="", kept="") for part in self.content)
        return msgspec.structs.replace(self, content=parts)


class Tool(Record, frozen=True, kw_only=True):
    """A tool that a model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """A JSON Schema of its arguments."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments, or an empty one."""
        return self.parameters or {"type": "object", "properties": {}}
