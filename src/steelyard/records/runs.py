"""What a run was asked to do: the content of run.json, and of the records beside it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steelyard.records.base import Amount, AttemptNumber, Count, Record, Share
from steelyard.records.panels import Panel
from steelyard.records.tiers import Experiment
from steelyard.secret_texts import hidden_texts


class Price(Record, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: Amount
    output: Amount
    cached: Amount | None = None
    """What input costs that is read from a cache; the price of other input when None."""
    cache_write: Amount | None = None
    """What input costs that is written to a cache; the price of other input when None."""
    cache_write_1h: Amount | None = None
    """The same where it is kept for an hour; the price of what is kept for 5 minutes when None."""
    reasoning: Amount | None = None
    """What output costs that is reasoning; the price of other output when None."""
    batch_discount: Share = 0.0
    """What is taken off for answers that were asked for in a batch."""
    source: str = ""
    date: str = ""


class GateLook(Record, frozen=True, kw_only=True):
    """One asking of a gate about a run: each spends some of the error rate that all of them together may have."""

    at: str
    baseline: str
    """A digest of the baseline and of how the run was compared with it."""
    data: str
    """A digest of what the run had to show."""
    alpha: Share
    """What all looks together may spend, on alarms and on all-clears alike."""
    level: Share
    """At which level it could raise an alarm."""
    spent: Share
    """What this adds to what alarms may have spent: nothing where an earlier look had the same attempts."""
    cleared_level: Share
    """At which level it could give the all-clear."""
    cleared_spent: Share
    """What this adds to what all-clears may have spent."""
    final_level: Share = 0.0
    """What the last test of each case could spend; it is part of `spent`."""
    attempts: Count = 0
    """At each case, where they are asked in rounds."""
    model: str = ""
    """The model that was looked at by itself; empty if all were looked at together."""
    sharing: AttemptNumber = 1
    """By how many models the levels of alarms were divided, where each was looked at by itself."""
    verdict: str


class Rule(Record, frozen=True, kw_only=True):
    """The weight of each fact about code in its score; code that does not compile scores 0 under every rule."""

    name: str
    """What `--rule` calls it."""
    compile: Amount = 0
    """Whether it compiles."""
    tests: Amount = 0
    """The share of tests that pass."""
    lint: Amount = 0
    """1 without warnings, a tenth less for each; 1 where no linter applies."""
    structure: Amount = 0
    """The share of the expected functions and types that it defines."""
    correct: Amount = 0
    """Whether it is correct, as pass@k counts it."""


class SuiteRule(Record, frozen=True, kw_only=True):
    """How suites are scored beside the plain rule, under which a pass is 1, everything else is 0, and every suite counts once."""

    penalties: dict[str, Share] = {}
    """What a failure of each class costs, from 0 to 1; a class that is not named costs 1."""
    weights: dict[str, Amount] = {}
    """How much each suite counts, 0 or more; a suite that is not named counts 1."""
    latency_target: Amount = 2.0
    """Seconds within which a reply loses nothing."""
    latency_limit: Amount = 30.0
    """Seconds after which a reply is worth nothing."""


class EvalSetFile(Record, frozen=True, kw_only=True):
    """A file that cases or recorded attempts came from, and a digest of what it held."""

    path: str
    digest: str


class StoppingRule(Record, frozen=True, kw_only=True):
    """When a run that asks in rounds has asked enough: as soon as a gate can decide."""

    baseline: str
    """The baseline, as the user named it."""
    most: AttemptNumber
    """The maximum number of attempts per case and model."""
    least: AttemptNumber = 1
    """Attempts per case and model before the first look."""
    alpha: Share = 0.05
    margin: Share = 0.05
    cases: Literal["", "fail", "warn", "off"] = ""
    min_effect: Share = 0.0
    on: Literal["", "passed", "score"] = "passed"
    """What is compared: whether attempts passed, or what they scored; empty until the baseline is known, which then decides."""


class Shard(Record, frozen=True, kw_only=True):
    """Which part of a plan a run is: whole cases, handed out in turn."""

    numbers: tuple[int, ...]
    """From 1, in order; several where shards were merged and others are missing."""
    of: int
    """How many shards there are in all."""
    cases: int
    """How many cases they have together."""
    dealt: tuple[str, ...]
    """For each of all shards a digest of its cases and their tests."""
    plan: str
    """A digest of all that was asked for: equal for shards that belong together."""


class MergedRun(Record, frozen=True, kw_only=True):
    """A run that was merged into another."""

    id: str
    numbers: tuple[int, ...]
    """The shards in it."""
    started_at: str
    ended_at: str | None = None
    versions: dict[str, str] = {}


class WitnessCounts(Record, frozen=True, kw_only=True):
    """How often something known to be right was tried before verdicts were stored, and how often it passed."""

    tried: int
    passed: int


class Spending(Record, frozen=True, kw_only=True):
    """What a run saved, and what it paid for conversations without a reply so far, in US dollars."""

    cache_saved_usd: float = 0.0
    """What replies of earlier runs cost that were taken from the cache."""
    batch_saved_usd: float = 0.0
    """What replies from batches would have cost more as single requests."""
    prompt_caching_saved_usd: float = 0.0
    """What prompts would have cost more without the provider's cache; negative if writing it cost more than reading saved."""
    unfinished_usd: float = 0.0
    """The cost of turns in conversations without a reply; it is in no other figure."""


