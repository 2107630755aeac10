"""What the tests of gates share: two models made of functions, one right and one wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

MODELS = """
def right(prompt):
    return "```python\\ndef one():\\n    return 1\\n```"


def wrong(prompt):
    return "```python\\ndef one():\\n    return 2\\n```"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with `python:models.py:right` and `wrong` in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path
