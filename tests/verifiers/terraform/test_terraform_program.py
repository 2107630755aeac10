"""The Terraform of a machine is found, and what it says counts only when it is clear; stood in for by scripts here."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from steelyard.errors import VerifierError
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.terraform.program import (
    TERRAFORM_PROGRAM_VARIABLE,
    TerraformProgram,
    TimedValidateOutput,
    find_terraform,
)

VALID = '{"format_version": "1.0", "valid": true, "error_count": 0, "warning_count": 0, "diagnostics": []}'
INVALID = (
    '{"valid": false, "error_count": 1, "warning_count": 0,'
    ' "diagnostics": [{"severity": "error", "summary": "Wrong", "detail": ""}]}'
)


def script(folder: Path, body: str, name: str = "terraform", version: str = "Terraform v1.9.8") -> Path:
    """A program that tells its version, and does something else when it is to validate."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\nif [ $1 = version ]; then echo '{version}'; exit 0; fi\n{body}\n")
    path.chmod(0o755)
    return path


def answered(path: Path, *, seconds: float = 20, files: dict[str, str] | None = None) -> TimedValidateOutput:
    async def ask() -> TimedValidateOutput:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        found = find_terraform({TERRAFORM_PROGRAM_VARIABLE: str(path), "PATH": "/usr/bin:/bin"})
        try:
            async with sandbox.workspace(
                {"tree/main.tf": "", "home/settings": found.settings, **(files or {})}, readable=found.readable
            ) as place:
                return await found.validate(place, "tree", seconds, with_plugins=False)
        finally:
            await sandbox.close()

    return asyncio.run(ask())


# ---- finding it


def test_the_named_program_comes_before_those_on_the_path(tmp_path: Path) -> None:
    script(tmp_path / "path", "")
    named = script(tmp_path / "named", "", version="Terraform v1.5.7")
    path = str(tmp_path / "path")
    assert find_terraform({"PATH": path}) == TerraformProgram(str(tmp_path / "path" / "terraform"), "terraform 1.9.8")
    assert find_terraform({"PATH": path, TERRAFORM_PROGRAM_VARIABLE: str(named)}) == TerraformProgram(
        str(named), "terraform 1.5.7"
    )


def test_opentofu_is_taken_where_there_is_no_terraform(tmp_path: Path) -> None:
    tofu = script(tmp_path, "", "tofu", "OpenTofu v1.8.2\non linux_amd64")
    assert find_terraform({"PATH": str(tmp_path)}) == TerraformProgram(str(tofu), "tofu 1.8.2")
    script(tmp_path, "")
    assert find_terraform({"PATH": f"{tmp_path}:"}).version == "terraform 1.9.8"


def test_a_link_is_followed_so_that_a_sandbox_can_show_what_is_behind_it(tmp_path: Path) -> None:
    real = script(tmp_path / "real", "")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "terraform").symlink_to(real)
    assert find_terraform({"PATH": str(tmp_path / "bin")}).readable == (str(real.parent),)


def test_of_a_program_that_is_no_script_nothing_but_itself_is_shown() -> None:
    assert TerraformProgram("/bin/sh", "terraform 1.0.3").readable == ("/bin/sh",)
    assert TerraformProgram("/bin/sh", "terraform 1.0.3", "/plugins").readable == ("/bin/sh", "/plugins")


def test_where_there_is_none_the_way_to_one_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        VerifierError, match=r"no Terraform here; install OpenTofu .* or name the program in STEELYARD_T"
    ):
        find_terraform({"PATH": str(tmp_path)})
    with pytest.raises(VerifierError, match='STEELYARD_TERRAFORM names "nowhere", which is not a program; install'):
        find_terraform({"PATH": str(tmp_path), TERRAFORM_PROGRAM_VARIABLE: "nowhere"})


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("Terraform v0.12.31", "is Terraform 0.12.31, and 0.13 is the oldest"),
        ("choose a version first", "does not print its version; if it only chooses among several"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, version: str, said: str) -> None:
    script(tmp_path, "", version=version)
    with pytest.raises(VerifierError, match=said):
        find_terraform({"PATH": str(tmp_path)})


