"""The attempts of stored runs without their texts: one row each, in memory or in a file.

In come the journals of a run, or the index beside them; out come tables whose rows are read when they are asked for.
What a row says is decided in `analysis`; this room decides where rows are kept while they are joined, so that
a run of any length takes little memory.
"""
