"""Runs in which every word of trust stands that there ever was are read by every command, and no verdict in them is lost.

What is asserted held when they were written and holds since: passes stay passes, failures stay failures, whatever the words.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from steelyard.store.journal import StoredRun
from steelyard.store.side_files import gate_looks
from support.command_line import steelyard
from support.toolchains import needs
from support.viewed import Viewer
from support.whole_results import run_results

KEPT = Path(__file__).parent / "data" / "run-before-separation"
RUNS = ("whole", "monday", "tuesday", "strict", "languages", "imported", "imported-too", "experiment")
FORGED = [("small", "", "add", 3), ("small", "", "count", 3)]
"""The attempts of `whole` and `monday` that tried to forge their result."""
SUFFIXES = (
    *("html", "json", "md", "csv", "xml", "sarif", "jsonl", "parquet", "eee.json", "inspect.json", "promptfoo.json"),
    *("forgetest.json", "otlp.json", "evalplus.jsonl", "human-eval.jsonl"),
)


class Key(NamedTuple):
    """Which attempt of a run it is."""

    model: str
    tier: str
    case: str
    number: int


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of the kept files, laid out as their user had them."""
    place = tmp_path / "place"
    shutil.copytree(KEPT, place, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "runs").rename(place / "steelyard-runs")
    return place


