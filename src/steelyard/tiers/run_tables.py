"""The runs of an experiment as columns: a million of them are read, sorted and added up without an object for each."""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from steelyard.tiers.results import (
    IMPL_RATE_ABOVE_ONE_FLAG,
    IMPL_RATE_DIFFERS_FLAG,
    JUDGES_DISAGREE_FLAG,
    NONZERO_EXIT_CODE_FLAG,
    ImplRate,
    PairBy,
    PassedBy,
    RunFigures,
    RunFlag,
    RunIdentity,
    TierRun,
)

if TYPE_CHECKING:
    import numpy.typing as npt

RUN_NAMES = ("experiment", "model", "tier", "case")
RUN_AMOUNTS = ("score", "impl_rate", "cost_usd", "duration_seconds")
RUN_INTEGERS = ("input_tokens", "output_tokens", "cached_tokens", "exit_code")
PASSED_BY: tuple[PassedBy, ...] = ("", "record", "judges")
RUN_FLAGS: tuple[RunFlag, ...] = (
    JUDGES_DISAGREE_FLAG,
    IMPL_RATE_DIFFERS_FLAG,
    IMPL_RATE_ABOVE_ONE_FLAG,
    NONZERO_EXIT_CODE_FLAG,
)
"""The flags of a run, each a bit in a column, the first the lowest."""
ROWS_AT_A_TIME = 4096
"""Rows that are made into records at a time."""

TierCaseKey = tuple[str, str]
"""What runs of different tiers have in common: the experiment and the case, or the experiment alone."""
RecordT = TypeVar("RecordT")


class NameColumn(NamedTuple):
    """The names in a column: each once, and which of them each row has."""

    names: Sequence[str]
    codes: npt.NDArray[Any]

    def rows(self, rows: Any) -> NameColumn:
        return NameColumn(self.names, self.codes[rows])

    def texts(self) -> list[str]:
        """The name of each row."""
        return [self.names[code] for code in self.codes.tolist()]

    def ranks(self, order: Sequence[str]) -> npt.NDArray[Any]:
        """The place of each row's name in an order that has all of them."""
        import numpy as np

        places = {name: place for place, name in enumerate(order)}
        return np.array([places.get(name, -1) for name in self.names], np.int64).take(self.codes)

    def there(self) -> list[str]:
        """The names that any row has, in the order of their first rows."""
        import numpy as np

        codes, first = np.unique(self.codes, return_index=True)
        return [self.names[code] for code in codes[np.argsort(first)].tolist()]


