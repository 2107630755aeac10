"""The attempts a run still owes, of the cases that it selects or a shard gets."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from steelyard.analysis.summary import summarise
from steelyard.errors import InputError
from steelyard.evalsets.experiments import case_under_tier
from steelyard.records import Attempt, Case, Expectations, RunInfo, Shard, Verify, digest
from steelyard.store.stored_cases import chosen_cases
from steelyard.text import counted

if TYPE_CHECKING:
    import numpy

    from steelyard.protocols import Provider
    from steelyard.records import Experiment, Tier
    from steelyard.store.journal import StoredRun


def planned_attempts(info: RunInfo, cases: Sequence[Case], providers: Mapping[str, Provider]) -> Iterator[Attempt]:
    """Every attempt of a run: all first attempts, then all second ones, so that early numbers speak for all cases."""
    if info.experiment is not None:
        yield from interleaved_attempts(info, info.experiment, cases, providers)
        return
    # cases may be in a file, so only counts are held: of the first case for each model, of the second, and so on
    models = tuple(providers)
    counts = array("Q", (expected_attempts(info, model, providers[model], case) for case in cases for model in models))
    for number in range(1, max(counts, default=0) + 1):
        for place, count in enumerate(counts):
            if number <= count:
                case, model = cases[place // len(models)], models[place % len(models)]
                yield Attempt(
                    case=case,
                    model=model,
                    parameters=parameters(info, case, number),
                    system=info.system,
                    number=number,
                    samples=count,
                    tools=case.tool_definitions,
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
        samples=info.samples or 1,
        tools=case.tool_definitions,
    )


def provider_key(attempt: Attempt) -> str:
    """The provider that an attempt is sent to: the provider of its tier, where tiers are compared, otherwise that of its model."""
    return attempt.tier or attempt.model


def expected_attempts(info: RunInfo, model: str, provider: Provider, case: Case) -> int:
    """How many attempts at a case are planned: never more than were recorded."""
    if info.experiment is not None:
        return info.samples or 1
    recorded = provider.available(case.id)
    fair = info.fair_samples(model, case.id)
    if fair is not None:
        samples = info.more.get(model, {}).get(case.id, fair)
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
    temperature = parameters.get("temperature")
    if temperature == 0 and (samples or max(k)) > 1:
        return ["at temperature 0 the attempts at a case are hardly different; --temperature 0.8 is usual for pass@k"]
    if isinstance(temperature, int | float) and not 0 <= temperature <= MAX_USUAL_TEMPERATURE:
        return [f"temperature {temperature:g} is outside 0 to {MAX_USUAL_TEMPERATURE}, which most servers refuse"]
    return []


MAX_USUAL_TEMPERATURE = 2
MAX_SHARDS = 1000
"""Shards of one plan."""

PlanRecord = TypeVar("PlanRecord", Case, RunInfo)


def check_shard(number: int, of: int) -> None:
    """Raises an InputError if there is no such shard."""
    if not 1 <= number <= of <= MAX_SHARDS:
        raise InputError(
            f"no shard {number}/{of}; write I/N for shard I of N, both 1 or more, and N at most {MAX_SHARDS:,}"
        )


def shard_cases(cases: Sequence[Case], number: int, of: int) -> Sequence[Case]:
    """The cases of one shard: the first case goes to the first shard, the second to the second, and so on in turn."""
    check_shard(number, of)
    return cases[number - 1 :: of]


def shard_messages(shard: tuple[int, int], cases: Sequence[Case], max_cost: float | None) -> list[str]:
    """What to say before a shard of these cases is run: how many it has, and what a budget holds for."""
    number, of = shard
    messages = [f"shard {number}/{of}: {len(shard_cases(cases, number, of))} of {len(cases)} cases"]
    if max_cost is not None and of > 1:
        messages.append(
            f"--max-cost applies to each shard separately: {of} shards may spend ${of * max_cost:g} together"
        )
    return messages


def plan_notes(
    cases: Sequence[Case],
    parameters: Mapping[str, Any],
    samples: int | None,
    k: Sequence[int],
    shard: tuple[int, int] | None,
    max_cost: float | None,
) -> tuple[str, ...]:
    """What to say about a plan before anybody is asked."""
    warnings = (f"warning: {warning}" for warning in plan_warnings(parameters, samples, k))
    return (*warnings, *(shard_messages(shard, cases, max_cost) if shard else ()))


def shard_record(info: RunInfo, cases: Sequence[Case], number: int, of: int) -> Shard:
    """What a run says of itself that has one shard of these cases."""
    digests = [_case_digest(case) for case in cases]
    dealt = tuple(digest(digests[place::of]) for place in range(of))
    return _with_plan_digest(info, Shard(numbers=(number,), of=of, cases=len(cases), dealt=dealt, plan=""))


def with_current_plan(info: RunInfo) -> RunInfo:
    """A description in which something of the plan was changed; where it is of a shard, its plan is the changed one."""
    return info if info.shard is None else replace(info, shard=_with_plan_digest(info, info.shard))


def is_plan_unchanged(info: RunInfo) -> bool:
    """Whether a shard's description still says what was planned."""
    return info == with_current_plan(info)


