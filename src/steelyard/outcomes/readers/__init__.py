"""Readers of the attempts that other tools made and judged, one module for each tool.

In come their files as the tools wrote them, of any size and in any state. Out come attempts one by one, and warnings. A file
is recognised by what it holds.
"""

from __future__ import annotations
