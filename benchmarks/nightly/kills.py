"""Whether anything is lost, doubled or cut in half when a command is killed or its machine fails, at any moment of any command.

    python -m benchmarks.nightly.kills [--minutes 10] [--seed 1] [--jobs 1]

Commands are started and stopped at random moments, by SIGKILL, SIGTERM, Ctrl-C or a closed terminal. Others meet a disk that is full or
fails, a clock that jumps, or a limit on files, processes or memory. After each, what they write is held to its promise: every reply that
was stored is still there once, no more is asked for again than was in flight, and a file is the old one, the new one or absent. Printed
are the commands by what stopped them and how they ended; the exit code is 1 if something was lost, doubled or cut, if a command hung, or
if it ended with a traceback.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.nightly.jobs import FINDINGS_FILE, ROOT, parser, told_by_jobs

from steelyard.records import Judgment, Reply, Verdict
from steelyard.store.journal import StoredRun

CASES, SAMPLES, IN_FLIGHT = 10, 8, 2
LABELS = 5
RECORDED, RECORDED_VERDICTS = ROOT / "examples" / "other-tools" / "lm-eval" / "better", 10
HANG_SECONDS = 60
"""Seconds after a signal in which a command must have ended, on a machine that may be busy; others have twice as long."""
MODEL = """
import asyncio, os

