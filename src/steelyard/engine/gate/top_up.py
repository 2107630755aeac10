"""More attempts for a baseline: its own prompts and models, asked before anything is known of the run to compare."""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path
from typing import NamedTuple

from steelyard.comparison.sides import Side
from steelyard.engine.gate.sides import bless
from steelyard.engine.options import RunOptions
from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.connect import close_providers, connect
from steelyard.engine.preflight.forecast import forecast, forecast_text
from steelyard.engine.preflight.named_code import require_allowed_code, run_code
from steelyard.engine.run import run
from steelyard.errors import InputError
from steelyard.records import Case, RunInfo, read_trust
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import runs
from steelyard.text import counted


class TopUpPlan(NamedTuple):
    """What a baseline lacks, and the run whose questions are asked again."""

    folder: Path
    info: RunInfo
    cases: tuple[Case, ...]
    models: tuple[str, ...]
    missing: int
    """Attempts per case."""


def top_up(
    label: str,
    baseline: Side,
    compared: Container[str],
    target: int,
    *,
    means: RunOptions,
    tell: Callable[[str], None],
) -> RunOptions:
    """Ask a baseline's questions again until every case has `target` attempts, and bless them with it.

    The maximum cost is announced first. Returns the options of the run to compare, with what is left of the budget.
    """
    planned = _plan(label, baseline, compared, target, Path(means.settings.output_dir), means)
    if planned is None:
        tell(f"{label} has {target} attempts per case or more; nothing is asked for it")
        return means
    info = planned.info
    # a reply that was taken from a cache is not a further attempt
    own = means._replace(cache_days=None)
    bound = forecast(
        planned.cases,
        models=planned.models,
        samples=planned.missing,
        k=(1,),
        parameters=info.parameters,
        system=info.system,
        base_url=info.base_url,
        means=own,
    )
    more = counted(planned.missing, "more attempt")
    tell(f"tops up {label} first: {more} per case as in {planned.folder.name}; at most {forecast_text(bound).rstrip()}")
    done = run(
        planned.cases,
        models=planned.models,
        samples=planned.missing,
        parameters=info.parameters,
        system=info.system,
        base_url=info.base_url,
        # a seed that was used before would give the same replies
        seed=None if info.seed is None else info.seed + max(info.samples or 1, _most_attempts(baseline)),
        rule=info.rule,
        rules=info.rules,
        suites=info.suites,
        eval_sets=info.eval_sets,
        require_trust=read_trust(info.require_trust),
        means=own if own.controls is not None else own._replace(controls=info.controls),
    )
    for reason in done.stopped:
        tell(f"warning: {label} was topped up in part: {reason}")
    if any(model.attempts for model in done.summary.models):
        root = Path(means.settings.output_dir)
        blessed = bless([label, str(done.folder)], label, cases=baseline.cases or None, root=root)
        for problem in blessed.problems:
            tell(f"warning: {problem}")
        tell(f"{label} has {counted(_fewest_attempts(blessed.side), 'attempt')} per case or more now")
    if means.max_cost is None:
        return means
    spent = sum(model.cost_usd or 0.0 for model in done.summary.models)
    return means._replace(max_cost=max(0.0, means.max_cost - spent))


def _plan(
    label: str, baseline: Side, compared: Container[str], target: int, root: Path, means: RunOptions
) -> TopUpPlan | None:
    """The run to make; None if nothing is missing. Refuses a baseline whose questions are no longer known."""
    if baseline.name != label:
        raise InputError(f"--top-up-baseline adds to a baseline: make one of {label} first with steelyard bless")
    missing = target - _fewest_attempts(baseline)
    if missing <= 0:
        return None
    stored = next((each for each in reversed(runs(root)) if each.info.id in baseline.runs), None)
    if stored is None:
        raise InputError(
            f"{label}: none of its runs ({', '.join(baseline.runs) or 'not known'}) is under {root}, so its prompts are not "
            "known; put one back, or leave --top-up-baseline out"
        )
    info = stored.info
    if info.experiment is not None or info.recordings:
        raise InputError(
            f"{stored.folder}: made by an experiment or imported; only runs of `steelyard run` are topped up"
        )
    if info.folder and Path(info.folder).resolve() != Path.cwd().resolve():
        raise InputError(f"{stored.folder}: its models are named by paths in {info.folder}; start the command there")
    require_allowed_code(run_code(info, stored.cases, means), means, stored.folder)
    models = tuple(
        model
        for model, name in zip(info.models, info.names, strict=False)
        if name in baseline.models and (name in compared or len(baseline.models) == 1)
    )
    cases = tuple(case for case in stored.cases if case.has_verifier)
    _check_can_ask(models, cases, info, means, stored)
    return TopUpPlan(stored.folder, info, cases, models, missing)


def _check_can_ask(
    models: tuple[str, ...], cases: tuple[Case, ...], info: RunInfo, means: RunOptions, stored: StoredRun
) -> None:
    """Refuse models that only repeat what they said before."""
    if not models or not cases:
        raise InputError(f"{stored.folder}: has none of the models that are compared")
    providers = connect(models, means, info.base_url, asks=False)
    try:
        recorded = [name for name, one in providers.items() if one.available(cases[0].id) is not None]
    finally:
        run_coroutine(close_providers(providers))
    if recorded:
        raise InputError(f"{', '.join(recorded)}: recorded replies; asking again gives no further attempts")


def _fewest_attempts(baseline: Side) -> int:
    return min((trials.attempts for cases in baseline.models.values() for trials in cases), default=0)


def _most_attempts(baseline: Side) -> int:
    return max((trials.attempts for cases in baseline.models.values() for trials in cases), default=0)
