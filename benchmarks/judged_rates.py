"""How often corrected rates and differences hold, how many labels they save, and what the package truescore makes of the same.

    python benchmarks/judged_rates.py [--repeats 2000]
    pip install truescore && python benchmarks/judged_rates.py

Two models answer the same cases. A judge that is wrong about them in different ways passes or fails every answer, and people
label some. In 200 settings the intervals of both rates and of their difference are counted that hold the true value. The
arithmetic is that of `steelyard.stats.judged` for whole arrays of draws; in every setting some draws go through the library
too, and must give the same.
"""

from __future__ import annotations

import argparse
import importlib
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from steelyard.comparison.judged import CORRECTED_LEVEL_SHARE
from steelyard.stats.intervals import mean_interval
from steelyard.stats.judged import JudgedAnswer, corrected_difference, corrected_rate, transferred_rate

LABELS = (20, 35, 50, 100, 200)
RATES = ((0.5, 0.5), (0.8, 0.7), (0.95, 0.9), (0.3, 0.5))
JUDGES = {
    "0.60": ((0.6, 0.6), (0.6, 0.6)),
    "0.80": ((0.8, 0.8), (0.8, 0.8)),
    "0.95": ((0.95, 0.95), (0.95, 0.95)),
    "lenient, strict": ((0.95, 0.6), (0.6, 0.95)),
    "0.95, 0.60": ((0.95, 0.95), (0.6, 0.6)),
}
"""How often the judge passes right answers and fails wrong ones, for each model."""
CASES = 300
ALIKE = 0.5
"""The share of cases that are as hard for one model as for the other."""
PROMISED = 0.93


class Setting(NamedTuple):
    """What is simulated."""

    labels: int
    rates: tuple[float, float]
    judge: str
    is_shared: bool
    """Whether people label the answers of both models to the same cases."""


class Draws(NamedTuple):
    """One model in many repeats: arrays of repeats by cases."""

    truth: Any
    passed: Any
    labelled: Any


class Rates(NamedTuple):
    """Corrected rates of many repeats."""

    value: Any
    low: Any
    high: Any
    influence: Any


def settings() -> list[Setting]:
    return [Setting(*each) for each in product(LABELS, RATES, JUDGES, (True, False))]


def drawn(
    setting: Setting, repeats: int, chance: np.random.Generator, known: dict[str, Any] | None = None
) -> tuple[Draws, Draws]:
    """The answers of both models."""
    hard = chance.random((repeats, CASES))
    other = np.where(chance.random(hard.shape) < ALIKE, hard, chance.random(hard.shape))
    picked = chance.permuted(np.broadcast_to(np.arange(CASES), hard.shape), axis=1) < setting.labels
    again = picked if setting.is_shared else chance.permuted(picked, axis=1)
    found = []
    judges = (known or JUDGES)[setting.judge]
    for difficulty, rate, (right, wrong), labelled in zip(
        (hard, other), setting.rates, judges, (picked, again), strict=True
    ):
        truth = difficulty < rate
        passed = np.where(truth, chance.random(hard.shape) < right, chance.random(hard.shape) >= wrong)
        found.append(Draws(truth, passed, labelled))
    return found[0], found[1]


def corrected(draws: Draws, upper: float = 0.975) -> Rates:
    """`stats.judged.corrected_rate` of every repeat, each case with one answer; `upper` leaves 1 - upper on each side."""
    truth, passed, labelled = draws
    expected, influence = np.zeros(truth.shape), np.zeros(truth.shape)
    strata = []
    for opinion in (True, False):
        among = passed == opinion
        told = (among & labelled).sum(axis=1)
        right = (among & labelled & truth).sum(axis=1)
        mean = np.where(told > 0, right / np.maximum(told, 1), 0.5)
        strata.append((mean, told, among.sum(axis=1) / CASES))
        expected += among * mean[:, None]
        weight = among.sum(axis=1) / np.maximum(told, 1)
        influence += (among & labelled) * (truth - mean[:, None]) * weight[:, None]
    value = expected.mean(axis=1)
    by_cases = stdtrit(CASES - 1, upper) * expected.std(axis=1, ddof=1) / np.sqrt(CASES)
    influence = (influence + expected - value[:, None]) / CASES
    ends = []
    for side in (0, 1):
        whole = np.full(len(truth), upper)
        distances = [share * np.abs(label_ends(mean, told, whole)[side] - mean) for mean, told, share in strata]
        together, apart = np.hypot(*distances), distances[0] + distances[1]
        # `stratified.stratified_interval`: each stratum at the level at which all reach as far as their squares do
        joint = ndtr(ndtri(upper) * together / np.where(apart > 0, apart, 1))
        by_labels = sum(share * label_ends(mean, told, joint)[side] for mean, told, share in strata)
        ends.append(np.hypot(by_cases, by_labels - value))
    return Rates(value, np.maximum(value - ends[0], 0), np.minimum(value + ends[1], 1), influence)


