"""The answers of a run that judges or people decide about, with their labels, and labels as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from steelyard.analysis.attempt_texts import AttemptText, StoredAttempts
from steelyard.analysis.attempts import NO_PLACE, AttemptRow, AttemptTable
from steelyard.analysis.judge_bias import JudgeVote
from steelyard.analysis.judged_rates import (
    AnswerIdentity,
    JudgedRates,
    LabelledAnswer,
    current_labels,
    judged_rates,
)
from steelyard.analysis.summary import Summary
from steelyard.engine.results.attempt_tables import stored_attempt_table
from steelyard.engine.tiers.reply_judgments import StoredJudgments
from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.records import LABELLER_PATTERN, Case, Label, Reply
from steelyard.reports.tables import csv_text
from steelyard.store.journal import FactReader, StoredRun
from steelyard.store.labels import MAX_LABEL_FILE_BYTES, append_labels, read_labels
from steelyard.text import short_quote
from steelyard.tiers.agreement import consensus
from steelyard.tiers.rating_tables import CriterionMarks
from steelyard.tiers.results import RunRating
from steelyard.tiers.rubrics import JudgingResult, Rubric

UNSURE_SCORE_DISTANCE = 0.1
"""A panel whose mean score is this close to the threshold is not sure."""
LABEL_COLUMNS = ("by", "at", "case", "model", "tier", "number", "criterion", "passed")
PASS_WORDS = {
    "true": True,
    "1": True,
    "yes": True,
    "pass": True,
    "false": False,
    "0": False,
    "no": False,
    "fail": False,
}
"""The accepted values of the column `passed`."""


def default_labeller(given: str, environment: Mapping[str, str]) -> str:
    """Who labels: the given name, or that of the user; raises an InputError for one that no file can have."""
    name = str(given or environment.get("USER") or environment.get("LOGNAME") or "me")
    if not re.fullmatch(LABELLER_PATTERN, name):
        raise InputError(
            f"--by {short_quote(name)}: a name has letters, digits and . _ @ + -, at most 64, such as --by ada"
        )
    return name


def label_time() -> str:
    """The current time in the format of labels."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class LabelledRun:
    """The answers of a run as they were when it was read, with the labels that exist at the time of each call."""

    def __init__(self, stored: StoredRun) -> None:
        self.stored = stored
        self.info = stored.info
        self.rubric = msgspec.convert(self.info.panel.rubric, Rubric) if self.info.panel else None
        cases = stored.cases
        table = stored_attempt_table(stored, self.info, cases)
        by_judges = {index for index, case in enumerate(cases) if case.by_judges}
        chosen = [row.case in by_judges and row.reply_place != NO_PLACE for row in table.rows]
        is_decided = not any(chosen)
        # without a panel there are no judgments to look for
        if is_decided and self.info.panel:
            chosen = [row.reply_place != NO_PLACE for row in table.rows]
        with FactReader(stored, table.journals) as facts:
            rows = zip(table.rows, chosen, strict=True)
            keys = [_reply_key(facts, row) if is_chosen else "" for row, is_chosen in rows]
        self._judgments = StoredJudgments(stored, keys)
        self._indexes = {
            _identity(cases, table, row): index
            for index, row in enumerate(table.rows)
            if chosen[index] and (not is_decided or self._judgments.has(index))
        }
        texts = StoredAttempts(cases, table.columns, table.rows, lambda: FactReader(stored, table.journals))
        self.attempts: Mapping[AnswerIdentity, AttemptText] = _AnswersOnDisk(self._indexes, texts)
        """Answers that only judges decide; if there are none, those that judges also rated. Each is read when it is asked for."""

    @property
    def criteria(self) -> tuple[str, ...]:
        """The categories that an answer can be labelled by."""
        return tuple(category.name for category in self.rubric.categories) if self.rubric else ()

    def check_criterion(self, criterion: str) -> None:
        """Raise an InputError for a criterion that the rubric does not have."""
        if criterion and criterion not in self.criteria:
            known = did_you_mean(criterion, self.criteria)
            raise InputError(f"{self.stored.folder}: no criterion {short_quote(criterion)} ({known})")

    def judgments(self, identity: AnswerIdentity) -> Sequence[JudgingResult]:
        """What the judges said of an answer."""
        return self._judgments.results(self._indexes[identity])

    def answers(self, criterion: str = "", damaged: Callable[[Problem], None] = lambda _: None) -> list[LabelledAnswer]:
        """Every answer with what judges and people say of it."""
        labels = current_labels(read_labels(self.stored.folder, damaged), criterion)
        threshold = self.rubric.pass_threshold if self.rubric else 0.0
        return [
            _labelled_answer(identity, self._judgments.ratings(index), threshold, criterion, labels.get(identity, {}))
            for identity, index in self._indexes.items()
        ]

    def votes(self, answers: Sequence[LabelledAnswer], criterion: str = "") -> Iterator[JudgeVote]:
        """What every judge says of the answers that people labelled."""
        strata = Counter((answer.identity.model, answer.judged.opinion) for answer in answers)
        labelled = [answer for answer in answers if answer.labels]
        told = Counter((answer.identity.model, answer.judged.opinion) for answer in labelled)
        threshold = self.rubric.pass_threshold if self.rubric else 0.0
        for answer in labelled:
            tried, stratum = self.attempts[answer.identity], (answer.identity.model, answer.judged.opinion)
            ratings = self._judgments.ratings(self._indexes[answer.identity])
            for judge, passes in _votes(ratings, threshold, criterion)[0].items():
                passed = consensus((), passes).passed
                if passed is not None and answer.label is not None and tried.reply is not None:
                    yield JudgeVote(
                        judge=judge,
                        case=answer.identity.case,
                        model=answer.identity.model,
                        passed=passed,
                        label=answer.label,
                        characters=len(tried.reply.answer.text),
                        language=tried.case.language,
                        weight=strata[stratum] / told[stratum],
                    )

    def rates(self, criterion: str = "", damaged: Callable[[Problem], None] = lambda _: None) -> JudgedRates:
        """What judges and people say together."""
        answers = self.answers(criterion, damaged)
        return judged_rates(answers, criterion=criterion, votes=list(self.votes(answers, criterion)))


