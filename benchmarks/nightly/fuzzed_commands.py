"""Commands that read damaged files, and commands with odd options."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import random
import shutil
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.nightly.mutations import ODD_WORDS, mutated

ROOT = Path(__file__).resolve().parent.parent.parent


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
        ("config of promptfoo", "promptfooconfig.json", ["run promptfooconfig.json -m replay:replies.jsonl --dry-run"]),
        (
            "rows with a map",
            "rows.csv",
            ["run rows.csv --map prompt=frage,target=antwort -m replay:replies.jsonl --dry-run"],
        ),
        ("experiment", "experiment.toml", ["tiers experiment.toml --dry-run"]),
        ("rubric in TOML", "rubric.toml", ["tiers experiment.toml --dry-run"]),
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
    "run rows.csv --map prompt=frage,target=antwort -m replay:replies.jsonl --dry-run",
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
    (folder / "rows.csv").write_text("frage,antwort,thema\n1 + 1?,two,sums\n2 + 2?,four,sums\n")
    config = {
        "prompts": ["Capital of {{country}}?"],
        "tests": [
            {"vars": {"country": ["Peru", "Chad"]}, "assert": [{"type": "contains-any", "value": ["Lima", "x"]}]}
        ],
    }
    (folder / "promptfooconfig.json").write_text(json.dumps(config))
    rows = [("a", "m", number % 2, 0.25 * number, number / 20) for number in range(20)]
    rows += [("b", "n", 1, 0.5, 1.0), ("c", "n", 0, 0.125, 0.0)]
    names = ("task", "llm", "ok", "usd", "score")
    (folder / "t.csv").write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n")
    (folder / "t.jsonl").write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    import duckdb

    duckdb.sql(f"COPY (FROM read_csv('{folder / 't.csv'}')) TO '{folder / 't.parquet'}' (FORMAT parquet)")
    settings = 'output_dir = "runs"\nmax_retries = 2\n[prices."openai/x"]\ninput = 1.5\noutput = 2.0\n[suites]\nlatency_target = 3\n'
    (folder / "steelyard.toml").write_text(settings)
    for name in ("fixes", "judged"):
        shutil.copytree(ROOT / "examples" / "repairs" / name, folder / name)
    (folder / "no-code.toml").write_text('output_dir = "runs"\n')


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


class CommandResult(NamedTuple):
    """How a command ended with one input."""

    kind: str
    code: int
    problem: str = ""


def kinds() -> list[FileKind]:
    """The kinds of files that can be read on this machine."""
    return [kind for kind in KINDS if is_readable_here(kind.name)]


def is_readable_here(kind: str) -> bool:
    """Whether what reads files of a kind is installed: tables in Parquet need an extra."""
    return kind != "table in Parquet" or importlib.util.find_spec("pyarrow") is not None


def check_commands(folder: Path) -> None:
    """Raise an AssertionError where a command refuses a sound file: damage to it would prove nothing."""
    ended = [(command, *_ended(command, folder)) for kind in kinds() for command in kind.commands]
    assert not (refused := [result for result in ended if result[1] not in (0, 1, 3)]), refused


def command_result(chance: random.Random, folder: Path) -> CommandResult:
    """Make one input, let a command read it in this process, and put the file back."""
    if chance.random() < 0.3:
        words = option_input(chance)
        code, problem, _ = _ended(words, folder)
        return CommandResult("commands: options", code, problem)
    kind = chance.choice(kinds())
    place = folder / kind.file
    original = place.read_bytes()
    try:
        place.write_bytes(mutated(original, chance))
        code, problem, _ = _ended(chance.choice(kind.commands), folder)
    finally:
        place.write_bytes(original)
    return CommandResult(f"commands: {kind.name}", code, problem)


def _ended(words: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """The exit code of a command, what is wrong with how it ended, and what it said."""
    from steelyard.cli.main import main

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            code = main(words)
        problem = said.getvalue() if code == 70 or "Traceback" in said.getvalue() else ""
    except SystemExit:  # how argparse ends --help
        code, problem = 0, ""
    except Exception:  # noqa: BLE001  whatever comes through is what is looked for
        code, problem = -1, traceback.format_exc()[-1500:]
    for stored in folder.parent.glob("steelyard-error-*.txt"):
        problem += stored.read_text("utf-8", "replace")[-1500:]
        stored.unlink()
    return code, f"{' '.join(words)}: {problem}" if problem else "", said.getvalue()
