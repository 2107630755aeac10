"""Whether anything that reads what others wrote, or any options, end in something else than a result or one sentence.

    python -m benchmarks.nightly.fuzz [--minutes 10] [--seed 1] [--jobs 1] [--only JOB:NUMBER]

Files of every kind are mutated and given to their readers, in processes that live long and have a memory limit; one input in four hundred
goes through a whole command. Each input is made from the seed, the number of the job and its own number, so `--only` repeats one. Where
atheris is installed, every other job looks for inputs by coverage instead. Counted are what was read and what was refused by kind,
tracebacks, hangs, and workers that died. The exit code is 1 if there was any of the last three.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import mmap
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.nightly.jobs import FINDINGS_FILE, parser, told_by_jobs

MEMORY_LIMIT_BYTES = 4 << 30
"""What a worker may allocate; address space that libraries only reserve does not count."""
HANG_CPU_SECONDS, HANG_SECONDS = 20, 120
"""CPU seconds that one input may take, and seconds on a busy machine."""
COMMAND_SHARE = 1 / 400
"""How many inputs go through a whole command: those take a hundred times as long."""
COVERAGE_SECONDS = 20
"""Seconds that one reader is explored by coverage before the next has its turn."""
MAX_PROBLEMS_PER_WORKER, MAX_PROBLEMS_PER_PLACE = 50, 2


class HangError(BaseException):
    """An input took too long; nothing but the loop over inputs may catch it."""


def _hang(*_: object) -> None:
    raise HangError


class Progress:
    """The number of the input that a worker is at, and since when; its supervisor sees both."""

    def __init__(self) -> None:
        # struct.pack_into writes zeros first, and who looks just then takes a worker for one that hangs since the machine was started
        self._shared = memoryview(mmap.mmap(-1, 16)).cast("d")

    def begin(self, number: int) -> None:
        self._shared[0], self._shared[1] = number, time.monotonic()

    @property
    def current(self) -> tuple[int, float]:
        return int(self._shared[0]), self._shared[1]


class Findings:
    """What a worker tells: counts by kind now and then, and each problem at once."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self._counts: Counter[tuple[str, str]] = Counter()
        self._told = time.monotonic()
        self._problems = 0

    def add(self, kind: str, end: str, number: int, problem: str = "") -> None:
        self._counts[kind, end] += 1
        if problem:
            self._tell({"kind": kind, "number": number, "problem": problem})
            self._problems += 1
            if self._problems >= MAX_PROBLEMS_PER_WORKER:
                self.flush()
                os._exit(0)
        if time.monotonic() - self._told > 1:
            self.flush()

    def flush(self) -> None:
        if self._counts:
            self._tell({"counts": [[*key, count] for key, count in self._counts.items()]})
        self._counts.clear()
        self._told = time.monotonic()

    def _tell(self, what: dict[str, Any]) -> None:
        self._file.write(json.dumps(what) + "\n")
        self._file.flush()


