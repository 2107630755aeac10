"""What a run would ask, and the most that can cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.engine.options import RunOptions
from steelyard.engine.pace import max_request_tokens
from steelyard.engine.plan import planned_attempts, tier_attempt
from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.connect import check_parameters, check_plan, check_verifiers, close_providers, connect
from steelyard.engine.preflight.conversations import ASSUMED_TOOL_TOKENS, conversation_bound, user_bounds
from steelyard.engine.preflight.rubric_judges import connect_judges, rubric_requests, with_judges
from steelyard.engine.tiers.experiment import (
    check_experiment_parameters,
    named_tiers,
    tier_provider,
    with_panel_judges,
)
from steelyard.engine.tiers.judging import max_judging_tokens
from steelyard.evalsets.experiments import LoadedExperiment
from steelyard.providers.batch.offered import batch_api_name
from steelyard.providers.prices import Prices
from steelyard.records import Attempt, Case, RunInfo
from steelyard.text import counted
from steelyard.verifiers.checks.rubric import rubric_judges


class Forecast(NamedTuple):
    """What one model would be asked."""

    model: str
    cases: int
    attempts: int
    most_usd: float | None
    """The most it can cost; None when the price is not known."""
    batch_usd: float | None = None
    """The most it can cost in batches; None if the provider has none, or the price is not known."""
    turns: int = 1
    """How many requests an attempt can take; more than one in a conversation."""
    calls_tools: bool = False
    """Whether results of tools are in the price, as large as they are assumed to be."""
    is_beside: bool = False
    """Whether these are requests to a judge or to a model that plays the user, which are no attempts."""


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
    """What a run would ask, and the most it can cost; no model is asked."""
    check_plan(cases, k, samples)
    check_parameters(parameters)
    cases = with_judges(cases, means)
    check_verifiers(cases, means)
    providers = connect(models, means, base_url, asks=False)
    prices = Prices(means.settings.prices)
    info = RunInfo(id="", started_at="", samples=samples, k=tuple(k), parameters=dict(parameters), system=system)
    forecasts = []
    judging: dict[str, list[tuple[int, int]]] = {}
    asked: list[Attempt] = []
    try:
        judges = connect_judges(cases, tuple(providers), means, asks=False)
        run_coroutine(close_providers(judges))
        for model, provider in providers.items():
            attempts = list(planned_attempts(info, cases, {model: provider}))
            bounds = [_bound(prices, attempt) for attempt in attempts]
            is_batched = batch_api_name(model) and not all(attempt.case.is_conversation for attempt in attempts)
            in_batches = [_bound(prices, attempt, is_batch=True) for attempt in (attempts if is_batched else ())]
            batched = _total_cost(in_batches) if in_batches else None
            found = Forecast(model, len(cases), len(attempts), _total_cost(bounds), batched)
            forecasts.append(_with_turns(found, attempts))
            asked += attempts
            for judge, sizes in rubric_requests(attempts).items():
                judging.setdefault(judge, []).extend(sizes)
    finally:
        run_coroutine(close_providers(providers))
    forecasts += _user_forecasts(asked, prices, means)
    return forecasts + [_judge_forecast(judge, sizes, cases, prices) for judge, sizes in judging.items()]


def _with_turns(found: Forecast, attempts: Sequence[Attempt]) -> Forecast:
    talks = [attempt.case for attempt in attempts if attempt.case.is_conversation]
    turns = max((case.turn_limit for case in talks), default=1)
    return found._replace(turns=turns, calls_tools=any(case.tools for case in talks))


def _user_forecasts(
    attempts: Sequence[Attempt], prices: Prices, means: RunOptions, times: int = 1
) -> Iterator[Forecast]:
    """What the models that play users would be asked."""
    by_user: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.case.user is not None:
            by_user.setdefault(attempt.case.user.model, []).append(attempt)
    for user, talks in by_user.items():
        providers = connect([user], means, asks=False)
        run_coroutine(close_providers(providers))
        bounds = user_bounds(prices, next(iter(providers), user), talks)
        requests = sum(min(talk.case.user.max_turns, talk.case.turn_limit) for talk in talks if talk.case.user)
        cases = len({talk.case.id for talk in talks})
        yield Forecast(f"user {user}", cases, requests * times, _total_cost(bounds, times), is_beside=True)


def _judge_forecast(
    judge: str, sizes: Sequence[tuple[int, int]], cases: Sequence[Case], prices: Prices, times: int = 1
) -> Forecast:
    """What a judge would be asked about checks that are rubrics."""
    judged = sum(judge in rubric_judges([case]) for case in cases)
    bounds = [prices.bound(judge, *size) for size in sizes]
    return Forecast(f"judge {judge}", judged, len(sizes) * times, _total_cost(bounds, times), is_beside=True)


def forecast_experiment(loaded: LoadedExperiment, *, means: RunOptions = RunOptions()) -> list[Forecast]:
    """What an experiment would ask of each tier and of each judge, and the most that can cost; no model is asked."""
    loaded = with_panel_judges(loaded, means)
    header, cases, prices = loaded.header, loaded.cases, Prices(means.settings.prices)
    check_plan(cases, (1,), header.runs)
    check_experiment_parameters(loaded)
    check_verifiers(cases, means)
    beside = Path(loaded.files[0].path).parent
    tiers = named_tiers(
        loaded.experiment,
        {tier.name: tier_provider(tier, means, beside, asks=False) for tier in loaded.experiment.tiers},
    )
    info = RunInfo(id="", started_at="", samples=header.runs, parameters=dict(header.parameters), seed=header.seed)
    # all runs of a case under a tier are asked the same
    asked = {tier.name: [tier_attempt(info, tier, case, 1) for case in cases] for tier in tiers}
    found = []
    for tier in tiers:
        # how often an agent asks is not known in advance
        bounds = [None if tier.agent else _bound(prices, each) for each in asked[tier.name]]
        each_tier = Forecast(tier.name, len(cases), len(bounds) * header.runs, _total_cost(bounds, header.runs))
        found.append(each_tier if tier.agent else _with_turns(each_tier, asked[tier.name]))
    talking = [each for tier in tiers if not tier.agent for each in asked[tier.name]]
    found += _user_forecasts(talking, prices, means, header.runs)
    found += _inheriting_forecasts(loaded, info, asked, prices, beside, means)
    panel = loaded.panel
    rubrics = rubric_requests(each for attempts in asked.values() for each in attempts)
    found += [_judge_forecast(judge, sizes, cases, prices, header.runs) for judge, sizes in rubrics.items()]
    if panel is not None:
        sizes = [max_judging_tokens(attempt, panel) for attempts in asked.values() for attempt in attempts]
        times = header.runs * panel.repeats
        for position, name in enumerate(connect(panel.judges, means, asks=False)):
            bounds = [prices.bound(name, *size) for size in sizes]
            always = position < len(panel.first_judges)
            label = f"judge {name}" if always else f"judge {name}, if asked about every answer"
            most = _total_cost(bounds, times)
            found.append(Forecast(label, len(cases), len(bounds) * times, most, is_beside=True))
    return found


def _inheriting_forecasts(
    loaded: LoadedExperiment,
    info: RunInfo,
    asked: dict[str, list[Attempt]],
    prices: Prices,
    beside: Path,
    means: RunOptions,
) -> list[Forecast]:
    """The requests of tiers that extend the best of others, at their maximum cost, including those to judges."""
    found = []
    for inheriting in loaded.experiment.inheriting:
        name, runs = inheriting.own.name, loaded.header.runs
        costs: list[float | None] = []
        for trial in (trial for trial in loaded.trials if trial.name == name):
            model = tier_provider(trial, means, beside, asks=False)[0]
            named = msgspec.structs.replace(trial, model=model)
            attempts = asked[name] = [tier_attempt(info, named, case, 1) for case in loaded.cases]
            costs.append(_total_cost([None if trial.agent else _bound(prices, each) for each in attempts], runs))
        known = [cost for cost in costs if cost is not None]
        label = f"{name}, on the best of {', '.join(inheriting.extends)}" if len(inheriting.extends) > 1 else name
        most = max(known) if len(known) == len(costs) else None
        found.append(Forecast(label, len(loaded.cases), len(loaded.cases) * runs, most))
    return found


def _bound(prices: Prices, attempt: Attempt, *, is_batch: bool = False) -> float | None:
    """The most that an attempt can cost; None if that is unknown. Conversations are not sent in batches."""
    if attempt.case.is_conversation:
        return conversation_bound(prices, attempt)
    return prices.bound(attempt.model, *max_request_tokens(attempt), is_batch=is_batch)


def _total_cost(bounds: Sequence[float | None], times: int = 1) -> float | None:
    """The sum of all bounds, each taken `times` times; None if one is not known."""
    known = [bound for bound in bounds if bound is not None]
    return times * sum(known) if len(known) == len(bounds) else None


def forecast_text(forecasts: Sequence[Forecast], *, about: str = "attempt at", total: bool = False) -> str:
    """A line for each model, and one for all of them together where that is wanted."""
    lines = [
        f"{each.model}: {_requests_text(each, 'request about' if each.is_beside else about)}, "
        f"{_price_text(each.most_usd)}{_batch_text(each)}"
        for each in forecasts
    ]
    known = [each.most_usd for each in forecasts if each.most_usd is not None]
    if total and known:
        beyond = "" if len(known) == len(forecasts) else ", without models whose price is unknown"
        lines.append(f"in total: at most ${sum(known):.4f}{beyond}")
    if any(each.calls_tools and each.most_usd is not None for each in forecasts):
        lines.append(
            f"what tools return is counted with {ASSUMED_TOOL_TOKENS:,} tokens in each turn, or as a longer canned result"
        )
    return "".join(f"{each}\n" for each in lines)


def _requests_text(each: Forecast, about: str) -> str:
    one, preposition = about.split()
    turns = f" of up to {each.turns:,} turns" if each.turns > 1 else ""
    return f"{counted(each.attempts, one)} {preposition} {counted(each.cases, 'case')}{turns}"


def _price_text(dollars: float | None) -> str:
    return "at an unknown price" if dollars is None else f"at most ${dollars:.4f}"


def _batch_text(each: Forecast) -> str:
    return "" if each.batch_usd is None or each.batch_usd == each.most_usd else f", ${each.batch_usd:.4f} with --batch"
