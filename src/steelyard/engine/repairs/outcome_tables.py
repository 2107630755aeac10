"""What was found out about repairs, on disk: a journal while it grows, a table when it is whole."""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.engine.repairs.reader import ITERATION, OID, SPECIFIC, Row
from steelyard.errors import DiskFullError, InputError
from steelyard.outcomes.byte_chunks import collect_file_errors
from steelyard.outcomes.codes import BOOLEAN_CODES, EXPECTED_BOOLEAN_TEXT, FALSE_CODE
from steelyard.outcomes.csv_columns import OutcomeCsvReader
from steelyard.outcomes.problems import OutcomeFile, OutcomeProblemCollector
from steelyard.records import Record
from steelyard.reports.tables import cell
from steelyard.text import printable, short_quote
from steelyard.verifiers.terraform.levels import RepairLevels

PASSED = "plausible_fix"
LEVELS = {
    "is_fixed": "fixed",
    "strictly_fixed_in_block": "strictly fixed in block",
    "strictly_fixed_in_module": "strictly fixed in module",
}
"""The columns of the levels beyond the plausible one, and what they are called."""
FIX, MODULE, BY = "fix_digest", "module_digest", "judged_by"
"""The columns that say what an outcome holds for."""
IDENTITY = (OID, "benchmark_oid", SPECIFIC, ITERATION, "llm_name", "filename")
FIGURES = (
    *("line_is_clean", "line_specific_error_fixed", "module_total_errors", "file_errors", "module_errors"),
    *("module_original_errors_remaining", "module_fix_introduced_errors", "block_total_errors"),
    *("block_original_errors_remaining", "block_fix_introduced_errors"),
)
"""The columns that are called like the figures of a repair's levels."""
COLUMNS = (
    *(*IDENTITY, "is_fixed", *FIGURES, PASSED, *tuple(LEVELS)[1:]),
    *("reason", "introduced_errors", BY, FIX, MODULE),
)
MOST_INTRODUCED = 20
"""New errors that are listed."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Verdict(Record, frozen=True, kw_only=True):
    """What was found out about a repair, wherever it is proposed."""

    fix: str
    """A digest of the repair and of what it is to repair; empty where somebody else judged."""
    module: str
    """A digest of the module and of who judged; empty where somebody else did."""
    cells: dict[str, str]
    """The outcome as a table has it."""


def cells_of(levels: RepairLevels, reason: str) -> dict[str, str]:
    """The levels that a repair reached, as a table has them; what is not known is empty."""
    introduced = dict.fromkeys(f"{new.scope}: {new.diagnosis.summary}" for new in levels.introduced)
    reached: dict[str, bool | int | str | None] = {
        PASSED: levels.plausible,
        "is_fixed": levels.fixed,
        "reason": reason,
        "introduced_errors": "; ".join(list(introduced)[:MOST_INTRODUCED]),
    }
    reached |= {name: getattr(levels, name) for name in (*FIGURES, *tuple(LEVELS)[1:])}
    # the words of those who invented these tables, for their own programs
    return {name: str(value if isinstance(value, bool) else cell(value)) for name, value in reached.items()}


# ---- tables


class Recorded(NamedTuple):
    """The outcomes of a table that is there."""

    path: Path
    verdicts: Mapping[tuple[str, str, str], Verdict]
    """By oid, specific_oid and iteration_id."""
    of_oid: Mapping[tuple[str, str], Sequence[Verdict]]
    """By oid and iteration_id."""

    def verdict(self, row: Row) -> Verdict | None:
        """What it says of an attempt; a table or fixes without specific_oid must leave no doubt."""
        exact = self.verdicts.get((row.oid, row.specific, row.iteration))
        if exact is not None:
            return exact
        found = self.of_oid.get((row.oid, row.iteration), ())
        is_told_apart = row.specific and (row.oid, "", row.iteration) not in self.verdicts
        return found[0] if len(found) == 1 and not is_told_apart else None


def recorded(path: Path, number: int, complaints: OutcomeProblemCollector) -> Recorded:
    """The outcomes of a table, our own or somebody else's."""
    verdicts: dict[tuple[str, str, str], Verdict] = {}
    of_oid: dict[tuple[str, str], list[Verdict]] = {}
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
                verdict = Verdict(fix=cells.pop(FIX, ""), module=cells.pop(MODULE, ""), cells=cells)
                verdicts.setdefault((oid, specific, iteration), verdict)
                of_oid.setdefault((oid, iteration), []).append(verdict)
    return Recorded(path, verdicts, of_oid)


def table(judged: Iterable[tuple[Row, Verdict]]) -> str:
    """The outcomes of attempts, in their order."""
    rows = [
        {
            **verdict.cells,
            **{name: row.cells[name].strip() for name in IDENTITY if row.cells.get(name, "").strip()},
            # whoever joins tables by these needs them to the letter
            OID: row.oid,
            SPECIFIC: row.specific,
            ITERATION: row.iteration,
            FIX: verdict.fix,
            MODULE: verdict.module,
        }
        for row, verdict in judged
    ]
    for each in rows:
        each.update({name: str(cell(each.get(name, ""))) for name in ("llm_name", "filename")})
    others = dict.fromkeys(name for row in rows for name in row if name not in COLUMNS)
    return _written([*COLUMNS, *others], rows)


def brief_table(judged: Iterable[tuple[Row, Verdict]]) -> str:
    """The same in the three columns that pass@k takes, and in a fourth where oids stand for several problems."""
    rows = [
        {OID: row.oid, ITERATION: row.iteration, PASSED: verdict.cells[PASSED], SPECIFIC: row.specific}
        for row, verdict in judged
    ]
    return _written([OID, ITERATION, PASSED, *([SPECIFIC] if any(row[SPECIFIC] for row in rows) else [])], rows)


def _written(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


# ---- journals


class Journal:
    """Verdicts that are not in their table yet; each survives the death of this process."""

    def __init__(self, path: Path) -> None:
        """Open or make it; a line that was cut off, or is none of ours, is as if it had never been written."""
        self.path = path
        self._unsynced = False
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._cannot_write(error) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise InputError(
                f"{printable(str(path))}: another process is judging these repairs; wait for it, or stop it first"
            ) from None
        with os.fdopen(os.dup(self._file), "rb") as lines:
            content = lines.read()
        whole = content.rfind(b"\n") + 1
        # half a line must not stand before the next whole one
        os.ftruncate(self._file, whole)
        self.verdicts = tuple(_verdicts(content[:whole].split(b"\n")))

    def append(self, verdict: Verdict) -> None:
        try:
            left = memoryview(msgspec.json.encode(verdict) + b"\n")
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            raise self._cannot_write(error) from None
        self._unsynced = True

    def sync(self) -> None:
        """Make what was written survive the death of the machine as well."""
        if self._unsynced:
            self._unsynced = False
            try:
                os.fsync(self._file)
            except OSError as error:
                raise self._cannot_write(error) from None

    def close(self) -> None:
        """Stop writing; an empty one leaves nothing behind."""
        if not os.fstat(self._file).st_size:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def clear(self) -> None:
        """Forget everything: it is in its table now."""
        os.ftruncate(self._file, 0)

    def _cannot_write(self, error: OSError) -> InputError | DiskFullError:
        where = printable(str(self.path))
        if error.errno in NO_ROOM:
            return DiskFullError(f"{where}: no room left ({error.strerror}); make room and run the same again")
        return InputError(f"{where}: cannot be written: {error.strerror}")


def _verdicts(lines: Iterable[bytes]) -> Iterator[Verdict]:
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=Verdict)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
