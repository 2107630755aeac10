"""The looks of gates at a run, each recorded before its verdict is shown."""

from __future__ import annotations

from pathlib import Path

import msgspec

from steelyard.errors import InputError, StoreError
from steelyard.records import GateLook
from steelyard.store.files import TolerantDecoder, append_line
from steelyard.store.journal import DECODE_ERRORS
from steelyard.store.run_folders import LOOKS_FILE, UntrustedRun

_look: TolerantDecoder[GateLook] = TolerantDecoder(GateLook)


def gate_looks(folder: Path) -> list[GateLook]:
    """What gates were asked about a run, in order; a line that was cut off was never answered."""
    path = folder.resolve() / LOOKS_FILE
    try:
        lines = UntrustedRun(path.parent).content(path).splitlines(keepends=True)
        return [_look.decode(line) for line in lines if line.endswith(b"\n")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{folder / LOOKS_FILE}: {error.strerror}") from None
    except DECODE_ERRORS as error:
        raise InputError(f"{folder / LOOKS_FILE}: not a list of looks: {error}; delete it to start over") from None


def record_gate_look(folder: Path, look: GateLook) -> None:
    """Record a look before its verdict is shown."""
    append_line(folder / LOOKS_FILE, msgspec.json.encode(look))
