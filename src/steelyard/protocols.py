"""The seams: what a provider, a verifier, a sandbox, a pool, a report and the readers of files must be able to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec

from steelyard.errors import Problem
from steelyard.records import (
    Answer,
    AnyStruct,
    Attempt,
    Case,
    Failure,
    Finding,
    Record,
    RecordedAttempt,
    Reply,
    StructType,
    Verdict,
    WitnessResult,
    is_secret,
    settings_as,
)
from steelyard.secret_texts import Secret, hidden_texts

if TYPE_CHECKING:
    import socket

StreamMode = Literal["auto", "on", "off"]
"""Whether answers are streamed: always, never, or where a long answer could meet a time-out of something between."""


class ProviderSettings(Record, frozen=True, kw_only=True):
    """How one provider is reached: a `[providers.NAME]` table of the settings file, or what the environment says."""

    type: str
    """The wire format: openai, openai-responses, azure, anthropic, gemini, bedrock, ollama, http, command, agent, python or replay."""
    api_key: str = ""
    base_url: str = ""
    org_id: str = ""
    dialect: str = ""
    """Whose chat completions a server speaks, such as `mistral` or `llama.cpp`; by default those of the provider's name."""
    stream: StreamMode = "auto"
    region: str = ""
    """For `bedrock`: the region that requests are signed for, where the address does not name it; by default AWS_REGION."""
    headers: dict[str, str] = {}
    body: str = ""
    """For `http`: the JSON body, with `{{prompt}}`, `{{system}}`, `{{model}}` and parameters filled in."""
    answer: str = ""
    """For `http`: the path to the text in the response, such as `choices.0.text`."""
    environment: dict[str, str] = {}
    """For `agent`: environment variables for its program, in addition to ours."""
    time_limit_secs: float = 540
    """For `agent`: how long one attempt may take; a little less than `deadline_secs`, at which it would be asked again."""
    settings: dict[str, Any] = {}
    """The other keys of the table, which the provider's own struct knows."""

    def __post_init__(self) -> None:
        for name, value in msgspec.structs.asdict(self).items():
            if isinstance(value, str):
                # one that the environment filled in is hidden, and only a key stays so
                msgspec.structs.force_setattr(self, name, Secret(value) if name == "api_key" else str(value))
        msgspec.structs.force_setattr(self, "headers", hidden_texts(self.headers))
        msgspec.structs.force_setattr(self, "environment", hidden_texts(self.environment))
        msgspec.structs.force_setattr(self, "settings", hidden_texts(self.settings, is_secret))

    def settings_as(self, kind: StructType[AnyStruct]) -> AnyStruct:
        """The settings as a provider's own struct; keys stay hidden."""
        return settings_as(kind, self, {**msgspec.structs.asdict(self), **self.settings})


class OfferedModel(NamedTuple):
    """A model that an endpoint offers."""

    model: str
    detail: str = ""


class RateLimitHeadroom(NamedTuple):
    """What a server's rate-limit headers leave us."""

    requests: int
    """Requests that may still be sent before the reset."""
    reset: float
    """Seconds until the count starts again."""
    tokens: int | None = None
    """Tokens that may still be used before their own reset; None if the server does not say."""
    tokens_reset: float = 0.0
    """Seconds until the tokens are counted again."""


class Delivery:
    """How far one request got, as its provider reports it."""

    def __init__(self) -> None:
        self.accepted = False
        """Whether the model's side has the whole request and has not turned it down."""
        self.obstacle = ""
        """What delays the request, if known: the message about a timeout says it."""
        self.body = b""
        """The body of a response with a status of success, without keys; it is stored before it is interpreted."""
        self.note = ""
        """What was odd about the body, for the note of the answer."""


class Provider(Protocol):
    """Someone who can be asked."""

    endpoint: str
    """Providers with the same endpoint share one pace."""
    at_once: int
    """How many requests make sense at the same time, at the very most."""

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        """One answer; raises Unavailable or Rejected when there is none.

        Where answering in time is part of the task, a timeout counts as a wrong answer only after `delivery.accepted`
        was set; before that, or in a provider whose `ask` takes the attempt alone, it is an outage.
        """
        ...

    def headroom(self) -> RateLimitHeadroom | None:
        """What the last answer's headers said about the rate limit."""
        ...

    def available(self, case: str) -> int | None:
        """The number of available answers to this case; None if it is unlimited."""
        ...

    async def offers(self) -> list[OfferedModel]:
        """The models that this endpoint offers."""
        ...

    async def close(self) -> None: ...


