"""Cases and attempts: what is asked, and how an answer is verified."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Literal, Self

import msgspec
from msgspec.structs import replace

from steelyard.records.base import AnyStruct, Record, digest, settings_as
from steelyard.records.messages import DEFAULT_MAX_TURNS, CaseTool, Message, MessageRole, SimulatedUser, Tool

ExpectedClassification = Literal["", "pass", "fail"]
TargetSeverity = Literal["error", "warning"]

SECRET_NAME_PATTERN = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
MIN_SECRET_CHARACTERS = 8


def is_secret(name: str, value: str) -> bool:
    """Whether a variable of the environment is one that must not be stored; what is short says yes or no, or how many.

    >>> is_secret("OPENAI_API_KEY", "sk-12345678"), is_secret("MAX_TOKENS", "4096")
    (True, False)
    """
    return bool(SECRET_NAME_PATTERN.search(name)) and len(value) >= MIN_SECRET_CHARACTERS


DEFAULT_TIMEOUT_SECONDS = 60
"""How long verifying one answer may take where nobody says, and nothing is known of the kind of case."""
JUDGE_ONLY_KIND = "judge"
"""The kind of a case without tests: judges alone decide whether an answer to it is right."""
RECORDED_KIND = "recorded"
"""The kind of a case whose verdicts another tool reached: its tests are not known here."""


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
    """An input and its expected output."""

    input: Any = ""
    """The text on standard input; for a function the list of its arguments."""
    output: Any = ""
    """The text on standard output; for a function what it returns."""


class Target(Record, frozen=True, kw_only=True):
    """A diagnostic that a repair must remove."""

    summary: str
    """What it says, in the words of the validator."""
    line_start: int
    line_end: int
    """The lines it speaks of, from 1; both are part of it."""
    file: str | None = None
    """The file it speaks of, empty where it speaks of none; the answer's own when left out."""
    detail: str = ""
    """More of what it says, if the summary alone does not distinguish it from others."""
    severity: TargetSeverity = "error"


class Verify(Record, frozen=True, kw_only=True):
    """How an answer is verified; what is left out follows from the case."""

    # a verifier owns its keys: its struct checks what a file says, and it reads that struct. The fields below are the keys that
    # stored cases and digests of tests have at this level; those of a new verifier go to `settings` and need no field here.

    kind: str = ""
    """The verifier's name; the case's language when left out. `judge` leaves it to judges alone."""
    style: str = ""
    """How the tests are written, for example `asserts` or `check`."""
    pairs: tuple[Pair, ...] = ()
    """Inputs and outputs, for the style `io` and for `run`."""
    tolerance: float = 0
    """How far numbers that a program prints may be off, absolutely or relatively; exact when left out."""
    python_env: str = ""
    """A virtual environment with the packages that answers and tests may import."""
    answer: str = ""
    """For `command` and `terraform`: the file that the answer is written to."""
    files: dict[str, str] = {}
    """For `command` and `terraform`: other files by name, tests for example; for a repair also the file to be repaired."""
    lines: tuple[int, int] | None = None
    """For `terraform`: the first and the last line of the file to be repaired that the answer replaces; all when left out."""
    target: Target | None = None
    """For `terraform`: the diagnostic that the answer must remove."""
    syntax_only: bool = False
    """For `terraform`: look at the syntax alone, by a library; that is less than validating."""
    build: str = ""
    """For `command`: the shell command that must succeed before anything is tested."""
    test: str = ""
    """For `command`: the shell command that runs the tests."""
    run: str = ""
    """For `command`: the shell command that runs the answer as a program, once for each of the `pairs`."""
    lint: str = ""
    """For `command`: the shell command whose lines are warnings."""
    results: str = ""
    """For `command`: how the tests' results are read: `exit code`, `junit`, `tap`, `libtest`, `go` or `jest`."""
    tests: str = ""
    """The source of the tests, where the expectations have no `test_file`."""
    entry_point: str = ""
    """The function under test, for the style `check`."""
    stub: str | None = None
    """The code that an answer continues, such as the head of a function; empty if a completion stands alone."""
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
        """The settings of a verifier, as its own struct."""
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
    timeout_secs: float = DEFAULT_TIMEOUT_SECONDS
    """How long verifying one answer may take."""
    follows_reference: bool = False
    """Whether the limit follows what the reference takes, and `timeout_secs` only holds without one: so where no file names a limit."""
    compile_secs: float | None = None
    """How long compiling an answer may take; when left out, as long as verifying it."""
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
    expected_classification: ExpectedClassification = ""
    """The outcome that its author expects, `pass` or `fail`: it is reported beside the score, and is never part of it."""
    critical: bool = False
    metadata: dict[str, Any] = {}
    tools: tuple[CaseTool, ...] = ()
    """Tools that the model may call; what they return goes back to it until it answers."""
    max_turns: int | None = None
    """How often the model is asked at most in one conversation: 10 times, and once more for each message of a simulated user."""
    user: SimulatedUser | None = None
    """A model that plays the user, once the prompt is answered."""

    @property
    def is_conversation(self) -> bool:
        """Whether one reply may take several requests."""
        return bool(self.tools or self.user)

    @property
    def tool_definitions(self) -> tuple[Tool, ...]:
        """What the model gets to know about its tools."""
        return tuple(tool.definition for tool in self.tools)

    @property
    def turn_limit(self) -> int:
        """How often the model is asked at most in one conversation."""
        return self.max_turns or DEFAULT_MAX_TURNS + (self.user.max_turns if self.user else 0)

    @property
    def conversation(self) -> tuple[Any, ...]:
        """What a conversation has in addition to its prompt: part of the question. Empty if there is only one request."""
        if not self.is_conversation:
            return ()
        return ([tool.by_content for tool in self.tools], self.turn_limit, self.user)

    @property
    def messages(self) -> tuple[Message, ...]:
        if isinstance(self.prompt, str):
            return (Message(role=MessageRole.USER, content=self.prompt),)
        return self.prompt

    @cached_property
    def question(self) -> tuple[msgspec.Raw, ...]:
        """The messages as ask keys have them, without the location of files: JSON that is the same for every attempt."""
        return tuple(msgspec.Raw(msgspec.json.encode(one.without_paths, order="sorted")) for one in self.messages)

    @cached_property
    def question_digests(self) -> dict[str, str]:
        """The digests of the question that are known, by system prompt."""
        return {}

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
        """Whether only judges, and no verifier, can decide if an answer is right."""
        return self.kind == JUDGE_ONLY_KIND

    @property
    def has_verifier(self) -> bool:
        """Whether one of our verifiers can decide if an answer is right."""
        return self.kind not in (JUDGE_ONLY_KIND, RECORDED_KIND)

    @cached_property
    def tests_digest(self) -> str:
        """Equal for two cases whose answers are verified alike; the location of files does not matter."""
        verify = msgspec.structs.replace(self.verify, python=self.verify.python.rpartition("/")[2], python_env="")
        expectations = msgspec.structs.replace(
            self.expectations, custom_check=self.expectations.custom_check.rpartition("/")[2]
        )
        limits = self.timeout_secs, *(() if self.compile_secs is None else (self.compile_secs,))
        return digest(self.kind, self.language, verify, expectations, self.dependencies, self.target, *limits)


