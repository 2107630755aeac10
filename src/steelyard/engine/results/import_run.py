"""Other tools' files as ordinary runs: replies, failures, and verdicts that are marked as recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.engine.results.recordings import (
    RECORDED_VERSION,
    RecordedCase,
    RecordedCases,
    RecordedFiles,
    is_recorded,
)
from steelyard.engine.results.report_files import (
    ScoringOverrides,
    baseline_comparison,
    check_report_paths,
    write_reports,
)
from steelyard.engine.run import Run, run_id, tool_versions
from steelyard.errors import InputError, Problem
from steelyard.outcomes.scores import PLAIN_SCORES, ScoreReading
from steelyard.records import (
    RECORDED_KIND,
    Answer,
    EvalSetFile,
    Failure,
    Finding,
    Finish,
    RecordedAttempt,
    RecordedClaim,
    Reply,
    RunInfo,
    Verdict,
    digest,
)
from steelyard.store.assembled_runs import create_run_atomically
from steelyard.store.files import now
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER, find_run
from steelyard.text import printable

MAX_REASON_CHARACTERS = 2000
MAX_LABEL_CHARACTERS = 80
MAX_TIMESTAMP_CHARACTERS = 40
MISFIT_CHARACTERS = re.compile(r"[^\w.-]+")
"""What the name of a run made of a file does not keep of the file's name."""


class RecordedSource(Protocol):
    """Where recorded attempts come from."""

    problems: list[Problem]
    """What a user should know, as warnings, once the attempts are read."""

    @property
    def files(self) -> tuple[EvalSetFile, ...]: ...

    def attempts(self) -> Iterator[RecordedAttempt]: ...


def import_recordings(
    paths: Sequence[str | Path],
    *,
    output: str | Path | None = None,
    reader: str = "",
    scores: ScoreReading = PLAIN_SCORES,
    root: Path,
) -> Run:
    """Make a run of the attempts in other tools' files; its verdicts are marked as recorded."""
    return write_recorded_run(RecordedFiles(paths, reader=reader, scores=scores), output=output, root=root)


def published_claims(paths: Sequence[str | Path], *, reader: str = "") -> list[RecordedClaim]:
    """What the tools published about the attempts in their files, beside what the attempts give; empty for most tools."""
    return list(RecordedFiles(paths, reader=reader).claims())


@contextmanager
def runs_of_recordings(paths: Sequence[str]) -> Iterator[list[Run]]:
    """A run of each file of another tool, all in one folder that is removed afterwards."""
    with TemporaryDirectory(prefix="steelyard-") as place:
        names: dict[str, None] = {}
        for path in paths:
            plain = MISFIT_CHARACTERS.sub("-", Path(path).absolute().name).strip(".-") or "recorded"
            name, number = plain, 1
            while name in names:
                name, number = f"{plain}-{number + 1}", number + 1
            names[name] = None
        yield [
            import_recordings([path], output=Path(place) / name, root=Path(place))
            for path, name in zip(paths, names, strict=True)
        ]


def write_recorded_run(recorded: RecordedSource, *, output: str | Path | None, root: Path) -> Run:
    """Make a run of recorded attempts."""
    started_at = now()
    book = RecordedCases()
    names: dict[str, None] = {}
    tiers: dict[str, None] = {}
    tools: dict[str, None] = {}
    folder = Path(output) if output is not None else root / run_id(started_at)
    with create_run_atomically(folder) as journal:
        for attempt in recorded.attempts():
            case = book.case(attempt)
            model = printable(attempt.model) or "-"
            names[model], tools[attempt.tool] = None, None
            tiers[printable(attempt.tier)] = None
            for _ in range(attempt.times):
                for fact in _facts(attempt, case, book.number(case.id, attempt), started_at):
                    journal.append(fact)
        cases = book.cases()
        # names and numbers of the attempts take as much as the summary, which is made next
        del book
        if not cases:
            raise InputError("; ".join(str(problem) for problem in recorded.problems) or "no attempts to import")
        info = RunInfo(
            id=run_id(started_at) if output is not None else folder.name,
            started_at=started_at,
            ended_at=now(),
            recordings=recorded.files,
            names=tuple(names),
            tiers=tuple(tiers) if any(tiers) else (),
            rule="code",
            versions=tool_versions() | {"recorded by": ", ".join(filter(None, tools))},
        )
        journal.ask(cases)
        journal.describe(info)
        summary, unprepared = summarise_and_cache(journal, info, cases)
        notes = [note.replace(str(journal.folder), str(folder)) for note in unprepared]
    notes += [str(problem) for problem in recorded.problems]
    return Run(folder, info, summary, (), tuple(notes))


