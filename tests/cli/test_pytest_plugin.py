"""A test suite of a user's, run by pytest as users run it: what its tests say about models."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import chdir
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from steelyard import RunOptions, Settings, gate
from steelyard.engine.gate.sides import bless
from steelyard.engine.run import run
from steelyard.errors import InputError
from support.forked import forked

CAPITALS = {"france": "Paris", "japan": "Tokyo", "kenya": "Nairobi", "peru": "Lima", "egypt": "Cairo", "cuba": "Havana"}
GATE = 'def test_model(steelyard):\n    steelyard.run("evals/").must_not_regress("main")\n'


def record(name: str, attempts: int, *, wrong: dict[str, int] | None = None) -> str:
    """Recorded replies to every case, of which the first ones are wrong; the model that replays them."""
    lines = [
        {
            "case_id": case,
            "model_id": "recorded",
            "raw_response": "Atlantis" if number < (wrong or {}).get(case, 0) else capital,
        }
        for case, capital in CAPITALS.items()
        for number in range(attempts)
    ]
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return f"replay:{name}"


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a user's tests stand: an eval set, recorded replies and the baseline `main` of good ones."""
    scene = tmp_path_factory.mktemp("scene")
    with chdir(scene):
        cases = [
            {"id": case, "question": f"What is the capital of {case}?", "target": target}
            for case, target in CAPITALS.items()
        ]
        Path("evals").mkdir()
        Path("evals/capitals.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases), "utf-8")
        bless([str(run("evals/", models=record("good.jsonl", 100), output="runs/good").folder)], "main")
        bless([str(run("evals/", models=record("few.jsonl", 9), output="runs/few").folder)], "few")
        record("same.jsonl", 100)
        record("worse.jsonl", 20, wrong={"peru": 18})
        record("bad.jsonl", 20, wrong=dict.fromkeys(CAPITALS, 18))
        record("thin.jsonl", 3)
    return scene


@pytest.fixture
def place(scene: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(scene, tmp_path / "place"))


def suite(
    place: Path, tests: str, *arguments: str, models: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """What pytest makes of a file of tests, in a process of its own."""
    (place / "test_models.py").write_text(tests, "utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEELYARD_", "PYTEST_", "CI"))}
    words = [*arguments, *([f"--steelyard-models={models}"] if models else [])]
    return forked("pytest", words, place, {**clean, "COLUMNS": "200", **environment})


def runs(place: Path) -> list[Path]:
    return sorted((place / "steelyard-runs").iterdir())


def test_the_page_shows_the_test_that_is_tried_here() -> None:
    assert f"```text\n{GATE}```\n" in (Path(__file__).parents[2] / "docs" / "pytest.md").read_text("utf-8")


def test_a_run_that_is_as_good_as_its_baseline_passes(place: Path) -> None:
    ran = suite(place, GATE, "-rP", models="replay:same.jsonl")
    assert ran.returncode == 0, ran.stdout
    assert "1 passed in" in ran.stdout
    assert "recorded: NOT REGRESSED\n" in ran.stdout
    (folder,) = runs(place)
    assert (folder / "looks.jsonl").read_text().count("\n") == 1


def test_a_worse_run_fails_the_test_and_names_the_culprit_without_a_traceback(place: Path) -> None:
    ran = suite(place, GATE, models="replay:worse.jsonl")
    assert ran.returncode == 1
    assert "  Cases that got worse\n    peru  1.000 -> 0.100  p " in ran.stdout
    assert "japan" not in ran.stdout
    assert re.search(r"^FAILED test_models\.py::test_model - Failed: REGRESSED", ran.stdout, re.MULTILINE)
    assert f"Look closer: steelyard show steelyard-runs/{runs(place)[0].name}\n" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr
    assert not re.search(r"\.py:\d", ran.stdout)


def test_thin_evidence_passes_with_a_warning_of_its_own_class(place: Path) -> None:
    ran = suite(place, GATE, models="replay:thin.jsonl")
    assert ran.returncode == 0, ran.stdout
    assert "1 passed, 1 warning in" in ran.stdout
    assert "test_models.py:2: GateWarning: CANNOT TELL" in ran.stdout
    for module in ("steelyard.cli.pytest_plugin", "steelyard.pytest_plugin"):
        strict = suite(place, GATE, f"-Werror::{module}.GateWarning", models="replay:thin.jsonl")
        assert strict.returncode == 1
        assert "pytest_plugin.py:" not in strict.stdout, "where a warning is an error, it is one of the test"


