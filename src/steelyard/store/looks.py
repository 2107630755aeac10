"""The looks of gates at a run."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from steelyard.errors import InputError, StoreError
from steelyard.records import GateLook
from steelyard.store.journal import DECODE_ERRORS
from steelyard.store.tolerant import TolerantDecoder

_look: TolerantDecoder[GateLook] = TolerantDecoder(GateLook)


def gate_looks(folder: Path) -> list[GateLook]:
    """What gates were asked about a run, in order; a line that was cut off was never answered."""
    try:
        lines = (folder / "looks.jsonl").read_bytes().splitlines(keepends=True)
        return [_look.decode(line) for line in lines if line.endswith(b"\n")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{folder / 'looks.jsonl'}: {error.strerror}") from None
    except DECODE_ERRORS as error:
        raise InputError(f"{folder / 'looks.jsonl'}: not a list of looks: {error}; delete it to start over") from None


def record_gate_look(folder: Path, look: GateLook) -> None:
    """Record a look before its verdict is shown."""
    path = folder / "looks.jsonl"
    try:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(look) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; a gate must be able to count its looks") from None
