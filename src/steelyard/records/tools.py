"""The tools of a case with the results of calling them, and the user that a model plays."""

from __future__ import annotations

from typing import Any

from steelyard.records.base import Record
from steelyard.records.messages import Tool

DEFAULT_MAX_TURNS = 10
"""Requests to the model of one conversation, where the case does not say."""


class CannedResult(Record, frozen=True, kw_only=True):
    """What calling a tool with such arguments returns."""

    arguments: dict[str, Any] = {}
    """The values that the arguments must have; others may be there as well."""
    result: Any = None
    """What it returns: a text as it is, any other value as JSON."""
    error: str = ""
    """How it fails instead."""


class CaseTool(Tool, frozen=True, kw_only=True):
    """A tool that the model of a case may call, and what calling it does; one that does nothing ends the conversation."""

    python: str = ""
    """A function of yours that is called with the arguments by their names, `tools.py:get_weather`."""
    source: str = ""
    """A digest of that function's file, filled in by the loader."""
    result: Any = None
    """What it always returns, or where none of `results` fits: a text as it is, any other value as JSON."""
    results: tuple[CannedResult, ...] = ()
    """What it returns for arguments; the first that fits counts."""
    error: str = ""
    """How it always fails."""
    timeout_secs: float = 60
    """How long one call of the function may take."""

    @property
    def is_called(self) -> bool:
        """Whether something is called, or known to be returned."""
        return bool(self.python or self.results or self.error or self.result is not None)

    @property
    def definition(self) -> Tool:
        """What a model gets to know about it."""
        return Tool(name=self.name, description=self.description, parameters=self.parameters)

    @property
    def by_content(self) -> tuple[Any, ...]:
        """The tool by what it does, independent of where its file is."""
        function = self.python.rpartition("/")[2]
        return self.definition, function, self.source, self.result, self.results, self.error


class SimulatedUser(Record, frozen=True, kw_only=True):
    """A model that plays the user of a conversation."""

    model: str
    """Provider and model, such as `openai/gpt-5-mini`."""
    script: str
    """Who the user is, what they want and what they know: the instructions of the model that plays them."""
    max_turns: int = 5
    """Messages that it writes at most, after the prompt of the case."""
    stop: str = "[END]"
    """What it writes when the conversation is over."""
    parameters: dict[str, Any] = {}
    """Sent with its requests as they are."""
