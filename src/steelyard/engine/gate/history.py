"""The runs that were blessed as a baseline, kept one by one in a file beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from steelyard.comparison.history import HistoryEntry, HistoryWatch, watch_history
from steelyard.comparison.sides import Side, Trials
from steelyard.errors import InputError, check_format
from steelyard.store.files import AtomicFiles, TolerantDecoder, explain_write_errors, format_number
from steelyard.text import printable

HISTORY_SUFFIX = ".history.jsonl"
HISTORY_FORMAT = 1
MAX_HISTORY_FILE_BYTES = 1 << 30
KEPT_FIELDS = ("case", "tests", "judged_by", "attempts", "passes", "group", "cached_from")
"""What a watch needs to know of a case."""


class _NumberedEntry(HistoryEntry, frozen=True, kw_only=True):
    """A run as its line has it."""

    format: int = 0


_entry: TolerantDecoder[_NumberedEntry] = TolerantDecoder(_NumberedEntry)


def history_path(baseline: Path) -> Path:
    """Where the history of a baseline is kept."""
    return baseline.with_name(baseline.name.removesuffix(".json") + HISTORY_SUFFIX)


def histories(folder: Path) -> list[str]:
    """The names of the baselines in a folder that have a history."""
    try:
        return sorted(path.name.removesuffix(HISTORY_SUFFIX) for path in folder.glob(f"*{HISTORY_SUFFIX}"))
    except OSError:
        return []


def watch(name: str, folder: Path, *, alpha: float = 0.05) -> HistoryWatch:
    """Whether the blessed runs of a baseline got worse; raises an InputError if it has no history."""
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, not {alpha:g}")
    path = folder / f"{name}{HISTORY_SUFFIX}"
    if Path(name).name != name or not path.is_file():
        known = f"known: {', '.join(histories(folder))}" if histories(folder) else "there are none yet"
        raise InputError(
            f"{printable(name)}: no history in {folder} ({known}); every steelyard bless RUN --as NAME adds its runs to one"
        )
    entries = read_history(path)
    if not entries:
        raise InputError(f"{path}: no runs in it; steelyard bless RUN --as {printable(name)} adds one")
    return watch_history(name, entries, alpha=alpha)


def read_history(path: Path) -> list[HistoryEntry]:
    """The runs of a history, in the order in which they were blessed; none if there is no such file."""
    if not path.is_file():
        return []
    try:
        with path.open("rb") as file:
            content = file.read(MAX_HISTORY_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if len(content) > MAX_HISTORY_FILE_BYTES:
        raise InputError(
            f"{path}: larger than {MAX_HISTORY_FILE_BYTES >> 30} GB; start a new one with --restart-history"
        )
    entries = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            try:
                check_format(str(path), format_number(line), HISTORY_FORMAT)
                found = _entry.decode(line)
                entries.append(HistoryEntry(**{name: getattr(found, name) for name in HistoryEntry.__struct_fields__}))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise InputError(
                    f"{path}:{number}: not a run of a history: {str(error)[:200]}; restore the file, or start a new one with "
                    "steelyard bless RUN --as NAME --restart-history"
                ) from None
    return entries


def add_to_history(path: Path, sides: Sequence[Side], times: Sequence[str], *, restart: bool = False) -> int:
    """Add runs to a history, each once, in the order of their times; returns how many it has now."""
    entries = [] if restart else read_history(path)
    before = len(entries)
    known = {(run, model) for entry in entries for run in _identities(entry) for model in entry.models}
    for at, side in sorted(zip(times, sides, strict=True), key=lambda each: each[0]):
        entry = HistoryEntry(
            run=side.runs[0] if len(side.runs) == 1 else side.name,
            at=at,
            runs=side.runs,
            rule=side.rule,
            models={
                model: tuple(map(_kept, trials))
                for model, trials in side.models.items()
                if any(each.attempts for each in trials)
            },
        )
        fresh = {
            model: trials
            for model, trials in entry.models.items()
            if not any((run, model) in known for run in _identities(entry))
        }
        if fresh:
            entries.append(msgspec.structs.replace(entry, models=fresh))
            known |= {(run, model) for run in _identities(entry) for model in fresh}
    if len(entries) > before or restart:
        with explain_write_errors(path.parent), AtomicFiles() as files:
            files.write(path, map(_line, entries))
            files.finish()
    return len(entries)


def _identities(entry: HistoryEntry) -> Iterator[str]:
    """The identity of a run: its ids, or if these are not known its whole content."""
    yield from entry.runs or (msgspec.json.encode(entry.models, order="sorted").decode(),)


def _line(entry: HistoryEntry) -> str:
    """The line of a run."""
    return msgspec.json.encode({"format": HISTORY_FORMAT} | msgspec.to_builtins(entry)).decode() + "\n"


def _kept(trials: Trials) -> Trials:
    return Trials(**{name: getattr(trials, name) for name in KEPT_FIELDS})
