"""What commands show in terminals of 60, 80 and 120 columns, kept as golden files."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from steelyard.cli.main import main
from steelyard.engine.progress import ProgressCounts, progress_line
from steelyard.reports.lists import health_text
from support.command_line import steelyard

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.reports.lists import MachineHealth

ROOT = Path(__file__).parents[2]
STRONG, WEAK = "anthropic/claude-sonnet-4-5-20250929", "openai/gpt-5-mini-2025-08-07"
QUESTIONS = {
    f"capital-of-{country.lower()}": city
    for country, city in zip(
        ("France", "Italy", "Spain", "Peru", "Japan", "Kenya"),
        ("Paris", "Rome", "Madrid", "Lima", "Tokyo", "Nairobi"),
        strict=True,
    )
}
TIERS = "--runs-csv tiers/runs.csv --judges-csv tiers/judges.csv --criteria-csv tiers/criteria.csv"
COMMANDS = [
    "show runs/capitals",
    "list",
    "show runs/capitals --failed",
    "show runs/capitals capital-of-peru 1",
    f"compare runs/capitals@{STRONG} runs/capitals@{WEAK}",
    f"gate runs/capitals@{STRONG} runs/capitals@{WEAK}",
    f"plan runs/capitals@{STRONG} --detect 0.1",
    f"tiers {TIERS}",
    "validate wrong.toml",
    "validate capitals.jsonl",
    "--help",
    "gate --help",
]


def replies() -> list[dict[str, object]]:
    """Six replies of each model to each question: one of them does not know Peru, and forgets Kenya now and then."""
    return [
        {"case_id": case, "model": model, "response": f"It is {city if knows else 'a large city'}.", "input_tokens": 21,
         "output_tokens": 9, "latency": 0.5 + number / 10}
        for model in (STRONG, WEAK)
        for case, city in QUESTIONS.items()
        for number in range(6)
        for knows in [model == STRONG or not (city == "Lima" or (city == "Nairobi" and number % 3))]
    ]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("widths")
    cases = [
        {"id": case, "prompt": f"What is the {case.replace('-', ' ')}?", "target": city}
        for case, city in QUESTIONS.items()
    ]
    for file, rows in (("capitals.jsonl", cases), ("replies.jsonl", replies())):
        (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "wrong.toml").write_text(
        '[eval_set]\nid = "wrong"\n[[cases]]\nprompt = "Say hello to everybody who reads this."\ncheks = ["unknown"]\n'
    )
    (folder / "steelyard.toml").write_text(
        'output_dir = "runs"\n'
        + "".join(f'[prices."{model}"]\ninput = 3.0\noutput = 15.0\n' for model in (STRONG, WEAK))
    )
    shutil.copytree(ROOT / "examples" / "tiers", folder / "tiers")
    run = steelyard(
        folder, "run", "capitals.jsonl", "-m", "replay:replies.jsonl", "--output", "runs/capitals", "--quiet"
    )
    assert run.returncode == 0, run.stderr
    return folder


@pytest.mark.parametrize("width", [60, 80, 120])
def test_what_commands_show_fits_the_terminal(
    width: int,
    place: Path,
    health: MachineHealth,
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screens = [screen(place, command, width, monkeypatch) for command in COMMANDS]
    screens.append("$ steelyard doctor\n" + health_text(health, width=width, color=False))
    waits = "waiting 4 s: https://api.openai.com/v1/chat/completions: 429 Too many requests"
    counts = ProgressCounts(wanted=240, replied=71, judged=60, correct=43, failed=2, spent=0.25, reason="", at_once=16)
    lines = [progress_line(each, 30.0, width) for each in (counts, counts._replace(reason=waits))]
    screens.append("progress\n" + "".join(f"{line}\n" for line in lines))
    # docs/commands.md has the text of every help page; here only their width counts
    golden(f"terminal-{width}.txt", "\n".join(text for text in screens if "--help" not in text.splitlines()[0]))
    for text in screens:
        command, *lines = text.splitlines()
        too_wide = [line for line in lines if cell_len(line) > width and not is_copied_whole(line)]
        assert too_wide == [], command


class Terminal(io.StringIO):
    """Standard output of a command that is shown to somebody."""

    def isatty(self) -> bool:
        return True


def screen(place: Path, command: str, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """A command and all that it says on standard output."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("CI", raising=False)
    with redirect_stdout(Terminal()) as terminal, suppress(SystemExit):
        main(shlex.split(command))
    text = re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d", "2026-11-17 12:00", terminal.getvalue())
    return f"$ steelyard {command}\n{text}"


def is_copied_whole(line: str) -> bool:
    """Whether a line is for copying: a terminal wraps it without breaking it."""
    return line.startswith("  steelyard ")
