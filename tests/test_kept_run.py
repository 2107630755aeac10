"""What version 0.1.0 wrote is read, shown, resumed, verified, merged, gated and queried by this version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from steelyard.store.journal import StoredRun
from steelyard.store.side_files import gate_looks
from support.command_line import steelyard
from support.whole_results import run_results

KEPT = Path(__file__).parent / "data" / "run-0.1.0"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of the kept files, laid out as their user had them."""
    place = tmp_path / "place"
    shutil.copytree(KEPT, place)
    (place / "runs").rename(place / "steelyard-runs")
    return place


def test_a_kept_run_is_read_with_every_fact(place: Path) -> None:
    stored = StoredRun(place / "steelyard-runs" / "whole")
    results = run_results(stored.info, stored.cases, stored.facts())
    correct = {model.model: (model.correct, model.attempts, model.missing) for model in results.summary.models}
    assert correct == {"large": (5, 6, 0), "small": (2, 5, 1)}
    assert not stored.damaged
    assert [look.verdict for look in gate_looks(stored.folder)] == ["cannot tell"]


def test_a_kept_run_is_listed_and_shown(place: Path) -> None:
    listed = steelyard(place, "list")
    assert listed.returncode == 0
    assert "whole" in listed.stdout
    shown = steelyard(place, "show", "whole")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "83.3% [13.3, 99.4]" in shown.stdout
    attempt = steelyard(place, "show", "whole", "shout", "2")
    assert "return text.upper()" in attempt.stdout
    assert "server error 503" in steelyard(place, "show", "whole", "last", "2").stdout


def close(value: object) -> object:
    """The same value with its numbers rounded: the last digit of an interval is not a promise."""
    match value:
        case dict():
            return {name: close(each) for name, each in value.items()}
        case list():
            return [close(each) for each in value]
        case float():
            return round(value, 9)
    return value


def test_a_kept_run_makes_every_report(place: Path) -> None:
    files = [f"report.{suffix}" for suffix in ("html", "json", "md", "csv", "xml", "sarif", "jsonl")]
    arguments = [part for file in files for part in ("-o", f"new-{file}")]
    written = steelyard(place, "report", "whole", *arguments)
    assert written.returncode == 0, written.stderr
    assert all((place / f"new-{file}").stat().st_size for file in files)
    old, new = (json.loads((place / name).read_text()) for name in ("report.json", "new-report.json"))
    for model in new["summary"]["models"]:
        for way in model["verified"]:
            # how many of them are correct is said since then
            assert way.pop("correct") <= way["attempts"]
    for case in new["summary"]["cases"]:
        # which attempt failed first is said since then
        assert (case.pop("first_wrong", None) is None) == (case["correct"] == case["attempts"])
    for model in new["summary"]["models"]:
        # means over attempts are said since then
        assert model.pop("per_attempt")["compile_rate"] is not None
    for was, now in zip(old["aggregate"]["per_model"].values(), new["aggregate"]["per_model"].values(), strict=True):
        # and stand where the format of these reports has them
        was |= {key: now[key] for key in ("avg_compilation_rate", "avg_test_pass_rate", "avg_clippy_score")}
        # nobody had counted tokens, which was reported as 0 and is unknown since then
        assert (was.pop("total_tokens"), now.pop("total_tokens")) == (0, None)
    # one of seven attempts is missing, which is too many since then
    assert new["summary"].pop("conclusive") is False
    # nobody had measured a latency, which was reported as 0 and is unknown since then
    for was, now in zip(old["summary"]["models"], new["summary"]["models"], strict=True):
        assert (was.pop("latency")["value"], now.pop("latency")["value"]) == (0, None)
        was |= {"latency_p50": None, "latency_p95": None}
    for model in old["aggregate"]["per_model"].values():
        model["avg_latency_ms"] = None
    for result in old["results"]:
        result["timing"] |= {"llm_request_ms": None, "total_ms": None}
    # nobody had tried a pass with false tests, or flagged one
    for result in new["results"]:
        assert (result.pop("flag"), result.pop("watched"), result.pop("controls")) == ("", None, 0)
    assert close(new | {"format": 0}) == close(old | {"format": 0})


def test_a_kept_run_is_resumed_and_owes_only_what_failed(place: Path) -> None:
    journal = place / "steelyard-runs" / "whole" / "attempts.jsonl"
    before = journal.read_bytes()
    resumed = steelyard(place, "resume", "whole")
    assert resumed.returncode == 3, resumed.stderr
    after = journal.read_bytes()
    assert after.startswith(before)
    added = [json.loads(line) for line in after[len(before) :].splitlines()]
    assert "reply" not in [fact["kind"] for fact in added]
    assert [fact["case"] for fact in added if fact["kind"] == "failure"] == ["last"]


def test_a_kept_run_is_verified_again_to_the_same_verdicts(place: Path) -> None:
    verified = steelyard(place, "verify", "whole")
    assert verified.returncode == 3, verified.stderr
    stored = StoredRun(place / "steelyard-runs" / "whole")
    results = run_results(stored.info, stored.cases, stored.facts())
    assert {model.model: model.correct for model in results.summary.models} == {"large": 5, "small": 2}


def test_kept_shards_are_merged(place: Path) -> None:
    merged = steelyard(
        place, "merge", "shards/1", "shards/2", "--output", "merged", "--pass-k", "1,2", "--format", "json"
    )
    assert merged.returncode == 3, merged.stderr
    whole = json.loads((place / "report.json").read_text())
    assert json.loads(merged.stdout)["aggregate"]["per_case"] == whole["aggregate"]["per_case"]


@pytest.mark.parametrize("baseline", ["main", "steelyard-baselines/main.json", "report.json@large", "whole@large"])
def test_a_kept_run_is_gated_against_a_kept_baseline(place: Path, baseline: str) -> None:
    gated = steelyard(place, "gate", "--baseline", baseline, "--current", "whole@small", "--format", "json")
    # one of its six attempts failed
    assert gated.returncode == 3, gated.stderr
    assert json.loads(gated.stdout)["decision"]["verdict"] == "cannot tell"


def test_a_kept_run_is_compared_with_a_kept_report(place: Path) -> None:
    compared = steelyard(place, "compare", "--baseline", "report.json", "--current", "whole", "--format", "json")
    assert compared.returncode == 0, compared.stderr
    assert not json.loads(compared.stdout)["regressions"]


def test_a_kept_run_is_queried(place: Path) -> None:
    asked = (
        "SELECT model, sum(correct::int)::int AS correct FROM attempts WHERE tier = '' GROUP BY model ORDER BY model"
    )
    answer = steelyard(place, "query", asked, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == [{"model": "large", "correct": 5}, {"model": "small", "correct": 2}]


def test_a_kept_experiment_is_analysed_with_its_judgments(place: Path) -> None:
    analysed = steelyard(place, "tiers", "experiment", "--format", "json")
    assert analysed.returncode == 0, analysed.stderr
    assert "python/stand_in.py:judge" in analysed.stdout
    table = steelyard(place, "tiers", "experiment").stdout
    assert "0.567 [0.046, 0.973]" in table


def test_a_kept_run_is_a_recording(place: Path) -> None:
    replayed = steelyard(place, "run", "cases.toml", "--models", "replay:steelyard-runs/whole", "--output", "again")
    assert replayed.returncode == 0, replayed.stderr
    assert "5/6" in replayed.stdout
