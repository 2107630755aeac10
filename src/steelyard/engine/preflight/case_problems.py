"""Reasons why cases cannot be verified, each said once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.errors import MissingToolError, Problem, VerifierError


def problems_by_reason(reasons: Mapping[str, VerifierError]) -> list[Problem]:
    """Each reason once, with the cases that it concerns: a missing compiler is one problem, not one for every case."""
    concerned: dict[tuple[str, bool], list[str]] = {}
    for case, error in reasons.items():
        concerned.setdefault((str(error), isinstance(error, MissingToolError)), []).append(f'"{case}"')
    return [
        # cases that another machine could verify are named one by one, so that they can be run there
        Problem(_cases_text(cases, len(cases) if is_missing_tool else 3), 0, reason)
        for (reason, is_missing_tool), cases in concerned.items()
    ]


def _cases_text(cases: Sequence[str], most: int) -> str:
    if len(cases) == 1:
        return f"case {cases[0]}"
    return f"{len(cases)} cases ({', '.join(cases[:most])}{', ...' if len(cases) > most else ''})"
