"""Experiments in tiers: what each tier of an agent set-up achieves, at what price, and how far its judges agree.

In come runs, ratings and rubrics as records; out come figures with intervals, tests, grades and warnings (`analysis.py`).
Nothing here touches a file, a clock or a model.
"""
