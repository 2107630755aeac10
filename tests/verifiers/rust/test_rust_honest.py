"""Right answers pass, however unusual their Rust: none is failed, and none is called tampered."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import msgspec
import pytest

from steelyard import evalsets
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.rust.author import author_names
from steelyard.verifiers.rust.toolchain import toolchain
from steelyard.verifiers.rust.verifier import RustVerifier
from support.toolchains import needs

pytestmark = needs("rustc")

CASES = {case.id: case for case in evalsets.load([Path(__file__).with_name("honest.toml")]).cases}


@pytest.fixture(scope="module")
def findings() -> dict[str, Finding]:
    async def verify() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        rust = RustVerifier(sandbox)
        # what the reference says counts as asked for, and an answer must not need that
        blind = [msgspec.structs.replace(case, reference="") for case in CASES.values()]
        try:
            return await asyncio.gather(
                *(rust.verify(case, Answer(text=f"```rust\n{CASES[case.id].reference}```")) for case in blind)
            )
        finally:
            await sandbox.close()

    return dict(zip(CASES, asyncio.run(verify()), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_an_honest_answer_passes(findings: dict[str, Finding], name: str) -> None:
    finding = findings[name]
    assert not finding.tampered, finding.reason
    assert is_correct(CASES[name], finding), (finding.label, finding.reason, finding.missing)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_it_passes_the_plain_way(case: Case, tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text(f"{case.reference}\n{case.tests.replace('//!', '//')}", "utf-8")
    argv = [toolchain().rustc, "--test", "--edition=2021", "-Awarnings", "lib.rs", "-o", "tests"]
    built = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(["./tests"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(
    ("prompt", "types"),
    [
        ("Write a struct `Meters(pub f64)` that can be compared with a plain f64 by == and <.", {"Meters"}),
        ("Write `struct Money(i64)`. It supports + with i64.", {"Money"}),
        ("Write `struct Sum` and `fn add(a: i64, b: i64) -> i64` that returns a + b.", set()),
        ("Write `struct Token`. Write `fn parse`. It knows the operators of arithmetic.", set()),
    ],
)
def test_a_prompt_asks_for_operators_only_of_the_types_of_that_sentence(prompt: str, types: set[str]) -> None:
    assert author_names(prompt, "", "").operators == types
