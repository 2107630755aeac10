"""The results of witnesses beside the journal of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from steelyard.errors import InputError, StoreError
from steelyard.records import WitnessCounts, WitnessResult
from steelyard.store.files import TolerantDecoder
from steelyard.store.journal import DECODE_ERRORS, StoredRun
from steelyard.store.run_folders import WITNESS_FILE

_result: TolerantDecoder[WitnessResult] = TolerantDecoder(WitnessResult)


def witness_results(stored: StoredRun) -> list[WitnessResult]:
    """The results of the witnesses of a run, in order, without a line that was cut off."""
    path = stored.folder / WITNESS_FILE
    try:
        lines = stored.content(path).splitlines(keepends=True)
        return [_result.decode(line) for line in lines if line.endswith(b"\n")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: not a list of witnesses: {error}; delete it, and resume the run") from None


def record_witness_results(folder: Path, results: Iterable[WitnessResult]) -> None:
    """Add results to those of a run; when this returns, they survive the death of this process."""
    content = b"".join(msgspec.json.encode(result) + b"\n" for result in results)
    if not content:
        return
    path = folder / WITNESS_FILE
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
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
