"""What CSV files say of repairs: the attempts, their outcomes, and the file of a module that each repair is for."""

from __future__ import annotations

import csv
import io
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from steelyard.outcomes.cells import BOOLEAN_CODES, EXPECTED_BOOLEAN_TEXT, FALSE_CODE
from steelyard.outcomes.columns import OutcomeCsvReader
from steelyard.outcomes.files import OutcomeFile, OutcomeProblemCollector, collect_file_errors
from steelyard.records import Target, Verdict, digest
from steelyard.records.cases import TargetSeverity
from steelyard.reports.tables import cell
from steelyard.text import printable, short_quote
from steelyard.verifiers.terraform.verifier import REPAIR_FIGURES, REPAIR_LEVELS

OID, SPECIFIC, ITERATION = "oid", "specific_oid", "iteration_id"
WHOLE_FILE_COLUMN, PART_COLUMNS = "fixed_file", ("fixed_block_content", "fixed_code")
"""Columns of repairs: of the whole file, and of some of its lines."""
RepairMode = Literal["auto", "block", "file"]
"""Which repair of a row counts: of the whole file where there is one, only of a block, or only of the whole file."""
REPAIR_COLUMNS = (WHOLE_FILE_COLUMN, *PART_COLUMNS)
LINE_COLUMNS, BLOCK_COLUMNS = ("line_start", "line_end"), ("impacted_block_start_line", "impacted_block_end_line")
"""Columns of lines: those of the problem or the repair, and those of the block around them."""
PLACE_COLUMNS = ("project_name", "working_directory", "filename")
PROBLEM_COLUMNS = (*PLACE_COLUMNS, *LINE_COLUMNS, *BLOCK_COLUMNS, "summary", "detail", "severity")
"""What the fixes, or otherwise the list of problems, say about a problem."""
COPIED_COLUMNS = ("benchmark_oid", "llm_name")
"""What is copied to the outcomes."""
CLONES_FOLDER = "clones"
"""The name of the folder of clones in paths that begin above it, even if it was renamed."""
SEVERITIES: tuple[TargetSeverity, ...] = get_args(TargetSeverity)
LINE_NUMBER = re.compile(r"(\d{1,9})(?:\.0+)?")
"""A line number; a table with gaps in the column writes it as a float."""
ALL_LINES = (1, (1 << 31) - 1)
"""The lines of a target that names none."""


class FixRow(NamedTuple):
    """One attempt as a file of fixes has it."""

    line: int
    oid: str
    specific: str
    """What distinguishes problems with the same oid; empty if nothing does."""
    iteration: str
    cells: Mapping[str, str]
    """All cells, by column."""

    @property
    def problem(self) -> str:
        return self.specific or self.oid


class UnusableCellError(Exception):
    """A cell of a row that cannot be used."""

    def __init__(self, column: str, what: str) -> None:
        super().__init__(f"{column} {what}")
        self.column = column


class ProblemList(NamedTuple):
    """What problems.csv says of each problem."""

    name: str
    cells: Mapping[str, Mapping[str, str]]
    """By specific_oid where the list has it, otherwise by oid."""
    of_oid: Mapping[str, Sequence[str]]
    """The problems of each oid."""
    is_specific: bool

    def meant(self, oid: str, cells: Mapping[str, str]) -> str:
        """Which of the problems with one oid a row is about, by the diagnostic that it names; empty if that is not clear."""
        names = self.of_oid.get(oid, ())
        alike = [name for name in names if _diagnostic_words(self.cells[name]) == _diagnostic_words(cells)]
        return alike[0] if self.is_specific and len(names) > 1 and len(alike) == 1 else ""


class RecordedRepair(NamedTuple):
    """A repair that can be judged."""

    clone: Path
    folder: str
    """The module, as seen from the clone."""
    filename: str
    """As seen from the module, or from the clone."""
    text: str
    lines: tuple[int, int] | None
    """The lines that it replaces; None for the whole file."""
    target: Target | None
    fix: str
    """A digest of all this."""