def test_a_test_may_name_the_type_of_its_fixture(place: Path) -> None:
    annotated = ""
    for number, module in enumerate(("steelyard", "steelyard.pytest_plugin", "steelyard.cli.pytest_plugin")):
        test = GATE.replace("test_model(steelyard)", f"test_{number}(steelyard: Steelyard)")
        annotated += f"from {module} import Steelyard\n{test}    assert type(steelyard) is Steelyard\n\n"
    ran = suite(place, annotated, models="replay:same.jsonl")
    assert ran.returncode == 0, ran.stdout
    assert "3 passed" in ran.stdout


def test_thin_evidence_fails_where_that_is_asked_for(place: Path) -> None:
    strict = GATE.replace('"main"', '"main", on_inconclusive="fail"')
    ran = suite(place, strict, models="replay:thin.jsonl")
    assert ran.returncode == 1
    assert "Failed: CANNOT TELL" in ran.stdout


def test_what_a_passed_gate_warns_of_is_shown(place: Path) -> None:
    ran = suite(place, GATE.replace('"main"', '"few", margin=0.3'), models="replay:same.jsonl")
    assert ran.returncode == 0, ran.stdout
    assert "GateWarning: NOT REGRESSED\n" in ran.stdout
    assert "! few has as few as 9 attempts per case" in ran.stdout


BAD_INPUT = {
    """steelyard.run("evals/").must_not_regress("mian")""": 'no run "mian" here or under steelyard-runs',
    """steelyard.run("nowhere")""": "nowhere: cannot be read: No such file or directory",
    """steelyard.run("evals/").must_not_regress("latest")""": 'the baseline "latest" is this run itself; name an',
    """steelyard.run("evals/").must_not_regress("main", margin=5)""": "alpha and margin must be between 0 and 1",
    """steelyard.run("evals/").must_not_regress("main", on="luck")""": 'on passed or score, not on "luck"',
    """steelyard.run("evals/").must_not_regress("main", on_inconclusive="")""": "on_inconclusive is",
    """steelyard.run("evals/", sampels=3)""": 'steelyard.run: unknown argument "sampels" (known: base_url, ',
    """steelyard.run("evals/", samples=0)""": "samples must be 1 or more, not 0",
    """steelyard.run("evals/", models="replay:gone.jsonl")""": "replay:gone.jsonl: No such file or directory",
    """steelyard.run("evals/").must_pass(90)""": "a rate must be between 0 and 1, and k at least 1, not 90 and 1",
    """steelyard.run("evals/").must_pass(0.9, k=200)""": "pass@200 of recorded is not known: no case has 200",
}


def test_bad_input_fails_a_test_with_one_sentence(place: Path) -> None:
    tests = "".join(f"def test_{number}(steelyard):\n    {line}\n" for number, line in enumerate(BAD_INPUT))
    ran = suite(place, tests, "--tb=long", "-rN", models="replay:same.jsonl")
    assert ran.returncode == 1
    said = re.findall(r"^steelyard: .*$", ran.stdout, re.MULTILINE)
    assert len(said) == len(BAD_INPUT)
    for sentence, expected in zip(said, BAD_INPUT.values(), strict=True):
        assert expected in sentence
    assert "Traceback" not in ran.stdout + ran.stderr
    assert not re.search(r"\.py:\d", ran.stdout)


def test_without_a_model_the_sentence_says_where_to_name_one(place: Path) -> None:
    ran = suite(place, GATE)
    assert "steelyard: no model to ask; name one in the test, with --steelyard-models or as models in" in ran.stdout


OUTAGE = """
max_retries = 0
models = "down/model"
[providers.down]
type = "openai"
base_url = "http://127.0.0.1:{port}/v1"
"""


@pytest.mark.parametrize(("samples", "reason"), [(1, "6 of 6 attempts are missing"), (9, "down/model was given up: ")])
def test_an_outage_fails_with_its_own_reason_and_is_no_regression(place: Path, samples: int, reason: str) -> None:
    with socket.socket() as closed:
        # bound and not listening: nobody else can answer there
        closed.bind(("127.0.0.1", 0))
        (place / "steelyard.toml").write_text(OUTAGE.format(port=closed.getsockname()[1]))
        ran = suite(place, GATE + GATE.replace("test_model", "test_again"), f"--steelyard-samples={samples}")
    assert ran.returncode == 1
    assert ran.stdout.count("Failed: CANNOT TELL: attempts are missing, which is not the model's fault") == 2
    assert reason in ran.stdout
    (folder,) = runs(place)
    assert f"Continue with: steelyard resume steelyard-runs/{folder.name}\n" in ran.stdout
    assert "REGRESSED" not in ran.stdout
    assert not (folder / "looks.jsonl").exists(), "a look at nothing would spend some of the error rate"


