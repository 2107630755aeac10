"""The files beside the journal of a run: looks of gates, results of witnesses, limits of cases, and batches; each line is whole, or was never answered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from steelyard.errors import InputError, StoreError
from steelyard.records import CaseLimit, GateLook, WitnessCounts, WitnessResult
from steelyard.records.base import Record
from steelyard.store.files import Content, TolerantDecoder, append_line, open_to_append
from steelyard.store.journal import DECODE_ERRORS, StoredRun
from steelyard.store.run_folders import LIMITS_FILE, LOOKS_FILE, WITNESS_FILE, UntrustedRun

_gate_look: TolerantDecoder[GateLook] = TolerantDecoder(GateLook)


def gate_looks(folder: Path) -> list[GateLook]:
    """What gates were asked about a run, in order; a line that was cut off was never answered."""
    looks = folder / LOOKS_FILE
    return _lines(
        looks, UntrustedRun(folder.resolve()).content, _gate_look, "not a list of looks: {}; delete it to start over"
    )


def record_gate_look(folder: Path, look: GateLook) -> None:
    """Record a look before its verdict is shown."""
    append_line(folder / LOOKS_FILE, msgspec.json.encode(look))


_witness_result: TolerantDecoder[WitnessResult] = TolerantDecoder(WitnessResult)


def witness_results(stored: StoredRun) -> list[WitnessResult]:
    """The results of the witnesses of a run, in order, without a line that was cut off."""
    return _lines(
        stored.folder / WITNESS_FILE,
        stored.content,
        _witness_result,
        "not a list of witnesses: {}; delete it, and resume the run",
    )


def record_witness_results(folder: Path, results: Iterable[WitnessResult]) -> None:
    """Add results to those of a run; when this returns, they survive the death of this process."""
    _append(folder / WITNESS_FILE, results)


_case_limit: TolerantDecoder[CaseLimit] = TolerantDecoder(CaseLimit)


def case_limits(stored: StoredRun) -> list[CaseLimit]:
    """The limits of cases of a run that follow their references, without a line that was cut off."""
    return _lines(
        stored.folder / LIMITS_FILE,
        stored.content,
        _case_limit,
        "not a list of limits: {}; delete it, and verify the run again",
    )


def record_case_limits(folder: Path, limits: Iterable[CaseLimit]) -> None:
    """Add limits to those of a run; when this returns, they survive the death of this process."""
    _append(folder / LIMITS_FILE, limits)


def _append(path: Path, records: Iterable[Record]) -> None:
    content = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
    if not content:
        return
    try:
        file = open_to_append(path)
        try:
            os.write(file, content)
        finally:
            os.close(file)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None


def witness_counts(results: Iterable[WitnessResult]) -> WitnessCounts | None:
    """How many cases needed a witness, and for how many the last one passed; None if none did. A case on two nodes counts twice."""
    last = {(result.case, result.node): result.problem for result in results}
    return WitnessCounts(tried=len(last), passed=sum(not problem for problem in last.values())) if last else None


def reference_trust(results: Iterable[WitnessResult]) -> dict[str, str]:
    """By case, how far the last verdict on its reference can be trusted."""
    return {result.case: result.trust for result in results if result.trust}


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

    def content(path: Path) -> bytes:
        with stored.open(path) as file:
            return file.read(MAX_BATCHES_FILE_BYTES)

    events = _lines(stored.folder / BATCHES_FILE, content, _event, "not a list of batches: {}")
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


def _lines(
    path: Path, content: Callable[[Path], bytes], decoder: TolerantDecoder[Content], complaint: str
) -> list[Content]:
    """The records of a file, in order, without a line that was cut off; none where there is no file."""
    try:
        return [decoder.decode(line) for line in content(path).splitlines(keepends=True) if line.endswith(b"\n")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: {complaint.format(error)}") from None