class ProviderFactory(Protocol):
    """The entry point of a provider: the models that a name stands for, and the provider of each.

    With an attribute `settings`, a msgspec struct, it owns further keys of its `[providers.NAME]` table.
    """

    def __call__(self, model: str, settings: ProviderSettings) -> Mapping[str, Provider]: ...


class ResourceLimits(NamedTuple):
    """What untrusted code may use up before it is stopped."""

    cpu_seconds: float = 10
    """CPU time decides: a busy machine must not turn right into timed out."""
    wall_seconds: float = 60
    """The backstop for code that sleeps or waits forever; time in which it waits for a processor does not count."""
    memory_bytes: int = 1 << 30
    file_bytes: int = 64 << 20
    """How large a file may become, what is printed included."""
    processes: int = 64
    """Processes and threads at the same time."""
    compiles: bool = False
    """Whether it compiles an answer and does not run it: that is timed apart, where limits follow the reference."""


ProcessLimit = Literal["", "cpu limit", "time limit", "memory limit", "disk limit"]


class FailureLabel(StrEnum):
    """The kinds of failure that our code gives or looks at; a `Finding.label` of another verifier may be any text."""

    CPU_LIMIT = "cpu limit"
    TIME_LIMIT = "time limit"
    MEMORY_LIMIT = "memory limit"
    DISK_LIMIT = "disk limit"
    DIED = "died"
    NO_CODE = "no code"
    NO_TESTS = "no tests"
    NOT_ALLOWED = "not allowed"
    TAMPERED = "tampered"
    DOES_NOT_APPLY = "does not apply"
    DOES_NOT_COMPILE = "does not compile"
    DOES_NOT_FIT_THE_TESTS = "does not fit the tests"
    EXCEPTION = "exception"
    WRONG_ANSWER = "wrong answer"
    TRUST_TOO_LOW = "trust too low"


TIMEOUT_LABELS = frozenset((FailureLabel.CPU_LIMIT, FailureLabel.TIME_LIMIT))
LIMIT_LABELS = TIMEOUT_LABELS | {FailureLabel.MEMORY_LIMIT, FailureLabel.DISK_LIMIT}


class ProcessResult(NamedTuple):
    """How a contained program ended."""

    exit_code: int
    """Negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes
    limit: ProcessLimit
    """The limit that ended it; empty if none did."""
    seconds: float
    cpu_seconds: float = 0.0
    """What it used of the processors, with all processes that it started and waited for."""


class Workspace(Protocol):
    """A fresh folder in a sandbox, and programs run in it one after the other."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        limits: ResourceLimits = ResourceLimits(),
        environment: Mapping[str, str] = {},
        one_output: bool = False,
    ) -> ProcessResult:
        """Run a program in the folder; what it leaves running is killed. Raises when it could not be started.

        The environment holds PATH, HOME, TMPDIR, LANG, TZ and what is given; with `one_output` errors are in the output, too.
        """
        ...

    async def write(self, files: Mapping[str, str | bytes]) -> None:
        """Put files into the folder; their names may hold folders, which are made."""
        ...

    async def read(self, name: str, most: int = 16 << 20) -> bytes | None:
        """The beginning of a file in the folder; None when there is no such plain file."""
        ...


ENDLESS_SECONDS = 1e9
"""A limit for what may wait as long as we do."""


class GuestModules(NamedTuple):
    """One of our modules, loaded in a waiting sandbox; each call runs in a new fork."""

    modules: tuple[tuple[str, str], ...] = ()
    """Names and sources, in the order they are loaded, on the standard library alone; the last one has the `main` that is
    called with the numbers of its sockets."""
    python: str = ""
    """The interpreter; ours when empty."""
    readable: tuple[str, ...] = ()
    """Folders that it can read, in addition to the system's."""
    local_sockets: bool = False
    """Whether its processes may talk to each other over sockets; granted only if no other process can be reached through them."""
    writable: tuple[str, ...] = ()
    """Folders outside that it can write to; only where it has a root of its own."""
    descriptor_paths: bool = False
    """Whether `/dev/fd` leads its programs to their open files; granted only where they see no other process by it."""
    agent: bool = False
    """Whether an agent runs there: it may use the loopback of its own network, and reserve more addresses than memory."""


class GuestHost(Protocol):
    """A sandbox with a guest in it."""

    async def call(
        self,
        sockets: Sequence[socket.socket],
        limits: ResourceLimits,
        *,
        stdin: bytes | None = None,
        beside: GuestHost | None = None,
    ) -> ProcessResult:
        """Let the guest talk over these sockets, which are its own from now on, to its end.

        With `stdin` it is a program with three streams of its own; without, nothing can be read and all output is one.
        While what runs `beside` it waits for a processor, its own wall time stands still.
        """
        ...

    @property
    def pids(self) -> Sequence[int]:
        """The processes that everything in it comes from."""
        ...

    def stop(self) -> None:
        """End the current call; it is not counted as its failure."""
        ...


