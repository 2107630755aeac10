"""The sides of a comparison, found by the names that users give them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard import scoring, store
from steelyard.errors import InputError, nearest
from steelyard.outcomes.reported import CASE, reported
from steelyard.sides import Side, Trials
from steelyard.summary import judged

if TYPE_CHECKING:
    from collections.abc import Iterable


def side(name: str, *, rule: str | None = None, root: Path = store.RUNS) -> Side:
    """A run folder, its name, `latest`, a report in JSON, or one of these with `@MODEL` for one of its models."""
    run, at, model = _parted(name)
    whole = _of_report(Path(run), rule) if run.endswith(".json") else _of_run(store.find(run, root), rule)
    if not at:
        return whole
    if model not in whole.models:
        raise InputError(f'{run}: no model "{model}" ({nearest(model, whole.models)})')
    return Side(name=name, rule=whole.rule, models={model: whole.models[model]})


def _parted(name: str) -> tuple[str, str, str]:
    """The run and the model of `RUN@MODEL`; a path that is there is a path, whatever signs it holds."""
    return (name, "", "") if Path(name).exists() else name.partition("@")


def _of_run(folder: Path, rule: str | None) -> Side:
    stored = store.Stored(folder)
    info = stored.info
    models: dict[str, list[Trials]] = {}
    for one in judged(info, stored.cases, stored.facts(), rule=rule):
        trials = Trials(
            case=one.case.id,
            tests=one.case.tests_digest,
            attempts=len(one.scores),
            passes=one.passes,
            scores=_counted(one.scores),
            critical=one.case.critical,
        )
        models.setdefault(f"{one.model} ({one.tier})" if one.tier else one.model, []).append(trials)
    return Side(name=str(folder), rule=rule or info.rule, models={name: tuple(each) for name, each in models.items()})


def _of_report(path: Path, rule: str | None) -> Side:
    report = reported(path)
    name = rule or report.rule or "code"
    chosen = None if name == report.rule else scoring.rule(name)
    found: dict[str, dict[str, list[tuple[bool, float | None]]]] = {}
    for one in report.attempts:
        correct = scoring.correct(CASE, one.found) if one.correct is None else one.correct
        # a score that the report gives is of its own rule; what it is derived from may not all be there
        score = one.score if chosen is None else scoring.score(CASE, one.found, chosen)
        found.setdefault(one.model, {}).setdefault(one.case, []).append((correct, score))
    models = {
        model: tuple(
            Trials(
                case=case,
                attempts=len(attempts),
                passes=sum(correct for correct, _ in attempts),
                scores=_counted(score for _, score in attempts),
            )
            for case, attempts in sorted(cases.items())
        )
        for model, cases in sorted(found.items())
    }
    return Side(name=str(path), rule=name, models=models)


def _counted(scores: Iterable[float | None]) -> tuple[tuple[float, int], ...]:
    return tuple(sorted(Counter(score for score in scores if score is not None).items()))
