"""Makes the results of promptfoo: `python make_promptfoo.py FOLDER [NAME ...]`, with promptfoo on the PATH."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from draw import CASES, FALLS, answer, question, right_words, target

REPEATS = 2
SHARE = (
    "const had = output.split(' '), wanted = context.vars.target.split(' ');\n"
    "return wanted.filter(word => had.includes(word)).length / wanted.length"
)
COMMAND = ["promptfoo", "eval", "-c", "config.json", "-o", "out.json", "-j", "1", "--no-cache", "--no-table"]
COMMAND += ["--no-progress-bar", "--no-write"]
OFF = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
RUBRIC = {
    "type": "llm-rubric",
    "value": "Words: {{target}}",
    "threshold": 0.5,
    "provider": "file://promptfoo_provider.js",
}
HERE = Path(__file__).parent


def graded(threshold: float) -> dict:
    return {"type": "javascript", "value": SHARE, "threshold": threshold}


def make(folder: Path, name: str, asserted: list[dict], rights: list[list[int]]) -> None:
    if sys.argv[2:] and name not in sys.argv[2:]:
        return
    config = {
        "prompts": ["List {{number}}"],
        "providers": ["file://promptfoo_provider.js"],
        "defaultTest": {"assert": asserted},
        "tests": [{"vars": {"number": question(n).split()[1], "target": target(n)}} for n in range(CASES)],
    }
    Path("config.json").write_text(json.dumps(config))
    Path("answers.json").write_text(json.dumps([[answer(n, each) for each in rights[n]] for n in range(CASES)]))
    shutil.copy(HERE / "promptfoo_provider.js", ".")
    ran = subprocess.run(
        [*COMMAND, "--repeat", str(len(rights[0]))],
        env=os.environ | {f"PROMPTFOO_DISABLE_{each}": "1" for each in OFF} | {"PROMPTFOO_CONFIG_DIR": "home"},
        capture_output=True,
        text=True,
    )
    # it exits with 100 where a test fails
    if ran.returncode not in (0, 100):
        sys.exit(ran.stdout + ran.stderr)
    raw = Path("out.json").read_bytes()
    (folder / f"{name}.json.gz").write_bytes(gzip.compress(raw, mtime=0))
    (told,) = json.loads(raw)["results"]["prompts"]
    about = told["metrics"]
    print(name, about["score"], {key: about[f"test{key}Count"] for key in ("Pass", "Fail", "Error")})


folder = Path(sys.argv[1]).absolute()
folder.mkdir(parents=True, exist_ok=True)
for side in FALLS:
    make(folder, side, [graded(0.5)], right_words(side, REPEATS))
for side in ("base", "fall30"):
    rights = right_words(side, 1)
    make(folder, f"rubric-{side}", [RUBRIC], rights)
    make(folder, f"mixed-{side}", [{"type": "contains", "value": "oak"}, graded(0.5)], rights)
make(folder, "pass-90", [graded(0.5)], [[18]] * CASES)
make(folder, "pass-80", [graded(0.5)], [[16]] * CASES)
make(folder, "fail-90", [graded(0.95)], [[18]] * CASES)
make(folder, "fail-30", [graded(0.95)], [[6]] * CASES)
