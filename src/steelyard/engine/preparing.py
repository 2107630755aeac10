"""What a viewer would else have to work out of a journal, written beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from steelyard import store
from steelyard.errors import StoreError
from steelyard.outline import SHAPE, Outline, Outlining, packed, sentences
from steelyard.summary import Headlines, Summary, headlines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.records import Case, RunInfo


def summed_up(journal: store.Journal, info: RunInfo, cases: Sequence[Case]) -> tuple[Summary, tuple[str, ...]]:
    """The summary of a run, and what went wrong, without harm, when it was written down together with an outline."""
    outlining = Outlining(info, cases)
    for place, fact in journal.placed():
        outlining.add(place, fact)
    outline = outlining.outline([path.name for path in journal.journals()], sentences(journal.damaged))
    summary = outline.summary(info, cases)
    return summary, _kept(journal, cases, outline, summary)


def _kept(journal: store.Journal, cases: Sequence[Case], outline: Outline, summary: Summary) -> tuple[str, ...]:
    try:
        made_of = store.sources_at_a_glance(journal.described()[1], store.glimpse(journal.folder), SHAPE)
        headlines = Headlines(made_of=made_of, cases=len(cases), models=headlines_of(cases, summary))
        journal.keep(store.HEADLINE, msgspec.json.format(msgspec.json.encode(headlines), indent=2) + b"\n")
        journal.keep(store.INDEX, packed(store.sources(journal, SHAPE), outline, summary))
    except (StoreError, OverflowError) as error:
        return (f"{journal.folder}: not prepared for the viewer, which will read the journal instead: {error}",)
    return ()
