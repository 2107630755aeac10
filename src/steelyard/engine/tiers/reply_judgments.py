"""What judges said of single replies."""

from __future__ import annotations

from collections.abc import Container, Iterable

from steelyard.records import Judgment, Panel
from steelyard.store.journal import StoredRun
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
