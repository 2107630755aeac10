"""What one run can feed: as many verifying processes as a machine would have that is not there.

    python benchmarks/feeder.py [--processes 1,16,64] [--milliseconds 8.1] [--attempts 250]

A run asks a scripted model for answers to HumanEval, hands them to processes and stores their verdicts, all by our own code. Only
the verdict is simulated: a process waits instead of computing, as long as a verdict takes by `cores.py`, with times that vary as
those of independent events do, one answer after the other, and returns a verdict of the usual size. Waiting needs no processor, so
64 processes fit on 16. Ideal is the rate with one process times the number of processes; what is missing is the feeder's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import cores

TEST_NAME = "candidate([1.0, 2.0, 3.9, 4.0, 5.0, 2.2], {number}) == True"
TESTS = 7
"""Tests of a case, as HumanEval has them on average."""
AIM = cores.AIMS[64]


def wait_instead(milliseconds: float) -> None:
    """Let the Python verifier of this process wait where it would run an answer."""
    from steelyard.records import Answer, Case, Finding, Test
    from steelyard.verifiers.python.verifier import PythonVerifier

    chance, turn = random.Random(os.getpid()), asyncio.Lock()
    tests = tuple(Test(name=TEST_NAME.format(number=number), outcome="passed", seconds=1e-5) for number in range(TESTS))

    async def verify(self: PythonVerifier, case: Case, answer: Answer) -> Finding:  # noqa: ARG001  the verifier's signature
        async with turn:
            await asyncio.sleep(chance.expovariate(1000 / milliseconds))
        return Finding(code=answer.text, compiled=True, tests=tests, trust="isolated", isolation="full")

    PythonVerifier.verify = verify  # type: ignore[method-assign]


def one_run(processes: int, attempts: int, milliseconds: float) -> None:
    """A run with so many processes that wait; prints what it took."""
    from steelyard.engine import verifiers
    from steelyard.engine.verifier_processes import service

    waiting = f"sys.path.insert(0, {str(cores.ROOT)!r})\nfrom benchmarks.feeder import wait_instead\nwait_instead({milliseconds})\n"
    service.BOOT_SCRIPT = service.BOOT_SCRIPT.replace("main()\n", f"{waiting}main()\n")
    service.MAX_PROCESSORS_ALONE = 0
    for module in (service, verifiers):
        module.processor_count = lambda: processes  # type: ignore[attr-defined]
    at_once: Any = property(lambda _: processes)
    verifiers.VerifierSet.at_once = at_once  # type: ignore[method-assign]
    cores.one_run("code", sorted(os.sched_getaffinity(0)), attempts)


def main() -> None:
    """Measure each number of processes in a run of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", default="1,16,64", help="numbers of processes (default: 1,16,64)")
    parser.add_argument("--milliseconds", type=float, default=8.1, help="what a verdict takes (default: 8.1)")
    parser.add_argument("--attempts", type=int, default=250, help="attempts for each process (default: 250)")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        one_run(given.child, given.attempts, given.milliseconds)
        return
    print(f"{platform.machine()}, {len(os.sched_getaffinity(0))} processors, Python {platform.python_version()}")
    print(f"{'processes':>9}{'attempts/s':>12}{'of ideal':>10}{'feeder ms':>11}")
    each = 0.0
    for processes in map(int, given.processes.split(",")):
        attempts = processes * given.attempts
        command = [sys.executable, __file__, "--child", str(processes), "--milliseconds", str(given.milliseconds)]
        ended = subprocess.run([*command, "--attempts", str(attempts)], stdout=subprocess.PIPE, text=True, check=True)
        cost = cores.Cost(*json.loads(ended.stdout.splitlines()[-1]))
        each = each or cost.per_second / processes
        of_ideal = cost.per_second / processes / each
        aim = f"   aim {AIM:g}: {'met' if of_ideal >= AIM else 'MISSED'}" if processes >= 64 else ""
        print(f"{processes:>9}{cost.per_second:>12.0f}{of_ideal:>10.2f}{cost.feeder_ms:>11.3f}{aim}", flush=True)


if __name__ == "__main__":
    main()
