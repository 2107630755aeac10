"""Whether any file, however damaged, and any options end in something else than a result or one sentence.

    python benchmarks/nightly/fuzz.py [--minutes 10] [--seed 1] [--only NUMBER]

Files of every kind that commands read are mutated, and commands read them. Each input is made from the seed and its number alone, so
`--only` repeats one. A worker process with a memory limit takes a hundred inputs. Counted are exit codes by kind, tracebacks (exit code
70, or an exception that comes through), hangs, and workers that died. The exit code is 1 if there was any of the last three.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import pkgutil
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import steelyard

ROOT = Path(__file__).resolve().parent.parent.parent
MEMORY_LIMIT_BYTES = 6 << 30
"""Address space of a worker: libraries take more than 2 GB of it before any work is done."""
HANG_SECONDS, BATCH_SECONDS, BATCH_INPUTS = 20, 300, 100
"""CPU seconds that one input may take, seconds for all inputs of a worker, and how many those are."""


class FileKind(NamedTuple):
    """A file that is mutated, and the commands that read it."""

    name: str
    file: str
    commands: Sequence[Sequence[str]]


RUN = ("show whole", "show whole --failed", "list", "report whole -o r.json -o r.html -o r.csv", "tiers whole")
SIDES = ("compare --baseline main --current whole@large", "gate --baseline main --current whole@large")
KINDS = [
    FileKind(name, file, [command.split() for command in commands])
    for name, file, commands in [
        ("eval set in TOML", "cases.toml", ["run cases.toml -m replay:replies.jsonl --dry-run"]),
        ("eval set in JSONL", "capitals.jsonl", ["run capitals.jsonl -m replay:replies.jsonl --dry-run"]),
        ("eval set in JSON", "cases.json", ["run cases.json -m replay:replies.jsonl --dry-run"]),
        ("experiment", "experiment.toml", ["tiers experiment.toml --dry-run"]),
        ("rubric in TOML", "rubric.toml", ["judge whole --rubric rubric.toml --judges replay:none.jsonl"]),
        ("rubric in YAML", "rubric.yaml", ["judge whole --rubric rubric.yaml --judges replay:none.jsonl"]),
        ("recording", "replies.jsonl", ["run capitals.jsonl -m replay:replies.jsonl --dry-run"]),
        ("journal", "runs/whole/attempts.jsonl", [*RUN, *SIDES]),
        ("judged journal", "runs/experiment/attempts.jsonl", ["tiers experiment", "show experiment", "list"]),
        ("run.json", "runs/whole/run.json", [*RUN, *SIDES, "resume whole --config no-code.toml"]),
        ("run.json of an experiment", "runs/experiment/run.json", ["tiers experiment", "show experiment", "list"]),
        ("cases.jsonl", "runs/whole/cases.jsonl", [*RUN, *SIDES]),
        ("looks.jsonl", "runs/whole/looks.jsonl", [SIDES[1]]),
        ("headline.json", "runs/whole/headline.json", ["list"]),
        ("baseline", "steelyard-baselines/main.json", SIDES),
        ("report in JSON", "report.json", ["compare --baseline report.json --current whole"]),
        ("table in CSV", "t.csv", ["passk t.csv --case task --model llm --passed ok --cost usd --score score"]),
        ("table in JSONL", "t.jsonl", ["passk t.jsonl --case task --model llm --passed ok --cost usd"]),
        (
            "fixes in CSV",
            "fixes.csv",
            ["passk --fixes-csv fixes.csv", "passk --problems-csv fixes.csv --fixes-csv fixes.csv"],
        ),
        ("runs.csv", "runs.csv", ["tiers --runs-csv runs.csv", "tiers --runs-csv runs.csv --format json"]),
        ("judges.csv", "judges.csv", ["tiers --runs-csv runs.csv --judges-csv judges.csv"]),
        (
            "criteria.csv",
            "criteria.csv",
            ["tiers --runs-csv runs.csv --judges-csv judges.csv --criteria-csv criteria.csv"],
        ),
        ("table in Parquet", "t.parquet", ["passk t.parquet --case task --model llm --passed ok --cost usd"]),
        ("attempts in Parquet", "t.parquet", ["passk --attempts t.parquet --case task --model llm --passed ok"]),
        ("settings", "steelyard.toml", ["show whole", "list", "run capitals.jsonl -m replay:replies.jsonl --dry-run"]),
        ("configuration of repairs", "evaluation_config.json", ["repairs --config evaluation_config.json"]),
    ]
]
OPTION_COMMANDS = [
    "run capitals.jsonl -m replay:replies.jsonl --dry-run",
    "show whole",
    "report whole -o r.json",
    "passk t.csv --case task --model llm --passed ok",
    "gate --baseline main --current whole@large",
    "compare --baseline main --current whole@large",
    "plan cases.toml --baseline main",
    "tiers --runs-csv runs.csv",
    "list",
    "synth --out synth --problems 3 --samples 2",
    "suites",
]
ODD_WORDS = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e400",
    "NaN",
    "Infinity",
    "nan",
    "inf",
    "10000000000000000000000",
    "2147483648",
    "9223372036854775808",
    "null",
    "true",
    "[]",
    "{}",
    "''",
    '""',
    "\x00",
    "\ud800",
    "\\ud800",
    "\xe9",
    "\U0001f4a5",
    "../../etc/passwd",
    "%",
    "%s",
    "{{x}}",
    ",,,",
    "===",
    "1/0",
    "0/1",
    "1e-400",
    "-0",
    "1,1",
    "1:2",
    "[]]",
    "[[",
    "}}",
    "a=b",
    "--help",
]


def template(folder: Path) -> None:
    """Files of every kind, as they are when nothing is wrong with them."""
    shutil.copytree(ROOT / "tests" / "data" / "run-0.1.0", folder, dirs_exist_ok=True)
    for name in ("runs.csv", "judges.csv", "criteria.csv", "rubric.yaml"):
        shutil.copy(ROOT / "examples" / "tiers" / name, folder / name)
    shutil.copy(ROOT / "examples" / "capitals.jsonl", folder)
    shutil.copy(ROOT / "examples" / "repairs" / "fixes" / "small_fixes.csv", folder / "fixes.csv")
    shutil.copy(ROOT / "examples" / "repairs" / "evaluation_config.json", folder)
    capitals = [json.loads(line) for line in (folder / "capitals.jsonl").read_text().splitlines() if line.strip()]
    (folder / "cases.json").write_text(json.dumps(capitals, indent=1))
    rows = [("a", "m", number % 2, 0.25 * number, number / 20) for number in range(20)]
    rows += [("b", "n", 1, 0.5, 1.0), ("c", "n", 0, 0.125, 0.0)]
    names = ("task", "llm", "ok", "usd", "score")
    (folder / "t.csv").write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n")
    (folder / "t.jsonl").write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    import pyarrow
    from pyarrow import parquet

    columns = list(zip(*rows, strict=True))
    parquet.write_table(pyarrow.table(dict(zip(names, map(list, columns), strict=True))), folder / "t.parquet")
    settings = 'output_dir = "runs"\nmax_retries = 2\n[prices."openai/x"]\ninput = 1.5\noutput = 2.0\n[suites]\nlatency_target = 3\n'
    (folder / "steelyard.toml").write_text(settings)
    shutil.copytree(ROOT / "examples" / "repairs" / "fixes", folder / "fixes")
    (folder / "no-code.toml").write_text('output_dir = "runs"\n')


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The content with one to four things wrong with it."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        content = chance.choice(MUTATIONS)(content, chance)
    return content


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content or b"x")
    for _ in range(chance.choice((1, 1, 3, 20))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _cut(content: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:first] + content[last:] if chance.random() < 0.5 else content[:last]


def _repeat(content: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:last] + content[first:last][:2000] * chance.choice((1, 2, 50)) + content[last:]


def _odd_word(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice(ODD_WORDS).encode("utf-8", "surrogatepass") + content[at:]


def _odd_number(content: bytes, chance: random.Random) -> bytes:
    """One number or word in the place of another."""
    places = list(re.finditer(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?|\btrue\b|\bfalse\b|\bnull\b|\"[^\"\n]{0,40}\"", content))
    if not places:
        return content
    place = chance.choice(places)
    return content[: place.start()] + chance.choice(ODD_WORDS).encode("utf-8", "surrogatepass") + content[place.end() :]


def _swap_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one] * chance.choice((1, 1, 3))
    return b"".join(lines)


def _nest(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return (
        content[:at]
        + chance.choice((b"[", b'{"a":', b"(", b"- ", b"  ")) * chance.choice((10, 1000, 100_000))
        + content[at:]
    )


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    *(_flip, _flip, _cut, _repeat, _odd_word, _odd_number, _odd_number, _odd_number, _swap_lines, _nest)
]


def option_input(chance: random.Random) -> list[str]:
    """A command with options that nobody gave it."""
    from steelyard.cli.main import COMMANDS

    words = chance.choice(OPTION_COMMANDS).split()
    sub = argparse.ArgumentParser()
    COMMANDS[words[0]].add_options(sub)
    options = [action for action in sub._actions if action.option_strings and action.dest != "help"]
    for _ in range(chance.choice((1, 2, 3))):
        action = chance.choice(options)
        words.append(chance.choice(action.option_strings))
        if action.nargs != 0:
            known = [str(each) for each in action.choices] if action.choices else []
            words.append(chance.choice([*ODD_WORDS, *known, "r.json", "whole", "5", "0.5", "t.csv", "runs"]))
    return [word for word in words if word not in ("--backend", "--ray-address", "--until-decided")]


class InputResult(NamedTuple):
    """What came of one input."""

    number: int
    kind: str
    code: int
    problem: str = ""


def carry_out(number: int, seed: int, folder: Path) -> InputResult:
    """Make one input, let a command read it, and put the file back."""
    from steelyard.cli.main import main

    chance = random.Random(f"{seed} {number}")
    if chance.random() < 0.15:
        kind, place, original, words = "options", None, b"", option_input(chance)
    else:
        chosen = chance.choice(KINDS)
        kind, place = chosen.name, folder / chosen.file
        original = place.read_bytes()
        place.write_bytes(mutated(original, chance))
        words = list(chance.choice(chosen.commands))
    said = io.StringIO()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            code = main(words)
        problem = said.getvalue() if code == 70 or "Traceback" in said.getvalue() else ""
    except BaseException as error:  # noqa: BLE001  whatever comes through is what is looked for
        code, problem = -1, f"{'hang: ' if isinstance(error, TimeoutError) else ''}{traceback.format_exc()[-1500:]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if place is not None:
            place.write_bytes(original)
    return InputResult(number, kind, code, f"{' '.join(words)}: {problem}" if problem else "")


def _hang(*_: object) -> None:
    raise TimeoutError


def worker(begin: int, count: int, seed: int, folder: Path, results: Path) -> None:
    """Carry out some inputs in this process, which is a fork; a line per result is all that comes back."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGVTALRM, _hang)
    os.chdir(folder)
    with results.open("w") as file:
        for number in range(begin, begin + count):
            file.write(json.dumps([number, "begun", 0]) + "\n")
            file.flush()
            file.write(json.dumps(carry_out(number, seed, folder)) + "\n")
            file.flush()