def _reply_key(facts: FactReader, row: AttemptRow) -> str:
    reply = facts.get(row.reply_place)
    return reply.key if isinstance(reply, Reply) else ""


def _identity(cases: Sequence[Case], table: AttemptTable, row: AttemptRow) -> AnswerIdentity:
    return AnswerIdentity(cases[row.case].id, *table.columns[row.column], row.number)


class _AnswersOnDisk(Mapping[AnswerIdentity, AttemptText]):
    """Attempts by their identities, of which none is kept in memory."""

    def __init__(self, indexes: Mapping[AnswerIdentity, int], attempts: StoredAttempts) -> None:
        self._indexes, self._attempts = indexes, attempts

    def __getitem__(self, identity: AnswerIdentity) -> AttemptText:
        return self._attempts[self._indexes[identity]]

    def __iter__(self) -> Iterator[AnswerIdentity]:
        return iter(self._indexes)

    def __len__(self) -> int:
        return len(self._indexes)


def _labelled_answer(
    identity: AnswerIdentity,
    ratings: Iterable[tuple[RunRating, Iterable[CriterionMarks]]],
    threshold: float,
    criterion: str,
    labels: Mapping[str, bool],
) -> LabelledAnswer:
    votes, scores = _votes(ratings, threshold, criterion)
    voices = [consensus((), of).passed for of in votes.values()]
    said = consensus(scores, voices)
    cast = {vote for of in votes.values() for vote in of if vote is not None}
    is_near = said.score is not None and abs(said.score - threshold) < UNSURE_SCORE_DISTANCE
    return LabelledAnswer(identity, said.passed, len(cast) == 1 and not is_near, labels)


def _votes(
    ratings: Iterable[tuple[RunRating, Iterable[CriterionMarks]]], threshold: float, criterion: str
) -> tuple[dict[str, list[bool | None]], list[float | None]]:
    """The votes of every judge on an answer, or on one criterion of it, and all scores."""
    votes: dict[str, list[bool | None]] = {}
    scores: list[float | None] = []
    for rating, marks in ratings:
        if not rating.valid:
            continue
        score, passed = rating.score, rating.passed
        if criterion:
            score = next((each.score for each in marks if each.criterion == criterion), None)
            passed = None if score is None else score >= threshold
        scores.append(score)
        votes.setdefault(rating.judge.model, []).append(passed)
    return votes, scores


def run_judged_rates(stored: StoredRun, *, criterion: str = "") -> JudgedRates | None:
    """Raw, corrected and labels-only rates of a run; None if nobody labelled anything."""
    if not any(stored.folder.glob("labels-*.jsonl")):
        return None
    rates = LabelledRun(stored).rates(criterion)
    return rates if rates.labellers else None


