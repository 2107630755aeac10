"""Imported runs joined to one, as if their files had been imported together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from steelyard.analysis.attempt_texts import AttemptText, attempt_texts
from steelyard.engine.results.import_run import write_recorded_run
from steelyard.engine.run import Run
from steelyard.errors import InputError, Problem
from steelyard.records import RECORDED_KIND, EvalSetFile, RecordedAttempt
from steelyard.store.journal import StoredRun


def merge_imported_runs(runs: Sequence[StoredRun], *, output: str | Path | None = None, root: Path) -> Run:
    """One run of the attempts of several imported runs; they stay as they are."""
    return write_recorded_run(_ImportedRuns(runs), output=output, root=root)


class _ImportedRuns:
    """The recorded attempts of imported runs."""

    def __init__(self, runs: Sequence[StoredRun]) -> None:
        self._runs = runs
        self.problems: list[Problem] = []
        wrong: list[Problem] = []
        seen: dict[tuple[str, str], Path] = {}
        for run in self._runs:
            if any(case.kind != RECORDED_KIND for case in run.cases):
                what = "was verified here as well, and such runs are not merged; import its files together instead"
                wrong.append(Problem(str(run.folder), 0, what))
            for file in run.info.recordings:
                # two folders are the same by their paths, two files by what they hold
                first = seen.setdefault((file.digest, "" if file.digest else file.path), run.folder)
                if first is not run.folder:
                    what = f"{file.path} is in {first} as well; leave one of them out"
                    wrong.append(Problem(str(run.folder), 0, what))
        if wrong:
            raise InputError(wrong)

    @property
    def files(self) -> tuple[EvalSetFile, ...]:
        return tuple(file for run in self._runs for file in run.info.recordings)

    def attempts(self) -> Iterator[RecordedAttempt]:
        for run in self._runs:
            for tried in attempt_texts(run.info, run.cases, run.facts()):
                yield _recorded(tried)
            self.problems += run.damaged


def _recorded(tried: AttemptText) -> RecordedAttempt:
    """An attempt as it was before it was imported."""
    case, settings = tried.case, tried.case.verify.settings
    # ID#2 is the name of a case that was judged by two scorers, and its group the plain one
    plain, _, place = case.id.rpartition("#")
    name = plain if place.isdecimal() and case.group == plain else case.id
    fact = tried.verdict or tried.failure or tried.reply
    found = tried.verdict.found if tried.verdict else None
    return RecordedAttempt(
        case=name,
        model=tried.model,
        judged_by=str(settings.get("judged_by", "")),
        tool=tried.verdict.verifier.partition(", ")[2] if tried.verdict else "",
        number=tried.number,
        tier=tried.tier,
        passed=found.passed if found else None,
        score=found.score if found else None,
        answer=tried.reply.answer if tried.reply else None,
        prompt=case.prompt,
        target=case.target or "",
        label=found.label if found else "",
        reason=found.reason if found else "",
        levels=found.levels if found else {},
        failure=tried.failure.message if tried.failure else "",
        tests=str(settings.get("tests", "")),
        group="" if name != case.id else case.group,
        tags=case.tags,
        at=fact.at if fact else "",
    )
