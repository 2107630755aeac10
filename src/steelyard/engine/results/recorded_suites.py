"""Recorded responses scored as they are, and judged again beside that where their cases are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.analysis.suites import OurClass, RecordedResponse, RecordedSuites, recorded_suites
from steelyard.errors import InputError, VerifierError
from steelyard.outcomes.responses import read_responses
from steelyard.records import Case
from steelyard.text import counted, short_quote
from steelyard.verifiers.response.verifier import case_check, classify_answer


def score_recorded_suites(paths: Sequence[str | Path], cases: Sequence[Case] | None = None) -> list[RecordedSuites]:
    """What files of results say, by model and run; with cases also what we say."""
    if cases is None:
        return recorded_suites(read_responses(paths, with_texts=False))
    responses = read_responses(paths)
    expected = {case.id: case.expected_classification for case in cases}
    return recorded_suites(responses, _our_classes(responses, cases), expected)


def _our_classes(responses: Sequence[RecordedResponse], cases: Sequence[Case]) -> dict[int, OurClass]:
    """What we call each response whose case has a check, by its place."""
    try:
        checks = {case.id: case_check(case) for case in cases if case.kind == "response"}
    except VerifierError as error:
        raise InputError(str(error)) from None
    known = {response.case for response in responses} & {case.id for case in cases}
    if not known:
        raise InputError(
            f"none of the {counted(len(responses), 'response')} belongs to one of the {counted(len(cases), 'case')}, such as "
            f"{short_quote(cases[0].id)}; are they the cases of these results?"
        )
    found = {}
    for place, response in enumerate(responses):
        if response.case in checks:
            result = classify_answer(response.answer, checks[response.case])
            found[place] = OurClass(primary=result.primary, why=result.details[0].what if result.details else "")
    return found
