"""Whether two runs were judged in the same way."""

from __future__ import annotations

from pathlib import Path

from steelyard.engine.gate.sides import run_folder, split_run_and_model
from steelyard.engine.results.read_outcomes import is_attempts_path
from steelyard.errors import NotComparableError
from steelyard.records import JUDGE_ONLY_KIND, Escalation, Panel
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER


def refuse_changed_judges(baseline: str, current: str, *, root: Path = DEFAULT_RUNS_FOLDER) -> None:
    """Refuse to compare two runs with cases that judges alone decide, if the judges or what they were asked changed."""
    if any(is_attempts_path(split_run_and_model(name)[0]) for name in (baseline, current)):
        return
    folders = [run_folder(name, root=root) for name in (baseline, current)]
    runs = [StoredRun(folder) for folder in folders if folder is not None]
    if len(runs) == 2 and all(run.info.panel for run in runs) and all(_has_judged_cases(run) for run in runs):
        check_panels(baseline, current, *(run.info.panel for run in runs))


def _has_judged_cases(run: StoredRun) -> bool:
    return any(case.kind == JUDGE_ONLY_KIND for case in run.cases)


def check_panels(baseline: str, current: str, old: Panel | None, new: Panel | None) -> None:
    """Refuse to compare what these two panels judged, where they differ."""
    difference = panel_difference(old, new)
    if difference:
        raise NotComparableError(
            f"{baseline} and {current} were judged differently ({difference}), so the judges may cause a difference; "
            "judge both in the same way with: steelyard judge RUN"
        )


def panel_difference(first: Panel | None, second: Panel | None) -> str:
    """How two panels differ, in a few words; empty if judgments by them can be compared."""
    if first is None or second is None:
        return "" if first is second else "one has no judges"
    if sorted(first.judges) != sorted(second.judges):
        return f"by {', '.join(first.judges)} and by {', '.join(second.judges)}"
    for what, one, other in (
        ("by another rubric", first.digest, second.digest),
        ("a different number of times", first.repeats, second.repeats),
        ("with other parameters", first.parameters, second.parameters),
        ("with different judges first, or others asked at different times", _order(first), _order(second)),
    ):
        if one != other:
            return what
    return ""


def _order(panel: Panel) -> tuple[Escalation, list[str]] | None:
    """Who is asked first, and when the others are; None if all are always asked."""
    return None if panel.escalation is None else (panel.escalation, sorted(panel.first_judges))
