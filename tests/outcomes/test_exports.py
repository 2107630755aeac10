"""What is written for other tools says the same as the run; their own programs have read such files (tools/fixtures/read_exports.sh)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard import reports
from steelyard.engine.results.import_run import import_recordings
from steelyard.engine.results.recordings import RecordedFiles, recorded_tallies
from steelyard.engine.results.report_files import write_reports
from steelyard.engine.results.stored_results import stored_results
from steelyard.engine.run import Run
from steelyard.errors import InputError
from steelyard.store.journal import StoredRun

OTHER_TOOLS = Path(__file__).parents[2] / "examples" / "other-tools"


@pytest.fixture
def inspected(tmp_path: Path) -> Run:
    return import_recordings([OTHER_TOOLS / "inspect" / "better.eval"], output=tmp_path / "run", root=tmp_path)


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_a_log_for_inspect_is_read_again_with_the_same_outcomes(inspected: Run, tmp_path: Path) -> None:
    (path,) = write_reports([tmp_path / "x.inspect.json"], StoredRun(inspected.folder))
    (before,) = recorded_tallies([str(OTHER_TOOLS / "inspect" / "better.eval")]).tallies
    (after,) = recorded_tallies([str(path)]).tallies
    assert (list(after.tried), list(after.passed), after.missing) == (
        list(before.tried),
        list(before.passed),
        before.missing,
    )
    attempts = list(RecordedFiles([path]).attempts())
    wrong = next(each for each in attempts if each.passed is False)
    assert (wrong.answer.text if wrong.answer else "", wrong.target) == ("It is Rome, I think.", "Rome")
    assert wrong.answer is not None
    assert wrong.answer.output_tokens == 3
    assert {score["name"]: score["metrics"]["accuracy"]["value"] for score in read(path)["results"]["scores"]} == {
        "correct": 0.75,
        "score": 0.75,
    }


def test_results_for_promptfoo_are_read_again_with_the_same_outcomes(tmp_path: Path) -> None:
    done = import_recordings([OTHER_TOOLS / "promptfoo" / "results.json"], output=tmp_path / "run", root=tmp_path)
    (path,) = write_reports([tmp_path / "x.promptfoo.json"], StoredRun(done.folder))
    stats = read(path)["results"]["stats"]
    assert (stats["successes"], stats["failures"], stats["errors"]) == (6, 6, 4)
    tallies = {
        each.model: (sum(each.passed), sum(each.tried), each.missing) for each in recorded_tallies([str(path)]).tallies
    }
    polite, short = (f"mock ({tier})" for tier in ("polite", "short"))
    assert {name.partition(" ({{")[0]: counts for name, counts in tallies.items()} == {
        polite: (2, 6, 2),
        short: (4, 6, 2),
    }


def test_a_record_of_every_eval_ever_has_figures_with_their_intervals(inspected: Run, tmp_path: Path) -> None:
    (path,) = write_reports([tmp_path / "x.eee.json"], StoredRun(inspected.folder))
    (model,) = inspected.summary.models
    figures = {each["evaluation_result_id"]: each["score_details"] for each in read(path)["evaluation_results"]}
    assert figures["pass@1"]["score"] == model.pass_at[1].value
    assert figures["pass@1"]["uncertainty"]["confidence_interval"]["upper"] == model.pass_at[1].high
    assert figures["pass@1"]["details"] == {"attempts": "11", "correct": "8", "missing": "1"}


def test_what_is_about_one_model_becomes_a_file_for_each(tmp_path: Path) -> None:
    done = import_recordings([OTHER_TOOLS / "promptfoo" / "results.json"], output=tmp_path / "run", root=tmp_path)
    stored = StoredRun(done.folder)
    written = write_reports([tmp_path / "x.eee.json", tmp_path / "y.evalplus.jsonl"], stored)
    assert [path.name for path in written] == [
        *("x-mock-polite.eee.json", "x-mock-short.eee.json"),
        *("y-mock-polite.evalplus.jsonl", "y-mock-short.evalplus.jsonl"),
    ]
    assert read(written[1])["model_info"]["id"] == "mock (short)"
    solutions = [json.loads(line) for line in written[3].read_text("utf-8").splitlines()]
    assert solutions[0] == {"task_id": "country=fr", "solution": "Paris"}
    assert len(solutions) == 6
    with pytest.raises(InputError, match="about one model, and the run has mock"):
        reports.render("inspect", stored_results(stored))


def test_a_run_is_a_frame_in_which_missing_is_not_zero(inspected: Run) -> None:
    arrow = inspected.frame("arrow")
    assert arrow.num_rows == 12
    assert arrow["correct"].to_pylist().count(None) == 1
    pandas, polars = inspected.frame(), inspected.frame("polars")
    assert (pandas["correct"].sum(), pandas["correct"].isna().sum(), str(pandas["correct"].dtype)) == (8, 1, "boolean")
    assert polars["reply"].to_list() == arrow["reply"].to_pylist()
    with pytest.raises(InputError, match='no frame of "panda"'):
        inspected.frame("panda")
