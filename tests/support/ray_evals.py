"""An eval set of many kinds and a model that answers it well, wrongly and with malice, for runs here and on a cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from steelyard.records import Finding, Verdict
from support.facts import facts

MODEL = """
import asyncio, json, os
from pathlib import Path

here = Path(__file__).parent
answers = json.loads((here / "answers.json").read_text())

async def ask(prompt, attempt):
    log = os.environ.get("ASKS")
    if log:
        with open(log, "a") as file:
            file.write(attempt.key + "\\n")
    await asyncio.sleep(float(os.environ.get("PAUSE", "0")))
    own = answers[attempt.case.id]
    return own[(attempt.number - 1) % len(own)]
"""
CHECKS = """
def score(reply, case):
    if "raise" in reply:
        raise ValueError("no verdict on this")
    return {"pass": "yes" in reply, "score": 0.25 if "no" in reply else 1.0, "reason": "as it says"}
"""
PYTHON = {
    "adds": (
        "assert add(1, 2) == 3\nassert add(-1, 1) == 0\n",
        [
            "def add(a, b):\n    return a + b\n",
            "def add(a, b):\n    return a - b\n",
            "import sys\ndef add(a, b):\n    sys.exit(0)\n",
            "def add(a, b)\n",
            "import os\nos._exit(0)\n",
            "class Any:\n    def __eq__(self, other):\n        return True\ndef add(a, b):\n    return Any()\n",
            "def add(a, b):\n    return open('/etc/shadow').read()\n",
            "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\ndef add(a, b):\n    return a + b\n",
            "def add(a, b):\n    return [0] * (1 << 31)\n",
            "def add(a, b):\n    raise MemoryError\n",
        ],
    ),
    "doubles": (
        "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(0) == 0\n    assert candidate('a') == 'aa'\n",
        [
            "def double(x):\n    return x * 2\n",
            "def double(x):\n    return x + x\n",
            "def double(x):\n    return 4\n",
            "def double(x):\n    return x ** 2\n",
            "def halve(x):\n    return x / 2\n",
            "no code at all, and I am sorry",
        ],
    ),
}
FOREVER = "def add(a, b):\n    while True:\n        pass\n"
RUST = [
    "pub fn add(a: i32, b: i32) -> i32 { a + b }",
    "pub fn add(a: i32, b: i32) -> i32 { a - b }",
    "pub fn add(a: i32, b: i32) -> i32 { a + }",
    "pub fn add(a: i32, b: i32) -> i32 { std::process::exit(0) }",
    "pub fn add(a: i32, b: i32) -> i32 { panic!() }",
]


class Evals:
    """A folder with an eval set, its model, and runs of it."""

    def __init__(self, folder: Path, *, rust: bool = False, forever: bool = True) -> None:
        self.folder = folder
        self._answers: dict[str, list[str]] = {}
        self._lines = ["[eval_set]", 'id = "mixed"', 'name = "mixed"']
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.py").write_text(MODEL)
        (folder / "checks.py").write_text(CHECKS)
        for name, (tests, answers) in PYTHON.items():
            more: dict[str, Any] = {"entry_point": "double"} if name == "doubles" else {}
            self.add(name, [*map(fenced, answers)], language="python", tests=tests, **more)
        if forever:
            tests = PYTHON["adds"][0]
            ends = fenced(PYTHON["adds"][1][0])
            self.add("ends", [fenced(FOREVER), *[ends] * 19], language="python", tests=tests, seconds=1)
        self.add("says", ["the word is blue", "red", "", "BLUE\x00 blue"], target="blue")
        self.add("asks", ["yes", "no, sorry", "neither", "raise"], python="checks.py:score")
        shell: dict[str, Any] = {
            "kind": "command",
            "answer": "answer.sh",
            "test": "sh answer.sh",
            "results": "exit code",
        }
        self.add(
            "shell", [fenced(text, "sh") for text in ("exit 0", "exit 3", "kill -9 $$", "cat /etc/shadow")], **shell
        )
        if rust:
            tests = "#[test]\nfn adds() { assert_eq!(super::add(1, 2), 3); }\n#[test]\nfn more() { assert_eq!(super::add(2, 2), 4); }\n"
            self.add("rusty", [fenced(text, "rust") for text in RUST], language="rust", tests=tests)

    def add(
        self,
        name: str,
        answers: Sequence[str],
        *,
        language: str = "",
        tests: str = "",
        target: str = "",
        seconds: float = 10,
        **verify: Any,
    ) -> None:
        """One more case, with what the model says to it in turn."""
        self._answers[name] = list(answers)
        self._lines += ["[[cases]]", f'id = "{name}"', f'name = "{name}"', f'prompt = "{name}?"']
        self._lines += [f"timeout_secs = {seconds}"]
        self._lines += [f'language = "{language}"'] if language else []
        self._lines += [f"target = {json.dumps(target)}"] if target else []
        if tests:
            self._lines += ["[cases.expectations]", f"test_file = {json.dumps(tests)}"]
        if verify:
            self._lines += ["[cases.verify]", *(f"{key} = {json.dumps(value)}" for key, value in verify.items())]

    def written(self) -> None:
        (self.folder / "evals.toml").write_text("\n".join(self._lines) + "\n")
        (self.folder / "answers.json").write_text(json.dumps(self._answers))

    @property
    def cases(self) -> int:
        return len(self._answers)

    def command(self, run: str, samples: int, *more: str) -> list[str]:
        """Begin a run, or carry on with it."""
        begin = ["run", "evals.toml", "-m", "python:model.py:ask", "--samples", str(samples), "--output", run]
        chosen = ["resume", run] if (self.folder / run / "run.json").exists() else begin
        return [sys.executable, "-P", "-m", "steelyard.cli", *chosen, *more]

    def start(self, run: str, samples: int, *more: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        self.written()
        return subprocess.Popen(
            self.command(run, samples, *more),
            cwd=self.folder,
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(
        self, run: str, samples: int, *more: str, environment: Mapping[str, str] = os.environ, code: int = 0
    ) -> str:
        """Let a run come to its end; what it told."""
        process = self.start(run, samples, *more, environment=environment)
        _, said = process.communicate(timeout=3000)
        assert process.returncode == code, said
        return said

    def verdicts(self, run: str) -> dict[str, Verdict]:
        """The verdicts of a run by their keys, without time and node; there is one of each."""
        found = facts(self.folder / run).verdicts
        assert len({verdict.key for verdict in found}) == len(found)
        return {verdict.key: bare(verdict) for verdict in found}

    def nodes(self, run: str) -> dict[str, set[str]]:
        """The cases that each node verified answers to."""
        found: dict[str, set[str]] = {}
        for verdict in facts(self.folder / run).verdicts:
            found.setdefault(verdict.node, set()).add(verdict.case)
        return found


def fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}\n```\n" if "sorry" not in code else code


def bare(verdict: Verdict) -> Verdict:
    """A verdict without what differs from one time to the next: seconds, addresses in memory, and where or on which equal reply it was reached."""
    found: Finding = verdict.found
    tests = tuple(msgspec.structs.replace(test, seconds=0, message=_timeless(test.message)) for test in found.tests)
    timeless = msgspec.structs.replace(
        found,
        tests=tests,
        reason=_timeless(found.reason),
        output=_timeless(found.output),
        compile_seconds=0,
        test_seconds=0,
    )
    return msgspec.structs.replace(verdict, at="", node="", shared_from="", found=timeless)


def _timeless(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"after [\d.]+ s", "after a while", text))
