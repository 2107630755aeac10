"""Answers, findings and the facts of a run's journal: what came back, and what was found out about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, get_args

from msgspec.structs import force_setattr

from steelyard.records.base import (
    Amount,
    AttemptIndex,
    AttemptNumber,
    Count,
    Record,
    SignedNumber,
    is_bounded,
)
from steelyard.records.messages import Cost, ToolCall, Turn, drop_impossible_numbers

FailureStage = Literal["ask", "verify", "judge"]
"""The step of ours that broke."""
WitnessSource = Literal["reference", "compiled reference", "built-in"]
"""The case's own reference, or a tiny answer of ours in the same language and style."""
TestOutcome = Literal["passed", "failed", "ignored"]
TestFailureCause = Literal["", "comparison", "computation", "exception", "memory", "cpu", "death"]
"""What failed a test, as far as it is known; for `computation` it raised something that no broken machine causes."""
Trust = Literal["", "isolated", "in-process", "recorded"]
"""Where values were compared: out of the reach of the code that is judged, or in one process with it; `recorded` if another
tool decided, and empty where no code was run."""
TRUST_WORDS: tuple[Trust, ...] = get_args(Trust)
"""From the strongest on, after the empty one."""
FLAG_BESIDE_TESTS, FLAG_CHANGED_TESTS = "only beside its tests", "passes changed tests"
"""What a reader should look at in an attempt that nobody accuses: it passes beside its tests and fails apart from them, or it
fails some of the tests that are made false and passes others."""


def read_trust(word: str) -> Trust:
    """A word for trust as it is read today: earlier versions wrote `unproved`, and what no version knows promises least.

    >>> read_trust("unproved"), read_trust("isolated")
    ('in-process', 'isolated')
    """
    return next((trust for trust in TRUST_WORDS if trust == word), "in-process")


def is_trusted(trust: str, required: str) -> bool:
    """Whether a verdict has at least the required trust.

    >>> is_trusted("in-process", "isolated"), is_trusted("isolated", "in-process")
    (False, True)
    """
    return not required or TRUST_WORDS.index(read_trust(trust)) <= TRUST_WORDS.index(read_trust(required))


MAX_QUOTED_CHARACTERS = 40
"""How much of a word that nobody knows is shown."""


class Finish(StrEnum):
    """The finish reasons that we distinguish; a provider may report others."""

    STOP = "stop"
    LENGTH = "length"
    REFUSAL = "refusal"
    TOOL_CALLS = "tool_calls"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    MAX_TURNS = "max_turns"
    CRASH = "crash"
    ERROR = "error"
    UNRECORDED = "unrecorded"
    """The text of the answer was not kept by the tool that has recorded its outcome."""


