"""The nouns of the road from a case to its verdict: one class for memory, disk and wire."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar

import msgspec

AnyStruct = TypeVar("AnyStruct", bound=msgspec.Struct)
StructType = type[AnyStruct]

SECRET_NAME_PATTERN = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
MIN_SECRET_CHARACTERS = 8
JUDGE_ONLY_KIND = "judge"
"""The kind of a case without tests: whether an answer to it is right is for a panel of judges to say."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Plain data that does not change; what is left at its default is not written."""


def digest(*parts: Any) -> str:
    """A short content hash: equal for equal content, on any machine."""
    return hashlib.blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).hexdigest()


def settings_as(kind: type[AnyStruct], known: Record, settings: Mapping[str, Any]) -> AnyStruct:
    """Settings as the record of the part that owns them: its own keys, and those of ours that it has as well."""
    given = {**msgspec.to_builtins(known), **settings}
    return msgspec.convert({key: value for key, value in given.items() if key in kind.__struct_fields__}, kind)


class Message(Record, frozen=True, kw_only=True):
    """One turn of a conversation."""

    role: str
    """`system`, `user` or `assistant`."""
    content: str


class Dependency(Record, frozen=True, kw_only=True):
    """A package that the code may use."""

    name: str
    version: str
    features: tuple[str, ...] = ()


class Expectations(Record, frozen=True, kw_only=True):
    """What must be true of the code in a reply."""

    should_compile: bool = True
    """When false, a reply is correct exactly when it does not compile."""
    should_pass_tests: bool = True
    """When false, tests are not run and count as passed."""
    test_file: str = ""
    """The source of the tests, not a path."""
    expected_functions: tuple[str, ...] = ()
    expected_types: tuple[str, ...] = ()
    max_clippy_warnings: int | None = None
    """More lint warnings than this make a reply incorrect."""
    custom_check: str = ""
    """A function of yours, `checks.py:score`, that is asked as well."""


class Pair(Record, frozen=True, kw_only=True):
    """What goes in and what must come out."""

    input: Any = ""
    """The text on standard input; for a function the list of its arguments."""
    output: Any = ""
    """The text on standard output; for a function what it returns."""


class Target(Record, frozen=True, kw_only=True):
    """A diagnostic that a repair is to make away with."""

    summary: str
    """What it says, in the words of the validator."""
    line_start: int
    line_end: int
    """The lines it speaks of, from 1; both are part of it."""
    file: str | None = None
    """The file it speaks of, empty where it speaks of none; the answer's own when left out."""
    detail: str = ""
    """More of what it says, where the summary alone does not tell it from others."""
    severity: str = "error"
    """`error` or `warning`."""


class Verify(Record, frozen=True, kw_only=True):
    """How an answer is verified; what is left out follows from the case."""

    # the keys of a new verifier need no field here: it names a struct of its own, which checks them

    kind: str = ""
    """The verifier's name; the case's language when left out. `judge` leaves it to judges alone."""
    style: str = ""
    """How the tests are written, for example `asserts` or `check`."""
    pairs: tuple[Pair, ...] = ()
    """Inputs and outputs, for the style `io`."""
    python_env: str = ""
    """A virtual environment with the packages that answers and tests may import."""
    answer: str = ""
    """For `command` and `terraform`: the file that the answer is written to."""
    files: dict[str, str] = {}
    """For `command` and `terraform`: other files by name, tests for example; for a repair also the file to be repaired."""
    lines: tuple[int, int] | None = None
    """For `terraform`: the first and the last line of the file to be repaired that the answer replaces; all when left out."""
    target: Target | None = None
    """For `terraform`: the diagnostic that the answer is to make away with."""
    syntax_only: bool = False
    """For `terraform`: look at the syntax alone, by a library; that is less than validating."""
    build: str = ""
    """For `command`: the shell command that must succeed before anything is tested."""
    test: str = ""
    """For `command`: the shell command that runs the tests."""
    lint: str = ""
    """For `command`: the shell command whose lines are warnings."""
    results: str = ""
    """For `command`: how the tests' results are read: `exit code`, `junit`, `tap`, `libtest`, `go` or `jest`."""
    tests: str = ""
    """The source of the tests, where the expectations have no `test_file`."""
    entry_point: str = ""
    """The function under test, for the style `check`."""
    stub: str | None = None
    """The code that an answer continues, such as the head of a function; empty where a completion stands alone."""
    python: str = ""
    """A function of yours that judges the answer, `checks.py:score`."""
    source: str = ""
    """A digest of that function's file, filled in by the loader, so that a changed check is a changed test."""
    fixes: tuple[str, ...] = ()
    """For cases with a workspace: the tests that a right change makes pass; no other test that failed before has to."""
    workspace_digest: str = ""
    """A digest of the workspace's files, filled in by the loader, so that a changed workspace is a changed test."""
    expect: dict[str, Any] = {}
    """For `response`: the check that a right answer meets, such as `{type = "json", schema = {...}}`."""
    settings: dict[str, Any] = {}
    """The other keys, which the verifier's own struct knows; the loader puts them here."""

    def settings_as(self, kind: type[AnyStruct]) -> AnyStruct:
        """What a verifier is to do, as its own struct."""
        return settings_as(kind, self, self.settings)