def test_models_and_samples_come_from_test_option_environment_and_settings_file_in_this_order(place: Path) -> None:
    (place / "steelyard.toml").write_text('models = "replay:good.jsonl"\nsamples = 4\ntemperature = 0.5\n')
    show = """
import pytest

@pytest.mark.parametrize("given", {given})
def test_model(steelyard, given):
    done = steelyard.run("evals/", **given)
    print("asked", done.run.info.models, done.run.info.samples, done.run.info.parameters)
    assert (done.folder / "run.json").exists() and done.summary.models[0].pass_at[1].value is not None
"""
    ways: list[tuple[list[dict[str, Any]], list[str], dict[str, str]]] = [
        ([{}, {"parameters": {"max_tokens": 9}}], [], {}),
        ([{}], [], {"STEELYARD_MODELS": "replay:same.jsonl", "STEELYARD_SAMPLES": "5"}),
        (
            [{}, {"models": "replay:same.jsonl", "samples": 2}],
            ["--steelyard-models=replay:thin.jsonl", "--steelyard-samples=3"],
            {"STEELYARD_SAMPLES": "5"},
        ),
    ]
    asked = []
    for given, arguments, environment in ways:
        ran = suite(place, show.format(given=given), "-rP", *arguments, **environment)
        asked += re.findall("^asked (.*)$", ran.stdout, re.MULTILINE)
    assert asked == [
        "('replay:good.jsonl',) 4 {'temperature': 0.5}",
        "('replay:good.jsonl',) 4 {'temperature': 0.5, 'max_tokens': 9}",
        "('replay:same.jsonl',) 5 {'temperature': 0.5}",
        "('replay:thin.jsonl',) 3 {'temperature': 0.5}",
        "('replay:same.jsonl',) 2 {'temperature': 0.5}",
    ]


SEVERAL = """
import pytest

def test_gate(steelyard):
    steelyard.run("evals/").must_not_regress("main")

@pytest.mark.parametrize("number", range(6))
def test_many(steelyard, number):
    steelyard.run("evals/").must_not_regress("main")
    assert steelyard.run("evals/").summary.models[0].attempts == 600

def test_other(steelyard):
    steelyard.run("evals/", samples=50).must_not_regress("main", margin=0.2)
"""


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["alone", "xdist"])
def test_a_session_asks_once_however_many_tests_and_workers_want_the_run(place: Path, workers: list[str]) -> None:
    ran = suite(place, SEVERAL, *workers, models="replay:same.jsonl")
    assert ran.returncode == 0, ran.stdout
    assert "8 passed in" in ran.stdout
    assert len(runs(place)) == 2
    suite(place, GATE, *workers, models="replay:same.jsonl")
    assert len(runs(place)) == 3, "the next session asks again"


def test_another_address_of_the_models_is_another_run(place: Path) -> None:
    tests = """
def test_one(steelyard, monkeypatch):
    monkeypatch.setenv("SOMETHING", "else")
    steelyard.run("evals/")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    steelyard.run("evals/")

def test_two(steelyard):
    steelyard.run("evals/")
"""
    ran = suite(place, tests, models="replay:thin.jsonl")
    assert ran.returncode == 0, ran.stdout
    assert len(runs(place)) == 2


@pytest.mark.slow
def test_xdist_workers_tell_of_a_regression_as_one_process_does(place: Path) -> None:
    ran = suite(place, GATE, "-n2", models="replay:worse.jsonl")
    assert ran.returncode == 1
    assert "    peru  1.000 -> 0.100  p " in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr


def test_a_run_in_a_folder_of_the_baselines_name_is_not_taken_for_the_baseline(place: Path) -> None:
    same_name = GATE.replace('"evals/"', '"evals/", output="main"')
    assert "Failed: REGRESSED" in suite(place, same_name, models="replay:worse.jsonl").stdout


