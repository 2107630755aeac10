"""A plan asks for as many attempts as a gate needs, and says what they cost."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from scipy import stats

from steelyard.cli.main import main
from steelyard.comparison.gate import NOT_REGRESSED, REGRESSED
from steelyard.comparison.power import MAX_PLANNED_ATTEMPTS_PER_CASE, ComparisonPlan, ModelPlan
from steelyard.comparison.sides import Side, Trials
from steelyard.engine.gate.gate import gate_sides
from steelyard.engine.gate.planning import gate_plan, thin_baseline_sentence
from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.providers.prices import Prices
from steelyard.records import Case, Price, Verify
from support.forked import forked
from support.gate_simulation import SIZES, SUITES, Integers, dropped, rates

FREE = Prices({})
PRICED = Prices({"m": Price(input=1.0, output=10.0)})


def cases(number: int, **fields: Any) -> list[Case]:
    return [Case(id=f"c{place:03}", prompt="?", language="python", **fields) for place in range(number)]


def baseline(*counts: tuple[int, int], usd: float | None = None, name: str = "m", **fields: Any) -> Side:
    """One case for each pair of attempts and passes."""
    trials = tuple(
        Trials(
            case=case.id,
            tests=case.tests_digest,
            attempts=attempts,
            passes=passes,
            cost_usd=None if usd is None else usd * attempts,
        )
        for case, (attempts, passes) in zip(cases(len(counts), **fields), counts, strict=True)
    )
    return Side(name="main", rule="code", models={name: trials})


def plan(*counts: tuple[int, int], usd: float | None = None, prices: Prices = FREE, **asked: Any) -> ComparisonPlan:
    return gate_plan(cases(len(counts)), baseline(*counts, usd=usd), prices, **asked)


def only(found: ComparisonPlan) -> ModelPlan:
    (model,) = found.models
    return model


HALF = [(30, 15)] * 60


def test_a_smaller_drop_a_surer_answer_and_fewer_false_alarms_take_more_attempts() -> None:
    def needed(**asked: Any) -> int:
        need = only(plan(*HALF, **asked)).seen
        assert need is not None
        return need.current

    usual = needed(detect=0.08)
    assert needed(detect=0.06) > usual
    assert needed(detect=0.08, power=0.9) > usual
    assert needed(detect=0.08, alpha=0.01) > usual


def test_more_cases_and_more_attempts_of_the_baseline_take_fewer() -> None:
    few, many, pooled = (only(plan(*counts)).seen for counts in ([(60, 30)] * 60, [(60, 30)] * 90, [(200, 100)] * 60))
    assert few is not None
    assert many is not None
    assert pooled is not None
    assert many.current < few.current
    assert pooled.current < few.current


def test_a_thin_baseline_is_said_to_be_and_what_would_do_instead() -> None:
    found = only(plan(*[(10, 5)] * 60))
    assert found.seen is None
    more = found.seen_with_more
    assert more is not None
    assert more.current == more.baseline > 10
    assert more.attempts == 60 * (more.current + more.baseline - 10)
    extended = only(plan(*[(more.baseline, more.baseline // 2)] * 60)).seen
    assert extended is not None
    assert extended.current <= more.current


def test_a_larger_baseline_is_advised_only_where_it_saves_attempts() -> None:
    found = only(plan(*[(200, 100)] * 60))
    assert (found.seen_with_more, found.cleared_with_more) == (None, None)
    thin = only(plan(*[(18, 9)] * 60))
    assert thin.seen is not None
    assert thin.seen_with_more is not None
    assert thin.seen_with_more.attempts < thin.seen.attempts


def test_what_no_number_sees_gets_none() -> None:
    found = only(plan((30, 15), (30, 15), detect=0.01))
    assert (found.seen, found.seen_with_more, found.cleared, found.cleared_with_more) == (None, None, None, None)


def test_the_outlook_tells_of_few_attempts_and_of_many() -> None:
    found = only(plan(*HALF))
    assert [row.current for row in found.outlook] == [1, 3, 5, 10, 20]
    assert [row.attempts for row in found.outlook] == [60, 180, 300, 600, 1200]
    drops = [row.drop for row in found.outlook]
    assert None not in drops
    assert drops == sorted(drops, key=lambda drop: -(drop or 0))
    assert sorted(row.seen for row in found.outlook) == [row.seen for row in found.outlook]
    assert sorted(row.cleared for row in found.outlook) == [row.cleared for row in found.outlook]


def test_the_number_needed_is_the_first_that_is_likely_enough() -> None:
    # a mean drop of the size that 5 attempts just see is one that 5 attempts are planned for
    row = next(row for row in only(plan(*HALF)).outlook if row.current == 5)
    assert row.drop is not None
    need = only(plan(*HALF, detect=row.drop + 1e-4)).seen
    assert need is not None
    assert need.current <= 5
    harder = only(plan(*HALF, detect=row.drop - 0.002)).seen
    assert harder is not None
    assert harder.current > 5


def test_the_level_is_the_one_that_the_gate_leaves_its_first_look() -> None:
    one, *_, twenty = only(plan(*HALF)).outlook
    # with fewer than 3 attempts no case is named, and the suite has all of it
    assert one.level == pytest.approx(0.04)
    assert 0.02 <= twenty.level < 0.025
    two = Side(name="main", rule="code", models=baseline(*HALF).models | baseline(*HALF, name="n").models)
    assert [model.outlook[0].level for model in gate_plan(cases(60), two, FREE).models] == pytest.approx([0.01, 0.01])


def test_critical_cases_take_their_share_of_the_level() -> None:
    def level(*, critical: bool) -> float:
        return only(gate_plan(cases(60, critical=critical), baseline(*HALF), FREE)).outlook[-1].level

    assert level(critical=True) < level(critical=False)


def test_attempts_cost_what_they_cost_in_the_baseline() -> None:
    found = only(plan(*HALF, usd=0.02, prices=PRICED))
    assert found.once.cost_usd == pytest.approx(60 * 0.02)
    assert not found.once.at_most
    assert found.seen is not None
    assert found.seen.cost_usd == pytest.approx(found.seen.attempts * 0.02)
    assert [row.cost_usd for row in found.outlook] == pytest.approx([row.attempts * 0.02 for row in found.outlook])


def test_where_the_baseline_does_not_know_the_price_list_gives_a_bound() -> None:
    found = only(plan(*HALF, prices=PRICED))
    assert found.once.at_most
    # 17 bytes of prompt at $1 and 128,000 tokens of reply at $10 a million
    assert found.once.cost_usd == pytest.approx(60 * (17 * 1.0 + 128_000 * 10.0) / 1e6)


def test_an_unknown_price_is_unknown() -> None:
    found = only(plan(*HALF))
    assert found.once.cost_usd is None
    assert found.seen is not None
    assert found.seen.cost_usd is None


def test_cases_that_cannot_be_compared_are_told_and_not_planned_on() -> None:
    known = baseline(*HALF, (0, 0), (30, 30))
    asked = cases(61)
    asked[0] = Case(id="c000", prompt="?", language="python", verify=Verify(tests="assert False"))
    asked.append(Case(id="fresh", prompt="?", language="python"))
    found = gate_plan(asked, known, FREE)
    assert found.tests_changed == ("c000",)
    assert found.new_cases == ("fresh",)
    assert found.removed_cases == ("c061",)
    assert found.unjudged == ("c060",)
    assert only(found).cases == 59


def test_a_case_whose_tests_nobody_told_pairs_by_its_name() -> None:
    untold = Side(name="old.json", rule="code", models={"m": (Trials(case="c000", attempts=30, passes=15),)})
    assert only(gate_plan(cases(1), untold, FREE, detect=0.4)).cases == 1


def test_each_case_counts_with_its_own_attempts() -> None:
    found = only(plan(*[(30, 15)] * 30, *[(10, 5)] * 30, detect=0.1))
    assert (found.fewest, found.most) == (10, 30)
    thin, rich = (only(plan(*[(n, n // 2)] * 60, detect=0.1)).outlook[3].drop for n in (10, 30))
    drop = found.outlook[3].drop
    assert thin is not None
    assert rich is not None
    assert drop is not None
    assert rich < drop < thin


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"detect": 0.0}, "the drop to detect must be between 0 and 1, not 0"),
        ({"detect": 1.0}, "the drop to detect must be between 0 and 1"),
        ({"power": 1.0}, "the power must be between 0 and 1"),
        ({"alpha": 0.0}, "alpha must be between 0 and 1"),
        ({"detect": 0.6}, r"main: m passes 50\.0% of its attempts, which cannot drop by 0\.6"),
        ({"models": ["mm"]}, r'main: no model "mm" \(known: m; did you mean "m"\?\)'),
    ],
)
def test_nonsense_is_refused_in_one_sentence(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(*HALF, **asked)


def test_a_plan_without_a_case_in_common_is_refused() -> None:
    other = baseline(*HALF, verify=Verify(tests="assert False"))
    with pytest.raises(InputError, match="main: m has no judged attempt at any of these cases by these tests"):
        gate_plan(cases(60), other, FREE)


def test_a_model_may_be_chosen() -> None:
    both = Side(name="main", rule="code", models=baseline(*HALF).models | baseline(*HALF, name="n").models)
    found = gate_plan(cases(60), both, FREE, models=["n"])
    assert only(found).model == "n"
    assert only(found).outlook == only(plan(*HALF)).outlook


EVALS = """
[eval_set]
id = "tiny"
name = "Tiny"
default_language = "python"
[[cases]]
id = "double"
name = "Double"
prompt = "Write double(x)."
[cases.expectations]
test_file = "assert double(2) == 4"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an eval set and a baseline of it."""
    (tmp_path / "evals.toml").write_text(EVALS)
    (case,) = load([tmp_path / "evals.toml"]).cases
    trials = Trials(case="double", tests=case.tests_digest, attempts=30, passes=20, cost_usd=0.3)
    side = Side(name="main", rule="code", models={"openai/gpt-5": (trials,)})
    (tmp_path / "steelyard-baselines").mkdir()
    (tmp_path / "steelyard-baselines" / "main.json").write_bytes(msgspec.json.encode(side))
    return tmp_path


def steelyard(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEELYARD_", "OPENAI_", "CI"))}
    return forked("steelyard", ["plan", *arguments], place, clean)


def test_the_command_plans_without_a_key(place: Path) -> None:
    ran = steelyard(place, "evals.toml", "--baseline", "main", "--detect", "40%", "--models", "openai/gpt-5")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "to see a mean drop of 40 points from main with a chance of 80%" in ran.stdout
    assert "about $0.010" in ran.stdout
    told = steelyard(place, "evals.toml", "--baseline", "main", "--detect", "0.4", "--format", "json")
    assert json.loads(told.stdout)["models"][0]["once"] == {"cost_usd": 0.01}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evals.toml"], "--baseline"),
        (["--baseline", "main"], "EVALSET"),
        (["nowhere.toml", "--baseline", "main"], "nowhere.toml"),
        (["evals.toml", "--baseline", "mian"], "mian"),
        (["evals.toml", "--baseline", "main", "--detect", "0"], "the drop to detect must be between 0 and 1"),
        (["evals.toml", "--baseline", "main", "--detect", "nan"], "between 0 and 1"),
        (["evals.toml", "--baseline", "main", "--power", "1"], "the power must be between 0 and 1"),
        (["evals.toml", "--baseline", "main", "--models", "openai/gpt5"], 'did you mean "openai/gpt-5"?'),
        (["evals.toml", "--baseline", "main", "--detect", "0.9"], "cannot drop by 0.9"),
    ],
)
def test_bad_input_is_one_sentence(place: Path, arguments: list[str], said: str) -> None:
    ran = steelyard(place, *arguments)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert ran.stdout == ""


# The promise: with the attempts that are planned, the gate sees the drop as often as it was told.

BASELINES = (3, 10, 30)
REPEATS = 60
DETECT, POWER = 0.05, 0.8


class Study(NamedTuple):
    """What became of some plans."""

    seen: float
    """How often the gate saw the drop with the planned attempts."""
    current: list[int]
    """The planned attempts per case, ascending."""
    thin: float
    """How often more attempts of the baseline were asked for."""
    cleared: float
    """How often an unchanged run was cleared with the attempts planned for that."""
    clearing: list[int]


def study(suite: str, size: int, attempts: int, repeats: int = REPEATS) -> Study:
    """Plans on baselines of known suites, each followed by a run that dropped and one that did not."""
    chance = np.random.default_rng([size, attempts, *suite.encode()])
    seen = thin = cleared = 0
    current: list[int] = []
    clearing: list[int] = []
    for _ in range(repeats):
        before = rates(suite, size, 1, chance)
        passes = chance.binomial(attempts, before[0])
        found = only(gate_plan(cases(size), _side(attempts, passes), FREE, detect=DETECT, power=POWER))
        for true, need, more, verdict, numbers in (
            (dropped(before, DETECT)[0], found.seen, found.seen_with_more, REGRESSED, current),
            (before[0], found.cleared, found.cleared_with_more, NOT_REGRESSED, clearing),
        ):
            chosen = need or more
            assert chosen is not None
            pooled = max(attempts, chosen.baseline)
            old = _side(pooled, passes + chance.binomial(pooled - attempts, before[0]))
            new = _side(chosen.current, chance.binomial(chosen.current, true))
            hit = gate_sides(old, new, margin=DETECT).decision.verdict == verdict
            seen, cleared = seen + (hit and verdict == REGRESSED), cleared + (hit and verdict == NOT_REGRESSED)
            thin += verdict == REGRESSED and need is None
            numbers.append(chosen.current)
    return Study(seen / repeats, sorted(current), thin / repeats, cleared / repeats, sorted(clearing))


def _side(attempts: int, passes: Integers) -> Side:
    return baseline(*((attempts, number) for number in passes.tolist()))


def table(repeats: int) -> str:
    """The figures of this study, as the page shows them."""
    heads = ["suite", "cases", "baseline", "planned", "found", "too thin", "planned to clear", "cleared"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for suite, size, attempts in product(SUITES, SIZES, BASELINES):
        found = study(suite, size, attempts, repeats)
        cells = [
            *(suite, str(size), str(attempts), _middle(found.current), f"{found.seen:.0%}", f"{found.thin:.0%}"),
            *(_middle(found.clearing), f"{found.cleared:.0%}"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _middle(numbers: list[int]) -> str:
    """The median, and between what nine out of ten lie."""
    low, middle, high = (numbers[round(share * (len(numbers) - 1))] for share in (0.05, 0.5, 0.95))
    return f"{middle} ({low} to {high})"


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "size", "attempts"), list(product(SUITES, SIZES, BASELINES)))
def test_a_gate_sees_what_was_planned_for_as_often_as_was_told(suite: str, size: int, attempts: int) -> None:
    found = study(suite, size, attempts)
    assert all(number <= MAX_PLANNED_ATTEMPTS_PER_CASE for number in found.current)
    # about 80%: not significantly below 77%, at 0.1%
    fewest = stats.binom.ppf(0.001, REPEATS, 0.77)
    assert round(found.seen * REPEATS) >= fewest
    assert round(found.cleared * REPEATS) >= fewest


def test_a_model_that_never_passes_keeps_no_plan_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"c{case},{model},10,{passes}" for case in range(20) for model, passes in (("never", 0), ("always", 10))]
    (tmp_path / "counts.csv").write_text("\n".join(["case,model,n,correct", *rows, ""]))
    assert main(["plan", "counts.csv"]) == 0
    shown = capsys.readouterr().out
    assert "mean pass rate 100.0%" in shown
    assert "! never passes too rarely to drop by 5 points; a gate can only see it get better" in shown
    assert main(["plan", "counts.csv", "-m", "never"]) == 2
    assert "never passes 0.0% of its attempts, which cannot drop by 0.05" in capsys.readouterr().err


def test_a_thin_baseline_is_told_what_twenty_attempts_would_save() -> None:
    thin = [Trials(case=f"{place}", attempts=1, passes=place % 2) for place in range(60)]
    settled = [Trials(case=f"{place}", attempts=5, passes=5) for place in range(60)]
    told = thin_baseline_sentence(thin)
    assert told is not None
    assert told.startswith("an unchanged run is cleared four times out of five by more than 100 attempts per case; ")
    assert "against a baseline of 20 by " in told
    pooled = [Trials(case=each.case, attempts=10, passes=5) for each in thin]
    assert thin_baseline_sentence(pooled) is None
    assert thin_baseline_sentence(settled) is None
