"""The sides of a comparison: how often each case passed, and which cases of two sides are the same question to the same tests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from steelyard.analysis.attempts import NO_PLACE
from steelyard.analysis.case_attempts import attempts_by_case
from steelyard.analysis.cheats import cheats_text
from steelyard.analysis.suites import ordered_class_counts
from steelyard.errors import InputError
from steelyard.records import Record
from steelyard.records.base import Amount, AttemptIndex, SignedNumber
from steelyard.text import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from steelyard.analysis.attempts import AttemptRow, AttemptTable
    from steelyard.analysis.case_attempts import CaseAttempts
    from steelyard.analysis.counts import Tally
    from steelyard.records import Case, RunInfo


class Trials(Record, frozen=True, kw_only=True, gc=False):
    """All judged attempts of one model at one case."""

    case: str
    tests: str = ""
    """The digest of the tests that judged them; empty if it is not known."""
    judged_by: tuple[str, ...] = ()
    """The verifiers that judged them, with the versions of their rules; empty if that is not known."""
    attempts: AttemptIndex
    passes: AttemptIndex
    missing: AttemptIndex = 0
    """Attempts that were planned and have no verdict."""
    scores: tuple[tuple[SignedNumber, AttemptIndex], ...] = ()
    """Each score with how many attempts have it, in ascending order; attempts without a score are left out."""
    graded: AttemptIndex = 0
    """Attempts whose score is what was measured; the others pass or fail by themselves."""
    suite: str = ""
    """The suite that the case belongs to; empty if it belongs to no suite, or that is not known."""
    classes: tuple[tuple[str, AttemptIndex], ...] = ()
    """Each class of response with how many attempts are of it, where the case belongs to a suite; empty if it is not known."""
    group: str = ""
    """Cases of one group are not independent of each other; empty if the case has none, or that is not known."""
    critical: bool = False
    limit: Amount | None = None
    """CPU seconds that an answer could run; None if no program is run, or that is not known."""
    cost_usd: Amount | None = None
    """What all these attempts cost; None if a price is unknown."""
    further_attempts: AttemptIndex | None = None
    """Attempts beyond those that all cases got, because this one looked worse; None if none were planned.

    They count in no mean: that they were asked depends on the results of the others.
    """
    further_passes: AttemptIndex = 0
    further_scores: tuple[tuple[SignedNumber, AttemptIndex], ...] = ()
    """The scores of these, as in `scores`."""
    cached_from: tuple[str, ...] = ()
    """The ids of the runs that asked for some of the replies, where these were taken from the reply cache."""

    def __post_init__(self) -> None:
        further = self.further_passes if self.further_attempts is None else self.further_attempts
        if self.passes > self.attempts or self.further_passes > further:
            raise ValueError(f"case {self.case!r} has more passes than attempts")

    @property
    def score(self) -> float | None:
        """The mean score of the attempts that have one."""
        every = self.every_score
        return math.fsum(every) / len(every) if every else None

    @property
    def every_score(self) -> tuple[float, ...]:
        """One score for every attempt that has one."""
        return tuple(score for score, times in self.scores for _ in range(times))

    @property
    def every_further_score(self) -> tuple[float, ...]:
        """The same for the further attempts."""
        return tuple(score for score, times in self.further_scores for _ in range(times))


class Side(Record, frozen=True, kw_only=True):
    """The trials of some models, and where they come from."""

    name: str
    """As the user called it."""
    rule: str
    models: dict[str, tuple[Trials, ...]]
    runs: tuple[str, ...] = ()
    """The ids of the runs it was made of, as far as they are known."""
    cases: Literal["", "fail", "warn", "off"] = ""
    """What single cases that got worse mean for a gate on this baseline; empty if that was left open."""
    is_scored: bool = True
    """Whether its attempts have scores, rather than only passes."""
    warnings: tuple[str, ...] = ()
    """What a user should know about the file it was read from."""


def run_side(
    name: str,
    rule: str,
    info: RunInfo,
    cases: Sequence[Case],
    table: AttemptTable,
    limit_of: Callable[[Case], float | None] = lambda _: None,
) -> Side:
    """The attempts of a run, scored by a rule, as a side of a comparison; `limit_of` tells how long an answer could run."""
    # further attempts depend on the results of the others: they count in no mean
    further: dict[tuple[int, int], list[AttemptRow]] = {}

    def fair_rows() -> Iterator[AttemptRow]:
        for row in table.rows:
            model = table.columns[row.column].model
            if not info.more or row.number <= (info.fair_samples(model, cases[row.case].id) or 0):
                yield row
            elif row.outcome != "missing":
                further.setdefault((row.column, row.case), []).append(row)

    indexes = {column: index for index, column in enumerate(table.columns)}
    models: dict[str, tuple[Trials, ...]] = {}
    alike: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for column, asked in attempts_by_case(info, cases, table, rows=fair_rows(), with_replies=False).items():
        models[column.label] = tuple(
            _trials(
                cases[order],
                attempts,
                further.get((indexes[column], order), []),
                alike,
                limit=limit_of(cases[order]),
                judged_by=tuple(sorted({table.digests[digest].rules for digest, _ in attempts.digests})),
                is_planned=info.more.get(column.model, {}).get(attempts.case.id, 0)
                > (info.fair_samples(column.model, attempts.case.id) or 0),
            )
            for order, attempts in _released(asked)
        )
    runs = (info.id, *(part.id for part in info.merged))
    return Side(name=name, rule=rule, models=models, runs=runs, warnings=_cheats(name, table))


def _cheats(name: str, table: AttemptTable) -> tuple[str, ...]:
    """What is worse than a mistake among the attempts of a run, or may be."""
    if not any(digest.tampered or digest.flag for digest in table.digests):
        return ()
    counts = Counter(row.digest for row in table.rows if row.digest != NO_PLACE)
    flagged: Counter[str] = Counter()
    for index, count in counts.items():
        if flag := table.digests[index].flag:
            flagged[flag] += count
    cheats = cheats_text(sum(counts[index] for index in counts if table.digests[index].tampered), flagged)
    return (f"{name}: {cheats}; look at them before you believe its figures",) if cheats else ()


def _released(asked: dict[int, CaseAttempts]) -> Iterator[tuple[int, CaseAttempts]]:
    """What was counted, case by case; it is taken out, because that of many cases takes as much memory as a side."""
    for order in list(asked):
        yield order, asked.pop(order)


def _trials(
    case: Case,
    attempts: CaseAttempts,
    further: Sequence[AttemptRow],
    alike: dict[tuple[Any, ...], tuple[Any, ...]],
    *,
    limit: float | None,
    judged_by: tuple[str, ...],
    is_planned: bool,
) -> Trials:
    """The attempts at one case; `alike` are tuples that other cases have as well."""
    classes = tuple(ordered_class_counts(dict(attempts.classes)).items()) if case.suite else ()
    cached = [sources for sources, _, _ in attempts.replies.cached]
    return Trials(
        case=attempts.case.id,
        tests=case.tests_digest,
        judged_by=alike.setdefault(judged_by, judged_by),
        attempts=attempts.judged,
        passes=attempts.correct,
        missing=attempts.unjudged,
        scores=attempts.scores,
        graded=attempts.graded,
        # hundreds of thousands of cases have few suites
        suite=attempts.case.suite,
        classes=alike.setdefault(classes, classes),
        group=attempts.case.group,
        critical=case.critical,
        limit=limit,
        cost_usd=attempts.cost,
        further_attempts=len(further) if is_planned else None,
        further_passes=sum(row.outcome == "correct" for row in further),
        further_scores=score_counts(row.score for row in further),
        cached_from=tuple(sorted({run for runs in (*cached, *(row.cached_from for row in further)) for run in runs})),
    )


def score_counts(scores: Iterable[float | None]) -> tuple[tuple[float, int], ...]:
    """Each score with how often it occurs, in ascending order; what has no score is left out."""
    return tuple(sorted(Counter(score for score in scores if score is not None).items()))


def pair_group(old: Trials, new: Trials) -> str:
    """The group of a case, as a name that no other case has by chance; what a side does not say, the other may."""
    group = new.group or old.group
    return f"group {group}" if group else f"case {new.case}"


UNNAMED_RULES = frozenset({"command 1", "function 1", "python 2", "response 2", "rust 1", "terraform 1"})
"""The rules by which our verifiers judged what is in baselines that do not name them."""


class PairedModel(NamedTuple):
    """A model, as it is called in the comparison, with the cases that both sides have."""

    name: str
    cases: list[tuple[Trials, Trials]]
    """Baseline and current, sorted by case."""


class Pairing(NamedTuple):
    """What two sides have in common, and what not."""

    new_models: tuple[str, ...]
    removed_models: tuple[str, ...]
    new_cases: tuple[str, ...]
    removed_cases: tuple[str, ...]
    models: Sequence[PairedModel] = ()
    tests_changed: tuple[str, ...] = ()
    """Cases that are judged by other tests now."""
    rules_changed: tuple[str, ...] = ()
    """Cases that our verifiers judge by other rules now, so that a difference may be theirs and not the model's."""
    limits_changed: tuple[str, ...] = ()
    """Cases to which an answer may run for another time now, each with both times; they are compared all the same."""
    replies_shared: tuple[str, ...] = ()
    """Cases at which both sides have the same replies: one of them took them from the reply cache, so they show no difference."""

    def label(self, case: str, model: str) -> str:
        """What a list calls a case: with its model, where there are several."""
        return _label(case, model, len(self.models))


