"""What becomes of finished attempts: cached figures, pages, queries, tiers, and outcomes of other tools.

In come run folders and files of outcomes; out come records for reports, and the caches beside a journal.
The arithmetic is in `analysis`, `comparison` and `tiers`; this room joins it with the files.
"""
