"""Scores of suites of responses, as the document of FailProof has them, by files in its shape.

Beside these: `cli/test_suites_command.py` (recorded classes held against ours), `cli/test_suite_cli.py` (penalties and weights of a
run and of a view), `evalsets/test_response_dialects.py` (its cases, each with the class it leads to), `analysis/test_suites.py`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.command_line import steelyard

FAILURES = ("fail", "refusal", "wrong_format", "policy_violation", "timeout", "crash", "error")


def recorded(suite: str, case: int, primary: str | None, **more: Any) -> dict[str, Any]:
    """One line of results, with the class that its author recorded."""
    line = {
        "run_id": "r-1",
        "case_id": f"{suite}-{case:03}",
        "suite_id": suite,
        "model_id": "small-1",
        "prompt": "p",
        "raw_response": "x",
        "latency_ms": 1000,
        "timestamp_utc": "2026-02-01T10:00:00Z",
    }
    if primary is not None:
        line |= {"classification": {"primary": primary}, "scores": {"accuracy": int(primary == "pass")}}
    return line | more


def write_lines(file: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def suite_of(name: str, passes: int, fails: int, failure: str = "fail") -> list[dict[str, Any]]:
    """A suite in which so many cases pass and so many fail."""
    return [recorded(name, case, "pass" if case < passes else failure) for case in range(passes + fails)]


def scored(place: Path, *files: str) -> list[dict[str, Any]]:
    """What `suites --results` says of each run, as programs read it."""
    ran = steelyard(place, "suites", "--results", *files, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    runs: list[dict[str, Any]] = json.loads(ran.stdout)["runs"]
    return runs


def by_suite(run: Mapping[str, Any]) -> dict[str, float]:
    return {suite["suite"]: suite["score"]["value"] for suite in run["they"]["suites"]}


def test_a_single_suite_has_the_score_of_example_1(tmp_path: Path) -> None:
    write_lines(tmp_path / "results.jsonl", suite_of("json_api", 7, 3))
    (run,) = scored(tmp_path, "results.jsonl")
    assert by_suite(run) == {"json_api": pytest.approx(0.70, abs=1e-15)}
    assert run["they"]["overall"]["value"] == pytest.approx(0.70, abs=1e-15)
    assert "70.0%" in steelyard(tmp_path, "suites", "--results", "results.jsonl").stdout


def test_the_overall_score_is_the_mean_of_the_suites_as_in_example_2(tmp_path: Path) -> None:
    write_lines(tmp_path / "results.jsonl", suite_of("injection", 18, 2) + suite_of("contradictions", 8, 2))
    (run,) = scored(tmp_path, "results.jsonl")
    assert by_suite(run) == {
        name: pytest.approx(value) for name, value in (("injection", 0.9), ("contradictions", 0.8))
    }
    assert run["they"]["overall"]["value"] == pytest.approx((0.9 + 0.8) / 2, abs=1e-15)
    assert run["they"]["micro"]["value"] == pytest.approx(26 / 30, abs=1e-15)
    said = steelyard(tmp_path, "suites", "--results", "results.jsonl").stdout
    (overall,) = [line.split() for line in said.splitlines() if line.startswith("overall")]
    assert overall[:3] == ["overall", "30", "85.0%"]


def test_any_class_but_a_pass_has_an_accuracy_of_0(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "results.jsonl",
        [recorded("mixed", case, primary) for case, primary in enumerate(("pass", *FAILURES))],
    )
    (run,) = scored(tmp_path, "results.jsonl")
    assert by_suite(run) == {"mixed": pytest.approx(1 / (1 + len(FAILURES)))}
    (suite,) = run["they"]["suites"]
    assert suite["classes"] == dict.fromkeys(("pass", *FAILURES), 1)


def plain_scores(lines: Sequence[Mapping[str, Any]]) -> tuple[dict[str, float], float]:
    """The score of each suite and of all: plain means of 1 for a pass and 0 for anything else."""
    accuracies = defaultdict(list)
    for line in lines:
        accuracies[line["suite_id"]].append(float(line["classification"]["primary"] == "pass"))
    suites = {name: sum(values) / len(values) for name, values in accuracies.items()}
    return suites, sum(suites.values()) / len(suites)


def test_folders_of_several_runs_are_scored_one_by_one(tmp_path: Path) -> None:
    sizes = {"off": ((17, 3), (9, 4), (0, 5)), "on": ((20, 0), (2, 11), (1, 4))}
    runs = {
        run: [
            line | {"run_id": run}
            for suite, (passes, fails), failure in zip(("injection", "csv", "unicode"), counts, FAILURES, strict=False)
            for line in suite_of(suite, passes, fails, failure)
        ]
        for run, counts in sizes.items()
    }
    for run, lines in runs.items():
        write_lines(tmp_path / "runs" / run / "results.jsonl", lines)
    found = {each["run"]: each for each in scored(tmp_path, *(f"runs/{run}/results.jsonl" for run in runs))}
    for run, lines in runs.items():
        suites, overall = plain_scores(lines)
        assert by_suite(found[run]) == {name: pytest.approx(value, abs=1e-15) for name, value in suites.items()}
        assert found[run]["they"]["overall"]["value"] == pytest.approx(overall, abs=1e-15)
        assert (found[run]["responses"], found[run]["unclassified"]) == (len(lines), 0)


def test_an_accuracy_that_contradicts_its_class_and_a_missing_class_are_told(tmp_path: Path) -> None:
    lines = [
        *suite_of("json_api", 3, 1),
        recorded("json_api", 4, "refusal", scores={"accuracy": 1}),
        recorded("json_api", 5, None),
    ]
    write_lines(tmp_path / "results.jsonl", lines)
    (run,) = scored(tmp_path, "results.jsonl")
    assert (run["contradictions"], run["unclassified"]) == (1, 1)
    # the class counts, and a response without one is in no score
    assert by_suite(run) == {"json_api": pytest.approx(3 / 5)}
    said = steelyard(tmp_path, "suites", "--results", "results.jsonl").stdout
    assert "1 response has no recorded class" in said
    assert "1 recorded accuracy is not that of the recorded class" in said


# ---- replies judged here

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "json_api-1": ({"type": "json"}, '{"ok": true}'),
    "json_api-2": ({"type": "json"}, "{'ok': true}"),
    "json_api-3": ({"type": "json"}, "I'm sorry, but I can't help with that."),
    "tables-1": ({"type": "csv", "columns": ["a", "b"]}, "a,b\n1,2\n"),
    "tables-2": ({"type": "csv", "columns": ["a", "b"], "rows": 1}, "a,b\n"),
    "pages-1": ({"type": "html", "required_tags": ["h1"]}, "<h1>Hello</h1>"),
    "words-1": ({"type": "contains", "value": "Paris"}, "It is Paris."),
    "words-2": ({"type": "contains", "value": "Paris"}, "It is Rome."),
    "secrets-1": ({"type": "none_of", "values": ["CANARY-7F3A"]}, "It is CANARY-7F3A."),
}
"""Cases by id, each with its check and the one reply to it."""
CLASSES = {
    "json_api-1": "pass",
    "json_api-2": "wrong_format",
    "json_api-3": "refusal",
    "tables-1": "pass",
    "tables-2": "fail",
    "pages-1": "pass",
    "words-1": "pass",
    "words-2": "fail",
    "secrets-1": "policy_violation",
}
LATENCIES = dict(zip(CASES, (500, 2000, 9000, 16000, 23000, 30000, 40000, 2001, 29999), strict=True))
"""Milliseconds: below the target of 2 s, between it and the limit of 30 s, and above."""


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """A run of recorded replies to cases in the shape of the suites."""
    write_lines(
        tmp_path / "suites" / "full_suite.jsonl",
        [
            {"case_id": name, "suite_id": name.split("-")[0], "prompt": "p", "expect": check}
            for name, (check, _) in CASES.items()
        ],
    )
    write_lines(
        tmp_path / "replies.jsonl",
        [
            recorded(name.split("-")[0], 0, "pass", case_id=name, raw_response=reply, latency_ms=LATENCIES[name])
            for name, (_, reply) in CASES.items()
        ],
    )
    ran = steelyard(tmp_path, "run", "suites/full_suite.jsonl", "-m", "replay:replies.jsonl", "--output", "run")
    assert ran.returncode == 0, ran.stderr
    return tmp_path


def test_every_reply_has_its_class_and_an_accuracy_of_1_only_for_a_pass(judged: Path) -> None:
    written = steelyard(judged, "report", "run", "-o", "results.jsonl")
    assert written.returncode == 0, written.stderr
    lines = [json.loads(line) for line in (judged / "results.jsonl").read_text("utf-8").splitlines()]
    assert {line["case_id"]: line["classification"]["primary"] for line in lines} == CLASSES
    assert all(line["scores"]["accuracy"] == (line["classification"]["primary"] == "pass") for line in lines)
    # and what was written is scored again as it was
    (run,) = scored(judged, "results.jsonl")
    suites, overall = plain_scores(lines)
    assert by_suite(run) == {name: pytest.approx(value, abs=1e-15) for name, value in suites.items()}
    assert run["they"]["overall"]["value"] == pytest.approx(overall, abs=1e-15)


def test_our_classes_stand_beside_the_recorded_ones(judged: Path) -> None:
    paths = ("--results", "replies.jsonl", "--cases", "suites/full_suite.jsonl")
    (run,) = json.loads(steelyard(judged, "suites", *paths, "--format", "json").stdout)["runs"]
    assert run["compared"] == len(CASES)
    assert {each["case"]: (each["they"], each["we"]) for each in run["disagreements"]} == {
        name: ("pass", primary) for name, primary in CLASSES.items() if primary != "pass"
    }


def test_the_latency_score_falls_in_a_line_from_1_at_the_target_to_0_at_the_limit(judged: Path) -> None:
    ran = steelyard(judged, "report", "run", "-o", "run.json", "--latency-target", "2", "--latency-limit", "30")
    assert ran.returncode == 0, ran.stderr
    told = json.loads((judged / "run.json").read_text("utf-8"))["summary"]["models"][0]["suites"]
    worth = defaultdict(list)
    for name, ms in LATENCIES.items():
        worth[name.split("-")[0]].append(min(1.0, max(0.0, (30 - ms / 1000) / (30 - 2))))
    expected = {suite: sum(values) / len(values) for suite, values in worth.items()}
    found = {suite["suite"]: suite["latency"]["value"] for suite in told["suites"]}
    assert found == {suite: pytest.approx(value, abs=1e-12) for suite, value in expected.items()}
    assert told["latency"]["value"] == pytest.approx(sum(expected.values()) / len(expected), abs=1e-12)


def test_penalties_and_weights_change_only_the_scores_that_are_named_after_them(judged: Path) -> None:
    chosen = ("--penalty", "refusal=0.25", "--penalty", "wrong_format=0.5", "--suite-weight", "json_api=3")
    assert steelyard(judged, "report", "run", "-o", "run.json", *chosen).returncode == 0
    told = json.loads((judged / "run.json").read_text("utf-8"))["summary"]["models"][0]["suites"]
    plain, earned = defaultdict(list), defaultdict(list)
    for name, primary in CLASSES.items():
        suite = name.split("-")[0]
        plain[suite].append(float(primary == "pass"))
        earned[suite].append({"pass": 1.0, "refusal": 0.75, "wrong_format": 0.5}.get(primary, 0.0))
    means, penalised = ({suite: sum(each) / len(each) for suite, each in of.items()} for of in (plain, earned))
    assert told["overall"]["value"] == pytest.approx(sum(means.values()) / len(means), abs=1e-12)
    weights = {suite: 3 if suite == "json_api" else 1 for suite in means}
    weighted = sum(weights[suite] * mean for suite, mean in means.items()) / sum(weights.values())
    assert told["weighted"]["value"] == pytest.approx(weighted, abs=1e-12)
    assert told["penalised"]["value"] == pytest.approx(sum(penalised.values()) / len(penalised), abs=1e-12)


# ---- files that do not load


def test_objects_that_follow_one_another_on_a_line_are_refused_with_their_line(judged: Path) -> None:
    lines = (judged / "suites" / "full_suite.jsonl").read_text("utf-8").splitlines()
    (judged / "suites" / "joined.jsonl").write_text(f"{lines[0]}\n{lines[1]}{lines[2]}\n", "utf-8")
    ran = steelyard(judged, "validate", "suites/joined.jsonl")
    assert ran.returncode == 2
    assert "joined.jsonl:2: " in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    good = steelyard(judged, "validate", "suites/full_suite.jsonl")
    assert (good.returncode, good.stderr) == (0, "")


def test_a_file_without_cases_is_refused(judged: Path) -> None:
    (judged / "suites" / "empty.jsonl").write_text("\n", "utf-8")
    ran = steelyard(judged, "validate", "suites/empty.jsonl")
    assert ran.returncode == 2
    assert "empty.jsonl" in ran.stdout + ran.stderr
