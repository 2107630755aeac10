"""What judges said of runs, as columns: a hundred thousand ratings are compared without an object for each."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec

from steelyard.tiers.agreement import AttemptIdentity
from steelyard.tiers.results import CriterionRating, JudgeIdentity, RunIdentity, RunRating
from steelyard.tiers.run_tables import RUN_NAMES, NameColumn, NameColumnBuilder

RATING_AMOUNTS = ("score", "impl_rate")
CRITERION_AMOUNTS = ("score", "achieved", "max")


class CriterionMarks(NamedTuple):
    """What a judge gave a run for one criterion."""

    criterion: str
    score: float | None
    achieved: float | None
    max: float | None


class JudgmentTable:
    """Ratings as columns, each with its criteria; a number is NaN where it is not known."""

    def __init__(self) -> None:
        self._names = {name: NameColumnBuilder() for name in (*RUN_NAMES, "judge", "grade")}
        self._integers = {name: array("q") for name in ("number", "repeat", "passed", "valid", "start", "end")}
        self._amounts = {name: array("d") for name in RATING_AMOUNTS}
        self._criteria = NameColumnBuilder()
        self._marks = {name: array("d") for name in CRITERION_AMOUNTS}

    @classmethod
    def of(
        cls, ratings: Iterable[RunRating] | JudgmentTable, criteria: Iterable[CriterionRating] = ()
    ) -> JudgmentTable:
        """The same as columns; who has criteria alone has a rating without a claim, after all others."""
        if isinstance(ratings, JudgmentTable):
            return ratings
        marks: dict[tuple[RunIdentity, JudgeIdentity], list[CriterionMarks]] = {}
        for each in criteria:
            given = CriterionMarks(each.criterion, each.score, each.achieved, each.max)
            marks.setdefault((each.run, each.judge), []).append(given)
        made, rated = cls(), set()
        for rating in ratings:
            rated.add((rating.run, rating.judge))
            made.add(rating, marks.get((rating.run, rating.judge), ()))
        for (run, judge), given_marks in marks.items():
            if (run, judge) not in rated:
                made.add(RunRating(run=run, judge=judge), given_marks)
        return made

    def __len__(self) -> int:
        return len(self._integers["number"])

    @property
    def has_criteria(self) -> bool:
        return bool(len(self._marks["score"]))

    def has(self, amount: str) -> bool:
        """Whether any rating has a `score`, or an `impl_rate`."""
        return any(value == value for value in self._amounts[amount])

    def add(self, rating: RunRating, marks: Iterable[CriterionMarks] = ()) -> int:
        """Add a rating with its criteria; returns its row."""
        for name in RUN_NAMES:
            self._names[name].append(getattr(rating.run, name))
        self._names["judge"].append(rating.judge.model)
        self._names["grade"].append("")
        row = len(self)
        for integers in self._integers.values():
            integers.append(0)
        for amounts in self._amounts.values():
            amounts.append(0.0)
        self._integers["number"][row] = rating.run.number
        self._integers["repeat"][row] = rating.judge.number
        self.replace(row, rating, marks)
        return row

    def replace(self, row: int, rating: RunRating, marks: Iterable[CriterionMarks] = ()) -> None:
        """Put another rating of the same run by the same judge in the place of one."""
        self._names["grade"].replace(row, rating.grade)
        for name, amounts in self._amounts.items():
            amounts[row] = _amount(getattr(rating, name), rating)
        start = len(self._marks["score"])
        for each in marks:
            self._criteria.append(each.criterion)
            for name, amounts in self._marks.items():
                amounts.append(_amount(getattr(each, name), each))
        integers = {"passed": -1 if rating.passed is None else int(rating.passed), "valid": int(rating.valid)}
        for name, value in (integers | {"start": start, "end": len(self._marks["score"])}).items():
            self._integers[name][row] = value

    def run(self, row: int) -> RunIdentity:
        experiment, model, tier, case = (self._names[name][row] for name in RUN_NAMES)
        return RunIdentity(experiment, model, tier, case, self._integers["number"][row])

    def judge(self, row: int) -> JudgeIdentity:
        return JudgeIdentity(self._names["judge"][row], self._integers["repeat"][row])

    def rating(self, row: int) -> RunRating:
        passed = self._integers["passed"][row]
        return RunRating(
            run=self.run(row),
            judge=self.judge(row),
            score=_known(self._amounts["score"][row]),
            impl_rate=_known(self._amounts["impl_rate"][row]),
            passed=None if passed < 0 else bool(passed),
            grade=self._names["grade"][row],
            valid=bool(self._integers["valid"][row]),
        )

    def marks(self, row: int) -> Iterator[CriterionMarks]:
        """What the judge gave for each criterion."""
        score, achieved, most = (self._marks[name] for name in CRITERION_AMOUNTS)
        for place in range(self._integers["start"][row], self._integers["end"][row]):
            yield CriterionMarks(
                self._criteria[place], _known(score[place]), _known(achieved[place]), _known(most[place])
            )

    def ratings(self) -> Iterator[RunRating]:
        """All ratings as records."""
        return map(self.rating, range(len(self)))

    def criteria(self) -> Iterator[CriterionRating]:
        """All criteria as records."""
        for row in range(len(self)):
            run, judge = self.run(row), self.judge(row)
            for name, score, achieved, most in self.marks(row):
                yield CriterionRating(run=run, judge=judge, criterion=name, score=score, achieved=achieved, max=most)

    def by_run(self) -> Iterator[tuple[AttemptIdentity, list[int]]]:
        """Each run as panels call it, in their order, with the rows of its ratings by judge and repeat."""
        import numpy as np

        columns = {name: codes.column() for name, codes in self._names.items()}
        experiments, cases = columns["experiment"], columns["case"]
        tasks, task_codes = np.unique(
            experiments.codes.astype(np.int64) * len(cases.names) + cases.codes, return_inverse=True
        )
        # both names in one text that no other two names give
        task = NameColumn(
            [
                msgspec.json.encode(
                    (experiments.names[pair // len(cases.names)], cases.names[pair % len(cases.names)])
                ).decode()
                for pair in tasks.tolist()
            ],
            task_codes,
        )
        ranks = [column.ranks(sorted(column.names)) for column in (columns["tier"], columns["model"], task)]
        run_keys = [np.array(self._integers["number"]), *ranks]
        judges = columns["judge"]
        # the last key is the first to sort by
        order = np.lexsort([np.array(self._integers["repeat"]), judges.ranks(sorted(judges.names)), *run_keys])
        is_new = np.any([key[order][1:] != key[order][:-1] for key in run_keys], axis=0)
        # one after the other: a view for each of a hundred thousand runs is large
        bounds = [0, *(np.flatnonzero(is_new) + 1).tolist(), len(order)] if len(order) else []
        for start, end in pairwise(bounds):
            rows = order[start:end].tolist()
            run = self.run(rows[0])
            name = task.names[int(task.codes[rows[0]])]
            yield AttemptIdentity(case=name, model=run.model, tier=run.tier, number=run.number), rows


def _amount(value: float | None, of: object) -> float:
    if value != value:
        raise ValueError(f"a score is a finite number or None, got {of}")
    return math.nan if value is None else value


def _known(value: float) -> float | None:
    return None if value != value else value
