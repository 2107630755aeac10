"""The tools of cases as files declare them: with a case, for all cases of a set, or for all cases of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from steelyard.errors import InputError
from steelyard.evalsets.companions import CompanionFiles, system_error_reason
from steelyard.evalsets.schema import Draft, ProblemCollector, record_from_draft
from steelyard.evalsets.set_tools import set_tools, tool_table
from steelyard.evalsets.toml import TomlLineIndex, toml_document
from steelyard.records import Case, CaseTool, SimulatedUser
from steelyard.text import short_quote

TOOL_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names of tools that all providers take."""
MAX_CONVERSATION_TURNS = 1000
MAX_TOOLS_FILE_BYTES = 10 << 20


def with_tool_tables(draft: Draft) -> Draft:
    """The draft with its tools in our words, and the tools of its set after them; an empty list of tools means none at all."""
    own = draft.table.get("tools")
    if not own and not draft.tools:
        return draft
    tables = [tool_table(table) for table in own] if isinstance(own, list) else own
    if own is None:
        tables = list(draft.tools)
    elif isinstance(tables, list) and tables:
        names = {table.get("name") for table in tables if isinstance(table, dict)}
        tables += [tool for tool in draft.tools if tool["name"] not in names]
    return draft._replace(table={**draft.table, "tools": tables})


def load_tools(path: str | Path) -> tuple[CaseTool, ...]:
    """The tools in the `[[tools]]` tables of a TOML file, their functions by their full paths."""
    problems = ProblemCollector()
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_TOOLS_FILE_BYTES).decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {system_error_reason(error)}") from None
    lines = TomlLineIndex()
    lines.scan(text)
    document = toml_document(text, str(path), lines, problems)
    tables = set_tools(document or {}, str(path), lines.of, problems)
    tools = [
        tool
        for table in tables
        if (tool := record_from_draft(CaseTool, Draft(table, str(path), "tool", lambda _: 0), problems)) is not None
    ]
    completed = _completed(
        tools, Path(path).absolute().parent, CompanionFiles(), lambda what, *_: problems.error(str(path), 0, what)
    )
    if problems.errors:
        raise InputError([*problems.errors, *problems.warnings()])
    if not completed:
        raise InputError(f"{path}: no tools in this file; write each as a [[tools]] table")
    return completed


def with_run_tools(cases: Iterable[Case], tools: Sequence[CaseTool]) -> tuple[Case, ...]:
    """The cases with tools of a run; a tool that a case has under the same name stays its own."""
    given = []
    for case in cases:
        names = {tool.name for tool in case.tools}
        given.append(replace(case, tools=(*case.tools, *(tool for tool in tools if tool.name not in names))))
    return tuple(given)


def with_completed_tools(
    case: Case, folder: Path, companions: CompanionFiles, wrong: Callable[..., None], *, files: bool
) -> Case:
    """The case with the functions of its tools by their full paths; says what is wrong with its conversation."""
    if case.max_turns is not None and not 1 <= case.max_turns <= MAX_CONVERSATION_TURNS:
        wrong(f"must be a number from 1 to {MAX_CONVERSATION_TURNS}", "max_turns")
    user = None if case.user is None else _completed_user(case.user, folder, companions, wrong, files=files)
    tools = _completed(case.tools, folder, companions, wrong)
    return replace(case, tools=tools, user=user) if case.is_conversation else case


def _completed_user(
    user: SimulatedUser, folder: Path, companions: CompanionFiles, wrong: Callable[..., None], *, files: bool
) -> SimulatedUser:
    if not 1 <= user.max_turns <= MAX_CONVERSATION_TURNS:
        wrong(f"must be a number from 1 to {MAX_CONVERSATION_TURNS}", "user", "max_turns")
    for key in ("model", "script", "stop"):
        if not getattr(user, key).strip():
            wrong("must not be empty", "user", key)
    if files and user.script.startswith("file://"):
        try:
            return replace(user, script=companions.text(folder / user.script.removeprefix("file://")))
        except InputError as error:
            wrong(str(error), "user", "script")
    return user


def _completed(
    tools: Iterable[CaseTool], folder: Path, companions: CompanionFiles, wrong: Callable[..., None]
) -> tuple[CaseTool, ...]:
    found: dict[str, CaseTool] = {}
    for tool in tools:
        name = short_quote(tool.name)
        if not TOOL_NAME_PATTERN.fullmatch(tool.name):
            wrong(f"a tool has a name of 1 to 64 letters, digits, hyphens and underscores, not {name}", "tools")
        if tool.name in found:
            wrong(f"{name} is there twice; names of tools must be unique", "tools")
        if tool.python and (tool.results or tool.error or tool.result is not None):
            wrong(f"{name} has both a function and a result; keep one of them", "tools")
        if not 0 < tool.timeout_secs < float("inf"):
            wrong(f"{name}: timeout_secs must be a number of seconds above 0", "tools")
        full, source = tool.python, ""
        if tool.python:
            try:
                full, source = companions.function(folder, tool.python)
            except InputError as error:
                wrong(f"{name}: {error}", "tools")
        found[tool.name] = replace(tool, python=full, source=source)
    return tuple(found.values())
