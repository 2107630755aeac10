"""Judges honest answers at one level, and tells which fail.

Run as a program of its own, so that it can be run as another user:  python at_level.py LEVEL
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from steelyard import evalsets
from steelyard.analysis.scoring import is_correct
from steelyard.engine.pool import run_concurrently
from steelyard.records import Answer, Case
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.sandbox.worker import IsolationLevel
from steelyard.text import verbatim_reply
from steelyard.verifiers.command.verifier import CommandVerifier
from steelyard.verifiers.python.verifier import PythonVerifier
from steelyard.verifiers.rust.verifier import RustVerifier

HERE = Path(__file__).parent
PACKAGES_FILES = (HERE / "packages.toml", HERE / "reviewed" / "several_packages.toml")
"""Cases that use packages, judged with those of the environment that the tests run in."""
FILES = sorted(HERE.glob("*.toml"))
REVIEWED_FILES = sorted(HERE.glob("reviewed/*.toml"))
"""More of the same, for which a run of all tests has no time."""
AT_ONCE = {"python": 2, "command": 2, "rust": 50}
"""Attempts under way by language; Rust answers that wait at the same time are compiled together."""


def kind(case: Case) -> str:
    """The name of the case's verifier."""
    return case.verify.kind or case.language


async def judged(cases: Sequence[Case], level: IsolationLevel) -> dict[str, str]:
    """Why each case's right answer did not pass, where it did not, by our verifiers at the real sandbox level."""
    sandbox = ZygoteSandbox(level)
    verifiers: dict[str, Any] = {
        "python": PythonVerifier(sandbox),
        "rust": RustVerifier(sandbox),
        "command": CommandVerifier(sandbox),
    }
    reasons: dict[str, str] = {}

    async def judge(case: Case) -> None:
        verifier = verifiers[kind(case)]
        # the verifier must find out by itself: it does not see that the answer is the reference
        asked = msgspec.structs.replace(case, reference="")
        try:
            verifier.check(asked)
            finding = await verifier.verify(asked, Answer(text=verbatim_reply(case.reference or "", case.language)))
        except Exception as error:
            reasons[case.id] = f"failure of ours: {type(error).__name__}: {error}"
        else:
            if not is_correct(asked, finding):
                reasons[case.id] = f"{finding.label}: {finding.reason}"

    await run_concurrently(iter(cases), judge, max(AT_ONCE[kind(case)] for case in cases))
    await verifiers["python"].close()
    await sandbox.close()
    return reasons


def main() -> None:
    cases = tuple(
        case
        for case in evalsets.load([file for file in FILES if file not in PACKAGES_FILES]).cases
        # another user may have neither our toolchain nor our pytest
        if kind(case) in ("python", "command") and case.verify.style != "pytest"
    )
    failed = asyncio.run(judged(cases, ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(sys.argv[1])]))
    json.dump({"judged": len(cases), "failed": failed}, sys.stdout)


if __name__ == "__main__":
    main()