def lines(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The facts of this kind in a journal, as they stand in the file."""
    for line in (folder / "attempts.jsonl").read_text().splitlines():
        fact = json.loads(line)
        if fact["kind"] == kind:
            yield fact


def written(folder: Path) -> dict[Key, bool]:
    """Of each attempt with a verdict whether it has passed, as it stands in the journal: who failed has a label, or a no."""
    found = {}
    for fact in lines(folder, "verdict"):
        verdict = fact["found"]
        passed = not verdict.get("label") and verdict.get("passed") is not False
        found[Key(fact["model"], fact.get("tier", ""), fact["case"], fact["number"])] = passed
    return found


def judged(folder: Path) -> dict[Key, bool]:
    """The same as it counts today, without the attempts that are missing."""
    stored = StoredRun(folder)
    tried = run_results(stored.info, stored.cases, stored.facts()).attempts
    assert not stored.damaged
    return {
        Key(each.model, each.tier, each.case.id, each.number): each.correct
        for each in tried
        if each.correct is not None
    }


def test_the_kept_runs_have_every_word_of_trust() -> None:
    words: Counter[str] = Counter()
    for folder in KEPT.glob("runs/*"):
        words.update(fact["found"].get("trust", "") for fact in lines(folder, "verdict"))
    assert words == {"": 7, "isolated": 31, "in-process": 47, "unproved": 29, "recorded": 8}


@pytest.mark.parametrize("folder", [*(f"steelyard-runs/{name}" for name in RUNS), "shards/1", "shards/2"])
def test_no_verdict_is_dropped_and_passes_stay_passes(place: Path, folder: str) -> None:
    if folder.endswith("strict"):
        # only what is isolated counts there
        correct = {key for key, passed in judged(place / folder).items() if passed}
        assert correct == {key for key, passed in written(place / folder).items() if passed and key.case == "double"}
    else:
        assert judged(place / folder) == written(place / folder)


def test_kept_runs_are_listed_and_shown(place: Path) -> None:
    listed = steelyard(place, "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert all(name in listed.stdout for name in RUNS)
    assert "17/18" in listed.stdout
    for name in RUNS:
        shown = steelyard(place, "show", name)
        assert (shown.returncode, shown.stderr) == (0, "")
    shown = steelyard(place, "show", "whole")
    assert "17/18" in shown.stdout
    assert "8/16" in shown.stdout
    assert "small · add #3" in shown.stdout
    assert "small · count #3" in shown.stdout
    assert "rust-half #4" in steelyard(place, "show", "languages").stdout


def test_attempts_of_kept_runs_are_shown(place: Path) -> None:
    forged = steelyard(place, "show", "whole", "add", "3", "--model", "small")
    assert "wrote to the channel of its results" in forged.stdout
    assert "tampered" in forged.stdout
    assert "correct, score 1.000" in steelyard(place, "show", "whole", "greet", "1").stdout
    assert "server error 503" in steelyard(place, "show", "whole", "last", "2", "--model", "small").stdout
    assert "JSONDecodeError" in steelyard(place, "show", "whole", "weather", "2", "--model", "small").stdout
    assert "as it looks" in steelyard(place, "show", "whole", "friendly", "2", "--model", "small").stdout
    assert "correct, score 1.000" in steelyard(place, "show", "imported", "HumanEval/0", "1").stdout
    failed = steelyard(place, "show", "languages", "--failed")
    assert "#2" in failed.stdout


def results(report: Path) -> dict[Key, tuple[bool, float, str, str]]:
    """What a report says of each attempt: whether it passed, its score, how it failed, and how it tampered."""
    return {
        Key(each["model"], "", each["case_id"], each["attempt"]): (
            each["correct"],
            round(each["score"], 9),
            each["failure"],
            each["tampered"],
        )
        for each in json.loads(report.read_text())["results"]
    }


def test_a_kept_run_makes_every_report(place: Path) -> None:
    files = [part for suffix in SUFFIXES for part in ("-o", f"new.{suffix}")]
    made = steelyard(place, "report", "whole", *files)
    assert made.returncode == 0, made.stderr
    # a file of Every Eval Ever is about one model
    found = {suffix: [path.stat().st_size for path in place.glob(f"new*.{suffix}")] for suffix in SUFFIXES}
    assert all(sizes and all(sizes) for sizes in found.values()), found
    old, new = (results(place / name) for name in ("report.json", "new.json"))
    assert new == old
    assert sorted(key for key, (*_, tampered) in new.items() if tampered) == FORGED
    summary = json.loads((place / "new.json").read_text())["summary"]["models"]
    assert [(model["correct"], model["attempts"], model["missing"]) for model in summary] == [(17, 18, 0), (8, 16, 2)]
    assert sum(way["correct"] for model in summary for way in model["verified"]) == 20  # five are checks of text
    assert (place / "new.csv").read_text().count("\n") == 37


def test_a_kept_run_is_resumed_without_asking_again(place: Path) -> None:
    folder = place / "steelyard-runs" / "whole"
    journal = folder / "attempts.jsonl"
    before, passed = journal.read_bytes(), judged(folder)
    resumed = steelyard(place, "resume", "whole", "--allow-code")
    assert resumed.returncode == 3, resumed.stderr
    after = journal.read_bytes()
    assert after.startswith(before)
    added = [json.loads(line) for line in after[len(before) :].splitlines()]
    # the judge's word is there, and so is every reply but the one that failed
    assert {fact["kind"] for fact in added} <= {"verdict", "failure"}
    assert {fact["case"] for fact in added if fact["kind"] == "failure"} == {"last", "weather"}
    assert judged(folder) == passed


def test_kept_runs_are_verified_again_to_the_same_passes(place: Path) -> None:
    for name, returncode in (("whole", 3), ("experiment", 0)):
        folder = place / "steelyard-runs" / name
        passed = judged(folder)
        verified = steelyard(place, "verify", name, "--allow-code")
        assert verified.returncode == returncode, verified.stderr
        assert judged(folder) == passed


@needs("node")
@needs("rustc")
def test_kept_answers_in_other_languages_are_verified_again_to_the_same_passes(place: Path) -> None:
    folder = place / "steelyard-runs" / "languages"
    passed = judged(folder)
    verified = steelyard(place, "verify", "languages")
    assert verified.returncode == 0, verified.stderr
    assert judged(folder) == passed


def test_a_kept_recording_is_verified_by_tests_of_ours(place: Path) -> None:
    cases = (place / "cases.toml").read_text().replace('id = "double"', 'id = "HumanEval/0"')
    (place / "ours.toml").write_text(cases.partition('[[cases]]\nid = "add"')[0])
    verified = steelyard(place, "verify", "imported", "--eval-set", "ours.toml")
    assert verified.returncode == 0, verified.stderr
    assert "of 1 reply they say 1 are correct, we say 0" in verified.stderr
    assert "2/4" in verified.stdout


def test_kept_shards_and_recordings_are_merged(place: Path) -> None:
    merged = steelyard(place, "merge", "shards/1", "shards/2", "--output", "merged")
    assert merged.returncode == 0, merged.stderr
    assert judged(place / "merged") == written(place / "steelyard-runs" / "monday")
    joined = steelyard(place, "merge", "imported", "imported-too", "--output", "joined")
    assert joined.returncode == 0, joined.stderr
    assert Counter(key.model for key, passed in judged(place / "joined").items() if passed) == {"first": 3, "second": 2}


@pytest.mark.parametrize(
    ("baseline", "current", "verdict"),
    [
        ("main", "tuesday", "not regressed"),
        ("steelyard-baselines/main.json", "tuesday", "not regressed"),
        ("main@large", "tuesday@small", "regressed"),
        ("report.json@large", "whole@large", "not regressed"),
        ("attempts.parquet", "attempts.parquet", "cannot tell"),
    ],
)
def test_a_kept_run_is_gated_against_kept_baselines(place: Path, baseline: str, current: str, verdict: str) -> None:
    gated = steelyard(place, "gate", baseline, current, "--margin", "0.5", "--format", "json")
    assert json.loads(gated.stdout)["decision"]["verdict"] == verdict, gated.stderr
    assert gated.returncode == {"not regressed": 0, "regressed": 1, "cannot tell": 3}[verdict]


def test_a_kept_history_and_its_looks_are_read(place: Path) -> None:
    watched = steelyard(place, "gate", "--history", "main", "-o", "history.html")
    assert (watched.returncode, watched.stderr.replace("wrote history.html\n", "")) == (0, "")
    assert watched.stdout.startswith("NO DRIFT SEEN")
    assert [look.verdict for look in gate_looks(place / "steelyard-runs" / "tuesday")] == ["not regressed"]
    blessed = steelyard(place, "bless", "tuesday", "report.json", "--as", "main")
    assert blessed.returncode == 0, blessed.stderr
    assert steelyard(place, "gate", "main", "tuesday").returncode == 0


def test_a_kept_run_is_compared_with_a_kept_report(place: Path) -> None:
    compared = steelyard(place, "compare", "report.json", "whole", "--format", "json")
    assert compared.returncode == 0, compared.stderr
    found = json.loads(compared.stdout)
    assert not found["regressions"]
    assert not found["improvements"]


def test_a_baseline_is_planned_and_a_run_names_cases_for_another(place: Path) -> None:
    planned = steelyard(place, "plan", "main", "--format", "json")
    assert planned.returncode == 0, planned.stderr
    again = ("--models", "replay:steelyard-runs/whole", "--judges", "python:stand_in.py:judge", "--failed-in", "whole")
    dry = steelyard(place, "run", "cases.toml", *again, "--dry-run")
    assert dry.returncode == 0, dry.stderr


@pytest.mark.parametrize("of", [["whole"], ["--attempts", "attempts.parquet"], ["--attempts", "steelyard-runs/whole"]])
def test_pass_at_k_of_a_kept_run_stays(place: Path, of: list[str]) -> None:
    counted = steelyard(place, "passk", *of, "--k-values", "1", "2", "--format", "csv")
    assert counted.returncode == 0, counted.stderr
    assert "\nlarge,0.952" in counted.stdout
    assert "\nsmall,0.5,0.866" in counted.stdout


def test_kept_runs_are_queried(place: Path) -> None:
    def rows(question: str) -> Any:
        answer = steelyard(place, "query", question, "--format", "json")
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    passes = "SELECT model, sum(correct::int)::int AS correct FROM attempts JOIN runs ON run = id"
    assert rows(f"{passes} WHERE folder LIKE '%/whole' GROUP BY model ORDER BY model") == [
        {"model": "large", "correct": 17},
        {"model": "small", "correct": 8},
    ]
    assert rows(
        "SELECT trust, count(*) AS n FROM verdicts WHERE trust IN ('isolated', 'recorded') GROUP BY trust ORDER BY n"
    ) == [
        {"trust": "recorded", "n": 8},
        {"trust": "isolated", "n": 31},
    ]
    assert rows("SELECT count(*) AS n FROM verdicts") == [{"n": 122}]
    forged = "SELECT model, tier, \"case\", number FROM attempts JOIN runs ON run = id WHERE tampered <> ''"
    assert [tuple(row.values()) for row in rows(f"{forged} AND folder LIKE '%/whole' ORDER BY \"case\"")] == FORGED


def test_a_kept_experiment_is_analysed_with_its_judgments(place: Path) -> None:
    analysed = steelyard(place, "tiers", "experiment", "--format", "json", "-o", "tiers.html", "--charts", "charts")
    assert analysed.returncode == 0, analysed.stderr
    tiers = json.loads(analysed.stdout)["models"][0]["tiers"]
    assert [(tier["tier"], tier["statistics"]["pass_rate"]["mean"]) for tier in tiers] == [("T0", 0.5), ("T1", 1.0)]
    assert [tier["statistics"]["impl_rate"]["mean"] for tier in tiers] == pytest.approx([0.65, 0.9])
    assert list((place / "charts").iterdir())


def test_kept_judgments_and_labels_are_read(place: Path) -> None:
    journal = place / "steelyard-runs" / "languages" / "attempts.jsonl"
    before = journal.read_bytes()
    again = steelyard(place, "judge", "languages", "--rubric", "rubric.toml", "--judges", "python:stand_in.py:judge")
    assert again.returncode == 0, again.stderr
    assert journal.read_bytes() == before
    rates = steelyard(place, "label", "languages", "--rates")
    assert "of the 10 labels that a corrected rate needs" in rates.stdout, rates.stderr
    exported = steelyard(place, "label", "languages", "--export", "labels-again.csv")
    assert exported.returncode == 0, exported.stderr
    assert (place / "labels-again.csv").read_text().count("\n") == 5


def test_a_kept_run_is_a_set_of_pages(place: Path) -> None:
    exported = steelyard(place, "view", "steelyard-runs/whole", "--export", "pages")
    assert exported.returncode == 0, exported.stderr
    pages = {page.name: page.read_text() for page in (place / "pages/runs/whole/attempts").iterdir()}
    assert len(pages) == 36
    for case, forgery in (("add", "wrote to the channel of its results"), ("count", "two results with the number 2")):
        (page,) = (text for name, text in pages.items() if name.startswith(f"{case}-3-") and forgery in text)
        assert "tampered" in page


def test_kept_runs_are_served(place: Path) -> None:
    with Viewer(place / "steelyard-runs") as viewer:
        runs = viewer.json("/api/v1/runs")["items"]
        assert sorted(run["run_id"] for run in runs) == sorted(RUNS)
        counts = {run["run_id"]: [suite["pass_count"] for suite in run["suite_stats"]] for run in runs}
        assert (counts["whole"], counts["monday"], counts["imported"]) == ([17, 8], [11, 6], [3])
        models = viewer.json("/api/v1/runs/whole/summary")["models"]
        assert [(model["correct"], model["missing"], model.get("tampered", 0)) for model in models] == [
            (17, 0, 0),
            (8, 2, 2),
        ]
        attempts = viewer.json("/api/v1/runs/whole/attempts?limit=100")["items"]
        assert Counter(each["outcome"] for each in attempts) == {"correct": 25, "wrong": 9, "missing": 2}
        forged = viewer.json("/api/v1/runs/whole/attempt?case_id=add&model_id=small&attempt=3")
        assert (forged["label"], forged["verdict"]["found"]["tampered"]) == (
            "tampered",
            "wrote to the channel of its results",
        )
        assert len(viewer.json("/api/v1/runs/languages/cases?limit=100")["items"]) == 6
        assert viewer.json("/api/v1/compare?baseline=monday&current=tuesday")["tests_changed"] == []
        for name in RUNS:
            assert viewer.get(f"/runs/{name}").status == 200
