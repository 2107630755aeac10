"""What a run that asks until the gate can decide ends with, and how many attempts it takes, with and without a history.

    python -m benchmarks.rounds [--repeats 2000] [--cases 20,50,150] [--baselines 1,5,10,30] [--history 0,10] [--jobs 16]

Suites and changes are those of benchmarks/decisions.py. The rounds, the division of attempts between cases, the stop of hopeless
runs and every decision are the command's own code; only the model is drawn. `--history` are the attempts per case of runs older than the
baseline; without any (0) every case gets as many. Each cell has a seed of its own, and cells that differ only in the history
share their draws.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from benchmarks.decisions import CHANGES, SUITES, Floats
from msgspec.structs import replace
from numpy.typing import NDArray

from steelyard.comparison.gate import NOT_REGRESSED, REGRESSED
from steelyard.comparison.history import HistoryEntry
from steelyard.comparison.sides import Side, Trials, pair_sides
from steelyard.engine.gate import allocation, rounds
from steelyard.engine.gate.gate import gate_sides
from steelyard.records import RunInfo, StoppingRule

MODEL = "model"


class Cell(NamedTuple):
    suite: str
    cases: int
    baseline: int
    history: int
    change: str


class Ending(NamedTuple):
    """How one run ended."""

    verdict: str
    attempts: float
    """Per case, on average."""


def side(name: str, attempts: NDArray[np.int64], passes: NDArray[np.int64], more: dict[int, tuple[int, int]]) -> Side:
    """Counts as a side; `more` has the further attempts and passes of some cases."""
    trials = tuple(
        Trials(
            case=f"{place:04}",
            attempts=tried,
            passes=passed,
            further_attempts=more[place][0] if place in more else None,
            further_passes=more[place][1] if place in more else 0,
        )
        for place, (tried, passed) in enumerate(zip(attempts.tolist(), passes.tolist(), strict=True))
    )
    return Side(name=name, rule="code", models={MODEL: trials}, runs=(name,))


def ending(rates: Floats, later: Floats, cell: Cell, until: StoppingRule, chance: np.random.Generator) -> Ending:
    """One run, asked until it is decided."""
    size = rates.size
    baseline = side("baseline", np.full(size, cell.baseline), chance.binomial(cell.baseline, rates), {})
    every = np.cumsum(chance.random((until.most, size)) < later, axis=0)
    older = []
    if cell.history:
        known = side("older", np.full(size, cell.history), chance.binomial(cell.history, rates), {})
        older = [HistoryEntry(run="older", at="", runs=("older",), rule="code", models=known.models)]
    info = RunInfo(id="current", started_at="", names=(MODEL,), samples=min(until.least, until.most), until=until)
    while True:
        fair = np.array([info.fair_samples(MODEL, f"{place:04}") or 1 for place in range(size)])
        passes = every[fair - 1, np.arange(size)]
        asked = {int(case): count for case, count in info.more.get(MODEL, {}).items()}
        more = {
            place: (count - int(fair[place]), int(every[count - 1, place] - passes[place]))
            for place, count in asked.items()
        }
        current = side("current", fair, passes, more)
        pairing = pair_sides(baseline, current)
        divided = allocation.case_allocations(baseline, pairing.models, older, until)
        here = {MODEL: rounds.sampling_round(pairing.models[0], MODEL, info, until, divided.get(MODEL))}
        decision = gate_sides(baseline, current, cases=until.cases or None, at=here[MODEL]).decision
        hopeless = rounds.hopeless_models(decision, pairing.models, here, divided)
        following = rounds.following_round(decision, info, here, until, divided, hopeless)
        if following is None:
            return Ending(decision.verdict, float(fair.sum() + sum(count for count, _ in more.values())) / size)
        info = replace(
            info,
            samples=following.samples,
            more=following.more,
            stopped=following.stopped,
            allocated=following.allocated,
        )


def shares(cell: Cell, *, repeats: int, seed: int, most: int, least: int, even: float) -> list[str]:
    """The row of a cell."""
    allocation.EVEN_SHARE = even
    chance = np.random.default_rng(
        [seed, cell.cases, cell.baseline, *cell.suite.encode(), *cell.change.encode()],
    )
    move, drop = CHANGES[cell.change]
    is_other = cell.change == "equal model"
    until = StoppingRule(baseline="baseline", most=most, least=least, cases="warn" if is_other else "fail")
    found = []
    for each in chance.spawn(repeats):
        rates = SUITES[cell.suite](cell.cases, each)
        found.append(ending(rates, move(rates, drop), cell, until, each))
    verdicts = [one.verdict for one in found]
    attempts = np.array([one.attempts for one in found])
    red, green = verdicts.count(REGRESSED) / repeats, verdicts.count(NOT_REGRESSED) / repeats
    return [
        *(cell.suite, str(cell.cases), str(cell.baseline), str(cell.history or "none"), cell.change),
        *(f"{share:.1%}" for share in (red, green, 1 - red - green)),
        *(f"{value:.1f}" for value in (attempts.mean(), np.median(attempts), np.quantile(attempts, 0.9))),
    ]


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--repeats", type=int, default=2000)
    asked.add_argument("--cases", default="20,50,150")
    asked.add_argument("--baselines", default="1,5,10,30")
    asked.add_argument("--history", default="0,10")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--most", type=int, default=rounds.DEFAULT_MAX_SAMPLES)
    asked.add_argument("--least", type=int, default=1)
    asked.add_argument("--suites", default=",".join(SUITES))
    asked.add_argument("--changes", default=";".join(CHANGES), help="separated by semicolons")
    asked.add_argument("--even-share", type=float, default=allocation.EVEN_SHARE, help="attempts that all get alike")
    asked.add_argument("--jobs", type=int, default=1, help="processes at once")
    options = asked.parse_args()
    numbers = ([int(each) for each in given.split(",")] for given in (options.cases, options.baselines))
    histories = [int(each) for each in options.history.split(",")]
    cells = [
        Cell(suite, cases, baseline, history, change)
        for cases, baseline, suite, change, history in product(
            *numbers, options.suites.split(","), options.changes.split(";"), histories
        )
    ]
    heads = ["suite", "cases", "baseline", "history", "change", "regressed", "not regressed", "cannot tell"]
    heads += ["attempts per case", "median", "90%"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    row = partial(
        shares,
        repeats=options.repeats,
        seed=options.seed,
        most=options.most,
        least=options.least,
        even=options.even_share,
    )
    with ProcessPoolExecutor(options.jobs) as pool:
        for cells_of_row in pool.map(row, cells):
            print(f"| {' | '.join(cells_of_row)} |", flush=True)


if __name__ == "__main__":
    main()
