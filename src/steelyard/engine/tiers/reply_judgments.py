"""What judges said of single replies."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Sequence

from steelyard.records import Judgment, Panel
from steelyard.store.journal import StoredRun
from steelyard.tiers.rating_tables import CriterionMarks, JudgmentTable
from steelyard.tiers.results import JudgeIdentity, RunIdentity, RunRating
from steelyard.tiers.rubrics import JudgingResult, panel_rubric
from steelyard.verifiers.judge.answer import UnusableJudgeReply, judgment


def reply_judgments(stored: StoredRun, asks: Container[str]) -> dict[str, list[JudgingResult]]:
    """The judgments of some replies by the rubric that counts, by the keys of the replies."""
    panel = stored.info.panel
    if panel is None:
        return {}
    return judgments_by_reply(
        panel, (fact for fact in stored.facts() if isinstance(fact, Judgment) and fact.ask in asks)
    )


def judgments_by_reply(panel: Panel, judgments: Iterable[Judgment]) -> dict[str, list[JudgingResult]]:
    """What judgments say in the order they were written, by the keys of the replies; of one asking the last counts."""
    rubric = panel_rubric(panel)
    last = {(fact.ask, fact.judge, fact.repeat): fact for fact in judgments if fact.rubric == panel.digest}
    found: dict[str, list[JudgingResult]] = {}
    for fact in last.values():
        read = judgment(fact.answer.text, rubric)
        one = (None, read.reason) if isinstance(read, UnusableJudgeReply) else (read, "")
        found.setdefault(fact.ask, []).append(JudgingResult(fact.judge, fact.repeat, *one))
    return found


class StoredJudgments:
    """The judgments of many replies by the rubric that counts; their texts stay on disk."""

    def __init__(self, stored: StoredRun, asks: Sequence[str]) -> None:
        """`asks` are the keys of the replies, which are called by their indexes."""
        self._stored, self._panel = stored, stored.info.panel
        self._journals = [path.name for path in stored.journals()]
        self._table, self._places = JudgmentTable(), array("q")
        self._rows: dict[JudgeIdentity, array[int]] = {}
        """For each asking of a judge the row of its rating plus 1, by the index of the reply; 0 where there is none."""
        if self._panel is None:
            return
        rubric, indexes = panel_rubric(self._panel), {ask: index for index, ask in enumerate(asks)}
        for place, fact in stored.placed():
            if isinstance(fact, Judgment) and fact.rubric == self._panel.digest and fact.ask in indexes:
                index, judge = indexes[fact.ask], JudgeIdentity(fact.judge, fact.repeat)
                run, read = RunIdentity("", "", "", "", index), judgment(fact.answer.text, rubric)
                if isinstance(read, UnusableJudgeReply):
                    self._add(place, RunRating(run=run, judge=judge, valid=False), len(asks))
                else:
                    rating = RunRating(run=run, judge=judge, score=read.score, passed=read.passed)
                    marks = (CriterionMarks(name, given.score, None, None) for name, given in read.categories.items())
                    self._add(place, rating, len(asks), marks)

    def _add(self, place: int, rating: RunRating, replies: int, marks: Iterable[CriterionMarks] = ()) -> None:
        """Add the rating of a reply; of one asking the last counts."""
        if rating.judge not in self._rows:
            self._rows[rating.judge] = array("q", bytes(8 * replies))
        rows, index = self._rows[rating.judge], rating.run.number
        if rows[index]:
            self._table.replace(rows[index] - 1, rating, marks)
            self._places[rows[index] - 1] = place
        else:
            rows[index] = self._table.add(rating, marks) + 1
            self._places.append(place)

    def _rows_of(self, index: int) -> list[int]:
        """The rows of a reply, in the order they were written."""
        return sorted(rows[index] - 1 for rows in self._rows.values() if rows[index])

    def has(self, index: int) -> bool:
        """Whether a judge was asked about a reply."""
        return any(rows[index] for rows in self._rows.values())

    def ratings(self, index: int) -> Iterator[tuple[RunRating, Iterator[CriterionMarks]]]:
        """What each judge gave a reply, and for which criteria."""
        return ((self._table.rating(row), self._table.marks(row)) for row in self._rows_of(index))

    def results(self, index: int) -> list[JudgingResult]:
        """The same with the texts, which are read now."""
        facts = [self._stored.at(self._places[row], self._journals) for row in self._rows_of(index)]
        given = [fact for fact in facts if isinstance(fact, Judgment)]
        return judgments_by_reply(self._panel, given)[given[0].ask] if self._panel and given else []
