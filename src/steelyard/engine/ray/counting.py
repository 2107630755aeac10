"""Attempts counted on all machines of a cluster, each its own files, and added up in one process that talks to Ray.

Ray prints what its daemons say, and ends a process that uses it after its raylet died. So it runs in a process of its own, whose
output the user does not see; how that ended is reported in one sentence.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from steelyard.engine.ray.cluster import address as cluster_address
from steelyard.engine.ray.cluster import last_printed_line
from steelyard.engine.ray.gateway import connect_to_ray, exception_line, leave_working_directory
from steelyard.engine.ray.wire import LOCAL_CLUSTER, code_version, short_line
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
from steelyard.secret_texts import Environment

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_TASKS_PER_CPU = 4
"""Where there are enough files: a slow task then holds up little."""
MAX_FILES_PER_TASK = 200
"""A lost task is done again, so none should be long."""
TASK_MEMORY = "400MB"
"""What the database of one task may take before it spills to disk."""
MERGE_MEMORY = "600MB"
"""The same for the database that adds up the counts of all tasks; what comes from Ray is in memory beside it."""
OBJECT_STORE_BYTES = 512 << 20
"""The object store of a cluster of our own; the rest spills to disk."""
EXIT_SECONDS = 20
"""The time in which the process must have ended once the run is gone."""


class CountingTask(Record, frozen=True, kw_only=True):
    """What the process is given."""

    sources: tuple[ParquetSource, ...]
    columns: AttemptColumns
    place: str
    """The address of the cluster."""
    folder: str
    """Of a cluster of our own; its name is short, because sockets are in it."""
    target: str
    """Where the counts are written."""
    complaint: str
    """The file where the reason is written if there are no counts."""


def counts(sources: Sequence[ParquetSource], columns: AttemptColumns, *, address: str = "") -> ModelCaseCounts:
    """The counts of all sources; every machine must find the files under the same paths.

    Ray Data maps groups of files to the counts of their cases and streams these into one process, where they are added up:
    what travels grows with the cases, not with the attempts.
    """
    if columns.sample is not None:
        raise InputError("rows about one sample may be on several machines; --sample needs --backend local")
    if any(importlib.util.find_spec(name) is None for name in ("ray", "pyarrow")):
        raise InputError("--backend ray needs the package ray; get it with: pip install 'steelyard[ray]'")
    place = cluster_address(address, Environment())
    with tempfile.TemporaryDirectory() as scratch:
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp") if place == LOCAL_CLUSTER else ""
        target, complaint = Path(scratch, "counts.parquet"), Path(scratch, "complaint.json")
        task = CountingTask(
            sources=tuple(sources),
            columns=columns,
            place=place,
            folder=folder,
            target=str(target),
            complaint=str(complaint),
        )
        task_file = Path(scratch, "task.json")
        task_file.write_bytes(msgspec.json.encode(task))
        with tempfile.TemporaryFile() as printed:
            try:
                code = _exit_code(task_file, printed)
            finally:
                if folder:
                    shutil.rmtree(folder, ignore_errors=True)
            if complaint.exists():
                raise InputError(msgspec.json.decode(complaint.read_bytes(), type=list[Problem]))
            if code or not target.exists():
                raise InputError(f"Ray at {place}: {last_printed_line(printed) or f'its process ended with {code}'}")
        return read_counts(target)


def _exit_code(task_file: Path, printed: IO[bytes]) -> int:
    """The exit code of the process; it ends with this one, and when the user interrupts it."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "steelyard.engine.ray.counting", str(task_file)],
        # the system closes it when this process ends, however it ends
        stdin=subprocess.PIPE,
        stdout=printed,
        stderr=printed,
        # Ctrl-C is for us alone
        start_new_session=True,
    )
    try:
        return process.wait()
    finally:
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def grouped(sources: Sequence[ParquetSource], tasks: int) -> list[ParquetSource]:
    """The same files in about as many groups as there are tasks, none with files of two sources."""
    files = sum(len(source.files) for source in sources)
    size = max(1, min(MAX_FILES_PER_TASK, files // max(1, tasks)))
    return [
        ParquetSource(source.name, source.files[begin : begin + size])
        for source in sources
        for begin in range(0, len(source.files), size)
    ]


def _write(task: CountingTask) -> None:
    """Count on the cluster, and write the sums."""
    import ray
    import ray.data

    connect_to_ray(task.place, task.folder, OBJECT_STORE_BYTES)
    with CountsMerger(memory=MERGE_MEMORY) as adding:
        resources: Any = ray.cluster_resources  # Ray says nothing about its type
        groups = grouped(task.sources, MIN_TASKS_PER_CPU * max(1, int(resources().get("CPU", 1))))
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
            raise InputError(f"a task of the cluster failed: {short_line(exception_line(error))}") from None
        adding.write(Path(task.target))


def _counted(batch: Any, *, columns: tuple[Any, ...], code: str) -> Any:
    """The counts of one group of files, or what is wrong with them: Ray keeps only the name of an exception."""
    import pyarrow

    try:
        if code_version().code != code:
            raise InputError("a machine of the cluster has another steelyard; install the same version on all of them")
        (group,) = batch.to_pylist()
        found = counts_as_arrow(
            [ParquetSource(group["name"], tuple(group["files"]))], AttemptColumns(*columns), memory=TASK_MEMORY
        )
    except InputError as error:
        text = msgspec.json.encode(error.problems).decode()
        return pyarrow.table({"complaint": [text]})
    return found.append_column("complaint", pyarrow.nulls(found.num_rows, pyarrow.string()))


def _watch() -> None:
    """End this process when the run is gone: in good order, and after a while without."""
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(EXIT_SECONDS)
    os._exit(1)


def main() -> None:
    """Do the task that a file holds."""
    task = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=CountingTask)
    leave_working_directory()
    threading.Thread(target=_watch, daemon=True).start()
    try:
        _write(task)
    except InputError as error:
        Path(task.complaint).write_bytes(msgspec.json.encode(error.problems))


if __name__ == "__main__":
    main()
