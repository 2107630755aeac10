"""A report that is read one result at a time says what it says as a whole."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from steelyard.engine.gate.report_file import report_results, report_without_results
from steelyard.engine.results.report_files import write_reports
from steelyard.store.journal import StoredRun
from support.mixed_runs import mixed_run


def _emptied(value: object) -> object:
    return type(value)() if isinstance(value, dict | list) else value


@pytest.mark.parametrize("seed", range(4))
def test_the_results_of_a_report_are_read_one_by_one(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "report.json"
    write_reports([path], StoredRun(mixed_run(tmp_path / "run", seed)))
    whole = msgspec.json.decode(path.read_bytes())
    rest = report_without_results(path, least=0)
    assert rest is not None
    assert [msgspec.json.decode(result) for result in report_results(path)] == whole["results"]
    # what is long beside the results, such as the cases of the summary, is left out as well
    shallow = {
        key: {name: _emptied(each) for name, each in value.items()} if isinstance(value, dict) else value
        for key, value in whole.items()
    }
    assert msgspec.json.decode(rest) == shallow | {"results": []}
    assert report_without_results(path) is None


def test_a_report_that_is_laid_out_differently_is_not_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    for text in (
        '{"results": []}\n',
        '{\n  "results": [\n    {\n      "a": 1\n    }\n',
        '{\n  "results": [\n    1\n  ]\n}\n',
        '{\n  "results": [\n  ],\n  "results": [\n  ]\n}\n',
    ):
        path.write_text(text)
        assert report_without_results(path, least=0) is None
