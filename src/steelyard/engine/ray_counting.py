"""Attempts counted on all machines of a cluster, each its own files, and added up here."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError
from steelyard.outcomes.attempts import Adding, Columns, Counts, Source, counts_as_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TASKS_PER_CPU = 4
"""So many tasks at the least, where there are so many files: a slow one then holds up little."""
MOST_FILES = 200
"""Files that one task counts; a task that is lost is done again, so none should be long."""
MEMORY = "400MB"
"""What the database of one task may take before it goes on on disk."""


def counts(sources: Sequence[Source], columns: Columns, *, address: str = "") -> Counts:
    """The counts of all sources; every machine must find the files under the same paths.

    Ray Data maps groups of files to the counts of their cases and streams these here, where they are added up: what
    travels grows with the cases, not with the attempts.
    """
    try:
        import pyarrow  # noqa: F401  Ray Data hands tables around as Arrow's
        import ray.data
    except ImportError:
        raise InputError('--backend ray needs Ray and Arrow: pip install "ray[default]" "steelyard[parquet]"') from None
    if columns.sample is not None:
        raise InputError("rows about one sample may lie on several machines; --sample needs --backend local")
    with _cluster(address) as cpus, Adding() as adding:
        groups = grouped(sources, TASKS_PER_CPU * cpus)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        items = [{"name": source.name, "files": list(source.files)} for source in groups]
        dataset = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            _counted, batch_size=1, batch_format="pyarrow", fn_kwargs={"columns": tuple(columns)}
        )
        try:
            for part in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
                adding.add(part)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, InputError):
                raise error.cause from None
            raise InputError(f"a task of the cluster failed: {str(error).strip().splitlines()[-1][:300]}") from None
        return adding.counts()


def grouped(sources: Sequence[Source], tasks: int) -> list[Source]:
    """The same files in about so many groups, none of them of two sources."""
    files = sum(len(source.files) for source in sources)
    size = max(1, min(MOST_FILES, files // max(1, tasks)))
    return [
        Source(source.name, source.files[begin : begin + size])
        for source in sources
        for begin in range(0, len(source.files), size)
    ]


def _counted(batch: Any, *, columns: tuple[Any, ...]) -> Any:
    """The counts of one group of files."""
    (group,) = batch.to_pylist()
    return counts_as_arrow([Source(group["name"], tuple(group["files"]))], Columns(*columns), memory=MEMORY)


@contextmanager
def _cluster(address: str) -> Iterator[int]:
    """A connection to the cluster at an address, to the one that runs here, or to one of this machine; how many CPUs it has."""
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            ray.init(address=address or None, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            told = str(error).strip().splitlines()[0][:300]
            raise InputError(f"no Ray cluster at {address or 'this machine'}: {told}") from None
    try:
        yield max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        if is_ours:
            ray.shutdown()
