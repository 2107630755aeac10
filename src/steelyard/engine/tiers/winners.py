"""Tiers that extend the best of others: chosen once those were run, and then run like any other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.engine import resume
from steelyard.engine.options import RunOptions
from steelyard.engine.plan import with_current_plan
from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.connect import close_providers
from steelyard.engine.preflight.named_code import stored_tiers
from steelyard.engine.run import Run
from steelyard.engine.tiers.experiment import run_experiment, tier_provider
from steelyard.engine.tiers.tier_runs import analysis, tier_experiment
from steelyard.errors import InputError
from steelyard.evalsets.experiments import LoadedExperiment
from steelyard.providers.prices import Prices
from steelyard.records import Experiment, InheritingTier, RunInfo, Tier
from steelyard.store.journal import StoredRun
from steelyard.text import short_quote


class NextStage(NamedTuple):
    """The tiers that can be run now."""

    tiers: tuple[Tier, ...]
    """Complete, with their models as the experiment names them."""
    winners: dict[str, str]
    waiting: tuple[InheritingTier, ...]


def run_staged_experiment(
    loaded: LoadedExperiment,
    *,
    output: str | Path | None = None,
    shard: tuple[int, int] | None = None,
    means: RunOptions = RunOptions(),
) -> Run:
    """Run an experiment, then the tiers that extend the best of those that were run, stage by stage."""
    if shard is not None and loaded.experiment.inheriting:
        name = short_quote(loaded.experiment.inheriting[0].own.name)
        raise InputError(f"tier {name} extends the best of others, which a shard cannot know; run it without --shard")
    return with_later_stages(run_experiment(loaded, output=output, shard=shard, means=means), means)


def resume_all_stages(
    folder: str | Path,
    *,
    samples: int | None = None,
    more: Mapping[str, Mapping[str, int]] | None = None,
    stopped: Mapping[str, int] | None = None,
    base_url: str = "",
    means: RunOptions = RunOptions(),
) -> Run:
    """Carry on with what a run still owes, and then with the tiers that waited for it; the keywords are those of `resume`."""
    done = resume.resume(folder, samples=samples, more=more, stopped=stopped, base_url=base_url, means=means)
    return with_later_stages(done, means)


def with_later_stages(done: Run, means: RunOptions) -> Run:
    """A run of an experiment with the tiers that were waiting for it; as it is where something is owed."""
    while done.info.experiment is not None and done.info.experiment.inheriting and not done.stopped:
        try:
            stage = next_stage(StoredRun(done.folder))
        except InputError as error:
            return done._replace(stopped=(str(error),))
        add_stage(done.folder, stage, means)
        done = resume.resume(done.folder, means=means)
    return done


def next_stage(stored: StoredRun) -> NextStage:
    """Who won, and the tiers that extend the winners; raises an InputError where too little is known to choose."""
    experiment = stored.info.experiment
    assert experiment is not None  # noqa: S101  only experiments have tiers that wait
    known = {tier.name: tier for tier in stored_tiers(stored.info)}
    were_run = frozenset(known)
    scores: Mapping[str, float] | None = None
    added: dict[str, Tier] = {}
    winners: dict[str, str] = {}
    waiting: list[InheritingTier] = []
    for tier in experiment.inheriting:
        if len(tier.extends) == 1 and tier.extends[0] in known:
            base = tier.extends[0]
        elif were_run.issuperset(tier.extends):
            scores = _scores(stored) if scores is None else scores
            base = _best(tier, scores)
            winners[tier.own.name] = base
        else:
            waiting.append(tier)
            continue
        known[tier.own.name] = added[tier.own.name] = tier.on(known[base])
    return NextStage(tuple(added.values()), winners, tuple(waiting))


def _scores(stored: StoredRun) -> dict[str, float]:
    """The mean composite of every tier, or its pass rate where runs have no composite."""
    found = analysis(tier_experiment(stored))
    if not found.conclusive:
        raise InputError("too many runs or judgments are missing to choose the best of several tiers")
    tiers = [tier for model in found.models for tier in model.tiers]
    is_rated = any(tier.composite.value is not None for tier in tiers)
    values = {tier.tier: (tier.composite if is_rated else tier.pass_rate).value for tier in tiers}
    return {name: value for name, value in values.items() if value is not None}


def _best(tier: InheritingTier, scores: Mapping[str, float]) -> str:
    """Of equals the one that is named first."""
    if any(name not in scores for name in tier.extends):
        raise InputError(
            f"tier {short_quote(tier.own.name)} extends the best of {', '.join(tier.extends)}, and not all have an outcome"
        )
    return max(tier.extends, key=lambda name: scores[name])


def add_stage(folder: Path, stage: NextStage, means: RunOptions) -> None:
    """Store which tiers run next, so that any later command continues with them."""
    journal = resume.reopened_journal(folder)
    try:
        info = journal.info
        beside = Path(info.eval_sets[0].path).parent
        connected = {tier.name: tier_provider(tier, means, beside, asks=False) for tier in stage.tiers}
        run_coroutine(close_providers({name: provider for name, (_, provider) in connected.items()}))
        named = [msgspec.structs.replace(tier, model=connected[tier.name][0]) for tier in stage.tiers]
        journal.describe(with_current_plan(_with_stage(info, stage, named, means)))
    finally:
        journal.close()


def _with_stage(info: RunInfo, stage: NextStage, named: list[Tier], means: RunOptions) -> RunInfo:
    experiment = info.experiment or Experiment(id="", tiers=())
    prices = Prices(means.settings.prices)
    names = tuple(dict.fromkeys((*info.names, *(tier.model for tier in named))))
    return msgspec.structs.replace(
        info,
        models=(*info.models, *(tier.model or own.model for tier, own in zip(stage.tiers, named, strict=True))),
        names=names,
        tiers=(*info.tiers, *(tier.name for tier in named)),
        prices={**{name: price for name in names if (price := prices.price(name)) is not None}, **info.prices},
        experiment=msgspec.structs.replace(
            experiment,
            tiers=(*experiment.tiers, *named),
            inheriting=stage.waiting,
            winners={**experiment.winners, **stage.winners},
        ),
    )
