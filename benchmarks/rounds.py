"""What a run that asks until the gate can decide ends with, and how many attempts it takes, with an early stop and without.

    python -m benchmarks.rounds [--repeats 2000] [--cases 20,50,150] [--baselines 1,5,10,30] [--jobs 16]

Suites and changes are those of benchmarks/decisions.py. Each cell has a seed of its own, and a run that stops while it is undecided
sees the same outcomes as one that does not.

A run is asked by the command's own tests, levels and rules, but those that cannot change a decision are left out
(`quick_endings`); `tests/engine/gate/test_rounds_benchmark.py` holds that it ends as `ending`, which takes all of the command's code.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, lru_cache
from itertools import product, starmap
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from benchmarks.decisions import CHANGES, SUITES, Floats
from msgspec.structs import replace
from numpy.typing import NDArray

from steelyard.comparison.exact_tests import (
    DECISION_TOLERANCE,
    MIN_ATTEMPTS_TO_NAME_CASE,
    PairedCase,
    is_at_most,
    tested_model,
)
from steelyard.comparison.gate import (
    CANNOT_TELL,
    NOT_REGRESSED,
    REGRESSED,
    DecisionRule,
    GateVerdict,
    ModelVerdict,
    model_verdict,
)
from steelyard.comparison.sides import PairedCounts, Side, Trials, pair_sides
from steelyard.engine.gate import rounds
from steelyard.engine.gate.gate import SamplingRound, gate_sides, look_levels
from steelyard.records import RunInfo, StoppingRule
from steelyard.stats.multiplicity import PlannedLook, design
from steelyard.stats.paired import PairedCaseCounts, fisher_worse, stratified_worse
from steelyard.stats.power import MeanDoubt, evidence
from steelyard.stats.special import normal_cdf

MODEL = "model"
SCREENING_TOLERANCE = 2e-9
"""More than the rounding error that the gate allows for, so that no look is screened out that could raise an alarm."""
BATCH = 250
"""Repeats that are decided at once."""


class Cell(NamedTuple):
    suite: str
    cases: int
    baseline: int
    change: str
    most: int = rounds.DEFAULT_MAX_SAMPLES
    least: int = 1


class Suite(NamedTuple):
    """The outcomes of one repeat, of which a run sees as many as it asks for."""

    before: NDArray[np.int64]
    """Passes of the baseline."""
    after: NDArray[np.int64]
    """Passes of the first 1, 2, 3... attempts at each case."""


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


def ending(drawn: Suite, cell: Cell, until: StoppingRule, *, stops_hopeless: bool) -> Ending:
    """One run, asked until it is decided, by the command's own code."""
    size = drawn.before.size
    baseline = side("baseline", np.full(size, cell.baseline), drawn.before, {})
    every = drawn.after
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
        here = {MODEL: rounds.sampling_round(pairing.models[0], MODEL, info, until)}
        decision = gate_sides(baseline, current, cases=until.cases or None, at=here[MODEL]).decision
        hopeless = rounds.hopeless_models(decision, pairing.models, here) if stops_hopeless else set()
        following = rounds.following_round(decision, info, here, until, hopeless)
        if following is None:
            return Ending(decision.verdict, float(fair.sum() + sum(count for count, _ in more.values())) / size)
        info = replace(info, samples=following.samples, more=following.more, stopped=following.stopped)


class Tables:
    """What the library says of a case, for all numbers of passes before and after that are possible."""

    def __init__(self, baseline: int, most: int) -> None:
        shape = most + 1, baseline + 1, most + 1
        self.p, self.drop, self.spread, self.skew, self.unit, self.variance = (np.zeros(shape) for _ in range(6))
        for tried in range(1, most + 1):
            for before, after in product(range(baseline + 1), range(tried + 1)):
                counts, at = PairedCaseCounts(baseline, before, tried, after), (tried, before, after)
                seen = evidence(counts)
                self.p[at], self.drop[at] = fisher_worse(counts), seen.baseline - seen.current
                self.spread[at], self.skew[at] = seen.spread, seen.skew
                # of one attempt no variance is known, and nothing is hopeless yet
                self.unit[at] = seen.current * (1 - seen.current) * tried / max(1, tried - 1)
        one = [evidence(PairedCaseCounts(baseline, 0, tried, 0)) for tried in range(1, most + 1)]
        self.assumed = np.array([(0.0, 0.0), *((each.prior * each.unit**2, each.prior * each.unit**3) for each in one)])


