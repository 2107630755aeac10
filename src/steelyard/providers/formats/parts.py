"""The files in a message, as wire formats carry them: base64 with a media type, or a URL."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

from steelyard.errors import Rejected
from steelyard.records import ContentPart, Message, MessageRole

AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav", "audio/x-wav": "wav"}
"""The words that OpenAI has for recordings."""


def media_type(part: ContentPart) -> str:
    """What kind of file a part is.

    >>> media_type(ContentPart(type="image", path="cat.png")), media_type(ContentPart(type="file", url="https://x/y?z"))
    ('image/png', 'application/octet-stream')
    """
    guessed = mimetypes.guess_type(part.path or part.url.partition("?")[0])[0]
    return part.media_type or guessed or "application/octet-stream"


def base64_data(part: ContentPart) -> str:
    """The bytes of a part's file in base64; raises Rejected where it cannot be read."""
    return base64.b64encode(_file_bytes(part)).decode()


def file_text(part: ContentPart) -> str:
    """The text of a part's file; a broken character becomes U+FFFD."""
    return _file_bytes(part).decode("utf-8", "replace")


def _file_bytes(part: ContentPart) -> bytes:
    try:
        content = Path(part.kept or part.path).read_bytes()
    except OSError as error:
        raise Rejected(f"{part.label} cannot be read: {error.strerror}") from None
    if part.digest and file_digest(content) != part.digest:
        raise Rejected(f"{part.label} is not the file that it was when the run was planned: {part.kept or part.path}")
    return content


def file_digest(content: bytes) -> str:
    """The placeholder for a file's bytes in a question."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def data_url(part: ContentPart) -> str:
    """The URL of a part, or a data URL with its bytes."""
    return part.url or f"data:{media_type(part)};base64,{base64_data(part)}"


def file_name(part: ContentPart) -> str:
    """The name of a part's file."""
    return Path(part.path or part.url.partition("?")[0]).name or "file"


def not_in_format(part: ContentPart, where: str) -> Rejected:
    """What to raise for a part that a format has no place for."""
    how = " by URL" if part.url else ""
    return Rejected(f"{where}: this format takes no {part.type}{how}: {part.label}")


def system_text(messages: tuple[Message, ...]) -> str:
    """The system prompts of a conversation, where a format has one place for them."""
    return "\n\n".join(message.text for message in messages if message.role == MessageRole.SYSTEM)


def turns(messages: tuple[Message, ...]) -> list[Message]:
    """A conversation without its system prompts."""
    return [message for message in messages if message.role != MessageRole.SYSTEM]


def grouped_turns(
    messages: tuple[Message, ...], content: Callable[[Message], Any], tool_result: Callable[[Message], dict[str, Any]]
) -> list[dict[str, Any]]:
    """A conversation for formats in which the results of tools that follow each other are one message of the user's."""
    made: list[dict[str, Any]] = []
    for is_result, group in groupby(turns(messages), key=lambda message: message.role == MessageRole.TOOL):
        if is_result:
            made.append({"role": "user", "content": [tool_result(message) for message in group]})
        else:
            made += [{"role": message.role, "content": content(message)} for message in group]
    return made
