"""Which judges of a panel are needed for which answers, given the judgments so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.records import Judgment, Panel
from steelyard.tiers.agreement import Consensus
from steelyard.tiers.escalation import JudgeOpinion, is_drawn, is_unsure, together
from steelyard.tiers.rubrics import panel_rubric
from steelyard.verifiers.judge.answer import UnusableJudgeReply, judgment


class JudgingPlan:
    """Says who is asked about an answer; of a panel without escalation that is everybody."""

    def __init__(self, panel: Panel, judgments: Iterable[Judgment] = ()) -> None:
        self._panel = panel
        self._rubric = panel_rubric(panel)
        self._first = frozenset(panel.first_judges)
        self._opinions: dict[str, dict[tuple[str, int], JudgeOpinion]] = {}
        """What each judge says each time, by the key of the answer; without a score where it is unusable."""
        for fact in judgments:
            self.count(fact)

    def count(self, fact: Judgment) -> None:
        """Take a judgment into account; the last of one asking counts."""
        if self._panel.escalation is None or fact.rubric != self._panel.digest or fact.repeat > self._panel.repeats:
            return
        found = judgment(fact.answer.text, self._rubric)
        opinion = JudgeOpinion(fact.judge, None, None)
        if not isinstance(found, UnusableJudgeReply):
            opinion = JudgeOpinion(fact.judge, found.score, found.passed)
        self._opinions.setdefault(fact.ask, {})[fact.judge, fact.repeat] = opinion

    def is_wanted(self, ask: str, judge: str) -> bool:
        """Whether a judge must be asked about an answer, as far as known."""
        return self._panel.escalation is None or judge in self._first or self.is_unsure(ask) or self.is_checked(ask)

    def is_unsure(self, ask: str) -> bool:
        """Whether the first judges were asked about an answer, and did not decide."""
        escalation, opinions = self._panel.escalation, self._of(ask, self._panel.first_judges)
        if escalation is None or len(opinions) < len(self._first) * self._panel.repeats:
            return False
        return is_unsure(opinions, self._rubric.pass_threshold, escalation)

    def is_checked(self, ask: str) -> bool:
        """Whether an answer that the first judges are sure of was drawn for all judges."""
        escalation = self._panel.escalation
        if escalation is None or not is_drawn(ask, self._panel.digest, escalation):
            return False
        return bool(self._of(ask, self._panel.first_judges)) and not self.is_unsure(ask)

    def first(self, ask: str) -> Consensus:
        """What the first judges say of an answer."""
        return together(self._of(ask, self._panel.first_judges))

    def whole(self, ask: str) -> Consensus | None:
        """What all judges say about an answer; None while a judgment is missing."""
        said = {each.judge for each in self._of(ask, self._panel.other_judges) if each.passed is not None}
        return together(self._of(ask, self._panel.judges)) if said.issuperset(self._panel.other_judges) else None

    def _of(self, ask: str, judges: Sequence[str]) -> list[JudgeOpinion]:
        return [each for (judge, _), each in self._opinions.get(ask, {}).items() if judge in judges]