def label_ends(mean: Any, told: Any, upper: Any) -> tuple[Any, Any]:
    """Wilson's interval with Student's t for z of the labels of one opinion."""
    spread = stdtrit(np.maximum(told - 1, 1), upper) ** 2 / np.maximum(told, 1)
    root = np.sqrt(spread * mean * (1 - mean) + spread**2 / 4)
    low, high = (mean + spread / 2 - root) / (1 + spread), (mean + spread / 2 + root) / (1 + spread)
    return np.where(told > 0, low, 0.0), np.where(told > 0, high, 1.0)


def difference(first: Rates, second: Rates) -> tuple[Any, Any]:
    """`stats.judged.corrected_difference` of every repeat."""
    scale = np.linalg.norm(first.influence, axis=1) * np.linalg.norm(second.influence, axis=1)
    correlation = (first.influence * second.influence).sum(axis=1) / np.where(scale > 0, scale, 1)

    def distance(one: Any, other: Any) -> Any:
        return np.sqrt(np.maximum((one - other) ** 2 + 2 * (1 - correlation) * one * other, 0))

    between = second.value - first.value
    return (
        np.maximum(-1, between - distance(second.value - second.low, first.high - first.value)),
        np.minimum(1, between + distance(second.high - second.value, first.value - first.low)),
    )


def answers(draws: Draws, repeat: int) -> list[JudgedAnswer]:
    """One repeat as the library takes it."""
    columns = zip(draws.truth[repeat], draws.passed[repeat], draws.labelled[repeat], strict=True)
    return [
        JudgedAnswer(case, bool(passed), label=float(truth) if is_labelled else None)
        for case, (truth, passed, is_labelled) in enumerate(columns)
    ]


def check(draws: tuple[Draws, Draws], rates: tuple[Rates, Rates], between: tuple[Any, Any], repeats: int) -> None:
    """Some draws by the library itself."""
    for repeat in range(repeats):
        one, two = (corrected_rate(answers(each, repeat)) for each in draws)
        assert one is not None
        assert two is not None
        for found, ours in zip((one, two), rates, strict=True):
            assert np.allclose(
                [found.value, *found.interval], [ours.value[repeat], ours.low[repeat], ours.high[repeat]]
            )
        assert np.allclose(corrected_difference(one, two), [between[0][repeat], between[1][repeat]])


class Coverage(NamedTuple):
    """How often intervals hold the truth in one setting, and how wide they are."""

    setting: Setting
    first: float
    second: float
    difference: float
    width: float
    """Of the first model's rate, on average."""
    labels_only: float
    """The same from the labels alone."""

    @property
    def worst(self) -> float:
        return min(self.first, self.second, self.difference)


def coverage(setting: Setting, repeats: int, seed: int, checked: int = 2) -> Coverage:
    """Count one setting."""
    draws = drawn(setting, repeats, np.random.default_rng(seed))
    first, second = corrected(draws[0]), corrected(draws[1])
    between = difference(first, second)
    check(draws, (first, second), between, checked)
    (one, two), told = setting.rates, setting.labels
    right = np.bincount((draws[0].truth & draws[0].labelled).sum(axis=1), minlength=told + 1) / repeats
    alone = 0.0
    for count in np.flatnonzero(right):
        interval = mean_interval([1.0, 0.0], counts=[int(count), told - int(count)], attempts=told)
        assert interval is not None
        alone += right[count] * (interval.high - interval.low)
    return Coverage(
        setting,
        float(((first.low <= one) & (one <= first.high)).mean()),
        float(((second.low <= two) & (two <= second.high)).mean()),
        float(((between[0] <= two - one) & (two - one <= between[1])).mean()),
        float((first.high - first.low).mean()),
        float(alone),
    )


def labels_for(width: float, rate: float, repeats: int, chance: np.random.Generator) -> int:
    """How many labels alone give an interval of this width on average."""
    low, high = 2, 4000
    while low < high:
        told = (low + high) // 2
        counts = np.bincount(chance.binomial(told, rate, repeats), minlength=told + 1) / repeats
        mean = 0.0
        for count in np.flatnonzero(counts):
            interval = mean_interval([1.0, 0.0], counts=[int(count), told - int(count)], attempts=told)
            assert interval is not None
            mean += counts[count] * (interval.high - interval.low)
        low, high = (low, told) if mean <= width else (told + 1, high)
    return low


