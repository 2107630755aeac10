"""Standard output and standard error that never end a command: output that can no longer be read is dropped."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
import sys
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WORKFLOW_COMMAND_PATTERN = re.compile(
    r"(?:(?:^|(?<=\r))[^\S\n\r]*:)(?=:)|#(?=#(?:vso|teamcity)?\[)|(?:section_|travis_)(?=(?:start|end|fold|time):)",
    re.MULTILINE | re.IGNORECASE,
)
"""GitHub takes any blank before `::` away, the wide ones of other scripts too, and takes a carriage return for the end of a line."""
MAX_COMMAND_MARK_CHARACTERS = 32
"""Characters before the end of what was written in which a command may have begun."""
CI_VARIABLES = (
    *("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION", "JENKINS_URL", "BUILDKITE", "TRAVIS"),
    *("BUILD_BUILDID", "CODEBUILD_BUILD_ID", "bamboo_buildKey"),
)
"""What CI services set; Azure Pipelines and TeamCity do not set CI."""
PARQUET_MAGIC = b"PAR1"
"""How a file begins that no log could show."""
_READER_GONE_ERRNOS = (errno.EPIPE, errno.EBADF, errno.ECONNRESET, errno.ESHUTDOWN)
"""What writing to a stream ends in that was closed, here or at its other end."""

_ASCII_BY_CHARACTER = str.maketrans({"─": "-", "━": "=", "·": "|", "…": "~", "→": ">", "∞": "inf", "⟨": "<", "⟩": ">"})
"""Replacements for the characters of our tables and progress on a terminal without them; almost all keep their width."""


def without_workflow_commands(text: str) -> str:
    r"""The text with everything broken up that the log of a CI service takes for a command.

    >>> without_workflow_commands("::error::no"), without_workflow_commands("a ##[group]b ##vso[task]")
    (': :error::no', 'a # #[group]b # #vso[task]')
    >>> without_workflow_commands("\u3000::error::no"), without_workflow_commands("section_start:1:a")
    ('\u3000: :error::no', 'section_ start:1:a')
    """
    return _WORKFLOW_COMMAND_PATTERN.sub(lambda found: f"{found[0]} ", text)


class CommandBreaker:
    """Breaks up commands in what is written piece by piece, also those that begin in one piece and end in the next."""

    def __init__(self) -> None:
        self.is_begun = False
        self._before = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def text(self, piece: str) -> str:
        r"""The piece with everything broken up that would be a command after the pieces before it.

        >>> breaker = CommandBreaker()
        >>> breaker.text("a #"), breaker.text("#[error]b"), breaker.text("\n :"), breaker.text(":error::c")
        ('a #', ' #[error]b', '\n :', ' :error::c')
        """
        self.is_begun |= bool(piece)
        whole = self._before + piece
        known = len(self._before)
        broken, begin = [], known
        for found in _WORKFLOW_COMMAND_PATTERN.finditer(whole):
            place = max(found.end(), known)
            broken += [whole[begin:place], " "]
            begin = place
        written = "".join([*broken, whole[begin:]])
        line = re.split(r"[\n\r]", self._before + written)[-1].lstrip()
        cut = line[-MAX_COMMAND_MARK_CHARACTERS:]
        # what is cut off was no blank, so the rest does not begin a line
        self._before = cut if cut == line else f".{cut}"
        return written

    def content(self, piece: bytes) -> bytes:
        """The same for bytes of UTF-8; a character that is not whole waits for its rest."""
        return self.text(self._decoder.decode(piece)).encode("utf-8", "surrogateescape")

    def rest(self) -> bytes:
        """What still waits."""
        return self.text(self._decoder.decode(b"", final=True)).encode("utf-8", "surrogateescape")


class GuardedStream:
    """A stream whose reader may go away at any time; a CI service that reads it must not obey what a model wrote."""

    def __init__(self, stream: Any, *, is_ci_log: bool = False, owner: GuardedStream | None = None) -> None:
        self._stream = stream
        self._is_ci_log = is_ci_log
        self._owner = owner or self
        self._breaker: CommandBreaker = owner._breaker if owner else CommandBreaker()
        self.error: OSError | None = None
        """Why something could not be written, where that was not because the reader had gone."""

    @property
    def buffer(self) -> GuardedStream:
        """The same stream for bytes."""
        return GuardedStream(self._stream.buffer, is_ci_log=self._is_ci_log, owner=self._owner)

    def write(self, content: Any) -> int:
        """Write text, or bytes to a stream of bytes."""
        length = len(content)
        if self._is_ci_log and isinstance(content, str):
            content = self._breaker.text(content)
        elif self._is_ci_log:
            content = bytes(content)
            self._is_ci_log = self._breaker.is_begun or content[:4] != PARQUET_MAGIC
            content = self._breaker.content(content) if self._is_ci_log else content
        with self._never_failing():
            self._stream.write(content)
        return length

    def writelines(self, lines: Iterable[Any]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        with self._never_failing():
            if rest := self._breaker.rest():
                getattr(self._stream, "buffer", self._stream).write(rest)
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _never_failing(self) -> Iterator[None]:
        try:
            yield
        except UnicodeError:
            raise
        except ValueError:
            # Python's own word for a stream that was closed here
            self._write_nowhere()
        except OSError as error:
            if error.errno not in _READER_GONE_ERRNOS and not (error.errno == errno.EIO and not _is_file(self._stream)):
                self._owner.error = self._owner.error or error
            self._write_nowhere()

    def _write_nowhere(self) -> None:
        """Let the rest go nowhere, also what is flushed when Python exits."""
        with suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            try:
                os.dup2(nowhere, self._stream.fileno())
            finally:
                os.close(nowhere)


def is_ci() -> bool:
    """Whether a CI service reads what is printed."""
    return any(name in os.environ for name in CI_VARIABLES)


@contextmanager
def guarded_output() -> Iterator[GuardedStream]:
    """Guard both streams within the block; yields standard output. In CI, nothing printed is a command to the CI service."""
    _open_closed_streams()
    codecs.register_error("ascii_lookalikes", _ascii_lookalikes)
    with ExitStack() as redirected:
        for redirect, stream in ((redirect_stdout, sys.stdout), (redirect_stderr, sys.stderr)):
            with suppress(OSError, ValueError, AttributeError):
                # another process that shares the stream may have made it non-blocking
                os.set_blocking(stream.fileno(), True)
            if hasattr(stream, "reconfigure"):
                # Python writes UTF-8 even where the locale is C: right for files, but noise on a terminal with few letters
                is_ascii = os.environ.get("LC_ALL") in {"C", "POSIX"} and stream.isatty()
                stream.reconfigure(encoding="ascii" if is_ascii else None, errors="ascii_lookalikes")
            guarded: Any = GuardedStream(stream, is_ci_log=is_ci() and not _is_file(stream))
            redirected.enter_context(redirect(guarded))
        output: Any = sys.stdout
        try:
            yield output
        finally:
            sys.stdout.flush()
            sys.stderr.flush()


@contextmanager
def user_output_on_stderr() -> Iterator[None]:
    """Within the block the user's code, and programs that it starts, print to standard error: only results go to standard output."""
    sys.stdout.flush()
    with ExitStack() as redirected:
        # too few open files are no reason to end here
        with suppress(OSError):
            results = os.dup(1)
            redirected.callback(os.close, results)
            redirected.callback(os.dup2, results, 1)
            os.dup2(2, 1)
        redirected.enter_context(redirect_stdout(sys.stderr))
        yield


def _ascii_lookalikes(error: UnicodeError) -> tuple[str | bytes, int]:
    """What is written for characters that a stream has no code for: a terminal that knows few letters must not end a run."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_ASCII_BY_CHARACTER)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


def _open_closed_streams() -> None:
    """Open what a caller closed: otherwise the next file that is opened takes the place, and gets what is printed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # the lowest free number is this one
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123  it stays open as long as we do


def _is_file(stream: Any) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return False
