"""Datasets as eval sets: folders of tables, and `hf:` names, from the hub or from what its library left on disk.

In goes a folder or a name such as `hf:openai/gsm8k:main:test`; out come the paths of files on this machine that hold its rows.
"""
