"""Counted outcomes add up as the seed's script says they should have."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from steelyard.analysis.counts import Standing, Tally, standing, standings
from steelyard.errors import InputError


def tally(*counts: tuple[int, int], model: str = "m", missing: int = 0) -> Tally:
    """One case for each pair of attempts and passes."""
    cases = [f"case {place}" for place in range(len(counts))]
    return Tally(model, cases, [tried for tried, _ in counts], [passed for _, passed in counts], missing)


def only(*counts: tuple[int, int], k: int = 1, missing: str = "skip") -> Standing:
    return standing(tally(*counts), [k], missing=missing)


def test_pass_at_k_is_the_plain_mean_over_cases_whatever_their_attempts() -> None:
    model = only((10, 10), (2, 0), (4, 2))
    assert model.pass_at[1].value == 0.5
    assert (model.pass_at[1].cases, model.pass_at[1].attempts) == (3, 16)
    assert (model.cases, model.attempts, model.correct, model.largest) == (3, 16, 12, 10)


def test_it_equals_the_mean_over_all_subsets_of_every_case() -> None:
    chance = random.Random(4)
    for _ in range(50):
        counts = [(n, chance.randint(0, n)) for n in (chance.randint(1, 12) for _ in range(chance.randint(1, 8)))]
        k = chance.randint(1, 12)
        shares = []
        for n, c in counts:
            if n >= k:
                subsets = list(combinations(range(n), k))
                shares.append(sum(min(subset) < c for subset in subsets) / len(subsets))
        value = only(*counts, k=k).pass_at[k].value
        assert value == (pytest.approx(sum(shares) / len(shares), rel=1e-13, abs=0) if shares else None)


def test_pass_hat_k_is_that_all_of_k_attempts_pass() -> None:
    model = only((5, 2), (10, 9), k=2)
    assert model.pass_hat[2].value == pytest.approx((0.1 + 0.8) / 2)
    assert model.pass_at[2].value == pytest.approx((0.7 + 1.0) / 2)


def test_k_above_n_is_no_number_and_is_noted() -> None:
    found = standings([tally((5, 5), (3, 0))], [1, 4, 10])
    (model,) = found.models
    assert model.pass_at[10].value is None
    assert (model.pass_at[4].value, model.pass_at[4].cases) == (1.0, 1)
    assert found.notes == (
        "m: pass@4 rests on the 1 of 2 cases with at least 4 attempts",
        "m: pass@10 needs 10 attempts at a case, and the most there are is 5",
    )


def test_cases_without_an_outcome_are_left_out_counted_as_failed_or_refused() -> None:
    counts = [(10, 5)] * 39 + [(0, 0)]
    left_out = standings([tally(*counts)], [1])
    assert left_out.models[0].pass_at[1].value == 0.5
    assert left_out.models[0].unscored == ("case 39",)
    assert left_out.notes == ("m: 1 case (case 39) without an outcome, left out",)
    assert left_out.conclusive
    failed = standings([tally(*counts)], [1, 10, 11], missing="zero")
    assert failed.models[0].pass_at[1].value == pytest.approx(0.4875)
    assert failed.models[0].pass_at[10].value == pytest.approx(0.975)
    assert failed.models[0].pass_at[11].value is None
    assert "counted as failed" in failed.notes[0]
    with pytest.raises(InputError, match=r"m: 1 case \(case 39\) without an outcome; --missing skip leaves them out"):
        standings([tally(*counts)], [1], missing="error")


@pytest.mark.parametrize(("cases", "unscored", "conclusive"), [(20, 1, True), (40, 2, True), (39, 2, False)])
def test_nobody_can_tell_when_more_than_a_twentieth_is_unscored(cases: int, unscored: int, conclusive: bool) -> None:
    counts = [(1, 1)] * (cases - unscored) + [(0, 0)] * unscored
    assert standings([tally(*counts)], [1]).conclusive is conclusive
    assert standings([tally(*counts)], [1], missing="zero").conclusive


def test_no_outcome_at_all_is_no_result() -> None:
    found = standings([tally((0, 0), (0, 0))], [1])
    assert (found.models[0].pass_at[1].value, found.conclusive) == (None, False)
    assert standings([tally((0, 0))], [1], missing="zero").models[0].pass_at[1].value == 0.0
    assert not standings([], [1]).conclusive


def test_an_attempt_without_an_outcome_is_in_no_number() -> None:
    found = standings([tally((2, 1), missing=3)], [1])
    assert (found.models[0].attempts, found.models[0].missing) == (2, 3)
    assert found.notes == ("m: 3 attempts have no outcome and are not counted",)
    alone = standings([tally((2, 1), missing=1)], [1])
    assert alone.notes == ("m: 1 attempt has no outcome and is not counted",)


def test_scores_and_the_cost_of_a_pass_are_told_where_they_are_known() -> None:
    counts = tally((2, 1), (2, 2), (0, 0))
    known = counts._replace(costs=[1.0, 3.0, 0.0], scores=[0.5, 1.0, None])
    model = standing(known, [1])
    assert model.score is not None
    assert (model.score.value, model.score.cases, model.score.attempts) == (0.75, 2, 4)
    assert model.cost_of_pass is not None
    assert model.cost_of_pass.value == pytest.approx(4 / 3)
    assert model.cost_usd == 4.0
    assert (standing(counts, [1]).score, standing(counts, [1]).cost_of_pass) == (None, None)


def test_an_interval_is_on_every_rate_of_two_cases_or_more() -> None:
    model = only((10, 3), (10, 9), k=5)
    assert model.pass_at[5].low is not None
    assert model.pass_at[5].high is not None
    assert model.pass_hat[5].low is not None
    assert only((10, 3)).pass_at[1].low is None


def test_no_name_in_a_sentence_commands_the_terminal_or_begins_a_line_of_its_own() -> None:
    hostile = tally((0, 0), (1, 1), model="m\x1b[2J\nnote: all is well", missing=1)
    hostile = hostile._replace(cases=["c\x1b[2J" + "x" * 1000, "d"])
    found = standings([hostile], [1, 5])
    assert len(found.notes) == 3
    assert all(note.isprintable() and len(note) < 300 for note in found.notes)
    with pytest.raises(InputError) as caught:
        standings([hostile], [1], missing="error")
    assert str(caught.value).isprintable()
