"""What a referee saw of an answer and its tests, as a finding."""

from __future__ import annotations

import signal
from typing import Any, NamedTuple

import msgspec

from steelyard.errors import VerifierError
from steelyard.protocols import FailureLabel, ProcessResult
from steelyard.records import Finding, Test, TestOutcome
from steelyard.verifiers.python.findings import MAX_ANSWER_OUTPUT_CHARS, compile_failure, failure_label
from steelyard.verifiers.python.guests import exit_description
from steelyard.verifiers.python.in_process import Rehearsal, TestFact, accounted_tests, after_last_test, judged_test
from steelyard.verifiers.python.plan import PythonTestPlan
from steelyard.verifiers.trouble import trouble_sign


class RefereedFinding(NamedTuple):
    """What a referee found, and what it could not be sure of."""

    finding: Finding
    uncrossed: tuple[str, ...] = ()
    """Failed tests that looked at something that does not cross unchanged: beside the answer they might have passed."""
    is_altered: bool = False
    """Whether a function that returned a value changed what the tests had given it."""
    is_diverged: bool = False
    """Whether tests and answer hold copies of a list or the like that came to differ."""
    is_drained: bool = False
    """Whether a function that returned a value read an iterator of the tests."""
    is_certain: bool = False
    """Whether a pass needs no confirmation: these tests, and all that crossed, mean the same in one process with the answer."""

    def with_own_word(self, note: str) -> RefereedFinding:
        """The same, but that the answer had a say."""
        return self._replace(finding=msgspec.structs.replace(self.finding, trust="in-process", note=note))


def _unloaded_finding(report: dict[str, Any], answered: ProcessResult) -> RefereedFinding | None:
    """What the referee saw of an answer that no test was run against."""
    if "unable" in report:
        raise VerifierError(str(report["unable"]))
    if report.get("compiled") is False:
        return RefereedFinding(compile_failure(report["error"], report["line"], answered.seconds))
    if "compiled" in report:
        return None
    # no answer has run yet; only compiling something monstrous ends here
    return RefereedFinding(
        Finding(
            compiled=False,
            label=answered.limit or FailureLabel.DIED,
            reason=exit_description(answered),
            output=_output(report, answered),
            trouble=trouble_sign(answered),
        )
    )


def _output(report: dict[str, Any], answered: ProcessResult) -> str:
    printed = "".join(report.get("output", ())) + answered.stdout.decode("utf-8", "replace")
    return printed[:MAX_ANSWER_OUTPUT_CHARS]


def refereed_finding(report: dict[str, Any], tests: PythonTestPlan, answered: ProcessResult) -> RefereedFinding:
    """What the referee saw, as a finding; how the answer's process ended explains what it did not see."""
    unloaded = _unloaded_finding(report, answered)
    if unloaded is not None:
        return unloaded
    results = {number: values for number, *values in report["tests"]}
    raised = report.get("raised", "")
    gone = "gone" in report
    otherwise = raised or (exit_description(answered) if gone else "not run")
    missing = (otherwise, "", 0.0, report.get("crossed", True), False)
    places = [place for place, step in enumerate(tests.steps) if step["test"]]
    judged = []
    uncrossed = []
    own_word = False
    for name, place in zip(tests.names, places, strict=True):
        wrong, cause, seconds, crossed, had_word = results.get(place, missing)
        outcome: TestOutcome = "failed" if wrong else "passed"
        judged.append(Test(name=name, outcome=outcome, message=wrong, seconds=seconds, cause=cause))
        own_word |= had_word and not wrong
        if wrong and not crossed:
            uncrossed.append(name)
    if raised and not any(test.outcome == "failed" for test in judged):
        judged.append(after_last_test(raised))
        uncrossed += [] if report.get("crossed", True) else [judged[-1].name]
    return _run_finding(report, judged, uncrossed, answered, own_word=own_word)


