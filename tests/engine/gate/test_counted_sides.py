"""Files with a row per attempt are sides of a comparison, as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.cli.main import main
from steelyard.comparison.threshold import compare
from steelyard.engine.gate.gate import gate
from steelyard.engine.gate.sides import bless, side
from steelyard.engine.results.read_outcomes import CountingOptions
from steelyard.errors import InputError
from steelyard.outcomes.parquet_counts import AttemptColumns

CASES = [f"p{number}" for number in range(12)]


def fixes(path: str, passes: int, *, attempts: int = 10) -> str:
    """Repairs of twelve problems, each plausible so many times."""
    rows = [f"{case},{number},{number <= passes}" for case in CASES for number in range(1, attempts + 1)]
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("\n".join(["oid,iteration_id,plausible_fix", *rows, ""]))
    return path


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_repairs_that_got_worse_are_red_from_their_csv_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", fixes("march/gpt_fixes.csv", 9), fixes("april/gpt_fixes.csv", 5)]) == 1
    shown = capsys.readouterr().out
    assert "gpt: REGRESSED" in shown
    assert "-40.0 points" in shown


def test_repairs_that_did_not_change_are_cleared() -> None:
    found = gate(fixes("march/gpt_fixes.csv", 10), fixes("april/gpt_fixes.csv", 10))
    assert [(model.model, model.verdict) for model in found.decision.models] == [("gpt", "not regressed")]


def test_a_table_of_attempts_and_a_table_of_counts_say_the_same() -> None:
    rows = [f"{case},m,{int(number < 7)}" for case in CASES for number in range(10)]
    Path("attempts.csv").write_text("\n".join(["case,model,passed", *rows, ""]))
    Path("counts.csv").write_text("\n".join(["case,model,n,correct", *(f"{case},m,10,7" for case in CASES), ""]))
    assert side("attempts.csv").models == side("counts.csv").models
    assert not compare(side("attempts.csv"), side("counts.csv")).regressions
    assert gate("counts.csv", fixes("m_fixes.csv", 2)).decision.verdict == "regressed"


def test_compare_takes_tables_whose_columns_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for name, passes in (("old", 3), ("new", 1)):
        rows = [f"a,{number < passes}" for number in range(3)]
        Path(f"{name}.csv").write_text("\n".join(["task,ok", *rows, ""]))
    assert main(["compare", "old.csv", "new.csv", "--case", "task", "--passed", "ok", "--fail-on-regression"]) == 1
    assert "a  1.000 -> 0.333  -0.667" in capsys.readouterr().out


def test_columns_of_a_table_can_be_named() -> None:
    rows = [f"{case},{'yes' if number < 7 else 'no'}" for case in CASES for number in range(10)]
    Path("old.csv").write_text("\n".join(["task,ok", *rows, ""]))
    columns = AttemptColumns(case="task", passed="ok")
    found = gate("old.csv", "old.csv", counting=CountingOptions(columns=columns)).pairing.models[0]
    assert [(old.attempts, new.passes) for old, new in found.cases] == [(10, 7)] * 12
    with pytest.raises(InputError, match=r"old.csv: neither a run folder nor a file"):
        gate("old.csv", "old.csv")


def test_attempts_without_an_outcome_make_the_gate_unable_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{case},m,{'' if number == 9 else 1}" for case in CASES for number in range(10)]
    Path("attempts.csv").write_text("\n".join(["case,model,passed", *rows, ""]))
    assert [trials.missing for trials in side("attempts.csv").models["m"]] == [1] * 12
    assert main(["gate", "attempts.csv", "attempts.csv"]) == 3
    assert "10.0% of the cases have no score, or of the attempts no verdict" in capsys.readouterr().out


def test_what_is_odd_about_a_file_is_said_with_the_verdict() -> None:
    path = fixes("gpt_fixes.csv", 9)
    Path(path).write_text(Path(path).read_text() + "p0,1,True\n")
    found = gate(path, fixes("new/gpt_fixes.csv", 9))
    assert any("counted once" in warning for warning in found.warnings)
    assert [str(problem) for problem in bless([path], "main").problems] == [found.warnings[0]]
    assert side("main").models == side(path).models


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "a.csv: empty; expected a header line"),
        ("oid,iteration_id,plausible_fix\n", "a.csv: no attempts in it"),
        ("oid,iteration_id,plausible_fix\nx,1,maybe\n", 'a.csv:2: plausible_fix is "maybe"'),
        ("oid,iteration_id,plausible_fix\nx,1,True\nx,1,False\n", "a.csv:3: "),
    ],
)
def test_a_file_that_cannot_be_counted_is_refused_in_one_sentence(
    content: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.csv").write_text(content)
    assert main(["gate", "a.csv", fixes("gpt_fixes.csv", 9)]) == 2
    assert said in capsys.readouterr().err