def test_versions_from_the_oldest_to_the_newest_are_taken(tmp_path: Path) -> None:
    for version in ("0.13.0", "0.15.5", "1.0.3", "1.15.0-beta2", "2.0.0"):
        found = script(tmp_path / version, "", version=f"Terraform v{version}")
        assert find_terraform({"PATH": str(found.parent)}).version == f"terraform {version}"


def test_a_folder_of_plugins_must_be_there(tmp_path: Path) -> None:
    script(tmp_path, "")
    environment = {"PATH": str(tmp_path), "TF_PLUGIN_CACHE_DIR": str(tmp_path / "plugins")}
    with pytest.raises(VerifierError, match="no such folder of provider plugins"):
        find_terraform(environment)
    (tmp_path / "plugins").mkdir()
    found = find_terraform(environment)
    assert found.plugins == str(tmp_path / "plugins")
    assert f'path = "{tmp_path / "plugins"}"' in found.settings
    (tmp_path / "ours").mkdir()
    assert find_terraform({**environment, "STEELYARD_TERRAFORM_PLUGINS": str(tmp_path / "ours")}).plugins.endswith(
        "/ours"
    )


# ---- asking it


def test_a_clear_answer_counts(tmp_path: Path) -> None:
    assert answered(script(tmp_path / "yes", f"echo '{VALID}'")).output.valid
    found = answered(script(tmp_path / "no", f"echo '{INVALID}'; exit 1")).output
    assert (found.valid, [error.summary for error in found.errors]) == (False, ["Wrong"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while :; do :; done", "stopped at the cpu limit after"),
        ("kill -9 $$", "gave no answer .exit code -9."),
        ("exit 0", "gave no answer .exit code 0."),
        ("echo Success!", "gave no answer .exit code 0."),
        (f"echo '{VALID}' and more", "gave no answer .exit code 0."),
        ("echo 'Error: Cannot open' >&2; exit 1", "exit code 1.: Error: Cannot open"),
        ("echo 'panic: nil' >&2; echo 'goroutine 1' >&2; exit 2", "exit code 2.: panic: nil goroutine 1"),
        ("echo 'fatal error: runtime: out of memory' >&2; exit 2", "exit code 2.: fatal error: runtime: out of memory"),
        ("head -c 20000000 /dev/zero", "gave no answer"),
        (f"echo '{VALID}'; exit 1", "called the module valid, but ended with exit code 1"),
        (f"echo '{VALID}'; exit 11", "called the module valid, but ended with exit code 11"),
        (f"echo '{INVALID}'", "called the module invalid, but ended with exit code 0"),
        (f"echo '{INVALID}'; kill -9 $$", "called the module invalid, but ended with exit code -9"),
    ],
)
def test_anything_else_is_a_failure_of_ours(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(VerifierError, match=said):
        answered(script(tmp_path / "bin", body), seconds=1)


def test_it_finds_nothing_of_ours_in_its_environment_and_nothing_of_a_module_in_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("A_KEY", "TF_VAR_region", "TF_CLI_ARGS", "TF_LOG", "TF_DATA_DIR"):
        monkeypatch.setenv(name, "ours")
    body = f"""
env | grep -q ours && exit 3
[ -e "$HOME/.terraformrc" ] && exit 4
[ -e main.tf ] && [ -e .terraformrc ] || exit 5
grep -q disable_checkpoint "$TF_CLI_CONFIG_FILE" || exit 6
[ "$TF_FORK$CHECKPOINT_DISABLE$TF_INPUT" = 010 ] || exit 7
echo '{VALID}'
"""
    assert answered(script(tmp_path / "bin", body), files={"tree/.terraformrc": "ours"}).output.valid
