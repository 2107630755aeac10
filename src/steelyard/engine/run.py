"""A run from its first question to its summary."""

from __future__ import annotations

import inspect
import platform
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard import evalsets
from steelyard import settings as settings_module
from steelyard.analysis.scoring import find_rule
from steelyard.analysis.summary import Summary
from steelyard.engine.budget import max_request_tokens
from steelyard.engine.judging import max_judging_tokens
from steelyard.engine.plan import planned_attempts, tier_attempt
from steelyard.engine.pool import run_coroutine
from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.engine.results.query import fact_scores
from steelyard.engine.session import RunOptions, Session
from steelyard.engine.shards import deal
from steelyard.engine.steps import now
from steelyard.engine.verifiers import VerifierSet, with_python_env
from steelyard.errors import InputError, SteelyardError, StoreError
from steelyard.evalsets.experiments import LoadedExperiment, is_same_model
from steelyard.plugins import load_plugin
from steelyard.providers.prices import Prices
from steelyard.records import Case, EvalSetFile, Experiment, Panel, Rule, RunInfo, StoppingRule, SuiteRule, Tier
from steelyard.store.journal import Journal, StoredRun, create_run
from steelyard.store.parquet import copy_to_parquet

if TYPE_CHECKING:
    from steelyard.protocols import Pool, Provider


class Run(NamedTuple):
    """A run that has come to its end for now."""

    folder: Path
    info: RunInfo
    summary: Summary
    stopped: tuple[str, ...]
    """Why attempts are still owed, where that was not their own failure."""
    notes: tuple[str, ...] = ()
    """What else went wrong, without harm to the results."""
    out_of_budget: bool = False
    """Whether attempts are owed for want of money."""

    @property
    def complete(self) -> bool:
        return not self.stopped


class Forecast(NamedTuple):
    """What one model would be asked."""

    model: str
    cases: int
    attempts: int
    most_usd: float | None
    """The most it can cost; None when the price is not known."""


