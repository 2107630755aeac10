"""What pass@k with intervals and the gate cost on a million to a hundred million attempts in Parquet, start-up included.

    python benchmarks/statistics_at_size.py [--rows 1000000 10000000 100000000] [--ray] [--folder DIR]

Each size has a hundred attempts per case, in ten files, in an order that jumps from case to case. There are two such
tables, a baseline and a current side, which differ by chance alone; `passk` reads one, `gate` reads both. The floors are
what DuckDB takes, in a process of its own, to read the three columns of the same files, and to count their attempts by
case. CPU time is that of all threads; memory is the peak of the whole process; growth is by how much CPU time grew from
the size before, where the attempts grew tenfold. With --ray the same is counted through Ray Data on this machine, whose
processes are not in these numbers: there only the wall time tells.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SAMPLES, FILES = 100, 10
BAR_MEGABYTES = 1500
BAR_GROWTH = 15
"""By how much the CPU time may grow where attempts grow tenfold."""

WRITE = """
import sys, duckdb
path, begin, end, cases, seed = sys.argv[1], *map(int, sys.argv[2:])
duckdb.connect(config={"memory_limit": "2GB", "preserve_insertion_order": False}).execute(f'''SET enable_progress_bar = false;
COPY (SELECT 'provider/model' AS model, format('suite/case-{{:07d}}', c) AS "case", s::INTEGER AS number,
  hash(c, s, {seed}) % 1000 < hash(c) % 1000 AS correct
  FROM (SELECT s, (i * 7919 + s * 104729) % {cases} AS c FROM range({begin}, {end}) AS a(s), range({cases}) AS b(i)))
TO '{path}' (FORMAT parquet, COMPRESSION zstd)''')
"""
READ = """
import sys, duckdb
duckdb.connect(config={"memory_limit": "800MB"}).execute(f'''SET enable_progress_bar = false;
SELECT sum(length(model)), sum(length("case")), count(*) FILTER (correct) FROM '{sys.argv[1]}/*.parquet' ''').fetchall()
"""
GROUP = """
import sys, duckdb
duckdb.connect(config={"memory_limit": "800MB"}).execute(f'''SET enable_progress_bar = false;
SELECT sum(tried), sum(passed) FROM (SELECT model, "case", count(*) AS tried, count(*) FILTER (correct) AS passed
FROM '{sys.argv[1]}/*.parquet' GROUP BY ALL)''').fetchall()
"""


class Cost(NamedTuple):
    seconds: float
    wall: float
    megabytes: float


def measured(command: list[str]) -> Cost:
    """What a command takes, by the process and its children."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command}: ended with {os.waitstatus_to_exitcode(status)}")
    kilobyte = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in kilobytes elsewhere
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss * kilobyte / 1e6)


def prepare(folder: Path, cases: int, seed: int) -> Path:
    """A table of a hundred attempts at each case."""
    folder.mkdir()
    for part in range(FILES):
        begin, end = (SAMPLES // FILES * each for each in (part, part + 1))
        path = folder / f"part-{part}.parquet"
        command = [sys.executable, "-c", WRITE, str(path), *map(str, (begin, end, cases, seed))]
        subprocess.run(command, check=True)
    return folder


def contestants(sides: list[Path], *, ray: bool) -> dict[str, list[str]]:
    baseline, current = map(str, sides)
    steelyard = [sys.executable, "-m", "steelyard.cli"]
    passk = [*steelyard, "passk", "--attempts", current, "--k-values", "1", "10", "100"]
    gate = [*steelyard, "gate", "--baseline", baseline, "--current", current]
    found = {
        "DuckDB reads one side": [sys.executable, "-c", READ, current],
        "DuckDB counts one side by case": [sys.executable, "-c", GROUP, current],
        "steelyard passk, one side": passk,
        "steelyard gate, both sides": gate,
    }
    return found | ({"steelyard passk, through Ray Data": [*passk, "--backend", "ray"]} if ray else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7, 10**8], help="attempts of each side")
    parser.add_argument("--ray", action="store_true", help="count through Ray Data as well")
    parser.add_argument("--folder", help="where the tables are written and deleted again (default: the usual place)")
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    before: dict[str, Cost] = {}
    largest = growth = 0.0
    for rows in given.rows:
        with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-", dir=given.folder) as place:
            sides = [prepare(Path(place) / name, rows // SAMPLES, seed) for seed, name in enumerate(("before", "now"))]
            size = sum(path.stat().st_size for path in sides[1].iterdir()) / 1e6
            title = f"{rows:,} attempts at {rows // SAMPLES:,} cases, {size:.0f} MB"
            print(f"\n{title:<48}{'CPU s':>8}{'wall s':>9}{'MB':>7}{'x floor':>9}{'growth':>8}")
            costs: dict[str, Cost] = {}
            for name, command in contestants(sides, ray=given.ray).items():
                cost = costs[name] = measured(command)
                floor = next(iter(costs.values())).seconds * (2 if "both" in name else 1)
                grown = f"{cost.seconds / before[name].seconds:>8.1f}" if name in before else ""
                told = f"{cost.seconds:>8.2f}{cost.wall:>9.1f}{cost.megabytes:>7.0f}{cost.seconds / floor:>9.1f}{grown}"
                print(f"  {name:<46}{told}", flush=True)
                if name.startswith("steelyard") and "Ray" not in name:
                    largest = max(largest, cost.megabytes)
                    growth = max(growth, cost.seconds / before[name].seconds if name in before else 0.0)
            before = costs
    met = largest < BAR_MEGABYTES and growth < BAR_GROWTH
    print(
        f"\nbar: under {BAR_MEGABYTES} MB, and at most {BAR_GROWTH} times the CPU time for 10 times the attempts: "
        f"{'met' if met else 'missed'}"
    )


if __name__ == "__main__":
    main()