log = os.open(os.environ["ASKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def ask(prompt, attempt):
    await asyncio.sleep(0.01)
    os.write(log, (attempt.key + "\\n").encode())
    return "blue"

def judge(prompt):
    return '{"categories": {"works": {"score": 0.5, "reason": "r"}}}'
"""
RUBRIC = '[categories.works]\ncheck = "It works."\n'
EXPERIMENT = """
[experiment]
id = "e"
name = "e"
cases = ["evals.toml"]
runs = 4
[[tiers]]
name = "T0"
model = "python:model.py:ask"
[[tiers]]
name = "T1"
model = "python:model.py:ask"
system = "think"
"""


class Command(NamedTuple):
    """A command that is killed, and what must hold afterwards."""

    name: str
    arguments: Callable[[], Sequence[str]]
    check: Callable[[], str]
    """Says what is wrong, if anything is."""
    weight: float = 1


def prepare(folder: Path) -> None:
    """An eval set, models, two shards and a run."""
    (folder / "model.py").write_text(MODEL)
    (folder / "rubric.toml").write_text(RUBRIC)
    (folder / "settings.toml").write_text('output_dir = "."\n')
    cases = [
        f'[[cases]]\nid = "c{number}"\nname = "c"\nprompt = "{number}?"\ntarget = "blue"' for number in range(CASES)
    ]
    (folder / "evals.toml").write_text("\n".join(['[eval_set]\nid = "s"\nname = "s"', *cases]))
    (folder / "experiment.toml").write_text(EXPERIMENT)
    shutil.copytree(ROOT / "examples" / "repairs", folder / "repairs")
    asking = ("run", "evals.toml", "-m", "python:model.py:ask", "-n", str(SAMPLES))
    for further in (["--output", "done"], ["--shard", "1/2", "--output", "1"], ["--shard", "2/2", "--output", "2"]):
        ended = subprocess.run(
            _command([*asking, *further]), cwd=folder, env=_environment(folder), capture_output=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
    shutil.copytree(folder / "done", folder / "labelled")
    rows = [f"c{number},yes,1,ada" for number in range(LABELS)]
    (folder / "labels.csv").write_text("\n".join(["case,passed,number,by", *rows]) + "\n")


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "steelyard.cli", *arguments]


def _environment(folder: Path) -> dict[str, str]:
    # a crash in a library writes the stack of every thread
    return {**os.environ, "ASKS": str(folder / "asks"), "TMPDIR": str(folder), "PYTHONFAULTHANDLER": "1"}


def stored(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """The keys of replies, verdicts and judgments of a run."""
    facts = list(StoredRun(folder).facts())
    replies = [fact.key for fact in facts if isinstance(fact, Reply)]
    verdicts = [fact.key for fact in facts if isinstance(fact, Verdict)]
    return replies, verdicts, [fact.key for fact in facts if isinstance(fact, Judgment) and not fact.unusable]


class KeptReplies:
    """Whether every reply that was once seen in a run is still there, and once, and none was asked for again."""

    def __init__(self, run: Path, planned: int = 0) -> None:
        self._run, self._planned = run, planned
        self._seen: set[str] = set()
        self._starts = 0

    def check(self) -> str:
        if not (self._run / "run.json").exists():
            return "" if not self._seen else "the run is gone"
        replies, verdicts, judgments = stored(self._run)
        lost = self._seen - set(replies)
        self._seen |= set(replies)
        # a run that is verified again has more verdicts, and the last counts
        once = (replies, verdicts, judgments) if self._planned else (replies, judgments)
        doubled = [keys for keys in once if len(keys) != len(set(keys))]
        return f"{len(lost)} replies lost" if lost else "facts doubled" if doubled else self._asked_again(replies)

    def _asked_again(self, replies: Sequence[str]) -> str:
        """A kill loses at most what was in flight."""
        log = self._run.parent / "asks"
        if not self._planned or not log.exists():
            return ""
        mine = Counter(key for key in log.read_text().split("\n") if key in self._seen)
        again = mine.total() - len(mine)
        most = IN_FLIGHT * self._starts
        return (
            f"{again} of {len(replies)} replies were asked for again in {self._starts} starts" if again > most else ""
        )

    def arguments(self, begin: Sequence[str]) -> Sequence[str]:
        """Begin the run or carry it on; one that is complete is put away."""
        if (self._run / "run.json").exists() and len(stored(self._run)[1]) < self._planned:
            self._starts += 1
            return ["resume", self._run.name]
        shutil.rmtree(self._run, ignore_errors=True)
        (self._run.parent / "asks").write_text("")
        self._seen, self._starts = set(), 1
        return begin


class KeptFiles:
    """Whether each file that a command writes is absent, or to the byte what it was the first time."""

    def __init__(self, folder: Path, *patterns: str) -> None:
        self._folder, self._patterns = folder, patterns
        self._whole: dict[Path, bytes] = {}

    def check(self) -> str:
        for path in [path for pattern in self._patterns for path in self._folder.glob(pattern)]:
            content = path.read_bytes()
            if path.suffix == ".json":
                try:
                    json.loads(content)
                except ValueError:
                    return f"{path.name} is cut"
            elif self._whole.setdefault(path, content) != content:
                return f"{path.name} is not what it was"
        return ""


def merged(folder: Path) -> str:
    """A merged run is absent or whole; it is put away."""
    if not (folder / "merged").exists():
        return ""
    count = len(stored(folder / "merged")[0])
    shutil.rmtree(folder / "merged")
    return "" if count == CASES * SAMPLES else f"the merged run has {count} replies"


def imported(folder: Path) -> str:
    """An imported run is absent or whole; it is put away."""
    if not (folder / "imported").exists():
        return ""
    count = len(stored(folder / "imported")[1])
    shutil.rmtree(folder / "imported")
    return "" if count == RECORDED_VERDICTS else f"the imported run has {count} verdicts"


class KeptLabels:
    """Whether labels only grow, by whole lines, and those that were written out are whole."""

    def __init__(self, run: Path, written: Path) -> None:
        self._labels, self._written = run / "labels-ada.jsonl", written
        self._before = b""

    def check(self) -> str:
        content = self._labels.read_bytes() if self._labels.exists() else b""
        if not content.startswith(self._before):
            return "labels were lost"
        # half a line at the end is left out when it is read, and the next one begins on a line of its own
        self._before = content[: content.rfind(b"\n") + 1]
        for line in self._before.splitlines():
            try:
                json.loads(line)
            except ValueError:
                if not line.startswith(b"{"):
                    return f"a line of labels begins in the midst: {line[:80]!r}"
        if self._written.exists() and len(self._written.read_text().splitlines()) not in (1, 1 + LABELS):
            return f"{self._written.name} is cut"
        return ""


def commands(folder: Path) -> list[Command]:
    """All commands that write something, and some that only read."""
    run, experiment = KeptReplies(folder / "run", CASES * SAMPLES), KeptReplies(folder / "experiment", CASES * 8)
    done = KeptReplies(folder / "done")
    parallel = ("-j", str(IN_FLIGHT))
    asked = ("run", "evals.toml", "-m", "python:model.py:ask", "-n", str(SAMPLES), *parallel, "--output", "run")
    tiers = ("tiers", "experiment.toml", "--output", "experiment", *parallel)
    judging = (
        "judge",
        "judged",
        "--judges",
        "python:model.py:judge",
        "--rubric",
        "rubric.toml",
        "--allow-self",
        *parallel,
    )

    def judge() -> Sequence[str]:
        """Judge a run; one that is judged to its end is put away."""
        judged = folder / "judged"
        if not judged.exists() or len(stored(judged)[2]) == CASES * SAMPLES:
            shutil.rmtree(judged, ignore_errors=True)
            shutil.copytree(folder / "done", judged)
        return (*judging, "--allow-code")

    def fixed(name: str, words: str, check: Callable[[], str]) -> Command:
        return Command(name, lambda: words.split(), check)

    judged = KeptReplies(folder / "judged")
    nothing = KeptFiles(folder)
    labels = KeptLabels(folder / "labelled", folder / "out.csv")
    query = ("query", "SELECT count(*) FROM attempts", "-o", "q.json")
    gate = "gate --baseline done --current done -o gate.json"
    return [
        Command("run and resume", lambda: run.arguments(asked), run.check, 3),
        Command("tiers and resume", lambda: experiment.arguments(tiers), experiment.check, 2),
        Command("judge", judge, judged.check),
        fixed("verify", "verify done --allow-code", done.check),
        fixed("merge", "merge 1 2 --output merged", lambda: merged(folder)),
        fixed("bless", "bless done --as main", KeptFiles(folder, "steelyard-baselines/*").check),
        fixed("report", "report done -o r.json -o r.csv", KeptFiles(folder, "r.json", "r.csv").check),
        fixed("gate", gate, KeptFiles(folder, "gate.json").check),
        fixed("import", f"import {RECORDED} --output imported", lambda: imported(folder)),
        fixed("label", "label labelled --import labels.csv --export out.csv", labels.check),
        Command("query", lambda: query, KeptFiles(folder, "q.json").check),
        fixed(
            "repairs", "repairs --config repairs/evaluation_config.json", KeptFiles(folder, "repairs/results/*").check
        ),
        fixed(
            "passk",
            "passk done --format json",
            nothing.check,
        ),
        fixed("list", "list", nothing.check),
    ]


class Fault(NamedTuple):
    """What happens to a command."""

    name: str
    number: signal.Signals | None = None
    limits: Sequence[tuple[int, int]] = ()
    environment: dict[str, str] = {}


CRASHES = [-number for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)]
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def some_fault(chance: random.Random, library: Path | None) -> Fault:
    """A signal more often than not, or a machine that fails."""
    if chance.random() < 0.7:
        number = chance.choice(SIGNALS)
        return Fault(number.name, number)
    faults = [
        Fault(
            "full disk (size of a file)",
            limits=[(resource.RLIMIT_FSIZE, chance.choice([2_000, 10_000, 40_000, 200_000]))],
        ),
        Fault("few open files", limits=[(resource.RLIMIT_NOFILE, chance.choice([16, 32, 64, 80]))]),
        Fault("few processes", limits=[(resource.RLIMIT_NPROC, chance.choice([1, 8, 12]))]),
        Fault("little memory", limits=[(resource.RLIMIT_AS, chance.choice([150, 250, 400, 600]) << 20)]),
    ]
    if library:
        wrong, times = chance.choice([5, 28]), chance.choice([0, 1, 3])
        jump = chance.choice([-1, 1]) * chance.choice([1, 60, 86_400, 400_000_000])
        further = {
            "failing disk": f"FAULT_WRITES={chance.randrange(1, 400)}:{wrong}:{times}",
            "jumping clock": f"FAULT_CLOCK={chance.choice([1, 7, 50])}:{jump}",
        }
        for name, given in further.items():
            key, _, value = given.partition("=")
            faults += [Fault(name, environment={"LD_PRELOAD": str(library), key: value})] * 2
    return chance.choice(faults)


class Storm:
    """The commands of one job, each started again and again."""

    def __init__(self, seed: int, job: int, folder: Path) -> None:
        self._chance = random.Random(f"{seed} {job}")
        self._folder = folder / "work"
        self._folder.mkdir()
        prepare(self._folder)
        self._library = fault_library(folder)
        self._commands = commands(self._folder)
        self._seconds: dict[str, float] = {}

    def first(self) -> Iterator[dict[str, Any]]:
        """Each command without a fault: it must work, and its time is taken."""
        for command in self._commands:
            began = time.monotonic()
            code, said = self._started(command.arguments(), Fault("none"), 600)
            self._seconds[command.name] = time.monotonic() - began
            problem = command.check() or ("" if code == 0 else f"exit code {code}: {said}")
            yield {"command": command.name, "fault": "none", "end": str(code), "problem": problem}

    def once(self) -> dict[str, Any]:
        """Start a command, let something happen to it, and say how it ended and what is wrong."""
        command = self._chance.choices(self._commands, [command.weight for command in self._commands])[0]
        fault = some_fault(self._chance, self._library)
        wait = self._chance.uniform(0, self._seconds[command.name]) if fault.number else 2 * HANG_SECONDS
        began = time.monotonic()
        code, said = self._started(command.arguments(), fault, wait)
        if code == 0:
            # the moments of the next kills follow the machine, which may be more or less busy by now
            self._seconds[command.name] = (self._seconds[command.name] + time.monotonic() - began) / 2
        problem = command.check()
        if not problem and code in CRASHES:
            problem = f"it crashed with {code} {said[-1500:]}"
        # Python itself ends so where it cannot run a line of ours
        is_ours = "steelyard" in said and code != -signal.SIGINT
        if not problem and (code is None or code == 70 or ("Traceback" in said and is_ours)):
            problem = "it hung" if code is None else said[-1500:]
        fault_name = fault.name if fault.number is None or code != 0 else f"{fault.name}, too late"
        given = f"{fault.limits or ''}{fault.environment or ''}" if problem else ""
        return {"command": command.name, "fault": fault_name, "end": str(code), "problem": f"{problem} {given}".strip()}

    def _started(self, arguments: Sequence[str], fault: Fault, seconds: float) -> tuple[int | None, str]:
        """The exit code and standard error of a command that is stopped after some time; no code where it hung."""
        if arguments[0] != "repairs":
            arguments = [*arguments, "--config", "settings.toml"]

        def limited() -> None:
            os.setpgid(0, 0)
            for kind, most in fault.limits:
                resource.setrlimit(kind, (most, most))

        process = subprocess.Popen(
            _command(arguments),
            cwd=self._folder,
            env=_environment(self._folder) | fault.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=limited,  # noqa: PLW1509  there are no threads
        )
        for number, patience in ((fault.number, seconds), (signal.SIGKILL, HANG_SECONDS)):
            try:
                said = process.communicate(timeout=patience)[1]
            except subprocess.TimeoutExpired:
                if number is None:
                    break
                process.send_signal(number)
            else:
                return process.returncode, said
        process.kill()
        process.communicate()
        return None, ""


def fault_library(folder: Path) -> Path | None:
    """The library that lets disk and clock fail, where there is a compiler."""
    compiler = shutil.which("cc")
    source, library = Path(__file__).parent / "faults.c", folder / "faults.so"
    if compiler is None:
        return None
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    return library if subprocess.run(command, check=False, capture_output=True).returncode == 0 else None


def run_job(seed: int, job: int, minutes: float, folder: Path) -> None:
    """The share of one job."""
    until = time.monotonic() + 60 * minutes
    storm = Storm(seed, job, folder)
    with (folder / FINDINGS_FILE).open("a") as findings:
        for told in storm.first():
            findings.write(json.dumps(told) + "\n")
        while time.monotonic() < until:
            findings.write(json.dumps(storm.once()) + "\n")
            findings.flush()


def main() -> int:
    given = parser(__doc__).parse_args()
    if given.job is not None:
        run_job(given.seed, given.job, given.minutes, given.folder)
        return 0
    began = time.monotonic()
    counts: Counter[tuple[str, str]] = Counter()
    ends: Counter[str] = Counter()
    problems = 0
    with tempfile.TemporaryDirectory() as made:
        for job, told in told_by_jobs("benchmarks.nightly.kills", given, Path(made)):
            if "command" in told and told["fault"] != "none":
                counts[told["command"], told["fault"]] += 1
                ends[told["end"]] += 1
            if told["problem"]:
                problems += 1
                about = f"{told['command']} with {told['fault']}" if "command" in told else told["kind"]
                print(f"job {job}, {about}: {told['problem']}", flush=True)
    minutes = (time.monotonic() - began) / 60
    faults = sorted({fault for _, fault in counts})
    print(f"| command | {' | '.join(faults)} |\n|---|{'---:|' * len(faults)}")
    for command in sorted({command for command, _ in counts}):
        print(f"| {command} | {' | '.join(str(counts[command, fault]) for fault in faults)} |")
    print(f"exit codes: {', '.join(f'{code} {count}x' for code, count in ends.most_common())}")
    kills = sum(count for (_, fault), count in counts.items() if fault.startswith("SIG") and "late" not in fault)
    late = sum(count for (_, fault), count in counts.items() if "late" in fault)
    print(
        f"{kills:,} kills, {late:,} signals that came too late and {counts.total() - kills - late:,} failing machines in "
        f"{minutes:.1f} minutes, {given.jobs} jobs, seed {given.seed}: {problems} problems"
    )
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
