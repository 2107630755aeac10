"""What must be survived by the whole engine: a busy machine, many workers, and the death of a part of itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import steelyard
from steelyard.analysis.scoring import is_correct
from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Expectations
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.verifier import PythonVerifier
from support.facts import Facts, facts
from support.toolchains import isolation_level

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
WORKS = "def add(a, b):\n    total = 0\n    for number in range(100_000):\n        total += number\n    return a + b\n"
STAYS = """
import json, os, struct
body = json.dumps(["ok", 3, ""]).encode()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            for fd in range(3, 256):
                try: os.write(fd, struct.pack("I", len(body)) + body)
                except OSError: pass
    os._exit(0)
def add(a, b):
    return 7
"""
"""Leaves someone behind who answers in the name of whoever comes next."""


def case(name: str = "add", seconds: float = 10) -> Case:
    tests = "assert add(1, 2) == 3\nassert add(-1, 1) == 0\n"
    return Case(
        id=name, prompt="add", language="python", timeout_secs=seconds, expectations=Expectations(test_file=tests)
    )


def each(answer: str, times: int) -> list[str]:
    """The same answer many times, never in the same words: what is equal may be judged once for all."""
    return [f"{answer}# {number}\n" for number in range(times)]


def replay(folder: Path, answers: list[str], name: str = "add") -> str:
    lines = [{"case_id": name, "model": "m", "raw_response": verbatim_reply(answer, "python")} for answer in answers]
    path = folder / "replay.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"replay:{path}"


def ran(folder: Path, answers: list[str], at_once: int | None = None, seconds: float = 10) -> Facts:
    """The facts of a run over these answers, at the strongest level there is."""
    means = steelyard.Means(parallelism=at_once)
    done = steelyard.run([case(seconds=seconds)], models=replay(folder, answers), output=folder / "run", means=means)
    return facts(done.folder)


async def judged(level: str, answers: list[str]) -> list[bool | None]:
    """Whether each answer passes at one level, each tried again once as the engine does; None when nobody knows."""
    sandbox = ZygoteSandbox(ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)])
    python = PythonVerifier(sandbox)

    async def one(answer: str) -> bool | None:
        for _ in range(2):
            with contextlib.suppress(VerifierError):
                return is_correct(case(), await python.verify(case(), Answer(text=verbatim_reply(answer, "python"))))
        return None

    try:
        return await asyncio.gather(*map(one, answers))
    finally:
        await python.close()
        await sandbox.close()


def passed(found: Facts) -> list[bool]:
    """Whether each answer passed, in the order they were recorded."""
    by_number = {verdict.number: verdict for verdict in found.verdicts}
    return [all(test.outcome == "passed" for test in by_number[number].found.tests) for number in sorted(by_number)]


@contextmanager
def overloaded(processes: int) -> Iterator[None]:
    """A machine on which others want all the time there is."""
    busy = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def test_row_10_who_stays_behind_answers_for_nobody(tmp_path: Path) -> None:
    answers = [f"{STAYS if number % 2 else RIGHT}# {number}\n" for number in range(12)]
    found = ran(tmp_path, answers, at_once=2)
    assert passed(found) == [answer.startswith(RIGHT) for answer in answers]
    assert not found.failures
    # who writes into its own channel may be judged beside its tests, and fails there
    assert {verdict.found.trust for verdict in found.verdicts if not verdict.found.label} == {"isolated"}


def test_row_28_on_a_busy_machine_nothing_right_runs_out_of_time(tmp_path: Path) -> None:
    with overloaded(8):
        found = ran(tmp_path, each(WORKS, 40), seconds=2)
    assert passed(found) == [True] * 40
    assert not found.failures


@pytest.mark.slow
def test_row_28_on_a_very_busy_machine_nothing_right_runs_out_of_time(tmp_path: Path) -> None:
    with overloaded(16):
        found = ran(tmp_path, each(WORKS, 500), seconds=2)
    assert passed(found) == [True] * 500
    assert not found.failures


def test_row_29_the_number_of_workers_changes_no_verdict(tmp_path: Path) -> None:
    kinds = (RIGHT, WRONG, "def add(a, b):\n    raise ValueError(a)\n")
    answers = [f"{kinds[number % 3]}# {number}\n" for number in range(30)]
    verdicts = []
    for at_once in (1, 4):
        (tmp_path / str(at_once)).mkdir()
        verdicts.append(_verdicts(ran(tmp_path / str(at_once), answers, at_once=at_once)))
    assert verdicts[0] == verdicts[1]
    assert [bool(label) for _, label, _ in verdicts[0]] == [not answer.startswith(RIGHT) for answer in answers]


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 4, 16])
def test_row_29_the_same_answer_has_the_same_verdict_200_times(at_once: int, tmp_path: Path) -> None:
    found = ran(tmp_path, each(RIGHT, 200) + each(WRONG, 200), at_once=at_once)
    assert len({(label, reason) for number, label, reason in _verdicts(found) if number <= 200}) == 1
    assert len({(label, reason) for number, label, reason in _verdicts(found) if number > 200}) == 1
    assert passed(found) == [True] * 200 + [False] * 200


def _verdicts(found: Facts) -> list[tuple[int, str, str]]:
    assert not found.failures
    return sorted((verdict.number, verdict.found.label, verdict.found.reason) for verdict in found.verdicts)


RUN = """
import asyncio, json, sys
from pathlib import Path
from attacks.test_engine_attacks import judged, ran
folder, level, *names = sys.argv[1:]
answers = [Path(name).read_text() for name in names]
if level:
    Path(folder, "judged").write_text(json.dumps(asyncio.run(judged(level, answers))))