class NameColumnBuilder:
    """A column of names to which one row after the other is added."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._codes = array("i")

    def append(self, name: str) -> None:
        self._codes.append(self._code(name))

    def replace(self, row: int, name: str) -> None:
        self._codes[row] = self._code(name)

    def __getitem__(self, row: int) -> str:
        return self._names[self._codes[row]]

    def _code(self, name: str) -> int:
        if (code := self._numbers.get(name)) is None:
            code = self._numbers[name] = len(self._names)
            self._names.append(name)
        return code

    def column(self) -> NameColumn:
        """All rows so far."""
        import numpy as np

        return NameColumn(self._names, np.array(self._codes, np.int32))


class RecordTable(Sequence[RecordT]):
    """Records that are made from columns when they are asked for."""

    def __len__(self) -> int:
        raise NotImplementedError

    def _records(self, start: int, stop: int) -> Iterator[RecordT]:
        raise NotImplementedError

    @overload
    def __getitem__(self, at: int) -> RecordT: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[RecordT, ...]: ...
    def __getitem__(self, at: int | slice) -> RecordT | tuple[RecordT, ...]:
        if isinstance(at, slice):
            return tuple(self[place] for place in range(*at.indices(len(self))))
        place = range(len(self))[at]
        return next(self._records(place, place + 1))

    def __iter__(self) -> Iterator[RecordT]:
        for start in range(0, len(self), ROWS_AT_A_TIME):
            yield from self._records(start, min(start + ROWS_AT_A_TIME, len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # it is compared like a list


class RunTable(RecordTable[TierRun]):
    """Runs as columns; a number is NaN where it is not known, and `passed` is -1."""

    def __init__(
        self,
        names: Mapping[str, NameColumn],
        number: npt.NDArray[Any],
        passed: npt.NDArray[Any],
        amounts: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        self.names, self.number, self.passed, self.amounts = names, number, passed, amounts
        """The names by RUN_NAMES, the numbers by RUN_AMOUNTS and RUN_INTEGERS."""

    @classmethod
    def of(cls, runs: Iterable[TierRun]) -> RunTable:
        """The same runs as columns; raises a ValueError for an amount that is not a number."""
        import numpy as np

        if isinstance(runs, RunTable):
            return runs
        names = {name: NameColumnBuilder() for name in RUN_NAMES}
        amounts = {name: array("d") for name in (*RUN_AMOUNTS, *RUN_INTEGERS)}
        numbers, passed = array("q"), array("b")
        # one by one, so that whoever makes them need not hold them all
        for run in runs:
            for name, codes in names.items():
                codes.append(getattr(run, name))
            numbers.append(run.number)
            passed.append(-1 if run.passed is None else run.passed)
            for name, values in amounts.items():
                value = getattr(run, name)
                if value != value:
                    raise ValueError(amount_message(run.identity, name, math.nan))
                values.append(math.nan if value is None else value)
        return cls(
            {name: codes.column() for name, codes in names.items()},
            # the same memory: nothing is added any more
            np.frombuffer(numbers, np.int64),
            np.frombuffer(passed, np.int8),
            {name: np.frombuffer(values, np.float64) for name, values in amounts.items()},
        )

    def __len__(self) -> int:
        return len(self.number)

    def identities(self) -> Iterator[RunIdentity]:
        texts = (self.names[name].texts() for name in RUN_NAMES)
        return map(RunIdentity._make, zip(*texts, self.number.tolist(), strict=True))

    def identity(self, row: int) -> RunIdentity:
        experiment, model, tier, case = (self.names[name].rows([row]).texts()[0] for name in RUN_NAMES)
        return RunIdentity(experiment, model, tier, case, int(self.number[row]))

    def repeated(self) -> npt.NDArray[Any]:
        """For each row the first row with the same identity."""
        import numpy as np

        keys = [self.number, *(self.names[name].codes for name in RUN_NAMES)]
        order = np.lexsort(keys)
        is_new = np.ones(len(order), bool)
        is_new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
        # the sort is stable, so the first of equal rows stands first
        firsts = order[np.flatnonzero(is_new)]
        found = np.empty(len(order), np.int64)
        found[order] = firsts[np.cumsum(is_new) - 1] if len(order) else firsts
        return found

    def _records(self, start: int, stop: int) -> Iterator[TierRun]:
        part = slice(start, stop)
        names = [self.names[name].rows(part).texts() for name in RUN_NAMES]
        amounts = [_known(self.amounts[name][part]) for name in RUN_AMOUNTS]
        whole = [
            [None if value is None else int(value) for value in _known(self.amounts[name][part])]
            for name in RUN_INTEGERS
        ]
        fields = (*RUN_NAMES, "number", "passed", *RUN_AMOUNTS, *RUN_INTEGERS)
        columns = (*names, self.number[part].tolist(), _outcomes(self.passed[part]), *amounts, *whole)
        for values in zip(*columns, strict=True):
            yield TierRun(**dict(zip(fields, values, strict=True)))


def tier_names(runs: Sequence[TierRun]) -> set[str]:
    """The tiers that have a run."""
    return set(runs.names["tier"].there()) if isinstance(runs, RunTable) else {run.tier for run in runs}


def amount_message(run: RunIdentity, name: str, value: float) -> str:
    """What is wrong with an amount."""
    return f"{run}: {name} must be a number of at least 0, got {value}"


def _known(values: npt.NDArray[Any]) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _outcomes(passed: npt.NDArray[Any]) -> list[bool | None]:
    return [None if code < 0 else code == 1 for code in passed.tolist()]


class FigureTable(RecordTable[RunFigures]):
    """The metrics of runs as columns, in the order of the analysis; a number is NaN where it is not known."""

    def __init__(
        self,
        names: Mapping[str, NameColumn],
        integers: Mapping[str, npt.NDArray[Any]],
        metrics: Mapping[str, npt.NDArray[Any]],
        impl_rates: Mapping[ImplRate, npt.NDArray[Any]],
    ) -> None:
        self.names = names
        self.integers = integers
        """`number`, `passed` (-1 where it is not known), `passed_by` and `flags`."""
        self.metrics = metrics
        """By RUN_METRICS; the cost of pass of a run that failed is infinite."""
        self.impl_rates = impl_rates
        """All that are known, as they are: some are above 1."""

    def __len__(self) -> int:
        return len(self.integers["number"])

    def rows(self, rows: Any) -> FigureTable:
        return FigureTable(
            {name: column.rows(rows) for name, column in self.names.items()},
            {name: column[rows] for name, column in self.integers.items()},
            {name: column[rows] for name, column in self.metrics.items()},
            {kind: column[rows] for kind, column in self.impl_rates.items()},
        )

    def has_flag(self, flag: RunFlag) -> npt.NDArray[Any]:
        """Whether each run has a flag."""
        found: npt.NDArray[Any] = (self.integers["flags"] & (1 << RUN_FLAGS.index(flag))) != 0
        return found

    def _records(self, start: int, stop: int) -> Iterator[RunFigures]:
        part = self.rows(slice(start, stop))
        columns: dict[str, Sequence[Any]] = {name: column.texts() for name, column in part.names.items()}
        columns["number"] = part.integers["number"].tolist()
        columns["passed"] = _outcomes(part.integers["passed"])
        columns["passed_by"] = [PASSED_BY[code] for code in part.integers["passed_by"].tolist()]
        columns["flags"] = [
            tuple(compress(RUN_FLAGS, (bits & 1, bits & 2, bits & 4, bits & 8)))
            for bits in part.integers["flags"].tolist()
        ]
        columns |= {name: _known(column) for name, column in part.metrics.items()}
        prices = columns["cost_of_pass"]
        columns["cost_of_pass_infinite"] = [price == math.inf for price in prices]
        columns["cost_of_pass"] = [None if price == math.inf else price for price in prices]
        rates = [_known(column) for column in part.impl_rates.values()]
        columns["impl_rates"] = [
            {kind: rate for kind, rate in zip(part.impl_rates, of_run, strict=True) if rate is not None}
            for of_run in zip(*rates, strict=True)
        ]
        for values in zip(*columns.values(), strict=True):
            yield RunFigures(**dict(zip(columns, values, strict=True)))


class TierRuns:
    """The runs of one tier of one model, in the order of the analysis, with the task of each."""

    def __init__(self, figures: FigureTable, pair_by: PairBy) -> None:
        self.figures, self.pair_by = figures, pair_by

    def __len__(self) -> int:
        return len(self.figures)

    @cached_property
    def starts(self) -> npt.NDArray[Any]:
        """The first row of each task: the rows of a task stand together."""
        return self._starts(("experiment",) if self.pair_by == "experiment" else ("experiment", "case"))

    @cached_property
    def tasks(self) -> list[TierCaseKey]:
        """The tasks in the order of the runs."""
        names = self.figures.names
        experiments = names["experiment"].rows(self.starts).texts()
        if self.pair_by == "experiment":
            return [(experiment, "") for experiment in experiments]
        return list(zip(experiments, names["case"].rows(self.starts).texts(), strict=True))

    @property
    def has_variants(self) -> bool:
        """Whether any task has several cases."""
        return len(self._starts(("experiment", "case"))) > len(self.starts)

    def known(self) -> TierRuns:
        """The runs of which it is known whether they passed."""
        is_known = self.figures.integers["passed"] >= 0
        return self if is_known.all() else TierRuns(self.figures.rows(is_known), self.pair_by)

    def values(self, metric: str) -> npt.NDArray[Any]:
        """The values of a metric that are known."""
        import numpy as np

        values = self.figures.metrics[metric]
        known: npt.NDArray[Any] = values[~np.isnan(values)]
        return known

    def missing(self, metric: str) -> int:
        """Runs of which a metric is not known."""
        return len(self) - len(self.values(metric))

    def known_tasks(self, metric: str) -> int:
        """The number of tasks of which any value is known."""
        import numpy as np

        is_known = ~np.isnan(self.figures.metrics[metric])
        return int(np.count_nonzero(np.logical_or.reduceat(is_known, self.starts))) if len(self) else 0

    def by_task(self, metric: str) -> dict[TierCaseKey, list[float]]:
        """The known values of each task that has any, sorted by name, so that the order of the runs does not matter."""
        import numpy as np

        if not len(self):
            return {}
        values = self.figures.metrics[metric]
        is_known = ~np.isnan(values)
        ends = np.cumsum(np.add.reduceat(is_known.astype(np.int64), self.starts)).tolist()
        flat = values[is_known].tolist()
        found = {
            task: flat[start:end] for task, start, end in zip(self.tasks, [0, *ends], ends, strict=False) if end > start
        }
        # mostly they are in order already, and another dictionary of many tasks is large
        is_sorted = all(map(operator.lt, found, islice(found, 1, None)))
        return found if is_sorted else {task: found[task] for task in sorted(found)}

    def units(self, metric: str) -> dict[TierCaseKey, list[list[float]]]:
        """The known values of each task by what is sampled of it: its variants where it has several, otherwise its runs."""
        if not self.has_variants:
            return {task: [[value] for value in values] for task, values in self.by_task(metric).items()}
        found: dict[TierCaseKey, dict[str, list[float]]] = {}
        names = self.figures.names
        task_of = zip(names["experiment"].texts(), names["case"].texts(), strict=True)
        for (experiment, case), value in zip(task_of, self.figures.metrics[metric].tolist(), strict=True):
            if value == value:
                task = experiment, "" if self.pair_by == "experiment" else case
                found.setdefault(task, {}).setdefault(case, []).append(value)
        return {
            task: list(variants.values())
            if len(variants := found[task]) > 1
            else [[value] for of_variant in variants.values() for value in of_variant]
            for task in sorted(found)
        }

    def _starts(self, names: Iterable[str]) -> npt.NDArray[Any]:
        import numpy as np

        is_new = np.ones(len(self), bool)
        if len(self):
            codes = [self.figures.names[name].codes for name in names]
            is_new[1:] = np.any([column[1:] != column[:-1] for column in codes], axis=0)
        return np.flatnonzero(is_new)


TierGroups = Mapping[str, Mapping[str, TierRuns]]
"""The runs by model and tier."""


def by_model_and_tier(figures: FigureTable, pair_by: PairBy) -> dict[str, dict[str, TierRuns]]:
    """The runs of each tier of each model, in their order."""
    import numpy as np

    model, tier = figures.names["model"], figures.names["tier"]
    is_new = np.ones(len(figures), bool)
    is_new[1:] = (model.codes[1:] != model.codes[:-1]) | (tier.codes[1:] != tier.codes[:-1])
    starts = np.flatnonzero(is_new).tolist()
    groups: dict[str, dict[str, TierRuns]] = {}
    for start, end in zip(starts, [*starts[1:], len(figures)], strict=True):
        names = model.names[model.codes[start]], tier.names[tier.codes[start]]
        groups.setdefault(names[0], {})[names[1]] = TierRuns(figures.rows(slice(start, end)), pair_by)
    return groups
