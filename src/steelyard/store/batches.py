"""The batches that a run has submitted: written down before each is sent, so that none is sent twice or forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from steelyard.errors import InputError, StoreError
from steelyard.records.base import Record
from steelyard.store.files import TolerantDecoder, append_line
from steelyard.store.journal import DECODE_ERRORS, StoredRun

BATCHES_FILE = "batches.jsonl"
MAX_BATCHES_FILE_BYTES = 1 << 30


class BatchEvent(Record, frozen=True, kw_only=True):
    """One line of a run's list of batches."""

    nonce: str
    """The name of the submission, which the provider gets as well."""
    at: str
    event: Literal["submitting", "submitted", "ended", "absent"]
    """`absent` where the provider has no such batch, so that its requests are owed again."""
    api: str = ""
    """Whose batches these are; only of the first event, like what follows."""
    asked: str = ""
    """The model, or where tiers are compared the tier."""
    keys: tuple[str, ...] = ()
    """The ask keys of its requests, in order."""
    batch: str = ""
    """The provider's id of the batch, once it is known."""
    note: str = ""


class StoredBatch(NamedTuple):
    """The state of a batch."""

    begun: BatchEvent
    batch: str = ""
    """The provider's id; empty while it is not known whether it was submitted."""
    is_settled: bool = False
    """Whether it has ended."""


_event: TolerantDecoder[BatchEvent] = TolerantDecoder(BatchEvent)


def record_batch_event(folder: Path, event: BatchEvent) -> None:
    """Add to the list; when this returns, it survives the death of the machine."""
    append_line(folder / BATCHES_FILE, msgspec.json.encode(event))


def stored_batches(stored: StoredRun) -> list[StoredBatch]:
    """The batches of a run in the order in which they were begun; a line that was cut off says nothing."""
    path = stored.folder / BATCHES_FILE
    try:
        with stored.open(path) as file:
            lines = file.read(MAX_BATCHES_FILE_BYTES).splitlines(keepends=True)
        events = [_event.decode(line) for line in lines if line.endswith(b"\n")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: not a list of batches: {error}") from None
    found: dict[str, StoredBatch] = {}
    for event in events:
        before = found.get(event.nonce)
        if event.event == "submitting":
            found[event.nonce] = StoredBatch(event)
        elif before is not None and event.event == "submitted":
            found[event.nonce] = before._replace(batch=event.batch)
        elif before is not None:
            found[event.nonce] = before._replace(is_settled=True)
    return list(found.values())
