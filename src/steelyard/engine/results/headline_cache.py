"""The figures of a run, cached beside its journal for lists and the viewer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

import msgspec

from steelyard.analysis.attempts import AttemptTable
from steelyard.analysis.headlines import (
    ATTEMPT_TABLE_VERSION,
    ModelHeadline,
    RunHeadlines,
    headlines,
)
from steelyard.analysis.summary import Summary, summarise_attempts
from steelyard.engine.results.attempt_index import index_pieces
from steelyard.engine.results.attempt_tables import joined_attempt_table
from steelyard.errors import SteelyardError, StoreError
from steelyard.records import Case, RunInfo
from steelyard.reports.figures import model_label, money, quality
from steelyard.store.journal import DECODE_ERRORS, Journal, StoredRun, write_pieces_atomically
from steelyard.store.run_folders import (
    ATTEMPT_INDEX_FILE,
    HEADLINE_FILE,
    run_folder_snapshot,
    run_folders,
    run_size_fingerprint,
)
from steelyard.text import line

_headlines = msgspec.json.Decoder(RunHeadlines)


def summarise_and_cache(journal: Journal, info: RunInfo, cases: Sequence[Case]) -> tuple[Summary, tuple[str, ...]]:
    """The summary of a run, and what went wrong, without harm, when the cache was written."""
    table = joined_attempt_table(journal, info, cases)
    summary = summarise_attempts(info, cases, table)
    return summary, _write_cache(journal, info, cases, table, summary)


def _write_cache(
    journal: Journal, info: RunInfo, cases: Sequence[Case], table: AttemptTable, summary: Summary
) -> tuple[str, ...]:
    try:
        made_of = run_size_fingerprint(
            journal.described()[1], run_folder_snapshot(journal.folder), ATTEMPT_TABLE_VERSION
        )
        figures = RunHeadlines(made_of=made_of, cases=len(cases), models=headlines(info, cases, table))
        journal.keep(HEADLINE_FILE, msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")
        write_pieces_atomically(journal.folder / ATTEMPT_INDEX_FILE, index_pieces(journal, table, summary))
    except (StoreError, OverflowError) as error:
        return (f"{journal.folder}: not prepared for the viewer, which will read the journal instead: {error}",)
    return ()


class RunLines(NamedTuple):
    """What a list prints of a run, before it is laid out."""

    name: str
    about: str
    """When it started, and its eval sets."""
    models: tuple[tuple[str, str, str, str, str, str], ...] = ()
    """Of each model its name, pass rate, interval, counts, cost and what is missing."""


class RunListEntry(NamedTuple):
    """A run as a list shows it."""

    name: str
    lines: RunLines | None = None
    problem: str = ""
    """Why it cannot be read, if it cannot."""


def run_headlines(root: Path) -> list[RunListEntry]:
    """The runs below a folder by their names, oldest first, each with its headline figures; then those that cannot be read.

    Figures are read from the cache, or from the journal where the cache is of another state of the run.
    """
    listed = [_listed(folder) for folder in run_folders(root)]
    # those that cannot be read have no time, and come last by their names
    return [entry for _, entry in sorted(listed, key=lambda run: (bool(run[1].problem), run[0], run[1].name))]


def _listed(folder: Path) -> tuple[str, RunListEntry]:
    """When a run started, and how it is listed."""
    run = StoredRun(folder)
    try:
        info, described = run.described()
        models = _models(run, described)
        files = tuple(file.path for file in info.eval_sets or info.recordings)
        return info.started_at, RunListEntry(folder.name, run_lines(folder.name, models, info.started_at, files))
    except (SteelyardError, OSError, ArithmeticError, ValueError) as error:
        # one run that anybody may have filled must not hide the others
        return "", RunListEntry(folder.name, problem=str(error))


MAX_LISTED_EVAL_SETS = 3


def run_lines(
    name: str, models: Sequence[ModelHeadline], started_at: str = "", eval_sets: Sequence[str] = ()
) -> RunLines:
    """What a list prints of a run: its date and eval sets, and figures for each model."""
    about = "  ".join(part for part in (_minute(started_at), _eval_set_names(eval_sets)) if part)
    return RunLines(line(name), about, tuple(_model_columns(model) for model in models))


def _model_columns(model: ModelHeadline) -> tuple[str, str, str, str, str, str]:
    name = line(model_label(model.model, model.tier))
    share, _, interval = (quality(model.on, model.quality) if model.quality else "-").partition(" ")
    cost = "" if model.cost_usd is None else money(model.cost_usd)
    return (
        name,
        share,
        interval,
        "mean score" if model.on == "score" else f"{model.correct}/{model.attempts}",
        cost,
        f"{model.missing} missing" * (model.missing > 0),
    )


def _minute(timestamp: str) -> str:
    """A timestamp to the minute, as it was recorded.

    >>> _minute("2026-11-15T12:00:59.123+00:00")
    '2026-11-15 12:00'
    """
    return line(timestamp[:16].replace("T", " "))


def _eval_set_names(paths: Sequence[str]) -> str:
    """The names of files, the first few of many.

    >>> _eval_set_names(["evals/a.toml", "evals/b.jsonl", "c.toml", "d.toml"])
    'a, b, c and 1 more'
    """
    names = [line(PurePath(path).stem, 40) for path in paths[:MAX_LISTED_EVAL_SETS]]
    more = len(paths) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _models(run: StoredRun, described: bytes) -> tuple[ModelHeadline, ...]:
    """The figures of each model of a run as it is now; `described` is what run.json holds."""
    try:
        cached = _headlines.decode(run.content(run.folder / HEADLINE_FILE))
        snapshot = run_folder_snapshot(run.folder.resolve())
        # a snapshot does not have the size of a journal that a link leads to
        is_current = cached.made_of == run_size_fingerprint(described, snapshot, ATTEMPT_TABLE_VERSION)
        if is_current and not snapshot.links:
            return cached.models
    except (OSError, *DECODE_ERRORS):
        pass
    info, cases = run.info, run.cases
    return headlines(info, cases, joined_attempt_table(run, info, cases))


def stored_headlines(run: StoredRun) -> tuple[ModelHeadline, ...]:
    """The figures of each model of a run as it is now."""
    return _models(run, run.described()[1])
