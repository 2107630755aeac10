"""The command line as a contract: what it prints where, and how it exits."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import duckdb
import pytest

from steelyard.cli.main import main
from steelyard.cli.streams import guarded_output
from support.command_line import installed_version, steelyard
from support.fault_server import FaultServer

STEELYARD = Path(sys.executable).with_name("steelyard")
RIGHT = "```python\ndef double(x):\n    return 2 * x\n```"
WRONG = "```python\ndef double(x):\n    return x\n```"
EVALS = """
[eval_set]
id = "tiny"
name = "Tiny"
default_language = "python"
[[cases]]
id = "double"
name = "Double"
tags = ["easy"]
prompt = "Write double(x)."
[cases.expectations]
test_file = '''
assert double(2) == 4
assert double(0) == 0
'''
[[cases]]
id = "again"
name = "Double again"
tags = ["hard"]
prompt = "Write double(x), again."
[cases.expectations]
test_file = "assert double(3) == 6"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "evals.toml").write_text(EVALS)
    (tmp_path / "model.py").write_text(f"def right(prompt): return {RIGHT!r}\ndef wrong(prompt): return {WRONG!r}\n")
    return tmp_path


def program(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the program does in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEELYARD_", "OPENAI_", "CI"))}
    return subprocess.run(
        [STEELYARD, *arguments],
        cwd=place,
        env={**clean, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_run_prints_its_numbers_and_what_to_type_next(place: Path) -> None:
    ran = program(place, "run", "evals.toml", "-m", "python:model.py:right", "-n", "3", "--pass-k", "1,3")
    assert ran.returncode == 0, ran.stderr
    assert "6/6" in ran.stdout
    assert "pass@3" in ran.stdout
    assert "steelyard report steelyard-runs/" in ran.stdout


def test_a_program_that_is_refused_says_so_by_its_exit_code(place: Path) -> None:
    ran = program(place, "run", "nowhere.toml")
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)


def test_two_models_stand_side_by_side(place: Path) -> None:
    ran = steelyard(place, "run", "evals.toml", "-m", "python:model.py:right,python:model.py:wrong", "-n", "2")
    assert "python/model.py:right" in ran.stdout
    assert "python/model.py:wrong" in ran.stdout
    assert "Failed most" in ran.stdout


def test_fail_under_exits_with_1_only_below_the_bar(place: Path) -> None:
    good = steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", "--fail-under", "100%")
    bad = steelyard(place, "run", "evals.toml", "-m", "python:model.py:wrong", "--fail-under", "0.9")
    assert (good.returncode, bad.returncode) == (0, 1)
    assert "under 90.0%" in bad.stderr


def test_json_on_standard_output_is_json_and_nothing_else(place: Path) -> None:
    ran = steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", "-n", "2", "--format", "json")
    report = json.loads(ran.stdout)
    assert len(report["results"]) == 4
    assert report["summary"]["models"][0]["correct"] == 4


def test_reports_are_written_by_suffix(place: Path) -> None:
    files = [f"report.{suffix}" for suffix in ("json", "md", "csv", "html")]
    options = [option for file in files for option in ("-o", file)]
    ran = steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", *options)
    assert ran.returncode == 0, ran.stderr
    assert all((place / file).stat().st_size > 100 for file in files)
    again = steelyard(place, "report", "latest", "-o", "again.csv")
    assert again.returncode == 0
    assert (place / "again.csv").read_text() == (place / "report.csv").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "no eval set"),
        (["rnu", "evals.toml"], 'unknown command "rnu"; did you mean "run"?'),
        (["evals.toml"], 'unknown command "evals.toml"; see steelyard --help'),
        (["run", "nowhere.toml", "-m", "python:model.py:right"], "nowhere.toml"),
        (["run", "evals.toml"], "--models"),
        (["run", "evals.toml", "-m", "pyton:model.py:right"], 'did you mean "python"?'),
        (["run", "evals.toml", "-m", "python:model.py:left"], 'no function "left"'),
        (["run", "evals.toml", "-m", "python:model.py:right,python:model.py:right"], "named twice"),
        (["run", "evals.toml", "-m", "openai/gpt-5"], "OPENAI_API_KEY"),
        (["run", "evals.toml", "-m", "python:model.py:right", "--filter", "nothing"], "tags: easy, hard"),
        (["run", "evals.toml", "-m", "python:model.py:right", "--rule", "cod"], 'did you mean "code"?'),
        (["run", "evals.toml", "-m", "python:model.py:right", "--max-cost", "1"], "is unknown"),
        (["run", "evals.toml", "-m", "python:model.py:right", "-n", "0"], "must be 1 or more"),
        (["run", "evals.toml", "-m", "python:model.py:right", "--param", "novalue"], "NAME=VALUE"),
        (["run", "evals.toml", "-m", "python:model.py:right", "--config", "nowhere.toml"], "nowhere.toml"),
        (["run", "evals.toml", "-m", "replay:nowhere.jsonl"], "No such file"),
        (["run", "evals.toml", "-m", "command:no-such-program"], "no such program"),
        (["run", "evals.toml", "-m", "python:model.py:right", "--pas-k", "1"], 'did you mean "--pass-k"?'),
        (["run", "evals.toml", "-m", "python:model.py:right", "--recheck", "0"], "must be 1 or more, not 0"),
        (["run", "evals.toml", "-m", "python:model.py:right", "--format", "human-evil"], 'did you mean "human-eval"?'),
        (["run", "evals.toml", "-m", "python:model.py:right", "--format", "tex"], 'did you mean "text"?'),
        (["run", "evals.toml", "-m", "python:model.py:right", "--python-env", "evals"], "python3 -m venv evals"),
        (["run", "evals.toml", "-m", "python:model.py:right", "--require-isolation"], "see steelyard run --help"),
        (["doctor", "--format", "xml"], "choose from"),
        (["frob"], "see steelyard --help"),
        (["list", "everything"], "see steelyard list --help"),
        (["show", "latest"], "no runs here yet"),
        (["show", "nothing"], 'no run "nothing"'),
        (["resume", "evals.toml"], "evals.toml: neither a run folder nor a file of results"),
        (["report", "latest"], "nowhere to write"),
        (["validate", "nowhere"], "nowhere"),
        (["models"], "no provider is configured"),
    ],
)
def test_bad_input_gets_one_clear_sentence_and_exit_code_2(place: Path, arguments: list[str], said: str) -> None:
    ran = steelyard(place, *arguments)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert said in ran.stdout + ran.stderr
    assert len(ran.stderr.splitlines()) == 1, ran.stderr
    assert not list(place.glob("steelyard-runs/*"))


