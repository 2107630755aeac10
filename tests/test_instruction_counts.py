"""Three short hot paths take no more instructions than they did, counted by callgrind."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "support" / "counted_paths.py"
COUNTS = Path(__file__).parent / "data" / "instruction-counts.json"
"""Instructions by path, for each combination of architecture, minor version of Python and how that was built."""
MAX_GROWTH = 1.1


def combination() -> str:
    """What counts can be compared on: another compiler, or other flags of it, makes another interpreter."""
    built = str(sysconfig.get_config_var("CONFIG_ARGS")), platform.python_compiler()
    return f"{platform.machine()} {sys.version_info[0]}.{sys.version_info[1]} {hashlib.sha256(repr(built).encode()).hexdigest()[:8]}"


def counted(folder: Path) -> dict[str, int]:
    """How many instructions each path takes now."""
    command = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/counts"]
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
    subprocess.run([*command, sys.executable, "-P", PROGRAM], env=environment, check=True, cwd=folder)
    texts = [path.read_text() for path in sorted(folder.glob("counts.*"))]
    parts = [
        (re.search(r"Client Request: (\w+)", text), re.search(r"^totals: (\d+)", text, re.MULTILINE)) for text in texts
    ]
    return {name[1]: int(total[1]) for name, total in parts if name and total}


def grown(before: dict[str, int], now: dict[str, int]) -> list[str]:
    """The paths that take more than a tenth more instructions than before, each in a sentence."""
    return [
        f"{path} takes {now[path]:,} instructions instead of {count:,}"
        for path, count in before.items()
        if now[path] > MAX_GROWTH * count
    ]


def test_a_path_that_takes_more_than_a_tenth_more_is_named() -> None:
    assert grown({"a": 1000, "b": 1000, "c": 1000}, {"a": 1101, "b": 1099, "c": 500}) == [
        "a takes 1,101 instructions instead of 1,000"
    ]


@pytest.mark.skipif(
    shutil.which("valgrind") is None and not os.environ.get("CI"), reason="valgrind is not installed: make test does it"
)
def test_hot_paths_take_no_more_instructions_than_they_did(tmp_path: Path) -> None:
    now = counted(tmp_path)
    assert set(now) == {"attempt_keys", "attempt_rows", "extracted_code"}
    assert min(now.values()) > 50_000  # otherwise nothing was counted
    known = json.loads(COUNTS.read_text())
    before = known.get(combination())
    if before is None or os.environ.get("UPDATE_COUNTS"):
        COUNTS.write_text(json.dumps(dict(sorted({**known, combination(): now}.items())), indent=2) + "\n")
    else:
        problems = grown(before, now)
        assert not problems, f"{problems}; if that is worth it, write down the new counts with UPDATE_COUNTS=1"
