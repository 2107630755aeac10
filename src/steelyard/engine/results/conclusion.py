"""How a command ends: its exit code, and what to say beside its results."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from steelyard.analysis.counts import Standings
from steelyard.analysis.hard_cases import hardest_cases
from steelyard.analysis.summary import Summary
from steelyard.comparison.gate import CANNOT_TELL, REGRESSED, Decision, GateVerdict
from steelyard.comparison.threshold import ThresholdComparison
from steelyard.errors import ExitCode
from steelyard.records import RunInfo
from steelyard.reports.figures import model_label
from steelyard.text import counted

if TYPE_CHECKING:
    from steelyard.analysis.judge_bias import JudgePreferences
    from steelyard.comparison.history import HistoryWatch
    from steelyard.comparison.judged import JudgedDecision

OnInconclusive = Literal["pass", "fail"]
"""What thin evidence means."""
MAX_UNUSABLE_SHARE = 0.05
"""Pairs without a usable answer beyond which nothing is known about what a judge prefers."""
ROUNDING_TOLERANCE = 1e-9
"""A rate this little below a threshold is at it."""


class Conclusion(NamedTuple):
    """How a command ends."""

    exit_code: ExitCode
    messages: tuple[str, ...] = ()
    """Lines for standard error."""


def run_conclusion(
    folder: Path, summary: Summary, stopped: Sequence[str], notes: Sequence[str], *, fail_under: float | None = None
) -> Conclusion:
    """How a run ends: data that are missing come first, then `fail_under`, the least pass@k at the smallest k."""
    messages = [f"warning: {note}" for note in notes]
    messages += [
        f"steelyard: {reason}; continue with: steelyard resume {shlex.quote(str(folder))}" for reason in stopped
    ]
    if stopped or not summary.conclusive:
        return Conclusion(ExitCode.CANNOT_TELL, tuple(messages))
    if fail_under is not None and summary.cases:
        for model in summary.models:
            name, estimate = model.quality
            if estimate.value is None:
                return Conclusion(ExitCode.CANNOT_TELL, tuple(messages))
            if estimate.value < fail_under - ROUNDING_TOLERANCE:
                messages.append(f"steelyard: {model.model}: {name} is {estimate.value:.1%}, under {fail_under:.1%}")
                return Conclusion(ExitCode.GATE_FAILED, tuple(messages))
    return Conclusion(ExitCode.OK, tuple(messages))


def gate_conclusion(decision: Decision, on_inconclusive: OnInconclusive = "pass") -> Conclusion:
    """How a gate ends: thin evidence passes with a warning, or not; missing data never pass."""
    is_data_missing = any(model.data_missing for model in decision.models)
    return verdict_conclusion(decision.verdict, on_inconclusive, is_data_missing=is_data_missing)


def verdict_conclusion(verdict: GateVerdict, on_inconclusive: OnInconclusive, *, is_data_missing: bool) -> Conclusion:
    """How a gate with this verdict ends."""
    if verdict == REGRESSED:
        return Conclusion(ExitCode.GATE_FAILED)
    if verdict != CANNOT_TELL:
        return Conclusion(ExitCode.OK)
    if on_inconclusive == "fail" or is_data_missing:
        return Conclusion(ExitCode.CANNOT_TELL)
    return Conclusion(ExitCode.OK, ("warning: too little evidence to tell; passed, because --strict is not given",))


def comparison_exit_code(comparison: ThresholdComparison, *, fail_on_regression: bool) -> ExitCode:
    """How a comparison ends: without any case that could be compared, the result is unknown."""
    if not comparison.compared:
        return ExitCode.CANNOT_TELL
    return ExitCode.GATE_FAILED if fail_on_regression and comparison.regressions else ExitCode.OK


def judged_comparison_exit_code(decision: JudgedDecision, *, fail_on_regression: bool) -> ExitCode:
    """How a comparison by corrected rates ends: a regression is a whole interval below 0."""
    is_worse = any(model.effect.high is not None and model.effect.high < 0 for model in decision.models)
    return ExitCode.GATE_FAILED if is_worse and fail_on_regression else ExitCode.OK


def history_exit_code(found: HistoryWatch) -> ExitCode:
    """How a watch of a history ends."""
    return ExitCode.GATE_FAILED if found.verdict == "got worse" else ExitCode.OK


def preferences_conclusion(folder: Path, found: Sequence[JudgePreferences], stopped: Sequence[str]) -> Conclusion:
    """How a comparison by judges ends: a judge who left out too many pairs leaves open what it prefers."""
    messages = [
        f"steelyard: {reason}; continue with: steelyard resume {shlex.quote(str(folder))}" for reason in stopped
    ]
    broken = [each for each in found if each.unusable > MAX_UNUSABLE_SHARE * (each.pairs + each.unusable)]
    for each in broken:
        of = counted(each.pairs + each.unusable, "pair")
        messages.append(
            f"steelyard: {each.judge} gave no usable answer to {each.unusable:,} of {of}; "
            f"at most {MAX_UNUSABLE_SHARE:.0%} may lack one"
        )
    return Conclusion(ExitCode.CANNOT_TELL if broken or stopped else ExitCode.OK, tuple(messages))


def standings_conclusion(standings: Standings) -> Conclusion:
    """How a count of outcomes ends: too many cases without an outcome leave open where models stand."""
    code = ExitCode.OK if standings.conclusive else ExitCode.CANNOT_TELL
    return Conclusion(code, tuple(f"note: {note}" for note in standings.notes))


def next_commands(folder: Path, info: RunInfo, summary: Summary) -> list[str]:
    """What a reader most likely wants to type next."""
    where = str(folder)
    commands: list[tuple[str, ...]] = []
    if any(model.missing for model in summary.models) and not info.recordings:
        commands.append(("resume", where))
    if info.experiment or info.panel:
        commands.append(("tiers", where))
    for hard in hardest_cases(summary, 1):
        # a failure of the best model is the most informative one
        which = model_label(hard.failed.model, hard.failed.tier)
        commands.append(("show", where, hard.case, str(hard.failed.first_wrong), "--model", which))
    commands.append(("report", where, "-o", "report.html"))
    return [f"steelyard {shlex.join(words)}" for words in commands]