def test_a_report_of_unknown_format_is_refused_before_anything_is_written(place: Path) -> None:
    steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", "--output", "run")
    ran = steelyard(place, "report", "run", "-o", "good.csv", "-o", "bad.docx")
    assert ran.returncode == 2
    assert ".docx" in ran.stderr
    assert not (place / "good.csv").exists()


def test_options_come_from_the_command_line_then_the_environment_then_the_settings_file(place: Path) -> None:
    (place / "steelyard.toml").write_text('samples = 2\nmodels = "python:model.py:right"\nsampels = 1\n')
    in_file = steelyard(place, "run", "evals.toml", "--format", "json")
    in_environment = steelyard(place, "run", "evals.toml", "--format", "json", STEELYARD_SAMPLES="3")
    on_the_line = steelyard(place, "run", "evals.toml", "--format", "json", "-n", "1", STEELYARD_SAMPLES="3")
    counts = [len(json.loads(ran.stdout)["results"]) for ran in (in_file, in_environment, on_the_line)]
    assert counts == [4, 6, 2]
    assert 'unknown setting "sampels"' in in_file.stderr
    assert 'did you mean "samples"?' in in_file.stderr


def test_a_dry_run_asks_nobody(place: Path) -> None:
    (place / "steelyard.toml").write_text('[prices."python/model.py:right"]\ninput = 1.0\noutput = 2.0\n')
    ran = steelyard(
        place, "run", "evals.toml", "-m", "python:model.py:right", "-n", "5", "--max-tokens", "100", "--dry-run"
    )
    assert ran.returncode == 0, ran.stderr
    assert "10 attempts at 2 cases, at most $0.00" in ran.stdout
    assert not list(place.glob("steelyard-runs/*"))


def test_a_run_can_be_listed_shown_and_narrowed_to_what_failed(place: Path) -> None:
    steelyard(place, "run", "evals.toml", "-m", "python:model.py:wrong", "-n", "2")
    assert "python/model.py:wrong" in steelyard(place, "list").stdout
    failed = steelyard(place, "show", "latest", "--failed").stdout
    assert "double(2) == 4: got 2, expected 4" in failed
    assert "double(3) == 6: got 3, expected 6" in failed
    attempt = steelyard(place, "show", "latest", "double", "2").stdout
    for part in ("Write double(x).", "return x", "got 2, expected 4", "passed"):
        assert part in attempt
    again = steelyard(
        place, "run", "evals.toml", "-m", "python:model.py:right", "--failed-in", "latest", "--format", "csv"
    )
    assert len(again.stdout.splitlines()) == 3
    unknown = steelyard(place, "show", "latest", "duoble")
    assert unknown.returncode == 2
    assert 'did you mean "double"?' in unknown.stderr