def told_coverage(repeats: int, first_seed: int) -> None:
    found = [coverage(setting, repeats, seed) for seed, setting in enumerate(settings(), first_seed)]
    worst = min(found, key=lambda each: each.worst)
    low = sum(each.worst < PROMISED for each in found)
    print(f"{len(found)} settings, {repeats:,} repeats each, {low} below {PROMISED:.0%}")
    print(f"worst {worst.worst:.1%}: {worst.setting}")
    for name in ("first", "second", "difference"):
        values = [getattr(each, name) for each in found]
        print(f"{name:<10} {min(values):.1%} to {max(values):.1%}, mean {np.mean(values):.1%}")
    chance = np.random.default_rng(1)
    print("\nlabels  judge  rate   width  labels alone  the same width by labels alone takes")
    for each in found:
        told, (rate, _), judge, is_shared = each.setting
        if is_shared and judge in ("0.60", "0.80", "0.95") and rate in (0.5, 0.8):
            needed = labels_for(each.width, rate, 300, chance)
            print(f"{told:6}   {judge}  {rate:.2f}  {each.width:.3f}         {each.labels_only:.3f}  {needed} labels")


LOOK = 0.04
"""What the first look of a gate may spend on false alarms, with an alpha of 5%."""
UNCHANGED_JUDGES = {name: (one, one) for name, (one, _) in JUDGES.items() if name != "0.95, 0.60"} | {
    "strict": ((0.6, 0.95), (0.6, 0.95))
}
UNCHANGED_RATES = (0.3, 0.5, 0.8, 0.95)


def false_alarms(setting: Setting, repeats: int, seed: int) -> float:
    """How often `gate --corrected` calls a model worse that is as good as before, judged by the same judges."""
    draws = drawn(setting, repeats, np.random.default_rng(seed), UNCHANGED_JUDGES)
    _, high = difference(*(corrected(each, 1 - CORRECTED_LEVEL_SHARE * LOOK) for each in draws))
    return float((high < 0).mean())


def told_false_alarms(repeats: int, first_seed: int) -> None:
    every = product(LABELS, UNCHANGED_RATES, UNCHANGED_JUDGES, (True, False))
    found = []
    for seed, (labels, rate, judge, is_shared) in enumerate(every, first_seed):
        setting = Setting(labels, (rate, rate), judge, is_shared)
        found.append((false_alarms(setting, repeats, seed), setting))
    worst, setting = max(found)
    mean = np.mean([each for each, _ in found])
    print(
        f"\nnothing changed, {len(found)} settings, {repeats:,} repeats: a look of {LOOK:.1%} is red in at most {worst:.2%}"
    )
    print(f"worst: {setting}; mean {mean:.2%}")


def told_transfer(repeats: int) -> None:
    """Rates of a model without labels, by the labels of another."""
    print("\na model without labels, by 200 labels of another model")
    for judge in JUDGES:
        first, second = drawn(Setting(200, (0.8, 0.6), judge, True), repeats, np.random.default_rng(7))
        held, unknown = 0, 0
        for repeat in range(repeats):
            unlabelled = [each._replace(label=None) for each in answers(second, repeat)]
            found = transferred_rate(unlabelled, answers(first, repeat))
            unknown += found is None
            held += found is not None and found.interval.low <= 0.6 <= found.interval.high
        print(
            f"  judge {judge:<16} {held / max(repeats - unknown, 1):.1%} hold the truth, {unknown} of {repeats} unknown"
        )


def told_truescore(repeats: int) -> None:
    """The same draws by the package truescore."""
    try:
        package = importlib.import_module("truescore")
    except ImportError:
        print("\ntruescore is not installed, so it is not compared")
        return
    print("\nlabels  judge  rate   we hold  truescore holds   our width  truescore's")
    for told, rate, judge in product((20, 50, 200), (0.5, 0.8, 0.95), ("0.60", "0.80", "0.95")):
        draws, _ = drawn(Setting(told, (rate, rate), judge, True), repeats, np.random.default_rng(told))
        ours = corrected(draws)
        held, width = 0, 0.0
        for repeat in range(repeats):
            index = np.flatnonzero(draws.labelled[repeat])
            gold = draws.truth[repeat][index].astype(float)
            theirs = package.ppi_estimate(draws.passed[repeat].astype(float), gold, index)
            held += theirs.low <= rate <= theirs.high
            width += (theirs.high - theirs.low) / repeats
        we = float(((ours.low <= rate) & (rate <= ours.high)).mean())
        print(
            f"{told:6}   {judge}  {rate:.2f}    {we:.1%}            {held / repeats:.1%}       "
            f"{float((ours.high - ours.low).mean()):.3f}         {width:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=10_000, help="of the first setting; each has the next one")
    options = parser.parse_args()
    told_coverage(options.repeats, options.seed)
    told_false_alarms(options.repeats, 2 * options.seed)
    told_transfer(min(options.repeats, 300))
    told_truescore(min(options.repeats, 500))


if __name__ == "__main__":
    main()
