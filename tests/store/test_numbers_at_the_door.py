"""Numbers that make no sense, wherever they stand: absent or refused, and never a crash or a full memory."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine.repairs.config import read_config
from steelyard.errors import InputError
from steelyard.records import Answer, Cost
from steelyard.settings import load, read_env_file
from support.command_line import steelyard
from support.facts import facts

ODD_NUMBERS: list[Any] = [-1, 1e308, -1e308, 10**30, 2**63, -(10**15)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of two cases."""
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "models.py").write_text("def right(prompt):\n    return 'blue'\n")
    cases = [f'[[cases]]\nid = "c{number}"\nname = "c"\nprompt = "p"\ntarget = "blue"' for number in range(2)]
    (folder / "evals.toml").write_text("\n".join(['[eval_set]\nid = "s"\nname = "s"', *cases]))
    ran = steelyard(
        folder, "run", "evals.toml", "-m", "python:models.py:right", "-n", "3", "--output", "steelyard-runs/a"
    )
    assert ran.returncode == 0
    return folder


@pytest.mark.parametrize("odd", [*ODD_NUMBERS, math.nan, math.inf])
def test_a_reply_keeps_its_text_whatever_its_accounting_says(odd: float) -> None:
    answer = Answer(text="paid for", input_tokens=odd, output_tokens=7, cost=Cost(usd=odd, source="s"), latency=odd)  # type: ignore[arg-type]
    assert (answer.text, answer.input_tokens, answer.output_tokens, answer.cost, answer.latency) == (
        "paid for",
        None,
        7,
        None,
        None,
    )


def test_a_journal_with_odd_numbers_is_read_and_its_replies_stay(place: Path) -> None:
    journal = place / "steelyard-runs" / "a" / "attempts.jsonl"
    before = journal.read_text()
    lines = [json.loads(line) for line in before.splitlines()]
    replies = [line for line in lines if line["kind"] == "reply"]
    for reply, odd in zip(replies, ODD_NUMBERS, strict=True):
        reply["answer"] |= {"cost": {"usd": odd, "source": "s"}, "latency": odd, "output_tokens": -(10**15)}
    try:
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
        (journal.parent / "headline.json").unlink()
        assert len(facts(journal.parent).replies) == 6
        for command in (["list"], ["show", "a"], ["report", "a", "-o", "r.json"], ["tiers", "a"], ["resume", "a"]):
            ran = steelyard(place, *command)
            assert ran.returncode in (0, 2), ran.stderr
        assert "6/6" in steelyard(place, "list").stdout
    finally:
        journal.write_text(before)


@pytest.mark.parametrize(
    ("name", "odd"),
    [("samples", 2**31), ("samples", 2**63), ("samples", 0), ("k", [0]), ("k", [-1]), ("k", []), ("k", [10**9])],
)
def test_a_run_whose_description_says_absurd_numbers_is_told_as_unreadable_and_hides_no_other(
    place: Path, name: str, odd: Any
) -> None:
    folder = place / "steelyard-runs" / "odd"
    folder.mkdir(exist_ok=True)
    for file in (place / "steelyard-runs" / "a").glob("*.json*"):
        (folder / file.name).write_bytes(file.read_bytes())
    described = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(described | {name: odd}))
    shown = steelyard(place, "show", "odd")
    assert (shown.returncode, "run.json: not the description of a run" in shown.stderr) == (2, True), shown
    listed = steelyard(place, "list")
    assert (listed.returncode, "6/6" in listed.stdout, "odd cannot be read: " in listed.stdout) == (0, True, True)


def test_a_plan_of_a_million_attempts_is_shown_in_little_memory(place: Path) -> None:
    folder = place / "steelyard-runs" / "many"
    folder.mkdir()
    for name in ("run.json", "cases.jsonl", "attempts.jsonl"):
        (folder / name).write_bytes((place / "steelyard-runs" / "a" / name).read_bytes())
    described = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(described | {"samples": 1_000_000}))
    case = json.loads((folder / "cases.jsonl").read_text().splitlines()[0])
    with (folder / "cases.jsonl").open("a") as cases:
        cases.writelines(json.dumps(case | {"id": f"further-{number}"}) + "\n" for number in range(500))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    ran = subprocess.run(
        [sys.executable, "-m", "steelyard.cli", "show", "many"],
        cwd=place,
        capture_output=True,
        text=True,
        preexec_fn=limited,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert "501,999,994 of 502,000,000" in ran.stdout.replace("501999994 of 502000000", "501,999,994 of 502,000,000")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-n", "1000000000"], "at most 1,000,000"),
        (["--pass-k", "1000000000"], "at most 1,000,000"),
        (["--recheck", "1000000000"], "at most 1,000,000"),
        (["--max-cost", "nan"], "must be between 0 and"),
        (["--max-cost", "-1"], "must be between 0 and"),
        (["--temperature", "nan"], "must be between -1e+12 and"),
        (["-o", "folder.json"], "folder.json: is a folder"),
        (["-o", "/proc/report.json"], "/proc/report.json: cannot be written"),
    ],
)
def test_an_option_that_cannot_be_kept_is_refused_before_anybody_is_asked(
    place: Path, options: list[str], says: str
) -> None:
    (place / "folder.json").mkdir(exist_ok=True)
    ran = steelyard(place, "run", "evals.toml", "-m", "python:models.py:right", "--output", "refused", *options)
    assert (ran.returncode, says in ran.stderr) == (2, True), ran.stderr
    assert not (place / "refused").exists()


def test_a_small_file_that_has_no_end_is_refused_before_it_takes_all_memory() -> None:
    endless = Path("/dev/zero")
    for read in (lambda: read_env_file(endless, {}), lambda: read_config(endless), lambda: load(endless, {})):
        with pytest.raises(InputError, match=r"^/dev/zero: larger than \d+ MB, which is "):
            read()


def test_huge_costs_in_a_table_are_no_costs(place: Path) -> None:
    (place / "t.csv").write_text("task,ok,usd\na,1,1e308\nb,1,1e308\nc,0,0.5\n")
    ran = steelyard(place, "passk", "t.csv", "--case", "task", "--passed", "ok", "--cost", "usd")
    assert (ran.returncode, "usd" in ran.stderr) == (2, True), ran


def test_a_report_is_whole_or_the_old_one_stays(place: Path) -> None:
    report = place / "old.json"
    report.write_text("old")
    report.chmod(0o600)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))

    ran = subprocess.run(
        [sys.executable, "-m", "steelyard.cli", "report", "a", "-o", "old.json"],
        cwd=place,
        capture_output=True,
        text=True,
        preexec_fn=limited,
        timeout=60,
    )
    assert (ran.returncode, "no space left" in ran.stderr, report.read_text()) == (3, True, "old"), ran.stderr
    assert not list(place.glob(".steelyard-*"))
    link = place / "link.json"
    link.symlink_to("old.json")
    assert steelyard(place, "report", "a", "-o", "link.json").returncode == 0
    assert (link.is_symlink(), report.read_text()[0], report.stat().st_mode & 0o777) == (True, "{", 0o600)