class Case(Record, frozen=True, kw_only=True, dict=True):
    """A question together with the way to verify its answer."""

    id: str
    prompt: str | tuple[Message, ...]
    """One user message, or a conversation."""
    name: str = ""
    description: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    workspace: str = ""
    """The files that an agent works on: a folder beside the eval set, or `FOLDER@COMMIT` of a git repository."""
    timeout_secs: float = 60
    """How long verifying one answer may take."""
    max_tokens: int | None = None
    dependencies: tuple[Dependency, ...] = ()
    expectations: Expectations = Expectations()
    verify: Verify = Verify()
    target: str = ""
    """The text a right answer holds, for cases without code."""
    reference: str = ""
    """An answer that must pass."""
    counterexample: str = ""
    """A plausible answer that must fail."""
    vars: dict[str, Any] = {}
    """Values for `{{name}}` in the prompt; empty once the prompt is rendered."""
    weight: float = 1
    group: str = ""
    """Cases of one group are not independent: variants of one template, for example."""
    suite: str = ""
    """The suite that the case belongs to; each suite has a score of its own."""
    expected_classification: str = ""
    """How its author expects models to come out, `pass` or `fail`: what is reported beside the score, and never is part of it."""
    critical: bool = False
    metadata: dict[str, Any] = {}

    @property
    def messages(self) -> tuple[Message, ...]:
        if isinstance(self.prompt, str):
            return (Message(role="user", content=self.prompt),)
        return self.prompt

    @property
    def tests(self) -> str:
        return self.verify.tests or self.expectations.test_file

    @property
    def kind(self) -> str:
        """The verifier that judges this case."""
        if self.verify.kind:
            return self.verify.kind
        if self.verify.python:
            return "function"
        if self.verify.expect:
            return "response"
        return self.language or ("response" if self.target else "")

    @property
    def by_judges(self) -> bool:
        """Whether no verifier can tell if an answer is right, only judges."""
        return self.kind == JUDGE_ONLY_KIND

    @cached_property
    def tests_digest(self) -> str:
        """Equal for two cases whose answers are verified alike; where the files lie does not matter."""
        verify = msgspec.structs.replace(self.verify, python=self.verify.python.rpartition("/")[2], python_env="")
        expectations = msgspec.structs.replace(
            self.expectations, custom_check=self.expectations.custom_check.rpartition("/")[2]
        )
        return digest(self.kind, self.language, verify, expectations, self.dependencies, self.target, self.timeout_secs)


class Attempt(Record, frozen=True, kw_only=True):
    """One asking of one case: plain data, so any machine can carry it out."""

    case: Case
    model: str
    """Provider and model, such as `openai/gpt-5`."""
    parameters: dict[str, Any] = {}
    """Sent with the request as they are; what is not given is not sent."""
    system: str = ""
    tier: str = ""
    number: int = 1

    @property
    def messages(self) -> tuple[Message, ...]:
        if self.system:
            return (Message(role="system", content=self.system), *self.case.messages)
        return self.case.messages

    @property
    def asked(self) -> str:
        """A digest of what is asked, whoever is asked."""
        return digest(self.messages, *self._workspace)

    @property
    def key(self) -> str:
        """The ask key: two attempts with the same key are the same asking."""
        asked = self.case.id, self.messages, self.model, self.parameters, self.tier, self.number
        return digest(*asked, *self._workspace)

    @property
    def _workspace(self) -> tuple[str, ...]:
        """The files to work on are a part of the question."""
        return (self.case.verify.workspace_digest,) if self.case.verify.workspace_digest else ()