class RunInfo(Record, frozen=True, kw_only=True):
    """What a run was asked to do: the content of run.json."""

    id: str
    started_at: str
    ended_at: str | None = None
    eval_sets: tuple[EvalSetFile, ...] = ()
    recordings: tuple[EvalSetFile, ...] = ()
    """The files of other tools that attempts and verdicts were imported from."""
    models: tuple[str, ...] = ()
    """As requested, one for each tier if tiers are compared; a replay represents the models that it recorded."""
    names: tuple[str, ...] = ()
    """The same models by the names that facts carry."""
    folder: str = ""
    """The folder in which the run was started, where models are named by relative paths."""
    parameters: dict[str, Any] = {}
    base_url: str = ""
    """The base URL of all providers, if the user gave one."""
    system: str = ""
    tiers: tuple[str, ...] = ()
    experiment: Experiment | None = None
    """Where tiers are compared: what each of them is."""
    panel: Panel | None = None
    """Who judges the answers in addition to their verifiers."""
    samples: AttemptNumber | None = None
    """Attempts per case and model; None takes all that a replay has."""
    until: StoppingRule | None = None
    """Where attempts are asked in rounds: when to stop."""
    more: dict[str, dict[str, AttemptNumber]] = {}
    """By model and case, where more attempts are planned than at others, because the case looked worse."""
    allocated: dict[str, dict[str, AttemptNumber]] = {}
    """By model and case, where a round asks for other numbers of attempts than `samples`; only earlier versions made such runs."""
    stopped: dict[str, AttemptNumber] = {}
    """By model, the attempts per case of the round at which it was decided before others, and is asked no further."""
    k: Annotated[tuple[AttemptNumber, ...], Meta(min_length=1)] = (1,)
    seed: int | None = None
    rule: str = "code"
    rules: tuple[Rule, ...] = ()
    """The rules of the eval sets."""
    suites: SuiteRule = SuiteRule()
    """How suites are scored beside the plain rule."""
    versions: dict[str, str] = {}
    prices: dict[str, Price] = {}
    unrecorded: dict[str, Count] = {}
    """Per model, how many cases a replay had no recording for."""
    require_trust: str = ""
    """The trust that a verdict needs to count; empty if any is enough."""
    reference_trust: dict[str, str] = {}
    """By case, how far the verdict on its reference can be trusted, where the reference was run."""
    controls: Count | None = None
    """With how many false tests a pass beside its tests is tried; None for as many as its language has by default."""
    control_key: str = ""
    """What decides, with the text of an answer, which false tests these are; empty for runs of earlier versions."""
    skipped: dict[str, str] = {}
    """The cases that were left out because the machine could not verify them, with the reason."""
    uncontained: dict[str, str] = {}
    """The agents that ran with the rights of their user, by the names that facts carry, with the reason."""
    witnesses: WitnessCounts | None = None
    """Of the cases that needed a witness, if any did; `witnesses.jsonl` has the results."""
    shard: Shard | None = None
    """Where the run has only some of the cases that were asked for: which."""
    merged: tuple[MergedRun, ...] = ()
    """The runs that this one was put together from, if it was."""
    cached_replies: dict[str, Count] = {}
    """How many replies were taken from earlier runs, by their ids."""
    spending: Spending | None = None
    """What was saved, and what is spent on unfinished conversations, when the last session ended; None if neither."""

    def fair_samples(self, model: str, case: str) -> int | None:
        """The attempts at a case that count in every mean; None for all that a replay has."""
        return self.allocated.get(model, {}).get(case, self.stopped.get(model, self.samples))


class AgentSettings(Record, frozen=True, kw_only=True):
    """A program that works in a folder, and all that it needs to reach: an `[agents.NAME]` table of the settings file."""

    command: str
    """Its command line."""
    folders: tuple[str, ...] = ()
    """Folders and files that it can read, in addition to the system's."""
    writable_folders: tuple[str, ...] = ()
    """Folders that it can read and change."""
    hosts: tuple[str, ...] = ()
    """Hosts that it can reach, such as `api.example.com`, `*.example.com` or `127.0.0.1:8080`."""
    keys: tuple[str, ...] = ()
    """The environment variables that it gets; of the rest of the environment it gets nothing."""
    environment: dict[str, str] = {}
    """Further variables of its environment."""
    time_limit_secs: float = 540
    """How long one attempt may take."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "environment", hidden_texts(self.environment))
