"""How often the watch of a history is right, over its whole life.

    python -m benchmarks.drift [--repeats 2000] [--cases 50] [--attempts 5] [--runs 50] [--seed 1] [--suites weak] [--changes nothing]

Histories whose true pass rates are known are drawn and watched by `steelyard.comparison.history.watch_history` itself, as
`steelyard gate --history` does. A cell of 2,000 repeats takes some minutes. The page docs/history.md shows the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median

import numpy as np
from benchmarks.decisions import SUITES, Floats, concentrated, uniform

from steelyard.comparison.history import DriftAlarm, HistoryEntry, watch_history
from steelyard.comparison.sides import Trials

CHANGE_AT = 11
"""The run with which something changes, counted from 1."""
CHANGES: dict[str, Callable[[Floats, int], Floats]] = {
    "nothing": lambda rates, _: rates,
    "5 points, even": lambda rates, run: uniform(rates, 0.05) if run >= CHANGE_AT else rates,
    "5 points, few": lambda rates, run: concentrated(rates, 0.05) if run >= CHANGE_AT else rates,
    "10 points, even": lambda rates, run: uniform(rates, 0.10) if run >= CHANGE_AT else rates,
    "half a point per run": lambda rates, run: uniform(rates, min(0.10, 0.005 * max(0, run - CHANGE_AT + 1))),
}


def history(rates: Floats, change: str, attempts: int, runs: int, chance: np.random.Generator) -> list[HistoryEntry]:
    """The runs of one life."""
    entries = []
    for run in range(1, runs + 1):
        passes = chance.binomial(attempts, CHANGES[change](rates, run)).tolist()
        trials = [Trials(case=f"{place:04}", attempts=attempts, passes=count) for place, count in enumerate(passes)]
        entries.append(HistoryEntry(run=str(run), models={"model": tuple(trials)}))
    return entries


def cell(
    suite: str, change: str, *, cases: int, attempts: int, runs: int, repeats: int, seed: int
) -> dict[str, float | None]:
    """How often a life ends in an alarm, and how long after the change."""
    chance = np.random.default_rng([seed, cases, attempts, runs, *suite.encode(), *change.encode()])
    found: dict[str, list[DriftAlarm]] = {"worse": [], "better": []}
    for _ in range(repeats):
        entries = history(SUITES[suite](cases, chance), change, attempts, runs, chance)
        for alarm in watch_history("study", entries).models[0].alarms:
            found[alarm.direction].append(alarm)
    worse = found["worse"]
    after = [alarm.number - CHANGE_AT + 1 for alarm in worse if alarm.number >= CHANGE_AT]
    return {
        "got worse": len(worse) / repeats,
        "before the change": sum(alarm.number < CHANGE_AT for alarm in worse) / repeats,
        "runs until then, median": median(after) if after else None,
        "step within 2 runs of the truth": sum(abs(alarm.since - CHANGE_AT) <= 2 for alarm in worse)
        / max(1, len(worse)),
        "called a step": sum(alarm.shape == "change" for alarm in worse) / max(1, len(worse)),
        "got better": len(found["better"]) / repeats,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("repeats", 2000), ("cases", 50), ("attempts", 5), ("runs", 50), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--suites", default=",".join(SUITES))
    parser.add_argument("--changes", default=";".join(CHANGES))
    options = parser.parse_args()
    head: list[str] = []
    for suite in options.suites.split(","):
        for change in options.changes.split(";"):
            found = cell(
                suite,
                change,
                cases=options.cases,
                attempts=options.attempts,
                runs=options.runs,
                repeats=options.repeats,
                seed=options.seed,
            )
            if not head:
                head = ["suite", "change", *found]
                print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
            shown = [
                "-" if value is None else f"{value:g}" if "median" in name else f"{value:.1%}"
                for name, value in found.items()
            ]
            print(f"| {' | '.join([suite, change, *shown])} |", flush=True)


if __name__ == "__main__":
    main()
