"""What a list or a viewer would else have to work out of a journal, written beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from steelyard import store
from steelyard.analysis.attempts import SHAPE, Outline, Outlining, packed, sentences
from steelyard.analysis.summary import Headline, Headlines, Summary, headlines_of, summarise
from steelyard.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.records import Case, RunInfo

_headlines = msgspec.json.Decoder(Headlines)


def summed_up(journal: store.Journal, info: RunInfo, cases: Sequence[Case]) -> tuple[Summary, tuple[str, ...]]:
    """The summary of a run, and what went wrong, without harm, when it was written down together with an outline."""
    outline = _outline(journal, info, cases)
    summary = outline.summary(info, cases)
    return summary, _kept(journal, cases, outline, summary)


def _outline(journal: store.Journal, info: RunInfo, cases: Sequence[Case]) -> Outline:
    outlining = Outlining(info, cases)
    for place, fact in journal.placed():
        outlining.add(place, fact)
    return outlining.outline([path.name for path in journal.journals()], sentences(journal.damaged))


def _kept(journal: store.Journal, cases: Sequence[Case], outline: Outline, summary: Summary) -> tuple[str, ...]:
    try:
        made_of = store.sources_at_a_glance(journal.described()[1], store.glimpse(journal.folder), SHAPE)
        headlines = Headlines(made_of=made_of, cases=len(cases), models=headlines_of(cases, summary))
        journal.keep(store.HEADLINE, msgspec.json.format(msgspec.json.encode(headlines), indent=2) + b"\n")
        journal.keep(store.INDEX, packed(store.sources(journal, SHAPE), outline, summary))
    except (StoreError, OverflowError) as error:
        return (f"{journal.folder}: not prepared for the viewer, which will read the journal instead: {error}",)
    return ()


def listed(root: Path) -> list[tuple[str, tuple[Headline, ...]]]:
    """The runs below a folder by their names, oldest first, each with its headline figures.

    They are read where the last sitting wrote them down, and worked out of the journal where it could not.
    """
    return [(run.folder.name, _written_down(run) or _worked_out(run)) for run in store.runs(root)]


def _written_down(run: store.Stored) -> tuple[Headline, ...]:
    """The figures of the run as it is now; none where what is written is of another state of it."""
    folder = run.folder.resolve()
    try:
        kept = _headlines.decode(run.content(folder / store.HEADLINE))
        glimpse = store.glimpse(folder)
    except (OSError, *store.UNREADABLE):
        return ()
    is_present = kept.made_of == store.sources_at_a_glance(run.described()[1], glimpse, SHAPE)
    # how long a journal is that lies elsewhere, a glimpse does not tell
    return kept.models if is_present and not glimpse.links else ()


def _worked_out(run: store.Stored) -> tuple[Headline, ...]:
    cases = run.cases
    return headlines_of(cases, summarise(run.info, cases, run.facts()))
