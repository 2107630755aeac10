"""Cases that the baseline has and the run does not: a user may want to know by the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.cli.main import main


def test_a_deleted_case_fails_the_gate_where_the_user_asks_for_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"case-{place},10,{place % 11}\n" for place in range(30)]
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    before.write_text("".join(["case,n,correct\n", *rows]))
    after.write_text("".join(["case,n,correct\n", *rows[1:]]))
    assert main(["gate", f"{before}@before", f"{after}@after"]) == 0
    reports = tmp_path / "gate.xml", tmp_path / "gate.sarif"
    files = [word for path in reports for word in ("-o", str(path))]
    assert main(["gate", f"{before}@before", f"{after}@after", "--fail-on-removed", *files]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("steelyard: 1 case of the baseline cannot be compared")
    assert [path.read_text("utf-8").count("case-removed") > 0 for path in reports] == [True, True]
    assert 'name="case-0"' in reports[0].read_text("utf-8")
    assert main(["gate", f"{before}@before", f"{before}@before", "--fail-on-removed"]) == 0