def refereed_file_finding(report: dict[str, Any], rehearsal: Rehearsal, answered: ProcessResult) -> RefereedFinding:
    """What the referee of a whole file saw, as a finding."""
    unloaded = _unloaded_finding(report, answered)
    if unloaded is not None:
        return unloaded
    facts: dict[str, TestFact] = {}
    crossed_by_name: dict[str, bool] = {}
    for name, outcome, message, cause, seconds, crossed, had_word in report["tests"]:
        # tests that share a name pass together
        if name not in facts or facts[name].outcome != "failed":
            facts[name] = TestFact(outcome, message, cause, seconds, had_word)
            crossed_by_name[name] = crossed
    raised = report.get("raised", "")
    gone = "gone" in report
    otherwise = raised or (exit_description(answered) if gone else "not run")
    judged = [judged_test(name, fact, rehearsal, "", otherwise) for name, fact in accounted_tests(facts, rehearsal)]
    if raised and not any(test.outcome == "failed" for test in judged):
        # what a class or the file does after its tests counts, too
        judged.append(Test(name="the file", outcome="failed", message=raised))
    # what was not run for no reason that is known here is not the answer's fault yet
    crossed_otherwise = report.get("crossed", True) if raised or gone else False
    failed = [test.name for test in judged if test.outcome == "failed"]
    uncrossed = [name for name in failed if not crossed_by_name.get(name, crossed_otherwise)]
    own_word = any(fact.had_word for fact in facts.values() if fact.outcome != "failed")
    if not failed and not any(test.outcome == "passed" for test in judged):
        return inseparable_finding(tuple(test.name for test in judged) or rehearsal.names)
    return _run_finding(report, judged, uncrossed, answered, own_word=own_word)


def inseparable_finding(names: tuple[str, ...]) -> RefereedFinding:
    """The finding if tests cannot be run separately from this answer, or are inconclusive there."""
    reason = "cannot be judged separately from the answer"
    failed = tuple(Test(name=name, outcome="failed", message=reason) for name in names)
    return RefereedFinding(Finding(compiled=True, tests=failed, label=FailureLabel.EXCEPTION, reason=reason), names)


def _run_finding(
    report: dict[str, Any], judged: list[Test], uncrossed: list[str], answered: ProcessResult, *, own_word: bool
) -> RefereedFinding:
    """The finding about an answer whose tests were run, or could have been."""
    raised = report.get("raised", "")
    gone = "gone" in report
    otherwise = raised or (exit_description(answered) if gone else "not run")
    label, reason = failure_label(judged, raised, (answered.limit or FailureLabel.DIED) if gone else "", otherwise)
    if raised and report["tests"]:
        reason = f"raised between two tests: {raised}"
    finding = Finding(
        compiled=True,
        tests=tuple(judged),
        label=label,
        reason=reason,
        output=_output(report, answered),
        # a test that asks an object of the answer's whether it is right takes the answer's word for it
        trust="in-process" if own_word and not label else "",
        compile_seconds=report["seconds"],
        test_seconds=answered.seconds,
        trouble=trouble_sign(answered) if gone else "",
    )
    altered, diverged, drained = (report.get(word) is True for word in ("altered", "diverged", "drained"))
    return RefereedFinding(finding, tuple(uncrossed), altered, diverged, drained)


def referee_death(tests: PythonTestPlan, exit_code: int) -> RefereedFinding:
    """The referee of an answer came to no end: what the answer returned was more than its tests could bear."""
    if exit_code >= 0 or exit_code == -signal.SIGKILL:
        # nothing that an answer returns does that
        raise VerifierError("the referee was ended from outside")
    limit = FailureLabel.CPU_LIMIT if exit_code == -signal.SIGXCPU else FailureLabel.DIED
    how = "stopped at the cpu limit" if exit_code == -signal.SIGXCPU else f"ended by signal {-exit_code}"
    reason = f"the tests did not survive what the answer returned: {how}"
    failed = tuple(Test(name=name, outcome="failed", message=reason) for name in tests.names)
    return RefereedFinding(Finding(compiled=True, tests=failed, label=limit, reason=reason), tests.names)
