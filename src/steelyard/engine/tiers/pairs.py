"""Two models' answers compared by judges, each pair in both orders.

The questions are cases of a run of their own, so that every paid judgment is stored before it is read, a budget holds, and
`resume` continues where it was stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from steelyard.analysis.attempt_texts import AttemptText, attempt_texts
from steelyard.analysis.attempts import Column
from steelyard.analysis.estimates import Estimate
from steelyard.analysis.judge_bias import JudgePreferences, position_bias
from steelyard.engine.options import RunOptions
from steelyard.engine.run import Run, run
from steelyard.errors import InputError, did_you_mean
from steelyard.records import JUDGE_ONLY_KIND, Case, Verify, digest
from steelyard.stats.intervals import mean_interval
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import PAIR_TAG, are_pair_tags
from steelyard.text import short_quote
from steelyard.tiers.rubrics import Rubric
from steelyard.verifiers.judge.answer import UnusableJudgeReply, combined_preference, messages, preference

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
    answers: dict[str, dict[tuple[str, int], AttemptText]] = {}
    for one in attempt_texts(stored.info, stored.cases, stored.facts()):
        if one.reply is not None:
            answers.setdefault(Column(one.model, one.tier).label, {})[one.case.id, one.number] = one
    # the first model that was named is the first side
    places = {name: place for place, name in enumerate(stored.info.names)}
    named = sorted(answers, key=lambda label: places.get(next(iter(answers[label].values())).model, len(places)))
    a, b = _sides(named, between)
    shared = [key for key in answers[a] if key in answers[b]]
    if not shared:
        raise InputError(f"{short_quote(a)} and {short_quote(b)} have no answers to the same case")
    cases = []
    for key in shared:
        texts = [_text(answers[side][key]) for side in (a, b)]
        asked = answers[a][key].case
        task = asked.prompt if isinstance(asked.prompt, str) else "\n\n".join(turn.text for turn in asked.prompt)
        for order, (first, second) in zip(ANSWER_ORDERS, (texts, texts[::-1]), strict=True):
            name = f"{asked.id}, answer {key[1]}, {order}"
            cases.append(
                Case(
                    id=digest(PAIR_TAG, name, a, b)[:16],
                    name=name,
                    # the mark around answers depends on both of them, so that neither can forge it
                    prompt=messages(task, first, second, digest(first, second, task), rubric),
                    group=asked.id,
                    tags=(PAIR_TAG, a, b, order, str(key[1])),
                    verify=Verify(kind=JUDGE_ONLY_KIND),
                )
            )
    return run(cases, models=list(judges), means=means, samples=1, output=output, parameters=parameters)


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
    return bool(stored.cases) and all(are_pair_tags(case.tags) for case in stored.cases)


def pair_preferences(stored: StoredRun) -> list[JudgePreferences]:
    """What each judge of a run of pairs says; what is not there yet is counted as unusable."""
    if not is_pairs_run(stored):
        raise InputError(f"{stored.folder}: has no judgments of pairs; `steelyard pairs RUN --judges MODEL` makes them")
    said: dict[str, dict[tuple[str, str], dict[str, str]]] = {}
    for one in attempt_texts(stored.info, stored.cases, stored.facts()):
        _, _, _, order, number = one.case.tags
        if one.reply is not None:
            said.setdefault(one.model, {}).setdefault((one.case.group, number), {})[order] = _text(one)
    _, a, b, *_ = stored.cases[0].tags
    wanted = len(stored.cases) // 2
    return [_preferences(judge, a, b, said.get(judge, {}), wanted) for judge in stored.info.names]


def _preferences(
    judge: str, a: str, b: str, said: dict[tuple[str, str], dict[str, str]], wanted: int
) -> JudgePreferences:
    found = []
    by_case: dict[str, list[float]] = {}
    for (case, _), replies in said.items():
        both = [preference(replies[order]) for order in ANSWER_ORDERS if order in replies]
        usable = [one for one in both if not isinstance(one, UnusableJudgeReply)]
        if len(usable) == 2:
            judged = combined_preference(*usable)
            found.append(judged)
            by_case.setdefault(case, []).append({"a": 1.0, "b": 0.0, "tie": 0.5}[judged.winner])
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
