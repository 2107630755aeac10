"""Several jobs at once, each in an interpreter and a folder of its own, and the lines that they tell."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
FINDINGS_FILE = "findings.jsonl"
GRACE_SECONDS = 120
"""Seconds after its time in which a job must have ended."""


def parser(about: str | None) -> argparse.ArgumentParser:
    """The options that all storms have."""
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=1, help="how many processors to keep busy")
    options.add_argument("--job", type=int, help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return options


def told_by_jobs(module: str, given: argparse.Namespace, scratch: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run the jobs, and give what each told, with its number."""
    arguments = [sys.executable, "-m", module, "--seed", str(given.seed), "--minutes", str(given.minutes)]
    running = []
    for job in range(given.jobs):
        (scratch / str(job)).mkdir()
        running.append(subprocess.Popen([*arguments, "--job", str(job), "--folder", scratch / str(job)], cwd=ROOT))
    until = time.monotonic() + 60 * given.minutes + GRACE_SECONDS
    for job, process in enumerate(running):
        try:
            code = process.wait(max(1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        findings = scratch / str(job) / FINDINGS_FILE
        for line in findings.read_text().splitlines() if findings.exists() else []:
            yield job, json.loads(line)
        if code:
            yield job, {"kind": "jobs", "number": 0, "problem": f"it ended with exit code {code}"}