tables = cache(Tables)


def quick_endings(drawn: Sequence[Suite], cell: Cell, until: StoppingRule, *, stops_hopeless: bool) -> list[Ending]:
    """The same as `ending` of each at a fraction of its cost.

    A look that can raise no alarm, because the drop of the mean or no single case reaches its level, is decided by the test of the margin alone, of
    all repeats at once; all others are decided by the tests of the gate themselves.
    """
    found: list[Ending | None] = [None] * len(drawn)
    steps = design(until.most, baseline_attempts=cell.baseline, alpha=until.alpha, first=until.least)
    for look in range(len(steps)):
        open_runs = [place for place, each in enumerate(found) if each is None]
        if not open_runs:
            break
        ended = _ended([drawn[place] for place in open_runs], steps[look:], cell, until, stops_hopeless)
        for place, each in zip(open_runs, ended, strict=True):
            found[place] = each
    return [each for each in found if each]


def _ended(
    drawn: Sequence[Suite], steps: Sequence[PlannedLook], cell: Cell, until: StoppingRule, stops_hopeless: bool
) -> list[Ending | None]:
    """How runs end at the first of the looks that are left; None for those that go on."""
    step, following = steps[0], tuple(steps[1:])
    known = tables(cell.baseline, until.most)
    attempts = np.full((len(drawn), cell.cases), step.attempts)
    before = np.array([each.before for each in drawn])
    passes = np.array([each.after[step.attempts - 1] for each in drawn])
    at = attempts, before, passes
    p, drops = known.p[at], known.drop[at]
    drop, spread = drops.sum(axis=1), known.spread[at].sum(axis=1)
    assumed = known.assumed[attempts].mean(axis=1)
    nameable = attempts >= MIN_ATTEMPTS_TO_NAME_CASE if cell.baseline >= MIN_ATTEMPTS_TO_NAME_CASE else attempts < 0
    least_p = np.where(nameable, p, 1.0).min(axis=1)
    doubtful = np.where(drops > until.margin + DECISION_TOLERANCE, p, 1.0)
    chances = np.ones(len(drawn))
    if stops_hopeless:
        chances = _chances_to_decide(steps, at, drop, spread, known, until)
    found: list[Ending | None] = []
    for place, each in enumerate(drawn):
        tried, passed = attempts[place], passes[place]
        here = SamplingRound(step, not following, following)
        error = math.sqrt(spread[place])
        p_mean = math.erfc(drop[place] / error / math.sqrt(2)) / 2 if error else float(drop[place] <= 0)
        can_alarm, is_alarm = least_p[place] <= step.alarm / 2 + SCREENING_TOLERANCE, False
        if p_mean <= step.alarm + SCREENING_TOLERANCE:
            counts = np.stack([np.full(cell.cases, cell.baseline), each.before, tried, passed], axis=1)
            p_suite = max(p_mean, stratified_worse(starmap(PairedCaseCounts, counts.tolist())))
            can_alarm |= p_suite <= step.alarm + SCREENING_TOLERANCE
            # the test of cases takes at most half of the level from the test of the suite
            is_alarm = p_suite <= step.alarm / 2
        suspects = np.flatnonzero(doubtful[place] <= rounds.SUSPICIOUS_P_VALUE)
        verdict: GateVerdict
        lowest_p = doubtful[place].min()
        if is_alarm and following:
            verdict = REGRESSED
        elif can_alarm or not following:
            exact = _look(cell, until, here, each.before, tried, passed, {})
            verdict = exact.verdict
            # a case that is named, and only warned about, is no suspect any more
            lowest_p = min((one.p for one in exact.suspects), default=1.0)
        else:
            doubt = MeanDoubt(spread[place], known.skew[at][place].sum(), *assumed[place])
            within = doubt.within(drop[place], until.margin * cell.cases, step.cleared_level)
            verdict = NOT_REGRESSED if is_at_most(within.p, step.cleared_level) else CANNOT_TELL
        used = int(tried.sum())
        if verdict == NOT_REGRESSED and following and until.cases == "fail" and suspects.size:
            further = {
                int(case): (until.most - int(tried[case]), int(each.after[-1, case] - passed[case]))
                for case in suspects
            }
            # these cases get all attempts and are looked at once more
            verdict = _look(cell, until, SamplingRound(step, True), each.before, tried, passed, further).verdict
            used += sum(count for count, _ in further.values())
        may_decide = lowest_p <= rounds.NAMEABLE_P_VALUE or chances[place] >= rounds.HOPELESS_CHANCE
        if verdict == CANNOT_TELL and following and may_decide:
            found.append(None)
            continue
        found.append(Ending(verdict, used / cell.cases))
    return found


