"""Folders that others may have made, or put something into, before we use them.

Input: a folder, such as one in /tmp, that may have been there before us.
Output: whether another user could put files into it, and whether what we would write to are plain files.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from steelyard.errors import InputError
from steelyard.text import printable

RUN_FILES = (
    *("attempts.jsonl", "attempts.index", "batches.jsonl", "cases.jsonl", "headline.json", "limits.jsonl"),
    *("looks.jsonl", "responses.jsonl", "run.json", "turns.jsonl", "witnesses.jsonl"),
)
"""What a run writes into its folder."""


def is_open_to_others(folder: Path) -> bool:
    """Whether a folder is a link, belongs to another user, or can be written by every user."""
    about = folder.lstat()
    return not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or bool(about.st_mode & stat.S_IWOTH)


def check_run_files(folder: Path) -> None:
    """Raise InputError if one of the files of a run is something else: a link may lead anywhere, and a pipe never ends."""
    for name in RUN_FILES:
        try:
            mode = (folder / name).lstat().st_mode
        except OSError:
            continue  # not there
        if not stat.S_ISREG(mode):
            raise InputError(f"{printable(str(folder / name))}: not a plain file; choose another folder")