def test_resume_extends_and_verify_applies_changed_tests(place: Path) -> None:
    steelyard(place, "run", "evals.toml", "-m", "python:model.py:wrong", "--output", "run")
    extended = steelyard(place, "resume", "run", "--samples", "3", "--format", "json")
    assert len(json.loads(extended.stdout)["results"]) == 6
    (place / "evals.toml").write_text(EVALS.replace("== 4", "== 2").replace("== 6", "== 3"))
    verified = steelyard(place, "verify", "run", "--format", "json")
    assert json.loads(verified.stdout)["summary"]["models"][0]["correct"] == 6
    (place / "evals.toml").write_text(EVALS.replace("Write double(x).", "Write double(x), please."))
    refused = steelyard(place, "verify", "run")
    assert refused.returncode == 2
    assert "the prompt changed since this run asked: double" in refused.stderr


def test_validate_reports_all_problems_of_all_files_at_once(place: Path) -> None:
    broken = EVALS.replace('name = "Double"\n', "").replace("tags", "tgas", 1)
    (place / "broken.toml").write_text(broken)
    (place / "cases.jsonl").write_text('{"id": "x", "question": "?"}\n{"id": ')
    ran = steelyard(place, "validate", "broken.toml", "cases.jsonl")
    assert ran.returncode == 2
    assert "broken.toml:" in ran.stdout
    assert 'did you mean "tags"?' in ran.stdout
    assert "cases.jsonl:2" in ran.stdout


def test_validate_proves_references_and_counterexamples(place: Path) -> None:
    answers = f"reference = '''{WRONG}'''\ncounterexample = '''{RIGHT}'''\n"
    (place / "evals.toml").write_text(
        EVALS.replace('prompt = "Write double(x)."\n', f'prompt = "Write double(x)."\n{answers}')
    )
    ran = steelyard(place, "validate", "evals.toml")
    assert ran.returncode == 2
    assert "its reference does not pass" in ran.stdout
    assert "its counterexample passes" in ran.stdout


def test_what_init_writes_is_valid_and_never_overwrites(place: Path) -> None:
    ran = steelyard(place, "init", "new", OPENAI_API_KEY="k")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "because OPENAI_API_KEY is set: openai/gpt-5-mini: 10 attempts at 2 cases, at most $" in ran.stdout
    assert 'models = "openai/gpt-5-mini"' in (place / "new" / "steelyard.toml").read_text()
    assert steelyard(place, "validate", "new/evals").returncode == 0
    ran = steelyard(place, "run", "new/evals", "-m", "command:cat", "--config", "new/steelyard.toml")
    assert ran.returncode == 0, ran.stderr
    again = steelyard(place, "init", "new")
    assert again.returncode == 2
    assert "nothing was written" in again.stderr


def test_options_that_are_no_option_here_point_to_the_options_of_this_command(place: Path) -> None:
    ran = steelyard(place, "list", "--base-url", "http://x")
    assert (ran.returncode, "did you mean" in ran.stderr) == (2, False)
    assert 'did you mean "--config"?' in steelyard(place, "list", "--confg", "x").stderr
    assert "; see steelyard list --help" in steelyard(place, "list", "--model", "x").stderr


def test_quiet_prints_one_line_and_verbose_every_attempt(place: Path) -> None:
    asked = ("run", "evals.toml", "-m", "python:model.py:wrong", "-n", "2")
    quiet = steelyard(place, *asked, "--quiet")
    assert re.fullmatch(r"steelyard-runs/\S+: python/model.py:wrong 0/4 correct, pass@1 0.0% \[.*\]\n", quiet.stdout)
    assert "done" not in quiet.stderr
    verbose = steelyard(place, *asked, "--verbose", "-o", "attempts.parquet").stdout
    assert "Next" in verbose
    assert verbose.count("#2  wrong") == 2
    with duckdb.connect() as database:
        counted = f"SELECT count(*), count(*) FILTER (correct) FROM '{place / 'attempts.parquet'}'"
        assert database.execute(counted).fetchall() == [(4, 0)]


def test_names_are_optional_and_a_run_plans_for_its_own_cases(place: Path) -> None:
    (place / "evals.toml").write_text(re.sub(r"^name = .*\n", "", EVALS, flags=re.MULTILINE))
    assert steelyard(place, "validate", "evals.toml").stdout.endswith(
        "\n2 cases in 1 file; 0 answers proved; 0 problems\n"
    )
    ran = steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", "-n", "3")
    assert ran.returncode == 0, ran.stderr
    assert steelyard(place, "bless", "latest", "--as", "main").returncode == 0
    # what a run asks by default says nothing about the models of a baseline
    (place / "steelyard.toml").write_text('models = "replay:recorded.jsonl"\n')
    plans = [
        steelyard(place, "plan", *words, "--format", "json").stdout
        for words in (["latest"], ["main"], ["evals.toml", "--baseline", "main"])
    ]
    models = [json.loads(plan)["models"] for plan in plans]
    assert models[0] == models[2]
    assert [model["cases"] for model in models[1]] == [model["cases"] for model in models[2]]
    assert steelyard(place, "plan", "latest", "main").returncode == 2