def _chances_to_decide(
    steps: Sequence[PlannedLook],
    at: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    drop: Floats,
    spread: Floats,
    known: Tables,
    until: StoppingRule,
) -> Floats:
    """As `stats.futility.chance_to_decide`, of all runs at once."""
    attempts, units = at[0], known.unit[at]
    cleared, worse = np.zeros(len(drop)), np.zeros(len(drop))
    is_open = (attempts < 2).any(axis=1)
    now = (units / attempts).sum(axis=1)
    baseline = np.maximum(0.0, spread - now)
    for later in steps[1:]:
        left = (units / later.attempts).sum(axis=1)
        error, moves = np.sqrt(baseline + left), np.sqrt(np.maximum(0.0, now - left))
        is_open |= moves == 0
        moves[moves == 0] = 1.0
        reach = until.margin * attempts.shape[1] + _quantile(later.cleared_level) * error
        cleared = np.maximum(cleared, _normal((reach - drop) / moves))
        worse = np.maximum(worse, _normal((drop + _quantile(later.alarm) * error) / moves))
    return np.where(is_open, 1.0, np.minimum(1.0, cleared + worse))


_quantile = lru_cache(4096)(NormalDist().inv_cdf)


def _normal(values: Floats) -> Floats:
    return np.array([normal_cdf(value) for value in values.tolist()])


def _look(
    cell: Cell,
    until: StoppingRule,
    at: SamplingRound,
    before: NDArray[np.int64],
    attempts: NDArray[np.int64],
    passes: NDArray[np.int64],
    further: dict[int, tuple[int, int]],
) -> ModelVerdict:
    """The verdict of one look, by the tests of the gate."""
    levels, _ = look_levels((), "", until.alpha, at)
    names = [f"{place:04}" for place in range(before.size)]
    cases: PairedCounts | list[PairedCase] = PairedCounts(
        names, np.stack([np.full(before.size, cell.baseline), before, attempts, passes], axis=1)
    )
    if levels.final:
        cases = [
            PairedCase(
                case=names[place],
                baseline_attempts=cell.baseline,
                baseline_passes=old,
                current_attempts=tried,
                current_passes=passed,
                further_attempts=further[place][0] if place in further else None if further else 0,
                further_passes=further[place][1] if place in further else 0,
            )
            for place, (old, tried, passed) in enumerate(
                zip(before.tolist(), attempts.tolist(), passes.tolist(), strict=True)
            )
        ]
    model = tested_model(
        MODEL, cases, alpha=levels.alarm, models=1, on="passed", seed=0, can_cases_fail=until.cases == "fail"
    )
    rule = DecisionRule(
        alpha=levels.alarm,
        margin=until.margin,
        threshold=until.margin,
        min_effect=until.min_effect,
        cases="fail" if until.cases == "fail" else "warn",
        on="passed",
        seed=0,
        cleared_level=levels.cleared,
        final_level=levels.final,
    )
    return model_verdict(model, rule, level=levels.alarm)


