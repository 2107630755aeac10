"""An experiment in tiers from its first question to its summary."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from steelyard.engine.options import RunOptions
from steelyard.engine.plan import CompactKeySet, outstanding_attempts, planned_attempts
from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.connect import (
    agent_arguments,
    check_parameters,
    check_plan,
    check_prices,
    check_verifiers,
    close_providers,
    connect,
    started_in,
    uncontained_agents,
)
from steelyard.engine.preflight.conversations import check_conversations
from steelyard.engine.preflight.named_code import experiment_code, own_code, settings_code, stored_tiers
from steelyard.engine.preflight.rubric_judges import connect_judges, with_judges
from steelyard.engine.run import Run, carry_out, run_id, shard_cases_of, tool_versions, with_control_key, with_shard
from steelyard.engine.tiers.judging import owed_judgments
from steelyard.errors import InputError
from steelyard.evalsets.experiments import LoadedExperiment
from steelyard.protocols import Provider
from steelyard.providers.agent.provider import AgentProvider
from steelyard.providers.prices import Prices, token_prices
from steelyard.records import Case, Experiment, Panel, Reply, RunInfo, Tier, Verdict
from steelyard.store.files import now
from steelyard.store.journal import StoredRun, create_run, make_run_folder
from steelyard.verifiers.checks.rubric import rubric_judges


def run_experiment(
    loaded: LoadedExperiment,
    *,
    output: str | Path | None = None,
    shard: tuple[int, int] | None = None,
    means: RunOptions = RunOptions(),
) -> Run:
    """Ask every case under every tier as often as the experiment says, and verify and judge the answers."""
    header = loaded.header
    check_plan(loaded.cases, (1,), header.runs)
    check_experiment_parameters(loaded)
    loaded = with_panel_judges(loaded, means)
    means = with_control_key(means)
    dealt = shard_cases_of(loaded.cases, shard)
    beside = Path(loaded.files[0].path).parent
    with own_code(experiment_code(loaded, beside, means) + settings_code(means.settings), means):
        check_verifiers(dealt, means)
        _try_connecting(loaded.trials, means, beside)
        providers = {tier.name: tier_provider(tier, means, beside) for tier in loaded.experiment.tiers}
        tiers = named_tiers(loaded.experiment, providers)
        judges = connect(loaded.panel.judges, means) if loaded.panel else {}
        panel = panel_with_model_names(loaded.panel, judges)
        judges = {**connect_judges(dealt, [tier.model for tier in tiers], means), **judges}
        started_at = now()
        prices = Prices(means.settings.prices)
        names = tuple(dict.fromkeys(tier.model for tier in tiers))
        info = RunInfo(
            id=run_id(started_at),
            started_at=started_at,
            eval_sets=loaded.files,
            models=tuple(tier.model or own.model for tier, own in zip(loaded.experiment.tiers, tiers, strict=True)),
            names=names,
            folder=started_in(tier.model for tier in loaded.experiment.tiers),
            parameters=dict(header.parameters),
            tiers=tuple(tier.name for tier in tiers),
            experiment=msgspec.structs.replace(loaded.experiment, tiers=tiers),
            panel=panel,
            samples=header.runs,
            seed=header.seed,
            rule=loaded.rule or "code",
            rules=loaded.rules,
            versions=tool_versions(),
            prices={model: price for model in (*names, *judges) if (price := prices.price(model)) is not None},
            controls=means.controls,
            control_key=means.control_key,
            uncontained=uncontained_agents(judges, means, loaded.experiment.tiers),
        )
        info = with_shard(info, loaded.cases, shard)
        means = with_experiment_budget(info, means)
        by_tier = {tier: provider for tier, (_, provider) in providers.items()}
        check_conversations(dealt, by_tier, means)
        check_prices(priced_providers(info, by_tier, judges), means)
        _check_tier_prices((*tiers, *loaded.trials), prices)
        if output is not None:
            make_run_folder(Path(output))
    folder = Path(output) if output is not None else Path(means.settings.output_dir) / info.id
    return carry_out(lambda: create_run(folder, info, dealt), dealt, by_tier, means, judges)


def with_panel_judges(loaded: LoadedExperiment, means: RunOptions) -> LoadedExperiment:
    """The experiment with its judges in the checks that are rubrics."""
    judges = loaded.panel.judges if loaded.panel else ()
    return loaded._replace(cases=with_judges(loaded.cases, means, judges))


def check_experiment_parameters(loaded: LoadedExperiment) -> None:
    """Raises an InputError if a parameter would change how many answers a request has."""
    tiers = (tier.parameters for tier in (*loaded.experiment.tiers, *loaded.trials))
    check_parameters(loaded.header.parameters, *tiers, loaded.panel.parameters if loaded.panel else {})


def named_tiers(experiment: Experiment, providers: Mapping[str, tuple[str, Provider]]) -> tuple[Tier, ...]:
    """The tiers with their models as facts call them."""
    return tuple(msgspec.structs.replace(tier, model=providers[tier.name][0]) for tier in experiment.tiers)


def with_experiment_budget(info: RunInfo, means: RunOptions) -> RunOptions:
    """The means with the experiment's own budget, of which a shard has its share, where the user gives no other."""
    own = info.experiment.budget_usd if info.experiment else None
    if own is not None and info.shard is not None:
        own *= len(info.shard.numbers) / info.shard.of
    return means._replace(max_cost=own) if means.max_cost is None else means


