"""How attempts came out that somebody else made and judged, read from the files they have."""

from steelyard.outcomes.benchmarks import results
from steelyard.outcomes.detect import kind
from steelyard.outcomes.repairs import fixes
from steelyard.outcomes.tables import table

__all__ = ["fixes", "kind", "results", "table"]
