"""The gate decides about judged answers by corrected rates, and refuses sides with different judges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.cli.main import main
from steelyard.engine.gate.judged import gate_corrected
from steelyard.errors import NotComparableError
from steelyard.records import Label
from steelyard.store.labels import append_labels
from support.labelled import AT, judged_run

CASES = 150


def labelled(folder: Path, wrong: int, labels: int = CASES) -> Path:
    """A run of one model of whose answers people find the first some wrong."""
    judged_run(folder, cases=CASES, models=("m/first",))
    append_labels(
        folder,
        [
            Label(by="ada", at=AT, case=f"case-{number:02}", model="m/first", passed=number >= wrong)
            for number in range(labels)
        ],
    )
    return folder


def test_a_drop_that_judges_do_not_see_is_a_regression_by_the_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, same = (labelled(tmp_path / name, wrong) for name, wrong in (("old", 10), ("new", 50), ("same", 10)))
    found = gate_corrected(str(old), str(new))
    (model,) = found.decision.models
    assert model.raw_effect == 0
    assert model.effect.value == pytest.approx(-40 / CASES, abs=1e-9)
    assert main(["gate", "--corrected", "--baseline", str(old), "--current", str(new)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("REGRESSED")
    assert "judges say +0.0 points" in said
    for kind, begins in (("markdown", "### NOT REGRESSED"), ("text", "NOT REGRESSED")):
        assert main(["gate", "--corrected", "--baseline", str(old), "--current", str(same), "--format", kind]) == 0
        assert capsys.readouterr().out.startswith(begins)
    # the same data are the same look
    looks = (new / "looks.jsonl").read_text().splitlines()
    assert len(looks) == 1
    assert json.loads(looks[0])["verdict"] == "regressed"
    append_labels(new, [Label(by="ada", at=AT, case="case-00", model="m/first", passed=True)])
    assert gate_corrected(str(old), str(new)).look == 2


def test_without_labels_on_both_sides_the_gate_cannot_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = labelled(tmp_path / "old", 10), labelled(tmp_path / "new", 10, labels=3)
    assert main(["gate", "--corrected", "--baseline", str(old), "--current", str(new)]) == 3
    said = capsys.readouterr().out
    assert said.startswith("CANNOT TELL")
    assert "needs 10 labels" in said


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("judges", ["j/one", "j/three"], "by j/one, j/two and by j/one, j/three"),
        ("digest", "other", "by another rubric"),
        ("repeats", 3, "a different number of times"),
        ("parameters", {"temperature": 1}, "with other parameters"),
    ],
)
def test_a_changed_judge_is_refused_and_not_called_a_regression(
    tmp_path: Path, field: str, value: object, why: str
) -> None:
    old, new = (judged_run(tmp_path / name, cases=3, models=("m/first",)) for name in ("old", "new"))
    described = json.loads((new / "run.json").read_text())
    described["panel"][field] = value
    (new / "run.json").write_text(json.dumps(described))
    with pytest.raises(NotComparableError, match=why):
        gate_corrected(str(old), str(new))


def test_bounds_are_taken_with_caution_because_corrected_intervals_are_approximate(tmp_path: Path) -> None:
    old, new = (labelled(tmp_path / name, wrong, labels=100) for name, wrong in (("old", 10), ("new", 20)))
    decision = gate_corrected(str(old), str(new), alpha=0.03125).decision
    (model,) = decision.models
    # the 95% interval is that of a look of 2.5%, which this is
    assert decision.alpha == pytest.approx(0.025)
    assert model.alarm_bound is not None
    assert model.effect.high is not None
    assert model.alarm_bound > model.effect.high


def test_compare_shows_the_corrected_change_and_counts_no_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (labelled(tmp_path / name, wrong) for name, wrong in (("old", 10), ("new", 50)))
    assert main(["compare", "--corrected", str(old), str(new)]) == 0
    said = capsys.readouterr().out
    assert "corrected change over 150 cases: -26.7" in said
    assert "REGRESSED" not in said
    assert main(["compare", "--corrected", str(old), str(new), "--fail-on-regression", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["models"][0]["effect"]["high"] < 0
    assert not (new / "looks.jsonl").exists()
    # sides without option names
    assert main(["gate", "--corrected", str(old), str(new)]) == 1


def test_compare_refuses_judged_cases_whose_judges_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = (judged_run(tmp_path / name, cases=3, models=("m/first",)) for name in ("old", "new"))
    assert main(["compare", str(old), str(new)]) == 3  # only judges could score these cases
    assert "judged differently" not in capsys.readouterr().err
    described = json.loads((new / "run.json").read_text())
    described["panel"]["judges"] = ["j/one", "j/three"]
    (new / "run.json").write_text(json.dumps(described))
    for command in (["compare"], ["compare", "--corrected"], ["gate"], ["gate", "--corrected"]):
        assert main([*command, str(old), str(new)]) == 3
        assert "were judged differently (by j/one, j/two and by j/one, j/three)" in capsys.readouterr().err