def panel_with_model_names(panel: Panel | None, judges: Mapping[str, Provider]) -> Panel | None:
    """The panel with its judges as facts call them."""
    return None if panel is None else msgspec.structs.replace(panel, judges=tuple(judges))


def priced_providers(
    info: RunInfo, providers: Mapping[str, Provider], judges: Mapping[str, Provider]
) -> dict[str, Provider]:
    """Whose prices a budget must know: agents report their own cost."""
    if info.experiment is None:
        return {**providers, **judges}
    asked = {tier.model: providers[tier.name] for tier in info.experiment.tiers if not tier.agent}
    return {**asked, **judges}


def tier_provider(
    tier: Tier, means: RunOptions, beside: Path, *, asks: bool = True, folder: str = ""
) -> tuple[str, Provider]:
    """Whom a tier puts its cases to, and the name that facts carry."""
    if tier.agent:
        declared, containment = agent_arguments(tier.agent, means, asks=asks)
        agent = AgentProvider(
            tier.agent if declared is None else declared.command,
            environment={**({} if declared is None else declared.environment), **tier.environment},
            files=tier.files,
            time_limit=tier.timeout_secs,
            beside=beside if declared is None else None,
            name=tier.agent,
            containment=containment,
            limits=_agent_limits(tier, means),
        )
        return tier.model or f"agent:{tier.agent}", agent
    found = connect([tier.model], means, asks=asks, folder=folder)
    if len(found) != 1:
        raise InputError(f'tier "{tier.name}": "{tier.model}" stands for {len(found)} models; name one of them')
    return next(iter(found.items()))


def _try_connecting(tiers: Iterable[Tier], means: RunOptions, beside: Path) -> None:
    """Raises an InputError if a tier that may come later could not be asked: nothing should be paid for before that is known."""
    for tier in tiers:
        name, provider = tier_provider(tier, means, beside)
        run_coroutine(close_providers({name: provider}))
        if not tier.agent:
            check_prices({name: provider}, means)


def _check_tier_prices(tiers: Iterable[Tier], prices: Prices) -> None:
    """Raises an InputError if the budget of a tier could not be kept."""
    for tier in tiers:
        has_budget = tier.budget_usd is not None or tier.case_budget_usd is not None
        if has_budget and not tier.agent and prices.price(tier.model) is None:
            raise InputError(
                f"the budget of tier {tier.name} cannot be enforced: the price of {tier.model} is unknown; "
                f'set it in the settings file under [prices."{tier.model}"]'
            )


