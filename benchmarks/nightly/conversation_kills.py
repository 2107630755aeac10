"""Whether a turn is lost, doubled or paid for twice when a run of conversations is killed in the middle of one.

    python -m benchmarks.nightly.conversation_kills [--kills 60] [--seed 1]

Models call tools and talk to simulated users; the run is killed by SIGKILL at random moments and resumed until it is complete. After each
kill, what turns.jsonl and the journal have is noted: no turn that is there may be asked for again, and no tool whose result is there may
be called again. In the end every conversation must have its reply once, with every turn of its script. Prints counts; the exit code is 1
if something is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import steelyard
from steelyard import Case, Means, Settings
from steelyard.records import CaseTool, Reply, SimulatedUser, digest
from steelyard.store.journal import StoredRun
from steelyard.store.responses import unfinished_conversations

CASES, SAMPLES, IN_FLIGHT = 4, 3, 3
LINES_BETWEEN_KILLS = 40
MODELS = """
import asyncio, json, os, random
from steelyard.records import Answer, ToolCall

LOG = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
CALLS = {{0: 1, 2: 2}}  # by the number of answers so far, how many tools the model calls then

def note(*words):
    os.write(LOG, (" ".join(map(str, words)) + "\\n").encode())

async def think():
    await asyncio.sleep(random.random() * 0.01)

async def assistant(prompt, attempt):
    answers = sum(message.role == "assistant" for message in attempt.messages)
    users = sum(message.role == "user" for message in attempt.messages) - 1
    await think()
    note("turn", attempt.key, answers + users)
    await think()
    calls = tuple(
        ToolCall(name="look", arguments=json.dumps({{"key": attempt.key, "turn": answers, "call": call}}))
        for call in range(CALLS.get(answers, 0))
    )
    return Answer(text="" if calls else f"answer {{answers}}", finish="tool_calls" if calls else "stop", tool_calls=calls)

async def customer(prompt, attempt):
    said = prompt.count("The assistant:\\n")
    await think()
    note("turn", attempt.key, 2 if said == 1 else 5)
    await think()
    return "And more?" if said == 1 else "[END]"

def look(key, turn, call):
    note("tool", key, turn, call)
    return {{"turn": turn, "call": call}}
