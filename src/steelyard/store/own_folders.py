"""Whether a folder with a name that others can guess is ours.

Input: a folder, such as one in /tmp, that may have been there before us.
Output: whether another user made it, or could put files into it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def is_open_to_others(folder: Path) -> bool:
    """Whether a folder is a link, belongs to another user, or can be written by every user."""
    about = folder.lstat()
    return not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or bool(about.st_mode & stat.S_IWOTH)
