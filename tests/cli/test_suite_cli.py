"""The command line scores suites as the user says, and remembers it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli import main as cli

STEELYARD = Path(sys.executable).with_name("steelyard")
MODEL = """
import time

def answer(prompt):
    kind, number = prompt.split()
    if kind == "injection":
        return "SAFE" if int(number) >= 2 else "I'm sorry, but I can't help with that."
    return "{}" if int(number) < 8 else "no"

def sleepy(prompt):
    time.sleep(30)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in list(os.environ):
        if name.startswith("STEELYARD_"):
            monkeypatch.delenv(name)
    checks = {"injection": {"type": "contains", "value": "SAFE"}, "json_api": {"type": "json"}}
    lines = [
        {"id": f"{suite}-{number}", "suite": suite, "prompt": f"{suite} {number}", "verify": {"expect": checks[suite]}}
        for suite, count in (("injection", 20), ("json_api", 10))
        for number in range(count)
    ]
    (tmp_path / "evals.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def run(*options: str, output: str = "run") -> int:
    return cli.main(["run", "evals.jsonl", "-m", "python:model.py:answer", "--output", output, *options])


def stored(folder: str = "run") -> dict[str, Any]:
    rule: dict[str, Any] = json.loads((Path(folder) / "run.json").read_text()).get("suites", {})
    return rule


def beneath(text: str) -> dict[str, str]:
    """What is said of all suites together, by name."""
    names = ("overall", "micro pass rate", "weighted", "penalised", "latency score", "as expected")
    rows = [line.strip() for line in text.splitlines()]
    return {name: row.removeprefix(name).split()[0] for row in rows for name in names if row.startswith(f"{name} ")}


def test_a_run_prints_what_its_suites_score(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    said = capsys.readouterr().out
    assert beneath(said) == {"overall": "85.0%", "micro pass rate": "86.7%", "latency score": "100.0%"}
    assert "refusal" in said
    assert stored() == {}


def test_a_run_remembers_how_its_suites_are_scored(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--penalty", "refusal=0.25", "--suite-weight", "injection=3", "--latency-limit", "20") == 0
    ran = beneath(capsys.readouterr().out)
    assert (ran["weighted"], ran["penalised"], ran["overall"]) == ("87.5%", "88.8%", "85.0%")
    assert stored() == {"penalties": {"refusal": 0.25}, "weights": {"injection": 3.0}, "latency_limit": 20.0}
    for command in (["show", "run"], ["resume", "run"], ["verify", "run"]):
        assert cli.main(command) == 0
        assert beneath(capsys.readouterr().out) == ran
    assert stored()["weights"] == {"injection": 3.0}


@pytest.mark.parametrize("command", ["show", "resume", "verify"])
def test_a_view_replaces_what_it_names_and_keeps_the_rest_and_changes_no_run(
    place: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run("--penalty", "refusal=0.25", "--suite-weight", "injection=3")
    before = stored()
    capsys.readouterr()
    assert cli.main([command, "run", "--penalty", "refusal=1", "--penalty", "fail=1"]) == 0
    seen = beneath(capsys.readouterr().out)
    assert (seen["penalised"], seen["weighted"]) == ("85.0%", "87.5%")
    assert stored() == before


def test_a_report_can_be_scored_otherwise(place: Path) -> None:
    run()
    assert cli.main(["report", "run", "-o", "r.json", "--suite-weight", "json_api=3", "--penalty", "refusal=0"]) == 0
    told = json.loads(Path("r.json").read_text())
    assert told["summary"]["models"][0]["suites"]["weighted"]["value"] == pytest.approx(0.825)
    assert told["summary"]["models"][0]["suites"]["penalised"]["value"] == pytest.approx(0.9)
    assert told["aggregate"]["per_model"]["python/model.py:answer"]["overall_run_score"] == pytest.approx(0.85)


def test_the_settings_file_and_the_environment_say_it_too(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "steelyard.toml").write_text(
        "[suites]\npenalties = { refusal = 0.25 }\nweights = { injection = 3, rare = 2 }\n"
    )
    assert run() == 0
    said = capsys.readouterr()
    assert (beneath(said.out)["penalised"], beneath(said.out)["weighted"]) == ("88.8%", "87.5%")
    assert 'a weight for "rare", which is not a suite of this run (known: injection, json_api)' in said.err
    assert stored()["penalties"] == {"refusal": 0.25}
    monkeypatch.setenv("STEELYARD_PENALTY", "refusal=1")
    assert cli.main(["show", "run"]) == 0
    assert beneath(capsys.readouterr().out)["penalised"] == "85.0%"
    assert cli.main(["show", "run", "--penalty", "refusal=0"]) == 0
    assert beneath(capsys.readouterr().out)["penalised"] == "90.0%"


def test_settings_for_suites_leave_a_run_without_any_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "steelyard.toml").write_text("[suites]\npenalties = { refusl = 2 }\nweights = { injection = 3 }\n")
    (place / "evals.jsonl").write_text('{"id": "one", "prompt": "injection 3", "target": "SAFE"}\n')
    assert run() == 0
    said = capsys.readouterr()
    assert "uites" not in (said.out + said.err).replace(str(place), "")
    assert stored() == {}


WRONG = [
    (["--penalty", "refusl=0.5"], 'unknown class "refusl" (known: crash, error, fail, '),
    (["--penalty", "refusl=0.5"], 'did you mean "refusal"?'),
    (["--penalty", "refusal=1.5"], "refusal must cost from 0, nothing, to 1"),
    (["--penalty", "refusal"], "--penalty refusal: not NAME=NUMBER, such as --penalty refusal=0.25"),
    (["--penalty", "refusal=much"], "not NAME=NUMBER"),
    (["--penalty", "=1"], "not NAME=NUMBER"),
    (["--penalty", "fail=1", "--penalty", "fail=0"], '"fail" is named twice'),
    (["--suite-weight", "injecton=2"], '"injecton" (known: injection, json_api; did you mean "injection"?)'),
    (["--suite-weight", "injection=-1"], "must weigh 0 or more, not -1"),
    (["--latency-target", "30"], "not 30 s with a limit of 30 s"),
    (["--latency-limit", "soon"], "--latency-limit"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_what_cannot_be_used_is_told_in_one_sentence_before_anybody_is_asked(
    place: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert run(*options) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert not Path("run").exists()


@pytest.mark.parametrize("command", ["show", "report", "resume", "verify"])
def test_views_refuse_it_as_well(place: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    run()
    capsys.readouterr()
    more = ["-o", "r.json"] if command == "report" else []
    assert cli.main([command, "run", "--suite-weight", "json=2", *more]) == 2
    assert 'no suite "json" (known: injection, json_api; did you mean "json_api"?)' in capsys.readouterr().err


def test_a_wrong_settings_file_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "mine.toml").write_text("[suites]\nlatency_target = 40\n")
    assert run("--config", "mine.toml") == 2
    assert "mine.toml: [suites]: the latency target must be below the limit" in capsys.readouterr().err


def test_a_weight_for_a_suite_that_was_filtered_out_is_no_mistake(place: Path) -> None:
    assert run("--case", "injection-*", "--suite-weight", "json_api=2") == 0
    assert stored() == {"weights": {"json_api": 2.0}}


def test_a_run_that_was_interrupted_remembers_it_too(place: Path) -> None:
    command = [
        str(STEELYARD),
        "run",
        "evals.jsonl",
        "-m",
        "python:model.py:sleepy",
        "--output",
        "run",
        "--penalty",
        "fail=0.5",
    ]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not Path("run/run.json").exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert stored() == {"penalties": {"fail": 0.5}}


def test_two_runs_are_compared_suite_by_suite(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run()
    (place / "model.py").write_text(MODEL.replace(">= 2", ">= 7"))
    run(output="after")
    capsys.readouterr()
    assert cli.main(["bless", "run", "--as", "main"]) == 0
    assert cli.main(["compare", "--baseline", "main", "--current", "after"]) == 0
    said = capsys.readouterr().out
    row = next(line.split() for line in said.splitlines() if line.startswith("  injection "))
    assert row[1:5] == ["0.900", "->", "0.650", "-0.250"]
    assert "refusal 2 -> 7" in said
    assert cli.main(["compare", "--baseline", "main", "--current", "after", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["overall"][0]["delta"] == pytest.approx(-0.125)


def test_an_attempt_is_shown_with_its_evidence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run()
    capsys.readouterr()
    assert cli.main(["show", "run", "injection-0", "1"]) == 0
    said = capsys.readouterr().out
    assert "Classification  refusal\n  en-inability: " in said
    assert "none found in the reply" not in said