def _diagnostic_words(cells: Mapping[str, str]) -> list[list[str]]:
    return [cells.get(name, "").lower().split() for name in ("summary", "detail")]


def columns_of(path: Path) -> list[str]:
    """The header of a CSV file; empty when it cannot be read."""
    columns: list[str] = []
    if path.is_file():
        file = OutcomeFile(0, path)
        with collect_file_errors(file, OutcomeProblemCollector()):
            columns = OutcomeCsvReader(file, OutcomeProblemCollector()).columns
    return columns


def _rows(
    file: OutcomeFile,
    complaints: OutcomeProblemCollector,
    needed: Sequence[str],
    wanted: Sequence[str] | None = None,
) -> Iterator[tuple[int, dict[str, str]]]:
    """The cells of a file by column, row by row, each with its line: those wanted as far as they are there, or all."""
    with collect_file_errors(file, complaints):
        sheet = OutcomeCsvReader(file, complaints)
        chosen = [*needed, *(name for name in wanted or () if name in sheet.columns)]
        sheet.require(chosen)
        # the reader needs two columns at least
        asked = sheet.columns if wanted is None else chosen if len(chosen) > 1 else chosen * 2
        for part in sheet.parts(asked):
            for line, *cells in zip(part.lines.tolist(), *part.columns, strict=True):
                yield line, dict(zip(asked, cells, strict=True))


def read_fixes(
    file: OutcomeFile, complaints: OutcomeProblemCollector, problems: ProblemList | None = None
) -> list[FixRow]:
    """The attempts of a file, each once."""
    rows: dict[tuple[str, str, str], FixRow] = {}
    wanted = (SPECIFIC, *COPIED_COLUMNS, *PROBLEM_COLUMNS, *REPAIR_COLUMNS)
    for line, cells in _rows(file, complaints, (OID, ITERATION), wanted):
        oid, specific = cells[OID].strip(), cells.get(SPECIFIC, "").strip()
        specific = specific or (problems.meant(oid, cells) if problems else "")
        row = FixRow(line, oid, specific, cells[ITERATION].strip(), cells)
        empty = [name for name in (OID, ITERATION) if not cells[name].strip()]
        earlier = rows.setdefault((row.oid, row.specific, row.iteration), row)
        if empty:
            complaints.add(file, f"empty {empty[0]}", f"{empty[0]} is empty", [line])
        elif earlier is not row:
            is_same = earlier.cells == cells
            what = (
                f"{short_quote(row.problem)}, iteration {short_quote(row.iteration)}: is already on line {earlier.line}"
                f"{'; counted once' if is_same else ', with other values; keep one of them'}"
            )
            complaints.add(file, "repeated" if is_same else "contradicted", what, [line], fatal=not is_same)
    return list(rows.values())


def read_problems(path: Path, complaints: OutcomeProblemCollector, number: int = -1) -> ProblemList:
    """What a list of problems says, as far as it can be read."""
    file = OutcomeFile(number, path)
    cells_of: dict[str, Mapping[str, str]] = {}
    of_oid: dict[str, list[str]] = {}
    is_specific = False
    for _, cells in _rows(file, complaints, (OID,), (SPECIFIC, *PROBLEM_COLUMNS)):
        is_specific = SPECIFIC in cells
        oid = cells[OID].strip()
        name = cells.get(SPECIFIC, "").strip() or oid
        if name and name not in cells_of:
            cells_of[name] = cells
            of_oid.setdefault(oid, []).append(name)
    return ProblemList(file.name, cells_of, of_oid, is_specific)


# ---- repairs