class Job:
    """One core's share: a folder, inputs of its own, and workers that are replaced when they die."""

    def __init__(self, seed: int, job: int, folder: Path) -> None:
        from benchmarks.nightly import fuzzed_commands, fuzzed_readers

        self._seed, self._job, self._folder = seed, job, folder
        self._files = folder / "files"
        self._files.mkdir()
        self._in_fork(partial(fuzzed_commands.template, self._files))
        shutil.copytree(self._files, folder / "template")
        os.chdir(self._files)
        self._readers = fuzzed_readers.readers(self._files)
        self._weights = [reader.weight for reader in self._readers]
        self._command_result = fuzzed_commands.command_result
        self._findings = folder / FINDINGS_FILE

    def check(self, *, with_commands: bool = True) -> None:
        """Raise an AssertionError where a reader or a command refuses what is sound: damage to that would prove nothing."""
        from benchmarks.nightly.fuzzed_commands import check_commands

        for reader in self._readers:
            assert _outcome(reader.read, reader.seeds[0]) == ("read", ""), reader.name
        if with_commands:
            check_commands(self._files)

    def carry_out(self, number: int) -> tuple[str, str, str]:
        """The kind of one input, how it ended, and what was wrong."""
        from benchmarks.nightly.mutations import mutated

        chance = random.Random(f"{self._seed} {self._job} {number}")
        if chance.random() < COMMAND_SHARE:
            result = self._command_result(chance, self._files)
            return result.kind, f"exit code {result.code}", result.problem
        reader = chance.choices(self._readers, self._weights)[0]
        return reader.name, *_outcome(reader.read, mutated(chance.choice(reader.seeds), chance))

    def work(self, begin: int, until: float, progress: Progress) -> None:
        """Carry out inputs from a number on, in this process, which is a fork."""
        findings = Findings(self._findings)
        signal.signal(signal.SIGVTALRM, _hang)
        number = begin
        while time.monotonic() < until:
            progress.begin(number)
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, HANG_CPU_SECONDS)
                kind, end, problem = self.carry_out(number)
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            except HangError:
                kind, end, problem = "hangs", "hang", traceback.format_exc()[-1500:]
            findings.add(kind, end, number, problem)
            number += 1
        findings.flush()

    def explore(self, turn: int, until: float, progress: Progress) -> None:
        """Let libFuzzer look for inputs of one reader by coverage, in this process, which is a fork."""
        import atheris
        from benchmarks.nightly.mutations import mutated

        reader = self._readers[(turn + 7 * self._job) % len(self._readers)]
        corpus = self._folder / "corpus" / reader.name.replace(" ", "_")
        if not corpus.exists():
            corpus.mkdir(parents=True)
            for number, seed in enumerate(reader.seeds):
                (corpus / str(number)).write_bytes(seed)
        findings = Findings(self._findings)
        seen: Counter[str] = Counter()
        tried = 0

        def once(content: bytes) -> None:
            nonlocal tried
            tried += 1
            progress.begin(tried)
            end, problem = _outcome(reader.read, content)
            place = problem.rpartition("  File ")[2]
            seen[place] += 1
            if problem and seen[place] > 1:
                problem = ""
            elif problem:
                (self._folder.parent / f"found-{self._job}-{turn}-{tried}").write_bytes(content)
            findings.add(f"by coverage: {reader.name}", end, tried, problem)

        def mutate(content: bytes, most: int, seed: int) -> bytes:
            chance = random.Random(seed)
            return (atheris.Mutate(content, most) if chance.random() < 0.5 else mutated(content, chance))[:most]

        seconds = max(1, int(min(COVERAGE_SECONDS, until - time.monotonic())))
        flags = [f"-max_total_time={seconds}", f"-seed={self._seed * 1000 + turn + 1}", "-timeout=60", "-max_len=6000"]
        flags += ["-rss_limit_mb=6000", "-verbosity=0", f"-artifact_prefix={self._folder.parent}/"]
        atheris.Setup([sys.argv[0], *flags, str(corpus)], once, custom_mutator=mutate)
        try:
            atheris.Fuzz()
        finally:
            findings.flush()

    def run(self, until: float, *, by_coverage: bool) -> None:
        """Start workers until the time is over."""
        # code that watches itself cannot be sent into a sandbox, which some commands do
        self._in_fork(partial(self.check, with_commands=not by_coverage))
        begin = turn = 0
        while time.monotonic() < until:
            progress = Progress()
            progress.begin(begin)
            pid = os.fork()
            if pid == 0:
                work = partial(self.explore, turn) if by_coverage else partial(self.work, begin)
                self._be_worker(partial(work, until, progress))
            status = self._watched(pid, progress)
            number, _ = progress.current
            if status and not (by_coverage and number):
                said = (self._folder / "said").read_text(errors="replace")[-1500:]
                problem = f"a worker died with status {status}: {said}"
                with self._findings.open("a") as file:
                    file.write(json.dumps({"kind": "workers", "number": number, "problem": problem}) + "\n")
                # the commands' files may be damaged still
                for path in (self._folder / "template").rglob("*"):
                    if path.is_file():
                        shutil.copy(path, self._files / path.relative_to(self._folder / "template"))
            if by_coverage and not number:
                raise RuntimeError((self._folder / "said").read_text(errors="replace")[-1500:])
            begin, turn = number + 1, turn + 1

    def _in_fork(self, work: Callable[[], None]) -> None:
        """Do something elsewhere: libraries start threads when they are used, and workers that fork after that can hang."""
        pid = os.fork()
        if pid == 0:
            self._be_worker(work)
        assert os.waitpid(pid, 0)[1] == 0, (self._folder / "said").read_text()

    def _be_worker(self, work: Callable[[], None]) -> None:
        code = 1
        try:
            sink = os.open(self._folder / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _watched(self, pid: int, progress: Progress) -> int:
        """The status with which a worker ended; one that hangs in C is killed."""
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status
            # a process that sleeps is not at fault: the machine may be busy
            if time.monotonic() - progress.current[1] > HANG_SECONDS:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def _outcome(read: Any, content: bytes) -> tuple[str, str]:
    """Whether a reader read or refused a content, and what was wrong with that."""
    from steelyard.errors import SteelyardError

    try:
        read(content)
    except SteelyardError:
        return "refused", ""
    except Exception:  # noqa: BLE001  whatever comes through is what is looked for
        return "traceback", f"{traceback.format_exc()[-1500:]}\n{content[:1500]!r}"
    return "read", ""


def table(counts: Counter[tuple[str, str]]) -> Iterator[str]:
    """How many inputs of each kind ended how."""
    ends = sorted({end for _, end in counts})
    yield f"| kind | {' | '.join(ends)} |"
    yield f"|---|{'---:|' * len(ends)}"
    for kind in sorted({kind for kind, _ in counts}):
        yield f"| {kind} | {' | '.join(f'{counts[kind, end]:,}' for end in ends)} |"


def run_job(seed: int, job: int, minutes: float, folder: Path) -> None:
    """The share of one job, in an interpreter of its own."""
    by_coverage = job % 2 == 1 and importlib.util.find_spec("atheris") is not None
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    os.environ["STEELYARD_OUTPUT_DIR"] = "runs"
    os.environ["XDG_CONFIG_HOME"] = str(folder)
    until = time.monotonic() + 60 * minutes
    with contextlib.ExitStack() as stack:
        if by_coverage:
            import atheris

            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            stack.enter_context(atheris.instrument_imports(include=["steelyard"]))
        made = Job(seed, job, folder)
    made.run(until, by_coverage=by_coverage)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--only", metavar="JOB:NUMBER", help="repeat one input")
    given = options.parse_args()
    if given.job is not None:
        run_job(given.seed, given.job, given.minutes, given.folder)
        return 0
    began = time.monotonic()
    counts: Counter[tuple[str, str]] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    problems = 0
    with tempfile.TemporaryDirectory() as made:
        if given.only:
            job, number = map(int, given.only.split(":"))
            os.environ["TMPDIR"] = made
            print(*Job(given.seed, job, Path(made)).carry_out(number), sep="\n")
            return 0
        for job, told in told_by_jobs("benchmarks.nightly.fuzz", given, Path(made)):
            for kind, end, count in told.get("counts", ()):
                counts[kind, end] += count
            if "problem" in told:
                problems += 1
                place = told["kind"], told["problem"].rpartition("  File ")[2].partition("\n\n")[0]
                seen[place] += 1
                if seen[place] <= MAX_PROBLEMS_PER_PLACE:
                    print(f"input {job}:{told['number']}, {told['kind']}: {told['problem']}", flush=True)
    inputs, minutes = counts.total(), (time.monotonic() - began) / 60
    for (kind, where), count in seen.items():
        print(f"{count:,}x {kind}: {where}")
    print("\n".join(table(counts)))
    rate = f"{inputs / minutes:,.0f} per minute, {given.jobs} jobs"
    print(f"{inputs:,} inputs in {minutes:.1f} minutes ({rate}), seed {given.seed}: {problems} problems")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
