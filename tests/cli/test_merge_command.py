"""`steelyard run --shard` and `steelyard merge` as a contract: real processes, kills and full disks."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steelyard.cli import main as cli
from steelyard.engine.results.merge import merge
from steelyard.engine.tiers import tier_runs
from steelyard.records import Judgment
from steelyard.store.journal import StoredRun
from support.facts import facts
from support.fault_server import Behaviour, FaultServer, Request, says
from support.forked import forked
from support.sharded import crafted, timeless, told

ROOT = Path(__file__).parents[2]
CASES, SAMPLES = 9, 12
MODEL = """
import asyncio, os

log = os.open(os.environ["ASKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def ask(prompt, attempt):
    os.write(log, f"{attempt.case.id} {attempt.number}\\n".encode())
    await asyncio.sleep(float(os.environ.get("WAIT", "0")))
    return f"answer {attempt.number} to {attempt.case.id}"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an eval set and a model that notes what it is asked."""
    (tmp_path / "model.py").write_text(MODEL)
    lines = [
        {"id": f"c{number}", "prompt": f"q{number}", "target": "answer", "tags": ["even"] if number % 2 == 0 else []}
        for number in range(CASES)
    ]
    (tmp_path / "evals.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def environment(place: Path, **variables: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEELYARD_", "OPENAI_", "CI"))}
    return {**clean, "COLUMNS": "150", "ASKS": str(place / "asks"), **variables}


def start(place: Path, *arguments: str, most_bytes: int = resource.RLIM_INFINITY, **variables: str) -> Any:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))

    return subprocess.Popen(
        [sys.executable, "-m", "steelyard.cli", *arguments],
        cwd=place,
        env=environment(place, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limited,
    )


def steelyard(place: Path, *arguments: str, **variables: str) -> tuple[int, str, str]:
    ended = forked("steelyard", arguments, place, environment(place, **variables))
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stdout, ended.stderr


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def called(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command within this process: a quarter of a second cheaper."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("ASKS", str(place / "asks"))
    monkeypatch.setenv("COLUMNS", "150")

    def call(*arguments: str) -> tuple[int, str, str]:
        handlers = [(sent, signal.getsignal(sent)) for sent in (signal.SIGINT, signal.SIGTERM)]
        try:
            code = cli.main(arguments)
        finally:
            for sent, handler in handlers:
                signal.signal(sent, handler)
        return code, *capsys.readouterr()

    return call


ASK = ("run", "evals.jsonl", "-m", "python:model.py:ask", "--samples", "2")


def asks(place: Path) -> Counter[str]:
    return Counter((place / "asks").read_text().splitlines())


# --- run --shard


@pytest.mark.parametrize(
    "text",
    ["3-8", "3", "3/", "/8", "a/b", "1/2/3", "-1/3", "1.0/2", "1e1/20", "１/２", "", " 1/2", "1/ 2", "9" * 5000 + "/2"],
)
def test_what_is_no_shard_says_how_one_is_written(called: Run, text: str) -> None:
    code, _, said = called(*ASK, f"--shard={text}")
    assert code == 2
    assert "argument --shard: " in said
    assert "is not I/N, such as 3/8 for the third of eight shards" in said


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "0/0"])
def test_a_shard_beyond_the_last_says_which_there_are(called: Run, text: str) -> None:
    code, _, said = called(*ASK, "--shard", text)
    assert code == 2
    assert f'"{text}" is not a shard: I/N is the Ith of N, and I goes from 1 to N' in said


def test_a_thousand_shards_are_the_most(called: Run, place: Path) -> None:
    code, _, said = called(*ASK, "--shard", "1/1001")
    assert code == 2
    assert "no shard 1/1001; write I/N for shard I of N, both 1 or more, and N at most 1,000" in said
    assert not (place / "steelyard-runs").exists()


def test_a_shard_says_how_many_cases_it_has_and_asks_for_these_alone(called: Run, place: Path) -> None:
    code, out, said = called(*ASK, "--shard", "2/4", "--output", "shards/2")
    assert code == 0
    assert "shard 2/4: 2 of 9 cases" in said
    assert "shard 2 of 4, so not all of the 9 cases" in out
    assert set(asks(place)) == {f"c{number} {attempt}" for number in (1, 5) for attempt in (1, 2)}


def test_what_is_filtered_is_filtered_before_it_is_dealt(called: Run, place: Path) -> None:
    code, _, said = called(*ASK, "--filter", "even", "--limit", "4", "--shard", "2/2", "--output", "2")
    assert code == 0
    assert "shard 2/2: 2 of 4 cases" in said
    assert [case.id for case in StoredRun(place / "2").cases] == ["c2", "c6"]


def test_the_environment_can_say_which_shard_this_is(place: Path) -> None:
    code, _, said = steelyard(place, *ASK, "--output", "3", STEELYARD_SHARD="3/3")
    assert code == 0, said
    assert "shard 3/3: 3 of 9 cases" in said


def test_a_dry_run_tells_what_the_shard_would_ask(called: Run, place: Path) -> None:
    assert called(*ASK, "--shard", "1/2", "--dry-run")[1] == (
        "python/model.py:ask: 10 attempts at 5 cases, at an unknown price\n"
    )
    assert called(*ASK, "--shard", "11/12", "--dry-run") == (0, "", "shard 11/12: 0 of 9 cases\n")
    assert asks(place) == {}


def test_a_shard_without_cases_is_fine(called: Run, place: Path) -> None:
    code, _, said = called(*ASK, "--shard", "11/12", "--fail-under", "0.9", "--output", "11", "-o", "report.json")
    assert (code, StoredRun(place / "11").cases) == (0, ())
    assert "shard 11/12: 0 of 9 cases" in said
    assert json.loads((place / "report.json").read_text())["results"] == []


def test_rounds_until_a_gate_decides_are_not_for_shards(called: Run, place: Path) -> None:
    code, _, said = called(*ASK[:-2], "--shard", "1/2", "--baseline", "main", "--until-decided")
    assert code == 2
    assert "--until-decided looks at all cases after every round, and a --shard has only some of them" in said
    assert not (place / "asks").exists()


def test_a_budget_is_for_one_shard_and_says_so(called: Run, place: Path) -> None:
    (place / "steelyard.toml").write_text('[prices."python/model.py:ask"]\ninput = 0\noutput = 0\n')
    code, _, said = called(*ASK, "--shard", "1/4", "--max-cost", "2.5", "--output", "1")
    assert code == 0
    assert "--max-cost applies to each shard separately: 4 shards may spend $10 together" in said


def test_the_help_teaches_how_to_go_about_it(capsys: pytest.CaptureFixture[str]) -> None:
    for command, words in (
        (
            "run",
            (
                "--shard I/N",
                "steelyard merge joins",
                "--shard 3/8 --output shards/3",
                "--max-cost applies to each shard",
            ),
        ),
        (
            "merge",
            (
                "1/3 on one",
                "--partial",
                "refused with what differs",
                "resume,",
                "steelyard merge shards/*",
                "Exit codes",
            ),
        ),
    ):
        with pytest.raises(SystemExit):
            cli.main([command, "--help-all"])
        shown = " ".join(capsys.readouterr().out.split())
        assert [word for word in words if word not in shown] == []


# --- merge


def test_merging_prints_the_whole_run_and_writes_its_reports(called: Run, place: Path) -> None:
    for number in (1, 2, 3):
        assert called(*ASK, "--shard", f"{number}/3", "--output", f"shards/{number}")[0] == 0
    code, out, said = called("merge", "shards/3", "shards/1", "shards/2", "--output", "all", "-o", "report.json")
    assert (code, said) == (0, "wrote report.json\n")
    assert "18/18" in out
    assert "steelyard report all -o report.html" in out
    called(*ASK, "--output", "whole", "-o", "whole.json")
    reports = [timeless((place / name).read_text()) for name in ("report.json", "whole.json")]
    for report in reports:
        for one in (*report["results"], *report["summary"]["models"], *report["aggregate"]["per_model"].values()):
            # a live model takes another time every time
            for name in ("timing", "latency", "latency_p50", "latency_p95", "avg_latency_ms"):
                one.pop(name, None)
    assert reports[0] == reports[1]
    assert called("merge", "shards/1", "shards/2", "shards/3", "--output", "all")[2] == (
        "steelyard: all: already contains a run; name another folder with --output\n"
    )
    assert called("show", "all", "c4")[0] == 0
    assert called("resume", "all")[0] == 0
    assert called("gate", "--baseline", "whole", "--current", "all")[0] == 0


def test_exit_codes_are_those_of_a_run(called: Run) -> None:
    for number in (1, 2):
        called(*ASK, "--shard", f"{number}/2", "--output", f"{number}")
    assert called("merge", "1", "--output", "all")[0] == 2
    assert called("merge", "1", "--output", "half", "--partial")[0] == 0
    assert called("merge", "half", "2", "--output", "all", "--fail-under", "1")[0] == 0
    assert called("merge", "1", "2", "--output", "all2", "--rule", "nonsense")[0] == 2
    assert called("merge", "1", "2", "--output", "1/../1")[0] == 2


def test_code_is_verified_alike_in_shards_and_in_one_go(place: Path) -> None:
    shutil.copytree(ROOT / "examples", place / "examples")
    run = [
        "run",
        "examples/python-basics.toml",
        "-m",
        "replay:examples/recordings/python-basics.jsonl.gz",
        "--limit",
        "5",
    ]
    run += ["--samples", "2", "--pass-k", "1,2", "--format", "json"]
    _, whole, _ = steelyard(place, *run, "--output", "whole")
    for number in (1, 2):
        steelyard(place, *run, "--shard", f"{number}/2", "--output", f"shards/{number}")
    code, merged, said = steelyard(place, "merge", "shards/1", "shards/2", "--output", "all", "--format", "json")
    assert (code, said) == (0, "")
    assert timeless(merged) == timeless(whole)
    assert told(place / "all").summary == told(place / "whole").summary


def test_a_shard_that_was_killed_is_merged_and_what_it_owes_is_asked_for_by_the_whole(place: Path) -> None:
    run = ["run", "evals.jsonl", "-m", "python:model.py:ask", "--samples", str(SAMPLES), "-j", "4"]
    first = start(place, *run, "--shard", "1/2", "--output", "1")
    second = start(place, *run, "--shard", "2/2", "--output", "2", WAIT="0.1")
    journal = place / "2" / "attempts.jsonl"
    while not journal.exists() or journal.read_bytes().count(b"\n") < 10:
        assert second.poll() is None
        time.sleep(0.01)
    second.kill()
    second.communicate()
    assert first.communicate()[0]
    assert (first.returncode, second.returncode) == (0, -signal.SIGKILL)
    stored = {(reply.case, reply.number) for folder in ("1", "2") for reply in facts(place / folder).replies}
    assert len(stored) < CASES * SAMPLES
    (place / "asks").unlink()
    code, out, said = steelyard(place, "merge", "1", "2", "--output", "all")
    assert "shard 2 of 2 (2) is unfinished; continue with: steelyard resume all" in said
    assert "steelyard resume all" in out
    assert code in (0, 3)
    code, _, said = steelyard(place, "resume", "all")
    assert code == 0, said
    found = facts(place / "all")
    assert len(found.replies) == len({reply.key for reply in found.replies}) == CASES * SAMPLES
    assert {verdict.ask for verdict in found.verdicts} == {reply.key for reply in found.replies}
    # nothing that was stored is asked for again, and nothing twice
    assert {tuple(line.split()) for line in asks(place)} == {
        (f"c{case}", str(number))
        for case in range(CASES)
        for number in range(1, SAMPLES + 1)
        if (f"c{case}", number) not in stored
    }
    assert set(asks(place).values()) == {1}


def arising(place: Path, process: subprocess.Popen[str]) -> Path:
    """Wait until a merge is at work, out of sight."""
    aside = place / ".all.arising"
    while not aside.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    assert not (place / "all").exists()
    return aside


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_merge_that_is_stopped_leaves_nothing_half(place: Path, stop: signal.Signals) -> None:
    crafted(place / "shards", replies=40, size=600_000)
    process = start(place, "merge", "shards/1", "shards/2", "--output", "all")
    arising(place, process)
    process.send_signal(stop)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said == "\ninterrupted\n"
    assert sorted(path.name for path in place.iterdir()) == ["evals.jsonl", "model.py", "shards"]


def test_a_merge_that_is_killed_is_out_of_sight_and_the_next_one_clears_up(place: Path) -> None:
    crafted(place / "shards", replies=40, size=600_000)
    process = start(place, "merge", "shards/1", "shards/2", "--output", "all")
    aside = arising(place, process)
    process.kill()
    process.communicate()
    assert aside.exists()
    assert not (place / "all").exists()
    code, _, said = steelyard(place, "merge", "shards/1", "shards/2", "--output", "all")
    assert code == 3, said
    assert sum(1 for _ in StoredRun(place / "all").facts()) == 80
    assert not aside.exists()


def test_two_merges_into_one_folder_do_not_get_into_each_others_way(place: Path) -> None:
    crafted(place / "shards", replies=40, size=600_000)
    process = start(place, "merge", "shards/1", "shards/2", "--output", "all")
    arising(place, process)
    code, _, said = steelyard(place, "merge", "shards/1", "shards/2", "--output", "all")
    assert code == 2
    # whichever comes first: the other one at work, or what it has made
    at_work = "another process is putting a run together there; wait for it, or stop it first"
    assert at_work in said or "all: already contains a run; name another folder with --output" in said
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert sum(1 for _ in StoredRun(place / "all").facts()) == 80


@pytest.mark.parametrize("limit", [1, 4096, 1_000_000, 3_000_000])
def test_a_file_that_may_not_grow_leaves_nothing_half(place: Path, limit: int) -> None:
    crafted(place / "shards", replies=20, size=200_000)
    process = start(place, "merge", "shards/1", "shards/2", "--output", "all", most_bytes=limit)
    said, code = process.communicate(timeout=120)[1], process.returncode
    assert code == 3
    assert "all: no space left" in said
    assert "nothing was written there; free some space and try again" in said
    assert sorted(path.name for path in place.iterdir()) == ["evals.jsonl", "model.py", "shards"]


@pytest.mark.parametrize("size", ["size=6m", "size=20m,nr_inodes=2", "size=20m,nr_inodes=3"])
def test_a_full_disk_leaves_nothing_half_and_with_room_it_goes_well(place: Path, size: str) -> None:
    crafted(place / "shards", replies=20, size=200_000)
    small = place / "small"
    small.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", small], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a small disk")
    try:
        code, _, said = steelyard(place, "merge", "shards/1", "shards/2", "--output", "small/all")
        assert code == 3
        assert "small/all: no space left" in said
        assert list(small.iterdir()) == []
        subprocess.run(["mount", "-o", "remount,size=20m,nr_inodes=100", small], check=True)
        steelyard(place, "merge", "shards/1", "shards/2", "--output", "small/all")
        assert sum(1 for _ in StoredRun(small / "all").facts()) == 40
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.slow
def test_memory_does_not_grow_with_what_is_merged(place: Path) -> None:
    peaks = []
    for replies in (2_000, 10_000):
        crafted(place / f"{replies}", replies=replies, size=50_000)
        process = start(place, "merge", f"{replies}/1", f"{replies}/2", "--output", f"all-{replies}")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.communicate()
        assert process.returncode == 3
        peaks.append(used.ru_maxrss >> 10)
        shutil.rmtree(place / f"{replies}")
    # 200 MB, and a gigabyte
    assert peaks[1] < 700
    assert peaks[1] < 1.6 * peaks[0]


# --- experiments


EXPERIMENT = """
[experiment]
id = "tiny"
cases = ["evals.jsonl"]
runs = 2
budget_usd = 900
[judging]
judges = ["openai/judge"]
rubric = "rubric.toml"
[[tiers]]
name = "T0"
model = "openai/small"
[[tiers]]
name = "T1"
extends = "T0"
prompt = "Please: {{prompt}}"
"""
JUDGED = json.dumps({"criteria_scores": {"works": {"reason": "so", "score": 0.5}}, "score": 0.5, "passed": True})


@pytest.fixture
def experiment(place: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    prices = [f'[prices."openai/{model}"]\ninput = 100\noutput = 100\n' for model in ("small", "judge")]
    (place / "steelyard.toml").write_text("".join(prices))
    (place / "experiment.toml").write_text(EXPERIMENT)
    (place / "rubric.toml").write_text('[categories.works]\ncheck = "It works."\n')
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")

    def script(request: Request) -> Behaviour:
        if request.body["model"] == "judge":
            return says(JUDGED)
        return says("answer" if int(request.prompt[-1]) % 2 or request.prompt.startswith("Please") else "no")

    server.script = script
    return place


TIERS = ("tiers", "experiment.toml", "--format", "json")


def test_an_experiment_in_shards_comes_to_what_it_comes_to_in_one_go(called: Run, experiment: Path) -> None:
    code, _, _ = called(*TIERS, "--output", "whole")
    assert code == 0
    for number in (1, 2):
        code, _, said = called(*TIERS, "--shard", f"{number}/2", "--output", f"{number}")
        assert (code, f"shard {number}/2: " in said) == (0, True)
    code, out, _ = called("merge", "1", "2", "--output", "all")
    assert code == 0
    assert "steelyard tiers all" in out
    assert len([fact for fact in StoredRun(experiment / "all").facts() if isinstance(fact, Judgment)]) == 2 * 2 * CASES

    def timeless_analysis(folder: str) -> Any:
        compared = tier_runs.tier_experiment(StoredRun(experiment / folder))
        runs = [replace(run, duration_seconds=1.0) for run in compared.runs]
        return sorted(map(repr, runs)), compared.judges_usd, compared.order, compared.notes, compared.conclusive

    assert timeless_analysis("all") == timeless_analysis("whole")
    tables = [json.loads(called("tiers", folder, "--format", "json")[1]) for folder in ("all", "whole")]
    rates = [
        [(tier["tier"], tier["pass_rate"]) for model in table["models"] for tier in model["tiers"]] for table in tables
    ]
    assert rates[0] == rates[1] != []


def test_a_shard_of_an_experiment_has_its_share_of_the_budget(called: Run, experiment: Path) -> None:
    text = (experiment / "experiment.toml").read_text()
    # every answer costs 0.0015, and every judgment the same; the budget is for 15 of them
    (experiment / "experiment.toml").write_text(
        text.replace("budget_usd = 900", "budget_usd = 0.0225\nparameters = {max_tokens = 5}")
    )
    for number in (1, 2, 3):
        code, _, said = called(*TIERS, "--shard", f"{number}/3", "--output", f"{number}")
        assert code in (2, 3), said
    spent = sum(facts(experiment / f"{number}").spent for number in (1, 2, 3) if (experiment / f"{number}").exists())
    assert spent <= 0.0225


def test_only_an_experiment_can_be_dealt_out(called: Run, experiment: Path) -> None:
    code, _, said = called("tiers", "somewhere", "--shard", "1/2")
    assert code == 2
    assert "--shard is for running an experiment (.toml)" in said
    assert called(*TIERS, "--shard", "10/12", "--output", "10")[0] == 0
    assert called(*TIERS, "--shard", "10/12", "--dry-run")[0] == 0
    assert "requests about 5 cases" in called("tiers", "experiment.toml", "--shard", "1/2", "--dry-run")[1]


def test_shards_that_were_judged_apart_are_merged_when_they_were_judged_alike(called: Run, experiment: Path) -> None:
    for number in (1, 2):
        called("run", "evals.jsonl", "-m", "openai/small", "--shard", f"{number}/2", "--output", f"{number}")
    judge = ("--judges", "openai/judge", "--rubric", "rubric.toml")
    assert called("judge", "1", *judge)[0] == 0
    code, _, said = called("merge", "1", "2", "--output", "all")
    assert code == 2
    assert "judges " in said
    assert called("judge", "2", *judge)[0] == 0
    assert called("merge", "1", "2", "--output", "all")[0] == 0
    assert called("tiers", "all")[0] == 0
    # and those that were not judged at all are judged when they are whole
    for number in (1, 2):
        called("run", "evals.jsonl", "-m", "openai/small", "--shard", f"{number}/2", "--output", f"bare-{number}")
    merge([experiment / "bare-1", experiment / "bare-2"], output=experiment / "bare")
    assert called("judge", "bare", *judge)[0] == 0
    assert len([fact for fact in StoredRun(experiment / "bare").facts() if isinstance(fact, Judgment)]) == CASES
