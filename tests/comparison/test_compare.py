"""The plain rule is literal, symmetric, and says how much of it is noise."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import msgspec
import pytest

from steelyard.comparison.sides import Side, Trials
from steelyard.comparison.threshold import SuiteChange, ThresholdComparison, compare
from steelyard.engine.results.conclusion import comparison_exit_code
from steelyard.errors import ExitCode, InputError
from steelyard.reports.comparison import COMPARISON_FORMATS
from steelyard.stats.paired import PairedCaseCounts, PairedCaseScores, difference_interval
from steelyard.stats.power import expected_flags
from steelyard.text import INVISIBLE_CHARACTER_PATTERN


def trials(case: str, *scores: float, tests: str = "t") -> Trials:
    """One attempt for every score."""
    counted = tuple((score, scores.count(score)) for score in sorted(set(scores)))
    return Trials(case=case, tests=tests, attempts=len(scores), passes=scores.count(1.0), scores=counted)


def side(*cases: Trials, name: str = "run", rule: str = "code", **models: tuple[Trials, ...]) -> Side:
    return Side(name=name, rule=rule, models=models or {"m": cases})


def names(changes: Any) -> list[tuple[str, str]]:
    return [(change.case_id, change.model) for change in changes]


def test_a_drop_of_more_than_the_threshold_is_a_regression_and_a_rise_an_improvement() -> None:
    before = side(trials("down", 1.0), trials("up", 0.2), trials("same", 0.5))
    after = side(trials("down", 0.9), trials("up", 0.4), trials("same", 0.52))
    found = compare(before, after)
    assert [(change.case_id, round(change.delta, 9)) for change in found.regressions] == [("down", -0.1)]
    assert [(change.case_id, round(change.delta, 9)) for change in found.improvements] == [("up", 0.2)]
    assert (found.unchanged, found.compared) == (1, 3)


@pytest.mark.parametrize(("before", "after"), [(1.0, 0.95), (0.95, 0.9), (0.9, 0.85), (0.3, 0.25), (0.95, 1.0)])
def test_a_change_of_exactly_the_threshold_is_none(before: float, after: float) -> None:
    found = compare(side(trials("a", before)), side(trials("a", after)))
    assert (found.regressions, found.improvements, found.unchanged) == ((), (), 1)


def test_the_mean_over_attempts_decides_and_not_the_best_of_them() -> None:
    found = compare(side(trials("a", *[1.0] * 10)), side(trials("a", 1.0, *[0.0] * 9)))
    assert found.regressions[0].current_score == pytest.approx(0.1)


def test_cases_on_one_side_and_cases_with_other_tests_are_listed_and_not_compared() -> None:
    before = side(trials("gone", 1.0), trials("rewritten", 1.0, tests="old"), trials("silent", 1.0))
    after = side(trials("fresh", 0.0), trials("rewritten", 0.0, tests="new"), trials("silent"))
    found = compare(before, after)
    assert (found.new_cases, found.removed_cases) == (("fresh",), ("gone",))
    assert (found.tests_changed, found.unscored) == (("rewritten",), ("silent",))
    assert (found.regressions, found.compared, found.expected_regressions) == ((), 0, 0.0)
    assert comparison_exit_code(found, fail_on_regression=False) == ExitCode.CANNOT_TELL


def test_a_report_that_names_no_tests_pairs_by_id() -> None:
    found = compare(side(trials("a", 1.0, tests="")), side(trials("a", 0.0)))
    assert names(found.regressions) == [("a", "m")]


def test_models_pair_by_name_or_as_they_are_where_each_side_has_one() -> None:
    one, other = (trials("a", 1.0),), (trials("a", 0.0),)
    alone = compare(side(old=one), side(new=other))
    assert names(alone.regressions) == [("a", "old -> new")]
    several = compare(side(m=one, gone=one), side(m=other, fresh=one))
    assert names(several.regressions) == [("a", "m")]
    assert (several.new_models, several.removed_models) == (("fresh",), ("gone",))
    with pytest.raises(InputError, match="share no model: a, b against c, d; name one of each"):
        compare(side(a=one, b=one), side(c=one, d=one))


def test_scores_of_different_rules_are_not_compared() -> None:
    with pytest.raises(InputError, match='is scored by rule "code" and run by "mine"; name one with --rule'):
        compare(side(trials("a", 1.0)), side(trials("a", 1.0), rule="mine"))


@pytest.mark.parametrize("threshold", [-0.1, 1.0, float("nan")])
def test_a_threshold_is_a_share(threshold: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        compare(side(trials("a", 1.0)), side(trials("a", 1.0)), threshold=threshold)


def random_side(seed: int, name: str) -> Side:
    chance = random.Random(seed)
    models = {
        model: tuple(
            trials(f"c{number}", *(chance.choice([0, 0.4, 0.75, 1.0]) for _ in range(chance.randint(0, 6))))
            for number in chance.sample(range(12), 10)
        )
        for model in "mn"
    }
    return Side(name=name, rule="code", models=models)


@pytest.mark.parametrize("seed", range(10))
def test_swapping_the_sides_negates_the_deltas_and_swaps_the_lists(seed: int) -> None:
    one, other = random_side(seed, "one"), random_side(seed + 100, "other")
    there, back = compare(one, other), compare(other, one)
    assert names(there.regressions) == names(back.improvements)
    assert [change.delta for change in there.regressions] == [-change.delta for change in back.improvements]
    assert (there.new_cases, there.removed_cases) == (back.removed_cases, back.new_cases)
    assert there.unchanged == back.unchanged


def test_the_order_of_cases_and_models_changes_no_byte() -> None:
    one, other = random_side(1, "one"), random_side(2, "other")

    def shuffled(given: Side) -> Side:
        chance = random.Random(3)
        models = {name: tuple(chance.sample(cases, len(cases))) for name, cases in reversed(given.models.items())}
        return msgspec.structs.replace(given, models=models)

    for form in COMPARISON_FORMATS.values():
        assert form(compare(one, other)) == form(compare(shuffled(one), shuffled(other)))


def test_a_program_gets_the_keys_of_the_format() -> None:
    told = json.loads(COMPARISON_FORMATS["json"](compare(side(trials("a", 1.0)), side(trials("a", 0.0)))))
    assert told["regressions"] == [
        {"case_id": "a", "model": "m", "baseline_score": 1.0, "current_score": 0.0, "delta": -1.0}
    ]
    assert (told["improvements"], told["unchanged"], told["new_cases"], told["removed_cases"]) == ([], 0, 0, 0)
    other = json.loads(
        COMPARISON_FORMATS["json"](compare(side(trials("a", 1.0), trials("old", 1.0)), side(trials("a", 1.0))))
    )
    assert (other["removed_cases"], other["removed_case_ids"], other["new_case_ids"]) == (1, ["old"], [])


def reviewed() -> ThresholdComparison:
    hostile = "=1+1 <b>|`\x1b]0;x\x07@octocat"
    before = side(
        trials("merge", 1.0, 1.0), trials(hostile, 0.5), trials("same", 1.0), trials("gone", 1.0), name="main"
    )
    after = side(
        trials("merge", 1.0, 0.0), trials(hostile, 0.9), trials("same", 1.0), trials("fresh", 1.0), name="pull"
    )
    return compare(before, after)


def test_a_comparison_reads_as_reviewed() -> None:
    assert COMPARISON_FORMATS["text"](reviewed()).splitlines() == [
        "main -> pull",
        "",
        "1 regression, 1 improvement, 1 unchanged of 3 cases, by more than 0.05 of the mean score under rule code",
        "noise alone would raise 0.8 such regressions if nothing had changed: the threshold is not a statistical test",
        "",
        "Regressions",
        "  merge                                   1.000 -> 0.500  -0.500  m",
        "",
        "Improvements",
        "  =1+1 <b>|`⟨U+001B⟩]0;x⟨U+0007⟩@octocat  0.500 -> 0.900  +0.400  m",
        "",
        "New cases",
        "  fresh",
        "",
        "Removed cases",
        "  gone",
    ]
    assert "| `merge` | `m` | 1.000 | 0.500 | -0.500 |" in COMPARISON_FORMATS["markdown"](reviewed())
    for form in COMPARISON_FORMATS.values():
        assert INVISIBLE_CHARACTER_PATTERN.search(form(reviewed()).replace("@\u200b", "@")) is None


def test_noise_of_graded_scores_is_that_of_all_draws() -> None:
    scores = PairedCaseScores((0.4, 1.0, 1.0), (0.75, 1.0))
    weights = {0.0: 0.5, 0.4: 1.0, 0.75: 1.0, 1.0: 3.5}
    total = sum(weights.values())
    expected = 0.0
    for drawn in product(weights.items(), repeat=5):
        chance = 1.0
        for _, weight in drawn:
            chance *= weight / total
        before, after = sum(score for score, _ in drawn[:3]) / 3, sum(score for score, _ in drawn[3:]) / 2
        expected += chance * (before - after > 0.05 + 1e-9)
    assert expected_flags([scores], 0.05) == pytest.approx(expected, abs=1e-12)


def test_the_noise_that_is_told_is_the_noise_there_is() -> None:
    chance = random.Random(5)
    flags = expected = 0.0
    for _ in range(60):
        rates = [chance.betavariate(0.5, 0.5) for _ in range(40)]
        drawn = [[sum(chance.random() < rate for _ in range(5)) for rate in rates] for _ in range(2)]
        cases = [PairedCaseCounts(5, old, 5, new) for old, new in zip(*drawn, strict=True)]
        flags += sum((old - new) / 5 > 0.05 for old, new in zip(*drawn, strict=True))
        expected += expected_flags(cases, 0.05)
    # half an observation at each end makes it a little more than there is
    assert flags <= expected <= 1.4 * flags


def classed(case: str, suite: str, **classes: int) -> Trials:
    """Attempts of each class; those of `passes` are right."""
    counted = tuple((("pass" if name == "passes" else name), count) for name, count in classes.items())
    attempts, passes = sum(classes.values()), classes.get("passes", 0)
    scores = tuple((score, count) for score, count in ((0.0, attempts - passes), (1.0, passes)) if count)
    return Trials(case=case, attempts=attempts, passes=passes, scores=scores, suite=suite, classes=counted)


BEFORE = side(
    *(classed(f"i{number}", "injection", passes=2) for number in range(10)),
    *(classed(f"j{number}", "json_api", passes=1, wrong_format=1) for number in range(4)),
    name="main",
)
AFTER = side(
    *(classed(f"i{number}", "injection", **({"passes": 2} if number else {"refusal": 2})) for number in range(10)),
    *(classed(f"j{number}", "json_api", passes=1, fail=1) for number in range(4)),
    name="pull",
)


def test_a_suite_changes_by_the_mean_over_its_cases_and_all_suites_count_once() -> None:
    found = compare(BEFORE, AFTER)
    injection, json_api = found.suites
    assert (injection.suite, injection.cases, json_api.suite, json_api.cases) == ("injection", 10, "json_api", 4)
    assert (injection.baseline_score, injection.current_score) == (1.0, 0.9)
    assert injection.delta == pytest.approx(-0.1)
    assert (json_api.baseline_score, json_api.current_score, json_api.delta) == (0.5, 0.5, 0.0)
    (overall,) = found.overall
    assert (overall.model, overall.suites) == ("m", 2)
    assert overall.delta == pytest.approx(-0.05)
    assert (overall.baseline_score, overall.current_score) == pytest.approx((0.75, 0.7))


def test_the_interval_of_a_suite_is_that_of_paired_differences_over_cases() -> None:
    found = compare(BEFORE, AFTER)
    interval = difference_interval([1.0] * 10, [0.0] + [1.0] * 9, attempts=2)
    assert (found.suites[0].low, found.suites[0].high) == pytest.approx(interval)
    (overall,) = found.overall
    assert overall.low is not None
    assert overall.high is not None
    assert overall.low < overall.delta < overall.high
    # two suites together say more than the smaller one alone
    assert overall.high - overall.low < (found.suites[1].high or 0) - (found.suites[1].low or 0)


def test_a_suite_of_one_case_has_a_change_and_no_interval() -> None:
    found = compare(side(classed("a", "s", passes=1)), side(classed("a", "s", fail=1)))
    assert (found.suites[0].delta, found.suites[0].low, found.suites[0].high) == (-1.0, None, None)
    assert (found.overall[0].delta, found.overall[0].low) == (-1.0, None)


def test_a_graded_score_does_not_move_a_suite_but_a_pass_does() -> None:
    half = msgspec.structs.replace(classed("a", "s", fail=1), scores=((0.5, 1),))
    assert compare(side(half), side(classed("a", "s", fail=1))).suites[0].delta == 0.0


def test_a_suite_is_known_when_one_side_knows_it_and_nothing_moves_where_a_side_does_not_tell_classes() -> None:
    old = side(*(msgspec.structs.replace(each, suite="", classes=()) for each in BEFORE.models["m"]), name="main")
    found = compare(old, AFTER)
    assert [each.suite for each in found.suites] == ["injection", "json_api"]
    assert found.suites[0].baseline_classes == {}
    assert "refusal" not in COMPARISON_FORMATS["text"](found)
    # one case that does not tell keeps the others from telling half of the truth
    silent = msgspec.structs.replace(BEFORE.models["m"][0], classes=())
    assert compare(side(silent, *BEFORE.models["m"][1:]), AFTER).suites[0].baseline_classes == {}


def test_cases_without_attempts_on_a_side_are_in_no_suite() -> None:
    empty = Trials(case="i0", attempts=0, passes=0, suite="injection")
    found = compare(side(empty, classed("i1", "injection", passes=1)), side(*AFTER.models["m"]))
    assert [(each.suite, each.cases) for each in found.suites] == [("injection", 1)]


def test_suites_read_as_reviewed() -> None:
    assert COMPARISON_FORMATS["text"](compare(BEFORE, AFTER)).splitlines()[4:10] == [
        "",
        "Suites",
        "  injection  1.000 -> 0.900  -0.100 [-0.302, +0.135]  m  refusal 0 -> 2",
        "  json_api   0.500 -> 0.500  +0.000 [-0.303, +0.303]  m  wrong_format 4 -> 0, fail 0 -> 4",
        "  overall    0.750 -> 0.700  -0.050 [-0.199, +0.109]  m",
        "",
    ]
    shown = COMPARISON_FORMATS["markdown"](compare(BEFORE, AFTER))
    assert "| `injection` | `m` | 1.000 → 0.900 | -0.100 [-0.302, +0.135] | refusal 0 → 2 |" in shown
    assert "| **overall** | `m` | 0.750 → 0.700 |" in shown


def test_counts_come_with_their_attempts_where_these_differ() -> None:
    more = side(*(classed(f"i{number}", "injection", passes=3, refusal=1) for number in range(10)))
    assert "refusal 0/20 -> 10/40" in COMPARISON_FORMATS["text"](compare(BEFORE, more))
    twice = side(*(classed(f"j{number}", "json_api", passes=2, wrong_format=2) for number in range(4)))
    assert "wrong_format" not in COMPARISON_FORMATS["text"](compare(BEFORE, twice))


def test_a_program_gets_suites_with_their_classes_and_the_overall_change() -> None:
    told = json.loads(COMPARISON_FORMATS["json"](compare(BEFORE, AFTER)))
    assert told["suites"][0]["current_classes"] == {"pass": 18, "refusal": 2}
    assert told["suites"][0]["baseline_classes"] == {"pass": 20}
    assert set(told["suites"][0]) == set(SuiteChange.__struct_fields__)
    assert told["overall"][0]["delta"] == pytest.approx(-0.05)


def test_without_suites_no_format_mentions_them() -> None:
    for form in COMPARISON_FORMATS.values():
        assert "uites" not in form(reviewed())
        assert "overall" not in form(reviewed())


def test_every_model_has_its_suites_and_the_order_of_cases_changes_no_byte() -> None:
    before = side(n=BEFORE.models["m"], m=BEFORE.models["m"])
    after = side(m=AFTER.models["m"][::-1], n=AFTER.models["m"])
    found = compare(before, after)
    assert [(each.model, each.suite) for each in found.suites] == [
        ("m", "injection"),
        ("m", "json_api"),
        ("n", "injection"),
        ("n", "json_api"),
    ]
    assert [each.model for each in found.overall] == ["m", "n"]
    again = compare(
        side(m=BEFORE.models["m"][::-1], n=BEFORE.models["m"]), side(n=AFTER.models["m"], m=AFTER.models["m"])
    )
    for form in COMPARISON_FORMATS.values():
        assert form(found) == form(again)


def test_a_hostile_suite_commands_nothing() -> None:
    hostile = "=1+1 <b>|`\x1b]0;x\x07@octocat"
    found = compare(side(classed("a", hostile, passes=1)), side(classed("a", hostile, **{hostile: 1})))
    for form in COMPARISON_FORMATS.values():
        assert INVISIBLE_CHARACTER_PATTERN.search(form(found).replace("@\u200b", "@")) is None
    # what stands in a code span is seen as it is
    assert "<b>" not in COMPARISON_FORMATS["markdown"](found).replace("``=1+1 <b>", "")
