"""The folder of what is made once for all Rust attempts and kept between runs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder(name: str) -> Path:
    """The folder of this name among those that are kept between runs; the one above it exists."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steelyard" / "rust"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # it cannot be written, or this user has no home
        folder = Path(tempfile.gettempdir(), f"steelyard-rust-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder / name


def let_everyone_read(*paths: Path) -> None:
    """Open files and folders to the user that attempts run as, whatever our user's umask is."""
    for path in paths:
        path.chmod(0o755)
