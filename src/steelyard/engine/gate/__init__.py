"""Gates on runs: sides found by name, looks counted, rounds of attempts until it is decided.

In come the names of runs, baselines, reports or Parquet files; out come decisions, plans and baselines.
What decides is in `comparison`; this room reads the files and keeps count of the looks.
"""