class Answer(Record, frozen=True, kw_only=True):
    """What came back from a model."""

    text: str
    """The text of the answer; from an agent, a git patch with its changes to the workspace."""
    finish: str = "stop"
    """Why the model stopped: a `Finish`, or the provider's own word.

    `timeout` is for agents and for tasks in which answering in time is a part; `crash` and `error` are for recordings."""
    error: str = ""
    """What went wrong instead of an answer, where that counts as an outcome; what an answer lacks."""
    reasoning: str = ""
    """The reasoning of the model, where the provider sends it."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Input tokens that were read from the provider's cache; they are part of the input tokens."""
    cache_write_tokens: int | None = None
    """Input tokens that were written to the provider's cache; they are part of the input tokens."""
    cache_write_1h_tokens: int | None = None
    """Those of them that it keeps for an hour instead of 5 minutes."""
    is_batch: bool = False
    """Whether it was asked for in a batch, which many providers sell for less."""
    reasoning_tokens: int | None = None
    """Output tokens spent on reasoning; they are part of the output tokens."""
    cost: Cost | None = None
    """None when no price is known: unknown is not free."""
    latency: float | None = None
    """Seconds from sending the request that was answered to its last byte; for an agent from its start to its end. None
    if they were not measured: unknown is not 0."""
    first_token: float | None = None
    """Seconds from sending the request to the first token of a streamed answer; None if it was not streamed."""
    recorded_at: str = ""
    """When the answer arrived, if a recording says it; otherwise empty, and it arrived when it was stored."""
    request_id: str = ""
    transcript: str = ""
    """What an agent printed: the beginning and the end of it."""
    exit_code: int | None = None
    """How an agent ended; negative: the signal that ended it."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The tool calls that the model requested, in its order; after a conversation, those of its last turn."""
    turns: tuple[Turn, ...] = ()
    """The trace, where more than one request was made for the answer: what was said, called and returned, in order."""
    native: tuple[dict[str, Any], ...] = ()
    """Data that the provider must get back with the results of these calls; it is kept until the conversation ends."""
    other_choices: tuple[str, ...] = ()
    """The texts of further choices that a server sent unasked; they never count as attempts."""
    note: str = ""
    """What is odd about how it came: an unknown finish reason, a number that cannot be one."""

    def __post_init__(self) -> None:
        drop_impossible_numbers(self)
        if self.cost is not None and not is_bounded(self.cost.usd):
            force_setattr(self, "cost", None)

    @property
    def all_tool_calls(self) -> tuple[ToolCall, ...]:
        """Every tool that was called on the way to the answer, in order."""
        return tuple(call for turn in self.turns for call in turn.tool_calls) if self.turns else self.tool_calls


class Span(Record, frozen=True, kw_only=True):
    """A place in a file; lines and columns count from 1."""

    file: str
    line_start: int
    line_end: int
    column_start: int
    column_end: int
    text: str | None = None


class DiagnosticLevel(StrEnum):
    """The severities that we distinguish; another tool may have others."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    HELP = "help"


class Diagnostic(Record, frozen=True, kw_only=True):
    """A message of a compiler or linter."""

    level: str
    """A `DiagnosticLevel`, or the tool's own word, such as `info`."""
    message: str
    code: str | None = None
    spans: tuple[Span, ...] = ()


class Test(Record, frozen=True, kw_only=True):
    """One test and how it went."""

    name: str
    outcome: TestOutcome
    message: str = ""
    seconds: Amount = 0
    cause: TestFailureCause = ""
    """What failed it; a message can hold any words of the code."""


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
    """What would have to be repaired to make the format right; empty if nothing simple would do."""


class Finding(Record, frozen=True, kw_only=True):
    """What a verifier found out about one answer: facts, no opinion."""

    code: str | None = None
    """The code that was judged; None when the answer held none."""
    compiled: bool | None = None
    """None where nothing is compiled."""
    tests: tuple[Test, ...] = ()
    warnings: Count | None = None
    """Lint warnings; None when no linter was asked."""
    diagnostics: tuple[Diagnostic, ...] = ()
    missing: tuple[str, ...] | None = None
    """Expected functions and types that the code does not define; None if that was not checked."""
    passed: bool | None = None
    """The verifier's own yes or no, where it has one."""
    score: SignedNumber | None = None
    """The verifier's own score in [0, 1], where it has one."""
    graded: bool | None = None
    """Whether the score is what was measured: a yes or no beside it only says that the score reached a threshold. None if that is not said."""
    levels: dict[str, bool] = {}
    """What was reached, where a verifier knows more than one level of success, such as `plausible` and `fixed`."""
    figures: dict[str, bool | int | str] = {}
    """What a verifier counted beyond its levels, such as `module_total_errors`; what is not known is left out."""
    label: str = ""
    """What kind of failure this is, such as `no code` or `time limit`; empty when nothing failed."""
    reason: str = ""
    """The failure in one line."""
    evidence: tuple[Evidence, ...] = ()
    """Why a response was classified as it was, what decided first."""
    output: str = ""
    """What the code printed, cut to a bounded length."""
    compile_seconds: Amount = 0
    test_seconds: Amount = 0
    trust: str = ""
    """A `Trust`: `isolated` where the values were compared out of the answer's reach, `in-process` where its tests shared a process
    with it, `recorded` where another tool has judged. `unproved` and unknown words are read as `in-process`."""
    flag: str = ""
    """What a reader should look at in an attempt that nobody accuses: `only beside its tests` or `passes changed tests`."""
    watched: bool | None = None
    """Whether a plain run looked at it, too; None where a plain run has decided."""
    controls: Count = 0
    """With how many tests that are made false it was tried."""
    note: str = ""
    """What a reader should know about how it was judged."""
    isolation: str = ""
    """The sandbox the code ran in."""
    tampered: str = ""
    """How the code tried to forge its result, if that was detected; such an attempt has failed."""
    trouble: str = ""
    """How its end looks like a machine in trouble, a kill from outside for example; never stored: it is verified again alone."""
    rechecked: Count = 0
    """How often the attempt was verified again."""
    disagreed: Count = 0
    """How often that gave another verdict."""

    def __post_init__(self) -> None:
        if self.trust not in TRUST_WORDS:
            if self.trust != "unproved":
                unknown = f'its trust was given as "{self.trust[:MAX_QUOTED_CHARACTERS]}"'
                force_setattr(self, "note", "; ".join(filter(None, (self.note, unknown))))
            force_setattr(self, "trust", read_trust(self.trust))