def drawn_suite(rates: Floats, later: Floats, cell: Cell, chance: np.random.Generator) -> Suite:
    """The outcomes of one repeat, whether or not a run will ask for them."""
    before = chance.binomial(cell.baseline, rates)
    after = np.cumsum(chance.random((cell.most, rates.size)) < later, axis=0, dtype=np.int64)
    return Suite(before, after)


def stopping_rule(cell: Cell) -> StoppingRule:
    return StoppingRule(
        baseline="baseline",
        most=cell.most,
        least=cell.least,
        cases="warn" if cell.change == "equal model" else "fail",
    )


def endings(cell: Cell, *, repeats: int, seed: int, is_whole: bool = False) -> dict[bool, list[Ending]]:
    """How each repeat ends without and with an early stop; `is_whole` takes all of the command's code."""
    chance = np.random.default_rng([seed, cell.cases, cell.baseline, *cell.suite.encode(), *cell.change.encode()])
    move, drop = CHANGES[cell.change]
    until = stopping_rule(cell)
    found: dict[bool, list[Ending]] = {False: [], True: []}
    chances = chance.spawn(repeats)
    for first in range(0, repeats, BATCH):
        batch = []
        for each in chances[first : first + BATCH]:
            rates = SUITES[cell.suite](cell.cases, each)
            batch.append(drawn_suite(rates, move(rates, drop), cell, each))
        for stops, ended in found.items():
            if is_whole:
                ended.extend(ending(drawn, cell, until, stops_hopeless=stops) for drawn in batch)
            else:
                ended.extend(quick_endings(batch, cell, until, stops_hopeless=stops))
    return found


def row(cell: Cell, *, repeats: int, seed: int) -> list[str]:
    """The row of a cell: the shares of verdicts and the attempts used, without and with an early stop."""
    found = endings(cell, repeats=repeats, seed=seed)
    shown = [cell.suite, str(cell.cases), str(cell.baseline), cell.change]
    first = np.mean([one.attempts for one in found[False]])
    for stops, ended in found.items():
        verdicts = [one.verdict for one in ended]
        attempts = np.array([one.attempts for one in ended])
        red, green = verdicts.count(REGRESSED) / repeats, verdicts.count(NOT_REGRESSED) / repeats
        shown.append(" / ".join(f"{100 * share:.1f}" for share in (red, green, 1 - red - green)))
        shown.append(", ".join(f"{value:.1f}" for value in (attempts.mean(), *np.quantile(attempts, [0.5, 0.9]))))
        shown += [f"{100 * (1 - attempts.mean() / first):.0f}%"] if stops else []
    return shown


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--repeats", type=int, default=2000)
    asked.add_argument("--cases", default="20,50,150")
    asked.add_argument("--baselines", default="1,5,10,30")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--most", type=int, default=rounds.DEFAULT_MAX_SAMPLES)
    asked.add_argument("--least", type=int, default=1)
    asked.add_argument("--suites", default=",".join(SUITES))
    asked.add_argument("--changes", default=";".join(CHANGES), help="separated by semicolons")
    asked.add_argument("--jobs", type=int, default=1, help="processes at once")
    options = asked.parse_args()
    numbers = ([int(each) for each in given.split(",")] for given in (options.cases, options.baselines))
    cells = [
        Cell(suite, cases, baseline, change, options.most, options.least)
        for cases, baseline, suite, change in product(*numbers, options.suites.split(","), options.changes.split(";"))
    ]
    heads = ["suite", "cases", "baseline", "change"]
    for label in ("no early stop", "early stop"):
        heads += [f"{label}: regressed / not / cannot tell", "attempts: mean, median, 90%"]
    heads.append("saved")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    failed = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = [pool.submit(row, cell, repeats=options.repeats, seed=options.seed) for cell in cells]
        for cell, found in zip(cells, rows, strict=True):
            if error := found.exception():
                # the other cells took minutes, and are not lost for this one
                failed += 1
                print(f"{cell.suite}, {cell.cases}, {cell.baseline}, {cell.change}: {error!r}", file=sys.stderr)
                continue
            print(f"| {' | '.join(found.result())} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
