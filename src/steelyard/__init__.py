"""Measure how good the output of language models is, and whether a difference between two of them is real.

Input: cases, models and options, as Python values or as paths. Output: runs, summaries and gate decisions.
The names below are the public ones; each is imported when it is first used. ARCHITECTURE.md shows the rooms behind them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.analysis.counts import standings
    from steelyard.cli.pytest_plugin import Steelyard
    from steelyard.engine.gate.gate import GateResult, gate
    from steelyard.engine.options import RunOptions
    from steelyard.engine.results.merge import merge
    from steelyard.engine.results.read_outcomes import gather
    from steelyard.engine.resume import verify_again as verify
    from steelyard.engine.run import Run, run
    from steelyard.engine.tiers.winners import resume_all_stages as resume
    from steelyard.evalsets import load
    from steelyard.records import Case, Expectations, Message, Verify
    from steelyard.settings import Settings

    Gated = GateResult
    Means = RunOptions

_HOMES = {
    "Case": "steelyard.records:Case",
    "Expectations": "steelyard.records:Expectations",
    "GateResult": "steelyard.engine.gate.gate:GateResult",
    "Gated": "steelyard.engine.gate.gate:GateResult",
    "Means": "steelyard.engine.options:RunOptions",
    "Message": "steelyard.records:Message",
    "Run": "steelyard.engine.run:Run",
    "RunOptions": "steelyard.engine.options:RunOptions",
    "Settings": "steelyard.settings:Settings",
    "Steelyard": "steelyard.cli.pytest_plugin:Steelyard",
    "Verify": "steelyard.records:Verify",
    "gate": "steelyard.engine.gate.gate:gate",
    "gather": "steelyard.engine.results.read_outcomes:gather",
    "load": "steelyard.evalsets:load",
    "merge": "steelyard.engine.results.merge:merge",
    "resume": "steelyard.engine.tiers.winners:resume_all_stages",
    "run": "steelyard.engine.run:run",
    "standings": "steelyard.analysis.counts:standings",
    "verify": "steelyard.engine.resume:verify_again",
}
__all__ = [
    "Case",
    "Expectations",
    "GateResult",
    "Gated",
    "Means",
    "Message",
    "Run",
    "RunOptions",
    "Settings",
    "Steelyard",
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
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)