class RepairReader:
    """Makes repairs of rows, and complains of rows that name what they must not: their paths may be anything."""

    def __init__(
        self,
        clones: Path,
        problems: ProblemList | None,
        complaints: OutcomeProblemCollector,
        mode: RepairMode = "auto",
    ) -> None:
        self._clones = clones
        self._mode = mode
        self._problems = problems
        self._complaints = complaints
        # a row of each attempt at a problem names the same places
        self._module_of = cache(self._module)

    def repair(self, file: OutcomeFile, row: FixRow) -> RecordedRepair | None:
        """The repair of a row; None after a complaint."""
        listed: Mapping[str, str] = {}
        if self._problems is not None:
            name = self._listed(file, row, self._problems)
            if name is None:
                return None
            listed = self._problems.cells[name]
        try:
            return self._repair(row.cells, listed)
        except UnusableCellError as error:
            self._complaints.add(file, error.column, str(error), [row.line])
            return None

    def _listed(self, file: OutcomeFile, row: FixRow, problems: ProblemList) -> str | None:
        """The problem that a row belongs to, by the rules by which outcomes are counted."""
        named = row.specific if problems.is_specific and row.specific else ""
        names = [named] if named in problems.cells else [] if named else problems.of_oid.get(row.oid, ())
        if len(names) > 1:
            what = f"oid {short_quote(row.oid)} means several problems, and no specific_oid says which"
            self._complaints.add(file, "ambiguous", what, [row.line])
        elif not names:
            which = f"specific_oid {short_quote(named)}" if named else f"oid {short_quote(row.oid)}"
            what = f"{which} is not in {problems.name}; ignored"
            self._complaints.add(file, "unknown", what, [row.line], fatal=False)
        return names[0] if len(names) == 1 else None

    def _repair(self, cells: Mapping[str, str], listed: Mapping[str, str]) -> RecordedRepair:
        project, folder, filename = (
            (cells.get(name) or listed.get(name) or "").strip().replace("\\", "/") for name in PLACE_COLUMNS
        )
        clone, folder, filename = self._module_of(project, folder, filename)
        block = _lines(cells, BLOCK_COLUMNS) or _lines(listed, BLOCK_COLUMNS)
        own, theirs = _lines(cells, LINE_COLUMNS), _lines(listed, LINE_COLUMNS)
        whole = "" if self._mode == "block" else cells.get(WHOLE_FILE_COLUMN, "")
        parts = () if self._mode == "file" else PART_COLUMNS
        part = next((cells[name] for name in parts if cells.get(name, "").strip()), "")
        is_part = bool(part) and not whole.strip()
        if is_part and not (block or own or theirs):
            raise UnusableCellError(
                LINE_COLUMNS[0], f"and {LINE_COLUMNS[1]} are empty; they say which lines the repair replaces"
            )
        target = _target(cells, listed, theirs or own or block or ALL_LINES)
        if target is not None:
            named = (target.file or "").replace("\\", "/")
            target = msgspec.structs.replace(target, file=self._inside(project, named) if named else filename)
        text, lines = (part, block or own or theirs) if is_part else (whole, None)
        wanted = target and (
            *(target.file, target.line_start, target.line_end, target.summary, target.detail, target.severity),
        )
        fix = digest(project, folder, filename, text, lines, wanted)
        return RecordedRepair(clone, folder, filename, text, lines, target, fix)

    def _module(self, project: str, folder: str, filename: str) -> tuple[Path, str, str]:
        """The clone and the module of these names, and the file's name as seen from the module or from the clone."""
        for name, value in (("project_name", project), ("filename", filename)):
            if not value:
                raise UnusableCellError(name, "is not given, neither here nor in the list of problems")
        if not _is_below(project) or ".." in project.split("/"):
            raise UnusableCellError(
                "project_name", f"is {short_quote(project)}; expected the name of a folder in {CLONES_FOLDER}_dir"
            )
        inside = self._inside(project, filename)
        if inside.startswith("/") or not (folder or _is_below(inside)):
            raise UnusableCellError("filename", f"is {short_quote(filename)}; expected a file of the clone")
        folder = self._inside(project, folder) if folder else posixpath.dirname(inside) or "."
        if not _is_below(posixpath.join(folder, "_")) or ".." in folder.split("/"):
            raise UnusableCellError("working_directory", f"is {short_quote(folder)}; expected a folder of the clone")
        folder = posixpath.normpath(folder)
        if not _is_below(posixpath.join(folder, inside)):
            raise UnusableCellError("filename", f"is {short_quote(filename)}; expected a file of the clone")
        root = self._clones / project
        _hold("project_name", project, root, self._clones)
        _hold("working_directory", folder, root / folder, root)
        for path in (posixpath.join(folder, inside), inside):
            if _is_below(path):
                _hold("filename", filename, root / path, root)
        return root, folder, inside

    def _inside(self, project: str, path: str) -> str:
        """A path as seen from the clone, where it is written as seen from somewhere above all clones."""
        above = "|".join(map(re.escape, (CLONES_FOLDER, self._clones.name)))
        below = re.search(rf"(?:^|/)(?:{above})/{re.escape(project)}(?:/(.*))?$", path)
        return path if below is None else below[1] or "."


