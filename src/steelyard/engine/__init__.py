"""A run from plan to summary: the room that joins the edges.

Input: cases, models and how to carry them out (`RunOptions`). Output: a `Run`, whose facts lie in its folder.
Providers, verifiers, pools and the store meet only here.
"""
