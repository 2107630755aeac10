"""Attempts counted on all machines of a cluster, each some of the files, and added up on this one."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.engine.ray.cluster import RayTasks, exception_line
from steelyard.engine.ray.cluster import address as cluster_address
from steelyard.engine.ray.wire import code_version, short_line
from steelyard.errors import InputError, Problem
from steelyard.outcomes.parquet_counts import (
    AttemptColumns,
    CountsMerger,
    ModelCaseCounts,
    ParquetSource,
    counts_as_arrow,
    read_counts,
)
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


def counts(sources: Sequence[ParquetSource], columns: AttemptColumns, *, address: str = "") -> ModelCaseCounts:
    """The counts of all sources; every machine must find the files under the same paths.

    What travels is the counts of each case in a group of files: it grows with the cases, not with the attempts.
    """
    if columns.sample is not None:
        raise InputError("rows about one sample may be on several machines; --sample needs --backend local")
    if any(importlib.util.find_spec(name) is None for name in ("ray", "pyarrow")):
        raise InputError("--backend ray needs the package ray; get it with: pip install 'steelyard[ray]'")
    ray = RayTasks(cluster_address(address, Environment()), OBJECT_STORE_BYTES)
    try:
        with tempfile.TemporaryDirectory() as scratch, CountsMerger(memory=MERGE_MEMORY) as adding:
            groups = grouped(sources, MIN_TASKS_PER_CPU * ray.cpus)
            arguments = [(group.name, group.files, tuple(columns), code_version().code) for group in groups]
            for found in ray.each("counting:counted", arguments):
                if found is None:
                    raise InputError(
                        "a machine of the cluster has no steelyard; install the same version on all of them"
                    )
                if isinstance(found, bytes):
                    raise InputError(msgspec.json.decode(found, type=list[Problem]))
                adding.add(found)
            target = Path(scratch, "counts.parquet")
            adding.write(target)
            return read_counts(target)
    except ray.RayError as error:
        raise InputError(f"a task of the cluster failed: {short_line(exception_line(error))}") from None
    finally:
        ray.close()


def grouped(sources: Sequence[ParquetSource], tasks: int) -> list[ParquetSource]:
    """The same files in about as many groups as there are tasks, none with files of two sources."""
    files = sum(len(source.files) for source in sources)
    size = max(1, min(MAX_FILES_PER_TASK, files // max(1, tasks)))
    return [
        ParquetSource(source.name, source.files[begin : begin + size])
        for source in sources
        for begin in range(0, len(source.files), size)
    ]


def counted(name: str, files: Sequence[str], columns: tuple[Any, ...], code: str) -> Any:
    """A Ray task: the counts of a group of files, or the problems with them: Ray keeps only the name of an exception."""
    try:
        if code_version().code != code:
            raise InputError("a machine of the cluster has another steelyard; install the same version on all of them")
        return counts_as_arrow([ParquetSource(name, tuple(files))], AttemptColumns(*columns), memory=TASK_MEMORY)
    except InputError as error:
        return msgspec.json.encode(error.problems)