def _hold(column: str, name: str, place: Path, inside: Path) -> None:
    """Refuse a path that a link leads out of the folder it belongs in."""
    try:
        is_held = place.resolve().is_relative_to(inside.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise UnusableCellError(column, f"is {short_quote(name)}, which cannot be resolved: {error}") from None
    if not is_held:
        raise UnusableCellError(column, f"is {short_quote(name)}, which a link leads out of {printable(str(inside))}")


def _is_below(path: str) -> bool:
    """Whether a relative path stays below where it begins."""
    normal = posixpath.normpath(path)
    return not normal.startswith(("/", "../")) and normal not in (".", "..")


def _lines(cells: Mapping[str, str], names: tuple[str, str]) -> tuple[int, int] | None:
    """The lines that two cells give; None if both are empty."""
    texts = [cells.get(name, "").strip() for name in names]
    if not any(texts):
        return None
    numbers = [LINE_NUMBER.fullmatch(text) for text in texts]
    for name, text, number in zip(names, texts, numbers, strict=True):
        if number is None or not int(number[1]):
            said = short_quote(text) if text else "empty"
            raise UnusableCellError(name, f"is {said}; expected the number of a line, from 1")
    first, last = (int(number[1]) for number in numbers if number)
    if last < first:
        raise UnusableCellError(names[1], f"is {last}, before {names[0]}, which is {first}")
    return first, last


def _target(cells: Mapping[str, str], listed: Mapping[str, str], lines: tuple[int, int]) -> Target | None:
    """The diagnostic that the repair must remove; None if neither file names one."""
    source = listed if listed.get("summary", "").strip() else cells
    summary = source.get("summary", "").strip()
    if not summary:
        return None
    said = source.get("severity", "").strip().lower() or SEVERITIES[0]
    severity = next((known for known in SEVERITIES if known == said), None)
    if severity is None:
        raise UnusableCellError("severity", f"is {short_quote(said)}; expected {' or '.join(SEVERITIES)}")
    filename, detail = (source.get(name, "").strip() for name in ("filename", "detail"))
    first, last = lines
    return Target(file=filename, line_start=first, line_end=last, summary=summary, detail=detail, severity=severity)


# ---- outcomes

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
    for line, cells in _rows(file, complaints, (OID, ITERATION, PASSED)):
        passed = cells[PASSED].strip()
        if BOOLEAN_CODES.get(passed.lower(), FALSE_CODE - 1) < FALSE_CODE:
            what = f"{PASSED} is {short_quote(passed) if passed else 'empty'}; expected {EXPECTED_BOOLEAN_TEXT}"
            complaints.add(file, "outcome", what, [line])
        oid, specific, iteration = (cells.get(name, "").strip() for name in (OID, SPECIFIC, ITERATION))
        exact.setdefault((oid, specific, iteration), cells)
        of_oid.setdefault((oid, iteration), []).append(cells)
    return RecordedOutcomes(path, exact, of_oid)


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


def brief_outcomes_csv(outcomes: Sequence[tuple[FixRow, OutcomeCells]], levels: Sequence[str] = (PASSED,)) -> str:
    """The same in the columns that pass@k needs, and in one more where an oid stands for several problems."""
    names = [SPECIFIC] if any(row.specific for row, _ in outcomes) else []
    rows = [{**cells, OID: row.oid, ITERATION: row.iteration, SPECIFIC: row.specific} for row, cells in outcomes]
    return _csv([OID, ITERATION, *levels, *names], rows)


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