class RunInterrupted(KeyboardInterrupt):
    """The user stopped a run; what had arrived is stored."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder


def run(
    cases: Sequence[Case] | Sequence[str | Path] | str | Path,
    *,
    models: Sequence[str] | str,
    samples: int | None = None,
    k: Sequence[int] = (1,),
    parameters: Mapping[str, Any] | None = None,
    system: str = "",
    seed: int | None = None,
    rule: str = "",
    rules: Sequence[Rule] = (),
    suites: SuiteRule | None = None,
    base_url: str = "",
    eval_sets: Sequence[EvalSetFile] = (),
    output: str | Path | None = None,
    until: StoppingRule | None = None,
    shard: tuple[int, int] | None = None,
    means: RunOptions = RunOptions(),
) -> Run:
    """Ask models for attempts at each case, verify every one, and say what came of it.

    `cases` are cases, or paths of eval sets; `eval_sets` are the files that cases were loaded from, if any, and `rules`
    their own rules. `samples` is the number of attempts per case and model: by default the largest k, and of recorded
    replies all of them. `rule` is by default the one that the eval sets want, else `code`. `shard`, such as (3, 8), leaves
    all but every eighth case, from the third on, to other machines; `merge` joins what they bring.
    """
    sets = _cases(cases)
    own = (*rules, *sets.rules)
    rule = rule or sets.rule or "code"
    given = [models] if isinstance(models, str) else list(models)
    find_rule(rule, own)
    _check_plan(sets.cases, k, samples)
    if shard is not None and until is not None:
        raise InputError(
            "a shard has only some of the cases, and a gate decides by all of them: merge first, then gate"
        )
    dealt = _shard_cases(sets.cases, shard)
    _check_verifiers(dealt, means)
    providers = connect(given, means, base_url)
    recorded = any(provider.available(sets.cases[0].id) is not None for provider in providers.values())
    started_at = now()
    prices = Prices(means.settings.prices)
    info = RunInfo(
        id=run_id(started_at),
        started_at=started_at,
        eval_sets=tuple(eval_sets) or sets.files,
        models=tuple(given),
        names=tuple(providers),
        base_url=base_url,
        parameters=dict(parameters or {}),
        system=system,
        samples=samples if samples is not None or recorded else max(k),
        until=until,
        k=tuple(sorted(set(k))),
        seed=seed,
        rule=rule,
        rules=own,
        suites=suites or SuiteRule(),
        versions=versions(),
        prices={model: price for model in providers if (price := prices.price(model)) is not None},
        unrecorded=_unrecorded(dealt, providers),
    )
    _check_prices(providers, means)
    folder = Path(output) if output is not None else Path(means.settings.output_dir) / info.id
    sharded = _with_shard(info, sets.cases, shard)
    return _carry_out(lambda: create_run(folder, sharded, dealt), dealt, providers, means)


def run_experiment(
    loaded: LoadedExperiment,
    *,
    output: str | Path | None = None,
    shard: tuple[int, int] | None = None,
    means: RunOptions = RunOptions(),
) -> Run:
    """Put every case under every tier as often as the experiment says, verify and judge the answers."""
    header = loaded.header
    _check_plan(loaded.cases, (1,), header.runs)
    dealt = _shard_cases(loaded.cases, shard)
    _check_verifiers(dealt, means)
    beside = Path(loaded.files[0].path).parent
    providers = {tier.name: _tier_provider(tier, means, beside) for tier in loaded.experiment.tiers}
    tiers = _named_tiers(loaded.experiment, providers)
    judges = connect(loaded.panel.judges, means) if loaded.panel else {}
    started_at = now()
    prices = Prices(means.settings.prices)
    names = tuple(dict.fromkeys(tier.model for tier in tiers))
    info = RunInfo(
        id=run_id(started_at),
        started_at=started_at,
        eval_sets=loaded.files,
        models=tuple(tier.model or own.model for tier, own in zip(loaded.experiment.tiers, tiers, strict=True)),
        names=names,
        parameters=dict(header.parameters),
        tiers=tuple(tier.name for tier in tiers),
        experiment=msgspec.structs.replace(loaded.experiment, tiers=tiers),
        panel=_panel_with_model_names(loaded.panel, judges),
        samples=header.runs,
        seed=header.seed,
        rule=loaded.rule or "code",
        rules=loaded.rules,
        versions=versions(),
        prices={model: price for model in (*names, *judges) if (price := prices.price(model)) is not None},
    )
    info = _with_shard(info, loaded.cases, shard)
    means = _with_experiment_budget(info, means)
    seated = {tier: provider for tier, (_, provider) in providers.items()}
    _check_prices(_priced_providers(info, seated, judges), means)
    folder = Path(output) if output is not None else Path(means.settings.output_dir) / info.id
    return _carry_out(lambda: create_run(folder, info, dealt), dealt, seated, means, judges)


def forecast_experiment(loaded: LoadedExperiment, *, means: RunOptions = RunOptions()) -> list[Forecast]:
    """What an experiment would ask of each tier and of each judge, and the most that can cost; nobody is asked."""
    header, cases, prices = loaded.header, loaded.cases, Prices(means.settings.prices)
    _check_plan(cases, (1,), header.runs)
    _check_verifiers(cases, means)
    beside = Path(loaded.files[0].path).parent
    tiers = _named_tiers(
        loaded.experiment,
        {tier.name: _tier_provider(tier, means, beside, asks=False) for tier in loaded.experiment.tiers},
    )
    info = RunInfo(id="", started_at="", samples=header.runs, parameters=dict(header.parameters), seed=header.seed)
    # all runs of a case under a tier are asked the same
    asked = {tier.name: [tier_attempt(info, tier, case, 1) for case in cases] for tier in tiers}
    found = []
    for tier in tiers:
        # nobody knows how often an agent asks
        bounds = [
            None if tier.agent else prices.bound(tier.model, *max_request_tokens(each)) for each in asked[tier.name]
        ]
        found.append(Forecast(tier.name, len(cases), len(bounds) * header.runs, _total_cost(bounds, header.runs)))
    panel = loaded.panel
    if panel is not None:
        sizes = [max_judging_tokens(attempt, panel) for attempts in asked.values() for attempt in attempts]
        times = header.runs * panel.repeats
        for name in connect(panel.judges, means, asks=False):
            bounds = [prices.bound(name, *size) for size in sizes]
            found.append(Forecast(f"judge {name}", len(cases), len(bounds) * times, _total_cost(bounds, times)))
    return found


def _total_cost(bounds: Sequence[float | None], times: int = 1) -> float | None:
    """The sum of so many times each; None where one is not known."""
    known = [bound for bound in bounds if bound is not None]
    return times * sum(known) if len(known) == len(bounds) else None


def judge(folder: str | Path, panel: Panel, *, means: RunOptions = RunOptions()) -> Run:
    """Have the stored replies of a run judged; no model but the judges is asked."""
    journal = _reopened_journal(folder)
    try:
        judges = connect(panel.judges, means)
        info = journal.info
        for name in judges if not panel.allow_self else ():
            own = [model for model in info.names if is_same_model(model, name)]
            if own:
                raise InputError(f"{name} would judge its own answers; name another judge, or say --allow-self")
        _check_prices(judges, means)
        journal.describe(
            deal.with_current_plan(msgspec.structs.replace(info, panel=_panel_with_model_names(panel, judges)))
        )
    except BaseException:
        journal.close()
        raise
    return _carry_out(journal, journal.cases, None, means, judges)


def _named_tiers(experiment: Experiment, providers: Mapping[str, tuple[str, Provider]]) -> tuple[Tier, ...]:
    """The tiers with their models as facts call them."""
    return tuple(msgspec.structs.replace(tier, model=providers[tier.name][0]) for tier in experiment.tiers)


def _with_experiment_budget(info: RunInfo, means: RunOptions) -> RunOptions:
    """The means with the experiment's own budget, of which a shard has its share, where the user gives no other."""
    own = info.experiment.budget_usd if info.experiment else None
    if own is not None and info.shard is not None:
        own *= len(info.shard.numbers) / info.shard.of
    return means._replace(max_cost=own) if means.max_cost is None else means


