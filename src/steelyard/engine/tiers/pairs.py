"""Two models' answers compared by judges, each pair in both orders.

The questions are cases of a run of their own, so that every paid judgment is stored before it is read, a budget holds, and
`resume` continues where it was stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

from steelyard.analysis.attempt_texts import AttemptText, attempt_text
from steelyard.analysis.attempts import NO_PLACE
from steelyard.analysis.estimates import Estimate
from steelyard.analysis.judge_bias import JudgePreferences, position_bias
from steelyard.engine.options import RunOptions
from steelyard.engine.results.attempt_tables import stored_attempt_table
from steelyard.engine.results.stored_results import stored_attempts
from steelyard.engine.run import Run, run
from steelyard.errors import InputError, did_you_mean
from steelyard.records import JUDGE_ONLY_KIND, Case, Verify, digest
from steelyard.stats.intervals import mean_interval
from steelyard.store.journal import FactReader, StoredRun
from steelyard.store.run_folders import PAIR_TAG, are_pair_tags
from steelyard.store.stored_cases import collected_cases
from steelyard.text import short_quote
from steelyard.tiers.rubrics import Rubric
from steelyard.verifiers.judge.answer import (
    PairwiseJudgment,
    Preference,
    UnusableJudgeReply,
    combined_preference,
    messages,
    preference,
)

Order = Literal["a first", "b first"]
ANSWER_ORDERS: tuple[Order, Order] = ("a first", "b first")


def judge_pairs(
    stored: StoredRun,
    judges: Sequence[str],
    *,
    between: Sequence[str] = (),
    rubric: Rubric | None = None,
    output: str | Path | None = None,
    parameters: dict[str, Any] | None = None,
    means: RunOptions = RunOptions(),
) -> Run:
    """Ask judges about each pair of answers to the same case with the same number, in both orders."""
    cases = collected_cases(_pair_cases(stored, between, rubric))
    return run(cases, models=list(judges), means=means, samples=1, output=output, parameters=parameters)


def _pair_cases(stored: StoredRun, between: Sequence[str], rubric: Rubric | None) -> Iterator[Case]:
    """The questions about each pair; raises an InputError if there is none."""
    info, cases = stored.info, stored.cases
    table = stored_attempt_table(stored, info, cases)
    answered = {row.column for row in table.rows if row.reply_place != NO_PLACE}
    # the first model that was named is the first side
    places = {name: place for place, name in enumerate(info.names)}
    order = sorted(answered, key=lambda index: (places.get(table.columns[index].model, len(places)), index))
    labels = {table.columns[index].label: index for index in order}
    a, b = _sides(list(labels), between)
    sides = labels[a], labels[b]
    has_pairs = False
    with FactReader(stored, table.journals) as facts:
        for _, group in groupby(table.rows, key=lambda row: row.case):
            replied = {(row.column, row.number): row for row in group if row.reply_place != NO_PLACE}
            for (column, number), row in replied.items():
                other = replied.get((sides[1], number)) if column == sides[0] else None
                if other is not None:
                    one, two = (attempt_text(cases, table.columns, each, facts) for each in (row, other))
                    has_pairs = True
                    yield from _questions(AnswerPair(one.case, number, (a, b), (_text(one), _text(two))), rubric)
    if not has_pairs:
        raise InputError(f"{short_quote(a)} and {short_quote(b)} have no answers to the same case")


class AnswerPair(NamedTuple):
    """The answers of two models to the same case."""

    case: Case
    number: int
    models: tuple[str, str]
    texts: tuple[str, str]


def _questions(pair: AnswerPair, rubric: Rubric | None) -> Iterator[Case]:
    """A question about a pair in each order."""
    prompt, (a, b) = pair.case.prompt, pair.models
    task = prompt if isinstance(prompt, str) else "\n\n".join(turn.text for turn in prompt)
    for order, (first, second) in zip(ANSWER_ORDERS, (pair.texts, pair.texts[::-1]), strict=True):
        name = f"{pair.case.id}, answer {pair.number}, {order}"
        yield Case(
            id=digest(PAIR_TAG, name, a, b)[:16],
            name=name,
            # the mark around answers depends on both of them, so that neither can forge it
            prompt=messages(task, first, second, digest(first, second, task), rubric),
            group=pair.case.id,
            tags=(PAIR_TAG, a, b, order, str(pair.number)),
            verify=Verify(kind=JUDGE_ONLY_KIND),
        )


def _sides(there: Sequence[str], between: Sequence[str]) -> tuple[str, str]:
    for name in between:
        if name not in there:
            raise InputError(f"no answers of {short_quote(name)} ({did_you_mean(name[:80], there)})")
    chosen = list(between or there)
    if len(chosen) != 2 or chosen[0] == chosen[1]:
        listed = ", ".join(map(short_quote, there[:20])) or "none"
        raise InputError(f"a pair is of two models; name two of those with answers with --between A,B ({listed})")
    return chosen[0], chosen[1]


def _text(one: AttemptText) -> str:
    return one.reply.answer.text if one.reply else ""


def is_pairs_run(stored: StoredRun) -> bool:
    """Whether a run holds judgments of pairs."""
    return _are_pairs(stored.cases)


def _are_pairs(cases: Sequence[Case]) -> bool:
    return bool(cases) and all(are_pair_tags(case.tags) for case in cases)


def pair_preferences(stored: StoredRun) -> list[JudgePreferences]:
    """What each judge of a run of pairs says; what is not there yet is counted as unusable."""
    info, cases = stored.info, stored.cases
    if not _are_pairs(cases):
        raise InputError(f"{stored.folder}: has no judgments of pairs; `steelyard pairs RUN --judges MODEL` makes them")
    halves: dict[tuple[str, str, str], dict[str, Preference]] = {}
    """What a judge said of a pair in one order, until it is known in the other."""
    judged: dict[str, list[tuple[str, PairwiseJudgment]]] = {}
    attempts = stored_attempts(stored, cases, stored_attempt_table(stored, info, cases))
    for (_, judge), group in groupby(attempts, key=lambda one: (one.case.id, one.model)):
        *_, last = (None, *(one for one in group if one.reply is not None))
        said = preference(_text(last)) if last is not None else None
        if last is None or said is None or isinstance(said, UnusableJudgeReply):
            continue
        _, _, _, order, number = last.case.tags
        both = halves.setdefault((judge, last.case.group, number), {})
        both[order] = said
        if len(both) == len(ANSWER_ORDERS):
            found = combined_preference(*(both[each] for each in ANSWER_ORDERS))
            judged.setdefault(judge, []).append((last.case.group, found))
            del halves[judge, last.case.group, number]
    _, a, b, *_ = cases[0].tags
    wanted = len(cases) // 2
    return [_preferences(judge, a, b, judged.get(judge, []), wanted) for judge in info.names]


def _preferences(
    judge: str, a: str, b: str, judged: Sequence[tuple[str, PairwiseJudgment]], wanted: int
) -> JudgePreferences:
    found = [one for _, one in judged]
    by_case: dict[str, list[float]] = {}
    for case, one in judged:
        by_case.setdefault(case, []).append({"a": 1.0, "b": 0.0, "tie": 0.5}[one.winner])
    means = [fmean(values) for values in by_case.values()]
    interval = mean_interval(means, attempts=len(found)) if len(means) > 1 else None
    return JudgePreferences(
        judge=judge,
        a=a,
        b=b,
        pairs=len(found),
        a_wins=sum(one.winner == "a" for one in found),
        b_wins=sum(one.winner == "b" for one in found),
        ties=sum(one.winner == "tie" for one in found),
        swayed=sum(one.swayed for one in found),
        unusable=wanted - len(found),
        preferred=Estimate(
            value=fmean(means) if means else None,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            cases=len(means),
            attempts=len(found),
        ),
        position=position_bias([one.favoured for one in found]),
    )
