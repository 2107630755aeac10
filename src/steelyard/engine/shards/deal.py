"""The cases of a plan dealt out to machines that know nothing of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from steelyard.errors import InputError
from steelyard.records import Case, Expectations, RunInfo, Shard, Verify, digest

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SHARDS = 1000
"""Shards of one plan."""

PlanRecord = TypeVar("PlanRecord", Case, RunInfo)


def check_shard(number: int, of: int) -> None:
    """Raise an InputError where there is no such shard."""
    if not 1 <= number <= of <= MAX_SHARDS:
        raise InputError(f"no shard {number}/{of}; I/N is shard I of N, both from 1 on, and N at most {MAX_SHARDS:,}")


def shard_cases(cases: Sequence[Case], number: int, of: int) -> tuple[Case, ...]:
    """The cases of one shard: the first case goes to the first shard, the second to the second, and so on in turn."""
    check_shard(number, of)
    return tuple(cases[number - 1 :: of])


def shard_messages(shard: tuple[int, int], cases: Sequence[Case], max_cost: float | None) -> list[str]:
    """What to say before a shard of these cases is run: how many it has, and what a budget holds for."""
    number, of = shard
    messages = [f"shard {number}/{of}: {len(shard_cases(cases, number, of))} of {len(cases)} cases"]
    if max_cost is not None and of > 1:
        messages.append(f"--max-cost holds for each shard alone: {of} shards may spend ${of * max_cost:g} together")
    return messages


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
        # the cases stand for the files they came from; the paths of the files may differ
        eval_sets=(),
        versions={},
        prices={},
        unrecorded={},
        skipped={},
        shard=None,
        merged=(),
    )


def _with_plan_digest(info: RunInfo, shard: Shard) -> Shard:
    return replace(shard, plan=digest(_round_tripped(comparable_plan(info)), shard.of, shard.cases, shard.dealt))


def _case_digest(case: Case) -> str:
    """Equal for the same case with the same tests on any machine, whatever the paths of its files."""
    stored = _round_tripped(case)
    return digest(replace(stored, verify=Verify(), expectations=Expectations(), workspace=""), stored.tests_digest)


def _round_tripped(record: PlanRecord) -> PlanRecord:
    """A record as it will be read again: a whole number in the place of a fraction is written otherwise than it is read."""
    return msgspec.json.decode(msgspec.json.encode(record), type=type(record))
