"""What tests need of the machine: missing on a developer's it is skipped, missing in CI it is a hole."""

from __future__ import annotations

import os
import shutil

import pytest


def needs(tool: str) -> pytest.MarkDecorator:
    """Skip where a tool is missing, except in CI: there the test runs, and fails."""
    is_missing = shutil.which(tool) is None and not os.environ.get("CI")
    return pytest.mark.skipif(is_missing, reason=f"{tool} is not installed")
