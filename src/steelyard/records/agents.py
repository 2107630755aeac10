"""What an agent declares: its command line, and all that it needs to reach."""

from __future__ import annotations

from steelyard.records.cases import Record


class AgentSettings(Record, frozen=True, kw_only=True):
    """A program that works in a folder, and all that it needs to reach: an `[agents.NAME]` table of the settings file."""

    command: str
    """Its command line."""
    folders: tuple[str, ...] = ()
    """Folders and files that it can read besides the system's."""
    writable_folders: tuple[str, ...] = ()
    """Folders that it can read and change."""
    hosts: tuple[str, ...] = ()
    """Hosts that it can reach, such as `api.example.com`, `*.example.com` or `127.0.0.1:8080`."""
    keys: tuple[str, ...] = ()
    """The environment variables that it gets; of the rest of the environment it gets nothing."""
    environment: dict[str, str] = {}
    """What it finds in its environment besides."""
    time_limit_secs: float = 540
    """How long one attempt may take."""
