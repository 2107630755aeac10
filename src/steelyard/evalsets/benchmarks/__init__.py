"""Rows of public benchmarks and datasets as tables of our cases.

In comes one row as its publisher wrote it; out comes a table under the names of our cases, or None for a row of another kind.
No file is read here: the readers of formats are beside this folder.
"""
