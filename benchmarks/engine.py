"""What an attempt costs us when model and tests cost nothing.

    python benchmarks/engine.py [--cases 200] [--samples 100] [--repeat 3] [--peer-python PYTHON]

Every contestant gets the same prompts and the same reply, in a process and a folder of its own. CPU time is user and
system time of the whole process, its start and its children included; of several rounds the cheapest counts, because a
busy machine can only add to it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

AIM_MILLISECONDS = 0.3
AIM_MEGABYTES = 150
REPLY = """\
The function keeps the numbers it has seen in a set, so every number is looked at once:

```python
def first_repeated(numbers: list[int]) -> int | None:
    seen: set[int] = set()
    for number in numbers:
        if number in seen:
            return number
        seen.add(number)
    return None
```
"""


class Cost(NamedTuple):
    """What a contestant used up."""

    milliseconds: float
    """CPU time per attempt."""
    megabytes: float
    """Memory at its peak."""
    bytes: float
    """On disk, per attempt."""


def prompts(cases: int) -> dict[str, str]:
    """What is asked, by case."""
    return {
        f"case-{number:04}": f"Write a Python function that finds the first repeated number of a list, no. {number}."
        for number in range(1, cases + 1)
    }


async def answer(prompt: str) -> dict[str, Any]:  # noqa: ARG001  a script says the same whatever it is asked
    """The scripted model."""
    return {"text": REPLY, "input_tokens": 24, "output_tokens": 86}


async def check(text: str) -> bool:
    """The trivial verifier."""
    return "def first_repeated" in text


def floor(folder: Path, cases: int, samples: int) -> None:
    """As little as asyncio can do: one coroutine per attempt, and one line of JSON for its reply."""
    with (folder / "replies.jsonl").open("w") as file:

        async def attempt(case: str, prompt: str, number: int) -> None:
            said = await answer(prompt)
            passed = await check(said["text"])
            file.write(json.dumps({"case": case, "number": number, "passed": passed, **said}) + "\n")

        async def everything() -> None:
            asked = prompts(cases)
            async with asyncio.TaskGroup() as attempts:
                for number in range(1, samples + 1):
                    for case, prompt in asked.items():
                        attempts.create_task(attempt(case, prompt, number))

        asyncio.run(everything())


def steelyard(folder: Path, cases: int, samples: int) -> None:
    """A run through our public door, its summary included."""
    from steelyard import Case, Verify, run

    asked = [
        Case(id=case, prompt=prompt, verify=Verify(python="engine.py:check")) for case, prompt in prompts(cases).items()
    ]
    done = run(asked, models="python:engine.py:answer", samples=samples, output=folder / "run")
    (model,) = done.summary.models
    if model.correct != cases * samples:
        raise SystemExit(f"steelyard: only {model.correct} of {cases * samples} attempts are correct")


def inspect(folder: Path, cases: int, samples: int) -> None:
    """Inspect AI with its mock model and a scorer of our own, everything else as it comes."""
    inspect_ai: Any = import_module("inspect_ai")
    dataset: Any = import_module("inspect_ai.dataset")
    model: Any = import_module("inspect_ai.model")
    scorer: Any = import_module("inspect_ai.scorer")

    def trivial() -> Any:
        async def score(state: Any, target: Any) -> Any:  # noqa: ARG001  the signature is theirs
            return scorer.Score(value="C" if await check(state.output.completion) else "I")

        return score

    async def script(*_: Any) -> Any:
        said = await answer("")
        output = model.ModelOutput.from_content("mockllm/model", said["text"])
        tokens = {"input_tokens": said["input_tokens"], "output_tokens": said["output_tokens"]}
        output.usage = model.ModelUsage(**tokens, total_tokens=sum(tokens.values()))
        return output

    (log,) = inspect_ai.eval(
        inspect_ai.Task(
            dataset=[dataset.Sample(id=case, input=prompt, target="-") for case, prompt in prompts(cases).items()],
            scorer=scorer.scorer(metrics=[scorer.accuracy()])(trivial)(),
        ),
        model=model.get_model("mockllm/model", custom_outputs=script),
        epochs=samples,
        display="none",
        log_dir=str(folder / "logs"),
    )
    if log.status != "success" or log.results.completed_samples != cases * samples:
        raise SystemExit(f"inspect: {log.status}, {log.results and log.results.completed_samples} attempts")


CONTESTANTS = {"floor": floor, "steelyard": steelyard, "inspect": inspect}


def measured(name: str, python: str, cases: int, samples: int) -> Cost:
    """Let a contestant run alone, and weigh it."""
    with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-") as folder:
        command = [str(Path(python).absolute()), __file__, "--only", name, "--folder", folder]
        command += ["--cases", str(cases), "--samples", str(samples)]
        # what a contestant keeps outside its log, in its user's folders, counts as well
        places = {"HOME": folder, "XDG_DATA_HOME": folder, "XDG_CACHE_HOME": folder}
        process = subprocess.Popen(command, cwd=Path(__file__).parent, env={**os.environ, **places})
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{name} ended with exit code {process.returncode}")
        written = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    attempts = cases * samples
    kilobyte = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in kilobytes elsewhere
    return Cost(1000 * (used.ru_utime + used.ru_stime) / attempts, used.ru_maxrss * kilobyte / 1e6, written / attempts)


def cheapest(rounds: list[Cost]) -> Cost:
    """The best of each measure."""
    return Cost(*(min(values) for values in zip(*rounds, strict=True)))


def table(costs: dict[str, Cost]) -> str:
    """A line per contestant, each measure followed by its ratio to the floor and to the peer."""
    others = [name for name in ("floor", "inspect") if name in costs]
    header, *lines = " " * 9, *(f"{name:9}" for name in costs)
    for place, (title, digits) in enumerate((("CPU ms/attempt", 3), ("peak MB", 0), ("bytes/attempt", 0))):
        header += f"{title:>17}" + "".join(f"{f'/{other}':>9}" for other in others)
        for row, cost in enumerate(costs.values()):
            ratios = (cost[place] / costs[other][place] for other in others)
            lines[row] += f"{cost[place]:>17.{digits}f}" + "".join(f"{ratio:>9.3g}" for ratio in ratios)
    return "\n".join([header, *lines])


def has_inspect(python: str) -> bool:
    """Whether this interpreter can import the peer."""
    found = "import importlib.util, sys; sys.exit(importlib.util.find_spec('inspect_ai') is None)"
    return shutil.which(python) is not None and subprocess.run([python, "-c", found], check=False).returncode == 0


def main() -> None:
    """Measure every contestant in turns, and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the cheapest counts")
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter that has inspect_ai")
    parser.add_argument("--only", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        CONTESTANTS[given.only](given.folder, given.cases, given.samples)
        return
    peer = shutil.which(given.peer_python) or parser.error(f"no interpreter {given.peer_python}")
    pythons = {"floor": sys.executable, "steelyard": sys.executable}
    if has_inspect(peer):
        pythons["inspect"] = peer
    else:
        print(f"without Inspect AI: {peer} has no inspect_ai, see --peer-python\n")
    rounds: dict[str, list[Cost]] = {name: [] for name in pythons}
    for _ in range(given.repeat):
        for name, python in pythons.items():
            rounds[name].append(measured(name, python, given.cases, given.samples))
    costs = {name: cheapest(costs) for name, costs in rounds.items()}
    attempts = f"{given.cases * given.samples} attempts ({given.cases} cases x {given.samples})"
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs"
    print(f"{attempts}, best of {given.repeat}; {machine}\n\n{table(costs)}\n")
    ours = costs["steelyard"]
    met = ours.milliseconds <= AIM_MILLISECONDS and ours.megabytes <= AIM_MEGABYTES
    print(f"aim: at most {AIM_MILLISECONDS:g} CPU ms and {AIM_MEGABYTES} MB: {'met' if met else 'missed'}")


if __name__ == "__main__":
    main()