def with_judged_rates(stored: StoredRun, summary: Summary) -> Summary:
    """A summary with what judges and people say together, where people said something."""
    judged = run_judged_rates(stored)
    return msgspec.structs.replace(summary, judged=judged) if judged else summary


def export_labels(stored: StoredRun, damaged: Callable[[Problem], None]) -> str:
    """All labels that count, as CSV."""
    last: dict[tuple[str, AnswerIdentity, str], Label] = {}
    for label in read_labels(stored.folder, damaged):
        identity = AnswerIdentity(label.case, label.model, label.tier, label.number)
        last[label.by, identity, label.criterion] = label
    rows = [label for label in last.values() if label.passed is not None]
    return csv_text(LABEL_COLUMNS, [[getattr(label, name) for name in LABEL_COLUMNS] for label in rows])


def import_labels(stored: StoredRun, path: Path, person: str) -> int:
    """Add the labels of a CSV file to a run; raises an InputError with every row that cannot be taken.

    Only `case` and `passed` are needed; a run of one model needs no `model`, and `person` is the labeller of rows that name none.
    A row with an empty `passed` is an answer that nobody has labelled yet.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_LABEL_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if len(content) > MAX_LABEL_FILE_BYTES:
        raise InputError(f"{path}: larger than {MAX_LABEL_FILE_BYTES >> 20} MB, which is too large to read")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8; save the table as CSV in UTF-8") from None
    problems: list[Problem] = []
    try:
        labels = list(_read_rows(stored, path, text, person, problems))
    except csv.Error as error:
        raise InputError(f"{path}: not CSV: {error}") from None
    if problems:
        raise InputError(problems)
    append_labels(stored.folder, labels)
    return len(labels)


def _read_rows(stored: StoredRun, path: Path, text: str, person: str, problems: list[Problem]) -> Iterator[Label]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    names = [name for name in rows.fieldnames or () if name]
    for name in ("case", "passed"):
        if name not in names:
            raise InputError(f'{path}: no column "{name}"; the columns are {", ".join(LABEL_COLUMNS)}')
    info, cases = stored.info, stored.cases
    table = stored_attempt_table(stored, info, cases)
    known = {_identity(cases, table, row) for row in table.rows if row.reply_place != NO_PLACE}
    models = sorted({(model, tier) for _, model, tier, _ in known})
    panel = info.panel
    criteria = {category.name for category in msgspec.convert(panel.rubric, Rubric).categories} if panel else set()
    now = label_time()
    for row in rows:
        cells = {name: (row.get(name) or "").strip() for name in LABEL_COLUMNS}
        if cells["case"] and not cells["passed"]:
            # a table of all answers, of which some are labelled so far
            continue
        model, tier = cells["model"], cells["tier"]
        if not model and len(models) == 1:
            model, tier = models[0]
        passed = PASS_WORDS.get(cells["passed"].casefold())
        try:
            number = int(cells["number"] or 1)
        except ValueError:
            number = 0
        what = _row_problem(cells, (cells["case"], model, tier, number), known, criteria, passed)
        if what:
            problems.append(Problem(str(path), rows.line_num, what))
            continue
        try:
            yield msgspec.convert(
                {
                    **cells,
                    "by": cells["by"] or person,
                    "at": cells["at"] or now,
                    "model": model,
                    "tier": tier,
                    "number": number,
                    "passed": passed,
                },
                Label,
            )
        except msgspec.ValidationError as error:
            problems.append(Problem(str(path), rows.line_num, f"not a label: {error}"))


def _row_problem(
    cells: Mapping[str, str],
    identity: tuple[str, str, str, int],
    known: Iterable[tuple[str, str, str, int]],
    criteria: set[str],
    passed: bool | None,
) -> str:
    """Why a row is not a label; empty if it is one."""
    if passed is None:
        return f"passed is {short_quote(cells['passed'])}; it must be true or false"
    if identity not in known:
        cases = {case for case, *_ in known}
        if identity[0] not in cases:
            return f"no case {short_quote(identity[0])} in this run ({did_you_mean(identity[0], cases)})"
        return f"no answer {identity[3]} of {short_quote(identity[1])} to {short_quote(identity[0])} in this run"
    if cells["criterion"] and cells["criterion"] not in criteria:
        return f"no criterion {short_quote(cells['criterion'])} ({did_you_mean(cells['criterion'], criteria)})"
    return ""
