"""What the HTTP API answers with beside the records that runs and reports have."""

from __future__ import annotations

from typing import Generic, TypeVar

from steelyard.analysis.attempts import AttemptOutcome
from steelyard.analysis.headlines import ModelHeadline
from steelyard.comparison.gate import Decision
from steelyard.records import Case, Failure, Message, Record, Reply, RunInfo, Verdict
from steelyard.tiers.rubrics import RubricScore
from steelyard.viewer.comparisons import CaseChangeState
from steelyard.viewer.run_list import RunState

Item = TypeVar("Item")


class ApiRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An answer says everything, also what is nothing."""


class ApiError(ApiRecord, frozen=True, kw_only=True):
    """What is wrong with a request."""

    code: int
    """The HTTP status."""
    message: str


class ErrorEnvelope(ApiRecord, frozen=True, kw_only=True):
    """Every error."""

    error: ApiError


class ServerHealth(ApiRecord, frozen=True, kw_only=True):
    """That the server is there."""

    status: str = "ok"
    version: str
    """Of steelyard."""


class Page(ApiRecord, Generic[Item], frozen=True, kw_only=True):
    """Some of the entries that were asked for."""

    items: tuple[Item, ...]
    next_cursor: str | None
    """What gets the next page; None on the last."""
    total: int
    """The entries of all pages."""


class SuiteStats(ApiRecord, frozen=True, kw_only=True):
    """The results of one suite under one model; several attempts at a case are several results."""

    suite_id: str
    """The suite; in lists of runs, and where no case belongs to one, the eval set."""
    model_id: str
    total_cases: int
    """All results: passed, failed and missing."""
    pass_count: int
    fail_count: int
    error_count: int
    """Results that are missing because a step of ours broke; they are not failures of the model."""


class RunEntry(ApiRecord, frozen=True, kw_only=True):
    """A run in the list."""

    run_id: str
    """The name of its folder."""
    model_id: str
    """Its models, separated by commas."""
    timestamp_utc: str
    """When it was started; empty if that is not known."""
    state: RunState
    problem: str
    """What is wrong with a broken run."""
    eval_sets: tuple[str, ...]
    cases: int
    models: tuple[ModelHeadline, ...]
    suite_stats: tuple[SuiteStats, ...]


class RunDetail(RunEntry, frozen=True, kw_only=True):
    """A run with what it was asked to do."""

    info: RunInfo
    """Its run.json."""
    version: str
    """Another one as soon as the run has grown or changed."""
    problems: tuple[str, ...]
    """What could not be read of it."""


class AttemptEntry(ApiRecord, frozen=True, kw_only=True):
    """One attempt without its texts."""

    case_id: str
    model_id: str
    attempt: int
    outcome: AttemptOutcome
    """`missing` when it is not known whether it is correct."""
    score: float | None
    label: str
    reason: str
    finish_reason: str
    latency_seconds: float | None
    cost_usd: float | None
    input_tokens: int | None
    output_tokens: int | None
    timestamp_utc: str


class JudgmentEntry(ApiRecord, frozen=True, kw_only=True):
    """The judgment of one judge on an attempt."""

    judge: str
    repeat: int
    judgment: RubricScore | None
    unusable: str
    """Why the judgment cannot be used."""


class AttemptDetail(AttemptEntry, frozen=True, kw_only=True):
    """One attempt with all that is known about it: its facts are as the journal of the run has them."""

    messages: tuple[Message, ...]
    """What was asked."""
    reply: Reply | None
    verdict: Verdict | None
    failure: Failure | None
    judgments: tuple[JudgmentEntry, ...]


class CaseModelCounts(ApiRecord, frozen=True, kw_only=True):
    """How one model did at a case."""

    model_id: str
    attempts: int
    correct: int
    missing: int


class CaseInRun(ApiRecord, frozen=True, kw_only=True):
    """How a case came out in one run."""

    run_id: str
    timestamp_utc: str
    models: tuple[CaseModelCounts, ...]


class CaseDetail(ApiRecord, frozen=True, kw_only=True):
    """A case as its newest run asked it, and how it came out."""

    case_id: str
    case: Case | None
    """None on a page whose runs do not have it."""
    runs: tuple[CaseInRun, ...]
    searched: int
    """Runs that were looked through for this page."""
    next_cursor: str | None


class CaseChange(ApiRecord, frozen=True, kw_only=True):
    """One case under one model, before and after."""

    case_id: str
    model_id: str
    state: CaseChangeState
    baseline_attempts: int
    baseline_passes: int
    current_attempts: int
    current_passes: int
    delta: float
    p: float | None


class ComparisonPage(Page[CaseChange], frozen=True, kw_only=True):
    """What a gate says of two runs or models, and some of the cases, culprits first."""

    baseline: str
    current: str
    decision: Decision
    warnings: tuple[str, ...]
    new_cases: tuple[str, ...]
    removed_cases: tuple[str, ...]
    tests_changed: tuple[str, ...]
    rules_changed: tuple[str, ...]
    replies_shared: tuple[str, ...]
