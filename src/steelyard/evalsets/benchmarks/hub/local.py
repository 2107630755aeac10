"""Datasets that are on this machine already: folders of tables, and the caches of the hub's library."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from steelyard.errors import InputError
from steelyard.evalsets.benchmarks.hub.splits import chosen, files_by_split, table_files

MAX_CACHED_FILES = 100_000
"""The maximum number of files of a cache that are examined."""


def hub_home(environment: Mapping[str, str]) -> Path:
    """Where the library of the hub keeps what it has fetched."""
    cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or Path.home(), ".cache"))
    return Path(environment.get("HF_HOME") or Path(cache, "huggingface")).expanduser()


def folder_tables(paths: Sequence[str], root: str, left_out: Callable[[str, str, int], None]) -> list[str]:
    """The tables below a folder that hold its eval set: of several splits the one for tests, with a warning about the others."""
    below = {os.path.relpath(path, root): path for path in paths}
    splits = files_by_split(table_files(sorted(below)))
    if not splits:
        return []
    named = {split: names for split, names in splits.items() if split}
    if len(named) < 2:
        return [below[name] for names in splits.values() for name in names]
    split, names = chosen("split", "", named, ("test", "validation"))
    others = {other: len(files) for other, files in splits.items() if other != split}
    listed = ", ".join(sorted(other or "none" for other in others))
    left_out(root, f"files of other splits than {split} ({listed}): name such a file to read it", sum(others.values()))
    return [below[name] for name in names]


def cached_files(repository: str, parts: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The files of a dataset that the hub's library, or we, fetched earlier; none if there are none."""
    home = hub_home(environment)
    hub = Path(environment.get("HF_HUB_CACHE") or home / "hub")
    prepared = Path(environment.get("HF_DATASETS_CACHE") or home / "datasets")
    folder = hub / f"datasets--{repository.replace('/', '--')}"
    for root in (
        _newest(home / "steelyard" / repository.replace("/", "--")),
        _newest(folder / "snapshots", folder / "refs" / "main"),
        prepared / repository.replace("/", "___").lower(),
        prepared / repository.replace("/", "___"),
    ):
        names = table_files(_names_below(root)) if root is not None else []
        if root is not None and names:
            return [str(root / name) for name in _chosen_names(names, parts)]
    return []


def _newest(folder: Path, reference: Path | None = None) -> Path | None:
    """The commit that a reference names, otherwise the one that was fetched last."""
    try:
        if reference is not None and reference.is_file():
            named = folder / reference.read_text("utf-8").strip()[:64].replace("/", "")
            if named.is_dir():
                return named
        there = [path for path in folder.iterdir() if path.is_dir()]
        return max(there, key=lambda path: path.stat().st_mtime, default=None)
    except (OSError, UnicodeDecodeError):
        return None


def _names_below(root: Path) -> list[str]:
    found: list[str] = []
    for folder, _, names in os.walk(root):
        found += [os.path.relpath(Path(folder, name), root) for name in names]
        if len(found) > MAX_CACHED_FILES:
            raise InputError(f"{root}: has more than {MAX_CACHED_FILES:,} files; name a folder below it")
    return sorted(found)


def _chosen_names(names: Sequence[str], parts: Sequence[str]) -> list[str]:
    """The files of the configuration and the split that are named; configurations are folders there."""
    left = list(parts)
    if left:
        of_config = [name for name in names if left[0] in Path(name).parts[:-1]]
        if of_config:
            names, left = of_config, left[1:]
    configs = {Path(name).parts[0] for name in names if len(Path(name).parts) > 1} - {"data"}
    if len(parts) == len(left) and len(configs) > 1 and not any(split for split in files_by_split(sorted(configs))):
        chosen("configuration", "", dict.fromkeys(configs, ""), ("default",))
    return list(chosen("split", left[-1] if left else "", files_by_split(names), ("test", "validation"))[1])