else:
    ran(Path(folder), answers, at_once=2)
"""


class Engine:
    """A run in a process of its own, with a folder of its own for what it puts aside."""

    def __init__(self, folder: Path, level: str, answers: list[str]) -> None:
        self.token = f"STEELYARD_ATTACK_{os.getpid()}_{folder.name}"
        self.folder = folder
        # one that the user an answer runs as can reach: in pytest's own, an engine of root's would put nothing
        self.temporary = Path(tempfile.mkdtemp(prefix="steelyard-attack-"))
        self.temporary.chmod(0o755)
        names = []
        for number, answer in enumerate(answers):
            (folder / f"{number}.py").write_text(answer)
            names.append(str(folder / f"{number}.py"))
        here = Path(__file__)
        paths = [str(here.parents[1]), *sys.path]
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(folder), level, *names],
            env={
                **os.environ,
                "TMPDIR": str(self.temporary),
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                "TOKEN": self.token,
            },
            start_new_session=True,
        )

    def below(self) -> list[int]:
        """The processes below the engine, nearest first."""
        found = [self.process.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                try:
                    found += map(int, children.read_text().split())
                except OSError:
                    continue
        return found[1:]

    def busy(self) -> int:
        """A process that runs an answer, once there is one: it says so by its name."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for pid in self.below():
                try:
                    if Path(f"/proc/{pid}/comm").read_text().strip() == "sy-waits":
                        return pid
                except OSError:
                    continue
            time.sleep(0.02)
        raise AssertionError("no answer was ever run")


@pytest.fixture
def start_engine(tmp_path: Path) -> Iterator[Callable[[str, list[str]], Engine]]:
    """Starts engines that do not outlive their test."""
    started: list[Engine] = []

    def start(level: str, answers: list[str]) -> Engine:
        started.append(Engine(tmp_path, level, answers))
        return started[-1]

    yield start
    for engine in started:
        engine.process.kill()
        engine.process.wait()
        shutil.rmtree(engine.temporary, ignore_errors=True)


WAITS = (
    """
import ctypes, time
ctypes.CDLL(None).prctl(15, b"sy-waits", 0, 0, 0)
time.sleep(1)
"""
    + RIGHT
)
SLEEPS = WAITS.replace("time.sleep(1)", "import os\nif os.fork() == 0:\n    os.setsid()\ntime.sleep(600)")


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("level", ISOLATION_LEVEL_NAMES)
def test_row_35_a_zygote_that_is_killed_under_an_answer_costs_no_verdict(
    level: str, tmp_path: Path, start_engine: Callable[[str, list[str]], Engine]
) -> None:
    isolation_level(level)
    engine = start_engine(level, [WAITS, WRONG])
    answering = engine.busy()
    below = engine.below()
    os.kill(parent(answering), signal.SIGKILL)
    assert engine.process.wait(60) == 0
    assert json.loads((tmp_path / "judged").read_text()) == [True, False]
    _nothing_left(engine, below)


def test_row_35_the_engine_tries_again_when_a_zygote_is_killed(
    tmp_path: Path, start_engine: Callable[[str, list[str]], Engine]
) -> None:
    engine = start_engine("", [WAITS, WRONG])
    os.kill(parent(engine.busy()), signal.SIGKILL)
    assert engine.process.wait(60) == 0
    found = facts(tmp_path / "run")
    assert passed(found) == [True, False]
    assert not found.failures
    _nothing_left(engine)


