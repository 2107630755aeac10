"""The attempts of a stored run without their texts, from the index beside its journals or from the journals."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.attempts import AttemptTable, AttemptTableBuilder
from steelyard.analysis.headlines import ATTEMPT_TABLE_VERSION, problem_sentences, unpack_attempt_table
from steelyard.errors import InputError
from steelyard.records import Case, RunInfo
from steelyard.store.journal import JournalReader, StoredRun, fact_offset
from steelyard.store.run_folders import ATTEMPT_INDEX_FILE, run_fingerprint


def stored_attempt_table(
    stored: StoredRun, info: RunInfo, cases: Sequence[Case], *, rule: str | None = None
) -> AttemptTable:
    """The attempts of a run without their texts: from its index where that is current, otherwise from its journals."""
    stored.damaged = []
    is_own_rule = rule in (None, "", info.rule) and info == stored.info
    table = _indexed_table(stored, len(cases)) if is_own_rule else None
    if table is not None:
        return table
    paths = stored.journals()
    builder = AttemptTableBuilder(info, cases, rule=rule)
    for number, path in enumerate(paths):
        begin = fact_offset(number, 0)
        for byte, fact in JournalReader(stored, path, stored.damaged.append).facts():
            builder.add(begin + byte, fact)
    return builder.table([path.name for path in paths], problem_sentences(stored.damaged), is_last=True)


def _indexed_table(stored: StoredRun, cases: int) -> AttemptTable | None:
    """The table of the run as it is now; None if the index is missing or stale, or if lines are damaged, which must be reported."""
    try:
        content = stored.content(stored.folder / ATTEMPT_INDEX_FILE)
        table, _ = unpack_attempt_table(content, run_fingerprint(stored, ATTEMPT_TABLE_VERSION), cases)
    except (OSError, ValueError, InputError):
        return None
    names = tuple(path.name for path in stored.journals())
    return table if table.journals == names and not table.problems else None
