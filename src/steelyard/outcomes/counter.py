"""Attempts and passes counted by model and case, each attempt once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.analysis.counts import Tally
from steelyard.outcomes.cells import MISSING_CODE, TRUE_CODE
from steelyard.outcomes.files import OutcomeFile, OutcomeProblemCollector, UnreadableOutcomesError

if TYPE_CHECKING:
    import numpy.typing as npt


MAX_MODEL_CASE_CELLS = 1 << 26
"""Models times cases; more than a real table has, unless its columns are mixed up."""

MAX_COUNTED_ROWS = (1 << 31) - 1


class OutcomeRows(NamedTuple):
    """Some attempts of one file, as arrays with one entry per attempt."""

    file: OutcomeFile
    lines: npt.NDArray[Any]
    models: npt.NDArray[Any]
    cases: npt.NDArray[Any]
    outcomes: npt.NDArray[Any]
    samples: npt.NDArray[Any] | None = None
    """Which attempt at the case it is; None when every row is an attempt of its own."""
    costs: npt.NDArray[Any] | None = None
    """NaN where there is no price."""
    scores: npt.NDArray[Any] | None = None
    """NaN where there is no score."""
    is_graded: bool = False
    """Whether the scores are what was measured."""

    def chosen(self, keep: npt.NDArray[Any]) -> OutcomeRows:
        """The attempts to keep."""
        import numpy as np

        columns = (None if column is None else np.asarray(column)[keep] for column in self[1:-1])
        return OutcomeRows(self.file, *columns)._replace(is_graded=self.is_graded)  # type: ignore[arg-type]  # the same columns in the same order


class OutcomeCounter:
    """Counts that grow with the models and cases that turn up."""

    def __init__(self, *, keeps_scores: bool = False) -> None:
        import numpy as np

        # by model, case and outcome: missing, failed, passed
        self._counts = np.zeros((0, 0, 3), np.int32)
        self._costs: npt.NDArray[Any] | None = None
        self._unpriced: set[int] = set()
        self._scores: npt.NDArray[Any] | None = None
        """Their sum and their number, by model and case."""
        self._each_score: list[OutcomeRows] | None = [] if keeps_scores else None
        self._graded: set[int] = set()
        """The models whose scores are what was measured."""
        self._fractions: set[int] = set()
        """Those of them with a score between 0 and 1."""
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
        # there is never room for more cells than these numbers can count
        cells = rows.models.astype(np.int32)
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
            if self._each_score is not None:
                self._each_score.append(rows.chosen(is_scored))
            if rows.is_graded:
                self._graded |= set(np.unique(rows.models).tolist())
                self._fractions |= set(np.unique(rows.models[(rows.scores > 0) & (rows.scores < 1)]).tolist())
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
        lacking = tuple(missing.tolist())
        is_scored = at in self._fractions or (at in self._graded and not passed.any())
        return Tally(
            model,
            cases,
            tried,
            tuple(passed.tolist()),
            sum(lacking),
            costs,
            scores,
            on="score" if is_scored else "passed",
            missing_by_case=lacking if any(lacking) else None,
            every_score=self._every_score(at, order),
            is_graded=at in self._graded,
        )

    def _every_score(self, model: int, order: npt.NDArray[Any]) -> Sequence[Sequence[float]] | None:
        """The scores of all attempts of a model, by case in this order."""
        import numpy as np

        if not self._each_score:
            return None
        cases = np.concatenate([rows.cases[rows.models == model] for rows in self._each_score])
        scores = np.concatenate([np.asarray(rows.scores)[rows.models == model] for rows in self._each_score])
        by_case = np.argsort(cases, kind="stable")
        ends = np.searchsorted(cases[by_case], [order, order + 1]).T.tolist()
        ordered = scores[by_case].tolist()
        return [ordered[begin:end] for begin, end in ends]

    def used(self, models: Mapping[str, int], cases: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        """Those models and cases that have a row, sorted by name."""
        rows = self._counts.sum(axis=2)
        has_model, has_case = rows.any(axis=1), rows.any(axis=0)
        return (
            {name: at for name, at in sorted(models.items()) if at < len(has_model) and has_model[at]},
            {name: at for name, at in sorted(cases.items()) if at < len(has_case) and has_case[at]},
        )


def without_repeats(
    batches: Sequence[OutcomeRows], name: Callable[[int, int, int], str], complaints: OutcomeProblemCollector
) -> Sequence[OutcomeRows]:
    """The rows, each attempt once; rows that contradict each other about an attempt are complained about.

    Every batch has samples; `name` puts an attempt into words, given the numbers of its model, case and sample.
    """
    import numpy as np

    batches = [rows for rows in batches if len(rows.cases)]
    if not batches:
        return batches
    models, cases, samples = (
        1 + max(int(column.max()) for column in columns)
        for columns in zip(*((rows.models, rows.cases, _samples(rows)) for rows in batches), strict=True)
    )
    keys = np.concatenate(
        [(rows.models.astype(np.int64) * cases + rows.cases) * samples + _samples(rows) for rows in batches]
    )
    if not _has_repeats(keys, models * cases * samples):
        return batches
    order = np.argsort(keys, kind="stable")
    is_again = np.zeros(len(keys), bool)
    is_again[1:] = keys[order][1:] == keys[order][:-1]
    starts_at = np.maximum.accumulate(np.where(is_again, 0, np.arange(len(keys))))
    first, again = order[starts_at[is_again]], order[is_again]
    in_file_order = np.argsort(again)
    first, again = first[in_file_order], again[in_file_order]
    is_same = np.ones(len(again), bool)
    for fact in _fact_arrays(batches):
        is_same &= (fact[again] == fact[first]) | (np.isnan(fact[again]) & np.isnan(fact[first]))
    ends = np.cumsum([len(rows.cases) for rows in batches])
    lines = np.concatenate([rows.lines for rows in batches])
    file_of = np.repeat([rows.file.number for rows in batches], [len(rows.cases) for rows in batches])

    def place(row: int) -> tuple[OutcomeRows, int]:
        rows = batches[at := int(np.searchsorted(ends, row, "right"))]
        return rows, row - int(ends[at]) + len(rows.cases)

    for number in np.unique(file_of[again]).tolist():
        for kind, topic in ((True, "counted once"), (False, "contradiction")):
            chosen = np.flatnonzero((file_of[again] == number) & (is_same == kind))
            if len(chosen):
                earlier, later = place(int(first[chosen[0]])), place(int(again[chosen[0]]))
                what = _sentence(earlier, later, name)
                complaints.add(later[0].file, topic, what, lines[again[chosen]], fatal=not kind)
    keep = np.ones(len(keys), bool)
    keep[again] = False
    return [rows.chosen(kept) for rows, kept in zip(batches, np.split(keep, ends[:-1]), strict=True)]


def _samples(rows: OutcomeRows) -> npt.NDArray[Any]:
    if rows.samples is None:
        raise TypeError("rows without samples repeat nothing")
    return rows.samples


def _fact_arrays(batches: Sequence[OutcomeRows]) -> list[npt.NDArray[Any]]:
    """All that the rows say about their attempts, one array per column."""
    import numpy as np

    columns = zip(*((rows.outcomes, rows.costs, rows.scores) for rows in batches), strict=True)
    return [np.concatenate(column) for column in columns if column[0] is not None]


def _has_repeats(keys: npt.NDArray[Any], room: int) -> bool:
    """Whether a key occurs twice: by flags if they need little memory, otherwise by sorting."""
    import numpy as np

    if room <= 8 * len(keys) + (1 << 20):
        seen = np.zeros(room, bool)
        seen[keys] = True
        return int(np.count_nonzero(seen)) < len(keys)
    ordered = np.sort(keys)
    return bool((ordered[1:] == ordered[:-1]).any())


def _sentence(
    first: tuple[OutcomeRows, int], again: tuple[OutcomeRows, int], name: Callable[[int, int, int], str]
) -> str:
    """What two rows about one attempt have to do with each other."""
    (earlier, at), (later, here) = first, again
    attempt = name(int(later.models[here]), int(later.cases[here]), int(_samples(later)[here]))
    where = f"{earlier.file.unit} {int(earlier.lines[at])}"
    if earlier.file is not later.file:
        where += f" of {earlier.file.name}"
    now, before = _row_description(later, here), _row_description(earlier, at)
    if now == before:
        return f"{attempt} is already on {where}; counted once"
    return f"{attempt} is {now} here but {before} on {where}; keep one of the two"


def _row_description(rows: OutcomeRows, at: int) -> str:
    outcome = int(rows.outcomes[at])
    words = ["true" if outcome == TRUE_CODE else "without outcome" if outcome == MISSING_CODE else "false"]
    for noun, column in (("cost", rows.costs), ("score", rows.scores)):
        if column is not None:
            number = float(column[at])
            words.append(f"without {noun}" if number != number else f"of {noun} {number!r}")
    return ", ".join(words)