class Fact(Record, tag_field="kind", frozen=True, kw_only=True):
    """One line of a run's journal."""

    key: str
    at: str
    case: str
    model: str
    number: AttemptIndex
    tier: str = ""


class Reply(Fact, tag="reply", frozen=True, kw_only=True):
    """The answer of a model to one attempt; `key` is the ask key."""

    answer: Answer
    asked: str
    """The digest of the messages this answers."""
    cached_from: tuple[str, ...] = ()
    """The run that asked for it, and what that was merged from, by their ids, where it was taken from the reply cache."""


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
    shared_from: str = ""
    """The ask key of a reply with the same text, where this is the verdict on that; empty where this reply was verified itself."""
    found: Finding


class Failure(Fact, tag="failure", frozen=True, kw_only=True):
    """A step of ours that broke; never the model's fault, and owed again. `key` is the ask key."""

    stage: FailureStage
    message: str


class WitnessResult(Record, frozen=True, kw_only=True):
    """Whether something known to be right passed on a machine, so that its verdicts on answers to a case count."""

    at: str
    case: str
    """The case whose answers it was tried for."""
    source: WitnessSource
    verifier: str
    """The verifier with its version and that of its toolchain."""
    isolation: str
    """The sandbox it ran in."""
    node: str = ""
    """The node of a cluster; empty for the machine that asked."""
    problem: str = ""
    """Why no answer to the case counts on this machine; empty when the witness passed."""
    trust: str = ""
    """How far the verdict on a reference that passed can be trusted."""
    seconds: float = 0


class CaseLimit(Record, frozen=True, kw_only=True):
    """The limits of a case that follow its reference: they hold for every answer to it in a run."""

    at: str
    case: str
    of: str
    """A digest of its tests and its reference."""
    seconds: float
    """CPU seconds that an answer may run."""
    compile_seconds: float
    """CPU seconds that compiling an answer may take."""
    reference_seconds: float | None = None
    """What the reference took, of which the limit is ten times, rounded up; None where it did not pass."""
    reference_compile_seconds: float | None = None
    node: str = ""
    """The node of a cluster where it was timed; empty for the machine that asked."""


class Judgment(Fact, tag="appraisal", frozen=True, kw_only=True):
    """What one judge wrote about one reply; `key` is the judgment key."""

    ask: str
    """The ask key of the reply that was judged."""
    judge: str
    """Provider and model of the judge."""
    repeat: AttemptNumber = 1
    """Which asking of this judge about this reply it is."""
    rubric: str
    """The digest of the rubric."""
    answer: Answer
    """The judge's last reply, unchanged, with the cost of all requests for it."""
    requests: Count = 1
    """How often the judge was asked for it."""
    unusable: str = ""
    """Why the judge's reply cannot be used, if so: then it has no score, and the judge is asked again."""