def batch(begin: int, count: int, seed: int, scratch: Path) -> list[InputResult]:
    """What came of some inputs, in a fork of this process with files of its own."""
    folder, results = scratch / "files", scratch / "results.jsonl"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(scratch / "template", folder)
    results.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            sink = os.open(scratch / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            worker(begin, count, seed, folder, results)
            code = 0
        finally:
            os._exit(code)
    until = time.monotonic() + BATCH_SECONDS
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = [InputResult(*line) for line in lines if line[1] != "begun"]
    if len(done) < count:
        last = lines[-1][0] if lines else begin
        said = (scratch / "said").read_text(errors="replace")[-800:]
        done.append(InputResult(last, "worker", -2, f"died or hung with status {ended[1]}: {said}"))
    return done


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", type=int)
    given = options.parse_args()
    codes: Counter[tuple[str, int]] = Counter()
    problems: list[InputResult] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        os.environ["TMPDIR"] = str(scratch)
        os.environ["STEELYARD_OUTPUT_DIR"] = "runs"
        (scratch / "template").mkdir()
        template(scratch / "template")
        begin = 0 if given.only is None else given.only
        count = BATCH_INPUTS if given.only is None else 1
        # so that no worker imports them again
        for module in pkgutil.walk_packages(steelyard.__path__, "steelyard."):
            if module.name.split(".")[1] in (
                "analysis",
                "comparison",
                "outcomes",
                "reports",
                "stats",
                "tiers",
                "evalsets",
                "store",
            ):
                importlib.import_module(module.name)
        while True:
            for result in batch(begin, count, given.seed, scratch):
                codes[result.kind, result.code] += 1
                if result.problem:
                    problems.append(result)
                    print(f"input {result.number}, {result.kind}: {result.problem}", flush=True)
                    for stored in scratch.glob("steelyard-error-*.txt"):
                        print(stored.read_text()[-1500:])
                        stored.unlink()
            begin += count
            if given.only is not None or time.monotonic() - began > 60 * given.minutes:
                break
    inputs = sum(count for (kind, _), count in codes.items() if kind != "worker")
    minutes = (time.monotonic() - began) / 60
    for kind in sorted({kind for kind, _ in codes}):
        of_kind = {code: count for (other, code), count in sorted(codes.items()) if other == kind}
        print(f"{kind}: {', '.join(f'exit code {code} {count:,}x' for code, count in of_kind.items())}")
    print(
        f"{inputs:,} inputs in {minutes:.1f} minutes ({inputs / minutes:,.0f} per minute), seed {given.seed}: {len(problems)} problems"
    )
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
