"""What a difference is about: graded outcomes are compared by their scores, without being asked, and others by what passed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from steelyard.comparison.gate import CANNOT_TELL, NOT_REGRESSED, REGRESSED
from steelyard.comparison.sides import Side, Trials, score_counts
from steelyard.engine.gate.gate import GateResult, gate, gate_sides
from steelyard.engine.gate.sides import side
from steelyard.errors import ExitCode, InputError
from steelyard.outcomes.scores import ScoreReading
from support.command_line import steelyard

FILES = Path(__file__).parents[2] / "data" / "graded"
"""Written by the other tools themselves; its README says how."""
TOOLS = {"inspect": ".json.gz", "lm_eval": "", "promptfoo": ".json.gz", "deepeval": ".json.gz"}


def of(tool: str, name: str) -> str:
    return str(FILES / tool / f"{name}{TOOLS[tool]}")


def compared(tool: str, before: str, after: str, **how: object) -> GateResult:
    return gate(of(tool, before), of(tool, after), **how)  # type: ignore[arg-type]  # any of its own


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("fall", ["fall10", "fall30", "fall60"])
def test_a_fall_of_graded_scores_is_a_regression_without_being_asked_for(tool: str, fall: str) -> None:
    found = compared(tool, "base", fall)
    assert (found.decision.verdict, found.decision.rule.on) == (REGRESSED, "score")


@pytest.mark.parametrize("tool", TOOLS)
def test_graded_scores_that_are_alike_are_no_regression(tool: str) -> None:
    assert compared(tool, "base", "equal").decision.verdict != REGRESSED


@pytest.mark.parametrize(
    ("tool", "before", "after"),
    [
        ("promptfoo", "pass-90", "pass-80"),
        ("promptfoo", "fail-90", "fail-30"),
        ("deepeval", "pass-90", "pass-80"),
        ("deepeval", "fail-90", "fail-30"),
        ("inspect", "fall10", "fall60"),
        ("lm_eval", "fall10", "fall60"),
    ],
)
def test_a_fall_that_only_the_scores_show_is_a_regression(tool: str, before: str, after: str) -> None:
    assert compared(tool, before, after).decision.verdict == REGRESSED
    assert compared(tool, before, after, on="passed").decision.verdict == CANNOT_TELL


def test_a_perfect_run_is_compared_with_a_graded_one_by_its_scores_in_both_directions() -> None:
    worse, better = compared("inspect", "perfect", "fall10"), compared("inspect", "fall10", "perfect")
    assert (worse.decision.verdict, worse.decision.rule.on) == (REGRESSED, "score")
    assert (better.decision.verdict, better.decision.rule.on) == (NOT_REGRESSED, "score")


def test_a_metric_that_the_file_calls_better_when_lower_is_turned_round() -> None:
    assert compared("lm_eval", "error-base", "error-fall30").decision.verdict == REGRESSED
    assert compared("lm_eval", "error-fall30", "error-base").decision.verdict == NOT_REGRESSED


def test_scores_outside_0_to_1_are_refused_until_their_range_is_given() -> None:
    for tool, name in (("lm_eval", "percent"), ("inspect", "stars")):
        with pytest.raises(InputError, match="such as --score-range 1:5"):
            compared(tool, f"{name}-base", f"{name}-fall30")
    percent = compared("lm_eval", "percent-base", "percent-fall30", scores=ScoreReading(high=100))
    assert percent.decision.verdict == REGRESSED
    assert percent.decision.models[0].effect.value == pytest.approx(-0.3175)


def test_of_several_values_the_log_s_headline_counts_unless_another_is_named() -> None:
    for name in ("dict", "dict-otherwise"):
        found = compared("inspect", f"{name}-base", f"{name}-fall30")
        assert found.decision.verdict == REGRESSED
        assert any(
            '"recall" counts; --score names another' in each.replace("graded/", "").replace("graded_otherwise/", "")
            for each in found.warnings
        )
        brief = compared("inspect", f"{name}-base", f"{name}-fall30", scores=ScoreReading("brevity"))
        assert brief.decision.verdict == NOT_REGRESSED
    with pytest.raises(InputError, match='no score "nope"'):
        compared("inspect", "dict-base", "dict-fall30", scores=ScoreReading("nope"))


def test_of_several_metrics_another_one_can_be_named() -> None:
    assert compared("lm_eval", "both-base", "both-fall30").decision.rule.on == "passed"
    assert compared("lm_eval", "both-base", "both-fall30", scores=ScoreReading("f1")).decision.verdict == REGRESSED


def test_assertions_that_hold_or_not_are_compared_by_what_passed(tmp_path: Path) -> None:
    def results(name: str, failing: int) -> str:
        every = []
        for number in range(20):
            held = number >= failing
            parts = [{"pass": True, "score": 1}, {"pass": held, "score": int(held)}]
            graded = {"pass": held, "score": (1 + held) / 2, "componentResults": parts}
            test = {"description": f"t{number}", "assert": [{"type": "contains", "value": "a"}]}
            every.append(
                {
                    "success": held,
                    "score": (1 + held) / 2,
                    "gradingResult": graded,
                    "testCase": test,
                    "provider": {"id": "m"},
                }
            )
        path = tmp_path / name
        path.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": every}}))
        return str(path)

    found = gate(results("a.json", 0), results("b.json", 12))
    assert (found.decision.rule.on, found.decision.verdict) == ("passed", REGRESSED)
    for name in ("a", "b"):
        steelyard(tmp_path, "import", f"{name}.json", "-o", name)
    imported = gate(tmp_path / "a", tmp_path / "b")
    assert (imported.decision.rule.on, imported.decision.verdict) == ("passed", REGRESSED)


def test_a_log_whose_scores_have_no_headline_asks_for_one(tmp_path: Path) -> None:
    score = {"value": {"quality": 0.5, "style": 0.25}}
    sample = {"id": 1, "epoch": 1, "input": "x", "target": "y", "output": {"choices": []}, "scores": {"mine": score}}
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "t", "task_id": "t", "model": "m", "dataset": {}, "scorers": [{"name": "mine"}]},
        "samples": [sample],
    }
    path = tmp_path / "x.json"
    path.write_text(json.dumps(log))
    with pytest.raises(InputError, match=r"2 scores \(\"mine/quality\", \"mine/style\"\); name the one that counts"):
        side(str(path))
    (trials,) = side(str(path), scores=ScoreReading("style")).models["m"]
    assert trials.scores == ((0.25, 1),)


# Tables.


def table(place: Path, name: str, mean: float, *, columns: tuple[str, ...] = ("score",), cases: int = 20) -> str:
    chance = np.random.default_rng([7, round(1000 * mean)])
    with (place / name).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["case", *columns])
        for case in range(cases):
            for _ in range(5):
                score = float(np.clip(chance.normal(mean, 0.05), 0, 1))
                rows.writerow(
                    [f"c{case}", *(round(score, 3) if column != "passed" else score > 0.4 for column in columns)]
                )
    return str(place / name)


def test_a_table_of_scores_is_compared_by_them(tmp_path: Path) -> None:
    found = gate(table(tmp_path, "a.csv", 0.9), table(tmp_path, "b.csv", 0.6))
    assert (found.decision.verdict, found.decision.rule.on) == (REGRESSED, "score")
    assert found.decision.models[0].effect.value == pytest.approx(-0.3, abs=0.03)


def test_a_table_that_says_what_passed_stays_with_that_and_has_its_scores_too(tmp_path: Path) -> None:
    sides = [
        table(tmp_path, name, mean, columns=("passed", "score")) for name, mean in (("a.csv", 0.9), ("b.csv", 0.6))
    ]
    assert gate(*sides).decision.rule.on == "passed"
    assert gate(*sides).decision.verdict == NOT_REGRESSED
    assert gate(*sides, on="score").decision.verdict == REGRESSED


def test_the_score_of_a_table_may_have_another_name_range_and_direction(tmp_path: Path) -> None:
    sides = [table(tmp_path, name, mean, columns=("loss",)) for name, mean in (("a.csv", 0.3), ("b.csv", 0.6))]
    reading = ScoreReading("loss", 0, 2, lower_is_better=True)
    found = gate(*sides, scores=reading)
    assert found.decision.verdict == REGRESSED
    assert found.decision.models[0].effect.value == pytest.approx(-0.15, abs=0.02)


def test_a_parquet_file_of_scores_is_compared_by_them(tmp_path: Path) -> None:
    for name, mean in (("a", 0.9), ("b", 0.6)):
        pq.write_table(pa_csv.read_csv(table(tmp_path, f"{name}.csv", mean)), tmp_path / f"{name}.parquet")
    found = gate(tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert (found.decision.verdict, found.decision.rule.on) == (REGRESSED, "score")


def test_a_named_score_is_compared_also_where_a_table_says_what_passed(tmp_path: Path) -> None:
    sides = [
        table(tmp_path, name, mean, columns=("passed", "score")) for name, mean in (("a.csv", 0.9), ("b.csv", 0.6))
    ]
    assert gate(*sides, scores=ScoreReading("score")).decision.verdict == REGRESSED


def test_a_graded_side_is_compared_with_the_scores_of_a_parquet_file_that_says_what_passed(tmp_path: Path) -> None:
    path = table(tmp_path, "b.csv", 0.6, columns=("passed", "score"))
    pq.write_table(pa_csv.read_csv(path), tmp_path / "b.parquet")
    found = gate(table(tmp_path, "a.csv", 0.9), tmp_path / "b.parquet")
    assert (found.decision.verdict, found.decision.rule.on) == (REGRESSED, "score")
    alone = pa_csv.read_csv(path).drop_columns(["score"])
    pq.write_table(alone, tmp_path / "b.parquet")
    with pytest.raises(InputError, match="with --on passed"):
        gate(table(tmp_path, "a.csv", 0.9), tmp_path / "b.parquet")


def test_every_report_of_a_graded_run_is_compared_by_its_scores(tmp_path: Path) -> None:
    for name in ("fall10", "fall30"):
        steelyard(tmp_path, "import", of("inspect", name), "-o", f"runs-{name}/{name}")
        reports = [f"{name}.parquet", f"{name}.csv", f"{name}.inspect.json"]
        steelyard(tmp_path, "report", f"runs-{name}/{name}", *(part for report in reports for part in ("-o", report)))
    for suffix in ("parquet", "csv"):
        found = gate(tmp_path / f"fall10.{suffix}", tmp_path / f"fall30.{suffix}")
        assert (found.decision.verdict, found.decision.rule.on) == (REGRESSED, "score"), suffix
    (first,) = side(str(tmp_path / "fall10.inspect.json")).models.values()
    assert any(0 < score < 1 for trials in first for score, _ in trials.scores)
    with pytest.raises(
        InputError, match=r"fall10 is graded, and of a folder of runs what passed is compared; name one run"
    ):
        gate(tmp_path / "runs-fall10", tmp_path / "runs-fall30")


def test_a_fraction_that_says_it_passed_is_an_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("case,passed\na,1\nb,0.5\n")
    with pytest.raises(InputError, match=r"a.csv:3: passed is \"0.5\"; expected true or false"):
        gate(tmp_path / "a.csv", tmp_path / "a.csv")


def test_scores_are_not_compared_with_a_side_that_has_none(tmp_path: Path) -> None:
    (tmp_path / "passes.csv").write_text("case,passed\n" + "".join(f"c{case},true\n" for case in range(20)))
    with pytest.raises(InputError, match="says what passed and has no scores; compare what passed with --on passed"):
        gate(table(tmp_path, "a.csv", 0.9), tmp_path / "passes.csv")
    assert gate(table(tmp_path, "a.csv", 0.9), tmp_path / "passes.csv", on="passed").decision.rule.on == "passed"


def test_a_margin_is_in_the_units_of_the_range(tmp_path: Path) -> None:
    a, b = table(tmp_path, "a.csv", 0.9), table(tmp_path, "b.csv", 0.88)
    wide, narrow = (
        json.loads(
            steelyard(tmp_path, "gate", a, b, "--score-range", "0:1", "--margin", margin, "--format", "json").stdout
        )
        for margin in ("0.1", "10%")
    )
    assert wide["decision"]["rule"]["margin"] == narrow["decision"]["rule"]["margin"] == 0.1
    of_ten = steelyard(tmp_path, "gate", a, b, "--score-range=-5:5", "--margin", "1", "--format", "json")
    assert json.loads(of_ten.stdout)["decision"]["rule"]["margin"] == 0.1
    odd = steelyard(tmp_path, "gate", a, b, "--score-range", "5:1")
    assert (odd.returncode, odd.stdout) == (2, "")
    assert '"5:1" is no range of scores: LO:HI with LO below HI, such as 1:5' in odd.stderr


# What no file says.


def trials(case: int, scores: list[float], *, graded: bool) -> Trials:
    return Trials(
        case=f"c{case}",
        attempts=len(scores),
        passes=sum(score >= 1 for score in scores),
        scores=score_counts(scores),
        graded=len(scores) if graded else 0,
    )


def made_side(name: str, score: float, *, graded: bool) -> Side:
    return Side(
        name=name, rule="code", models={"m": tuple(trials(case, [score] * 5, graded=graded) for case in range(20))}
    )


def test_where_nothing_passed_on_either_side_nothing_is_said_to_be_as_good() -> None:
    for score in (0.0, 0.5):
        found = gate_sides(made_side("a", score, graded=False), made_side("b", score, graded=False)).decision
        assert (found.verdict, found.rule.on) == (CANNOT_TELL, "passed")
        assert "no attempt of either side passed, so nothing could have got worse" in found.models[0].notes
    nothing = gate_sides(made_side("a", 0, graded=True), made_side("b", 0, graded=True)).decision
    assert (nothing.verdict, nothing.rule.on) == (CANNOT_TELL, "score")


def test_scores_that_a_rule_gives_to_code_leave_the_pass_rate_in_place() -> None:
    found = gate_sides(made_side("a", 0.9, graded=False), made_side("b", 0.6, graded=False)).decision
    assert found.rule.on == "passed"


def test_what_was_graded_survives_a_baseline(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert steelyard(tmp_path, "import", of("inspect", "base"), "-o", "runs/base").returncode == 0
    assert steelyard(tmp_path, "bless", "runs/base", "--as", "main").returncode == 0
    assert steelyard(tmp_path, "report", "runs/base", "-o", "base.json").returncode == 0
    assert steelyard(tmp_path, "import", of("inspect", "fall10"), "-o", "runs/fall").returncode == 0
    for before in ("main", "base.json", "runs/base", of("inspect", "base")):
        ended = steelyard(
            tmp_path, "gate", before, "runs/fall" if before != of("inspect", "base") else of("inspect", "fall10")
        )
        assert (ended.returncode, ended.stdout.split("\n")[0]) == (ExitCode.GATE_FAILED, "REGRESSED"), (before, ended)
        assert "regressed by mean score" in ended.stdout


def test_every_front_shows_the_mean_score_where_it_decides(tmp_path: Path) -> None:
    imported = steelyard(tmp_path, "import", of("inspect", "fall10"), "-o", "steelyard-runs/fall").stdout
    assert "mean score, which decides" in imported
    listed = steelyard(tmp_path, "list").stdout
    assert "0.763" in listed
    assert "mean score" in listed
    assert "mean score" in steelyard(tmp_path, "passk", of("inspect", "fall10")).stdout.split("\n")[0]
    assert "the mean score decides" in steelyard(tmp_path, "passk", of("inspect", "fall10")).stderr
    steelyard(tmp_path, "report", "fall", "-o", "x.html", "-o", "x.json", "-o", "x.md")
    assert "Mean score 0.763" in (tmp_path / "x.html").read_text()
    assert "Mean score, which decides" in (tmp_path / "x.html").read_text()
    assert "mean score, which decides" in (tmp_path / "x.md").read_text()
    assert (
        json.loads((tmp_path / "x.json").read_text())["aggregate"]["per_model"]["mockllm/model"]["decides"]
        == "mean score"
    )
    comment = steelyard(tmp_path, "gate", of("inspect", "base"), of("inspect", "fall10"), "--format", "markdown").stdout
    assert "regressed by mean score" in comment


DRAWS = 2000


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [1, 3])
def test_of_draws_from_the_same_graded_scores_few_are_called_a_regression(attempts: int) -> None:
    pool = [
        each.every_score for name in ("base", "equal") for each in side(of("inspect", name)).models["mockllm/model"]
    ]
    by_case = [(*before, *after) for before, after in zip(pool[:40], pool[40:], strict=True)]
    chance = np.random.default_rng([attempts, 20])
    alarms = 0
    for _ in range(DRAWS):
        both = [
            [trials(case, chance.choice(scores, attempts).tolist(), graded=True) for case, scores in enumerate(by_case)]
            for _ in range(2)
        ]
        sides = (
            Side(name=name, rule="code", models={"m": tuple(drawn)}) for name, drawn in zip("ab", both, strict=True)
        )
        alarms += gate_sides(*sides).decision.verdict == REGRESSED
    assert alarms <= 0.06 * DRAWS


def test_baselines_made_before_scores_were_told_apart_are_read_as_before() -> None:
    old = msgspec.json.encode(made_side("a", 0.5, graded=False))
    assert b"graded" not in old
    assert b"is_scored" not in old
