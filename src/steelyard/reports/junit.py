"""A run as JUnit XML, which CI systems show as a list of tests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from pathlib import PurePath
from xml.etree import ElementTree

from steelyard.analysis.attempt_texts import attempts_of_model
from steelyard.analysis.summary import AttemptText, CaseSummary, ModelSummary, RunResults
from steelyard.records import RunInfo, Test
from steelyard.reports.exports.streaming import StreamedReport
from steelyard.reports.figures import (
    attempt_failure_reason,
    case_figures,
    metric_rows,
    missing_reason,
    model_label,
    money,
    verification_text,
)
from steelyard.text import counted, line, plain

MAX_JUNIT_REASONS = 5
"""Different reasons that a failure lists, and failed tests under each."""

MAX_JUNIT_HEADLINE_CHARACTERS = 200
"""Characters of a failure's headline, which CI systems show on one line."""

MAX_JUNIT_MESSAGE_CHARACTERS = 1_000
"""Characters of a reason, and of the message of a failed test."""

# XML 1.0, fifth edition, section 2.2, has no way at all to write these two; the others it forbids are invisible ones
_FORBIDDEN_XML_CHARACTERS = re.compile("[\ufffe\uffff]")


@StreamedReport
def report(results: RunResults) -> Iterator[str]:
    """A suite per model and in it a test per case.

    A test fails unless every judged attempt is correct: a model that is right now and then is a flaky test, and the
    message says how often it was right. Without a judged attempt it is an error, which CI systems distinguish from a
    failure. Attempts that are missing beside judged ones do not count; a property says how many there are.
    """
    return junit_pieces("steelyard", _suites(results))


def _suites(results: RunResults) -> Iterator[JunitSuite]:
    for model in results.summary.models:
        place = model.model, model.tier
        started = junit_text(results.info.started_at[: len("2026-02-03T04:05:06")])
        suite = ElementTree.Element("testsuite", name=junit_text(model_label(*place)), timestamp=started)
        _add_properties(suite, _model_properties(results.info, model, results.summary.rule))
        cases = {case.case: case for case in results.summary.cases if (case.model, case.tier) == place}
        yield suite, _tests(cases, attempts_of_model(results.attempts, *place))


JunitSuite = tuple[ElementTree.Element, Iterable[ElementTree.Element]]
"""A suite without its tests, and these."""


def junit_pieces(name: str, suites: Iterable[JunitSuite]) -> Iterator[str]:
    """Suites with their tests, counted, as a file that comes in pieces."""
    root = ElementTree.Element("testsuites", name=name)
    written: list[list[str]] = []
    every: Counter[str] = Counter()
    total = 0.0
    for suite, tests in suites:
        texts, counts, seconds = [], Counter[str](), 0.0
        for test in tests:
            counts.update(["testcase", *(each.tag for each in test)])
            seconds += float(test.get("time", "0"))
            ElementTree.indent(test, level=2)
            texts.append(ElementTree.tostring(test, encoding="unicode"))
        _set_test_counts(suite, counts, seconds)
        every, total = every + counts, total + seconds
        root.append(suite)
        if texts:
            ElementTree.SubElement(suite, "tests")
            written.append(texts)
    _set_test_counts(root, every, total)
    ElementTree.indent(root)
    first, *others = ElementTree.tostring(root, encoding="unicode").split("\n    <tests />")
    yield f'<?xml version="1.0" encoding="utf-8"?>\n{first}'
    for texts, after in zip(written, others, strict=True):
        yield from (f"\n    {text}" for text in texts)
        yield after
    yield "\n"


def _tests(cases: Mapping[str, CaseSummary], attempts: Iterable[AttemptText]) -> Iterator[ElementTree.Element]:
    """The tests of one model, from its attempts in the order of the cases; the attempts of one case are kept at a time."""
    waiting = iter(cases.values())
    for name, group in groupby(attempts, key=lambda tried: tried.case.id):
        if name in cases:
            untried = takewhile(lambda case, name=name: case.case != name, waiting)  # type: ignore[misc]
            yield from (_test(case, ()) for case in untried)
            yield _test(cases[name], list(group))
    yield from (_test(case, ()) for case in waiting)


