"""The attempts a run still owes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.evalsets.experiments import case_under_tier
from steelyard.records import Attempt, Case

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from steelyard.protocols import Provider
    from steelyard.records import Experiment, RunInfo, Tier


def planned_attempts(info: RunInfo, cases: Sequence[Case], providers: Mapping[str, Provider]) -> Iterator[Attempt]:
    """Every attempt of a run: all first attempts, then all second ones, so that early numbers speak for all cases."""
    if info.experiment is not None:
        yield from interleaved_attempts(info, info.experiment, cases, providers)
        return
    counts = [
        (case, model, expected_attempts(info, model, provider, case))
        for case in cases
        for model, provider in providers.items()
    ]
    for number in range(1, max((count for _, _, count in counts), default=0) + 1):
        for case, model, count in counts:
            if number <= count:
                yield Attempt(
                    case=case,
                    model=model,
                    parameters=parameters(info, case, number),
                    system=info.system,
                    number=number,
                )


def interleaved_attempts(
    info: RunInfo, experiment: Experiment, cases: Sequence[Case], providers: Container[str]
) -> Iterator[Attempt]:
    """The attempts under all tiers, each tier first as often as any other: a provider's drift must not look like an effect."""
    tiers = experiment.tiers
    for number in range(1, (info.samples or 1) + 1):
        for place, case in enumerate(cases):
            first = (place + number - 1) % len(tiers)
            for tier in (*tiers[first:], *tiers[:first]):
                if tier.name in providers:
                    yield tier_attempt(info, tier, case, number)


def tier_attempt(info: RunInfo, tier: Tier, case: Case, number: int) -> Attempt:
    """One attempt at a case as a tier puts it."""
    return Attempt(
        case=case_under_tier(tier, case),
        model=tier.model,
        parameters=parameters(info, case, number) | tier.parameters,
        system=tier.system,
        tier=tier.name,
        number=number,
    )


def provider_key(attempt: Attempt) -> str:
    """Whom an attempt is put to: the provider of its tier, where tiers are compared, else that of its model."""
    return attempt.tier or attempt.model


def expected_attempts(info: RunInfo, model: str, provider: Provider, case: Case) -> int:
    """How many attempts at a case are planned: never more than were recorded."""
    if info.experiment is not None:
        return info.samples or 1
    recorded = provider.available(case.id)
    if info.samples is not None:
        samples = info.more.get(model, {}).get(case.id, info.samples)
        return samples if recorded is None else min(samples, recorded)
    return max(info.k) if recorded is None else recorded


def parameters(info: RunInfo, case: Case, number: int) -> dict[str, Any]:
    """What is sent with one request: the run's parameters, the case's own limit, and a seed of the attempt's own."""
    chosen = dict(info.parameters)
    if case.max_tokens is not None:
        chosen.setdefault("max_tokens", case.max_tokens)
    if info.seed is not None:
        # one seed for all attempts would make them one attempt
        chosen["seed"] = info.seed + number - 1
    return chosen


def outstanding_attempts(planned: Iterable[Attempt], done: Container[str]) -> Iterator[Attempt]:
    """Resuming is planning again and subtracting what is done."""
    return (attempt for attempt in planned if attempt.key not in done)


def plan_warnings(parameters: Mapping[str, Any], samples: int | None, k: Sequence[int]) -> list[str]:
    """What is odd about a plan, before anybody is asked."""
    if parameters.get("temperature") == 0 and (samples or max(k)) > 1:
        return ["at temperature 0 the attempts at a case are hardly different; --temperature 0.8 is usual for pass@k"]
    return []
