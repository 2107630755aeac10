"""Tables of outcomes, ours and other people's: the rows of `<model>_outcomes.csv`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from steelyard.engine.repairs.reader import ITERATION, OID, SPECIFIC, FixRow
from steelyard.outcomes.byte_chunks import collect_file_errors
from steelyard.outcomes.cells import BOOLEAN_CODES, EXPECTED_BOOLEAN_TEXT, FALSE_CODE
from steelyard.outcomes.columns import OutcomeCsvReader
from steelyard.outcomes.problems import OutcomeFile, OutcomeProblemCollector
from steelyard.records import Verdict
from steelyard.reports.tables import cell
from steelyard.text import short_quote
from steelyard.verifiers.terraform.verifier import REPAIR_FIGURES, REPAIR_LEVELS

PASSED = "plausible_fix"
LEVEL_COLUMNS = (PASSED, "is_fixed", "strictly_fixed_in_block", "strictly_fixed_in_module")
FURTHER_LEVELS = dict(zip(LEVEL_COLUMNS[1:], REPAIR_LEVELS[1:], strict=True))
"""The columns of the levels beyond the plausible one, and the names of these levels."""
FIX, MODULE, BY = "fix_digest", "module_digest", "judged_by"
"""The columns that say what an outcome holds for; the first two are empty in outcomes that are not ours."""
IDENTITY_COLUMNS = (OID, "benchmark_oid", SPECIFIC, ITERATION, "llm_name", "filename")
OUTCOME_COLUMNS = (
    *(*IDENTITY_COLUMNS, "is_fixed", *REPAIR_FIGURES, PASSED, *LEVEL_COLUMNS[2:]),
    *("reason", "introduced_errors", BY, FIX, MODULE),
)

OutcomeCells = Mapping[str, str]
"""A row of a table of outcomes, by column."""


def verdict_cells(verdict: Verdict, filename: str, fix: str, module: str) -> OutcomeCells:
    """What a verdict of a run says, as a table has it; what is not known is empty."""
    found = verdict.found
    values: dict[str, bool | int | str | None] = {"filename": filename, "reason": found.reason}
    values |= {column: found.levels.get(level) for column, level in zip(LEVEL_COLUMNS, REPAIR_LEVELS, strict=True)}
    values |= {name: found.figures.get(name) for name in (*REPAIR_FIGURES, "introduced_errors")}
    values |= {BY: verdict.verifier.partition(", ")[2], FIX: fix, MODULE: module}
    # True and False are the words of the programs that invented these tables
    return {name: str(value if isinstance(value, bool) else cell(value)) for name, value in values.items()}


class RecordedOutcomes(NamedTuple):
    """The outcomes of a table on disk."""

    path: Path
    cells: Mapping[tuple[str, str, str], OutcomeCells]
    """By oid, specific_oid and iteration_id."""
    of_oid: Mapping[tuple[str, str], Sequence[OutcomeCells]]
    """By oid and iteration_id."""

    def of(self, row: FixRow) -> OutcomeCells | None:
        """The outcome of an attempt; a table or fixes without specific_oid must leave no doubt."""
        exact = self.cells.get((row.oid, row.specific, row.iteration))
        if exact is not None:
            return exact
        candidates = self.of_oid.get((row.oid, row.iteration), ())
        is_specific = row.specific and (row.oid, "", row.iteration) not in self.cells
        return candidates[0] if len(candidates) == 1 and not is_specific else None


def recorded_outcomes(path: Path, number: int, complaints: OutcomeProblemCollector) -> RecordedOutcomes:
    """The outcomes of a table, ours or another program's."""
    exact: dict[tuple[str, str, str], OutcomeCells] = {}
    of_oid: dict[tuple[str, str], list[OutcomeCells]] = {}
    file = OutcomeFile(number, path)
    with collect_file_errors(file, complaints):
        sheet = OutcomeCsvReader(file, complaints)
        names = sheet.columns
        sheet.require([OID, ITERATION, PASSED])
        for part in sheet.parts(names):
            for line, *texts in zip(part.lines.tolist(), *part.columns, strict=True):
                cells = dict(zip(names, texts, strict=True))
                passed = cells[PASSED].strip()
                if BOOLEAN_CODES.get(passed.lower(), FALSE_CODE - 1) < FALSE_CODE:
                    what = f"{PASSED} is {short_quote(passed) if passed else 'empty'}; expected {EXPECTED_BOOLEAN_TEXT}"
                    complaints.add(file, "outcome", what, [line])
                oid, specific, iteration = (cells.get(name, "").strip() for name in (OID, SPECIFIC, ITERATION))
                exact.setdefault((oid, specific, iteration), cells)
                of_oid.setdefault((oid, iteration), []).append(cells)
    return RecordedOutcomes(path, exact, of_oid)


def old_journal_outcomes(path: Path) -> Iterator[OutcomeCells]:
    """The outcomes that version 0.1.0 wrote down before it was killed; what cannot be read counts as not written."""
    try:
        lines = b"" if path.is_symlink() else path.read_bytes()
    except OSError:
        return
    for line in lines.split(b"\n"):
        try:
            outcome = json.loads(line)
            yield {**outcome["cells"], FIX: outcome["fix"], MODULE: outcome["module"]}
        except (ValueError, KeyError, TypeError, RecursionError):
            continue


def outcomes_csv(outcomes: Iterable[tuple[FixRow, OutcomeCells]]) -> str:
    """The outcomes of attempts, in their order."""
    rows = [
        {
            **cells,
            **{name: row.cells[name].strip() for name in IDENTITY_COLUMNS if row.cells.get(name, "").strip()},
            # tables are joined by these, so they stay to the letter
            OID: row.oid,
            SPECIFIC: row.specific,
            ITERATION: row.iteration,
        }
        for row, cells in outcomes
    ]
    for each in rows:
        each.update({name: str(cell(each.get(name, ""))) for name in ("llm_name", "filename")})
    others = dict.fromkeys(name for row in rows for name in row if name not in OUTCOME_COLUMNS)
    return _csv([*OUTCOME_COLUMNS, *others], rows)


def brief_outcomes_csv(outcomes: Iterable[tuple[FixRow, OutcomeCells]]) -> str:
    """The same in the three columns that pass@k needs, and in a fourth where an oid stands for several problems."""
    rows = [
        {OID: row.oid, ITERATION: row.iteration, PASSED: cells[PASSED], SPECIFIC: row.specific}
        for row, cells in outcomes
    ]
    return _csv([OID, ITERATION, PASSED, *([SPECIFIC] if any(row[SPECIFIC] for row in rows) else [])], rows)


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
