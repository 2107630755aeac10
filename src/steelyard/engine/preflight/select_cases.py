"""Some of the cases: by tag, by id, or by how they fared in an earlier run."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from steelyard.analysis.summary import summarise
from steelyard.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.records import Case
    from steelyard.store.journal import StoredRun


def select_cases(
    cases: Sequence[Case],
    *,
    tags: str | None = None,
    glob: str | None = None,
    exclude: Sequence[str] = (),
    failed_in: StoredRun | None = None,
    limit: int | None = None,
) -> list[Case]:
    """The cases with one of the tags (`easy,strings`), an id like `glob` and unlike `exclude`, and a failed attempt in that run."""
    chosen = list(cases)
    if tags:
        wanted = {tag.strip() for tag in tags.split(",")}
        chosen = [case for case in chosen if wanted & set(case.tags)]
    if glob:
        chosen = [case for case in chosen if fnmatchcase(case.id, glob)]
    chosen = [case for case in chosen if not any(fnmatchcase(case.id, each) for each in exclude)]
    if failed_in is not None:
        rows = summarise(failed_in.info, failed_in.cases, failed_in.facts()).cases
        failed = {row.case for row in rows if row.correct < row.attempts or not row.attempts}
        chosen = [case for case in chosen if case.id in failed]
    if not chosen:
        known = ", ".join(sorted({tag for case in cases for tag in case.tags}))
        raise InputError(
            f"none of the {len(cases)} cases is left by --filter, --case, --exclude and --failed-in (tags: {known})"
        )
    return chosen[:limit]