DEMANDS = """
import pytest

@pytest.mark.parametrize(("model", "rate", "k"), [
    ("same", 0.3, 1), ("same", 0.99, 1), ("thin", 0.9, 1), ("bad", 0.9, 1), ("bad", 0.9, 2), ("bad", 0.12, 1), ("bad", 0.0, 1)
])
def test_rate(steelyard, model, rate, k):
    steelyard.run("evals/", models=f"replay:{model}.jsonl").must_pass(rate, k=k)

def test_strict(steelyard):
    steelyard.run("evals/", models="replay:thin.jsonl").must_pass(0.9, on_inconclusive="fail")
"""


def test_a_rate_is_missed_only_when_the_whole_interval_is_below_it(place: Path) -> None:
    ran = suite(place, DEMANDS, "-vv")
    assert re.findall(r"::test_rate\[(.*)\] (\w+)", ran.stdout.partition("short test summary")[0]) == [
        ("same-0.3-1", "PASSED"),
        ("same-0.99-1", "PASSED"),
        ("thin-0.9-1", "PASSED"),
        ("bad-0.9-1", "FAILED"),
        ("bad-0.9-2", "FAILED"),
        ("bad-0.12-1", "PASSED"),
        ("bad-0.0-1", "PASSED"),
    ]
    assert re.findall(r"GateWarning: (.*)", ran.stdout) == [
        "CANNOT TELL: pass@1 must be 99.0%",
        "CANNOT TELL: pass@1 must be 90.0%",
        "CANNOT TELL: pass@1 must be 12.0%",
    ]
    assert "\nUNDER 90.0%: pass@2 must be 90.0%\n  recorded: 19.5% [" in ran.stdout
    assert "::test_strict - Failed: CANNOT TELL: pass@1 must be 90.0%" in ran.stdout


SLOW = """
import pathlib, time

def slow(prompt):
    pathlib.Path("asked").touch()
    time.sleep(60)
"""


def test_ctrl_c_says_how_to_go_on_with_the_run(place: Path) -> None:
    (place / "model.py").write_text(SLOW)
    (place / "test_models.py").write_text(GATE)
    command = [sys.executable, "-m", "pytest", "--steelyard-models=python:model.py:slow"]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True) as testing:
        while not (place / "asked").exists():
            assert testing.poll() is None
            time.sleep(0.05)
        testing.send_signal(signal.SIGINT)
        said, _ = testing.communicate(timeout=60)
    assert testing.returncode == 2
    assert f"continue with: steelyard resume steelyard-runs/{runs(place)[0].name}" in said


def test_the_plug_in_is_found_by_pytest_and_explains_itself(place: Path) -> None:
    (found,) = entry_points(group="pytest11", name="steelyard")
    assert found.value == "steelyard.cli.pytest_plugin"
    told = suite(place, "", "--help").stdout
    assert "--steelyard-models=P/M,..." in told
    assert "--steelyard-samples=N" in told
    assert "must_not_regress" in suite(place, "", "--fixtures").stdout


def test_whoever_does_not_use_the_fixture_pays_for_one_small_module() -> None:
    script = "import sys, pytest; before = set(sys.modules); import steelyard.cli.pytest_plugin; print(sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded == "['steelyard', 'steelyard.cli', 'steelyard.cli.pytest_plugin', 'steelyard.pytest_plugin']\n"


def test_the_library_gates_by_names_as_the_command_line_does(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    worse = run("evals/", models="replay:worse.jsonl", output="runs/worse").folder
    found = gate("main", "runs/worse", margin=0.1)
    assert (found.decision.verdict, found.look) == ("regressed", 1)
    assert [change.case for change in found.decision.models[0].confirmed] == ["peru"]
    assert gate("main", worse, margin=0.1).decision == found.decision
    assert len((worse / "looks.jsonl").read_text().splitlines()) == 1, "the same attempts are the same look"
    assert (
        gate("main", "worse", options=RunOptions(settings=Settings(output_dir="runs"))).decision.verdict == "regressed"
    )
    with pytest.raises(InputError, match='sides are compared on passed or score, not on "luck"'):
        gate("main", worse, on="luck")


def test_a_path_is_never_the_name_of_a_baseline(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    folder = run("evals/", models="replay:worse.jsonl", output="main").folder
    assert gate("main", folder).decision.verdict == "regressed"
    assert gate("main", "main").decision.verdict == "not regressed"