def _agent_limits(tier: Tier, means: RunOptions) -> dict[str, object]:
    """What an agent may use, with the prices of its model's tokens if it does not report its cost."""
    price = Prices(means.settings.prices).price(tier.model) if tier.attempt_budget_usd is not None else None
    return {
        "max_usd": tier.attempt_budget_usd,
        "max_turns": tier.max_turns,
        "prices": None if price is None else token_prices(price),
    }


def providers_and_judges(
    info: RunInfo, means: RunOptions, stored: StoredRun
) -> tuple[dict[str, Provider], dict[str, Provider]]:
    """The providers of a stored run, by model or by tier, and its judges; one with nothing left to ask needs no key."""
    everybody = (
        {*info.models, *(tier.name for tier in (info.experiment.tiers if info.experiment else ()))},
        {*(info.panel.judges if info.panel else ()), *rubric_judges(stored.cases)},
    )
    try:
        return _connected(info, means, stored.cases, *everybody)
    except InputError:
        providers, judges = _connected(info, means, stored.cases, set(), set())
    try:
        owed = _owed_models(info, means, stored, providers)
        # judges will be asked about the replies that are still to come
        owed_judges = everybody[1] if owed else {judge for judge in judges if _is_owed(info, stored, judge)}
    finally:
        run_coroutine(close_providers({**providers, **judges}))
    return _connected(info, means, stored.cases, owed, owed_judges)


def _connected(
    info: RunInfo, means: RunOptions, cases: Sequence[Case], asked: Container[str], asked_judges: Container[str]
) -> tuple[dict[str, Provider], dict[str, Provider]]:
    """Everybody whom a run names; only those who are asked need a key."""
    judges: dict[str, Provider] = {}
    for judge in dict.fromkeys((*(info.panel.judges if info.panel else ()), *rubric_judges(cases))):
        judges |= connect([judge], means, asks=judge in asked_judges)
    providers: dict[str, Provider] = {}
    for model in info.models if info.experiment is None else ():
        providers |= connect([model], means, info.base_url, asks=model in asked, folder=info.folder)
    beside = Path(info.eval_sets[0].path).parent if info.eval_sets else Path()
    for tier in stored_tiers(info) if info.experiment else ():
        providers[tier.name] = tier_provider(tier, means, beside, asks=tier.name in asked, folder=info.folder)[1]
    return providers, judges


def _owed_models(info: RunInfo, means: RunOptions, stored: StoredRun, providers: Mapping[str, Provider]) -> set[str]:
    """The models, or the tiers, that a live provider must still be asked for."""
    done = CompactKeySet()
    for fact in stored.facts():
        if isinstance(fact, Reply):
            done.add(fact.key)
    owed = {
        attempt.tier or attempt.model
        for attempt in outstanding_attempts(planned_attempts(info, stored.cases, providers), done)
        if providers[attempt.tier or attempt.model].available(attempt.case.id) is None
    }
    if info.experiment is not None:
        return owed
    # facts carry the names that connecting gives
    names = {model: connect([model], means, info.base_url, asks=False, folder=info.folder) for model in info.models}
    return {model for model, known in names.items() if owed & known.keys()}


def _is_owed(info: RunInfo, stored: StoredRun, judge: str) -> bool:
    cases = {case.id for case in stored.cases}
    if info.panel is not None and any(owed_judgments(stored, info.panel, judge, cases)):
        return True
    tests = {case.id: case.tests_digest for case in stored.cases if judge in rubric_judges([case])}
    if not tests:
        return False
    facts = [fact for fact in stored.facts() if fact.case in tests]
    verified = {fact.ask for fact in facts if isinstance(fact, Verdict) and fact.tests == tests[fact.case]}
    return any(isinstance(fact, Reply) and fact.key not in verified for fact in facts)