def test_a_run_is_resumed_at_another_address(place: Path, server: FaultServer) -> None:
    gone = ("run", "evals.toml", "-m", "openai/m", "--base-url", "http://127.0.0.1:9/v1", "--output", "moved")
    (place / "steelyard.toml").write_text("max_retries = 0\n")
    assert steelyard(place, *gone, OPENAI_API_KEY="k").returncode == 3
    ran = steelyard(place, "resume", "moved", "--base-url", f"{server.url}/v1", OPENAI_API_KEY="k")
    assert ran.returncode == 0, ran.stderr
    assert json.loads((place / "moved" / "run.json").read_text())["base_url"] == f"{server.url}/v1"


def test_models_lists_what_an_endpoint_offers(place: Path, server: FaultServer) -> None:
    ran = steelyard(place, "models", OPENAI_BASE_URL=f"{server.url}/v1", OPENAI_API_KEY="k")
    assert ran.returncode == 0, ran.stderr
    assert "openai/" in ran.stdout
    dead = steelyard(place, "models", "--base-url", "http://127.0.0.1:9/v1")
    assert dead.returncode == 3
    assert "127.0.0.1:9" in dead.stdout


def test_an_outage_is_told_apart_from_failure_by_exit_code_3(place: Path) -> None:
    (place / "steelyard.toml").write_text("max_retries = 0\n")
    ran = steelyard(place, "run", "evals.toml", "-m", "openai/x", "--base-url", "http://127.0.0.1:9/v1")
    assert ran.returncode == 3
    assert "Cannot tell" in ran.stdout
    assert "steelyard resume" in ran.stdout


def test_a_reader_that_leaves_early_is_no_error(place: Path) -> None:
    steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", "--output", "run")
    ran = subprocess.run(
        f"{STEELYARD} show run double 1 | head -1", shell=True, cwd=place, capture_output=True, text=True
    )
    assert ran.stderr == ""