class Cost(Record, frozen=True, kw_only=True):
    """Money, and who says so."""

    usd: float
    source: str
    """Who said so: a price list with its version, the provider, or the settings."""
    date: str = ""
    """The day of that price."""


class Answer(Record, frozen=True, kw_only=True):
    """What came back from a model."""

    text: str
    """What it said; of an agent a git patch, what it changed in its workspace."""
    finish: str = "stop"
    """Why the model stopped: `stop`, `length` (cut off), `refusal`, or the provider's own word; where answering at all is part
    of the task, and for agents, also `timeout`, and in recordings `crash` and `error`."""
    error: str = ""
    """What went wrong instead of an answer, where that counts as an outcome; what an answer lacks."""
    reasoning: str = ""
    """What a reasoning model thought aloud, where the provider tells."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Input tokens that were read from the provider's cache; they are part of the input tokens."""
    reasoning_tokens: int | None = None
    """Output tokens spent on reasoning; they are part of the output tokens."""
    cost: Cost | None = None
    """None when no price is known: unknown is not free."""
    latency: float = 0
    """Seconds from sending the request that was answered to its last byte; for an agent from its start to its end."""
    request_id: str = ""
    transcript: str = ""
    """What an agent printed: the beginning and the end of it."""
    exit_code: int | None = None
    """How an agent ended; negative: the signal that ended it."""


class Span(Record, frozen=True, kw_only=True):
    """A place in a file; lines and columns count from 1."""

    file: str
    line_start: int
    line_end: int
    column_start: int
    column_end: int
    text: str | None = None


class Diagnostic(Record, frozen=True, kw_only=True):
    """What a compiler or linter said."""

    level: str
    """`error`, `warning`, `note` or `help`."""
    message: str
    code: str | None = None
    spans: tuple[Span, ...] = ()


class Test(Record, frozen=True, kw_only=True):
    """One test and how it went."""

    name: str
    outcome: str
    """`passed`, `failed` or `ignored`."""
    message: str = ""
    seconds: float = 0


class Evidence(Record, frozen=True, kw_only=True):
    """Why a response was classified as it was."""

    rule: str
    """The rule that decided: its path in the check, such as `expect.all[1]`."""
    what: str
    """What was found, in one sentence."""
    matched: str = ""
    """The text it was found in, cut to a bounded length and made harmless."""
    position: int | None = None
    """Where that text begins in the reply, in characters from 0."""
    line: int | None = None
    column: int | None = None
    """The same place as a person counts, both from 1."""
    schema_path: str = ""
    """The keyword of the JSON Schema that is not met, as a pointer such as `/properties/status/enum`."""
    value_path: str = ""
    """The value that does not meet it, as a pointer into the reply."""
    policy: str = ""
    """The policy that was violated."""
    form: str = ""
    """The disguise in which a forbidden text was found, such as `base64`; `plain` when there was none."""
    mended: tuple[str, ...] = ()
    """What would have to be mended to make the format right; empty where nothing simple would do."""

    @property
    def mendable(self) -> bool:
        """Whether the format is wrong in a way that a simple repair would mend."""
        return bool(self.mended)


class Finding(Record, frozen=True, kw_only=True):
    """What a verifier found out about one answer: facts, no opinion."""

    code: str | None = None
    """The code that was judged; None when the answer held none."""
    compiled: bool | None = None
    """None where nothing is compiled."""
    tests: tuple[Test, ...] = ()
    warnings: int | None = None
    """Lint warnings; None when no linter was asked."""
    diagnostics: tuple[Diagnostic, ...] = ()
    missing: tuple[str, ...] | None = None
    """Expected functions and types that the code does not define; None when nobody looked."""
    passed: bool | None = None
    """The verifier's own yes or no, where it has one."""
    score: float | None = None
    """The verifier's own score in [0, 1], where it has one."""
    levels: dict[str, bool] = {}
    """What was reached, where a verifier knows more than one level of success, such as `plausible` and `fixed`."""
    label: str = ""
    """What kind of failure this is, such as `no code` or `time limit`; empty when nothing failed."""
    reason: str = ""
    """The failure in one line."""
    evidence: tuple[Evidence, ...] = ()
    """Why a response was classified as it was, what decided first."""
    output: str = ""
    """What the code printed, cut to a bounded length."""
    compile_seconds: float = 0
    test_seconds: float = 0
    trust: str = ""
    """Where the tests ran: `isolated` from the code they judge, or `in-process` with it."""
    isolation: str = ""
    """The sandbox the code ran in."""
    tampered: str = ""
    """How the code tried to forge its result, if it was caught at it; such an attempt has failed."""
    rechecked: int = 0
    """How often the attempt was verified again."""
    disagreed: int = 0
    """How often it then came out otherwise."""


