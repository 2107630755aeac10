"""The command that lists suites and writes them out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.main import main
from steelyard.evalsets import load
from steelyard.evalsets.suites import SHIPPED_SUITE_NAMES


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


CASES = [
    {"case_id": "a", "suite_id": "s", "prompt": "p", "expected_response": "yes", "expected_classification": "pass"},
    {"case_id": "b", "suite_id": "s", "prompt": "p", "expected_response": "yes"},
    {"case_id": "c", "suite_id": "t", "prompt": "p"},
]
RESULTS: list[dict[str, Any]] = [
    {"case_id": "a", "raw_response": "yes", "classification": {"primary": "pass"}, "latency_ms": 900},
    {"case_id": "b", "raw_response": "I can't help with that.", "classification": {"primary": "pass"}},
    {"case_id": "b", "raw_response": "no", "classification": {"primary": "refusal"}, "scores": {"accuracy": 1}},
    {"case_id": "c", "suite_id": "t", "raw_response": "x", "classification": {"primary": "wrong_format"}},
    {"case_id": "c", "suite_id": "t", "raw_response": "x"},
    {"id": "d", "family": "u", "output": "x", "final_status": "pass", "model": "m", "run_id": "r"},
]


def test_recorded_classes_are_scored_and_held_against_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = {"suite_id": "s", "run_id": "r", "model_id": "m", "timestamp_utc": "2025-08-10T07:41:00Z"}
    lines = [json.dumps(one if "id" in one else head | one) for one in RESULTS]
    (tmp_path / "results.jsonl").write_text("\n".join(lines))
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)))
    paths = ["--results", str(tmp_path / "results.jsonl")]
    assert main(["suites", *paths]) == 0
    alone = capsys.readouterr().out
    assert "s        3           75.0%" in alone
    assert "we say" not in alone
    assert main(["suites", *paths, "--cases", str(tmp_path / "cases.jsonl"), "--format", "json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    scores = {suite["suite"]: suite["score"]["value"] for suite in run["they"]["suites"]}
    assert scores == {"s": 0.75, "t": 0.0, "u": 1.0}
    assert run["they"]["overall"]["value"] == pytest.approx(1.75 / 3)
    assert [suite["score"]["value"] for suite in run["we"]["suites"]] == [0.5, None, None]
    assert (run["responses"], run["unclassified"], run["contradictions"], run["compared"]) == (6, 1, 1, 3)
    assert run["latency_p50"] == 0.9
    differing = [(one["case"], one["they"], one["we"]) for one in run["disagreements"]]
    assert differing == [("b", "pass", "refusal"), ("b", "refusal", "fail")]


def test_results_that_are_none_are_named_with_their_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results.jsonl").write_text('{"case_id": "a"}\n{"suite_id": "s"}\n{"a": 1} {"b": 2}\n[]\n')
    assert main(["suites", "--results", str(tmp_path / "results.jsonl")]) == 2
    said = capsys.readouterr().err
    assert all(f"results.jsonl:{number}: " in said for number in (2, 3, 4))
    assert main(["suites", "--cases", "suite:all"]) == 2
    assert "--results" in capsys.readouterr().err


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
