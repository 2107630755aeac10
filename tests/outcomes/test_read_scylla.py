"""Experiments of ProjectScylla are read as it leaves them, and its figures are held against its runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard import evalsets
from steelyard.engine.results.import_run import import_recordings, published_claims
from steelyard.engine.tiers.tier_runs import analysis, from_scylla
from steelyard.errors import InputError
from steelyard.outcomes.readers.scylla import is_scylla
from steelyard.store.journal import StoredRun


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")


def write_run(folder: Path, score: float, *, passed: bool = True, marks: tuple[float, float] = (0.8, 1.0)) -> None:
    """One run as ProjectScylla writes it, with two judges; the second says that a category does not apply."""
    judges = [
        {"model": "opus", "score": score - 0.1, "passed": passed, "grade": "A", "judge_number": 1},
        {"model": "haiku", "score": score + 0.1, "passed": passed, "grade": "A", "judge_number": 2},
    ]
    tokens = {"input_tokens": 5, "output_tokens": 7, "cache_creation_tokens": 100, "cache_read_tokens": 1000}
    run = {
        "run_number": int(folder.name[-2:]),
        "exit_code": 0,
        "token_stats": tokens,
        "cost_usd": 0.25,
        "duration_seconds": 30.0,
        "agent_duration_seconds": 10.0,
        "judge_score": score,
        "judge_passed": passed,
        "judges": judges,
        "criteria_scores": {},
    }
    write(folder / "run_result.json", run)
    write(folder / "agent" / "output.txt", {"type": "result", "result": "done", "total_cost_usd": 0.25})
    write(folder / "workspace" / "run_result.json", "what an agent left there")
    for number, mark in enumerate(marks, 1):
        criteria: dict[str, Any] = {"works": {"achieved": 2 * mark, "max": 2.0, "score": mark}}
        criteria["style"] = {"achieved": "N/A", "max": "N/A", "score": "N/A"}
        write(
            folder / "judge" / f"judge_0{number}" / "judgment.json",
            {"score": mark, "passed": passed, "criteria_scores": criteria},
        )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "2026-01-20-task"
    write(
        root / "config" / "experiment.json",
        {"experiment_id": "task", "models": ["sonnet"], "tiers_to_run": ["T0", "T1"]},
    )
    write(root / "prompt.md", "Write hello.py.")
    write_run(root / "T0" / "00" / "run_01", 0.5, passed=False)
    write_run(root / "T0" / "00" / "run_02", 0.7)
    write_run(root / "T1" / "01" / "run_01", 0.6)
    write_run(root / "T1" / "02" / "run_01", 0.8)
    said = {"total_subtests": 2, "best_subtest": "01", "best_score": 0.6, "total_cost": 0.5}
    write(root / "T1" / "report.json", {"tier": "T1", "summary": said})
    return root


def test_a_tree_of_results_is_a_run_with_its_tiers(tree: Path, tmp_path: Path) -> None:
    done = import_recordings([tree], output=tmp_path / "run", root=tmp_path)
    stored = StoredRun(done.folder)
    assert [case.id for case in stored.cases] == ["task"]
    assert [(model.tier, model.attempts, model.correct) for model in done.summary.models] == [
        ("T0", 2, 1),
        ("T1", 2, 2),
    ]
    replies = [fact.answer for fact in stored.facts() if hasattr(fact, "answer")]
    assert {answer.request_id for answer in replies} >= {"T0/00/run 2", "T1/02/run 1"}
    assert (replies[0].text, replies[0].input_tokens, replies[0].cached_tokens, replies[0].latency) == (
        "done",
        1105,
        1000,
        10.0,
    )
    assert stored.cases[0].prompt == "Write hello.py."


def test_tiers_of_a_tree_have_the_points_of_its_judges(tree: Path) -> None:
    assert is_scylla(tree)
    found, problems = from_scylla(tree)
    assert not problems
    result = analysis(found, pair_by="experiment", impl_rate="points")
    first, second = result.models[0].tiers
    assert first.pass_rate.value == 0.5
    assert first.impl_rate.value == pytest.approx(0.9)
    assert (second.runs, second.cost_usd) == (2, 0.5)


def test_published_figures_stand_beside_what_the_runs_give(tree: Path) -> None:
    claims = {claim.about: claim for claim in published_claims([tree])}
    best = claims["T1: best subtest, by mean score"]
    assert (best.they, best.we, best.differs) == ("01 (0.6000)", "02 (0.8000)", 1)
    assert claims["T1: total cost"].differs == 0
    points = claims["mean total that a judge claims, by its points"]
    assert (points.they, points.we) == ("0.6500", "0.9000")
    assert claims["runs that passed, by their judges' majority"].they == "3 of 4"


def test_the_same_run_in_two_folders_is_refused(tree: Path) -> None:
    other = tree.parent / "again"
    write(other / "config" / "experiment.json", {"experiment_id": "task", "models": ["sonnet"]})
    write_run(other / "T0" / "00" / "run_01", 0.5)
    with pytest.raises(InputError, match="are the same run"):
        from_scylla(tree.parent)


@pytest.mark.parametrize("content", ["", "[]", '{"judges": 3}', '{"token_stats": null}', '{"run_number"', "\xff"])
def test_a_broken_result_is_one_sentence(tmp_path: Path, content: str) -> None:
    write(tmp_path / "x" / "T0" / "00" / "run_01" / "run_result.json", content)
    with pytest.raises(InputError, match="result of ProjectScylla") as raised:
        import_recordings([tmp_path / "x"], output=tmp_path / "run", root=tmp_path, reader="scylla")
    assert len(raised.value.problems) == 1


TASK = """
id: "test-007"
name: "Simplify the build"
description: |
  Some words.
language: mojo
source:
  repo: "https://example.com/owner/Odyssey"
  hash: "6f6959bfc67614ce541cb28fb337f4161270ca63"
task:
  prompt_file: "prompt.md"
  timeout_seconds: 780
validation:
  criteria_file: "expected/criteria.md"
  rubric_file: "expected/rubric.yaml"
tiers:
  - T0  # Prompts
"""


def test_a_task_is_a_case_for_judges(tmp_path: Path) -> None:
    write(tmp_path / "test.yaml", TASK)
    write(tmp_path / "prompt.md", "Simplify the justfile.\n")
    sets = evalsets.load([tmp_path / "test.yaml"])
    (case,) = sets.cases
    assert (case.id, case.name, case.tags, case.by_judges) == ("test-007", "Simplify the build", ("mojo",), True)
    assert case.prompt == "Simplify the justfile.\n"
    assert "clone" in str(sets.problems[0]), "nothing is fetched, and that is said"
    with pytest.raises(InputError, match="a task, not results"):
        import_recordings([tmp_path / "test.yaml"], output=tmp_path / "run", root=tmp_path, reader="scylla")


def test_a_task_whose_prompt_lies_elsewhere_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "secret.md", "not for models")
    write(tmp_path / "task" / "test.yaml", TASK.replace("prompt.md", "../secret.md"))
    with pytest.raises(InputError, match="secret"):
        evalsets.load([tmp_path / "task" / "test.yaml"])
