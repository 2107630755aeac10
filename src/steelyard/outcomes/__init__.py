"""Outcomes of attempts that other tools made and judged.

In come files of outcomes: CSV, JSONL, JSON and Parquet, of any size and in any state. Out come tallies (`analysis.counts`), warnings,
or an InputError with all that is wrong. Nothing is written, and no model or verifier is asked.
"""

from steelyard.outcomes.benchmarks import results
from steelyard.outcomes.detect import kind
from steelyard.outcomes.repairs import fixes
from steelyard.outcomes.tables import table

__all__ = ["fixes", "kind", "results", "table"]
