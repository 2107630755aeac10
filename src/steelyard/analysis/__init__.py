"""From the facts of a run to its figures.

In come a run's description, its cases and the facts of its journal; out come attempts, scores, summaries and headlines.
`attempts` makes the one row of every attempt that all figures are made from. Nothing here touches a file or the clock.
"""
