"""A person's labelling of one run: the answer to mark next, the mark on disk, and only then what the judges said."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from steelyard.analysis.attempt_texts import AttemptText
from steelyard.analysis.judged_rates import (
    AnswerIdentity,
    JudgedRates,
    LabelledAnswer,
    judged_rates,
    label_order,
)
from steelyard.engine.results.labels import LabelledRun, label_time
from steelyard.records import Label
from steelyard.reports.labels import judged_sentences, judged_table
from steelyard.store.journal import StoredRun
from steelyard.store.labels import append_labels
from steelyard.tiers.rubrics import JudgingResult
from steelyard.viewer.pages.rendering import rendered
from steelyard.viewer.query_params import QueryParameters, ViewerRequestError, url_path

MARKS = {"pass": True, "fail": False, "undo": None}
MAX_SKIPPED_ANSWERS = 40
"""Answers that a person can pass over before the first of them comes again."""


class MarkedAnswer(NamedTuple):
    """An answer that was just marked, and what the judges said of it."""

    token: str
    tried: AttemptText
    mine: bool
    answer: LabelledAnswer
    judgments: tuple[JudgingResult, ...]


class LabelSession:
    """One person at one run."""

    def __init__(self, folder: Path, person: str) -> None:
        self.folder = folder
        self.person = person
        self._run = LabelledRun(StoredRun(folder))
        self._identities = {_token(identity): identity for identity in self._run.attempts}

    def page(self, asked: QueryParameters, csrf: str) -> str:
        """The answer to mark now, and below it the result of the last one."""
        criterion = self._criterion(asked)
        answers = {answer.identity: answer for answer in self._run.answers(criterion)}
        skipped = [token for token in asked.texts("skip") if token in self._identities]
        token = next(self._waiting(list(answers.values()), skipped), "")
        chosen = self._run.attempts[self._identities[token]] if token else None
        mine = [answer for answer in answers.values() if self.person in answer.labels]
        done = self._marked(asked.text("marked"), answers)
        return rendered(
            "label.html.j2",
            run=self.folder.name,
            person=self.person,
            criterion=criterion,
            criteria=self._run.criteria,
            checks={each.name: each.check for each in self._run.rubric.categories} if self._run.rubric else {},
            tried=chosen,
            token=token,
            csrf=csrf,
            skip_to=url_path(["label"], {"criterion": criterion, "skip": [*skipped, token][-MAX_SKIPPED_ANSWERS:]}),
            skipped=skipped,
            count=len(mine),
            labelled=sum(bool(answer.labels) for answer in answers.values()),
            total=len(answers),
            marked=done,
            # the rates say what the judges think of answers that are still to be marked
            rates=_rates(judged_rates(list(answers.values()), criterion=criterion)) if not token else None,
        )

    def mark(self, form: QueryParameters) -> str:
        """Write a mark down; returns the address of the next answer."""
        criterion = self._criterion(form)
        token = form.text("answer")
        if token not in self._identities:
            raise ViewerRequestError(404, "no such answer in this run")
        mark = form.choice("mark", MARKS)
        if not mark:
            raise ViewerRequestError(400, '"mark" is pass, fail or undo')
        identity = self._identities[token]
        append_labels(
            self.folder,
            [
                Label(
                    by=self.person,
                    at=label_time(),
                    case=identity.case,
                    model=identity.model,
                    tier=identity.tier,
                    number=identity.number,
                    criterion=criterion,
                    passed=MARKS[mark],
                )
            ],
        )
        skipped = [each for each in form.texts("skip") if each in self._identities and each != token]
        values = {"criterion": criterion, "skip": skipped, "marked": "" if MARKS[mark] is None else token}
        return url_path(["label"], values)

    def _criterion(self, asked: QueryParameters) -> str:
        return asked.choice("criterion", self._run.criteria)

    def _waiting(self, answers: list[LabelledAnswer], skipped: list[str]) -> Iterator[str]:
        """The answers to mark: first those without a label, then those that others labelled; skipped ones come last."""
        order = [_token(identity) for identity in label_order(answers, self.person)]
        yield from (token for token in order if token not in skipped)
        others = [answer for answer in answers if answer.labels and self.person not in answer.labels]
        # a second label of the same answer shows how far people agree
        yield from (token for token in (_token(answer.identity) for answer in others) if token not in skipped)
        yield from (token for token in skipped if token in order)

    def _marked(self, token: str, answers: dict[AnswerIdentity, LabelledAnswer]) -> MarkedAnswer | None:
        identity = self._identities.get(token)
        answer = answers.get(identity) if identity else None
        if identity is None or answer is None or self.person not in answer.labels:
            return None
        judgments = tuple(self._run.judgments(identity))
        return MarkedAnswer(token, self._run.attempts[identity], answer.labels[self.person], answer, judgments)


def csrf_token(key: str) -> str:
    """The token that a form must send back: only readers of our pages know it."""
    return hmac.new(key.encode(), b"steelyard label", hashlib.sha256).hexdigest()


def _token(identity: AnswerIdentity) -> str:
    """A short name for an answer that says nothing about it."""
    return hashlib.blake2b(repr(tuple(identity)).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _rates(rates: JudgedRates) -> tuple[list[list[str]], list[str]]:
    return judged_table(rates), judged_sentences(rates)
