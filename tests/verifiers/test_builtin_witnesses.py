"""Every built-in witness passes on a machine that works, and fails when it is spoiled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from steelyard.engine.preflight.references import check_references
from steelyard.records import Case, Pair, Verify
from steelyard.verifiers.python.plan import PYTHON_TEST_STYLES
from steelyard.verifiers.witnesses import (
    TOOL_WITNESSES,
    ToolWitness,
    command_witness,
    python_witness,
    rust_witness,
    terraform_witness,
)
from support.toolchains import needs, needs_terraform, terraform

ANY = Case(id="any", prompt="", timeout_secs=30)
FUNCTION = Case(id="any", prompt="", timeout_secs=30, verify=Verify(entry_point="f", pairs=(Pair(),)))


def assert_is_witness(witness: Case, spoiled: str) -> None:
    """The witness passes, and what is spoiled in it does not."""
    assert proved(witness) == (1, 0)
    wrong = replace(witness, id="spoiled", reference="", counterexample=spoiled)
    assert proved(wrong) == (1, 0)


def proved(case: Case) -> tuple[int, int]:
    """How many references of a case pass, and how many problems are more than a warning."""
    checked = check_references([case])
    return checked.proved, checked.wrong


@pytest.mark.parametrize("style", PYTHON_TEST_STYLES)
def test_each_style_of_python_has_a_witness(style: str) -> None:
    witness = python_witness(ANY, style)
    assert_is_witness(witness, witness.reference.replace("2 *", "3 *"))


def test_pairs_of_a_function_have_a_witness() -> None:
    witness = python_witness(FUNCTION, "io")
    assert_is_witness(witness, witness.reference.replace("2 *", "3 *"))


@needs("rustc")
def test_rust_has_a_witness() -> None:
    witness = rust_witness(ANY)
    assert_is_witness(witness, witness.reference.replace("2 *", "3 *"))


@needs_terraform()
def test_terraform_has_a_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "STEELYARD_TERRAFORM", str(terraform()))
    assert_is_witness(terraform_witness(ANY), 'output "four" {\n  value = var.nowhere\n}\n')


@pytest.mark.parametrize("tool", TOOL_WITNESSES, ids=lambda tool: tool.file)
def test_each_known_tool_of_commands_has_a_witness(tool: ToolWitness) -> None:
    here = [name for name in sorted(tool.tools) if any(Path(folder, name).exists() for folder in ("/usr/bin", "/bin"))]
    if not here:
        pytest.skip(f"none of {', '.join(sorted(tool.tools))} is installed")
    witness = command_witness(ANY, here)
    assert tool.file in witness.verify.files
    assert proved(witness) == (1, 0)
    spoiled = {name: text.replace("2 + 2", "2 + 3") for name, text in witness.verify.files.items()}
    broken = replace(witness, verify=replace(witness.verify, files=spoiled))
    assert proved(broken) == (0, 1)


def test_commands_of_unknown_tools_have_a_witness_of_the_shell_at_least() -> None:
    assert proved(command_witness(ANY, ["no-such-tool"])) == (1, 0)
