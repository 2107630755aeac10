"""A side of a comparison is found by whatever name a user gives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.comparison.sides import Trials
from steelyard.comparison.threshold import compare
from steelyard.engine.gate.sides import bless, side
from steelyard.engine.run import run
from steelyard.errors import InputError
from steelyard.records import Case, Rule, RunInfo, Verify
from steelyard.reports import render
from steelyard.store.journal import StoredRun, create_run
from steelyard.verifiers.python.verifier import PythonVerifier
from support.suite_facts import attempt, case
from support.whole_results import run_results


def made(folder: str, *models: str, tests: str = "assert one() == 1", **options: Any) -> Path:
    case = Case(id="one", prompt="Write one().", language="python", critical=True, verify=Verify(tests=tests))
    names = [f"python:models.py:{model}" for model in models or ("right", "wrong")]
    return run([case], models=names, samples=2, output=folder, **options).folder


def report_of(folder: Path) -> Path:
    stored = StoredRun(folder)
    path = folder.with_suffix(".json")
    path.write_text(render("json", run_results(stored.info, stored.cases, stored.facts())), "utf-8")
    return path


def reported(**result: Any) -> dict[str, Any]:
    """One result as other tools report it."""
    return {
        "case_id": "one",
        "model": "gpt",
        "provider": "openai",
        "generated_code": "fn one() {}",
        "compilation": {"success": True, "errors": [], "warnings": [], "duration_ms": 5},
        "test_execution": {"passed": 4, "failed": 1, "ignored": 2, "duration_ms": 3, "failures": []},
        "clippy": {"warnings": [], "warning_count": 3},
        "timing": {"llm_request_ms": 1, "compilation_ms": 5, "test_execution_ms": 3, "total_ms": 9},
        "token_usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "estimated_cost_usd": 0.1},
        "attempt": 1,
        "run_id": "x",
        **result,
    }


def test_a_run_tells_of_every_model_and_case(place: Path) -> None:
    found = side(str(made("runs/a")))
    digest = StoredRun(Path("runs/a")).cases[0].tests_digest
    rules = (PythonVerifier.version.partition(",")[0],)
    assert found.models == {
        "python/models.py:right": (
            Trials(
                case="one",
                tests=digest,
                judged_by=rules,
                attempts=2,
                passes=2,
                scores=((1.0, 2),),
                critical=True,
                limit=60,
            ),
        ),
        "python/models.py:wrong": (
            Trials(
                case="one",
                tests=digest,
                judged_by=rules,
                attempts=2,
                passes=0,
                scores=((0.5, 2),),
                critical=True,
                limit=60,
            ),
        ),
    }
    assert (found.name, found.rule) == ("runs/a", "code")


def test_one_model_of_a_run_is_named_behind_an_at(place: Path) -> None:
    made("steelyard-runs/a")
    for name in ("latest", "a", "steelyard-runs/a"):
        found = side(f"{name}@python/models.py:wrong")
        assert list(found.models) == ["python/models.py:wrong"]
    with pytest.raises(InputError, match=r'no model "python/models\.py:wrog" .*did you mean "python/models\.py:wrong"'):
        side("latest@python/models.py:wrog")


def test_both_sides_may_come_from_one_run(place: Path) -> None:
    made("runs/a")
    found = compare(side("runs/a@python/models.py:right"), side("runs/a@python/models.py:wrong"))
    assert [change.delta for change in found.regressions] == [-0.5]


def test_a_folder_whose_name_holds_an_at_is_still_a_folder(place: Path) -> None:
    assert side(str(made("runs/a@b"))).models.keys() == {"python/models.py:right", "python/models.py:wrong"}


def test_our_own_report_says_the_same_as_the_run(place: Path) -> None:
    folder = made("runs/a")
    found = compare(side(str(report_of(folder))), side(str(folder)))
    assert (found.compared, found.unchanged) == (2, 2)


def test_a_report_of_another_tool_is_scored_by_what_it_tells(place: Path) -> None:
    (place / "r.json").write_text(
        json.dumps(
            {
                "id": "x",
                "created_at": "2024-01-01T00:00:00.123456789Z",
                "results": [
                    reported(),
                    reported(attempt=2, clippy=None, test_execution={"passed": 5, "failed": 0, "ignored": 0}),
                    reported(attempt=3, compilation={"success": False}, test_execution=None),
                ],
            }
        )
    )
    found = side("r.json")
    (trials,) = found.models["gpt"]
    assert (trials.attempts, trials.passes, found.rule) == (3, 1, "code")
    assert trials.score == pytest.approx((0.4 + 0.5 * 0.8 + 0.07 + 1.0 + 0.0) / 3)
    # which functions were expected is not told, so nobody knows how many are there; what does not compile is worth 0
    (structured,) = side("r.json", rule="code-structured").models["gpt"]
    assert structured.scores == ((0.0, 1),)


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", '{"results": 3}', '{"results": [{"case_id": 1}]}', "[" * 5000),
        # all tests of an attempt become records: so many would take all memory
        '{"results": [{"case_id": "a", "model": "m", "test_execution": {"passed": 100000000000}}]}',
        '{"results": [{"case_id": "a", "model": "m", "score": 1e308}]}',
    ],
)
def test_a_file_that_is_no_report_is_refused_in_one_sentence(place: Path, content: str) -> None:
    (place / "r.json").write_text(content)
    with pytest.raises(InputError, match=r"r\.json: not the JSON report of a run: ") as caught:
        side("r.json")
    assert len(str(caught.value).splitlines()) == 1


def test_a_report_that_is_not_there_says_so(place: Path) -> None:
    with pytest.raises(InputError, match=r"r\.json: No such file or directory"):
        side("r.json")


def test_a_name_that_is_neither_run_nor_baseline_says_how_to_make_one(place: Path) -> None:
    with pytest.raises(
        InputError, match=r'no run "main" here .* a baseline is made with: steelyard bless RUN --as NAME'
    ):
        side("main")


def test_another_rule_scores_both_sides(place: Path) -> None:
    made("runs/a", rules=(Rule(name="strict", correct=1),))
    (right,), (wrong,) = side("runs/a", rule="strict").models.values()
    assert (right.score, wrong.score) == (1.0, 0.0)


def test_cases_with_other_tests_are_listed(place: Path) -> None:
    made("runs/a", "right")
    made("runs/b", "right", tests="assert one() == 1\nassert one() == 1")
    found = compare(side("runs/a"), side("runs/b"))
    assert (found.tests_changed, found.compared) == (("one",), 0)


def test_a_baseline_is_a_small_file_found_by_its_name(place: Path) -> None:
    made("steelyard-runs/a")
    blessed = bless(["latest"], "main")
    assert blessed.path == Path("steelyard-baselines/main.json")
    assert "```" not in blessed.path.read_text()
    for name in ("main", "steelyard-baselines/main.json", str(blessed.path.absolute())):
        found = compare(side(name), side("latest"))
        assert (found.compared, found.unchanged) == (2, 2)
    assert list(side("main@python/models.py:wrong").models) == ["python/models.py:wrong"]


def test_blessing_several_runs_pools_their_attempts_and_is_the_same_every_time(place: Path) -> None:
    made("runs/a", "right")
    made("runs/b", "right")
    blessed = bless(["runs/a", "runs/b"], "main")
    (trials,) = side("main").models["python/models.py:right"]
    assert (trials.attempts, trials.passes, trials.scores, trials.critical) == (4, 4, ((1.0, 4),), True)
    before = blessed.path.read_bytes()
    assert bless(["runs/a", "runs/b"], "main").path.read_bytes() == before


def test_a_run_counts_once_in_a_baseline(place: Path) -> None:
    folder = str(made("runs/a"))
    with pytest.raises(InputError, match="is in this baseline twice; its attempts count once"):
        bless([folder, folder], "main")
    bless([folder], "main")
    with pytest.raises(InputError, match="twice"):
        bless(["main", folder], "main")


def test_runs_with_other_tests_than_the_last_are_left_out_of_the_pool(place: Path) -> None:
    made("runs/a", "right")
    made("runs/b", "right", tests="assert one() == 1\nassert one() == 1")
    blessed = bless(["runs/a", "runs/b"], "main")
    assert [str(problem) for problem in blessed.problems] == [
        'python/models.py:right: case "one": 1 of 2 runs had other tests or rules and are left out'
    ]
    assert blessed.side.models["python/models.py:right"][0].attempts == 2


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a@b", "a\n"])
def test_a_baseline_has_a_name_that_a_file_can_have(place: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a baseline"):
        bless(["latest"], name)


def test_a_baseline_cannot_be_scored_by_another_rule(place: Path) -> None:
    bless([str(made("runs/a"))], "main")
    with pytest.raises(InputError, match='a baseline keeps no facts to score by "code-structured"'):
        side("main", rule="code-structured")


MORE_PASSES_THAN_ATTEMPTS = (
    '{"name": "main", "rule": "code", "models": {"m": [{"case": "a", "attempts": 2, "passes": 3}]}}'
)


@pytest.mark.parametrize("content", ["", "{}", '{"results": []}', '{"name": 1}', "[" * 5000, MORE_PASSES_THAN_ATTEMPTS])
def test_a_file_that_is_no_baseline_is_refused_in_one_sentence(place: Path, content: str) -> None:
    (place / "steelyard-baselines").mkdir()
    (place / "steelyard-baselines" / "main.json").write_text(content)
    with pytest.raises(InputError, match="not a baseline: ") as caught:
        side("main")
    assert len(str(caught.value).splitlines()) == 1


def test_a_path_is_never_taken_for_the_name_of_a_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.json").write_text("{}")
    with pytest.raises(InputError, match="no run"):
        side(str(tmp_path / "runs" / "x"))


def answered(folder: str, *outcomes: str) -> Path:
    """A run over one suite with an attempt of each outcome at its case, and one case that is in no suite."""
    cases = [case("of-a-suite", "injection"), case("alone", "")]
    with create_run(Path(folder), RunInfo(id=folder, started_at="2026-01-01T00:00:00Z"), cases) as journal:
        for number, primary in enumerate(outcomes, 1):
            for each in cases:
                for fact in attempt(each, primary, number):
                    journal.append(fact)
    return Path(folder)


CLASSES = (("pass", 2), ("refusal", 1))


def test_the_suite_and_the_classes_of_a_case_reach_a_side_a_baseline_and_a_report(place: Path) -> None:
    folder = answered("runs/a", "pass", "refusal", "pass", "failure")
    bless([str(folder)], "main")
    for name in (str(folder), "main", str(report_of(folder))):
        found = {trials.case: trials for trials in side(name).models["m"]}
        assert (found["of-a-suite"].suite, found["of-a-suite"].classes) == ("injection", CLASSES)
        assert (found["alone"].suite, found["alone"].classes) == ("", ())
    assert '"suite"' not in (place / "steelyard-baselines" / "main.json").read_text().partition("of-a-suite")[0]


def test_pooled_runs_add_up_their_classes(place: Path) -> None:
    folders = [str(answered("runs/a", "pass", "refusal")), str(answered("runs/b", "fail", "refusal"))]
    pooled = {trials.case: trials for trials in bless(folders, "main").side.models["m"]}
    assert pooled["of-a-suite"].classes == (("pass", 1), ("refusal", 2), ("fail", 1))


def test_a_baseline_from_before_there_were_suites_still_loads_and_compares(place: Path) -> None:
    folder = answered("runs/a", "pass", "refusal")
    path = bless([str(folder)], "main").path
    old = json.loads(path.read_text())
    for trials in old["models"]["m"]:
        trials.pop("suite", None)
        trials.pop("classes", None)
    path.write_text(json.dumps(old))
    (change,) = compare(side("main"), side(str(folder))).suites
    assert (change.suite, change.delta, change.baseline_classes) == ("injection", 0.0, {})
    # who does not tell its classes keeps all others from telling theirs
    again = bless(["main", str(answered("runs/b", "pass"))], "both").side.models["m"]
    assert {trials.case: trials.classes for trials in again} == {"of-a-suite": (), "alone": ()}


def test_a_report_with_other_things_under_our_names_is_a_report_all_the_same(place: Path) -> None:
    (place / "r.json").write_text(json.dumps({"results": [reported(suite=["json", 3], failure=None)]}))
    (trials,) = side("r.json").models["gpt"]
    assert (trials.suite, trials.classes, trials.attempts) == ("", (), 1)


def test_a_run_tells_the_same_with_its_index_and_without_and_an_old_index_is_not_believed(place: Path) -> None:
    folder = made("runs/a")
    indexed = side(str(folder))
    index = (folder / "attempts.index").read_bytes()
    (folder / "attempts.index").unlink()
    assert side(str(folder)) == indexed
    journal = folder / "attempts.jsonl"
    *others, last = journal.read_bytes().splitlines(keepends=True)
    assert b'"verdict"' in last
    journal.write_bytes(b"".join(others))
    (folder / "attempts.index").write_bytes(index)
    counts = [
        sum(trials.attempts for cases in each.models.values() for trials in cases)
        for each in (indexed, side(str(folder)))
    ]
    assert counts == [4, 3]
