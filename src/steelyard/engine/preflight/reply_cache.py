"""Replies of earlier runs to the same asks, taken instead of asking again where the user wants that."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.engine.options import RunOptions
from steelyard.engine.plan import planned_attempts, provider_key
from steelyard.errors import InputError, SteelyardError
from steelyard.protocols import Provider
from steelyard.records import Reply, RunInfo
from steelyard.store.files import now
from steelyard.store.journal import Journal, StoredRun
from steelyard.store.reply_places import ReplyPlace, reply_places
from steelyard.store.run_folders import runs
from steelyard.text import counted

MAX_HINTED_ASKS = 20_000
MAX_HINT_BYTES = 64 << 20
"""Asks of a plan, and bytes of earlier journals, up to which a run says what the cache would save without being asked."""
MAX_CACHE_DAYS = 36500.0


class CachedReply(NamedTuple):
    """A reply of an earlier run to an ask of this one."""

    run: StoredRun
    sources: tuple[str, ...]
    """The ids of the run that asked for it, and of the runs that it was merged from."""
    place: ReplyPlace


def use_reply_cache(journal: Journal, providers: Mapping[str, Provider], means: RunOptions, *, is_new: bool) -> None:
    """Take the replies that earlier runs beside this one have, or say what that would save.

    Every reply that is taken is marked with its run, in the journal and before anything else is done with it.
    """
    if means.cache_days is None and (not is_new or means.say is None):
        return
    # a program on this machine can change without its name; a recording costs nothing
    asked = {name: provider for name, provider in providers.items() if provider.endpoint.startswith("http")}
    earlier = list(_earlier_runs(journal, means)) if asked else []
    if not earlier or (means.cache_days is None and _journal_bytes(earlier) > MAX_HINT_BYTES):
        return
    owed = _owed_keys(journal, asked, most=MAX_HINTED_ASKS if means.cache_days is None else None)
    found = _cached_replies(earlier, owed, _oldest(means.cache_days))
    if means.cache_days is not None:
        _take(journal, found)
    if found and means.say is not None:
        end = "; --cache takes them from there" if means.cache_days is None else ": taken from there, not asked again"
        means.say(f"{_found_text(found, len(owed))}{end}")


def _owed_keys(journal: Journal, asked: Mapping[str, Provider], most: int | None) -> set[str]:
    """The asks that have no reply yet; none where there are more than `most`."""
    keys: set[str] = set()
    for attempt in planned_attempts(journal.info, journal.cases, asked):
        if asked[provider_key(attempt)].available(attempt.case.id) is None:
            keys.add(attempt.key)
            if most is not None and len(keys) > most:
                return set()
    return keys - {fact.key for fact in journal.facts() if isinstance(fact, Reply)}


def _earlier_runs(journal: Journal, means: RunOptions) -> Iterator[tuple[StoredRun, RunInfo]]:
    """The other runs beside this one and in the folder of runs that asked one of its models at the same address, newest first."""
    info = journal.info
    places = {Path(means.settings.output_dir).resolve(), journal.folder.resolve().parent}
    found: dict[str, tuple[StoredRun, RunInfo]] = {}
    for root in sorted(places):
        for stored in runs(root):
            try:
                other = stored.info
            except InputError:
                continue
            is_candidate = other.id != info.id and not other.recordings and other.base_url == info.base_url
            if is_candidate and not {*other.names}.isdisjoint(info.names):
                found[other.id] = stored, other
    yield from sorted(found.values(), key=lambda entry: (entry[1].started_at, entry[1].id), reverse=True)


def _journal_bytes(earlier: list[tuple[StoredRun, RunInfo]]) -> int:
    try:
        return sum(path.stat().st_size for stored, _ in earlier for path in stored.journals())
    except OSError:
        return MAX_HINT_BYTES + 1


def _oldest(days: float | None) -> str:
    """The timestamp before which no reply is taken; empty for any age."""
    if days is None or days > MAX_CACHE_DAYS:
        return ""
    moment = datetime.now(UTC) - timedelta(days=days)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cached_replies(earlier: list[tuple[StoredRun, RunInfo]], owed: set[str], oldest: str) -> list[CachedReply]:
    """For each ask that an earlier run has a reply to, that of the newest run; the text of a reply has no say in it."""
    left = set(owed)
    found: list[CachedReply] = []
    for stored, info in earlier:
        if not left:
            break
        try:
            there = {place.key: place for place in reply_places(stored, left)}
        except OSError:
            # what cannot be read is asked for
            continue
        own = info.id, *(part.id for part in info.merged)
        fresh = [place for place in there.values() if place.at >= oldest]
        found += [CachedReply(stored, place.cached_from or own, place) for place in fresh]
        left.difference_update(place.key for place in fresh)
    return found


def _take(journal: Journal, found: list[CachedReply]) -> None:
    """Put the replies into the journal as they are, each with its mark; what cannot be read again is asked for."""
    counts = Counter(journal.info.cached_replies)
    counts.update(run for reply in found for run in reply.sources)
    if found:
        # first the run says that it has such replies, then it has them
        journal.describe(msgspec.structs.replace(journal.info, cached_replies=dict(counts)))
    names: dict[Path, list[str]] = {}
    for reply in found:
        folder = reply.run.folder
        if folder not in names:
            names[folder] = [path.name for path in reply.run.journals()]
        try:
            fact = reply.run.at(reply.place.place, names[folder])
        except SteelyardError:
            continue
        if isinstance(fact, Reply) and fact.key == reply.place.key:
            answer = msgspec.structs.replace(fact.answer, recorded_at=reply.place.at)
            journal.append(msgspec.structs.replace(fact, at=now(), answer=answer, cached_from=reply.sources))


def _found_text(found: list[CachedReply], owed: int) -> str:
    folders = list(dict.fromkeys(str(reply.run.folder) for reply in found))
    where = folders[0] if len(folders) == 1 else f"{counted(len(folders), 'run')}, such as {folders[0]}"
    saved = math.fsum(reply.place.cost_usd for reply in found)
    price = f", ${saved:.2f}" if saved >= 0.005 else f", ${saved:.4f}" if saved else ""
    return f"{len(found):,} of {counted(owed, 'ask')} {'is' if owed == 1 else 'are'} in {where}{price}"
