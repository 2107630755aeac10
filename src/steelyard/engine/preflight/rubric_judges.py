"""Who judges the checks of cases that are rubrics, known and reachable before anything is paid for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.connect import close_providers, connect
from steelyard.engine.tiers.judging import max_judging_tokens
from steelyard.errors import InputError, VerifierError
from steelyard.evalsets.experiments import is_same_model
from steelyard.plugins import load_plugin
from steelyard.records import Case, Panel
from steelyard.store.stored_cases import changed_cases
from steelyard.text import counted, short_quote
from steelyard.verifiers.checks.rubric import rubric_check, rubric_judges, rubric_tables
from steelyard.verifiers.response.judged import CheckTable

if TYPE_CHECKING:
    from steelyard.engine.options import RunOptions
    from steelyard.protocols import Provider
    from steelyard.records import Attempt


def with_judges(cases: Sequence[Case], means: RunOptions, judges: Sequence[str] = ()) -> Sequence[Case]:
    """The cases with the judges of the run in every rubric that names none; raises an InputError if there is no judge.

    The judges are part of the tests, so that judgments of other judges are never reused.
    """
    if not any(map(rubric_tables, cases)):
        return cases
    names = tuple(means.judges or judges)
    unnamed = [case.id for case in cases if any("judges" not in check for check in rubric_tables(case))]
    if unnamed and not names:
        raise InputError(
            f"{counted(len(unnamed), 'case')}, such as {short_quote(unnamed[0])}, {'has' if len(unnamed) == 1 else 'have'} "
            "a check that is a rubric, and no judge is named; name one with --judges, such as --judges openai/gpt-5-mini"
        )
    if not getattr(load_plugin("pools", means.backend), "verifies_here", True):
        raise InputError(
            f"checks that are rubrics are judged on the machine that asks; run without --backend {means.backend}"
        )
    known = changed_cases(cases, lambda case: _with_judges(case, names) if rubric_tables(case) else case)
    for case in known:
        for table in rubric_tables(case):
            if "ask_first" in table:
                _check_escalation(case, table)
    return known


def _check_escalation(case: Case, table: dict[str, object]) -> None:
    try:
        rubric_check(CheckTable(table, "checks"))
    except VerifierError as error:
        raise InputError(f"case {short_quote(case.id)}: {error}") from None


def with_earlier_judges(cases: Sequence[Case], earlier: Sequence[Case]) -> Sequence[Case]:
    """Cases as their eval set has them now, with the judges that a stored run asked about the same cases."""
    everybody = rubric_judges(earlier)
    if not everybody:
        return cases
    judges = {case.id: named for case in earlier if (named := rubric_judges([case]))}
    return changed_cases(
        cases,
        lambda case: _with_judges(case, judges.get(case.id) or everybody) if rubric_tables(case) else case,
    )


def _with_judges(case: Case, judges: Sequence[str]) -> Case:
    if not judges:
        return case
    checks = [
        {**check, "judges": list(judges)} if "rubric" in check and "judges" not in check else check
        for check in case.verify.settings["checks"]
    ]
    settings = {**case.verify.settings, "checks": checks}
    return msgspec.structs.replace(case, verify=msgspec.structs.replace(case.verify, settings=settings))


def connect_judges(
    cases: Sequence[Case], models: Sequence[str], means: RunOptions, *, asks: bool = True
) -> dict[str, Provider]:
    """Whom to ask about the rubrics of these cases, by the names in their checks; refuses a model that would judge itself."""
    connected: dict[str, Provider] = {}
    for judge in rubric_judges(cases):
        if not means.allow_self and any(is_same_model(model, judge) for model in models):
            run_coroutine(close_providers(connected))
            raise InputError(f"{judge} would judge its own answers; name another judge, or say --allow-self")
        found = connect([judge], means, asks=asks)
        if len(found) != 1:
            run_coroutine(close_providers({**connected, **found}))
            raise InputError(f"judge {judge} stands for {len(found)} models; name one of them")
        connected[judge] = next(iter(found.values()))
    return connected


def rubric_requests(attempts: Iterable[Attempt]) -> dict[str, list[tuple[int, int]]]:
    """By judge, the most input and output tokens of each question about the answers to these attempts."""
    sizes: dict[str, list[tuple[int, int]]] = {}
    known: dict[str, list[tuple[str, tuple[int, int]]]] = {}
    for attempt in attempts:
        # all attempts at a case are asked the same
        if attempt.case.id not in known:
            known[attempt.case.id] = list(_questions(attempt))
        for judge, size in known[attempt.case.id]:
            sizes.setdefault(judge, []).append(size)
    return sizes


def _questions(attempt: Attempt) -> Iterator[tuple[str, tuple[int, int]]]:
    for table in rubric_tables(attempt.case):
        check = rubric_check(CheckTable(table, "checks"))
        panel = Panel(judges=(), rubric=msgspec.to_builtins(check.rubric), digest=check.rubric.digest)
        size = max_judging_tokens(attempt, panel)
        for judge in check.judges:
            yield judge, size
