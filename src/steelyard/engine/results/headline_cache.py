"""What a list or a viewer would else have to work out of a journal, written beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from steelyard.analysis.attempts import (
    ATTEMPT_TABLE_VERSION,
    AttemptTable,
    AttemptTableBuilder,
    pack_attempt_table,
    problem_sentences,
)
from steelyard.analysis.summary import ModelHeadline, RunHeadlines, Summary, headlines_from_summary, summarise
from steelyard.errors import StoreError
from steelyard.store.fingerprints import run_fingerprint, run_size_fingerprint
from steelyard.store.journal import DECODE_ERRORS, Journal, StoredRun
from steelyard.store.locate import runs
from steelyard.store.untrusted import ATTEMPT_INDEX_FILE, HEADLINE_FILE, run_folder_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.records import Case, RunInfo

_headlines = msgspec.json.Decoder(RunHeadlines)


def summarise_and_cache(journal: Journal, info: RunInfo, cases: Sequence[Case]) -> tuple[Summary, tuple[str, ...]]:
    """The summary of a run, and what went wrong, without harm, when it was written down together with an outline."""
    outline = _attempt_table(journal, info, cases)
    summary = outline.summary(info, cases)
    return summary, _cache_summary(journal, cases, outline, summary)


def _attempt_table(journal: Journal, info: RunInfo, cases: Sequence[Case]) -> AttemptTable:
    outlining = AttemptTableBuilder(info, cases)
    for place, fact in journal.placed():
        outlining.add(place, fact)
    return outlining.outline([path.name for path in journal.journals()], problem_sentences(journal.damaged))


def _cache_summary(journal: Journal, cases: Sequence[Case], outline: AttemptTable, summary: Summary) -> tuple[str, ...]:
    try:
        made_of = run_size_fingerprint(
            journal.described()[1], run_folder_snapshot(journal.folder), ATTEMPT_TABLE_VERSION
        )
        headlines = RunHeadlines(made_of=made_of, cases=len(cases), models=headlines_from_summary(cases, summary))
        journal.keep(HEADLINE_FILE, msgspec.json.format(msgspec.json.encode(headlines), indent=2) + b"\n")
        journal.keep(
            ATTEMPT_INDEX_FILE,
            pack_attempt_table(run_fingerprint(journal, ATTEMPT_TABLE_VERSION), outline, summary),
        )
    except (StoreError, OverflowError) as error:
        return (f"{journal.folder}: not prepared for the viewer, which will read the journal instead: {error}",)
    return ()


def run_headlines(root: Path) -> list[tuple[str, tuple[ModelHeadline, ...]]]:
    """The runs below a folder by their names, oldest first, each with its headline figures.

    They are read where the last sitting wrote them down, and worked out of the journal where it could not.
    """
    return [(run.folder.name, _cached_headlines(run) or _computed_headlines(run)) for run in runs(root)]


def _cached_headlines(run: StoredRun) -> tuple[ModelHeadline, ...]:
    """The figures of the run as it is now; none where what is written is of another state of it."""
    folder = run.folder.resolve()
    try:
        kept = _headlines.decode(run.content(folder / HEADLINE_FILE))
        glimpse = run_folder_snapshot(folder)
    except (OSError, *DECODE_ERRORS):
        return ()
    is_present = kept.made_of == run_size_fingerprint(run.described()[1], glimpse, ATTEMPT_TABLE_VERSION)
    # how long a journal is that lies elsewhere, a glimpse does not tell
    return kept.models if is_present and not glimpse.links else ()


def _computed_headlines(run: StoredRun) -> tuple[ModelHeadline, ...]:
    cases = run.cases
    return headlines_from_summary(cases, summarise(run.info, cases, run.facts()))
