"""What can go wrong, and whose fault it is.

SteelyardError
  InputError            a file, argument or setting of the user's: all its problems at once, exit code 2
  NotComparableError    two sides that were judged in different ways: exit code 3
  StoreError            a run folder that cannot be read, written or locked
    DiskError           ... because the disk is full, broken or gone: exit code 3
  StepError             a step of the road that broke: ends as a Failure beside the verdicts
    ProviderError       the question got no answer
      Unavailable       ... this time: worth asking again
        ProviderTimeout ... before its deadline, though it may have been asked for in full
      Rejected          ... and asking again would not help
        FilteredInput   ... because a filter turned this input down
        RecordedFailure ... because a recording has none for this prompt
    VerifierError       the answer could not be verified
      MissingToolError  ... because this machine lacks a toolchain, a package or a crate
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar, Literal, NamedTuple


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    GATE_FAILED = 1
    """A gate, --fail-under or --fail-on-regression."""
    BAD_INPUT = 2
    """Wrong usage, or input that cannot be read."""
    CANNOT_TELL = 3
    """Data are missing, or the evidence is too thin."""
    INTERNAL_ERROR = 70
    """A bug of ours; the message names a file with the traceback."""
    INTERRUPTED = 130
    """The user stopped it; it can be resumed."""


class SteelyardError(Exception):
    """Anything we say to a user in one sentence instead of a traceback."""

    exit_code: ClassVar[ExitCode] = ExitCode.BAD_INPUT
    """How a command ends that raises it."""


class Problem(NamedTuple):
    """One thing that is wrong with a file, and where."""

    where: str
    """The file, or the argument."""
    line: int
    """From 1; 0 when no line can be named."""
    what: str
    fatal: bool = True
    """False for a warning."""

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line else self.where
        return f"{place}: {self.what}" if place else self.what


class BoundedProblemList:
    """Problems of unreadable input: the first ones, and the number of the others."""

    def __init__(self, most: int) -> None:
        self.first: list[Problem] = []
        self.more = 0
        self._most = most

    def add(self, problem: Problem) -> None:
        """Keep a problem, or only count it."""
        if len(self.first) < self._most:
            self.first.append(problem)
        else:
            self.more += 1


class InputError(SteelyardError):
    """Something the user gave cannot be used."""

    def __init__(self, problems: str | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = [Problem("", 0, problems)]
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class NotComparableError(SteelyardError):
    """Two sides have nothing in common that was judged in the same way, so no difference between them means anything."""

    exit_code = ExitCode.CANNOT_TELL


def check_format(where: str, number: int, newest: int) -> None:
    """Raises an InputError if a file of ours has a format that this version does not read."""
    if number > newest:
        raise InputError(
            f"{where}: written by a newer version of steelyard (format {number}; this one reads up to {newest}); "
            "update steelyard to read it"
        )


class StoreError(SteelyardError):
    """A run folder that cannot be read, written or locked."""


class DiskError(StoreError):
    """The disk, or the machine it belongs to, broke while it was written; what was written before stays."""

    exit_code = ExitCode.CANNOT_TELL


class DiskFullError(DiskError):
    """The disk is full."""


class StepError(SteelyardError):
    """A step of the road that broke."""

    stage: ClassVar[Literal["ask", "verify", "judge"]]


class ProviderError(StepError):
    """The question got no answer."""

    stage = "ask"

    def __init__(self, message: str, *, parameters: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.parameters = frozenset(parameters)
        """The parameters of the request that the server's error names: without them it may answer."""


class Unavailable(ProviderError):
    """No answer this time; asking again may help."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        parameters: Iterable[str] = (),
        is_token_limit: bool = False,
    ) -> None:
        super().__init__(message, parameters=parameters)
        self.retry_after = retry_after
        """Seconds the server asked us to wait."""
        self.is_token_limit = is_token_limit
        """The server accepts no more tokens for now; the number of requests does not matter."""


class ProviderTimeout(Unavailable):
    """No answer before the deadline."""

    def __init__(self, message: str, *, accepted: bool, in_silence: bool) -> None:
        super().__init__(message)
        self.accepted = accepted
        """The endpoint had received the whole request, and kept the connection open."""
        self.in_silence = in_silence
        """No other request to the same model was answered in the same time."""


class Rejected(ProviderError):
    """No answer, and asking the same again would not help."""

    def __init__(
        self, message: str, *, everyone: bool = False, about_stream: bool = False, parameters: Iterable[str] = ()
    ) -> None:
        super().__init__(message, parameters=parameters)
        self.everyone = everyone
        """The reason concerns every request to this endpoint (a wrong key), not only this one."""
        self.about_stream = about_stream
        """The endpoint wants the answer streamed, or does not want it streamed."""


class FilteredInput(Rejected):
    """The provider's filter turned this input down; that says nothing about other inputs."""


class RecordedFailure(Rejected):
    """A line of a recording without an answer to the prompt; it says nothing about the lines beside it."""


class VerifierError(StepError):
    """The answer could not be verified."""

    stage = "verify"


class MissingToolError(VerifierError):
    """This machine lacks a toolchain, package or crate that the case needs; another machine may have it."""


class wrap_exceptions:  # noqa: N801  it reads as a statement
    """Name the seam that an exception crossed: everything that a plug-in raises leaves as `kind`."""

    def __init__(self, kind: type[StepError]) -> None:
        self._kind = kind

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, SteelyardError):
            raise self._kind(f"{type(error).__name__}: {error}") from error


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The way out for a mistyped word: the close one, or the whole list.

    >>> did_you_mean("pyton", ["python", "rust"])
    'known: python, rust; did you mean "python"?'
    """
    words = sorted(known)
    close = difflib.get_close_matches(word[:200], words, n=1)
    listed = f"known: {', '.join(words)}"
    return f'{listed}; did you mean "{close[0]}"?' if close else listed


def problems_by_reason(reasons: Mapping[str, VerifierError]) -> list[Problem]:
    """Each reason once, with the cases that it concerns: a missing compiler is one problem, not one for every case."""
    concerned: dict[tuple[str, bool], list[str]] = {}
    for case, error in reasons.items():
        concerned.setdefault((str(error), isinstance(error, MissingToolError)), []).append(f'"{case}"')
    return [
        # cases that another machine could verify are named one by one, so that they can be run there
        Problem(_cases_text(cases, len(cases) if is_missing_tool else 3), 0, reason)
        for (reason, is_missing_tool), cases in concerned.items()
    ]


def _cases_text(cases: Sequence[str], most: int) -> str:
    if len(cases) == 1:
        return f"case {cases[0]}"
    return f"{len(cases)} cases ({', '.join(cases[:most])}{', ...' if len(cases) > most else ''})"
