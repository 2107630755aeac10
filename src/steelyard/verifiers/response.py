"""Answers that are text: right when they hold the text that was expected."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from steelyard.errors import VerifierError
from steelyard.records import Case, Finding

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox


class Response:
    """Looks for the case's target in the reply; with style `exact` the reply must be nothing else."""

    version = "response 1"
    at_once = os.cpu_count() or 2
    runs_code = False

    def __init__(self, sandbox: Sandbox) -> None:
        """Text is only read, so the sandbox is not needed."""

    def check(self, case: Case) -> None:
        if case.verify.style not in ("", "contains", "exact"):
            raise VerifierError(f'unknown style "{case.verify.style}" (known: contains, exact)')
        if not case.target:
            raise VerifierError("no target to look for in the reply")

    async def verify(self, case: Case, text: str) -> Finding:
        self.check(case)
        exact = case.verify.style == "exact"
        passed = text.strip() == case.target.strip() if exact else case.target in text
        if passed:
            return Finding(passed=True)
        wanted = "is not" if exact else "does not hold"
        return Finding(passed=False, label="wrong answer", reason=f'the reply {wanted} "{case.target[:100]}"')

    async def close(self) -> None:
        """Nothing is kept."""
