"""A function of the user's own as the judge of an answer."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import math
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.errors import VerifierError
from steelyard.records import Case, Finding, digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.protocols import Sandbox


class Function:
    """Hands the reply, as text, to a function; the reply itself is never run here."""

    version = "function 1"

    def __init__(self, sandbox: Sandbox) -> None:
        """The reply is only read, so the sandbox is not needed."""

    def check(self, case: Case) -> None:
        _function(case.verify.python, case)

    async def verify(self, case: Case, text: str) -> Finding:
        return await judged_by(case.verify.python, case, text)


async def judged_by(path: str, case: Case, text: str) -> Finding:
    """What the function at `file.py:name` says of a reply: a bool, a number in [0, 1], or {pass, score, reason}."""
    function, takes_case, is_async = _function(path, case)
    arguments = (text, case) if takes_case else (text,)
    said = await function(*arguments) if is_async else await asyncio.to_thread(function, *arguments)
    if isinstance(said, dict):
        score, passed, reason = said.get("score"), said.get("pass"), str(said.get("reason", ""))
    elif isinstance(said, bool):
        score, passed, reason = None, said, ""
    else:
        score, passed, reason = said, None, ""
    if score is not None and (
        isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score)
    ):
        raise VerifierError(f"{path} returned {said!r:.200}; wanted: a bool, a number or {{pass, score, reason}}")
    if score is not None and not 0 <= score <= 1:
        raise VerifierError(f"{path} returned the score {score}, which is not between 0 and 1")
    if passed is None:
        if score is None:
            raise VerifierError(f"{path} returned {said!r:.200}; wanted: a bool, a number or {{pass, score, reason}}")
        passed = score >= 1 - 1e-9
    label = "" if passed else "refused by the check"
    return Finding(
        passed=bool(passed), score=None if score is None else float(score), label=label, reason=reason or label
    )


def check_unchanged(case: Case) -> None:
    """Raise when a check is not what it was when the case was loaded: its verdicts would pass as those of the old one."""
    paths = [path.rpartition(":")[0] for path in (case.verify.python, case.expectations.custom_check) if path]
    if not case.verify.source or not paths:
        return
    try:
        source = digest(*(digest(Path(path).read_bytes()) for path in paths))
    except OSError as error:
        raise VerifierError(f"{' or '.join(paths)}: {error.strerror}") from None
    if source != case.verify.source:
        raise VerifierError(
            f"{' or '.join(paths)} changed since it judged this run; "
            "let it judge every reply again with: steelyard verify RUN --eval-set EVALSET"
        )


def _function(path: str, case: Case) -> _Check:
    if case.verify.source:
        return _imported(path, case.verify.source)
    try:
        status = Path(path.rpartition(":")[0]).stat()
    except OSError as error:
        raise VerifierError(f"{path}: {error.strerror}") from None
    return _imported(path, f"{status.st_mtime_ns} {status.st_size}")


class _Check(NamedTuple):
    """A function of the user's, and how it wants to be called."""

    function: Callable[..., Any]
    takes_case: bool
    is_async: bool


@cache
def _imported(path: str, version: str) -> _Check:  # noqa: ARG001  a changed file is another function
    file, _, name = path.rpartition(":")
    # the path as its name: no other module has that, and a dataclass looks itself up under it
    spec = importlib.util.spec_from_file_location(str(Path(file).resolve()), file)
    if spec is None or spec.loader is None:
        raise VerifierError(f'{path}: not "file.py:function"')
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        function: Callable[..., Any] = getattr(module, name)
    except Exception as error:
        raise VerifierError(f"{path}: {type(error).__name__}: {error}") from error
    return _Check(function, len(inspect.signature(function).parameters) > 1, inspect.iscoroutinefunction(function))