def _shard_cases(cases: Sequence[Case], shard: tuple[int, int] | None) -> tuple[Case, ...]:
    """The cases that are for this machine."""
    return tuple(cases) if shard is None else deal.shard_cases(cases, *shard)


def _with_shard(info: RunInfo, cases: Sequence[Case], shard: tuple[int, int] | None) -> RunInfo:
    """The description of a run that has only a shard of these cases, if it does."""
    return info if shard is None else msgspec.structs.replace(info, shard=deal.shard_record(info, cases, *shard))


def _priced_providers(
    info: RunInfo, providers: Mapping[str, Provider], judges: Mapping[str, Provider]
) -> dict[str, Provider]:
    """Whose prices a budget must know: agents tell themselves what they cost."""
    if info.experiment is None:
        return {**providers, **judges}
    asked = {tier.model: providers[tier.name] for tier in info.experiment.tiers if not tier.agent}
    return {**asked, **judges}


def _tier_provider(tier: Tier, means: RunOptions, beside: Path, *, asks: bool = True) -> tuple[str, Provider]:
    """Whom a tier puts its cases to, and the name that facts carry."""
    if tier.agent:
        from steelyard.providers.agent.provider import AgentProvider

        agent = AgentProvider(
            tier.agent,
            environment=tier.environment,
            files=tier.files,
            time_limit=tier.timeout_secs,
            beside=beside,
        )
        return tier.model or f"agent:{tier.agent}", agent
    found = connect([tier.model], means, asks=asks)
    if len(found) != 1:
        raise InputError(f'tier "{tier.name}": "{tier.model}" stands for {len(found)} models; name one of them')
    return next(iter(found.items()))


def _panel_with_model_names(panel: Panel | None, judges: Mapping[str, Provider]) -> Panel | None:
    """The panel with its judges as facts call them."""
    return None if panel is None else msgspec.structs.replace(panel, judges=tuple(judges))


def forecast(
    cases: Sequence[Case],
    *,
    models: Sequence[str],
    samples: int | None,
    k: Sequence[int],
    parameters: Mapping[str, Any],
    system: str,
    base_url: str,
    means: RunOptions = RunOptions(),
) -> list[Forecast]:
    """What a run would ask, and the most it can cost; nobody is asked."""
    _check_plan(cases, k, samples)
    _check_verifiers(cases, means)
    providers = connect(models, means, base_url, asks=False)
    prices = Prices(means.settings.prices)
    info = RunInfo(id="", started_at="", samples=samples, k=tuple(k), parameters=dict(parameters), system=system)
    forecasts = []
    try:
        for model, provider in providers.items():
            attempts = list(planned_attempts(info, cases, {model: provider}))
            bounds = [prices.bound(model, *max_request_tokens(attempt)) for attempt in attempts]
            forecasts.append(Forecast(model, len(cases), len(attempts), _total_cost(bounds)))
    finally:
        run_coroutine(close_providers(providers))
    return forecasts


async def close_providers(providers: Mapping[str, Provider]) -> None:
    """Let go of what providers hold."""
    for provider in providers.values():
        await provider.close()


def resume(
    folder: str | Path,
    *,
    samples: int | None = None,
    more: Mapping[str, Mapping[str, int]] | None = None,
    means: RunOptions = RunOptions(),
) -> Run:
    """Carry on with what a run still owes, failures included; more samples than before extend it.

    `more` plans more attempts at some cases alone, by model and case.
    """
    journal = _reopened_journal(folder)
    try:
        info = journal.info
        _unchanged_cases(journal.cases, _case_files(info))
        if samples is not None and samples < (info.samples or 0):
            raise InputError(f"{folder}: has {info.samples} attempts per case already; --samples can only add to them")
        means = _with_experiment_budget(info, means)
        providers, judges = _providers_and_judges(info, means)
        _check_prices(_priced_providers(info, providers, judges), means)
        _check_verifiers(journal.cases, means)
        if samples is not None or more is not None:
            planned = {model: dict(cases) for model, cases in (info.more if more is None else more).items()}
            more_info = msgspec.structs.replace(
                info, samples=info.samples if samples is None else samples, more=planned
            )
            journal.describe(deal.with_current_plan(more_info))
    except BaseException:
        journal.close()
        raise
    return _carry_out(journal, journal.cases, providers, means, judges)


