"""The watch of a history sees what got worse, and raises a false alarm at most as often as it says."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from steelyard.comparison.history import HistoryEntry, HistoryWatch, watch_history
from steelyard.comparison.sides import Trials
from steelyard.stats.drift import drift_evidence
from steelyard.stats.paired import PairedCaseCounts, stratified_worse
from steelyard.stats.special import normal_cdf


def history(
    rates_by_run: list[list[float]], *, attempts: int = 5, seed: int = 1, model: str = "m"
) -> list[HistoryEntry]:
    chance = np.random.default_rng(seed)
    return [
        HistoryEntry(
            run=f"run-{number}",
            at=f"2026-01-{number:02}T00:00:00Z",
            runs=(f"run-{number}",),
            models={
                model: tuple(
                    Trials(case=f"c{place}", attempts=attempts, passes=int(passes))
                    for place, passes in enumerate(chance.binomial(attempts, rates))
                )
            },
        )
        for number, rates in enumerate(rates_by_run, 1)
    ]


def steady(runs: int, *, cases: int = 20, drop: float = 0.0, since: int = 0, slope: float = 0.0) -> list[list[float]]:
    rates = [0.2 + 0.7 * place / cases for place in range(cases)]
    falls = [drop * (since and number >= since) + slope * (number - 1) for number in range(1, runs + 1)]
    return [[max(0.0, rate - fall) for rate in rates] for fall in falls]


def watched(entries: list[HistoryEntry], alpha: float = 0.05) -> HistoryWatch:
    return watch_history("main", entries, alpha=alpha)


def test_a_step_is_found_and_dated() -> None:
    found = watched(history(steady(16, drop=0.2, since=9)))
    (alarm,) = found.models[0].alarms
    assert found.verdict == "got worse"
    assert alarm.shape == "change"
    assert 8 <= alarm.since <= 10
    assert 9 <= alarm.number <= 12
    assert alarm.effect.value == pytest.approx(-0.2, abs=0.08)
    assert alarm.cases


def test_a_slow_drift_that_no_single_run_shows_is_found_as_one() -> None:
    found = watched(history(steady(30, slope=0.01)))
    worse = [alarm for alarm in found.models[0].alarms if alarm.direction == "worse"]
    assert [alarm.shape for alarm in worse] == ["drift"]
    assert worse[0].per_run == pytest.approx(-0.01, abs=0.004)
    assert min(run.p_worse or 1 for run in found.models[0].runs[: worse[0].number - 1]) > 1e-4


def test_what_got_better_is_said_and_fails_nothing() -> None:
    found = watched(history(list(reversed(steady(16, drop=0.2, since=9)))))
    assert [alarm.direction for alarm in found.models[0].alarms] == ["better"]
    assert found.verdict == "no drift seen"


@pytest.mark.parametrize("attempts", [1, 5])
def test_lives_in_which_nothing_changes_end_in_an_alarm_at_most_as_often_as_promised(attempts: int) -> None:
    # at a level of 20% a hundred short lives tell more than at 5%
    lives, alarms = 100, 0
    for seed in range(lives):
        chance = np.random.default_rng(seed)
        passes = chance.binomial(attempts, np.repeat([[0.1, 0.5, 0.9, 0.97]], 25, axis=0)).tolist()
        totals, p_values = passes[0], []
        for number, run in enumerate(passes[1:], 1):
            pairs = zip(totals, run, strict=True)
            p_values.append(stratified_worse(PairedCaseCounts(attempts * number, c, attempts, d) for c, d in pairs))
            totals = [c + d for c, d in zip(totals, run, strict=True)]
        alarms += max(drift_evidence(p_values)) >= 5
    # 0.2 * 100 and three standard errors
    assert alarms <= 20 + 12


def test_evidence_is_a_fair_game_for_uniform_p_values() -> None:
    scores = np.arange(-8, 14, 0.02)
    density = [NormalDist().pdf(score) * 0.02 for score in scores]
    after_one = [drift_evidence([normal_cdf(-score)])[0] for score in scores]
    assert np.dot(density, after_one) == pytest.approx(1, abs=1e-3)
    after_two = [drift_evidence([0.3, normal_cdf(-score)])[1] for score in scores]
    assert np.dot(density, after_two) == pytest.approx(drift_evidence([0.3])[0], abs=1e-3)


def test_a_case_whose_tests_changed_begins_anew() -> None:
    before, after = history([[0.99] * 20] * 4), history([[0.3] * 20] * 4, seed=2)
    changed = [
        HistoryEntry(
            run=f"later-{entry.run}",
            models={
                "m": tuple(
                    Trials(case=each.case, tests="other", attempts=each.attempts, passes=each.passes)
                    for each in entry.models["m"]
                )
            },
        )
        for entry in after
    ]
    assert watched([*before, *after]).verdict == "got worse"
    found = watched([*before, *changed])
    assert found.verdict == "no drift seen"
    assert found.models[0].runs[4].compared_cases == 0


def test_models_share_the_error_rate_and_leave_some_for_those_to_come() -> None:
    first, later = history(steady(3)), history(steady(3), model="late", seed=4)
    found = watched([*first, *later])
    assert {model.model: model.level for model in found.models} == pytest.approx({"m": 0.04, "late": 0.008})
    assert sum(model.level for model in found.models) < found.alpha


def test_replies_that_two_runs_share_count_once() -> None:
    entries = history(steady(2))
    again = HistoryEntry(
        run="cached",
        runs=("cached",),
        models={
            "m": tuple(
                Trials(case=each.case, attempts=each.attempts, passes=each.passes, cached_from=("run-2",))
                for each in entries[1].models["m"]
            )
        },
    )
    found = watched([*entries, again])
    assert found.models[0].runs[2].compared_cases == 0
    assert "reply cache" in found.notes[0]


def test_one_run_is_too_short() -> None:
    assert watched(history(steady(1))).verdict == "too short"