def own_mounts() -> list[str]:
    """What is mounted, except for what other tests mount below folders of theirs."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if "/pytest-of-" not in line]


@pytest.mark.parametrize("level", ISOLATION_LEVEL_NAMES)
def test_row_35_an_engine_that_is_killed_leaves_nothing(
    level: str, tmp_path: Path, start_engine: Callable[[str, list[str]], Engine]
) -> None:
    isolation_level(level)
    mounts = own_mounts()
    engine = start_engine(level, [SLEEPS, SLEEPS])
    engine.busy()
    below = engine.below()
    assert len(below) >= 4
    engine.process.kill()
    engine.process.wait()
    _nothing_left(engine, below)
    assert own_mounts() == mounts
    assert not (tmp_path / "judged").exists()


def test_row_35_an_engine_that_is_killed_while_it_starts_leaves_nothing(
    tmp_path: Path, start_engine: Callable[[str, list[str]], Engine]
) -> None:
    isolation_level("landlock")
    engine = start_engine("landlock", [SLEEPS, SLEEPS])
    deadline = time.monotonic() + 60
    # the very moment: later there is somebody to clean up; a file is how Python tries whether it can write there
    while not any(path.is_dir() for path in engine.temporary.iterdir()):
        assert time.monotonic() < deadline
    engine.process.kill()
    engine.process.wait()
    _nothing_left(engine)


def test_row_35_a_whole_family_that_is_killed_is_missing_data(
    tmp_path: Path, start_engine: Callable[[str, list[str]], Engine]
) -> None:
    """Every worker is killed again and again: what comes of it is a verdict that is right, or none."""
    engine = start_engine("", [WAITS, WAITS, WRONG])
    for _ in range(3):
        try:
            os.kill(parent(engine.busy()), signal.SIGKILL)
        except (AssertionError, OSError):
            break
    assert engine.process.wait(60) == 0
    found = facts(tmp_path / "run")
    for verdict in found.verdicts:
        assert all(test.outcome == "passed" for test in verdict.found.tests) == (verdict.number != 3)
    assert len(found.verdicts) + len(found.failures) == 3
    _nothing_left(engine)


def _nothing_left(engine: Engine, below: list[int] | None = None) -> None:
    deadline = time.monotonic() + 60  # a worker that was just being started may take its time on a busy machine
    while time.monotonic() < deadline:
        left = [pid for pid in below or [] if Path(f"/proc/{pid}/comm").exists() and _alive(pid)]
        named = [
            path for path in Path("/proc").glob("[0-9]*/comm") if _text(path) == "sy-waits" and _ours(path, engine)
        ]
        folders = list(engine.temporary.iterdir())
        if not left and not folders and not named:
            return
        time.sleep(0.05)
    raise AssertionError(f"left behind: processes {left} {named}, folders {folders}")


def _ours(comm: Path, engine: Engine) -> bool:
    """Whether a process of that name was started by this engine: other test processes attack at the same time."""
    return engine.token.encode() in _bytes(comm.with_name("environ")) or str(engine.temporary) in _text(
        comm.with_name("environ")
    )


def _alive(pid: int) -> bool:
    return _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[:1] not in ([], ["Z"])


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8", "replace").strip()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
def test_ten_thousand_answers_leave_memory_files_and_processes_as_they_were(tmp_path: Path) -> None:
    """A run of many answers, looked at while it goes on."""
    script = tmp_path / "many.py"
    script.write_text(MANY)
    here = Path(__file__)
    paths = [str(here.parents[1]), *sys.path]
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=True,
    )
    early, late = json.loads(done.stdout)
    assert late["files"] <= early["files"] + 2
    assert late["processes"] == early["processes"]
    assert late["kilobytes"] < early["kilobytes"] * 1.2 + 20_000


MANY = """
import asyncio, json, os, sys
from pathlib import Path
from attacks.test_engine_attacks import RIGHT, WRONG, case
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.fair_clock import process_tree_pids
from steelyard.sandbox.memory import _kilobytes
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.verifier import PythonVerifier

def seen():
    family = process_tree_pids(os.getpid())
    held = sum(_kilobytes(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:")) for pid in family)
    return {"files": len(os.listdir("/proc/self/fd")), "processes": len(family), "kilobytes": held}

async def main():
    sandbox = ZygoteSandbox(strongest_isolation())
    python = PythonVerifier(sandbox)
    looks = []
    for number in range(10_000):
        code = (RIGHT, WRONG)[number % 2]
        finding = await python.verify(case(), Answer(text=verbatim_reply(code, "python")))
        assert is_correct(case(), finding) == (code == RIGHT), finding
        if number in (500, 9_999):
            looks.append(seen())
    await python.close()
    await sandbox.close()
    print(json.dumps(looks))

asyncio.run(main())
"""