def verify_again(folder: str | Path, *, eval_sets: Sequence[str | Path] = (), means: RunOptions = RunOptions()) -> Run:
    """Verify every stored reply again, with the tests as the eval set has them now; no model is asked."""
    journal = _reopened_journal(folder)
    try:
        files = _case_files(journal.info)
        paths = eval_sets or [file.path for file in files if evalsets.is_eval_set_available(file.path)]
        if eval_sets or len(paths) == len(files) > 0:
            shard, current = journal.info.shard, _unchanged_cases(journal.cases, (), paths)
            if shard is not None and not deal.are_shard_cases_unchanged(shard, current):
                raise InputError(
                    f"{folder}: a shard, and its cases or their tests have changed; merge the shards first, so that all "
                    "are verified alike, then verify the merged run"
                )
            journal.ask(current)
    except BaseException:
        journal.close()
        raise
    return _carry_out(journal, journal.cases, {}, means)


def _reopened_journal(folder: str | Path) -> Journal:
    """The journal of a run that is there; a folder that holds none stays as it is."""
    StoredRun(Path(folder)).info  # noqa: B018  it raises where there is no run
    return Journal(Path(folder))


def connect(models: Sequence[str], means: RunOptions, base_url: str = "", *, asks: bool = True) -> dict[str, Provider]:
    """Whom to ask for each model: one name may stand for several, where replies were recorded."""
    providers: dict[str, Provider] = {}
    for model in models:
        name, rest, reached = settings_module.resolve_provider(
            model, means.settings, means.environment, base_url, asks=asks
        )
        for known, provider in load_plugin("providers", reached.type)(rest, reached).items():
            full = known if reached.type == "replay" else f"{name}/{known}"
            if full in providers:
                raise InputError(
                    f'model "{full}" was named twice; more attempts of one model are asked for with --samples'
                )
            providers[full] = provider
    if not providers:
        raise InputError("no model to ask; name one with --models, such as --models openai/gpt-5-mini")
    return providers


def _providers_and_judges(info: RunInfo, means: RunOptions) -> tuple[dict[str, Provider], dict[str, Provider]]:
    """Whom a stored run asks, by model or by tier, and who judges."""
    judges = connect(info.panel.judges, means) if info.panel else {}
    if info.experiment is None:
        return connect(info.models, means, info.base_url), judges
    beside = Path(info.eval_sets[0].path).parent
    asked = zip(info.experiment.tiers, info.models, strict=True)
    tiers = [msgspec.structs.replace(tier, model=model) for tier, model in asked]
    return {tier.name: _tier_provider(tier, means, beside)[1] for tier in tiers}, judges


def _case_files(info: RunInfo) -> tuple[EvalSetFile, ...]:
    """The files that the cases came from; an experiment's own comes before them."""
    return info.eval_sets[1:] if info.experiment else info.eval_sets


def run_id(started_at: str) -> str:
    """A name for a run that began then, which no other has."""
    moment = started_at[:19].replace("-", "").replace(":", "").replace("T", "-")
    return f"{moment}-{secrets.token_hex(2)}"


