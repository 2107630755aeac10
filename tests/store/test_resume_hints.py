"""Advice to continue a run can be pasted into a shell, whatever its folder is called."""

from __future__ import annotations

import shlex
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from steelyard.cli import main
from steelyard.errors import DiskFullError
from steelyard.store.journal import write_error
from steelyard.viewer.pages.rendering import _environment


def words_after(text: str, command: str) -> list[str]:
    return shlex.split(text[text.index(command) :])


def test_a_folder_with_a_space_is_quoted_in_the_advice_of_a_full_disk() -> None:
    folder = Path("my runs") / "it's one"
    error = write_error(folder, OSError(28, "No space left on device"))
    assert isinstance(error, DiskFullError)
    assert words_after(str(error), "steelyard resume") == ["steelyard", "resume", str(folder)]


def test_a_folder_with_a_space_is_quoted_after_an_interrupt() -> None:
    assert words_after(main._way_on(Path("my runs/one")), "steelyard resume") == ["steelyard", "resume", "my runs/one"]


def test_a_folder_with_a_space_is_quoted_on_the_page_of_a_run_that_was_stopped() -> None:
    parts: Any = _environment().get_template("parts.html.j2").module
    note = unescape(str(parts.growing_note("stopped", SimpleNamespace(problems=()), "my runs/it's <one>")))
    advice = note[note.index("steelyard resume") : note.index("</code>")]
    assert shlex.split(advice) == ["steelyard", "resume", "my runs/it's <one>"]
