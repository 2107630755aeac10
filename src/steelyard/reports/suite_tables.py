"""What suites score, as rows that every report shows alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.analysis.suites import SuiteScores, ordered_class_counts
from steelyard.analysis.summary import ModelSummary
from steelyard.reports.figures import model_label, rate
from steelyard.text import line


class SuiteTable(NamedTuple):
    """The suites under one model."""

    model: str
    head: tuple[str, ...]
    """The columns between the name of a suite and its counts by class."""
    classes: tuple[str, ...]
    """The classes that occur, a column each."""
    rows: tuple[tuple[str, ...], ...]
    """A row per suite, and the last one for all of them."""
    beneath: tuple[tuple[str, str], ...]
    """Further figures of all suites, by name."""


def suite_tables(models: Sequence[ModelSummary]) -> list[SuiteTable]:
    """The scores of the suites, a table per model; empty without suites."""
    return [_suite_table(model_label(model.model, model.tier), model.suites) for model in models if model.suites]


def _suite_table(model: str, scores: SuiteScores) -> SuiteTable:
    together: Counter[str] = Counter()
    for suite in scores.suites:
        together.update(suite.classes)
    classes = tuple(ordered_class_counts(together))
    missing = sum(suite.missing for suite in scores.suites)
    rows = [
        (
            line(suite.suite),
            rate(suite.score),
            f"{suite.cases:,}",
            *([f"{suite.missing:,}"] if missing else []),
            *(f"{suite.classes.get(name, 0):,}" for name in classes),
        )
        for suite in scores.suites
    ]
    last = (
        "overall",
        rate(scores.overall),
        f"{sum(suite.cases for suite in scores.suites):,}",
        *([f"{missing:,}"] if missing else []),
        *(f"{together[name]:,}" for name in classes),
    )
    beneath = [
        ("micro pass rate", scores.micro),
        ("weighted", scores.weighted),
        ("penalised", scores.penalised),
        ("latency score", scores.latency if scores.latency.value is not None else None),
        ("as expected", scores.agreement),
    ]
    return SuiteTable(
        model=model,
        head=("score", "cases", *(["missing"] if missing else [])),
        classes=tuple(map(line, classes)),
        rows=(*rows, last),
        beneath=tuple((name, rate(estimate)) for name, estimate in beneath if estimate is not None),
    )
