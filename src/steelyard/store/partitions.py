"""The path of each model's facts about each suite, as every file system takes it and every reader of Parquet splits it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from string import ascii_lowercase, ascii_uppercase, digits

HIVE_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""What stands in a path for no value at all; Hive began it, and Spark, DuckDB, Polars and Arrow know it."""
MAX_PATH_SEGMENT_BYTES = 200
"""Bytes of an escaped name: with its key it is shorter than any file system asks for."""
SAFE_PATH_BYTES = frozenset((ascii_lowercase + ascii_uppercase + digits + "-._").encode())
"""Bytes that mean nothing anywhere."""


def partition_paths(pairs: Iterable[tuple[str | None, str | None]]) -> dict[tuple[str | None, str | None], str]:
    """For each model and suite of a run the folder of their facts; None for facts about several of them.

    Names that differ only in their capitals get folders that differ in more, because not every file system tells
    capitals from other letters.

    >>> list(partition_paths([("openai/gpt-5", "basics"), ("openai/GPT-5", "")]).values())
    ['model=openai%2Fgpt-5/suite=basics', 'model=openai%2F%47%50%54-5/suite=__HIVE_DEFAULT_PARTITION__']
    """
    known = list(dict.fromkeys(pairs))
    models, suites = (_differing_only_in_case({pair[place] for pair in known}) for place in (0, 1))
    return {
        (model, suite): f"model={_segment(model, models)}/suite={_segment(suite, suites)}" for model, suite in known
    }


def is_name_in_path(name: str | None) -> bool:
    """Whether a path holds this whole name: not if the name is empty, or too long for a path."""
    return bool(name) and len(escaped_segment(name or "", capitals=False)) <= MAX_PATH_SEGMENT_BYTES


# runs share few names
@lru_cache(maxsize=1 << 12)
def escaped_segment(name: str, *, capitals: bool = True) -> str:
    """A name as a part of a path, with percent signs for all that could mean something there; as long as it takes.

    >>> escaped_segment("50% naïve"), escaped_segment(".hidden"), escaped_segment("NULL")
    ('50%25%20na%C3%AFve', '%2Ehidden', '%4EULL')
    """
    kept = SAFE_PATH_BYTES if capitals else SAFE_PATH_BYTES - set(ascii_uppercase.encode())
    raw = name.encode(errors="surrogatepass")
    # a beginning that hides a file from some readers, and words that mean no value to others
    first = name[:1] in "._" or name.upper() in ("NULL", HIVE_NULL_PARTITION)
    return "".join(
        chr(byte) if byte in kept and (place or not first) else f"%{byte:02X}" for place, byte in enumerate(raw)
    )


def truncated_segment(name: str, *, capitals: bool = True) -> str:
    """The same, cut where it is too long, with a digest of all of it at the end."""
    whole = escaped_segment(name, capitals=capitals)
    if len(whole) <= MAX_PATH_SEGMENT_BYTES:
        return whole
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    begin = whole[: MAX_PATH_SEGMENT_BYTES - len(digest) - 1]
    # an escape that is cut in half would be invalid
    return f"{begin[: begin.rfind('%')] if '%' in begin[-2:] else begin}-{digest}"


def _differing_only_in_case(names: Iterable[str | None]) -> set[str]:
    """The names that another one equals but for capitals."""
    present = [name for name in names if name]
    folded = Counter(name.lower() for name in present)
    return {name for name in present if folded[name.lower()] > 1}


def _segment(name: str | None, alike: set[str]) -> str:
    return truncated_segment(name, capitals=name not in alike) if name else HIVE_NULL_PARTITION