def pair_sides(baseline: Side, current: Side) -> Pairing:
    """Cases pair by id and tests, models by name, or as they are where each side has one."""
    names = _paired_models(baseline, current)
    new: list[str] = []
    removed: list[str] = []
    changed: list[str] = []
    rejudged: list[str] = []
    shared: list[str] = []
    limited: list[str] = []
    models = []
    for name, before, after in names:
        cases = []
        for case, old, fresh in _paired_cases(baseline.models[before], current.models[after]):
            label = _label(case, name, len(names))
            if old is None or fresh is None:
                (new if old is None else removed).append(label)
            elif old.tests and fresh.tests and old.tests != fresh.tests:
                changed.append(label)
            elif _have_rules_changed(old, fresh, is_baseline=bool(baseline.runs and old.tests)):
                rejudged.append(label)
            elif before == after and share_replies((old, baseline.runs), (fresh, current.runs)):
                shared.append(label)
            else:
                cases.append((old, fresh))
                if old.limit is not None and fresh.limit is not None and old.limit != fresh.limit:
                    limited.append(f"{label} ({old.limit:g} s, now {fresh.limit:g} s)")
        models.append(PairedModel(name, cases))
    return Pairing(
        *_unpaired_models(baseline, current, names),
        new_cases=tuple(new),
        removed_cases=tuple(removed),
        models=models,
        tests_changed=tuple(changed),
        rules_changed=tuple(rejudged),
        limits_changed=tuple(limited),
        replies_shared=tuple(shared),
    )


