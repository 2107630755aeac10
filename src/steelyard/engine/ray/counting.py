"""Attempts counted on all machines of a cluster, each its own files, and added up in one process that talks to Ray.

Ray prints what its daemons say, and ends the process of a driver that loses its raylet. So that process is not ours: what
it prints is kept from the user, and what becomes of it is told in one sentence.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.engine.ray.cluster import address as cluster_address
from steelyard.engine.ray.gateway import connect_to_ray, leave_working_directory
from steelyard.engine.ray.wire import AUTH_HINT, LOCAL, code_version, short_line
from steelyard.errors import InputError, Problem
from steelyard.outcomes.parquet_counts import (
    AttemptColumns,
    CountsMerger,
    ModelCaseCounts,
    ParquetSource,
    counts_as_arrow,
    read_counts,
)
from steelyard.records import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

TASKS_PER_CPU = 4
"""So many tasks at the least, where there are so many files: a slow one then holds up little."""
MOST_FILES = 200
"""Files that one task counts; a task that is lost is done again, so none should be long."""
MEMORY = "400MB"
"""What the database of one task may take before it goes on on disk."""
MEMORY_HERE = "600MB"
"""The same for the one that adds up what all tasks found; what comes from Ray is in memory beside it."""
STORE = 512 << 20
"""Bytes of the object store of a cluster of our own; what is more goes on on disk."""
LEAVING = 20
"""Seconds in which the process must have ended once nobody waits for it."""


class Task(Record, frozen=True, kw_only=True):
    """All that the process must know."""

    sources: tuple[ParquetSource, ...]
    columns: AttemptColumns
    place: str
    """The address of the cluster."""
    folder: str
    """Of a cluster of our own; its name is short, because sockets are in it."""
    target: str
    """Where the counts are written."""
    complaint: str
    """Where it is written why there are none."""


def counts(sources: Sequence[ParquetSource], columns: AttemptColumns, *, address: str = "") -> ModelCaseCounts:
    """The counts of all sources; every machine must find the files under the same paths.

    Ray Data maps groups of files to the counts of their cases and streams these into one process, where they are added up:
    what travels grows with the cases, not with the attempts.
    """
    if columns.sample is not None:
        raise InputError("rows about one sample may lie on several machines; --sample needs --backend local")
    if any(importlib.util.find_spec(name) is None for name in ("ray", "pyarrow")):
        raise InputError("--backend ray needs the package ray; get it with: pip install 'steelyard[ray]'")
    place = cluster_address(address, os.environ)
    with tempfile.TemporaryDirectory() as scratch:
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp") if place == LOCAL else ""
        target, complaint, printed = (Path(scratch, name) for name in ("counts.parquet", "complaint.json", "printed"))
        task = Task(
            sources=tuple(sources),
            columns=columns,
            place=place,
            folder=folder,
            target=str(target),
            complaint=str(complaint),
        )
        asked = Path(scratch, "task.json")
        asked.write_bytes(msgspec.json.encode(task))
        try:
            code = _ended(asked, printed)
        finally:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
        if complaint.exists():
            raise InputError(msgspec.json.decode(complaint.read_bytes(), type=list[Problem]))
        if code or not target.exists():
            raise InputError(f"Ray at {place}: {_last(printed) or f'its process ended with {code}'}")
        return read_counts(target)


def _ended(asked: Path, printed: Path) -> int:
    """The exit code of the process; it ends with us, and when the user will not wait for it."""
    with printed.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "steelyard.engine.ray.counting", str(asked)],
            # it is closed when we are gone, whatever ended us
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            # Ctrl-C is for us alone
            start_new_session=True,
        )
    try:
        return process.wait()
    finally:
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(LEAVING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last(printed: Path) -> str:
    """What the process printed last."""
    with printed.open("rb") as file:
        file.seek(max(0, printed.stat().st_size - 4000))
        text = file.read().decode("utf-8", "replace")
    if "InvalidAuthToken" in text:
        return AUTH_HINT
    return short_line(next((line for line in reversed(text.splitlines()) if line.strip()), ""))


def grouped(sources: Sequence[ParquetSource], tasks: int) -> list[ParquetSource]:
    """The same files in about so many groups, none of them of two sources."""
    files = sum(len(source.files) for source in sources)
    size = max(1, min(MOST_FILES, files // max(1, tasks)))
    return [
        ParquetSource(source.name, source.files[begin : begin + size])
        for source in sources
        for begin in range(0, len(source.files), size)
    ]


def _write(task: Task) -> None:
    """Count on the cluster, and write down the sums."""
    import ray
    import ray.data

    connect_to_ray(task.place, task.folder, STORE)
    with CountsMerger(memory=MEMORY_HERE) as adding:
        resources: Any = ray.cluster_resources  # Ray says nothing about its type
        groups = grouped(task.sources, TASKS_PER_CPU * max(1, int(resources().get("CPU", 1))))
        ray.data.DataContext.get_current().enable_progress_bars = False
        items = [{"name": source.name, "files": list(source.files)} for source in groups]
        dataset: Any = ray.data.from_items(items, override_num_blocks=len(items))
        arguments = {"columns": tuple(task.columns), "code": code_version().code}
        parts = dataset.map_batches(_counted, batch_size=1, batch_format="pyarrow", fn_kwargs=arguments)
        try:
            for part in parts.iter_batches(batch_size=None, batch_format="pyarrow"):
                for complaint in part["complaint"].drop_null().to_pylist():
                    raise InputError(msgspec.json.decode(complaint, type=list[Problem]))
                adding.add(part.drop_columns("complaint"))
        except ray.exceptions.RayError as error:
            raise InputError(f"a task of the cluster failed: {_reason(str(error))}") from None
        adding.write(Path(task.target))


def _counted(batch: Any, *, columns: tuple[Any, ...], code: str) -> Any:
    """The counts of one group of files, or what is wrong with them: of an exception Ray would keep no more than its name."""
    import pyarrow

    try:
        if code_version().code != code:
            raise InputError("a machine of the cluster has another steelyard; install the same version on all of them")
        (group,) = batch.to_pylist()
        found = counts_as_arrow(
            [ParquetSource(group["name"], tuple(group["files"]))], AttemptColumns(*columns), memory=MEMORY
        )
    except InputError as error:
        text = msgspec.json.encode(error.problems).decode()
        return pyarrow.table({"complaint": [text]})
    return found.append_column("complaint", pyarrow.nulls(found.num_rows, pyarrow.string()))


def _reason(text: str) -> str:
    """The line of a trace that says what went wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    return short_line(
        next((line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception)\b", line)), lines[-1])
    )


def _watch() -> None:
    """End ourselves in good order when nobody waits for us any more, or else without it."""
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LEAVING)
    os._exit(1)


def main() -> None:
    """Do the task that a file holds."""
    task = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Task)
    leave_working_directory()
    threading.Thread(target=_watch, daemon=True).start()
    try:
        _write(task)
    except InputError as error:
        Path(task.complaint).write_bytes(msgspec.json.encode(error.problems))


if __name__ == "__main__":
    main()