class Fact(Record, tag_field="kind", frozen=True, kw_only=True):
    """One line of a run's journal."""

    key: str
    at: str
    case: str
    model: str
    number: int
    tier: str = ""


class Reply(Fact, tag="reply", frozen=True, kw_only=True):
    """What a model said to one attempt; `key` is the ask key."""

    answer: Answer
    asked: str
    """The digest of the messages this answers."""


class Verdict(Fact, tag="verdict", frozen=True, kw_only=True):
    """What a verifier found out about one reply; `key` is the verdict key."""

    ask: str
    """The ask key of the reply."""
    tests: str
    """The digest of the tests that were applied."""
    verifier: str
    """The verifier with its version and that of its toolchain."""
    node: str = ""
    """The node of a cluster that it was reached on; empty for the machine that asked."""
    found: Finding


class Failure(Fact, tag="failure", frozen=True, kw_only=True):
    """A step of ours that broke; never the model's fault, and owed again. `key` is the ask key."""

    stage: str
    """`ask`, `verify` or `judge`."""
    message: str


class Judgment(Fact, tag="appraisal", frozen=True, kw_only=True):
    """What one judge said of one reply; `key` is the appraisal key."""

    ask: str
    """The ask key of the reply that was judged."""
    judge: str
    """Provider and model of the judge."""
    repeat: int = 1
    """Which asking of this judge about this reply it is."""
    rubric: str
    """The digest of the rubric."""
    answer: Answer
    """The judge's last reply, as it came; what it cost, all requests for it together."""
    requests: int = 1
    """How often the judge was asked for it."""
    unusable: str = ""
    """Why it is no judgment, if it is none: then it has no score, and is owed again."""


