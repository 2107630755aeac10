"""The published tables of ProjectScylla, figure by figure, from the runs that `steelyard tiers` reads: a part of audits.py."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import NormalDist, StatisticsError, correlation, fmean, median, pstdev, quantiles, stdev
from typing import Any, NamedTuple

CRITERIA = ("functional", "code_quality", "proportionality", "build_pipeline", "overall_quality")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?|nan|—")


class Figure(NamedTuple):
    """A published figure and ours."""

    name: str
    published: str
    ours: float | None

    @property
    def is_reproduced(self) -> bool:
        """Whether ours, rounded as it is printed, is what is printed."""
        if self.published in ("nan", "—"):
            return self.ours is None
        digits = len(self.published.partition(".")[2])
        return self.ours is not None and abs(float(self.published) - self.ours) <= 0.5001 * 10**-digits


class Experiment(NamedTuple):
    """What the commands say of one data folder, and its own rows."""

    runs: list[dict[str, Any]]
    rows: list[dict[str, str]]
    """The table of runs, for tokens."""
    judges: list[dict[str, str]]
    criteria: list[dict[str, str]]
    tiers: dict[str, Any]
    """The tiers of the analysis, by name."""

    def by(self, *keys: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
        found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for run in self.runs:
            found.setdefault(tuple(run[key] for key in keys), []).append(run)
        return found


def experiment(folder: Path, analysis: Mapping[str, Any]) -> Experiment:
    rows, judges, criteria = (
        list(csv.DictReader((folder / f"{name}.csv").open(encoding="utf-8", newline="")))
        for name in ("runs", "judges", "criteria")
    )
    (model,) = analysis["models"]
    return Experiment(analysis["runs"], rows, judges, criteria, {tier["tier"]: tier for tier in model["tiers"]})


def cells(path: Path) -> list[list[str]]:
    """The rows of a table in Markdown, without its head."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line.startswith("|")]
    # a bar within a cell is no border of one
    rows = [[cell.strip(" *") for cell in line.replace("|Δ Score|", "").strip("|").split("|")] for line in lines]
    return rows[2:]


def numbers(cell: str) -> list[str]:
    return NUMBER.findall(cell.replace("±", " "))


