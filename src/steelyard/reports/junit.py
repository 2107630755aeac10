"""A run as JUnit XML, which CI systems show as a list of tests."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from steelyard.reports.figures import case_figures, counted, figures, line, money, named, obstacle, plain, verified, why

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard.analysis.summary import CaseSummary, ModelSummary, Results, Tried
    from steelyard.records import RunInfo, Test

REASONS = 5
"""Different reasons that a failure tells of, and failed tests under each."""

LONGEST = 200
"""Characters of a failure's headline, which CI systems show on one line."""

LONGEST_MESSAGE = 1_000
"""Characters of a reason, and of what a failed test said."""

# XML 1.0, fifth edition, section 2.2, has no way at all to write these two; the others it forbids are invisible ones
_FORBIDDEN = re.compile("[\ufffe\uffff]")


def report(results: Results) -> str:
    """A suite per model and in it a test per case.

    A test fails unless every judged attempt is correct: a model that is right now and then is a flaky test, and the
    message says how often it was right. Where no attempt was judged it is an error, which CI systems tell apart from
    a failure. Attempts that are missing beside judged ones do not count; a property says how many there are.
    """
    attempts: dict[tuple[str, str, str], list[Tried]] = {}
    for tried in results.attempts:
        attempts.setdefault((tried.case.id, tried.model, tried.tier), []).append(tried)
    rows: dict[tuple[str, str], list[CaseSummary]] = {}
    for case in results.summary.cases:
        rows.setdefault((case.model, case.tier), []).append(case)
    root = ElementTree.Element("testsuites", name="steelyard")
    for model in results.summary.models:
        suite = ElementTree.SubElement(root, "testsuite", name=_name(named(model.model, model.tier)))
        _add_properties(suite, _of_model(results.info, model, results.summary.rule))
        for case in rows.get((model.model, model.tier), ()):
            _add_case(suite, case, attempts.get((case.case, case.model, case.tier), ()))
        _count(suite, suite.iter("testcase"))
        suite.set("timestamp", _name(results.info.started_at[: len("2026-02-03T04:05:06")]))
    _count(root, root.iter("testcase"))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _add_case(suite: ElementTree.Element, case: CaseSummary, attempts: Sequence[Tried]) -> None:
    # the model is the class: GitLab takes two tests with the same class and name for one, whatever their suites
    about = {"classname": _name(named(case.model, case.tier)), "name": _name(case.case)}
    test = ElementTree.SubElement(suite, "testcase", about, time=f"{sum(map(_seconds, attempts)):.3f}")
    _add_properties(test, _of_case(case, attempts))
    if not case.attempts:
        stage, message = next((obstacle(tried) for tried in attempts), ("ask", "not asked yet"))
        error = ElementTree.SubElement(
            test, "error", message=_line(f"not judged: {stage}: {message}"), type=_line(stage)
        )
        error.text = _lines(
            [f"attempt {tried.number}: {line(why(tried), LONGEST_MESSAGE)}" for tried in attempts[:REASONS]]
        )
    elif case.correct < case.attempts:
        wrong = [tried for tried in attempts if tried.correct is False]
        share = f"{case.correct}/{case.attempts} correct"
        failure = ElementTree.SubElement(
            test,
            "failure",
            message=_line(f"{share}: {case.why}" if case.why else share),
            type=_line(_kind(wrong)),
        )
        failure.text = _reasons(wrong)


def _kind(wrong: Iterable[Tried]) -> str:
    """The most frequent kind of failure."""
    labels = Counter(tried.verdict.found.label for tried in wrong if tried.verdict and tried.verdict.found.label)
    return labels.most_common(1)[0][0] if labels else "wrong answer"


def _reasons(wrong: Iterable[Tried]) -> str:
    """Why attempts are wrong, the most frequent reason first, each with what the tests of its first attempt said."""
    groups: dict[str, list[Tried]] = {}
    for tried in wrong:
        groups.setdefault(why(tried), []).append(tried)
    told: list[str] = []
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    for reason, same in ranked[:REASONS]:
        numbers = ", ".join(f"{tried.number}" for tried in same[:20]) + (", ..." if len(same) > 20 else "")
        told.append(
            f"{'attempt' if len(same) == 1 else 'attempts'} {numbers}: {line(reason, LONGEST_MESSAGE) or 'not correct'}"
        )
        found = same[0].verdict.found if same[0].verdict else None
        failed = [test for test in found.tests if test.outcome == "failed"] if found else []
        told += [_said(test) for test in failed[:REASONS]]
        if len(failed) > REASONS:
            told.append(f"  and {counted(len(failed) - REASONS, 'more failed test')}")
    if len(ranked) > REASONS:
        told.append(f"and {counted(len(ranked) - REASONS, 'other reason')}")
    return _lines(told)


def _said(test: Test) -> str:
    message = test.message if len(test.message) <= LONGEST_MESSAGE else test.message[:LONGEST_MESSAGE] + "…"
    return "\n    ".join([f"  {line(test.name, LONGEST)}", *plain(message).splitlines()])


def _seconds(tried: Tried) -> float:
    """What an attempt took: the model's time and that of verifying it."""
    asking = tried.reply.answer.latency if tried.reply else 0.0
    found = tried.verdict.found if tried.verdict else None
    return asking + (found.compile_seconds + found.test_seconds if found else 0.0)


def _of_model(info: RunInfo, model: ModelSummary, rule: str) -> Mapping[str, str]:
    about = {"run": info.id, "eval sets": ", ".join(PurePath(file.path).name for file in info.eval_sets), "rule": rule}
    rows = {row.name.rstrip("*"): row.cells[0] for row in figures([model])}
    return about | rows | {"verified": verified([model])}


def _of_case(case: CaseSummary, attempts: Iterable[Tried]) -> Mapping[str, str]:
    about = {"summary": case_figures(case)}
    about |= {f"pass@{k}": f"{value:.4f}" for k, value in sorted(case.pass_at.items()) if value is not None}
    if case.attempts and case.rate.low is not None and case.rate.high is not None:
        about["pass@1 interval"] = f"{case.rate.low:.4f} to {case.rate.high:.4f}"
    if case.cost_usd is not None:
        about["cost"] = money(case.cost_usd)
    if case.missing:
        about["missing attempts"] = f"{case.missing}"
    findings = [tried.verdict.found for tried in attempts if tried.verdict]
    return about | {
        "trust": ", ".join(sorted({found.trust for found in findings if found.trust})),
        "isolation": ", ".join(sorted({found.isolation for found in findings if found.isolation})),
    }


def _add_properties(parent: ElementTree.Element, values: Mapping[str, str]) -> None:
    properties = ElementTree.SubElement(parent, "properties")
    for name, value in values.items():
        if value:
            ElementTree.SubElement(properties, "property", name=name, value=_name(value))


def _count(parent: ElementTree.Element, tests: Iterable[ElementTree.Element]) -> None:
    every = list(tests)
    parent.set("tests", f"{len(every)}")
    parent.set("failures", f"{sum(test.find('failure') is not None for test in every)}")
    parent.set("errors", f"{sum(test.find('error') is not None for test in every)}")
    parent.set("skipped", "0")
    parent.set("time", f"{sum(float(test.get('time', '0')) for test in every):.3f}")


def _name(text: str) -> str:
    # never cut: two long names may differ at their ends only
    return _allowed(line(text))


def _line(text: str) -> str:
    return _allowed(line(text, LONGEST))


def _lines(texts: Iterable[str]) -> str:
    return _allowed("\n".join(map(plain, texts)))


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
