"""What an agent reports about its tokens, its turns and its cost, in the formats of several agents.

Only the standard library is used: the process that keeps an agent listens with it. A line that is a JSON object may
report totals, as Claude Code's `result`, OpenHands' metrics and SWE-agent's `model_stats` do, or one turn, as Codex'
`turn.completed` and Claude Code's `assistant` do; turns are added up if there are no totals.
"""

from __future__ import annotations

import json
import math
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Usage = dict[str, float]
    """Numbers by the names that an answer has for them, and `cost_usd`; what is unknown is left out."""

MAX_USAGE_LINE_BYTES = 4 << 20
"""A longer line is not a report of tokens."""
MAX_REPORTED_TURNS, MAX_REPORTED_SESSIONS = 10_000, 1_000
"""What is kept of the reports of one agent; what comes after is not listened to."""
USAGE_WORDS = (b"token", b"cost")
"""One of these is in every report; most lines have neither, and need not be read."""
TURN_TYPES = frozenset({"turn.completed", "assistant"})
"""What agents call the report of a single turn."""
LOGGER_KEYS = ("data", "event")
"""Where loggers that add a time to each line put what the agent printed."""
TOKENS_PER_PRICE = 1_000_000


class UsageMeter:
    """Adds up what an agent reports while it works, and says when it exceeds its limits."""

    def __init__(
        self,
        max_usd: float | None = None,
        max_turns: int | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> None:
        self._max_usd, self._max_turns, self._prices = max_usd, max_turns, prices
        self._rest = bytearray()
        self._is_skipping = False
        self._totals: dict[str, Usage] = {}
        """By the session that they are about; a later one replaces an earlier one."""
        self._turns: dict[str, Usage] = {}
        """By the message that they belong to: one is reported several times while it grows."""

    def add(self, piece: bytes) -> None:
        """Listen to what was printed next."""
        ended, newline, rest = piece.rpartition(b"\n")
        if newline:
            self._rest += ended
            if _may_report(self._rest):
                for line in self._rest.split(b"\n")[self._is_skipping :]:
                    if _may_report(line):
                        self.read(bytes(line))
            self._is_skipping = False
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > MAX_USAGE_LINE_BYTES:
            self._rest.clear()
            self._is_skipping = True

    def read(self, text: bytes | str) -> None:
        """Look at one line, or at all that was printed."""
        found = _decoded(text)
        for printed in found if isinstance(found, list) else [found]:
            if isinstance(printed, dict):
                self._take(printed)

    def _take(self, printed: dict[str, Any]) -> None:
        printed = unwrapped(printed)
        if printed.get("type") in TURN_TYPES:
            inner = printed.get("message")
            found = usage_fields(printed) or (usage_fields(inner) if isinstance(inner, dict) else {})
            if found:
                name = inner.get("id") if isinstance(inner, dict) else None
                _keep(self._turns, str(name or f"turn {len(self._turns)}"), found, MAX_REPORTED_TURNS)
            return
        for part in _reporting_parts(printed):
            if found := _of_services(part) or usage_fields(part):
                session = str(printed.get("session_id") or "")
                if not _is_of_a_part(found, self._totals.get(session, {})):
                    _keep(self._totals, session, found, MAX_REPORTED_SESSIONS)
                return

    def final_usage(self) -> Usage:
        """What it reported in all."""
        self.add(b"\n")
        return self.usage

    @property
    def exceeded(self) -> str:
        """The limit that it is over: `budget`, `max_turns`, or none."""
        if self._max_usd is not None and (self.cost(self._prices) or 0.0) > self._max_usd:
            return "budget"
        return "max_turns" if self._max_turns is not None and len(self._turns) > self._max_turns else ""

    @property
    def usage(self) -> Usage:
        """What it has reported so far, in lines that have ended."""
        return _added_up(list((self._totals or self._turns).values()))

    def cost(self, prices: Mapping[str, float] | None) -> float | None:
        """The cost so far, as reported or by prices per million tokens; None if neither is known."""
        found = self.usage
        if "cost_usd" in found:
            return found["cost_usd"]
        if prices is None or "input_tokens" not in found or "output_tokens" not in found:
            return None
        return token_dollars(found, prices)


def _may_report(text: bytearray) -> bool:
    return any(word in text for word in USAGE_WORDS)


def _keep(reports: dict[str, Usage], name: str, found: Usage, most: int) -> None:
    if name in reports or len(reports) < most:
        reports[name] = found


def unwrapped(printed: dict[str, Any]) -> dict[str, Any]:
    """An event of an agent, without what a logger put around it.

    >>> unwrapped({"at": 1, "data": {"type": "turn.completed"}}), unwrapped({"type": "result", "data": {"type": "x"}})
    ({'type': 'turn.completed'}, {'type': 'result', 'data': {'type': 'x'}})
    """
    inner = next((part for name in LOGGER_KEYS if isinstance(part := printed.get(name), dict)), None)
    return inner if inner is not None and "type" in inner and "type" not in printed else printed


def _is_of_a_part(found: Usage, known: Usage) -> bool:
    """Whether less was used by this report than by an earlier one: then it is about some of the work, such as a second model's.

    >>> whole = {"input_tokens": 35205, "output_tokens": 1766, "cost_usd": 0.2}
    >>> _is_of_a_part({"input_tokens": 2780, "output_tokens": 1484, "cost_usd": 0.1}, whole)
    True
    >>> _is_of_a_part({"input_tokens": 8, "output_tokens": 30, "cost_usd": 0.3}, whole)
    False
    """
    shared = [name for name in ("input_tokens", "output_tokens", "cost_usd") if name in found and name in known]
    is_no_more = all(found[name] <= known[name] for name in shared)
    return is_no_more and any(found[name] < known[name] for name in shared)


def _added_up(parts: Sequence[Usage]) -> Usage:
    # if one part lacks a figure, the total is unknown
    names = [name for name in (parts[0] if parts else ()) if all(name in part for part in parts)]
    return {name: math.fsum(part[name] for part in parts) for name in names}


def _of_services(printed: dict[str, Any]) -> Usage:
    """The metrics of OpenHands by the service that used a model: its agent, its condenser and others, added up."""
    services = _nested(printed, "usage_to_metrics").values()
    return _added_up([found for each in services if isinstance(each, dict) and (found := usage_fields(each))])


def _of_calls(printed: dict[str, Any]) -> dict[str, int]:
    """The tokens of all calls of a model, where older versions of OpenHands list each of them and no sum."""
    calls = printed.get("token_usages")
    listed = [each for each in calls if isinstance(each, dict)] if isinstance(calls, list) else []
    names = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
    counts = {name: [count for each in listed if (count := _count(each, name)) is not None] for name in names}
    return {name: sum(each) for name, each in counts.items() if each and len(each) == len(listed)}


def token_dollars(usage: Mapping[str, float], prices: Mapping[str, float]) -> float:
    """What tokens cost, each kind at its own price per million; one without a price costs what its kind costs at large.

    >>> token_dollars({"input_tokens": 1000, "cache_write_tokens": 400, "output_tokens": 10}, {"input": 1, "output": 5, "cache_write": 1.25})
    0.00115
    """
    kept, read = usage.get("cache_write_tokens", 0), usage.get("cached_tokens", 0)
    long = min(usage.get("cache_write_1h_tokens", 0), kept)
    thought = min(usage.get("reasoning_tokens", 0), usage.get("output_tokens", 0))
    write = prices.get("cache_write", prices["input"])
    parts = (
        (usage.get("input_tokens", 0) - kept - read) * prices["input"],
        read * prices.get("cached", prices["input"]),
        (kept - long) * write,
        long * prices.get("cache_write_1h", write),
        (usage.get("output_tokens", 0) - thought) * prices["output"],
        thought * prices.get("reasoning", prices["output"]),
    )
    return math.fsum(parts) / TOKENS_PER_PRICE


def _reporting_parts(printed: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of a report in which agents report totals so far, the whole first."""
    yield printed
    for path in (
        ("info", "model_stats"),
        ("model_stats",),
        ("stats",),
        ("value",),
        ("llm_metrics",),
        ("metrics",),
        ("payload", "info", "total_token_usage"),
        ("info", "total_token_usage"),
        ("total_token_usage",),
    ):
        part: Any = printed
        for name in path:
            part = part.get(name) if isinstance(part, dict) else None
        if isinstance(part, dict):
            yield part


def _decoded(text: bytes | str) -> Any:
    text = text.strip()
    if text[:1] not in (b"{", b"[", "{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def usage_fields(printed: dict[str, Any]) -> Usage:
    """The numbers of one report."""
    counted = next(
        (part for name in ("usage", "accumulated_token_usage") if isinstance(part := printed.get(name), dict)),
        _of_calls(printed) or printed,
    )
    given = _count(counted, "input_tokens", "prompt_tokens", "tokens_sent")
    read, written = _count(counted, "cache_read_input_tokens"), _count(counted, "cache_creation_input_tokens")
    # where these two are given, they are counted beside the input, elsewhere as a part of it
    taken = None if given is None else given + (read or 0) + (written or 0)
    inside = [_nested(counted, "prompt_tokens_details"), _nested(counted, "input_tokens_details"), counted]
    thought = [_nested(counted, "completion_tokens_details"), _nested(counted, "output_tokens_details"), counted]
    cached = [_count(part, "cached_tokens", "cached_input_tokens", "cache_read_tokens") for part in inside]
    found: dict[str, float | None] = {
        "input_tokens": taken,
        "output_tokens": _count(counted, "output_tokens", "completion_tokens", "tokens_received"),
        "cached_tokens": read if read is not None else _first(cached),
        "cache_write_tokens": written
        if written is not None
        else _count(counted, "cache_write_tokens", "cache_write_input_tokens"),
        "cache_write_1h_tokens": _count(_nested(counted, "cache_creation"), "ephemeral_1h_input_tokens"),
        "reasoning_tokens": _first([_count(part, "reasoning_tokens", "reasoning_output_tokens") for part in thought]),
        "cost_usd": _amount((printed, counted), "total_cost_usd", "cost_usd"),
    }
    if found["cost_usd"] is None:
        # OpenHands and SWE-agent report 0 where they know no price, so 0 is a cost only where nothing was used
        found["cost_usd"] = _amount((printed, counted), "accumulated_cost", "instance_cost") or (
            0.0 if taken == 0 else None
        )
    return {name: value for name, value in found.items() if value is not None}


def _nested(printed: dict[str, Any], name: str) -> dict[str, Any]:
    part = printed.get(name)
    return part if isinstance(part, dict) else {}


def _first(counts: Sequence[int | None]) -> int | None:
    return next((count for count in counts if count is not None), None)


def _count(printed: dict[str, Any], *names: str) -> int | None:
    values = (printed.get(name) for name in names)
    return next((value for value in values if type(value) is int and 0 <= value < 1 << 53), None)


def _amount(parts: Sequence[dict[str, Any]], *names: str) -> float | None:
    for value in (part.get(name) for part in parts for name in names):
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
            return float(value)
    return None


def told_usage(output: str) -> Usage:
    """What all of an agent's output reports: as a whole, or by its lines."""
    whole, by_line = UsageMeter(), UsageMeter()
    whole.read(output)
    by_line.add(output.encode("utf-8", "replace") + b"\n")
    return whole.usage or by_line.usage
