"""A function of the user's own as the judge of an answer."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

from steelyard.errors import InputError, VerifierError
from steelyard.plugins import user_functions
from steelyard.plugins.time_limit import within_seconds
from steelyard.protocols import Sandbox
from steelyard.records import Answer, Case, Finding, VerifierSettings, digest
from steelyard.sandbox.processors import processor_count


class FunctionSettings(VerifierSettings, frozen=True, kw_only=True):
    """What a case says to the verifier `function`."""

    python: str = ""
    """The function that judges the answer, `checks.py:score`."""


class FunctionVerifier:
    """Hands the reply, as text, to a function; the reply itself is never run here."""

    # no `settings`: the function is handed the case, and may read every key that all verifiers know
    version = "function 1"
    at_once = processor_count()
    runs_code = False

    def __init__(self, sandbox: Sandbox) -> None:
        """The reply is only read, so the sandbox is not needed."""

    def check(self, case: Case) -> None:
        _function(FunctionSettings.of(case).python, case)

    async def verify(self, case: Case, answer: Answer) -> Finding:
        return await verify_with_function(FunctionSettings.of(case).python, case, answer.text)

    async def close(self) -> None:
        """Nothing to release."""


async def verify_with_function(path: str, case: Case, text: str) -> Finding:
    """What the function at `file.py:name` says of a reply: a bool, a number in [0, 1], or {pass, score, reason}."""
    check = _function(path, case)
    try:
        returned = await within_seconds(case.timeout_secs, check.call(text, case))
    except TimeoutError:
        raise VerifierError(f"{path} returned no verdict within {case.timeout_secs:g} s") from None
    if isinstance(returned, dict):
        score, passed, reason = returned.get("score"), returned.get("pass"), str(returned.get("reason", ""))
    elif isinstance(returned, bool):
        score, passed, reason = None, returned, ""
    else:
        score, passed, reason = returned, None, ""
    if score is not None and (
        isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score)
    ):
        raise VerifierError(f"{path} returned {returned!r:.200}; expected a bool, a number or {{pass, score, reason}}")
    if score is not None and not 0 <= score <= 1:
        raise VerifierError(f"{path} returned the score {score}, which is not between 0 and 1")
    is_graded = passed is None and score is not None
    if passed is None:
        if score is None:
            raise VerifierError(
                f"{path} returned {returned!r:.200}; expected a bool, a number or {{pass, score, reason}}"
            )
        passed = score >= 1 - 1e-9
    label = "" if passed else "refused by the check"
    return Finding(
        passed=bool(passed),
        score=None if score is None else float(score),
        graded=is_graded or None,
        label=label,
        reason=reason or label,
    )


def check_unchanged(case: Case) -> None:
    """Raise when a check is not what it was when the case was loaded: its verdicts would pass as those of the old one."""
    paths = [
        path.rpartition(":")[0] for path in (FunctionSettings.of(case).python, case.expectations.custom_check) if path
    ]
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


def _function(path: str, case: Case) -> user_functions.UserFunction:
    if case.verify.source:
        return _load_function(path, case.verify.source)
    try:
        status = os.stat(path.rpartition(":")[0])  # noqa: PTH116  for each answer, and a Path would take as long as the call
    except OSError as error:
        raise VerifierError(f"{path}: {error.strerror}") from None
    return _load_function(path, f"{status.st_mtime_ns} {status.st_size}")


@cache
def _load_function(path: str, version: str) -> user_functions.UserFunction:  # noqa: ARG001  a changed file is another function
    try:
        return user_functions.load_function(path)
    except InputError as error:
        raise VerifierError(str(error)) from error