def _test(case: CaseSummary, attempts: Sequence[AttemptText]) -> ElementTree.Element:
    # the model is the class: GitLab takes two tests with the same class and name for one, whatever their suites
    about = {"classname": junit_text(model_label(case.model, case.tier)), "name": junit_text(case.case)}
    test = ElementTree.Element("testcase", about, time=f"{sum(map(_seconds, attempts)):.3f}")
    _add_properties(test, _case_properties(case, attempts))
    if not case.attempts:
        stage, message = next((missing_reason(tried) for tried in attempts), ("ask", "not asked yet"))
        error = ElementTree.SubElement(
            test, "error", message=_line(f"not judged: {stage}: {message}"), type=_line(stage)
        )
        error.text = _lines(
            [
                f"attempt {tried.number}: {line(attempt_failure_reason(tried), MAX_JUNIT_MESSAGE_CHARACTERS)}"
                for tried in attempts[:MAX_JUNIT_REASONS]
            ]
        )
    elif case.correct < case.attempts:
        wrong = [tried for tried in attempts if tried.correct is False]
        share = f"{case.correct}/{case.attempts} correct"
        failure = ElementTree.SubElement(
            test,
            "failure",
            message=_line(f"{share}: {case.why}" if case.why else share),
            type=_line(_most_frequent_label(wrong)),
        )
        failure.text = _reasons(wrong)
    return test


def _most_frequent_label(wrong: Iterable[AttemptText]) -> str:
    """The most frequent kind of failure."""
    labels = Counter(tried.verdict.found.label for tried in wrong if tried.verdict and tried.verdict.found.label)
    return labels.most_common(1)[0][0] if labels else "wrong answer"


def _reasons(wrong: Iterable[AttemptText]) -> str:
    """Why attempts are wrong, the most frequent reason first, each with the messages of the tests of its first attempt."""
    groups: dict[str, list[AttemptText]] = {}
    for tried in wrong:
        groups.setdefault(attempt_failure_reason(tried), []).append(tried)
    lines: list[str] = []
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    for reason, same in ranked[:MAX_JUNIT_REASONS]:
        numbers = ", ".join(f"{tried.number}" for tried in same[:20]) + (", ..." if len(same) > 20 else "")
        lines.append(
            f"{'attempt' if len(same) == 1 else 'attempts'} {numbers}: {line(reason, MAX_JUNIT_MESSAGE_CHARACTERS) or 'not correct'}"
        )
        found = same[0].verdict.found if same[0].verdict else None
        failed = [test for test in found.tests if test.outcome == "failed"] if found else []
        lines += [_failed_test_text(test) for test in failed[:MAX_JUNIT_REASONS]]
        if len(failed) > MAX_JUNIT_REASONS:
            lines.append(f"  and {counted(len(failed) - MAX_JUNIT_REASONS, 'more failed test')}")
    if len(ranked) > MAX_JUNIT_REASONS:
        lines.append(f"and {counted(len(ranked) - MAX_JUNIT_REASONS, 'other reason')}")
    return _lines(lines)


def _failed_test_text(test: Test) -> str:
    message = (
        test.message
        if len(test.message) <= MAX_JUNIT_MESSAGE_CHARACTERS
        else test.message[:MAX_JUNIT_MESSAGE_CHARACTERS] + "…"
    )
    return "\n    ".join([f"  {line(test.name, MAX_JUNIT_HEADLINE_CHARACTERS)}", *plain(message).splitlines()])


def _seconds(tried: AttemptText) -> float:
    """What an attempt took: the model's time, where it is known, and that of verifying it."""
    asking = (tried.reply.answer.latency if tried.reply else None) or 0.0
    found = tried.verdict.found if tried.verdict else None
    return asking + (found.compile_seconds + found.test_seconds if found else 0.0)


def _model_properties(info: RunInfo, model: ModelSummary, rule: str) -> Mapping[str, str]:
    about = {"run": info.id, "eval sets": ", ".join(PurePath(file.path).name for file in info.eval_sets), "rule": rule}
    rows = {row.name.rstrip("*"): row.cells[0] for row in metric_rows([model])}
    return about | rows | {"verified": verification_text([model])}


def _case_properties(case: CaseSummary, attempts: Iterable[AttemptText]) -> Mapping[str, str]:
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
            ElementTree.SubElement(properties, "property", name=name, value=junit_text(value))


def _set_test_counts(parent: ElementTree.Element, counts: Counter[str], seconds: float) -> None:
    parent.set("tests", f"{counts['testcase']}")
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        parent.set(name, f"{counts[tag]}")
    parent.set("time", f"{seconds:.3f}")


def junit_text(text: str) -> str:
    """A name or a sentence as XML may hold it."""
    # never cut: two long names may differ at their ends only
    return _valid_xml_text(line(text))


def _line(text: str) -> str:
    return _valid_xml_text(line(text, MAX_JUNIT_HEADLINE_CHARACTERS))


def _lines(texts: Iterable[str]) -> str:
    return _valid_xml_text("\n".join(map(plain, texts)))


def _valid_xml_text(text: str) -> str:
    return _FORBIDDEN_XML_CHARACTERS.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
