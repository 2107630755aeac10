"""What tests need of the machine: missing on a developer's it is skipped, missing in CI it is a hole."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from steelyard.sandbox.levels import probe_isolation
from steelyard.sandbox.worker import IsolationLevel

PROGRAMS = Path(os.environ.get("TERRAFORM_PROGRAMS") or Path(sys.prefix, "terraform"))
"""Where `tools/terraform` put the real programs, each in a folder named after its version."""
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""Chromium; the build of it that has no windows draws the same pages for half the work."""
AXE = Path(sys.prefix, "axe", "axe.min.js")
"""Where `tools/axe` put what looks for barriers in a page."""
SCHEMATHESIS = Path(sys.prefix, "schemathesis", "bin", "schemathesis")
"""A program in an environment of its own: it would slow every start of pytest."""


def needs(tool: str) -> pytest.MarkDecorator:
    """Skip where a tool is missing, except in CI: there the test runs, and fails."""
    return _skipped(shutil.which(tool) is None, tool)


def needs_browser() -> pytest.MarkDecorator:
    """The same for Chromium and what steers it."""
    return _skipped(BROWSER is None or find_spec("playwright") is None, "chromium or playwright")


def terraform(version: str = "1.0.3") -> Path:
    """The real Terraform of this version, or an emulated one."""
    return PROGRAMS / version / "terraform"


def needs_terraform(version: str = "1.0.3") -> pytest.MarkDecorator:
    """The same for a version of Terraform that `make test` fetches."""
    is_emulated = platform.machine() != "x86_64"
    is_missing = not terraform(version).exists() or (is_emulated and not shutil.which("qemu-x86_64-static"))
    return _skipped(is_missing, f"Terraform {version}")


def needs_axe() -> pytest.MarkDecorator:
    """The same for axe-core."""
    return _skipped(not AXE.exists(), "axe-core")


def needs_schemathesis() -> pytest.MarkDecorator:
    """The same for schemathesis."""
    return _skipped(not SCHEMATHESIS.exists(), "schemathesis")


def unavailable(reason: str) -> NoReturn:
    """The same where only a running test finds out."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def isolation_level(name: str) -> IsolationLevel:
    """A level of isolation; a kernel that forbids it is a fact, a program that is not installed is a hole."""
    found = probe_isolation(name)
    if found.lacks_program:
        unavailable(f"{name}: {found.problem}")
    if not found.held:
        pytest.skip(f"{name}: {found.problem}")
    return found.enclosure


def _skipped(is_missing: bool, tool: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(is_missing and not os.environ.get("CI"), reason=f"{tool} is not installed")
