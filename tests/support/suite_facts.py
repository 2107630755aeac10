"""The facts of a run over suites of responses, made by hand."""

from __future__ import annotations

from typing import Any

from steelyard.records import Answer, Case, Evidence, Fact, Failure, Finding, Reply, RunInfo, Verdict, Verify
from steelyard.records.cases import ExpectedClassification


def case(name: str, suite: str, expected: ExpectedClassification = "", **fields: Any) -> Case:
    verify = Verify(expect={"type": "contains", "value": "yes"})
    return Case(
        id=name, prompt=f"Say yes to {name}.", suite=suite, expected_classification=expected, verify=verify, **fields
    )


def attempt(
    of: Case, primary: str, number: int = 1, model: str = "m", evidence: tuple[Evidence, ...] = (), **answer: Any
) -> list[Fact]:
    """A reply and what it was found to be; a failure of ours where that is said."""
    about: dict[str, Any] = {"at": "2026-01-01T00:00:01Z", "case": of.id, "model": model, "number": number}
    key = f"{of.id}/{model}/{number}"
    if primary == "failure":
        return [Failure(key=key, stage="ask", message="HTTP 503", **about)]
    said = Reply(key=key, asked="", answer=Answer(**{"text": "yes", "latency": 1.0, **answer}), **about)
    found = Finding(
        passed=primary == "pass",
        score=float(primary == "pass"),
        label="" if primary == "pass" else primary,
        reason="" if primary == "pass" or not evidence else evidence[0].what,
        evidence=evidence,
    )
    verdict = Verdict(key=f"v/{key}", ask=key, tests=of.tests_digest, verifier="response", found=found, **about)
    return [said, verdict]


def info(**fields: Any) -> RunInfo:
    return RunInfo(**{"id": "run", "started_at": "2026-01-01T00:00:00Z", **fields})


def suite(name: str, *outcomes: str, **fields: Any) -> tuple[list[Case], list[Fact]]:
    """One case per outcome."""
    cases = [case(f"{name}-{number}", name, **fields) for number in range(len(outcomes))]
    return cases, [fact for each, primary in zip(cases, outcomes, strict=True) for fact in attempt(each, primary)]


def both(*parts: tuple[list[Case], list[Fact]]) -> tuple[list[Case], list[Fact]]:
    return [each for cases, _ in parts for each in cases], [fact for _, facts in parts for fact in facts]
