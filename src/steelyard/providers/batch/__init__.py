"""Batches: many requests that are answered within a day, at a lower price.

Input: the same attempts that a wire format takes. Output: the same answers.
A provider whose batches can be listed, and whose batches show who submitted them, has a class in `offered.py`; others are not offered.
"""
