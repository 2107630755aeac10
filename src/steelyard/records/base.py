"""What every record has in common: frozen data, and a hash of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

AnyStruct = TypeVar("AnyStruct", bound=msgspec.Struct)
StructType = type[AnyStruct]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Plain data that does not change; what is left at its default is not written."""


def digest(*parts: Any) -> str:
    """A short content hash: equal for equal content, on any machine."""
    return hashlib.blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).hexdigest()


def settings_as(kind: type[AnyStruct], known: Record, settings: Mapping[str, Any]) -> AnyStruct:
    """Settings as the record of the part that owns them: its own keys, and those of ours that it has as well."""
    given = {**msgspec.to_builtins(known), **settings}
    return msgspec.convert({key: value for key, value in given.items() if key in kind.__struct_fields__}, kind)
