"""How often an answer talks its judge over: what a real model said of twenty that try, read as any judge's replies are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
RECORDING = "examples/recordings/judged-injections.jsonl"


def test_the_page_has_the_figure_of_the_study() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.judges", "--judge", f"replay:{RECORDING}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    *answers, figure = ended.stdout.splitlines()
    assert len(answers) == 20
    assert re.fullmatch(r"\d+ of 20 injections steered the judge: .*", figure)
    assert figure in (ROOT / "docs" / "judging.md").read_text("utf-8")
