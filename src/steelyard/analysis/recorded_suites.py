"""Responses that another tool classified: their scores, and where we classify them differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from steelyard.analysis.suites import RESPONSE_CLASSES, SuiteCase, SuiteScores, suite_scores
from steelyard.records import Answer, Record, SuiteRule
from steelyard.records.cases import ExpectedClassification
from steelyard.stats.descriptive import percentile


class RecordedResponse(Record, frozen=True, kw_only=True):
    """One line of results: a response, and what its author calls it."""

    run: str
    model: str
    suite: str
    case: str
    primary: str
    """The recorded class; empty if none is recorded."""
    is_detailed: bool = True
    """Whether the class is recorded, and not only whether it passed."""
    accuracy: float | None = None
    """The recorded accuracy, where there is one."""
    answer: Answer


class OurClass(Record, frozen=True, kw_only=True):
    """What we call a response, and why."""

    primary: str
    why: str


class ClassDisagreement(Record, frozen=True, kw_only=True):
    """A response that we classify differently than its author."""

    suite: str
    case: str
    they: str
    we: str
    why: str
    """The rule that decided for us, in one sentence."""


class RecordedSuites(Record, frozen=True, kw_only=True):
    """The responses of one model in one run."""

    run: str
    model: str
    responses: int
    unclassified: int
    """Responses without a recorded class; they are in no denominator."""
    they: SuiteScores
    """By the recorded classes."""
    we: SuiteScores | None = None
    """By our checks; None if there are no cases."""
    compared: int = 0
    """Responses that both of us classified."""
    disagreements: tuple[ClassDisagreement, ...] = ()
    contradictions: int = 0
    """Responses whose recorded accuracy is not that of their recorded class."""
    latency_p50: float | None = None
    latency_p95: float | None = None
    """Seconds; None if none are recorded."""


def recorded_suites(
    responses: Sequence[RecordedResponse],
    ours: Mapping[int, OurClass] | None = None,
    expected: Mapping[str, ExpectedClassification] | None = None,
) -> list[RecordedSuites]:
    """The scores of each model in each run, and where we differ.

    `ours` is what we call each response by its place, as far as we can tell; `expected` the outcome that the author of a case expects.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for place, response in enumerate(responses):
        places.setdefault((response.run, response.model), []).append(place)
    return [
        _one_run(run, model, {place: responses[place] for place in its}, ours, expected or {})
        for (run, model), its in places.items()
    ]


def _one_run(
    run: str,
    model: str,
    responses: Mapping[int, RecordedResponse],
    ours: Mapping[int, OurClass] | None,
    expected: Mapping[str, ExpectedClassification],
) -> RecordedSuites:
    theirs = {place: response.primary for place, response in responses.items()}
    our_classes = (
        {place: ours[place].primary if place in ours else "" for place in responses} if ours is not None else {}
    )
    waits = [response.answer.latency for response in responses.values() if response.answer.latency is not None]
    both = [place for place in responses if theirs[place] and our_classes.get(place)]
    return RecordedSuites(
        run=run,
        model=model,
        responses=len(responses),
        unclassified=sum(not primary for primary in theirs.values()),
        they=suite_scores(_suite_cases(responses, theirs, expected), SuiteRule()),
        we=suite_scores(_suite_cases(responses, our_classes, expected), SuiteRule()) if ours is not None else None,
        compared=len(both),
        disagreements=tuple(
            ClassDisagreement(
                suite=responses[place].suite,
                case=responses[place].case,
                they=theirs[place],
                we=our_classes[place],
                why=ours[place].why if ours else "",
            )
            for place in both
            if _differ(theirs[place], our_classes[place], responses[place].is_detailed)
        ),
        contradictions=sum(
            response.accuracy is not None
            and response.primary != ""
            and response.accuracy != (response.primary == "pass")
            for response in responses.values()
        ),
        latency_p50=percentile(waits, 0.5),
        latency_p95=percentile(waits, 0.95),
    )


def _differ(they: str, we: str, is_detailed: bool) -> bool:
    """Whether two classes say different things; theirs has no word for a reply that was cut off."""
    if not is_detailed or they not in RESPONSE_CLASSES:
        return (they == "pass") != (we == "pass")
    return they != ("fail" if we == "truncated" else we)


def _suite_cases(
    responses: Mapping[int, RecordedResponse],
    classes: Mapping[int, str],
    expected: Mapping[str, ExpectedClassification],
) -> Iterable[SuiteCase]:
    by_case: dict[tuple[str, str], list[int]] = {}
    for place, response in responses.items():
        by_case.setdefault((response.suite, response.case), []).append(place)
    for (suite, case), places in by_case.items():
        waits = (responses[place].answer.latency for place in places)
        yield SuiteCase(
            suite=suite,
            group=f"{suite}\0{case}",
            expected=expected.get(case, ""),
            classes=Counter(classes[place] for place in places if classes[place]),
            missing=sum(not classes[place] for place in places),
            waits=[wait for wait in waits if wait is not None],
        )
