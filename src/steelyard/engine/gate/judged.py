"""The gate for answers that judges decide about: the same judges on both sides, and rates that labels correct."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from steelyard.analysis.judged_rates import LabelledAnswer
from steelyard.comparison.judged import JudgedDecision, decide_judged
from steelyard.engine.gate.gate import MIN_LOOK_ALPHA_SHARE, look_levels
from steelyard.engine.gate.panels import check_panels
from steelyard.engine.gate.sides import run_folder, split_run_and_model
from steelyard.engine.results.conclusion import Conclusion, OnInconclusive, verdict_conclusion
from steelyard.engine.results.labels import LabelledRun
from steelyard.errors import InputError, NotComparableError, did_you_mean
from steelyard.records import GateLook, Panel, digest
from steelyard.store.files import now
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER
from steelyard.store.side_files import gate_looks, record_gate_look

COMPARED_LEVEL = 0.025
"""What a 95% interval leaves on each side."""


class JudgedGateResult(NamedTuple):
    """What the gate decided by corrected rates."""

    decision: JudgedDecision
    look: int
    warnings: tuple[str, ...] = ()

    def conclusion(self, on_inconclusive: OnInconclusive = "pass") -> Conclusion:
        """The exit code, and what to say beside the decision."""
        is_unlabelled = any(model.effect.value is None for model in self.decision.models)
        return verdict_conclusion(self.decision.verdict, on_inconclusive, is_data_missing=is_unlabelled)


def gate_corrected(
    baseline: str,
    current: str,
    *,
    alpha: float = 0.05,
    margin: float = 0.05,
    root: Path = DEFAULT_RUNS_FOLDER,
) -> JudgedGateResult:
    """The decision about two judged runs, each a folder, a name or `RUN@MODEL`; looks are counted in the folder of the current one."""
    if not (0 < alpha < 1 and 0 < margin < 1):
        raise InputError(f"alpha and margin must be between 0 and 1, not {alpha:g} and {margin:g}")
    models, folder = _paired_models(baseline, current, root)
    held_against = digest("corrected", sorted(models), [_marks(side) for side, _ in models.values()], margin, alpha)
    shown = digest([_marks(side) for _, side in models.values()])
    earlier = [look for look in gate_looks(folder) if look.baseline == held_against]
    levels, look = look_levels(earlier, shown, alpha, None)
    if min(levels.alarm, levels.cleared) < MIN_LOOK_ALPHA_SHARE * alpha:
        raise InputError(
            f"{look - 1} looks at this run have used up its error rate of {alpha:g}; decide with a new run"
        )
    decision = decide_judged(
        models,
        alpha=levels.alarm,
        cleared_level=levels.cleared,
        margin=margin,
    )
    if shown not in {each.data for each in earlier}:
        record_gate_look(
            folder,
            GateLook(
                at=now(),
                baseline=held_against,
                data=shown,
                alpha=alpha,
                level=levels.alarm,
                spent=levels.alarm_spent,
                cleared_level=levels.cleared,
                cleared_spent=levels.cleared_spent,
                verdict=decision.verdict,
            ),
        )
    warnings = (f"this is look {look} at this run; each one is stricter than the one before",) if look > 1 else ()
    return JudgedGateResult(decision, look, warnings)


def compare_corrected(baseline: str, current: str, *, root: Path = DEFAULT_RUNS_FOLDER) -> JudgedDecision:
    """What changed between two judged runs by corrected rates, with 95% intervals; nothing is decided, and no look is counted."""
    models, _ = _paired_models(baseline, current, root)
    return decide_judged(models, alpha=COMPARED_LEVEL, cleared_level=COMPARED_LEVEL, margin=COMPARED_LEVEL)


def _paired_models(
    baseline: str, current: str, root: Path
) -> tuple[dict[str, tuple[list[LabelledAnswer], list[LabelledAnswer]]], Path]:
    """The answers of each model on both sides, of the cases that both have, and the folder of the current run."""
    (old, old_panel, _), (new, new_panel, folder) = (_judged_side(name, root) for name in (baseline, current))
    check_panels(baseline, current, old_panel, new_panel)
    _check_no_shared_replies(baseline, current, root)
    if len(old) == len(new) == 1 and old.keys() != new.keys():
        old = dict(zip(new, old.values(), strict=True))
    models = {}
    for name in new:
        cases = {answer.identity.case for answer in new[name]} & {each.identity.case for each in old.get(name, ())}
        if cases:
            first, second = ([each for each in side if each.identity.case in cases] for side in (old[name], new[name]))
            models[name] = first, second
    if not models:
        raise InputError(f"{baseline} and {current} have no judged case of the same model in common")
    return models, folder


def _check_no_shared_replies(baseline: str, current: str, root: Path) -> None:
    """Refuse two runs one of which took replies of the other, or both of a third."""
    folders = [run_folder(name, root=root) for name in (baseline, current)]
    infos = [StoredRun(folder).info for folder in folders if folder is not None]
    sources = [{info.id, *(part.id for part in info.merged), *info.cached_replies} for info in infos]
    if any(info.cached_replies for info in infos) and set.intersection(*sources):
        raise NotComparableError(
            f"{baseline} and {current} have replies in common, from the reply cache; run without --cache to compare what is judged"
        )


def _judged_side(name: str, root: Path) -> tuple[dict[str, list[LabelledAnswer]], Panel | None, Path]:
    folder = run_folder(name, root=root)
    if folder is None:
        raise InputError(f"{name}: --corrected compares runs, because a report or a baseline has no labels")
    labelled = LabelledRun(StoredRun(folder))
    models: dict[str, list[LabelledAnswer]] = {}
    for answer in labelled.answers():
        models.setdefault(" ".join(filter(None, answer.identity[1:3])), []).append(answer)
    _, at, model = split_run_and_model(name)
    if at:
        if model not in models:
            raise InputError(f'{name}: no judged model "{model}" ({did_you_mean(model, models)})')
        models = {model: models[model]}
    return models, labelled.info.panel, folder


def _marks(answers: list[LabelledAnswer]) -> list[object]:
    return [(*answer.identity, answer.passed, answer.is_sure, sorted(answer.labels.items())) for answer in answers]