def test_the_version_is_told() -> None:
    done = subprocess.run([STEELYARD, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"steelyard {installed_version()}\n"


def test_help_costs_little_more_than_python_itself() -> None:
    def cost(*command: str | Path) -> float:
        """The least CPU time of several runs: other work on the machine only ever adds to it."""
        costs = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, capture_output=True, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(costs)

    assert cost(STEELYARD, "--help") - cost(sys.executable, "-c", "pass") <= 0.15


def test_the_doctor_is_content_where_a_level_holds_and_machines_can_read_it(place: Path) -> None:
    seen = steelyard(place, "doctor")
    assert seen.returncode == 0, seen.stdout
    health = json.loads(steelyard(place, "doctor", "--format", "json").stdout)
    assert f"Generated code runs at level {health['level']}" in seen.stdout
    assert {"system", "root", "levels", "limits", "tools", "advice"} < set(health)


PROBLEMS = "oid,filename\na,main.tf\nb,vpc.tf\n"
FIXES = "oid,iteration_id,plausible_fix\n" + "".join(f"{oid},{n},{n % 2 == 0}\n" for oid in "ab" for n in range(1, 5))


@pytest.fixture
def outcomes(tmp_path: Path) -> Path:
    (tmp_path / "problems.csv").write_text(PROBLEMS)
    (tmp_path / "gemini_fixes.csv").write_text(FIXES)
    (tmp_path / "gpt_fixes.csv").write_text(FIXES.replace("False", "True"))
    return tmp_path


SEED_COMMAND = ("passk", "--problems-csv", "problems.csv", "--k-values", "1", "3", "5", "--fixes-csv")


def test_passk_prints_the_table_of_the_document_with_intervals(outcomes: Path) -> None:
    ran = steelyard(outcomes, *SEED_COMMAND, "gemini_fixes.csv", "gpt_fixes.csv")
    assert ran.returncode == 0, ran.stderr
    head, first, second = ran.stdout.splitlines()
    assert head.split() == ["LLM", "pass@1", "pass@3", "pass@5", "problems", "attempts"]
    assert first.split()[:2] == ["gemini", "0.500"]
    assert first.split()[-3:] == ["-", "2", "8"]
    assert second.split()[:2] == ["gpt", "1.000"]
    assert "[" in first
    assert "gemini: pass@5 needs 5 attempts at a case, and the most there are is 4" in ran.stderr


def test_passk_speaks_json_csv_and_markdown(outcomes: Path) -> None:
    (model,) = json.loads(steelyard(outcomes, *SEED_COMMAND, "gemini_fixes.csv", "--format", "json").stdout)["models"]
    assert model["pass_at"]["1"]["value"] == 0.5
    assert model["pass_at"]["5"]["value"] is None
    text = steelyard(outcomes, *SEED_COMMAND, "gemini_fixes.csv", "--format", "csv").stdout
    assert text.startswith("LLM,pass@1,pass@3,pass@5,")
    assert text.splitlines()[1].startswith("gemini,0.5,1.0,,")
    assert "| `gemini` |" in steelyard(outcomes, *SEED_COMMAND, "gemini_fixes.csv", "--format", "markdown").stdout


def test_problems_without_fixes_are_left_out_counted_or_refused(outcomes: Path) -> None:
    (outcomes / "problems.csv").write_text(PROBLEMS + "c,s3.tf\n")
    skipped = steelyard(outcomes, *SEED_COMMAND, "gemini_fixes.csv")
    assert (skipped.returncode, "0.500" in skipped.stdout, "Cannot tell" in skipped.stdout) == (3, True, True)
    assert "gemini: 1 case (c) without an outcome, left out" in skipped.stderr
    zero = steelyard(outcomes, *SEED_COMMAND, "gemini_fixes.csv", "--missing", "zero")
    assert (zero.returncode, "0.333" in zero.stdout) == (0, True)
    refused = steelyard(outcomes, *SEED_COMMAND, "gemini_fixes.csv", "--missing", "error")
    assert (refused.returncode, refused.stdout) == (2, "")


def test_bad_outcomes_are_told_with_their_lines_and_no_traceback(outcomes: Path) -> None:
    (outcomes / "bad_fixes.csv").write_text("oid,iteration_id,plausible_fix\na,1,maybe\na,2,True\na,2,False\n")
    ran = steelyard(outcomes, *SEED_COMMAND, "bad_fixes.csv")
    assert ran.returncode == 2
    assert "bad_fixes.csv:2:" in ran.stderr
    assert "bad_fixes.csv:4:" in ran.stderr
    assert "Traceback" not in ran.stderr
    for arguments in (["passk"], ["passk", "nowhere"], ["passk", "--problems-csv", "problems.csv"]):
        ran = steelyard(outcomes, *arguments)
        assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)


def test_passk_takes_tables_results_and_runs_without_running_anything(place: Path) -> None:
    (place / "t.csv").write_text("task,llm,ok,usd\nx,m,yes,0.1\nx,m,no,0.1\ny,m,1,0.2\ny,m,0,0.2\n")
    table = steelyard(place, "passk", "t.csv", "--case", "task", "--model", "llm", "--passed", "ok", "--cost", "usd")
    assert table.returncode == 0, table.stderr
    assert "cost of pass" in table.stdout
    (place / "samples_results.jsonl").write_text(
        '{"task_id": "t/0", "passed": true}\n{"task_id": "t/0", "passed": false}\n'
    )
    results = steelyard(place, "passk", "samples_results.jsonl", "--k-values", "1,2")
    assert (results.returncode, results.stdout.split()[-4:]) == (0, ["0.500", "1.000", "1", "2"])
    assert steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", "-n", "3").returncode == 0
    ours = steelyard(place, "passk", "latest", "--k-values", "3")
    row = ours.stdout.splitlines()[1].split()
    assert (ours.returncode, row[0], row[-2:]) == (0, "python/model.py:right", ["2", "6"])


def test_synth_then_repairs_recovers_what_was_put_in(tmp_path: Path) -> None:
    made = steelyard(tmp_path, "synth", "--out", "fixes", "--models", "a=0.9,b=0.2", "--problems", "300", "--seed", "3")
    assert made.returncode == 0, made.stderr
    config = {"fixes_dir": "fixes", "output_dir": "out", "k_values": [1, 5], "models": [], "data_type": "all"}
    (tmp_path / "evaluation_config.json").write_text(json.dumps(config))
    first = steelyard(tmp_path, "repairs")
    assert first.returncode == 0, first.stderr
    summary = (tmp_path / "out" / "summary_pass_at_k.csv").read_bytes()
    assert summary.startswith(b"LLM,pass@1,pass@5\n")
    assert steelyard(tmp_path, "repairs", "--config", "evaluation_config.json").returncode == 0
    assert (tmp_path / "out" / "summary_pass_at_k.csv").read_bytes() == summary


def test_synth_takes_no_rates_from_the_models_that_runs_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "steelyard.toml").write_text('models = "openai/gpt-5-mini"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["synth", "--out", "fixes", "--problems", "2"]) == 0


def test_a_question_over_all_runs_is_answered_in_every_format(place: Path) -> None:
    assert steelyard(place, "run", "evals.toml", "-m", "python:model.py:right,python:model.py:wrong").returncode == 0
    sql = "SELECT model, avg(correct::int) AS rate FROM attempts GROUP BY model ORDER BY rate"
    table = steelyard(place, "query", sql)
    assert table.returncode == 0, table.stderr
    assert [line.split() for line in table.stdout.splitlines()] == [
        ["model", "rate"],
        ["python/model.py:wrong", "0"],
        ["python/model.py:right", "1"],
    ]
    assert steelyard(place, "query", sql, "--format", "csv").stdout.splitlines()[0] == "model,rate"
    assert json.loads(steelyard(place, "query", sql, "--format", "json").stdout)[1]["rate"] == 1.0
    assert steelyard(place, "query", sql, "-o", "answer.parquet").returncode == 0
    assert (place / "answer.parquet").read_bytes().startswith(b"PAR1")
    wrong = steelyard(place, "query", "SELEC 1")
    assert (wrong.returncode, wrong.stdout, len(wrong.stderr.splitlines())) == (2, "", 1)


def test_an_old_run_is_shown_by_a_rule_of_its_eval_set(place: Path) -> None:
    (place / "evals.toml").write_text(
        EVALS.replace("[[cases]]", '[[rules]]\nname = "all-or-nothing"\ncorrect = 1\n[[cases]]', 1)
    )
    assert steelyard(place, "run", "evals.toml", "-m", "python:model.py:wrong").returncode == 0
    (place / "evals.toml").unlink()
    by_own, by_code = steelyard(place, "show", "latest", "--rule", "all-or-nothing"), steelyard(place, "show", "latest")
    assert "0.000" in next(line for line in by_own.stdout.splitlines() if line.startswith("mean score"))
    assert "0.625" in next(line for line in by_code.stdout.splitlines() if line.startswith("mean score"))
    unknown = steelyard(place, "show", "latest", "--rule", "all")
    assert (unknown.returncode, "all-or-nothing" in unknown.stderr) == (2, True)


def test_an_eval_set_chooses_the_rule_of_its_runs_from_the_command_line_and_from_python(place: Path) -> None:
    rule = '[[rules]]\nname = "all-or-nothing"\ncorrect = 1\n[[cases]]'
    evals = EVALS.replace('name = "Tiny"', 'name = "Tiny"\nrule = "all-or-nothing"').replace("[[cases]]", rule, 1)
    (place / "evals.toml").write_text(evals)
    assert steelyard(place, "run", "evals.toml", "-m", "python:model.py:wrong", "--output", "a").returncode == 0
    script = "from steelyard import run; run('evals.toml', models='python:model.py:wrong', output='b')"
    assert subprocess.run([sys.executable, "-c", script], cwd=place).returncode == 0
    assert [json.loads((place / run / "run.json").read_text())["rule"] for run in "ab"] == ["all-or-nothing"] * 2
    chosen = steelyard(place, "run", "evals.toml", "-m", "python:model.py:wrong", "--rule", "code", "--output", "c")
    assert "0.625" in next(line for line in chosen.stdout.splitlines() if line.startswith("mean score"))


def test_output_that_nobody_can_read_ends_without_a_traceback(outcomes: Path) -> None:
    command = f"{STEELYARD} passk --fixes-csv gemini_fixes.csv"
    for redirection, code in ((">&-", 0), ("> /dev/full", 3), ("| head -0", 0)):
        ran = subprocess.run(["bash", "-c", f"{command} {redirection}"], cwd=outcomes, capture_output=True, text=True)
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.returncode == code


def test_a_terminal_that_knows_few_letters_gets_escapes(tmp_path: Path) -> None:
    (tmp_path / "größe_fixes.csv").write_text(FIXES)
    few = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    ran = program(tmp_path, "passk", "--fixes-csv", "größe_fixes.csv", **few)
    assert "Traceback" not in ran.stderr
    assert (ran.returncode, ran.stdout.isascii(), "gr<U+" in ran.stdout) == (0, True, True)


@pytest.mark.parametrize(
    ("locale", "is_terminal", "expected"),
    [
        ("C", True, "-- a | b~ > ==  gr\\xf6\\xdfe"),
        ("C", False, "── a · b… → ━━  größe"),
        ("C.UTF-8", True, "── a · b… → ━━  größe"),
    ],
)
def test_a_terminal_in_the_locale_c_gets_tables_of_the_same_width(
    locale: str, is_terminal: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    reading, writing = pty.openpty() if is_terminal else os.pipe()
    with os.fdopen(reading, encoding="utf-8") as shown, os.fdopen(writing, "w", encoding="utf-8") as output:
        with redirect_stdout(output), guarded_output():
            print("── a · b… → ━━  größe")
        assert shown.readline().rstrip() == expected


def test_validate_names_unknown_checks_although_another_case_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("open('was_run', 'w')\ndef f(text): return True\n")
    (tmp_path / "wrong.toml").write_text(
        '[eval_set]\nid = "wrong"\n[[cases]]\nid = "x"\nprompt = "p"\nchecks = [{conains = "a"}, {python = "evil.py:f"}]\n'
        '[[cases]]\nprompt = "it has no id"\n'
    )
    ran = steelyard(tmp_path, "validate", "wrong.toml")
    assert "case 2: id is missing" in ran.stdout
    assert 'unknown check "conains"' in ran.stdout
    assert (ran.returncode, ran.stderr) == (2, "steelyard: 2 problems\n")
    assert not (tmp_path / "was_run").exists()


def test_a_message_cannot_command_a_terminal(tmp_path: Path) -> None:
    ran = steelyard(tmp_path, "passk", "--fixes-csv", "no\x1b]0;title\x07where.csv")
    assert (ran.returncode, "\x1b" in ran.stderr) == (2, False)


def test_a_run_that_cannot_be_read_is_told_in_one_sentence(place: Path) -> None:
    assert steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", "--output", "a").returncode == 0
    (place / "a" / "cases.jsonl").write_text("")
    shown = steelyard(place, "show", "a")
    assert "Traceback" not in shown.stderr
    (place / "a" / "attempts.jsonl").unlink()
    (place / "a" / "attempts.jsonl").mkdir()
    for arguments in (["show", "a"], ["show", "x" * 5000]):
        ran = steelyard(place, *arguments)
        assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr


def test_compare_shows_what_changed_and_fails_only_when_asked_to(place: Path) -> None:
    for model in ("right", "wrong"):
        assert (
            steelyard(place, "run", "evals.toml", "-m", f"python:model.py:{model}", "--output", model).returncode == 0
        )
    plain = steelyard(place, "compare", "--baseline", "right", "--current", "wrong")
    assert plain.returncode == 0, plain.stderr
    assert "2 regressions, 0 improvements, 0 unchanged of 2 cases" in plain.stdout
    assert plain.stdout == steelyard(place, "compare", "--baseline", "right", "--current", "wrong").stdout
    failing = ("compare", "--baseline", "right", "--current", "wrong", "--fail-on-regression")
    assert steelyard(place, *failing).returncode == 1
    assert steelyard(place, *failing, "--threshold", "60%").returncode == 0
    back = steelyard(
        place, "compare", "--baseline", "wrong", "--current", "right", "--fail-on-regression", "--format", "json"
    )
    assert (back.returncode, len(json.loads(back.stdout)["improvements"])) == (0, 2)
    wrong = steelyard(place, "compare", "--baseline", "nowhere", "--current", "wrong", "--fail-on-regression")
    assert (wrong.returncode, wrong.stdout, len(wrong.stderr.splitlines())) == (2, "", 1)


def test_gate_tells_its_verdict_by_its_exit_code(place: Path) -> None:
    for folder, model, samples in (("main", "right", "30"), ("same", "right", "10"), ("bad", "wrong", "10")):
        ran = steelyard(place, "run", "evals.toml", "-m", f"python:model.py:{model}", "-n", samples, "--output", folder)
        assert ran.returncode == 0
    assert steelyard(place, "bless", "main", "--as", "base").returncode == 0
    worse = steelyard(place, "gate", "--baseline", "base", "--current", "bad", "-o", "gate.md", "-o", "gate.json")
    assert (worse.returncode, worse.stdout.splitlines()[0]) == (1, "REGRESSED")
    assert (place / "gate.md").read_text().startswith("### REGRESSED")
    assert json.loads((place / "gate.json").read_text())["decision"]["verdict"] == "regressed"
    assert (place / "bad" / "looks.jsonl").exists()
    unsure = ("gate", "--baseline", "base", "--current", "same")
    passed, failed = steelyard(place, *unsure), steelyard(place, *unsure, "--strict")
    assert (passed.returncode, failed.returncode) == (0, 3)
    assert steelyard(place, *unsure, "--on-inconclusive", "fail").returncode == 3
    assert "too little evidence to tell; passed, because --strict is not given" in passed.stderr
    assert steelyard(place, *unsure, "--margin", "0.3").stdout.startswith("NOT REGRESSED")
    for wrong in (["--margin", "2"], ["--alpha", "0"], ["-o", "gate.pdf"], ["--on", "luck"]):
        ran = steelyard(place, *unsure, *wrong)
        assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr


def test_a_run_until_decided_tells_its_verdict_by_its_exit_code(place: Path) -> None:
    assert (
        steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", "-n", "30", "--output", "m").returncode
        == 0
    )
    assert steelyard(place, "bless", "m", "--as", "main").returncode == 0
    asked = ("run", "evals.toml", "--baseline", "main", "--until-decided", "-m")
    worse = steelyard(place, *asked, "python:model.py:wrong", "--output", "bad")
    assert (worse.returncode, "\nREGRESSED\n" in worse.stdout) == (1, True), worse.stderr
    assert "attempts decided; 40 were allowed" in worse.stdout
    unsure = (*asked, "python:model.py:right", "--max-samples", "2")
    passed = steelyard(place, *unsure)
    assert (passed.returncode, "4 of 4 allowed attempts did not decide" in passed.stdout) == (0, True)
    failed = steelyard(place, *unsure, "--strict", "--format", "json", "--output", "thin")
    assert (failed.returncode, "CANNOT TELL" in failed.stderr) == (3, True)
    assert json.loads(failed.stdout)
    assert steelyard(place, "resume", "thin", "--strict").returncode == 3
    assert len((place / "thin" / "looks.jsonl").read_text().splitlines()) == 2
    for wrong in (
        ["--until-decided"],
        ["--max-samples", "3"],
        ["--baseline", "main", "--until-decided", "--samples", "3"],
        ["--baseline", "nowhere", "--until-decided"],
        ["--baseline", "main", "--until-decided", "--max-samples", "0"],
    ):
        ran = steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", "--output", "none", *wrong)
        assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
        assert not (place / "none").exists()


def test_models_on_the_command_line_replace_those_of_the_settings(place: Path) -> None:
    (place / "steelyard.toml").write_text('models = "python:model.py:wrong"\n')
    asked = ("run", "evals.toml", "--dry-run")
    assert steelyard(place, *asked).stdout.startswith("python/model.py:wrong")
    both = steelyard(place, *asked, "-m", "python:model.py:right", STEELYARD_MODELS="python:model.py:other").stdout
    assert both.splitlines() == [steelyard(place, *asked, "-m", "python:model.py:right").stdout.strip()]
    twice = steelyard(place, *asked, "-m", "python:model.py:right", "-m", "python:model.py:wrong").stdout
    assert len(twice.splitlines()) == 2


@pytest.mark.parametrize("models", ["openai/a openai/b", "a b", "openai/a,openai/b c"])
def test_blanks_between_models_are_refused_with_the_list_that_was_meant(place: Path, models: str) -> None:
    ran = steelyard(place, "run", "evals.toml", "-m", models, "--dry-run")
    meant = ",".join(models.rpartition(",")[2].split())
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert f"models are separated by commas; did you mean {meant}?" in ran.stderr


def test_a_command_and_a_path_may_have_blanks(place: Path) -> None:
    (place / "my replies.jsonl").write_text(json.dumps({"id": "double", "response": RIGHT}) + "\n")
    ran = steelyard(place, "run", "evals.toml", "-m", "command:cat openai/x,replay:my replies.jsonl", "--dry-run")
    assert ran.returncode == 0, ran.stderr


def test_a_run_of_a_strangers_config_runs_its_code_once_it_is_allowed(place: Path) -> None:
    (place / "promptfooconfig.yaml").write_text(
        "prompts: [Say hi]\ntests:\n  - assert:\n      - {type: python, value: \"'def' in output\"}\n"
    )
    asked = ("run", "promptfooconfig.yaml", "-m", "python:model.py:right")
    refused = steelyard(place, *asked)
    assert (refused.returncode, "or give --allow-code, for this time" in refused.stderr) == (2, True)
    ran = steelyard(place, *asked, "--allow-code")
    assert (ran.returncode, "1/1" in ran.stdout) == (0, True), ran.stderr


def test_the_environment_can_name_the_settings_file(place: Path) -> None:
    (place / "mine.toml").write_text('output_dir = "elsewhere"\n')
    ran = steelyard(place, "run", "evals.toml", "-m", "python:model.py:right", STEELYARD_CONFIG="mine.toml")
    assert ran.returncode == 0, ran.stderr
    assert list((place / "elsewhere").iterdir())


def test_a_list_of_runs_reads_what_was_written_down_and_works_out_the_rest(place: Path) -> None:
    steelyard(place, "run", "evals.toml", "-m", "python:model.py:wrong", "-n", "2")
    said = steelyard(place, "list").stdout
    (headline,) = place.glob("steelyard-runs/*/headline.json")
    figures = headline.read_bytes()
    headline.unlink()
    assert steelyard(place, "list").stdout == said
    journal = headline.with_name("attempts.jsonl")
    journal.write_bytes(b" " * journal.stat().st_size)
    headline.write_bytes(figures)
    assert steelyard(place, "list").stdout == said
    journal.write_bytes(b"")
    assert "0/0" in steelyard(place, "list").stdout


def test_what_a_model_wrote_is_no_command_to_a_ci_service(place: Path) -> None:
    (place / "rude.py").write_text(
        "def ask(prompt):\n    return 'x\\n::error::a\\n  ::set-env name=A::b\\n##[group]c ##vso[d]'\n"
    )
    ran = steelyard(place, "run", "evals.toml", "-m", "python:rude.py:ask", "--limit", "1", "--output", "rude")
    case = json.loads((place / "rude" / "cases.jsonl").read_text().splitlines()[0])["id"]
    command = [sys.executable, "-m", "steelyard.cli", "show", "rude", case, "1"]
    shown = subprocess.run(command, cwd=place, env={**os.environ, "CI": "true"}, capture_output=True, text=True).stdout
    assert ": :error::a" in shown, ran.stderr
    assert "# #[group]c # #vso[d]" in shown
    assert not re.search(r"^\s*::|##(vso)?\[", shown, re.MULTILINE)