class TallySide(NamedTuple):
    """One side of a comparison, as counts only."""

    name: str
    """As the user called it."""
    models: Mapping[str, Tally]


class PairedCounts(NamedTuple):
    """Many cases that both sides tried, as columns: a million of them take no more room than their names."""

    cases: Sequence[str]
    counts: NDArray[np.int64]
    """A row per case: attempts and passes of the baseline, attempts and passes of the current side."""


def pair_tallies(baseline: TallySide, current: TallySide) -> tuple[dict[str, PairedCounts], Pairing]:
    """The same for sides that are counts only: by model the cases of both sides, paired by id; the pairing says what they do not share."""
    import numpy as np

    names = _paired_models(baseline, current)
    models = {}
    new: list[str] = []
    removed: list[str] = []
    for name, before, after in names:
        old, fresh = baseline.models[before], current.models[after]
        places = {case: place for place, case in enumerate(fresh.cases)}
        shared = sorted((case, place) for place, case in enumerate(old.cases) if case in places)
        removed += [_label(case, name, len(names)) for case in sorted(set(old.cases) - places.keys())]
        cases = [case for case, _ in shared]
        own = np.fromiter((place for _, place in shared), np.intp, len(shared))
        theirs = np.fromiter((places.pop(case) for case in cases), np.intp, len(shared))
        new += [_label(case, name, len(names)) for case in sorted(places)]
        columns = [
            np.asarray(column)[chosen]
            for column, chosen in ((old.tried, own), (old.passed, own), (fresh.tried, theirs), (fresh.passed, theirs))
        ]
        models[name] = PairedCounts(cases, np.stack(columns, axis=1).astype(np.int64))
    return models, Pairing(*_unpaired_models(baseline, current, names), tuple(new), tuple(removed))


