"""Find out how good the things are that language models write, and whether a difference is real."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.analysis.standings import standings
    from steelyard.engine.gate.gate import Gated, gate
    from steelyard.engine.results.read_outcomes import gather
    from steelyard.engine.run import Run, resume, run
    from steelyard.engine.run import verify_again as verify
    from steelyard.engine.session import Means
    from steelyard.engine.shards.merge import merge
    from steelyard.evalsets import load
    from steelyard.records import Case, Expectations, Message, Verify
    from steelyard.settings import Settings

_HOMES = {
    "Case": "steelyard.records",
    "Expectations": "steelyard.records",
    "Gated": "steelyard.engine.gate.gate",
    "Means": "steelyard.engine.session",
    "Message": "steelyard.records",
    "Run": "steelyard.engine.run",
    "Settings": "steelyard.settings",
    "Verify": "steelyard.records",
    "gate": "steelyard.engine.gate.gate",
    "gather": "steelyard.engine.results.read_outcomes",
    "load": "steelyard.evalsets",
    "merge": "steelyard.engine.shards.merge",
    "resume": "steelyard.engine.run",
    "run": "steelyard.engine.run",
    "standings": "steelyard.analysis.standings",
    "verify": "steelyard.engine.run",
}
__all__ = [
    "Case",
    "Expectations",
    "Gated",
    "Means",
    "Message",
    "Run",
    "Settings",
    "Verify",
    "gate",
    "gather",
    "load",
    "merge",
    "resume",
    "run",
    "standings",
    "verify",
]


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: `steelyard --help` must not wait for them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return getattr(home, "verify_again" if name == "verify" else name)
