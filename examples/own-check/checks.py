"""Checks for haiku.toml: each gets the reply, and the case if it asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard import Case


def haiku(reply: str) -> dict[str, Any]:
    """Three lines, none of them long."""
    lines = [line for line in reply.strip().splitlines() if line.strip()]
    if len(lines) != 3:
        return {"pass": False, "score": 0.0, "reason": f"{len(lines)} lines instead of 3"}
    long = [line for line in lines if len(line.split()) > 8]
    return {"pass": not long, "score": 1 - len(long) / 3, "reason": f"a long line: {long[0]}" if long else ""}


def haiku_without_its_subject(reply: str, case: Case) -> dict[str, Any]:
    """A haiku that does not name what it is about."""
    subject = case.metadata["forbidden"]
    if subject in reply.lower():
        return {"pass": False, "score": 0.0, "reason": f"it says {subject}"}
    return haiku(reply)
