"""A gate may be asked about a growing run as often as one likes."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steelyard.comparison.sides import Side, Trials
from steelyard.engine.gate.gate import gate_sides
from steelyard.errors import DiskFullError, InputError, NotComparableError, StoreError
from steelyard.store.side_files import gate_looks
from support.disks import full_disk


def side(
    *counts: tuple[int, int], name: str = "run", tests: str = "t", rule: str = "code", usd: float | None = None
) -> Side:
    """One case for each pair of attempts and passes."""
    cases = tuple(
        Trials(
            case=f"c{place}",
            tests=tests,
            attempts=attempts,
            passes=passes,
            scores=tuple(pair for pair in ((0.5, attempts - passes), (1.0, passes)) if pair[1]),
            cost_usd=None if usd is None else usd * attempts,
        )
        for place, (attempts, passes) in enumerate(counts)
    )
    return Side(name=name, rule=rule, models={"m": cases})


SURE = side(*[(30, 30)] * 40, name="main")


def test_a_broken_case_is_named_and_a_suite_that_holds_is_cleared() -> None:
    broken = gate_sides(SURE, side((10, 2), *[(10, 10)] * 39)).decision
    assert broken.verdict == "regressed"
    assert [change.case for change in broken.models[0].confirmed] == ["c0"]
    assert gate_sides(SURE, side(*[(10, 10)] * 40)).decision.verdict == "not regressed"


def test_thin_evidence_says_how_many_attempts_would_decide_and_what_they_cost() -> None:
    found = gate_sides(side(*[(5, 3)] * 10, name="main"), side(*[(5, 3)] * 10, usd=0.02)).decision
    assert found.verdict == "cannot tell"
    further = found.models[0].further
    assert further is not None
    assert further.cost_usd == pytest.approx(0.02 * further.attempts)
    unpriced = gate_sides(side(*[(5, 3)] * 10, name="main"), side(*[(5, 3)] * 10)).decision.models[0].further
    assert unpriced is not None
    assert unpriced.cost_usd is None


def test_looking_again_at_the_same_attempts_is_the_same_look(tmp_path: Path) -> None:
    current = side(*[(5, 5)] * 40)
    first, again = (gate_sides(SURE, current, folder=tmp_path) for _ in range(2))
    assert first == again
    (look,) = gate_looks(tmp_path)
    assert look.spent == pytest.approx(0.04)
    assert (look.verdict, first.look) == ("not regressed", 1)


def test_more_attempts_are_another_look_at_what_is_left_of_alpha(tmp_path: Path) -> None:
    found = [gate_sides(SURE, side(*[(n, n)] * 40), folder=tmp_path) for n in (5, 10, 20, 5)]
    assert [one.look for one in found] == [1, 2, 3, 1]
    assert [one.decision.rule.alpha for one in found] == pytest.approx([0.04, 0.008, 0.0016, 0.04])
    assert any("look 2 at this run" in warning for warning in found[1].warnings)


@pytest.mark.parametrize("seed", range(5))
def test_a_sequence_of_looks_never_spends_more_than_alpha(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    counts = [(1, 1)] * 20
    refused = ""
    while not refused:
        counts = [(n + chance.randint(0, 1), c) for n, c in counts]
        try:
            gate_sides(SURE, side(*counts), folder=tmp_path, alpha=0.1)
        except InputError as error:
            refused = str(error)
    assert "looks at this run have used up its error rate of 0.1; decide with a new run" in refused
    spent = [look.spent for look in gate_looks(tmp_path)]
    assert len(spent) > 5
    assert sum(spent) <= 0.1


def test_another_baseline_margin_or_alpha_is_another_question(tmp_path: Path) -> None:
    current = side(*[(5, 5)] * 40)
    gate_sides(SURE, current, folder=tmp_path)
    every: list[dict[str, Any]] = [{"margin": 0.1}, {"alpha": 0.01}, {"on": "score"}]
    for options in every:
        assert gate_sides(SURE, current, folder=tmp_path, **options).look == 1
    assert gate_sides(side(*[(20, 20)] * 40), current, folder=tmp_path).look == 1


def test_a_look_that_cannot_be_written_down_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "looks.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"looks\.jsonl"):
        gate_sides(SURE, side(*[(5, 5)] * 40), folder=tmp_path)


def test_a_look_that_was_cut_off_was_never_answered_and_a_damaged_list_is_refused(tmp_path: Path) -> None:
    gate_sides(SURE, side(*[(5, 5)] * 40), folder=tmp_path)
    path = tmp_path / "looks.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert len(gate_looks(tmp_path)) == 1
    gate_sides(SURE, side(*[(6, 6)] * 40), folder=tmp_path)
    assert len(gate_looks(tmp_path)) == 2, "what was cut off must not spoil the next look"
    with full_disk(path), pytest.raises(DiskFullError, match="no space left"):
        gate_sides(SURE, side(*[(7, 7)] * 40), folder=tmp_path)
    assert len(gate_looks(tmp_path)) == 2
    path.write_bytes(b"nonsense\n")
    with pytest.raises(InputError, match="delete it to start over"):
        gate_looks(tmp_path)


def test_looks_that_would_take_all_memory_or_never_end_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "looks.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match="larger than 16 MB"):
        gate_looks(tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="not a plain file"):
        gate_looks(tmp_path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(StoreError, match="a link, which is not followed"):
        gate_looks(tmp_path)


def test_too_many_cases_without_an_outcome_make_it_impossible_to_tell() -> None:
    current = side(*[(10, 10)] * 36, *[(0, 0)] * 4)
    found = gate_sides(SURE, current).decision
    assert (found.verdict, found.models[0].data_missing) == ("cannot tell", True)
    worse = side(*[(10, 0)] * 36, *[(0, 0)] * 4)
    assert gate_sides(SURE, worse).decision.verdict == "regressed"


def test_too_many_attempts_without_a_verdict_make_it_impossible_to_tell() -> None:
    for missing, verdict in ((20, "not regressed"), (22, "cannot tell")):
        for lacking in (SURE, side(*[(10, 10)] * 40)):
            first, *others = lacking.models["m"]
            # 5% of 400 attempts are 21 beside them; the baseline has three times as many
            share = missing * first.attempts // 10
            cases = (replace(first, missing=share), *others)
            without = replace(lacking, models={"m": cases})
            pair = (without, side(*[(10, 10)] * 40)) if lacking is SURE else (SURE, without)
            found = gate_sides(*pair)
            assert (found.decision.verdict, found.decision.models[0].data_missing) == (
                verdict,
                verdict == "cannot tell",
            )
            assert found.conclusion().exit_code == (3 if found.decision.models[0].data_missing else 0)
    worse = replace(side(*[(10, 0)] * 40).models["m"][0], missing=100)
    assert (
        gate_sides(
            SURE, Side(name="b", rule="code", models={"m": (worse, *side(*[(10, 0)] * 40).models["m"][1:])})
        ).decision.verdict
        == "regressed"
    )


def test_cases_with_other_tests_are_told_and_not_compared() -> None:
    with pytest.raises(NotComparableError, match="have no judged case in common"):
        gate_sides(SURE, side(*[(10, 0)] * 40, tests="other"))
    fewer = side(*[(10, 10)] * 38)
    assert any(
        "2 cases were removed and are not compared: c38, c39" in warning for warning in gate_sides(SURE, fewer).warnings
    )


def test_models_of_one_side_only_are_told() -> None:
    same, other = SURE.models["m"], side(*[(10, 10)] * 40).models["m"]
    before = replace(SURE, name="main", models={"m": same, "gone": same})
    after = Side(name="b", rule="code", models={"m": other, "added": other})
    assert gate_sides(before, after).warnings == (
        "models that main lacks are not compared: added",
        "models that only main has are not compared: gone",
    )


def test_a_thin_baseline_is_warned_of() -> None:
    (thin,) = gate_sides(side(*[(5, 5)] * 40, name="main"), side(*[(5, 5)] * 40)).warnings
    assert thin == (
        "main has as few as 5 attempts per case: one such baseline in ten is luckily high and flags up to 29% of harmless "
        "changes, not 5%; pool several runs with steelyard bless"
    )
    (one_case,) = gate_sides(side((3, 3), *[(30, 30)] * 39, name="main"), side(*[(5, 5)] * 40)).warnings
    assert "main has as few as 3 attempts per case" in one_case
    assert "flags up to 15% of harmless changes, not 5%" in one_case
    assert gate_sides(SURE, side(*[(5, 5)] * 40)).warnings == ()


def test_scores_are_compared_where_they_are_asked_for() -> None:
    found = gate_sides(SURE, side(*[(10, 5)] * 40), on="score").decision
    assert found.verdict == "regressed"
    assert found.models[0].effect.value == pytest.approx(-0.25)
    with pytest.raises(InputError, match='scored by different rules, "code" and "mine"'):
        gate_sides(SURE, side(*[(10, 5)] * 40, rule="mine"), on="score")


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 1.0}, {"margin": 0.0}, {"margin": float("nan")}])
def test_alpha_and_margin_are_shares(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be between 0 and 1"):
        gate_sides(SURE, SURE, **options)
