"""What a reader must know before trusting the figures of an experiment in tiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from steelyard.text import counted, line
from steelyard.tiers.judges import RunConsensus
from steelyard.tiers.results import (
    IMPL_RATE_ABOVE_ONE_FLAG,
    IMPL_RATE_DIFFERS_FLAG,
    JUDGES_DISAGREE_FLAG,
    NONZERO_EXIT_CODE_FLAG,
    ModelAnalysis,
    PairBy,
    RunIdentity,
    TierAnalysis,
)
from steelyard.tiers.rubrics import CLAIM_TOLERANCE
from steelyard.tiers.run_tables import PASSED_BY, RUN_FLAGS, RUN_NAMES, FigureTable, TierGroups

MAX_NAME_CHARACTERS = 80
"""Characters of a tier's, model's or case's name in a sentence."""
MAX_LISTED_CASES = 5
MIN_CASES_FOR_MEDIAN_INTERVAL = 7
"""With fewer cases the interval of a median has no ends."""


def analysis_warnings(runs: TierGroups, models: Sequence[ModelAnalysis], first: str, pair_by: PairBy) -> Iterator[str]:
    """What a reader must know before trusting the figures."""
    several = len(models) > 1
    for model in models:
        for tier in model.tiers:
            name = line(f"{model.model}, {tier.tier}" if several else tier.tier, MAX_NAME_CHARACTERS)
            yield from (f"{name}: {warning}" for warning in _missing_data_warnings(tier))
    few = [tier for model in models for tier in model.tiers if tier.cases < MIN_CASES_FOR_MEDIAN_INTERVAL]
    if any(tier.cases == 1 for tier in few):
        yield "intervals of a tier with a single case are about that case asked again, not about cases like it"
    if any(tier.unit == "case" and tier.composite_median.low is not None for tier in few):
        yield f"fewer than {MIN_CASES_FOR_MEDIAN_INTERVAL} cases cannot bound a median: a grade over so few could be any other"
    if any(tier.unit == "case" and tier.pass_rate.value is not None and tier.pass_rate.low is None for tier in few):
        yield "tasks are too few to say anything of tasks like these: rates have no interval; --tasks fixed speaks of these"
    for model in models:
        partly = [each for each in model.against_baseline if each.tier_only or each.other_only]
        if partly:
            shares = ", ".join(
                f"{line(each.tier, MAX_NAME_CHARACTERS)} {each.cases:,} of {each.cases + each.tier_only + each.other_only:,}"
                for each in partly
            )
            of = f"{line(model.model, MAX_NAME_CHARACTERS)}: " if several else ""
            yield f"{of}comparisons with {line(first, MAX_NAME_CHARACTERS)} rest on the cases that both tiers ran: {shares}"
    if pair_by == "case" and _has_variants(runs):
        yield (
            "tiers share their experiments and few of their cases: where the experiment is the task, and a case a "
            "variant of its tier, pair by experiment"
        )


def run_warnings(runs: FigureTable, agreed: Mapping[RunIdentity, RunConsensus], empty: int) -> Iterator[str]:
    """What is odd about some of the runs."""
    flagged = {flag: int(runs.has_flag(flag).sum()) for flag in RUN_FLAGS}
    all_runs = counted(len(runs), "run")
    by_judges = int((runs.integers["passed_by"] == PASSED_BY.index("judges")).sum())
    if by_judges:
        yield f"{by_judges:,} of {all_runs} have no recorded outcome: the majority of their judges decides"
    if flagged[JUDGES_DISAGREE_FLAG]:
        yield f"{flagged[JUDGES_DISAGREE_FLAG]:,} of {all_runs} passed or failed against the majority of their judges; the record stands"
    if empty:
        yield f"{counted(empty, 'rating')} in which nothing applies: they do not count, even if their judge claims a score"
    if flagged[IMPL_RATE_DIFFERS_FLAG]:
        recorded = {run: rate for run, rate in _recorded_rates(runs) if rate == rate}
        middles = {run: consensus.middle for run, consensus in agreed.items()}
        is_median = all(
            (middle := middles.get(run)) is not None and abs(rate - middle) < 1e-6 for run, rate in recorded.items()
        )
        yield (
            f"{flagged[IMPL_RATE_DIFFERS_FLAG]:,} of {all_runs} record an impl_rate that differs by more than {CLAIM_TOLERANCE:g} from the mean "
            f"of their judges' points{'; what they record is the median' if is_median else ''}"
        )
    if flagged[IMPL_RATE_ABOVE_ONE_FLAG]:
        most = max(float(rates[rates >= 0].max(initial=0.0)) for rates in runs.impl_rates.values())
        yield f"{flagged[IMPL_RATE_ABOVE_ONE_FLAG]:,} of {all_runs} have an impl_rate above 1, up to {most:.3g}: counted as 1 in every figure"
    if flagged[NONZERO_EXIT_CODE_FLAG]:
        yield f"{flagged[NONZERO_EXIT_CODE_FLAG]:,} of {all_runs} passed although their program ended with a non-zero exit code"


def _missing_data_warnings(tier: TierAnalysis) -> Iterator[str]:
    all_runs = counted(tier.runs, "run")
    if tier.unjudged:
        yield f"{tier.unjudged:,} of {all_runs} neither passed nor failed and are in no rate"
    if tier.unscored:
        more = f" and {len(tier.unscored) - MAX_LISTED_CASES} more" if len(tier.unscored) > MAX_LISTED_CASES else ""
        listed = ", ".join(line(case, MAX_NAME_CHARACTERS) for case in tier.unscored[:MAX_LISTED_CASES])
        yield f"{len(tier.unscored):,} of {counted(tier.cases, 'case')} have no outcome ({listed}{more})"
    if tier.unrated:
        yield f"{tier.unrated:,} of {all_runs} have no impl_rate and are in no composite"
    if tier.unpriced:
        yield f"what {tier.unpriced:,} of {all_runs} cost is not known, so there are no figures of costs"


def _has_variants(groups: TierGroups) -> bool:
    """Whether tiers share all their experiments, and fewer than half of their cases."""
    cases = [set(runs.tasks) for of_model in groups.values() for runs in of_model.values()]
    shared = set.intersection(*cases)
    return (
        len({frozenset(experiment for experiment, _ in each) for each in cases}) == 1
        and len(cases) > 1
        and 2 * len(shared) < max(map(len, cases))
    )


def _recorded_rates(runs: FigureTable) -> Iterator[tuple[RunIdentity, float]]:
    """The recorded impl rate of each run; NaN where it has none."""
    names = (runs.names[name].texts() for name in RUN_NAMES)
    identities = map(RunIdentity._make, zip(*names, runs.integers["number"].tolist(), strict=True))
    return zip(identities, runs.impl_rates["recorded"].tolist(), strict=True)
