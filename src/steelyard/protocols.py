"""The seams: what a provider, a verifier, a sandbox and a report must be able to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from steelyard.records import Answer, Attempt, Case, Finding, Record


class ProviderSettings(Record, frozen=True, kw_only=True):
    """How one provider is reached: a `[providers.NAME]` table of the settings file, or what the environment says."""

    type: str
    """The wire format: openai, anthropic, ollama, http, command, python or replay."""
    api_key: str = ""
    base_url: str = ""
    org_id: str = ""
    headers: dict[str, str] = {}
    body: str = ""
    """For `http`: the JSON body, with `{{prompt}}`, `{{system}}`, `{{model}}` and parameters filled in."""
    answer: str = ""
    """For `http`: the path to the text in the response, such as `choices.0.text`."""


class Offer(NamedTuple):
    """A model that an endpoint offers."""

    model: str
    detail: str = ""


class Headroom(NamedTuple):
    """What a server's rate-limit headers leave us."""

    requests: int
    """Requests that may still be sent before the reset."""
    reset: float
    """Seconds until the count starts anew."""


class Provider(Protocol):
    """Someone who can be asked."""

    endpoint: str
    """Providers with the same endpoint share one pace."""
    at_once: int
    """How many requests make sense at the same time, at the very most."""

    async def ask(self, attempt: Attempt) -> Answer:
        """One answer; raises Unavailable or Rejected when there is none."""
        ...

    def headroom(self) -> Headroom | None:
        """What the last answer's headers said about the rate limit."""
        ...

    def available(self, case: str) -> int | None:
        """How many answers there are to this case; None when there is no end to them."""
        ...

    async def offers(self) -> list[Offer]:
        """The models to be had at this endpoint."""
        ...

    async def close(self) -> None: ...


class Connect(Protocol):
    """The entry point of a provider: the models a name stands for, and whom to ask for each."""

    def __call__(self, model: str, settings: ProviderSettings) -> Mapping[str, Provider]: ...


class Limits(NamedTuple):
    """What untrusted code may use up before it is stopped."""

    cpu_seconds: float = 10
    wall_seconds: float = 60
    memory_bytes: int = 1 << 30
    file_bytes: int = 64 << 20
    """How large a file may become, what is printed included."""


class Outcome(NamedTuple):
    """How a contained program ended."""

    exit_code: int
    """Negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes
    limit: str
    """The limit that ended it, `cpu limit` or `time limit`; empty if none did."""
    seconds: float


class Sandbox(Protocol):
    """A place where untrusted code can run."""

    level: str
    """How strong it is, stored with every verdict."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, str],
        stdin: bytes,
        limits: Limits,
    ) -> Outcome:
        """Run a program in a fresh folder holding `files`; raises when it could not be started."""
        ...


class Verifier(Protocol):
    """Someone who can find out whether an answer is right."""

    version: str
    """Its name with its version and that of its toolchain: part of the verdict key."""

    def check(self, case: Case) -> None:
        """Raise VerifierError when no answer to this case could be verified: better known before answers are paid for."""
        ...

    async def verify(self, case: Case, text: str) -> Finding:
        """What is true of this answer; raises when it could not be found out."""
        ...


class MakeVerifier(Protocol):
    """The entry point of a verifier."""

    def __call__(self, sandbox: Sandbox) -> Verifier: ...
