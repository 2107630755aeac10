"""An honest answer is never failed: each case here is right the plain way, and so it must be by our verifiers.

To add a case, write it into one of the eval sets beside this file, with the right answer as its `reference`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from honest.known_failures import KNOWN_FAILURES
from steelyard import evalsets
from steelyard.analysis.scoring import is_correct
from steelyard.engine.pool import run_concurrently
from steelyard.records import Answer, Case
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.command.verifier import CommandVerifier
from steelyard.verifiers.python.verifier import PythonVerifier
from steelyard.verifiers.rust.verifier import RustVerifier

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.toml"))
LEVEL = strongest_isolation()
AT_ONCE = {"python": 2, "command": 2, "rust": 50}
"""Attempts under way by language; Rust answers that wait at the same time are compiled together."""


def kind(case: Case) -> str:
    """The name of the case's verifier."""
    return case.verify.kind or case.language


def plain_case(case: Case) -> dict[str, Any]:
    """What `plain.py` reads."""
    verify = case.verify
    style = verify.style or ("io" if verify.pairs else "check" if verify.entry_point else "asserts")
    pairs = [[pair.input, pair.output] for pair in verify.pairs]
    return {
        "id": case.id,
        "style": style,
        "code": case.reference,
        "tests": case.tests,
        "entry_point": verify.entry_point,
        "pairs": pairs,
    }


async def judged(cases: tuple[Case, ...]) -> dict[str, str]:
    """Why each case's right answer did not pass, where it did not, by our verifiers at the real sandbox level."""
    sandbox = ZygoteSandbox(LEVEL)
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


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_no_honest_answer_is_failed(file: Path) -> None:
    cases = evalsets.load([file]).cases
    python = [plain_case(case) for case in cases if kind(case) == "python"]
    ran = subprocess.run(
        [sys.executable, HERE / "plain.py"], input=json.dumps(python), stdout=subprocess.PIPE, text=True, check=True
    )
    dishonest = {case: reason for case, reason in json.loads(ran.stdout).items() if reason}
    assert not dishonest, "not right the plain way"
    failed = asyncio.run(judged(cases))
    unknown = {case: reason for case, reason in failed.items() if case not in KNOWN_FAILURES}
    assert not unknown, "\n".join(f"{case}: {reason}" for case, reason in unknown.items())
    mended = [case.id for case in cases if case.id in KNOWN_FAILURES and case.id not in failed]
    assert not mended, "these pass now; take them out of KNOWN_FAILURES"
