"""What a command shows is what the library returns: exit codes, messages, reports and next steps, without a command line."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from steelyard import Case, Means, Settings, Verify, gate, run
from steelyard.analysis.counts import Tally, standings
from steelyard.engine.gate.rounds import stopping_rule
from steelyard.engine.preflight.connect import ListedModel, models_exit_code
from steelyard.engine.preflight.forecast import Forecast, forecast_text
from steelyard.engine.preflight.references import check_references
from steelyard.engine.results.conclusion import next_commands, standings_conclusion
from steelyard.engine.results.report_files import write_reports
from steelyard.engine.tiers import tier_runs
from steelyard.errors import ExitCode, InputError
from steelyard.records import Expectations
from steelyard.reports.lists import MachineHealth
from steelyard.store.journal import StoredRun
from support.command_line import steelyard

MODEL = """
from pathlib import Path


def paris(prompt):
    Path("asked").touch()
    return "Paris"


def rome(prompt):
    return "Rome"


def late(prompt, attempt):
    return "Paris" if attempt.number < 3 else "Rome"


def flaky(prompt, attempt):
    if attempt.number == 1:
        raise ValueError("once")
    return "Paris"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "cases.jsonl").write_text('{"id": "france", "question": "Capital of France?", "target": "Paris"}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_tells_its_exit_code_its_messages_and_what_to_type_next(place: Path) -> None:
    good = run("cases.jsonl", models="python:model.py:paris", output="good")
    assert good.exit_code is ExitCode.OK
    assert good.conclusion(fail_under=1.0) == (ExitCode.OK, ())
    assert "<th>good</th><th>python/model.py:paris</th>" in good._repr_html_()
    assert "<td>correct</td><td>1/1</td>" in good._repr_html_()
    assert good.next_commands == ["steelyard report good -o report.html"]
    spaced = next_commands(Path("my runs/good"), StoredRun(good.folder).info, good.summary)
    assert spaced == ["steelyard report 'my runs/good' -o report.html"]
    bad = run("cases.jsonl", models="python:model.py:rome", output="bad")
    assert bad.exit_code is ExitCode.OK
    assert bad.next_commands[0] == "steelyard show bad france 1 --model python/model.py:rome"
    failed = bad.conclusion(fail_under=0.5)
    assert failed.exit_code is ExitCode.GATE_FAILED
    assert failed.messages == ("steelyard: python/model.py:rome: pass@1 is 0.0%, under 50.0%",)
    gated = gate("good", "bad")
    assert gated.conclusion("fail").exit_code is ExitCode.CANNOT_TELL
    assert gated.conclusion("pass").exit_code is ExitCode.OK


def test_what_to_type_next_shows_the_first_attempt_that_failed(place: Path) -> None:
    both = run("cases.jsonl", models=["python:model.py:paris", "python:model.py:late"], samples=4, output="my run")
    assert both.next_commands[0] == "steelyard show 'my run' france 3 --model python/model.py:late"
    shown = steelyard(place, *shlex.split(both.next_commands[0])[1:])
    assert (shown.returncode, "Rome" in shown.stdout, "paris" in shown.stdout) == (0, True, False), shown.stderr
    unknown = steelyard(place, "show", "my run", "--model", "python/model.py:lte")
    assert (unknown.returncode, 'did you mean "python/model.py:late"?' in unknown.stderr) == (2, True)


def test_more_than_one_attempt_in_twenty_missing_is_no_result_though_every_case_has_one(place: Path) -> None:
    settings = Settings(max_retries=0)
    for samples, code in ((19, ExitCode.CANNOT_TELL), (20, ExitCode.OK)):
        done = run("cases.jsonl", models="python:model.py:flaky", samples=samples, means=Means(settings=settings))
        (model,) = done.summary.models
        assert (model.attempts, model.missing, model.unscored) == (samples - 1, 1, ())
        assert done.exit_code is code
        assert done.conclusion(fail_under=0.5).exit_code is code


def test_a_count_of_outcomes_and_an_experiment_tell_their_exit_codes_and_messages(place: Path) -> None:
    counted = standings([Tally("m", ["a", "b"], [2, 0], [1, 0])], [1])
    thin = standings_conclusion(counted)
    assert thin.exit_code is ExitCode.CANNOT_TELL
    assert thin.messages == tuple(f"note: {note}" for note in counted.notes)
    assert standings_conclusion(standings([Tally("m", ["a"], [2], [1])], [1])) == (ExitCode.OK, ())
    done = run("cases.jsonl", models="python:model.py:paris", output="good")
    experiment = tier_runs.tier_experiment(StoredRun(done.folder))
    assert tier_runs.tier_result(experiment).conclusion() == (ExitCode.OK, ())
    stopped = tier_runs.tier_result(experiment, stopped=("the disk is full",))
    assert stopped.conclusion("steelyard resume good") == (
        ExitCode.CANNOT_TELL,
        ("steelyard: the disk is full; continue with: steelyard resume good",),
    )
    nothing = tier_runs.tier_result(experiment._replace(runs=()), stopped=("no key",))
    assert nothing.analysis is None
    assert nothing.conclusion() == (
        ExitCode.CANNOT_TELL,
        ("steelyard: no key; continue with the same command",),
    )


def test_models_a_machine_and_references_tell_their_exit_codes(place: Path) -> None:
    offered, silent = ListedModel("openai", "gpt", "", None), ListedModel("ollama", "", "connection refused", None)
    assert models_exit_code([silent, offered]) is ExitCode.OK
    assert models_exit_code([silent]) is ExitCode.CANNOT_TELL
    health = MachineHealth(system="", root=False, level="", levels=(), limits=(), tools=(), advice=())
    assert health.exit_code is ExitCode.CANNOT_TELL
    assert replace(health, level="full").exit_code is ExitCode.OK
    case = Case(id="a", prompt="?", target="yes", reference="no")
    checked = check_references([case, replace(case, id="b", reference="yes")])
    assert (checked.proved, checked.wrong, checked.exit_code) == (1, 1, ExitCode.BAD_INPUT)


def test_a_notebook_writes_the_reports_that_the_command_writes(place: Path) -> None:
    done = run("cases.jsonl", models="python:model.py:paris", output="good")
    assert write_reports(["report.json", "report.md"], StoredRun(done.folder)) == [
        Path("report.json"),
        Path("report.md"),
    ]
    assert steelyard(place, "report", "good", "-o", "again.json").returncode == 0
    assert Path("again.json").read_bytes() == Path("report.json").read_bytes()


@pytest.mark.parametrize("report", ["report.htm", "nowhere/report.html"])
@pytest.mark.parametrize("command", ["run", "resume"])
def test_a_report_that_cannot_be_written_is_refused_before_any_model_is_asked(
    place: Path, command: str, report: str
) -> None:
    arguments = {"run": ["cases.jsonl", "-m", "python:model.py:paris"], "resume": ["good", "-n", "2"]}[command]
    if command == "resume":
        run("cases.jsonl", models="python:model.py:paris", output="good")
        Path("asked").unlink()
    ended = steelyard(place, command, *arguments, "-o", report)
    assert ended.returncode == 2
    assert report in ended.stderr
    assert not Path("asked").exists()
    assert not Path("steelyard-runs").exists()


def test_what_cannot_be_shown_is_refused_before_any_judge_or_tier_is_asked_and_before_anything_is_verified_again(
    place: Path,
) -> None:
    run("cases.jsonl", models="python:model.py:rome", output="good")
    Path("rubric.toml").write_text('[categories.works]\ncheck = "It works."\n')
    header = '[experiment]\nid = "e"\nname = "e"\ncases = ["cases.jsonl"]\nruns = 1\n'
    Path("experiment.toml").write_text(f'{header}[[tiers]]\nname = "T0"\nmodel = "python:model.py:paris"\n')
    before = Path("good/attempts.jsonl").read_bytes()
    commands = {
        "resume": ["good", "-n", "2"],
        "verify": ["good"],
        "judge": ["good", "--judges", "python:model.py:paris", "--rubric", "rubric.toml"],
        "tiers": ["experiment.toml", "--output", "tiers"],
    }
    refusals = {
        "resume": [["--rule", "cod"], ["--format", "jsn"], ["--fail-under", "2"], ["--penalty", "x"]],
        "verify": [["-o", "r.htm"], ["-o", "nowhere/r.json"], ["--rule", "cod"], ["--format", "jsn"]],
        "judge": [
            ["-o", "r.htm"],
            ["-o", "nowhere/r.json"],
            ["--format", "jsn"],
            ["--charts", "cases.jsonl"],
            ["--max-cost", "nan"],
        ],
        "tiers": [
            ["-o", "r.htm"],
            ["-o", "nowhere/r.json"],
            ["--baseline", "T1"],
            ["--format", "jsn"],
            ["--charts", "cases.jsonl"],
        ],
    }
    for command, arguments in commands.items():
        for wrong in refusals[command]:
            ended = steelyard(place, command, *arguments, *wrong)
            assert (ended.returncode, wrong[1] in ended.stderr) == (2, True), (command, wrong, ended)
    assert not Path("asked").exists()
    assert not Path("tiers").exists()
    assert Path("good/attempts.jsonl").read_bytes() == before


def test_a_gate_report_that_cannot_be_written_costs_no_look(place: Path) -> None:
    run("cases.jsonl", models="python:model.py:paris", output="good")
    run("cases.jsonl", models="python:model.py:rome", output="bad")
    assert steelyard(place, "gate", "--baseline", "good", "--current", "bad", "-o", "gate.html").returncode == 2
    assert not Path("bad/looks.jsonl").exists()


def test_one_of_a_thing_is_not_plural(place: Path) -> None:
    assert forecast_text([Forecast("m", 1, 1, None)]) == "m: 1 attempt at 1 case, at an unknown price\n"
    assert steelyard(place, "validate", "cases.jsonl").stdout == "1 case in 1 file; 0 answers proved; 0 problems\n"


def test_a_stopping_rule_says_what_it_needs() -> None:
    assert stopping_rule(None, until_decided=False) is None
    unasked = stopping_rule("main", until_decided=False)
    assert unasked is not None
    assert unasked.most == 10
    with pytest.raises(InputError, match="--baseline belongs to --until-decided"):
        stopping_rule("main", until_decided=False, samples=5)
    with pytest.raises(InputError, match="needs a --baseline"):
        stopping_rule(None, until_decided=True)


def test_run_takes_every_keyword_and_refuses_others() -> None:
    case = Case(id="a", prompt="?", verify=Verify(kind="response"), expectations=Expectations())
    with pytest.raises(TypeError, match="sampels"):
        run([case], models="replay:nowhere.jsonl", sampels=3)  # type: ignore[call-arg]