def versions() -> dict[str, str]:
    """The versions that a run is carried out with."""
    return {
        "steelyard": version("steelyard"),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def _cases(given: Sequence[Case] | Sequence[str | Path] | str | Path) -> evalsets.EvalSets:
    if isinstance(given, str | Path):
        given = [given]
    cases = tuple(case for case in given if isinstance(case, Case))
    if len(cases) == len(given) and cases:
        return evalsets.EvalSets(cases, (), ())
    loaded = evalsets.load([path for path in given if not isinstance(path, Case)])
    return loaded._replace(cases=(*cases, *loaded.cases))


def _check_plan(cases: Sequence[Case], k: Sequence[int], samples: int | None) -> None:
    if not k or min(k) < 1:
        raise InputError(f"k must be 1 or more, not {min(k, default='nothing')}")
    if samples is not None and samples < 1:
        raise InputError(f"samples must be 1 or more, not {samples}")
    if not cases:
        raise InputError("no cases to ask")
    twice = [case for case, count in Counter(case.id for case in cases).items() if count > 1]
    if twice:
        raise InputError(f'case "{twice[0]}" was given twice; more attempts at one case are asked for with --samples')


def _check_verifiers(cases: Sequence[Case], means: RunOptions) -> None:
    there = with_python_env(cases, means.python_env)
    VerifierSet(there, means).check(there)


def _check_prices(providers: Mapping[str, Provider], means: RunOptions) -> None:
    if means.max_cost is None:
        return
    prices = Prices(means.settings.prices)
    unknown = [model for model in providers if prices.price(model) is None]
    if unknown:
        raise InputError(
            f"--max-cost cannot be kept: the price of {', '.join(unknown)} is not known; "
            f'give it in the settings file under [prices."{unknown[0]}"]'
        )


def _unrecorded(cases: Sequence[Case], providers: Mapping[str, Provider]) -> dict[str, int]:
    counts = {model: sum(provider.available(case.id) == 0 for case in cases) for model, provider in providers.items()}
    return {model: count for model, count in counts.items() if count}


def _unchanged_cases(
    asked: Sequence[Case], files: Sequence[EvalSetFile], paths: Sequence[str | Path] | None = None
) -> list[Case]:
    """The cases that were asked with the tests they have now; refuses when what was asked is no longer what stands there."""
    if paths is None:
        paths = [file.path for file in files if evalsets.is_eval_set_available(file.path)]
        if not paths:
            return list(asked)
    current = {case.id: case for case in evalsets.load(paths).cases}
    if current.keys().isdisjoint(case.id for case in asked):
        raise InputError(f"{', '.join(map(str, paths))}: holds none of the cases that this run asked")
    changed = [case.id for case in asked if case.id in current and case.messages != current[case.id].messages]
    if changed:
        listed = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        raise InputError(
            f"the prompt changed since this run asked: {listed}; a changed prompt is a new question: "
            "start a new run, or put the old prompt back"
        )
    return [msgspec.structs.replace(current.get(case.id, case), max_tokens=case.max_tokens) for case in asked]


def _carry_out(
    journal: Journal | Callable[[], Journal],
    asked: Sequence[Case],
    providers: dict[str, Provider] | None,
    means: RunOptions,
    judges: Mapping[str, Provider] = {},
) -> Run:
    """Do what a run owes; without providers every stored reply is verified again, with None nothing is.

    The journal of a new run is made once it is known that somebody can verify what will be `asked`.
    """
    journals = [] if callable(journal) else [journal]
    try:
        planned = with_python_env(asked, means.python_env) if providers is not None else ()
        verifying = VerifierSet(planned, means)
        verifying.check(planned)

        async def sat() -> tuple[Session, tuple[str, ...], tuple[str, ...]]:
            async with _pool(planned, verifying, means) as pool:
                if callable(journal):
                    journals.append(journal())
                sitting = Session(journals[0], providers, means, verifying, pool, judges)
                return sitting, await sitting.carry_out(), pool.notes

        sitting, stopped, notes = run_coroutine(sat())
        written = journals[0]
        info = msgspec.structs.replace(written.info, ended_at=now())
        written.describe(info)
        summary, odd = summarise_and_cache(written, info, sitting.cases)
        notes = (*notes, *odd, *write_parquet_copy(written.folder))
        return Run(written.folder, info, summary, stopped, notes, sitting.out_of_budget)
    except KeyboardInterrupt:
        if not journals:
            raise
        raise RunInterrupted(journals[0].folder) from None
    except BaseExceptionGroup as group:
        # whatever else was cut short by it, the first of our own sentences says what happened
        ours, _ = group.split(SteelyardError)
        while isinstance(ours, BaseExceptionGroup):
            ours = ours.exceptions[0]  # type: ignore[assignment]
        raise (ours or group) from None
    finally:
        for written in journals:
            written.close()


@asynccontextmanager
async def _pool(cases: Sequence[Case], verifying: VerifierSet, means: RunOptions) -> AsyncIterator[Pool]:
    """Who verifies the replies to these cases."""
    # where nothing is to be verified, no cluster is asked
    backend = "local" if all(case.by_judges for case in cases) else means.backend
    made = load_plugin("pools", backend)(cases, verifying, means)
    pool: Pool = await made if inspect.isawaitable(made) else made
    try:
        yield pool
    finally:
        await pool.close()


def write_parquet_copy(folder: Path) -> tuple[str, ...]:
    """Write the Parquet copy; a run without it is whole all the same."""
    try:
        copy_to_parquet(folder, fact_scores)
    except StoreError as error:
        return (str(error),)
    return ()