class Sandbox(Protocol):
    """A place where untrusted code can run."""

    level: str
    """How strong it is, stored with every verdict."""

    def workspace(
        self,
        files: Mapping[str, str | bytes],
        *,
        readable: Sequence[str] = (),
        local_sockets: bool = False,
        descriptor_paths: bool = False,
    ) -> AbstractAsyncContextManager[Workspace]:
        """A fresh folder that holds `files`, gone afterwards with everything in it.

        Programs in it read the system's folders and those in `readable`, a toolchain for example, and write in theirs only.
        They make no socket, unless they may talk over local ones and the sandbox keeps them from other processes.
        """
        ...

    def host(self, guest: GuestModules) -> AbstractAsyncContextManager[GuestHost]:
        """A sandbox with this guest in it, ours alone for as long as we hold it."""
        ...


class Verifier(Protocol):
    """Someone who can find out whether an answer is right."""

    version: str
    """Its name with its version and that of its toolchain: part of the verdict key."""
    at_once: int
    """How many answers it likes to be given at the same time."""
    runs_code: bool
    """Whether it runs what a model wrote, so that a sandbox must hold."""

    def check(self, case: Case) -> None:
        """Raise VerifierError when no answer to this case could be verified: better known before answers are paid for."""
        ...

    async def verify(self, case: Case, answer: Answer) -> Finding:
        """What is true of this answer; raises when it could not be found out."""
        ...

    async def close(self) -> None:
        """Release everything that is kept for further answers."""
        ...


class HasEnvironment(Protocol):
    """Optional methods of a verifier that show whether machines verify the same cases alike."""

    def surroundings(self, case: Case) -> Sequence[str]:
        """What else about a machine a verdict depends on, such as packages with their versions, as short texts.

        It is asked once for cases that name the same environment, dependencies, functions, commands and style.
        """
        ...

    async def prepare(self, case: Case) -> None:
        """Raise VerifierError when something is missing that only a sandbox can find out."""
        ...


class HasWitness(Protocol):
    """An optional method of a verifier that runs code, so that a broken machine is not blamed on a model."""

    def witness(self, case: Case) -> Case:
        """A tiny case of our own, with a reference that is known to be right, which needs the same of a machine as `case`.

        Cases with the same toolchain, style, environment and limits have equal witnesses. No verdict that could come from
        a broken machine is stored before the witness has passed there.
        """
        ...


class HasRepeatableVerdicts(Protocol):
    """An optional method of a verifier that looks at nothing of an answer but its text, so that equal texts are verified once."""

    def is_repeatable(self, case: Case, text: str) -> bool:
        """Whether every verdict on an answer with this text would be the same: neither it nor the tests depend on chance or time."""
        ...


class CompilesTogether(Protocol):
    """An optional method of a verifier whose compiler runs nothing, so that witnesses of syntax errors are cheap."""

    async def compiling(self, replies: Sequence[tuple[Case, str]]) -> list[bool]:
        """Which of these replies, to cases with one environment and one limit, contain code that compiles in the sandbox."""
        ...


class HasStub(Protocol):
    """An optional method of a verifier, so that `validate` finds tests that no answer fits, where a case has no reference."""

    def stub(self, case: Case) -> str:
        """An answer that has the signatures of the prompt and does nothing; empty if the prompt states none.

        The tests have to accept it as code, not to pass with it.
        """
        ...


class FalseTests(NamedTuple):
    """The tests of a case with expected values changed, so that a right answer fails; nothing else of the case is changed."""

    one_by_one: tuple[Case, ...] = ()
    """Each with one expected value of an equality changed, to one that is far outside any tolerance."""
    all: Case | None = None
    """With every one of them changed; None where there is nothing to change."""


class HasControls(Protocol):
    """An optional method of a verifier whose tests share a process with the answer, so that who passes any tests is found out."""

    def false_tests(self, case: Case) -> FalseTests:
        """The false tests that an answer may be run against, after it has passed the true ones."""
        ...


class HasAdvice(Protocol):
    """An optional method of a verifier, so that `validate` names cases whose verdicts could mean more."""

    def advice(self, case: Case) -> str:
        """What a pass of this case leaves open, and what would close it; empty if there is nothing. Cases with one text are named together."""
        ...


