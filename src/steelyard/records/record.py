"""What every record has in common: plain data, known by a hash of its content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

AnyStruct = TypeVar("AnyStruct", bound=msgspec.Struct)
StructType = type[AnyStruct]

SECRET_NAME_PATTERN = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
MIN_SECRET_CHARACTERS = 8


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Plain data that does not change; what is left at its default is not written."""


def digest(*parts: Any) -> str:
    """A short content hash: equal for equal content, on any machine."""
    return hashlib.blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).hexdigest()


def settings_as(kind: type[AnyStruct], known: Record, settings: Mapping[str, Any]) -> AnyStruct:
    """Settings as the record of the part that owns them: its own keys, and those of ours that it has as well."""
    given = {**msgspec.to_builtins(known), **settings}
    return msgspec.convert({key: value for key, value in given.items() if key in kind.__struct_fields__}, kind)


def is_secret(name: str, value: str) -> bool:
    """Whether a variable of the environment is one that must not be stored; what is short says yes or no, or how many.

    >>> is_secret("OPENAI_API_KEY", "sk-12345678"), is_secret("MAX_TOKENS", "4096")
    (True, False)
    """
    return bool(SECRET_NAME_PATTERN.search(name)) and len(value) >= MIN_SECRET_CHARACTERS