def _facts(attempt: RecordedAttempt, case: RecordedCase, number: int, at: str) -> Iterator[Reply | Verdict | Failure]:
    model, tier = printable(attempt.model) or "-", printable(attempt.tier)
    key = digest(RECORDED_KIND, case.id, model, tier, number)
    where: dict[str, Any] = {
        "at": attempt.at if 0 < len(attempt.at) <= MAX_TIMESTAMP_CHARACTERS and attempt.at.isascii() else at,
        "case": case.id,
        "model": model,
        "number": number,
        "tier": tier,
    }
    has_outcome = attempt.passed is not None
    answer = attempt.answer
    if answer is None and has_outcome:
        answer = Answer(text="", finish=Finish.UNRECORDED)
    if answer is not None:
        yield Reply(key=key, asked=case.asked, answer=answer, **where)
    if has_outcome:
        verifier = f"{RECORDED_VERSION}, {attempt.tool}".removesuffix(", ")
        yield Verdict(
            key=digest(key, case.tests, verifier),
            ask=key,
            tests=case.tests,
            verifier=verifier,
            found=_finding(attempt),
            **where,
        )
    elif attempt.failure:
        message = attempt.failure[:MAX_REASON_CHARACTERS]
        yield Failure(key=key, stage="verify" if answer is not None else "ask", message=message, **where)


def _finding(attempt: RecordedAttempt) -> Finding:
    return Finding(
        passed=bool(attempt.passed),
        score=attempt.score,
        graded=attempt.graded,
        levels=attempt.levels,
        label=attempt.label[:MAX_LABEL_CHARACTERS],
        reason=attempt.reason[:MAX_REASON_CHARACTERS],
        trust="recorded",
    )


class NamedRun(NamedTuple):
    """One run, wherever it comes from."""

    side: str
    """Its name as a side of a comparison."""
    folder: Path
    stored: StoredRun
    notes: tuple[str, ...] = ()
    """What is odd about an imported file."""


class ViewedFolder(NamedTuple):
    """What the viewer shows."""

    folder: Path
    shown: str
    """A description for the user."""
    notes: tuple[str, ...] = ()


@contextmanager
def named_run(name: str, *, root: Path = DEFAULT_RUNS_FOLDER) -> Iterator[NamedRun]:
    """A run by its folder, its name or `latest`; or a file of another tool, as a run that is removed afterwards."""
    if not is_recorded(name):
        folder = find_run(name, root)
        yield NamedRun(str(folder.absolute()), folder, StoredRun(folder))
        return
    with runs_of_recordings([name]) as (done,):
        yield NamedRun(name, done.folder, StoredRun(done.folder), done.notes)


def check_report_request(paths: Sequence[str], *, baseline: str | None = None) -> None:
    """Raises an InputError if these reports could not be written."""
    if not paths:
        raise InputError(
            "nowhere to write; name a file, such as: -o report.html (.json .md .csv .html .xml .sarif .jsonl .eee.json .inspect.json ...)"
        )
    check_report_paths(paths)
    if baseline and not any(path.endswith(".html") for path in paths):
        raise InputError("--baseline is for a page, -o FILE.html; steelyard gate and compare write other formats")


def write_run_reports(
    source: NamedRun,
    paths: Sequence[str],
    scoring: ScoringOverrides = ScoringOverrides(),
    *,
    baseline: str | None = None,
    root: Path = DEFAULT_RUNS_FOLDER,
) -> list[Path]:
    """Write reports of a run, each in the format of its suffix, a page with its comparison with the baseline."""
    check_report_request(paths, baseline=baseline)
    held = baseline_comparison(baseline, source.side, rule=scoring.rule, root=root) if baseline else None
    return write_reports(paths, source.stored, scoring, baseline=held)


@contextmanager
def viewed_folder(paths: Sequence[str], root: Path = DEFAULT_RUNS_FOLDER) -> Iterator[ViewedFolder]:
    """A folder of runs or one run, by default `root`; or files of other tools, as runs that are removed afterwards."""
    folder = Path(paths[0]) if paths else root
    are_files = [is_recorded(path) for path in paths]
    if len(paths) > 1 and not all(are_files):
        raise InputError("name one folder, or files of other tools; several folders are not shown together")
    if not any(are_files):
        if paths and not folder.is_dir():
            raise InputError(f"{folder}: no such folder; name a folder of runs, a run, or a file of another tool")
        yield ViewedFolder(folder, f"the runs of {folder}")
        return
    with runs_of_recordings(paths) as done:
        place = done[0].folder if len(done) == 1 else done[0].folder.parent
        yield ViewedFolder(place, ", ".join(paths), tuple(note for each in done for note in each.notes))
