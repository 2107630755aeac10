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
    from steelyard.engine.gate.gate import GateResult
    from steelyard.engine.options import RunOptions
    from steelyard.engine.results.read_outcomes import gather
    from steelyard.engine.run import Run
    from steelyard.evalsets import load
    from steelyard.library import (
        CompareResult,
        PasskResult,
        PlanResult,
        ShowResult,
        compare,
        gate,
        merge,
        passk,
        plan,
        report,
        resume,
        run,
        show,
        verify,
    )
    from steelyard.records import Case, Expectations, Message, Verify
    from steelyard.settings import Settings

    Means = RunOptions

_HOMES = {
    "Case": "steelyard.records:Case",
    "CompareResult": "steelyard.library:CompareResult",
    "Expectations": "steelyard.records:Expectations",
    "GateResult": "steelyard.engine.gate.gate:GateResult",
    "Means": "steelyard.engine.options:RunOptions",
    "Message": "steelyard.records:Message",
    "PasskResult": "steelyard.library:PasskResult",
    "PlanResult": "steelyard.library:PlanResult",
    "Run": "steelyard.engine.run:Run",
    "RunOptions": "steelyard.engine.options:RunOptions",
    "Settings": "steelyard.settings:Settings",
    "ShowResult": "steelyard.library:ShowResult",
    "Steelyard": "steelyard.cli.pytest_plugin:Steelyard",
    "Verify": "steelyard.records:Verify",
    "compare": "steelyard.library:compare",
    "gate": "steelyard.library:gate",
    "gather": "steelyard.engine.results.read_outcomes:gather",
    "load": "steelyard.evalsets:load",
    "merge": "steelyard.library:merge",
    "passk": "steelyard.library:passk",
    "plan": "steelyard.library:plan",
    "report": "steelyard.library:report",
    "resume": "steelyard.library:resume",
    "run": "steelyard.library:run",
    "show": "steelyard.library:show",
    "standings": "steelyard.analysis.counts:standings",
    "verify": "steelyard.library:verify",
}
__all__ = [
    "Case",
    "CompareResult",
    "Expectations",
    "GateResult",
    "Means",
    "Message",
    "PasskResult",
    "PlanResult",
    "Run",
    "RunOptions",
    "Settings",
    "ShowResult",
    "Steelyard",
    "Verify",
    "compare",
    "gate",
    "gather",
    "load",
    "merge",
    "passk",
    "plan",
    "report",
    "resume",
    "run",
    "show",
    "standings",
    "verify",
]


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: `steelyard --help` must not wait for them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)