class Attempt(Record, frozen=True, kw_only=True, dict=True):
    """One asking of one case: plain data, so any machine can carry it out."""

    case: Case
    model: str
    """Provider and model, such as `openai/gpt-5`."""
    parameters: dict[str, Any] = {}
    """Sent with the request as they are; what is not given is not sent."""
    system: str = ""
    tier: str = ""
    number: int = 1
    samples: int = 1
    """How often the same is asked in all; no part of the key."""
    shared_characters: int = 0
    """The beginning of the first user message with which other requests begin too, if not all of it; no part of the key."""
    tools: tuple[Tool, ...] = ()
    """Tools that the model may call."""

    @property
    def messages(self) -> tuple[Message, ...]:
        if self.system:
            return (Message(role=MessageRole.SYSTEM, content=self.system), *self.case.messages)
        return self.case.messages

    @property
    def asked(self) -> str:
        """A digest of the question, the same for every model."""
        known = self.case.question_digests
        if self.tools and not self.case.tools:
            return digest(self._question, *self._surroundings)
        if self.system not in known:
            known[self.system] = digest(self._question, *self._surroundings)
        return known[self.system]

    @cached_property
    def key(self) -> str:
        """The ask key: two attempts with the same key are the same asking."""
        asked = self.case.id, self._question, self.model, self.parameters, self.tier, self.number
        return digest(*asked, *self._surroundings)

    @property
    def _question(self) -> tuple[Message | msgspec.Raw, ...]:
        system = (Message(role=MessageRole.SYSTEM, content=self.system),) if self.system else ()
        return (*system, *self.case.question)

    @property
    def _surroundings(self) -> tuple[Any, ...]:
        """The files to work on, and the tools to work with, are a part of the question."""
        workspace = self.case.verify.workspace_digest
        tools = () if self.case.tools else self.tools
        return (*((workspace,) if workspace else ()), *((tools,) if tools else ()), *self.case.conversation)


class VerifierSettings(Record, frozen=True, kw_only=True):
    """Keys that a case may have with any verifier: collections give them for every language, or the loader fills them in."""

    kind: str = ""
    style: str = ""
    tests: str = ""
    entry_point: str = ""
    stub: str | None = None
    source: str = ""
    workspace_digest: str = ""

    @classmethod
    def of(cls, case: Case) -> Self:
        """What a case says to the verifier that owns this struct; the same object for the same case."""
        kept: Self | None = case.__dict__.get(cls.__name__)
        if kept is None:
            said = case.verify
            own = {key: value for key, value in said.settings.items() if key in cls.__struct_fields__}
            stored = {key: getattr(said, key) for key in cls.__struct_fields__ if key in Verify.__struct_fields__}
            kept = case.__dict__[cls.__name__] = replace(msgspec.convert(own, cls), **stored)
        return kept
