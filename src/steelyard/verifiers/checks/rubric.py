"""The check `rubric`: judges read the reply and say whether a sentence is true of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Evidence, Reply
from steelyard.text import short_quote
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

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  judges are needed
        raise VerifierError(f"{self.path}: a rubric needs judges, and there are none here")

    async def judged(self, case: Case, text: str, judges: ReplyJudges | None) -> CheckOutcome:
        """What the judges say; VerifierError where one of them cannot be heard."""
        if judges is None or not self.judges:
            raise VerifierError(f"{self.path}: a rubric needs judges, and none is named; name one with --judges")
        task = "\n\n".join(message.text for message in case.messages)
        found = [(judge, await judges.score(judge, self.rubric, task, text)) for judge in self.judges]
        scores = [score.score or 0.0 for _, score in found]
        approvals = [score >= self.at_least - SCORE_TOLERANCE for score in scores]
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
            ),
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
    return RubricCheck(f"rubric {short_quote(text)[:60]}", rubric, at_least, judges, f"{table.path}.rubric")


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