def are_shard_cases_unchanged(shard: Shard, cases: Sequence[Case]) -> bool:
    """Whether these are the cases of a shard, or of several, with the tests that they had."""
    hands = (cases[place :: len(shard.numbers)] for place in range(len(shard.numbers)))
    return all(
        digest([_case_digest(case) for case in each]) == shard.dealt[number - 1]
        for number, each in zip(shard.numbers, hands, strict=True)
    )


def comparable_plan(info: RunInfo) -> RunInfo:
    """The plan alone: a description without what differs from one machine or one hour to another."""
    return replace(
        info,
        id="",
        started_at="",
        ended_at=None,
        folder="",
        # the cases stand for the files they came from; the paths of the files may differ
        eval_sets=(),
        versions={},
        prices={},
        control_key="",
        reference_trust={},
        unrecorded={},
        skipped={},
        uncontained={},
        witnesses=None,
        shard=None,
        merged=(),
        cached_replies={},
        spending=None,
    )


def _with_plan_digest(info: RunInfo, shard: Shard) -> Shard:
    return replace(shard, plan=digest(_round_tripped(comparable_plan(info)), shard.of, shard.cases, shard.dealt))


def _case_digest(case: Case) -> str:
    """Equal for the same case with the same tests on any machine, wherever its files are."""
    stored = _round_tripped(case)
    prompt = stored.prompt if isinstance(stored.prompt, str) else tuple(each.without_paths for each in stored.prompt)
    bare = replace(stored, prompt=prompt, verify=Verify(), expectations=Expectations(), workspace="", tools=())
    return digest(bare, stored.tests_digest, *stored.conversation)


def _round_tripped(record: PlanRecord) -> PlanRecord:
    """A record as it will be read again: a whole number in a float field is written differently than it is read."""
    return msgspec.json.decode(msgspec.json.encode(record), type=type(record))


MAX_UNPACKED_KEYS = 1 << 14
"""Keys that are kept as they are, and that are worth packing."""


class CompactKeySet:
    """A set of texts that takes 16 bytes for each of them, once there are many."""

    def __init__(self) -> None:
        self._recent: set[str] = set()
        self._packed: list[tuple[numpy.ndarray, numpy.ndarray]] = []
        """The two halves of digests, sorted by the first; no two of these are of about the same size."""

    def add(self, key: str) -> None:
        self._recent.add(key)
        if len(self._recent) >= MAX_UNPACKED_KEYS:
            self._pack()

    def __contains__(self, key: object) -> bool:
        if key in self._recent:
            return True
        if not self._packed or not isinstance(key, str):
            return False
        first, second = _halves(key)
        return any(_block_contains(block, first, second) for block in self._packed)

    def __bool__(self) -> bool:
        return bool(self._recent or self._packed)

    def _pack(self) -> None:
        import numpy

        made = numpy.fromiter((half for key in self._recent for half in _halves(key)), numpy.uint64)
        self._recent.clear()
        first, second = made[::2], made[1::2]
        while self._packed and len(self._packed[-1][0]) <= 2 * len(first):
            before = self._packed.pop()
            first, second = numpy.concatenate([before[0], first]), numpy.concatenate([before[1], second])
        order = numpy.argsort(first)
        self._packed.append((first[order], second[order]))


def _halves(key: str) -> tuple[int, int]:
    # a key may be any text that is in a journal
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8]), int.from_bytes(digest[8:])


def _block_contains(block: tuple[numpy.ndarray, numpy.ndarray], first: int, second: int) -> bool:
    return any(block[1][place] == second for place in _matching_indexes(block[0], first))


def _matching_indexes(sorted_halves: numpy.ndarray, half: int) -> Iterator[int]:
    import numpy

    place = int(numpy.searchsorted(sorted_halves, numpy.uint64(half)))
    while place < len(sorted_halves) and sorted_halves[place] == half:
        yield place
        place += 1


def select_cases(
    cases: Sequence[Case],
    *,
    tags: str | None = None,
    glob: str | None = None,
    exclude: Sequence[str] = (),
    failed_in: StoredRun | None = None,
    limit: int | None = None,
) -> Sequence[Case]:
    """The cases with one of the tags (`easy,strings`), an id like `glob` and unlike `exclude`, and a failed attempt in that run."""
    chosen = cases
    if tags:
        wanted = {tag.strip() for tag in tags.split(",")}
        chosen = chosen_cases(chosen, lambda case: bool(wanted & set(case.tags)))
    if glob:
        chosen = chosen_cases(chosen, lambda case: fnmatchcase(case.id, glob))
    if exclude:
        chosen = chosen_cases(chosen, lambda case: not any(fnmatchcase(case.id, each) for each in exclude))
    if failed_in is not None:
        rows = summarise(failed_in.info, failed_in.cases, failed_in.facts()).cases
        failed = {row.case for row in rows if row.correct < row.attempts or not row.attempts}
        chosen = chosen_cases(chosen, lambda case: case.id in failed)
    if not chosen:
        known = ", ".join(sorted({tag for case in cases for tag in case.tags}))
        raise InputError(
            f"none of {counted(len(cases), 'case')} is left by --filter, --case, --exclude and --failed-in (tags: {known})"
        )
    return chosen[:limit]
