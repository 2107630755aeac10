"""Which files of a dataset are meant: those of one kind, of one configuration, of one split."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TypeVar

from steelyard.errors import InputError, did_you_mean
from steelyard.text import short_quote

TABLE_SUFFIXES = (".parquet", ".arrow", ".csv")
"""Kinds of files with rows, in the order in which they are preferred: one dataset is often there in several."""
SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "eval": "test",
    "evaluation": "test",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
}
"""The words by which the library `datasets` knows splits in the names of files and folders."""
WORD = re.compile(r"[a-z]+")
DERIVED_FILE = re.compile(r"(cache-|tmp).*\.arrow")
"""What the library keeps of transformed rows."""
Files = TypeVar("Files")


def table_files(names: Iterable[str]) -> list[str]:
    """The files with rows, of the most preferred kind present."""
    listed = [name for name in names if not DERIVED_FILE.fullmatch(PurePath(name).name)]
    for suffix in TABLE_SUFFIXES:
        if found := [name for name in listed if name.lower().endswith(suffix)]:
            return found
    return []


def split_of(name: str) -> str:
    """The split that a path below a dataset names; empty if it names none.

    >>> split_of("data/test-00000-of-00001.parquet"), split_of("gsm8k-dev.csv"), split_of("attestation.csv")
    ('test', 'validation', '')
    """
    for part in reversed(PurePath(name.lower()).parts):
        for word in WORD.findall(part.rpartition(".")[0] or part):
            if word in SPLIT_WORDS:
                return SPLIT_WORDS[word]
    return ""


def files_by_split(names: Sequence[str]) -> dict[str, list[str]]:
    """The files of each split, in order."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(split_of(name), []).append(name)
    return found


def chosen(kind: str, given: str, found: Mapping[str, Files], preferred: Sequence[str]) -> tuple[str, Files]:
    """The selected split: the named one, the only one, or the most preferred one present."""
    if given:
        if given not in found:
            raise InputError(f"no {kind} {short_quote(given)} ({did_you_mean(given[:80], found)})")
        return given, found[given]
    if len(found) == 1:
        return next(iter(found.items()))
    for name in preferred:
        if name in found:
            return name, found[name]
    listed = ", ".join(short_quote(name) for name in sorted(found)[:20])
    raise InputError(f"has the {kind}s {listed}; name one of them")
