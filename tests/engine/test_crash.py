"""Runs that are killed, stopped or run out of disk: what was stored stays, and nothing stored is asked for again."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from support.facts import facts
from support.studies import with_slow

CASES, SAMPLES = 25, 12
ATTEMPTS = CASES * SAMPLES

MODEL = """
import asyncio, os

log = os.open(os.environ["ASKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def ask(prompt, attempt):
    os.write(log, f"{os.getpid()} asked {attempt.key}\\n".encode())
    await asyncio.sleep(float(os.environ["PAUSE"]) + 0.005 + int(attempt.key[:2], 16) / 8000)  # never in step with each other
    os.write(log, f"{os.getpid()} answered {attempt.key}\\n".encode())
    return f"answer to {attempt.case.id}, number {attempt.number}"
"""


class Asked(NamedTuple):
    process: int
    what: str
    key: str


class Place:
    """A folder with an eval set, a model that notes who asks it what, and a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "run"
        self.journal = self.run / "attempts.jsonl"
        (folder / "model.py").write_text(MODEL)
        (folder / "checks.py").write_text("def score(reply):\n    return reply.startswith('answer')\n")
        lines = ["[eval_set]", 'id = "s"', 'name = "s"']
        for number in range(CASES):
            lines += ["[[cases]]", f'id = "case-{number}"', 'name = "a case"', f'prompt = "question {number}"']
            lines += ['verify = {python = "checks.py:score"}']
        (folder / "evals.toml").write_text("\n".join(lines))

    def start(self, most_bytes: int = resource.RLIM_INFINITY, pause: float = 0) -> subprocess.Popen[str]:
        """Begin the run, or carry it on."""
        begin = ["run", "evals.toml", "-m", "python:model.py:ask", "--samples", str(SAMPLES), "--output", "run"]
        command = ["resume", "run"] if (self.run / "run.json").exists() else begin

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))

        return subprocess.Popen(
            [sys.executable, "-m", "steelyard.cli", *command, "-j", "4"],
            cwd=self.folder,
            env={**os.environ, "ASKS": str(self.folder / "asks"), "PAUSE": str(pause)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limited,
        )

    def finish(self) -> None:
        process = self.start()
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said

    def lines(self) -> int:
        return self.journal.read_bytes().count(b"\n") if self.journal.exists() else 0

    def wait_for(self, lines: int, process: subprocess.Popen[str]) -> None:
        """Wait until the journal has so many lines; the process must still be at work then."""
        while self.lines() < lines:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        assert process.poll() is None

    def asks(self) -> list[Asked]:
        said = (line.split() for line in (self.folder / "asks").read_text().splitlines())
        return [Asked(int(process), what, key) for process, what, key in said]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def complete(place: Place) -> None:
    found = facts(place.run)
    assert len(found.replies) == len({reply.key for reply in found.replies}) == ATTEMPTS
    assert len(found.verdicts) == len({verdict.key for verdict in found.verdicts}) == ATTEMPTS
    assert {verdict.ask for verdict in found.verdicts} == {reply.key for reply in found.replies}
    assert set(Counter(reply.case for reply in found.replies).values()) == {SAMPLES}


@pytest.mark.parametrize("kills", with_slow([5], [10]))
def test_a_run_that_is_killed_often_ends_with_every_reply_once_and_none_asked_for_after_it_was_stored(
    place: Place, kills: int
) -> None:
    chance = random.Random(20260203)
    moments = sorted(chance.sample(range(1, 2 * ATTEMPTS - 100), kills))
    stored: dict[int, set[str]] = {}
    """By process, the replies that were stored before it began."""
    for moment in moments:
        before = {reply.key for reply in facts(place.run).replies} if place.journal.exists() else set()
        process = place.start()
        stored[process.pid] = before
        place.wait_for(max(moment, place.lines() + 1), process)
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert place.lines() < 2 * ATTEMPTS
    before = {reply.key for reply in facts(place.run).replies}
    place.finish()
    complete(place)

    asked = Counter((ask.process, ask.key) for ask in place.asks() if ask.what == "asked")
    assert max(asked.values()) == 1
    for process_id, key in asked:
        assert key not in stored.get(process_id, before)
    # the kills were real: they lost answers that were on their way
    assert sum(asked.values()) > ATTEMPTS


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_keeps_what_arrived_says_how_to_go_on_and_goes_on(
    place: Place, stop: signal.Signals
) -> None:
    process = place.start()
    place.wait_for(100, process)
    process.send_signal(stop)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted; what arrived is stored, continue with: steelyard resume run" in said
    assert "Traceback" not in said
    stored = {reply.key for reply in facts(place.run).replies}
    assert {ask.key for ask in place.asks() if ask.what == "answered"} == stored
    assert len(stored) < ATTEMPTS

    place.finish()
    complete(place)
    again = [ask.key for ask in place.asks() if ask.what == "asked" and ask.process != process.pid]
    assert stored.isdisjoint(again)
    assert len(again) == ATTEMPTS - len(stored)


def test_a_run_that_fills_the_disk_stops_with_what_it_has_and_goes_on_when_there_is_room(place: Place) -> None:
    process = place.start(most_bytes=20_000)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "no space left (File too large); free some space, then: steelyard resume run" in said
    assert "Traceback" not in said
    kept = {reply.key for reply in facts(place.run).replies}
    assert 10 < len(kept) < ATTEMPTS

    place.finish()
    complete(place)
    again = {ask.key for ask in place.asks() if ask.process != process.pid}
    assert kept.isdisjoint(again)


def test_a_second_process_on_a_run_is_refused_and_the_first_does_not_notice(place: Place) -> None:
    process = place.start(pause=0.1)
    place.wait_for(10, process)
    process.send_signal(signal.SIGSTOP)  # it must not end before the other starts, however busy the machine is
    second = place.start()
    _, said = second.communicate(timeout=120)
    process.send_signal(signal.SIGCONT)
    assert second.returncode == 2
    assert "run: another process is writing this run" in said
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    complete(place)
    assert {ask.process for ask in place.asks()} == {process.pid}


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_a_run_whose_folder_goes_away_asks_nobody_any_more(place: Place, how: str) -> None:
    process = place.start(pause=0.3)
    place.wait_for(5, process)
    if how == "deleted":
        shutil.rmtree(place.run)
    else:
        place.run.rename(place.folder / "elsewhere")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "run: the folder of this run was moved or deleted while it was written; nothing more is asked" in said
    assert "Traceback" not in said
    assert len(place.asks()) < ATTEMPTS