class Price(Record, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """What cached input costs; the price of other input when None."""
    source: str = ""
    date: str = ""


class GateLook(Record, frozen=True, kw_only=True):
    """One asking of a gate about a run: each spends some of the error rate that all of them together may have."""

    at: str
    baseline: str
    """A digest of what the run was held against, and how."""
    data: str
    """A digest of what the run had to show."""
    alpha: float
    """What all looks together may spend, on alarms and on all-clears alike."""
    level: float
    """At which level it could raise an alarm."""
    spent: float
    """What this adds to what alarms may have spent: nothing where an earlier look had the same attempts."""
    cleared_level: float
    """At which level it could give the all-clear."""
    cleared_spent: float
    """What this adds to what all-clears may have spent."""
    final_level: float = 0.0
    """What the last test of each case could spend; it is part of `spent`."""
    attempts: int = 0
    """At each case, where they are asked in rounds."""
    verdict: str


class Rule(Record, frozen=True, kw_only=True):
    """How much each fact about code weighs in its score; code that does not compile scores 0 under every rule."""

    name: str
    """What `--rule` calls it."""
    compile: float = 0
    """Whether it compiles."""
    tests: float = 0
    """The share of tests that pass."""
    lint: float = 0
    """1 without warnings, a tenth less for each; 1 where no linter applies."""
    structure: float = 0
    """The share of the expected functions and types that it defines."""
    correct: float = 0
    """Whether it is correct, as pass@k counts it."""


class SuiteRule(Record, frozen=True, kw_only=True):
    """How suites are scored beside the plain rule, under which a pass is 1, all else 0, and every suite counts once."""

    penalties: dict[str, float] = {}
    """What a failure of each class costs, from 0 to 1; a class that is not named costs 1."""
    weights: dict[str, float] = {}
    """How much each suite counts, 0 or more; a suite that is not named counts 1."""
    latency_target: float = 2.0
    """Seconds within which a reply loses nothing."""
    latency_limit: float = 30.0
    """Seconds after which a reply is worth nothing."""


class EvalSetFile(Record, frozen=True, kw_only=True):
    """A file that cases came from, and a digest of what it held."""

    path: str
    digest: str


class StoppingRule(Record, frozen=True, kw_only=True):
    """When a run that asks in rounds has asked enough: as soon as a gate can decide."""

    baseline: str
    """What it is held against, as the user named it."""
    most: int
    """Attempts per case and model at the most."""
    alpha: float = 0.05
    margin: float = 0.05


def is_secret(name: str, value: str) -> bool:
    """Whether a variable of the environment is one that must not be stored; what is short says yes or no, or how many.

    >>> is_secret("OPENAI_API_KEY", "sk-12345678"), is_secret("MAX_TOKENS", "4096")
    (True, False)
    """
    return bool(SECRET_NAME_PATTERN.search(name)) and len(value) >= MIN_SECRET_CHARACTERS


class Tier(Record, frozen=True, kw_only=True):
    """One set-up that is compared with others: how a case is put, and to whom."""

    name: str
    """What tables call it, such as `T0`."""
    title: str = ""
    """What it is, in a few words."""
    model: str = ""
    """Provider and model; for an agent the name of the model it uses, if it is to be told."""
    system: str = ""
    prompt: str = ""
    """A template around the case's own prompt, `{{prompt}}`; the prompt alone when left out."""
    parameters: dict[str, Any] = {}
    """Sent with each request, after those of the whole experiment."""
    files: dict[str, str] = {}
    """Put into an agent's workspace beside the case's own: skills, notes, tools."""
    agent: str = ""
    """The command line of a program that works in a copy of the case's workspace; a model is asked when left out."""
    environment: dict[str, str] = {}
    """For an agent: what it finds in its environment besides ours."""
    timeout_secs: float = 600
    """For an agent: how long one attempt may take."""


class Panel(Record, frozen=True, kw_only=True):
    """Who judges answers, by what, and how often."""

    judges: tuple[str, ...]
    """Provider and model of each."""
    rubric: dict[str, Any]
    """What they look for, whole, so that a judgment can be read without the file."""
    digest: str
    """Equal for rubrics that ask the same."""
    repeats: int = 1
    """How often each judge is asked about the same answer."""
    parameters: dict[str, Any] = {}
    """Sent with each request to a judge."""
    allow_self: bool = False
    """Whether a model may judge its own answers."""


class Experiment(Record, frozen=True, kw_only=True):
    """The same cases under several tiers."""

    id: str
    name: str = ""
    tiers: tuple[Tier, ...]
    """The first is what the others are held against."""
    pass_weight: float = 0.5
    impl_weight: float = 0.5
    """How much passing, and the judges' score, weigh in the composite."""
    budget_usd: float | None = None
    """The most that may be spent on it, judges included, unless somebody says otherwise when it is carried on."""


class Shard(Record, frozen=True, kw_only=True):
    """Which part of a plan a run is: whole cases, dealt out in turn."""

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
    """The shards that it brought."""
    started_at: str
    ended_at: str | None = None
    versions: dict[str, str] = {}


class RunInfo(Record, frozen=True, kw_only=True):
    """What a run was asked to do: the content of run.json."""

    id: str
    started_at: str
    ended_at: str | None = None
    eval_sets: tuple[EvalSetFile, ...] = ()
    models: tuple[str, ...] = ()
    """As they were asked for, where tiers are compared one for each tier; a replay stands for the models it recorded."""
    names: tuple[str, ...] = ()
    """The same models by the names that facts carry."""
    parameters: dict[str, Any] = {}
    base_url: str = ""
    """Where every provider was reached, if the user said so."""
    system: str = ""
    tiers: tuple[str, ...] = ()
    experiment: Experiment | None = None
    """Where tiers are compared: what each of them is."""
    panel: Panel | None = None
    """Who judges the answers besides their verifiers."""
    samples: int | None = None
    """Attempts per case and model; None takes all that a replay has."""
    until: StoppingRule | None = None
    """Where attempts are asked in rounds: when to stop."""
    more: dict[str, dict[str, int]] = {}
    """By model and case, where more attempts are planned than at others, because the case looked worse."""
    k: tuple[int, ...] = (1,)
    seed: int | None = None
    rule: str = "code"
    rules: tuple[Rule, ...] = ()
    """The rules that the eval sets bring."""
    suites: SuiteRule = SuiteRule()
    """How suites are scored beside the plain rule."""
    versions: dict[str, str] = {}
    prices: dict[str, Price] = {}
    unrecorded: dict[str, int] = {}
    """Per model, how many cases a replay had no recording for."""
    shard: Shard | None = None
    """Where the run has only some of the cases that were asked for: which."""
    merged: tuple[MergedRun, ...] = ()
    """The runs that this one was put together from, if it was."""
