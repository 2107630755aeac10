"""The check `rubric`: judges read the reply and say whether a sentence is true of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from steelyard.errors import InputError, VerifierError
from steelyard.records import Answer, Case, Escalation, Evidence, Reply
from steelyard.text import counted, short_quote
from steelyard.tiers.escalation import JudgeOpinion, is_unsure, panel_escalation
from steelyard.tiers.rubrics import (
    BINARY_EVALUATION,
    SCALED_EVALUATION,
    Rubric,
    RubricCategory,
    RubricItem,
    RubricScore,
)
from steelyard.verifiers.checks.outcome import CheckOutcome
from steelyard.verifiers.response.judged import CheckTable

RUBRIC_ID = "rubric"
MIDDLE_SCORE = 0.5
"""The pass threshold in the judge's prompt; the check has its own, so that a new threshold needs no new judgment."""
SCORE_TOLERANCE = 1e-9


class ReplyJudges(Protocol):
    """The judges, as far as they are asked about one reply."""

    async def score(self, judge: str, rubric: Rubric, task: str, text: str) -> RubricScore:
        """What a judge says about the reply; raises a VerifierError without a usable judgment."""
        ...

    def is_drawn(self, rubric: Rubric, escalation: Escalation) -> bool:
        """Whether all judges are asked about the reply, however sure the first are."""
        ...


class RunJudges(Protocol):
    """The judges of a run."""

    def about(self, reply: Reply) -> ReplyJudges:
        """The same, as far as they are asked about one reply."""
        ...


@dataclass(frozen=True)
class RubricCheck:
    """What the sentence says is true of the reply, in the eyes of more than half of the judges."""

    name: str
    rubric: Rubric
    at_least: float
    judges: tuple[str, ...]
    path: str
    escalation: Escalation | None = None
    """When the judges after the first are asked; None if all are asked about every reply."""

    @property
    def _is_scaled(self) -> bool:
        """Whether judges give a number from 0 to 1, rather than yes or no."""
        return self.rubric.categories[0].items[0].evaluation == SCALED_EVALUATION

    @property
    def first_judges(self) -> tuple[str, ...]:
        """Those who are asked about every reply."""
        return self.judges if self.escalation is None else self.judges[: self.escalation.ask_first]

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  judges are needed
        raise VerifierError(f"{self.path}: a rubric needs judges, and there are none here")

    def opinion(self, judge: str, score: RubricScore) -> JudgeOpinion:
        """Whether the reply meets the check in the eyes of one judge."""
        value = score.score or 0.0
        return JudgeOpinion(judge, value, value >= self.at_least - SCORE_TOLERANCE)

    def is_unsure(self, opinions: Sequence[JudgeOpinion]) -> bool:
        """Whether what the first judges say does not decide; yes or no is never near the limit."""
        limit = self.at_least if self._is_scaled else MIDDLE_SCORE
        return self.escalation is not None and is_unsure(opinions, limit, self.escalation)

    async def judged(self, case: Case, text: str, judges: ReplyJudges | None) -> CheckOutcome:
        """What the judges say; VerifierError where one of them cannot be heard."""
        if judges is None or not self.judges:
            raise VerifierError(f"{self.path}: a rubric needs judges, and none is named; name one with --judges")
        task = "\n\n".join(message.text for message in case.messages)
        first, others = self.first_judges, self.judges[len(self.first_judges) :]
        found = [(judge, await judges.score(judge, self.rubric, task, text)) for judge in first]
        unasked: tuple[Evidence, ...] = ()
        if self.escalation is not None:
            is_clear = not self.is_unsure([self.opinion(*each) for each in found])
            if is_clear and not judges.is_drawn(self.rubric, self.escalation):
                others, unasked = (
                    (),
                    (Evidence(rule=self.path, what=f"{counted(len(others), 'judge')} more not asked"),),
                )
        found += [(judge, await judges.score(judge, self.rubric, task, text)) for judge in others]
        scores = [score.score or 0.0 for _, score in found]
        approvals = [bool(self.opinion(*each).passed) for each in found]
        passed = 2 * sum(approvals) > len(approvals)
        # the words of a judge on the side that decides; a tie does not pass
        message = next(_reason(score) for (_, score), yes in zip(found, approvals, strict=True) if yes == passed)
        return CheckOutcome(
            passed,
            math.fsum(scores) / len(scores),
            message,
            tuple(
                Evidence(rule=self.path, what=f"{judge}: {score.score:g}, {short_quote(_reason(score))}")
                for judge, score in found
            )
            + unasked,
            is_graded=self._is_scaled,
        )


def _reason(score: RubricScore) -> str:
    marks = score.categories[RUBRIC_ID]
    return next((mark.reason for mark in marks.items.values() if mark.reason), marks.reason or score.reasoning)


def rubric_check(table: CheckTable) -> RubricCheck:
    """A sentence, and the judges who say whether it is true: yes or no, or with `at_least` a number from 0 to 1."""
    text = table.text("rubric")
    is_scaled = "at_least" in table
    at_least = float(table.number("at_least", 1))
    if not 0 < at_least <= 1:
        raise table.wrong("at_least", "expected a number above 0, up to 1")
    judges = table.texts("judges") if "judges" in table else ()
    item = RubricItem(id=RUBRIC_ID, check=text, evaluation=SCALED_EVALUATION if is_scaled else BINARY_EVALUATION)
    rubric = Rubric(
        id=RUBRIC_ID, categories=(RubricCategory(name=RUBRIC_ID, items=(item,)),), pass_threshold=MIDDLE_SCORE
    )
    escalation = _escalation(table, judges)
    return RubricCheck(f"rubric {short_quote(text)[:60]}", rubric, at_least, judges, f"{table.path}.rubric", escalation)


def _escalation(table: CheckTable, judges: Sequence[str]) -> Escalation | None:
    ask_first = table.whole("ask_first")
    within, share = (float(table.number(key, 0)) if key in table else None for key in ("unsure_within", "check_share"))
    try:
        # how many judges there are is not known before the run names them
        return panel_escalation(len(judges) or (ask_first or 0) + 1, ask_first, within, share)
    except InputError as error:
        raise VerifierError(f"{table.path}.rubric: {error}") from None


def rubric_judges(cases: Sequence[Case]) -> tuple[str, ...]:
    """The judges that the rubrics of cases name, each once."""
    named = [judge for case in cases for check in rubric_tables(case) for judge in _listed(check.get("judges"))]
    return tuple(dict.fromkeys(named))


def rubric_tables(case: Case) -> list[dict[str, object]]:
    """The checks of a case that are rubrics, as its eval set has them."""
    listed = case.verify.settings.get("checks", ())
    checks = listed if isinstance(listed, list | tuple) else ()
    return [check for check in checks if isinstance(check, dict) and "rubric" in check]


def _listed(given: object) -> list[str]:
    values = given if isinstance(given, list | tuple) else [given]
    return [value for value in values if isinstance(value, str) and value]
