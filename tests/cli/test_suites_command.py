"""The command that lists suites and writes them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.cli.main import main
from steelyard.evalsets import load
from steelyard.evalsets.loader import SHIPPED_SUITE_NAMES


def test_it_lists_what_comes_with_us(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites"]) == 0
    printed = capsys.readouterr().out
    assert all(f"suite:{name}" in printed for name in SHIPPED_SUITE_NAMES)


def test_it_shows_the_cases_of_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites", "suite:json_api"]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 1 + len(load(["suite:json_api"]).cases)


def test_what_it_writes_is_the_same_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "all.jsonl"
    assert main(["suites", "suite:all", "-o", str(file)]) == 0
    assert capsys.readouterr().out == f"wrote {file}: 300 cases\n"
    ours, written = load(["suite:all"]).cases, load([file]).cases
    assert [(case.id, case.suite, case.prompt, case.tests_digest) for case in written] == [
        (case.id, case.suite, case.prompt, case.tests_digest) for case in ours
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["suites", "suite:nothing"], 'no suite "nothing" comes with steelyard'),
        (
            ["suites", "suite:json_api", "-o", "nowhere/x.jsonl"],
            "nowhere: cannot be written: No such file or directory",
        ),
        (["suites", "absent.toml"], "absent.toml: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
