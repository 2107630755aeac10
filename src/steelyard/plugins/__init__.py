"""Parts found by name: ours from a table, other people's from entry points; a function is named by its path.

In comes a kind of part and a name, a suffix or a path; out comes the part, or an error that lists the known names.
Nothing is imported before it is asked for.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError, SteelyardError, did_you_mean
from steelyard.plugins.built_in import BUILT_IN_PLUGINS, BUILT_IN_SUFFIXES, PluginKind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_SINGULAR: Mapping[PluginKind, str] = {
    "evalsets": "eval-set format",
    "outcomes": "outcome reader",
    "pools": "backend",
    "providers": "provider",
    "reports": "report format",
    "verifiers": "verifier",
}


@cache
def foreign_plugins(kind: PluginKind) -> Mapping[str, EntryPoint]:
    """The entry points that other distributions register, by name; a name of ours stays ours."""
    from importlib.metadata import entry_points

    points = sorted(entry_points(group=f"steelyard.{kind}"), key=lambda point: (point.name, point.value))
    return {point.name: point for point in points if point.name not in BUILT_IN_PLUGINS[kind]}


def plugin_names(kind: PluginKind) -> frozenset[str]:
    """All names of a kind, ours and other people's: this scans what is installed, so ask only for a message."""
    return frozenset({*BUILT_IN_PLUGINS[kind], *foreign_plugins(kind)})


def plugin_name(kind: PluginKind, name: str, *further: str) -> str:
    """The name, if a part has it or it is one of `further`; raises InputError with the known names otherwise."""
    if name in further or is_plugin(kind, name):
        return name
    raise InputError(f'unknown {_SINGULAR[kind]} "{name}" ({did_you_mean(name, plugin_names(kind).union(further))})')


def is_plugin(kind: PluginKind, name: str) -> bool:
    """Whether a part of this name exists."""
    return name in BUILT_IN_PLUGINS[kind] or name in foreign_plugins(kind)


@cache
def load_plugin(kind: PluginKind, name: str) -> Any:
    """The part of this name; an unknown name is the user's mistake, and the message lists the known ones."""
    if target := BUILT_IN_PLUGINS[kind].get(name):
        module, _, attribute = target.partition(":")
        return getattr(importlib.import_module(module), attribute)
    point = foreign_plugins(kind)[plugin_name(kind, name)]
    if not _may_import(kind, name):
        raise InputError(
            f"{described_plugin(kind, name)} is code that you have not agreed to; type: "
            "steelyard allow FILE, with the file that names it"
        )
    try:
        return point.load()
    except Exception as error:
        raise InputError(f"{described_plugin(kind, name)} cannot be loaded: {type(error).__name__}: {error}") from error


def described_plugin(kind: PluginKind, name: str) -> str:
    """The part for a message: what it is, its name and the distribution that it comes from."""
    point = foreign_plugins(kind).get(name)
    return f'{_SINGULAR[kind]} "{name}"' + (f" of {point.dist.name}" if point and point.dist else "")


@contextlib.contextmanager
def explain_plugin_errors(kind: PluginKind, name: str, where: str = "") -> Iterator[None]:
    """Turn what another distribution's part raises into one sentence; a traceback from a part of ours is a bug."""
    try:
        yield
    except SteelyardError:
        raise
    except Exception as error:
        if name in BUILT_IN_PLUGINS[kind] or (isinstance(error, ExceptionGroup) and error.subgroup(SteelyardError)):
            raise
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        place = f"{where}: " if where else ""
        reason = f"{type(first).__name__}: {first}".removesuffix(": ")
        raise InputError(f"{place}{described_plugin(kind, name)} failed: {reason}") from error


_import_limits: list[Callable[[PluginKind, str], bool]] = []
"""Of this process, not of a thread: pages are served by threads."""


@contextlib.contextmanager
def plugin_imports_limited(may_import: Callable[[PluginKind, str], bool]) -> Iterator[None]:
    """Within the block, parts of other distributions are imported only if this function allows it."""
    _import_limits.append(may_import)
    try:
        yield
    finally:
        _import_limits.remove(may_import)


def _may_import(kind: PluginKind, name: str) -> bool:
    return all(limit(kind, name) for limit in _import_limits)


def has_unchecked_settings(kind: PluginKind, name: str) -> bool:
    """Whether the settings of a part stay unchecked, because it must not be imported to check them."""
    return name in foreign_plugins(kind) and not _may_import(kind, name)


def settings_type(kind: PluginKind, name: str) -> Any:
    """The msgspec struct that checks the settings of a part; None if it has no settings of its own, or they stay unchecked."""
    is_known = is_plugin(kind, name) and not has_unchecked_settings(kind, name)
    return getattr(load_plugin(kind, name), "settings", None) if is_known else None


def plugin_for_suffix(kind: PluginKind, suffix: str) -> str:
    """The name of the part that reads or writes files with this suffix; empty when there is none.

    Other people's parts have an attribute `suffixes`; without it, the part `tex` has the suffix `.tex`.
    """
    if name := BUILT_IN_SUFFIXES.get(kind, {}).get(suffix):
        return name
    return next((name for name in foreign_plugins(kind) if suffix in plugin_suffixes(kind, name)), "")


def plugin_suffixes(kind: PluginKind, name: str) -> tuple[str, ...]:
    """The suffixes of the files that a part reads or writes."""
    if name in BUILT_IN_PLUGINS[kind]:
        return tuple(suffix for suffix, owner in BUILT_IN_SUFFIXES.get(kind, {}).items() if owner == name)
    return tuple(getattr(load_plugin(kind, name), "suffixes", (f".{name}",)))


def known_suffixes(kind: PluginKind) -> list[str]:
    """Every suffix of a kind, for a message."""
    names = [*BUILT_IN_PLUGINS[kind], *foreign_plugins(kind)]
    return [suffix for name in names for suffix in plugin_suffixes(kind, name)]
