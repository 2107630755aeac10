"""The tools that an eval set declares for all its cases."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from steelyard.evalsets.schema import Draft, KeyPath, ProblemCollector, record_from_draft
from steelyard.records import CaseTool
from steelyard.text import short_quote


def tool_table(table: Any) -> Any:
    """A tool in our words, also where it is written as OpenAI's requests have it.

    >>> tool_table({"type": "function", "function": {"name": "add"}, "result": 3})
    {'name': 'add', 'result': 3}
    """
    if not isinstance(table, dict) or table.get("type") != "function" or "function" not in table:
        return table
    inner = table["function"] if isinstance(table["function"], dict) else {}
    known = {key: value for key, value in inner.items() if key in ("name", "description", "parameters")}
    return {**known, **{key: value for key, value in table.items() if key not in ("type", "function")}}


def set_tools(
    document: dict[str, Any], path: str, line: Callable[[KeyPath], int], problems: ProblemCollector
) -> tuple[dict[str, Any], ...]:
    """The tools that a file declares for all its cases."""
    tables = document.get("tools", [])
    if not isinstance(tables, list):
        problems.error(path, line(("tools",)), "tools are [[tools]] tables with a name")
        return ()
    found = []
    for number, given in enumerate(tables):
        table = tool_table(given)
        if not isinstance(table, dict):
            problems.error(path, line(("tools", number)), "tools are [[tools]] tables with a name")
            continue
        subject = f"tool {short_quote(str(table.get('name', number + 1)))}"
        draft = Draft(table, path, subject, partial(_line_in, line, number))
        if record_from_draft(CaseTool, draft, problems) is not None:
            found.append(table)
    return tuple(found)


def _line_in(line: Callable[[KeyPath], int], number: int, keys: KeyPath) -> int:
    return line(("tools", number, *keys))
