"""Experiments over tiers, and the judges of their replies.

In come an experiment, a run folder or files of other tools; out come runs of tiers, judgments and the analysis of both.
The formulas are in `tiers`; this room asks the models, and joins their answers with the files.
"""