def _have_rules_changed(old: Trials, fresh: Trials, *, is_baseline: bool) -> bool:
    """Whether the verifiers of a case judged by other rules then than now."""
    if not fresh.judged_by:
        return False
    if old.judged_by:
        return old.judged_by != fresh.judged_by
    return (
        is_baseline
        and old.attempts > 0
        and any(
            rules not in UNNAMED_RULES and rules.partition(" ")[0] in {each.partition(" ")[0] for each in UNNAMED_RULES}
            for rules in fresh.judged_by
        )
    )


def share_replies(one: tuple[Trials, Sequence[str]], other: tuple[Trials, Sequence[str]]) -> bool:
    """Whether two trials of the same case and model, each with the ids of its runs, have replies in common."""
    if not (one[0].cached_from or other[0].cached_from):
        return False
    sources = set(one[0].cached_from), set(other[0].cached_from)
    return bool((sources[0] | {*one[1]}) & (sources[1] | {*other[1]}))


def replies_shared_sentence(baseline: str, cases: Sequence[str]) -> str:
    """What to do about cases at which both sides have the same replies."""
    more = f" and {len(cases) - 5} more" if len(cases) > 5 else ""
    return (
        f"{counted(len(cases), 'case')} with the same replies as {baseline}, not compared: {', '.join(cases[:5])}{more}; "
        "run without --cache to compare them"
    )


def rules_changed_sentence(baseline: str, cases: Sequence[str]) -> str:
    """What to do about cases that are judged by other rules now."""
    more = f" and {len(cases) - 5} more" if len(cases) > 5 else ""
    return (
        f"{counted(len(cases), 'case')} of {baseline} judged by older rules of steelyard, not compared: "
        f"{', '.join(cases[:5])}{more}; judge the older run again with steelyard verify RUN, "
        "and make a baseline of it again with steelyard bless"
    )


def limits_changed_sentence(baseline: str, cases: Sequence[str]) -> str:
    """What to know about cases to which an answer may run for another time now."""
    more = f" and {len(cases) - 5} more" if len(cases) > 5 else ""
    return (
        f"{counted(len(cases), 'case')} with another time limit than in {baseline}, so a difference may be the limit's: "
        f"{', '.join(cases[:5])}{more}"
    )


def _paired_models(baseline: Side | TallySide, current: Side | TallySide) -> list[tuple[str, str, str]]:
    """For each model what it is called here, in the baseline and now."""
    if len(baseline.models) == len(current.models) == 1:
        (old,), (new,) = baseline.models, current.models
        return [(new if old == new else f"{old} -> {new}", old, new)]
    shared = sorted(baseline.models.keys() & current.models.keys())
    if not shared:
        raise InputError(
            f"{baseline.name} and {current.name} share no model: {', '.join(sorted(baseline.models))} against "
            f"{', '.join(sorted(current.models))}; name one of each, such as {baseline.name}@MODEL"
        )
    return [(name, name, name) for name in shared]


def _unpaired_models(
    baseline: Side | TallySide, current: Side | TallySide, paired: Iterable[tuple[str, str, str]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The models that only the current side has, and those that only the baseline has."""
    _, before, after = zip(*paired, strict=True)
    return tuple(sorted(current.models.keys() - set(after))), tuple(sorted(baseline.models.keys() - set(before)))


def _paired_cases(
    baseline: Sequence[Trials], current: Sequence[Trials]
) -> Iterator[tuple[str, Trials | None, Trials | None]]:
    before, after = ({trials.case: trials for trials in side} for side in (baseline, current))
    for case in sorted(before.keys() | after.keys()):
        yield case, before.get(case), after.get(case)


def _label(case: str, model: str, models: int) -> str:
    return f"{case} ({model})" if models > 1 else case