"""
SCRIPT = ("assistant:1", "assistant:0", "user:0", "assistant:2", "assistant:0", "user:0")
"""Who speaks in each turn of a conversation, and how many tools are called."""


class KilledRun:
    """One run of conversations, killed and resumed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._run, self._log = folder, folder / "run", folder / "log"
        self._chance = random.Random(seed)
        models = folder / "models.py"
        models.write_text(MODELS.format(log=str(self._log)))
        tool = CaseTool(name="look", python=f"{models}:look", source=digest(models.read_bytes()))
        user = SimulatedUser(model=f"python:{models}:customer", script="Ask twice.", max_turns=3)
        self._cases = [
            Case(id=f"c{number}", prompt="?", target="answer", tools=(tool,), user=user) for number in range(CASES)
        ]
        self._model = f"python:{models}:assistant"
        self._means = Means(settings=Settings(max_retries=0), parallelism=IN_FLIGHT, allow_code=True)
        self.problems: list[str] = []
        self.asked_again = self.kills = self.in_the_middle = 0

    def carry_out(self, kills: int) -> None:
        """Begin runs and kill them, so many times in all, until they end."""
        # what is imported here need not be imported in every process
        self._carry_out_here()
        while self.kills < kills:
            shutil.rmtree(self._run, ignore_errors=True)
            self._log.write_text("")
            before: tuple[set[str], set[str], int] = (set(), set(), 0)
            starts = 0
            while not self._is_complete():
                starts += 1
                is_killed = self._start(kill=self.kills < kills)
                self._check_asks(*before)
                before = (*self._stored(), len(self._noted()))
                if is_killed:
                    self.kills += 1
                    self.in_the_middle += bool(before[0]) and not self._is_complete()
            self._check_end(starts)

    def _start(self, *, kill: bool) -> bool:
        """Carry out the run in a process of its own; returns whether it was killed."""
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                self._carry_out_here()
                os._exit(0)
            os._exit(1)
        if kill:
            self._wait(pid)
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if not os.WIFSIGNALED(status) and os.waitstatus_to_exitcode(status):
            self.problems.append("a command ended with an error")
        return os.WIFSIGNALED(status)

    def _carry_out_here(self) -> None:
        if (self._run / "run.json").exists():
            steelyard.resume(self._run, means=self._means)
        else:
            shutil.rmtree(self._run, ignore_errors=True)
            steelyard.run(self._cases, models=self._model, samples=SAMPLES, output=self._run, means=self._means)

    def _wait(self, pid: int) -> None:
        """Wait for one of the next requests, and a moment longer."""
        wanted = len(self._noted()) + self._chance.randrange(LINES_BETWEEN_KILLS)
        while len(self._noted()) < wanted:
            # one that has ended stays until somebody waits for it, so that no other gets the signal
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return
            time.sleep(0.001)
        time.sleep(self._chance.uniform(0, 0.02))

    def _replies(self) -> list[Reply]:
        if not (self._run / "run.json").exists():
            return []
        return [fact for fact in StoredRun(self._run).facts() if isinstance(fact, Reply)]

    def _is_complete(self) -> bool:
        return len(self._replies()) >= CASES * SAMPLES

    def _noted(self) -> list[str]:
        return self._log.read_text().splitlines()

    def _stored(self) -> tuple[set[str], set[str]]:
        """The turns and the calls of tools that are stored, as the log writes them."""
        if not self._run.exists():
            return set(), set()
        turns = {reply.key: list(reply.answer.turns) for reply in self._replies()}
        for key, begun in unfinished_conversations(self._run, turns).items():
            turns[key] = [stored.turn for stored in begun]
        asked = {f"turn {key} {place}" for key, kept in turns.items() for place in range(len(kept))}
        called = set()
        for kept in turns.values():
            for call in (call for turn in kept if turn.results for call in turn.tool_calls):
                given = json.loads(call.arguments)
                called.add(f"tool {given['key']} {given['turn']} {given['call']}")
        return asked, called

    def _check_asks(self, asked: set[str], called: set[str], logged: int) -> None:
        """Nothing that was stored before this start was asked for or called in it."""
        twice = [line for line in self._noted()[logged:] if line in asked or line in called]
        self.problems += [f"stored, and asked for again: {line}" for line in twice]

    def _check_end(self, starts: int) -> None:
        replies = self._replies()
        if len({reply.key for reply in replies}) != len(replies) or len(replies) != CASES * SAMPLES:
            self.problems.append(f"{len(replies)} replies in place of {CASES * SAMPLES}")
        for reply in replies:
            found = tuple(f"{turn.role}:{len(turn.results)}" for turn in reply.answer.turns)
            if found != SCRIPT:
                self.problems.append(f"a conversation has the turns {found}")
        turns = Counter(line for line in self._noted() if line.startswith("turn"))
        again = turns.total() - len(turns)
        self.asked_again += again
        # a kill loses what was in flight, and nothing else
        if again > IN_FLIGHT * (starts - 1):
            self.problems.append(f"{again} turns were asked for again in {starts} starts")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        killed = KilledRun(Path(folder), given.seed)
        killed.carry_out(given.kills)
    for problem in killed.problems:
        print(problem)
    print(
        f"{killed.kills} kills, {killed.in_the_middle} of them while conversations were under way, seed {given.seed}: "
        f"{killed.asked_again} turns in flight were asked for again, {len(killed.problems)} problems"
    )
    return int(bool(killed.problems))


if __name__ == "__main__":
    sys.exit(main())