class VerifierFactory(Protocol):
    """The entry point of a verifier.

    With an attribute `settings`, a msgspec struct, it owns further keys of `[cases.verify]`: they are checked when the
    eval set is read, stored with the case and part of the digest of its tests; `case.verify.settings_as` returns them.
    """

    def __call__(self, sandbox: Sandbox) -> Verifier: ...


VerdictCallback = Callable[[Verdict | Failure, Case], None]
"""Called with what became of a reply."""


class VerificationService(Protocol):
    """What a pool is given: all verifiers of a run, each behind its own limit."""

    @property
    def at_once(self) -> int:
        """How many replies are worth verifying at the same time on this machine."""
        ...

    @property
    def witness_results(self) -> Sequence[WitnessResult]:
        """The results of the witnesses so far, in order."""
        ...

    async def verdict(self, reply: Reply, case: Case, *, alone: bool = False) -> Verdict | Failure:
        """The verdict on one reply; waits while too many of its kind are being verified.

        `alone` says that this machine does nothing else at the same time.
        """
        ...

    async def close(self) -> None: ...


class Pool(Protocol):
    """Turns replies into verdicts, many at once."""

    @property
    def given_up(self) -> str:
        """Why no more replies are verified; empty as long as they are."""
        ...

    @property
    def nodes(self) -> int | None:
        """How many machines work on it; None if it is this one alone."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong, without harm to the results."""
        ...

    def at_work(self, report: VerdictCallback, *, alone: bool = False) -> AbstractAsyncContextManager[None]:
        """Within it replies can be put in; on leaving, `report` was called with one fact for each, unless the pool has given up.

        With `alone`, every reply has a machine to itself.
        """
        ...

    async def put(self, reply: Reply, case: Case) -> None:
        """Hand over a reply; waits while too many wait already."""
        ...

    async def close(self) -> None:
        """Release everything that is kept for further replies, the verification service included."""
        ...


class HasWitnessResults(Protocol):
    """An optional attribute of a pool, so that a run stores what its verdicts rest on."""

    @property
    def witness_results(self) -> Sequence[WitnessResult]:
        """The results of the witnesses so far, in order, each with its node."""
        ...


class PoolFactory(Protocol):
    """The entry point of a pool, which `--backend NAME` chooses; it may be a coroutine function.

    With an attribute `verifies_here` that is False, no code of a model runs on this machine, and no sandbox has to work here.
    Its machines can also count the attempts in Parquet files if it has a method `count_attempts(sources, columns, address)`;
    a pool of this machine needs none.
    """

    def __call__(
        self, cases: Sequence[Case], verification: VerificationService, options: Any
    ) -> Pool | Awaitable[Pool]: ...


class Report(Protocol):
    """The entry point of a report: called with a run's results, it returns text.

    A plain function is a report, too: `tex` is then chosen by `--format tex` and by `-o FILE.tex`.
    """

    suffixes: Sequence[str]
    """The suffixes of the files that `-o` writes this way, such as `.tex`."""
    needs_texts: bool
    """Whether it shows what models wrote; if not, the results come without attempts, which saves memory."""

    def __call__(self, results: Any) -> str:
        """`results` are a `steelyard.analysis.summary.RunResults`."""
        ...


class OutcomeReader(Protocol):
    """The entry point of a reader of outcomes that another tool recorded."""

    suffixes: Sequence[str]
    """The suffixes of the files that it reads."""

    def __call__(self, paths: Sequence[str]) -> Any:
        """A `steelyard.analysis.counts.OutcomeTallies`; raises InputError with all that is wrong with the files."""
        ...


class ForeignFile(NamedTuple):
    """A file or folder of another tool, as a reader sees it that may recognise it."""

    path: Path
    beginning: bytes
    """Its first bytes, unpacked; empty for a folder."""


class AttemptReader(Protocol):
    """Reads the attempts in another tool's files one by one; its class stands among the entry points of outcome readers.

    A method `outcomes` like `attempts`, which leaves out prompts, replies and reasons, is called where only counts are wanted.
    """

    def recognises(self, file: ForeignFile) -> bool:
        """Whether it reads this file or folder."""
        ...

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        """The attempts in the order of the file, and warnings about it; raises InputError where it cannot be read."""
        ...


class EvalSetFormat(Protocol):
    """The entry point of an eval-set format."""

    suffixes: Sequence[str]
    """The suffixes of the files that it reads."""

    def __call__(self, content: Any, path: str, problems: Any) -> Iterator[Any]:
        """A `steelyard.evalsets.schema.Draft` for each case; `content.read(limit)` and `readline(limit)` give bytes."""
        ...
