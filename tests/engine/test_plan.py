"""The attempts a run owes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.engine.plan import expected_attempts, outstanding_attempts, parameters, planned_attempts
from steelyard.plugins.user_functions import UserFunction
from steelyard.protocols import Provider
from steelyard.providers.command import PythonProvider
from steelyard.records import Attempt, Case, RunInfo

A, B = Case(id="a", prompt="a?"), Case(id="b", prompt="b?", max_tokens=50)
ECHO = UserFunction(lambda prompt: prompt, takes_both=False, is_async=False)


class Recorded(PythonProvider):
    """A provider that has only so many answers."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        super().__init__("nowhere:ask", ECHO)
        self._counts = counts

    def available(self, case: str) -> int:  # type: ignore[override]  # a live function has no end of answers
        return self._counts.get(case, 0)


LIVE: Provider = PythonProvider("nowhere:ask", ECHO)


def info(**fields: Any) -> RunInfo:
    return RunInfo(id="r", started_at="2026-01-01T00:00:00Z", **fields)


def places(attempts: Iterable[Attempt]) -> list[tuple[int, str, str]]:
    return [(attempt.number, attempt.case.id, attempt.model) for attempt in attempts]


def test_all_first_attempts_come_before_all_second_ones() -> None:
    assert places(planned_attempts(info(samples=2), [A, B], {"m": LIVE, "n": LIVE})) == [
        (1, "a", "m"),
        (1, "a", "n"),
        (1, "b", "m"),
        (1, "b", "n"),
        (2, "a", "m"),
        (2, "a", "n"),
        (2, "b", "m"),
        (2, "b", "n"),
    ]


def test_planning_is_lazy_so_that_a_run_may_be_of_any_length() -> None:
    attempts = planned_attempts(info(samples=10**9), [A, B], {"m": LIVE})
    assert places([next(attempts), next(attempts), next(attempts)]) == [(1, "a", "m"), (1, "b", "m"), (2, "a", "m")]


def test_without_a_number_the_largest_k_is_asked_for() -> None:
    assert expected_attempts(info(k=(1, 5)), "m", LIVE, A) == 5
    assert expected_attempts(info(k=(1, 5), samples=2), "m", LIVE, A) == 2


def test_of_recorded_replies_there_are_never_more_than_were_recorded() -> None:
    recorded = Recorded({"a": 3})
    assert expected_attempts(info(), "m", recorded, A) == 3
    assert expected_attempts(info(samples=2), "m", recorded, A) == 2
    assert expected_attempts(info(samples=9), "m", recorded, A) == 3
    assert expected_attempts(info(samples=9), "m", recorded, B) == 0
    assert places(planned_attempts(info(), [A, B], {"r": recorded})) == [(1, "a", "r"), (2, "a", "r"), (3, "a", "r")]


def test_models_with_different_numbers_of_replies_are_planned_side_by_side() -> None:
    models = {"r": Recorded({"a": 1, "b": 2}), "m": LIVE}
    assert places(planned_attempts(info(samples=2), [A, B], models)) == [
        (1, "a", "r"),
        (1, "a", "m"),
        (1, "b", "r"),
        (1, "b", "m"),
        (2, "a", "m"),
        (2, "b", "r"),
        (2, "b", "m"),
    ]


def test_nothing_is_planned_for_nobody() -> None:
    assert places(planned_attempts(info(samples=2), [A], {})) == []
    assert places(planned_attempts(info(samples=2), [], {"m": LIVE})) == []


def test_each_attempt_has_a_seed_of_its_own_and_none_unless_one_is_given() -> None:
    seeded = list(planned_attempts(info(samples=3, seed=40), [A], {"m": LIVE}))
    assert [attempt.parameters["seed"] for attempt in seeded] == [40, 41, 42]
    assert "seed" not in parameters(info(), A, 1)
    assert parameters(info(seed=0), A, 1)["seed"] == 0


def test_a_case_has_its_own_limit_unless_the_run_has_one() -> None:
    assert parameters(info(), A, 1) == {}
    assert parameters(info(), B, 1) == {"max_tokens": 50}
    assert parameters(info(parameters={"max_tokens": 9, "temperature": 0.5}), B, 1) == {
        "max_tokens": 9,
        "temperature": 0.5,
    }


def test_planning_does_not_change_the_run() -> None:
    asked = info(samples=2, seed=1, parameters={"temperature": 0.5})
    list(planned_attempts(asked, [A, B], {"m": LIVE}))
    assert asked.parameters == {"temperature": 0.5}


def test_the_system_prompt_is_part_of_every_attempt() -> None:
    (attempt,) = planned_attempts(info(samples=1, system="be brief"), [A], {"m": LIVE})
    assert [message.content for message in attempt.messages] == ["be brief", "a?"]


def test_what_is_done_is_not_owed() -> None:
    attempts = list(planned_attempts(info(samples=2), [A, B], {"m": LIVE}))
    done = {attempts[0].key, attempts[3].key}
    assert list(outstanding_attempts(attempts, done)) == attempts[1:3]
    assert list(outstanding_attempts(attempts, set())) == attempts
    assert list(outstanding_attempts(attempts, {attempt.key for attempt in attempts})) == []


def test_the_key_is_that_of_the_whole_question_and_of_nothing_else() -> None:
    def key(case: Case = A, **fields: Any) -> str:
        return Attempt(case=case, **{"model": "m", **fields}).key

    others = [
        key(number=2),
        key(model="n"),
        key(system="be brief"),
        key(tier="T1"),
        key(parameters={"seed": 1}),
        key(Case(id="a2", prompt="a?")),
        key(Case(id="a", prompt="a!")),
    ]
    assert len({key(), *others}) == len(others) + 1
    # what is verified, and how, is not part of the question
    assert key(Case(id="a", prompt="a?", target="x", tags=("t",), reference="r", timeout_secs=1)) == key()


def test_a_longer_run_of_the_same_questions_owes_only_what_is_new() -> None:
    short, long = (list(planned_attempts(info(samples=count, seed=7), [A, B], {"m": LIVE})) for count in (2, 5))
    assert places(outstanding_attempts(long, {attempt.key for attempt in short})) == [
        (number, case, "m") for number in (3, 4, 5) for case in ("a", "b")
    ]