def sample_deviation(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def scores(runs: Iterable[Mapping[str, Any]], kind: str = "score") -> list[float]:
    return [run["impl_rates"][kind] for run in runs if kind in run["impl_rates"]]


def pass_rate(runs: Sequence[Mapping[str, Any]]) -> float:
    return fmean(run["passed"] for run in runs)


def price(runs: Sequence[Mapping[str, Any]]) -> float:
    return math.fsum(run["cost_usd"] for run in runs) / sum(bool(run["passed"]) for run in runs)


def consistency(values: Sequence[float]) -> float:
    deviation = sample_deviation(values)
    return 1.0 if deviation is None else max(0.0, 1 - deviation / fmean(values))


def tier_summary(table: Path, found: Experiment) -> Iterator[Figure]:
    for _, tier, subtests, rate, mean, middle, steady, cop in cells(table):
        runs = found.by("tier")[(tier,)]
        said = found.tiers[tier]
        values = scores(runs)
        yield Figure(f"{tier} subtests", subtests, len({run["case"] for run in runs}))
        yield Figure(f"{tier} pass rate", numbers(rate)[0], said["pass_rate"]["value"])
        mean_text, deviation = numbers(mean)
        yield Figure(f"{tier} mean score", mean_text, said["by_impl_rate"]["score"]["mean"])
        yield Figure(f"{tier} deviation", deviation, sample_deviation(values))
        yield Figure(f"{tier} median", middle, median(values))
        yield Figure(f"{tier} consistency", steady, consistency(values))
        yield Figure(f"{tier} cost of pass", cop, said["cost_of_pass"]["value"])


def comparison(kind: str) -> Callable[[Path, Experiment], Iterator[Figure]]:
    def figures(table: Path, found: Experiment) -> Iterator[Figure]:
        def values(tier: str) -> list[float]:
            runs = found.by("tier")[(tier,)]
            return [float(run["passed"]) for run in runs] if kind == "pass" else scores(runs, "recorded")

        omnibus = re.search(r"H\(6\)=(\S+?), p=(\S+)", table.read_text("utf-8"))
        if omnibus:
            statistic = kruskal([values(tier) for tier in found.tiers])
            yield Figure("H", omnibus[1], statistic)
            yield Figure("p of H", omnibus[2], None if statistic is None else chi_square_tail(statistic, 6))
        for row in cells(table):
            before, after = row[1].partition(" ")[0].split("→")
            for text, tier in zip(numbers(row[2]), (before, after), strict=True):
                yield Figure(f"{row[1]} n of {tier}", text, len(found.by("tier")[(tier,)]))
            yield Figure(f"{row[1]} difference", numbers(row[3])[0], fmean(values(after)) - fmean(values(before)))
            yield Figure(f"{row[1]} Cliff", numbers(row[5])[0], cliff(values(after), values(before)))

    return figures


def kruskal(groups: Sequence[Sequence[float]]) -> float | None:
    """Kruskal and Wallis 1952, with the correction for ties; None where all values are one."""
    every = [value for group in groups for value in group]
    count, places = len(every), ranks(every)
    ties = 1 - math.fsum(size**3 - size for size in Counter(every).values()) / (count**3 - count)
    if not ties:
        return None
    start, total = 0, 0.0
    for group in groups:
        total += math.fsum(places[start : start + len(group)]) ** 2 / len(group)
        start += len(group)
    return (12 / (count * (count + 1)) * total - 3 * (count + 1)) / ties


def ranks(values: Sequence[float]) -> list[float]:
    """From 1, ties at their mean."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            found[place] = (start + 1 + end) / 2
        start = end
    return found


def chi_square_tail(value: float, degrees: int) -> float:
    """For an even number of degrees."""
    half = value / 2
    return math.exp(-half) * math.fsum(half**term / math.factorial(term) for term in range(degrees // 2))


def cliff(after: Sequence[float], before: Sequence[float]) -> float:
    return fmean((one > other) - (one < other) for one in after for other in before)


def judge_agreement(table: Path, found: Experiment) -> Iterator[Figure]:
    # as published: their key has no experiment, so runs of several tasks are one
    by_run = judged_runs(found, ("tier", "subtest", "run_number"))
    for row, (one, other) in zip(cells(table), combinations("123", 2), strict=False):
        both = [(run[one], run[other]) for run in by_run.values() if one in run and other in run]
        left, right = [a for a, _ in both], [b for _, b in both]
        yield Figure(f"{row[0]} Spearman", row[1], correlation(ranks(left), ranks(right)))
        yield Figure(f"{row[0]} Pearson", row[2], correlation(left, right))
        yield Figure(f"{row[0]} distance", row[3], fmean(abs(a - b) for a, b in both))
    alpha = re.search(r"\(interval\): (\S+)", table.read_text("utf-8"))
    assert alpha is not None
    yield Figure("alpha", alpha[1], krippendorff([list(run.values()) for run in by_run.values()]))


def judged_runs(found: Experiment, keys: Sequence[str]) -> dict[tuple[str, ...], dict[str, float]]:
    """The mean score of each judge for what has the same keys."""
    given: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in found.judges:
        run = tuple(row[key] for key in keys)
        given.setdefault(run, {}).setdefault(row["judge_number"], []).append(float(row["judge_score"]))
    return {run: {judge: fmean(values) for judge, values in of_run.items()} for run, of_run in given.items()}


def krippendorff(units: Iterable[Sequence[float]]) -> float:
    """Alpha for intervals (Krippendorff 2004): 1 - disagreement within units / disagreement between any two values."""
    pairable = [unit for unit in units if len(unit) > 1]
    every = [value for unit in pairable for value in unit]
    within = math.fsum(2 * pstdev(unit) ** 2 * len(unit) ** 2 / (len(unit) - 1) for unit in pairable) / len(every)
    return 1 - within / (2 * pstdev(every) ** 2 * len(every) / (len(every) - 1))


def criteria(table: Path, found: Experiment) -> Iterator[Figure]:
    given: dict[str, list[float]] = {}
    for row in found.criteria:
        if row["criterion_score"] not in ("", "N/A"):
            given.setdefault(row["criterion"], []).append(float(row["criterion_score"]))
    for name, _, cell, *_ in cells(table):
        mean, deviation = numbers(cell)
        yield Figure(f"{name} mean", mean, fmean(given[name]))
        yield Figure(f"{name} deviation", deviation, sample_deviation(given[name]))


TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


def costs(table: Path, found: Experiment) -> Iterator[Figure]:
    for _, tier, mean, total, cop, *tokens in cells(table):
        runs = found.runs if tier == "Total" else found.by("tier")[(tier,)]
        of_tier = [row for row in found.rows if tier in ("Total", row["tier"])]
        yield Figure(f"{tier} mean cost", mean, fmean(run["cost_usd"] for run in runs))
        yield Figure(f"{tier} cost", total, math.fsum(run["cost_usd"] for run in runs))
        if tier != "Total":
            yield Figure(f"{tier} cost of pass", cop, price(runs))
        for name, text in zip(TOKENS, tokens, strict=True):
            counts = [int(row[name]) for row in of_tier]
            yield Figure(f"{tier} {name}", text, sum(counts) if tier == "Total" else fmean(counts))


def subtests(table: Path, found: Experiment) -> Iterator[Figure]:
    # the table does not say which experiment a row is of: it is found by what it prints
    left = {(tier, case): list(of.values()) for (tier, case), of in _by_subtest(found).items()}
    for _, tier, case, rate, mean, deviation, cost, _, _ in cells(table):
        options = left[tier, case]

        def distance(runs: list[dict[str, Any]], cost: str = cost, mean: str = mean) -> float:
            return abs(fmean(scores(runs)) - float(mean)) + abs(fmean(run["cost_usd"] for run in runs) - float(cost))

        runs = min(options, key=distance)
        options.remove(runs)
        name = f"{tier}/{case}"
        yield Figure(f"{name} pass rate", rate, pass_rate(runs))
        yield Figure(f"{name} mean score", mean, fmean(scores(runs)))
        yield Figure(f"{name} deviation", deviation, sample_deviation(scores(runs)))
        yield Figure(f"{name} cost", cost, fmean(run["cost_usd"] for run in runs))


def _by_subtest(found: Experiment) -> dict[tuple[str, str], dict[str, list[dict[str, Any]]]]:
    grouped: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for (tier, case, name), runs in found.by("tier", "case", "experiment").items():
        grouped.setdefault((tier, case), {})[name] = runs
    return grouped


def statistics(table: Path, found: Experiment) -> Iterator[Figure]:
    columns: dict[str, list[float]] = {
        "Score": scores(found.runs),
        "Cost (USD)": [run["cost_usd"] for run in found.runs],
        "Duration (s)": [run["duration_seconds"] for run in found.runs],
        "Total Tokens": [float(row["total_tokens"]) for row in found.rows],
    }
    for _, metric, *printed in cells(table):
        values = columns[metric]
        low, _, high = quantiles(values, n=4, method="inclusive")
        ours = [len(values), fmean(values), median(values), min(values), max(values), low, high, stdev(values)]
        names = ("n", "mean", "median", "min", "max", "Q1", "Q3", "deviation", "skew", "kurtosis")
        for name, text, value in zip(names, printed, [*ours, *_shape(values)], strict=True):
            yield Figure(f"{metric} {name}", text, value)


def _shape(values: Sequence[float]) -> tuple[float, float]:
    """Skew and excess kurtosis of the values themselves."""
    mean, deviation = fmean(values), pstdev(values)
    third, fourth = (
        math.fsum((value - mean) ** power for value in values) / len(values) / deviation**power for power in (3, 4)
    )
    return third, fourth - 3


def config(table: Path, found: Experiment) -> Iterator[Figure]:
    for name, _, tiers, _, per_tier, per_subtest, total, _ in cells(table):
        runs = found.by("experiment")[(name,)]
        sizes = Counter(tier for tier, _ in {(run["tier"], run["case"]) for run in runs}).values()
        yield Figure(f"{name} tiers", tiers, len({run["tier"] for run in runs}))
        for text, size in zip(numbers(per_tier.replace("-", " ")), sorted({min(sizes), max(sizes)}), strict=True):
            yield Figure(f"{name} subtests", text, size)
        yield Figure(f"{name} runs of a subtest", per_subtest, max(run["number"] for run in runs))
        yield Figure(f"{name} runs", total, len(runs))


def normality(table: Path, found: Experiment) -> Iterator[Figure]:
    for _, tier, metric, count, statistic, p, _ in cells(table):
        runs = found.by("tier")[(tier,)]
        values = scores(runs) if metric == "Score" else [run["cost_usd"] for run in runs]
        w, tail = shapiro(values)
        yield Figure(f"{tier} {metric} n", count, len(values))
        yield Figure(f"{tier} {metric} W", statistic, w)
        yield Figure(f"{tier} {metric} p", p, tail)


def shapiro(values: Sequence[float]) -> tuple[float, float]:
    """W and p of Shapiro and Wilk for 6 or more values, after Royston 1995 (Applied Statistics 44, algorithm AS R94)."""
    n, normal = len(values), NormalDist()
    ordered, mean = sorted(values), fmean(values)
    scale = [normal.inv_cdf((place - 0.375) / (n + 0.25)) for place in range(1, n + 1)]
    total, u = math.fsum(m * m for m in scale), 1 / math.sqrt(n)
    last = scale[-1] / math.sqrt(total) + polynomial(u, 0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056)
    next_to = scale[-2] / math.sqrt(total) + polynomial(u, 0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633)
    rest = (total - 2 * scale[-1] ** 2 - 2 * scale[-2] ** 2) / (1 - 2 * last**2 - 2 * next_to**2)
    weights = [-last, -next_to, *(m / math.sqrt(rest) for m in scale[2:-2]), next_to, last]
    w = math.fsum(a * x for a, x in zip(weights, ordered, strict=True)) ** 2
    w /= math.fsum((x - mean) ** 2 for x in ordered)
    log = math.log(n)
    if n >= 12:
        y = math.log(1 - w)
        center = polynomial(log, -1.5861, -0.31082, -0.083751, 0.0038915)
        spread = math.exp(polynomial(log, -0.4803, -0.082676, 0.0030302))
    else:
        y = -math.log(polynomial(n, -2.273, 0.459) - math.log(1 - w))
        center = polynomial(n, 0.544, -0.39978, 0.025054, -0.0006714)
        spread = math.exp(polynomial(n, 1.3822, -0.77857, 0.062767, -0.0020322))
    return w, 1 - normal.cdf((y - center) / spread)


def polynomial(x: float, *coefficients: float) -> float:
    return math.fsum(factor * x**power for power, factor in enumerate(coefficients))


def overview(table: Path, found: Experiment) -> Iterator[Figure]:
    for name, count, rate, best, mean, total, cop in cells(table):
        runs = found.by("experiment")[(name,)]
        of_tier = {tier: pass_rate(one) for (of, tier), one in found.by("experiment", "tier").items() if of == name}
        yield Figure(f"{name} best tier", best[1:], float(max(of_tier, key=of_tier.__getitem__)[1:]))
        yield Figure(f"{name} runs", count, len(runs))
        yield Figure(f"{name} pass rate", rate, pass_rate(runs))
        yield Figure(f"{name} mean cost", mean, fmean(run["cost_usd"] for run in runs))
        yield Figure(f"{name} cost", total, math.fsum(run["cost_usd"] for run in runs))
        yield Figure(f"{name} cost of pass", cop, price(runs))


TABLES: dict[str, Callable[[Path, Experiment], Iterator[Figure]]] = {
    "tab01_tier_summary": tier_summary,
    "tab02_tier_comparison": comparison("pass"),
    "tab02b_impl_rate_comparison": comparison("impl"),
    "tab03_judge_agreement": judge_agreement,
    "tab04_criteria_performance": criteria,
    "tab05_cost_analysis": costs,
    "tab07_subtest_detail": subtests,
    "tab08_summary_statistics": statistics,
    "tab09_experiment_config": config,
    "tab10_normality_tests": normality,
    "tab11_experiment_overview": overview,
}


def figures(folder: Path, found: Experiment) -> dict[str, list[Figure]]:
    """The figures of each published table, in order; a table that cannot be computed has none."""
    every: dict[str, list[Figure]] = {}
    for path in sorted(folder.glob("tab*.md")):
        compute = TABLES.get(path.stem)
        try:
            every[path.stem] = list(compute(path, found)) if compute else []
        except StatisticsError:
            every[path.stem] = []
    return every
