"""Attempts and passes counted by model and case."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.counts import Tally
from steelyard.outcomes.codes import MISSING_CODE
from steelyard.outcomes.problems import OutcomeFile, UnreadableOutcomesError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy.typing as npt

MAX_MODEL_CASE_CELLS = 1 << 26
"""Models times cases; more than a real table has, unless its columns are mixed up."""

MAX_COUNTED_ROWS = (1 << 31) - 1


class OutcomeRows(NamedTuple):
    """Some attempts of one file, as arrays with one entry per attempt."""

    file: OutcomeFile
    lines: npt.NDArray[Any] | range
    models: npt.NDArray[Any]
    cases: npt.NDArray[Any]
    outcomes: npt.NDArray[Any]
    samples: npt.NDArray[Any] | None = None
    """Which attempt at the case it is; None when every row is an attempt of its own."""
    costs: npt.NDArray[Any] | None = None
    """NaN where there is no price."""
    scores: npt.NDArray[Any] | None = None
    """NaN where there is no score."""

    def chosen(self, keep: npt.NDArray[Any]) -> OutcomeRows:
        """Those of the attempts that are to be kept."""
        import numpy as np

        return OutcomeRows(self.file, *(None if column is None else np.asarray(column)[keep] for column in self[1:]))  # type: ignore[arg-type]  # the same columns in the same order


class OutcomeCounter:
    """Counts that grow with the models and cases that turn up."""

    def __init__(self) -> None:
        import numpy as np

        # by model, case and outcome: missing, failed, passed
        self._counts = np.zeros((0, 0, 3), np.int32)
        self._costs: npt.NDArray[Any] | None = None
        self._unpriced: set[int] = set()
        self._scores: npt.NDArray[Any] | None = None
        """Their sum and their number, by model and case."""
        self._rows = 0

    def add(self, rows: OutcomeRows) -> None:
        """Count these attempts."""
        import numpy as np

        if not len(rows.cases):
            return
        self._rows += len(rows.cases)
        if self._rows > MAX_COUNTED_ROWS:
            raise UnreadableOutcomesError("more than 2 billion rows; split the file")
        self._make_room(int(rows.models.max()) + 1, int(rows.cases.max()) + 1)
        models, cases = self._counts.shape[:2]
        cells = rows.models.astype(np.intp)
        cells *= cases
        cells += rows.cases
        if rows.costs is not None:
            if self._costs is None:
                self._costs = np.zeros((models, cases))
            is_unpriced = np.isnan(rows.costs)
            self._unpriced |= set(np.unique(rows.models[is_unpriced]).tolist())
            np.add.at(self._costs.reshape(-1), cells, np.where(is_unpriced, 0.0, rows.costs))
        if rows.scores is not None:
            if self._scores is None:
                self._scores = np.zeros((models, cases, 2))
            is_scored = ~np.isnan(rows.scores)
            scored = cells[is_scored] * 2
            np.add.at(self._scores.reshape(-1), scored, rows.scores[is_scored])
            np.add.at(self._scores.reshape(-1), scored + 1, 1.0)
        cells *= 3
        cells += rows.outcomes
        cells -= MISSING_CODE
        np.add.at(self._counts.reshape(-1), cells, np.int32(1))

    def _make_room(self, models: int, cases: int) -> None:
        had_models, had_cases = self._counts.shape[:2]
        models, cases = max(models, had_models), max(cases, had_cases)
        if (models, cases) == (had_models, had_cases):
            return
        if models * cases > MAX_MODEL_CASE_CELLS:
            raise UnreadableOutcomesError(
                f"{models} models with {cases} cases are too many to count; are these the right columns?"
            )
        # twice the room, so that a file whose cases come one by one is not copied again and again
        if cases > had_cases and models * 2 * cases <= MAX_MODEL_CASE_CELLS:
            cases *= 2

        def roomier(old: npt.NDArray[Any]) -> npt.NDArray[Any]:
            import numpy as np

            new = np.zeros((models, cases, *old.shape[2:]), old.dtype)
            new[:had_models, :had_cases] = old
            return new

        self._counts = roomier(self._counts)
        if self._costs is not None:
            self._costs = roomier(self._costs)
        if self._scores is not None:
            self._scores = roomier(self._scores)

    def tallies(self, models: Mapping[str, int], cases: Mapping[str, int]) -> tuple[Tally, ...]:
        """One tally for each of these models, by name and number; all of them have these cases, in this order."""
        import numpy as np

        self._make_room(max(models.values(), default=-1) + 1, max(cases.values(), default=-1) + 1)
        names, order = tuple(cases), np.fromiter(cases.values(), np.intp, len(cases))
        return tuple(self._tally(model, at, names, order) for model, at in models.items())

    def _tally(self, model: str, at: int, cases: tuple[str, ...], order: npt.NDArray[Any]) -> Tally:
        missing, failed, passed = self._counts[at, order].T
        costs = scores = None
        if self._costs is not None and at not in self._unpriced:
            costs = tuple(self._costs[at, order].tolist())
        if self._scores is not None:
            sums, counts = self._scores[at, order].T.tolist()
            scores = tuple(total / count if count else None for total, count in zip(sums, counts, strict=True))
        tried = tuple((failed + passed).tolist())
        return Tally(model, cases, tried, tuple(passed.tolist()), int(missing.sum()), costs, scores)

    def used(self, models: Mapping[str, int], cases: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        """Those models and cases that have a row, sorted by name."""
        rows = self._counts.sum(axis=2)
        has_model, has_case = rows.any(axis=1), rows.any(axis=0)
        return (
            {name: at for name, at in sorted(models.items()) if at < len(has_model) and has_model[at]},
            {name: at for name, at in sorted(cases.items()) if at < len(has_case) and has_case[at]},
        )
