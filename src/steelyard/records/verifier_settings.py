"""The struct that a verifier of ours extends by the keys of `[cases.verify]` that it owns."""

from __future__ import annotations

from typing import Self

import msgspec
from msgspec.structs import replace

from steelyard.records.base import Record
from steelyard.records.cases import Case, Verify


class VerifierSettings(Record, frozen=True, kw_only=True):
    """Keys that a case may have with any verifier: collections give them for every language, or the loader fills them in."""

    kind: str = ""
    style: str = ""
    tests: str = ""
    entry_point: str = ""
    stub: str | None = None
    source: str = ""
    workspace_digest: str = ""

    @classmethod
    def of(cls, case: Case) -> Self:
        """What a case says to the verifier that owns this struct; the same object for the same case."""
        kept: Self | None = case.__dict__.get(cls.__name__)
        if kept is None:
            said = case.verify
            own = {key: value for key, value in said.settings.items() if key in cls.__struct_fields__}
            stored = {key: getattr(said, key) for key in cls.__struct_fields__ if key in Verify.__struct_fields__}
            kept = case.__dict__[cls.__name__] = replace(msgspec.convert(own, cls), **stored)
        return kept
